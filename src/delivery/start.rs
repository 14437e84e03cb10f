//! What a start is given, and what it gives back.

use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringBitmap;
use tokio::sync::watch;

use super::breaker::BreakerLimits;
use super::errors::ErrorCounts;
use super::event::DeliveryObserver;
use super::hours::SendingPasses;
use super::oddities::DeviationCounts;
use super::stop::{Interrupt, Stop};
use super::together::SharedPace;
use crate::domain::{Endpoint, OperationOutcome};
use crate::gateway::Gateway;
use crate::ledger::{Allowance, BilledParts, Bounds, Lease, Ledger, StateCounts};

/// Whom a start deals with: where it records, whom it sends to, who listens, and who may ask it to end.
#[derive(Clone)]
pub struct SendContext {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The gateway.
    pub gateway: Arc<dyn Gateway>,
    /// Who is told what happens.
    pub observer: DeliveryObserver,
    /// What the outside asks.
    pub interrupt: watch::Receiver<Interrupt>,
    /// When rows may leave, and how they come again; nothing where they may at any time.
    pub passes: Option<Arc<SendingPasses>>,
}

/// The conditions under which a run is sent.
#[derive(Clone, Debug)]
pub struct SendConditions {
    /// The run, and by what right it is sent.
    pub lease: Lease,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Rows whose message was in doubt and is sent again: it may have gone out before.
    pub repeated: RoaringBitmap,
    /// The campaign's operations per second; `None` does not wait.
    pub rate: Option<f64>,
    /// The account whose pace it takes from.
    pub account: Allowance,
    /// What each envelope has to keep within; nothing where there are no bounds.
    pub bounds: Option<Arc<Bounds>>,
    /// Whether it waits until something may leave again; else it stops.
    pub waits_at_bounds: bool,
    /// The most operations of an envelope.
    pub batch: usize,
    /// The most envelopes at a time.
    pub in_flight: usize,
    /// The longest time of one request.
    pub timeout: Duration,
    /// When to stop.
    pub limits: BreakerLimits,
    /// Whether the gateway has taken messages of the run already, or these go out again: then a first rejection says
    /// nothing of the others.
    pub proven: bool,
    /// How long the first messages of an asynchronous start are asked about; zero in a rehearsal.
    pub first_messages: Duration,
    /// How several processes send the run together; nothing where this one does alone.
    pub sharing: Option<SharedPace>,
    /// Whether a person waits for the end: it is told what came of it then and a long silence before, and a gateway
    /// that takes nothing is tried from the start on for no longer than it may be out of reach.
    pub is_attended: bool,
}

impl SendEnding {
    /// The end of a start that went on where another one ended.
    #[must_use]
    pub fn merge(self, next: Self) -> Self {
        let mut errors = self.errors;
        errors.merge(next.errors);
        Self {
            sent: self.sent + next.sent,
            opted_out: self.opted_out + next.opted_out,
            parts: self.parts.plus(next.parts),
            errors,
            oddities: self.oddities.merge(next.oddities),
            lag: self.lag.max(next.lag),
            expired: self.expired || next.expired,
            ..next
        }
    }
}

/// How sending ended.
#[derive(Clone, Debug, Default)]
pub struct SendEnding {
    /// Why it stopped before the last row; nothing when all were tried.
    pub stopped: Option<Stop>,
    /// Counts by state of the whole run, as they are on the disk.
    pub counts: StateCounts,
    /// Messages of this start that went out, or may have.
    pub sent: u64,
    /// Rows of this start that were left out because their people opted out meanwhile.
    pub opted_out: u64,
    /// Parts billed in this start, as far as the gateway told.
    pub parts: BilledParts,
    /// The errors of this start.
    pub errors: ErrorCounts,
    /// What was odd about the answers of this start.
    pub oddities: DeviationCounts,
    /// How late the gateway was seen to know a message.
    pub lag: Option<Duration>,
    /// Whether what is left has no time any more.
    pub expired: bool,
    /// What became of what was sent last, as it is on the disk; nothing while that is on its way.
    pub outcome: Option<OperationOutcome>,
}
