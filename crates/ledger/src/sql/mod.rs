//! Queries of the ledger's database adapters, shared by SQLite and PostgreSQL.
//!
//! Each adapter mounts this folder as its own module and has its `dialect` next to it. The dialect contains the types
//! of its driver and the few places where its SQL differs. A query is therefore written once and compiled for each
//! driver. This file contains what all queries use: statements, reads with retry, and conversions of column values.

mod adapter;
mod approvals;
mod blocks;
mod consents;
mod contacts;
mod counted_messages;
mod envelope_records;
mod envelopes;
mod events;
mod forgetting;
mod guards;
mod limits;
mod maintenance;
mod notifications;
mod opt_out_records;
mod receipts;
mod runs;
mod schedules;
mod shards;
mod suppression;
mod writer;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::query::{Query, QueryScalar};
use sqlx::{ColumnIndex, FromRow, Row as _, SqlSafeStr};

use super::dialect::{self, Adapter, Database, DatabaseWait, Record};
use crate::LedgerError;
use campaign_core::domain::Row;

pub(crate) use blocks::LockProof;
pub(crate) use envelope_records::{list_runs_without_chains, record_chains};
pub(crate) use envelopes::EnvelopeNumbers;
pub(crate) use writer::{CommitCallback, Writer};

type SqlArguments = <Database as sqlx::Database>::Arguments;

/// A statement with its bound values.
pub(crate) type SqlStatement = Query<'static, Database, SqlArguments>;

/// Builds a statement.
pub(crate) fn query(sql: impl SqlSafeStr) -> SqlStatement {
    sqlx::query(sql).persistent(dialect::CACHES_STATEMENTS)
}

/// Builds a statement that returns one column.
pub(crate) fn scalar<T>(sql: impl SqlSafeStr) -> QueryScalar<'static, Database, T, SqlArguments>
where
    (T,): for<'r> FromRow<'r, Record>,
{
    sqlx::query_scalar(sql).persistent(dialect::CACHES_STATEMENTS)
}

/// The bytes of a text as hexadecimal digits.
pub(crate) fn to_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a text column of a damaged record as far as possible.
pub(super) fn read_lossy(record: &Record, column: &str) -> String {
    let bytes: Vec<u8> = record.try_get_unchecked(column).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads a `u32` from a signed column, because databases have no unsigned integers.
pub(super) fn read_u32(record: &Record, column: impl ColumnIndex<Record>) -> Result<u32, StatementError> {
    to_u32(record.try_get(column)?)
}

/// Converts a stored number to `u32`.
pub(super) fn to_u32(number: i64) -> Result<u32, StatementError> {
    u32::try_from(number).map_err(|_| LedgerError::Unreadable(format!("the number {number} is out of range")).into())
}

/// Reads a row number of the recipient list.
pub(super) fn read_row_number(record: &Record, column: impl ColumnIndex<Record>) -> Result<Row, StatementError> {
    read_u32(record, column).map(Row::new)
}

/// The time of a change or read, in microseconds of the wall clock.
#[derive(Clone, Copy)]
pub(crate) struct Now(pub(crate) i64);

/// The reason why a statement failed. The error does not name the ledger yet.
pub(crate) enum StatementError {
    Sql(sqlx::Error),
    Ledger(LedgerError),
}

impl From<sqlx::Error> for StatementError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            // Only this record is unreadable, not the whole database.
            sqlx::Error::ColumnDecode { .. } => StatementError::Ledger(LedgerError::Unreadable(error.to_string())),
            error => StatementError::Sql(error),
        }
    }
}

/// Returns the error of a damaged record as a value, and passes on failures of the whole ledger.
pub(super) fn capture_damage<T>(read: Result<T, StatementError>) -> Result<Result<T, LedgerError>, StatementError> {
    match read {
        Ok(record) => Ok(Ok(record)),
        Err(StatementError::Ledger(error)) if error.concerns_records() => Ok(Err(error)),
        Err(failure) => Err(failure),
    }
}

impl From<LedgerError> for StatementError {
    fn from(error: LedgerError) -> Self {
        StatementError::Ledger(error)
    }
}

/// The stored name of a value.
pub(super) fn serialize_name<T: Serialize>(value: &T) -> Result<String, StatementError> {
    let json = serde_json::to_value(value).map_err(unreadable_json)?;
    Ok(json.as_str().unwrap_or_default().to_owned())
}

/// Parses a stored name.
pub(super) fn parse_name<T: DeserializeOwned>(word: &str) -> Result<T, StatementError> {
    serde_json::from_value(word.into()).map_err(unreadable_json)
}

/// An error for a stored value that is not valid JSON.
pub(super) fn unreadable_json(error: serde_json::Error) -> StatementError {
    LedgerError::Unreadable(error.to_string()).into()
}

/// Calls a read function with a connection and these arguments. If the connection breaks, reads again once the database
/// is back.
macro_rules! read_ledger {
    ($ledger:expr, $read:path $(, $given:expr)*) => {{
        let mut waiting = None;
        loop {
            let read = async { $read(&mut *$ledger.reader().await? $(, $given)*).await };
            if let Some(result) = $ledger.wait_or_finish(read.await, &mut waiting).await {
                break result;
            }
        }
    }};
}
pub(crate) use read_ledger;

impl Adapter {
    /// Returns the result of a read. If the database became unavailable, waits until it is back and returns `None`, so
    /// that the caller retries.
    pub(super) async fn wait_or_finish<T>(
        &self,
        read: Result<T, StatementError>,
        waiting: &mut Option<DatabaseWait>,
    ) -> Option<Result<T, LedgerError>> {
        match read {
            Err(StatementError::Sql(error)) => {
                let waiting = waiting.get_or_insert_with(|| DatabaseWait::new(self.place.clone()));
                if waiting.wait_for_recovery(&error).await {
                    None
                } else {
                    Some(self.to_ledger_result(Err(StatementError::Sql(error))))
                }
            }
            ended => Some(self.to_ledger_result(ended)),
        }
    }
}
