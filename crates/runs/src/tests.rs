//! Tests of runs: confirmation, locking, resuming, stopping, cancelling, and the work at the start of a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, fs};

use jiff::Timestamp;
use tokio::sync::watch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use campaign_engine::delivery::Interrupt;
use campaign_engine::report::RunFigures;
use campaign_gateway::{BoxFuture, JsonApi};
use campaign_ledger::memory::{LedgerContents, MemoryLedger};
use campaign_ledger::{Ledger, RowState, RunFilter, RunProgress, SqliteLedger, StopKind};
use campaign_manifest::CampaignDay;

/// A consent with a fixed answer that counts the proposals.
pub(super) struct FixedConsent {
    answer: Result<(), ConsentRefusal>,
    proposals: AtomicUsize,
}

impl FixedConsent {
    pub(super) fn yes() -> Arc<Self> {
        Arc::new(Self { answer: Ok(()), proposals: AtomicUsize::new(0) })
    }

    fn no() -> Arc<Self> {
        Arc::new(Self { answer: Err(ConsentRefusal::Declined), proposals: AtomicUsize::new(0) })
    }

    fn count_proposals(&self) -> usize {
        self.proposals.load(Ordering::Relaxed)
    }
}

impl Consent for FixedConsent {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        self.proposals.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { self.answer })
    }
}

/// A campaign with three recipients and a live profile.
pub(super) struct TestWorld {
    pub(super) folder: tempfile::TempDir,
    pub(super) adapters: Adapters,
    events: Arc<Mutex<Vec<String>>>,
}

impl TestWorld {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        let ledger = SqliteLedger::open(&state.join("ledger.sqlite"), Timestamp::now).await.unwrap();
        Self::with_ledger(folder, Arc::new(ledger))
    }

    fn with_ledger(folder: tempfile::TempDir, ledger: Arc<dyn Ledger>) -> Self {
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("sale.csv", "phone\n+380500000001\n+380500000002\n+380500000003\n");
        let sms = "channels:\n  - sms: { signature: Olena, message: Hello }\n";
        write("sale.yaml", &format!("name: sale\nrecipients:\n  file: sale.csv\n{sms}"));
        let key = folder.path().join("key");
        fs::write(&key, "s3cret").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let profile = "production:\n  base_url: https://gateway.example\n  api_key: { file: key }\n  rate: 10/s\n";
        write("gateways.yaml", profile);
        let events = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&events);
        let adapters = Adapters {
            process: "test".to_owned(),
            state: folder.path().join("state"),
            ledger,
            profiles: Profiles::default(),
            connect: JsonApi::new,
            input: || None,
            clock: Timestamp::now,
            name_view: Arc::new(|_, _| String::new()),
            observer: Arc::new(move |event| {
                let name = format!("{event:?}");
                let name: String = name.chars().take_while(|character| character.is_alphanumeric()).collect();
                recorded.lock().unwrap().push(name);
            }),
        };
        Self { folder, adapters, events }
    }

    pub(super) async fn launch(
        &self,
        gateway: Option<&str>,
        request: RunRequest,
        consent: Arc<FixedConsent>,
        interrupt: Interrupt,
    ) -> Result<RunOutcome, Error> {
        let Adapters { state, profiles, clock, .. } = &self.adapters;
        let inputs = Inputs::load(&self.folder.path().join("sale.yaml"), gateway, profiles, CampaignDay::Of(clock()))?;
        let launch = Launch::prepare(Arc::new(inputs), request, ProtectedFiles { state, profiles })?;
        let (_sender, interrupt) = watch::channel(interrupt);
        launch.run(self.adapters.clone(), consent, interrupt).await
    }

    /// Whether there are copies of a run, complete or not.
    fn has_copies(&self) -> bool {
        fs::read_dir(self.adapters.state.join("runs")).is_ok_and(|mut entries| entries.next().is_some())
    }
}

pub(super) fn expect_ended(outcome: Result<RunOutcome, Error>) -> EndedRun {
    match outcome {
        Ok(RunOutcome::Ended(ended)) => *ended,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn live_run_needs_confirmation_but_a_rehearsal_does_not() {
    let (world, no) = (TestWorld::new().await, FixedConsent::no());
    let request = RunRequest { offline: true, ..RunRequest::default() };
    let result = world.launch(Some("production"), request, Arc::clone(&no), Interrupt::None).await;
    assert!(matches!(result, Err(Error::NotConfirmed { refusal: ConsentRefusal::Declined, .. })), "{result:?}");
    assert_eq!(no.count_proposals(), 1);
    assert!(!world.has_copies());
    let rehearsed = expect_ended(world.launch(None, RunRequest::default(), no, Interrupt::None).await);
    assert_eq!(rehearsed.run.name(), "sale@1", "the refused run took no number");
    assert!(world.has_copies());
}

#[tokio::test]
async fn signal_before_the_first_message_leaves_no_run() {
    let (world, yes) = (TestWorld::new().await, FixedConsent::yes());
    let outcome = world.launch(None, RunRequest::default(), yes, Interrupt::Graceful(15)).await;
    let is_interrupted = |outcome: &Result<RunOutcome, Error>| {
        matches!(outcome, Err(Error::Interrupted { signal: 15, phase: RunPhase::Preparing }))
    };
    assert!(is_interrupted(&outcome), "{outcome:?}");
    assert!(world.adapters.ledger.list_runs(RunFilter::all()).await.unwrap().is_empty());
}

#[tokio::test]
async fn rehearsal_does_not_need_confirmation_and_starts_over() {
    let (world, no) = (TestWorld::new().await, FixedConsent::no());
    let limited = RunRequest { limit: Some(1), ..RunRequest::default() };
    let paused = expect_ended(world.launch(None, limited, Arc::clone(&no), Interrupt::None).await);
    assert_eq!((paused.kind, paused.counts.get(RowState::Accepted)), (Some(StopKind::Limit), 1));
    let finished = expect_ended(world.launch(None, RunRequest::default(), Arc::clone(&no), Interrupt::None).await);
    assert_eq!((finished.kind, finished.counts.get(RowState::Accepted)), (None, 3));
    assert_eq!((finished.run.name(), no.count_proposals()), ("sale@2".to_owned(), 0));
    let progress = world.adapters.ledger.list_runs(RunFilter::all()).await.unwrap().into_iter().map(|run| run.progress);
    assert_eq!(progress.collect::<Vec<_>>(), [RunProgress::Replaced, RunProgress::Finished]);
    let events = world.events.lock().unwrap().clone();
    let count_events = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!(
        (count_events("SendingBegins"), count_events("SendingEnded"), count_events("GoingOn")),
        (2, 2, 0),
        "{events:?}"
    );
}

#[tokio::test]
async fn only_one_process_sends_and_resending_needs_the_exact_count() {
    let (world, yes) = (TestWorld::new().await, FixedConsent::yes());
    let lock = lock_campaign(world.adapters.ledger.as_ref(), "sale", "sandbox", "sandbox").await.unwrap();
    let busy = world.launch(None, RunRequest::default(), Arc::clone(&yes), Interrupt::None).await;
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    drop(lock);
    expect_ended(world.launch(None, RunRequest::default(), Arc::clone(&yes), Interrupt::None).await);
    let again = RunRequest { round: Round::Again(7), ..RunRequest::default() };
    let result = world.launch(None, again, yes, Interrupt::None).await;
    assert!(matches!(result, Err(Error::OtherNumber { expected: 7, number: 3 })), "{result:?}");
}

#[tokio::test]
async fn stop_returns_an_error_while_a_process_might_start_sending() {
    let world = TestWorld::new().await;
    let run = expect_ended(world.launch(None, RunRequest::default(), FixedConsent::yes(), Interrupt::None).await).run;
    let ledger = world.adapters.ledger.as_ref();
    let lock = lock_campaign(ledger, "sale", "sandbox", "sandbox").await.unwrap();
    let stopped = stop_run(ledger, &run).await;
    assert!(matches!(stopped, Err(Error::NothingToStopYet { .. })), "{stopped:?}");
    drop(lock);
    assert!(!stop_run(ledger, &run).await.unwrap(), "no process sends the run");
}

#[tokio::test]
async fn cancelling_fails_if_another_process_took_the_run() {
    let world = TestWorld::new().await;
    let run = expect_ended(world.launch(None, RunRequest::default(), FixedConsent::yes(), Interrupt::None).await).run;
    let lock = HeldRun::lock_for_run(&world.adapters, &run).await.unwrap();
    let held_run = HeldRun::claim(&world.adapters, Arc::clone(&lock), run.clone()).await.unwrap();
    world.adapters.ledger.claim_run(&lock, run.key).await.unwrap();
    let cancelled = held_run.cancel().await;
    assert!(matches!(cancelled, Err(Error::Taken { .. })), "{cancelled:?}");
}

#[tokio::test]
async fn run_reads_its_envelopes_only_twice() {
    let ledger = Arc::new(MemoryLedger::new(LedgerContents::default(), Timestamp::now));
    let world = TestWorld::with_ledger(tempfile::tempdir().unwrap(), ledger.clone());
    let request = RunRequest { limit: Some(1), ..RunRequest::default() };
    expect_ended(world.launch(None, request, FixedConsent::yes(), Interrupt::None).await);
    ledger.take_envelope_reads();
    let finished = expect_ended(world.launch(None, RunRequest::default(), FixedConsent::yes(), Interrupt::None).await);
    assert_eq!(finished.counts.get(RowState::Accepted), 3);
    let first = ledger.take_envelope_reads().into_iter().filter(|numbers| numbers.contains(&1));
    assert_eq!(first.count(), 2, "once for the state of the run, once for the results");
    let run = world.adapters.ledger.list_runs(RunFilter::with_key(finished.run.key)).await.unwrap().pop().unwrap();
    let stored = RunFigures::load_stored(world.adapters.ledger.as_ref(), &run).await.unwrap();
    assert_eq!(stored.map(|figures| figures.counts), Some(finished.counts), "the figures were computed during the run");
}

/// Counts trace events by campaign and message.
struct TraceCounter;

static TRACED: Mutex<BTreeMap<(String, String), usize>> = Mutex::new(BTreeMap::new());

/// The fields of a trace event.
#[derive(Default)]
struct TraceFields {
    campaign: String,
    message: String,
}

impl Visit for TraceFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "campaign" {
            value.clone_into(&mut self.campaign);
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "frozen" && value {
            self.message.insert_str(0, "frozen ");
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message += &format!("{value:?}");
        }
    }
}

impl Subscriber for TraceCounter {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = TraceFields::default();
        event.record(&mut fields);
        *TRACED.lock().unwrap().entry((fields.campaign, fields.message)).or_default() += 1;
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Counts how often, since the last call, the texts of this campaign were compiled, its frozen texts were compiled, and
/// its frozen inputs were read.
fn take_trace_counts(campaign: &str) -> [usize; 3] {
    ["texts compiled", "frozen texts compiled", "frozen inputs read"].map(|work| {
        let count = TRACED.lock().unwrap().remove(&(campaign.to_owned(), work.to_owned()));
        count.unwrap_or_default()
    })
}

#[tokio::test]
async fn starting_a_run_compiles_texts_and_reads_copies_once() {
    tracing::subscriber::set_global_default(TraceCounter).unwrap();
    let world = TestWorld::new().await;
    let write = |name: &str, text: &str| fs::write(world.folder.path().join(name), text).unwrap();
    let sms = "channels:\n  - sms: { signature: Olena, message: Hello }\n";
    write("sale.yaml", &format!("name: counted\nrecipients:\n  file: sale.csv\n{sms}"));
    write("gateways.yaml", "near:\n  base_url: http://127.0.0.1:9\n  api_key: { file: key }\n  rate: 10/s\n");
    for start in ["a new run", "the resumed run"] {
        let (interrupt, interrupts) = watch::channel(Interrupt::None);
        let (interrupt, counts) = (Arc::new(interrupt), Arc::new(Mutex::new(None)));
        let counts_at_begin = Arc::clone(&counts);
        let observer: RunObserver = Arc::new(move |event| {
            if matches!(event, RunEvent::SendingBegins { .. }) {
                *counts_at_begin.lock().unwrap() = Some(take_trace_counts("counted"));
                interrupt.send_replace(Interrupt::Graceful(2));
            }
        });
        let adapters = Adapters { observer, ..world.adapters.clone() };
        let Adapters { state, profiles, clock, .. } = &adapters;
        let (file, day) = (world.folder.path().join("sale.yaml"), CampaignDay::Of(clock()));
        let inputs = Arc::new(Inputs::load(&file, Some("near"), profiles, day).unwrap());
        let request = RunRequest { offline: true, ..RunRequest::default() };
        let launch = Launch::prepare(inputs, request, ProtectedFiles { state, profiles }).unwrap();
        let ended = expect_ended(launch.run(adapters.clone(), FixedConsent::yes(), interrupts).await);
        assert_eq!(ended.run.name(), "counted@1");
        assert_eq!(*counts.lock().unwrap(), Some([1, 1, 1]), "{start}");
        take_trace_counts("counted");
    }
}
