//! Erasure of personal data: forgetting a person, and purging old runs.
//!
//! The ledger is changed before the copies and results, in one commit that records which rows still have to be erased
//! there. From then on, nothing is sent to a forgotten number. If an erasure is interrupted, the remaining
//! rows are erased by the next erasure, or before the next run of the campaign begins.
//!
//! Hashes of forgotten numbers are kept outside the ledger, because an earlier backup still contains the numbers. A
//! purged run keeps its figures.

use std::collections::{BTreeSet, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use roaring::{RoaringBitmap, RoaringTreemap};
use sha2::{Digest as _, Sha256};

use super::find::reload_run;
use super::results::refresh_run;
use super::{Adapters, Error, HeldRun, StaleResults, current_person, run_blocking};
use campaign_content::audience::write_with_erased_rows;
use campaign_core::domain::{Addressee, FORGOTTEN, Phone, Row};
use campaign_core::failpoint;
use campaign_core::private::{self, ExistingFile};
use campaign_engine::check::reader_settings;
use campaign_engine::delivery::{FrozenInputs, FrozenRun, Snapshot};
use campaign_engine::report::{
    IN_DOUBT_STATES, NextStep, RecipientInRun, RecipientRecord, ResultsError, RowSelection, RunView, UnreadableRun,
    erase_from_dry_run_results, is_owned, list_dry_run_results, load_cancelled_numbers,
};
use campaign_ledger::{
    CampaignLock, CopiesPurpose, EnvelopeFilter, ForgetOrder, Ledger, LedgerError, NumberKey, OptOut, OptOutReach,
    OptOutScope, Ownership, PurgeOrder, RowState, Run, RunFilter, RunProgress, RunUpdate,
};

/// The result of forgetting a person.
#[derive(Debug, Default)]
pub struct ForgottenPerson {
    /// The forgotten rows by run.
    pub runs: Vec<ForgottenRows>,
    /// Rows that cannot be forgotten until they are reconciled or decided, or their process has ended, by run.
    pub doubtful: Vec<(String, RoaringBitmap)>,
    /// Rows of other numbers that contain the number in another column, by run. They are kept.
    pub elsewhere: Vec<(String, RoaringBitmap)>,
    /// Runs whose copies could not be read or written. They might still contain the number.
    pub unread: Vec<UnreadableRun>,
    /// Results that were not updated. They might still contain the number.
    pub unwritten: Vec<StaleResults>,
    /// The results of dry runs from which the number was erased, with the number of changed rows.
    pub dry_runs: Vec<(PathBuf, u64)>,
}

/// The forgotten rows of a run.
#[derive(Debug)]
pub struct ForgottenRows {
    /// The name of the run, such as `sale@2`.
    pub run: String,
    /// The forgotten rows.
    pub rows: RoaringBitmap,
    /// The rows that were planned and are now skipped.
    pub skipped: RoaringBitmap,
}

/// Forgets a number: removes it from settled rows, skips planned rows, and adds it to the suppression list.
///
/// # Errors
/// If another process holds a run that contains the number, or the ledger or state folder cannot be read or written.
pub async fn forget_person(adapters: &Adapters, phone: Phone) -> Result<ForgottenPerson, Error> {
    let ledger = adapters.ledger.as_ref();
    let (mut locks, mut result) = (Vec::new(), ForgottenPerson::default());
    erase_pending_rows(adapters, &mut locks, None, &mut result).await?;
    let person = RecipientRecord::find(ledger, phone, &RowSelection::default()).await?;
    result.unread.extend(person.unreadable);
    result.elsewhere = person.elsewhere;
    for RecipientInRun { run, .. } in &person.runs {
        lock_for_run(adapters, &mut locks, run).await?;
    }
    let (mut order, mut cancelled_in) = (Vec::new(), Vec::new());
    for RecipientInRun { run, rows, .. } in person.runs {
        let PersonRows { doubtful, forgotten, has_cancelled } = split_rows(ledger, &run, rows).await?;
        if !doubtful.is_empty() {
            result.doubtful.push((run.name(), doubtful));
        }
        cancelled_in.extend(has_cancelled.then_some(run.key));
        if !forgotten.rows.is_empty() {
            order.push((run.key, forgotten.rows.clone()));
            result.runs.push(forgotten);
        }
    }
    let opt_out = forgotten_opt_out(phone, (adapters.clock)());
    // The number is recorded here first, because a ledger that is restored from a backup must forget the number again.
    ForgottenNumbers::add(&adapters.state, phone)
        .map_err(|error| Error::Storage(format!("cannot record the forgotten number in the state folder: {error}")))?;
    ledger.forget_number(ForgetOrder { phone, rows: order, cancelled_in, opt_out }).await?;
    failpoint::pass("forget.recorded");
    erase_pending_rows(adapters, &mut locks, None, &mut result).await?;
    erase_from_dry_runs(ledger, phone, &mut result).await?;
    // Even a number that is in no run can be on the suppression list, so free space is always overwritten.
    ledger.overwrite_remains(&[]).await?;
    Ok(result)
}

/// The opt-out of a forgotten number.
fn forgotten_opt_out(phone: Phone, at: Timestamp) -> OptOut {
    let (reason, source) = (FORGOTTEN.into(), current_person().into());
    OptOut { who: phone.into(), scope: OptOutScope::Marketing, reach: OptOutReach::AllGateways, reason, source, at }
}

/// A person's rows in a run.
struct PersonRows {
    /// The rows in doubt or in flight, which cannot be forgotten yet.
    doubtful: RoaringBitmap,
    /// The other rows.
    forgotten: ForgottenRows,
    /// Whether `stop --for-good` cancelled any of the other rows.
    has_cancelled: bool,
}

/// Splits a person's rows into those in doubt or in flight and those that can be forgotten.
async fn split_rows(ledger: &dyn Ledger, run: &Run, rows: RoaringBitmap) -> Result<PersonRows, LedgerError> {
    // The run is held, so its last process is gone. Rows of a shared run can still be in flight.
    let snapshot = Snapshot::load(ledger, &reload_run_if_present(ledger, run).await?, false).await?;
    let rows_in = |states: &[RowState]| -> RoaringBitmap {
        rows.iter().filter(|row| states.contains(&snapshot.row_state(Row::new(*row)))).collect()
    };
    let doubtful = rows_in(&IN_DOUBT_STATES) | rows_in(&[RowState::Sending]);
    let skipped = rows_in(&[RowState::Planned]);
    let rows = rows - &doubtful;
    let has_cancelled =
        run.progress == RunProgress::Cancelled && rows.iter().any(|row| snapshot.is_cancelled(Row::new(row)));
    Ok(PersonRows { doubtful, forgotten: ForgottenRows { run: run.name(), rows, skipped }, has_cancelled })
}

async fn reload_run_if_present(ledger: &dyn Ledger, run: &Run) -> Result<Run, LedgerError> {
    let mut runs = ledger.list_runs(RunFilter::with_key(run.key)).await?;
    Ok(runs.pop().unwrap_or_else(|| run.clone()))
}

/// Finishes the erasures that an earlier command left pending in the runs that this lock covers. If a file cannot be
/// written now, the next command tries again. A failure is only logged, so that it does not prevent a run from
/// starting.
pub(super) async fn finish_forgetting(adapters: &Adapters, lock: &Arc<CampaignLock>) {
    let mut result = ForgottenPerson::default();
    if let Err(error) = erase_pending_rows(adapters, &mut vec![Arc::clone(lock)], Some(lock), &mut result).await {
        tracing::warn!("a forgotten number has not been removed from all stored lists and results yet: {error}");
    }
    for UnreadableRun { run, why } in &result.unread {
        tracing::warn!(run, why, "the forgotten number is still in the stored files of this run");
    }
    for results in &result.unwritten {
        tracing::warn!("results that might still contain the forgotten number were not updated: {results}");
    }
}

/// Removes rows that await erasure from copies and results. `only` limits this to the runs that a lock covers.
async fn erase_pending_rows(
    adapters: &Adapters,
    locks: &mut Vec<Arc<CampaignLock>>,
    only: Option<&Arc<CampaignLock>>,
    result: &mut ForgottenPerson,
) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    let mut erased = Vec::new();
    for (key, rows) in ledger.list_rows_to_forget().await? {
        let run = reload_run(ledger, key).await?;
        if only.is_some_and(|lock| !lock.covers_run(&run)) {
            continue;
        }
        let lock = lock_for_run(adapters, locks, &run).await?;
        if erase_in_run(adapters, run, lock, rows, result).await? {
            erased.push(key);
        }
    }
    if !erased.is_empty() {
        ledger.overwrite_remains(&[]).await?;
        failpoint::pass("forget.swept");
        ledger.update_runs(erased, RunUpdate::RowsErased).await?;
    }
    Ok(())
}

/// Removes rows from the copies and results of a run. Returns whether the rows were removed.
async fn erase_in_run(
    adapters: &Adapters,
    run: Run,
    lock: Arc<CampaignLock>,
    rows: RoaringBitmap,
    result: &mut ForgottenPerson,
) -> Result<bool, Error> {
    if !run.shared
        && let Err(error) = replace_copies(adapters.ledger.as_ref(), &run, rows).await
    {
        result.unread.push(UnreadableRun { run: run.name(), why: error.to_string() });
        return Ok(false);
    }
    failpoint::pass("forget.copied");
    let results = run.results.as_ref().map(|path| ReplacedFile::open(path.as_ref()));
    let released = HeldRun::claim(adapters, lock, run).await?.release().await?;
    failpoint::pass("forget.written");
    match released.stale_results {
        // If the file holds the results of a later run, it is rewritten when that run is processed.
        None | Some(StaleResults::Later { .. }) => {}
        Some(stale_results) => {
            result.unwritten.push(stale_results);
            return Ok(matches!(result.unwritten.last(), Some(StaleResults::Gone { .. })));
        }
    }
    if let Some(Ok(results)) = results {
        results.overwrite().map_err(|error| Error::Storage(error.to_string()))?;
    }
    Ok(true)
}

/// Erases a number from the results of dry runs. The ledger does not record these files, so they are looked for in the
/// folders of all results.
async fn erase_from_dry_runs(ledger: &dyn Ledger, phone: Phone, result: &mut ForgottenPerson) -> Result<(), Error> {
    let mut folders = BTreeSet::new();
    for run in ledger.list_stored_runs(RunFilter::all()).await?.into_iter().flatten() {
        folders.extend(run.results.iter().filter_map(|path| Path::new(path).parent()).map(Path::to_owned));
        folders.extend(run.file.iter().map(|file| Path::new(file).with_file_name("results")));
    }
    let erased = run_blocking(move || {
        let (mut erased, mut failed) = (Vec::new(), Vec::new());
        let describe = |path: &Path, error: io::Error| {
            let text = format!("cannot erase the number from results of dry runs in `{}`: {error}", path.display());
            StaleResults::Failed(Error::Storage(text))
        };
        for folder in folders {
            let files = list_dry_run_results(&folder).map_err(|error| failed.push(describe(&folder, error)));
            for path in files.unwrap_or_default() {
                match erase_from_dry_run(&path, phone) {
                    Ok(0) => {}
                    Ok(rows) => erased.push((path, rows)),
                    Err(error) => failed.push(describe(&path, error)),
                }
            }
        }
        (erased, failed)
    });
    let (erased, failed) = erased.await?;
    result.dry_runs = erased;
    result.unwritten.extend(failed);
    Ok(())
}

/// Erases a number from a dry run's results, and overwrites the bytes of the old file. Returns the number of changed
/// rows.
fn erase_from_dry_run(path: &Path, phone: Phone) -> io::Result<u64> {
    let old = ReplacedFile::open(path);
    let rows = erase_from_dry_run_results(path, phone)?;
    if let (true, Ok(old)) = (rows > 0, old) {
        old.overwrite()?;
    }
    Ok(rows)
}

/// Lists the results of dry runs that a run's campaign wrote next to the results of the run. They are recognized by
/// their file names.
pub fn list_dry_runs_of(run: &Run) -> Vec<PathBuf> {
    let Some(results) = run.results.as_ref().map(Path::new) else { return Vec::new() };
    let (Some(folder), Some(stem)) = (results.parent(), results.file_stem()) else { return Vec::new() };
    let stem = stem.to_string_lossy();
    let stem = match stem.rsplit_once('@') {
        Some((stem, number)) if number.parse::<u32>().is_ok() => stem,
        _ => stem.strip_suffix(".sandbox").unwrap_or(&stem),
    };
    let start = format!("{stem}.");
    let mut files = list_dry_run_results(folder).unwrap_or_default();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start)));
    files
}

/// A file that might be replaced.
struct ReplacedFile(File);

impl ReplacedFile {
    fn open(path: &Path) -> io::Result<Self> {
        OpenOptions::new().write(true).open(path).map(Self)
    }

    /// Overwrites the bytes of the old file, if it was replaced and no path leads to it now.
    fn overwrite(mut self) -> io::Result<()> {
        let is_gone = |file: &File| {
            #[cfg(unix)]
            return file.metadata().is_ok_and(|metadata| std::os::unix::fs::MetadataExt::nlink(&metadata) == 0);
            #[cfg(not(unix))]
            return file.metadata().is_err();
        };
        match is_gone(&self.0) {
            true => private::overwrite_with_zeros(&mut self.0).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot overwrite the earlier results: {error}"))
            }),
            false => Ok(()),
        }
    }
}

/// Replaces the copies of a run with copies in which these rows are erased.
async fn replace_copies(ledger: &dyn Ledger, run: &Run, rows: RoaringBitmap) -> Result<(), ResultsError> {
    let mut new_copies = ledger.prepare_copies(CopiesPurpose::Replacement(run)).await?;
    let frozen = FrozenRun::load(ledger, run).await?;
    let erased_before: RoaringBitmap = frozen.inputs.forgotten.iter().copied().collect();
    if rows.is_subset(&erased_before) {
        return Ok(());
    }
    let rows = rows | erased_before;
    let list = new_copies.list_writer()?;
    let written = run_blocking(move || write_list_with_erased_rows(frozen, &rows, list)).await;
    let frozen = written.map_err(|error| ResultsError::Recipients(error.to_string()))??;
    let bytes = frozen.to_bytes().map_err(|error| ResultsError::Recipients(error.to_string()))?;
    Ok(new_copies.freeze(bytes, run).await?)
}

/// Writes the list of a run with these rows erased, and returns the frozen inputs for the new list.
fn write_list_with_erased_rows(
    frozen: FrozenRun,
    rows: &RoaringBitmap,
    list: Box<dyn Write + Send>,
) -> Result<FrozenInputs, ResultsError> {
    // A damaged copy would look intact with a new hash.
    let is_intact = frozen.is_list_intact();
    let FrozenRun { inputs: frozen, copies, .. } = frozen;
    if !is_intact {
        return Err(ResultsError::ListChanged(copies.place().into()));
    }
    let mut hashed = HashingWriter { out: list, hash: Sha256::new() };
    let (place, settings) = (copies.place().as_ref(), reader_settings(&frozen.brief));
    write_with_erased_rows(|| copies.open_list(), place, &settings, rows, io::BufWriter::new(&mut hashed))
        .map_err(|error| ResultsError::Recipients(error.to_string()))?;
    let hash = hashed.hash.finalize();
    let recipients_sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(FrozenInputs { recipients_sha256, forgotten: rows.iter().collect(), ..frozen })
}

/// A writer that also hashes its bytes.
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

/// Returns the lock on the campaign of a run, and takes it if this process does not hold it yet.
async fn lock_for_run(
    adapters: &Adapters,
    locks: &mut Vec<Arc<CampaignLock>>,
    run: &Run,
) -> Result<Arc<CampaignLock>, Error> {
    if let Some(lock) = locks.iter().find(|lock| lock.covers_run(run)) {
        return Ok(Arc::clone(lock));
    }
    let lock = HeldRun::lock_for_run(adapters, run).await?;
    locks.push(Arc::clone(&lock));
    Ok(lock)
}

/// The file in the state folder: a key, and a keyed hash of each forgotten number.
const FILE: &str = "forgotten";

/// The forgotten numbers of a state folder.
pub(super) struct ForgottenNumbers {
    key: NumberKey,
    hashes: HashSet<u64>,
}

impl ForgottenNumbers {
    /// Reads the forgotten numbers of a state folder. `None` if there are none.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub(super) fn read(state: &Path) -> io::Result<Option<Self>> {
        match std::fs::read_to_string(state.join(FILE)) {
            Ok(text) => Self::parse(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores durably that a number was forgotten.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn add(state: &Path, phone: Phone) -> io::Result<()> {
        private::create_folder(state)?;
        let path = state.join(FILE);
        drop(private::open_file(&path, ExistingFile::Keep)?);
        let mut file = File::options().read(true).write(true).open(&path)?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A last line that a crash cut off is removed.
        let line_start = text.rfind('\n').map_or(0, |end| end + 1);
        text.truncate(line_start);
        file.set_len(line_start as u64)?;
        file.seek(SeekFrom::End(0))?;
        if line_start == 0 {
            let key: [u8; NumberKey::LENGTH] = rand::random();
            text = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
            file.write_all(text.as_bytes())?;
        }
        let stored = Self::parse(&text)?;
        if !stored.contains(phone) {
            file.write_all(format!("{}\n", stored.hash_number(phone)).as_bytes())?;
        }
        file.sync_all()?;
        private::sync_entry(&path)
    }

    /// Whether a number was forgotten.
    pub(super) fn contains(&self, phone: Phone) -> bool {
        self.hashes.contains(&self.hash_number(phone))
    }

    fn hash_number(&self, phone: Phone) -> u64 {
        Addressee::Forgotten(self.key.hash_number(phone)).to_u64()
    }

    fn parse(text: &str) -> io::Result<Self> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("`{FILE}` is corrupt"));
        let (key, numbers) = text.split_once('\n').ok_or_else(damaged)?;
        let parse_byte = |place: usize| key.get(place..place + 2).and_then(|byte| u8::from_str_radix(byte, 16).ok());
        let bytes: Option<Vec<u8>> = (0..key.len()).step_by(2).map(parse_byte).collect();
        let key = bytes.and_then(|bytes| bytes.try_into().ok()).map(NumberKey::new).ok_or_else(damaged)?;
        let hashes: Result<HashSet<u64>, _> = numbers.lines().map(str::parse).collect();
        Ok(Self { key, hashes: hashes.map_err(|_| damaged())? })
    }
}

/// The runs that were last used before a time.
#[derive(Debug, Default)]
pub struct OldRuns {
    /// The runs that can be purged, oldest first.
    pub purgeable: Vec<RunView>,
    /// The runs that cannot be purged, with the reasons.
    pub kept: Vec<(String, PurgeBlocker)>,
}

/// The reason a run is not purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeBlocker {
    /// The run can be resumed.
    Unfinished,
    /// The run has rows in doubt.
    InDoubt,
    /// A process is using the run or its campaign.
    InUse,
    /// A forgotten person could not be removed from the copies or results of the run yet.
    Forgetting,
    /// The list of the run cannot be read, so later runs would send to its cancelled recipients.
    Unreadable,
}

impl OldRuns {
    /// Finds the runs last used before a time, including rehearsals and single messages.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load(ledger: &dyn Ledger, before: Timestamp) -> Result<Self, LedgerError> {
        let mut old = Self::default();
        for run in ledger.list_runs(RunFilter::all()).await? {
            if run.purged_at.is_some() || find_last_use(ledger, &run).await? >= before {
                continue;
            }
            let name = run.name();
            match load_purgeable_view(ledger, run).await? {
                Ok(view) => old.purgeable.push(view),
                Err(blocker) => old.kept.push((name, blocker)),
            }
        }
        Ok(old)
    }
}

/// Returns the time at which a run began, ended or began its last envelope, whichever is latest.
async fn find_last_use(ledger: &dyn Ledger, run: &Run) -> Result<Timestamp, LedgerError> {
    let last = ledger.list_envelope_summaries(run.key).await?.last().map(|last| last.envelope);
    let sent = match last {
        Some(last) => ledger
            .load_envelopes(run.key, EnvelopeFilter::Numbers(last..=last))
            .await?
            .pop()
            .map(|envelope| envelope.begun_at),
        None => None,
    };
    Ok([Some(run.began_at), run.ended_at, sent].into_iter().flatten().max().unwrap_or(run.began_at))
}

/// Returns the view of a run that can be purged, or the reason the run cannot be purged.
async fn load_purgeable_view(ledger: &dyn Ledger, run: Run) -> Result<Result<RunView, PurgeBlocker>, LedgerError> {
    if is_owned(ledger, &run).await? || !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Ok(Err(PurgeBlocker::InUse));
    }
    if run.progress == RunProgress::Open {
        return Ok(Err(PurgeBlocker::Unfinished));
    }
    let view = RunView::load(ledger, run, false).await?;
    match NextStep::for_doubt(&view.counts).is_some() || view.counts.get(RowState::Sending) > 0 {
        true => Ok(Err(PurgeBlocker::InDoubt)),
        false => Ok(Ok(view)),
    }
}

/// Purges these runs: their rows are removed from the ledger, and their copies are overwritten and removed. Returns the
/// runs that are not purged, with the reasons.
///
/// # Errors
/// If the ledger or the copies cannot be read or written. Runs that were purged before the failure stay purged.
pub async fn purge_runs(adapters: &Adapters, runs: Vec<Run>) -> Result<Vec<(String, PurgeBlocker)>, Error> {
    let ledger = adapters.ledger.as_ref();
    let mut blocked = Vec::new();
    let mut failed = None;
    for run in runs {
        let name = run.name();
        match purge_run(adapters, run).await {
            Ok(Ok(())) => {}
            Ok(Err(blocker)) => blocked.push((name, blocker)),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    // Even after a failure, nothing of the purged runs may be left. Copies that an interrupted earlier purge left behind
    // are removed too.
    let mut purged = ledger.list_runs(RunFilter::all()).await?;
    purged.retain(|run| run.purged_at.is_some());
    ledger.overwrite_remains(&purged).await?;
    failed.map_or(Ok(blocked), Err)
}

/// Purges a run, or returns the reason the run cannot be purged.
async fn purge_run(adapters: &Adapters, run: Run) -> Result<Result<(), PurgeBlocker>, Error> {
    let ledger = adapters.ledger.as_ref();
    let lock = match HeldRun::lock_for_run(adapters, &run).await {
        Ok(lock) => lock,
        Err(Error::BusyRun { .. }) => return Ok(Err(PurgeBlocker::InUse)),
        Err(error) => return Err(error),
    };
    // After the purge, copies and results that still contain a forgotten person could not be found.
    finish_forgetting(adapters, &lock).await;
    if ledger.list_rows_to_forget().await?.iter().any(|(waiting, _)| *waiting == run.key) {
        return Ok(Err(PurgeBlocker::Forgetting));
    }
    // After the purge, the results can no longer be updated, so they are updated with all receipts now.
    refresh_run(adapters, &run).await?;
    let run = reload_run(ledger, run.key).await?;
    // If a process draws rows of a shared run after this check, the run changes and the ledger refuses the purge.
    if !ledger.load_claimed_rows(run.key).await?.is_empty() {
        return Ok(Err(PurgeBlocker::InUse));
    }
    let snapshot = Snapshot::load(ledger, &run, false).await?;
    let cancelled = match find_cancelled_numbers(ledger, &run).await? {
        Ok(cancelled) => cancelled,
        Err(blocker) => return Ok(Err(blocker)),
    };
    let name = run.name();
    let order = PurgeOrder { counted: run, counts: snapshot.counts, parts: snapshot.parts.billed, cancelled };
    if ledger.purge_run(order).await? == Ownership::Lost {
        return Ok(Err(PurgeBlocker::InUse));
    }
    tracing::info!(run = name, "purged");
    failpoint::pass("purge.recorded");
    Ok(Ok(()))
}

/// The numbers of the cancelled recipients, which later runs of the edition skip even without the list.
async fn find_cancelled_numbers(ledger: &dyn Ledger, run: &Run) -> Result<Result<RoaringTreemap, PurgeBlocker>, Error> {
    if !run.live || run.progress != RunProgress::Cancelled {
        return Ok(Ok(RoaringTreemap::new()));
    }
    match load_cancelled_numbers(ledger, run).await {
        Ok(numbers) => Ok(Ok(numbers)),
        Err(ResultsError::Ledger(error)) => Err(error.into()),
        Err(error) => {
            tracing::warn!(run = run.name(), %error, "not purged: its cancelled recipients cannot be read");
            Ok(Err(PurgeBlocker::Unreadable))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_numbers_are_hashed_and_damaged_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let phone = |last: u64| Phone::new(380_501_234_560 + last).unwrap();
        assert!(ForgottenNumbers::read(folder.path()).unwrap().is_none());
        for last in [1, 2, 1] {
            ForgottenNumbers::add(folder.path(), phone(last)).unwrap();
        }
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.lines().count() == 3 && !text.contains("3805012345"));
        // A crash in the middle of a line loses that line only.
        std::fs::write(folder.path().join(FILE), format!("{text}12")).unwrap();
        ForgottenNumbers::add(folder.path(), phone(3)).unwrap();
        let forgotten = ForgottenNumbers::read(folder.path()).unwrap().unwrap();
        assert_eq!([1, 2, 3, 4].map(|last| forgotten.contains(phone(last))), [true, true, true, false]);
        // The interrupted command is repeated, even if only the line break is missing.
        let text = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        std::fs::write(folder.path().join(FILE), text.trim_end()).unwrap();
        ForgottenNumbers::add(folder.path(), phone(3)).unwrap();
        assert!(ForgottenNumbers::read(folder.path()).unwrap().unwrap().contains(phone(3)));
        for damaged in ["", "ab", "zz\n", "ключ\n", &format!("{text}x\n")] {
            std::fs::write(folder.path().join(FILE), damaged).unwrap();
            assert!(ForgottenNumbers::read(folder.path()).is_err(), "{damaged}");
        }
    }
}
