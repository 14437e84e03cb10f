//! The ledger in one SQLite file, WAL, `synchronous=FULL`.
//!
//! One connection writes, owned by one task that gathers waiting changes into one commit;
//! a small pool reads.

mod adoption;
mod backup;
mod copies;
mod dialect;
mod handover;
mod holder;
mod ledger;
mod lock;
mod opening;
mod pen;
mod restoring;
mod schema;
mod soundness;
#[expect(clippy::duplicate_mod, reason = "the queries are compiled for each database")]
#[path = "../sql/mod.rs"]
mod sql;
mod sweep;
#[cfg(test)]
mod tests;
mod turn;

pub(in crate::ledger) use backup::{NewBackup, create_ledger};
pub(in crate::ledger) use handover::Handover;
pub use ledger::SqliteLedger;
pub(in crate::ledger) use restoring::ReadyBackup;
