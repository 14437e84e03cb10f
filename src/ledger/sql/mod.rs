//! The records of a ledger that is a database, and the queries about them: one text for all databases.
//!
//! Each adapter takes this folder in as a module of its own and has its `dialect` beside it: the types of its driver and
//! the few words in which its SQL differs. So a query is written once, and compiled for each driver.

mod approval_rules;
mod blocks;
mod bounds;
mod chains;
mod change;
mod contacts;
mod damage;
mod days;
mod envelopes;
mod events;
mod figures;
mod forgetting;
mod gathered;
mod guard;
mod hooks;
mod hosts;
mod imported;
mod left_out;
pub(in crate::ledger) mod look;
mod notifications;
mod numbers;
mod pace;
mod places;
mod plans;
mod port;
mod receipts;
mod repeat_guard;
mod runs;
mod schedules;
mod shares;
mod spending;
pub(in crate::ledger) mod statement;
mod stops;
mod suppression;
mod upkeep;
mod words;
mod writer;
mod written;

pub(in crate::ledger) use chains::{list_runs_without_chains as runs_without_chains, record_chains};
pub(in crate::ledger) use change::{Now, StatementError};
pub(in crate::ledger) use numbers::EnvelopeNumbers;
pub(in crate::ledger) use places::LockProof;
pub(in crate::ledger) use statement::to_hex;
pub(in crate::ledger) use writer::{CommitCallback, Writer};

use super::dialect;
