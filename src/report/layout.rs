//! How rows are written: as lines of CSV, or as JSON objects by their columns. Pure.
//!
//! It knows cells and no meaning; what stands in them is the business of `row_writer`.

use std::collections::HashSet;

use super::cell::{exact, harmless};
/// The columns that stand before the recipient's own.
pub(super) use super::columns::NAMES as COLUMNS;
use super::own_columns::OwnColumns;
use crate::manifest::VARIANT;

/// For whom results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
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
    Csv { delimiter: u8, cells: CellForm },
    /// As JSON objects with commas between them; each key as it is written, with its colon.
    Json(Vec<String>),
}

/// How a cell is written in a line of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellForm {
    /// As it is.
    Whole,
    /// So that a spreadsheet runs none.
    Harmless,
    /// So that a spreadsheet runs none, and keeps each digit.
    Exact,
}

impl Layout {
    pub(super) const COMMA: u8 = b',';

    /// The layout of these columns; Excel expects `delimiter` between cells.
    pub(super) fn of(style: Style, own: &OwnColumns, delimiter: u8) -> Self {
        match style {
            Style::Csv => Self::Csv { delimiter: Self::COMMA, cells: CellForm::Harmless },
            Style::Workbook => Self::Csv { delimiter: Self::COMMA, cells: CellForm::Whole },
            Style::Excel => Self::Csv { delimiter, cells: CellForm::Exact },
            Style::Json => {
                // Several headers may be empty, and an object has each of its keys once.
                let key = |column: String| format!("{}:", serde_json::Value::from(column));
                Self::Json(columns(own.keys(), own.variants).into_iter().map(key).collect())
            }
        }
    }

    /// The bytes before the rows: the header of a CSV.
    pub(super) fn head(&self, own: &OwnColumns) -> Vec<u8> {
        let Self::Csv { cells, .. } = *self else { return Vec::new() };
        let mut line = Line::new(self, 0);
        columns(own.headers(), own.variants).iter().for_each(|column| line.cell(column));
        line.end();
        let mut head = if cells == CellForm::Exact { "\u{feff}".into() } else { Vec::new() };
        head.extend(line.finish());
        head
    }

    /// What stands between two groups of rows.
    pub(super) fn between(&self) -> &'static [u8] {
        match self {
            Self::Csv { .. } => b"",
            Self::Json(_) => b",",
        }
    }
}

/// Our columns, with that of the variants or without, then the recipient's own; one with a name that is taken gets a suffix.
fn columns<'h>(own: impl IntoIterator<Item = &'h String>, variants: bool) -> Vec<String> {
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
pub(super) struct CsvLine {
    csv: csv::Writer<Vec<u8>>,
    record: csv::ByteRecord,
    cells: CellForm,
}

impl CsvLine {
    fn cell(&mut self, cell: &str) {
        let exact = if self.cells == CellForm::Exact { exact(cell) } else { None };
        match (exact, self.cells) {
            (Some(exact), _) => self.record.push_field(exact.as_bytes()),
            (None, CellForm::Whole) => self.record.push_field(cell.as_bytes()),
            (None, _) => self.record.push_field(harmless(cell).as_bytes()),
        }
    }
}

/// The row that is being written, behind those that are.
pub(super) enum Line<'l> {
    Csv(Box<CsvLine>),
    Json { text: Vec<u8>, keys: &'l [String], cells: usize },
}

impl<'l> Line<'l> {
    /// The first of about so many rows.
    pub(super) fn new(layout: &'l Layout, rows: usize) -> Self {
        let text = Vec::with_capacity(rows * 256);
        match layout {
            Layout::Csv { delimiter, cells } => {
                let csv = csv::WriterBuilder::new().delimiter(*delimiter).from_writer(text);
                Self::Csv(Box::new(CsvLine { csv, record: csv::ByteRecord::new(), cells: *cells }))
            }
            Layout::Json(keys) => Self::Json { text, keys, cells: 0 },
        }
    }

    /// A cell with a text.
    pub(super) fn cell(&mut self, cell: &str) {
        match self {
            Self::Csv(line) => line.cell(cell),
            Self::Json { .. } => {
                // A text always has a JSON form.
                let cell = serde_json::to_string(cell).unwrap_or_default();
                self.value(&cell);
            }
        }
    }

    /// A cell with a number, or an empty one.
    pub(super) fn number(&mut self, number: Option<u64>) {
        let mut buffer = itoa::Buffer::new();
        let digits = number.map(|number| buffer.format(number));
        match self {
            Self::Csv(line) => line.cell(digits.unwrap_or_default()),
            Self::Json { .. } => self.value(digits.unwrap_or("null")),
        }
    }

    /// A cell with a text of digits only, or an empty one.
    pub(super) fn digits(&mut self, number: Option<u64>) {
        match (&self, number) {
            (Self::Csv(_), number) => self.number(number),
            (Self::Json { .. }, Some(number)) => self.cell(itoa::Buffer::new().format(number)),
            (Self::Json { .. }, None) => self.cell(""),
        }
    }

    /// The next value of an object.
    fn value(&mut self, value: &str) {
        if let Self::Json { text, keys, cells } = self {
            text.push(if *cells == 0 { b'{' } else { b',' });
            text.extend_from_slice(keys.get(*cells).map_or(b"", |key| key.as_bytes()));
            text.extend_from_slice(value.as_bytes());
            *cells += 1;
        }
    }

    /// Before a row: what parts it from the one before.
    pub(super) fn begin(&mut self) {
        if let Self::Json { text, .. } = self
            && !text.is_empty()
        {
            text.push(b',');
        }
    }

    /// After a row.
    pub(super) fn end(&mut self) {
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
    pub(super) fn finish(self) -> Vec<u8> {
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
        super::columns(&own, false).split_off(COLUMNS.len())
    }

    #[test]
    fn no_column_has_the_name_of_another() {
        assert_eq!(own(&["phone", "state"]), ["phone", "state_in"]);
        assert_eq!(own(&["row", "row_in"]), ["row_in", "row_in_in"]);
        let own_of_variants = super::columns(&["variant".to_owned()], true).split_off(COLUMNS.len());
        assert_eq!(own_of_variants, ["variant", "variant_in"]);
        assert_eq!(own(&["variant"]), ["variant"], "without variants the name is free");
        assert_eq!(own(&["", "x", ""]), ["", "x", ""], "a header without a name stays so");
    }

    #[test]
    fn a_row_is_written_as_an_object_by_its_columns() {
        let layout = Layout::Json(vec!["\"a\":".into(), "\"b\":".into(), "\"c\":".into()]);
        let mut line = Line::new(&layout, 2);
        for (text, number) in [("=1+1 \"x\"\n", Some(7)), ("", None)] {
            line.begin();
            line.cell(text);
            line.number(number);
            line.digits(number);
            line.end();
        }
        let written = String::from_utf8(line.finish()).unwrap();
        assert_eq!(written, r#"{"a":"=1+1 \"x\"\n","b":7,"c":"7"},{"a":"","b":null,"c":""}"#);
    }
}
