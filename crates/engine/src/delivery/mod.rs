//! The sending engine, which keeps the promise never to send a message twice.
//!
//! It records an intent before each envelope and an outcome after it, keeps the rate limit, warms up, and stops rather
//! than guess. It emits [`DeliveryEvent`]s and does not know who displays them.

mod breaker;
mod engine;
mod feed;
#[cfg(test)]
mod fixtures;
mod flow_control;
mod frozen;
mod in_flight;
mod rate_gate;
mod reconcile;
mod retry;
mod sending_hours;
mod shared_run;
#[cfg(test)]
mod simulation;
mod single;
mod start;
mod status_poll;
mod submission;
mod tally;

pub use breaker::BreakerLimits;
pub use engine::send_operations;
pub use feed::{Feed, SendSelection, start_feed, start_shard_feed};
pub use frozen::{ChainLifetimes, FrozenInputs, compile_frozen, compile_without_condition, for_each_text};
pub use reconcile::{
    MAX_STAY, MessageInDoubt, MessagesInDoubt, RECONCILE_WAITS, Reconciler, Reconciliation, denial_wait,
};
pub use sending_hours::{
    Departure, FeedFactory, FeedFuture, SendingHours, SendingPasses, SendingRules, WallClock, ZoneSource,
};
pub use shared_run::{DrawEnd, POLL_INTERVAL, Participant, ShardSender, ShardSource, SharedPace, shard_size};
pub use single::{SingleConditions, SingleEnding, SingleKind, send_single};
pub use start::{
    AfterWait, DeliveryEvent, DeliveryObserver, Interrupt, SendConditions, SendContext, SendEnding, Snapshot, Stop,
    StopKind,
};
pub use status_poll::{ConfirmedFate, PendingMessage, PollCounts, StatusPoller, load_pending};
pub use tally::{DeviationCounts, ErrorCounts};
