//! The sending engine, which keeps the promise never to send a message twice.
//!
//! It records an intent before each envelope and an outcome after it, respects the rate limit, warms up, and stops
//! rather than guessing. It emits [`DeliveryEvent`]s and does not know who displays them.

mod breaker;
mod engine;
mod feed;
mod flow_control;
mod frozen;
mod in_flight;
mod options;
mod rate_gate;
mod reconcile;
mod retry_policy;
mod sending_hours;
mod shared_run;
#[cfg(test)]
mod simulation;
mod single;
mod snapshot;
mod status_poll;
mod submission;
mod tally;

pub use breaker::BreakerLimits;
pub use engine::send_operations;
pub use feed::{Feed, SendSelection, start_feed, start_shard_feed};
pub use frozen::{FrozenInputs, FrozenRun, compile_frozen, compile_without_condition, for_each_text};
pub use options::{AfterWait, DeliveryEvent, DeliveryObserver, Interrupt, RunOptOuts, SendContext, SendOptions};
pub use reconcile::{
    MAX_STAY, MessageInDoubt, MessagesInDoubt, RECONCILE_WAITS, Reconciler, Reconciliation, denial_wait,
};
pub use sending_hours::{
    Departure, FeedFactory, FeedFuture, SendingHours, SendingPasses, SendingRules, WallClock, ZoneSource,
};
pub use shared_run::{DrawEnd, POLL_INTERVAL, Participant, ShardSender, ShardSource, SharedPace, shard_size};
pub use single::{SingleEnding, SingleKind, send_single};
pub use snapshot::Snapshot;
pub use status_poll::{ChainLifetimes, ConfirmedStatus, PendingMessage, PollCounts, StatusPoller, load_pending};
pub use tally::{DeviationCounts, ErrorCounts, SendEnding, Stop, StopKind};

/// Outcomes and envelopes for the tests of the engine's pure parts.
#[cfg(test)]
mod fixtures {
    use std::ops::Range;
    use std::sync::Arc;

    use campaign_core::domain::{MessageId, OperationKind, OperationOutcome, Phone, Row};
    use campaign_gateway::{EncodedOperation, Envelope};

    /// One of the five outcomes.
    pub(super) fn outcome(kind: usize) -> OperationOutcome {
        let reason = || Arc::from("?");
        match kind {
            0 => OperationOutcome::Accepted { msg_id: None, parts: None, answer: None },
            1 => OperationOutcome::Queued { request_id: reason() },
            2 => OperationOutcome::Rejected { error: "No route".into() },
            3 => OperationOutcome::NotSent { reason: reason() },
            _ => OperationOutcome::InDoubt { reason: reason() },
        }
    }

    /// An envelope of these rows, counted from the first.
    pub(super) fn envelope(rows: Range<u32>) -> Envelope {
        let operation = |n: u32| {
            let (row, id) = (Row::new(n + 2), MessageId::new(u64::from(n)).unwrap());
            let phone = Phone::new(380_501_234_567 + u64::from(n)).unwrap();
            EncodedOperation {
                row,
                id,
                phone,
                kind: OperationKind::Sms,
                chain: OperationKind::Sms.into(),
                digest: [0; 8],
                json: Vec::new(),
                cost: None,
                leave_before: None,
                repeats: false,
            }
        };
        Envelope::new(rows.map(operation).collect()).unwrap()
    }
}
