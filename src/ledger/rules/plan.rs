//! How long a plan is kept.

use jiff::{SignedDuration, Timestamp};

use crate::ledger::Plan;

/// The moment from which on plans were made that are kept now.
pub(in crate::ledger) fn oldest_kept_plan_time(now: Timestamp) -> Timestamp {
    let kept = SignedDuration::from_hours(24 * i64::from(Plan::KEPT_DAYS));
    now.checked_sub(kept).unwrap_or(Timestamp::MIN)
}
