//! How rows are written: as lines of CSV, or as JSON objects by their columns. Pure.
//!
//! It knows cells and no meaning; what stands in them is the business of `row_writer`.

use std::collections::HashSet;

use super::cell::{escape_formula, preserve_digits};
/// The columns that stand before the recipient's own.
pub(super) use super::columns::COLUMN_NAMES as COLUMNS;
use super::own_columns::RecipientColumns;
use crate::manifest::VARIANT;

/// For whom results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsFormat {
    /// For programs: CSV (RFC 4180) with commas.
    Csv,
    /// For Excel and other spreadsheets: CSV with a byte order mark, the separator that they expect, and each digit of long
    /// numbers.
    Excel,
    /// As it becomes a workbook: CSV with commas whose cells are what they are, since a workbook runs none of them.
    Workbook,
    /// JSON objects by the columns of the CSV, with commas between them: `row`, `id` and `parts` are numbers or null, all
    /// else is text, and no cell is changed for the sake of a spreadsheet.
    Json,
}

/// How rows are written.
#[derive(Clone, Debug)]
pub(super) enum Layout {
    /// As lines of CSV with this between their cells.
    Csv { delimiter: u8, cells: CellEscaping },
    /// As JSON objects with commas between them; each key as it is written, with its colon.
    Json(Vec<String>),
}

/// How a cell is written in a line of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellEscaping {
    /// As it is.
    Raw,
    /// So that a spreadsheet runs none.
    NoFormulas,
    /// So that a spreadsheet runs none, and keeps each digit.
    ExactDigits,
}

impl Layout {
    pub(super) const COMMA: u8 = b',';

    /// The layout of these columns; Excel expects `delimiter` between cells.
    pub(super) fn for_format(style: ResultsFormat, own: &RecipientColumns, delimiter: u8) -> Self {
        match style {
            ResultsFormat::Csv => Self::Csv { delimiter: Self::COMMA, cells: CellEscaping::NoFormulas },
            ResultsFormat::Workbook => Self::Csv { delimiter: Self::COMMA, cells: CellEscaping::Raw },
            ResultsFormat::Excel => Self::Csv { delimiter, cells: CellEscaping::ExactDigits },
            ResultsFormat::Json => {
                // Several headers may be empty, and an object has each of its keys once.
                let key = |column: String| format!("{}:", serde_json::Value::from(column));
                Self::Json(column_names(own.keys(), own.has_variants).into_iter().map(key).collect())
            }
        }
    }

    /// The bytes before the rows: the header of a CSV.
    pub(super) fn write_header(&self, own: &RecipientColumns) -> Vec<u8> {
        let Self::Csv { cells, .. } = *self else { return Vec::new() };
        let mut line = RowBuffer::new(self, 0);
        column_names(own.headers(), own.has_variants).iter().for_each(|column| line.push_text(column));
        line.end_row();
        let mut head = if cells == CellEscaping::ExactDigits { "\u{feff}".into() } else { Vec::new() };
        head.extend(line.into_bytes());
        head
    }

    /// What stands between two groups of rows.
    pub(super) fn separator(&self) -> &'static [u8] {
        match self {
            Self::Csv { .. } => b"",
            Self::Json(_) => b",",
        }
    }
}

/// Our columns, with that of the variants or without, then the recipient's own; one with a name that is taken gets a suffix.
fn column_names<'h>(own: impl IntoIterator<Item = &'h String>, variants: bool) -> Vec<String> {
    let mut columns = COLUMNS.map(str::to_owned).to_vec();
    columns.extend(variants.then(|| VARIANT.to_owned()));
    let mut taken: HashSet<String> = columns.iter().cloned().collect();
    for header in own {
        let mut column = header.clone();
        while !column.is_empty() && !taken.insert(column.clone()) {
            column.push_str("_in");
        }
        columns.push(column);
    }
    columns
}

/// A line of CSV, behind those that are written.
pub(super) struct CsvBuffer {
    csv: csv::Writer<Vec<u8>>,
    record: csv::ByteRecord,
    cells: CellEscaping,
}

impl CsvBuffer {
    fn push_cell(&mut self, cell: &str) {
        let exact = if self.cells == CellEscaping::ExactDigits { preserve_digits(cell) } else { None };
        match (exact, self.cells) {
            (Some(exact), _) => self.record.push_field(exact.as_bytes()),
            (None, CellEscaping::Raw) => self.record.push_field(cell.as_bytes()),
            (None, _) => self.record.push_field(escape_formula(cell).as_bytes()),
        }
    }
}

/// The row that is being written, behind those that are.
pub(super) enum RowBuffer<'l> {
    Csv(Box<CsvBuffer>),
    Json { text: Vec<u8>, keys: &'l [String], cells: usize },
}

impl<'l> RowBuffer<'l> {
    /// The first of about so many rows.
    pub(super) fn new(layout: &'l Layout, rows: usize) -> Self {
        let text = Vec::with_capacity(rows * 256);
        match layout {
            Layout::Csv { delimiter, cells } => {
                let csv = csv::WriterBuilder::new().delimiter(*delimiter).from_writer(text);
                Self::Csv(Box::new(CsvBuffer { csv, record: csv::ByteRecord::new(), cells: *cells }))
            }
            Layout::Json(keys) => Self::Json { text, keys, cells: 0 },
        }
    }

    /// A cell with a text.
    pub(super) fn push_text(&mut self, cell: &str) {
        match self {
            Self::Csv(line) => line.push_cell(cell),
            Self::Json { .. } => {
                // A text always has a JSON form.
                let cell = serde_json::to_string(cell).unwrap_or_default();
                self.push_value(&cell);
            }
        }
    }

    /// A cell with a number, or an empty one.
    pub(super) fn push_number(&mut self, number: Option<u64>) {
        let mut buffer = itoa::Buffer::new();
        let digits = number.map(|number| buffer.format(number));
        match self {
            Self::Csv(line) => line.push_cell(digits.unwrap_or_default()),
            Self::Json { .. } => self.push_value(digits.unwrap_or("null")),
        }
    }

    /// A cell with a text of digits only, or an empty one.
    pub(super) fn push_digits(&mut self, number: Option<u64>) {
        match (&self, number) {
            (Self::Csv(_), number) => self.push_number(number),
            (Self::Json { .. }, Some(number)) => self.push_text(itoa::Buffer::new().format(number)),
            (Self::Json { .. }, None) => self.push_text(""),
        }
    }

    /// The next value of an object.
    fn push_value(&mut self, value: &str) {
        if let Self::Json { text, keys, cells } = self {
            text.push(if *cells == 0 { b'{' } else { b',' });
            text.extend_from_slice(keys.get(*cells).map_or(b"", |key| key.as_bytes()));
            text.extend_from_slice(value.as_bytes());
            *cells += 1;
        }
    }

    /// Before a row: what parts it from the one before.
    pub(super) fn begin_row(&mut self) {
        if let Self::Json { text, .. } = self
            && !text.is_empty()
        {
            text.push(b',');
        }
    }

    /// After a row.
    pub(super) fn end_row(&mut self) {
        match self {
            Self::Csv(line) => {
                let written = line.csv.write_byte_record(&line.record);
                written.expect("memory takes every line, and all lines have as many cells");
                line.record.clear();
            }
            Self::Json { text, cells, .. } => {
                text.push(b'}');
                *cells = 0;
            }
        }
    }

    /// All rows.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Csv(line) => line.csv.into_inner().expect("memory takes every line"),
            Self::Json { text, .. } => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(columns: &[&str]) -> Vec<String> {
        let own: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
        super::column_names(&own, false).split_off(COLUMNS.len())
    }

    #[test]
    fn column_names_are_unique() {
        assert_eq!(own(&["phone", "state"]), ["phone", "state_in"]);
        assert_eq!(own(&["row", "row_in"]), ["row_in", "row_in_in"]);
        let own_of_variants = super::column_names(&["variant".to_owned()], true).split_off(COLUMNS.len());
        assert_eq!(own_of_variants, ["variant", "variant_in"]);
        assert_eq!(own(&["variant"]), ["variant"], "without variants the name is free");
        assert_eq!(own(&["", "x", ""]), ["", "x", ""], "a header without a name stays so");
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
}
