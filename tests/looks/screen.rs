//! Emulated terminal screen as text, optionally with the names of colours.

use std::fmt::Write as _;
use std::num::NonZeroU16;

use vt100::{Cell, Color, Parser};

/// More lines than any command prints.
const MAX_LINES: u16 = 400;

/// The text on a terminal of this width after it receives `bytes`. With `show_styles`, styled text is marked with the
/// name of its style.
pub(crate) fn screen(bytes: &str, columns: u16, show_styles: bool) -> String {
    let size = |number| NonZeroU16::new(number).expect("a size");
    // An upper limit: a line on the terminal ends at a line feed or when it is full.
    let lines = bytes.matches('\n').count() + bytes.len() / usize::from(columns) + 1;
    let lines = u16::try_from(lines).unwrap_or(MAX_LINES).min(MAX_LINES);
    let mut parser = Parser::new(size(lines), size(columns), 0);
    parser.process(bytes.as_bytes());
    let screen = parser.screen();
    let lines = (0..lines).map(|row| {
        let (mut line, mut style) = (String::new(), String::new());
        for cell in (0..columns).filter_map(|column| screen.cell(row, column)) {
            if cell.is_wide_continuation() {
                continue;
            }
            let next = if show_styles && cell.has_contents() && cell.contents() != " " {
                describe_style(cell)
            } else {
                style.clone()
            };
            if next != style {
                let closed = if style.is_empty() { "" } else { "›" };
                let opened = if next.is_empty() { String::new() } else { format!("‹{next} ") };
                let blanks = line.len() - line.trim_end().len();
                let at = line.len() - blanks;
                line.insert_str(at, closed);
                let _ = write!(line, "{opened}");
                style = next;
            }
            line.push_str(if cell.has_contents() { cell.contents() } else { " " });
        }
        let end = line.trim_end().to_owned();
        if style.is_empty() { end } else { end + "›" }
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n").trim_end().to_owned()
}

/// The colour and weight of a cell in words. Empty for plain text.
fn describe_style(cell: &Cell) -> String {
    let color = match cell.fgcolor() {
        Color::Default => "",
        Color::Idx(1 | 9) => "red",
        Color::Idx(2 | 10) => "green",
        Color::Idx(3 | 11) => "yellow",
        Color::Idx(4 | 12) => "blue",
        Color::Idx(5 | 13) => "magenta",
        Color::Idx(6 | 14) => "cyan",
        Color::Idx(_) | Color::Rgb(..) => "other",
    };
    let words = [(true, color), (cell.bold(), "bold"), (cell.dim(), "dim"), (cell.underline(), "underline")];
    let words = words.into_iter().filter(|(applies, word)| *applies && !word.is_empty());
    words.map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}
