//! An endpoint that the profile has no address of.

use crate::domain::Endpoint;
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "missing-endpoint",
    RuleText {
        cause: "The profile has no asynchronous endpoint. `endpoint: async` needs a separate address.",
        example: &["endpoint: async                             # the profile has no `async_url`"],
        fix: "add `async_url` to the profile, or write `endpoint: sync`",
    },
);

pub(super) fn check_endpoint(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let missing = campaign.brief.endpoint == Endpoint::Async && profile.async_url.is_none();
    let place = campaign.places.locate_key("endpoint").filter(|_| missing)?;
    let finding = Finding::new(&RULE, format!("the profile `{}` has no `async_url`", profile.name));
    let name = &profile.name;
    let help = format!("write `endpoint: sync`, or add `async_url: https://…` to `{name}` in gateways.yaml");
    Some(finding.help(help).at(place))
}
