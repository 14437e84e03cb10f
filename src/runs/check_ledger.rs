//! A look at everything that a ledger holds, as whoever keeps backups wants it: records, copies, lists.

use super::freeze::is_whole;
use super::{Error, blocking};
use crate::delivery::FrozenInputs;
use crate::ledger::{Ledger, LedgerError, Run, RunFilter, Walk};
use crate::report::{RunView, is_owned, plural};

/// What a look at a whole ledger found.
#[derive(Debug, Default)]
pub struct CheckedLedger {
    /// How many runs it has.
    pub runs: u64,
    /// How many rows they have.
    pub rows: u64,
    /// What is not as it was written, or cannot be read.
    pub problems: Vec<LedgerProblem>,
}

/// Something in a ledger that is not as it was written, or cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProblem {
    /// The run that it is of, if it is of one.
    pub run: Option<String>,
    /// What it is.
    pub what: String,
}

impl CheckedLedger {
    fn note(&mut self, run: Option<&Run>, found: Result<(), LedgerError>) {
        if let Err(error) = found {
            let what = match error {
                LedgerError::Damaged { what } => format!("{what} is not as it was written"),
                error => error.reason(),
            };
            let problem = LedgerProblem { run: run.map(Run::name), what };
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}

/// Looks at a ledger: its file with all indexes, each record of each run, the copies that runs are sent from, and the lists.
/// Nothing is written.
///
/// # Errors
/// When the look itself fails.
pub async fn check_ledger(ledger: &dyn Ledger) -> Result<CheckedLedger, Error> {
    let mut checked = CheckedLedger::default();
    checked.note(None, ledger.prove_sound().await);
    checked.note(None, ledger.opted_out("", false).await.map(drop));
    checked.note(None, ledger.schedules().await.map(drop));
    checked.note(None, ledger.plans("").await.map(drop));
    let runs = match ledger.runs(RunFilter::all()).await {
        Ok(runs) => runs,
        Err(error) => {
            checked.note(None, Err(error));
            return Ok(checked);
        }
    };
    for run in runs {
        checked.runs += 1;
        checked.note(Some(&run), ledger.numbers_sent_to(&[run.key]).await.map(drop));
        match records(ledger, &run).await {
            Ok(rows) => checked.rows += rows,
            Err(error) => checked.note(Some(&run), Err(error)),
        }
        if !run.shared && run.purged_at.is_none() {
            checked.note(Some(&run), copies(ledger, &run).await?);
        }
    }
    Ok(checked)
}

/// Reads each record of a run, all of which have checksums; tells how many rows it has.
async fn records(ledger: &dyn Ledger, run: &Run) -> Result<u64, LedgerError> {
    ledger.asked_rows(run.key).await?;
    let mut envelopes = Walk::over(ledger, run.key);
    while let Some(envelope) = envelopes.next().await? {
        if envelope.is_damaged() {
            let (rows, number) = (plural(envelope.rows.len() as u64, "row"), envelope.envelope);
            let what = format!("what became of the {rows} of envelope {number}, which count as in doubt,");
            return Err(LedgerError::Damaged { what });
        }
    }
    Ok(RunView::read(ledger, run.clone(), is_owned(ledger, run).await?).await?.run.recipients)
}

/// Compares the copies of a run with what it froze.
async fn copies(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), LedgerError>, Error> {
    let copies = match ledger.copies(run).await {
        Ok(copies) => copies,
        Err(error) => return Ok(Err(error)),
    };
    let whole = move || {
        let frozen = FrozenInputs::of(&copies)?;
        if is_whole(&copies, &frozen) { Ok(()) } else { Err(copies.unusable("the list is not as it was frozen")) }
    };
    blocking(whole).await
}
