//! The ledger in memory: the whole port, and nothing survives it.
//!
//! Only tests use it: the conformance suite, which holds it to what SQLite keeps, and the simulation, whose processes die
//! while what they had on this disk stays. So it is compiled for tests alone.

mod adapter;
mod book;
mod bounds;
mod contents;
mod copies;
mod forgetting;
mod notifications;
mod pace;
mod plans;
mod receipts;
mod repeat_guard;
mod schedules;
mod shares;
mod suppression;

pub(crate) use adapter::MemoryLedger;
pub(crate) use book::StoredRun;
pub(crate) use contents::LedgerContents;
