//! One column of a file that is no list of recipients, such as a part of the results that went through a spreadsheet.
//!
//! The file is read as lists are: whatever its delimiter, and refused for what lists are refused for.

use std::io::Read;
use std::path::Path;

use super::chunk::Chunk;
use super::records::Records;
use crate::domain::Row;
use crate::finding::Finding;

/// Hands out the cells of the column with that header, trimmed; false if there is no such column.
///
/// # Errors
///
/// The file is no CSV in UTF-8 or has no header, or one of its rows is broken.
pub fn read_column<R: Read>(
    input: R,
    file: &Path,
    header: &str,
    mut each: impl FnMut(Row, &str),
) -> Result<bool, Box<Finding>> {
    let mut records = Records::open(input, file)?;
    let Some(column) = records.header().headers.iter().position(|found| found == header) else { return Ok(false) };
    let mut chunk = Chunk::new();
    loop {
        records.fill(&mut chunk)?;
        if chunk.is_empty() {
            return Ok(true);
        }
        chunk.iter().for_each(|record| each(record.row, record.fields.get(column).trim()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Vec<(u32, String)>>, &'static str> {
        let mut cells = Vec::new();
        let read =
            read_column(bytes, Path::new("part.csv"), "id", |row, cell| cells.push((row.get(), cell.to_owned())));
        read.map(|found| found.then_some(cells)).map_err(|finding| finding.rule.id)
    }

    #[test]
    fn a_column_is_read_as_lists_are() {
        let expected = Ok(Some(vec![(2, "7".to_owned()), (4, "9".to_owned())]));
        for text in [
            "row,id\n2,7\n\n3,9\n",
            "\u{feff}row;id\r\n2;7\r\n;\r\n3; 9 \r\n",
            "row\tid\n2\t7\n\n3\t9",
            "\"row\",\"id\"\n2,\"7\"\n\n3,\"9\"\n",
        ] {
            assert_eq!(read(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(read(b"row,number\n2,7\n"), Ok(None));
        assert_eq!(read(b"id\n"), Ok(Some(Vec::new())));
        assert_eq!(read(b"\xff\xfei\0d\0"), Err("recipients-encoding"));
        assert_eq!(read(b"id,x\n7,1\n8\n"), Err("recipients-ragged-row"));
        assert_eq!(read(b""), Err("recipients-empty"));
    }
}
