//! Recipients that a survey skips because of the ledger, and the reasons. Pure.

use roaring::RoaringTreemap;

use super::sent_rows::SentRows;
use crate::domain::{Phone, Row};
use crate::ledger::{CANCELLED_EARLIER, CAPPED, NumberSet, OPTED_OUT};

/// The reason if the number already has a message.
pub const ALREADY_SENT: &str = "already sent";
/// The reason if the number has a message and, with `duplicates: allow`, it is unknown for which row.
pub const MIGHT_BE_SENT: &str = "might be sent already";
/// The reason if the number is in an earlier row.
pub const DUPLICATE: &str = "duplicate number";

/// The reason if an earlier message excludes the recipient.
pub const EXCLUDED: &str = "excluded";

/// The reason if the recipient is in the control group.
pub const HOLDOUT: &str = "holdout";

/// The recipients that a survey skips, by number.
#[derive(Clone, Debug, Default)]
pub struct SurveyExclusions {
    /// They already have a message of this campaign and edition.
    pub already_sent: NumberSet,
    /// Those of their rows that have it or were cancelled, with `duplicates: allow`. `None` if all of them do.
    pub rows: Option<SentRows>,
    /// They opted out of its messages.
    pub opted_out: NumberSet,
    /// `stop --for-good` cancelled them in an earlier run of this edition.
    pub cancelled: NumberSet,
    /// They reached the cap of recent messages.
    pub capped: NumberSet,
    /// An earlier message excludes them.
    pub excluded: RoaringTreemap,
}

impl SurveyExclusions {
    /// The first reason that applies to a row with this number.
    #[must_use]
    pub fn find_reason(&self, row: Row, phone: Phone) -> Option<&'static str> {
        let has_message = || match &self.rows {
            None => Some(ALREADY_SENT),
            Some(rows) => rows.find_reason(row),
        };
        let is_cancelled = || self.rows.as_ref().is_none_or(|rows| rows.is_cancelled(row));
        match self.already_sent.contains(phone).then(has_message).flatten() {
            Some(reason) => Some(reason),
            None if self.opted_out.contains(phone) => Some(OPTED_OUT),
            None if self.cancelled.contains(phone) && is_cancelled() => Some(CANCELLED_EARLIER),
            None if self.excluded.contains(phone.to_u64()) => Some(EXCLUDED),
            None if self.capped.contains(phone) => Some(CAPPED),
            None => None,
        }
    }
}
