//! Whether an intent may be recorded, and what it takes from the account.

use crate::ledger::{Allowance, Permit, Run};

/// Why no intent may be recorded for a run; nothing if one may. `leased` tells whether whoever asks has the rows.
pub(in crate::ledger) fn refusal(run: &Run, leased: bool) -> Option<Permit> {
    match leased {
        false => Some(Permit::Lost),
        true => run.stop_requested.then_some(Permit::StopRequested),
    }
}

/// Whether an envelope takes from the account's pace: not where neither a rate nor a wish of the gateway, until
/// `not_before`, could have it wait.
pub(in crate::ledger) fn takes_slot(account: &Allowance, not_before: i64, now: i64) -> bool {
    account.rate.is_some() || not_before > now
}
