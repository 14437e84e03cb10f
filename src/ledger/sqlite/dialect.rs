//! What the queries of a ledger are written in here: SQLite's types, and its words where databases differ.

use std::fs::File;

pub(super) use sqlx::Sqlite as Database;
pub(super) use sqlx::SqliteConnection as Connection;
use sqlx::pool::PoolConnection;
pub(super) use sqlx::sqlite::SqliteRow as Record;

pub(super) use super::ledger::SqliteLedger as Adapter;

/// What keeps a lock as long as it is there.
pub(super) type Lock = File;
/// A connection that only reads.
pub(super) type Reader = PoolConnection<Database>;

/// Whether the driver may remember statements from one query to the next.
pub(super) const REMEMBERS: bool = true;

/// The elements of a JSON list that is bound as this parameter: a table with the column `value`.
macro_rules! given {
    ($parameter:literal) => {
        concat!("json_each(", $parameter, ")")
    };
}
pub(super) use given;
