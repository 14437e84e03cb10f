//! What can be wrong with the file, told to the person who has to mend it.
//!
//! The prose of every finding about the file's structure, and the excerpt that is shown with it.
//! Nothing is detected here.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::decoding::find_finding;
use super::dialect::guess_delimiter;
use super::digits::{expand_power_of_ten, is_scientific};
use super::intake::count_line_ends;
use crate::domain::{Delimiter, format_count};
use crate::finding::{Finding, SourceLocation, SourceText, rules};

/// The most bytes of a line that are shown behind the place.
const EXCERPT: usize = 200;

pub(super) const SAVE_AS: &str = "in Excel choose `File > Save As` and the type `CSV UTF-8 (Comma delimited)`, in LibreOffice \
                       the type `Text CSV` and the character set `Unicode (UTF-8)`, in Google Sheets `File > Download > CSV`";

/// A piece of the file that a finding is about.
#[derive(Clone, Copy)]
pub(super) struct FileExcerpt<'a> {
    /// The file as the user called it.
    pub(super) file: &'a Path,
    /// The line in which the piece begins, from 1.
    pub(super) line: u64,
    /// The piece's bytes.
    pub(super) raw: &'a [u8],
}

impl<'a> FileExcerpt<'a> {
    /// The whole file, of which nothing is shown.
    pub(super) fn whole_file(file: &'a Path) -> Self {
        Self { file, line: 1, raw: b"" }
    }

    /// The line of that byte.
    pub(super) fn line_at(self, at: usize) -> u64 {
        self.line + count_line_ends(&self.raw[..self.line_start(at)])
    }

    /// All bytes of the piece.
    pub(super) fn full_span(self) -> Range<usize> {
        0..self.raw.len()
    }

    /// These bytes of the piece, shown in the line where they begin and no further than that line.
    pub(super) fn place(self, span: Range<usize>) -> SourceLocation {
        let start = self.line_start(span.start);
        let line = self.raw[start..].split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        let from = (span.start - start).min(line.len());
        let to = span.end.saturating_sub(start).clamp(from, line.len().min(from + EXCERPT));
        let end = line.len().min(to + EXCERPT);
        let [before, within, behind] = [&line[..from], &line[from..to], &line[to..end]].map(to_printable);
        let span = before.len()..before.len() + within.len();
        let mut place =
            SourceLocation::new(&SourceText::new(self.file, mask_numbers(&(before + &within + &behind))), span);
        place.first_line = usize::try_from(self.line_at(start)).unwrap_or(usize::MAX);
        place
    }

    fn line_start(self, at: usize) -> usize {
        let before = &self.raw[..at.min(self.raw.len())];
        before.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |end| end + 1)
    }
}

/// The same text without anybody's whole number: behind its first digits stand as many asterisks.
///
/// What is shown is often copied into tickets and logs. Every byte stays in its place.
pub(super) fn mask_numbers(text: &str) -> String {
    const SHORTEST: usize = 9;
    const KEPT: usize = 5;
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, run) = rest.split_at(start);
        let end = run.find(|character: char| !(character.is_ascii_digit() || " ()-.".contains(character)));
        let (run, behind) = run.split_at(end.unwrap_or(run.len()));
        let hides = run.bytes().filter(u8::is_ascii_digit).count() >= SHORTEST;
        let mut digits = 0;
        shown.push_str(before);
        shown.extend(run.chars().map(|character| {
            digits += usize::from(character.is_ascii_digit());
            if hides && digits > KEPT && character.is_ascii_digit() { '*' } else { character }
        }));
        rest = behind;
    }
    shown + rest
}

/// Text that a terminal shows as it is; what is no text becomes a replacement character.
fn to_printable(bytes: &[u8]) -> String {
    let shown = |character: char| if character.is_control() && character != '\t' { '\u{fffd}' } else { character };
    String::from_utf8_lossy(bytes).chars().map(shown).collect()
}

/// Why a file cannot be read: what its decoder says of it, else the system.
pub(super) fn unreadable(file: &Path, error: &io::Error) -> Finding {
    if let Some(finding) = find_finding(error) {
        return finding.clone();
    }
    Finding::new(&rules::RECIPIENTS_UNREADABLE, format!("cannot read `{}`: {error}", file.display()))
        .at(FileExcerpt::whole_file(file).place(0..0))
}

pub(super) fn invalid_utf8(spot: FileExcerpt<'_>, at: usize) -> Finding {
    Finding::new(&rules::RECIPIENTS_ENCODING, format!("line {} is not valid UTF-8", spot.line_at(at)))
        .at(spot.place(at..at + 1))
        .help(format!(
            "correct this line (the rest of the file is valid UTF-8), or save the list again as CSV in UTF-8: {SAVE_AS}"
        ))
}

pub(super) fn nul_character(spot: FileExcerpt<'_>, at: usize) -> Finding {
    Finding::new(&rules::RECIPIENTS_NOT_CSV, format!("line {} contains a NUL character", spot.line_at(at)))
        .at(spot.place(at..at + 1))
        .help("export the file again; it is damaged or not a CSV file")
}

pub(super) fn empty_file(file: &Path) -> Finding {
    Finding::new(&rules::RECIPIENTS_EMPTY, format!("`{}` is empty", file.display()))
        .at(FileExcerpt::whole_file(file).place(0..0))
        .help("add a header row and one row per recipient; even a list without recipients needs a header row")
}

pub(super) fn no_recipients(header: FileExcerpt<'_>) -> Finding {
    let name = header.file.display();
    Finding::new(&rules::RECIPIENTS_EMPTY, format!("`{name}` has a header but no recipients"))
        .at(header.place(header.full_span()))
        .help("add a row for each recipient")
}

pub(super) fn unclosed_quote(spot: FileExcerpt<'_>, opened: usize) -> Finding {
    let line = spot.line_at(opened);
    let message = format!(
        "the quote that opens in line {line} is not closed, so the rows after it are read as part of the same cell"
    );
    Finding::new(&rules::RECIPIENTS_UNCLOSED_QUOTE, message).at(spot.place(opened..opened + 1)).help(
        "close the quote at the end of the cell; if the quote is part of the text, double the quote and put the cell \
            in quotes",
    )
}

pub(super) fn swallowed_row(spot: FileExcerpt<'_>, opened: usize, swallowed: u64) -> Finding {
    let line = spot.line_at(opened);
    let message = format!(
        "the quoted cell that starts in line {line} contains line {swallowed}, which looks like a separate \
            row"
    );
    Finding::new(&rules::RECIPIENTS_UNCLOSED_QUOTE, message)
        .at(spot.place(opened..opened + 1))
        .help("close the quote at the end of its cell, or remove it")
}

pub(super) fn text_after_quote(spot: FileExcerpt<'_>, at: usize) -> Finding {
    let message = format!("text follows the closing quote of a cell in line {}", spot.line_at(at));
    Finding::new(&rules::RECIPIENTS_STRAY_QUOTE, message)
        .at(spot.place(at..at + 1))
        .help("double the quotes inside a cell: `\"Cafe \"\"Sun\"\"\"`")
}

/// A number after a name in quotes, in address-book form.
pub(super) fn number_after_name(spot: FileExcerpt<'_>, at: usize, header: &str) -> Finding {
    let message = format!("line {} has a name and a phone number in one cell", spot.line_at(at));
    let column = if header.is_empty() { String::new() } else { format!(" `{header}`") };
    Finding::new(&rules::RECIPIENTS_STRAY_QUOTE, message)
        .at(spot.place(at..at + 1))
        .help(format!("split the column{column} into two columns, one for the name and one for the phone number"))
}

pub(super) fn quoted_lines_finding(spot: FileExcerpt<'_>) -> Finding {
    Finding::new(&rules::RECIPIENTS_QUOTED_LINES, "each line is in quotes, so the whole line is one cell")
        .at(spot.place(spot.full_span()))
        .help(
            "export the list again, or remove the quotes around each line and replace doubled quotes inside it \
             with single ones",
        )
}

/// A record whose cells are not as many as the header's.
pub(super) struct RaggedRow {
    /// How many cells the record has.
    pub(super) cells: usize,
    /// How many the header has.
    pub(super) expected: usize,
    pub(super) delimiter: Delimiter,
    /// The cells that are too many, in the record's bytes.
    pub(super) surplus: Option<Range<usize>>,
}

pub(super) fn ragged_row(spot: FileExcerpt<'_>, ragged: RaggedRow) -> Finding {
    let RaggedRow { cells, expected, delimiter, surplus } = ragged;
    let line = spot.line_at(0);
    let message = format!("line {line} has {}, but the header has {expected}", format_count(cells as u64, "cell"));
    let shortened = has_shortened_number(spot.raw, delimiter);
    let own = guess_delimiter(spot.raw);
    // A row of several cells by itself, only not by what stands between the cells of the first one.
    let other = cells == 1 && own != delimiter && spot.raw.contains(&own.to_byte());
    let delimiter = delimiter.name();
    let help = if shortened {
        "format the column as text, and enter the number again; a spreadsheet has shortened it, so its last digits \
         are lost"
            .to_owned()
    } else if expected == 1 || other {
        "if the first line is a title, delete the rows above the header".to_owned()
    } else if cells > expected {
        format!("look for a {delimiter} inside an unquoted cell, and put that cell in quotes: `\"…\"`")
    } else {
        format!("look for a line break inside an unquoted cell, or a missing {delimiter}")
    };
    Finding::new(&rules::RECIPIENTS_RAGGED_ROW, message).at(spot.place(surplus.unwrap_or(spot.full_span()))).help(help)
}

/// Whether the record has a quantity such as `3,80501E+11` that lacks digits and is split at its own comma.
fn has_shortened_number(raw: &[u8], delimiter: Delimiter) -> bool {
    let text = String::from_utf8_lossy(raw);
    let cells: Vec<&str> = text.split([',', '"']).map(str::trim).collect();
    let joined = |at: usize| format!("{},{}", cells[at - 1], cells[at]);
    let mut scientific = (0..cells.len()).filter(|&at| is_scientific(cells[at]));
    delimiter == Delimiter::COMMA && scientific.any(|at| at == 0 || expand_power_of_ten(&joined(at)).is_none())
}

pub(super) fn large_cell(spot: FileExcerpt<'_>, at: usize) -> Finding {
    Finding::new(
        &rules::RECIPIENTS_TOO_LARGE,
        format!("line {} has a cell that is larger than 64 KiB", spot.line_at(at)),
    )
    .at(spot.place(at..at + EXCERPT))
    .help("look for a quote that is not closed; no message needs a cell that long")
}

pub(super) fn large_record(spot: FileExcerpt<'_>) -> Finding {
    Finding::new(&rules::RECIPIENTS_TOO_LARGE, format!("the row in line {} is larger than 1 MiB", spot.line))
        .at(spot.place(0..EXCERPT))
        .help("look for a quote that is not closed, or for missing line breaks")
}

pub(super) fn too_many_columns(place: SourceLocation, columns: usize, most: usize) -> Finding {
    Finding::new(
        &rules::RECIPIENTS_TOO_MANY_COLUMNS,
        format!("the header has {columns} columns, but at most {most} are allowed"),
    )
    .at(place)
    .help(
        "keep only the phone column and the columns that templates use; if each column is a recipient, swap rows \
         and columns",
    )
}

pub(super) fn too_many_rows(file: &Path) -> Finding {
    Finding::new(&rules::RECIPIENTS_TOO_LARGE, format!("`{}` has too many rows", file.display()))
        .at(FileExcerpt::whole_file(file).place(0..0))
        .help("split the list into several files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_shows_its_line_and_text() {
        let spot =
            FileExcerpt { file: Path::new("list.csv"), line: 7, raw: "a,\"Київ\r\nцентр\" x,b\n".as_bytes() };
        let place = spot.place(25..26);
        assert_eq!((place.line_number(), place.column_number()), (8, 8));
        assert_eq!(place.source.text(), "центр\" x,b");
        assert_eq!(&place.source.text()[place.span], "x");
    }

    #[test]
    fn excerpt_never_shows_a_whole_number() {
        for (text, shown) in [
            ("380501234567,\"Ann", "38050*******,\"Ann"),
            ("Ann;+38 (050) 123-45-67;Bo 5", "Ann;+38 (050) ***-**-**;Bo 5"),
            ("0501234567 and 12345678", "05012***** and 12345678"),
            ("phone,name", "phone,name"),
        ] {
            assert_eq!(mask_numbers(text), shown);
        }
    }

    #[test]
    fn place_is_short_and_printable() {
        let mut raw = vec![b'x'; 1 << 20];
        raw[0] = 0x1b;
        let spot = FileExcerpt { file: Path::new("list.csv"), line: 1, raw: &raw };
        for span in [0..1, 0..raw.len(), 7..7, raw.len()..raw.len() + 1, raw.len() + 5..raw.len() + 9] {
            let place = spot.place(span.clone());
            assert!(place.source.text().len() <= raw.len() + 3, "{span:?}");
            assert!(!place.source.text().contains('\u{1b}'));
            assert!(place.span.len() <= EXCERPT + 3, "{span:?}");
        }
        assert!(spot.place(0..raw.len()).source.text().len() < 1000);
    }
}
