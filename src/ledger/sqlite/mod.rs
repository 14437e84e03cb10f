//! The ledger in one SQLite file, WAL, `synchronous=FULL`.
//!
//! One connection writes, owned by one task that gathers waiting changes into one commit;
//! a small pool reads.

mod checksum;
mod envelopes;
mod events;
mod ledger;
mod mark;
mod pack;
mod runs;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

pub use ledger::SqliteLedger;
