//! PostgreSQL dialect of the shared queries: driver types and differences in SQL.

use std::borrow::Cow;
use std::io;

use super::sql::{StatementError, to_hex};
use super::transaction::is_transient;
use crate::LedgerError;

pub(super) use sqlx::PgConnection as Connection;
pub(super) use sqlx::Postgres as Database;
pub(super) use sqlx::postgres::PgRow as Record;

pub(super) use super::ledger::PostgresLedger as Adapter;
pub(super) use super::locks::Lock;
pub(super) use super::transaction::DatabaseWait;
pub(super) use super::write_connection::WriteConnection;

/// A read-only transaction with a snapshot of the ledger.
pub(super) type Reader = sqlx::Transaction<'static, Database>;

/// Whether several machines can use one ledger.
pub(super) const SHARED: bool = true;
/// Whether the driver may cache prepared statements. A pooler can send the next query to another server.
pub(super) const CACHES_STATEMENTS: bool = false;

/// Runs the writer on the runtime, whose workers receive the answers from the sockets.
#[expect(clippy::unnecessary_wraps, reason = "other databases must start a thread, which can fail")]
pub(super) fn spawn_writer(writing: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    drop(tokio::spawn(writing));
    Ok(())
}

/// Replaces NUL characters, which a text column cannot contain.
pub(super) fn to_storable_text(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}").into(),
        false => text.into(),
    }
}

/// A text literal in hexadecimal digits, so that its content cannot become SQL.
pub(super) fn text_literal(text: &str) -> String {
    format!("convert_from(decode('{}', 'hex'), 'UTF8')", to_hex(&self::to_storable_text(text)))
}

/// The elements of a JSON array parameter, as a table with the column `value`.
macro_rules! json_elements {
    ($parameter:literal) => {
        concat!("jsonb_array_elements(CAST(", $parameter, " AS jsonb)) AS given (value)")
    };
}
pub(super) use json_elements;

/// Converts a statement error to a ledger error. An SQL error becomes a storage error that names the address of the
/// database.
pub(super) fn to_ledger_error(place: &str, failure: StatementError) -> LedgerError {
    match failure {
        StatementError::Sql(error) => storage_error(place, &error),
        StatementError::Ledger(error) => error,
    }
}

/// A database error with the server's message. Connection errors can contain the address, but never the password.
pub(super) fn storage_error(place: &str, error: &sqlx::Error) -> LedgerError {
    let path = place.to_owned();
    match error {
        sqlx::Error::Database(error) if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            let holder = "another database session holds a lock (`SELECT * FROM pg_stat_activity` shows it)";
            LedgerError::Busy { path, who: holder.to_owned() }
        }
        sqlx::Error::Database(answer) if is_transient(error) => {
            LedgerError::Unreachable { path, reason: answer.message().to_owned() }
        }
        other if is_transient(other) => LedgerError::Unreachable { path, reason: other.to_string() },
        sqlx::Error::Database(error) => LedgerError::Storage { path, reason: error.message().to_owned() },
        other => LedgerError::Storage { path, reason: other.to_string() },
    }
}

/// The PostgreSQL error code for a lock that was not granted within `lock_timeout` (PostgreSQL, Appendix A).
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";
