//! Cached reads of the ledger for pages and endpoints: the list of runs, runs with open pages, row indexes, stored
//! figures and campaigns.
//!
//! Loading a value can take seconds for millions of rows, and this machine might be sending messages. Therefore,
//! requests share one load, and a value is cached for a multiple of the time that loading it took. One reader serves all
//! visitors of a run, and only while a page is open. Between two reads, the reader pauses for many times the duration
//! of a read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::page_error::PageError;
use super::run::SharedParts;
use campaign_core::domain::Amount;
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{
    ArrivalKind, RowFilter, RowIndex, RunFigures, RunList, RunReport, RunStatus, RunTerms, SendingProgress, Timeline,
    is_owned, load_copies,
};
use campaign_ledger::{Ledger, LedgerError, Run, RunFilter, RunId, RunProgress, StateCounts};

/// The limits of a cache: how long values are cached, how long a request waits for a value, and how many values are
/// cached.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachePolicy {
    /// The minimum lifetime of a value.
    pub(super) min_ttl: Duration,
    /// The lifetime of a value, as a multiple of the time that loading the value took.
    pub(super) ttl_factor: u32,
    /// The time for which a request waits. After that, loading continues for later requests.
    pub(super) timeout: Duration,
    /// The maximum number of values. Beyond this number, the oldest values are removed.
    pub(super) max_entries: usize,
}

/// Values by key, loaded one at a time. A value is outdated after its lifetime, or if its version changed.
pub(super) struct SingleFlightCache<T, K = (), V = ()> {
    policy: CachePolicy,
    /// The entries, oldest first. Locked while a value is loaded.
    entries: Arc<tokio::sync::Mutex<Vec<CacheEntry<T, K, V>>>>,
}

struct CacheEntry<T, K, V> {
    key: K,
    version: V,
    value: Arc<T>,
    fresh_until: Instant,
}

impl<T, K, V> SingleFlightCache<T, K, V>
where
    T: Send + Sync + 'static,
    K: PartialEq + Send + 'static,
    V: PartialEq + Send + 'static,
{
    /// An empty cache.
    pub(super) fn new(policy: CachePolicy) -> Self {
        Self { policy, entries: Arc::default() }
    }

    /// Returns the cached value of a key, or loads the value; `None` if loading exceeds the timeout.
    ///
    /// # Errors
    /// The error that `load` returns. Errors are not cached.
    pub(super) async fn get_or_load<E: Send + 'static>(
        &self,
        key: K,
        version: V,
        load: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<Option<Arc<T>>, E> {
        let (policy, entries) = (self.policy, Arc::clone(&self.entries));
        // The value is loaded in its own task, so that loading continues for the next request if this one times out.
        let loading = tokio::spawn(async move {
            let mut entries = entries.lock().await;
            let cached = entries.iter().find(|entry| entry.key == key);
            if let Some(entry) = cached.filter(|entry| entry.version == version && Instant::now() < entry.fresh_until) {
                return Ok(Arc::clone(&entry.value));
            }
            let began = Instant::now();
            let value = Arc::new(load.await?);
            let fresh_until = Instant::now() + (began.elapsed() * policy.ttl_factor).max(policy.min_ttl);
            entries.retain(|entry| entry.key != key);
            entries.push(CacheEntry { key, version, value: Arc::clone(&value), fresh_until });
            let surplus = entries.len().saturating_sub(policy.max_entries);
            entries.drain(..surplus);
            Ok(value)
        });
        match timeout(policy.timeout, loading).await {
            Ok(Ok(loaded)) => loaded.map(Some),
            // The load panicked or took too long.
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Removes all values.
    pub(super) async fn clear(&self) {
        self.entries.lock().await.clear();
    }
}

/// The policy for the list of runs: reading it takes at most 1/20 of the time.
const RUN_LIST_POLICY: CachePolicy =
    CachePolicy { min_ttl: Duration::from_secs(1), ttl_factor: 20, timeout: Duration::from_secs(8), max_entries: 1 };

/// The cached list of runs, for the API, the pages and the metrics.
///
/// The counts of a run that is being sent are computed from its envelopes, which takes seconds for millions of rows.
pub struct RunListCache {
    ledger: Arc<dyn Ledger>,
    list: SingleFlightCache<RunList>,
}

impl RunListCache {
    /// An empty cache for a ledger.
    pub fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, list: SingleFlightCache::new(RUN_LIST_POLICY) }
    }

    /// The ledger that the runs are read from.
    pub(in crate::web) fn ledger(&self) -> &dyn Ledger {
        self.ledger.as_ref()
    }

    /// Returns the runs, latest first; `None` if reading the runs takes too long.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(in crate::web) async fn read_latest(&self) -> Result<Option<Arc<RunList>>, LedgerError> {
        let ledger = Arc::clone(&self.ledger);
        self.list.get_or_load((), (), async move { RunList::load(ledger.as_ref()).await }).await
    }
}

/// The shortest interval between two readings of a run.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Reading takes at most 1/50 of the time, because this machine might be sending a run.
const REST_FACTOR: u32 = 50;
/// The time for which a page waits for the first reading.
const READ_TIMEOUT: Duration = Duration::from_secs(8);
/// The number of cached readings above which those without an open page are removed.
const MAX_CACHED: usize = 64;

pub(super) struct RunReading {
    pub(super) report: RunReport,
    /// The estimated time left, if the run has been sending for a while.
    pub(super) time_left: Option<Duration>,
    /// The rendered parts that all visitors share.
    pub(super) shared: SharedParts,
}

/// The last reading; `None` before the first reading.
type LastReading = Option<Result<Arc<RunReading>, Arc<LedgerError>>>;

/// Reads the runs with open pages repeatedly, and caches the readings of recently visited runs.
pub(super) struct RunWatcher {
    ledger: Arc<dyn Ledger>,
    runs: Mutex<HashMap<RunId, WatchedRun>>,
}

struct WatchedRun {
    last: watch::Sender<LastReading>,
    /// The end of the last reading's lifetime.
    fresh_until: Instant,
    /// Whether a task reads the run repeatedly.
    has_reader: bool,
}

impl RunWatcher {
    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, runs: Mutex::default() }
    }

    /// Subscribes to readings of a run. The receiver has the recent reading, if any, and gets new readings until the
    /// receiver is dropped.
    pub(super) fn follow_run(self: &Arc<Self>, run: RunId) -> watch::Receiver<LastReading> {
        let mut runs = self.lock_runs();
        if runs.len() > MAX_CACHED {
            runs.retain(|_, entry| entry.has_reader);
        }
        let entry = runs.entry(run).or_insert_with(|| WatchedRun {
            last: watch::Sender::new(None),
            fresh_until: Instant::now(),
            has_reader: false,
        });
        if !entry.has_reader && entry.fresh_until <= Instant::now() {
            // The cached reading is outdated, so a new page waits for the next one.
            entry.last.send_replace(None);
        }
        let follower = entry.last.subscribe();
        if !entry.has_reader {
            entry.has_reader = true;
            tokio::spawn(Arc::clone(self).read_repeatedly(run, entry.last.clone(), entry.fresh_until));
        }
        follower
    }

    /// Returns a recent reading of a run, or `None` if reading the run takes too long.
    pub(super) async fn read_once(self: &Arc<Self>, run: RunId) -> Option<Result<Arc<RunReading>, Arc<LedgerError>>> {
        let mut follower = self.follow_run(run);
        let reading = tokio::time::timeout(READ_TIMEOUT, follower.wait_for(Option::is_some)).await;
        reading.ok()?.ok()?.clone()
    }

    /// Drops the cached reading of a run that a page has just changed, unless a task reads the run again anyway.
    pub(super) fn invalidate(&self, run: RunId) {
        let mut runs = self.lock_runs();
        if runs.get(&run).is_some_and(|entry| !entry.has_reader) {
            runs.remove(&run);
        }
    }

    /// Reads a run repeatedly while pages that show the run are open.
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
                (entry.has_reader, entry.fresh_until) = (false, began + rest);
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
        return Ok(RunReading { report, time_left: None, shared: SharedParts::default() });
    }
    let progress = progress.get_or_insert_with(|| SendingProgress::new(report.view.run.recipients, 0));
    progress.update_counts(std::time::Instant::now(), &report.view.counts);
    let time_left = progress.estimate().map(|estimate| estimate.left);
    Ok(RunReading { report, time_left, shared: SharedParts::default() })
}

/// The policy for indexes of rows: building them takes at most 1/20 of the time.
const INDEX_POLICY: CachePolicy =
    CachePolicy { min_ttl: Duration::from_secs(1), ttl_factor: 20, timeout: Duration::from_secs(8), max_entries: 8 };

/// Row indexes of recently visited runs.
pub(super) struct RowIndexCache(SingleFlightCache<RowIndex, (RunId, RowFilter), Option<RunVersion>>);

/// The version of a run's index if no process sends the run: how it ended, and its receipts.
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
    /// Loads the index of a run's rows that match a filter.
    ///
    /// # Errors
    /// If the ledger cannot be read, or if building the index takes too long. A later request can then use the finished
    /// index.
    pub(super) async fn get_index(
        &self,
        ledger: &Arc<dyn Ledger>,
        run: &Run,
        filter: &RowFilter,
    ) -> Result<Arc<RowIndex>, PageError> {
        let owned = is_owned(ledger.as_ref(), run).await?;
        // While the run is being sent, every index is soon outdated, so only its lifetime counts.
        let version = RunVersion { progress: run.progress, ended_at: run.ended_at, receipts: run.receipts };
        let version = (!owned).then_some(version);
        let (key, ledger, run, filter) = ((run.key, filter.clone()), Arc::clone(ledger), run.clone(), filter.clone());
        let load = async move {
            let index = RowIndex::load(ledger.as_ref(), &run, owned).await?;
            if filter.is_unfiltered() {
                return Ok(index);
            }
            let copies = load_copies(ledger.as_ref(), &run).await?;
            let brief = FrozenInputs::from_copies(&copies)?.brief;
            Ok::<_, LedgerError>(index.restrict(&filter.find_rows(ledger.as_ref(), &run, owned, &brief).await?))
        };
        self.0.get_or_load(key, version, load).await?.ok_or(PageError::Later)
    }
}

/// The properties of a run's campaign that pages show.
#[derive(Clone, Debug)]
pub(super) struct CampaignTraits {
    /// The time zone; that of this machine if the campaign has none or its copy cannot be read.
    pub(super) zone: TimeZone,
    /// The name for people, if the campaign has one.
    pub(super) title: Option<String>,
    /// Whether the campaign has variants.
    pub(super) has_variants: bool,
}

/// The traits of runs. They never change, so each is read once.
#[derive(Default)]
pub(super) struct CampaignTraitsCache(Mutex<HashMap<RunId, CampaignTraits>>);

impl CampaignTraitsCache {
    /// Loads the traits of a run's campaign.
    pub(super) async fn load(&self, ledger: &dyn Ledger, run: &Run) -> CampaignTraits {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&run.key).cloned();
        if let Some(cached) = cached {
            return cached;
        }
        let unknown = CampaignTraits { zone: TimeZone::system(), title: None, has_variants: false };
        if run.shared || run.purged_at.is_some() {
            return unknown;
        }
        let Ok(frozen) = FrozenInputs::load_for_run(ledger, run).await else { return unknown };
        let has_variants = !frozen.brief.variants.is_empty();
        let traits = CampaignTraits { zone: frozen.brief.home_zone(), title: frozen.brief.title, has_variants };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.key, traits.clone());
        traits
    }
}

/// The maximum number of runs whose figures are cached.
const MAX_CACHED_FIGURES: usize = 2048;

/// The stored figures of a run that lists show. Whole figures are too large to cache for many runs.
pub(super) struct ListedFigures {
    /// The maximum cost of the run's messages; `None` if the profile has no prices or no messages were sent.
    pub(super) cost: Option<Amount>,
    /// The number of messages whose price is unknown.
    pub(super) unpriced: u64,
    /// The rate and budget of the run, if they were stored.
    pub(super) terms: Option<RunTerms>,
    /// Delivered messages by time and channel.
    pub(super) arrivals: Timeline<ArrivalKind>,
}

impl ListedFigures {
    fn from_figures(figures: RunFigures) -> Self {
        let RunFigures { requests, terms, arrivals, .. } = figures;
        let (cost, unpriced) = (requests.cost().map(|cost| cost.used), requests.unpriced());
        Self { cost, unpriced, terms, arrivals }
    }
}

/// The maximum number of rows that are counted while a page is loaded.
const MAX_ROWS_TO_COUNT: u64 = 10_000;

/// Whether a run can be counted while a page is loaded. Runs of single messages have no stored figures while further
/// messages can be added.
async fn is_quickly_counted(ledger: &dyn Ledger, run: &Run) -> Result<bool, LedgerError> {
    if run.purged_at.is_some() {
        return Ok(false);
    }
    if run.shared {
        return Ok(ledger.list_envelope_summaries(run.key).await?.len() as u64 <= MAX_ROWS_TO_COUNT);
    }
    Ok(run.recipients <= MAX_ROWS_TO_COUNT && !is_owned(ledger, run).await?)
}

/// The version of stored figures: the receipts and the counts of their run.
type FiguresVersion = (u64, Option<(StateCounts, u64)>);

/// The stored figures of runs, as lists show them.
#[derive(Default)]
pub(super) struct ListedFiguresCache(Mutex<HashMap<RunId, (FiguresVersion, Arc<ListedFigures>)>>);

impl ListedFiguresCache {
    /// Loads the stored figures of a run, or counts a small run. Returns `None` while a campaign is being sent, and until
    /// the latest receipts of a large run are counted.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn load(&self, ledger: &dyn Ledger, run: &Run) -> Result<Option<Arc<ListedFigures>>, LedgerError> {
        let version = (run.receipts, run.counts.clone());
        let cached = self.lock().get(&run.key).cloned();
        if let Some((_, figures)) = cached.filter(|(cached_version, _)| *cached_version == version) {
            return Ok(Some(figures));
        }
        let stored = RunFigures::load_stored(ledger, run).await?;
        let is_stored = stored.is_some();
        let figures = match stored {
            Some(stored) => stored,
            None if is_quickly_counted(ledger, run).await? => RunFigures::load(ledger, run, false).await?,
            None => return Ok(None),
        };
        let figures = Arc::new(ListedFigures::from_figures(figures));
        if !is_stored {
            return Ok(Some(figures));
        }
        let mut entries = self.lock();
        if entries.len() >= MAX_CACHED_FIGURES {
            entries.clear();
        }
        entries.insert(run.key, (version, figures.clone()));
        Ok(Some(figures))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, (FiguresVersion, Arc<ListedFigures>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use campaign_core::domain::OperationOutcome;
    use campaign_testing::{RowCase, build_run};

    #[tokio::test]
    async fn small_run_without_stored_figures_is_counted() {
        let rejected = OperationOutcome::Rejected { error: "No route".into() };
        let (ledger, run) = build_run(&[RowCase::Sent(rejected, Vec::new()), RowCase::Planned]).await;
        assert!(RunFigures::load_stored(&ledger, &run).await.unwrap().is_none());
        let cache = ListedFiguresCache::default();
        assert!(cache.load(&ledger, &run).await.unwrap().is_some());
        let large = Run { recipients: MAX_ROWS_TO_COUNT + 1, ..run.clone() };
        assert!(cache.load(&ledger, &large).await.unwrap().is_none());
        let shared = Run { shared: true, ..large };
        assert!(cache.load(&ledger, &shared).await.unwrap().is_some(), "its size is that of its messages");
    }

    const POLICY: CachePolicy = CachePolicy {
        min_ttl: Duration::from_secs(1),
        ttl_factor: 20,
        timeout: Duration::from_secs(8),
        max_entries: 2,
    };

    /// A cache by key and version, and a source that counts its loads.
    struct TestCache {
        cache: SingleFlightCache<u32, &'static str, u32>,
        loads: Arc<AtomicU32>,
    }

    impl TestCache {
        fn new() -> Self {
            Self { cache: SingleFlightCache::new(POLICY), loads: Arc::default() }
        }

        /// Gets a value that takes this many seconds to load. The value is the number of loads so far.
        async fn get(&self, key: &'static str, version: u32, seconds: u64) -> Result<Option<u32>, &'static str> {
            let loads = Arc::clone(&self.loads);
            let load = async move {
                sleep(Duration::from_secs(seconds)).await;
                Ok(loads.fetch_add(1, Ordering::Relaxed) + 1)
            };
            self.cache.get_or_load(key, version, load).await.map(|value| value.map(|value| *value))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_requests_share_one_load() {
        let cache = TestCache::new();
        let values = futures_util::future::join_all((0..10).map(|_| cache.get("a", 0, 2))).await;
        assert_eq!(values, [Ok(Some(1)); 10]);
    }

    #[tokio::test(start_paused = true)]
    async fn value_is_cached_for_a_multiple_of_its_load_time() {
        let cache = TestCache::new();
        assert_eq!(cache.get("a", 0, 2).await, Ok(Some(1)));
        sleep(Duration::from_secs(39)).await;
        assert_eq!(cache.get("a", 0, 0).await, Ok(Some(1)));
        sleep(Duration::from_secs(2)).await;
        assert_eq!(cache.get("a", 0, 0).await, Ok(Some(2)));
        sleep(Duration::from_millis(900)).await;
        assert_eq!(cache.get("a", 0, 0).await, Ok(Some(2)), "the minimum lifetime");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_load_continues_for_later_requests() {
        let cache = TestCache::new();
        assert_eq!(cache.get("a", 0, 10).await, Ok(None));
        assert_eq!(cache.get("a", 0, 10).await, Ok(Some(1)));
        assert_eq!(cache.loads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn outdated_versions_and_oldest_entries_are_replaced() {
        let cache = TestCache::new();
        assert_eq!(cache.get("a", 0, 0).await, Ok(Some(1)));
        assert_eq!(cache.get("a", 1, 0).await, Ok(Some(2)));
        assert_eq!(cache.get("b", 0, 0).await, Ok(Some(3)));
        assert_eq!(cache.get("a", 1, 0).await, Ok(Some(2)), "the old version was not counted");
        assert_eq!(cache.get("c", 0, 0).await, Ok(Some(4)));
        assert_eq!(cache.get("a", 1, 0).await, Ok(Some(5)), "it was the oldest of three");
        cache.cache.clear().await;
        assert_eq!(cache.get("a", 1, 0).await, Ok(Some(6)));
    }

    #[tokio::test(start_paused = true)]
    async fn error_is_not_cached() {
        let cache = TestCache::new();
        let failed = cache.cache.get_or_load("a", 0, async { Err("unreadable") }).await;
        assert_eq!(failed, Err("unreadable"));
        assert_eq!(cache.get("a", 0, 0).await, Ok(Some(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn run_is_read_once_for_all_open_pages() {
        let (ledger, run) = build_run(&[RowCase::Planned, RowCase::Unanswered]).await;
        let ledger = Arc::new(ledger);
        ledger.take_envelope_reads();
        RunReport::load_with_figures(ledger.as_ref(), run.clone()).await.unwrap();
        let reads_of_one_reading = ledger.take_envelope_reads();
        assert!(!reads_of_one_reading.is_empty());
        let watched = Arc::new(RunWatcher::new(ledger.clone()));
        let mut open: Vec<_> = (0..10).map(|_| watched.follow_run(run.key)).collect();
        for page in &mut open {
            page.wait_for(Option::is_some).await.unwrap();
        }
        assert_eq!(ledger.take_envelope_reads(), reads_of_one_reading, "ten pages share one reading");
        drop(open);
        // The test's clock is paused, so the sleep returns at once.
        sleep(MIN_INTERVAL * 10).await;
        assert!(ledger.take_envelope_reads().is_empty(), "no page is open");
    }
}
