//! Whether an intent may be recorded, and what it takes from the account.

use jiff::Timestamp;

use crate::ledger::{AccountRateLimit, Allowance, Intent, Permit, Run};

/// Why no intent may be recorded for a run; nothing if one may. `leased` tells whether whoever asks has the rows.
pub(in crate::ledger) fn find_refusal(run: &Run, leased: bool) -> Option<Permit> {
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

/// When an envelope leaves that takes its slot at `now`.
pub(in crate::ledger) fn departure_time(intent: &Intent, pace: AccountRateLimit, now: i64) -> Timestamp {
    let account = &intent.account;
    let count = u32::try_from(intent.rows.len()).unwrap_or(u32::MAX);
    let waits = takes_slot(account, pace.not_before, now);
    let wait = if waits { pace.reserve(now, count, account.rate).wait.time } else { std::time::Duration::ZERO };
    let at = now.saturating_add(i64::try_from(wait.as_micros()).unwrap_or(i64::MAX));
    Timestamp::from_microsecond(at).unwrap_or(Timestamp::MAX)
}

/// Whether an envelope would leave too late that leaves then.
pub(in crate::ledger) fn check_deadline(intent: &Intent, leaves: Timestamp) -> Option<Permit> {
    (leaves >= intent.leave_by?).then_some(Permit::TooLate(leaves))
}
