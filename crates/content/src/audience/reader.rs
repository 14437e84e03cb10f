//! Reading recipient lists and other tables in chunks of records.

use std::fmt;
use std::io::Read;
use std::path::Path;

use roaring::RoaringTreemap;

use super::columns::{HeaderIndex, HeaderMatch, ListHeader, ListSettings, NamedColumns};
use super::records::RecordReader;
use super::{columns, list_findings};
use campaign_core::domain::{Phone, Row};
use campaign_core::finding::{Finding, rules};

/// The findings about a rejected list, and the names of its columns.
#[derive(Clone, Debug)]
pub struct RejectedList {
    /// The problems of the list.
    pub findings: Vec<Finding>,
    /// The columns, including those that only the campaign names. `None` if the list has no readable header.
    pub columns: Option<NamedColumns>,
}

/// Reads a list of recipients in chunks.
pub struct RecipientReader<R> {
    records: RecordReader<R>,
    header: ListHeader,
    /// The records that were used to check the columns, and the result of reading them, until they are returned.
    ahead: Option<(Chunk, Result<(), Box<Finding>>)>,
}

impl<R: Read> RecipientReader<R> {
    /// Reads the header and checks the columns against the first records.
    ///
    /// Reads only as much of `input` as necessary. At the end of the list, `input` has been read completely. `file` is
    /// the file name in findings.
    ///
    /// # Errors
    ///
    /// The file is not CSV in UTF-8, has no header or no recipients, or its columns do not match the settings.
    pub fn open(input: R, file: &Path, settings: &ListSettings) -> Result<Self, Vec<Finding>> {
        Self::open_with_columns(input, file, settings).map_err(|rejected| rejected.findings)
    }

    /// Like [`RecipientReader::open`], but the error contains the column names, if there are any.
    ///
    /// # Errors
    ///
    /// The errors of [`RecipientReader::open`].
    pub fn open_with_columns(input: R, file: &Path, settings: &ListSettings) -> Result<Self, RejectedList> {
        let without_columns = |finding: Box<Finding>| RejectedList { findings: vec![*finding], columns: None };
        let mut records = RecordReader::open(input, file).map_err(without_columns)?;
        let names = columns::name_columns(records.header(), settings);
        let named = names.clone();
        if let Some(phone) = names.phone() {
            records.set_phone_column(phone);
        }
        let mut ahead = Chunk::new();
        let filled = records.fill_chunk(&mut ahead);
        match columns::resolve_columns(names, records.header(), &ahead, settings.region) {
            Ok(_) if ahead.is_empty() && filled.is_ok() && !settings.may_be_empty => {
                let findings = vec![list_findings::no_recipients(records.header().header_excerpt())];
                Err(RejectedList { findings, columns: Some(named.into_columns(records.header(), settings)) })
            }
            Ok(header) => Ok(Self { records, header, ahead: Some((ahead, filled)) }),
            Err(mut findings) => {
                // If the first row is not a header, the columns are unknown.
                let has_header = !findings.iter().any(|finding| *finding.rule == rules::RECIPIENTS_NO_HEADER);
                let columns = has_header.then(|| named.into_columns(records.header(), settings));
                findings.extend(filled.err().map(|finding| *finding));
                Err(RejectedList { findings, columns })
            }
        }
    }

    /// The columns of the list.
    pub fn header(&self) -> &ListHeader {
        &self.header
    }

    /// The delimiter between cells.
    pub fn delimiter(&self) -> u8 {
        self.records.header().delimiter.to_byte()
    }

    /// The last row that was read, including blank ones. At the end, the last row of the file.
    pub fn last_row(&self) -> Row {
        self.records.last_row()
    }

    /// The input, from which at least the returned records have been read.
    pub fn into_input(self) -> R {
        self.records.into_input()
    }

    /// Replaces the content of the chunk with the next records. Returns false at the end of the list.
    ///
    /// # Errors
    ///
    /// A broken row ends the list; the chunk then contains the records before it. Rows with a wrong number of cells are
    /// reported together at the end of the list.
    pub fn read_chunk(&mut self, chunk: &mut Chunk) -> Result<bool, Box<Finding>> {
        match self.ahead.take() {
            Some((mut first, filled)) => {
                std::mem::swap(chunk, &mut first);
                filled?;
            }
            None => self.records.fill_chunk(chunk)?,
        }
        Ok(!chunk.is_empty())
    }
}

/// Shows only the columns: cells are personal data.
impl<R> fmt::Debug for RecipientReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecipientReader").field("header", &self.header).finish_non_exhaustive()
    }
}

/// Up to [`Chunk::CAPACITY`] records of a file. A reused chunk does not allocate.
#[derive(Default)]
pub struct Chunk {
    /// The text of all cells, concatenated.
    text: String,
    /// The end of each cell in `text`.
    ends: Vec<usize>,
    rows: Vec<Row>,
    /// Cells per record.
    width: usize,
}

/// One record of a [`Chunk`].
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// The record's row.
    pub row: Row,
    /// The record's cells.
    pub fields: RecordFields<'a>,
}

/// The cells of one record, in the order of the header.
#[derive(Clone, Copy)]
pub struct RecordFields<'a> {
    text: &'a str,
    start: usize,
    ends: &'a [usize],
}

impl Chunk {
    /// The maximum number of records in a chunk.
    pub const CAPACITY: usize = 1_024;
    /// A chunk with this many bytes is full.
    const MAX_TEXT: usize = 1 << 20;
    /// A chunk with this many cells is full: even an empty cell takes eight bytes.
    const MAX_CELLS: usize = 1 << 17;

    /// A chunk without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of records in the chunk.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the chunk is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The record at this position of the chunk, from 0.
    pub fn get(&self, index: usize) -> Option<RecordRef<'_>> {
        let row = *self.rows.get(index)?;
        Some(RecordRef { row, fields: self.record_fields(index) })
    }

    /// The records in the file's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = RecordRef<'_>> {
        self.rows.iter().enumerate().map(|(index, &row)| RecordRef { row, fields: self.record_fields(index) })
    }

    fn record_fields(&self, index: usize) -> RecordFields<'_> {
        let first = index * self.width;
        let start = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        RecordFields { text: &self.text, start, ends: &self.ends[first..first + self.width] }
    }

    /// Whether the chunk is full, so no further record should be added.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= Self::CAPACITY || self.text.len() >= Self::MAX_TEXT || self.ends.len() >= Self::MAX_CELLS
    }

    /// Removes all records, and sets the number of cells that each new record must have.
    pub(super) fn reset(&mut self, width: usize) {
        self.text.clear();
        self.ends.clear();
        self.rows.clear();
        self.width = width;
    }

    /// Adds a record, which must have as many cells as the chunk expects.
    pub(super) fn push(&mut self, row: Row, record: &csv::StringRecord) {
        debug_assert_eq!(record.len(), self.width, "ragged records are rejected before they get here");
        let mut end = self.text.len();
        self.text.push_str(record.as_slice());
        self.ends.extend(record.iter().map(|cell| {
            end += cell.len();
            end
        }));
        self.rows.push(row);
    }
}

impl<'a> RecordFields<'a> {
    /// The cell in the column with this index, from 0. Empty if there is no such column.
    pub fn get(&self, column: usize) -> &'a str {
        let Some(&end) = self.ends.get(column) else { return "" };
        let start = column.checked_sub(1).map_or(self.start, |before| self.ends[before]);
        &self.text[start..end]
    }

    /// The number of cells.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of all cells, without separators.
    pub(super) fn joined(&self) -> &'a str {
        &self.text[self.start..self.ends.last().copied().unwrap_or(self.start)]
    }

    /// The cells from the first column to the last.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let fields = *self;
        (0..fields.ends.len()).map(move |column| fields.get(column))
    }
}

/// Shows only the size: cells are personal data.
impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} records)", self.len())
    }
}

/// Shows only the number of cells: cells are personal data.
impl fmt::Debug for RecordFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fields({} cells)", self.ends.len())
    }
}

/// A set of phone numbers, at about three bytes each for millions of numbers.
#[derive(Default)]
pub struct SeenNumbers(RoaringTreemap);

impl SeenNumbers {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a phone number. Returns whether the number is new.
    pub fn insert(&mut self, phone: Phone) -> bool {
        self.0.insert(phone.to_u64())
    }
}

/// Passes the cells of the columns with these headers to `visit`, cleaned by [`clean_cell`]. Returns which columns
/// exist.
///
/// The cells of a missing column are empty.
///
/// # Errors
///
/// The file is not UTF-8 text, has no header, or has a broken row. [`decode_table`](super::decode_table) converts a
/// file to such text.
pub fn read_columns<R: Read, const N: usize>(
    input: R,
    file: &Path,
    headers: [&str; N],
    mut visit: impl FnMut(Row, [&str; N]),
) -> Result<[bool; N], Box<Finding>> {
    let mut records = RecordReader::open(input, file)?;
    let index = HeaderIndex::new(&records.header().headers);
    let columns = headers.map(|header| match index.find(header) {
        HeaderMatch::Column(column) => Some(column),
        HeaderMatch::Several(columns) => columns.first().copied(),
        HeaderMatch::Nothing => None,
    });
    let mut chunk = Chunk::new();
    loop {
        records.fill_chunk(&mut chunk)?;
        if chunk.is_empty() {
            return Ok(columns.map(|column| column.is_some()));
        }
        for record in chunk.iter() {
            visit(record.row, columns.map(|column| column.map_or("", |column| clean_cell(record.fields.get(column)))));
        }
    }
}

/// A cell without the white space around it. Most cells begin and end with visible ASCII, which is faster to test.
#[inline]
pub fn trim_cell(cell: &str) -> &str {
    match cell.as_bytes() {
        [only] if only.is_ascii_graphic() => cell,
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => cell,
        _ => cell.trim(),
    }
}

/// The trimmed text of a cell. If the cell is a formula that only returns text (`="380501234567"`), returns that text.
pub fn clean_cell(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix("=\"").and_then(|text| text.strip_suffix('"')).unwrap_or(cell)
}

/// Whether a spreadsheet shortened a number to scientific notation, which loses the last digits.
pub fn is_shortened_number(cell: &str) -> bool {
    let Some((number, power)) = cell.split_once(['E', 'e']) else { return false };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
    is_digits(whole) && is_digits(fraction) && is_digits(power.strip_prefix('+').unwrap_or(power))
}

/// Passes the headers and each row of a file to `visit` until `visit` returns an error. Returns the headers.
///
/// # Errors
///
/// The file is not UTF-8 text, has no header, or has a broken row; or the error of `visit`.
pub fn read_rows<R: Read>(
    input: R,
    file: &Path,
    mut visit: impl FnMut(&[String], Row, RecordFields<'_>) -> Result<(), Box<Finding>>,
) -> Result<Vec<String>, Box<Finding>> {
    let mut records = RecordReader::open(input, file)?;
    let headers = records.header().headers.clone();
    let mut chunk = Chunk::new();
    loop {
        records.fill_chunk(&mut chunk)?;
        if chunk.is_empty() {
            return Ok(headers);
        }
        for record in chunk.iter() {
            visit(&headers, record.row, record.fields)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open_text<'a>(
        text: &'a str,
        columns: &[(&str, &str)],
        region: &str,
    ) -> Result<RecipientReader<&'a [u8]>, Vec<Finding>> {
        let columns = columns.iter().map(|&(name, header)| (name.to_owned(), header.to_owned())).collect();
        let settings = ListSettings { columns, region: region.parse().ok(), may_be_empty: false };
        RecipientReader::open(text.as_bytes(), Path::new("list.csv"), &settings)
    }

    fn collect_findings(text: &str, columns: &[(&str, &str)], region: &str) -> Vec<Finding> {
        open_text(text, columns, region).err().unwrap()
    }

    #[test]
    fn columns_have_the_names_from_the_campaign() {
        let text = "\u{feff}Мобільний;Ім'я; city ;First name;\n+380501234567;Олена;Київ;Olena;x\n";
        let reader = open_text(text, &[("phone", "Мобільний"), ("first_name", "Ім'я")], "").unwrap();
        let header = reader.header();
        assert_eq!(header.headers(), ["Мобільний", "Ім'я", "city", "First name", ""]);
        assert_eq!(header.names(), ["phone", "first_name", "city", "First name", "column_5"]);
        assert_eq!(header.phone(), 0);
    }

    #[test]
    fn column_findings_suggest_a_correction() {
        let list = "Мобільний,name\n+380501234567,Olena\n";
        let national = "phone,name\n0501234567,Olena\n0671234567,Ivan\n";
        let swapped = "phone,mobile\n12,+380501234567\n13,+380671234567\n";
        for (text, columns, rule, advice) in [
            (list, &[][..], "recipients-phone-column", "`columns: { phone: \"Мобільний\" }`"),
            ("tel,name\n0501234567,O\n", &[], "recipients-phone-column", "`region: UA`"),
            ("a,b\n1,2\n", &[], "recipients-phone-column", "`columns: { phone: \"…\" }`"),
            (list, &[("phone", "Мобилний")], "recipients-unknown-column", "did you mean `Мобільний`?"),
            (list, &[("phone", "x")], "recipients-unknown-column", "`Мобільний` and `name`"),
            (
                "Мобільнии\u{306}\n+380501234567\n",
                &[("phone", "Мобільни")],
                "recipients-unknown-column",
                "Write `phone: \"Мобільнии\u{306}\"`",
            ),
            (list, &[("phone", "A")], "recipients-unknown-column", "the header instead: `phone: \"Мобільний\"`"),
            (list, &[("phone", "C")], "recipients-unknown-column", "`Мобільний` and `name`"),
            (swapped, &[("mobile", "Tel")], "recipients-unknown-column", "write `Tel: \"mobile\"` in the campaign"),
            (national, &[], "recipients-phone-column", "`region: UA`"),
            (swapped, &[], "recipients-phone-column", "`columns: { phone: \"mobile\" }`"),
            ("phone,a,a\n1,2,3\n", &[], "recipients-duplicate-column", "rename one of the two columns"),
            (
                "phone,state,state\n380501234567,on,off\n",
                &[("status", "state")],
                "recipients-duplicate-column",
                "rename one of the two columns",
            ),
            (swapped, &[("phone", "mobile")], "recipients-duplicate-column", "`columns: { other_phone: \"phone\" }`"),
            (
                list,
                &[("phone", "Мобільний"), ("to", "Мобільний")],
                "recipients-duplicate-column",
                "keep one of the names",
            ),
            ("+380501234567,Olena\n+380671234567,Ivan\n", &[], "recipients-no-header", "such as `phone`"),
            ("phone,name\n", &[], "recipients-empty", "add a row"),
            ("phone,name\n\n,\n", &[], "recipients-empty", "add a row"),
        ] {
            let findings = collect_findings(text, columns, "");
            let help = findings[0].help.clone().unwrap();
            assert_eq!(findings[0].rule, rule, "{text:?}");
            assert!(help.contains(advice), "{text:?}: {help}");
            assert_eq!(findings[0].place.as_ref().unwrap().line_number(), 1, "{text:?}");
        }
    }

    #[test]
    fn column_finding_points_to_its_header() {
        for (text, columns, line, expected) in [
            ("\nname,\"Мобільний\"\nO,+380501234567\n", &[][..], 2, "\"Мобільний\""),
            ("phone,a,a\n1,2,3\n", &[], 1, "a"),
            ("phone,name\n+380501234567,O\n", &[("x", "y")], 1, "phone,name"),
            ("\n\nphone,name\n", &[], 3, "phone,name"),
        ] {
            let place = collect_findings(text, columns, "").remove(0).place.unwrap();
            assert_eq!((place.line_number(), &place.source.text()[place.span.clone()]), (line, expected), "{text:?}");
        }
    }

    #[test]
    fn all_column_findings_are_reported_at_once() {
        let findings = collect_findings("phone,name,name\n1,2\n", &[("code", "promo")], "");
        let rules: Vec<&str> = findings.iter().map(|finding| finding.rule.id).collect();
        assert_eq!(rules, ["recipients-unknown-column", "recipients-duplicate-column", "recipients-ragged-row"]);
    }

    #[test]
    fn invalid_numbers_do_not_reject_the_list() {
        for text in ["phone\n+380501234567\nx\n", "phone,n\nx,1\n", "phone,n\n,1\n"] {
            assert!(open_text(text, &[], "").is_ok(), "{text:?}");
        }
    }

    #[test]
    fn list_can_have_as_many_columns_as_a_spreadsheet() {
        let columns = |number: usize| {
            let header: String = (1..number).map(|column| format!(",column {column}")).collect();
            format!("phone{header}\n+380501234567{}\n", ",".repeat(number - 1))
        };
        assert_eq!(open_text(&columns(16_384), &[], "").unwrap().header().names().len(), 16_384);
        let finding = collect_findings(&columns(16_385), &[], "").remove(0);
        assert_eq!(finding.rule.id, "recipients-too-many-columns");
        assert!(finding.message.contains("16385 columns"), "{}", finding.message);
        let same = format!("phone{}\n+380501234567{}\n", ",a".repeat(99), ",".repeat(99));
        let findings = collect_findings(&same, &[], "");
        assert_eq!(findings.len(), 20);
        assert!(findings[19].message.ends_with("; 78 more columns have the same name as an earlier column"));
    }

    #[test]
    fn column_checks_take_linear_time() {
        let time = |number: usize| {
            let header: String =
                (1..number).map(|column| format!(",a column with a rather long name {column}")).collect();
            let text = format!("phone{header}\n+380501234567{}\n", ",".repeat(number - 1));
            let measure_once = || {
                let start = std::time::Instant::now();
                assert!(open_text(&text, &[], "").is_ok());
                crate::audience::suggest_columns(text.as_bytes(), Path::new("list.csv")).unwrap();
                start.elapsed()
            };
            (0..5).map(|_| measure_once()).min().unwrap()
        };
        let (few, many) = (time(4_000), time(16_000));
        assert!(many < few * 10, "{few:?}, and {many:?} with four times the columns");
    }

    #[test]
    fn every_record_is_returned_once_in_order() {
        let mut text = "phone,n\n".to_owned();
        for number in 0..2000 {
            text += &format!("+380501234567,{number}\n{}", if number % 7 == 0 { "\n" } else { "" });
        }
        let mut reader = open_text(&text, &[], "").unwrap();
        let (mut chunk, mut numbers, mut rows) = (Chunk::new(), Vec::new(), Vec::new());
        while reader.read_chunk(&mut chunk).unwrap() {
            assert!(chunk.len() <= Chunk::CAPACITY);
            numbers.extend(chunk.iter().map(|record| record.fields.get(1).parse::<usize>().unwrap()));
            rows.extend(chunk.iter().map(|record| record.row));
        }
        assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
        assert!(rows.is_sorted());
        let blank = 2000_usize.div_ceil(7);
        assert_eq!(reader.last_row().get() as usize, 1 + numbers.len() + blank);
        assert!(!reader.read_chunk(&mut chunk).unwrap());
    }

    #[test]
    fn ragged_row_is_reported_after_all_readable_rows() {
        let mut reader = open_text("phone,n\n+380501234567,1\n+380501234567\n+380501234567,3\n", &[], "").unwrap();
        let mut chunk = Chunk::new();
        assert_eq!(reader.read_chunk(&mut chunk).unwrap_err().rule, "recipients-ragged-row");
        assert_eq!(chunk.len(), 2);
        assert!(!reader.read_chunk(&mut chunk).unwrap());
    }

    #[test]
    fn phone_column_is_found_regardless_of_letter_case() {
        assert_eq!(open_text("Name,PHONE \nOlena,+380501234567\n", &[], "").unwrap().header().phone(), 1);
        let findings = collect_findings("Phone,PHONE\n+380501234567,+380501234567\n", &[], "");
        assert_eq!(findings[0].rule, "recipients-phone-column");
    }
}

#[cfg(test)]
mod chunk_tests {
    use super::*;

    fn chunk() -> Chunk {
        let mut chunk = Chunk::new();
        chunk.reset(2);
        chunk.push(Row::new(2), &csv::StringRecord::from(vec!["+380501234567", ""]));
        chunk.push(Row::new(5), &csv::StringRecord::from(vec!["", "Олена"]));
        chunk
    }

    #[test]
    fn cell_is_returned_by_row_and_column() {
        let chunk = chunk();
        let read: Vec<(u32, Vec<&str>)> =
            chunk.iter().map(|record| (record.row.get(), record.fields.iter().collect())).collect();
        assert_eq!(read, [(2, vec!["+380501234567", ""]), (5, vec!["", "Олена"])]);
        assert_eq!(chunk.get(1).unwrap().fields.get(1), "Олена");
        assert_eq!(chunk.get(1).unwrap().fields.get(2), "");
        assert!(chunk.get(2).is_none());
    }

    #[test]
    fn chunk_of_empty_cells_has_a_memory_limit() {
        let mut chunk = Chunk::new();
        chunk.reset(16_384);
        let record = csv::StringRecord::from(vec![""; 16_384]);
        while !chunk.is_full() {
            chunk.push(Row::new(2), &record);
        }
        assert_eq!(chunk.len(), 8);
    }

    #[test]
    fn debug_output_of_chunk_has_no_personal_data() {
        let chunk = chunk();
        let logged = format!("{chunk:?} {:?}", chunk.get(0));
        assert!(!logged.contains("1234567"), "{logged}");
    }

    #[test]
    fn chunk_can_be_sent_to_another_thread() {
        fn assert_send<T: Send + 'static>(_: &T) {}
        assert_send(&chunk());
    }
}

#[cfg(test)]
mod seen_numbers_tests {
    use super::*;
    use crate::audience::parse_phone_number;

    #[test]
    fn same_number_in_another_format_is_a_duplicate() {
        let region = "UA".parse().ok();
        let mut numbers = SeenNumbers::new();
        let is_new = ["+380 50 123 45 67", "0501234567", "0501234568", "380501234567.0"]
            .map(|text| numbers.insert(parse_phone_number(text, region).unwrap()));
        assert_eq!(is_new, [true, false, true, false]);
    }
}

#[cfg(test)]
mod column_tests {
    use super::*;

    type Cells = Vec<(u32, [String; 2])>;

    fn read_list(bytes: &[u8]) -> Result<([bool; 2], Cells), &'static str> {
        let mut cells = Vec::new();
        let read = read_columns(bytes, Path::new("part.csv"), ["id", "row"], |row, values| {
            cells.push((row.get(), values.map(str::to_owned)));
        });
        read.map(|found| (found, cells)).map_err(|finding| finding.rule.id)
    }

    #[test]
    fn requested_columns_are_read_in_every_csv_dialect() {
        let cells = [(2, ["7", "2"]), (4, ["9", "3"])].map(|(row, cells)| (row, cells.map(str::to_owned)));
        let expected = Ok(([true; 2], cells.to_vec()));
        for text in [
            "row,id\n2,7\n\n3,9\n",
            "\u{feff}row;id\r\n2;7\r\n;\r\n3; 9 \r\n",
            "row\tid\n2\t7\n\n3\t9",
            "\"row\",\"id\"\n2,\"7\"\n\n3,\"9\"\n",
            "row,id\n2,\"=\"\"7\"\"\"\n\n\"=\"\"3\"\"\",9\n",
        ] {
            assert_eq!(read_list(text.as_bytes()), expected, "{text:?}");
        }
        let expected = Ok(([false, true], vec![(2, [String::new(), "2".to_owned()])]));
        assert_eq!(read_list(b"row,number\n2,7\n"), expected);
        assert_eq!(read_list(b"id,row\n"), Ok(([true; 2], Vec::new())));
        assert_eq!(read_list(b"\xff\xfei\0d\0"), Err("recipients-encoding"));
        assert_eq!(read_list(b"id,x\n7,1\n8\n"), Err("recipients-ragged-row"));
        assert_eq!(read_list(b""), Err("recipients-empty"));
    }

    #[test]
    fn shortened_number_is_distinguished_from_other_text() {
        for cell in ["3,80501E+11", "3.80501E+11", "7E14", "7.8e+14"] {
            assert!(is_shortened_number(cell), "{cell}");
        }
        for cell in ["", "E", "380501234567", "E+11", "3,8E", "12E-3", "SALE2", "1.E5", "a1E5"] {
            assert!(!is_shortened_number(cell), "{cell}");
        }
    }

    #[test]
    fn cell_trimming_matches_str_trim() {
        let ends =
            ["", "a", "~", " ", "\t", "\u{7f}", "\u{85}", "\u{a0}", "\u{2028}", "\u{3000}", "\u{feff}", "О", "Р"];
        for (begin, end) in ends.iter().flat_map(|begin| ends.iter().map(move |end| (begin, end))) {
            for middle in ["", "x", " ", "Олена"] {
                let cell = format!("{begin}{middle}{end}");
                assert_eq!(trim_cell(&cell), cell.trim(), "{cell:?}");
            }
        }
    }
}
