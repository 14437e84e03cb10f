//! What runs by itself: when it is due, what is armed, what fires.

mod arming;
mod judge;
mod next;
mod serving;
