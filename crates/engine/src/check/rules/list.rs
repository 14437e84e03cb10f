//! Rules about the list file: format, embedded rows, unused columns and time zones.

use jiff::Timestamp;

use super::skipped_rows::describe_first;
use crate::check::{RecipientZones, Survey};
use campaign_content::audience::ListHeader;
use campaign_core::calendar::InvertedZone;
use campaign_core::define_rules;
use campaign_core::domain::OperationKind;
use campaign_core::finding::{Finding, rules};
use campaign_manifest::{Campaign, RecipientSource, suggest_zone};

define_rules! {
    RECIPIENTS:
    note LIST_FORM = "list-form" {
        cause: "The list format was detected automatically. If the detected format is wrong, names are garbled.",
        example: ["`list.csv` is read as follows: encoding Windows-1251, delimiter semicolon"],
        fix: "check a name in `campaign preview`; if it is garbled, set `encoding`, `delimiter` or `sheet` under \
              `recipients`",
    }
    warning ROW_WITHIN = "row-within" {
        cause: "A quoted cell seems to contain another row. A misplaced quote might hide a recipient, who would not \
                get a message.",
        example: ["list.csv: phone,first_name", "          380501234567,\"Olena", "          380671234567,Taras\""],
        fix: "open the list in a spreadsheet; if the cell contains the next row, correct the quotes",
    }
    note UNUSED_COLUMN = "unused-column" {
        cause: "A column in the list is not used. You might have forgotten to insert it into a message.",
        example: ["message: \"Hi, {{ first_name }}!\"             # the column `code` is not used"],
        fix: "use the column in a message, or ignore this note; the results contain the column either way",
    }
    warning UNKNOWN_ZONE = "unknown-zone" {
        cause: "A cell does not contain a valid time zone. The campaign's `timezone` applies instead, so the recipient \
                might get messages at night.",
        example: [
            "timezone: Europe/Kyiv",
            "delivery: { window: { hours: \"09:00-20:00\", zone: code } }     # the column has no time zones",
        ],
        fix: "use IANA time zone names such as `Europe/Kyiv` in this column",
    }
    note INVERTED_ZONE = "inverted-zone" {
        cause: "The sign in a time zone name is inverted. `Etc/GMT+2` is two hours behind UTC, so messages could be \
                sent hours too early or too late.",
        example: ["timezone: Etc/GMT+2"],
        fix: "compare the time in the finding with the actual local time; if they differ, use a zone named after a \
              place, such as `Europe/Kyiv`",
    }
}

/// A note on how the list is read. `format` describes this, for example as `encoding Windows-1251`.
pub fn list_format_note(list: &RecipientSource, format: &str) -> Finding {
    Finding::new(&LIST_FORM, format!("`{}` is read as follows: {format}", list))
}

/// A warning about rows with a cell that seems to contain another row.
pub fn check_embedded_rows(survey: &Survey) -> Option<Finding> {
    let rows = Some(&survey.embedded_rows).filter(|rows| !rows.is_empty())?;
    let message = format!("a cell with several lines seems to contain another row: {}", describe_first(rows));
    let help =
        "if a recipient is missing from the list, correct the quotes; if the cell is just text, ignore this warning";
    Some(Finding::new(&ROW_WITHIN, message).help(help))
}

/// The maximum number of columns that a finding names.
const MAX_NAMED: usize = 8;

/// A note about the columns that neither the texts nor the campaign use.
pub(super) fn check_unused_columns(survey: &Survey, kind: OperationKind) -> Option<Finding> {
    if kind.is_single() {
        return None;
    }
    let unused: Vec<String> = survey
        .columns
        .iter()
        .filter(|column| !column.is_used && !column.header.trim().is_empty())
        .map(|column| format!("`{}`", column.header))
        .collect();
    let (count, columns) = (unused.len(), unused.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", "));
    let message = match count {
        0 => return None,
        1 => format!("no message uses the column {columns}"),
        2..=MAX_NAMED => format!("no message uses the columns {columns}"),
        _ => format!("no message uses the columns {columns} and {} more", count - MAX_NAMED),
    };
    Some(Finding::new(&UNUSED_COLUMN, message))
}

/// An error that the list lacks the time zone column that the campaign names.
pub fn missing_zone_column_finding(name: &str, header: &ListHeader) -> Finding {
    let headers: Vec<String> = header.headers().iter().map(|header| format!("`{header}`")).collect();
    let message = format!("the list has no column `{name}`, but `delivery.window.zone` uses it");
    Finding::new(&rules::WINDOW, message)
        .help(format!("write `campaign`, `recipient`, or the name of a column: {}", headers.join(", ")))
}

/// A warning about planned rows without a valid time zone, with examples of the invalid cells.
pub fn check_unknown_zones(survey: &Survey) -> Option<Finding> {
    let RecipientZones { unknown, examples, .. } = &survey.zones;
    let cell = |cell: &String| if cell.is_empty() { "empty".to_owned() } else { format!("`{cell}`") };
    let examples = examples.iter().map(cell).collect::<Vec<_>>().join(", ");
    // If there is only one example, its advice does not repeat the cell.
    let format_advice = |cell: &&String| match survey.zones.examples.len() {
        1 => suggest_zone(cell),
        _ => format!("`{cell}`: {}", suggest_zone(cell)),
    };
    let advice: Vec<String> =
        survey.zones.examples.iter().filter(|cell| !cell.is_empty()).map(|cell| format_advice(&cell)).collect();
    (!unknown.is_empty()).then(|| {
        let rows = describe_first(unknown);
        let message = format!(
            "the time zone is missing or not valid in {rows} ({examples}); the campaign's `timezone` applies instead"
        );
        let finding = Finding::new(&UNKNOWN_ZONE, message);
        if advice.is_empty() { finding } else { finding.help(advice.join("; ")) }
    })
}

/// Notes with the local time in each inverted zone of the campaign or a planned row.
pub fn check_inverted_zones(campaign: &Campaign, survey: &Survey, now: Timestamp) -> Vec<Finding> {
    let campaign_zone = campaign.brief.timezone.as_deref().and_then(InvertedZone::from_name);
    let place = || campaign.places.locate_key("timezone");
    let campaign_note = campaign_zone.map(|zone| inverted_zone_finding(&zone, "", now).at(place()));
    let column = campaign.zone_column().unwrap_or_default();
    let row_notes = survey.zones.inverted.iter().map(|(zone, rows)| {
        inverted_zone_finding(zone, &format!(" in the column `{column}` of {}", describe_first(rows)), now)
    });
    campaign_note.into_iter().chain(row_notes).collect()
}

fn inverted_zone_finding(zone: &InvertedZone, place: &str, now: Timestamp) -> Finding {
    let (name, offset, time) = (zone.name(), zone.format_offset(), zone.format_local_time(now));
    let message = format!("`{name}`{place} is {offset}, where it is now {time}");
    let other = zone
        .with_opposite_sign()
        .map(|other| format!("write `{}`, which is {}, or ", other.name(), other.format_offset()));
    let help = format!(
        "if that is not the local time, {}write a zone named after a place, such as `Europe/Kyiv`: the sign in \
            `{name}` is inverted",
        other.unwrap_or_default()
    );
    Finding::new(&INVERTED_ZONE, message).help(help)
}
