//! Access control for callers of the connector: recently accepted and rejected API keys, a rate limit for unknown keys,
//! and rate limits per caller.
//!
//! A key that the gateway rejected is rejected here for a few seconds, without a request. All keys that the gateway has
//! not accepted yet share one low rate limit. Made-up keys therefore slow down neither messages nor callers with a
//! valid key.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use super::error::ToolError;
use campaign_gateway::FailureCause;
use campaign_manifest::Profile;
use campaign_runs::{Error, read_api_key};

/// The share of the account's rate limit for inquiries with unknown keys: a fifth of the share for all inquiries.
const UNKNOWN_KEY_SHARE: f64 = 0.02;
/// The maximum number of inquiries with unknown keys per second, even if the account has no rate limit.
const MAX_UNKNOWN_KEY_RATE: f64 = 10.0;
/// The maximum burst of inquiries with unknown keys.
const UNKNOWN_KEY_BURST: NonZeroU32 = NonZeroU32::new(3).expect("more than zero");
/// The maximum number of waiting calls with unknown keys. Half of all calls remain available to other callers.
const MAX_WAITING: usize = super::MAX_CALLS / 2;
/// The number of key locks at which unused locks are removed.
const UNKNOWN_KEYS_SWEEP: usize = 64;

/// Callers' access to the gateway.
pub(super) struct KeyAccess {
    known: KnownKeys,
    /// The rate limit that all unknown keys share.
    unknown: DefaultDirectRateLimiter,
    /// Permits for waiting calls with unknown keys.
    waiting: Semaphore,
    /// Locks of unknown keys, each held during an inquiry. Other calls with that key wait for the answer.
    key_locks: Mutex<HashMap<KeyHash, Weak<tokio::sync::Mutex<()>>>>,
}

impl KeyAccess {
    /// Creates the access control for an account with this rate limit, in messages per second.
    pub(super) fn new(rate: Option<f64>) -> Self {
        let rate = rate.map_or(MAX_UNKNOWN_KEY_RATE, |rate| (rate * UNKNOWN_KEY_SHARE).min(MAX_UNKNOWN_KEY_RATE));
        let period = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        let quota = Quota::with_period(period).expect("a rate is finite").allow_burst(UNKNOWN_KEY_BURST);
        Self {
            known: KnownKeys::default(),
            unknown: RateLimiter::direct(quota),
            waiting: Semaphore::new(MAX_WAITING),
            key_locks: Mutex::default(),
        }
    }

    /// Asks the gateway with a key, unless the gateway recently rejected the key or there were too many unknown keys.
    pub(super) async fn ask_with_key<T>(
        &self,
        key: &SecretString,
        profile: &Profile,
        inquiry: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ToolError> {
        let hash = self.known.hash_key(key);
        if self.is_accepted(hash)? || is_profile_key(key, profile) {
            return self.ask_and_record_key(hash, inquiry).await;
        }
        let _permit = self.waiting.try_acquire().map_err(|_| ToolError::rate_limited(None))?;
        let key_lock = self.lock_for_key(hash);
        let _guard = key_lock.lock().await;
        if !self.is_accepted(hash)? {
            self.charge_unknown_key()?;
        }
        self.ask_and_record_key(hash, inquiry).await
    }

    /// Verifies a key with an inquiry, unless the gateway recently accepted the key.
    pub(super) async fn verify_key(
        &self,
        key: &SecretString,
        profile: &Profile,
        inquiry: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), ToolError> {
        match self.is_accepted(self.known.hash_key(key))? {
            true => Ok(()),
            false => self.ask_with_key(key, profile, inquiry).await,
        }
    }

    /// Records that the gateway rejected a key, if the error of a message, a lookup or a template says so.
    pub(super) fn record_key_refusal(&self, key: &SecretString, error: &ToolError) {
        if error.is_key_refused() {
            self.known.record_refused(self.known.hash_key(key), Instant::now());
        }
    }

    /// Whether the gateway recently accepted a key.
    ///
    /// # Errors
    /// If the gateway recently rejected the key.
    fn is_accepted(&self, key: KeyHash) -> Result<bool, ToolError> {
        match self.known.key_status(key, Instant::now()) {
            KeyStatus::Accepted => Ok(true),
            KeyStatus::Unknown => Ok(false),
            KeyStatus::Refused => Err(ToolError::key_refused()),
        }
    }

    async fn ask_and_record_key<T>(
        &self,
        key: KeyHash,
        inquiry: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ToolError> {
        let answer = inquiry.await;
        match &answer {
            Ok(_) => self.known.record_accepted(key, Instant::now()),
            Err(Error::Unanswered { failure, .. }) => match failure.cause {
                FailureCause::KeyRefused => self.known.record_refused(key, Instant::now()),
                // The gateway knows the key, but rejects the inquiry.
                FailureCause::Refused => self.known.record_accepted(key, Instant::now()),
                FailureCause::NotConnected
                | FailureCause::SlowDown(_)
                | FailureCause::TimedOut
                | FailureCause::Unclear => {}
            },
            Err(_) => {}
        }
        Ok(answer?)
    }

    fn charge_unknown_key(&self) -> Result<(), ToolError> {
        let wait = |early: governor::NotUntil<_>| early.wait_time_from(DefaultClock::default().now());
        self.unknown.check().map_err(|early| ToolError::rate_limited(Some(wait(early))))
    }

    fn lock_for_key(&self, key: KeyHash) -> Arc<tokio::sync::Mutex<()>> {
        let mut key_locks = self.key_locks.lock().unwrap_or_else(PoisonError::into_inner);
        if key_locks.len() >= UNKNOWN_KEYS_SWEEP {
            key_locks.retain(|_, key_lock| key_lock.strong_count() > 0);
        }
        if let Some(key_lock) = key_locks.get(&key).and_then(Weak::upgrade) {
            return key_lock;
        }
        let key_lock = Arc::default();
        key_locks.insert(key, Arc::downgrade(&key_lock));
        key_lock
    }
}

/// Whether a key is the profile's current key.
fn is_profile_key(key: &SecretString, profile: &Profile) -> bool {
    let same = |profile_key: &SecretString| {
        profile_key.expose_secret().as_bytes().ct_eq(key.expose_secret().as_bytes()).into()
    };
    read_api_key(profile).is_ok_and(|profile_key| same(&profile_key))
}

/// The time for which an accepted key needs no new inquiry.
const ACCEPTED_TTL: Duration = Duration::from_secs(600);
/// The time for which a rejected key is rejected without an inquiry.
const REFUSED_TTL: Duration = Duration::from_secs(10);
/// The maximum number of stored accepted keys, and of stored rejected keys.
const MAX_KEYS: usize = 4_096;

/// The gateway's latest answer about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyStatus {
    /// The gateway accepted the key.
    Accepted,
    /// The gateway rejected the key.
    Refused,
    /// The gateway has not recently accepted or rejected the key.
    Unknown,
}

/// The stored hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyHash(u64);

/// Recently accepted and rejected keys.
#[derive(Debug, Default)]
pub(super) struct KnownKeys {
    hasher: RandomState,
    keys: Mutex<KeyTimes>,
}

#[derive(Debug, Default)]
struct KeyTimes {
    accepted: HashMap<KeyHash, Instant>,
    rejected: HashMap<KeyHash, Instant>,
}

impl KnownKeys {
    pub(super) fn hash_key(&self, key: &SecretString) -> KeyHash {
        KeyHash(self.hasher.hash_one(key.expose_secret()))
    }

    /// The gateway's latest answer about a key.
    pub(super) fn key_status(&self, key: KeyHash, now: Instant) -> KeyStatus {
        let keys = self.lock_keys();
        let is_recent = |times: &HashMap<KeyHash, Instant>, ttl| {
            times.get(&key).is_some_and(|at| now.saturating_duration_since(*at) < ttl)
        };
        if is_recent(&keys.rejected, REFUSED_TTL) {
            KeyStatus::Refused
        } else if is_recent(&keys.accepted, ACCEPTED_TTL) {
            KeyStatus::Accepted
        } else {
            KeyStatus::Unknown
        }
    }

    /// Records that the gateway accepted a key.
    pub(super) fn record_accepted(&self, key: KeyHash, now: Instant) {
        let mut keys = self.lock_keys();
        keys.rejected.remove(&key);
        insert_bounded(&mut keys.accepted, key, now, ACCEPTED_TTL);
    }

    /// Records that the gateway rejected a key.
    pub(super) fn record_refused(&self, key: KeyHash, now: Instant) {
        let mut keys = self.lock_keys();
        keys.accepted.remove(&key);
        insert_bounded(&mut keys.rejected, key, now, REFUSED_TTL);
    }

    fn lock_keys(&self) -> std::sync::MutexGuard<'_, KeyTimes> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Inserts a key. If the map is full, expired keys are removed or, if there are none, the oldest key.
fn insert_bounded(keys: &mut HashMap<KeyHash, Instant>, key: KeyHash, now: Instant, ttl: Duration) {
    if keys.len() >= MAX_KEYS && !keys.contains_key(&key) {
        keys.retain(|_, at| now.saturating_duration_since(*at) < ttl);
        if keys.len() >= MAX_KEYS
            && let Some(oldest) = keys.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key)
        {
            keys.remove(&oldest);
        }
    }
    keys.insert(key, now);
}

/// The maximum number of calls per second for each caller.
const CALLS_PER_SECOND: NonZeroU32 = NonZeroU32::new(2_000).expect("more than zero");
/// The maximum number of known callers.
const MAX_CALLERS: usize = 16_384;

/// Rate limits of callers.
pub(super) struct CallLimits {
    limiter: RateLimiter<u64, DefaultKeyedStateStore<u64>, DefaultClock>,
    /// The random secret of the hasher keeps stored hashes from revealing keys.
    hasher: RandomState,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self::with_rate(CALLS_PER_SECOND)
    }
}

impl CallLimits {
    fn with_rate(calls: NonZeroU32) -> Self {
        Self { limiter: RateLimiter::keyed(Quota::per_second(calls)), hasher: RandomState::new() }
    }

    /// Charges a call to an address.
    ///
    /// # Errors
    /// The time to wait, if the limit is exceeded.
    pub(super) fn charge_address(&self, address: IpAddr) -> Result<(), Duration> {
        self.charge_caller(("address", address))
    }

    /// Charges a call to a key.
    ///
    /// # Errors
    /// The time to wait, if the limit is exceeded.
    pub(super) fn charge_key(&self, key: &SecretString) -> Result<(), Duration> {
        self.charge_caller(("key", key.expose_secret()))
    }

    fn charge_caller(&self, caller: impl Hash) -> Result<(), Duration> {
        if self.limiter.len() >= MAX_CALLERS {
            self.limiter.retain_recent();
        }
        let caller = self.hasher.hash_one(caller);
        self.limiter.check_key(&caller).map_err(|early| early.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use campaign_gateway::InquiryFailure;
    use campaign_runs::Profiles;

    /// A profile whose key is `own`.
    fn test_profile(folder: &std::path::Path) -> Profile {
        let (file, key) = (folder.join("gateways.yaml"), folder.join("own.key"));
        std::fs::write(&key, "own").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let text = "local: { base_url: \"http://127.0.0.1:1\", api_key: { file: own.key }, rate: 10/s }\n";
        std::fs::write(&file, text).unwrap();
        let profiles = Profiles { explicit: Some(file), ..Profiles::default() };
        profiles.load(None).unwrap().find_profile("local").unwrap().clone()
    }

    /// A gateway that accepts the keys `good` and `own`, rejects the inquiries of `barred`, and counts inquiries.
    struct CountingGateway<'a> {
        access: &'a KeyAccess,
        profile: &'a Profile,
        inquiries: AtomicU32,
    }

    impl<'a> CountingGateway<'a> {
        fn new(access: &'a KeyAccess, profile: &'a Profile) -> Self {
            Self { access, profile, inquiries: AtomicU32::new(0) }
        }

        async fn ask_gateway(&self, key: &str) -> &'static str {
            let inquiry = async {
                self.inquiries.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                let failure =
                    |cause| InquiryFailure { cause, reason: "why".into(), gateway_text: None, not_executed: true };
                match key {
                    "good" | "own" => Ok(()),
                    "barred" => Err(FailureCause::Refused),
                    _ => Err(FailureCause::KeyRefused),
                }
                .map_err(|cause| Error::Unanswered {
                    gateway: "local".to_owned(),
                    key: String::new(),
                    failure: failure(cause),
                })
            };
            self.access
                .ask_with_key(&SecretString::from(key), self.profile, inquiry)
                .await
                .map_or_else(|error| error.code(), |()| "ok")
        }

        fn count_inquiries(&self) -> u32 {
            self.inquiries.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn refused_key_is_checked_once_for_many_callers() {
        let folder = tempfile::tempdir().unwrap();
        let (access, profile) = (KeyAccess::new(Some(10.0)), test_profile(folder.path()));
        let gateway = CountingGateway::new(&access, &profile);
        let answers = futures_util::future::join_all((0..60).map(|_| gateway.ask_gateway("wrong"))).await;
        // Callers beyond the queue limit get `rate_limited`.
        assert!(answers.iter().all(|answer| ["access_denied", "rate_limited"].contains(answer)), "{answers:?}");
        assert_eq!((gateway.count_inquiries(), gateway.ask_gateway("wrong").await), (1, "access_denied"));
        assert_eq!(gateway.count_inquiries(), 1);
        // Many callers can use a valid key at once.
        let answers = futures_util::future::join_all((0..MAX_WAITING).map(|_| gateway.ask_gateway("good"))).await;
        assert!(answers.iter().all(|answer| *answer == "ok"), "{answers:?}");
    }

    #[tokio::test]
    async fn unknown_keys_share_one_low_rate_limit() {
        let folder = tempfile::tempdir().unwrap();
        let (access, profile) = (KeyAccess::new(Some(10.0)), test_profile(folder.path()));
        let gateway = CountingGateway::new(&access, &profile);
        assert_eq!(gateway.ask_gateway("good").await, "ok");
        let mut answers = Vec::new();
        for number in 0..60 {
            answers.push(gateway.ask_gateway(&format!("made-up-{number}")).await);
        }
        let limited = answers.iter().filter(|answer| **answer == "rate_limited").count();
        assert!(limited >= 57 && gateway.count_inquiries() <= 4, "{answers:?}");
        // Unknown keys do not slow down known keys or the profile's key.
        for _ in 0..5 {
            assert_eq!((gateway.ask_gateway("good").await, gateway.ask_gateway("own").await), ("ok", "ok"));
        }
    }

    #[tokio::test]
    async fn key_is_accepted_if_an_inquiry_fails_for_another_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (access, profile) = (KeyAccess::new(None), test_profile(folder.path()));
        let gateway = CountingGateway::new(&access, &profile);
        for _ in 0..20 {
            assert_eq!(gateway.ask_gateway("barred").await, "platform_error");
        }
        let barred = SecretString::from("barred");
        assert_eq!(access.verify_key(&barred, &profile, async { panic!("it is known") }).await, Ok(()));
    }
}

#[cfg(test)]
mod known_keys_tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        SecretString::from(text)
    }

    #[test]
    fn refused_key_expires_before_an_accepted_key() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let (good, bad) = (known.hash_key(&secret("good")), known.hash_key(&secret("bad")));
        assert_eq!(known.key_status(good, now), KeyStatus::Unknown);
        known.record_accepted(good, now);
        known.record_refused(bad, now);
        let at = |seconds| now + Duration::from_secs(seconds);
        for (seconds, expected_good, expected_bad) in [
            (0, KeyStatus::Accepted, KeyStatus::Refused),
            (9, KeyStatus::Accepted, KeyStatus::Refused),
            (11, KeyStatus::Accepted, KeyStatus::Unknown),
            (601, KeyStatus::Unknown, KeyStatus::Unknown),
        ] {
            let statuses = (known.key_status(good, at(seconds)), known.key_status(bad, at(seconds)));
            assert_eq!(statuses, (expected_good, expected_bad), "after {seconds} s");
        }
    }

    #[test]
    fn revoked_key_is_not_trusted_until_accepted_again() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let key = known.hash_key(&secret("one"));
        known.record_accepted(key, now);
        known.record_refused(key, now);
        assert_eq!(known.key_status(key, now), KeyStatus::Refused);
        assert_eq!(known.key_status(key, now + REFUSED_TTL), KeyStatus::Unknown);
        known.record_accepted(key, now);
        assert_eq!(known.key_status(key, now), KeyStatus::Accepted);
    }

    #[test]
    fn refused_keys_are_bounded_and_do_not_evict_accepted_keys() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let good = known.hash_key(&secret("good"));
        known.record_accepted(good, now);
        for number in 0..2 * MAX_KEYS {
            known.record_refused(
                known.hash_key(&secret(&format!("made-up-{number}"))),
                now + Duration::from_micros(number as u64),
            );
        }
        let rejected_count = known.lock_keys().rejected.len();
        assert_eq!((rejected_count, known.key_status(good, now)), (MAX_KEYS, KeyStatus::Accepted));
        let last = known.hash_key(&secret(&format!("made-up-{}", 2 * MAX_KEYS - 1)));
        assert_eq!(known.key_status(last, now), KeyStatus::Refused);
    }
}

#[cfg(test)]
mod call_limit_tests {
    use super::*;

    #[test]
    fn rate_limit_of_one_caller_does_not_affect_others() {
        let limits = CallLimits::with_rate(NonZeroU32::new(3).unwrap());
        let (one, other) = (SecretString::from("one"), SecretString::from("other"));
        let allowed = (0..10).filter(|_| limits.charge_key(&one).is_ok()).count();
        assert_eq!(allowed, 3);
        assert!(limits.charge_key(&one).is_err_and(|wait| wait <= Duration::from_secs(1)));
        assert!(limits.charge_key(&other).is_ok());
        assert!(limits.charge_address(IpAddr::from([127, 0, 0, 1])).is_ok());
    }
}
