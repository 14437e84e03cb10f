//! Whether an intent may be recorded, and what it takes from the account.

use crate::ledger::{Allowance, Lease, Permit, Run};

/// Why no intent may be recorded for a run by this right; nothing if one may.
pub(in crate::ledger) fn refusal(run: &Run, lease: Lease) -> Option<Permit> {
    match run.is_leased(lease) {
        false => Some(Permit::Lost),
        true => run.stop_requested.then_some(Permit::StopRequested),
    }
}

/// Whether an envelope takes from the account's pace: not where neither a rate nor a wish of the gateway, until
/// `not_before`, could have it wait.
pub(in crate::ledger) fn takes_slot(account: &Allowance, not_before: i64, now: i64) -> bool {
    account.rate.is_some() || not_before > now
}
