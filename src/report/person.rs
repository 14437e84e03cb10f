//! Every message to a person: the rows of all runs that have a number, with what became of each.

use roaring::RoaringBitmap;
use serde_json::Value;

use super::{RecipientKey, ResultsError, RowSelection, RunResults, find_recipients, is_owned, load_copies};
use crate::delivery::FrozenInputs;
use crate::domain::Phone;
use crate::ledger::{Ledger, LedgerError, Run, RunFilter};

/// What all runs of a ledger know of a number.
#[derive(Debug, Default)]
pub struct RecipientRecord {
    /// The runs in which it has a row, the oldest first.
    pub runs: Vec<RecipientInRun>,
    /// The runs that could not be looked through.
    pub unreadable: Vec<UnreadableRun>,
    /// How many runs were purged, of whose people nothing is known any more.
    pub purged: u64,
}

/// The rows of a run that have a number.
#[derive(Debug)]
pub struct RecipientInRun {
    /// The run.
    pub run: Run,
    /// The rows.
    pub rows: RoaringBitmap,
    /// What is known of each, by the columns of the results.
    pub known: Vec<Value>,
}

/// A run that could not be looked through.
#[derive(Debug)]
pub struct UnreadableRun {
    /// Its name.
    pub run: String,
    /// Why.
    pub why: String,
}

impl RecipientRecord {
    /// Looks through all runs, with rehearsals and single messages, for the rows of a number that match this selection.
    ///
    /// # Errors
    /// When the ledger cannot be read. A run whose own records or copies cannot be is among those that are unread.
    pub async fn find(ledger: &dyn Ledger, phone: Phone, selection: &RowSelection) -> Result<Self, LedgerError> {
        let mut person = Self::default();
        for run in ledger.list_runs(RunFilter::default()).await? {
            if run.purged_at.is_some() {
                person.purged += 1;
                continue;
            }
            match load_run(ledger, run.clone(), phone, selection).await {
                Ok(Some(found)) => person.runs.push(found),
                Ok(None) => {}
                Err(error) => person.unreadable.push(UnreadableRun { run: run.name(), why: error.to_string() }),
            }
        }
        Ok(person)
    }

    /// How many rows have the number.
    #[must_use]
    pub fn count_rows(&self) -> u64 {
        self.runs.iter().map(|run| run.rows.len()).sum()
    }
}

/// The rows of a run that have a number and match this selection; nothing if there are none.
async fn load_run(
    ledger: &dyn Ledger,
    run: Run,
    phone: Phone,
    selection: &RowSelection,
) -> Result<Option<RecipientInRun>, ResultsError> {
    let mut rows = find_rows(ledger, &run, phone).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut objects = Vec::new();
    let owned = is_owned(ledger, &run).await?;
    let results =
        RunResults::open(ledger, &run, owned).await?.with_rows(rows.clone()).with_selection(selection.clone());
    if !selection.is_everything() {
        rows = results.load_listed_rows().await?;
        if rows.is_empty() {
            return Ok(None);
        }
    }
    results.write_json(&mut objects).await?;
    let known = serde_json::from_slice(&[b"[", objects.as_slice(), b"]"].concat());
    let known = known.map_err(|error| ResultsError::Recipients(error.to_string()))?;
    Ok(Some(RecipientInRun { run, rows, known }))
}

/// The rows of a run's list that have a number.
async fn find_rows(ledger: &dyn Ledger, run: &Run, phone: Phone) -> Result<RoaringBitmap, ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let found = find_recipients(&copies, &frozen, RecipientKey::Number(phone))?;
    Ok(found.into_iter().map(|recipient| recipient.row.get()).collect())
}
