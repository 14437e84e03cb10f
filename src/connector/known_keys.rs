//! The keys that the gateway accepted or refused lately. A key is kept as a hash with a secret of this process.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};

/// How long a key counts as accepted after the gateway last accepted it.
const ACCEPTED_TTL: Duration = Duration::from_secs(600);
/// How long a refused key is refused without asking the gateway.
const REFUSED_TTL: Duration = Duration::from_secs(10);
/// The most keys of each kind.
const MAX_KEYS: usize = 4_096;

/// What the gateway said of a key lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyStatus {
    /// It accepted the key.
    Accepted,
    /// It refused the key.
    Refused,
    /// Nothing.
    Unknown,
}

/// A key as it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeyHash(u64);

/// The keys that the gateway accepted or refused lately.
#[derive(Debug, Default)]
pub(super) struct KnownKeys {
    hasher: RandomState,
    keys: Mutex<KeyTimes>,
}

#[derive(Debug, Default)]
struct KeyTimes {
    accepted: HashMap<KeyHash, Instant>,
    refused: HashMap<KeyHash, Instant>,
}

impl KnownKeys {
    /// The hash of a key.
    pub(super) fn hash_key(&self, key: &SecretString) -> KeyHash {
        KeyHash(self.hasher.hash_one(key.expose_secret()))
    }

    /// What the gateway said of a key lately.
    pub(super) fn key_status(&self, key: KeyHash, now: Instant) -> KeyStatus {
        let keys = self.lock_keys();
        let within = |keys: &HashMap<KeyHash, Instant>, time| {
            keys.get(&key).is_some_and(|at| now.saturating_duration_since(*at) < time)
        };
        match () {
            () if within(&keys.refused, REFUSED_TTL) => KeyStatus::Refused,
            () if within(&keys.accepted, ACCEPTED_TTL) => KeyStatus::Accepted,
            () => KeyStatus::Unknown,
        }
    }

    /// Records that the gateway accepted a key.
    pub(super) fn record_accepted(&self, key: KeyHash, now: Instant) {
        let mut keys = self.lock_keys();
        keys.refused.remove(&key);
        insert_bounded(&mut keys.accepted, key, now, ACCEPTED_TTL);
    }

    /// Records that the gateway refused a key.
    pub(super) fn record_refused(&self, key: KeyHash, now: Instant) {
        let mut keys = self.lock_keys();
        keys.accepted.remove(&key);
        insert_bounded(&mut keys.refused, key, now, REFUSED_TTL);
    }

    fn lock_keys(&self) -> std::sync::MutexGuard<'_, KeyTimes> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a key; if there are too many, it takes the place of the one that was kept first.
fn insert_bounded(keys: &mut HashMap<KeyHash, Instant>, key: KeyHash, now: Instant, time: Duration) {
    if keys.len() >= MAX_KEYS && !keys.contains_key(&key) {
        keys.retain(|_, at| now.saturating_duration_since(*at) < time);
        if keys.len() >= MAX_KEYS
            && let Some(first) = keys.iter().min_by_key(|(_, at)| **at).map(|(key, _)| *key)
        {
            keys.remove(&first);
        }
    }
    keys.insert(key, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> SecretString {
        SecretString::from(text)
    }

    #[test]
    fn refused_key_expires_before_an_accepted_one() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let (good, bad) = (known.hash_key(&secret("good")), known.hash_key(&secret("bad")));
        assert_eq!(known.key_status(good, now), KeyStatus::Unknown);
        known.record_accepted(good, now);
        known.record_refused(bad, now);
        let at = |seconds| now + Duration::from_secs(seconds);
        for (seconds, of_good, of_bad) in [
            (0, KeyStatus::Accepted, KeyStatus::Refused),
            (9, KeyStatus::Accepted, KeyStatus::Refused),
            (11, KeyStatus::Accepted, KeyStatus::Unknown),
            (601, KeyStatus::Unknown, KeyStatus::Unknown),
        ] {
            let standing = (known.key_status(good, at(seconds)), known.key_status(bad, at(seconds)));
            assert_eq!(standing, (of_good, of_bad), "after {seconds} s");
        }
    }

    #[test]
    fn revoked_key_is_refused_until_accepted_again() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let one = known.hash_key(&secret("one"));
        known.record_accepted(one, now);
        known.record_refused(one, now);
        assert_eq!(known.key_status(one, now), KeyStatus::Refused);
        assert_eq!(known.key_status(one, now + REFUSED_TTL), KeyStatus::Unknown);
        known.record_accepted(one, now);
        assert_eq!(known.key_status(one, now), KeyStatus::Accepted);
    }

    #[test]
    fn refused_keys_are_bounded_and_keep_accepted_ones() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let good = known.hash_key(&secret("good"));
        known.record_accepted(good, now);
        for number in 0..2 * MAX_KEYS {
            known.record_refused(
                known.hash_key(&secret(&format!("made-up-{number}"))),
                now + Duration::from_micros(number as u64),
            );
        }
        let refused = known.lock_keys().refused.len();
        assert_eq!((refused, known.key_status(good, now)), (MAX_KEYS, KeyStatus::Accepted));
        let last = known.hash_key(&secret(&format!("made-up-{}", 2 * MAX_KEYS - 1)));
        assert_eq!(known.key_status(last, now), KeyStatus::Refused);
    }
}
