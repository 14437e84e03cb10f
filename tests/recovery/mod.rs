//! Interruptions of every kind: nobody gets a message twice, and no row is lost.

mod kills;
mod rivals;
mod signals;
