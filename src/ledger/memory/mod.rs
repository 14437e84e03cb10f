//! The in-memory ledger: a complete adapter without persistence.
//!
//! It is compiled only for tests: the conformance suite, which ensures that it behaves like SQLite, and the simulation,
//! whose processes die while their stored data survives.

mod adapter;
mod contents;
mod copies;
mod notifications;
mod receipts;
mod schedules;
mod shards;
mod stored_run;
mod suppression;

pub(crate) use adapter::MemoryLedger;
pub(crate) use contents::LedgerContents;
pub(crate) use stored_run::StoredRun;
