//! Webhooks are wanted, and the profile does not say where they are taken.

use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile, ReceiptMode};

pub(super) static RULE: Rule = Rule::error(
    "missing-hook",
    RuleText {
        cause: "The profile has no webhook endpoint. With `receipts: webhook`, the gateway needs an address for \
                delivery receipts.",
        example: &["receipts: webhook                           # the profile has no `hook`"],
        fix: "add `hook` to the profile, or write `receipts: poll`",
    },
);

pub(super) fn check_webhook_address(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if campaign.receipts != ReceiptMode::Webhook || profile.hook.is_some() {
        return None;
    }
    let message = format!("`receipts: webhook` needs a `hook`, which the profile `{}` does not have", profile.name);
    Some(
        Finding::new(&RULE, message).help("add `hook` to the profile, or write `receipts: poll`").at(campaign
            .places
            .locate_key(
            "receipts",
        )?),
    )
}
