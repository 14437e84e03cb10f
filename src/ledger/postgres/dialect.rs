//! What the queries of a ledger are written in here: PostgreSQL's types, and its words where databases differ.

use std::borrow::Cow;
use std::io;

pub(super) use sqlx::PgConnection as Connection;
pub(super) use sqlx::Postgres as Database;
pub(super) use sqlx::postgres::PgRow as Record;

pub(super) use super::ledger::PostgresLedger as Adapter;
pub(super) use super::locks::Lock;
pub(super) use super::pen::WriteConnection;
use super::sql::{StatementError, to_hex};
pub(super) use super::waiting::DatabaseWait;
use super::waiting::is_transient;
use crate::ledger::LedgerError;

/// A connection that only reads, within a transaction that sees one state of the ledger.
pub(super) type Reader = sqlx::Transaction<'static, Database>;

/// Whether processes of several machines use one ledger.
pub(super) const SHARED: bool = true;
/// Whether the driver may remember statements from one query to the next: a pooler gives the next one to another server.
pub(super) const CACHES_STATEMENTS: bool = false;

/// Starts what writes: answers come by the sockets of the runtime, so one of its workers hears them first.
#[expect(clippy::unnecessary_wraps, reason = "other databases need a thread for it")]
pub(super) fn spawn_writer(writing: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    drop(tokio::spawn(writing));
    Ok(())
}

/// A text of somebody else's as a column can hold it: all but the character 0.
pub(super) fn to_storable_text(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{fffd}").into(),
        false => text.into(),
    }
}

/// A text as a literal: its bytes in hexadecimal digits, so that nothing in it can be taken for words of a statement.
pub(super) fn text_literal(text: &str) -> String {
    format!("convert_from(decode('{}', 'hex'), 'UTF8')", to_hex(&self::to_storable_text(text)))
}

/// The elements of a JSON list that is bound as this parameter: a table with the column `value`.
macro_rules! json_elements {
    ($parameter:literal) => {
        concat!("jsonb_array_elements(CAST(", $parameter, " AS jsonb)) AS given (value)")
    };
}
pub(super) use json_elements;

/// A failure, with the address of the database.
pub(super) fn to_ledger_error(place: &str, failure: StatementError) -> LedgerError {
    match failure {
        StatementError::Sql(error) => storage_error(place, &error),
        StatementError::Ledger(error) => error,
    }
}

/// A failure of the database, in its own words; those of a connection may hold the address, but never the password.
pub(super) fn storage_error(place: &str, error: &sqlx::Error) -> LedgerError {
    let path = place.to_owned();
    match error {
        sqlx::Error::Database(error) if error.code().as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            let who = "another database session holds a lock (`SELECT * FROM pg_stat_activity` shows it)";
            LedgerError::Busy { path, who: who.to_owned() }
        }
        sqlx::Error::Database(answer) if is_transient(error) => {
            LedgerError::Unreachable { path, reason: answer.message().to_owned() }
        }
        other if is_transient(other) => LedgerError::Unreachable { path, reason: other.to_string() },
        sqlx::Error::Database(error) => LedgerError::Storage { path, reason: error.message().to_owned() },
        other => LedgerError::Storage { path, reason: other.to_string() },
    }
}

/// PostgreSQL's code for a lock that was not given within `lock_timeout` (PostgreSQL, Appendix A).
pub(super) const LOCK_NOT_AVAILABLE: &str = "55P03";
