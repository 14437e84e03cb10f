//! Polling rounds: which runs have messages without a final status, and when the gateway is asked about them.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use campaign_core::domain::MessageId;
use campaign_engine::delivery::PollCounts;
use campaign_engine::report::is_followed;
use campaign_ledger::{RowState, Run, RunFilter, RunId};
use campaign_runs::{Adapters, Error, Polling, poll_run, wants_receipts};

/// The interval at which due work is looked for.
const INTERVAL: Duration = Duration::from_secs(60);
/// The shortest and the longest wait between two polls of a run.
const WAIT_RANGE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(86_400));
/// The longest duration of one poll of a run.
const MAX_ROUND: Duration = Duration::from_secs(600);
/// The age of a run after which it is no longer polled: the lifetime of the longest chain, and time to reach the
/// gateway.
const MAX_POLLING_AGE: Duration = Duration::from_secs(365 * 86_400);
/// The number of latest runs that are polled.
const MAX_RUNS: u32 = 4_096;

/// Polls messages without a final state until the shutdown. Each run is polled after a minute and then less and less
/// often, but soon after the gateway has sent a hint about one of its messages.
pub async fn poll_statuses_until(
    adapters: Adapters,
    mut hints: mpsc::Receiver<Vec<u64>>,
    shutdown: impl Future<Output = ()>,
) {
    let work = async {
        let mut rounds = PollingRounds::default();
        loop {
            sleep(INTERVAL).await;
            while let Ok(ids) = hints.try_recv() {
                log_failure(apply_hints(&adapters, &ids, &mut rounds).await);
            }
            log_failure(poll_due_runs(&adapters, &mut rounds).await);
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

/// When runs are polled.
#[derive(Default)]
struct PollingRounds {
    /// The time of the next poll of each run, and the wait after that.
    next: HashMap<RunId, (Instant, Duration)>,
    /// The runs without an unreported fallback, with their number of receipts at the last poll.
    reported: HashMap<RunId, u64>,
}

impl PollingRounds {
    /// Whether it is time to poll these messages of a run.
    fn is_due(&mut self, run: &Run, polling: Polling) -> bool {
        let now = Instant::now();
        // A run is first polled a minute after it is found. After the lifetimes of all channels, it is polled once a
        // day.
        let first = match polling {
            Polling::Open => (now + WAIT_RANGE.0, WAIT_RANGE.0),
            Polling::UnreportedFallbacks if self.reported.get(&run.key) == Some(&run.receipts) => return false,
            Polling::UnreportedFallbacks => (now, WAIT_RANGE.1),
        };
        self.next.entry(run.key).or_insert(first).0 <= now
    }

    /// Records that a run was polled.
    fn record_poll(&mut self, run: &Run, polling: Polling, polled: Option<&PollCounts>) {
        let wait = self.next.get(&run.key).map_or(WAIT_RANGE.0, |(_, wait)| *wait);
        let is_complete = |polled: &PollCounts| polled.asked + polled.left + polled.waiting == 0;
        let wait = match polled {
            Some(polled) if polling == Polling::UnreportedFallbacks && is_complete(polled) => {
                self.reported.insert(run.key, run.receipts);
                WAIT_RANGE.1
            }
            // The remaining messages are polled soon.
            Some(polled) if polled.left > 0 => WAIT_RANGE.0,
            _ => (wait * 2).min(WAIT_RANGE.1),
        };
        self.next.insert(run.key, (Instant::now() + wait, wait));
    }
}

/// Schedules the runs of the hinted messages for polling soon.
async fn apply_hints(adapters: &Adapters, ids: &[u64], rounds: &mut PollingRounds) -> Result<(), Error> {
    for id in ids.iter().filter_map(|id| MessageId::new(*id)) {
        if let Some(origin) = adapters.ledger.find_message(id).await?
            && let Some((next, wait)) = rounds.next.get_mut(&origin.run)
        {
            (*next, *wait) = ((*next).min(Instant::now() + WAIT_RANGE.0), WAIT_RANGE.0);
        }
    }
    Ok(())
}

async fn poll_due_runs(adapters: &Adapters, rounds: &mut PollingRounds) -> Result<(), Error> {
    let stored =
        adapters.ledger.list_stored_runs(RunFilter { live: true, latest: Some(MAX_RUNS), ..RunFilter::all() }).await?;
    let latest: Vec<Run> = stored.into_iter().flatten().collect();
    let now = (adapters.clock)();
    rounds.next.retain(|run, _| latest.iter().any(|known| known.key == *run));
    rounds.reported.retain(|run, _| latest.iter().any(|known| known.key == *run));
    let mut runs: Vec<(&Run, Polling)> =
        latest.iter().filter_map(|run| Some((run, choose_polling(run, now)?))).collect();
    // Recent runs come before older ones.
    runs.sort_by_key(|(_, polling)| *polling == Polling::UnreportedFallbacks);
    for (run, polling) in runs {
        if !rounds.is_due(run, polling) {
            continue;
        }
        // A gateway that does not respond must not block the runs of other gateways.
        let polled = poll_run(adapters, run, polling, MAX_ROUND).await;
        rounds.record_poll(run, polling, polled.as_ref().ok());
        match polled {
            Ok(polled) => tracing::info!(run = run.name(), asked = polled.asked, updated = polled.updated, "asked"),
            Err(error) => log_failure(Err(error)),
        }
    }
    Ok(())
}

/// Which messages of a run to poll; `None` if they are all final or their receipts are not wanted.
fn choose_polling(run: &Run, now: Timestamp) -> Option<Polling> {
    let open = |(counts, _): &(campaign_ledger::StateCounts, u64)| {
        counts.get(RowState::Accepted) + counts.get(RowState::Queued) > 0
    };
    let polling = match is_followed(run, now) {
        true => Polling::Open,
        // Without receipts, no channel is known to have failed.
        false if run.receipts > 0 && run_age(run, now) < MAX_POLLING_AGE => Polling::UnreportedFallbacks,
        false => return None,
    };
    let is_open = !run.is_shared_single_run() && run.current_counts().is_none_or(open);
    (is_open && run.purged_at.is_none() && wants_receipts(run, now)).then_some(polling)
}

/// How long ago a run began.
fn run_age(run: &Run, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default()
}

/// Logs a failure. The update is tried again later.
fn log_failure(ended: Result<(), Error>) {
    if let Err(error) = ended {
        tracing::warn!("the delivery status of messages cannot be updated: {error}");
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use tokio::time::advance;

    use super::*;
    use campaign_core::domain::{OperationKind, Row};
    use campaign_ledger::Ledger as _;
    use campaign_ledger::memory::{LedgerContents, MemoryLedger};
    use campaign_testing::new_run;

    const FALLBACKS: Polling = Polling::UnreportedFallbacks;

    async fn test_run() -> Run {
        let ledger = MemoryLedger::new(LedgerContents::default(), || Timestamp::UNIX_EPOCH);
        let run =
            ledger.create_run(&new_run(OperationKind::ViberSms, 2, Row::new(3)), None).await.unwrap().expect("a run");
        Run { live: true, receipts: 1, ..run }
    }

    #[tokio::test(start_paused = true)]
    async fn run_is_polled_until_all_fallbacks_are_reported() {
        let (run, mut rounds) = (test_run().await, PollingRounds::default());
        assert!(rounds.is_due(&run, FALLBACKS), "at once");
        rounds.record_poll(&run, FALLBACKS, Some(&PollCounts { asked: 9, left: 5, ..PollCounts::default() }));
        assert!(!rounds.is_due(&run, FALLBACKS));
        advance(WAIT_RANGE.0).await;
        assert!(rounds.is_due(&run, FALLBACKS), "the remaining messages are polled soon");
        rounds.record_poll(&run, FALLBACKS, Some(&PollCounts { waiting: 1, ..PollCounts::default() }));
        advance(WAIT_RANGE.1).await;
        assert!(rounds.is_due(&run, FALLBACKS), "a channel still had time");
        rounds.record_poll(&run, FALLBACKS, Some(&PollCounts::default()));
        advance(WAIT_RANGE.1 * 2).await;
        assert!(!rounds.is_due(&run, FALLBACKS), "nothing is unreported");
        assert!(rounds.is_due(&Run { receipts: 2, ..run }, FALLBACKS), "until another receipt comes");
    }

    #[tokio::test(start_paused = true)]
    async fn run_that_cannot_be_polled_is_tried_less_often() {
        let (run, mut rounds) = (test_run().await, PollingRounds::default());
        assert!(!rounds.is_due(&run, Polling::Open), "after a minute");
        advance(WAIT_RANGE.0).await;
        assert!(rounds.is_due(&run, Polling::Open));
        rounds.record_poll(&run, Polling::Open, None);
        advance(WAIT_RANGE.0).await;
        assert!(!rounds.is_due(&run, Polling::Open));
        advance(WAIT_RANGE.0).await;
        assert!(rounds.is_due(&run, Polling::Open));
    }

    #[tokio::test]
    async fn older_run_is_polled_for_unreported_fallbacks_only() {
        let run = test_run().await;
        let after = |days: i64| run.began_at + SignedDuration::from_hours(24 * days);
        assert_eq!(choose_polling(&run, after(3)), Some(Polling::Open));
        assert_eq!(choose_polling(&run, after(5)), Some(FALLBACKS));
        assert_eq!(
            choose_polling(&Run { receipts: 0, ..run.clone() }, after(5)),
            None,
            "no channel is known to have failed"
        );
        assert_eq!(choose_polling(&run, after(400)), None);
    }
}
