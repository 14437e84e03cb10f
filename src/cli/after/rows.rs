//! Which rows a decision is about.

use std::io::BufReader;
use std::path::Path;

use roaring::RoaringBitmap;

use crate::audience::read_column;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::domain::{MessageId, Row, RowSet};
use crate::ledger::Run;
use crate::regular;
use crate::runs::Error;

/// The rows of a CSV file with a column `id`, as the results have it, however a spreadsheet has saved it.
///
/// # Errors
/// When the file cannot be read, has no such column, or names a message that is not the run's.
pub(super) fn of_file(path: &Path, run: &Run, output: &Output) -> Result<RoaringBitmap, Failure> {
    let name = path.display();
    let file = regular::open(path).map_err(|error| Failure::wrong(format!("`{name}` cannot be read: {error}")))?;
    let (mut rows, mut stranger) = (RoaringBitmap::new(), None);
    let found = read_column(BufReader::new(file), path, "id", |line, text| {
        match text.parse().ok().and_then(MessageId::new).and_then(|id| row_of(run, id)) {
            Some(row) => {
                rows.insert(row.get());
            }
            None if stranger.is_none() => stranger = Some((line, text.to_owned())),
            None => {}
        }
    });
    let found = found.map_err(|finding| {
        Failure::with_findings(format!("`{name}` cannot be read; nothing was decided"), vec![*finding])
    })?;
    if !found {
        return Err(Failure::wrong(format!(
            "`{name}` has no column `id`; take it from `{}`",
            output.command(format!("results {} --state in_doubt --out -", run.name()))
        )));
    }
    match stranger {
        None => Ok(rows),
        Some((row, text)) => {
            Err(Failure::wrong(format!("`{name}`, row {row}: `{text}` is not the `id` of a message of {}", run.name())))
        }
    }
}

fn row_of(run: &Run, id: MessageId) -> Option<Row> {
    [run.ids].iter().chain(&run.orders).find_map(|ids| ids.row(id))
}

/// The rows that a set names.
///
/// # Errors
/// When the run has no such row.
pub(super) fn of_set(set: &RowSet, run: &Run) -> Result<RoaringBitmap, Failure> {
    let (asked, last) = (set.last(), run.last_row());
    if asked > last {
        return Err(Error::NoSuchRow { row: asked, last }.into());
    }
    let mut rows = RoaringBitmap::new();
    rows.extend((Row::FIRST.get()..=last.get()).filter(|row| set.contains(Row::new(*row))));
    Ok(rows)
}
