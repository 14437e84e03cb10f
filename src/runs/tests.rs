//! What every surface can rely on, whatever it looks like.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use tokio::sync::watch;

use super::*;
use crate::delivery::Interrupt;
use crate::gateway::{BoxFuture, JsonApi};
use crate::ledger::memory::{Contents, MemoryLedger};
use crate::ledger::{Ledger, Progress, RunFilter, SqliteLedger, State, StopKind};
use crate::manifest::Day;
use crate::report::RunFigures;

/// Somebody who always says the same, and how often that was.
pub(super) struct Fixed(Result<(), Refusal>, AtomicUsize);

impl Fixed {
    pub(super) fn yes() -> Arc<Self> {
        Arc::new(Self(Ok(()), AtomicUsize::new(0)))
    }

    fn no() -> Arc<Self> {
        Arc::new(Self(Err(Refusal::No), AtomicUsize::new(0)))
    }

    fn asked(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

impl Consent for Fixed {
    fn can_come(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { self.0 })
    }
}

/// A campaign with three recipients, and a profile that leaves this machine.
pub(super) struct World {
    pub(super) folder: tempfile::TempDir,
    pub(super) adapters: Adapters,
    events: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        let ledger = SqliteLedger::open(&state.join("ledger.sqlite"), Timestamp::now).await.unwrap();
        Self::on(folder, Arc::new(ledger))
    }

    fn on(folder: tempfile::TempDir, ledger: Arc<dyn Ledger>) -> Self {
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
        let heard = Arc::clone(&events);
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
                heard.lock().unwrap().push(name);
            }),
        };
        Self { folder, adapters, events }
    }

    pub(super) async fn launch(
        &self,
        gateway: Option<&str>,
        request: Request,
        consent: Arc<Fixed>,
        interrupt: Interrupt,
    ) -> Result<Outcome, Error> {
        let Adapters { state, profiles, clock, .. } = &self.adapters;
        let inputs = Inputs::load(&self.folder.path().join("sale.yaml"), gateway, profiles, Day::Of(clock()))?;
        let launch = Launch::of(Arc::new(inputs), request, OwnFiles { state, profiles })?;
        let (_sender, interrupt) = watch::channel(interrupt);
        launch.run(self.adapters.clone(), consent, interrupt).await
    }

    /// Whether there are copies of any run, or some that are being made.
    fn has_copies(&self) -> bool {
        fs::read_dir(self.adapters.state.join("runs")).is_ok_and(|mut entries| entries.next().is_some())
    }
}

pub(super) fn ended(outcome: Result<Outcome, Error>) -> EndedRun {
    match outcome {
        Ok(Outcome::Ended(ended)) => *ended,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn without_a_yes_no_run_begins() {
    let (world, no) = (World::new().await, Fixed::no());
    let request = Request { offline: true, ..Request::default() };
    let refused = world.launch(Some("production"), request, Arc::clone(&no), Interrupt::None).await;
    assert!(matches!(refused, Err(Error::NotConfirmed { refusal: Refusal::No, .. })), "{refused:?}");
    assert_eq!(no.asked(), 1);
    assert!(!world.has_copies());
    let rehearsed = ended(world.launch(None, Request::default(), no, Interrupt::None).await);
    assert_eq!(rehearsed.run.name(), "sale@1", "no other has the number");
    assert!(world.has_copies());
}

#[tokio::test]
async fn a_signal_before_the_first_message_leaves_nothing_behind() {
    let (world, yes) = (World::new().await, Fixed::yes());
    let left = world.launch(None, Request::default(), yes, Interrupt::Gently(15)).await;
    let before = |left: &Result<Outcome, Error>| {
        matches!(left, Err(Error::Interrupted { signal: 15, phase: RunPhase::Preparing }))
    };
    assert!(before(&left), "{left:?}");
    assert!(world.adapters.ledger.runs(RunFilter::all()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_rehearsal_asks_nobody_pauses_and_starts_anew() {
    let (world, no) = (World::new().await, Fixed::no());
    let some = Request { limit: Some(1), ..Request::default() };
    let paused = ended(world.launch(None, some, Arc::clone(&no), Interrupt::None).await);
    assert_eq!((paused.kind, paused.counts.get(State::Accepted)), (Some(StopKind::Limit), 1));
    let through = ended(world.launch(None, Request::default(), Arc::clone(&no), Interrupt::None).await);
    assert_eq!((through.kind, through.counts.get(State::Accepted)), (None, 3));
    assert_eq!((through.run.name(), no.asked()), ("sale@2".to_owned(), 0));
    let progress = world.adapters.ledger.runs(RunFilter::all()).await.unwrap().into_iter().map(|run| run.progress);
    assert_eq!(progress.collect::<Vec<_>>(), [Progress::Replaced, Progress::Finished]);
    let events = world.events.lock().unwrap().clone();
    let told = |name: &str| events.iter().filter(|event| *event == name).count();
    assert_eq!((told("SendingBegins"), told("SendingEnded"), told("GoingOn")), (2, 2, 0), "{events:?}");
}

#[tokio::test]
async fn a_campaign_is_sent_by_one_at_a_time_and_anew_only_with_its_number() {
    let (world, yes) = (World::new().await, Fixed::yes());
    let held = hold(world.adapters.ledger.as_ref(), "sale", "sandbox", "sandbox").await.unwrap();
    let busy = world.launch(None, Request::default(), Arc::clone(&yes), Interrupt::None).await;
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    drop(held);
    ended(world.launch(None, Request::default(), Arc::clone(&yes), Interrupt::None).await);
    let again = Request { round: Round::Again(7), ..Request::default() };
    let refused = world.launch(None, again, yes, Interrupt::None).await;
    assert!(matches!(refused, Err(Error::OtherNumber { said: 7, number: 3 })), "{refused:?}");
}

#[tokio::test]
async fn a_stop_is_not_confirmed_while_a_process_may_be_about_to_send() {
    let world = World::new().await;
    let run = ended(world.launch(None, Request::default(), Fixed::yes(), Interrupt::None).await).run;
    let ledger = world.adapters.ledger.as_ref();
    let held = hold(ledger, "sale", "sandbox", "sandbox").await.unwrap();
    let stopped = stop(ledger, &run).await;
    assert!(matches!(stopped, Err(Error::NothingToStopYet { .. })), "{stopped:?}");
    drop(held);
    assert!(!stop(ledger, &run).await.unwrap(), "nobody sends it");
}

#[tokio::test]
async fn a_start_that_goes_on_reads_the_envelopes_of_its_run_once_and_once_more_for_the_results_with_the_figures() {
    let ledger = Arc::new(MemoryLedger::new(Contents::default(), Timestamp::now));
    let world = World::on(tempfile::tempdir().unwrap(), ledger.clone());
    let one = Request { limit: Some(1), ..Request::default() };
    ended(world.launch(None, one, Fixed::yes(), Interrupt::None).await);
    ledger.take_read();
    let through = ended(world.launch(None, Request::default(), Fixed::yes(), Interrupt::None).await);
    assert_eq!(through.counts.get(State::Accepted), 3);
    let first = ledger.take_read().into_iter().filter(|numbers| numbers.contains(&1));
    assert_eq!(first.count(), 2, "where the run stands, and the results");
    let run = world.adapters.ledger.runs(RunFilter::one(through.run.key)).await.unwrap().pop().unwrap();
    let kept = RunFigures::kept(world.adapters.ledger.as_ref(), &run).await.unwrap();
    assert_eq!(kept.map(|figures| figures.counts), Some(through.counts), "the figures were made on the way");
}
