//! Opening the ledger file for reading and writing, and upgrading its schema.
//!
//! Opening for reading does not wait for the write lock, so a process that is suspended during a commit does not block
//! readers. The exception is a ledger with an older schema, which must be upgraded first.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::dialect::{storage_error, to_ledger_error};
use super::ledger::TimeSource;
use super::schema::{self, SchemaAge};
use super::sql::{self, StatementError};
use super::write_connection::{self, Patience, TurnWait, WriteConnection, is_busy, is_read_only};
use super::{copies, locks};
use crate::LedgerError;
use crate::encoding::EarlierChains;
use crate::high_water_mark::{self, HighWaterMark, MarkFile};
use campaign_core::private::{self, ExistingFile};

/// The number of pages in the log after which a commit moves them to the file.
const CHECKPOINT_PAGES: &str = "1000";
/// The maximum size of the emptied log file, in bytes.
const MAX_LOG_BYTES: &str = "8388608";

/// The pause between attempts to connect.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(write_connection::BUSY_TIMEOUT).disable_statement_logging()
}

/// Opens the pool of read connections.
pub(super) async fn open_readers(path: &Path) -> Result<SqlitePool, LedgerError> {
    // Unlike a server, a file does not disconnect, and connections are checked when they are returned.
    let pool = SqlitePoolOptions::new().max_connections(2).test_before_acquire(false);
    let pool = pool.connect_with(connect_options(path).read_only(true)).await;
    pool.map_err(|error| storage_error(path, &error))
}

/// Creates the ledger or upgrades it to the newest schema.
pub(super) async fn ensure_newest_schema(path: &Path, patience: Patience) -> Result<(), LedgerError> {
    if path.exists() {
        match read_schema_age(path).await {
            Ok(SchemaAge::Newest) => return Ok(()),
            Ok(SchemaAge::Newer) => return Err(LedgerError::TooNew { path: path.display().to_string() }),
            Ok(SchemaAge::Older) => refuse_while_in_use(path).await?,
            // An interrupted creation must be rolled back first, which needs write access.
            Err(error) if is_read_only(&error) => {}
            Err(error) => return Err(storage_error(path, &error)),
        }
    }
    let mut connection = connect_for_writing(path, patience).await?;
    let migrated = migrate_schema(&mut connection, path, patience).await;
    connection.close().await.map_err(|error| storage_error(path, &error))?;
    migrated
}

/// Whether the tables of an existing ledger were created by an earlier version. Changes nothing.
pub(super) async fn has_older_tables(path: &Path) -> Result<bool, LedgerError> {
    match read_schema_age(path).await {
        Ok(SchemaAge::Newest) => Ok(false),
        Ok(SchemaAge::Older) => Ok(true),
        Ok(SchemaAge::Newer) => Err(LedgerError::TooNew { path: path.display().to_string() }),
        Err(error) => Err(storage_error(path, &error)),
    }
}

/// Refuses the upgrade while a process uses the ledger with the older schema.
async fn refuse_while_in_use(path: &Path) -> Result<(), LedgerError> {
    let is_locked =
        locks::is_any_held(path).map_err(|error| locks::lock_error(&path.with_file_name("locks"), &error))?;
    // A process creates the tables of a new ledger before it takes a lock. So a lock on an older schema belongs to an
    // earlier version.
    if is_locked && matches!(read_schema_age(path).await, Ok(SchemaAge::Older)) {
        let holder = "an earlier version of campaign is still sending with this ledger";
        return Err(LedgerError::from_lock_holder(&path.display(), holder));
    }
    Ok(())
}

/// Compares the schema of a ledger file with the newest one.
async fn read_schema_age(path: &Path) -> sqlx::Result<SchemaAge> {
    let mut connection = connect_options(path).read_only(true).connect().await?;
    let age = schema::load_schema_age(&mut connection).await;
    // Nothing was written, so a failure to close loses nothing.
    let _ = connection.close().await;
    age
}

/// Upgrades the schema in one transaction, and backfills the channels of pipelines.
async fn migrate_schema(connection: &mut SqliteConnection, path: &Path, patience: Patience) -> Result<(), LedgerError> {
    let mut wait = TurnWait::new(path, patience);
    let mut transaction = loop {
        match connection.begin_with("BEGIN IMMEDIATE").await {
            Ok(transaction) => break transaction,
            Err(error) if is_busy(&error) => wait.check_timeout()?,
            Err(error) => return Err(storage_error(path, &error)),
        }
    };
    let before = schema::load_version(&mut transaction).await.map_err(|error| storage_error(path, &error))?;
    schema::run_migrations(&mut transaction).await.map_err(|error| match error {
        MigrateError::VersionMissing(_) => LedgerError::TooNew { path: path.display().to_string() },
        other => LedgerError::from_storage(&path.display(), &other),
    })?;
    if before < schema::WITH_CHAINS {
        record_chains(&mut transaction, path)
            .await
            .map_err(|failure| to_ledger_error(&path.display().to_string(), failure))?;
    }
    transaction.commit().await.map_err(|error| storage_error(path, &error))
}

/// Records the channels of pipelines that earlier versions sent. For runs without copies, the channels stay unknown.
async fn record_chains(connection: &mut SqliteConnection, path: &Path) -> Result<(), StatementError> {
    for (run, name) in sql::list_runs_without_chains(&mut *connection).await? {
        let frozen = copies::load_copies(path, &name).await.ok();
        if let Some(chains) = frozen.and_then(|copies| EarlierChains::parse(copies.inputs())) {
            sql::record_chains(&mut *connection, run, &chains).await?;
        }
    }
    Ok(())
}

/// Opens the write connection and the high-water mark.
pub(super) async fn open_write_connection(
    path: &Arc<Path>,
    clock: TimeSource,
    patience: Patience,
) -> Result<WriteConnection, LedgerError> {
    let mut connection = connect_for_writing(path, patience).await?;
    let mark_path = high_water_mark::mark_path(path);
    let mark_error = |error: std::io::Error| {
        let reason = format!("its high-water mark `{}` cannot be opened: {error}", mark_path.display());
        LedgerError::from_storage(&path.display(), &reason)
    };
    // Only the process that holds the write lock creates the mark; otherwise two processes could create two marks for
    // one ledger.
    let is_unmarked = !mark_path.exists();
    if is_unmarked {
        write_connection::begin_write(&mut connection, path, patience).await?;
    }
    let current = load_mark(&mut connection).await.map_err(|error| storage_error(path, &error))?;
    let mark = MarkFile::open(&mark_path, current).map_err(mark_error)?;
    if is_unmarked {
        sqlx::query("COMMIT").execute(&mut connection).await.map_err(|error| storage_error(path, &error))?;
    }
    Ok(WriteConnection { connection, mark, path: Arc::clone(path), clock, patience })
}

/// Connects for writing, creates the file if needed, and waits for other processes that do the same.
///
/// Two processes that change the journal mode at once would wait for each other forever. SQLite therefore reports one
/// of them as busy at once, regardless of its timeout.
pub(super) async fn connect_for_writing(path: &Path, patience: Patience) -> Result<SqliteConnection, LedgerError> {
    // SQLite gives its companion files the permissions of the database file.
    private::open_file(path, ExistingFile::Keep).map_err(|error| LedgerError::from_storage(&path.display(), &error))?;
    let options = connect_options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", MAX_LOG_BYTES)
        // Overwrites deleted data, so that no phone number stays in free space.
        .pragma("secure_delete", "ON");
    let mut wait = TurnWait::new(path, patience);
    loop {
        match options.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if is_busy(&error) => {
                wait.check_timeout()?;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(storage_error(path, &error)),
        }
    }
}

/// Reads the identity and generation of the ledger.
pub(super) async fn load_mark(connection: &mut SqliteConnection) -> sqlx::Result<HighWaterMark> {
    let row = sqlx::query("SELECT id, generation FROM identity").fetch_one(connection).await?;
    Ok(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
}
