//! Whom a survey skips because of what the ledger knows, and the reasons for it. Pure.

use roaring::RoaringTreemap;

use super::sent_rows::SentRows;
use crate::domain::{Phone, Row};
use crate::ledger::{CANCELLED_EARLIER, CAPPED, NumberSet, OPTED_OUT};

/// Why a row is skipped whose number has a message already.
pub const ALREADY_SENT: &str = "already sent";
/// Why a row is skipped if its number has a message, and a list with `duplicates: allow` does not show of which row.
pub const MIGHT_BE_SENT: &str = "might be sent already";
/// Why a row is skipped whose number stands in an earlier row.
pub const DUPLICATE: &str = "duplicate number";

/// Why a row is skipped whose person is left out because of an earlier message.
pub const EXCLUDED: &str = "excluded";

/// Why a row is skipped whose person gets nothing, to compare with.
pub const HOLDOUT: &str = "holdout";

/// Whom a survey leaves out, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Excluded {
    /// They have a message of this campaign and edition already.
    pub already: NumberSet,
    /// Which of their rows have it or were cancelled, with `duplicates: allow`; nothing if all of them do.
    pub rows: Option<SentRows>,
    /// They opted out of what it sends.
    pub opted_out: NumberSet,
    /// `stop --for-good` cancelled them in an earlier run of this edition.
    pub cancelled: NumberSet,
    /// They got as many messages lately as they may.
    pub capped: NumberSet,
    /// They are left out because of an earlier message.
    pub excluded: RoaringTreemap,
}

impl Excluded {
    /// Why a row with this number is skipped, by the first reason that applies.
    #[must_use]
    pub fn reason(&self, row: Row, phone: Phone) -> Option<&'static str> {
        let has_message = || match &self.rows {
            None => Some(ALREADY_SENT),
            Some(rows) => rows.reason(row),
        };
        let is_cancelled = || self.rows.as_ref().is_none_or(|rows| rows.is_cancelled(row));
        match self.already.contains(phone).then(has_message).flatten() {
            Some(reason) => Some(reason),
            None if self.opted_out.contains(phone) => Some(OPTED_OUT),
            None if self.cancelled.contains(phone) && is_cancelled() => Some(CANCELLED_EARLIER),
            None if self.excluded.contains(phone.get()) => Some(EXCLUDED),
            None if self.capped.contains(phone) => Some(CAPPED),
            None => None,
        }
    }
}
