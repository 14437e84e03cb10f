//! More operations in a request than the profile allows.

use crate::finding::{Finding, Rule};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "batch-limit",
    "The gateway refuses a request with more messages than the profile says.",
    "Lower `delivery.batch`.",
);

pub(super) fn judge(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (batch, limit) = (campaign.delivery.batch, profile.batch_limit);
    let place = campaign.places.of_key("delivery.batch").filter(|_| batch > limit)?;
    let message = format!("`batch` is {batch}, but `{}` takes at most {limit}", profile.name);
    Some(Finding::new(&RULE, message).help(format!("write `batch: {limit}` or less")).at(place))
}
