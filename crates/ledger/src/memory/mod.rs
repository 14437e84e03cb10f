//! The in-memory ledger: a complete adapter without persistence.
//!
//! Only tests use it: the simulation, whose processes die while their stored data survives, and the tests of the crates
//! above. The conformance suite ensures that it behaves like SQLite. It is always compiled, because a feature for tests
//! would make Cargo build this crate and everything above it twice.

mod adapter;
mod contents;
mod copies;
mod notifications;
mod receipts;
mod schedules;
mod shards;
mod stored_run;
mod suppression;

pub use adapter::MemoryLedger;
pub use contents::LedgerContents;
pub use stored_run::StoredRun;
pub use suppression::OptOutList;
