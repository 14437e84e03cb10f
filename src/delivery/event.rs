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

/// Somebody who is told of events.
pub type Observer = Arc<dyn Fn(DeliveryEvent) + Send + Sync>;
