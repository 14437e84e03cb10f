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
use super::dialect::storage;
use super::ledger::Clock;
use super::lock;
use super::pen::Pen;
use super::schema::{self, Age};
use super::sql::{self, Failure};
use super::turn::{self, Patience, Wait, is_busy, is_read_only};
use crate::ledger::LedgerError;
use crate::ledger::earlier_chains::EarlierChains;
use crate::ledger::mark::{self, Mark, MarkFile};
use crate::private::{self, Existing};

/// How many pages the log may have before a commit empties it into the file.
const LOG_PAGES: &str = "1000";
/// The most bytes of the log that stay on the disk after it was emptied, however long a reader was in the way.
const LOG_BYTES: &str = "8388608";

/// How long the pause before another attempt to connect is.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(turn::ATTEMPT).disable_statement_logging()
}

/// Connections that read.
pub(super) async fn readers(path: &Path) -> Result<SqlitePool, LedgerError> {
    // A file does not go away between two looks, and a connection was tried when it was given back.
    let pool = SqlitePoolOptions::new().max_connections(2).test_before_acquire(false);
    let pool = pool.connect_with(options(path).read_only(true)).await;
    pool.map_err(|error| storage(path, &error))
}

/// Makes sure that there is a ledger of the newest schema.
pub(super) async fn prepare(path: &Path, patience: Patience) -> Result<(), LedgerError> {
    if path.exists() {
        match age(path).await {
            Ok(Age::Newest) => return Ok(()),
            Ok(Age::Newer) => return Err(LedgerError::TooNew { path: path.display().to_string() }),
            Ok(Age::Older) => leave_to_earlier(path).await?,
            // A process that was killed while it made the file left something to be taken back first.
            Err(error) if is_read_only(&error) => {}
            Err(error) => return Err(storage(path, &error)),
        }
    }
    let mut connection = connect(path, patience).await?;
    let migrated = migrate(&mut connection, path, patience).await;
    connection.close().await.map_err(|error| storage(path, &error))?;
    migrated
}

/// Refuses to change the schema while a process has something of the ledger that was begun with the schema as it is.
async fn leave_to_earlier(path: &Path) -> Result<(), LedgerError> {
    let held = lock::any_held(path).map_err(|error| lock::failed(&path.with_file_name("locks"), &error))?;
    // Whoever has a lock of a new ledger has made its tables before.
    if held && matches!(age(path).await, Ok(Age::Older)) {
        let who = "an earlier version of campaign is still sending with this ledger".to_owned();
        return Err(LedgerError::Busy { path: path.display().to_string(), who });
    }
    Ok(())
}

/// How old the schema of a ledger's file is.
async fn age(path: &Path) -> sqlx::Result<Age> {
    let mut connection = options(path).read_only(true).connect().await?;
    let age = schema::age(&mut connection).await;
    // Nothing was written, so nothing can be lost by closing.
    let _ = connection.close().await;
    age
}

async fn migrate(connection: &mut SqliteConnection, path: &Path, patience: Patience) -> Result<(), LedgerError> {
    let mut wait = Wait::new(path, patience);
    let mut transaction = loop {
        match connection.begin_with("BEGIN IMMEDIATE").await {
            Ok(transaction) => break transaction,
            Err(error) if is_busy(&error) => wait.go_on()?,
            Err(error) => return Err(storage(path, &error)),
        }
    };
    let before = schema::version(&mut transaction).await.map_err(|error| storage(path, &error))?;
    schema::migrate(&mut transaction).await.map_err(|error| match error {
        MigrateError::VersionMissing(_) => LedgerError::TooNew { path: path.display().to_string() },
        other => LedgerError::Storage { path: path.display().to_string(), reason: other.to_string() },
    })?;
    if before < schema::WITH_CHAINS {
        record_chains(&mut transaction, path).await.map_err(|failure| failed(path, failure))?;
    }
    transaction.commit().await.map_err(|error| storage(path, &error))
}

/// Records the channels of the pipelines that earlier versions sent. Those of a run without copies stay unknown.
async fn record_chains(connection: &mut SqliteConnection, path: &Path) -> Result<(), Failure> {
    for (run, name) in sql::runs_without_chains(&mut *connection).await? {
        let frozen = copies::of(path, &name).await.ok();
        if let Some(chains) = frozen.and_then(|copies| EarlierChains::read(copies.inputs())) {
            sql::record_chains(&mut *connection, run, &chains).await?;
        }
    }
    Ok(())
}

fn failed(path: &Path, failure: Failure) -> LedgerError {
    match failure {
        Failure::Sql(error) => storage(path, &error),
        Failure::Ledger(error) => error,
    }
}

/// The connection that writes, and the mark that follows it.
pub(super) async fn pen(path: &Arc<Path>, clock: Clock, patience: Patience) -> Result<Pen, LedgerError> {
    let mut connection = connect(path, patience).await?;
    let place = mark::place(path);
    let unmarked = |error: std::io::Error| LedgerError::Storage {
        path: path.display().to_string(),
        reason: format!("its high-water mark `{}` cannot be opened: {error}", place.display()),
    };
    // Who has the turn makes the mark: two processes that make the same ledger would make two.
    let first = !place.exists();
    if first {
        turn::begin(&mut connection, path, patience).await?;
    }
    let current = current_mark(&mut connection).await.map_err(|error| storage(path, &error))?;
    let mark = MarkFile::open(&place, current).map_err(unmarked)?;
    if first {
        sqlx::query("COMMIT").execute(&mut connection).await.map_err(|error| storage(path, &error))?;
    }
    Ok(Pen { connection, mark, path: Arc::clone(path), clock, patience })
}

/// Connects to write, creates the file where there is none, and waits for another process that does the same.
///
/// Two that change the mode of a file at once could wait for each other for ever, so SQLite tells one of them
/// at once that it is busy, whatever its time-out.
pub(super) async fn connect(path: &Path, patience: Patience) -> Result<SqliteConnection, LedgerError> {
    // SQLite gives its companions the mode of the file.
    private::file(path, Existing::Kept)
        .map_err(|error| LedgerError::Storage { path: path.display().to_string(), reason: error.to_string() })?;
    let options = options(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", LOG_PAGES)
        .pragma("journal_size_limit", LOG_BYTES)
        // What is deleted is overwritten: no number stays behind in the space that it leaves.
        .pragma("secure_delete", "ON");
    let mut wait = Wait::new(path, patience);
    loop {
        match options.connect().await {
            Ok(connection) => return Ok(connection),
            Err(error) if is_busy(&error) => {
                wait.go_on()?;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(storage(path, &error)),
        }
    }
}

/// Which ledger this is, and how far it has come.
pub(super) async fn current_mark(connection: &mut SqliteConnection) -> sqlx::Result<Mark> {
    let row = sqlx::query("SELECT id, generation FROM identity").fetch_one(connection).await?;
    Ok(Mark { id: row.try_get(0)?, generation: row.try_get(1)? })
}
