//! What runs by itself: when it is due, what is armed, what fires.

mod judge;
mod next;
