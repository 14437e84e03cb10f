//! Single-flight cache for values that are slow to load, and the cached list of runs.
//!
//! Loading a value can take seconds for millions of rows, and this machine may be sending a run. So requests share one
//! load, and a value is cached for a multiple of the time that loading it took.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use campaign_engine::report::RunList;
use campaign_ledger::{Ledger, LedgerError};

/// How long values are cached, and how long a request waits for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachePolicy {
    /// The minimum lifetime of a value.
    pub(super) min_ttl: Duration,
    /// A value is cached for this many times as long as loading it took.
    pub(super) ttl_factor: u32,
    /// How long a request waits. After that, loading continues for later requests.
    pub(super) timeout: Duration,
    /// The largest number of values; the oldest ones are removed.
    pub(super) max_entries: usize,
}

/// Values by key, loaded one at a time. A value is outdated after its lifetime, or if its version changed.
pub(super) struct SingleFlightCache<T, K = (), V = ()> {
    policy: CachePolicy,
    /// The entries, the latest last. Locked while a value is loaded.
    entries: Arc<Mutex<Vec<CacheEntry<T, K, V>>>>,
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

    /// The cached value of a key, or a newly loaded one; `None` if loading exceeds the timeout.
    ///
    /// # Errors
    /// The error of loading it. Errors are not cached.
    pub(super) async fn get_or_load<E: Send + 'static>(
        &self,
        key: K,
        version: V,
        load: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<Option<Arc<T>>, E> {
        let (policy, entries) = (self.policy, Arc::clone(&self.entries));
        // A separate task, so that loading continues for the next request if this one stops waiting.
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

    /// The ledger.
    pub(super) fn ledger(&self) -> &dyn Ledger {
        self.ledger.as_ref()
    }

    /// The runs, the latest first; `None` if reading them takes too long.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn read_latest(&self) -> Result<Option<Arc<RunList>>, LedgerError> {
        let ledger = Arc::clone(&self.ledger);
        self.list.get_or_load((), (), async move { RunList::load(ledger.as_ref()).await }).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::sleep;

    use super::*;

    const POLICY: CachePolicy = CachePolicy {
        min_ttl: Duration::from_secs(1),
        ttl_factor: 20,
        timeout: Duration::from_secs(8),
        max_entries: 2,
    };

    /// A cache by run and version, and a source that counts its loads.
    struct TestCache {
        cache: SingleFlightCache<u32, &'static str, u32>,
        loads: Arc<AtomicU32>,
    }

    impl TestCache {
        fn new() -> Self {
            Self { cache: SingleFlightCache::new(POLICY), loads: Arc::default() }
        }

        /// Gets a value whose load takes this long. A value is the number of loads so far.
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
}
