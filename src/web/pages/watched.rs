//! Runs that somebody looks at: each is read by one reader, whoever and how many look, and only while somebody does.
//!
//! A run that is being sent is read from its envelopes, so reading rests many times as long as it took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::run::SharedParts;
use crate::ledger::{Ledger, LedgerError, RunFilter, RunId};
use crate::report::{RunReport, RunStatus, SendingProgress};

/// How often a run is read at most.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Reading takes at most one part of so many of the time: somebody may be sending on the same machine.
const REST_FACTOR: u32 = 50;
/// How long somebody who asks for a page waits for the first reading.
const READ_TIMEOUT: Duration = Duration::from_secs(8);
/// Runs whose last reading is kept though nobody looks.
const MAX_KEPT: usize = 64;

/// A run as it stood a moment ago.
pub(super) struct RunReading {
    pub(super) standing: RunReport,
    /// How long the rest takes, where it is being sent for a while.
    pub(super) left: Option<Duration>,
    /// What is made of it for all who look.
    pub(super) shared: SharedParts,
}

/// What came of the last reading; nothing before the first.
type LastReading = Option<Result<Arc<RunReading>, Arc<LedgerError>>>;

/// The runs that somebody looks at, or looked at a moment ago.
pub(super) struct RunWatcher {
    ledger: Arc<dyn Ledger>,
    runs: Mutex<HashMap<RunId, WatchedRun>>,
}

struct WatchedRun {
    last: watch::Sender<LastReading>,
    /// Until when the last reading is told without another.
    fresh_until: Instant,
    is_read: bool,
}

impl RunWatcher {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, runs: Mutex::default() }
    }

    /// Follows a run: what was read of it last, and what is read as long as this is kept.
    pub(super) fn follow_run(self: &Arc<Self>, run: RunId) -> watch::Receiver<LastReading> {
        let mut runs = self.lock_runs();
        if runs.len() > MAX_KEPT {
            runs.retain(|_, entry| entry.is_read);
        }
        let entry = runs.entry(run).or_insert_with(|| WatchedRun {
            last: watch::Sender::new(None),
            fresh_until: Instant::now(),
            is_read: false,
        });
        if !entry.is_read && entry.fresh_until <= Instant::now() {
            // It is of long ago: whoever comes waits for the next one.
            entry.last.send_replace(None);
        }
        let follower = entry.last.subscribe();
        if !entry.is_read {
            entry.is_read = true;
            tokio::spawn(Arc::clone(self).read_repeatedly(run, entry.last.clone(), entry.fresh_until));
        }
        follower
    }

    /// A run as it stood a moment ago; nothing while that is not known yet and has not been for long.
    pub(super) async fn read_once(self: &Arc<Self>, run: RunId) -> Option<Result<Arc<RunReading>, Arc<LedgerError>>> {
        let mut follower = self.follow_run(run);
        let known = tokio::time::timeout(READ_TIMEOUT, follower.wait_for(Option::is_some)).await;
        known.ok()?.ok()?.clone()
    }

    /// Reads a run anew at once, since it was just changed from here.
    pub(super) fn invalidate(&self, run: RunId) {
        let mut runs = self.lock_runs();
        if runs.get(&run).is_some_and(|entry| !entry.is_read) {
            runs.remove(&run);
        }
    }

    /// Reads a run again and again, until nobody looks.
    async fn read_repeatedly(self: Arc<Self>, run: RunId, last: watch::Sender<LastReading>, fresh_until: Instant) {
        sleep_until(fresh_until).await;
        let mut progress = None;
        loop {
            let began = Instant::now();
            let reading = read_run(self.ledger.as_ref(), run, &mut progress).await;
            let rest = MIN_INTERVAL.max(began.elapsed().saturating_mul(REST_FACTOR));
            last.send_replace(Some(reading.map(Arc::new).map_err(Arc::new)));
            tokio::select! {
                () = sleep(rest) => {}
                () = last.closed() => {}
            }
            let mut runs = self.lock_runs();
            let Some(entry) = runs.get_mut(&run) else { return };
            // Nobody comes in between: whoever follows takes the same lock.
            if last.receiver_count() == 0 {
                (entry.is_read, entry.fresh_until) = (false, began + rest);
                return;
            }
        }
    }

    fn lock_runs(&self) -> MutexGuard<'_, HashMap<RunId, WatchedRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read_run(
    ledger: &dyn Ledger,
    key: RunId,
    progress: &mut Option<SendingProgress>,
) -> Result<RunReading, LedgerError> {
    let run = ledger.list_runs(RunFilter::with_key(key)).await?.pop();
    let run = run.ok_or_else(|| LedgerError::Unreadable("the run is no longer in the ledger".to_owned()))?;
    let standing = RunReport::load_with_figures(ledger, run).await?;
    if standing.view.status != RunStatus::Sending {
        *progress = None;
        return Ok(RunReading { standing, left: None, shared: SharedParts::default() });
    }
    let progress = progress.get_or_insert_with(|| SendingProgress::new(standing.view.run.recipients, 0));
    progress.update_counts(std::time::Instant::now(), &standing.view.counts);
    let left = progress.estimate().map(|estimate| estimate.left);
    Ok(RunReading { standing, left, shared: SharedParts::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{RowCase, build_run};

    #[tokio::test(start_paused = true)]
    async fn run_is_read_once_for_all_open_pages() {
        let (ledger, run) = build_run(&[RowCase::Planned, RowCase::Unanswered]).await;
        let ledger = Arc::new(ledger);
        ledger.take_envelope_reads();
        RunReport::load_with_figures(ledger.as_ref(), run.clone()).await.unwrap();
        let once = ledger.take_envelope_reads();
        assert!(!once.is_empty());
        let watched = Arc::new(RunWatcher::new(ledger.clone()));
        let mut open: Vec<_> = (0..10).map(|_| watched.follow_run(run.key)).collect();
        for page in &mut open {
            page.wait_for(Option::is_some).await.unwrap();
        }
        assert_eq!(ledger.take_envelope_reads(), once, "ten pages share one reading");
        drop(open);
        // The time of the test passes at once.
        sleep(MIN_INTERVAL * 10).await;
        assert!(ledger.take_envelope_reads().is_empty(), "nobody looks");
    }
}
