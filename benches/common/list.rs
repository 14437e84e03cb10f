//! A list of recipients with unique phone numbers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Rows that fit into the ten million numbers of one network, in steps of 7.
const SPREAD: u64 = 1_428_571;

/// Writes a list with this number of recipients, at most eleven million.
pub(crate) fn write(path: &Path, rows: u64) -> io::Result<()> {
    let mut list = BufWriter::new(File::create(path)?);
    writeln!(list, "phone,first_name,last_name,until,code")?;
    for row in 0..rows {
        let phone = if row < SPREAD { 380_500_000_000 + row * 7 } else { 380_670_000_000 + (row - SPREAD) };
        writeln!(list, "{phone},Olena{row},Shevchenko,Sunday,C{row:08}")?;
    }
    list.flush()
}
