//! A sender name that the account does not have, or may not use.

use crate::check::online::{AccountTerms, Signature};
use crate::domain::Channel;
use crate::finding::{Finding, Rule, RuleText, did_you_mean};
use crate::gateway::SenderName;

/// The account does not have a sender name, or may not use it.
pub static RULE: Rule = Rule::error(
    "sender-unknown",
    RuleText {
        cause: "The account cannot use this sender name. The gateway rejects messages under unknown or unverified \
                names.",
        example: &["channels: [{ sms: { signature: OlenaKo, message: Hi } }]     # the account has OlenaCo"],
        fix: "use a name listed by `gateway senders`, or have the name verified",
    },
);

/// The platform's word for a sender name that is not verified yet; the contract leaves the set open (2.5).
const UNVERIFIED: &str = "New";

/// What the list of sender names says against a signature.
pub(in crate::check) fn check_sender_name(
    signature: &Signature,
    senders: &[&SenderName],
    account: AccountTerms<'_>,
) -> Option<Finding> {
    // An account that lists no name may be one that needs none: it proves nothing.
    if senders.is_empty() {
        return None;
    }
    let Signature { channel, name, place } = signature;
    // The list may hold names for SMS alone, so it proves nothing against another channel.
    let new = |message: String| match channel {
        Channel::Sms => Finding::new(&RULE, message),
        _ => Finding::new(&RULE, message).as_warning(),
    };
    let known = || senders.iter().map(|sender| sender.name.as_str());
    let finding = match senders.iter().find(|sender| sender.name == *name).map(|sender| sender.status.as_str()) {
        Some(status) if account.verified.iter().any(|word| word.eq_ignore_ascii_case(status)) => return None,
        Some(status) if status.eq_ignore_ascii_case(UNVERIFIED) => new(format!(
            "the sender name `{name}` is not verified yet: its status is `{status}`"
        ))
        .help(format!("wait until the gateway has verified it, or use another name listed by `{}`", account.senders)),
        Some(status) => Finding::new(
            &RULE,
            format!("the sender name `{name}` has the status `{status}`, which might mean that it cannot be used"),
        )
        .as_warning()
        .help("ask the gateway's support team what this status means"),
        None => new(format!("the account has no sender name `{name}`")).help(match did_you_mean(name, known()) {
            Some(meant) if meant.eq_ignore_ascii_case(name) => {
                format!("did you mean `{meant}`? names are case-sensitive")
            }
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("run `{}` to list the sender names of the account", account.senders),
        }),
    };
    Some(finding.at(place.clone()))
}
