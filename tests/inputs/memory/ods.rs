//! Memory limits for LibreOffice workbooks (ODS).

use super::assert_refused;
use super::zip::{Content, zip};
use crate::support::note_on_failure;

fn sheet(before: &str, piece: &str, mib: usize, after: &str) -> Vec<u8> {
    let content = Content::repeated(&format!("<office>{before}"), piece, mib, &format!("{after}</office>"));
    zip(&[("mimetype", Content::of("application/vnd.oasis.opendocument.spreadsheet")), ("content.xml", content)])
}

const CELL: &str = "<table:table table:name=\"s\"><table:table-row><table:table-cell><text:p>";
const END: &str = "</text:p></table:table-cell></table:table-row></table:table>";
const ROW: &str = "<table:table table:name=\"s\"><table:table-row>";
const END_OF_ROW: &str = "</table:table-row></table:table>";

#[test]
fn workbook_with_an_oversized_value_or_tag_is_refused() {
    for (before, piece, after) in
        [(CELL, " ", END), (CELL, "x", END), ("<!--", "<b>", "--><a/>"), ("<a b='", ">", "'/>"), ("<?a ", "> ", "?>")]
    {
        let _case = note_on_failure(format!("case: {before}{piece}"));
        let hostile = sheet(before, piece, 400, after);
        assert_refused(
            "list.ods",
            &hostile,
            &["`content.xml` contains a text value, tag or comment that is larger than 1 MiB", "as CSV"],
        );
    }
}

#[test]
fn workbook_that_exceeds_parser_limits_is_refused() {
    let x = "x".repeat(3000);
    let style = |number: usize| {
        format!(
            "<style:style style:name=\"{number}{x}\"><style:table-properties table:display=\"false\"/></style:style>"
        )
    };
    let tables = format!("<table:table table:name=\"{x}\"></table:table>");
    let far = "table:number-columns-repeated=\"4000000000\" office:value-type=\"string\"><text:p>x</text:p>";
    for (hostile, words) in [
        (sheet(CELL, "xxxx<text:s/>", 4, END), "row 1 has more than 1 MiB of text"),
        (sheet(CELL, "<text:span>", 4, END), "too deep"),
        (sheet(ROW, "<table:table-cell/>", 4, END_OF_ROW), "a row has more than 16384 cells"),
        (sheet("", &tables, 300, ""), "its sheets need too much memory"),
        (sheet("", &style(1), 300, ""), "its styles need too much memory"),
        (sheet(&format!("{ROW}<table:table-cell {far}</table:table-cell>"), " ", 1, END_OF_ROW), "outside the sheet"),
    ] {
        let _case = note_on_failure(format!("case: {words}"));
        assert_refused("list.ods", &hostile, &[words]);
    }
}
