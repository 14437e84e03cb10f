//! Forgetting a person: number and cells leave the ledger, then the copies and the results of the runs that have them.
//!
//! The ledger comes first, in one commit that knows which rows wait; from then on nothing is sent to the number, and whatever
//! ends this early, the next call or the next start of the campaign goes on with the rows that wait.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use sha2::{Digest as _, Sha256};

use super::find::reload_run;
use super::forgotten::ForgottenNumbers;
use super::freeze::is_list_intact;
use super::{Adapters, Error, HeldRun, StaleResults, current_person, run_blocking};
use crate::audience::write_without_rows;
use crate::check::reader_settings;
use crate::delivery::{FrozenInputs, Snapshot};
use crate::domain::{FORGOTTEN, Phone, Row};
use crate::failpoint;
use crate::ledger::{
    CampaignLock, Copies, ForgetOrder, Ledger, LedgerError, OptOut, OptOutReach, OptOutScope, RowState, Run, RunFilter,
};
use crate::private;
use crate::report::{IN_DOUBT_STATES, RecipientInRun, RecipientRecord, ResultsError, RowSelection, UnreadableRun};

/// What became of the request to forget somebody.
#[derive(Debug, Default)]
pub struct ForgottenPerson {
    /// The rows that are forgotten, by run.
    pub runs: Vec<ForgottenRows>,
    /// The rows that cannot be forgotten until somebody decides about them, or whoever sends them is through.
    pub doubtful: Vec<(String, RoaringBitmap)>,
    /// The runs whose copies could not be read or written, so that they may have the number still.
    pub unread: Vec<UnreadableRun>,
    /// The results that were not written anew, so that they may have the number still.
    pub unwritten: Vec<StaleResults>,
}

/// The rows of a run that are forgotten.
#[derive(Debug)]
pub struct ForgottenRows {
    /// The run.
    pub run: String,
    /// Its rows.
    pub rows: RoaringBitmap,
    /// Those of them that would still have been sent, and are skipped.
    pub skipped: RoaringBitmap,
}

/// Forgets a number: what is settled of it loses it, what is planned is skipped, and it is on the suppression list.
///
/// # Errors
/// When another process has one of its runs, or the ledger cannot be read or written.
pub async fn forget_person(adapters: &Adapters, phone: Phone) -> Result<ForgottenPerson, Error> {
    let ledger = adapters.ledger.as_ref();
    let (mut held, mut told) = (Vec::new(), ForgottenPerson::default());
    erase_waiting(adapters, &mut held, None, &mut told).await?;
    let person = RecipientRecord::find(ledger, phone, &RowSelection::default()).await?;
    told.unread.extend(person.unreadable);
    for RecipientInRun { run, .. } in &person.runs {
        hold_for_run(adapters, &mut held, run).await?;
    }
    let mut order = Vec::new();
    for RecipientInRun { run, rows, .. } in person.runs {
        let (doubtful, forgotten) = split_rows(ledger, &run, rows).await?;
        if !doubtful.is_empty() {
            told.doubtful.push((run.name(), doubtful));
        }
        if !forgotten.rows.is_empty() {
            order.push((run.key, forgotten.rows.clone()));
            told.runs.push(forgotten);
        }
    }
    let opt_out = forgotten_opt_out(phone, (adapters.clock)());
    // First: a ledger that is put back from a backup has to forget them again.
    ForgottenNumbers::add(&adapters.state, phone)
        .map_err(|error| Error::Storage(format!("cannot record the forgotten number in the state folder: {error}")))?;
    ledger.forget_number(ForgetOrder { phone, rows: order, opt_out }).await?;
    failpoint::pass("forget.recorded");
    erase_waiting(adapters, &mut held, None, &mut told).await?;
    // Where it was in no run, it may have been on the suppression list.
    ledger.overwrite_free_space().await?;
    Ok(told)
}

/// How a number is put on the list that is forgotten.
fn forgotten_opt_out(phone: Phone, at: Timestamp) -> OptOut {
    let (reason, source) = (FORGOTTEN.into(), current_person().into());
    OptOut { who: phone.into(), scope: OptOutScope::Everything, reach: OptOutReach::AllGateways, reason, source, at }
}

/// The rows of somebody that nobody knows the end of, and those that can be forgotten.
async fn split_rows(
    ledger: &dyn Ledger,
    run: &Run,
    rows: RoaringBitmap,
) -> Result<(RoaringBitmap, ForgottenRows), LedgerError> {
    // Whoever had it is gone, since it is held; rows of a shared run may be on their way all the same.
    let snapshot = Snapshot::load(ledger, &reload_or_keep(ledger, run).await?, false).await?;
    let of = |states: &[RowState]| -> RoaringBitmap {
        rows.iter().filter(|row| states.contains(&snapshot.row_state(Row::new(*row)))).collect()
    };
    let doubtful = of(&IN_DOUBT_STATES) | of(&[RowState::Sending]);
    let skipped = of(&[RowState::Planned]);
    let rows = rows - &doubtful;
    Ok((doubtful, ForgottenRows { run: run.name(), rows, skipped }))
}

async fn reload_or_keep(ledger: &dyn Ledger, run: &Run) -> Result<Run, LedgerError> {
    let mut runs = ledger.list_runs(RunFilter::with_key(run.key)).await?;
    Ok(runs.pop().unwrap_or_else(|| run.clone()))
}

/// Finishes what an earlier call left, for the runs of what is held. What cannot be written now waits for the next time; a
/// start is not what has to tell of it.
pub(super) async fn finish_forgetting(adapters: &Adapters, hold: &Arc<CampaignLock>) {
    let mut told = ForgottenPerson::default();
    if let Err(error) = erase_waiting(adapters, &mut vec![Arc::clone(hold)], Some(hold), &mut told).await {
        tracing::warn!("a forgotten number has not been removed from all stored lists and results yet: {error}");
    }
    for UnreadableRun { run, why } in &told.unread {
        tracing::warn!(run, why, "the forgotten number is still in the stored files of this run");
    }
}

/// Takes the rows that wait out of copies and results; of all runs, or of those of one campaign.
async fn erase_waiting(
    adapters: &Adapters,
    held: &mut Vec<Arc<CampaignLock>>,
    only: Option<&Arc<CampaignLock>>,
    told: &mut ForgottenPerson,
) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    let mut done = Vec::new();
    for (key, rows) in ledger.list_rows_to_forget().await? {
        let run = reload_run(ledger, key).await?;
        if only.is_some_and(|hold| !hold.covers_run(&run)) {
            continue;
        }
        let hold = hold_for_run(adapters, held, &run).await?;
        if erase_in_run(adapters, run, (hold, rows), told).await? {
            done.push(key);
        }
    }
    if !done.is_empty() {
        ledger.overwrite_free_space().await?;
        failpoint::pass("forget.swept");
        ledger.mark_rows_forgotten(done).await?;
    }
    Ok(())
}

/// Takes rows out of the copies and the results of a run; tells whether they are gone.
async fn erase_in_run(
    adapters: &Adapters,
    run: Run,
    (hold, rows): (Arc<CampaignLock>, RoaringBitmap),
    told: &mut ForgottenPerson,
) -> Result<bool, Error> {
    if !run.shared
        && let Err(error) = replace_copies(adapters.ledger.as_ref(), &run, rows).await
    {
        told.unread.push(UnreadableRun { run: run.name(), why: error.to_string() });
        return Ok(false);
    }
    failpoint::pass("forget.copied");
    let results = run.results.as_ref().map(|path| ReplacedFile::open(path.as_ref()));
    let released = HeldRun::claim(adapters, hold, run).await?.release().await?;
    failpoint::pass("forget.written");
    match released.stale_results {
        // Those of a later run are written anew with that one.
        None | Some(StaleResults::Later { .. }) => {}
        Some(why) => {
            told.unwritten.push(why);
            return Ok(matches!(told.unwritten.last(), Some(StaleResults::Gone { .. })));
        }
    }
    if let Some(Ok(results)) = results {
        results.overwrite()?;
    }
    Ok(true)
}

/// A file that may be replaced.
struct ReplacedFile(File);

impl ReplacedFile {
    fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().write(true).open(path).map(Self)
    }

    /// Overwrites it, if it was replaced and nothing has it any more.
    fn overwrite(mut self) -> Result<(), Error> {
        let is_gone = |file: &File| {
            #[cfg(unix)]
            return file.metadata().is_ok_and(|known| std::os::unix::fs::MetadataExt::nlink(&known) == 0);
            #[cfg(not(unix))]
            return file.metadata().is_err();
        };
        match is_gone(&self.0) {
            true => private::overwrite_with_zeros(&mut self.0)
                .map_err(|error| Error::Storage(format!("cannot overwrite the earlier results: {error}"))),
            false => Ok(()),
        }
    }
}

/// Has copies without these rows take the place of those of a run.
async fn replace_copies(ledger: &dyn Ledger, run: &Run, rows: RoaringBitmap) -> Result<(), ResultsError> {
    let mut new = ledger.prepare_replacement_copies(run).await?;
    let copies = ledger.load_copies(run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let before: RoaringBitmap = frozen.forgotten.iter().copied().collect();
    if rows.is_subset(&before) {
        return Ok(());
    }
    let rows = rows | before;
    let list = new.list_writer()?;
    let written = run_blocking(move || write_list_without(&copies, frozen, &rows, list)).await;
    let frozen = written.map_err(|error| ResultsError::Recipients(error.to_string()))??;
    let bytes = frozen.to_bytes().map_err(|error| ResultsError::Recipients(error.to_string()))?;
    Ok(new.freeze(bytes, run).await?)
}

/// Writes a list without these rows, and gives what is frozen with it.
fn write_list_without(
    copies: &Copies,
    frozen: FrozenInputs,
    rows: &RoaringBitmap,
    list: Box<dyn Write + Send>,
) -> Result<FrozenInputs, ResultsError> {
    // What is damaged would look whole under a new hash.
    if !is_list_intact(copies, &frozen) {
        return Err(ResultsError::ListChanged(copies.place().into()));
    }
    let mut hashed = HashingWriter { out: list, hash: Sha256::new() };
    let (place, settings) = (copies.place().as_ref(), reader_settings(&frozen.brief));
    write_without_rows(|| copies.open_list(), place, &settings, rows, io::BufWriter::new(&mut hashed))
        .map_err(|error| ResultsError::Recipients(error.to_string()))?;
    let hash = hashed.hash.finalize();
    let recipients_sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(FrozenInputs { recipients_sha256, forgotten: rows.iter().collect(), ..frozen })
}

/// What is written, and hashed on its way.
struct HashingWriter<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The campaign of a run, which this process takes unless it has it.
async fn hold_for_run(
    adapters: &Adapters,
    held: &mut Vec<Arc<CampaignLock>>,
    run: &Run,
) -> Result<Arc<CampaignLock>, Error> {
    if let Some(hold) = held.iter().find(|hold| hold.covers_run(run)) {
        return Ok(Arc::clone(hold));
    }
    let hold = HeldRun::hold_for_run(adapters, run).await?;
    held.push(Arc::clone(&hold));
    Ok(hold)
}
