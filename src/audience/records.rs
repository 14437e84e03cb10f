//! The file's records under their row numbers, before anybody knows what the columns mean.
//!
//! Refuses what is no CSV in UTF-8, and every way in which a row could be lost in silence.

use std::io::Read;
use std::path::{Path, PathBuf};

use csv::StringRecord;

use super::cells::{Flaw, cells};
use super::chunk::Chunk;
use super::dialect::{Delimiter, Foreign};
use super::inspection::Inspection;
use super::intake::Intake;
use super::trouble::{self, Ragged, Spot};
use crate::domain::Row;
use crate::finding::{Finding, Place};

/// The most columns of a list: as many as a spreadsheet has.
const MOST_COLUMNS: usize = 16_384;

/// The records behind the header.
pub(super) struct Records<R> {
    csv: csv::Reader<Intake<R>>,
    header: HeaderLine,
    record: StringRecord,
    /// The last row met, blank ones included.
    row: u32,
    ended: bool,
    /// The column that holds the numbers, once it is known.
    phone: Option<usize>,
}

/// The header as it stands in the file.
pub(super) struct HeaderLine {
    /// The file as the user called it.
    pub(super) file: PathBuf,
    /// The headers, trimmed.
    pub(super) headers: Vec<String>,
    pub(super) delimiter: Delimiter,
    line: u64,
    raw: Vec<u8>,
}

impl HeaderLine {
    /// Refuses a record that has more or fewer cells than the header, once that is read.
    fn measure(&self, spot: Spot<'_>, cells_found: usize) -> Result<(), Box<Finding>> {
        let expected = self.headers.len();
        if cells_found == expected || expected == 0 {
            return Ok(());
        }
        let first = cells(spot.raw, self.delimiter.byte()).nth(expected).map(|cell| cell.span.start..spot.raw.len());
        let ragged = Ragged { cells: cells_found, expected, delimiter: self.delimiter, surplus: first };
        Err(trouble::ragged(spot, ragged).into())
    }

    /// The whole header as a piece of the file.
    pub(super) fn spot(&self) -> Spot<'_> {
        Spot { file: &self.file, line: self.line, raw: &self.raw }
    }

    /// Where a column's header stands.
    pub(super) fn place(&self, column: usize) -> Place {
        let cell = cells(&self.raw, self.delimiter.byte()).nth(column);
        self.spot().place(cell.map_or(self.spot().all(), |cell| cell.span))
    }
}

impl<R: Read> Records<R> {
    /// Reads as far as the header.
    pub(super) fn open(input: R, file: &Path) -> Result<Self, Box<Finding>> {
        let mut intake = Intake::new(input);
        let head = intake.head().map_err(|error| trouble::unreadable(file, &error))?;
        if let Some(foreign) = Foreign::of(head) {
            return Err(trouble::foreign(file, foreign).into());
        }
        let delimiter = Delimiter::of(head);
        let csv = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter.byte())
            .buffer_capacity(1 << 16)
            .from_reader(intake);
        let header = HeaderLine { file: file.to_owned(), headers: Vec::new(), delimiter, line: 1, raw: Vec::new() };
        let mut records = Self { csv, header, record: StringRecord::new(), row: 0, ended: false, phone: None };
        records.read_header()?;
        Ok(records)
    }

    pub(super) fn header(&self) -> &HeaderLine {
        &self.header
    }

    /// The last row met; at the end the last one of the file.
    pub(super) fn last_row(&self) -> Row {
        Row::new(self.row)
    }

    /// Names the column that holds the numbers, by which a swallowed row is recognised.
    pub(super) fn expect_phones_in(&mut self, column: usize) {
        self.phone = Some(column);
    }

    /// Fills the chunk; it stays empty at the end of the file.
    ///
    /// # Errors
    ///
    /// A row is not as it should be. The chunk holds the records before it. Behind a ragged row
    /// reading can go on; behind anything else the file counts as ended.
    pub(super) fn fill(&mut self, chunk: &mut Chunk) -> Result<(), Box<Finding>> {
        chunk.clear(self.header.headers.len());
        while !chunk.is_full() {
            match self.next()? {
                Some(row) => chunk.push(row, &self.record),
                None => break,
            }
        }
        Ok(())
    }

    fn read_header(&mut self) -> Result<(), Box<Finding>> {
        if self.next()?.is_none() {
            return Err(trouble::nothing(&self.header.file).into());
        }
        let trimmed = |cell: &str| cell.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned();
        self.header.headers = self.record.iter().map(trimmed).collect();
        let (line, raw) = self.csv.get_ref().last();
        (self.header.line, self.header.raw) = (line, raw.to_owned());
        if self.header.headers.len() > MOST_COLUMNS {
            let place = self.header.place(MOST_COLUMNS);
            return Err(trouble::too_many_columns(place, self.header.headers.len(), MOST_COLUMNS).into());
        }
        Ok(())
    }

    /// Reads the next record that is not blank.
    fn next(&mut self) -> Result<Option<Row>, Box<Finding>> {
        while !self.ended {
            // Whatever goes wrong below ends the file, a ragged row excepted.
            self.ended = true;
            let read = self.csv.read_record(&mut self.record);
            let end = self.csv.position().byte();
            if let Err(error) = &read
                && let csv::ErrorKind::Io(error) = error.kind()
            {
                return Err(broken_off(self.csv.get_ref(), &self.header, error).into());
            }
            let raw = self.csv.get_mut().close(end);
            let found = u64::from(!raw.bytes.is_empty());
            let row = u32::try_from(u64::from(self.row) + raw.blank + found);
            self.row = row.map_err(|_| trouble::too_many_rows(&self.header.file))?;
            if found == 0 {
                return Ok(None);
            }
            let spot = Spot { file: &self.header.file, line: raw.line, raw: raw.bytes };
            if read.is_err() {
                let at = str::from_utf8(raw.bytes).map_or_else(|error| error.valid_up_to(), |_| 0);
                return Err(trouble::encoding(spot, at).into());
            }
            Inspection { spot, header: &self.header, phone: self.phone }.refuse_flaws(&raw)?;
            self.ended = false;
            if self.record.as_slice().trim_start().is_empty() {
                continue;
            }
            self.header.measure(spot, self.record.len())?;
            return Ok(Some(Row::new(self.row)));
        }
        Ok(None)
    }
}

/// Why no further byte can be read.
fn broken_off<R: Read>(intake: &Intake<R>, header: &HeaderLine, error: &std::io::Error) -> Finding {
    if !intake.is_overlong() {
        return trouble::unreadable(&header.file, error);
    }
    let raw = intake.unfinished();
    let spot = Spot { file: &header.file, line: raw.line, raw: raw.bytes };
    let unclosed = cells(raw.bytes, header.delimiter.byte()).find(|cell| cell.flaw == Some(Flaw::Unclosed));
    unclosed.map_or_else(|| trouble::large_record(spot), |cell| trouble::unclosed_quote(spot, cell.span.start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Read = (Vec<(u32, Vec<String>)>, u32);

    /// The records of a file, and its last row.
    fn read(text: &str) -> Result<Read, Box<Finding>> {
        read_from(text.as_bytes())
    }

    fn read_from(input: impl std::io::Read) -> Result<Read, Box<Finding>> {
        let mut records = Records::open(input, Path::new("list.csv"))?;
        records.expect_phones_in(0);
        let (mut chunk, mut read) = (Chunk::new(), Vec::new());
        loop {
            records.fill(&mut chunk)?;
            if chunk.is_empty() {
                return Ok((read, records.last_row().get()));
            }
            let owned = |fields: crate::audience::Fields<'_>| fields.iter().map(str::to_owned).collect();
            read.extend(chunk.iter().map(|record| (record.row.get(), owned(record.fields))));
        }
    }

    fn refusal(text: &str) -> Finding {
        *read(text).err().unwrap()
    }

    #[test]
    fn trouble_is_named_with_its_line() {
        for (text, rule, line) in [
            ("", "recipients-empty", 1),
            ("\n\n", "recipients-empty", 1),
            ("phone,name\n1,a\n2,b,c\n", "recipients-ragged-row", 3),
            ("phone,name\n\n\n1,a\n2\n", "recipients-ragged-row", 5),
            ("phone,name\r\n1,\"a\r\nb\"\r\n2\r\n", "recipients-ragged-row", 4),
            ("phone,name\n1,a\n2,\"b\n3,c\n", "recipients-unclosed-quote", 3),
            ("phone,name\n1,a\n2,\"b\n3,\"c\"\n", "recipients-unclosed-quote", 3),
            ("phone,name\n1,\"b\n380501234567,Ivan\"\n", "recipients-unclosed-quote", 2),
            ("phone,name\n1,\"a \"b\" c\"\n", "recipients-stray-quote", 2),
            ("phone,name\n1,a\n2,\0\n", "recipients-not-csv", 3),
        ] {
            let finding = refusal(text);
            assert_eq!((finding.rule, finding.place.unwrap().line()), (rule, line), "{text:?}");
        }
    }

    #[test]
    fn the_place_of_a_ragged_row_is_what_is_too_much() {
        let finding = refusal("phone,city\n1,Kyiv, centre\n");
        let place = finding.place.unwrap();
        assert_eq!(finding.message, "line 2 has 3 cells, the header has 2");
        assert_eq!(&place.source.text()[place.span], " centre");
        assert!(finding.help.unwrap().contains("comma inside a cell"));
    }

    #[test]
    fn cells_of_several_lines_are_read_where_they_are_meant() {
        let (records, last) =
            read("phone,address\n1,\"Kyiv,\n12, Main St\"\n\"380501234567\n380671234567\",x\n").unwrap();
        assert_eq!(last, 3);
        assert_eq!(records[0].1[1], "Kyiv,\n12, Main St");
        assert_eq!(records[1].0, 3);
    }

    #[test]
    fn another_encoding_is_named_with_its_line() {
        let finding = |bytes: &[u8]| {
            let mut records = Records::open(bytes, Path::new("list.csv"))?;
            records.fill(&mut Chunk::new())
        };
        let cyrillic = b"phone,name\n1,a\n2,\xce\xeb\xe5\xed\xe0\n";
        let encoding = finding(cyrillic).unwrap_err();
        assert_eq!((encoding.rule, encoding.place.unwrap().line()), ("recipients-encoding", 3));
        assert!(encoding.help.unwrap().contains("CSV UTF-8"));
        let split = finding(b"phone,name\n1,\xd0,\x9e\n").unwrap_err();
        assert_eq!(split.rule, "recipients-encoding");
        assert_eq!(finding(b"\xff\xfep\0,\0").unwrap_err().rule, "recipients-encoding");
        assert_eq!(finding(b"PK\x03\x04\x14\0").unwrap_err().rule, "recipients-not-csv");
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let long = "x".repeat((1 << 16) + 1);
        assert_eq!(refusal(&format!("phone,name\n1,a\n2,{long}\n")).message, "line 3 has a cell of more than 64 KiB");
        let quoted = format!("phone,name\n1,a\n2,\"b\n{}", "3,c\n".repeat(1 << 20));
        let finding = refusal(&quoted);
        assert_eq!((finding.rule, finding.place.unwrap().line()), ("recipients-unclosed-quote", 3));
        let endless = format!("phone,name\n1,a\n2,{}", "b,".repeat(1 << 20));
        assert_eq!(refusal(&endless).message, "the row in line 3 has more than 1 MiB");
    }

    #[test]
    fn reading_goes_on_behind_a_ragged_row() {
        let text = "phone,name\n1,a\n2\n3,c\n";
        let mut records = Records::open(text.as_bytes(), Path::new("list.csv")).unwrap();
        let mut chunk = Chunk::new();
        let rows = |chunk: &Chunk| chunk.iter().map(|record| record.row.get()).collect::<Vec<_>>();
        assert!(records.fill(&mut chunk).is_err());
        assert_eq!(rows(&chunk), [2]);
        records.fill(&mut chunk).unwrap();
        assert_eq!(rows(&chunk), [4]);
    }

    #[test]
    fn a_failing_disk_is_no_end_of_file() {
        struct Failing;
        impl std::io::Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("device gone"))
            }
        }
        let head = "phone,name\n".repeat(20_000);
        let mut records = Records::open(std::io::Read::chain(head.as_bytes(), Failing), Path::new("list.csv")).unwrap();
        let mut chunk = Chunk::new();
        let error = std::iter::repeat_with(|| records.fill(&mut chunk)).find_map(Result::err).unwrap();
        assert_eq!(error.message, "cannot read `list.csv`: device gone");
    }

    #[test]
    fn rows_are_counted_alike_however_the_input_is_cut() {
        struct Crumbs<'a>(&'a [u8], usize);
        impl std::io::Read for Crumbs<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                let size = buffer.len().min(self.1);
                self.0.read(&mut buffer[..size])
            }
        }
        let rows = "+380501234567,a\r\n\r\n\r\n\"+380501234567\",\"b\r\n\r\nc\"\r\n,\r\n";
        let text = format!("phone,name\r\n{}", rows.repeat(5000));
        for size in [1, 7, 4096, 65_535, 65_537, usize::MAX] {
            let (records, last) = read_from(Crumbs(text.as_bytes(), size)).unwrap();
            assert_eq!((records.len(), last), (10_000, 1 + 5 * 5000), "{size} bytes at a time");
            assert_eq!(records.last().unwrap().0, 5 * 5000, "{size} bytes at a time");
        }
    }

    /// A row as a spreadsheet shows it: cells, or nothing in any of several spellings.
    #[derive(Clone, Debug)]
    enum Shown {
        Cells(Vec<String>),
        Blank(&'static str),
    }

    fn quoted(cell: &str, always: bool) -> String {
        let needed = cell.contains([',', '"', '\n', '\r']);
        if always || needed { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
    }

    fn row() -> impl Strategy<Value = (Shown, bool)> {
        let cells = prop::collection::vec("[aї ,\"\n\r]{0,6}", 3).prop_map(Shown::Cells);
        let blank = prop::sample::select(vec!["", " ", ",,", " , ,", "\"\",,", "\t"]).prop_map(Shown::Blank);
        (prop_oneof![3 => cells, 1 => blank], any::<bool>())
    }

    proptest! {
        #[test]
        fn rows_have_the_numbers_of_a_spreadsheet(
            rows in prop::collection::vec(row(), 0..40),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            last_line_ends: bool,
            mark: bool,
        ) {
            let mut lines = vec!["phone,name,city".to_owned()];
            let mut expected = Vec::new();
            for (number, (shown, always)) in (2..).zip(&rows) {
                lines.push(match shown {
                    Shown::Blank(spelling) => (*spelling).to_owned(),
                    Shown::Cells(cells) => cells.iter().map(|cell| quoted(cell, *always)).collect::<Vec<_>>().join(","),
                });
                if let Shown::Cells(cells) = shown && cells.iter().any(|cell| !cell.trim().is_empty()) {
                    expected.push((number, cells.clone()));
                }
            }
            // An empty last line without a line end is no line at all.
            let ends = last_line_ends || lines.last().is_some_and(String::is_empty);
            let text = format!("{}{}{}", if mark { "\u{feff}" } else { "" }, lines.join(end), if ends { end } else { "" });
            let (records, last) = read(&text).unwrap();
            prop_assert_eq!(records, expected);
            prop_assert_eq!(last as usize, lines.len());
        }

        #[test]
        fn no_file_makes_the_reader_panic(bytes in prop::collection::vec(prop::sample::select(b"a1,;\t\"\r\n\0\xd0\x9e".to_vec()), 0..200)) {
            let _ = Records::open(bytes.as_slice(), Path::new("list.csv")).and_then(|mut records| {
                records.expect_phones_in(0);
                records.fill(&mut Chunk::new())
            });
        }
    }
}
