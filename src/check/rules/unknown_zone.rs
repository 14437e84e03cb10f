//! Cells of the column of zones that name none.

use super::rows::describe_first;
use crate::audience::ListHeader;
use crate::check::{RecipientZones, Survey};
use crate::finding::{Finding, Rule, RuleText, rules};
use crate::manifest::suggest_zone;

pub(super) static RULE: Rule = Rule::warning(
    "unknown-zone",
    RuleText {
        cause: "A cell does not contain a valid time zone. The campaign's `timezone` applies instead, so the recipient might get \
                messages at night.",
        example: &[
            "timezone: Europe/Kyiv",
            "delivery: { window: { hours: \"09:00-20:00\", zone: code } }     # the column has no time zones",
        ],
        fix: "use IANA time zone names such as `Europe/Kyiv` in this column",
    },
);

/// What is said where the column of zones does not exist.
#[must_use]
pub fn missing_zone_column(name: &str, header: &ListHeader) -> Finding {
    let headers: Vec<String> = header.headers().iter().map(|header| format!("`{header}`")).collect();
    let message = format!("the list has no column `{name}`, but `delivery.window.zone` uses it");
    Finding::new(&rules::WINDOW, message)
        .help(format!("write `campaign`, `recipient`, or the name of a column: {}", headers.join(", ")))
}

/// The rows to be sent to that name no zone, with examples of what they have instead.
#[must_use]
pub fn check_unknown_zones(survey: &Survey) -> Option<Finding> {
    let RecipientZones { unknown, examples, .. } = &survey.zones;
    let cell = |cell: &String| if cell.is_empty() { "empty".to_owned() } else { format!("`{cell}`") };
    let examples = examples.iter().map(cell).collect::<Vec<_>>().join(", ");
    // The only example needs no name before its advice.
    let advice = |cell: &&String| match survey.zones.examples.len() {
        1 => suggest_zone(cell),
        _ => format!("`{cell}`: {}", suggest_zone(cell)),
    };
    let advice: Vec<String> =
        survey.zones.examples.iter().filter(|cell| !cell.is_empty()).map(|cell| advice(&cell)).collect();
    (!unknown.is_empty()).then(|| {
        let rows = describe_first(unknown);
        let message = format!(
            "the time zone is missing or not valid in {rows} ({examples}); the campaign's `timezone` applies instead"
        );
        let finding = Finding::new(&RULE, message);
        if advice.is_empty() { finding } else { finding.help(advice.join("; ")) }
    })
}
