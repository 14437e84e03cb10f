//! More operations in a request than the profile allows.

use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "batch-limit",
    RuleText {
        cause: "A request has more messages than allowed. The gateway rejects requests larger than the profile's \
                `batch_limit`.",
        example: &["delivery: { batch: 500 }                    # the profile allows 100"],
        fix: "lower `delivery.batch` to the limit shown in the finding",
    },
);

pub(super) fn check_batch_limit(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (batch, limit) = (campaign.delivery.batch, profile.batch_limit);
    let place = campaign.places.locate_key("delivery.batch").filter(|_| batch > limit)?;
    let message = format!("`batch` is {batch}, but the profile `{}` allows at most {limit}", profile.name);
    Some(Finding::new(&RULE, message).help(format!("write `batch: {limit}` or less")).at(place))
}
