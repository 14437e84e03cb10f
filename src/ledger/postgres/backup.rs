//! Backups of a ledger in a database: the same as of one in a file, so that each can be put back in the place of the other.

use std::path::Path;

use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, Sqlite};

use super::address::PostgresAddress;
use super::dialect::storage_error;
use super::ledger::PostgresLedger;
use super::sql::statement::query;
use super::takeover::{ColumnType, LedgerTakeover, TableColumn, find_existing_mark, list_columns, list_tables};
use super::{opening, transaction};
use crate::ledger::mark::{HighWaterMark, MarkFile};
use crate::ledger::sqlite::{NewBackup, ReadyBackup, create_ledger};
use crate::ledger::{CopiedLedger, Ledger as _, LedgerError, RunFilter};

impl PostgresLedger {
    /// Makes a backup in a folder that is new or empty, of the ledger as it is at one moment, whoever writes meanwhile.
    ///
    /// # Errors
    /// When the ledger is behind what this machine knows of it, or the folder cannot be written.
    pub async fn write_backup(&self, folder: &Path) -> Result<CopiedLedger, LedgerError> {
        self.ensure_newest()?;
        let (new, made_at) = (NewBackup::begin_in(folder)?, self.now().0);
        let mut file = create_ledger(&new.ledger_file()).await?;
        let mut reader = self.reader().await?;
        let written = async {
            let mut whole = file.begin().await.map_err(BackupError::Backup)?;
            for table in list_tables(&mut reader).await.map_err(BackupError::Database)? {
                copy_table(&mut reader, &mut whole, &table).await?;
            }
            let row = query("SELECT id, generation FROM meta")
                .fetch_one(&mut *reader)
                .await
                .map_err(BackupError::Database)?;
            let mark = |name| row.try_get::<i64, _>(name).map_err(BackupError::Database);
            let meta =
                sqlx::query("UPDATE identity SET id = $1, generation = $2").bind(mark("id")?).bind(mark("generation")?);
            meta.execute(&mut *whole).await.map_err(BackupError::Backup)?;
            whole.commit().await.map_err(BackupError::Backup)
        };
        written.await.map_err(|error| match error {
            BackupError::Database(error) => storage_error(&self.place, &error),
            BackupError::Backup(error) => new.backup_error(&error),
        })?;
        drop(reader);
        file.close().await.map_err(|error| new.backup_error(&error))?;
        new.finish_backup(self, made_at).await
    }

    /// Puts a backup back in a database that has no ledger. It stays a backup, with which nothing is sent, until
    /// [`crate::ledger::Upkeep::put_back`].
    ///
    /// # Errors
    /// When the folder has no backup, or the database has another ledger.
    pub async fn restore_backup(address: &PostgresAddress, backup: &Path, marks: &Path) -> Result<(), LedgerError> {
        let ready = ReadyBackup::prepare_in(backup, marks).await?;
        let from = ready.open_ledger(jiff::Timestamp::now).await?;
        let moved = from.load_mark().await?.after_move();
        let begun = match find_existing_mark(address).await? {
            None => false,
            // What an interrupted restoration left, with which nothing was sent.
            Some(there) if there.id == moved.id && is_backup(address).await? => true,
            Some(_) => return Err(LedgerError::Occupied { path: address.display_name().to_owned() }),
        };
        let runs = from.list_runs(RunFilter::all()).await?;
        let mut handover = from.begin_handover().await?;
        let taking = LedgerTakeover { address, place: from.display_path(), replaces: begun };
        let taken = taking.copy_ledger(&mut handover, &runs, async |run| ready.load_copies(run).await).await;
        handover.give_up().await;
        from.close().await;
        taken?;
        move_mark(address, marks, moved)
    }
}

/// Has this machine's mark be that of the ledger that was put back.
fn move_mark(address: &PostgresAddress, marks: &Path, moved: HighWaterMark) -> Result<(), LedgerError> {
    let place = marks.join(opening::mark_file_name(address.display_name()));
    let accepted = MarkFile::open(&place, moved).and_then(|mut mark| mark.accept_mark(moved));
    accepted.map_err(|error| LedgerError::Storage {
        path: address.display_name().to_owned(),
        reason: format!("its high-water mark `{}` cannot be written: {error}", place.display()),
    })
}

/// Whether the ledger at an address is a backup that was not put back to its end.
async fn is_backup(address: &PostgresAddress) -> Result<bool, LedgerError> {
    let asked = async {
        let mut connection = transaction::open_connection(address).await?;
        let is_backup = "SELECT EXISTS (SELECT 1 FROM campaign.backup WHERE restored_at IS NULL)";
        let is_backup = query(is_backup).fetch_one(&mut connection).await?.try_get(0)?;
        connection.close().await?;
        Ok(is_backup)
    };
    asked.await.map_err(|error: sqlx::Error| storage_error(address.display_name(), &error))
}

/// Which of the two databases failed.
enum BackupError {
    Database(sqlx::Error),
    Backup(sqlx::Error),
}

/// Copies a table into the one of its name in a file, a record after the other.
async fn copy_table(reader: &mut PgConnection, file: &mut SqliteConnection, table: &str) -> Result<(), BackupError> {
    let columns = list_columns(reader, table).await.map_err(BackupError::Database)?;
    // What a new ledger begins with.
    let emptied = sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut *file).await;
    emptied.map_err(BackupError::Backup)?;
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("${place}")).collect();
    let names = names.join(", ");
    let insert = format!("INSERT INTO {table} ({names}) VALUES ({})", places.join(", "));
    let mut found = query(AssertSqlSafe(format!("SELECT {names} FROM {table}"))).fetch(&mut *reader);
    while let Some(record) = found.try_next().await.map_err(BackupError::Database)? {
        let mut arguments = SqliteArguments::default();
        for (place, column) in columns.iter().enumerate() {
            bind_value(&mut arguments, column, (&record, place)).map_err(BackupError::Database)?;
        }
        let inserted =
            sqlx::query_with::<Sqlite, _>(AssertSqlSafe(insert.clone()), arguments).execute(&mut *file).await;
        inserted.map_err(BackupError::Backup)?;
    }
    Ok(())
}

/// Binds what stands in a column of a record.
fn bind_value(
    arguments: &mut SqliteArguments,
    column: &TableColumn,
    (record, place): (&PgRow, usize),
) -> sqlx::Result<()> {
    use sqlx::Arguments as _;

    let bound = match column.kind {
        ColumnType::Integer => arguments.add(record.try_get::<Option<i64>, _>(place)?),
        ColumnType::Boolean => arguments.add(record.try_get::<Option<bool>, _>(place)?),
        ColumnType::Real => arguments.add(record.try_get::<Option<f64>, _>(place)?),
        ColumnType::Text => arguments.add(record.try_get::<Option<String>, _>(place)?),
        ColumnType::Bytes => arguments.add(record.try_get::<Option<Vec<u8>>, _>(place)?),
    };
    bound.map_err(sqlx::Error::Encode)
}
