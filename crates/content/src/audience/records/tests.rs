//! Tests of records and their row numbers.

use proptest::prelude::*;

use super::*;

type RecordsAndLastRow = (Vec<(u32, Vec<String>)>, u32);

/// The records of a file, and its last row.
fn read_text(text: &str) -> Result<RecordsAndLastRow, Box<Finding>> {
    read_input(text.as_bytes())
}

fn read_input(input: impl std::io::Read) -> Result<RecordsAndLastRow, Box<Finding>> {
    let mut records = RecordReader::open(input, Path::new("list.csv"))?;
    records.set_phone_column(0);
    let (mut chunk, mut read) = (Chunk::new(), Vec::new());
    loop {
        records.fill_chunk(&mut chunk)?;
        if chunk.is_empty() {
            return Ok((read, records.last_row().get()));
        }
        let owned = |fields: crate::audience::RecordFields<'_>| fields.iter().map(str::to_owned).collect();
        read.extend(chunk.iter().map(|record| (record.row.get(), owned(record.fields))));
    }
}

fn read_error(text: &str) -> Finding {
    *read_text(text).err().unwrap()
}

#[test]
fn finding_names_its_line() {
    for (text, rule, line) in [
        ("", "recipients-empty", 1),
        ("\n\n", "recipients-empty", 1),
        ("phone,name\n1,a\n2,b,c\n", "recipients-ragged-row", 3),
        ("phone,name\n\n\n1,a\n2\n", "recipients-ragged-row", 5),
        ("phone,name\r\n1,\"a\r\nb\"\r\n2\r\n", "recipients-ragged-row", 4),
        ("phone,name\n1,a\n2,\"b\n3,c\n", "recipients-unclosed-quote", 3),
        ("phone,name\n1,a\n2,\"b\n3,\"c\"\n", "recipients-unclosed-quote", 3),
        ("phone,name\n1,\"b\n380501234567,Ivan\n\"\n", "recipients-unclosed-quote", 2),
        ("phone,name,city\n1,\"b\n380501234567,\",Kyiv\n", "recipients-unclosed-quote", 2),
        ("a,b,phone\n\"O,x,1\nIvan,\",Kyiv\",2\n", "recipients-unclosed-quote", 2),
        ("phone,name\n1,\"a \"b\" c\"\n", "recipients-stray-quote", 2),
        ("phone,name\n1,a\n2,\0\n", "recipients-not-csv", 3),
    ] {
        let finding = read_error(text);
        assert_eq!((finding.rule.id, finding.place.unwrap().line_number()), (rule, line), "{text:?}");
    }
}

#[test]
fn ragged_row_is_reported_at_its_surplus_cells() {
    let finding = read_error("phone,city\n1,Kyiv, centre\n");
    let place = finding.place.unwrap();
    assert_eq!(finding.message, "line 2 has 3 cells, but the header has 2");
    assert_eq!(&place.source.text()[place.span], " centre");
    assert!(finding.help.unwrap().contains("comma inside an unquoted cell"));
}

#[test]
fn multiline_cells_are_read() {
    let (records, last) =
        read_text("phone,address\n1,\"Kyiv,\n12, Main St\"\n\"380501234567\n380671234567\",x\n").unwrap();
    assert_eq!(last, 3);
    assert_eq!(records[0].1[1], "Kyiv,\n12, Main St");
    assert_eq!(records[1].0, 3);
}

#[test]
fn multiline_cell_before_the_number_is_not_a_row() {
    let list = "name,code,phone\n\"Olena\nKoval\",X1,380501234567\n\"Ivan\r\nBondar\" ,X2,380671234567\n";
    let mut records = RecordReader::open(list.as_bytes(), Path::new("list.csv")).unwrap();
    records.set_phone_column(2);
    let mut chunk = Chunk::new();
    records.fill_chunk(&mut chunk).unwrap();
    assert_eq!(chunk.iter().count(), 2);
    let swallowed = "name,code,phone\n\"Olena\nKoval,X1,380501234567\n\",X2,380671234567\n";
    let mut records = RecordReader::open(swallowed.as_bytes(), Path::new("list.csv")).unwrap();
    records.set_phone_column(2);
    assert_eq!(records.fill_chunk(&mut chunk).unwrap_err().rule, "recipients-unclosed-quote");
}

#[test]
fn delimiter_line_is_not_a_row() {
    let (records, last) = read_text("\u{feff}sep=;\r\nphone;name\r\n380501234567;\"a;b\"\r\n").unwrap();
    assert_eq!((records, last), (vec![(2, vec!["380501234567".to_owned(), "a;b".to_owned()])], 2));
    let finding = read_error("sep=;\nphone;name\n1\n");
    assert_eq!((finding.rule.id, finding.place.unwrap().line_number()), ("recipients-ragged-row", 3));
}

#[test]
fn ragged_row_finding_suggests_the_probable_cause() {
    for (text, probably) in [
        ("phone,city\n1,Kyiv, centre\n", "comma inside an unquoted cell"),
        ("name,phone\nOlena,3,80501E+11\n", "shortened"),
        ("Spring clients\nphone,name\n1,a\n", "title"),
        ("phone,city\n1\n", "line break"),
    ] {
        assert!(read_error(text).help.unwrap().contains(probably), "{text:?}");
    }
}

#[test]
fn invalid_encoding_is_reported_with_its_line() {
    let finding = |bytes: &[u8]| {
        let mut records = RecordReader::open(bytes, Path::new("list.csv"))?;
        records.fill_chunk(&mut Chunk::new())
    };
    let cyrillic = b"phone,name\n1,a\n2,\xce\xeb\xe5\xed\xe0\n";
    let encoding = finding(cyrillic).unwrap_err();
    assert_eq!((encoding.rule.id, encoding.place.unwrap().line_number()), ("recipients-encoding", 3));
    assert!(encoding.help.unwrap().contains("CSV UTF-8"));
    let split = finding(b"phone,name\n1,\xd0,\x9e\n").unwrap_err();
    assert_eq!(split.rule.id, "recipients-encoding");
    assert_eq!(finding(b"\xff\xfep\0,\0").unwrap_err().rule, "recipients-encoding");
    assert_eq!(finding(b"PK\x03\x04\x14\0").unwrap_err().rule, "recipients-not-csv");
}

#[test]
fn oversized_input_is_rejected() {
    let long = "x".repeat((1 << 16) + 1);
    assert_eq!(
        read_error(&format!("phone,name\n1,a\n2,{long}\n")).message,
        "line 3 has a cell that is larger than 64 KiB"
    );
    let quoted = format!("phone,name\n1,a\n2,\"b\n{}", "3,c\n".repeat(1 << 20));
    let finding = read_error(&quoted);
    assert_eq!((finding.rule.id, finding.place.unwrap().line_number()), ("recipients-unclosed-quote", 3));
    for (text, end) in [("3,c\n", "\"\n"), ("3,c\n", "\" \r\n"), ("3,\"\"c\"\"\n", "\"\"\""), ("3\n", "\"")] {
        let closed = format!("phone,name\n1,a\n2,\"b\n{}{end}", text.repeat((3 << 19) / text.len()));
        assert_eq!(read_error(&closed).message, "the row on line 3 is larger than 1 MiB", "{end:?}");
    }
    let reopened = format!("phone,name\n1,a\n2,\"b\n{}4,\"d\"\n", "3,c\n".repeat(1 << 19));
    assert_eq!(read_error(&reopened).rule.id, "recipients-unclosed-quote");
    let endless = format!("phone,name\n1,a\n2,{}", "b,".repeat(1 << 20));
    assert_eq!(read_error(&endless).message, "the row on line 3 is larger than 1 MiB");
}

#[test]
fn ragged_rows_are_reported_together_at_the_end() {
    let mut text = "phone,name\n".to_owned();
    for row in 2..1_000 {
        text += if row % 40 == 0 { "1\n" } else { "1,a\n" };
    }
    let mut records = RecordReader::open(text.as_bytes(), Path::new("list.csv")).unwrap();
    let (mut chunk, mut read) = (Chunk::new(), 0);
    let finding = loop {
        let filled = records.fill_chunk(&mut chunk);
        read += chunk.len();
        if let Err(finding) = filled {
            break finding;
        }
    };
    assert_eq!((read, finding.place.as_ref().unwrap().line_number()), (998 - 24, 40));
    let rows = (1..=20).map(|row| (40 * row).to_string()).collect::<Vec<_>>().join(", ");
    let whole = format!("line 40 has 1 cell, but the header has 2; 24 rows have this problem: {rows} and 4 more");
    assert_eq!(finding.message, whole);
    records.fill_chunk(&mut chunk).unwrap();
    assert!(chunk.is_empty());
}

#[test]
fn trailing_empty_cells_are_ignored() {
    let (records, _) = read_text("phone,name,,\n1,a\n2,b,,\n3,c,,, ,\n").unwrap();
    let cells = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
    assert_eq!(
        records,
        [(2, cells(["1", "a", "", ""])), (3, cells(["2", "b", "", ""])), (4, cells(["3", "c", "", ""]))]
    );
    assert_eq!(read_error("phone,name\n1\n").rule, "recipients-ragged-row");
    assert_eq!(read_error("phone,name\n1,a,,x\n").rule, "recipients-ragged-row");
}

#[test]
fn disk_error_is_not_reported_as_end_of_file() {
    struct FailingInput;
    impl std::io::Read for FailingInput {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("device gone"))
        }
    }
    let head = "phone,name\n".repeat(20_000);
    let mut records =
        RecordReader::open(std::io::Read::chain(head.as_bytes(), FailingInput), Path::new("list.csv")).unwrap();
    let mut chunk = Chunk::new();
    let error = std::iter::repeat_with(|| records.fill_chunk(&mut chunk)).find_map(Result::err).unwrap();
    assert_eq!(error.message, "cannot read `list.csv`: device gone");
}

#[test]
fn row_count_is_the_same_for_any_read_size() {
    struct ChunkedInput<'a>(&'a [u8], usize);
    impl std::io::Read for ChunkedInput<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let size = buffer.len().min(self.1);
            self.0.read(&mut buffer[..size])
        }
    }
    let rows = "+380501234567,a\r\n\r\n\r\n\"+380501234567\",\"b\r\n\r\nc\"\r\n,\r\n";
    let text = format!("phone,name\r\n{}", rows.repeat(5000));
    for size in [1, 7, 4096, 65_535, 65_537, usize::MAX] {
        let (records, last) = read_input(ChunkedInput(text.as_bytes(), size)).unwrap();
        assert_eq!((records.len(), last), (10_000, 1 + 5 * 5000), "{size} bytes at a time");
        assert_eq!(records.last().unwrap().0, 5 * 5000, "{size} bytes at a time");
    }
}

/// A row in a spreadsheet: cells, or one of several spellings of a blank row.
#[derive(Clone, Debug)]
enum SheetRow {
    Cells(Vec<String>),
    Blank(&'static str),
}

fn quote_cell(cell: &str, always: bool) -> String {
    let needed = cell.contains([',', '"', '\n', '\r']);
    if always || needed { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

fn any_row() -> impl Strategy<Value = (SheetRow, bool)> {
    let cells = prop::collection::vec("[aї ,\"\n\r]{0,6}", 3).prop_map(SheetRow::Cells);
    let blank = prop::sample::select(vec!["", " ", ",,", " , ,", "\"\",,", "\t"]).prop_map(SheetRow::Blank);
    (prop_oneof![3 => cells, 1 => blank], any::<bool>())
}

/// Text whose inner lines are rows of a list with three columns, between a first and a last word.
fn rows_as_text() -> impl Strategy<Value = String> {
    let cell = || prop::sample::select(vec!["a", "", "380671234567"]);
    prop::collection::vec(prop::collection::vec(cell(), 3), 1..3).prop_map(|rows| {
        let rows: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
        format!("a\n{}a", rows.join("\n"))
    })
}

/// Cells whose first characters make the opening quote look like the closing quote of an earlier cell.
fn any_cell() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", ",a", ",,a", "\na", "\n,a", "\",a", "a,"]).prop_map(str::to_owned)
}

/// The lines of a list with three columns: a number in column `phone`, and two cells.
fn build_list(phone: usize, cells: &[(String, String)], always: bool) -> Vec<String> {
    let row = |(first, second): &(String, String)| {
        let mut row = vec![quote_cell(first, always), quote_cell(second, always)];
        row.insert(phone, "380501234567".to_owned());
        row.join(",")
    };
    std::iter::once("a,b,c".to_owned()).chain(cells.iter().map(row)).collect()
}

fn read_with_phone_column(text: &str, phone: usize) -> Result<Vec<Row>, Box<Finding>> {
    let mut records = RecordReader::open(text.as_bytes(), Path::new("list.csv"))?;
    records.set_phone_column(phone);
    let mut chunk = Chunk::new();
    records.fill_chunk(&mut chunk)?;
    Ok(chunk.iter().map(|record| record.row).collect())
}

proptest! {
    #[test]
    fn rows_are_numbered_as_in_a_spreadsheet(
        rows in prop::collection::vec(any_row(), 0..40),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        last_line_ends: bool,
        has_bom: bool,
    ) {
        let mut lines = vec!["phone,name,city".to_owned()];
        let mut expected = Vec::new();
        for (number, (row, always)) in (2..).zip(&rows) {
            lines.push(match row {
                SheetRow::Blank(spelling) => (*spelling).to_owned(),
                SheetRow::Cells(cells) => cells.iter().map(|cell| quote_cell(cell, *always)).collect::<Vec<_>>().join(","),
            });
            if let SheetRow::Cells(cells) = row && cells.iter().any(|cell| !cell.trim().is_empty()) {
                expected.push((number, cells.clone()));
            }
        }
        // An empty last line counts only if it has a line ending, so it always gets one.
        let ends = last_line_ends || lines.last().is_some_and(String::is_empty);
        let bom = if has_bom { "\u{feff}" } else { "" };
        let text = format!("{}{}{}", bom, lines.join(end), if ends { end } else { "" });
        let (records, last) = read_text(&text).unwrap();
        prop_assert_eq!(records, expected);
        prop_assert_eq!(last as usize, lines.len());
    }

    #[test]
    fn valid_list_with_multiline_cells_is_accepted(
        rows in prop::collection::vec(prop::collection::vec("[aї0-9\"\n\r]{0,8}", 2), 1..20),
        phone in 0_usize..3,
        end in prop::sample::select(vec!["\n", "\r\n"]),
        always: bool,
    ) {
        let mut text = ["a", "b", "c"].join(",") + end;
        for cells in &rows {
            let mut cells: Vec<String> = cells.iter().map(|cell| quote_cell(cell, always)).collect();
            cells.insert(phone, "380501234567".to_owned());
            text += &(cells.join(",") + end);
        }
        let mut records = RecordReader::open(text.as_bytes(), Path::new("list.csv")).unwrap();
        records.set_phone_column(phone);
        let mut chunk = Chunk::new();
        records.fill_chunk(&mut chunk).unwrap();
        prop_assert_eq!(chunk.iter().count(), rows.len());
    }

    #[test]
    fn valid_list_with_row_like_cells_is_accepted(
        cells in prop::collection::vec((rows_as_text(), "[a,\n]{0,6}"), 1..8),
        phone in 0_usize..3,
        always: bool,
    ) {
        let text = build_list(phone, &cells, always).join("\n");
        prop_assert_eq!(read_with_phone_column(&text, phone).map(|records| records.len()).ok(), Some(cells.len()));
    }

    #[test]
    fn unclosed_quote_never_swallows_a_row(
        cells in prop::collection::vec((any_cell(), any_cell()), 2..5),
        phone in 0_usize..3,
        always: bool,
        damaged_row in any::<prop::sample::Index>(),
    ) {
        let mut rows = build_list(phone, &cells, always);
        let (whole, row) = (rows.join("\n"), 1 + damaged_row.index(cells.len()));
        let closing = rows[row].match_indices('"').nth(1).map(|(at, _)| at);
        prop_assume!(closing.is_some());
        rows[row].remove(closing.unwrap());
        let damaged = rows.join("\n");
        let (whole, damaged) = (read_with_phone_column(&whole, phone).unwrap().len(), read_with_phone_column(&damaged, phone));
        prop_assert!(damaged.is_err() || damaged.unwrap().len() >= whole, "{}", rows.join("\n"));
    }

    #[test]
    fn reader_never_panics(bytes in prop::collection::vec(prop::sample::select(b"a1,;\t\"\r\n\0\xd0\x9e".to_vec()), 0..200)) {
        let _ = RecordReader::open(bytes.as_slice(), Path::new("list.csv")).and_then(|mut records| {
            records.set_phone_column(0);
            records.fill_chunk(&mut Chunk::new())
        });
    }
}
