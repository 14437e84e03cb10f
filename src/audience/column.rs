//! Some columns of a file that is no list of recipients, such as a part of the results that went through a spreadsheet.
//!
//! The file is read as lists are: whatever its delimiter, and refused for what lists are refused for.

use std::io::Read;
use std::path::Path;

use super::chunk::Chunk;
use super::header_match::{HeaderIndex, HeaderMatch};
use super::records::RecordReader;
use crate::domain::Row;
use crate::finding::Finding;

/// Hands out the cells of the columns with these headers, as [`plain`] text; tells which of the columns there are.
///
/// The cell of a column that is not there is empty.
///
/// # Errors
///
/// The file is not UTF-8 text, has no header, or has a broken row. What [`decode_table`](super::decode_table)
/// makes of a file is such a text.
pub fn read_columns<R: Read, const N: usize>(
    input: R,
    file: &Path,
    headers: [&str; N],
    mut each: impl FnMut(Row, [&str; N]),
) -> Result<[bool; N], Box<Finding>> {
    let mut records = RecordReader::open(input, file)?;
    let found = HeaderIndex::of(&records.header().headers);
    let columns = headers.map(|header| match found.find(header) {
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
            each(record.row, columns.map(|column| column.map_or("", |column| clean_cell(record.fields.get(column)))));
        }
    }
}

/// What stands in a cell, trimmed; of a formula that only gives a text (`="380501234567"`) the text.
#[must_use]
pub fn clean_cell(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix("=\"").and_then(|text| text.strip_suffix('"')).unwrap_or(cell)
}

/// Whether a spreadsheet has written a number as a power of ten, so that its last digits are lost.
#[must_use]
pub fn is_shortened(cell: &str) -> bool {
    let Some((number, power)) = cell.split_once(['E', 'e']) else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, "0"));
    digits(whole) && digits(fraction) && digits(power.strip_prefix('+').unwrap_or(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cells = Vec<(u32, [String; 2])>;

    fn read_list(bytes: &[u8]) -> Result<([bool; 2], Cells), &'static str> {
        let mut cells = Vec::new();
        let read = read_columns(bytes, Path::new("part.csv"), ["id", "row"], |row, of_row| {
            cells.push((row.get(), of_row.map(str::to_owned)));
        });
        read.map(|found| (found, cells)).map_err(|finding| finding.rule.id)
    }

    #[test]
    fn columns_are_read_like_lists() {
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
        let without = Ok(([false, true], vec![(2, [String::new(), "2".to_owned()])]));
        assert_eq!(read_list(b"row,number\n2,7\n"), without);
        assert_eq!(read_list(b"id,row\n"), Ok(([true; 2], Vec::new())));
        assert_eq!(read_list(b"\xff\xfei\0d\0"), Err("recipients-encoding"));
        assert_eq!(read_list(b"id,x\n7,1\n8\n"), Err("recipients-ragged-row"));
        assert_eq!(read_list(b""), Err("recipients-empty"));
    }

    #[test]
    fn shortened_number_differs_from_other_text() {
        for cell in ["3,80501E+11", "3.80501E+11", "7E14", "7.8e+14"] {
            assert!(is_shortened(cell), "{cell}");
        }
        for cell in ["", "E", "380501234567", "E+11", "3,8E", "12E-3", "SALE2", "1.E5", "a1E5"] {
            assert!(!is_shortened(cell), "{cell}");
        }
    }
}
