//! The copies of runs: a folder for each beside the ledger, with its list and what was frozen besides.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use super::dialect::storage;
use super::ledger::SqliteLedger;
use crate::failpoint;
use crate::ledger::{Copies, Hold, LedgerError, LedgerFuture, ListReader, NewCopies, Run, StrayCopies};
use crate::private::{self, Existing};
use crate::regular_file;

/// What is in the folder of a run.
const INPUTS: &str = "frozen.json";
const LIST: &str = "recipients.csv";

impl SqliteLedger {
    /// Makes room for the copies of a run of what is held.
    pub(super) async fn new_copies(&self, hold: &Hold) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(NewFolder::prepare(&self.path, hold)?))
    }

    /// Makes room for the copies that take the place of those of a run.
    pub(super) async fn other_copies(&self, run: &Run) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(OtherFolder::prepare(&self.path, &run.name())?))
    }

    /// The copies that a run is sent from.
    pub(super) async fn copies_of(&self, run: &Run) -> Result<Copies, LedgerError> {
        of(&self.path, &run.name()).await
    }

    /// The copies of runs that the ledger does not have.
    pub(super) async fn strays(&self) -> Result<Vec<StrayCopies>, LedgerError> {
        let known = sqlx::query_scalar("SELECT campaign || '@' || number FROM runs").fetch_all(&self.readers).await;
        let known: Vec<String> = known.map_err(|error| storage(&self.path, &error))?;
        Ok(strays(&self.path, &known))
    }

    /// Gives the copies of a run that the ledger does not have another name, and tells it.
    pub(super) async fn put_stray_aside(&self, run: &str) -> Result<String, LedgerError> {
        put_stray_aside(&self.path, run)
    }

    /// Overwrites and removes the copies of a run, if they are there.
    pub(super) async fn remove_copies(&self, run: &Run) -> Result<(), LedgerError> {
        discard(&self.path, &run.name())
    }
}

/// The folder of all folders of the ledger at `ledger`.
fn all(ledger: &Path) -> PathBuf {
    ledger.with_file_name("runs")
}

/// The folder of a run that has no name yet, readable by its owner alone; dropped, it is removed.
struct NewFolder {
    path: PathBuf,
    list: File,
}

impl NewFolder {
    /// Makes one for a run of what is held.
    ///
    /// Nobody else has the campaign on the account, so what an interrupted start left there is nobody's.
    fn prepare(ledger: &Path, hold: &Hold) -> Result<Self, LedgerError> {
        let path = all(ledger).join(format!(".new-{}", hold.name()));
        let made = private::folder(&all(ledger)).and_then(|()| Self::empty(path));
        made.map_err(|error| not_copied(&error))
    }

    /// Makes one without anything in it.
    fn empty(path: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => private::folder(&path)?,
        }
        let list = private::file(&path.join(LIST), Existing::Emptied)?;
        Ok(Self { path, list })
    }

    /// Brings both files to the disk.
    fn fill(&self, inputs: &[u8]) -> io::Result<()> {
        self.list.sync_all()?;
        let mut file = private::file(&self.path.join(INPUTS), Existing::Emptied)?;
        file.write_all(inputs)?;
        file.sync_all()?;
        private::sync_folder(&self.path)
    }

    /// Brings both files to the disk, and gives the folder the name of its run.
    fn name(&self, inputs: &[u8], run: &str) -> io::Result<()> {
        self.fill(inputs)?;
        failpoint::pass("run.frozen");
        let named = self.path.with_file_name(run);
        if named.exists() {
            // Only a lost or older ledger can lead here; those copies may still be needed.
            put_aside(&named)?;
        }
        fs::rename(&self.path, &named)?;
        private::sync_entry(&named)?;
        failpoint::pass("run.named");
        Ok(())
    }
}

impl NewCopies for NewFolder {
    fn list(&mut self) -> Result<Box<dyn Write + Send>, LedgerError> {
        let list = self.list.try_clone().map_err(|error| not_copied(&error))?;
        Ok(Box::new(ListCopy(list)))
    }

    fn freeze(self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.name(&inputs, &run.name()).map_err(|error| not_copied(&error)) })
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // It is gone if it got the name of its run. What cannot be removed harms nobody: nothing was sent from it.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The folder of the copies that take the place of those of a run, within their folder; dropped, it is removed.
///
/// What a crash leaves is whole: the new copies count as soon as their folder has its name, and each of them from then on
/// until it stands where the old one stood. The old ones are overwritten before they give way.
struct OtherFolder(NewFolder);

/// The copies that are being made, within the folder of a run, and those that count.
const MAKING: &str = ".next";
const NEXT: &str = "next";

impl OtherFolder {
    /// Makes one for a run whose campaign is held.
    fn prepare(ledger: &Path, run: &str) -> Result<Self, LedgerError> {
        let folder = all(ledger).join(run);
        let made = settle(&folder).and_then(|()| NewFolder::empty(folder.join(MAKING)));
        made.map(Self).map_err(|error| not_copied(&error))
    }

    /// Has both files count, and overwrites those that did.
    fn replace(&self, inputs: &[u8]) -> io::Result<()> {
        let Self(making) = self;
        making.fill(inputs)?;
        let next = making.path.with_file_name(NEXT);
        fs::rename(&making.path, &next)?;
        private::sync_entry(&next)?;
        failpoint::pass("copies.replaced");
        settle(next.parent().unwrap_or(&next))
    }
}

/// Puts the copies that count where those stand that they took the place of, if there are any.
fn settle(folder: &Path) -> io::Result<()> {
    let next = folder.join(NEXT);
    for name in [LIST, INPUTS] {
        let (new, old) = (next.join(name), folder.join(name));
        if new.exists() {
            match OpenOptions::new().write(true).open(&old) {
                Ok(mut old) => private::overwrite(&mut old)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            failpoint::pass("copies.overwritten");
            fs::rename(&new, &old)?;
            private::sync_folder(folder)?;
        }
    }
    match fs::remove_dir(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Overwrites and removes the copies of a run, if they are there.
fn discard(ledger: &Path, run: &str) -> Result<(), LedgerError> {
    let folder = all(ledger).join(run);
    let removed = || {
        for place in [folder.clone(), folder.join(NEXT), folder.join(MAKING)] {
            for name in [LIST, INPUTS] {
                match OpenOptions::new().write(true).open(place.join(name)) {
                    Ok(mut file) => private::overwrite(&mut file)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    };
    removed().map_err(|error| LedgerError::Storage {
        path: folder.display().to_string(),
        reason: format!("it cannot be removed: {error}"),
    })
}

/// Where a copy stands: among those that take the place of others, as long as it is there.
fn place(folder: &Path, name: &str) -> PathBuf {
    let next = folder.join(NEXT).join(name);
    if next.exists() { next } else { folder.join(name) }
}

impl NewCopies for OtherFolder {
    fn list(&mut self) -> Result<Box<dyn Write + Send>, LedgerError> {
        self.0.list()
    }

    fn freeze(self: Box<Self>, inputs: Vec<u8>, _: &Run) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.replace(&inputs).map_err(|error| not_copied(&error)) })
    }
}

/// The copy of a list, which tells what it is when it cannot be written.
struct ListCopy(File);

impl Write for ListCopy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let told = |error: io::Error| {
            io::Error::new(error.kind(), format!("the recipients cannot be copied to the state folder: {error}"))
        };
        self.0.write(bytes).map_err(told)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Puts the copies of a run beside the ledger at `ledger`; others of its name are put aside.
pub(super) async fn put(ledger: &Path, run: &str, copies: Copies) -> io::Result<()> {
    let (folder, run) = (all(ledger), run.to_owned());
    let putting = tokio::task::spawn_blocking(move || {
        private::folder(&folder)?;
        let mut new = NewFolder::empty(folder.join(format!(".new-{run}")))?;
        io::copy(&mut copies.list()?, &mut new.list)?;
        new.name(copies.inputs(), &run)
    });
    putting.await.map_err(io::Error::other)?
}

/// The same, unless those that are there are the same.
pub(super) async fn put_if_other(ledger: &Path, run: &str, copies: Copies) -> io::Result<()> {
    if let Ok(there) = of(ledger, run).await {
        let theirs = copies.clone();
        let compared = tokio::task::spawn_blocking(move || {
            Ok::<_, io::Error>(there.inputs() == theirs.inputs() && is_same(there.list()?, theirs.list()?)?)
        });
        if compared.await.map_err(io::Error::other)?.unwrap_or(false) {
            return Ok(());
        }
    }
    put(ledger, run, copies).await
}

/// Whether two lists are the same, byte for byte.
fn is_same(one: ListReader, other: ListReader) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (here, there) = (one.fill_buf()?, other.fill_buf()?);
        let both = here.len().min(there.len());
        if here[..both] != there[..both] || both == 0 {
            return Ok(here.is_empty() && there.is_empty());
        }
        one.consume(both);
        other.consume(both);
    }
}

/// The copies of a run of the ledger at `ledger`. The disk is waited for elsewhere: one that hangs holds up no signal.
pub(super) async fn of(ledger: &Path, run: &str) -> Result<Copies, LedgerError> {
    let folder = all(ledger).join(run);
    let (named, file) = (folder.display().to_string(), place(&folder, INPUTS));
    let read = tokio::task::spawn_blocking(move || {
        let mut inputs = Vec::new();
        regular_file::open(&file)?.read_to_end(&mut inputs).map(|_| inputs)
    });
    match read.await.map_err(io::Error::other).flatten() {
        Ok(inputs) => {
            let list = move || Ok(Box::new(regular_file::open(&place(&folder, LIST))?) as ListReader);
            Ok(Copies::new(named, inputs, list))
        }
        Err(error) => Err(LedgerError::Copies { place: named, reason: error.to_string() }),
    }
}

/// The copies of runs that are not among these; what is being made or was put aside is none.
pub(super) fn strays(ledger: &Path, known: &[String]) -> Vec<StrayCopies> {
    let entries = fs::read_dir(all(ledger)).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let is_run = |name: &str| {
        let number = name.rsplit_once('@').map(|(_, number)| number);
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let unknown = named.filter(|(name, _)| is_run(name) && !known.contains(name));
    let stray = |(run, folder): (String, PathBuf)| {
        let inputs = fs::read(folder.join(INPUTS)).ok();
        StrayCopies { run, place: folder.display().to_string(), inputs }
    };
    let mut strays: Vec<StrayCopies> = unknown.map(stray).collect();
    strays.sort_by(|one, other| one.run.cmp(&other.run));
    strays
}

/// Gives the copies of a run that the ledger does not have another name beside their own, and tells it.
pub(super) fn put_stray_aside(ledger: &Path, run: &str) -> Result<String, LedgerError> {
    let folder = all(ledger).join(run);
    let failed = |error: io::Error| LedgerError::Storage {
        path: folder.display().to_string(),
        reason: format!("it cannot be renamed: {error}"),
    };
    Ok(put_aside(&folder).map_err(failed)?.display().to_string())
}

fn put_aside(folder: &Path) -> io::Result<PathBuf> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let named = |number: u32| folder.with_file_name(format!("{name}.old-{number}"));
    let aside = (1..).map(named).find(|aside| !aside.exists()).unwrap_or_default();
    fs::rename(folder, &aside)?;
    Ok(aside)
}

fn not_copied(reason: &dyn Display) -> LedgerError {
    LedgerError::NotCopied { place: "the state folder".to_owned(), reason: reason.to_string() }
}
