//! Formatting of result rows as CSV lines or JSON objects, and escaping for spreadsheets. This module does no I/O.
//!
//! This module does not know the meaning of cells, which is defined in `columns`.

use std::borrow::Cow;
use std::collections::HashSet;

use super::columns::{COLUMN_NAMES, RecipientColumns};
use campaign_core::domain::{Delimiter, Region};
use campaign_manifest::VARIANT;

/// The format of results, by the program that reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsFormat {
    /// CSV (RFC 4180) with commas, for programs.
    Csv,
    /// CSV for Excel and other spreadsheets, with a byte order mark, the separator that they expect, and each digit of
    /// long numbers.
    Excel,
    /// CSV as the source of a workbook: comma-separated, unescaped, because a workbook does not run formulas in text.
    Workbook,
    /// JSON objects keyed by the CSV columns, separated by commas: `row`, `id` and `parts` are numbers or null,
    /// everything else is text. Cells are not escaped for spreadsheets.
    Json,
}

/// The form of rows.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// CSV lines with this delimiter.
    Csv { delimiter: u8, cells: CellEscaping },
    /// JSON objects separated by commas. Each key is encoded, with its colon.
    Json(Vec<String>),
}

/// The way in which cells are escaped in CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellEscaping {
    /// Unchanged.
    Raw,
    /// A cell that a spreadsheet would run as a formula becomes text.
    NoFormulas,
    /// Cells are escaped as for `NoFormulas`, and a spreadsheet keeps every digit of long numbers.
    ExactDigits,
}

impl Layout {
    pub(super) const COMMA: u8 = b',';

    /// The layout of a results format with the list columns `recipients`. `delimiter` is the delimiter that Excel
    /// expects.
    pub(super) fn for_format(format: ResultsFormat, recipients: &RecipientColumns, delimiter: u8) -> Self {
        match format {
            ResultsFormat::Csv => Self::Csv { delimiter: Self::COMMA, cells: CellEscaping::NoFormulas },
            ResultsFormat::Workbook => Self::Csv { delimiter: Self::COMMA, cells: CellEscaping::Raw },
            ResultsFormat::Excel => Self::Csv { delimiter, cells: CellEscaping::ExactDigits },
            ResultsFormat::Json => {
                // Several headers can be empty, but the keys of an object must be unique.
                let key = |column: String| format!("{}:", serde_json::Value::from(column));
                Self::Json(column_names(recipients.keys(), recipients.has_variants).into_iter().map(key).collect())
            }
        }
    }

    /// The bytes before the rows: the header in CSV, nothing in JSON.
    pub(super) fn encode_header(&self, recipients: &RecipientColumns) -> Vec<u8> {
        let Self::Csv { cells, .. } = *self else { return Vec::new() };
        let mut line = RowBuffer::new(self, 0);
        column_names(recipients.headers(), recipients.has_variants).iter().for_each(|column| line.push_text(column));
        line.end_row();
        let mut head = if cells == CellEscaping::ExactDigits { "\u{feff}".into() } else { Vec::new() };
        head.extend(line.into_bytes());
        head
    }

    /// The separator between groups of rows.
    pub(super) fn separator(&self) -> &'static [u8] {
        match self {
            Self::Csv { .. } => b"",
            Self::Json(_) => b",",
        }
    }
}

/// The names of the result columns, with or without the variant column, followed by the names of the list's columns.
/// Duplicate names get a suffix.
fn column_names<'h>(headers: impl IntoIterator<Item = &'h String>, has_variants: bool) -> Vec<String> {
    let mut columns = COLUMN_NAMES.map(str::to_owned).to_vec();
    columns.extend(has_variants.then(|| VARIANT.to_owned()));
    let mut used_names: HashSet<String> = columns.iter().cloned().collect();
    for header in headers {
        let mut column = header.clone();
        while !column.is_empty() && !used_names.insert(column.clone()) {
            column.push_str("_in");
        }
        columns.push(column);
    }
    columns
}

/// A buffer of CSV lines.
///
/// The CSV library decides which cells need quotes, and doubles the quotes in them. Other cells are copied once,
/// whereas `csv::Writer` copies each cell twice.
pub(super) struct CsvBuffer {
    text: Vec<u8>,
    csv: csv_core::Writer,
    cells: CellEscaping,
    /// Whether the current line has no cell yet.
    is_line_empty: bool,
}

impl CsvBuffer {
    fn push_cell(&mut self, cell: &str) {
        let exact = if self.cells == CellEscaping::ExactDigits { preserve_digits(cell) } else { None };
        match (exact, self.cells) {
            (Some(exact), _) => self.push_field(exact.as_bytes()),
            (None, CellEscaping::Raw) => self.push_field(cell.as_bytes()),
            (None, _) => self.push_field(escape_formula(cell).as_bytes()),
        }
    }

    fn push_field(&mut self, field: &[u8]) {
        if !std::mem::take(&mut self.is_line_empty) {
            self.text.push(self.csv.get_delimiter());
        }
        if self.csv.should_quote(field) {
            self.push_quoted(field);
        } else {
            self.text.extend_from_slice(field);
        }
    }

    fn push_quoted(&mut self, field: &[u8]) {
        let quote = self.csv.get_quote();
        self.text.push(quote);
        let start = self.text.len();
        // A field that consists only of quotes becomes twice as long.
        self.text.resize(start + 2 * field.len(), 0);
        let (_, _, written) = csv_core::quote(field, &mut self.text[start..], quote, quote, true);
        self.text.truncate(start + written);
        self.text.push(quote);
    }

    fn end_line(&mut self) {
        self.text.push(b'\n');
        self.is_line_empty = true;
    }
}

/// The typical size of a written row.
const TYPICAL_ROW_BYTES: usize = 256;

/// A buffer of written rows and the row in progress.
pub(super) enum RowBuffer<'l> {
    Csv(Box<CsvBuffer>),
    Json { text: Vec<u8>, keys: &'l [String], cells: usize },
}

impl<'l> RowBuffer<'l> {
    /// An empty buffer with room for about `rows` rows.
    pub(super) fn new(layout: &'l Layout, rows: usize) -> Self {
        let text = Vec::with_capacity(rows * TYPICAL_ROW_BYTES);
        match layout {
            Layout::Csv { delimiter, cells } => {
                let csv = csv_core::WriterBuilder::new().delimiter(*delimiter).build();
                Self::Csv(Box::new(CsvBuffer { text, csv, cells: *cells, is_line_empty: true }))
            }
            Layout::Json(keys) => Self::Json { text, keys, cells: 0 },
        }
    }

    /// Appends a text cell.
    pub(super) fn push_text(&mut self, cell: &str) {
        match self {
            Self::Csv(line) => line.push_cell(cell),
            Self::Json { .. } => {
                // A string can always be encoded as JSON.
                let cell = serde_json::to_string(cell).unwrap_or_default();
                self.push_value(&cell);
            }
        }
    }

    /// Appends a number, or an empty cell.
    pub(super) fn push_number(&mut self, number: Option<u64>) {
        let mut buffer = itoa::Buffer::new();
        let digits = number.map(|number| buffer.format(number));
        match self {
            Self::Csv(line) => line.push_cell(digits.unwrap_or_default()),
            Self::Json { .. } => self.push_value(digits.unwrap_or("null")),
        }
    }

    /// Appends a number, which is a string in JSON, or an empty cell.
    pub(super) fn push_digits(&mut self, number: Option<u64>) {
        match (&self, number) {
            (Self::Csv(_), number) => self.push_number(number),
            (Self::Json { .. }, Some(number)) => self.push_text(itoa::Buffer::new().format(number)),
            (Self::Json { .. }, None) => self.push_text(""),
        }
    }

    /// Appends a JSON value to the object of the current row.
    fn push_value(&mut self, value: &str) {
        if let Self::Json { text, keys, cells } = self {
            text.push(if *cells == 0 { b'{' } else { b',' });
            text.extend_from_slice(keys.get(*cells).map_or(b"", |key| key.as_bytes()));
            text.extend_from_slice(value.as_bytes());
            *cells += 1;
        }
    }

    /// Starts a row, after a separator if there is an earlier row.
    pub(super) fn begin_row(&mut self) {
        if let Self::Json { text, .. } = self
            && !text.is_empty()
        {
            text.push(b',');
        }
    }

    pub(super) fn end_row(&mut self) {
        match self {
            Self::Csv(line) => line.end_line(),
            Self::Json { text, cells, .. } => {
                text.push(b'}');
                *cells = 0;
            }
        }
    }

    /// The bytes of all rows.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Csv(line) => line.text,
            Self::Json { text, .. } => text,
        }
    }
}

/// The cell, with a leading `'` if a spreadsheet would run it as a formula.
///
/// Phone numbers and amounts also begin with `+` and `-`; they stay unchanged if only digits follow.
pub(super) fn escape_formula(cell: &str) -> Cow<'_, str> {
    let is_dangerous = match cell.as_bytes() {
        [b'=' | b'@' | b'\t' | b'\r', ..] => true,
        [b'+' | b'-', rest @ ..] => rest.is_empty() || !rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if is_dangerous { Cow::Owned(format!("'{cell}")) } else { Cow::Borrowed(cell) }
}

/// The cell as a formula that yields the same text, if a spreadsheet would take it for a number and change its digits.
///
/// Excel shows 12 or more digits in exponent form and saves what it shows. It also drops leading zeros and plus signs.
/// LibreOffice keeps the formula, or its value. When campaign reads a list, it replaces such a formula with the text.
pub(super) fn preserve_digits(cell: &str) -> Option<String> {
    let digits = cell.strip_prefix('+').unwrap_or(cell);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let would_change =
        digits.len() >= EXPONENT_DIGITS || digits.len() > 1 && digits.starts_with('0') || digits.len() < cell.len();
    (is_number && would_change).then(|| format!("=\"{cell}\""))
}

/// The number of digits from which a spreadsheet uses exponent form.
const EXPONENT_DIGITS: usize = 12;

/// Regions with a decimal comma, and therefore a semicolon between cells.
const SEMICOLON_REGIONS: [&str; 72] = [
    "AD", "AL", "AM", "AO", "AR", "AT", "AZ", "BA", "BE", "BG", "BO", "BR", "BY", "CH", "CL", "CO", "CR", "CY", "CZ",
    "DE", "DK", "DZ", "EC", "EE", "ES", "FI", "FO", "FR", "GE", "GL", "GR", "HR", "HU", "ID", "IS", "IT", "KG", "KZ",
    "LI", "LT", "LU", "LV", "MA", "MC", "MD", "ME", "MK", "MZ", "NL", "NO", "PL", "PT", "PY", "RO", "RS", "RU", "SE",
    "SI", "SK", "SM", "TJ", "TM", "TN", "TR", "UA", "UY", "UZ", "VA", "VE", "VN", "XK", "ZA",
];
/// European zones with a comma between cells.
const COMMA_ZONES: [&str; 8] = [
    "Europe/London",
    "Europe/Dublin",
    "Europe/Malta",
    "Europe/Belfast",
    "Europe/Gibraltar",
    "Europe/Guernsey",
    "Europe/Jersey",
    "Europe/Isle_of_Man",
];

/// Chooses the separator for Excel from the list's separator and region, and the campaign's time zone.
///
/// Semicolons and tabs are kept, because a spreadsheet wrote the list. Workbooks count as lists with commas.
pub(super) fn choose_excel_separator(list_separator: u8, region: Option<Region>, timezone: Option<&str>) -> u8 {
    let (semicolon, comma) = (Delimiter::SEMICOLON.to_byte(), Delimiter::COMMA.to_byte());
    if list_separator == semicolon || list_separator == Delimiter::TAB.to_byte() {
        return list_separator;
    }
    let writes_semicolons = match region {
        Some(region) => SEMICOLON_REGIONS.contains(&region.to_string().as_str()),
        None => timezone.is_some_and(|zone| zone.starts_with("Europe/") && !COMMA_ZONES.contains(&zone)),
    };
    // Spreadsheets do not detect other separators, such as a vertical bar.
    if writes_semicolons || list_separator != comma { semicolon } else { comma }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list_names(columns: &[&str]) -> Vec<String> {
        let list_names: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
        super::column_names(&list_names, false).split_off(COLUMN_NAMES.len())
    }

    #[test]
    fn column_names_are_unique() {
        assert_eq!(list_names(&["phone", "state"]), ["phone", "state_in"]);
        assert_eq!(list_names(&["row", "row_in"]), ["row_in", "row_in_in"]);
        let with_variants = super::column_names(&["variant".to_owned()], true).split_off(COLUMN_NAMES.len());
        assert_eq!(with_variants, ["variant", "variant_in"]);
        assert_eq!(list_names(&["variant"]), ["variant"], "without variants the name is free");
        assert_eq!(list_names(&["", "x", ""]), ["", "x", ""], "an empty header stays empty");
    }

    #[test]
    fn rows_are_written_as_objects_keyed_by_column() {
        let layout = Layout::Json(vec!["\"a\":".into(), "\"b\":".into(), "\"c\":".into()]);
        let mut line = RowBuffer::new(&layout, 2);
        for (text, number) in [("=1+1 \"x\"\n", Some(7)), ("", None)] {
            line.begin_row();
            line.push_text(text);
            line.push_number(number);
            line.push_digits(number);
            line.end_row();
        }
        let written = String::from_utf8(line.into_bytes()).unwrap();
        assert_eq!(written, r#"{"a":"=1+1 \"x\"\n","b":7,"c":"7"},{"a":"","b":null,"c":""}"#);
    }

    proptest! {
        #[test]
        fn csv_lines_match_those_of_the_csv_library(
            rows in prop::collection::vec(prop::collection::vec("[a,;\"\r\n\t'=#їü ]{0,12}", 2..5), 0..4),
            delimiter in prop::sample::select(vec![b',', b';', b'\t']),
        ) {
            let layout = Layout::Csv { delimiter, cells: CellEscaping::Raw };
            let mut line = RowBuffer::new(&layout, rows.len());
            let mut csv = csv::WriterBuilder::new().delimiter(delimiter).flexible(true).from_writer(Vec::new());
            for row in &rows {
                line.begin_row();
                row.iter().for_each(|cell| line.push_text(cell));
                line.end_row();
                csv.write_record(row).unwrap();
            }
            prop_assert_eq!(line.into_bytes(), csv.into_inner().unwrap());
        }
    }

    #[test]
    fn formulas_become_text_and_numbers_stay_numbers() {
        let table = [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "'\rx"),
            ("+380501234567", "+380501234567"),
            ("-5", "-5"),
            ("-", "'-"),
            ("+1+1", "'+1+1"),
            ("-cmd|x", "'-cmd|x"),
            ("Olena", "Olena"),
            ("", ""),
        ];
        for (cell, expected) in table {
            assert_eq!(escape_formula(cell), expected, "{cell:?}");
        }
    }

    #[test]
    fn numbers_that_excel_would_change_become_formulas() {
        for cell in ["380501234567", "+380501234567", "0501234567", "00", "+1", "123456789012345678901"] {
            assert_eq!(preserve_digits(cell), Some(format!("=\"{cell}\"")));
        }
        for cell in ["", "0", "7", "12345678901", "-5", "+", "1.5", "38050123456a", "Olena", "=1+1"] {
            assert_eq!(preserve_digits(cell), None, "{cell:?}");
        }
    }

    #[test]
    fn separator_follows_the_list_or_its_country() {
        for (list, region, timezone, expected) in [
            (b',', "UA", None, b';'),
            (b',', "DE", Some("America/New_York"), b';'),
            (b',', "US", Some("Europe/Kyiv"), b','),
            (b',', "GB", None, b','),
            (b',', "", Some("Europe/Kyiv"), b';'),
            (b',', "", Some("Europe/London"), b','),
            (b',', "", Some("Asia/Tokyo"), b','),
            (b',', "", None, b','),
            (b';', "US", None, b';'),
            (b'\t', "UA", None, b'\t'),
            (b'|', "US", None, b';'),
            (b'^', "", None, b';'),
        ] {
            let separator = choose_excel_separator(list, region.parse().ok(), timezone);
            assert_eq!(char::from(separator), char::from(expected), "{} {region} {timezone:?}", char::from(list));
        }
    }

    #[test]
    fn semicolon_regions_are_valid() {
        assert!(SEMICOLON_REGIONS.is_sorted());
        assert!(SEMICOLON_REGIONS.iter().all(|code| code.parse::<Region>().is_ok()));
    }
}
