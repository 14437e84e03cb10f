//! The rows of a run that somebody names.

use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::{DecisionRefusal, Error};
use crate::audience::{decode_table, expand_power_of_ten, is_shortened, read_columns};
use crate::domain::{MessageId, Phone, Row, RowSet};
use crate::ledger::{EnvelopeReader, Ledger, LedgerError, Run};
use crate::regular_file;

/// The rows of a run that are meant.
#[derive(Clone, Debug)]
pub enum RowChoice {
    /// All that wait for something.
    Waiting,
    /// These.
    Rows(RowSet),
    /// Those of a table with a column `id`, or `row` and `to`, as the results have them, however a spreadsheet has saved
    /// it.
    File(PathBuf),
}

impl RowChoice {
    /// The rows that are named; nothing for all that wait.
    ///
    /// # Errors
    /// When the run has no such row, or the file cannot be read, has no such columns, or names a message of another run.
    pub(super) async fn resolve(&self, ledger: &dyn Ledger, run: &Run) -> Result<Option<RoaringBitmap>, Error> {
        match self {
            RowChoice::Waiting => Ok(None),
            RowChoice::Rows(set) => expand_set(set, run).map(Some),
            RowChoice::File(path) => {
                let NamedRows { mut rows, by_number } = NamedRows::read(path, run)?;
                if let Some(line) = match_by_number(ledger, run, &by_number, &mut rows).await? {
                    let named = format!("row {} ({}) is not a message", line.named.0, line.named.1.format_masked());
                    let (path, row, run) = (path.clone(), line.row, run.name());
                    return Err(DecisionRefusal::ForeignId { path, row, named, run }.into());
                }
                Ok(Some(rows))
            }
        }
    }
}

/// What the lines of a file name.
#[derive(Default)]
struct NamedRows {
    /// By the identifiers of their messages.
    rows: RoaringBitmap,
    /// By row and number, where the identifier is missing or was shortened.
    by_number: Vec<RowByNumber>,
}

/// A line that names a row by its number.
struct RowByNumber {
    /// The row in the file.
    row: Row,
    /// The row of the run, and the number that the message went to.
    named: (Row, Phone),
}

impl NamedRows {
    fn read(path: &Path, run: &Run) -> Result<Self, Error> {
        let file = regular_file::open(path)
            .map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", path.display())))?;
        let unreadable = |finding| DecisionRefusal::Unreadable { path: path.to_owned(), finding };
        let file = decode_table(file, path, None).map_err(unreadable)?;
        let (mut lines, mut wrong, name) = (Self::default(), None, run.name());
        let found = read_columns(file, path, ["id", "row", "to", "run"], |row, cells| {
            if let Err(error) = lines.add_line(row, cells, path, run, &name)
                && wrong.is_none()
            {
                wrong = Some(error);
            }
        });
        let [id, row, to, _] = found.map_err(unreadable)?;
        match wrong {
            _ if !(id || row && to) => Err(DecisionRefusal::NoIds { path: path.to_owned(), run: name }.into()),
            Some(error) => Err(error),
            None => Ok(lines),
        }
    }

    fn add_line(&mut self, line: Row, cells: [&str; 4], path: &Path, run: &Run, name: &str) -> Result<(), Error> {
        let [id, row, to, of_run] = cells;
        let path = || path.to_owned();
        if let Some(named) = parse_number(id).and_then(MessageId::new).and_then(|id| run.find_row(id)) {
            self.rows.insert(named.get());
            return Ok(());
        }
        let phone = parse_number(to).and_then(Phone::new);
        let shortened = |cell: &str| is_shortened(cell) && parse_number(cell).is_none();
        match row.parse().ok().map(Row::new).zip(phone) {
            // Another run may have sent to the same number from the same row.
            Some(named) if (id.is_empty() || shortened(id)) && (of_run.is_empty() || of_run == name) => {
                self.by_number.push(RowByNumber { row: line, named });
                Ok(())
            }
            _ if shortened(id) || id.is_empty() && shortened(to) => {
                let cell = if shortened(to) { to } else { id }.to_owned();
                Err(DecisionRefusal::Shortened { path: path(), row: line, cell, run: name.to_owned() }.into())
            }
            _ => {
                let named = if id.is_empty() {
                    format!("row {row} is not a message")
                } else {
                    format!("`{id}` is not the `id` of a message")
                };
                Err(DecisionRefusal::ForeignId { path: path(), row: line, named, run: name.to_owned() }.into())
            }
        }
    }
}

/// The number in a cell, even in scientific notation if it has all its digits.
fn parse_number(cell: &str) -> Option<u64> {
    cell.parse().ok().or_else(|| expand_power_of_ten(cell)?.parse().ok())
}

/// Adds the rows that were sent to these numbers; gives the first line whose row was not.
async fn match_by_number<'l>(
    ledger: &dyn Ledger,
    run: &Run,
    lines: &'l [RowByNumber],
    rows: &mut RoaringBitmap,
) -> Result<Option<&'l RowByNumber>, LedgerError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let mut sent: FxHashMap<Row, Option<Phone>> = lines.iter().map(|line| (line.named.0, None)).collect();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        for row in &envelope.rows {
            sent.entry(row.row).and_modify(|phone| *phone = row.to.phone());
        }
    }
    let known = |line: &&RowByNumber| sent.get(&line.named.0) == Some(&Some(line.named.1));
    rows.extend(lines.iter().filter(known).map(|line| line.named.0.get()));
    Ok(lines.iter().find(|line| !known(line)))
}

fn expand_set(set: &RowSet, run: &Run) -> Result<RoaringBitmap, Error> {
    let (row, last) = (set.last_row(), run.last_row());
    if row > last {
        return Err(Error::NoSuchRow { row, last });
    }
    let mut rows = RoaringBitmap::new();
    rows.extend((Row::FIRST.get()..=last.get()).filter(|row| set.contains(Row::new(*row))));
    Ok(rows)
}
