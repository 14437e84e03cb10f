//! What can be wrong with how a file is written, told to the person who has to mend it. Nothing is detected here.

use std::path::Path;

use super::trouble::{SAVE_AS, Spot};
use crate::domain::{one_or, plural};
use crate::finding::{Finding, Rule, did_you_mean, list, rules};

fn of_file(rule: &'static Rule, file: &Path, is: &str) -> Finding {
    Finding::new(rule, format!("`{}` {is}", file.display())).at(Spot::whole(file).place(0..0))
}

pub(super) fn foreign(file: &Path, name: &str, help: Option<&str>) -> Finding {
    let save = || format!("open it in the program that it belongs to, and save it as a workbook or as CSV: {SAVE_AS}");
    of_file(&rules::RECIPIENTS_NOT_CSV, file, &format!("is {name}, not a list"))
        .help(help.map_or_else(save, str::to_owned))
}

/// The keys `encoding` and `delimiter` of a workbook.
pub(super) fn form_of_text(file: &Path, key: &str) -> Finding {
    of_file(&rules::RECIPIENTS_FORM_OF_ANOTHER, file, &format!("is a workbook, which has no `{key}`"))
        .help(format!("delete `{key}` under `recipients`; which sheet is meant is said by `sheet`"))
}

pub(super) fn sheet_of_text(file: &Path, sheet: &str) -> Finding {
    of_file(&rules::RECIPIENTS_FORM_OF_ANOTHER, file, &format!("is no workbook, so it has no sheet `{sheet}`"))
        .help("delete `sheet` under `recipients`, or name the workbook")
}

pub(super) fn utf32(file: &Path) -> Finding {
    of_file(&rules::RECIPIENTS_ENCODING, file, "is text in UTF-32, which is not read")
        .help(format!("save it as CSV in UTF-8: {SAVE_AS}"))
}

/// An encoding was told, and the file has another one for sure.
pub(super) fn other_encoding(file: &Path, told: &str, found: &str) -> Finding {
    of_file(&rules::RECIPIENTS_FORM_OF_ANOTHER, file, &format!("is in the encoding {found}, not in {told}"))
        .help("delete `encoding` under `recipients`; the encoding is found without it")
}

/// `has_keys` is whether a campaign describes the file.
pub(super) fn no_encoding(file: &Path, has_keys: bool) -> Finding {
    let key = "set it, as in `encoding: windows-1251` under `recipients`; or ";
    let key = if has_keys { key } else { "" };
    of_file(&rules::RECIPIENTS_ENCODING, file, "has an encoding that cannot be determined")
        .help(format!("{key}save it as CSV in UTF-8: {SAVE_AS}"))
}

/// `has_keys` is whether a campaign describes the file.
pub(super) fn not_of_encoding(file: &Path, line: u64, encoding: &str, has_keys: bool) -> Finding {
    let message = format!("line {line} of `{}` is not text in the encoding {encoding}", file.display());
    let place = Spot { file, line, raw: b"" }.place(0..0);
    let why = if has_keys { "repair the file, or set another `encoding`; or" } else { "repair it there, or" };
    Finding::new(&rules::RECIPIENTS_ENCODING, message)
        .at(place)
        .help(format!("{why} save it as CSV in UTF-8: {SAVE_AS}"))
}

pub(super) fn damaged_pack(file: &Path, packing: &str) -> Finding {
    of_file(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a damaged {packing} file"))
        .help("copy or download it again, or compress the list again")
}

pub(super) fn incomplete_pack(file: &Path, packing: &str) -> Finding {
    of_file(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a {packing} file that breaks off before its end"))
        .help("copy or download it again")
}

/// `window` is what the file needs, where that is known.
pub(super) fn large_window(file: &Path, window: Option<u64>) -> Finding {
    let needs = match window.map(|window| window.div_ceil(1 << 20)) {
        Some(window) if window % (1 << 10) == 0 => format!("{} GiB", window >> 10),
        Some(window) => format!("{window} MiB"),
        None => "more than 128 MiB".to_owned(),
    };
    let is = format!("was compressed with `zstd --long` and needs {needs} of memory to unpack; the limit is 128 MiB");
    of_file(&rules::RECIPIENTS_TOO_LARGE, file, &is).help("compress it again without `--long`, or with `--long=27`")
}

pub(super) fn needs_dictionary(file: &Path) -> Finding {
    of_file(&rules::RECIPIENTS_UNREADABLE, file, "was compressed by zstd with a dictionary, which is not supported")
        .help("compress it again without `-D`")
}

pub(super) fn no_memory_to_unpack(file: &Path, packing: &str) -> Finding {
    of_file(
        &rules::RECIPIENTS_TOO_LARGE,
        file,
        &format!("is a {packing} file; there is not enough memory to unpack it"),
    )
    .help("close other programs, or unpack it first")
}

pub(super) fn other_bytes_in_pack(file: &Path, packing: &str) -> Finding {
    let is = format!("is a {packing} file with other bytes before or behind the compressed data");
    of_file(&rules::RECIPIENTS_UNREADABLE, file, &is)
        .help("unpack it, check that the list is whole, and compress it again")
}

pub(super) fn unpacks_too_much(file: &Path) -> Finding {
    of_file(&rules::RECIPIENTS_TOO_LARGE, file, "holds more than 4 GiB once it is unpacked")
        .help("no list is that large; look at what is in it")
}

pub(super) fn damaged_workbook(file: &Path, why: &str) -> Finding {
    /// The most characters that are told of what a library says, which may quote the file.
    const LONGEST: usize = 200;
    let cut: String = why.chars().take(LONGEST).collect();
    let why = if why.is_empty() { String::new() } else { format!(" ({cut}{})", if cut == why { "" } else { "…" }) };
    of_file(&rules::RECIPIENTS_UNREADABLE, file, &format!("is a workbook that cannot be read{why}"))
        .help("open it in the program that made it, and save it anew")
}

pub(super) fn locked_workbook(file: &Path) -> Finding {
    of_file(&rules::RECIPIENTS_UNREADABLE, file, "is a workbook that a password protects")
        .help("open it, take the password off (in Excel `File > Info > Protect Workbook`), and save it")
}

pub(super) fn large_workbook(file: &Path, what: &str) -> Finding {
    of_file(&rules::RECIPIENTS_TOO_LARGE, file, &format!("is a workbook that is too large to be read: {what}"))
        .help("delete sheets and columns that are not needed, or save the sheet as CSV in UTF-8")
}

/// A workbook without the sheet that was named.
pub(super) fn no_sheet(file: &Path, sheet: &str, sheets: &[String]) -> Finding {
    let finding = of_file(&rules::RECIPIENTS_SHEET, file, &format!("has no sheet `{sheet}`"));
    let known = sheets.iter().map(String::as_str);
    finding.help(match did_you_mean(sheet, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", list(known)),
    })
}

/// A table that ends before its header row.
pub(super) fn no_header_row(file: &Path, row: u32) -> Finding {
    of_file(&rules::RECIPIENTS_NO_HEADER, file, &format!("has no row {row}, where its headers should be"))
        .help("name the row as a spreadsheet numbers it")
}

pub(super) fn no_visible_sheet(file: &Path, sheets: &[String]) -> Finding {
    let finding = of_file(&rules::RECIPIENTS_SHEET, file, "has no visible sheet with cells");
    match sheets.first() {
        Some(first) => finding.help(format!("name a hidden one: `sheet: {first:?}` under `recipients`")),
        None => finding.help("is it the right file?"),
    }
}

/// Rows that somebody hid are recipients like others.
pub(super) fn hidden_rows(file: &Path, sheet: &str, rows: &[u32]) -> Finding {
    let number = rows.len() as u64;
    let message = format!(
        "{} {} hidden in the sheet `{sheet}`, and recipients like all others: {}",
        plural(number, "row"),
        one_or(number, "is", "are"),
        named(rows, rows.len())
    );
    Finding::new(&rules::RECIPIENTS_HIDDEN_ROWS, message)
        .at(Spot::whole(file).place(0..0))
        .help("show all rows and look at them; to leave them out, copy what is visible into a sheet of its own, or delete them")
}

/// Cells in which a formula failed.
pub(super) fn cell_errors(file: &Path, sheet: &str, cells: u64, rows: &[u32], shown: &str) -> Finding {
    let (cells, has) = (plural(cells, "cell"), one_or(cells, "has", "have"));
    let rows_word = one_or(rows.len() as u64, "row", "rows");
    let message = format!(
        "{cells} of the sheet `{sheet}` {has} an error such as `{shown}` instead of a value: {rows_word} {}",
        named(rows, rows.len())
    );
    Finding::new(&rules::RECIPIENTS_CELL_ERRORS, message)
        .at(Spot::whole(file).place(0..0))
        .help("mend the formulas there; a text that uses such a cell would say the error")
}

/// The first of so many rows, and how many more there are.
pub(super) fn named(rows: &[u32], all: usize) -> String {
    const NAMED: usize = 20;
    let first: Vec<String> = rows.iter().take(NAMED).map(u32::to_string).collect();
    match all.saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
