//! A list of recipients with unique phone numbers.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The number of rows with phone numbers of the first network: ten million numbers in steps of 7.
const FIRST_NETWORK_ROWS: u64 = 1_428_571;

/// Writes a list of `rows` recipients, at most eleven million.
pub(crate) fn write(path: &Path, rows: u64) -> io::Result<()> {
    let mut list = BufWriter::new(File::create(path)?);
    writeln!(list, "phone,first_name,last_name,until,code")?;
    for row in 0..rows {
        let phone = match row.checked_sub(FIRST_NETWORK_ROWS) {
            None => 380_500_000_000 + row * 7,
            Some(row) => 380_670_000_000 + row,
        };
        writeln!(list, "{phone},Olena{row},Shevchenko,Sunday,C{row:08}")?;
    }
    list.flush()
}
