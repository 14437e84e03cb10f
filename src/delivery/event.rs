//! What the engine tells while it sends. It knows nothing of who listens.

use std::sync::Arc;
use std::time::Duration;

use crate::ledger::StateCounts;

/// Something that happened while sending. Counts are told only after their commit.
#[derive(Clone, Debug)]
pub enum DeliveryEvent {
    /// An envelope was settled; these are the counts of the whole run.
    Settled {
        /// Counts by state.
        counts: StateCounts,
    },
    /// Something that a person should know; the run goes on.
    Warning(String),
    /// Nothing is sent for a while.
    Waiting {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
        /// What leaves then.
        next: AfterWait,
    },
    /// The answer to an envelope has not come for this long, and is waited for so long in all.
    Slow {
        /// How long it is waited for already.
        waited: Duration,
        /// How long it is waited for at most.
        at_most: Duration,
    },
    /// Before more is sent, the gateway is asked what became of the first messages.
    Asking {
        /// How long at most.
        at_most: Duration,
    },
    /// No envelope is begun any more; those in flight are waited for.
    Stopping {
        /// Why.
        reason: String,
        /// Operations in flight.
        in_flight: usize,
        /// How long that takes at most.
        at_most: Duration,
    },
}

/// What leaves after a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWait {
    /// Messages that were not sent leave again.
    Retry,
    /// The next messages leave.
    Next {
        /// How many messages of the last request are in doubt. They are not sent again.
        in_doubt: usize,
    },
}

impl AfterWait {
    /// The next messages leave; nothing was sent before that is in doubt.
    pub const NEXT: Self = Self::Next { in_doubt: 0 };
}

/// Somebody who is told of events.
pub type DeliveryObserver = Arc<dyn Fn(DeliveryEvent) + Send + Sync>;
