//! The probable place of a list that does not begin in the first row of the first sheet: after a cover sheet, or below titles.

use std::io::{self, Cursor, Read, Seek};
use std::ops::RangeInclusive;
use std::path::Path;

use super::decoding::{DecodedText, RowBlanker, decode, delimiter_line};
use super::evidence::is_phone_header;
use super::suggestion::{ColumnSuggestion, parse_header_number, suggest_columns};
use crate::domain::{ListFormat, Region};
use crate::finding::{Finding, Rule, rules};

/// How many sheets are searched at most, besides the first.
const MAX_SHEETS: usize = 20;
/// The last row that is searched for headers.
pub const LAST_HEADER_ROW: u32 = 30;
/// How much of each sheet is searched, in bytes.
const SAMPLE: u64 = 1 << 18;
/// A column with this many numbers is a phone column, whatever its header.
const MIN_NUMBERS: usize = 2;

/// The probable place of a list in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPlace {
    /// The sheet, if it differs from the one that was read.
    pub sheet: Option<String>,
    /// The sheet that was read instead.
    pub read_sheet: Option<String>,
    /// The row of its headers, from 1.
    pub header_row: u32,
    /// The header of its numbers.
    pub phone: String,
}

/// Searches the first rows of a file for a list, then the other sheets of a workbook unless one was named. `open` opens the
/// file from its beginning each time.
///
/// `None` if the place that was read is already the likeliest one.
pub fn find_list<S: Read + Seek + Send + 'static>(
    open: impl Fn() -> io::Result<S>,
    file: &Path,
    form: &ListFormat,
    region: Option<Region>,
) -> Option<ListPlace> {
    let look = |sheet: Option<String>| {
        let plain = ListFormat { sheet, header_row: None, delimiter: None, ..form.clone() };
        decode(open().ok()?, file, &plain, region).ok()
    };
    let first = look(form.sheet.clone())?;
    let others = if form.sheet.is_none() { first.format().other_sheets().to_vec() } else { Vec::new() };
    let read_sheet = first.format().sheet_name().map(str::to_owned);
    if let Some((phone, rows)) = find_header_rows(first, file, form) {
        let is_known = rows.contains(&form.header_row.unwrap_or(1));
        return (!is_known).then_some(ListPlace { sheet: None, read_sheet: None, header_row: *rows.end(), phone });
    }
    others.into_iter().take(MAX_SHEETS).find_map(|name| {
        let (phone, rows) = find_header_rows(look(Some(name.clone()))?, file, form)?;
        Some(ListPlace { sheet: Some(name), read_sheet: read_sheet.clone(), header_row: *rows.end(), phone })
    })
}

/// The row that seems to hold the headers: the first one with a phone header above numbers, or else the row above the first
/// number. The header of its phone column comes first.
fn find_header_rows(text: DecodedText, file: &Path, form: &ListFormat) -> Option<(String, RangeInclusive<u32>)> {
    let mut sample = Vec::new();
    text.take(SAMPLE).read_to_end(&mut sample).ok()?;
    if sample.len() as u64 == SAMPLE {
        // The last row can be incomplete.
        sample.truncate(sample.iter().rposition(|byte| *byte == b'\n')? + 1);
    }
    let mut likely: Option<(String, RangeInclusive<u32>)> = None;
    for row in 1..=LAST_HEADER_ROW {
        let below = RowBlanker::new(Cursor::new(sample.as_slice()), row, file);
        let told = Cursor::new(form.delimiter.map(delimiter_line).unwrap_or_default());
        let Ok(ColumnSuggestion { phone: Some(header), numbers, .. }) = suggest_columns(told.chain(below), file) else {
            continue;
        };
        if parse_header_number(&header, None).is_some() {
            break;
        }
        let known = likely.as_ref().map(|(known, rows)| (*known == header, *rows.start(), is_phone_header(known)));
        likely = match known {
            // The rows above it were blank.
            Some((true, first, _)) => Some((header, first..=row)),
            Some((false, _, true)) => break,
            _ if is_phone_header(&header) || !header.is_empty() && numbers >= MIN_NUMBERS => Some((header, row..=row)),
            _ => likely,
        };
    }
    likely
}

impl ListPlace {
    /// Whether its header means a phone number.
    #[must_use]
    pub fn has_phone_header(&self) -> bool {
        is_phone_header(&self.phone)
    }

    /// A finding that the row read as headers looks like a title; `read` is its cell above the numbers, if known.
    #[must_use]
    pub fn title_finding(&self, rule: &'static Rule, read: Option<&str>) -> Finding {
        let read = read.map_or_else(|| "the first row".to_owned(), |read| format!("`{read}`"));
        let message = format!(
            "{read} looks like a title; the phone numbers are under `{}` in row {}",
            self.phone, self.header_row
        );
        Finding::new(rule, message)
    }

    /// Adds the probable place of the list and the remedy to a finding about columns.
    pub fn add_advice(&self, finding: &mut Finding, remedy: &str) {
        let otherwise = self.read_sheet.as_ref().map(|read| format!("; otherwise, the sheet `{read}` is used"));
        let advice = format!("{}: {remedy}{}", self.describe(), otherwise.unwrap_or_default());
        // Advice about titles stays valid.
        finding.help = Some(match finding.help.take() {
            Some(help) if self.sheet.is_none() && finding.rule == &rules::RECIPIENTS_NO_HEADER => {
                format!("{advice}; or {help}")
            }
            Some(help) if self.sheet.is_none() && finding.rule == &rules::RECIPIENTS_RAGGED_ROW => {
                format!("{advice}; {help}")
            }
            _ if self.sheet.is_none()
                && [&rules::RECIPIENTS_NO_HEADER, &rules::RECIPIENTS_TITLE].contains(&finding.rule) =>
            {
                format!("{advice}, or delete the rows above it")
            }
            _ => advice,
        });
    }

    fn describe(&self) -> String {
        match (&self.sheet, self.header_row) {
            (None, row) => format!("row {row} looks like the header of the list"),
            (Some(sheet), 1) => format!("the sheet `{sheet}` looks like the list"),
            (Some(sheet), row) => format!("the sheet `{sheet}` looks like the list, with its header in row {row}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_header_row(text: &'static str, form: &ListFormat) -> Option<u32> {
        let place = find_list(|| Ok(Cursor::new(text.as_bytes())), Path::new("list.csv"), form, None)?;
        assert_eq!(place.sheet, None);
        Some(place.header_row)
    }

    #[test]
    fn headers_below_titles_are_found() {
        for (text, row) in [
            ("Clients of spring\n\nphone,name\n+380501234567,Ann\n", Some(3)),
            ("Report,,\nMade by,Olena,2026\nТелефон,name,city\n0501234567,Ann,Kyiv\n0671234567,Bo,Lviv\n", Some(3)),
            ("Report,,\nMade by,Olena,2026\nnumber one,name,city\n0501234567,Ann,Kyiv\n0671234567,Bo,Lviv\n", Some(3)),
            ("phone,name\n+380501234567,Ann\n", None),
            ("\n\nphone,name\n+380501234567,Ann\n", None),
            ("Report\nManager,Olena\nPhone,+380501234567\n", None),
            ("Report\n", None),
            ("", None),
        ] {
            assert_eq!(find_header_row(text, &ListFormat::default()), row, "{text:?}");
        }
    }

    #[test]
    fn headers_are_found_despite_a_wrong_row() {
        let text = "Clients\nphone^name\n+380501234567^Ann, Bo\n";
        let delimiter = crate::domain::Delimiter::new(b'^');
        assert_eq!(
            find_header_row(text, &ListFormat { header_row: Some(3), delimiter, ..ListFormat::default() }),
            Some(2)
        );
        assert_eq!(
            find_header_row(text, &ListFormat { header_row: Some(2), delimiter, ..ListFormat::default() }),
            None
        );
    }
}
