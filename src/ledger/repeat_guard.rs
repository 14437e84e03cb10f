//! The guard against repeated single messages: a keyed hash and an expiry for each message that was sent lately.
//!
//! The key is a secret of the ledger, so a hash tells nothing of a number or a text.

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::LedgerFuture;

/// How long the same message to the same number counts as a repeat.
pub const REPEAT_WINDOW: Duration = Duration::from_secs(60);
/// The same in microseconds.
const WINDOW: i64 = 60_000_000;

/// The bytes of a hash.
pub(super) type RepeatHash = [u8; 32];

/// The secret with which a ledger hashes messages.
#[derive(Clone)]
pub(super) struct RepeatKey(pub(super) [u8; Self::LENGTH]);

impl RepeatKey {
    /// How many bytes it has.
    pub(super) const LENGTH: usize = 32;

    /// The hash of a message.
    pub(super) fn hash_message(&self, message: &[u8]) -> RepeatHash {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of HMAC may have any length");
        mac.chain_update(message).finalize().into_bytes().into()
    }
}

/// The place of a message that is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatPlace {
    pub(super) hash: RepeatHash,
    /// When it expires, in microseconds since 1970.
    pub(super) until: i64,
    /// When the place of the same message before it expires.
    pub(super) before: Option<i64>,
}

impl RepeatPlace {
    /// A place that is taken now.
    pub(super) fn new(hash: RepeatHash, now: i64, before: Option<i64>) -> Self {
        Self { hash, until: latest_expiry(now), before }
    }
}

/// What a request for a place comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatCheck {
    /// The message may leave; nobody else gets its place.
    Taken(RepeatPlace),
    /// The same message left so long ago.
    Repeated(Duration),
    /// The tables are those of the version before and have no place for it.
    Unavailable,
}

/// The latest moment at which an entry can expire that is made now.
pub(super) fn latest_expiry(now: i64) -> i64 {
    now.saturating_add(WINDOW)
}

/// Whether an entry is over; one that expires too late is from before somebody set the clock back.
pub(super) fn is_expired(until: i64, now: i64) -> bool {
    until <= now || until > latest_expiry(now)
}

/// How long ago the entry was made that expires then.
pub(super) fn entry_age(until: i64, now: i64) -> Duration {
    let age = now.saturating_sub(until.saturating_sub(WINDOW));
    Duration::from_micros(u64::try_from(age).unwrap_or_default())
}

/// The part of the ledger that knows which single messages were sent lately. A message is whatever bytes identify it.
pub trait RepeatGuard: Send + Sync {
    /// Takes the place of a message in one transaction, unless the same message was sent lately and is not to go `again`.
    ///
    /// Expired entries are deleted with it.
    fn take_repeat_place(&self, message: Vec<u8>, again: bool) -> LedgerFuture<'_, RepeatCheck> {
        let _ = (message, again);
        Box::pin(async { Ok(RepeatCheck::Unavailable) })
    }

    /// How long ago a message was sent; nothing if it was not sent lately. This takes no place.
    fn find_time_since_sent(&self, message: Vec<u8>) -> LedgerFuture<'_, Option<Duration>> {
        let _ = message;
        Box::pin(async { Ok(None) })
    }

    /// Gives the place of a message back that surely did not leave.
    fn release_repeat_place(&self, place: RepeatPlace) -> LedgerFuture<'_, ()> {
        let _ = place;
        Box::pin(async { Ok(()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire_after_a_minute_or_when_the_clock_was_set_back() {
        let place = RepeatPlace::new(RepeatKey([7; 32]).hash_message(b"a"), 5, None);
        let late = 5 + WINDOW;
        assert_eq!([5, late - 1, late, 4].map(|now| is_expired(place.until, now)), [false, false, true, true]);
        assert_eq!([5, late - 1].map(|now| entry_age(place.until, now).as_secs()), [0, 59]);
    }

    #[test]
    fn hash_depends_on_the_key_and_on_every_byte() {
        let hash = |key: u8, message: &[u8]| RepeatKey([key; 32]).hash_message(message);
        assert_eq!(hash(1, b"a"), hash(1, b"a"));
        assert!(hash(1, b"a") != hash(2, b"a") && hash(1, b"a") != hash(1, b"b"));
    }
}
