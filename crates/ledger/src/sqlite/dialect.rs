//! SQLite dialect of the shared queries: driver types and differences in SQL.

use std::fs::File;
use std::path::Path;
use std::{io, thread};

use sqlx::pool::PoolConnection;
use tokio::runtime::Handle;

use super::sql::{StatementError, to_hex};
use crate::LedgerError;

pub(super) use sqlx::Sqlite as Database;
pub(super) use sqlx::SqliteConnection as Connection;
pub(super) use sqlx::sqlite::SqliteRow as Record;

pub(super) use super::ledger::SqliteLedger as Adapter;
pub(super) use super::write_connection::WriteConnection;

/// A held lock.
pub(super) type Lock = File;
/// A read connection.
pub(super) type Reader = PoolConnection<Database>;

/// The wait for an unavailable database. SQLite needs none, because a file does not disconnect.
pub(super) struct DatabaseWait;

impl DatabaseWait {
    pub(super) fn new<P>(_: P) -> Self {
        Self
    }

    pub(super) async fn wait_for_recovery(&mut self, _: &sqlx::Error) -> bool {
        false
    }
}

/// Whether several machines can use one ledger.
pub(super) const SHARED: bool = false;
/// Whether the driver may cache prepared statements.
pub(super) const CACHES_STATEMENTS: bool = true;

/// Runs the writer on its own thread. Each statement is a round trip to the connection's thread, and a worker of the
/// runtime might be busy when the answer arrives.
///
/// # Errors
/// If the system cannot start a thread.
pub(super) fn spawn_writer(writing: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let runtime = Handle::current();
    thread::Builder::new().name("ledger".to_owned()).spawn(move || runtime.block_on(writing)).map(drop)
}

/// Converts external text to a form that a column can hold.
pub(super) fn to_storable_text(text: &str) -> &str {
    text
}

/// A text literal in hexadecimal digits, so that its content cannot become SQL.
pub(super) fn text_literal(text: &str) -> String {
    format!("CAST(x'{}' AS TEXT)", to_hex(text))
}

/// The elements of a JSON array parameter, as a table with the column `value`.
macro_rules! json_elements {
    ($parameter:literal) => {
        concat!("json_each(", $parameter, ")")
    };
}
pub(super) use json_elements;

/// Converts a statement error to a ledger error. An SQL error becomes a storage error that names the file.
pub(super) fn to_ledger_error(place: &str, failure: StatementError) -> LedgerError {
    match failure {
        StatementError::Sql(error) => storage_error(Path::new(place), &error),
        StatementError::Ledger(error) => error,
    }
}

/// A storage error with the message of SQLite.
pub(super) fn storage_error(path: &Path, error: &sqlx::Error) -> LedgerError {
    let reason = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        other => other.to_string(),
    };
    LedgerError::Storage { path: path.display().to_string(), reason }
}
