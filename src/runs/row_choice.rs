//! The rows of a run that somebody names.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;

use super::Error;
use crate::audience::read_column;
use crate::domain::{MessageId, Row, RowSet};
use crate::ledger::Run;
use crate::regular_file;

/// The rows of a run that are meant.
#[derive(Clone, Debug)]
pub enum RowChoice {
    /// All that wait for something.
    Waiting,
    /// These.
    Rows(RowSet),
    /// Those of a CSV file with a column `id`, as the results have it, however a spreadsheet has saved it.
    File(PathBuf),
}

impl RowChoice {
    /// The rows that are named; nothing for all that wait.
    ///
    /// # Errors
    /// When the run has no such row, or the file cannot be read, has no such column, or names a message of another run.
    pub(super) fn of(&self, run: &Run) -> Result<Option<RoaringBitmap>, Error> {
        match self {
            RowChoice::Waiting => Ok(None),
            RowChoice::Rows(set) => of_set(set, run).map(Some),
            RowChoice::File(path) => of_file(path, run).map(Some),
        }
    }
}

fn of_file(path: &Path, run: &Run) -> Result<RoaringBitmap, Error> {
    let file = regular_file::open(path)
        .map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", path.display())))?;
    let (mut rows, mut stranger) = (RoaringBitmap::new(), None);
    let found = read_column(BufReader::new(file), path, "id", |row, text| {
        match text.parse().ok().and_then(MessageId::new).and_then(|id| row_of(run, id)) {
            Some(named) => {
                rows.insert(named.get());
            }
            None if stranger.is_none() => stranger = Some((row, text.to_owned())),
            None => {}
        }
    });
    let path = || path.to_owned();
    let found = found.map_err(|finding| Error::IdsUnreadable { path: path(), finding })?;
    if !found {
        return Err(Error::NoIds { path: path(), run: run.name() });
    }
    match stranger {
        None => Ok(rows),
        Some((row, id)) => Err(Error::ForeignId { path: path(), row, id, run: run.name() }),
    }
}

fn row_of(run: &Run, id: MessageId) -> Option<Row> {
    [run.ids].iter().chain(&run.orders).find_map(|ids| ids.row(id))
}

fn of_set(set: &RowSet, run: &Run) -> Result<RoaringBitmap, Error> {
    let (row, last) = (set.last(), run.last_row());
    if row > last {
        return Err(Error::NoSuchRow { row, last });
    }
    let mut rows = RoaringBitmap::new();
    rows.extend((Row::FIRST.get()..=last.get()).filter(|row| set.contains(Row::new(*row))));
    Ok(rows)
}
