//! Webhooks are wanted, and the profile does not say where they are taken.

use crate::finding::{Finding, Rule};
use crate::manifest::{Campaign, Profile, ReceiptsBy};

pub(super) static RULE: Rule = Rule::error(
    "missing-hook",
    "`receipts: webhook` needs an address at which the gateway finds us.",
    "Add `hook` to the profile, or write `receipts: poll`.",
);

pub(super) fn judge(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    if campaign.receipts != ReceiptsBy::Webhook || profile.hook.is_some() {
        return None;
    }
    let message = format!("receipts are to come by webhook, and the profile `{}` has no `hook`", profile.name);
    Some(Finding::new(&RULE, message).at(campaign.places.of_key("receipts")?))
}
