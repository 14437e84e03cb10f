//! What somebody is told has to be a text that can be filled.

use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile};
use crate::message::{Notice, fill_notice};

pub(super) static RULE: Rule = Rule::error(
    "notify-text",
    RuleText {
        cause: "A notification template is not valid. The notification would fail when it is needed.",
        example: &["notify: { command: [notify-send, \"{{ sumary }}\"] }"],
        fix: "use only the names `text`, `occasion`, `campaign`, `run`, `gateway`, `rows`, `counts`, `why`, \
              `results`, `at` and `count`",
    },
);

/// The first text of `notify` that cannot be filled.
#[must_use]
pub fn check_campaign_notices(campaign: &Campaign) -> Option<Finding> {
    let way = &campaign.notify.as_ref()?.method;
    let wrong = way.templates().find_map(|text| fill_notice(text, &Notice::sample(), 1).err())?;
    let place = ["notify.body", "notify.command"].into_iter().find_map(|key| campaign.places.locate_key(key));
    let finding = Finding::new(&RULE, format!("the `notify` template cannot be filled in: {wrong}"));
    Some(match place {
        Some(place) => finding.at(place),
        None => finding,
    })
}

/// The first text of a profile's `policy.notify` that cannot be filled.
pub(super) fn check_profile_notices(_: &Campaign, profile: &Profile) -> Option<Finding> {
    let way = &profile.notify.as_ref()?.method;
    let wrong = way.templates().find_map(|text| fill_notice(text, &Notice::sample(), 1).err())?;
    let name = &profile.name;
    Some(Finding::new(
        &RULE,
        format!("the `policy.notify` template in the profile `{name}` cannot be filled in: {wrong}"),
    ))
}
