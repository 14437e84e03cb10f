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

use super::find::found;
use super::forgotten::ForgottenNumbers;
use super::freeze::is_whole;
use super::{Adapters, Error, HeldRun, StaleResults, blocking, person};
use crate::audience::without_people;
use crate::check::settings;
use crate::delivery::{FrozenInputs, Snapshot};
use crate::domain::{FORGOTTEN, Phone, Row};
use crate::failpoint;
use crate::ledger::{Copies, ForgetOrder, Hold, Ledger, LedgerError, OptOut, Reach, Run, RunFilter, Scope, State};
use crate::private;
use crate::report::{DOUBTFUL, Person, PersonInRun, ResultsError, RowSelection, UnreadRun};

/// What became of the request to forget somebody.
#[derive(Debug, Default)]
pub struct ForgottenPerson {
    /// The rows that are forgotten, by run.
    pub runs: Vec<ForgottenRows>,
    /// The rows that cannot be forgotten until somebody decides about them, or whoever sends them is through.
    pub doubtful: Vec<(String, RoaringBitmap)>,
    /// The runs whose copies could not be read or written, so that they may have the number still.
    pub unread: Vec<UnreadRun>,
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
pub async fn forget(adapters: &Adapters, phone: Phone) -> Result<ForgottenPerson, Error> {
    let ledger = adapters.ledger.as_ref();
    let (mut held, mut told) = (Vec::new(), ForgottenPerson::default());
    finish(adapters, &mut held, None, &mut told).await?;
    let person = Person::find(ledger, phone, &RowSelection::default()).await?;
    told.unread.extend(person.unread);
    for PersonInRun { run, .. } in &person.runs {
        hold_of(adapters, &mut held, run).await?;
    }
    let mut order = Vec::new();
    for PersonInRun { run, rows, .. } in person.runs {
        let (doubtful, forgotten) = sorted(ledger, &run, rows).await?;
        if !doubtful.is_empty() {
            told.doubtful.push((run.name(), doubtful));
        }
        if !forgotten.rows.is_empty() {
            order.push((run.key, forgotten.rows.clone()));
            told.runs.push(forgotten);
        }
    }
    let opt_out = opt_out(phone, (adapters.clock)());
    // First: a ledger that is put back from a backup has to forget them again.
    ForgottenNumbers::add(&adapters.state, phone)
        .map_err(|error| Error::Storage(format!("cannot record the forgotten number in the state folder: {error}")))?;
    ledger.forget(ForgetOrder { phone, rows: order, opt_out }).await?;
    failpoint::pass("forget.recorded");
    finish(adapters, &mut held, None, &mut told).await?;
    // Where it was in no run, it may have been on the suppression list.
    ledger.sweep().await?;
    Ok(told)
}

/// How a number is put on the list that is forgotten.
fn opt_out(phone: Phone, at: Timestamp) -> OptOut {
    let (reason, source) = (FORGOTTEN.into(), person().into());
    OptOut { who: phone.into(), scope: Scope::Everything, reach: Reach::AllGateways, reason, source, at }
}

/// The rows of somebody that nobody knows the end of, and those that can be forgotten.
async fn sorted(
    ledger: &dyn Ledger,
    run: &Run,
    rows: RoaringBitmap,
) -> Result<(RoaringBitmap, ForgottenRows), LedgerError> {
    // Whoever had it is gone, since it is held; rows of a shared run may be on their way all the same.
    let snapshot = Snapshot::read(ledger, &found_again(ledger, run).await?, false).await?;
    let of = |states: &[State]| -> RoaringBitmap {
        rows.iter().filter(|row| states.contains(&snapshot.state(Row::new(*row)))).collect()
    };
    let doubtful = of(&DOUBTFUL) | of(&[State::Sending]);
    let skipped = of(&[State::Planned]);
    let rows = rows - &doubtful;
    Ok((doubtful, ForgottenRows { run: run.name(), rows, skipped }))
}

async fn found_again(ledger: &dyn Ledger, run: &Run) -> Result<Run, LedgerError> {
    let mut runs = ledger.runs(RunFilter::one(run.key)).await?;
    Ok(runs.pop().unwrap_or_else(|| run.clone()))
}

/// Finishes what an earlier call left, for the runs of what is held. What cannot be written now waits for the next time; a
/// start is not what has to tell of it.
pub(super) async fn finish_forgetting(adapters: &Adapters, hold: &Arc<Hold>) {
    let mut told = ForgottenPerson::default();
    if let Err(error) = finish(adapters, &mut vec![Arc::clone(hold)], Some(hold), &mut told).await {
        tracing::warn!("a forgotten number has not been removed from all stored lists and results yet: {error}");
    }
    for UnreadRun { run, why } in &told.unread {
        tracing::warn!(run, why, "the forgotten number is still in the stored files of this run");
    }
}

/// Takes the rows that wait out of copies and results; of all runs, or of those of one campaign.
async fn finish(
    adapters: &Adapters,
    held: &mut Vec<Arc<Hold>>,
    only: Option<&Arc<Hold>>,
    told: &mut ForgottenPerson,
) -> Result<(), Error> {
    let ledger = adapters.ledger.as_ref();
    let mut done = Vec::new();
    for (key, rows) in ledger.to_be_forgotten().await? {
        let run = found(ledger, key).await?;
        if only.is_some_and(|hold| !hold.covers(&run)) {
            continue;
        }
        let hold = hold_of(adapters, held, &run).await?;
        if finish_run(adapters, run, (hold, rows), told).await? {
            done.push(key);
        }
    }
    if !done.is_empty() {
        ledger.sweep().await?;
        failpoint::pass("forget.swept");
        ledger.forgot(done).await?;
    }
    Ok(())
}

/// Takes rows out of the copies and the results of a run; tells whether they are gone.
async fn finish_run(
    adapters: &Adapters,
    run: Run,
    (hold, rows): (Arc<Hold>, RoaringBitmap),
    told: &mut ForgottenPerson,
) -> Result<bool, Error> {
    if !run.shared
        && let Err(error) = in_copies(adapters.ledger.as_ref(), &run, rows).await
    {
        told.unread.push(UnreadRun { run: run.name(), why: error.to_string() });
        return Ok(false);
    }
    failpoint::pass("forget.copied");
    let results = run.results.as_ref().map(|path| OldFile::open(path.as_ref()));
    let released = HeldRun::of(adapters, hold, run).await?.release().await?;
    failpoint::pass("forget.written");
    match released.unwritten {
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
struct OldFile(File);

impl OldFile {
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
            true => private::overwrite(&mut self.0)
                .map_err(|error| Error::Storage(format!("cannot overwrite the earlier results: {error}"))),
            false => Ok(()),
        }
    }
}

/// Has copies without these rows take the place of those of a run.
async fn in_copies(ledger: &dyn Ledger, run: &Run, rows: RoaringBitmap) -> Result<(), ResultsError> {
    let mut new = ledger.prepare_other_copies(run).await?;
    let copies = ledger.copies(run).await?;
    let frozen = FrozenInputs::of(&copies)?;
    let before: RoaringBitmap = frozen.forgotten.iter().copied().collect();
    if rows.is_subset(&before) {
        return Ok(());
    }
    let rows = rows | before;
    let list = new.list()?;
    let written = blocking(move || written_without(&copies, frozen, &rows, list)).await;
    let frozen = written.map_err(|error| ResultsError::Recipients(error.to_string()))??;
    let bytes = frozen.to_bytes().map_err(|error| ResultsError::Recipients(error.to_string()))?;
    Ok(new.freeze(bytes, run).await?)
}

/// Writes a list without these rows, and gives what is frozen with it.
fn written_without(
    copies: &Copies,
    frozen: FrozenInputs,
    rows: &RoaringBitmap,
    list: Box<dyn Write + Send>,
) -> Result<FrozenInputs, ResultsError> {
    // What is damaged would look whole under a new hash.
    if !is_whole(copies, &frozen) {
        return Err(ResultsError::Changed(copies.place().into()));
    }
    let mut hashed = Hashed { out: list, hash: Sha256::new() };
    let (place, settings) = (copies.place().as_ref(), settings(&frozen.brief));
    without_people(|| copies.list(), place, &settings, rows, io::BufWriter::new(&mut hashed))
        .map_err(|error| ResultsError::Recipients(error.to_string()))?;
    let hash = hashed.hash.finalize();
    let recipients_sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(FrozenInputs { recipients_sha256, forgotten: rows.iter().collect(), ..frozen })
}

/// What is written, and hashed on its way.
struct Hashed<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashed<W> {
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
async fn hold_of(adapters: &Adapters, held: &mut Vec<Arc<Hold>>, run: &Run) -> Result<Arc<Hold>, Error> {
    if let Some(hold) = held.iter().find(|hold| hold.covers(run)) {
        return Ok(Arc::clone(hold));
    }
    let hold = HeldRun::hold_of(adapters, run).await?;
    held.push(Arc::clone(&hold));
    Ok(hold)
}
