//! Zones of the form `Etc/GMT+2`: what time it is there, so that a wrong sign is seen.

use jiff::Timestamp;

use super::rows::describe_first;
use crate::calendar::InvertedZone;
use crate::check::Survey;
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::Campaign;

pub(super) static RULE: Rule = Rule::note(
    "inverted-zone",
    RuleText {
        cause: "The sign in a time zone name is inverted. `Etc/GMT+2` is two hours behind UTC, so messages could be \
                sent hours too early or too late.",
        example: &["timezone: Etc/GMT+2"],
        fix: "compare the time in the finding with the actual local time; if they differ, use a zone named after a place, such as \
              `Europe/Kyiv`",
    },
);

/// The local time in each such zone that the campaign or a row to be sent to names.
#[must_use]
pub fn check_inverted_zones(campaign: &Campaign, survey: &Survey, now: Timestamp) -> Vec<Finding> {
    let own = campaign.brief.timezone.as_deref().and_then(InvertedZone::from_name);
    let own = own.map(|zone| inverted_zone_finding(&zone, "", now).at(campaign.places.locate_key("timezone")));
    let column = campaign.zone_column().unwrap_or_default();
    let of_rows = survey.zones.inverted.iter().map(|(zone, rows)| {
        inverted_zone_finding(zone, &format!(" in the column `{column}` of {}", describe_first(rows)), now)
    });
    own.into_iter().chain(of_rows).collect()
}

fn inverted_zone_finding(zone: &InvertedZone, place: &str, now: Timestamp) -> Finding {
    let (name, offset, time) = (zone.name(), zone.format_offset(), zone.format_local_time(now));
    let message = format!("`{name}`{place} is {offset}, where it is {time} now");
    let other = zone
        .with_opposite_sign()
        .map(|other| format!("write `{}`, which is {}, or ", other.name(), other.format_offset()));
    let help = format!(
        "if that is not the local time, {}write a zone named after a place, such as `Europe/Kyiv`: the sign in \
            `{name}` is inverted",
        other.unwrap_or_default()
    );
    Finding::new(&RULE, message).help(help)
}
