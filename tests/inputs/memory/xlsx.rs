//! Memory limits for Excel workbooks (XLSX).

use super::zip::{Content, zip};
use super::{assert_read, assert_refused};
use crate::support::phone;

const TYPES: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

fn relation(id: &str, kind: &str, target: &str) -> String {
    format!("<Relationship Id=\"{id}\" Type=\"{TYPES}/{kind}\" Target=\"{target}\"/>")
}

/// A workbook with one recipient, in which these parts are replaced.
fn workbook(other: &[(&str, Content)]) -> Vec<u8> {
    let text = |cell: &str, text: u8| format!("<c r=\"{cell}\" t=\"s\"><v>{text}</v></c>");
    let header = format!("<row r=\"1\">{}{}</row>", text("A1", 0), text("B1", 1));
    let recipient = format!("<row r=\"2\"><c r=\"A2\"><v>{}</v></c>{}</row>", phone(2), text("B2", 2));
    let sheet = relation("r", "worksheet", "worksheets/sheet1.xml");
    let mut parts: Vec<(&str, Content)> = [
        ("[Content_Types].xml", "<Types/>".to_owned()),
        (
            "_rels/.rels",
            format!("<Relationships>{}</Relationships>", relation("r", "officeDocument", "xl/workbook.xml")),
        ),
        ("xl/workbook.xml", "<workbook><sheets><sheet name=\"Clients\" r:id=\"r\"/></sheets></workbook>".to_owned()),
        ("xl/_rels/workbook.xml.rels", format!("<Relationships>{sheet}</Relationships>")),
        ("xl/styles.xml", "<styleSheet><cellXfs><xf numFmtId=\"0\"/></cellXfs></styleSheet>".to_owned()),
        ("xl/sharedStrings.xml", shared_strings("<si><t>Ann</t></si>")),
        ("xl/worksheets/sheet1.xml", worksheet(&format!("{header}{recipient}"))),
    ]
    .map(|(name, text)| (name, Content::of(&text)))
    .into();
    parts.retain(|(name, _)| other.iter().all(|(other_name, _)| name != other_name));
    parts.extend_from_slice(other);
    zip(&parts)
}

fn shared_strings(extra: &str) -> String {
    format!("<sst><si><t>phone</t></si><si><t>name</t></si>{extra}</sst>")
}

fn worksheet(rows: &str) -> String {
    format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")
}

/// The text before and after the marker `|` in a part.
fn split_at_marker(template: &str) -> (&str, &str) {
    template.split_once('|').expect("a marker")
}

#[test]
fn harmless_workbook_is_read() {
    assert_read("list.xlsx", &workbook(&[]), &["sheet `Clients`"]);
}

#[test]
fn workbook_with_a_formula_without_a_saved_value_is_refused() {
    let rows = |value: &str| {
        let header = "<row r=\"1\"><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"B1\" t=\"s\"><v>1</v></c></row>";
        let recipient = |row: u8| {
            let cells =
                format!("<c r=\"A{row}\"><v>{}</v></c><c r=\"B{row}\" t=\"str\">{value}</c>", phone(row.into()));
            format!("<row r=\"{row}\">{cells}</row>")
        };
        worksheet(&format!("{header}{}{}", recipient(2), recipient(3)))
    };
    let read = |value: &str| workbook(&[("xl/worksheets/sheet1.xml", Content::of(&rows(value)))]);
    assert_read("list.xlsx", &read("<f>A1</f><v></v>"), &["sheet `Clients`"]);
    let words = ["has a formula in the cell B2", "save it, which stores the values"];
    assert_refused("list.xlsx", &read("<f>A1</f>"), &words);
}

#[test]
fn workbook_with_an_oversized_value_or_tag_is_refused() {
    for (part, template, piece) in [
        ("xl/sharedStrings.xml", "<sst><si><t>|</t></si></sst>", " "),
        ("xl/sharedStrings.xml", "<sst><!--|--><si><t>x</t></si></sst>", "<b>'"),
        ("xl/sharedStrings.xml", "<sst><si><t><![CDATA[|]]></t></si></sst>", "<x>"),
        ("xl/sharedStrings.xml", "<?x |?><sst/>", "> "),
        ("xl/sharedStrings.xml", "<!DOCTYPE sst [|]><sst/>", "<!ENTITY a 'a'>"),
        ("xl/sharedStrings.xml", "<sst a=\"|\"/>", ">"),
        ("xl/sharedStrings.xml", "<sst><si>|</si></sst>", "<r><t>xxxx</t></r>"),
        ("xl/sharedStrings.xml", "<sst><si><t>|</t></si></sst>", "xxx<b/>"),
        ("xl/worksheets/sheet1.xml", "<worksheet><!--|--></worksheet>", "<c>"),
        ("xl/worksheets/sheet1.xml", "<worksheet>|</worksheet>", " "),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><c t=\"inlineStr\"><is><t>|</t></is></c></sheetData></worksheet>",
            "x<c></c>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><c t=\"str\"><v>|</v></c></sheetData></worksheet>",
            "&amp;",
        ),
        ("xl/worksheets/sheet1.xml", "<worksheet><sheetData><c><f>|</f></c></sheetData></worksheet>", "A1+"),
        ("xl/styles.xml", "<styleSheet><numFmts><numFmt numFmtId=\"9\" formatCode=\"|\"/></numFmts></styleSheet>", "0"),
        ("xl/workbook.xml", "<workbook><definedName>|</definedName></workbook>", "x"),
        ("xl/_rels/workbook.xml.rels", "<Relationships><Relationship Id=\"r\" Target=\"|\"/></Relationships>", "x"),
        ("_rels/.rels", "<Relationships>|</Relationships>", "\n"),
    ] {
        let _case = crate::support::note_on_failure(format!("case: {piece:?} in {template}"));
        let (before, after) = split_at_marker(template);
        let hostile = workbook(&[(part, Content::repeated(before, piece, 400, after))]);
        assert_refused(
            "list.xlsx",
            &hostile,
            &[&format!("`{part}` contains a text value, tag or comment that is larger than 1 MiB"), "as CSV"],
        );
    }
}

#[test]
fn workbook_that_exceeds_parser_limits_is_refused() {
    let x = |count: usize| "x".repeat(count);
    let long_format =
        format!("<styleSheet><numFmts><numFmt numFmtId=\"170\" formatCode=\"{}\"/></numFmts><cellXfs>", x(8000));
    let far = format!("<Relationships>{}</Relationships>", relation("r", "worksheet", &x(500_000)));
    let (sheets, sheet) = ("<workbook><sheets>", "<sheet name=\"s\" r:id=\"r\"/>");
    for (parts, words) in [
        (
            vec![(
                "xl/sharedStrings.xml",
                Content::repeated("<sst>", &format!("<si><t>{}</t></si>", x(1000)), 400, "</sst>"),
            )],
            "its shared strings",
        ),
        (vec![("xl/sharedStrings.xml", Content::of("<sst uniqueCount=\"99999999\"/>"))], "its shared strings"),
        (
            vec![(
                "xl/styles.xml",
                Content::repeated(&long_format, "<xf numFmtId=\"170\"/>", 4, "</cellXfs></styleSheet>"),
            )],
            "its styles",
        ),
        (
            vec![
                ("xl/_rels/workbook.xml.rels", Content::of(&far)),
                ("xl/workbook.xml", Content::repeated(sheets, sheet, 4, "</sheets></workbook>")),
            ],
            "its sheets",
        ),
        (
            vec![(
                "xl/_rels/workbook.xml.rels",
                Content::repeated("<Relationships>", &relation("r", "x", &x(3000)), 400, "</Relationships>"),
            )],
            "its part lists",
        ),
    ] {
        let _case = crate::support::note_on_failure(format!("case: {words}"));
        assert_refused("list.xlsx", &workbook(&parts), &[&format!("{words} need too much memory"), "as CSV"]);
    }
}

#[test]
fn zip_bomb_in_relocated_workbook_parts_is_refused() {
    let bomb = Content::repeated("<sst><si><t>", " ", 400, "</t></si></sst>");
    let elsewhere = format!("<Relationships>{}</Relationships>", relation("r", "officeDocument", "/Else/book.xml"));
    let book = "<workbook><sheets><sheet name=\"s\" x:id=\"r\"/></sheets></workbook>";
    let relations =
        format!("<Relationships>{}</Relationships>", relation("r", "worksheet", "/xl/worksheets/sheet1.xml"));
    let hostile = workbook(&[
        ("_rels/.rels", Content::of(&elsewhere)),
        ("else\\BOOK.xml", Content::of(book)),
        ("Else/_rels/book.xml.rels", Content::of(&relations)),
        ("ELSE/sharedstrings.XML", bomb.clone()),
    ]);
    assert_refused(
        "list.xlsx",
        &hostile,
        &["`Else/sharedStrings.xml` contains a text value, tag or comment that is larger than 1 MiB"],
    );
    let small = bomb.with_declared_size(10);
    assert_refused("list.xlsx", &workbook(&[("xl/sharedStrings.xml", small)]), &[]);
}

#[test]
fn workbook_with_extreme_cell_positions_is_refused() {
    let cell = |position: &str| format!("<c r=\"{position}\" t=\"s\"><v>0</v></c>");
    let long = Content::of(&shared_strings(&format!("<si><t>{}</t></si>", "x".repeat(500_000))));
    let wide = worksheet(&format!("<row>{}</row>", "<c t=\"s\"><v>2</v></c>".repeat(10_000)));
    for (rows, words) in [
        (worksheet(&format!("{}{}", cell("A1"), cell("XFD1048576"))), ""),
        (worksheet(&cell("A4294967295")), "a cell is outside the sheet"),
        (worksheet(&cell("ZZZZZZ1")), ""),
        (wide, "row 1 has more than 1 MiB of text"),
        (format!("<worksheet>{}", "<a>".repeat(100_000)), "too deep"),
    ] {
        let _case = crate::support::note_on_failure(format!("case: {words}"));
        let parts = [("xl/worksheets/sheet1.xml", Content::of(&rows)), ("xl/sharedStrings.xml", long.clone())];
        assert_refused("list.xlsx", &workbook(&parts), &[words]);
    }
}

#[test]
fn oversized_unread_parts_are_ignored() {
    let bomb = Content::repeated("<a><!--", "x", 400, "--></a>");
    let parts = [
        "xl/comments1.xml",
        "xl/drawings/drawing1.xml",
        "xl/tables/table1.xml",
        "xl/theme/theme1.xml",
        "xl/worksheets/sheet2.xml",
        "xl/vbaProject.bin",
        "docProps/app.xml",
        "docProps/core.xml",
    ];
    let parts: Vec<_> = parts.iter().map(|part| (*part, bomb.clone())).collect();
    assert_read("list.xlsx", &workbook(&parts[..5]), &["sheet `Clients`"]);
    assert_read("list.xlsx", &workbook(&parts[4..]), &["sheet `Clients`"]);
}

#[test]
fn archive_with_too_many_parts_is_refused() {
    let names: Vec<String> = (0..33_000).map(|number| format!("{number:x}")).collect();
    let parts: Vec<_> = names.iter().map(|name| (name.as_str(), Content::of(""))).collect();
    assert_refused("list.xlsx", &zip(&parts)[..], &["it has too many parts"]);
}

#[test]
fn ordinary_workbook_with_many_strings_is_read() {
    let mut book = rust_xlsxwriter::Workbook::new();
    let sheet = book.add_worksheet();
    sheet.write_row(0, 0, ["phone", "name", "city", "code"]).expect("a header");
    for row in 1..3_000 {
        let texts = [phone(row).to_string(), format!("Олена {row}"), "Київ".to_owned(), format!("code {row}")];
        sheet.write_row(u32::try_from(row).expect("few"), 0, texts).expect("a row");
    }
    assert_read("list.xlsx", &book.save_to_buffer().expect("a workbook"), &["999  rows"]);
}
