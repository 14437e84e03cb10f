//! The engine that sends a run and keeps the promise never to send a message twice.
//!
//! It records an intent before each envelope and an outcome after it, keeps the pace, starts
//! carefully, and stops rather than guess. It emits [`DeliveryEvent`]s and knows nothing of who shows them.

mod bounded;
mod breaker;
mod chain_times;
mod course;
mod doubt;
mod engine;
mod errors;
mod event;
mod feed;
mod first_messages;
#[cfg(test)]
mod fixtures;
mod flight;
mod frozen;
mod frozen_texts;
mod gate;
mod hours;
mod oddities;
mod poll;
mod questions;
mod ramp;
mod reconcile;
mod retry;
mod retry_question;
mod share_draw;
mod shared;
#[cfg(test)]
mod simulation;
mod single;
mod single_kind;
mod slow_answers;
mod snapshot;
mod start;
mod stop;
mod submission;
mod tally;
mod together;
mod watchdog;

pub use breaker::Limits;
pub use chain_times::ChainTimes;
pub use doubt::{Doubt, patience};
pub use engine::send;
pub use errors::Errors;
pub use event::{AfterWait, DeliveryEvent, Observer};
pub use feed::{Feed, Selection, feed, feed_shares};
pub use frozen::FrozenInputs;
pub use frozen_texts::{compile_for_everybody, compile_frozen, each_text};
pub use hours::{Anew, Clock, Departure, Feeding, Hours, Keeping, Passes, ZoneOf};
pub use oddities::Oddities;
pub use poll::{Pending, Polled, Poller, pending};
pub use reconcile::{Doubts, LONGEST_STAY, Reconciler, Reconciliation, WAITS};
pub use retry_question::Fate;
pub use share_draw::ShareDraw;
pub use shared::{ASKS_AGAIN, Drawn, Participant, ShareSender};
pub use single::{SingleConditions, SingleEnding, send_single};
pub use single_kind::SingleKind;
pub use snapshot::Snapshot;
pub use start::{Conditions, Edges, Ending};
pub use stop::{Interrupt, Stop, StopKind};
pub use together::{Together, share_size};
