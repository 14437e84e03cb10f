//! Telling somebody how a run went: from the notice that is kept in the ledger to the post or the program that brings it.
//!
//! - `notice`: what is told, and several of a kind put together into one;
//! - `form`: what receivers want, purely;
//! - `post` and `command`: bringing it, with an end;
//! - `round`: taking what is due from the ledger, and keeping what became of it.
//!
//! A notification is kept with what it tells of, in one transaction, and is tried for an hour; it fails nothing and delays
//! nothing. It must not show an address: that is a secret.

mod command;
mod form;
mod notice;
mod post;
mod round;

pub use notice::{create_notification, run_notice};
pub(crate) use post::{PrivateAddressError, PublicResolver};
pub use round::{AllowedPrograms, OnNotified, notify_at_run_end, notify_until_shutdown};
