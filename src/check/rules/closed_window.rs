//! A window that never opens, or whose clocks nobody can tell.

use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "closed-window",
    RuleText {
        cause: "The sending windows never overlap. Messages are sent only while both the campaign's \
                window and the profile's `policy.window` are open.",
        example: &[
            "timezone: Europe/Kyiv",
            "delivery: { window: 20:00-22:00 }",
            "gateways.yaml: production: { policy: { window: 09:00-18:00 } }",
        ],
        fix: "correct `delivery.window`; a wider window also sends in hours that are excluded now",
    },
);

/// Whether the windows of a campaign and of its profile are ever open together, and on whose clocks.
pub(super) fn check_window(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (own, policy) = (campaign.window.as_ref(), profile.window.as_ref());
    let at_its_key = |finding: Finding| match campaign.places.locate_key("delivery.window") {
        Some(place) => finding.at(place),
        None => finding,
    };
    if policy.is_some() && campaign.brief.timezone.is_none() {
        let message = format!("`policy.window` in the profile `{}` needs the campaign's `timezone`", profile.name);
        let finding = Finding::new(&RULE, message);
        return Some(finding.help("add the campaign's time zone, for example `timezone: Europe/Kyiv`"));
    }
    if own.zip(policy).is_some_and(|(own, policy)| own.zone != policy.zone) {
        // It depends on each recipient whether they are open together.
        return None;
    }
    let (windows, began) = campaign.home_windows(Some(profile));
    if windows.next_open_from(began).is_some() {
        return None;
    }
    let told: Vec<String> = campaign.effective_windows(Some(profile)).map(|window| format!("`{window}`")).collect();
    let message = match told.as_slice() {
        [one] => format!("no messages can be sent: the window {one} does not open within a year"),
        all => format!(
            "no messages can be sent: the windows {} are never open at the same time in the next year",
            all.join(" and ")
        ),
    };
    Some(at_its_key(Finding::new(&RULE, message).help(
        "correct the hours, days and dates; if you widen the window, messages are also sent in hours that are \
                 excluded now",
    )))
}
