//! Copies of runs as files: a folder per run next to the ledger, with the list and the frozen inputs.

use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};

use super::dialect::storage_error;
use super::ledger::SqliteLedger;
use crate::{CampaignLock, Copies, LedgerError, LedgerFuture, ListReader, NewCopies, Run, StrayCopies};
use campaign_core::failpoint;
use campaign_core::private::{self, ExistingFile};
use campaign_core::regular_file;

/// The file of the frozen inputs, in the folder of a run.
const INPUTS_FILE: &str = "frozen.json";
/// The copy of the list, in the folder of a run.
const LIST_FILE: &str = "recipients.csv";

impl SqliteLedger {
    /// Starts writing the copies of a new run of a locked campaign.
    pub(super) async fn begin_new_copies(&self, lock: &CampaignLock) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(NewFolder::prepare_for_lock(&self.path, lock)?))
    }

    /// Starts writing copies that replace the existing copies of a run.
    pub(super) async fn begin_replacement_copies(&self, run: &Run) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(ReplacementFolder::prepare_for_run(&self.path, &run.name())?))
    }

    /// Loads the copies from which a run is sent.
    pub(super) async fn load_run_copies(&self, run: &Run) -> Result<Copies, LedgerError> {
        load_copies(&self.path, &run.name()).await
    }

    /// Finds copies whose runs are not in the ledger.
    pub(super) async fn find_stray_copies(&self) -> Result<Vec<StrayCopies>, LedgerError> {
        let known = sqlx::query_scalar("SELECT campaign || '@' || number FROM runs").fetch_all(&self.readers).await;
        let known: Vec<String> = known.map_err(|error| storage_error(&self.path, &error))?;
        Ok(list_copies_of_unknown_runs(&self.path, &known))
    }

    /// Renames the copies of an unknown run and returns the new path.
    pub(super) async fn rename_stray_copies(&self, run: &str) -> Result<String, LedgerError> {
        rename_stray_copies(&self.path, run)
    }

    /// Overwrites and removes the copies of a run, if there are any.
    pub(super) async fn remove_copies(&self, run: &Run) -> Result<(), LedgerError> {
        remove_run_folder(&self.path, &run.name())
    }
}

/// The folder with the copies of all runs, next to the ledger at `ledger`.
fn copies_folder(ledger: &Path) -> PathBuf {
    ledger.with_file_name("runs")
}

/// A private folder that is not named after its run yet. Dropping the value removes the folder.
struct NewFolder {
    path: PathBuf,
    list: File,
}

impl NewFolder {
    /// Creates the folder for a run of a locked campaign.
    ///
    /// The lock excludes other processes, so anything left by an interrupted start is replaced.
    fn prepare_for_lock(ledger: &Path, lock: &CampaignLock) -> Result<Self, LedgerError> {
        let path = copies_folder(ledger).join(format!(".new-{}", lock.name()));
        let created = private::create_folder(&copies_folder(ledger)).and_then(|()| Self::create_empty(path));
        created.map_err(|error| copy_error(&error))
    }

    /// Creates the folder with an empty list, and deletes an existing folder.
    fn create_empty(path: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => private::create_folder(&path)?,
        }
        let list = private::open_file(&path.join(LIST_FILE), ExistingFile::Truncate)?;
        Ok(Self { path, list })
    }

    /// Writes the inputs file, and syncs it and the list to the disk.
    fn write_inputs(&self, inputs: &[u8]) -> io::Result<()> {
        self.list.sync_all()?;
        let mut file = private::open_file(&self.path.join(INPUTS_FILE), ExistingFile::Truncate)?;
        file.write_all(inputs)?;
        file.sync_all()?;
        private::sync_folder(&self.path)
    }

    /// Writes and syncs both files, then renames the folder after its run.
    fn name_for_run(&self, inputs: &[u8], run: &str) -> io::Result<()> {
        self.write_inputs(inputs)?;
        failpoint::pass("run.frozen");
        let named_folder = self.path.with_file_name(run);
        if named_folder.exists() {
            // Copies with this name exist only if the ledger was lost or is older; they might still be needed.
            rename_aside(&named_folder)?;
        }
        fs::rename(&self.path, &named_folder)?;
        private::sync_entry(&named_folder)?;
        failpoint::pass("run.named");
        Ok(())
    }
}

impl NewCopies for NewFolder {
    fn list_writer(&mut self) -> Result<Box<dyn Write + Send>, LedgerError> {
        let list = self.list.try_clone().map_err(|error| copy_error(&error))?;
        Ok(Box::new(ListCopy(list)))
    }

    fn freeze(self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.name_for_run(&inputs, &run.name()).map_err(|error| copy_error(&error)) })
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // The folder is already gone if it was named after its run. Leftover files that cannot be removed are harmless:
        // nothing was sent from them.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A folder with replacement copies within the folder of a run. Dropping the value removes the folder.
///
/// A crash always leaves complete copies. The new copies are valid as soon as their folder has its final name. Each
/// file stays valid there until it is moved into place. The old files are overwritten before they are replaced.
struct ReplacementFolder(NewFolder);

/// The folder for incomplete replacement copies, in the folder of a run.
const PARTIAL_FOLDER: &str = ".next";
/// The folder of complete replacement copies, in the folder of a run.
const NEXT_FOLDER: &str = "next";

impl ReplacementFolder {
    /// Creates the folder for replacement copies of a run of a locked campaign.
    fn prepare_for_run(ledger: &Path, run: &str) -> Result<Self, LedgerError> {
        let folder = copies_folder(ledger).join(run);
        let created = finish_replacement(&folder).and_then(|()| NewFolder::create_empty(folder.join(PARTIAL_FOLDER)));
        created.map(Self).map_err(|error| copy_error(&error))
    }

    /// Writes the new files, overwrites the old files and moves the new ones into place.
    fn replace_files(&self, inputs: &[u8]) -> io::Result<()> {
        let Self(new) = self;
        new.write_inputs(inputs)?;
        let next = new.path.with_file_name(NEXT_FOLDER);
        fs::rename(&new.path, &next)?;
        private::sync_entry(&next)?;
        failpoint::pass("copies.replaced");
        finish_replacement(next.parent().unwrap_or(&next))
    }
}

/// Overwrites old copies and moves complete replacement copies into place, if there are any.
fn finish_replacement(folder: &Path) -> io::Result<()> {
    let next = folder.join(NEXT_FOLDER);
    for name in [LIST_FILE, INPUTS_FILE] {
        let (new, old) = (next.join(name), folder.join(name));
        if new.exists() {
            overwrite_copied_file(&old)?;
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

/// Overwrites a file with zeros, if it exists.
fn overwrite_copied_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Ok(mut file) => private::overwrite_with_zeros(&mut file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Overwrites and removes the copies of a run, if there are any.
fn remove_run_folder(ledger: &Path, run: &str) -> Result<(), LedgerError> {
    let folder = copies_folder(ledger).join(run);
    let remove = || {
        for place in [folder.clone(), folder.join(NEXT_FOLDER), folder.join(PARTIAL_FOLDER)] {
            for name in [LIST_FILE, INPUTS_FILE] {
                overwrite_copied_file(&place.join(name))?;
            }
        }
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    };
    remove().map_err(|error| LedgerError::from_storage(&folder.display(), &format!("it cannot be removed: {error}")))
}

/// The path of a copied file, or the path of its replacement if the replacement exists.
fn locate_copied_file(folder: &Path, name: &str) -> PathBuf {
    let next = folder.join(NEXT_FOLDER).join(name);
    if next.exists() { next } else { folder.join(name) }
}

impl NewCopies for ReplacementFolder {
    fn list_writer(&mut self) -> Result<Box<dyn Write + Send>, LedgerError> {
        self.0.list_writer()
    }

    fn freeze(self: Box<Self>, inputs: Vec<u8>, _: &Run) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.replace_files(&inputs).map_err(|error| copy_error(&error)) })
    }
}

/// A writer of a list copy, which explains failures.
struct ListCopy(File);

impl Write for ListCopy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let explain = |error: io::Error| {
            io::Error::new(error.kind(), format!("the recipients cannot be copied to the state folder: {error}"))
        };
        self.0.write(bytes).map_err(explain)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Stores copies of a run next to the ledger at `ledger`, and renames existing copies.
pub(super) async fn store_copies(ledger: &Path, run: &str, copies: Copies) -> io::Result<()> {
    let (folder, run) = (copies_folder(ledger), run.to_owned());
    let storing = tokio::task::spawn_blocking(move || {
        private::create_folder(&folder)?;
        let mut new = NewFolder::create_empty(folder.join(format!(".new-{run}")))?;
        io::copy(&mut copies.open_list()?, &mut new.list)?;
        new.name_for_run(copies.inputs(), &run)
    });
    storing.await.map_err(io::Error::other)?
}

/// Stores copies of a run, unless identical copies exist.
pub(super) async fn store_copies_if_different(ledger: &Path, run: &str, copies: Copies) -> io::Result<()> {
    if let Ok(existing) = load_copies(ledger, run).await {
        let new = copies.clone();
        let compared = tokio::task::spawn_blocking(move || {
            Ok::<_, io::Error>(
                existing.inputs() == new.inputs() && are_lists_equal(existing.open_list()?, new.open_list()?)?,
            )
        });
        if compared.await.map_err(io::Error::other)?.unwrap_or(false) {
            return Ok(());
        }
    }
    store_copies(ledger, run, copies).await
}

/// Whether two lists are equal byte for byte.
fn are_lists_equal(first: ListReader, second: ListReader) -> io::Result<bool> {
    let (mut first, mut second) = (BufReader::new(first), BufReader::new(second));
    loop {
        let (left, right) = (first.fill_buf()?, second.fill_buf()?);
        let length = left.len().min(right.len());
        if left[..length] != right[..length] || length == 0 {
            return Ok(left.is_empty() && right.is_empty());
        }
        first.consume(length);
        second.consume(length);
    }
}

/// Loads the copies of a run. Reads on a blocking thread, so that an unresponsive disk does not delay signal handling.
pub(super) async fn load_copies(ledger: &Path, run: &str) -> Result<Copies, LedgerError> {
    let folder = copies_folder(ledger).join(run);
    let (place, file) = (folder.display().to_string(), locate_copied_file(&folder, INPUTS_FILE));
    let read = tokio::task::spawn_blocking(move || {
        let mut inputs = Vec::new();
        regular_file::open(&file)?.read_to_end(&mut inputs).map(|_| inputs)
    });
    match read.await.map_err(io::Error::other).flatten() {
        Ok(inputs) => {
            let list = move || Ok(Box::new(regular_file::open(&locate_copied_file(&folder, LIST_FILE))?) as ListReader);
            Ok(Copies::new(place, inputs, list))
        }
        Err(error) => Err(LedgerError::CopiesUnreadable { place, reason: error.to_string() }),
    }
}

/// Lists copies of unknown runs. Unfinished and renamed copies do not count.
pub(super) fn list_copies_of_unknown_runs(ledger: &Path, known: &[String]) -> Vec<StrayCopies> {
    let entries = fs::read_dir(copies_folder(ledger)).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let is_run = |name: &str| {
        let number = name.rsplit_once('@').map(|(_, number)| number);
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let unknown = named.filter(|(name, _)| is_run(name) && !known.contains(name));
    let to_stray = |(run, folder): (String, PathBuf)| {
        let inputs = fs::read(folder.join(INPUTS_FILE)).ok();
        StrayCopies { run, place: folder.display().to_string(), inputs }
    };
    let mut strays: Vec<StrayCopies> = unknown.map(to_stray).collect();
    strays.sort_by(|first, second| first.run.cmp(&second.run));
    strays
}

/// Renames the copies of an unknown run and returns the new path.
pub(super) fn rename_stray_copies(ledger: &Path, run: &str) -> Result<String, LedgerError> {
    let folder = copies_folder(ledger).join(run);
    let failed =
        |error: io::Error| LedgerError::from_storage(&folder.display(), &format!("it cannot be renamed: {error}"));
    Ok(rename_aside(&folder).map_err(failed)?.display().to_string())
}

/// Renames a folder to an unused name, and returns the new path.
fn rename_aside(folder: &Path) -> io::Result<PathBuf> {
    let aside = find_unused_name(folder);
    fs::rename(folder, &aside)?;
    Ok(aside)
}

/// The first unused path `….old-1`, `….old-2` and so on next to a path.
pub(super) fn find_unused_name(path: &Path) -> PathBuf {
    (1..).map(|number| add_suffix(path, &format!(".old-{number}"))).find(|aside| !aside.exists()).unwrap_or_default()
}

/// The path with this suffix added to its file name.
pub(super) fn add_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

fn copy_error(reason: &dyn Display) -> LedgerError {
    LedgerError::NotCopied { place: "the state folder".to_owned(), reason: reason.to_string() }
}
