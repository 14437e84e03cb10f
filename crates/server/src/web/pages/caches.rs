//! Caches of ledger readings for pages: runs with open pages, row indexes, time zones and other costly values.
//!
//! One reader serves all visitors of a run, and only while a page is open. Reading pauses many times as long as it
//! took.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::page_error::PageError;
use super::run::SharedParts;
use campaign_engine::report::{RowIndex, RunReport, RunStatus, SendingProgress, is_owned, load_campaign_zone};
use campaign_ledger::{Ledger, LedgerError, Run, RunFilter, RunId};

/// The shortest interval between two readings of a run.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Reading takes at most 1/50 of the time, because this machine may be sending a run.
const REST_FACTOR: u32 = 50;
/// How long a page waits for the first reading.
const READ_TIMEOUT: Duration = Duration::from_secs(8);
/// How many readings are cached while no page is open.
const MAX_KEPT: usize = 64;

/// A reading of a run.
pub(super) struct RunReading {
    pub(super) standing: RunReport,
    /// The estimated time left, if the run has been sending for a while.
    pub(super) left: Option<Duration>,
    /// The rendered parts that all visitors share.
    pub(super) shared: SharedParts,
}

/// The last reading; `None` before the first one.
type LastReading = Option<Result<Arc<RunReading>, Arc<LedgerError>>>;

/// The runs with open pages, and recent ones.
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
        if runs.len() > MAX_KEPT {
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
        let known = tokio::time::timeout(READ_TIMEOUT, follower.wait_for(Option::is_some)).await;
        known.ok()?.ok()?.clone()
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
            // No page can start to follow in between, because it needs the same lock.
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

/// The shortest time for which a value is shown.
const CACHE_MIN_TTL: Duration = Duration::from_secs(10);
/// A value is shown this many times longer than it took to make.
const CACHE_TTL_FACTOR: u32 = 50;
/// The time that a visitor waits for a value.
const CACHE_TIMEOUT: Duration = Duration::from_secs(4);

/// The last value, which is renewed after a while.
pub(super) struct CachedValue<T>(Arc<AsyncMutex<CachedEntry<T>>>);

/// The last value, and the end of its validity.
type CachedEntry<T> = Option<(Arc<T>, Instant)>;

impl<T> Default for CachedValue<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + Sync + 'static> CachedValue<T> {
    /// The last value, or a new one; `None` while making it takes long.
    ///
    /// # Errors
    /// The error of making it.
    pub(super) async fn get_or_make(
        &self,
        make: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
    ) -> Result<Option<Arc<T>>, LedgerError> {
        let last = Arc::clone(&self.0);
        // A separate task, so that the next visitor gets what this one no longer waits for.
        let making = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((value, fresh_until)) = &*last
                && Instant::now() < *fresh_until
            {
                return Ok(Arc::clone(value));
            }
            let began = Instant::now();
            let value = Arc::new(make.await?);
            *last =
                Some((Arc::clone(&value), Instant::now() + (began.elapsed() * CACHE_TTL_FACTOR).max(CACHE_MIN_TTL)));
            Ok(value)
        });
        match tokio::time::timeout(CACHE_TIMEOUT, making).await {
            Ok(Ok(value)) => value.map(Some),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Drops the value, because it changed.
    pub(super) async fn invalidate(&self) {
        *self.0.lock().await = None;
    }
}

/// The minimum lifetime of a cached index.
const INDEX_MIN_TTL: Duration = Duration::from_secs(1);
/// An index is cached for this many times as long as building it took.
const INDEX_TTL_FACTOR: u32 = 20;
/// How long a page waits for an index.
const BUILD_TIMEOUT: Duration = Duration::from_secs(8);
/// How many are kept.
const MAX_INDEXES: usize = 8;

/// The indexes of recently visited runs, the latest last.
#[derive(Default)]
pub(super) struct RowIndexCache(Arc<AsyncMutex<Vec<CachedIndex>>>);

struct CachedIndex {
    run: RunId,
    /// The state of the run that the index belongs to: another end, or other receipts, need another index.
    of: String,
    index: Arc<RowIndex>,
    fresh_until: Instant,
}

impl RowIndexCache {
    /// The index of a run.
    ///
    /// # Errors
    /// If the ledger cannot be read, or if it takes long. The index is then ready for a later request.
    pub(super) async fn get_index(&self, ledger: &Arc<dyn Ledger>, run: &Run) -> Result<Arc<RowIndex>, PageError> {
        let (made, ledger, run) = (Arc::clone(&self.0), Arc::clone(ledger), run.clone());
        let making = tokio::spawn(async move { build_index(&mut *made.lock().await, ledger.as_ref(), &run).await });
        match tokio::time::timeout(BUILD_TIMEOUT, making).await {
            Ok(Ok(index)) => Ok(index?),
            Ok(Err(_)) | Err(_) => Err(PageError::Later),
        }
    }
}

async fn build_index(
    made: &mut Vec<CachedIndex>,
    ledger: &dyn Ledger,
    run: &Run,
) -> Result<Arc<RowIndex>, LedgerError> {
    let owned = is_owned(ledger, run).await?;
    let of = format!("{owned} {:?} {:?} {}", run.progress, run.ended_at, run.receipts);
    let known = made.iter().find(|known| known.run == run.key);
    if let Some(known) = known.filter(|known| Instant::now() < known.fresh_until && (owned || known.of == of)) {
        return Ok(Arc::clone(&known.index));
    }
    let began = Instant::now();
    let index = Arc::new(RowIndex::load(ledger, run, owned).await?);
    made.retain(|known| known.run != run.key);
    let fresh_until = Instant::now() + (began.elapsed() * INDEX_TTL_FACTOR).max(INDEX_MIN_TTL);
    made.push(CachedIndex { run: run.key, of, index: Arc::clone(&index), fresh_until });
    let surplus = made.len().saturating_sub(MAX_INDEXES);
    made.drain(..surplus);
    Ok(index)
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
        assert!(ledger.take_envelope_reads().is_empty(), "nobody looks");
    }
}
