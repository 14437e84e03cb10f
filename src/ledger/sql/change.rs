//! What a change to the ledger is given, and how it fails.

use crate::ledger::LedgerError;

/// Microseconds of the wall clock when a change was asked for.
#[derive(Clone, Copy)]
pub(in crate::ledger) struct Now(pub(in crate::ledger) i64);

/// Why a query failed, before anybody knows where the ledger is.
pub(in crate::ledger) enum StatementError {
    Sql(sqlx::Error),
    Ledger(LedgerError),
}

impl From<sqlx::Error> for StatementError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            // The value of one record, and not the database, is what cannot be read.
            sqlx::Error::ColumnDecode { .. } => StatementError::Ledger(LedgerError::Unreadable(error.to_string())),
            error => StatementError::Sql(error),
        }
    }
}

/// A record, or what is wrong with it. A failure that concerns the whole ledger remains one.
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
