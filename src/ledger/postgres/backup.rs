//! Backups of a ledger in a database: the same as of one in a file, so that each can be put back in the place of the other.

use std::path::Path;

use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _, Sqlite};

use super::address::PostgresAddress;
use super::dialect::storage;
use super::ledger::PostgresLedger;
use super::sql::statement::query;
use super::takeover::{Column, Kind, Taking, columns, tables, there};
use super::{opening, transaction};
use crate::ledger::mark::{Mark, MarkFile};
use crate::ledger::sqlite::{NewBackup, ReadyBackup, begin_ledger};
use crate::ledger::{CopiedLedger, Ledger as _, LedgerError, RunFilter};

impl PostgresLedger {
    /// Makes a backup in a folder that is new or empty, of the ledger as it is at one moment, whoever writes meanwhile.
    ///
    /// # Errors
    /// When the ledger is behind what this machine knows of it, or the folder cannot be written.
    pub async fn back_up(&self, folder: &Path) -> Result<CopiedLedger, LedgerError> {
        self.newest()?;
        let (new, made_at) = (NewBackup::begin(folder)?, self.now().0);
        let mut file = begin_ledger(&new.file()).await?;
        let mut reader = self.reader().await?;
        let written = async {
            let mut whole = file.begin().await.map_err(Side::There)?;
            for table in tables(&mut reader).await.map_err(Side::Here)? {
                copy_table(&mut reader, &mut whole, &table).await?;
            }
            let row = query("SELECT id, generation FROM meta").fetch_one(&mut *reader).await.map_err(Side::Here)?;
            let mark = |name| row.try_get::<i64, _>(name).map_err(Side::Here);
            let meta =
                sqlx::query("UPDATE identity SET id = $1, generation = $2").bind(mark("id")?).bind(mark("generation")?);
            meta.execute(&mut *whole).await.map_err(Side::There)?;
            whole.commit().await.map_err(Side::There)
        };
        written.await.map_err(|error| match error {
            Side::Here(error) => storage(&self.place, &error),
            Side::There(error) => new.failed(&error),
        })?;
        drop(reader);
        file.close().await.map_err(|error| new.failed(&error))?;
        new.complete(self, made_at).await
    }

    /// Puts a backup back in a database that has no ledger. It stays a backup, with which nothing is sent, until
    /// [`crate::ledger::Upkeep::put_back`].
    ///
    /// # Errors
    /// When the folder has no backup, or the database has another ledger.
    pub async fn restore(address: &PostgresAddress, backup: &Path, marks: &Path) -> Result<(), LedgerError> {
        let ready = ReadyBackup::of(backup, marks).await?;
        let from = ready.ledger(jiff::Timestamp::now).await?;
        let moved = from.mark().await?.moved();
        let begun = match there(address).await? {
            None => false,
            // What an interrupted restoration left, with which nothing was sent.
            Some(there) if there.id == moved.id && is_backup(address).await? => true,
            Some(_) => return Err(LedgerError::Occupied { path: address.shown().to_owned() }),
        };
        let runs = from.runs(RunFilter::all()).await?;
        let mut handover = from.begin_handover().await?;
        let taking = Taking { address, place: from.file(), replaces: begun };
        let taken = taking.copied(&mut handover, &runs, async |run| ready.copies(run).await).await;
        handover.give_up().await;
        from.close().await;
        taken?;
        follow(address, marks, moved)
    }
}

/// Has this machine's mark be that of the ledger that was put back.
fn follow(address: &PostgresAddress, marks: &Path, moved: Mark) -> Result<(), LedgerError> {
    let place = marks.join(opening::mark_name(address.shown()));
    let accepted = MarkFile::open(&place, moved).and_then(|mut mark| mark.accept(moved));
    accepted.map_err(|error| LedgerError::Storage {
        path: address.shown().to_owned(),
        reason: format!("its high-water mark `{}` cannot be written: {error}", place.display()),
    })
}

/// Whether the ledger at an address is a backup that was not put back to its end.
async fn is_backup(address: &PostgresAddress) -> Result<bool, LedgerError> {
    let asked = async {
        let mut connection = transaction::connect(address).await?;
        let is_backup = "SELECT EXISTS (SELECT 1 FROM campaign.backup WHERE restored_at IS NULL)";
        let is_backup = query(is_backup).fetch_one(&mut connection).await?.try_get(0)?;
        connection.close().await?;
        Ok(is_backup)
    };
    asked.await.map_err(|error: sqlx::Error| storage(address.shown(), &error))
}

/// Which of the two databases failed.
enum Side {
    Here(sqlx::Error),
    There(sqlx::Error),
}

/// Copies a table into the one of its name in a file, a record after the other.
async fn copy_table(reader: &mut PgConnection, file: &mut SqliteConnection, table: &str) -> Result<(), Side> {
    let columns = columns(reader, table).await.map_err(Side::Here)?;
    // What a new ledger begins with.
    let emptied = sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut *file).await;
    emptied.map_err(Side::There)?;
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("${place}")).collect();
    let names = names.join(", ");
    let insert = format!("INSERT INTO {table} ({names}) VALUES ({})", places.join(", "));
    let mut found = query(AssertSqlSafe(format!("SELECT {names} FROM {table}"))).fetch(&mut *reader);
    while let Some(record) = found.try_next().await.map_err(Side::Here)? {
        let mut arguments = SqliteArguments::default();
        for (place, column) in columns.iter().enumerate() {
            bind(&mut arguments, column, (&record, place)).map_err(Side::Here)?;
        }
        let inserted =
            sqlx::query_with::<Sqlite, _>(AssertSqlSafe(insert.clone()), arguments).execute(&mut *file).await;
        inserted.map_err(Side::There)?;
    }
    Ok(())
}

/// Binds what stands in a column of a record.
fn bind(arguments: &mut SqliteArguments, column: &Column, (record, place): (&PgRow, usize)) -> sqlx::Result<()> {
    use sqlx::Arguments as _;

    let bound = match column.kind {
        Kind::Whole => arguments.add(record.try_get::<Option<i64>, _>(place)?),
        Kind::Boolean => arguments.add(record.try_get::<Option<bool>, _>(place)?),
        Kind::Real => arguments.add(record.try_get::<Option<f64>, _>(place)?),
        Kind::Text => arguments.add(record.try_get::<Option<String>, _>(place)?),
        Kind::Bytes => arguments.add(record.try_get::<Option<Vec<u8>>, _>(place)?),
    };
    bound.map_err(sqlx::Error::Encode)
}
