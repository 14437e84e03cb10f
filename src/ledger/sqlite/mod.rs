//! The ledger in one SQLite file, WAL, `synchronous=FULL`.
//!
//! One connection writes, owned by one task that gathers waiting changes into one commit;
//! a small pool reads.

mod adoption;
mod blocks;
mod bounds;
mod change;
mod checksum;
mod contacts;
mod copies;
mod days;
mod envelopes;
mod events;
mod forgetting;
mod guard;
mod holder;
mod hosts;
mod ledger;
mod left_out;
mod lock;
mod mark;
mod notifications;
mod numbers;
mod opening;
mod pace;
mod pack;
mod places;
mod plans;
mod receipts;
mod runs;
mod schedules;
mod schema;
mod soundness;
mod spending;
mod stops;
mod suppression;
#[cfg(test)]
mod tests;
mod turn;
mod upkeep;
mod words;
mod writer;

pub use ledger::SqliteLedger;
