//! Less money than the messages may cost.

use crate::domain::Amount;
use crate::finding::{Finding, Rule};
use crate::gateway::Balance;

pub(super) static RULE: Rule = Rule::error(
    "balance-too-low",
    "A run whose money ends stops in its middle.",
    "Top the account up, or send to fewer with `run --limit N`.",
);

/// Judges the balance by the most that the messages can cost.
pub(in crate::check) fn judge(balance: &Balance, cost: Amount) -> Option<Finding> {
    let Balance { amount, currency } = balance;
    if *amount >= cost {
        return None;
    }
    let missing = cost.minus(*amount);
    let shown = |amount: Amount| format!("{amount} {currency}").trim_end().to_owned();
    let (amount, cost, missing) = (shown(*amount), shown(cost), shown(missing));
    let message = format!("the balance is {amount}, but this can cost up to {cost}: {missing} are missing");
    Some(Finding::new(&RULE, message).help("top the account up, or send to fewer with `run --limit N`"))
}
