//! Statements, and what they answer with.

use sqlx::query::{Query, QueryScalar};
use sqlx::{ColumnIndex, FromRow, Row as _, SqlSafeStr};

use super::change::StatementError;
use super::dialect::{self, Database, Record};
use crate::domain::Row;
use crate::ledger::LedgerError;

type SqlArguments = <Database as sqlx::Database>::Arguments;

/// A statement, and what is bound to it.
pub(in crate::ledger) type SqlStatement = Query<'static, Database, SqlArguments>;

/// A statement.
pub(in crate::ledger) fn query(sql: impl SqlSafeStr) -> SqlStatement {
    sqlx::query(sql).persistent(dialect::CACHES_STATEMENTS)
}

/// A statement that answers with one column.
pub(in crate::ledger) fn scalar<T>(sql: impl SqlSafeStr) -> QueryScalar<'static, Database, T, SqlArguments>
where
    (T,): for<'r> FromRow<'r, Record>,
{
    sqlx::query_scalar(sql).persistent(dialect::CACHES_STATEMENTS)
}

/// The bytes of a text in hexadecimal digits.
pub(in crate::ledger) fn to_hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// What can be read of a text in a damaged record.
pub(super) fn read_lossy(record: &Record, column: &str) -> String {
    let bytes: Vec<u8> = record.try_get_unchecked(column).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A whole number of a record that is never large; databases have signed ones only.
pub(super) fn read_u32(record: &Record, column: impl ColumnIndex<Record>) -> Result<u32, StatementError> {
    to_u32(record.try_get(column)?)
}

/// The same as it comes alone.
pub(super) fn to_u32(number: i64) -> Result<u32, StatementError> {
    u32::try_from(number).map_err(|_| LedgerError::Unreadable(format!("the number {number} is out of range")).into())
}

/// A row of a list, of a record.
pub(super) fn read_row_number(record: &Record, column: impl ColumnIndex<Record>) -> Result<Row, StatementError> {
    read_u32(record, column).map(Row::new)
}
