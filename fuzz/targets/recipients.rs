//! Fuzz target for recipient lists: a list has the same rows in any container or encoding, and
//! independent parsers read the same rows.

use std::io::{Cursor, Write as _};
use std::path::Path;

use calamine::{Data, Ods, Xlsx};
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use campaign_content::audience::{decode, read_rows};
use campaign_core::domain::{ListFormat, Region};

/// The headers, and the rows with their numbers.
#[derive(Debug, PartialEq)]
struct Table {
    headers: Vec<String>,
    rows: Vec<(u32, Vec<String>)>,
}

/// Checks how a list is read. The first byte selects the kind of file: any bytes, text, the sheet of an Excel workbook,
/// or the content of an OpenDocument spreadsheet.
pub(super) fn check(data: &[u8]) {
    let Some((kind, rest)) = super::split_choice(data, 4) else { return };
    match kind {
        0 => assert_eq!(read_list(rest), read_list(rest), "a second reading differs"),
        1 => check_text(rest),
        2 => check_workbook::<Xlsx<_>>(pack_xlsx(rest), rest),
        // The other reader never ends if a table does not.
        _ if rest.trim_ascii_end().ends_with(b"</office:document-content>") => {
            check_workbook::<Ods<_>>(pack_ods(rest), rest);
        }
        _ => drop(read_list(&pack_ods(rest))),
    }
}

/// The rows of a list, or the rule that it breaks.
fn read_list(bytes: &[u8]) -> Result<Table, &'static str> {
    let file = Path::new("list.csv");
    let text = decode(Cursor::new(bytes.to_vec()), file, &ListFormat::default(), Some(Region::UKRAINE));
    let text = text.map_err(|finding| check_finding(&finding))?;
    let mut rows = Vec::new();
    let headers = read_rows(text, file, |_, row, fields| {
        rows.push((row.get(), fields.iter().map(str::to_owned).collect()));
        Ok(())
    });
    Ok(Table { headers: headers.map_err(|finding| check_finding(&finding))?, rows })
}

/// Checks a finding; returns the ID of its rule.
fn check_finding(finding: &campaign_core::finding::Finding) -> &'static str {
    super::check_findings(std::slice::from_ref(finding));
    finding.rule.id
}

fn check_text(bytes: &[u8]) {
    let plain = read_list(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Text with zeros can be UTF-16 without a byte order mark.
    if text.starts_with('\u{feff}') || text.contains('\0') {
        return;
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("memory");
    assert_eq!(read_list(&packed.finish().expect("memory")), plain, "gzip changes the list");
    let Ok(table) = &plain else { return };
    let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read_list(&[&[0xff, 0xfe], &wide[..]].concat()), plain, "UTF-16 changes the list");
    if !text.to_lowercase().starts_with("sep=") && !text.to_lowercase().starts_with("\"sep=") {
        let reads_the_same =
            |delimiter: &u8| read_with_csv(bytes, *delimiter, table.headers.len()) == table_cells(table);
        assert!(b",;\t|".iter().any(reads_the_same), "no delimiter gives these rows: {table:?} in {text:?}");
    }
}

fn table_cells(table: &Table) -> Vec<Vec<String>> {
    let rows = table.rows.iter().map(|(_, cells)| cells.clone());
    std::iter::once(table.headers.clone()).chain(rows).collect()
}

/// The header and the rows that are not blank, by a plain CSV reader.
fn read_with_csv(bytes: &[u8], delimiter: u8, width: usize) -> Vec<Vec<String>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(bytes);
    let records = reader.records().map_while(Result::ok);
    let rows = records.map(|record| record.iter().map(str::to_owned).collect::<Vec<String>>());
    let mut rows: Vec<Vec<String>> = rows.filter(|row| row.iter().any(|cell| !cell.trim().is_empty())).collect();
    rows.iter_mut().for_each(|row| row.resize(width, String::new()));
    if let Some(header) = rows.first_mut() {
        let trim = |cell: &String| cell.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').to_owned();
        *header = header.iter().map(trim).collect();
    }
    rows
}

/// Checks the rows of a workbook against another reader.
fn check_workbook<W: calamine::Reader<Cursor<Vec<u8>>>>(workbook: Vec<u8>, sheet: &[u8]) {
    let Ok(table) = read_list(&workbook) else { return };
    // The other reader does not limit positions and repetitions, so it could exhaust memory.
    let has_large_number = sheet.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > 3);
    if has_large_number {
        return;
    }
    let Ok(mut theirs) = W::new(Cursor::new(workbook)) else { return };
    let Some(Ok(range)) = theirs.worksheet_range_at(0) else { return };
    let Some((first_row, first_column)) = range.start() else { return };
    for (row, cells) in &table.rows {
        for (column, cell) in cells.iter().enumerate() {
            let place = (row.wrapping_sub(1).wrapping_sub(first_row), (column as u32).wrapping_sub(first_column));
            let other = range.get((place.0 as usize, place.1 as usize));
            if let Some(Data::String(other)) = other {
                assert_eq!(normalize(cell), normalize(other), "row {row}, column {column}");
            }
        }
    }
}

/// The words of a cell.
fn normalize(cell: &str) -> Vec<&str> {
    cell.split_whitespace().collect()
}

/// A workbook with this sheet.
fn pack_xlsx(sheet: &[u8]) -> Vec<u8> {
    const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
    const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
    const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const SHEETS: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";
    let types = format!(
        r#"{HEAD}<Types xmlns="{PACKAGE}/content-types">
            <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
            <Override PartName="/xl/workbook.xml" ContentType="{SHEETS}.sheet.main+xml"/>
            <Override PartName="/xl/worksheets/sheet1.xml" ContentType="{SHEETS}.worksheet+xml"/></Types>"#
    );
    let relation = |id: &str, kind: &str, target: &str| {
        format!(
            r#"{HEAD}<Relationships xmlns="{PACKAGE}/relationships">
            <Relationship Id="{id}" Type="{OFFICE}/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let book = format!(
        r#"{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">
            <sheets><sheet name="List" sheetId="1" r:id="rId1"/></sheets></workbook>"#
    );
    let root_relations = relation("rId1", "officeDocument", "xl/workbook.xml");
    let book_relations = relation("rId1", "worksheet", "worksheets/sheet1.xml");
    pack(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", root_relations.as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
        ("xl/_rels/workbook.xml.rels", book_relations.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet),
    ])
}

/// A spreadsheet with this content.
fn pack_ods(content: &[u8]) -> Vec<u8> {
    const KIND: &str = "application/vnd.oasis.opendocument.spreadsheet";
    let manifest = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
            <manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">
            <manifest:file-entry manifest:full-path="/" manifest:media-type="{KIND}"/>
            <manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"#
    );
    pack(&[("mimetype", KIND.as_bytes()), ("content.xml", content), ("META-INF/manifest.xml", manifest.as_bytes())])
}

fn pack(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in files {
        archive.start_file(*name, options).expect("memory");
        archive.write_all(content).expect("memory");
    }
    archive.finish().expect("memory").into_inner()
}
