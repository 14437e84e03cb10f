//! Moving a ledger between a SQLite file and a database: takeover, backup and restore.
//!
//! Backups of a database have the same form as backups of a file, so each can be restored as the other.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, PgPool, Postgres, Row as _, Sqlite, Transaction};
use tokio::runtime::Handle;

use super::address::PostgresAddress;
use super::copies::{copy_in, pack_next_shard};
use super::dialect::{self, storage_error};
use super::ledger::PostgresLedger;
use super::sql::{query, scalar};
use super::{opening, transaction};
use crate::high_water_mark::{HighWaterMark, MarkFile};
use crate::sqlite::{Handover, NewBackup, ReadyBackup, create_ledger};
use crate::{CopiedLedger, Copies, Ledger, LedgerError, Run, RunFilter, SqliteLedger, count_run_rows};
use campaign_core::failpoint;

/// Tables that only a database has.
const DATABASE_ONLY_TABLES: [&str; 6] = ["_sqlx_migrations", "copies", "copy_shards", "locks", "meta", "writers"];
/// The maximum number of records in one statement.
const RECORDS_PER_STATEMENT: usize = 1_000;

/// The transaction of the whole takeover.
type TakeoverTransaction = Transaction<'static, Postgres>;

/// A column of a table and its type.
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: ColumnType,
    is_identity: bool,
}

/// The column types of the ledger.
#[derive(Clone, Copy)]
pub(super) enum ColumnType {
    Integer,
    Boolean,
    Real,
    Text,
    Bytes,
}

impl PostgresLedger {
    /// Takes over the ledger in a file with its runs and their copies, completely or not at all. The file stays
    /// unchanged, but its high-water mark no longer accepts the file as the current ledger.
    ///
    /// A takeover that was interrupted at its very end is completed.
    ///
    /// # Errors
    /// If another process uses the file, the file is damaged or outdated, or the database contains another ledger.
    pub async fn take_over(address: &PostgresAddress, from: &SqliteLedger) -> Result<CopiedLedger, LedgerError> {
        let runs = (from as &dyn Ledger).list_runs(RunFilter::all()).await?;
        let summary = summarize_runs(from, &runs).await;
        let mark = from.load_mark().await?;
        if let Some(existing) = find_existing_mark(address).await? {
            if existing.id != mark.after_move().id {
                return Err(LedgerError::Occupied { path: address.display_name().to_owned() });
            }
            // If the file is outdated, the earlier takeover was completed.
            if from.ensure_newest().is_ok() {
                from.begin_handover().await?.end().await?;
            }
            return Ok(summary);
        }
        let mut handover = from.begin_handover().await?;
        let takeover = LedgerTakeover { address, place: from.display_path(), replaces: false };
        match takeover.copy_ledger(&mut handover, &runs, async |run| from.load_copies(run).await).await {
            Ok(without_copies) => {
                failpoint::pass("ledger.copied");
                handover.end().await.map(|()| CopiedLedger { without_copies, ..summary })
            }
            Err(error) => {
                handover.cancel().await;
                Err(error)
            }
        }
    }
}

/// Counts these runs of a ledger and their rows.
async fn summarize_runs(ledger: &dyn Ledger, runs: &[Run]) -> CopiedLedger {
    let mut content = CopiedLedger { runs: runs.len() as u64, ..CopiedLedger::default() };
    for run in runs {
        // Damaged records are copied too, but their rows cannot be counted.
        content.rows += count_run_rows(ledger, run).await.unwrap_or(run.recipients);
    }
    content
}

/// The mark of the ledger in the database, if there is one.
pub(super) async fn find_existing_mark(address: &PostgresAddress) -> Result<Option<HighWaterMark>, LedgerError> {
    let read_mark = async {
        let mut connection = transaction::open_connection(address).await?;
        let mut reader = connection.begin().await?;
        Ok::<_, sqlx::Error>(match opening::load_table_version(&mut reader).await? {
            None => None,
            Some(_) => {
                let row = query("SELECT id, generation FROM campaign.meta").fetch_one(&mut *reader).await?;
                Some(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
            }
        })
    };
    read_mark.await.map_err(|error| storage_error(address.display_name(), &error))
}

/// The source and target of a takeover.
pub(super) struct LedgerTakeover<'a> {
    pub(super) address: &'a PostgresAddress,
    /// The path of the source file, for messages.
    pub(super) place: Arc<str>,
    /// Whether the takeover replaces a ledger that was never in use.
    pub(super) replaces: bool,
}

impl LedgerTakeover<'_> {
    /// Copies the whole ledger in one transaction, and returns the number of runs without copies.
    pub(super) async fn copy_ledger(
        &self,
        handover: &mut Handover,
        runs: &[Run],
        load_copies: impl AsyncFn(&Run) -> Result<Copies, LedgerError>,
    ) -> Result<u64, LedgerError> {
        let place = self.address.display_name();
        let failed = |error: sqlx::Error| storage_error(place, &error);
        let pool = PgPool::connect_with(self.address.options().clone()).await.map_err(failed)?;
        let mut transaction = pool.begin().await.map_err(failed)?;
        if self.replaces {
            let dropped = query("DROP SCHEMA campaign CASCADE").execute(&mut *transaction).await;
            dropped.map_err(failed)?;
        }
        let migrated = opening::migrate_to(&mut transaction, opening::NEWEST).await;
        migrated.map_err(|error| LedgerError::from_storage(&place, &error))?;
        for table in list_tables(&mut transaction).await.map_err(failed)? {
            copy_table_from_file(&mut transaction, handover, &table).await.map_err(|error| match error {
                TransferError::Database(error) => failed(error),
                TransferError::File(error) => LedgerError::from_storage(&self.place, &error),
            })?;
        }
        let mut without_copies = 0;
        for run in runs {
            // Purged runs and runs of single messages have no copies.
            match load_copies(run).await {
                Ok(copies) => {
                    transaction = copy_list(transaction, run, copies).await.map_err(|error| copy_error(run, &error))?;
                }
                Err(_) => without_copies += u64::from(run.purged_at.is_none() && !run.shared),
            }
        }
        let HighWaterMark { id, generation } = handover.mark().after_move();
        let update = query("UPDATE meta SET id = $1, generation = $2").bind(id).bind(generation);
        update.execute(&mut *transaction).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        pool.close().await;
        Ok(without_copies)
    }
}

fn copy_error(run: &Run, error: &io::Error) -> LedgerError {
    LedgerError::NotCopied { place: "the database".to_owned(), reason: format!("{}: {error}", run.name()) }
}

/// The tables that a ledger file also has, in the order of their creation. So referenced tables come first.
pub(super) async fn list_tables(connection: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    let statement = "SELECT relname::text FROM pg_class WHERE relnamespace = 'campaign'::regnamespace AND relkind = 'r' ORDER BY oid";
    let names: Vec<String> = scalar(statement).fetch_all(connection).await?;
    Ok(names.into_iter().filter(|name| !DATABASE_ONLY_TABLES.contains(&name.as_str())).collect())
}

pub(super) async fn list_columns(connection: &mut PgConnection, table: &str) -> sqlx::Result<Vec<TableColumn>> {
    let statement = query(
        "SELECT attname::text, format_type(atttypid, atttypmod), attidentity <> '' FROM pg_attribute
         WHERE attrelid = to_regclass('campaign.' || $1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    );
    let rows = statement.bind(table).fetch_all(connection).await?;
    let to_column = |row: &sqlx::postgres::PgRow| {
        let kind = match row.try_get::<&str, _>(1)? {
            "bigint" => ColumnType::Integer,
            "boolean" => ColumnType::Boolean,
            "double precision" => ColumnType::Real,
            "bytea" => ColumnType::Bytes,
            _ => ColumnType::Text,
        };
        Ok(TableColumn { name: row.try_get(0)?, kind, is_identity: row.try_get(2)? })
    };
    rows.iter().map(to_column).collect()
}

/// The side of a transfer that failed.
enum TransferError {
    Database(sqlx::Error),
    File(sqlx::Error),
}

/// Copies a table from the file, and continues the numbering of its identity columns.
async fn copy_table_from_file(
    connection: &mut PgConnection,
    handover: &mut Handover,
    table: &str,
) -> Result<(), TransferError> {
    let columns = list_columns(connection, table).await.map_err(TransferError::Database)?;
    // This removes the initial records of a new ledger.
    let emptied = query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut *connection).await;
    emptied.map_err(TransferError::Database)?;
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let statement = format!("SELECT {} FROM {table}", names.join(", "));
    let mut rows = sqlx::query(AssertSqlSafe(statement)).fetch(handover.connection());
    let mut records = Vec::with_capacity(RECORDS_PER_STATEMENT);
    loop {
        let record = rows.try_next().await.map_err(TransferError::File)?;
        let is_last = record.is_none();
        records.extend(record);
        if records.len() == RECORDS_PER_STATEMENT || is_last && !records.is_empty() {
            insert_records(connection, table, &columns, &records).await?;
            records.clear();
        }
        if is_last {
            break;
        }
    }
    for column in columns.iter().filter(|column| column.is_identity) {
        let name = &column.name;
        let next = format!(
            "SELECT setval(pg_get_serial_sequence('campaign.{table}', '{name}'), COALESCE(MAX(\"{name}\"), 0) + 1, FALSE) FROM {table}"
        );
        query(AssertSqlSafe(next)).execute(&mut *connection).await.map_err(TransferError::Database)?;
    }
    Ok(())
}

async fn insert_records(
    connection: &mut PgConnection,
    table: &str,
    columns: &[TableColumn],
    records: &[SqliteRow],
) -> Result<(), TransferError> {
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let lists: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| format!("${}::{}[]", index + 1, column.kind.sql_name()))
        .collect();
    let (names, lists) = (names.join(", "), lists.join(", "));
    let statement = format!("INSERT INTO {table} ({names}) SELECT * FROM UNNEST({lists})");
    let mut insert = query(AssertSqlSafe(statement));
    for (index, column) in columns.iter().enumerate() {
        insert = column.kind.bind_column(insert, records, index).map_err(TransferError::File)?;
    }
    insert.execute(connection).await.map(drop).map_err(TransferError::Database)
}

/// An insertion of several records.
type BulkInsert = Query<'static, Postgres, PgArguments>;

impl ColumnType {
    fn sql_name(self) -> &'static str {
        match self {
            Self::Integer => "bigint",
            Self::Boolean => "boolean",
            Self::Real => "double precision",
            Self::Text => "text",
            Self::Bytes => "bytea",
        }
    }

    /// Binds one column of all records.
    fn bind_column(self, statement: BulkInsert, records: &[SqliteRow], column: usize) -> sqlx::Result<BulkInsert> {
        let integers = || records.iter().map(|record| record.try_get_unchecked::<Option<i64>, _>(column));
        Ok(match self {
            Self::Integer => statement.bind(integers().collect::<sqlx::Result<Vec<_>>>()?),
            Self::Boolean => {
                let to_bool = |integer: Option<i64>| integer.map(|integer| integer != 0);
                statement.bind(integers().map(|integer| integer.map(to_bool)).collect::<sqlx::Result<Vec<_>>>()?)
            }
            Self::Real => {
                let reals = records.iter().map(|record| record.try_get_unchecked::<Option<f64>, _>(column));
                statement.bind(reals.collect::<sqlx::Result<Vec<_>>>()?)
            }
            Self::Text => {
                let texts = records.iter().map(|record| {
                    let text: Option<String> = record.try_get_unchecked(column)?;
                    Ok(text.map(|text| dialect::to_storable_text(&text).into_owned()))
                });
                statement.bind(texts.collect::<sqlx::Result<Vec<_>>>()?)
            }
            Self::Bytes => {
                let bytes = records.iter().map(|record| record.try_get_unchecked::<Option<Vec<u8>>, _>(column));
                statement.bind(bytes.collect::<sqlx::Result<Vec<_>>>()?)
            }
        })
    }
}

/// Stores the copies of a run. Reading the list blocks, so the transaction is moved to a blocking thread and then
/// returned.
async fn copy_list(mut transaction: TakeoverTransaction, run: &Run, copies: Copies) -> io::Result<TakeoverTransaction> {
    let (name, runtime) = (run.name(), Handle::current());
    let copying = tokio::task::spawn_blocking(move || {
        let insert = scalar("INSERT INTO copies (name, inputs, made_at) VALUES ($1, $2, 0) RETURNING key");
        let insert = insert.bind(name).bind(copies.inputs().to_vec()).fetch_one(&mut *transaction);
        let key: i64 = runtime.block_on(insert).map_err(io::Error::other)?;
        let mut list = copies.open_list()?;
        for number in 0_i64.. {
            let Some(shard) = pack_next_shard(&mut list.by_ref())? else { break };
            runtime.block_on(copy_in(&mut transaction, key, number, &[shard])).map_err(io::Error::other)?;
        }
        Ok(transaction)
    });
    copying.await.map_err(io::Error::other)?
}

impl PostgresLedger {
    /// Writes a consistent backup to a new or empty folder, even while other processes write.
    ///
    /// # Errors
    /// If the ledger is outdated, or the folder cannot be written.
    pub async fn write_backup(&self, folder: &Path) -> Result<CopiedLedger, LedgerError> {
        self.ensure_newest()?;
        let (new, made_at) = (NewBackup::begin_in(folder)?, self.now().0);
        let mut file = create_ledger(&new.ledger_file()).await?;
        let mut reader = self.reader().await?;
        let written = async {
            let mut transaction = file.begin().await.map_err(TransferError::File)?;
            for table in list_tables(&mut reader).await.map_err(TransferError::Database)? {
                copy_table_to_file(&mut reader, &mut transaction, &table).await?;
            }
            let row = query("SELECT id, generation FROM meta")
                .fetch_one(&mut *reader)
                .await
                .map_err(TransferError::Database)?;
            let read_number = |name| row.try_get::<i64, _>(name).map_err(TransferError::Database);
            let update = sqlx::query("UPDATE identity SET id = $1, generation = $2")
                .bind(read_number("id")?)
                .bind(read_number("generation")?);
            update.execute(&mut *transaction).await.map_err(TransferError::File)?;
            transaction.commit().await.map_err(TransferError::File)
        };
        written.await.map_err(|error| match error {
            TransferError::Database(error) => storage_error(&self.place, &error),
            TransferError::File(error) => new.backup_error(&error),
        })?;
        drop(reader);
        file.close().await.map_err(|error| new.backup_error(&error))?;
        new.finish_backup(self, made_at).await
    }

    /// Restores a backup into a database without a ledger. The restored ledger sends nothing until
    /// [`crate::LedgerMaintenance::mark_restored`] is called.
    ///
    /// # Errors
    /// If the folder contains no backup, or the database contains another ledger.
    pub async fn restore_backup(address: &PostgresAddress, backup: &Path, marks: &Path) -> Result<(), LedgerError> {
        let ready = ReadyBackup::prepare_in(backup, marks).await?;
        let from = ready.open_ledger(jiff::Timestamp::now).await?;
        let moved = from.load_mark().await?.after_move();
        let is_interrupted = match find_existing_mark(address).await? {
            None => false,
            // The remains of an interrupted restore; nothing was sent with that ledger.
            Some(existing) if existing.id == moved.id && is_backup(address).await? => true,
            Some(_) => return Err(LedgerError::Occupied { path: address.display_name().to_owned() }),
        };
        let runs = (&from as &dyn Ledger).list_runs(RunFilter::all()).await?;
        let mut handover = from.begin_handover().await?;
        let takeover = LedgerTakeover { address, place: from.display_path(), replaces: is_interrupted };
        let copied = takeover.copy_ledger(&mut handover, &runs, async |run| ready.load_copies(run).await).await;
        handover.cancel().await;
        from.close().await;
        copied?;
        set_mark(address, marks, moved)
    }
}

/// Sets the mark on this machine to the mark of the restored ledger.
fn set_mark(address: &PostgresAddress, marks: &Path, moved: HighWaterMark) -> Result<(), LedgerError> {
    let path = marks.join(opening::mark_file_name(address.display_name()));
    let accepted = MarkFile::open(&path, moved).and_then(|mut mark| mark.accept_mark(moved));
    accepted.map_err(|error| {
        let reason = format!("its high-water mark `{}` cannot be written: {error}", path.display());
        LedgerError::from_storage(&address.display_name(), &reason)
    })
}

/// Whether the ledger at an address is a backup that was not restored completely.
async fn is_backup(address: &PostgresAddress) -> Result<bool, LedgerError> {
    let query_backup = async {
        let mut connection = transaction::open_connection(address).await?;
        let statement = "SELECT EXISTS (SELECT 1 FROM campaign.backup WHERE restored_at IS NULL)";
        let is_backup = query(statement).fetch_one(&mut connection).await?.try_get(0)?;
        connection.close().await?;
        Ok(is_backup)
    };
    query_backup.await.map_err(|error: sqlx::Error| storage_error(address.display_name(), &error))
}

/// Copies a table to the file, record by record.
async fn copy_table_to_file(
    reader: &mut PgConnection,
    file: &mut SqliteConnection,
    table: &str,
) -> Result<(), TransferError> {
    let columns = list_columns(reader, table).await.map_err(TransferError::Database)?;
    // This removes the initial records of a new ledger.
    let emptied = sqlx::query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut *file).await;
    emptied.map_err(TransferError::File)?;
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let placeholders: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
    let names = names.join(", ");
    let insert = format!("INSERT INTO {table} ({names}) VALUES ({})", placeholders.join(", "));
    let mut records = query(AssertSqlSafe(format!("SELECT {names} FROM {table}"))).fetch(&mut *reader);
    while let Some(record) = records.try_next().await.map_err(TransferError::Database)? {
        let mut arguments = SqliteArguments::default();
        for (index, column) in columns.iter().enumerate() {
            bind_value(&mut arguments, column, &record, index).map_err(TransferError::Database)?;
        }
        let inserted =
            sqlx::query_with::<Sqlite, _>(AssertSqlSafe(insert.clone()), arguments).execute(&mut *file).await;
        inserted.map_err(TransferError::File)?;
    }
    Ok(())
}

/// Binds the value of a column of a PostgreSQL record as an SQLite argument.
fn bind_value(arguments: &mut SqliteArguments, column: &TableColumn, record: &PgRow, index: usize) -> sqlx::Result<()> {
    use sqlx::Arguments as _;

    let bound = match column.kind {
        ColumnType::Integer => arguments.add(record.try_get::<Option<i64>, _>(index)?),
        ColumnType::Boolean => arguments.add(record.try_get::<Option<bool>, _>(index)?),
        ColumnType::Real => arguments.add(record.try_get::<Option<f64>, _>(index)?),
        ColumnType::Text => arguments.add(record.try_get::<Option<String>, _>(index)?),
        ColumnType::Bytes => arguments.add(record.try_get::<Option<Vec<u8>>, _>(index)?),
    };
    bound.map_err(sqlx::Error::Encode)
}
