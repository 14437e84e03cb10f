//! The keys that the gateway accepted or refused lately. A key is kept as a hash with a secret of this process.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};

/// How long a key counts as accepted after the gateway last accepted it.
const ACCEPTED: Duration = Duration::from_secs(600);
/// How long a refused key is refused without asking the gateway.
const REFUSED: Duration = Duration::from_secs(10);
/// The most keys of each kind.
const MOST: usize = 4_096;

/// What the gateway said of a key lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
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
    keys: Mutex<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    accepted: HashMap<KeyHash, Instant>,
    refused: HashMap<KeyHash, Instant>,
}

impl KnownKeys {
    /// The hash of a key.
    pub(super) fn hash(&self, key: &SecretString) -> KeyHash {
        KeyHash(self.hasher.hash_one(key.expose_secret()))
    }

    /// What the gateway said of a key lately.
    pub(super) fn standing(&self, key: KeyHash, now: Instant) -> Standing {
        let keys = self.keys();
        let within = |keys: &HashMap<KeyHash, Instant>, time| {
            keys.get(&key).is_some_and(|at| now.saturating_duration_since(*at) < time)
        };
        match () {
            () if within(&keys.refused, REFUSED) => Standing::Refused,
            () if within(&keys.accepted, ACCEPTED) => Standing::Accepted,
            () => Standing::Unknown,
        }
    }

    /// Records that the gateway accepted a key.
    pub(super) fn accept(&self, key: KeyHash, now: Instant) {
        let mut keys = self.keys();
        keys.refused.remove(&key);
        keep(&mut keys.accepted, key, now, ACCEPTED);
    }

    /// Records that the gateway refused a key.
    pub(super) fn refuse(&self, key: KeyHash, now: Instant) {
        let mut keys = self.keys();
        keys.accepted.remove(&key);
        keep(&mut keys.refused, key, now, REFUSED);
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a key; if there are too many, it takes the place of the one that was kept first.
fn keep(keys: &mut HashMap<KeyHash, Instant>, key: KeyHash, now: Instant, time: Duration) {
    if keys.len() >= MOST && !keys.contains_key(&key) {
        keys.retain(|_, at| now.saturating_duration_since(*at) < time);
        if keys.len() >= MOST
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

    fn key(text: &str) -> SecretString {
        SecretString::from(text)
    }

    #[test]
    fn refused_key_is_forgotten_after_seconds_and_an_accepted_one_later() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let (good, bad) = (known.hash(&key("good")), known.hash(&key("bad")));
        assert_eq!(known.standing(good, now), Standing::Unknown);
        known.accept(good, now);
        known.refuse(bad, now);
        let at = |seconds| now + Duration::from_secs(seconds);
        for (seconds, of_good, of_bad) in [
            (0, Standing::Accepted, Standing::Refused),
            (9, Standing::Accepted, Standing::Refused),
            (11, Standing::Accepted, Standing::Unknown),
            (601, Standing::Unknown, Standing::Unknown),
        ] {
            let standing = (known.standing(good, at(seconds)), known.standing(bad, at(seconds)));
            assert_eq!(standing, (of_good, of_bad), "after {seconds} s");
        }
    }

    #[test]
    fn revoked_key_is_good_no_more_and_can_become_good_again() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let one = known.hash(&key("one"));
        known.accept(one, now);
        known.refuse(one, now);
        assert_eq!(known.standing(one, now), Standing::Refused);
        assert_eq!(known.standing(one, now + REFUSED), Standing::Unknown);
        known.accept(one, now);
        assert_eq!(known.standing(one, now), Standing::Accepted);
    }

    #[test]
    fn made_up_keys_take_bounded_room_and_push_out_no_accepted_one() {
        let (known, now) = (KnownKeys::default(), Instant::now());
        let good = known.hash(&key("good"));
        known.accept(good, now);
        for number in 0..2 * MOST {
            known.refuse(known.hash(&key(&format!("made-up-{number}"))), now + Duration::from_micros(number as u64));
        }
        let refused = known.keys().refused.len();
        assert_eq!((refused, known.standing(good, now)), (MOST, Standing::Accepted));
        let last = known.hash(&key(&format!("made-up-{}", 2 * MOST - 1)));
        assert_eq!(known.standing(last, now), Standing::Refused);
    }
}
