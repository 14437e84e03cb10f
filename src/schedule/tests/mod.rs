//! The daemon in virtual time: it fires what the calendar says, each once, whatever happens meanwhile.

mod firing;
mod set_back;
mod years;

use std::cell::Cell;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::Instant;

use super::*;
use crate::calendar::Occurrence;
use crate::delivery::Interrupt;
use crate::domain::{Endpoint, OperationKind, Row};
use crate::gateway::{BoxFuture, JsonApi};
use crate::ledger::memory::{Contents, MemoryLedger};
use crate::ledger::{ArmedSchedule, Heed, Ledger, LeftOut, NewRun, State};
use crate::runs::{
    Adapters, Arming, Consent, Error, Outcome, Profiles, Proposal, Refusal, RunPhase, ScheduleRefusal, occurrence_key,
};

thread_local! {
    /// What the clock showed, and when; each test has a thread of its own.
    static SET: Cell<Option<(Timestamp, Instant)>> = const { Cell::new(None) };
}

/// The clock on the wall.
fn now() -> Timestamp {
    let (shown, at) = SET.get().expect("a clock that was set");
    shown + SignedDuration::try_from(at.elapsed()).expect("not that long")
}

fn set_clock(to: &str) {
    SET.set(Some((to.parse().expect("a moment"), Instant::now())));
}

/// A folder with a campaign, a ledger, and what was told.
struct House {
    folder: TempDir,
    adapters: Adapters,
    fired: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl House {
    fn new(schedule: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Arc::new(MemoryLedger::new(Contents::default(), now));
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
        let house = Self { folder, adapters, fired: Arc::default(), told: Arc::default() };
        house.write("sale.csv", "phone\n+380500000001\n+380500000002\n");
        house.campaign(schedule, "Hello");
        house
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("a file");
    }

    fn campaign(&self, schedule: &str, text: &str) {
        let sms = format!("channels:\n  - sms: {{ signature: Olena, message: \"{text}\" }}\n");
        let top = format!("name: sale\ngateway: sandbox\nrecipients: {{ file: sale.csv }}\n{schedule}\n");
        self.write("sale.yaml", &(top + &sms));
    }

    async fn arm(&self) -> Result<ArmedSchedule, Error> {
        let arming = Arming::look(&self.adapters, &self.folder.path().join("sale.yaml")).await?;
        arming.arm(&self.adapters, &Never).await
    }

    fn daemon(&self, starter: Arc<dyn Starter>) -> Daemon {
        let told = Arc::clone(&self.told);
        Daemon {
            adapters: self.adapters.clone(),
            starter,
            observer: Arc::new(move |event| told.lock().expect("no panic").push(words(&event))),
            within: Vec::new(),
            refresh: Duration::from_secs(10 * 86_400),
        }
    }

    fn clerk(&self, lasts: Duration) -> Arc<Clerk> {
        let (ledger, fired) = (Arc::clone(&self.adapters.ledger), Arc::clone(&self.fired));
        Arc::new(Clerk { ledger, fired, lasts })
    }

    /// Has a daemon run for so long, with starts that last a second.
    async fn run_for(&self, time: Duration) {
        let daemon = self.daemon(self.clerk(Duration::from_secs(1)));
        daemon.serve(tokio::time::sleep(time)).await.expect("a ledger");
    }

    fn fired(&self) -> Vec<String> {
        self.fired.lock().expect("no panic").clone()
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().expect("no panic").clone()
    }
}

fn words(event: &ScheduleEvent) -> String {
    match event {
        ScheduleEvent::Unapproved { occurrence, digest, .. } => {
            format!("{} waits for an approval of {digest}", occurrence.name())
        }
        ScheduleEvent::Waiting { occurrence, .. } => format!("{} waits", occurrence.name()),
        ScheduleEvent::Ended { occurrence, ended, same_text, .. } => {
            let accepted = ended.counts.get(State::Accepted);
            format!("{} ended: {} of {accepted}, same {same_text}", occurrence.name(), ended.run.name())
        }
        ScheduleEvent::Broke { occurrence, why, .. } => format!("{} broke: {why}", occurrence.name()),
        ScheduleEvent::Skipped { occurrence, before, reason, .. } => {
            format!("{} skipped after {before}: {}", occurrence.name(), reason.record())
        }
        ScheduleEvent::Changed { change, .. } => format!("changed: {change:?}"),
        ScheduleEvent::Damaged { problem, .. } => format!("damaged: {problem}"),
    }
}

/// Nobody agrees to anything, which what reaches nobody does not need.
struct Never;

impl Consent for Never {
    fn can_come(&self) -> bool {
        false
    }

    fn ask<'a>(&'a self, _: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async { Err(Refusal::NobodyToAsk) })
    }
}

/// Somebody who records occurrences as runs do, and writes down each that fired.
struct Clerk {
    ledger: Arc<dyn Ledger>,
    fired: Arc<Mutex<Vec<String>>>,
    lasts: Duration,
}

impl Starter for Clerk {
    fn start(
        &self,
        armed: ArmedSchedule,
        occurrence: Occurrence,
        _: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<Outcome, Error>> {
        let (ledger, fired, lasts) = (Arc::clone(&self.ledger), Arc::clone(&self.fired), self.lasts);
        Box::pin(async move {
            let key = occurrence_key(&armed.name, &occurrence);
            let Some(run) = ledger.fire(&new_run(), &key, occurrence.at).await? else {
                return Err(Error::Schedule(ScheduleRefusal::Recorded { nominal: occurrence.name() }));
            };
            ledger.open_run(run.key, None).await?;
            assert!(now() >= occurrence.at, "before its time");
            let moment = occurrence.at.strftime("%Y-%m-%dT%H:%MZ");
            fired.lock().expect("no panic").push(format!("{moment}\t{}", occurrence.name()));
            tokio::time::sleep(lasts).await;
            ledger.retire(run.key).await?;
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
        left_out: LeftOut::default(),
        file: None,
        heed: Heed::NOBODY,
        began_at: now(),
        random: rand::random(),
    }
}

const DAY: Duration = Duration::from_secs(86_400);
