//! Putting a backup back: checked and brought to the newest schema beside the place where it is to be, then put there whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::Connection as _;

use super::backup::{LEDGER, connect};
use super::dialect::storage;
use super::ledger::{Clock, SqliteLedger};
use super::turn::Patience;
use super::{copies, lock, opening};
use crate::failpoint;
use crate::ledger::mark::{self, Mark, MarkFile};
use crate::ledger::{Copies, Ledger as _, LedgerError, Run, RunFilter, Upkeep as _};
use crate::private::{self, Existing};

/// Where a backup is made ready, in the state folder.
const READYING: &str = "restoring";

/// A copy of the ledger of a backup that is made ready; dropped, nothing is left of it.
pub(in crate::ledger) struct ReadyBackup {
    backup: PathBuf,
    folder: PathBuf,
}

impl SqliteLedger {
    /// Puts a backup back as the ledger at `path`; one that is there is kept under another name. It stays a backup, with which
    /// nothing is sent, until [`crate::ledger::Upkeep::put_back`].
    ///
    /// # Errors
    /// When the folder has no backup, or not all of it; or somebody has the ledger that is there.
    pub async fn restore(path: &Path, backup: &Path, clock: Clock) -> Result<(), LedgerError> {
        let state = path.parent().unwrap_or(Path::new("."));
        let ready = ReadyBackup::of(backup, state).await?;
        let failed = |error: io::Error| ready.not(&error);
        if lock::any_held(path).map_err(failed)? {
            let who = "another process, such as a run or `campaign serve`, is using the ledger".to_owned();
            return Err(LedgerError::Busy { path: path.display().to_string(), who });
        }
        let ledger = ready.ledger(clock).await?;
        let runs = ledger.runs(RunFilter::all()).await?;
        ledger.close().await;
        for run in &runs {
            if let Ok(theirs) = ready.copies(run).await {
                copies::put_if_other(path, &run.name(), theirs).await.map_err(failed)?;
            }
        }
        let moved = ready.moved().await?;
        put_aside(path).map_err(failed)?;
        failpoint::pass("restore.aside");
        fs::rename(ready.file(), path).and_then(|()| private::sync_entry(path)).map_err(failed)?;
        failpoint::pass("restore.placed");
        // Whoever has the one from before open is refused with the next commit.
        let place = mark::place(path);
        MarkFile::open(&place, moved).and_then(|mut mark| mark.accept(moved)).map_err(failed)
    }
}

impl ReadyBackup {
    /// Makes the ledger of a backup ready within the state folder.
    pub(in crate::ledger) async fn of(backup: &Path, state: &Path) -> Result<Self, LedgerError> {
        let ready = Self { backup: backup.join(LEDGER), folder: state.join(READYING) };
        if !ready.backup.is_file() {
            return Err(ready.not(&"it contains no backup"));
        }
        let (from, to, folder) = (ready.backup.clone(), ready.file(), ready.folder.clone());
        let copying = tokio::task::spawn_blocking(move || {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => private::folder(&folder)?,
            }
            let mut file = private::file(&to, Existing::Emptied)?;
            io::copy(&mut crate::regular_file::open(&from)?, &mut file)?;
            file.sync_all()
        });
        copying.await.map_err(io::Error::other).flatten().map_err(|error| ready.not(&error))?;
        opening::prepare(&ready.file(), Patience::default()).await.map_err(|error| ready.not(&error.reason()))?;
        let marked = async {
            let mut connection = connect(&ready.file()).await?;
            let mark = opening::current_mark(&mut connection).await?;
            connection.close().await?;
            Ok(mark)
        };
        let mark = marked.await.map_err(|error: sqlx::Error| ready.not(&error))?;
        MarkFile::open(&mark::place(&ready.file()), mark).map_err(|error| ready.not(&error))?;
        let ledger = ready.ledger(jiff::Timestamp::now).await?;
        let (sound, is_backup) = (ledger.prove_sound().await, ledger.backup().await);
        ledger.close().await;
        sound.map_err(|error| ready.not(&error.reason()))?;
        match is_backup? {
            Some(backup) if backup.restored_at.is_none() => Ok(ready),
            _ => Err(ready.not(&"it contains a ledger in use, not a backup")),
        }
    }

    /// The file of the ledger that is made ready.
    pub(in crate::ledger) fn file(&self) -> PathBuf {
        self.folder.join(LEDGER)
    }

    /// The ledger that is made ready; its copies are in the backup.
    pub(in crate::ledger) async fn ledger(&self, clock: Clock) -> Result<SqliteLedger, LedgerError> {
        SqliteLedger::open(&self.file(), clock).await
    }

    /// The copies of a run.
    pub(in crate::ledger) async fn copies(&self, run: &Run) -> Result<Copies, LedgerError> {
        copies::of(&self.backup, &run.name()).await
    }

    /// Gives the ledger the mark of one that moved, and leaves it in its file alone.
    async fn moved(&self) -> Result<Mark, LedgerError> {
        let file = self.file();
        let moved = async {
            let mut connection = connect(&file).await?;
            let moved = opening::current_mark(&mut connection).await?.moved();
            let changed =
                sqlx::query("UPDATE identity SET id = $1, generation = $2").bind(moved.id).bind(moved.generation);
            changed.execute(&mut connection).await?;
            connection.close().await?;
            Ok(moved)
        };
        moved.await.map_err(|error: sqlx::Error| storage(&file, &error))
    }

    fn not(&self, reason: &dyn std::fmt::Display) -> LedgerError {
        let folder = self.backup.parent().unwrap_or(&self.backup).display().to_string();
        LedgerError::NotRestored { folder, reason: reason.to_string() }
    }
}

impl Drop for ReadyBackup {
    fn drop(&mut self) {
        // What stays is overwritten by the next one.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Gives the ledger at `path` another name, with what SQLite has beside it; nothing where there is none.
fn put_aside(path: &Path) -> io::Result<()> {
    let with = |base: &Path, suffix: &str| {
        let mut name = base.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        base.with_file_name(name)
    };
    if !path.exists() {
        return Ok(());
    }
    let aside = (1..).map(|number| with(path, &format!(".old-{number}"))).find(|aside| !aside.exists());
    let aside = aside.unwrap_or_default();
    // The log first: without it the file would be an older one, and where it stood nobody may find it beside the new one.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(with(path, suffix), with(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
