//! Putting a backup back: checked and brought to the newest schema beside the place where it is to be, then put there whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::Connection as _;

use super::backup::{LEDGER_FILE, connect_without_log};
use super::dialect::storage_error;
use super::ledger::{SqliteLedger, TimeSource};
use super::turn::Patience;
use super::{copies, lock, opening};
use crate::failpoint;
use crate::ledger::mark::{self, HighWaterMark, MarkFile};
use crate::ledger::{Copies, Ledger as _, LedgerError, LedgerMaintenance as _, Run, RunFilter};
use crate::private::{self, ExistingFile};

/// Where a backup is made ready, in the state folder.
const RESTORE_FOLDER: &str = "restoring";

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
    pub async fn restore_backup(path: &Path, backup: &Path, clock: TimeSource) -> Result<(), LedgerError> {
        let state = path.parent().unwrap_or(Path::new("."));
        let ready = ReadyBackup::prepare_in(backup, state).await?;
        let failed = |error: io::Error| ready.restore_error(&error);
        if lock::is_any_held(path).map_err(failed)? {
            let who = "another process, such as a run or `campaign serve`, is using the ledger".to_owned();
            return Err(LedgerError::Busy { path: path.display().to_string(), who });
        }
        let ledger = ready.open_ledger(clock).await?;
        let runs = ledger.list_runs(RunFilter::all()).await?;
        ledger.close().await;
        for run in &runs {
            if let Ok(theirs) = ready.load_copies(run).await {
                copies::store_copies_if_different(path, &run.name(), theirs).await.map_err(failed)?;
            }
        }
        let moved = ready.mark_as_moved().await?;
        rename_aside(path).map_err(failed)?;
        failpoint::pass("restore.aside");
        fs::rename(ready.ledger_file(), path).and_then(|()| private::sync_entry(path)).map_err(failed)?;
        failpoint::pass("restore.placed");
        // Whoever has the one from before open is refused with the next commit.
        let place = mark::mark_path(path);
        MarkFile::open(&place, moved).and_then(|mut mark| mark.accept_mark(moved)).map_err(failed)
    }
}

impl ReadyBackup {
    /// Makes the ledger of a backup ready within the state folder.
    pub(in crate::ledger) async fn prepare_in(backup: &Path, state: &Path) -> Result<Self, LedgerError> {
        let ready = Self { backup: backup.join(LEDGER_FILE), folder: state.join(RESTORE_FOLDER) };
        if !ready.backup.is_file() {
            return Err(ready.restore_error(&"it contains no backup"));
        }
        let (from, to, folder) = (ready.backup.clone(), ready.ledger_file(), ready.folder.clone());
        let copying = tokio::task::spawn_blocking(move || {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => private::create_folder(&folder)?,
            }
            let mut file = private::open_file(&to, ExistingFile::Truncate)?;
            io::copy(&mut crate::regular_file::open(&from)?, &mut file)?;
            file.sync_all()
        });
        copying.await.map_err(io::Error::other).flatten().map_err(|error| ready.restore_error(&error))?;
        opening::ensure_newest_schema(&ready.ledger_file(), Patience::default())
            .await
            .map_err(|error| ready.restore_error(&error.reason()))?;
        let marked = async {
            let mut connection = connect_without_log(&ready.ledger_file()).await?;
            let mark = opening::load_mark(&mut connection).await?;
            connection.close().await?;
            Ok(mark)
        };
        let mark = marked.await.map_err(|error: sqlx::Error| ready.restore_error(&error))?;
        MarkFile::open(&mark::mark_path(&ready.ledger_file()), mark).map_err(|error| ready.restore_error(&error))?;
        let ledger = ready.open_ledger(jiff::Timestamp::now).await?;
        let (sound, is_backup) = (ledger.check_integrity().await, ledger.load_backup().await);
        ledger.close().await;
        sound.map_err(|error| ready.restore_error(&error.reason()))?;
        match is_backup? {
            Some(backup) if backup.restored_at.is_none() => Ok(ready),
            _ => Err(ready.restore_error(&"it contains a ledger in use, not a backup")),
        }
    }

    /// The file of the ledger that is made ready.
    pub(in crate::ledger) fn ledger_file(&self) -> PathBuf {
        self.folder.join(LEDGER_FILE)
    }

    /// The ledger that is made ready; its copies are in the backup.
    pub(in crate::ledger) async fn open_ledger(&self, clock: TimeSource) -> Result<SqliteLedger, LedgerError> {
        SqliteLedger::open(&self.ledger_file(), clock).await
    }

    /// The copies of a run.
    pub(in crate::ledger) async fn load_copies(&self, run: &Run) -> Result<Copies, LedgerError> {
        copies::load_copies(&self.backup, &run.name()).await
    }

    /// Gives the ledger the mark of one that moved, and leaves it in its file alone.
    async fn mark_as_moved(&self) -> Result<HighWaterMark, LedgerError> {
        let file = self.ledger_file();
        let moved = async {
            let mut connection = connect_without_log(&file).await?;
            let moved = opening::load_mark(&mut connection).await?.after_move();
            let changed =
                sqlx::query("UPDATE identity SET id = $1, generation = $2").bind(moved.id).bind(moved.generation);
            changed.execute(&mut connection).await?;
            connection.close().await?;
            Ok(moved)
        };
        moved.await.map_err(|error: sqlx::Error| storage_error(&file, &error))
    }

    fn restore_error(&self, reason: &dyn std::fmt::Display) -> LedgerError {
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
fn rename_aside(path: &Path) -> io::Result<()> {
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
