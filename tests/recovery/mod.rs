//! Crash recovery: no recipient gets a second message, and no row is lost.

mod backups;
mod checking;
mod failpoints;
mod flips;
mod kills;
mod limits;
mod lost_ledgers;
mod rivals;
mod signals;
mod state;
mod storage;
mod stored;
mod traced;
mod witness;

pub(crate) use witness::{Tally, Witness};
