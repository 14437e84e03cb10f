//! What the gateway did not tell of the account.

use crate::check::online::AccountTerms;
use crate::finding::{Finding, Rule};
use crate::gateway::InquiryFailure;

/// The gateway did not tell something of the account.
pub static RULE: Rule = Rule::warning(
    "online-unknown",
    "A gateway that tells nothing of the account proves nothing, so this refuses nothing.",
    "Ask again, or name the gateway that the campaign is for.",
);

/// What is not known, and why.
pub(in crate::check) fn judge(what: &str, unanswered: &InquiryFailure, account: AccountTerms<'_>) -> Finding {
    let finding = Finding::new(&RULE, format!("{what} not known: {}", unanswered.reason));
    finding.help(format!("this refuses nothing; `{}` and `{}` ask again", account.balance, account.senders))
}
