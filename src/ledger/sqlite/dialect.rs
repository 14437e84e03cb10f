//! What the queries of a ledger are written in here: SQLite's types, and its words where databases differ.

use std::fs::File;
use std::path::Path;
use std::{io, thread};

pub(super) use sqlx::Sqlite as Database;
pub(super) use sqlx::SqliteConnection as Connection;
use sqlx::pool::PoolConnection;
pub(super) use sqlx::sqlite::SqliteRow as Record;
use tokio::runtime::Handle;

pub(super) use super::ledger::SqliteLedger as Adapter;
pub(super) use super::pen::WriteConnection;
use super::sql::{StatementError, to_hex};
use crate::ledger::LedgerError;

/// What keeps a lock as long as it is there.
pub(super) type Lock = File;
/// A connection that only reads.
pub(super) type Reader = PoolConnection<Database>;

/// A file is not away for a while: nothing is waited for.
pub(super) struct DatabaseWait;

impl DatabaseWait {
    pub(super) fn new<P>(_: P) -> Self {
        Self
    }

    pub(super) async fn wait_for_recovery(&mut self, _: &sqlx::Error) -> bool {
        false
    }
}

/// Whether processes of several machines use one ledger.
pub(super) const SHARED: bool = false;
/// Whether the driver may remember statements from one query to the next.
pub(super) const CACHES_STATEMENTS: bool = true;

/// Starts what writes: on a thread of its own. Each statement is a way to the thread of the connection and back, and a worker of
/// the runtime may be at something else when the answer comes.
///
/// # Errors
/// When the system starts no further thread.
pub(super) fn spawn_writer(writing: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let runtime = Handle::current();
    thread::Builder::new().name("ledger".to_owned()).spawn(move || runtime.block_on(writing)).map(drop)
}

/// A text of somebody else's as a column can hold it.
pub(super) fn to_storable_text(text: &str) -> &str {
    text
}

/// A text as a literal: its bytes in to_hex digits, so that nothing in it can be taken for words of a statement.
pub(super) fn text_literal(text: &str) -> String {
    format!("CAST(x'{}' AS TEXT)", to_hex(text))
}

/// The elements of a JSON list that is bound as this parameter: a table with the column `value`.
macro_rules! json_elements {
    ($parameter:literal) => {
        concat!("json_each(", $parameter, ")")
    };
}
pub(super) use json_elements;

/// A failure, with the file's name.
pub(super) fn to_ledger_error(place: &str, failure: StatementError) -> LedgerError {
    match failure {
        StatementError::Sql(error) => storage_error(Path::new(place), &error),
        StatementError::Ledger(error) => error,
    }
}

/// A failure of the storage, in its own words.
pub(super) fn storage_error(path: &Path, error: &sqlx::Error) -> LedgerError {
    let reason = match error {
        sqlx::Error::Database(error) => error.message().to_owned(),
        other => other.to_string(),
    };
    LedgerError::Storage { path: path.display().to_string(), reason }
}
