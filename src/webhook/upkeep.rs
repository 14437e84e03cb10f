//! What a server does by itself about messages that were sent: it asks about those that have no end yet, and writes results
//! anew that receipts made old.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::delivery::Polled;
use crate::domain::MessageId;
use crate::ledger::{Run, RunFilter, RunId, State};
use crate::report::is_followed;
use crate::runs::{Adapters, Error, Polling, freshen, poll, stale_runs, wants_receipts};

/// How often it is looked what there is to do.
const EACH: Duration = Duration::from_secs(60);
/// Writing results takes at most one part of so many of the time.
const PARTS: u32 = 20;
/// The shortest and the longest wait between two rounds of questions about a run.
const WAITS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(86_400));
/// How long one round of questions about a run takes at most.
const ROUND: Duration = Duration::from_secs(600);
/// How long after the start of a run the last questions are asked: the time of the longest chain, and time to reach the gateway.
const LAST_QUESTIONS: Duration = Duration::from_secs(365 * 86_400);
/// Of how many runs, the latest, messages are asked about.
const RUNS: u32 = 4_096;

/// Writes results that receipts made old, until the shutdown.
pub async fn keep_fresh(adapters: Adapters, shutdown: impl Future<Output = ()>) {
    let work = async {
        loop {
            let began = Instant::now();
            told(write_all(&adapters).await);
            sleep(EACH.max(began.elapsed() * PARTS)).await;
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

async fn write_all(adapters: &Adapters) -> Result<(), Error> {
    for run in stale_runs(adapters).await? {
        if let Some(why) = freshen(adapters, &run).await? {
            tracing::debug!(run = run.name(), "the results were not updated: {why}");
        }
    }
    Ok(())
}

/// Asks about messages that have no end yet, until the shutdown: of each run after a minute, and then ever less often, unless
/// the gateway hints at messages of it.
pub async fn keep_asking(adapters: Adapters, mut hints: mpsc::Receiver<Vec<u64>>, shutdown: impl Future<Output = ()>) {
    let work = async {
        let mut rounds = Rounds::default();
        loop {
            sleep(EACH).await;
            while let Ok(ids) = hints.try_recv() {
                told(heed(&adapters, &ids, &mut rounds).await);
            }
            told(ask_all(&adapters, &mut rounds).await);
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

/// When runs are asked about.
#[derive(Default)]
struct Rounds {
    /// When each run is asked about next, and how long it waits after that.
    next: HashMap<RunId, (Instant, Duration)>,
    /// The runs without an unreported fallback, with the number of receipts that they had when it was looked.
    reported: HashMap<RunId, u64>,
}

impl Rounds {
    /// Whether it is time to ask about a run, for these messages of it.
    fn is_due(&mut self, run: &Run, polling: Polling) -> bool {
        let now = Instant::now();
        // The first question about a run comes a minute after it was seen. After the lifetimes of all channels, it comes once a day.
        let first = match polling {
            Polling::Open => (now + WAITS.0, WAITS.0),
            Polling::UnreportedFallbacks if self.reported.get(&run.key) == Some(&run.receipts) => return false,
            Polling::UnreportedFallbacks => (now, WAITS.1),
        };
        self.next.entry(run.key).or_insert(first).0 <= now
    }

    /// Notes that a run was asked about.
    fn asked(&mut self, run: &Run, polling: Polling, polled: Option<&Polled>) {
        let wait = self.next.get(&run.key).map_or(WAITS.0, |(_, wait)| *wait);
        let is_through = |polled: &Polled| polled.asked + polled.left + polled.waiting == 0;
        let wait = match polled {
            Some(polled) if polling == Polling::UnreportedFallbacks && is_through(polled) => {
                self.reported.insert(run.key, run.receipts);
                WAITS.1
            }
            // The others are asked about soon.
            Some(polled) if polled.left > 0 => WAITS.0,
            _ => (wait * 2).min(WAITS.1),
        };
        self.next.insert(run.key, (Instant::now() + wait, wait));
    }
}

/// Has the runs of messages that the gateway hinted at asked about soon again.
async fn heed(adapters: &Adapters, ids: &[u64], rounds: &mut Rounds) -> Result<(), Error> {
    for id in ids.iter().filter_map(|id| MessageId::new(*id)) {
        if let Some(origin) = adapters.ledger.find(id).await?
            && let Some((next, wait)) = rounds.next.get_mut(&origin.run)
        {
            (*next, *wait) = ((*next).min(Instant::now() + WAITS.0), WAITS.0);
        }
    }
    Ok(())
}

async fn ask_all(adapters: &Adapters, rounds: &mut Rounds) -> Result<(), Error> {
    let stored = adapters.ledger.stored_runs(RunFilter { live: true, latest: Some(RUNS), ..RunFilter::all() }).await?;
    let latest: Vec<Run> = stored.into_iter().flatten().collect();
    let now = (adapters.clock)();
    rounds.next.retain(|run, _| latest.iter().any(|known| known.key == *run));
    rounds.reported.retain(|run, _| latest.iter().any(|known| known.key == *run));
    let mut runs: Vec<(&Run, Polling)> = latest.iter().filter_map(|run| Some((run, asked_about(run, now)?))).collect();
    // The runs of these days do not wait for those of before.
    runs.sort_by_key(|(_, polling)| *polling == Polling::UnreportedFallbacks);
    for (run, polling) in runs {
        if !rounds.is_due(run, polling) {
            continue;
        }
        // One gateway that cannot be asked keeps nobody from the others.
        let polled = poll(adapters, run, polling, ROUND).await;
        rounds.asked(run, polling, polled.as_ref().ok());
        match polled {
            Ok(polled) => tracing::info!(run = run.name(), asked = polled.asked, told = polled.told, "asked"),
            Err(error) => told(Err(error)),
        }
    }
    Ok(())
}

/// Which messages of a run to ask the gateway about; `None` if they are all final or their receipts are not wanted.
fn asked_about(run: &Run, now: Timestamp) -> Option<Polling> {
    let open =
        |(counts, _): &(crate::ledger::StateCounts, u64)| counts.get(State::Accepted) + counts.get(State::Queued) > 0;
    let polling = match is_followed(run, now) {
        true => Polling::Open,
        // Without a receipt no channel is known to have failed.
        false if run.receipts > 0 && age(run, now) < LAST_QUESTIONS => Polling::UnreportedFallbacks,
        false => return None,
    };
    let is_open = !run.is_of_questions() && run.standing_counts().is_none_or(open);
    (is_open && run.purged_at.is_none() && wants_receipts(run, now)).then_some(polling)
}

/// How long ago a run began.
fn age(run: &Run, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default()
}

/// Nobody waits for this; it is tried again.
fn told(ended: Result<(), Error>) {
    if let Err(error) = ended {
        tracing::warn!("the delivery status of messages cannot be updated: {error}");
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tokio::time::advance;

    use super::*;
    use crate::domain::{OperationKind, Row};
    use crate::ledger::Ledger as _;
    use crate::ledger::memory::{Contents, MemoryLedger};
    use crate::report::new_run;

    const FALLBACKS: Polling = Polling::UnreportedFallbacks;

    async fn run() -> Run {
        let ledger = MemoryLedger::new(Contents::default(), || Timestamp::UNIX_EPOCH);
        let run = ledger.create_run(&new_run(OperationKind::ViberSms, (2, Row::new(3)))).await.unwrap();
        Run { live: true, receipts: 1, ..run }
    }

    #[tokio::test(start_paused = true)]
    async fn run_is_asked_about_again_until_no_fallback_is_unreported() {
        let (run, mut rounds) = (run().await, Rounds::default());
        assert!(rounds.is_due(&run, FALLBACKS), "at once");
        rounds.asked(&run, FALLBACKS, Some(&Polled { asked: 9, left: 5, ..Polled::default() }));
        assert!(!rounds.is_due(&run, FALLBACKS));
        advance(WAITS.0).await;
        assert!(rounds.is_due(&run, FALLBACKS), "the others come soon");
        rounds.asked(&run, FALLBACKS, Some(&Polled { waiting: 1, ..Polled::default() }));
        advance(WAITS.1).await;
        assert!(rounds.is_due(&run, FALLBACKS), "a channel still had time");
        rounds.asked(&run, FALLBACKS, Some(&Polled::default()));
        advance(WAITS.1 * 2).await;
        assert!(!rounds.is_due(&run, FALLBACKS), "nothing is unreported");
        assert!(rounds.is_due(&Run { receipts: 2, ..run }, FALLBACKS), "until another receipt comes");
    }

    #[tokio::test(start_paused = true)]
    async fn run_that_cannot_be_asked_about_is_tried_less_and_less_often() {
        let (run, mut rounds) = (run().await, Rounds::default());
        assert!(!rounds.is_due(&run, Polling::Open), "after a minute");
        advance(WAITS.0).await;
        assert!(rounds.is_due(&run, Polling::Open));
        rounds.asked(&run, Polling::Open, None);
        advance(WAITS.0).await;
        assert!(!rounds.is_due(&run, Polling::Open));
        advance(WAITS.0).await;
        assert!(rounds.is_due(&run, Polling::Open));
    }

    #[tokio::test]
    async fn older_run_is_asked_about_unreported_fallbacks_alone() {
        let run = run().await;
        let after = |days: i64| run.began_at + SignedDuration::from_hours(24 * days);
        assert_eq!(asked_about(&run, after(3)), Some(Polling::Open));
        assert_eq!(asked_about(&run, after(5)), Some(FALLBACKS));
        assert_eq!(
            asked_about(&Run { receipts: 0, ..run.clone() }, after(5)),
            None,
            "no channel is known to have failed"
        );
        assert_eq!(asked_about(&run, after(400)), None);
    }
}
