//! Cells of the column of zones that name none.

use super::rows::first_of;
use crate::audience::Header;
use crate::check::{Survey, Zones};
use crate::finding::{Finding, Rule, rules};
use crate::manifest::zone_advice;

pub(super) static RULE: Rule = Rule::warning(
    "unknown-zone",
    "Whose cell names no time zone gets messages by the clocks of the campaign, which may be night for them.",
    "Write names of the IANA time zone database in the column, such as `Europe/Kyiv`.",
);

/// What is said where the column of zones does not exist.
#[must_use]
pub fn zone_column(name: &str, header: &Header) -> Finding {
    let headers: Vec<String> = header.headers().iter().map(|header| format!("`{header}`")).collect();
    let message = format!("the list has no column `{name}`, which `delivery.window.zone` names");
    Finding::new(&rules::WINDOW, message)
        .help(format!("write `campaign`, `recipient`, or one of its columns: {}", headers.join(", ")))
}

/// The rows to be sent to that name no zone, with examples of what they have instead.
#[must_use]
pub fn unknown_zones(survey: &Survey) -> Option<Finding> {
    let Zones { unknown, examples, .. } = &survey.zones;
    let cell = |cell: &String| if cell.is_empty() { "nothing".to_owned() } else { format!("`{cell}`") };
    let examples = examples.iter().map(cell).collect::<Vec<_>>().join(", ");
    // The only example needs no name before its advice.
    let advice = |cell: &&String| match survey.zones.examples.len() {
        1 => zone_advice(cell),
        _ => format!("`{cell}`: {}", zone_advice(cell)),
    };
    let advice: Vec<String> =
        survey.zones.examples.iter().filter(|cell| !cell.is_empty()).map(|cell| advice(&cell)).collect();
    (!unknown.is_empty()).then(|| {
        let rows = first_of(unknown);
        let message = format!("no time zone stands in {rows} ({examples}); the campaign's clocks hold for them");
        let finding = Finding::new(&RULE, message);
        if advice.is_empty() { finding } else { finding.help(advice.join("; ")) }
    })
}
