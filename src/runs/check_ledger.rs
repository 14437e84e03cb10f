//! A look at everything that a ledger holds, as whoever keeps backups wants it: records, copies, lists.

use super::freeze::is_whole;
use super::{Error, blocking};
use crate::delivery::FrozenInputs;
use crate::ledger::{DamagedRecord, DamagedRun, Ledger, LedgerError, ReceiptWalk, RecordKind, Run, RunFilter, Walk};
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
    /// What it is a record of, if no run has it.
    pub kind: Option<RecordKind>,
}

impl CheckedLedger {
    fn note(&mut self, run: Option<&Run>, found: Result<(), LedgerError>) {
        if let Err(error) = found {
            self.add(LedgerProblem { run: run.map(Run::name), what: error.damage(), kind: None });
        }
    }

    fn add(&mut self, problem: LedgerProblem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Looks at a ledger: its file with all indexes, each record of each run, the copies that runs are sent from, the lists, and
/// the schedules, occurrences, plans, approvals and notifications.
/// Nothing is written.
///
/// # Errors
/// When the look itself fails.
pub async fn check_ledger(ledger: &dyn Ledger) -> Result<CheckedLedger, Error> {
    let mut checked = CheckedLedger::default();
    checked.note(None, ledger.prove_sound().await);
    checked.note(None, ledger.opted_out("", false).await.map(drop));
    match ledger.damaged_records().await {
        Ok(damaged) => damaged
            .into_iter()
            .for_each(|DamagedRecord { what, kind }| checked.add(LedgerProblem { run: None, what, kind: Some(kind) })),
        Err(error) => checked.note(None, Err(error)),
    }
    let runs = match ledger.stored_runs(RunFilter::all()).await {
        Ok(runs) => runs,
        Err(error) => {
            checked.note(None, Err(error));
            return Ok(checked);
        }
    };
    for stored in runs {
        checked.runs += 1;
        let run = match stored {
            Ok(run) => run,
            Err(DamagedRun { name, error }) => {
                checked.add(LedgerProblem { run: Some(name), what: error.damage(), kind: None });
                continue;
            }
        };
        checked.note(Some(&run), ledger.left_out(run.key).await.map(drop));
        checked.note(Some(&run), ledger.events(run.key).await.map(drop));
        checked.note(Some(&run), receipts(ledger, &run).await);
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
            let what = format!("the recorded outcome of request {number} ({rows}, now in doubt)");
            return Err(LedgerError::Damaged { what });
        }
    }
    Ok(RunView::read(ledger, run.clone(), is_owned(ledger, run).await?).await?.run.recipients)
}

/// Reads the receipts of a run, which its counts may make unnecessary to read.
async fn receipts(ledger: &dyn Ledger, run: &Run) -> Result<(), LedgerError> {
    let mut receipts = ReceiptWalk::over(ledger, run.key, run.last_row());
    while receipts.next().await?.is_some() {}
    Ok(())
}

/// Compares the copies of a run with what it froze.
async fn copies(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), LedgerError>, Error> {
    let copies = match ledger.copies(run).await {
        Ok(copies) => copies,
        Err(error) => return Ok(Err(error)),
    };
    let whole = move || {
        let frozen = FrozenInputs::of(&copies)?;
        if is_whole(&copies, &frozen) {
            Ok(())
        } else {
            Err(copies.unusable("the stored list differs from the list that the run started with"))
        }
    };
    blocking(whole).await
}
