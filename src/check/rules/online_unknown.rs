//! What the gateway did not tell of the account.

use crate::check::online::AccountTerms;
use crate::finding::{Finding, Rule, RuleText};
use crate::gateway::InquiryFailure;

/// The gateway did not tell something of the account.
pub static RULE: Rule = Rule::warning(
    "online-unknown",
    RuleText {
        cause: "The gateway did not return the account data. Runs are not affected.",
        example: &["`check --online` cannot reach the gateway"],
        fix: "check again later, or select the right profile with `--gateway NAME`",
    },
);

/// What is not known, and why.
pub(in crate::check) fn online_unknown_finding(
    what: &str,
    unanswered: &InquiryFailure,
    account: AccountTerms<'_>,
) -> Finding {
    let finding = Finding::new(&RULE, format!("{what} unknown: {}", unanswered.reason));
    finding.help(format!(
        "run `{}` and `{}` to try again; missing account data does not stop a run",
        account.balance, account.senders
    ))
}
