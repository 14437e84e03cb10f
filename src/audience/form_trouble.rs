//! What can be wrong with how a file is written, told to the person who has to mend it. Nothing is detected here.

use std::path::Path;

use super::trouble::{FileExcerpt, SAVE_AS};
use crate::domain::{choose_plural, format_count};
use crate::finding::{Finding, Rule, did_you_mean, join_alternatives, rules};

fn file_finding(rule: &'static Rule, file: &Path, is: &str) -> Finding {
    Finding::new(rule, format!("`{}` {is}", file.display())).at(FileExcerpt::whole_file(file).place(0..0))
}

pub(super) fn foreign_format(file: &Path, name: &str, help: Option<&str>) -> Finding {
    let save = || format!("open it in the program that created it, and save it as a workbook or as CSV: {SAVE_AS}");
    file_finding(&rules::RECIPIENTS_NOT_CSV, file, &format!("is not a list but {name}"))
        .help(help.map_or_else(save, str::to_owned))
}

/// The keys `encoding` and `delimiter` of a workbook.
pub(super) fn text_key_of_workbook(file: &Path, key: &str) -> Finding {
    file_finding(
        &rules::RECIPIENTS_FORM_OF_ANOTHER,
        file,
        &format!("is a workbook, but `{key}` applies only to CSV files"),
    )
    .help(format!("delete `{key}` under `recipients`; use `sheet` to select a sheet"))
}

pub(super) fn sheet_key_of_text(file: &Path, sheet: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_FORM_OF_ANOTHER, file, &format!("is not a workbook, so it has no sheet `{sheet}`"))
        .help("delete `sheet` under `recipients`, or use a workbook as the list")
}

pub(super) fn utf32_encoding(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_ENCODING, file, "is encoded in UTF-32, which is not supported")
        .help(format!("save it as CSV in UTF-8: {SAVE_AS}"))
}

/// An encoding was told, and the file has another one for sure.
pub(super) fn wrong_encoding(file: &Path, told: &str, found: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_FORM_OF_ANOTHER, file, &format!("is encoded in {found}, not in {told}"))
        .help("delete `encoding` under `recipients`; the encoding is detected automatically")
}

/// `has_keys` is whether a campaign describes the file.
pub(super) fn unknown_encoding(file: &Path, has_keys: bool) -> Finding {
    let key = "set `encoding: windows-1251`, or the correct encoding, under `recipients`; or ";
    let key = if has_keys { key } else { "" };
    file_finding(&rules::RECIPIENTS_ENCODING, file, "has an unknown encoding")
        .help(format!("{key}save it as CSV in UTF-8: {SAVE_AS}"))
}

/// `has_keys` is whether a campaign describes the file.
pub(super) fn invalid_in_encoding(file: &Path, line: u64, encoding: &str, has_keys: bool) -> Finding {
    let message = format!("line {line} of `{}` is not valid {encoding}", file.display());
    let place = FileExcerpt { file, line, raw: b"" }.place(0..0);
    let why = if has_keys { "correct the file, set a different `encoding`, or" } else { "correct the line, or" };
    Finding::new(&rules::RECIPIENTS_ENCODING, message)
        .at(place)
        .help(format!("{why} save it as CSV in UTF-8: {SAVE_AS}"))
}

pub(super) fn damaged_pack(file: &Path, packing: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a damaged {packing} file"))
        .help("copy or download it again, or compress the list again")
}

pub(super) fn incomplete_pack(file: &Path, packing: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &format!("is an incomplete {packing} file"))
        .help("copy or download it again")
}

/// `window` is what the file needs, where that is known.
pub(super) fn large_window(file: &Path, window: Option<u64>) -> Finding {
    let needs = match window.map(|window| window.div_ceil(1 << 20)) {
        Some(window) if window % (1 << 10) == 0 => format!("{} GiB", window >> 10),
        Some(window) => format!("{window} MiB"),
        None => "more than 128 MiB".to_owned(),
    };
    let is = format!(
        "was compressed with `zstd --long`, so unpacking it needs {needs} of memory; the limit is 128 \
        MiB"
    );
    file_finding(&rules::RECIPIENTS_TOO_LARGE, file, &is)
        .help("compress it again without `--long`, or with `--long=27`")
}

pub(super) fn needs_dictionary(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, "was compressed with a zstd dictionary, which is not supported")
        .help("compress it again without `-D`")
}

pub(super) fn no_memory_to_unpack(file: &Path, packing: &str) -> Finding {
    file_finding(
        &rules::RECIPIENTS_TOO_LARGE,
        file,
        &format!("is a {packing} file, but there is not enough memory to unpack it"),
    )
    .help("close other programs, or unpack the file first")
}

pub(super) fn other_bytes_in_pack(file: &Path, packing: &str) -> Finding {
    let is = format!("is a {packing} file with extra data before or after the compressed part");
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &is)
        .help("unpack it, check that the list is complete, and compress it again")
}

pub(super) fn unpacks_too_much(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_TOO_LARGE, file, "contains more than 4 GiB of data when uncompressed")
        .help("check that this is the right file; a list is never that large")
}

pub(super) fn damaged_workbook(file: &Path, why: &str) -> Finding {
    /// The most characters that are told of what a library says, which may quote the file.
    const LONGEST: usize = 200;
    let cut: String = why.chars().take(LONGEST).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({cut}{})", if cut == why { "" } else { "…" }) };
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a workbook that cannot be read{why}"))
        .help("open it in the program that created it, and save it again")
}

pub(super) fn locked_workbook(file: &Path) -> Finding {
    file_finding(&rules::RECIPIENTS_UNREADABLE, file, "is password-protected")
        .help("open it, remove the password (in Excel `File > Info > Protect Workbook`), and save it")
}

pub(super) fn large_workbook(file: &Path, what: &str) -> Finding {
    file_finding(&rules::RECIPIENTS_TOO_LARGE, file, &format!("is a workbook that is too large: {what}"))
        .help("delete unused sheets and columns, or save the sheet as CSV in UTF-8")
}

/// A workbook without the sheet that was named.
pub(super) fn no_sheet(file: &Path, sheet: &str, sheets: &[String]) -> Finding {
    let finding = file_finding(&rules::RECIPIENTS_SHEET, file, &format!("has no sheet `{sheet}`"));
    let known = sheets.iter().map(String::as_str);
    finding.help(match did_you_mean(sheet, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of the sheets of this workbook: {}", join_alternatives(known)),
    })
}

/// A table that ends before its header row.
pub(super) fn no_header_row(file: &Path, row: u32) -> Finding {
    file_finding(&rules::RECIPIENTS_NO_HEADER, file, &format!("has no row {row}, which should contain the header"))
        .help("write the row number that the spreadsheet shows")
}

pub(super) fn no_visible_sheet(file: &Path, sheets: &[String]) -> Finding {
    let finding = file_finding(&rules::RECIPIENTS_SHEET, file, "has no visible sheet with data");
    match sheets.first() {
        Some(first) => finding.help(format!("to use a hidden sheet, write `sheet: {first:?}` under `recipients`")),
        None => finding.help("check that this is the right file"),
    }
}

/// Rows that somebody hid are recipients like others.
pub(super) fn hidden_rows(file: &Path, sheet: &str, rows: &[u32]) -> Finding {
    let number = rows.len() as u64;
    let message = format!(
        "{} {} hidden in the sheet `{sheet}`, but still included in the list of recipients: {}",
        format_count(number, "row"),
        choose_plural(number, "is", "are"),
        format_rows(rows, rows.len())
    );
    Finding::new(&rules::RECIPIENTS_HIDDEN_ROWS, message).at(FileExcerpt::whole_file(file).place(0..0)).help(
        "show all rows and check the hidden ones; to exclude them, delete them, or copy the visible rows to \
            a new sheet",
    )
}

/// Cells in which a formula failed.
pub(super) fn cell_errors(file: &Path, sheet: &str, cells: u64, rows: &[u32], shown: &str) -> Finding {
    let (cells, has) = (format_count(cells, "cell"), choose_plural(cells, "has", "have"));
    let rows_word = choose_plural(rows.len() as u64, "row", "rows");
    let message = format!(
        "{cells} in the sheet `{sheet}` {has} an error such as `{shown}` instead of a value: {rows_word} {}",
        format_rows(rows, rows.len())
    );
    Finding::new(&rules::RECIPIENTS_CELL_ERRORS, message)
        .at(FileExcerpt::whole_file(file).place(0..0))
        .help("fix the formulas in these cells; otherwise, messages that use these cells contain the error")
}

/// The first of so many rows, and how many more there are.
pub(super) fn format_rows(rows: &[u32], all: usize) -> String {
    const NAMED: usize = 20;
    let first: Vec<String> = rows.iter().take(NAMED).map(u32::to_string).collect();
    match all.saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
