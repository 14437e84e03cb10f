//! The state of a ledger: damaged records, and signs of a lost or older ledger.

use std::path::{Path, PathBuf};
use std::{fs, io};

use jiff::{SignedDuration, Timestamp};

use super::{Error, Inputs, RunEvent, RunObserver, run_blocking};
use campaign_core::domain::format_count;
use campaign_core::finding::Finding;
use campaign_engine::check::unfamiliar_ledger_finding;
use campaign_engine::delivery::FrozenRun;
use campaign_engine::report::{LossSign, RunView, find_stray_runs, find_unknown_results, is_owned};
use campaign_ledger::{
    DamagedRecord, DamagedRun, EnvelopeReader, IntegrityReport, Ledger, LedgerError, NumberFilter, ReceiptReader,
    RecordKind, Run, RunFilter, RunProgress, StrayCopies, SuppressionPolicy,
};

/// The result of checking a whole ledger.
#[derive(Debug, Default)]
pub struct CheckedLedger {
    /// How many runs it has.
    pub runs: u64,
    /// How many rows they have.
    pub rows: u64,
    /// Damaged or unreadable records.
    pub problems: Vec<LedgerProblem>,
}

/// A damaged or unreadable record in a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerProblem {
    /// Its run, if it belongs to one.
    pub run: Option<String>,
    /// A description.
    pub what: String,
    /// The kind of record, if it belongs to no run.
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

/// Checks a ledger: its file with all indexes, each record of each run, the copies of runs, the lists, and the
/// schedules, occurrences, plans, approvals and notifications. Nothing is written.
///
/// # Errors
/// If the check itself fails.
pub async fn check_ledger(ledger: &dyn Ledger) -> Result<CheckedLedger, Error> {
    let mut checked = CheckedLedger::default();
    let IntegrityReport { storage, records } = ledger.check_integrity().await;
    checked.note_result(None, storage);
    checked.note_result(None, ledger.load_suppressed_numbers("", SuppressionPolicy::default()).await.map(drop));
    match records {
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
        checked.note_result(Some(&run), ledger.load_numbers(NumberFilter::Sent(&[run.key])).await.map(drop));
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

/// Reads each record of a run and verifies its checksum. Returns the number of rows.
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

/// Reads the receipts of a run, which other commands skip if its counts are stored.
async fn check_receipts(ledger: &dyn Ledger, run: &Run) -> Result<(), LedgerError> {
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while receipts.next_receipts().await?.is_some() {}
    Ok(())
}

/// Compares the copies of a run with its frozen hashes.
async fn check_copies(ledger: &dyn Ledger, run: &Run) -> Result<Result<(), LedgerError>, Error> {
    let frozen = match FrozenRun::load(ledger, run).await {
        Ok(frozen) => frozen,
        Err(error) => return Ok(Err(error)),
    };
    run_blocking(move || match frozen.is_list_intact() {
        true => Ok(()),
        false => {
            let reason = "the stored list differs from the list that the run started with";
            Err(frozen.copies.unreadable_error(reason))
        }
    })
    .await
}

/// Refuses to send while something contradicts the ledger or its absence. Rehearsals are never refused.
///
/// # Errors
/// If something contradicts it, or the ledger cannot be read.
pub(super) async fn refuse_lost_ledger(ledger: &dyn Ledger, inputs: &Inputs) -> Result<(), Error> {
    refuse_signs(find_loss_signs(ledger, inputs).await?, ledger.properties().location)
}

/// Refuses to send without a ledger if something, such as these stray copies, contradicts its absence.
///
/// # Errors
/// If there are signs of sent messages.
pub(super) async fn refuse_stray_copies(copies: Vec<StrayCopies>, state: &Path, inputs: &Inputs) -> Result<(), Error> {
    match inputs.destination.is_live() {
        true => refuse_signs(collect_loss_signs(copies, None, inputs).await?, state.display().to_string()),
        false => Ok(()),
    }
}

fn refuse_signs(signs: Vec<LossSign>, ledger: String) -> Result<(), Error> {
    if signs.is_empty() { Ok(()) } else { Err(Error::LedgerLost { ledger, signs }) }
}

/// Renames the copies and results that contradict the ledger, because the operator accepts the ledger.
pub(super) async fn move_signs_aside(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    observer: &RunObserver,
) -> Result<(), Error> {
    for sign in find_loss_signs(ledger, inputs).await? {
        let aside = match &sign {
            LossSign::Copies { run, .. } => ledger.set_copies_aside(run).await.map_err(|error| error.reason()),
            LossSign::Results { path, .. } => {
                rename_results(path).map(|aside| aside.display().to_string()).map_err(|error| error.to_string())
            }
        };
        let aside = aside.map_err(|error| Error::Storage(format!("{sign}: {error}")))?;
        observer(RunEvent::PutAside { sign, aside });
    }
    Ok(())
}

async fn find_loss_signs(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<LossSign>, Error> {
    match inputs.destination.is_live() {
        true => collect_loss_signs(ledger.list_stray_copies().await?, Some(ledger), inputs).await,
        false => Ok(Vec::new()),
    }
}

async fn collect_loss_signs(
    copies: Vec<StrayCopies>,
    ledger: Option<&dyn Ledger>,
    inputs: &Inputs,
) -> Result<Vec<LossSign>, Error> {
    let mut signs = find_stray_runs(copies);
    signs.extend(find_unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}

/// Renames results that contradict the ledger, in the same folder.
fn rename_results(path: &Path) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    let named = |number: u32| path.with_file_name(format!("{stem}.old-{number}{extension}"));
    let aside = (1..).map(named).find(|aside| !aside.exists()).unwrap_or_default();
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// For how long after its end a run is a sign that the ledger is in use. Snapshots of a database are usually kept for a
/// shorter time.
const RECENT_AGE: SignedDuration = SignedDuration::from_hours(24 * 90);

/// Warns a machine without a high-water mark about a ledger with live runs of other machines. A command on this machine
/// that changes the ledger creates the mark and ends the warning.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn unfamiliar_ledger_warning(ledger: &dyn Ledger, now: Timestamp) -> Result<Option<Finding>, LedgerError> {
    if !ledger.properties().lacks_high_water_mark {
        return Ok(None);
    }
    let live = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let counting: Vec<Run> = live.into_iter().flatten().filter(|run| is_sign_of_use(run, now)).collect();
    let place = ledger.properties().location;
    Ok(counting.last().map(|latest| {
        let latest = format!("{} of {}", latest.name(), latest.began_at.strftime("%Y-%m-%d %H:%M UTC"));
        unfamiliar_ledger_finding(&place, counting.len() as u64, &latest)
    }))
}

/// Whether a run sent to recipients and is unfinished or ended recently.
fn is_sign_of_use(run: &Run, now: Timestamp) -> bool {
    let reaches_people = !run.suppression.loopback && !run.is_shared_single_run();
    let is_recent = run.ended_at.is_none_or(|ended| now.duration_since(ended) <= RECENT_AGE);
    reaches_people && (run.progress == RunProgress::Open || is_recent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_results_keep_their_extension_and_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.csv");
        for (text, name) in [("first", "sale.old-1.csv"), ("second", "sale.old-2.csv")] {
            fs::write(&path, text).unwrap();
            let aside = rename_results(&path).unwrap();
            assert_eq!((aside.file_name().unwrap().to_str().unwrap(), path.exists()), (name, false));
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
        }
    }
}
