//! The gateway's words on a terminal: tables, dates, identifiers.

use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::domain::MsgId;
use crate::finding::{harmless, one_line};

/// The columns of a table that goes to no terminal.
const PIPED: u16 = 120;

/// A table of short cells.
pub(super) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    rows.into_iter().for_each(|row| {
        table.add_row(row.iter().map(|cell| one_line(cell)));
    });
    format!("{}\n", table.trim_fmt())
}

/// A table with texts of several lines, told apart by rules.
pub(super) fn text_table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header);
    if table.width().is_none() {
        table.set_width(PIPED);
    }
    rows.into_iter().for_each(|row| {
        table.add_row(row.iter().map(|cell| harmless(cell)));
    });
    format!("{table}\n")
}

/// The gateway's time (ISO 8601 with offset) as this computer's clock shows it; another text as it is.
pub(super) fn moment(text: Option<&str>) -> String {
    let text = text.unwrap_or_default();
    match text.parse::<Timestamp>() {
        Ok(at) => at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// An identifier for people; empty when there is none.
pub(super) fn id(id: Option<&MsgId>) -> String {
    id.map(MsgId::to_string).unwrap_or_default()
}

/// An identifier for programs, as the gateway wrote it: a number, a text or nothing.
pub(super) fn id_json(id: Option<&MsgId>) -> Value {
    match id {
        Some(MsgId::Number(number)) => (*number).into(),
        Some(MsgId::Text(text)) => text.as_str().into(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_its_offset_and_anything_else_as_it_is() {
        let shown = moment(Some("2026-11-21T10:00:00+02:00"));
        assert!(shown.starts_with("2026-11-2") && shown.len() == "2026-11-21 10:00:00 +02:00".len(), "{shown}");
        for text in ["soon", "2026-11-21", ""] {
            assert_eq!(moment(Some(text)), text);
        }
        assert_eq!(moment(None), "");
    }

    #[test]
    fn no_text_of_the_gateway_commands_the_terminal() {
        for text in [table(["x"], [["\u{1b}[2J\rgone".to_owned()]]), text_table(["x"], [["\u{7}a\nb".to_owned()]])] {
            assert!(!text.contains(['\u{1b}', '\r', '\u{7}']), "{text:?}");
        }
    }
}
