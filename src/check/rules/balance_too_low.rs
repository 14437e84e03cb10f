//! Less money than the messages may cost.

use crate::domain::Amount;
use crate::finding::{Finding, Rule, RuleText};
use crate::gateway::Balance;

pub(super) static RULE: Rule = Rule::error(
    "balance-too-low",
    RuleText {
        cause: "The account balance might be too low. If it runs out, the run stops before all messages are sent.",
        example: &["the balance is 120.00 UAH, and the messages can cost up to 200.00 UAH"],
        fix: "top up the account, or send to fewer recipients with `run --limit N`",
    },
);

/// Judges the balance by the most that the messages can cost.
pub(in crate::check) fn check_balance(balance: &Balance, cost: Amount) -> Option<Finding> {
    let Balance { amount, currency } = balance;
    if *amount >= cost {
        return None;
    }
    let missing = cost.saturating_sub(*amount);
    let shown = |amount: Amount| format!("{amount} {currency}").trim_end().to_owned();
    let (amount, cost, missing) = (shown(*amount), shown(cost), shown(missing));
    let message = format!("the balance is {amount}, but the messages can cost up to {cost}, which is {missing} more");
    Some(Finding::new(&RULE, message).help("top up the account, or send to fewer recipients with `run --limit N`"))
}
