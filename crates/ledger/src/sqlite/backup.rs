//! Backup, restore and handover of a ledger. A backup is a ledger file with the copies of its runs next to it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use super::dialect::storage_error;
use super::ledger::{SqliteLedger, TimeSource};
use super::write_connection::{Patience, WriteConnection};
use super::{copies, locks, opening};
use crate::high_water_mark::{self, HighWaterMark, MarkFile};
use crate::{CopiedLedger, Copies, Ledger, LedgerError, LedgerMaintenance as _, Run, RunFilter, count_run_rows};
use campaign_core::failpoint;
use campaign_core::private::{self, ExistingFile};

/// The ledger file within a backup.
pub(super) const LEDGER_FILE: &str = "ledger.sqlite";

/// The reason why a ledger cannot be replaced or handed over.
const IN_USE: &str = "another process, such as a run or `campaign serve`, is using the ledger";

/// A backup in progress. Dropping the value before the end removes the files.
pub(crate) struct NewBackup {
    folder: PathBuf,
    partial_folder: PathBuf,
}

impl SqliteLedger {
    /// Writes a consistent backup to a new or empty folder, even while other processes write to the ledger.
    ///
    /// # Errors
    /// If the ledger is outdated, or the folder cannot be written.
    pub async fn write_backup(&self, folder: &Path) -> Result<CopiedLedger, LedgerError> {
        self.ensure_newest()?;
        let (new, made_at) = (NewBackup::begin_in(folder)?, self.now().0);
        let file = new.ledger_file();
        let mut reader = self.reader().await?;
        let copied = sqlx::query("VACUUM INTO $1").bind(file.display().to_string()).execute(&mut *reader).await;
        copied.map_err(|error| new.backup_error(&error))?;
        drop(reader);
        new.finish_backup(self, made_at).await
    }
}

impl NewBackup {
    /// Begins a backup in a new or empty folder.
    pub(crate) fn begin_in(folder: &Path) -> Result<Self, LedgerError> {
        let refusal = |reason: String| LedgerError::NotBackedUp { folder: folder.display().to_string(), reason };
        let Some(name) = folder.file_name() else { return Err(refusal("it is not the name of a folder".to_owned())) };
        match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
            Ok(false) => {}
            Ok(true) => return Err(refusal("the folder is not empty; choose a new or empty folder".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refusal(error.to_string())),
        }
        let partial = folder.with_file_name(format!(".{}.{:08x}.part", name.to_string_lossy(), rand::random::<u32>()));
        let new = Self { folder: folder.to_owned(), partial_folder: partial };
        // The file is created before SQLite opens it, so that only its owner can read it.
        let created = private::create_folder(&new.partial_folder)
            .and_then(|()| private::open_file(&new.ledger_file(), ExistingFile::Truncate));
        created.map_err(|error| new.backup_error(&error))?;
        Ok(new)
    }

    /// The ledger file of the backup, which is empty at first.
    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.partial_folder.join(LEDGER_FILE)
    }

    pub(crate) fn backup_error(&self, error: &dyn std::fmt::Display) -> LedgerError {
        LedgerError::NotBackedUp { folder: self.folder.display().to_string(), reason: error.to_string() }
    }

    /// Adds the copies of the runs, marks the ledger as a backup, and moves the folder into place.
    pub(crate) async fn finish_backup(self, from: &dyn Ledger, made_at: i64) -> Result<CopiedLedger, LedgerError> {
        let file = self.ledger_file();
        let marked = async {
            let mut connection = connect_without_log(&file).await?;
            // A restored ledger is backed up anew. A copy of a backup that was never restored keeps its time.
            sqlx::query("DELETE FROM backup WHERE restored_at IS NOT NULL").execute(&mut connection).await?;
            let statement = "INSERT INTO backup (made_at) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM backup)";
            sqlx::query(statement).bind(made_at).execute(&mut connection).await?;
            let runs = "SELECT campaign || '@' || number FROM runs";
            let runs: Vec<String> = sqlx::query_scalar(runs).fetch_all(&mut connection).await?;
            let mark = opening::load_mark(&mut connection).await?;
            connection.close().await?;
            Ok((runs, mark))
        };
        let (runs, mark) = marked.await.map_err(|error: sqlx::Error| self.backup_error(&error))?;
        MarkFile::open(&high_water_mark::mark_path(&file), mark).map_err(|error| self.backup_error(&error))?;
        let run_names: HashSet<String> = runs.into_iter().collect();
        let mut summary = CopiedLedger::default();
        let runs = (from as &dyn Ledger).list_runs(RunFilter::all()).await?;
        for run in runs.iter().filter(|run| run_names.contains(&run.name())) {
            summary.runs += 1;
            // Damaged records are copied too, but their rows cannot be counted.
            summary.rows += count_run_rows(from, run).await.unwrap_or(run.recipients);
            // Purged runs and runs of single messages have no copies.
            match from.load_copies(run).await {
                Ok(copies) => {
                    copies::store_copies(&file, &run.name(), copies)
                        .await
                        .map_err(|error| self.backup_error(&error))?;
                }
                Err(_) => summary.without_copies += u64::from(run.purged_at.is_none() && !run.shared),
            }
        }
        failpoint::pass("backup.copied");
        self.move_into_place().map_err(|error| self.backup_error(&error))?;
        Ok(summary)
    }

    /// Syncs the files, and renames the partial folder to its final name.
    fn move_into_place(&self) -> io::Result<()> {
        File::open(self.ledger_file())?.sync_all()?;
        private::sync_folder(&self.partial_folder)?;
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::rename(&self.partial_folder, &self.folder)?,
        }
        private::sync_entry(&self.folder)
    }
}

impl Drop for NewBackup {
    fn drop(&mut self) {
        // The folder is already gone if the backup was moved into place. If the folder cannot be removed, its different
        // name keeps it from being mistaken for a backup.
        let _ = fs::remove_dir_all(&self.partial_folder);
    }
}

/// Connects to the ledger of a backup. When the connection is closed, all data is in this one file.
pub(crate) async fn connect_without_log(file: &Path) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(file).journal_mode(SqliteJournalMode::Delete);
    options.synchronous(SqliteSynchronous::Full).disable_statement_logging().connect().await
}

/// Creates a ledger without data in an empty file.
pub(crate) async fn create_ledger(file: &Path) -> Result<SqliteConnection, LedgerError> {
    let failed = |error: sqlx::Error| storage_error(file, &error);
    let mut connection = connect_without_log(file).await.map_err(failed)?;
    let mut transaction = connection.begin().await.map_err(failed)?;
    super::schema::run_migrations(&mut transaction).await.map_err(|error| storage_error(file, &error.into()))?;
    transaction.commit().await.map_err(failed)?;
    Ok(connection)
}

/// The folder within the state folder in which a backup is prepared.
const RESTORE_FOLDER: &str = "restoring";

/// A prepared copy of a backup's ledger. Dropping it removes the copy.
pub(crate) struct ReadyBackup {
    backup: PathBuf,
    folder: PathBuf,
}

impl SqliteLedger {
    /// Restores a backup as the ledger at `path`, and keeps an existing ledger under another name. The restored ledger
    /// sends nothing until [`crate::LedgerMaintenance::mark_restored`] is called.
    ///
    /// # Errors
    /// If the folder contains no complete backup, or another process uses the existing ledger.
    pub async fn restore_backup(path: &Path, backup: &Path, clock: TimeSource) -> Result<(), LedgerError> {
        let state = path.parent().unwrap_or(Path::new("."));
        let ready = ReadyBackup::prepare_in(backup, state).await?;
        let failed = |error: io::Error| ready.restore_error(&error);
        if locks::is_any_held(path).map_err(failed)? {
            return Err(LedgerError::from_lock_holder(&path.display(), IN_USE));
        }
        let ledger = ready.open_ledger(clock).await?;
        let runs = (&ledger as &dyn Ledger).list_runs(RunFilter::all()).await?;
        ledger.close().await;
        for run in &runs {
            if let Ok(stored) = ready.load_copies(run).await {
                copies::store_copies_if_different(path, &run.name(), stored).await.map_err(failed)?;
            }
        }
        let moved = ready.mark_as_moved().await?;
        rename_aside(path).map_err(failed)?;
        failpoint::pass("restore.aside");
        fs::rename(ready.ledger_file(), path).and_then(|()| private::sync_entry(path)).map_err(failed)?;
        failpoint::pass("restore.placed");
        // Processes with the previous ledger open are refused at their next commit.
        let mark_path = high_water_mark::mark_path(path);
        MarkFile::open(&mark_path, moved).and_then(|mut mark| mark.accept_mark(moved)).map_err(failed)
    }
}

impl ReadyBackup {
    /// Prepares the ledger of a backup within the state folder.
    pub(crate) async fn prepare_in(backup: &Path, state: &Path) -> Result<Self, LedgerError> {
        let prepared = Self { backup: backup.join(LEDGER_FILE), folder: state.join(RESTORE_FOLDER) };
        if !prepared.backup.is_file() {
            return Err(prepared.restore_error(&"it contains no backup"));
        }
        prepared.copy_ledger_file().await?;
        opening::ensure_newest_schema(&prepared.ledger_file(), Patience::default())
            .await
            .map_err(|error| prepared.restore_error(&error.reason()))?;
        prepared.write_mark_file().await?;
        prepared.ensure_unused_backup().await?;
        Ok(prepared)
    }

    /// Copies the ledger file of the backup to an empty folder.
    async fn copy_ledger_file(&self) -> Result<(), LedgerError> {
        let (from, to, folder) = (self.backup.clone(), self.ledger_file(), self.folder.clone());
        let copied = tokio::task::spawn_blocking(move || {
            match fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => private::create_folder(&folder)?,
            }
            let mut file = private::open_file(&to, ExistingFile::Truncate)?;
            io::copy(&mut campaign_core::regular_file::open(&from)?, &mut file)?;
            file.sync_all()
        });
        copied.await.map_err(io::Error::other).flatten().map_err(|error| self.restore_error(&error))
    }

    /// Writes the high-water mark of the prepared ledger next to it.
    async fn write_mark_file(&self) -> Result<(), LedgerError> {
        let load_mark = async {
            let mut connection = connect_without_log(&self.ledger_file()).await?;
            let mark = opening::load_mark(&mut connection).await?;
            connection.close().await?;
            Ok(mark)
        };
        let mark = load_mark.await.map_err(|error: sqlx::Error| self.restore_error(&error))?;
        let written = MarkFile::open(&high_water_mark::mark_path(&self.ledger_file()), mark);
        written.map(drop).map_err(|error| self.restore_error(&error))
    }

    /// Requires that the prepared ledger can send, and that it is a backup that was never restored.
    async fn ensure_unused_backup(&self) -> Result<(), LedgerError> {
        let ledger = self.open_ledger(jiff::Timestamp::now).await?;
        let (can_send, risks) = (ledger.ensure_can_send().await, ledger.load_risks().await);
        ledger.close().await;
        can_send.map_err(|error| self.restore_error(&error.reason()))?;
        match risks?.backup {
            Some(backup) if backup.restored_at.is_none() => Ok(()),
            _ => Err(self.restore_error(&"it contains a ledger in use, not a backup")),
        }
    }

    /// The prepared ledger file.
    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.folder.join(LEDGER_FILE)
    }

    /// Opens the prepared ledger. The copies of its runs are still in the backup.
    pub(crate) async fn open_ledger(&self, clock: TimeSource) -> Result<SqliteLedger, LedgerError> {
        SqliteLedger::open(&self.ledger_file(), clock).await
    }

    /// Loads the copies of a run.
    pub(crate) async fn load_copies(&self, run: &Run) -> Result<Copies, LedgerError> {
        copies::load_copies(&self.backup, &run.name()).await
    }

    /// Writes the mark of a moved ledger to the file; the separate high-water mark does not change.
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
        // The next preparation overwrites the remaining files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Renames the ledger at `path`, if it exists, together with its log files.
fn rename_aside(path: &Path) -> io::Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let aside = copies::find_unused_name(path);
    // The log goes first, because it must not stay next to the new file. Without its log, the file is in an older
    // state.
    for suffix in ["-wal", "-shm", ""] {
        match fs::rename(copies::add_suffix(path, suffix), copies::add_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Exclusive access to a ledger that is being handed over.
pub(crate) struct Handover {
    writer: WriteConnection,
    mark: HighWaterMark,
}

impl SqliteLedger {
    /// Begins the handover of the ledger.
    ///
    /// # Errors
    /// If the ledger is outdated or damaged, or another process uses it.
    pub(crate) async fn begin_handover(&self) -> Result<Handover, LedgerError> {
        self.ensure_can_send().await?;
        let mut writer = self.open_write_connection().await?;
        writer.begin_transaction().await?;
        // The locks are checked while this process holds the write lock, so that no process starts in between.
        let is_locked = locks::is_any_held(&self.path)
            .map_err(|error| locks::lock_error(&self.path.with_file_name("locks"), &error));
        let mark = match is_locked {
            Ok(false) => {
                opening::load_mark(&mut writer.connection).await.map_err(|error| storage_error(&self.path, &error))
            }
            Ok(true) => Err(LedgerError::from_lock_holder(&self.path.display(), IN_USE)),
            Err(error) => Err(error),
        };
        match mark {
            Ok(mark) => Ok(Handover { writer, mark }),
            Err(error) => {
                writer.roll_back().await;
                writer.close().await;
                Err(error)
            }
        }
    }

    /// The identity and generation of the ledger.
    pub(crate) async fn load_mark(&self) -> Result<HighWaterMark, LedgerError> {
        let mut reader = self.reader().await?;
        opening::load_mark(&mut reader).await.map_err(|error| storage_error(&self.path, &error))
    }

    /// The path of the file, for messages.
    pub(crate) fn display_path(&self) -> Arc<str> {
        Arc::clone(&self.place)
    }
}

impl Handover {
    /// The identity and generation at the start of the handover.
    pub(crate) fn mark(&self) -> HighWaterMark {
        self.mark
    }

    /// The connection to read with.
    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.writer.connection
    }

    /// Completes the handover, so that the new ledger is the only valid one.
    ///
    /// # Errors
    /// If the mark cannot be written; then this ledger stays valid as well.
    pub(crate) async fn end(mut self) -> Result<(), LedgerError> {
        let accepted = self.writer.mark.accept_mark(self.mark.after_move());
        let accepted = accepted.map_err(|error| LedgerError::from_mark(&self.writer.path.display(), &error));
        self.cancel().await;
        accepted
    }

    /// Cancels the handover.
    pub(crate) async fn cancel(mut self) {
        self.writer.roll_back().await;
        self.writer.close().await;
    }
}
