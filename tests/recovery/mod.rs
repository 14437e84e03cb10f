//! Interruptions of every kind: nobody gets a message twice, and no row is lost.

mod failpoints;
mod kills;
mod limits;
mod rivals;
mod signals;
mod storage;
mod traced;
mod witness;
