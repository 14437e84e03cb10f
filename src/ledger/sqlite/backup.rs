//! A backup: a ledger's file with the copies of its runs beside it, made of any ledger while that is in use.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use super::dialect::storage_error;
use super::ledger::SqliteLedger;
use super::{copies, opening};
use crate::failpoint;
use crate::ledger::mark::{self, MarkFile};
use crate::ledger::{CopiedLedger, Ledger, LedgerError, RunFilter};
use crate::private::{self, ExistingFile};

/// The ledger in a backup, which is looked at like one in a state folder.
pub(super) const LEDGER_FILE: &str = "ledger.sqlite";

/// A backup that is being made in a folder that has not its name yet; dropped before its end, nothing is left of it.
pub(in crate::ledger) struct NewBackup {
    folder: PathBuf,
    partial_folder: PathBuf,
}

impl SqliteLedger {
    /// Makes a backup in a folder that is new or empty, of the ledger as it is at one moment, whoever writes meanwhile.
    ///
    /// # Errors
    /// When the ledger is not the newest, or the folder cannot be written.
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
    /// Begins one in a folder that is new or empty.
    pub(in crate::ledger) fn begin_in(folder: &Path) -> Result<Self, LedgerError> {
        let not = |reason: String| LedgerError::NotBackedUp { folder: folder.display().to_string(), reason };
        let Some(name) = folder.file_name() else { return Err(not("it is not a folder name".to_owned())) };
        match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
            Ok(false) => {}
            Ok(true) => return Err(not("the folder is not empty; name a new folder".to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(not(error.to_string())),
        }
        let making = folder.with_file_name(format!(".{}.{:08x}.part", name.to_string_lossy(), rand::random::<u32>()));
        let new = Self { folder: folder.to_owned(), partial_folder: making };
        // Before SQLite opens it, so that nobody else can read it.
        let begun = private::create_folder(&new.partial_folder)
            .and_then(|()| private::open_file(&new.ledger_file(), ExistingFile::Truncate));
        begun.map_err(|error| new.backup_error(&error))?;
        Ok(new)
    }

    /// The file of its ledger, which is empty at first.
    pub(in crate::ledger) fn ledger_file(&self) -> PathBuf {
        self.partial_folder.join(LEDGER_FILE)
    }

    pub(in crate::ledger) fn backup_error(&self, error: &dyn std::fmt::Display) -> LedgerError {
        LedgerError::NotBackedUp { folder: self.folder.display().to_string(), reason: error.to_string() }
    }

    /// Adds the copies of the runs that it has, and gives it its name: whole, on the disk, and known as what it is.
    pub(in crate::ledger) async fn finish_backup(
        self,
        from: &dyn Ledger,
        made_at: i64,
    ) -> Result<CopiedLedger, LedgerError> {
        let file = self.ledger_file();
        let marked = async {
            let mut connection = connect_without_log(&file).await?;
            // One of a backup is as old as that.
            sqlx::query("DELETE FROM backup WHERE restored_at IS NOT NULL").execute(&mut connection).await?;
            let kept = "INSERT INTO backup (made_at) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM backup)";
            sqlx::query(kept).bind(made_at).execute(&mut connection).await?;
            let runs = "SELECT campaign || '@' || number FROM runs";
            let runs: Vec<String> = sqlx::query_scalar(runs).fetch_all(&mut connection).await?;
            let mark = opening::load_mark(&mut connection).await?;
            connection.close().await?;
            Ok((runs, mark))
        };
        let (runs, mark) = marked.await.map_err(|error: sqlx::Error| self.backup_error(&error))?;
        MarkFile::open(&mark::mark_path(&file), mark).map_err(|error| self.backup_error(&error))?;
        let known: HashSet<String> = runs.into_iter().collect();
        let mut told = CopiedLedger::default();
        for run in from.list_runs(RunFilter::all()).await?.iter().filter(|run| known.contains(&run.name())) {
            told.runs += 1;
            told.rows += run.recipients;
            // Of one that was purged nothing is left, and one of single messages never had any.
            match from.load_copies(run).await {
                Ok(copies) => {
                    copies::store_copies(&file, &run.name(), copies)
                        .await
                        .map_err(|error| self.backup_error(&error))?;
                }
                Err(_) => told.without_copies += u64::from(run.purged_at.is_none() && !run.shared),
            }
        }
        failpoint::pass("backup.copied");
        self.move_into_place().map_err(|error| self.backup_error(&error))?;
        Ok(told)
    }

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
        // It is gone if it got its name; what cannot be removed is no backup by its name.
        let _ = fs::remove_dir_all(&self.partial_folder);
    }
}

/// A connection to the ledger of a backup, of which nothing stands in other files once it is closed.
pub(in crate::ledger) async fn connect_without_log(file: &Path) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(file).journal_mode(SqliteJournalMode::Delete);
    options.synchronous(SqliteSynchronous::Full).disable_statement_logging().connect().await
}

/// A new ledger without anything in it, in a file that is empty.
pub(in crate::ledger) async fn create_ledger(file: &Path) -> Result<SqliteConnection, LedgerError> {
    let failed = |error: sqlx::Error| storage_error(file, &error);
    let mut connection = connect_without_log(file).await.map_err(failed)?;
    let mut transaction = connection.begin().await.map_err(failed)?;
    super::schema::run_migrations(&mut transaction).await.map_err(|error| storage_error(file, &error.into()))?;
    transaction.commit().await.map_err(failed)?;
    Ok(connection)
}
