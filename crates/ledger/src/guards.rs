//! Guards against sending a message twice: the numbers that have a message from a run, and recent single messages.
//!
//! Single messages are stored as keyed hashes with an expiry. The key is a secret of the ledger, so a hash reveals
//! neither the number nor the text.

use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashMap;
use sha2::Sha256;

use super::{Attempt, EnvelopeRecord, LedgerFuture, RowEvents, RunActivity, RunProgress, StoredReceipt};
use campaign_core::domain::{Addressee, Row};

/// The period in which an identical message to the same number counts as a repeat.
pub const REPEAT_WINDOW: Duration = Duration::from_secs(60);
/// [`REPEAT_WINDOW`] in microseconds.
const WINDOW: i64 = 60_000_000;

/// A hash of a message.
pub(super) type RepeatHash = [u8; 32];

/// The secret key for hashes of messages.
#[derive(Clone)]
pub(super) struct RepeatKey(pub(super) [u8; Self::LENGTH]);

impl RepeatKey {
    /// The number of bytes.
    pub(super) const LENGTH: usize = 32;

    pub(super) fn hash_message(&self, message: &[u8]) -> RepeatHash {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("an HMAC key can have any length");
        mac.chain_update(message).finalize().into_bytes().into()
    }
}

/// The reservation for a message that is about to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatReservation {
    pub(super) hash: RepeatHash,
    /// The expiry, in microseconds since 1970.
    pub(super) until: i64,
    /// The expiry of the message's earlier entry.
    before: Option<i64>,
}

impl RepeatReservation {
    /// A reservation made at `now`. `before` is the expiry of the message's earlier entry.
    fn new(hash: RepeatHash, now: i64, before: Option<i64>) -> Self {
        Self { hash, until: latest_expiry(now), before }
    }
}

/// The answer to a [`RepeatRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatCheck {
    /// The message may be sent. Its entry is reserved.
    Reserved(RepeatReservation),
    /// The message was not sent recently, and no entry is reserved. Never the answer to a reservation.
    Free,
    /// The same message was sent this long ago.
    Repeated(Duration),
    /// The tables of an earlier version do not support reservations.
    Unavailable,
}

/// A request to the guard against repeated messages. A message is identified by arbitrary bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatRequest {
    /// Only check whether the same message was sent recently.
    Look(Vec<u8>),
    /// Reserve the entry of a message in one transaction, and delete expired entries.
    Reserve {
        /// The bytes that identify the message, such as its number and content.
        message: Vec<u8>,
        /// Whether the message may be sent even if the same message was sent recently.
        again: bool,
    },
    /// Release the entry of a message that was certainly not sent.
    Release(RepeatReservation),
}

/// The latest possible expiry of an entry that is made now. Times are in microseconds since 1970.
pub(super) fn latest_expiry(now: i64) -> i64 {
    now.saturating_add(WINDOW)
}

/// Whether an entry is expired. An expiry too far ahead comes from a clock that has since been set back.
pub(super) fn is_expired(until: i64, now: i64) -> bool {
    until <= now || until > latest_expiry(now)
}

/// The age of an entry with this expiry.
fn entry_age(until: i64, now: i64) -> Duration {
    let age = now.saturating_sub(until.saturating_sub(WINDOW));
    Duration::from_micros(u64::try_from(age).unwrap_or_default())
}

/// Whether a message with this hash may be sent now. `known` is the expiry of the message's entry, if the message was
/// sent recently. `again` permits a repeat.
pub(crate) fn check_repeat(hash: RepeatHash, known: Option<i64>, again: bool, now: i64) -> RepeatCheck {
    match known.filter(|_| !again) {
        Some(until) => RepeatCheck::Repeated(entry_age(until, now)),
        None => RepeatCheck::Reserved(RepeatReservation::new(hash, now, known)),
    }
}

/// Whether a message was sent recently. `until` is the expiry of its entry, if it has one. Reserves nothing.
pub(crate) fn look_for_repeat(until: Option<i64>, now: i64) -> RepeatCheck {
    let recent = until.filter(|until| !is_expired(*until, now));
    recent.map_or(RepeatCheck::Free, |until| RepeatCheck::Repeated(entry_age(until, now)))
}

/// The change that the release of a reservation makes.
pub(crate) enum ReservationRelease {
    /// Nothing: a later message replaced the entry.
    Nothing,
    /// The earlier message gets its expiry back.
    Restore(i64),
    /// The entry is deleted.
    Delete,
}

impl RepeatReservation {
    /// The change to make when this reservation is released. `known` is the expiry that the entry has now.
    pub(crate) fn plan_release(&self, known: Option<i64>, now: i64) -> ReservationRelease {
        if known != Some(self.until) {
            return ReservationRelease::Nothing;
        }
        let before = self.before.filter(|until| !is_expired(*until, now));
        before.map_or(ReservationRelease::Delete, ReservationRelease::Restore)
    }
}

/// The guard against repeated single messages.
pub trait RepeatGuard: Send + Sync {
    /// Looks up a message among those already sent, or reserves or releases its entry. Returns whether the message may
    /// be sent. A ledger without this guard returns `Unavailable`.
    fn check_repeat(&self, request: RepeatRequest) -> LedgerFuture<'_, RepeatCheck> {
        let _ = request;
        Box::pin(async { Ok(RepeatCheck::Unavailable) })
    }
}

/// The numbers with a message of a run, gathered from its envelopes in order and then from its receipts.
pub(crate) struct Guard {
    activity: RunActivity,
    events: RowEvents,
    /// The attempts of rows with events or without a message so far. All attempts of such a row are judged together.
    attempts: FxHashMap<Row, (Addressee, Vec<Attempt>)>,
    numbers: RoaringTreemap,
    rows: RoaringBitmap,
}

impl Guard {
    /// A guard for a run with this progress and these events.
    pub(crate) fn new(progress: RunProgress, events: RowEvents) -> Self {
        // Regardless of which process owns the run, an open intent might have been sent.
        let activity = RunActivity::from_progress(progress, false);
        let (attempts, numbers, rows) = Default::default();
        Self { activity, events, attempts, numbers, rows }
    }

    pub(crate) fn add_envelope(&mut self, envelope: &EnvelopeRecord) {
        for (sent, outcome) in envelope.iter_rows() {
            let attempt = self.activity.build_attempt(envelope.envelope, envelope.chain(sent), outcome);
            if !self.events.has_events(sent.row) && self.events.has_message(self.activity, sent.row, &[attempt], &[]) {
                self.include_row(sent.row, sent.to);
            } else {
                let (_, attempts) = self.attempts.entry(sent.row).or_insert((sent.to, Vec::new()));
                attempts.push(attempt);
            }
        }
    }

    /// Adds the receipts of a row. All envelopes must have been added before.
    pub(crate) fn add_receipts(&mut self, row: Row, receipts: &[StoredReceipt]) {
        let known = self
            .attempts
            .get(&row)
            .filter(|(_, attempts)| self.events.has_message(self.activity, row, attempts, receipts));
        if let Some((to, _)) = known {
            self.include_row(row, *to);
        }
    }

    fn include_row(&mut self, row: Row, to: Addressee) {
        self.numbers.insert(to.to_u64());
        self.rows.insert(row.get());
    }

    /// The guarded numbers.
    pub(crate) fn into_numbers(self) -> RoaringTreemap {
        self.finish().0
    }

    /// The rows that have or might have a message.
    pub(crate) fn into_rows(self) -> RoaringBitmap {
        self.finish().1
    }

    /// The numbers and rows that have or might have a message.
    fn finish(self) -> (RoaringTreemap, RoaringBitmap) {
        let Self { activity, events, attempts, mut numbers, mut rows } = self;
        for (row, (to, attempts)) in &attempts {
            if events.has_message(activity, *row, attempts, &[]) {
                numbers.insert(to.to_u64());
                rows.insert(row.get());
            }
        }
        (numbers, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_expires_after_a_minute_or_if_the_clock_is_set_back() {
        let reservation = RepeatReservation::new(RepeatKey([7; 32]).hash_message(b"a"), 5, None);
        let late = 5 + WINDOW;
        assert_eq!([5, late - 1, late, 4].map(|now| is_expired(reservation.until, now)), [false, false, true, true]);
        assert_eq!([5, late - 1].map(|now| entry_age(reservation.until, now).as_secs()), [0, 59]);
    }

    #[test]
    fn release_changes_an_entry_only_if_no_later_message_took_it() {
        let reserve = |known| match check_repeat([7; 32], known, true, 9) {
            RepeatCheck::Reserved(reservation) => reservation,
            refused => panic!("{refused:?}"),
        };
        assert!(matches!(check_repeat([7; 32], Some(5 + WINDOW), false, 9), RepeatCheck::Repeated(_)));
        let (first, second) = (reserve(None), reserve(Some(5 + WINDOW)));
        assert!(matches!(first.plan_release(Some(first.until), 10), ReservationRelease::Delete));
        assert!(
            matches!(second.plan_release(Some(second.until), 10), ReservationRelease::Restore(until) if until == 5 + WINDOW)
        );
        assert!(
            matches!(second.plan_release(Some(second.until), 5 + WINDOW), ReservationRelease::Delete),
            "the earlier one expired"
        );
        for known in [None, Some(second.until + 1)] {
            assert!(matches!(second.plan_release(known, 10), ReservationRelease::Nothing), "{known:?}");
        }
    }

    #[test]
    fn hash_depends_on_the_key_and_on_every_byte() {
        let hash = |key: u8, message: &[u8]| RepeatKey([key; 32]).hash_message(message);
        assert_eq!(hash(1, b"a"), hash(1, b"a"));
        assert!(hash(1, b"a") != hash(2, b"a") && hash(1, b"a") != hash(1, b"b"));
    }
}
