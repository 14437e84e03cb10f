//! Taking over a ledger that was in a file: all that it knows, a commit further.

use std::io::{self, Read as _};
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection as _, PgPool, Postgres, Row as _, Transaction};
use tokio::runtime::Handle;

use super::address::PostgresAddress;
use super::dialect::{self, storage_error};
use super::ledger::PostgresLedger;
use super::schema;
use super::shard_copy::copy_in;
use super::shards::read_packed_shard;
use super::sql::statement::{query, scalar};
use super::transaction;
use crate::failpoint;
use crate::ledger::mark::HighWaterMark;
use crate::ledger::sqlite::Handover;
use crate::ledger::{CopiedLedger, Copies, Ledger as _, LedgerError, Run, RunFilter, SqliteLedger};

/// What a database has besides what a file has.
const DATABASE_ONLY_TABLES: [&str; 6] = ["_sqlx_migrations", "copies", "copy_shards", "locks", "meta", "writers"];
/// Records that one statement writes.
const RECORDS_PER_STATEMENT: usize = 1_000;

/// The one transaction in which everything is copied.
type TakeoverTransaction = Transaction<'static, Postgres>;

/// A column of a table, and how its values are handed on.
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: ColumnType,
    is_identity: bool,
}

/// The types that there are in the ledger.
#[derive(Clone, Copy)]
pub(super) enum ColumnType {
    Integer,
    Boolean,
    Real,
    Text,
    Bytes,
}

impl PostgresLedger {
    /// Takes over a ledger from a file, with its runs and their copies: all of it or nothing. The file stays as it is, and is not
    /// the ledger any more that its mark knows.
    ///
    /// Where that was interrupted at its very end, it is brought to its end.
    ///
    /// # Errors
    /// When somebody sends with the file, it is not sound or not the newest, or the database has another ledger.
    pub async fn take_over(address: &PostgresAddress, from: &SqliteLedger) -> Result<CopiedLedger, LedgerError> {
        let runs = from.list_runs(RunFilter::all()).await?;
        let before = from.load_mark().await?;
        if let Some(there) = find_existing_mark(address).await? {
            return match there.id == before.after_move().id {
                true if from.ensure_newest().is_err() => Ok(summarize_copy(&runs, 0)),
                true => from.begin_handover().await?.end().await.map(|()| summarize_copy(&runs, 0)),
                false => Err(LedgerError::Occupied { path: address.display_name().to_owned() }),
            };
        }
        let mut handover = from.begin_handover().await?;
        let taking = LedgerTakeover { address, place: from.display_path(), replaces: false };
        match taking.copy_ledger(&mut handover, &runs, async |run| from.load_copies(run).await).await {
            Ok(without) => {
                failpoint::pass("ledger.copied");
                handover.end().await.map(|()| summarize_copy(&runs, without))
            }
            Err(error) => {
                handover.give_up().await;
                Err(error)
            }
        }
    }
}

fn summarize_copy(runs: &[Run], without_copies: u64) -> CopiedLedger {
    CopiedLedger { runs: runs.len() as u64, rows: runs.iter().map(|run| run.recipients).sum(), without_copies }
}

/// How far the ledger that is in the database has come; nothing where there is none.
pub(super) async fn find_existing_mark(address: &PostgresAddress) -> Result<Option<HighWaterMark>, LedgerError> {
    let asked = async {
        let mut connection = transaction::open_connection(address).await?;
        let mut reader = connection.begin().await?;
        Ok::<_, sqlx::Error>(match schema::load_version(&mut reader).await? {
            None => None,
            Some(_) => {
                let row = query("SELECT id, generation FROM campaign.meta").fetch_one(&mut *reader).await?;
                Some(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
            }
        })
    };
    asked.await.map_err(|error| storage_error(address.display_name(), &error))
}

/// From where a database gets a ledger.
pub(super) struct LedgerTakeover<'a> {
    pub(super) address: &'a PostgresAddress,
    /// The file that it comes from, as people are told it.
    pub(super) place: Arc<str>,
    /// Whether it takes the place of one that was never in use.
    pub(super) replaces: bool,
}

impl LedgerTakeover<'_> {
    /// Copies everything in one transaction; tells how many runs have no copies.
    pub(super) async fn copy_ledger(
        &self,
        handover: &mut Handover,
        runs: &[Run],
        copies_of: impl AsyncFn(&Run) -> Result<Copies, LedgerError>,
    ) -> Result<u64, LedgerError> {
        let place = self.address.display_name();
        let failed = |error: sqlx::Error| storage_error(place, &error);
        let pool = PgPool::connect_with(self.address.options().clone()).await.map_err(failed)?;
        let mut whole = pool.begin().await.map_err(failed)?;
        if self.replaces {
            let dropped = query("DROP SCHEMA campaign CASCADE").execute(&mut *whole).await;
            dropped.map_err(failed)?;
        }
        let made = schema::migrate_to(&mut whole, schema::NEWEST).await;
        made.map_err(|error| LedgerError::Storage { path: place.to_owned(), reason: error.to_string() })?;
        for table in list_tables(&mut whole).await.map_err(failed)? {
            copy_table(&mut whole, handover, &table).await.map_err(|error| match error {
                TakeoverError::Database(error) => failed(error),
                TakeoverError::File(error) => {
                    LedgerError::Storage { path: self.place.to_string(), reason: error.to_string() }
                }
            })?;
        }
        let mut without = 0;
        for run in runs {
            // Of one that was purged nothing is left, and one of single messages never had any.
            match copies_of(run).await {
                Ok(copies) => whole = copy_list(whole, run, copies).await.map_err(|error| copy_error(run, &error))?,
                Err(_) => without += u64::from(run.purged_at.is_none() && !run.shared),
            }
        }
        let HighWaterMark { id, generation } = handover.mark().after_move();
        let counted = query("UPDATE meta SET id = $1, generation = $2").bind(id).bind(generation);
        counted.execute(&mut *whole).await.map_err(failed)?;
        whole.commit().await.map_err(failed)?;
        pool.close().await;
        Ok(without)
    }
}

fn copy_error(run: &Run, error: &io::Error) -> LedgerError {
    LedgerError::NotCopied { place: "the database".to_owned(), reason: format!("{}: {error}", run.name()) }
}

/// The tables that a file has too, those first that others refer to.
pub(super) async fn list_tables(connection: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    let named = "SELECT relname::text FROM pg_class WHERE relnamespace = 'campaign'::regnamespace AND relkind = 'r' ORDER BY oid";
    let names: Vec<String> = scalar(named).fetch_all(connection).await?;
    Ok(names.into_iter().filter(|name| !DATABASE_ONLY_TABLES.contains(&name.as_str())).collect())
}

pub(super) async fn list_columns(connection: &mut PgConnection, table: &str) -> sqlx::Result<Vec<TableColumn>> {
    let described = query(
        "SELECT attname::text, format_type(atttypid, atttypmod), attidentity <> '' FROM pg_attribute
         WHERE attrelid = to_regclass('campaign.' || $1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
    );
    let described = described.bind(table).fetch_all(connection).await?;
    let column = |row: &sqlx::postgres::PgRow| {
        let kind = match row.try_get::<&str, _>(1)? {
            "bigint" => ColumnType::Integer,
            "boolean" => ColumnType::Boolean,
            "double precision" => ColumnType::Real,
            "bytea" => ColumnType::Bytes,
            _ => ColumnType::Text,
        };
        Ok(TableColumn { name: row.try_get(0)?, kind, is_identity: row.try_get(2)? })
    };
    described.iter().map(column).collect()
}

/// Which of the two databases failed.
enum TakeoverError {
    Database(sqlx::Error),
    File(sqlx::Error),
}

async fn copy_table(connection: &mut PgConnection, handover: &mut Handover, table: &str) -> Result<(), TakeoverError> {
    let columns = list_columns(connection, table).await.map_err(TakeoverError::Database)?;
    // What a new ledger begins with.
    let emptied = query(AssertSqlSafe(format!("DELETE FROM {table}"))).execute(&mut *connection).await;
    emptied.map_err(TakeoverError::Database)?;
    let names: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
    let asked = format!("SELECT {} FROM {table}", names.join(", "));
    let mut found = sqlx::query(AssertSqlSafe(asked)).fetch(handover.connection());
    let mut records = Vec::with_capacity(RECORDS_PER_STATEMENT);
    loop {
        let record = found.try_next().await.map_err(TakeoverError::File)?;
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
        query(AssertSqlSafe(next)).execute(&mut *connection).await.map_err(TakeoverError::Database)?;
    }
    Ok(())
}

async fn insert_records(
    connection: &mut PgConnection,
    table: &str,
    columns: &[TableColumn],
    records: &[SqliteRow],
) -> Result<(), TakeoverError> {
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
        insert = column.kind.bind_column(insert, records, index).map_err(TakeoverError::File)?;
    }
    insert.execute(connection).await.map(drop).map_err(TakeoverError::Database)
}

/// A statement with what is bound to it.
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

    /// Binds what stands in a column of all records.
    fn bind_column(self, statement: BulkInsert, records: &[SqliteRow], column: usize) -> sqlx::Result<BulkInsert> {
        let wholes = || records.iter().map(|record| record.try_get_unchecked::<Option<i64>, _>(column));
        Ok(match self {
            Self::Integer => statement.bind(wholes().collect::<sqlx::Result<Vec<_>>>()?),
            Self::Boolean => {
                let truth = |whole: Option<i64>| whole.map(|whole| whole != 0);
                statement.bind(wholes().map(|whole| whole.map(truth)).collect::<sqlx::Result<Vec<_>>>()?)
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

/// Copies what a run is sent from; the transaction is handed to a thread that may wait for the list, and comes back.
async fn copy_list(mut whole: TakeoverTransaction, run: &Run, copies: Copies) -> io::Result<TakeoverTransaction> {
    let (name, runtime) = (run.name(), Handle::current());
    let copying = tokio::task::spawn_blocking(move || {
        let began = scalar("INSERT INTO copies (name, inputs, made_at) VALUES ($1, $2, 0) RETURNING key");
        let began = began.bind(name).bind(copies.inputs().to_vec()).fetch_one(&mut *whole);
        let key: i64 = runtime.block_on(began).map_err(io::Error::other)?;
        let mut list = copies.open_list()?;
        for number in 0_i64.. {
            let Some(shard) = read_packed_shard(&mut list.by_ref())? else { break };
            runtime.block_on(copy_in(&mut whole, key, (number, &[shard]))).map_err(io::Error::other)?;
        }
        Ok(whole)
    });
    copying.await.map_err(io::Error::other)?
}
