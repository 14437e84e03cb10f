//! Findings about recipient lists, with the excerpts that they show. Other modules detect the problems.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::decoding::extract_finding;
use super::phones::{expand_scientific_notation, is_scientific};
use super::raw_records::{count_line_ends, guess_delimiter};
use campaign_core::domain::{Delimiter, choose_plural, format_count};
use campaign_core::finding::{
    Finding, Rule, SourceLocation, SourceText, did_you_mean, join_alternatives, quote_for_yaml, rules,
};

/// The maximum number of bytes of a line in an excerpt.
const EXCERPT: usize = 200;

pub(super) const SAVE_AS: &str = "in Excel, choose `File > Save As` and the type `CSV UTF-8 (Comma delimited)`; in \
                                  LibreOffice, choose the type `Text CSV` and the character set `Unicode (UTF-8)`; \
                                  in Google Sheets, choose `File > Download > CSV`";

/// A part of the file for a finding.
#[derive(Clone, Copy)]
pub(super) struct FileExcerpt<'a> {
    /// The file name that the user gave.
    pub(super) file: &'a Path,
    /// The first line of the excerpt, from 1.
    pub(super) line: u64,
    /// The bytes of the excerpt.
    pub(super) raw: &'a [u8],
}

impl<'a> FileExcerpt<'a> {
    /// An excerpt without bytes, which stands for the whole file.
    pub(super) fn whole_file(file: &'a Path) -> Self {
        Self { file, line: 1, raw: b"" }
    }

    /// The line that contains the byte at `at`.
    pub(super) fn line_at(self, at: usize) -> u64 {
        self.line + count_line_ends(&self.raw[..self.line_start(at)])
    }

    /// The range of the whole excerpt.
    pub(super) fn full_span(self) -> Range<usize> {
        0..self.raw.len()
    }

    /// The location of the bytes in `span`, with the text of the line in which they begin.
    pub(super) fn place(self, span: Range<usize>) -> SourceLocation {
        let start = self.line_start(span.start);
        let line = self.raw[start..].split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        let from = (span.start - start).min(line.len());
        let to = span.end.saturating_sub(start).clamp(from, line.len().min(from + EXCERPT));
        let end = line.len().min(to + EXCERPT);
        let [before, within, after] = [&line[..from], &line[from..to], &line[to..end]].map(to_printable);
        let span = before.len()..before.len() + within.len();
        let mut place =
            SourceLocation::new(&SourceText::new(self.file, mask_numbers(&(before + &within + &after))), span);
        place.first_line = usize::try_from(self.line_at(start)).unwrap_or(usize::MAX);
        place
    }

    fn line_start(self, at: usize) -> usize {
        let before = &self.raw[..at.min(self.raw.len())];
        before.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |end| end + 1)
    }
}

/// The text with phone numbers masked: asterisks replace all digits after the first five.
///
/// Findings are often copied into tickets and logs. Byte positions stay the same.
pub(super) fn mask_numbers(text: &str) -> String {
    const MIN_DIGITS: usize = 9;
    const VISIBLE_DIGITS: usize = 5;
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|character: char| character.is_ascii_digit()) {
        let (before, run) = rest.split_at(start);
        let end = run.find(|character: char| !(character.is_ascii_digit() || " ()-.".contains(character)));
        let (run, after) = run.split_at(end.unwrap_or(run.len()));
        let must_mask = run.bytes().filter(u8::is_ascii_digit).count() >= MIN_DIGITS;
        let mut digits = 0;
        masked.push_str(before);
        masked.extend(run.chars().map(|character| {
            digits += usize::from(character.is_ascii_digit());
            if must_mask && digits > VISIBLE_DIGITS && character.is_ascii_digit() { '*' } else { character }
        }));
        rest = after;
    }
    masked + rest
}

/// Text that is safe to print. Control characters and invalid bytes become replacement characters.
fn to_printable(bytes: &[u8]) -> String {
    let printable = |character: char| if character.is_control() && character != '\t' { '\u{fffd}' } else { character };
    String::from_utf8_lossy(bytes).chars().map(printable).collect()
}

/// The finding about an unreadable file: the finding that the decoder reported, or else a finding about the system
/// error.
pub(super) fn unreadable_file(file: &Path, error: &io::Error) -> Finding {
    if let Some(finding) = extract_finding(error) {
        return finding.clone();
    }
    Finding::new(&rules::RECIPIENTS_UNREADABLE, format!("cannot read `{}`: {error}", file.display()))
        .at(FileExcerpt::whole_file(file).place(0..0))
}

pub(super) fn invalid_utf8(excerpt: FileExcerpt<'_>, at: usize) -> Finding {
    Finding::new(&rules::RECIPIENTS_ENCODING, format!("line {} is not valid UTF-8", excerpt.line_at(at)))
        .at(excerpt.place(at..at + 1))
        .help(format!(
            "correct this line (the rest of the file is valid UTF-8), or save the list again as CSV in UTF-8: {SAVE_AS}"
        ))
}

pub(super) fn nul_character(excerpt: FileExcerpt<'_>, at: usize) -> Finding {
    Finding::new(&rules::RECIPIENTS_NOT_CSV, format!("line {} contains a NUL character", excerpt.line_at(at)))
        .at(excerpt.place(at..at + 1))
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

pub(super) fn unclosed_quote(excerpt: FileExcerpt<'_>, quote_at: usize) -> Finding {
    let line = excerpt.line_at(quote_at);
    let message = format!(
        "the quote opened on line {line} is not closed, so the rows after it are read as part of the same cell"
    );
    Finding::new(&rules::RECIPIENTS_UNCLOSED_QUOTE, message).at(excerpt.place(quote_at..quote_at + 1)).help(
        "close the quote at the end of the cell; if the quote is part of the text, double it and put the cell in \
         quotes",
    )
}

pub(super) fn swallowed_row(excerpt: FileExcerpt<'_>, quote_at: usize, swallowed: u64) -> Finding {
    let line = excerpt.line_at(quote_at);
    let message = format!(
        "the quoted cell that starts on line {line} contains line {swallowed}, which looks like a separate row"
    );
    Finding::new(&rules::RECIPIENTS_UNCLOSED_QUOTE, message)
        .at(excerpt.place(quote_at..quote_at + 1))
        .help("add the closing quote at the end of the cell, or remove the opening quote")
}

pub(super) fn text_after_quote(excerpt: FileExcerpt<'_>, at: usize) -> Finding {
    let message = format!("text follows the closing quote of a cell on line {}", excerpt.line_at(at));
    Finding::new(&rules::RECIPIENTS_STRAY_QUOTE, message)
        .at(excerpt.place(at..at + 1))
        .help("double the quotes inside a cell: `\"Cafe \"\"Sun\"\"\"`")
}

/// The finding about a phone number after a quoted name, in the format that address books use.
pub(super) fn number_after_name(excerpt: FileExcerpt<'_>, at: usize, header: &str) -> Finding {
    let message = format!("line {} has a name and a phone number in one cell", excerpt.line_at(at));
    let column = if header.is_empty() { String::new() } else { format!(" `{header}`") };
    Finding::new(&rules::RECIPIENTS_STRAY_QUOTE, message)
        .at(excerpt.place(at..at + 1))
        .help(format!("split the column{column} into two columns, one for the name and one for the phone number"))
}

pub(super) fn quoted_lines_finding(excerpt: FileExcerpt<'_>) -> Finding {
    Finding::new(&rules::RECIPIENTS_QUOTED_LINES, "each line is in quotes, so the whole line is read as a single cell")
        .at(excerpt.place(excerpt.full_span()))
        .help(
            "export the list again, or remove the quotes around each line and replace each doubled quote inside it \
             with one quote",
        )
}

/// A record with more or fewer cells than the header.
pub(super) struct RaggedRow {
    /// The number of cells in the record.
    pub(super) cells: usize,
    /// The number of cells in the header.
    pub(super) expected: usize,
    pub(super) delimiter: Delimiter,
    /// The byte range of surplus cells in the record.
    pub(super) surplus: Option<Range<usize>>,
}

pub(super) fn ragged_row(excerpt: FileExcerpt<'_>, ragged: RaggedRow) -> Finding {
    let RaggedRow { cells, expected, delimiter, surplus } = ragged;
    let line = excerpt.line_at(0);
    let message = format!("line {line} has {}, but the header has {expected}", format_count(cells as u64, "cell"));
    let is_shortened = has_shortened_number(excerpt.raw, delimiter);
    let row_delimiter = guess_delimiter(excerpt.raw);
    // The row has several cells, but its delimiter differs from the header's.
    let has_other_delimiter =
        cells == 1 && row_delimiter != delimiter && excerpt.raw.contains(&row_delimiter.to_byte());
    let delimiter = delimiter.name();
    let help = if is_shortened {
        "format the column as text, and enter the number again; a spreadsheet has shortened it, so its last digits \
         are lost"
            .to_owned()
    } else if expected == 1 || has_other_delimiter {
        "if the first line is a title, delete the rows above the header".to_owned()
    } else if cells > expected {
        format!("look for a {delimiter} inside an unquoted cell, and put that cell in quotes: `\"…\"`")
    } else {
        format!("look for a line break inside an unquoted cell, or a missing {delimiter}")
    };
    Finding::new(&rules::RECIPIENTS_RAGGED_ROW, message)
        .at(excerpt.place(surplus.unwrap_or(excerpt.full_span())))
        .help(help)
}

/// Whether the record contains a number such as `3,80501E+11` that lost digits and is split at the decimal comma.
fn has_shortened_number(raw: &[u8], delimiter: Delimiter) -> bool {
    if delimiter != Delimiter::COMMA {
        return false;
    }
    let text = String::from_utf8_lossy(raw);
    let cells: Vec<&str> = text.split([',', '"']).map(str::trim).collect();
    let mut scientific = (0..cells.len()).filter(|&at| is_scientific(cells[at]));
    scientific.any(|at| {
        // Without a cell before it, the digits before the comma are lost.
        let Some(before) = at.checked_sub(1) else { return true };
        let number = format!("{},{}", cells[before], cells[at]);
        // Only a number that kept all its digits can be expanded.
        expand_scientific_notation(&number).is_none()
    })
}

pub(super) fn large_cell(excerpt: FileExcerpt<'_>, at: usize) -> Finding {
    Finding::new(
        &rules::RECIPIENTS_TOO_LARGE,
        format!("line {} has a cell that is larger than 64 KiB", excerpt.line_at(at)),
    )
    .at(excerpt.place(at..at + EXCERPT))
    .help("look for an unclosed quote; no message needs a cell that long")
}

pub(super) fn large_record(excerpt: FileExcerpt<'_>) -> Finding {
    Finding::new(&rules::RECIPIENTS_TOO_LARGE, format!("the row on line {} is larger than 1 MiB", excerpt.line))
        .at(excerpt.place(0..EXCERPT))
        .help("look for an unclosed quote, or for missing line breaks")
}

pub(super) fn too_many_columns(place: SourceLocation, columns: usize, max: usize) -> Finding {
    Finding::new(
        &rules::RECIPIENTS_TOO_MANY_COLUMNS,
        format!("the header has {columns} columns, but at most {max} are allowed"),
    )
    .at(place)
    .help(
        "keep only the phone column and the columns that templates use; if each recipient has a column instead of a \
         row, swap rows and columns",
    )
}

pub(super) fn too_many_rows(file: &Path) -> Finding {
    Finding::new(&rules::RECIPIENTS_TOO_LARGE, format!("`{}` has too many rows", file.display()))
        .at(FileExcerpt::whole_file(file).place(0..0))
        .help("split the list into several files")
}

fn file_finding(rule: &'static Rule, file: &Path, problem: &str) -> Finding {
    Finding::new(rule, format!("`{}` {problem}", file.display())).at(FileExcerpt::whole_file(file).place(0..0))
}

pub(super) fn foreign_format(file: &Path, name: &str, help: Option<&str>) -> Finding {
    let save = || format!("open it in the program that created it, and save it as a workbook or as CSV: {SAVE_AS}");
    file_finding(&rules::RECIPIENTS_NOT_CSV, file, &format!("is not a list: it is {name}"))
        .help(help.map_or_else(save, str::to_owned))
}

/// The finding about a workbook for which the key `encoding` or `delimiter` is set.
pub(super) fn text_key_for_workbook(file: &Path, key: &str) -> Finding {
    file_finding(
        &rules::RECIPIENTS_KEY_MISMATCH,
        file,
        &format!("is a workbook, but `{key}` applies only to CSV files"),
    )
    .help(format!("delete `{key}` under `recipients`; use `sheet` to select a sheet"))
}

pub(super) fn sheet_key_for_text_file(file: &Path, sheet: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_KEY_MISMATCH, file, &format!("is not a workbook, so it has no sheet `{sheet}`"))
        .help("delete `sheet` under `recipients`, or use a workbook as the list")
}

pub(super) fn utf32_encoding(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_ENCODING, file, "is encoded in UTF-32, which is not supported")
        .help(format!("save it as CSV in UTF-8: {SAVE_AS}"))
}

/// The finding about a declared encoding that is wrong, because the file certainly has the encoding `found`.
pub(super) fn wrong_encoding(file: &Path, declared: &str, found: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_KEY_MISMATCH, file, &format!("is encoded in {found}, not in {declared}"))
        .help("delete `encoding` under `recipients`; the encoding is detected automatically")
}

/// The finding about a file whose encoding cannot be detected. `has_campaign` says whether a campaign describes the
/// file.
pub(super) fn unknown_encoding(file: &Path, has_campaign: bool) -> Finding {
    let key = "set the correct encoding under `recipients`, for example `encoding: windows-1251`; or ";
    let key = if has_campaign { key } else { "" };
    file_finding(&rules::RECIPIENTS_ENCODING, file, "has an unknown encoding")
        .help(format!("{key}save it as CSV in UTF-8: {SAVE_AS}"))
}

/// The warning about an encoding that is only probable. `cell` is the decoded text of a cell; `has_campaign` says
/// whether a campaign describes the file.
pub(super) fn uncertain_encoding(file: &Path, encoding: &str, cell: &str, has_campaign: bool) -> Finding {
    let cell = mask_numbers(cell);
    let problem = format!("is probably encoded in {encoding}: one of its cells says `{cell}`");
    let key = format!(
        "if `{cell}` is correct, write `encoding: {}` under `recipients`; otherwise, set the correct encoding or ",
        encoding.to_lowercase()
    );
    let key = if has_campaign { key } else { format!("if `{cell}` is wrong, ") };
    file_finding(&rules::UNCERTAIN_ENCODING, file, &problem).help(format!("{key}save it as CSV in UTF-8: {SAVE_AS}"))
}

/// The finding about a line that is not valid in the encoding of the file. `has_campaign` says whether a campaign
/// describes the file.
pub(super) fn invalid_in_encoding(file: &Path, line: u64, encoding: &str, has_campaign: bool) -> Finding {
    let message = format!("line {line} of `{}` is not valid {encoding}", file.display());
    let place = FileExcerpt { file, line, raw: b"" }.place(0..0);
    let remedy = if has_campaign { "correct the file, set a different `encoding`, or" } else { "correct the line, or" };
    Finding::new(&rules::RECIPIENTS_ENCODING, message)
        .at(place)
        .help(format!("{remedy} save it as CSV in UTF-8: {SAVE_AS}"))
}

pub(super) fn damaged_compressed_file(file: &Path, compression: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a damaged {compression} file"))
        .help("copy or download it again, or compress the list again")
}

pub(super) fn incomplete_compressed_file(file: &Path, compression: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &format!("is an incomplete {compression} file"))
        .help("copy or download it again")
}

/// The finding about a compressed file that needs too much memory. `window` is the number of bytes that the file needs,
/// if known.
pub(super) fn large_window(file: &Path, window: Option<u64>) -> Finding {
    let needs = match window.map(|window| window.div_ceil(1 << 20)) {
        Some(window) if window % (1 << 10) == 0 => format!("{} GiB", window >> 10),
        Some(window) => format!("{window} MiB"),
        None => "more than 128 MiB".to_owned(),
    };
    let problem = format!(
        "was compressed with `zstd --long`, so unpacking it needs {needs} of memory; the limit is 128 \
        MiB"
    );
    file_finding(&rules::RECIPIENTS_TOO_LARGE, file, &problem)
        .help("compress it again without `--long`, or with `--long=27`")
}

pub(super) fn dictionary_needed(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, "was compressed with a zstd dictionary, which is not supported")
        .help("compress it again without `-D`")
}

pub(super) fn not_enough_memory_to_unpack(file: &Path, compression: &str) -> Finding {
    file_finding(
        &rules::RECIPIENTS_TOO_LARGE,
        file,
        &format!("is a {compression} file, but there is not enough memory to unpack it"),
    )
    .help("close other programs, or unpack the file first")
}

pub(super) fn extra_data_in_compressed_file(file: &Path, compression: &str) -> Finding {
    let problem = format!("is a {compression} file with extra data before or after the compressed part");
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &problem)
        .help("unpack it, check that the list is complete, and compress it again")
}

pub(super) fn unpacked_file_too_large(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_TOO_LARGE, file, "is larger than 4 GiB when uncompressed")
        .help("check that this is the right file; a list is never that large")
}

pub(super) fn damaged_workbook(file: &Path, reason: &str) -> Finding {
    /// The maximum number of characters from a library's message, which can quote the file.
    const MAX_CHARACTERS: usize = 200;
    let cut: String = reason.chars().take(MAX_CHARACTERS).collect();
    let reason =
        if reason.is_empty() { String::new() } else { format!(" ({cut}{})", if cut == reason { "" } else { "…" }) };
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a workbook that cannot be read{reason}"))
        .help("open it in the program that created it, and save it again")
}

pub(super) fn unsaved_formula(file: &Path, cell: &str) -> Finding {
    let message = format!("has a formula in the cell {cell}, but not the value of the formula");
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &message)
        .help("open the file in a spreadsheet program and save it, which stores the values")
}

pub(super) fn locked_workbook(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, "is password-protected")
        .help("open it, remove the password (in Excel, `File > Info > Protect Workbook`), and save it")
}

pub(super) fn large_workbook(file: &Path, reason: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_TOO_LARGE, file, &format!("is a workbook that is too large: {reason}"))
        .help("delete unused sheets and columns, or save the sheet as CSV in UTF-8")
}

/// The finding about a workbook that has no sheet with the requested name.
pub(super) fn no_sheet(file: &Path, sheet: &str, sheets: &[String]) -> Finding {
    let finding = file_finding(&rules::RECIPIENTS_SHEET, file, &format!("has no sheet `{sheet}`"));
    let known = sheets.iter().map(String::as_str);
    finding.help(match did_you_mean(sheet, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of the sheets in this workbook: {}", join_alternatives(known)),
    })
}

/// The finding about a table that ends before the header row.
pub(super) fn no_header_row(file: &Path, row: u32) -> Finding {
    file_finding(&rules::RECIPIENTS_NO_HEADER, file, &format!("ends before row {row}, which should contain the header"))
        .help("use the row number shown in the spreadsheet")
}

pub(super) fn no_visible_sheet(file: &Path, sheets: &[String]) -> Finding {
    let finding = file_finding(&rules::RECIPIENTS_SHEET, file, "has no visible sheet with data");
    match sheets.first() {
        Some(first) => {
            let first = quote_for_yaml(first);
            finding.help(format!("to use a hidden sheet, write `sheet: {first}` under `recipients`"))
        }
        None => finding.help("check that this is the right file"),
    }
}

/// The finding about hidden rows, which are still used as recipients.
pub(super) fn hidden_rows(file: &Path, sheet: &str, rows: &[u32]) -> Finding {
    let number = rows.len() as u64;
    let message = format!(
        "{} {} hidden in the sheet `{sheet}` but still included as {}: {}",
        format_count(number, "row"),
        choose_plural(number, "is", "are"),
        choose_plural(number, "a recipient", "recipients"),
        format_rows(rows, rows.len())
    );
    Finding::new(&rules::RECIPIENTS_HIDDEN_ROWS, message).at(FileExcerpt::whole_file(file).place(0..0)).help(
        "unhide these rows and check them; to exclude them, delete them, or copy only the other rows to a new \
            sheet",
    )
}

/// The finding about cells with a formula error.
pub(super) fn cell_errors(file: &Path, sheet: &str, cells: u64, rows: &[u32], text: &str) -> Finding {
    let (cells, has) = (format_count(cells, "cell"), choose_plural(cells, "has", "have"));
    let rows_word = choose_plural(rows.len() as u64, "row", "rows");
    let message = format!(
        "{cells} in the sheet `{sheet}` {has} an error such as `{text}` instead of a value: {rows_word} {}",
        format_rows(rows, rows.len())
    );
    Finding::new(&rules::RECIPIENTS_CELL_ERRORS, message)
        .at(FileExcerpt::whole_file(file).place(0..0))
        .help("fix the formulas in these cells; otherwise, messages that use them will contain the error")
}

/// Formats the first 20 of `total` row numbers, and the number of the remaining rows.
pub(super) fn format_rows(rows: &[u32], total: usize) -> String {
    const NAMED: usize = 20;
    let first: Vec<String> = rows.iter().take(NAMED).map(u32::to_string).collect();
    match total.saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_in_a_multiline_record_points_to_the_right_line() {
        let excerpt =
            FileExcerpt { file: Path::new("list.csv"), line: 7, raw: "a,\"Київ\r\nцентр\" x,b\n".as_bytes() };
        let place = excerpt.place(25..26);
        assert_eq!((place.line_number(), place.column_number()), (8, 8));
        assert_eq!(place.source.text(), "центр\" x,b");
        assert_eq!(&place.source.text()[place.span], "x");
    }

    #[test]
    fn excerpt_masks_phone_numbers() {
        for (text, expected) in [
            ("380501234567,\"Ann", "38050*******,\"Ann"),
            ("Ann;+38 (050) 123-45-67;Bo 5", "Ann;+38 (050) ***-**-**;Bo 5"),
            ("0501234567 and 12345678", "05012***** and 12345678"),
            ("phone,name", "phone,name"),
        ] {
            assert_eq!(mask_numbers(text), expected);
        }
    }

    #[test]
    fn place_excerpt_is_short_and_printable() {
        let mut raw = vec![b'x'; 1 << 20];
        raw[0] = 0x1b;
        let excerpt = FileExcerpt { file: Path::new("list.csv"), line: 1, raw: &raw };
        for span in [0..1, 0..raw.len(), 7..7, raw.len()..raw.len() + 1, raw.len() + 5..raw.len() + 9] {
            let place = excerpt.place(span.clone());
            assert!(place.source.text().len() <= raw.len() + 3, "{span:?}");
            assert!(!place.source.text().contains('\u{1b}'));
            assert!(place.span.len() <= EXCERPT + 3, "{span:?}");
        }
        assert!(excerpt.place(0..raw.len()).source.text().len() < 1000);
    }
}
