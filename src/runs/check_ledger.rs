//! A look at everything that a ledger holds, as whoever keeps backups wants it: records, copies, lists.

use super::freeze::is_list_intact;
use super::{Error, run_blocking};
use crate::delivery::FrozenInputs;
use crate::ledger::{
    DamagedRecord, DamagedRun, EnvelopeReader, Ledger, LedgerError, ReceiptReader, RecordKind, Run, RunFilter,
};
use crate::report::{RunView, format_count, is_owned};

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
    fn note_result(&mut self, run: Option<&Run>, found: Result<(), LedgerError>) {
        if let Err(error) = found {
            self.add_problem(LedgerProblem { run: run.map(Run::name), what: error.describe_damage(), kind: None });
        }
    }

    fn add_problem(&mut self, problem: LedgerProblem) {
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
    checked.note_result(None, ledger.check_integrity().await);
    checked.note_result(None, ledger.load_suppressed_numbers("", false).await.map(drop));
    match ledger.list_damaged_records().await {
        Ok(damaged) => damaged.into_iter().for_each(|DamagedRecord { what, kind }| {
            checked.add_problem(LedgerProblem { run: None, what, kind: Some(kind) })
        }),
        Err(error) => checked.note_result(None, Err(error)),
    }
    let runs = match ledger.list_stored_runs(RunFilter::all()).await {
        Ok(runs) => runs,
        Err(error) => {
            checked.note_result(None, Err(error));
            return Ok(checked);
        }
    };
    for stored in runs {
        checked.runs += 1;
        let run = match stored {
            Ok(run) => run,
            Err(DamagedRun { name, error }) => {
                checked.add_problem(LedgerProblem { run: Some(name), what: error.describe_damage(), kind: None });
                continue;
            }
        };
        checked.note_result(Some(&run), ledger.load_excluded_rows(run.key).await.map(drop));
        checked.note_result(Some(&run), ledger.load_events(run.key).await.map(drop));
        checked.note_result(Some(&run), check_receipts(ledger, &run).await);
        checked.note_result(Some(&run), ledger.load_sent_numbers(&[run.key]).await.map(drop));
        match check_records(ledger, &run).await {
            Ok(rows) => checked.rows += rows,
            Err(error) => checked.note_result(Some(&run), Err(error)),
        }
        if !run.shared && run.purged_at.is_none() {
            checked.note_result(Some(&run), check_copies(ledger, &run).await?);
        }
    }
    Ok(checked)
}

/// Reads each record of a run, all of which have checksums; tells how many rows it has.
async fn check_records(ledger: &dyn Ledger, run: &Run) -> Result<u64, LedgerError> {
    ledger.load_asked_rows(run.key).await?;
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        if envelope.is_damaged() {
            let (rows, number) = (format_count(envelope.rows.len() as u64, "row"), envelope.envelope);
            let what = format!("the recorded outcome of request {number} ({rows}, now in doubt)");
            return Err(LedgerError::Damaged { what });
        }
    }
    Ok(RunView::load(ledger, run.clone(), is_owned(ledger, run).await?).await?.run.recipients)
}

/// Reads the receipts of a run, which its counts may make unnecessary to read.
async fn check_receipts(ledger: &dyn Ledger, run: &Run) -> Result<(), LedgerError> {
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while receipts.next_receipts().await?.is_some() {}
    Ok(())
}

/// Compares the copies of a run with what it froze.
async fn check_copies(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), LedgerError>, Error> {
    let copies = match ledger.load_copies(run).await {
        Ok(copies) => copies,
        Err(error) => return Ok(Err(error)),
    };
    let whole = move || {
        let frozen = FrozenInputs::from_copies(&copies)?;
        if is_list_intact(&copies, &frozen) {
            Ok(())
        } else {
            Err(copies.unreadable_error("the stored list differs from the list that the run started with"))
        }
    };
    run_blocking(whole).await
}
