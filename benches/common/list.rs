//! A list of recipients of whom no two have the same number.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Numbers of one network, each of which a step of seven meets once.
const SPREAD: u64 = 1_428_571;

/// Writes a list of so many recipients, eleven million at most.
pub(crate) fn write(path: &Path, rows: u64) -> io::Result<()> {
    let mut list = BufWriter::new(File::create(path)?);
    writeln!(list, "phone,first_name,last_name,until,code")?;
    for row in 0..rows {
        let phone = if row < SPREAD { 380_500_000_000 + row * 7 } else { 380_670_000_000 + (row - SPREAD) };
        writeln!(list, "{phone},Olena{row},Shevchenko,Sunday,C{row:08}")?;
    }
    list.flush()
}
