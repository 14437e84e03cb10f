//! What a change to the ledger is given, and how it fails.

use std::path::Path;

use super::writer::storage;
use crate::ledger::LedgerError;

/// Microseconds of the wall clock when a change was asked for.
#[derive(Clone, Copy)]
pub(super) struct Now(pub(super) i64);

/// Why a query failed, before the file's name is known.
pub(super) enum Failure {
    Sql(sqlx::Error),
    Ledger(LedgerError),
}

impl Failure {
    pub(super) fn at(self, path: &Path) -> LedgerError {
        match self {
            Failure::Sql(error) => storage(path, &error),
            Failure::Ledger(error) => error,
        }
    }
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
