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

pub use breaker::BreakerLimits;
pub use chain_times::ChainLifetimes;
pub use doubt::{MessageInDoubt, denial_wait};
pub use engine::send_operations;
pub use errors::ErrorCounts;
pub use event::{AfterWait, DeliveryEvent, DeliveryObserver};
pub use feed::{Feed, SendSelection, start_feed, start_share_feed};
pub use frozen::FrozenInputs;
pub use frozen_texts::{compile_frozen, compile_without_condition, for_each_text};
pub use hours::{Departure, FeedFactory, FeedFuture, SendingHours, SendingPasses, SendingRules, WallClock, ZoneSource};
pub use oddities::DeviationCounts;
pub use poll::{PendingMessage, PollCounts, StatusPoller, load_pending};
pub use reconcile::{MAX_STAY, MessagesInDoubt, RECONCILE_WAITS, Reconciler, Reconciliation};
pub use retry_question::ConfirmedFate;
pub use share_draw::ShareDraw;
pub use shared::{DrawEnd, POLL_INTERVAL, Participant, ShareSender};
pub use single::{SingleConditions, SingleEnding, send_single};
pub use single_kind::SingleKind;
pub use snapshot::Snapshot;
pub use start::{SendConditions, SendContext, SendEnding};
pub use stop::{Interrupt, Stop, StopKind};
pub use together::{SharedPace, share_size};
