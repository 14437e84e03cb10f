//! Which rows a decision is about.

use std::path::Path;

use roaring::RoaringBitmap;

use crate::cli::exit::Failure;
use crate::domain::{MessageId, Row, RowSet};
use crate::ledger::Run;

/// The rows of a CSV file with a column `id`, as the results have it.
///
/// # Errors
/// When the file cannot be read, has no such column, or names a message that is not the run's.
pub(super) fn of_file(path: &Path, run: &Run) -> Result<RoaringBitmap, Failure> {
    let name = path.display();
    let unreadable = |error: csv::Error| Failure::wrong(format!("`{name}` cannot be read: {error}"));
    let mut reader = csv::Reader::from_path(path).map_err(unreadable)?;
    let header = reader.headers().map_err(unreadable)?;
    let column =
        header.iter().position(|header| header.trim_start_matches('\u{feff}').trim() == "id").ok_or_else(|| {
            Failure::wrong(format!(
                "`{name}` has no column `id`; take it from `campaign results {} --state in_doubt --out -`",
                run.name()
            ))
        })?;
    let mut rows = RoaringBitmap::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        let text = record.get(column).unwrap_or_default().trim();
        let row = text.parse().ok().and_then(MessageId::new).and_then(|id| row_of(run, id));
        let row = row.ok_or_else(|| {
            Failure::wrong(format!("`{name}`, line {line}: `{text}` is not the `id` of a message of {}", run.name()))
        })?;
        rows.insert(row.get());
    }
    Ok(rows)
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
        return Err(Failure::wrong(format!("there is no row {asked}; the last recipient is in row {last}")));
    }
    let mut rows = RoaringBitmap::new();
    rows.extend((Row::FIRST.get()..=last.get()).filter(|row| set.contains(Row::new(*row))));
    Ok(rows)
}
