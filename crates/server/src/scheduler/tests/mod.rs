//! Tests of the daemon in virtual time, and the setup that they share.

mod firing;
mod locked;
mod set_back;

use std::cell::Cell;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::scheduler::*;
use campaign_core::calendar::Occurrence;
use campaign_core::domain::{Endpoint, OperationKind, Row};
use campaign_engine::delivery::Interrupt;
use campaign_gateway::{BoxFuture, JsonApi};
use campaign_ledger::memory::{LedgerContents, MemoryLedger};
use campaign_ledger::{
    ActiveSchedule, ExcludedRows, Ledger, NewRun, RowState, RunUpdate, ScheduledOccurrence, SuppressionPolicy,
};
use campaign_runs::{
    Adapters, Consent, ConsentRefusal, Error, Profiles, Proposal, RunOutcome, RunPhase, ScheduleActivation,
    ScheduleRefusal, occurrence_key,
};

thread_local! {
    /// The time to which the clock was set, and the instant at which it was set. Each test has its own thread.
    static CLOCK: Cell<Option<(Timestamp, Instant)>> = const { Cell::new(None) };
}

/// The time of the test clock.
fn now() -> Timestamp {
    let (set_to, set_at) = CLOCK.get().expect("a clock that was set");
    set_to + SignedDuration::try_from(set_at.elapsed()).expect("not that long")
}

fn set_clock(time: &str) {
    CLOCK.set(Some((time.parse().expect("a moment"), Instant::now())));
}

/// A folder with a campaign, a ledger, and the reported events.
struct TestSetup {
    folder: TempDir,
    adapters: Adapters,
    fired: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Vec<String>>>,
}

impl TestSetup {
    fn new(schedule: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Arc::new(MemoryLedger::new(LedgerContents::default(), now));
        let adapters = Adapters {
            process: "test".to_owned(),
            state: folder.path().join("state"),
            ledger,
            profiles: Profiles::default(),
            connect: JsonApi::new,
            input: || None,
            clock: now,
            name_view: Arc::new(|_, _| String::new()),
            observer: Arc::new(|_| {}),
        };
        let setup = Self { folder, adapters, fired: Arc::default(), events: Arc::default() };
        setup.write_file("sale.csv", "phone\n+380500000001\n+380500000002\n");
        setup.write_campaign(schedule, "Hello");
        setup
    }

    fn write_file(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file");
    }

    fn write_campaign(&self, schedule: &str, text: &str) {
        let sms = format!("channels:\n  - sms: {{ signature: Olena, message: \"{text}\" }}\n");
        let top = format!("name: sale\ngateway: sandbox\nrecipients: {{ file: sale.csv }}\n{schedule}\n");
        self.write_file("sale.yaml", &(top + &sms));
    }

    async fn activate(&self) -> Result<ActiveSchedule, Error> {
        let activation =
            ScheduleActivation::review(&self.adapters, &self.folder.path().join("sale.yaml"), None).await?;
        activation.confirm(&NeverConsent).await?.activate(&self.adapters).await
    }

    fn test_daemon(&self, starter: Arc<dyn Starter>) -> Daemon {
        let events = Arc::clone(&self.events);
        Daemon {
            adapters: self.adapters.clone(),
            starter,
            observer: Arc::new(move |event| events.lock().expect("no panic").push(describe_event(&event))),
            served_paths: Vec::new(),
            refresh: Duration::from_secs(10 * 86_400),
        }
    }

    fn fake_starter(&self, duration: Duration) -> Arc<FakeStarter> {
        let (ledger, fired) = (Arc::clone(&self.adapters.ledger), Arc::clone(&self.fired));
        Arc::new(FakeStarter { ledger, fired, duration })
    }

    /// Runs a daemon for `time`, with a fake starter that needs one second for each occurrence.
    async fn run_daemon_for(&self, time: Duration) {
        let daemon = self.test_daemon(self.fake_starter(Duration::from_secs(1)));
        daemon.run_until_shutdown(tokio::time::sleep(time)).await.expect("a ledger");
    }

    fn fired_occurrences(&self) -> Vec<String> {
        self.fired.lock().expect("no panic").clone()
    }

    fn reported_events(&self) -> Vec<String> {
        self.events.lock().expect("no panic").clone()
    }
}

fn describe_event(event: &ScheduleEvent) -> String {
    match event {
        ScheduleEvent::Unapproved { occurrence, digest, .. } => {
            format!("{} waits for an approval of {digest}", occurrence.format_nominal_time())
        }
        ScheduleEvent::Waiting { occurrence, .. } => format!("{} waits", occurrence.format_nominal_time()),
        ScheduleEvent::Ended { occurrence, ended, same_text, .. } => {
            let accepted = ended.counts.get(RowState::Accepted);
            format!("{} ended: {} of {accepted}, same {same_text}", occurrence.format_nominal_time(), ended.run.name())
        }
        ScheduleEvent::Broke { occurrence, why, .. } => format!("{} broke: {why}", occurrence.format_nominal_time()),
        ScheduleEvent::Skipped { occurrence, skipped_before, reason, .. } => {
            format!("{} skipped after {skipped_before}: {}", occurrence.format_nominal_time(), reason.to_record())
        }
        ScheduleEvent::Changed { change, .. } => format!("changed: {change:?}"),
        ScheduleEvent::Damaged { problem, .. } => format!("damaged: {problem}"),
    }
}

/// A consent that refuses everything. The schedules of these tests send to the sandbox, so they need no confirmation.
struct NeverConsent;

impl Consent for NeverConsent {
    fn can_confirm(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        Box::pin(async { Err(ConsentRefusal::NoTerminal) })
    }
}

/// A starter that records occurrences as runs do, and lists those that fired.
struct FakeStarter {
    ledger: Arc<dyn Ledger>,
    fired: Arc<Mutex<Vec<String>>>,
    duration: Duration,
}

impl Starter for FakeStarter {
    fn start_occurrence(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        _: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let (ledger, fired, duration) = (Arc::clone(&self.ledger), Arc::clone(&self.fired), self.duration);
        Box::pin(async move {
            let scheduled = ScheduledOccurrence { key: occurrence_key(&active.name, &occurrence), at: occurrence.at };
            let Some(run) = ledger.create_run(&new_run(), Some(&scheduled)).await? else {
                return Err(Error::Schedule(ScheduleRefusal::Recorded { nominal: occurrence.format_nominal_time() }));
            };
            ledger.open_run(run.key, None, None).await?;
            assert!(now() >= occurrence.at, "before its time");
            let moment = occurrence.at.strftime("%Y-%m-%dT%H:%MZ");
            fired.lock().expect("no panic").push(format!("{moment}\t{}", occurrence.format_nominal_time()));
            tokio::time::sleep(duration).await;
            ledger.update_runs(vec![run.key], RunUpdate::Retired).await?;
            Err(Error::Interrupted { signal: 15, phase: RunPhase::Ending })
        })
    }
}

fn new_run() -> NewRun {
    NewRun {
        campaign: "sale".into(),
        edition: String::new(),
        gateway: "sandbox".into(),
        account: "sandbox".into(),
        endpoint: Endpoint::Sync,
        kind: OperationKind::Sms,
        live: false,
        round: 1,
        recipients: 1,
        last_row: Row::new(2),
        excluded: ExcludedRows::default(),
        file: None,
        suppression: SuppressionPolicy::SERVICE,
        began_at: now(),
        random: rand::random(),
    }
}

const DAY: Duration = Duration::from_secs(86_400);
