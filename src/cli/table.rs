//! Tables on a terminal, whose cells command nothing.

use comfy_table::{ContentArrangement, Table, presets};

use crate::finding::{harmless, one_line};

/// The columns of a table that goes to no terminal.
const PIPED: u16 = 120;

/// A table of short cells.
pub(super) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    rows.into_iter().for_each(|row| {
        table.add_row(row.iter().map(|cell| one_line(cell)));
    });
    format!("{}\n", table.trim_fmt())
}

/// A table with texts of several lines, told apart by rules.
pub(super) fn text_table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_the_gateway_commands_the_terminal() {
        for text in [table(["x"], [["\u{1b}[2J\rgone".to_owned()]]), text_table(["x"], [["\u{7}a\nb".to_owned()]])] {
            assert!(!text.contains(['\u{1b}', '\r', '\u{7}']), "{text:?}");
        }
    }
}
