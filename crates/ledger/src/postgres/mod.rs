//! PostgreSQL adapter of the ledger, which several machines can share.
//!
//! In each process, one task owns the write connection and commits pending changes together. Processes take turns
//! through a transaction-level advisory lock. A connection keeps no state between transactions, so a pooler can give
//! each transaction a different connection.

mod address;
mod copies;
mod dialect;
mod ledger;
mod locks;
mod opening;
#[expect(clippy::duplicate_mod, reason = "the queries are compiled for each database")]
#[path = "../sql/mod.rs"]
mod sql;
#[cfg(test)]
mod tests;
mod transaction;
mod transfer;
mod write_connection;

pub use address::{PostgresAddress, PostgresAddressError};
pub use ledger::PostgresLedger;
