//! Cached readings of the ledger for pages: runs with open pages, row indexes and time zones.
//!
//! One reader serves all visitors of a run, and only while a page is open. Between two readings it pauses for many
//! times as long as a reading takes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::page_error::PageError;
use super::run::SharedParts;
use crate::web::cache::{CachePolicy, SingleFlightCache};
use campaign_engine::report::{RowIndex, RunReport, RunStatus, SendingProgress, is_owned, load_campaign_zone};
use campaign_ledger::{Ledger, LedgerError, Run, RunFilter, RunId, RunProgress};

/// The shortest interval between two readings of a run.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Reading takes at most 1/50 of the time, because this machine may be sending a run.
const REST_FACTOR: u32 = 50;
/// How long a page waits for the first reading.
const READ_TIMEOUT: Duration = Duration::from_secs(8);
/// The number of cached readings above which those without an open page are removed.
const MAX_CACHED: usize = 64;

/// A reading of a run.
pub(super) struct RunReading {
    pub(super) report: RunReport,
    /// The estimated time left, if the run has been sending for a while.
    pub(super) left: Option<Duration>,
    /// The rendered parts that all visitors share.
    pub(super) shared: SharedParts,
}

/// The last reading; `None` before the first one.
type LastReading = Option<Result<Arc<RunReading>, Arc<LedgerError>>>;

/// Reads the runs with open pages repeatedly, and caches readings of recent ones.
pub(super) struct RunWatcher {
    ledger: Arc<dyn Ledger>,
    runs: Mutex<HashMap<RunId, WatchedRun>>,
}

struct WatchedRun {
    last: watch::Sender<LastReading>,
    /// The end of the last reading's lifetime.
    fresh_until: Instant,
    is_read: bool,
}

impl RunWatcher {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, runs: Mutex::default() }
    }

    /// Follows a run: the last reading now, and new ones as long as the receiver lives.
    pub(super) fn follow_run(self: &Arc<Self>, run: RunId) -> watch::Receiver<LastReading> {
        let mut runs = self.lock_runs();
        if runs.len() > MAX_CACHED {
            runs.retain(|_, entry| entry.is_read);
        }
        let entry = runs.entry(run).or_insert_with(|| WatchedRun {
            last: watch::Sender::new(None),
            fresh_until: Instant::now(),
            is_read: false,
        });
        if !entry.is_read && entry.fresh_until <= Instant::now() {
            // The cached reading is outdated, so a new page waits for the next one.
            entry.last.send_replace(None);
        }
        let follower = entry.last.subscribe();
        if !entry.is_read {
            entry.is_read = true;
            tokio::spawn(Arc::clone(self).read_repeatedly(run, entry.last.clone(), entry.fresh_until));
        }
        follower
    }

    /// A recent reading of a run; `None` if reading it takes too long.
    pub(super) async fn read_once(self: &Arc<Self>, run: RunId) -> Option<Result<Arc<RunReading>, Arc<LedgerError>>> {
        let mut follower = self.follow_run(run);
        let reading = tokio::time::timeout(READ_TIMEOUT, follower.wait_for(Option::is_some)).await;
        reading.ok()?.ok()?.clone()
    }

    /// Drops the cached reading of a run that a page has just changed.
    pub(super) fn invalidate(&self, run: RunId) {
        let mut runs = self.lock_runs();
        if runs.get(&run).is_some_and(|entry| !entry.is_read) {
            runs.remove(&run);
        }
    }

    /// Reads a run repeatedly while pages are open.
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
            // No page can start to follow in between, because that requires the same lock.
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
    let report = RunReport::load_with_figures(ledger, run).await?;
    if report.view.status != RunStatus::Sending {
        *progress = None;
        return Ok(RunReading { report, left: None, shared: SharedParts::default() });
    }
    let progress = progress.get_or_insert_with(|| SendingProgress::new(report.view.run.recipients, 0));
    progress.update_counts(std::time::Instant::now(), &report.view.counts);
    let left = progress.estimate().map(|estimate| estimate.left);
    Ok(RunReading { report, left, shared: SharedParts::default() })
}

/// The policy for indexes of rows: building them takes at most 1/20 of the time.
const INDEX_POLICY: CachePolicy =
    CachePolicy { min_ttl: Duration::from_secs(1), ttl_factor: 20, timeout: Duration::from_secs(8), max_entries: 8 };

/// Row indexes of recently visited runs.
pub(super) struct RowIndexCache(SingleFlightCache<RowIndex, RunId, Option<RunVersion>>);

/// What an index of a run depends on if no process sends the run: how it ended, and its receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunVersion {
    progress: RunProgress,
    ended_at: Option<Timestamp>,
    receipts: u64,
}

impl Default for RowIndexCache {
    fn default() -> Self {
        Self(SingleFlightCache::new(INDEX_POLICY))
    }
}

impl RowIndexCache {
    /// The index of a run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or if building the index takes too long. A later request will then get it.
    pub(super) async fn get_index(&self, ledger: &Arc<dyn Ledger>, run: &Run) -> Result<Arc<RowIndex>, PageError> {
        let owned = is_owned(ledger.as_ref(), run).await?;
        // While the run is being sent, every index is soon outdated, so only its lifetime counts.
        let version = RunVersion { progress: run.progress, ended_at: run.ended_at, receipts: run.receipts };
        let version = (!owned).then_some(version);
        let (key, ledger, run) = (run.key, Arc::clone(ledger), run.clone());
        let load = async move { RowIndex::load(ledger.as_ref(), &run, owned).await };
        self.0.get_or_load(key, version, load).await?.ok_or(PageError::Later)
    }
}

/// The time zones of runs. The zone of a run never changes, so each is read once.
#[derive(Default)]
pub(super) struct RunZones(Mutex<HashMap<RunId, TimeZone>>);

impl RunZones {
    /// The zone of a run's campaign; the zone of this machine if the campaign has none or its copy cannot be read.
    pub(super) async fn zone_of_run(&self, ledger: &dyn Ledger, run: &Run) -> TimeZone {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&run.key).cloned();
        if let Some(known) = known {
            return known;
        }
        let Some(zone) = load_campaign_zone(ledger, run).await else { return TimeZone::system() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.key, zone.clone());
        zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_testing::{RowCase, build_run};

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
        // The clock of the test passes at once.
        sleep(MIN_INTERVAL * 10).await;
        assert!(ledger.take_envelope_reads().is_empty(), "no page is open");
    }
}
