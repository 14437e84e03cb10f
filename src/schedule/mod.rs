//! The daemon that starts what is armed: each occurrence once, as it was agreed to, and nothing else.
//!
//! It reads what is armed from the ledger, waits by the clock of its adapters, and has [`crate::runs`] send. What it does is
//! told as [`ScheduleEvent`]s; it knows no words, terminals or signals. What is due is decided by pure functions (`due`).

mod attend;
mod daemon;
mod damage;
mod due;
mod event;
mod list_watch;
mod notices;
mod post;
mod starter;
#[cfg(test)]
mod tests;
mod unapproved;

pub use daemon::Daemon;
pub use due::{DueOccurrences, find_due, lateness};
pub use event::{ScheduleEvent, ScheduleObserver, SkipReason};
pub use starter::{RunStarter, Starter};
