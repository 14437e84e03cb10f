//! SQLite adapter of the ledger: one file in WAL mode with `synchronous=FULL`.
//!
//! One task owns the write connection and commits pending changes together; a small pool serves reads.

mod backup;
mod copies;
mod dialect;
mod ledger;
mod locks;
mod opening;
mod schema;
#[expect(clippy::duplicate_mod, reason = "the queries are compiled for each database")]
#[path = "../sql/mod.rs"]
mod sql;
#[cfg(test)]
mod tests;
mod write_connection;

pub(crate) use backup::{Handover, NewBackup, ReadyBackup, create_ledger};
pub use ledger::SqliteLedger;
