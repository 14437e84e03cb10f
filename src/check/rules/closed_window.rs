//! A window that never opens, or whose clocks nobody can tell.

use crate::finding::{Finding, Rule};
use crate::manifest::{Campaign, Profile};

pub(super) static RULE: Rule = Rule::error(
    "closed-window",
    "Messages leave where the campaign's window and the profile's are open together, on clocks that are known.",
    "Correct `delivery.window`, and write the campaign's `timezone`.",
);

/// Whether the windows of a campaign and of its profile are ever open together, and on whose clocks.
pub(super) fn judge(campaign: &Campaign, profile: &Profile) -> Option<Finding> {
    let (own, policy) = (campaign.window.as_ref(), profile.window.as_ref());
    let at_its_key = |finding: Finding| match campaign.places.of_key("delivery.window") {
        Some(place) => finding.at(place),
        None => finding,
    };
    if policy.is_some() && campaign.brief.timezone.is_none() {
        let message =
            format!("`policy.window` of `{}` needs the campaign's `timezone`: whose clocks it is on", profile.name);
        let finding = Finding::new(&RULE, message);
        return Some(finding.help("add `timezone: Europe/Kyiv`, or whatever place is meant"));
    }
    if own.zip(policy).is_some_and(|(own, policy)| own.zone != policy.zone) {
        // It depends on each recipient whether they are open together.
        return None;
    }
    let (windows, began) = campaign.windows_at_home(Some(profile));
    if windows.open_from(began).is_some() {
        return None;
    }
    let told: Vec<String> = campaign.windows(Some(profile)).map(|window| format!("`{window}`")).collect();
    let message = format!(
        "nothing could ever leave: {} {} not open for a year",
        told.join(" and "),
        match told.len() {
            1 => "is",
            _ => "together are",
        }
    );
    Some(at_its_key(
        Finding::new(&RULE, message)
            .help("correct the hours, days and dates; a wider window also sends at hours that were excluded before"),
    ))
}
