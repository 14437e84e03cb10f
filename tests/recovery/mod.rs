//! Interruptions of every kind: nobody gets a message twice, and no row is lost.

mod backups;
mod checking;
mod failpoints;
mod flips;
mod kills;
mod limits;
mod lost;
mod rivals;
mod signals;
mod state;
mod storage;
mod stored;
mod traced;
mod witness;

pub(crate) use witness::{Tally, Witness};
