//! What a change to the ledger is given, and how it fails.

use crate::ledger::LedgerError;

/// Microseconds of the wall clock when a change was asked for.
#[derive(Clone, Copy)]
pub(in crate::ledger) struct Now(pub(in crate::ledger) i64);

/// Why a query failed, before anybody knows where the ledger is.
pub(in crate::ledger) enum Failure {
    Sql(sqlx::Error),
    Ledger(LedgerError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Failure::Sql(error)
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Failure::Ledger(error)
    }
}
