//! Access of callers to the gateway by their keys. Keys that the gateway does not know get few questions, all together.
//!
//! A key that the gateway refused is refused here for some seconds. Keys that it has not accepted yet share one small rate,
//! however many they are, so that made-up keys slow neither messages nor the callers whose key is good.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use secrecy::{ExposeSecret as _, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

use super::error::ToolError;
use super::known_keys::{KeyHash, KeyStatus, KnownKeys};
use crate::gateway::FailureCause;
use crate::manifest::Profile;
use crate::runs::{Error, read_api_key};

/// The share of the account's rate for questions with unknown keys: a fifth of what questions get beside messages.
const UNKNOWN_KEY_SHARE: f64 = 0.02;
/// The most such questions a second, also without a rate.
const MAX_UNKNOWN_KEY_RATE: f64 = 10.0;
/// How many of them may come at once.
const UNKNOWN_KEY_BURST: NonZeroU32 = NonZeroU32::new(3).expect("more than none");
/// The most calls with unknown keys that wait: half of all calls, so that the others have a place.
const MAX_WAITING: usize = super::MAX_CALLS / 2;
/// From how many unknown keys on those are removed that ask no more.
const UNKNOWN_KEYS_SWEEP: usize = 64;

/// Access of callers to the gateway.
pub(super) struct KeyAccess {
    known: KnownKeys,
    unknown: DefaultDirectRateLimiter,
    places: Semaphore,
    /// Held by the question that asks with an unknown key; others with that key wait for its answer.
    asking: Mutex<HashMap<KeyHash, Weak<tokio::sync::Mutex<()>>>>,
}

impl KeyAccess {
    /// Access to an account with this rate.
    pub(super) fn new(rate: Option<f64>) -> Self {
        let rate = rate.map_or(MAX_UNKNOWN_KEY_RATE, |rate| (rate * UNKNOWN_KEY_SHARE).min(MAX_UNKNOWN_KEY_RATE));
        let period = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        let quota = Quota::with_period(period).expect("a rate is finite").allow_burst(UNKNOWN_KEY_BURST);
        Self {
            known: KnownKeys::default(),
            unknown: RateLimiter::direct(quota),
            places: Semaphore::new(MAX_WAITING),
            asking: Mutex::default(),
        }
    }

    /// Asks the gateway with a key, unless the gateway refused it lately, or too many unknown keys came.
    pub(super) async fn ask_with_key<T>(
        &self,
        key: &SecretString,
        profile: &Profile,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ToolError> {
        let hash = self.known.hash_key(key);
        if self.is_accepted(hash)? || is_profile_key(key, profile) {
            return self.await_and_record(hash, question).await;
        }
        let _place = self.places.try_acquire().map_err(|_| ToolError::rate_limited(None))?;
        let turn = self.lock_for_key(hash);
        let _turn = turn.lock().await;
        if !self.is_accepted(hash)? {
            self.charge_unknown()?;
        }
        self.await_and_record(hash, question).await
    }

    /// Has a key proven by a question, unless the gateway accepted it lately.
    pub(super) async fn prove_key(
        &self,
        key: &SecretString,
        profile: &Profile,
        question: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), ToolError> {
        match self.is_accepted(self.known.hash_key(key))? {
            true => Ok(()),
            false => self.ask_with_key(key, profile, question).await,
        }
    }

    /// Remembers a key that the platform refused with a message, a lookup or an order.
    pub(super) fn record_key_refusal(&self, key: &SecretString, error: &ToolError) {
        if error.is_key_refused() {
            self.known.record_refused(self.known.hash_key(key), Instant::now());
        }
    }

    fn is_accepted(&self, key: KeyHash) -> Result<bool, ToolError> {
        match self.known.key_status(key, Instant::now()) {
            KeyStatus::Accepted => Ok(true),
            KeyStatus::Unknown => Ok(false),
            KeyStatus::Refused => Err(ToolError::key_refused()),
        }
    }

    async fn await_and_record<T>(
        &self,
        key: KeyHash,
        question: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ToolError> {
        let answer = question.await;
        match &answer {
            Ok(_) => self.known.record_accepted(key, Instant::now()),
            Err(Error::Unanswered { failure, .. }) => match failure.cause {
                FailureCause::KeyRefused => self.known.record_refused(key, Instant::now()),
                // It knows the key, and refuses what was asked.
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

    fn charge_unknown(&self) -> Result<(), ToolError> {
        let wait = |early: governor::NotUntil<_>| early.wait_time_from(DefaultClock::default().now());
        self.unknown.check().map_err(|early| ToolError::rate_limited(Some(wait(early))))
    }

    fn lock_for_key(&self, key: KeyHash) -> Arc<tokio::sync::Mutex<()>> {
        let mut asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if asking.len() >= UNKNOWN_KEYS_SWEEP {
            asking.retain(|_, turn| turn.strong_count() > 0);
        }
        if let Some(turn) = asking.get(&key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        asking.insert(key, Arc::downgrade(&turn));
        turn
    }
}

/// Whether a key is the one that the profile has now.
fn is_profile_key(key: &SecretString, profile: &Profile) -> bool {
    let same = |own: &SecretString| own.expose_secret().as_bytes().ct_eq(key.expose_secret().as_bytes()).into();
    read_api_key(profile).is_ok_and(|own| same(&own))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::gateway::InquiryFailure;
    use crate::runs::Profiles;

    /// A profile whose key is `own`.
    fn test_profile(folder: &std::path::Path) -> Profile {
        let (file, key) = (folder.join("gateways.yaml"), folder.join("own.key"));
        std::fs::write(&key, "own").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let text = "local: { base_url: \"http://127.0.0.1:1\", api_key: { file: own.key }, rate: 10/s }\n";
        std::fs::write(&file, text).unwrap();
        let profiles = Profiles { explicit: Some(file), configuration: None };
        profiles.load(None).unwrap().find_profile("local").unwrap().clone()
    }

    /// A gateway that accepts `good` and `own`, and counts how often it is asked.
    struct CountingGateway<'a>(&'a KeyAccess, &'a Profile, AtomicU32);

    impl CountingGateway<'_> {
        async fn ask_gateway(&self, key: &str) -> &'static str {
            let question = async {
                self.2.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                let failure = |cause| InquiryFailure { cause, reason: "why".into(), gateway_text: None, undone: true };
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
            self.0
                .ask_with_key(&SecretString::from(key), self.1, question)
                .await
                .map_or_else(|error| error.code(), |()| "ok")
        }

        fn count(&self) -> u32 {
            self.2.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn refused_key_is_checked_once_for_many_callers() {
        let folder = tempfile::tempdir().unwrap();
        let (access, profile) = (KeyAccess::new(Some(10.0)), test_profile(folder.path()));
        let gateway = CountingGateway(&access, &profile, AtomicU32::new(0));
        let answers = futures_util::future::join_all((0..60).map(|_| gateway.ask_gateway("wrong"))).await;
        // More of them than may wait are told to come later.
        assert!(answers.iter().all(|answer| ["access_denied", "rate_limited"].contains(answer)), "{answers:?}");
        assert_eq!((gateway.count(), gateway.ask_gateway("wrong").await), (1, "access_denied"));
        assert_eq!(gateway.count(), 1);
        // Many callers can bring a good key at once.
        let answers = futures_util::future::join_all((0..MAX_WAITING).map(|_| gateway.ask_gateway("good"))).await;
        assert!(answers.iter().all(|answer| *answer == "ok"), "{answers:?}");
    }

    #[tokio::test]
    async fn unknown_keys_share_one_small_rate() {
        let folder = tempfile::tempdir().unwrap();
        let (access, profile) = (KeyAccess::new(Some(10.0)), test_profile(folder.path()));
        let gateway = CountingGateway(&access, &profile, AtomicU32::new(0));
        assert_eq!(gateway.ask_gateway("good").await, "ok");
        let mut answers = Vec::new();
        for number in 0..60 {
            answers.push(gateway.ask_gateway(&format!("made-up-{number}")).await);
        }
        let limited = answers.iter().filter(|answer| **answer == "rate_limited").count();
        assert!(limited >= 57 && gateway.count() <= 4, "{answers:?}");
        // They slow neither a key that is known nor that of the profile.
        for _ in 0..5 {
            assert_eq!((gateway.ask_gateway("good").await, gateway.ask_gateway("own").await), ("ok", "ok"));
        }
    }

    #[tokio::test]
    async fn key_is_accepted_if_inquiry_fails_for_another_reason() {
        let folder = tempfile::tempdir().unwrap();
        let (access, profile) = (KeyAccess::new(None), test_profile(folder.path()));
        let gateway = CountingGateway(&access, &profile, AtomicU32::new(0));
        for _ in 0..20 {
            assert_eq!(gateway.ask_gateway("barred").await, "platform_error");
        }
        let barred = SecretString::from("barred");
        assert_eq!(access.prove_key(&barred, &profile, async { panic!("it is known") }).await, Ok(()));
    }
}
