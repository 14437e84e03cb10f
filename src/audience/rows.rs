//! All columns of a file that is no list of recipients, such as a small table that texts look something up in.
//!
//! The file is read as lists are: whatever its delimiter, and refused for what lists are refused for.

use std::io::Read;
use std::path::Path;

use super::chunk::{Chunk, RecordFields};
use super::records::RecordReader;
use crate::domain::Row;
use crate::finding::Finding;

/// The headers of a file and its rows, each of which is handed to `each` with the headers until that ends it.
///
/// # Errors
///
/// The file is no text in UTF-8 or has no header, or one of its rows is broken; or what `each` found.
pub fn read_rows<R: Read>(
    input: R,
    file: &Path,
    mut each: impl FnMut(&[String], Row, RecordFields<'_>) -> Result<(), Box<Finding>>,
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
            each(&headers, record.row, record.fields)?;
        }
    }
}
