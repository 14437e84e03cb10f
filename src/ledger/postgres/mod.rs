//! The ledger in a PostgreSQL database, shared by machines.
//!
//! In each process one connection writes, owned by one task that gathers waiting changes into one commit; the processes
//! take turns by a lock that lasts as long as a transaction. Nothing is kept between transactions on a connection, so that
//! a pooler may give each of them another one.

mod address;
mod adoption;
mod backup;
mod copies;
mod dialect;
mod leases;
mod ledger;
mod locks;
mod opening;
mod pen;
mod presence;
mod schema;
mod seen;
mod shard_copy;
mod shards;
#[expect(clippy::duplicate_mod, reason = "the queries are compiled for each database")]
#[path = "../sql/mod.rs"]
mod sql;
mod succession;
mod takeover;
#[cfg(test)]
mod tests;
mod transaction;
mod waiting;

pub use address::{PostgresAddress, PostgresAddressError};
pub use ledger::PostgresLedger;
