//! Whether an intent may be recorded, and what it takes from the account.

use crate::ledger::{Allowance, Owner, Permit};

/// Why an intent of this owner may not be recorded for a run that `has` an owner; nothing if it may.
pub(in crate::ledger) fn refusal(has: Option<Owner>, stop_requested: bool, by: Owner) -> Option<Permit> {
    match has == Some(by) {
        false => Some(Permit::Lost),
        true => stop_requested.then_some(Permit::StopRequested),
    }
}

/// Whether an envelope takes from the account's pace: not where neither a rate nor a wish of the gateway, until
/// `not_before`, could have it wait.
pub(in crate::ledger) fn takes_slot(account: &Allowance, not_before: i64, now: i64) -> bool {
    account.rate.is_some() || not_before > now
}
