//! Deciding about rows of a run whose outcome nobody knows.

use roaring::RoaringBitmap;

use super::stop::cancelled_error;
use super::{Adapters, DecisionRefusal, Error, HeldRun, ReleasedRun, RowChoice};
use crate::delivery::{MessageInDoubt, MessagesInDoubt, SingleKind};
use crate::domain::Row;
use crate::ledger::{Author, NewRowEvent, RowChange, RowState, RowStates, Run, RunProgress};

/// The states about which somebody can decide.
const DECIDABLE: [RowState; 4] = [RowState::InDoubt, RowState::Unresolved, RowState::NotSent, RowState::AssumedSent];

/// What somebody decides about rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubtDecision {
    /// They went out.
    Sent,
    /// They did not; nothing is sent now.
    NotSent,
    /// They are to be sent again, as the same messages.
    SendAgain,
}

/// A decision about rows of a run.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// About which rows.
    pub rows: RowChoice,
    /// What they count as.
    pub decision: DoubtDecision,
    /// Who decides.
    pub by: String,
    /// Why, in the words of who decides.
    pub why: Option<String>,
    /// How many people may get the message twice, by the word of who decides.
    pub duplicates: Option<u64>,
}

/// A run after a decision.
#[derive(Debug)]
pub struct ResolvedRun {
    /// About how many rows it was.
    pub rows: u64,
    /// Where the run stands.
    pub released: ReleasedRun,
}

/// Records a decision about rows of a run.
///
/// # Errors
/// When another process has the run, the decision does not fit its rows, or the ledger cannot be written; nothing is
/// decided then.
pub async fn resolve_doubts(adapters: &Adapters, run: Run, resolution: &Resolution) -> Result<ResolvedRun, Error> {
    let held = HeldRun::take(adapters, run).await?;
    let decided = record_decision(&held, resolution).await;
    // The run is given back whatever came of it.
    let released = held.release().await?;
    Ok(ResolvedRun { rows: decided?, released })
}

/// Records the decision; tells about how many rows it is.
async fn record_decision(held: &HeldRun, resolution: &Resolution) -> Result<u64, Error> {
    let snapshot = held.read_snapshot().await?;
    let doubts = MessagesInDoubt::load(held.adapters.ledger.as_ref(), &held.run, &snapshot.states, &DECIDABLE).await?;
    let named = resolution.rows.resolve(held.adapters.ledger.as_ref(), &held.run).await?;
    let events = resolution.build_events(&held.run, &doubts.rows, &snapshot.states, named.as_ref())?;
    let rows = events.len() as u64;
    held.record_events(events).await?;
    Ok(rows)
}

impl Resolution {
    /// The events that record it about these rows of a run; about all that wait for a decision where none are named.
    fn build_events(
        &self,
        run: &Run,
        doubts: &[MessageInDoubt],
        states: &RowStates,
        named: Option<&RoaringBitmap>,
    ) -> Result<Vec<NewRowEvent>, Error> {
        let state = |row: Row| states.recorded_state(row).unwrap_or(RowState::Planned);
        let waits = |doubt: &&MessageInDoubt| matches!(state(doubt.row), RowState::InDoubt | RowState::Unresolved);
        let chosen: Vec<&MessageInDoubt> = match named {
            // What was decided already is decided again by name only.
            None => doubts.iter().filter(waits).collect(),
            Some(rows) => doubts.iter().filter(|doubt| rows.contains(doubt.row.get())).collect(),
        };
        let change = self.to_change();
        if let Some(unfit) = chosen.iter().find(|doubt| !change.applies_to(state(doubt.row), doubt.chain)) {
            return Err(DecisionRefusal::NotApplicable { row: unfit.row, state: state(unfit.row) }.into());
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

    /// What can lead to a second message needs the number of rows, said by who accepts that; one that was said is the right one.
    fn check_duplicates(&self, rows: u64) -> Result<(), Error> {
        let none_follow = self.decision == DoubtDecision::Sent && self.duplicates.is_none();
        if none_follow || self.duplicates == Some(rows) {
            return Ok(());
        }
        Err(DecisionRefusal::DuplicatesNotAccepted { rows, said: self.duplicates }.into())
    }

    fn to_change(&self) -> RowChange {
        let (by, why) = (Author::Person(self.by.clone()), self.why.clone());
        match self.decision {
            DoubtDecision::Sent => RowChange::AssumedSent { by, why },
            DoubtDecision::NotSent => RowChange::NotSent { by, why },
            DoubtDecision::SendAgain => RowChange::SendAgain { by, why },
        }
    }
}

/// The first row that was named and cannot be decided about.
fn find_undecidable_row(named: &RoaringBitmap, chosen: &[&MessageInDoubt]) -> Option<Row> {
    let known: RoaringBitmap = chosen.iter().map(|doubt| doubt.row.get()).collect();
    (named - known).min().map(Row::new)
}
