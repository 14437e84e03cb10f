//! Opening the ledger's file: to read, and, when something is to be written, to write.
//!
//! Reading takes no turn to write, so a process that stands still in the middle of a commit is in nobody's way who
//! only looks. Only a schema of an earlier version has to be changed first.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::MigrateError;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::copies;
use super::dialect::storage_error;
use super::ledger::TimeSource;
use super::lock;
use super::pen::WriteConnection;
use super::schema::{self, SchemaAge};
use super::sql::{self, StatementError};
use super::turn::{self, Patience, TurnWait, is_busy, is_read_only};
use crate::ledger::LedgerError;
use crate::ledger::earlier_chains::EarlierChains;
use crate::ledger::mark::{self, HighWaterMark, MarkFile};
use crate::private::{self, ExistingFile};

/// How many pages the log may have before a commit empties it into the file.
const CHECKPOINT_PAGES: &str = "1000";
/// The most bytes of the log that stay on the disk after it was emptied, however long a reader was in the way.
const MAX_LOG_BYTES: &str = "8388608";

/// How long the pause before another attempt to connect is.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(turn::BUSY_TIMEOUT).disable_statement_logging()
}

/// Connections that read.
pub(super) async fn open_readers(path: &Path) -> Result<SqlitePool, LedgerError> {
    // A file does not go away between two looks, and a connection was tried when it was given back.
    let pool = SqlitePoolOptions::new().max_connections(2).test_before_acquire(false);
    let pool = pool.connect_with(connect_options(path).read_only(true)).await;
    pool.map_err(|error| storage_error(path, &error))
}

/// Makes sure that there is a ledger of the newest schema.
pub(super) async fn ensure_newest_schema(path: &Path, patience: Patience) -> Result<(), LedgerError> {
    if path.exists() {
        match read_schema_age(path).await {
            Ok(SchemaAge::Newest) => return Ok(()),
            Ok(SchemaAge::Newer) => return Err(LedgerError::TooNew { path: path.display().to_string() }),
            Ok(SchemaAge::Older) => refuse_while_in_use(path).await?,
            // A process that was killed while it made the file left something to be taken back first.
            Err(error) if is_read_only(&error) => {}
            Err(error) => return Err(storage_error(path, &error)),
        }
    }
    let mut connection = connect_for_writing(path, patience).await?;
    let migrated = migrate_schema(&mut connection, path, patience).await;
    connection.close().await.map_err(|error| storage_error(path, &error))?;
    migrated
}

/// Refuses to change the schema while a process has something of the ledger that was begun with the schema as it is.
async fn refuse_while_in_use(path: &Path) -> Result<(), LedgerError> {
    let held = lock::is_any_held(path).map_err(|error| lock::lock_error(&path.with_file_name("locks"), &error))?;
    // Whoever has a lock of a new ledger has made its tables before.
    if held && matches!(read_schema_age(path).await, Ok(SchemaAge::Older)) {
        let who = "an earlier version of campaign is still sending with this ledger".to_owned();
        return Err(LedgerError::Busy { path: path.display().to_string(), who });
    }
    Ok(())
}

/// How old the schema of a ledger's file is.
async fn read_schema_age(path: &Path) -> sqlx::Result<SchemaAge> {
    let mut connection = connect_options(path).read_only(true).connect().await?;
    let age = schema::load_schema_age(&mut connection).await;
    // Nothing was written, so nothing can be lost by closing.
    let _ = connection.close().await;
    age
}

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
        other => LedgerError::Storage { path: path.display().to_string(), reason: other.to_string() },
    })?;
    if before < schema::WITH_CHAINS {
        record_chains(&mut transaction, path).await.map_err(|failure| to_ledger_error(path, failure))?;
    }
    transaction.commit().await.map_err(|error| storage_error(path, &error))
}

/// Records the channels of the pipelines that earlier versions sent. Those of a run without copies stay unknown.
async fn record_chains(connection: &mut SqliteConnection, path: &Path) -> Result<(), StatementError> {
    for (run, name) in sql::runs_without_chains(&mut *connection).await? {
        let frozen = copies::load_copies(path, &name).await.ok();
        if let Some(chains) = frozen.and_then(|copies| EarlierChains::parse(copies.inputs())) {
            sql::record_chains(&mut *connection, run, &chains).await?;
        }
    }
    Ok(())
}

fn to_ledger_error(path: &Path, failure: StatementError) -> LedgerError {
    match failure {
        StatementError::Sql(error) => storage_error(path, &error),
        StatementError::Ledger(error) => error,
    }
}

/// The connection that writes, and the mark that follows it.
pub(super) async fn open_write_connection(
    path: &Arc<Path>,
    clock: TimeSource,
    patience: Patience,
) -> Result<WriteConnection, LedgerError> {
    let mut connection = connect_for_writing(path, patience).await?;
    let place = mark::mark_path(path);
    let unmarked = |error: std::io::Error| LedgerError::Storage {
        path: path.display().to_string(),
        reason: format!("its high-water mark `{}` cannot be opened: {error}", place.display()),
    };
    // Who has the turn makes the mark: two processes that make the same ledger would make two.
    let first = !place.exists();
    if first {
        turn::begin_write(&mut connection, path, patience).await?;
    }
    let current = load_mark(&mut connection).await.map_err(|error| storage_error(path, &error))?;
    let mark = MarkFile::open(&place, current).map_err(unmarked)?;
    if first {
        sqlx::query("COMMIT").execute(&mut connection).await.map_err(|error| storage_error(path, &error))?;
    }
    Ok(WriteConnection { connection, mark, path: Arc::clone(path), clock, patience })
}

/// Connects to write, creates the file where there is none, and waits for another process that does the same.
///
/// Two that change the mode of a file at once could wait for each other for ever, so SQLite tells one of them
/// at once that it is busy, whatever its time-out.
pub(super) async fn connect_for_writing(path: &Path, patience: Patience) -> Result<SqliteConnection, LedgerError> {
    // SQLite gives its companions the mode of the file.
    private::open_file(path, ExistingFile::Keep)
        .map_err(|error| LedgerError::Storage { path: path.display().to_string(), reason: error.to_string() })?;
    let options = connect_options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", MAX_LOG_BYTES)
        // What is deleted is overwritten: no number stays behind in the space that it leaves.
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

/// Which ledger this is, and how far it has come.
pub(super) async fn load_mark(connection: &mut SqliteConnection) -> sqlx::Result<HighWaterMark> {
    let row = sqlx::query("SELECT id, generation FROM identity").fetch_one(connection).await?;
    Ok(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
}
