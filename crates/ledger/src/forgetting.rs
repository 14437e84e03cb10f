//! Forgetting recipients and purging runs: numbers and texts are erased, and a keyed hash of the number remains.

use std::ops::BitOrAssign;

use hmac::{Hmac, KeyInit as _, Mac as _};
use roaring::{RoaringBitmap, RoaringTreemap};
use sha2::Sha256;

use super::suppression::{REPLACED_REASON, is_own_source};
use super::{
    AskedRow, CapQuery, EnvelopeRecord, LedgerFuture, NewNotification, OptOut, OptOutEnd, Ownership, RowChange, Run,
    RunId, SentRow, StateCounts,
};
use campaign_core::domain::{Addressee, ForgottenNumber, OperationOutcome, Phone, Receipt};

/// An order to forget a number.
#[derive(Clone, Debug)]
pub struct ForgetOrder {
    /// The number.
    pub phone: Phone,
    /// The rows with this number. No process sends them, and none of them is in doubt.
    pub rows: Vec<(RunId, RoaringBitmap)>,
    /// The runs in which `stop --for-good` cancelled the number. They keep its hash, so that it stays cancelled.
    pub cancelled_in: Vec<RunId>,
    /// The opt-out that is recorded for the number.
    pub opt_out: OptOut,
}

/// An order to purge a run.
#[derive(Clone, Debug)]
pub struct PurgeOrder {
    /// The run, as it was read before its rows were counted.
    pub counted: Run,
    /// The run's final counts by state.
    pub counts: StateCounts,
    /// The run's billed parts.
    pub parts: u64,
    /// The numbers that `stop --for-good` cancelled. A hash of each is kept, so that later runs skip them.
    pub cancelled: RoaringTreemap,
}

/// The part of the ledger that forgets numbers and purges runs.
pub trait Forgetting: Send + Sync {
    /// Forgets a number in one commit. Erases the number and the recipient's texts from its rows, skips planned rows,
    /// and puts the hash on the suppression list. The rows stay marked until they are removed from the copies of their
    /// runs.
    fn forget_number(&self, order: ForgetOrder) -> LedgerFuture<'_, ()>;

    /// The rows to be removed from the copies and results of their runs.
    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>>;

    /// Purges the row records of a run in one commit and keeps its counts and parts. Does nothing if a process owns the
    /// run, or if the run changed since it was read.
    ///
    /// The run's record and its identifiers remain. For the guard and for caps, a hash of each number with a message
    /// remains. A hash of each cancelled number remains, too.
    fn purge_run(&self, order: PurgeOrder) -> LedgerFuture<'_, Ownership>;

    /// Overwrites and removes the copies of these purged runs, then overwrites unused storage, so that neither contains
    /// forgotten data.
    fn overwrite_remains<'a>(&'a self, purged: &'a [Run]) -> LedgerFuture<'a, ()>;
}

/// The replacement for a text that a person wrote about a forgotten number.
const ERASED: &str = "erased";

/// The replacement for the number in texts.
const FORGOTTEN: &str = "a forgotten number";

#[derive(Clone, Copy)]
pub(crate) struct NumberErasure {
    pub(crate) phone: Phone,
    /// The hash that replaces the number.
    pub(crate) hash: ForgottenNumber,
}

impl NumberErasure {
    /// Erases the number from the forgotten rows of an envelope, from their outcomes, and from the stored body of the
    /// answer. Removes the body if all rows are forgotten. Returns whether the envelope has forgotten rows.
    pub(crate) fn erase_from_envelope(self, envelope: &mut EnvelopeRecord, forgotten: &RoaringBitmap) -> bool {
        let EnvelopeRecord { envelope: _, kind: _, begun_at: _, rows, costs: _, settled, evidence } = envelope;
        let outcomes = settled.as_mut().map_or(&mut [][..], |(_, outcomes)| outcomes);
        let (mut has_forgotten, mut has_others) = (false, false);
        for (index, SentRow { row, to, digest, chain: _ }) in rows.iter_mut().enumerate() {
            if !forgotten.contains(row.get()) {
                has_others = true;
                continue;
            }
            has_forgotten = true;
            // The hash of a message reveals its number to anyone who tries all numbers.
            (*to, *digest) = (self.addressee(), [0; 8]);
            if let Some(outcome) = outcomes.get_mut(index) {
                self.erase_from_outcome(outcome);
            }
        }
        if has_forgotten {
            *evidence = evidence.take().filter(|_| has_others).map(|body| self.erase_from_text(&body));
        }
        has_forgotten
    }

    fn erase_from_outcome(self, outcome: &mut OperationOutcome) {
        match outcome {
            OperationOutcome::Accepted { answer, msg_id: _, parts: _ } => *answer = None,
            OperationOutcome::Rejected { error } => *error = self.erase_from_text(error),
            OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => {
                *reason = self.erase_from_text(reason).into()
            }
            OperationOutcome::Queued { request_id: _ } => {}
        }
    }

    /// Erases the number from the last answer about a row.
    pub(crate) fn erase_from_inquiry(self, record: &mut AskedRow) {
        let AskedRow { row: _, envelope: _, asked: _, negatives: _, first_at: _, last_at: _, negative_at: _, answer } =
            record;
        *answer = self.erase_from_text(answer);
    }

    /// Replaces the number in an opt-out with its hash, and erases it from the texts. Texts that a person wrote are erased
    /// completely.
    pub(crate) fn erase_from_opt_out(self, opt_out: &mut OptOut) {
        let OptOut { who, scope: _, reach: _, reason, source, at: _ } = opt_out;
        *who = self.addressee();
        if is_own_source(source) {
            (*reason, *source) = (self.erase_from_text(reason).into(), self.erase_from_text(source).into());
        } else {
            (*reason, *source) = (ERASED.into(), ERASED.into());
        }
    }

    /// Erases the reason for the removal of an opt-out, or only the number if this program wrote the reason.
    pub(crate) fn erase_from_opt_out_end(self, end: &mut OptOutEnd) {
        let OptOutEnd { at: _, by, why } = end;
        if is_own_source(by) || why == REPLACED_REASON {
            *why = self.erase_from_text(why);
        } else {
            *why = ERASED.to_owned();
        }
    }

    /// Erases the number from the text of a notification.
    pub(crate) fn erase_from_notification(self, notification: &mut NewNotification) {
        let NewNotification { occasion: _, target: _, notice } = notification;
        *notice = self.erase_from_text(notice);
    }

    /// The addressee that replaces the forgotten number.
    pub(crate) fn addressee(self) -> Addressee {
        Addressee::Forgotten(self.hash)
    }

    /// The text with the number replaced by a placeholder.
    pub(crate) fn erase_from_text(self, text: &str) -> String {
        self.phone.hide_in_text(text, FORGOTTEN).into_owned()
    }
}

/// Erases the recipient's replies and the gateway's texts from a receipt.
pub(crate) fn erase_texts_from_receipt(receipt: &mut Receipt) {
    let Receipt {
        source: _,
        status: _,
        channel: _,
        updated: _,
        msg_id: _,
        request_id: _,
        error,
        digit,
        duration: _,
        replies,
    } = receipt;
    (*error, *digit, *replies) = (None, None, Vec::new());
}

/// Erases the author's text from a decision.
pub(crate) fn erase_text_from_change(change: &mut RowChange) {
    match change {
        RowChange::AssumedSent { by: _, why }
        | RowChange::NotSent { by: _, why }
        | RowChange::SendAgain { by: _, why } => *why = None,
        RowChange::Found { status: _, msg_id: _, channel: _ }
        | RowChange::NotFound { asked: _ }
        | RowChange::Unresolved { asked: _ }
        | RowChange::Retry { by: _, order: _ } => {}
    }
}

/// The key for hashes of forgotten numbers. Each ledger has its own.
#[derive(Clone, PartialEq, Eq)]
pub struct NumberKey([u8; NumberKey::LENGTH]);

impl NumberKey {
    /// The number of bytes.
    pub const LENGTH: usize = 32;

    /// A key with these bytes.
    pub fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// The hash that replaces a number in the ledger when the number is forgotten.
    pub fn hash_number(&self, phone: Phone) -> ForgottenNumber {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(&phone.to_u64().to_be_bytes());
        let hash = mac.finalize().into_bytes();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        ForgottenNumber::from_hash(first)
    }
}

impl std::fmt::Debug for NumberKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NumberKey(…)")
    }
}

/// Selects a set of numbers.
#[derive(Clone, Copy, Debug)]
pub enum NumberFilter<'a> {
    /// The numbers with a message in one of these runs.
    Sent(&'a [RunId]),
    /// The numbers that caps suppress now.
    Capped(CapQuery<'a>),
    /// The numbers that opted out by replies to the run with this name, or because the gateway rejected its messages.
    /// Opt-outs that ended do not count.
    OptedOut(&'a str),
    /// The numbers that `stop --for-good` cancelled in this run and that its list no longer contains, because they were
    /// forgotten or the run was purged.
    Cancelled(RunId),
    /// The numbers of these rows of a run, as its envelopes record them.
    Rows(RunId, &'a RoaringBitmap),
}

/// A set of numbers, some of them forgotten.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberSet {
    /// The numbers, and the hashes of forgotten numbers.
    members: RoaringTreemap,
    /// The key of the hashes. `None` if there are none.
    key: Option<NumberKey>,
}

impl NumberSet {
    /// A set of numbers and of hashes that were made with this key. Without hashes, the key is dropped.
    pub fn new(members: RoaringTreemap, key: Option<NumberKey>) -> Self {
        let has_hashes = members.max().is_some_and(|largest| largest >= ForgottenNumber::MIN);
        Self { members, key: key.filter(|_| has_hashes) }
    }

    /// Whether the set contains a number, forgotten or not.
    pub fn contains(&self, phone: Phone) -> bool {
        let to_hash = |key: &NumberKey| Addressee::Forgotten(key.hash_number(phone)).to_u64();
        let has_hash = |key: &NumberKey| self.members.contains(to_hash(key));
        self.members.contains(phone.to_u64()) || self.key.as_ref().is_some_and(has_hash)
    }

    /// The numbers that are not forgotten, in ascending order.
    pub fn phones(&self) -> impl Iterator<Item = Phone> {
        self.members.iter().take_while(|member| *member < ForgottenNumber::MIN).filter_map(Phone::new)
    }

    /// The number of members.
    pub fn len(&self) -> u64 {
        self.members.len()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl BitOrAssign for NumberSet {
    fn bitor_assign(&mut self, other: Self) {
        self.members |= other.members;
        // All sets of a ledger have the same key.
        self.key = self.key.take().or(other.key);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{OptOutReach, OptOutScope};

    fn phone(last: u64) -> Phone {
        Phone::new(380_501_234_560 + last).unwrap()
    }

    #[test]
    fn texts_of_a_person_are_erased_but_not_those_of_this_program() {
        let erasure = NumberErasure { phone: phone(1), hash: NumberKey::new([7; 32]).hash_number(phone(1)) };
        let number = phone(1).to_u64();
        let reasons = |source: &str, reason: &str| {
            let (scope, reach) = (OptOutScope::Marketing, OptOutReach::AllGateways);
            let (who, at) = (phone(1).into(), Timestamp::UNIX_EPOCH);
            let mut opt_out = OptOut { who, scope, reach, reason: reason.into(), source: source.into(), at };
            let mut end = OptOutEnd { at, by: source.to_owned(), why: reason.to_owned() };
            erasure.erase_from_opt_out(&mut opt_out);
            erasure.erase_from_opt_out_end(&mut end);
            [opt_out.reason.to_string(), end.why]
        };
        assert_eq!(reasons("olena", "answered Vira's call"), ["erased", "erased"]);
        assert_eq!(reasons("reply to sale@1", "answered STOP"), ["answered STOP", "answered STOP"]);
        let rejected = format!("{number} is blocked");
        let erased = "a forgotten number is blocked";
        assert_eq!(reasons("reply to sale@1", &rejected), [erased, erased]);
    }

    #[test]
    fn forgotten_number_is_found_only_with_its_key() {
        let (key, other) = (NumberKey::new([7; 32]), NumberKey::new([8; 32]));
        let hashed = Addressee::Forgotten(key.hash_number(phone(1)));
        let members = [hashed.to_u64(), phone(2).to_u64()].into_iter().collect::<RoaringTreemap>();
        let set = NumberSet::new(members.clone(), Some(key.clone()));
        assert_eq!([1, 2, 3].map(|last| set.contains(phone(last))), [true, true, false]);
        assert!(set.members.contains(hashed.to_u64()));
        assert!(!NumberSet::new(members, Some(other)).contains(phone(1)));
        let mut plain = NumberSet::new([phone(3).to_u64()].into_iter().collect(), Some(key));
        assert_eq!(plain.key, None, "without forgotten numbers, there is no key");
        plain |= set;
        assert_eq!((plain.len(), plain.contains(phone(1)), plain.contains(phone(3))), (3, true, true));
    }
}
