//! Queries of the ledger's database adapters, shared by SQLite and PostgreSQL.
//!
//! Each adapter mounts this folder as its own module and has its `dialect` next to it. The dialect contains the types
//! of its driver and the few places where its SQL differs. A query is therefore written once and compiled for each
//! driver.

mod adapter;
mod approvals;
mod blocks;
mod consents;
mod contacts;
mod counted_messages;
mod envelope_records;
mod envelopes;
mod events;
mod forgetting;
mod guards;
mod limits;
mod maintenance;
mod notifications;
mod opt_out_records;
mod rate_limits;
mod receipts;
mod runs;
mod schedules;
mod shards;
pub(crate) mod statement;
mod suppression;
mod writer;

pub(crate) use blocks::LockProof;
pub(crate) use envelope_records::{list_runs_without_chains, record_chains};
pub(crate) use envelopes::EnvelopeNumbers;
pub(crate) use statement::{Now, StatementError, to_hex};
pub(crate) use writer::{CommitCallback, Writer};

use super::dialect;
