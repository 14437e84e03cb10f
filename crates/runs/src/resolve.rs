//! Decisions about rows in doubt: the rows that a decision applies to, and its author.

use std::path::{Path, PathBuf};

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use super::held_run::cancelled_error;
use super::{Adapters, DecisionRefusal, Error, HeldRun, ReleasedRun};
use campaign_content::audience::{decode_table, expand_scientific_notation, is_shortened_number, read_columns};
use campaign_core::domain::{MessageId, Phone, Row, RowSet};
use campaign_core::regular_file;
use campaign_engine::delivery::{MessageInDoubt, MessagesInDoubt, SingleKind, Snapshot};
use campaign_ledger::{
    Author, EnvelopeReader, Ledger, LedgerError, NewRowEvent, RowChange, RowState, Run, RunProgress,
};

/// The placeholder for an unknown person.
const UNKNOWN_PERSON: &str = "somebody";

/// Whether the author of a decision is known.
pub fn is_known_author(author: &Author) -> bool {
    !matches!(author, Author::Person(name) if name == UNKNOWN_PERSON)
}

/// The name of the person at this computer for records of decisions.
pub fn current_person() -> String {
    let user_name = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    user_name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| UNKNOWN_PERSON.to_owned())
}

/// The states that allow a decision.
const DECIDABLE: [RowState; 4] = [RowState::InDoubt, RowState::Unresolved, RowState::NotSent, RowState::AssumedSent];

/// A kind of decision about rows in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtDecision {
    /// The rows were sent.
    Sent,
    /// The rows were not sent; nothing is sent now.
    NotSent,
    /// The rows are sent again as the same messages.
    SendAgain,
}

/// A decision about rows of a run, with its author and reason.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The rows that the decision applies to.
    pub rows: RowChoice,
    /// What the author decided about all of these rows.
    pub decision: DoubtDecision,
    /// The author.
    pub by: String,
    /// The author's reason.
    pub why: Option<String>,
    /// The accepted number of recipients who might get the message twice.
    pub duplicates: Option<u64>,
}

/// A run after a decision.
#[derive(Debug)]
pub struct ResolvedRun {
    /// The number of rows.
    pub rows: u64,
    /// The state of the run.
    pub released: ReleasedRun,
}

/// Records a decision about rows of a run.
///
/// # Errors
/// If another process holds the run, the decision does not apply to its rows, or the ledger cannot be read or written.
/// If only releasing the run fails, the decision is already recorded.
pub async fn resolve_doubts(adapters: &Adapters, run: Run, resolution: &Resolution) -> Result<ResolvedRun, Error> {
    let held_run = HeldRun::take(adapters, run).await?;
    let decided = record_decision(&held_run, resolution).await;
    // The run is released even if recording the decision failed.
    let released = held_run.release().await?;
    Ok(ResolvedRun { rows: decided?, released })
}

/// Records the decision and returns the number of affected rows.
async fn record_decision(held_run: &HeldRun, resolution: &Resolution) -> Result<u64, Error> {
    let snapshot = held_run.read_snapshot().await?;
    let doubts =
        MessagesInDoubt::load(held_run.adapters.ledger.as_ref(), &held_run.run, &snapshot.states, &DECIDABLE).await?;
    let named = resolution.rows.resolve(held_run.adapters.ledger.as_ref(), &held_run.run).await?;
    let events = resolution.build_events(&held_run.run, &doubts.rows, &snapshot, named.as_ref())?;
    let rows = events.len() as u64;
    held_run.record_events(events).await?;
    Ok(rows)
}

impl Resolution {
    /// Builds the events of the decision for the named rows, or for all rows that need a decision.
    fn build_events(
        &self,
        run: &Run,
        doubts: &[MessageInDoubt],
        snapshot: &Snapshot,
        named: Option<&RoaringBitmap>,
    ) -> Result<Vec<NewRowEvent>, Error> {
        let state = |row: Row| snapshot.row_state(row);
        let is_open = |doubt: &&MessageInDoubt| matches!(state(doubt.row), RowState::InDoubt | RowState::Unresolved);
        let chosen: Vec<&MessageInDoubt> = match named {
            // An earlier decision is changed only for named rows.
            None => doubts.iter().filter(is_open).collect(),
            Some(rows) => doubts.iter().filter(|doubt| rows.contains(doubt.row.get())).collect(),
        };
        let change = self.to_change();
        if let Some(doubt) = chosen.iter().find(|doubt| !change.applies_to(state(doubt.row), doubt.chain)) {
            return Err(DecisionRefusal::NotApplicable { row: doubt.row, state: state(doubt.row) }.into());
        }
        if let Some(row) = named.and_then(|rows| find_undecidable_row(rows, &chosen)) {
            return Err(DecisionRefusal::NotInDoubt { row, state: state(row) }.into());
        }
        if chosen.is_empty() {
            return Err(DecisionRefusal::Nothing { run: run.name() }.into());
        }
        self.check_duplicates(chosen.len() as u64)?;
        match run.progress {
            _ if self.decision != DoubtDecision::SendAgain => {}
            _ if SingleKind::from_run(run).is_some() => return Err(Error::SingleRun { run: run.name() }),
            RunProgress::Replaced => return Err(DecisionRefusal::Replaced.into()),
            RunProgress::Cancelled => return Err(cancelled_error(run)),
            RunProgress::Open | RunProgress::Finished => {}
        }
        let event =
            |doubt: &MessageInDoubt| NewRowEvent { row: doubt.row, envelope: doubt.envelope, change: change.clone() };
        Ok(chosen.into_iter().map(event).collect())
    }

    /// Checks the accepted number of duplicates, which is required for a decision that can cause duplicates. If the
    /// count is given, it must equal the number of rows.
    fn check_duplicates(&self, rows: u64) -> Result<(), Error> {
        let needs_no_number = self.decision == DoubtDecision::Sent && self.duplicates.is_none();
        if needs_no_number || self.duplicates == Some(rows) {
            return Ok(());
        }
        Err(DecisionRefusal::DuplicatesNotAccepted { rows, accepted: self.duplicates }.into())
    }

    fn to_change(&self) -> RowChange {
        let (by, reason) = (Author::Person(self.by.clone()), self.why.clone());
        match self.decision {
            DoubtDecision::Sent => RowChange::AssumedSent { by, why: reason },
            DoubtDecision::NotSent => RowChange::NotSent { by, why: reason },
            DoubtDecision::SendAgain => RowChange::SendAgain { by, why: reason },
        }
    }
}

/// Finds the first named row for which no decision is possible.
fn find_undecidable_row(named: &RoaringBitmap, chosen: &[&MessageInDoubt]) -> Option<Row> {
    let decidable: RoaringBitmap = chosen.iter().map(|doubt| doubt.row.get()).collect();
    (named - decidable).min().map(Row::new)
}

/// A selection of rows of a run.
#[derive(Clone, Debug)]
pub enum RowChoice {
    /// All rows that need a decision.
    Waiting,
    /// These rows, even if they already have a decision.
    Rows(RowSet),
    /// The rows named in a table with an `id` column, or with `row` and `to` columns, such as a results file.
    File(PathBuf),
}

impl RowChoice {
    /// Resolves the choice to a set of rows. Returns `None` if all rows that need a decision are chosen.
    ///
    /// # Errors
    /// If the run has no such row, or the file cannot be read, lacks the columns, or names a message of another run.
    pub(super) async fn resolve(&self, ledger: &dyn Ledger, run: &Run) -> Result<Option<RoaringBitmap>, Error> {
        match self {
            RowChoice::Waiting => Ok(None),
            RowChoice::Rows(set) => expand_set(set, run).map(Some),
            RowChoice::File(path) => {
                let NamedRows { mut rows, by_phone } = NamedRows::read(path, run)?;
                if let Some(line) = match_by_phone(ledger, run, &by_phone, &mut rows).await? {
                    let named = format!("row {} ({}) does not match any message", line.row, line.phone.format_masked());
                    let (path, row, run) = (path.clone(), line.file_row, run.name());
                    return Err(DecisionRefusal::ForeignId { path, row, named, run }.into());
                }
                Ok(Some(rows))
            }
        }
    }
}

/// The rows that a file names.
#[derive(Default)]
struct NamedRows {
    /// Rows by the identifiers of their messages.
    rows: RoaringBitmap,
    /// Rows by their phone number, if the identifier is missing or was shortened.
    by_phone: Vec<RowByPhone>,
}

/// A line that names a row by its number and the phone number of its recipient.
struct RowByPhone {
    file_row: Row,
    /// The row of the run.
    row: Row,
    /// The recipient's phone number.
    phone: Phone,
}

impl NamedRows {
    /// Reads the rows of a run that a file names, or returns the first error in its lines.
    fn read(path: &Path, run: &Run) -> Result<Self, Error> {
        let file = regular_file::open(path)
            .map_err(|error| Error::Input(format!("`{}` cannot be read: {error}", path.display())))?;
        let unreadable = |finding| DecisionRefusal::Unreadable { path: path.to_owned(), finding };
        let file = decode_table(file, path, None).map_err(unreadable)?;
        let (mut lines, mut first_error, name) = (Self::default(), None, run.name());
        let columns = read_columns(file, path, ["id", "row", "to", "run"], |row, cells| {
            if let Err(error) = lines.add_line(row, cells, path, run, &name)
                && first_error.is_none()
            {
                first_error = Some(error);
            }
        });
        let [has_id, has_row, has_to, _] = columns.map_err(unreadable)?;
        match first_error {
            _ if !(has_id || has_row && has_to) => {
                Err(DecisionRefusal::NoIds { path: path.to_owned(), run: name }.into())
            }
            Some(error) => Err(error),
            None => Ok(lines),
        }
    }

    /// Adds the row that a line names by its message identifier, or else by its row number and phone number.
    fn add_line(&mut self, file_row: Row, cells: [&str; 4], path: &Path, run: &Run, name: &str) -> Result<(), Error> {
        let [id, row, to, run_name] = cells;
        let path = || path.to_owned();
        if let Some(named) = parse_number(id).and_then(MessageId::new).and_then(|id| run.find_row(id)) {
            self.rows.insert(named.get());
            return Ok(());
        }
        let phone = parse_number(to).and_then(Phone::new);
        let is_shortened = |cell: &str| is_shortened_number(cell) && parse_number(cell).is_none();
        match row.parse().ok().map(Row::new).zip(phone) {
            // Another run might have sent to the same number from the same row.
            Some((row, phone)) if (id.is_empty() || is_shortened(id)) && (run_name.is_empty() || run_name == name) => {
                self.by_phone.push(RowByPhone { file_row, row, phone });
                Ok(())
            }
            _ if is_shortened(id) || id.is_empty() && is_shortened(to) => {
                let cell = if is_shortened(to) { to } else { id }.to_owned();
                Err(DecisionRefusal::Shortened { path: path(), row: file_row, cell, run: name.to_owned() }.into())
            }
            _ => {
                let named = if id.is_empty() {
                    format!("row {row} does not match any message")
                } else {
                    format!("`{id}` is not the `id` of any message")
                };
                Err(DecisionRefusal::ForeignId { path: path(), row: file_row, named, run: name.to_owned() }.into())
            }
        }
    }
}

/// Parses the number in a cell, even in scientific notation if no digits are lost.
fn parse_number(cell: &str) -> Option<u64> {
    cell.parse().ok().or_else(|| expand_scientific_notation(cell)?.parse().ok())
}

/// Adds to `rows` the rows whose message was sent to the phone number in a line. Returns the first line that does not
/// match a sent message.
async fn match_by_phone<'l>(
    ledger: &dyn Ledger,
    run: &Run,
    lines: &'l [RowByPhone],
    rows: &mut RoaringBitmap,
) -> Result<Option<&'l RowByPhone>, LedgerError> {
    if lines.is_empty() {
        return Ok(None);
    }
    let mut sent: FxHashMap<Row, Option<Phone>> = lines.iter().map(|line| (line.row, None)).collect();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        for row in &envelope.rows {
            sent.entry(row.row).and_modify(|phone| *phone = row.to.phone());
        }
    }
    let is_match = |line: &&RowByPhone| sent.get(&line.row) == Some(&Some(line.phone));
    rows.extend(lines.iter().filter(is_match).map(|line| line.row.get()));
    Ok(lines.iter().find(|line| !is_match(line)))
}

/// Returns the rows of a run in this set, or an error if the set contains a row after the last row of the run.
fn expand_set(set: &RowSet, run: &Run) -> Result<RoaringBitmap, Error> {
    let (row, last) = (set.last_row(), run.last_row());
    if row > last {
        return Err(Error::NoSuchRow { row, last });
    }
    let mut rows = RoaringBitmap::new();
    rows.extend((Row::FIRST.get()..=last.get()).filter(|row| set.contains(Row::new(*row))));
    Ok(rows)
}
