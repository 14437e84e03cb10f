//! Inputs of the sending engine: options and context; and the events that it emits.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use tokio::sync::watch;

use super::breaker::BreakerLimits;
use super::sending_hours::SendingPasses;
use super::shared_run::SharedPace;
use campaign_core::domain::OperationOutcome;
use campaign_gateway::{Envelope, Gateway, GatewayReply};
use campaign_ledger::{
    Allowance, Bounds, Lease, Ledger, OptOut, OptOutReach, OptOutScope, StateCounts, rejection_source,
};

/// The context of sending: ledger, gateway, observer and interrupts.
#[derive(Clone)]
pub struct SendContext {
    /// The ledger.
    pub ledger: Arc<dyn Ledger>,
    /// The gateway.
    pub gateway: Arc<dyn Gateway>,
    /// Receives events.
    pub observer: DeliveryObserver,
    /// Receives interrupts.
    pub interrupt: watch::Receiver<Interrupt>,
    /// When rows may leave, and further passes. `None` if they may leave at any time.
    pub passes: Option<Arc<SendingPasses>>,
}

/// The options of sending, which stay the same until the end.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The lease of the run.
    pub lease: Lease,
    /// Rows whose message was in doubt and is resent, so that it may have been sent before.
    pub repeated: RoaringBitmap,
    /// The campaign's operations per second. `None` means no limit.
    pub rate: Option<f64>,
    /// The account and its rate limit.
    pub allowance: Allowance,
    /// The bounds that each envelope must keep, if any.
    pub bounds: Option<Arc<Bounds>>,
    /// Whether the run waits at a bound instead of stopping.
    pub waits_at_bounds: bool,
    /// The maximum number of operations in an envelope.
    pub batch: usize,
    /// The maximum number of envelopes in flight.
    pub in_flight: usize,
    /// The timeout of a request.
    pub timeout: Duration,
    /// When to stop.
    pub limits: BreakerLimits,
    /// Whether the gateway has already accepted messages of the run, or these are resends. Then a first rejection says
    /// nothing about the others.
    pub proven: bool,
    /// The time for asking about the first messages of an asynchronous run. Zero in a rehearsal.
    pub first_messages: Duration,
    /// How several workers send the run. `None` if this process sends alone.
    pub sharing: Option<SharedPace>,
    /// How rejections become opt-outs, and the name of the run in the suppression list.
    pub opt_outs: Arc<RunOptOuts>,
    /// Whether a person waits for the end: warnings before it are suppressed, a long silence is announced, and the time
    /// for an unreachable gateway counts from the start.
    pub is_attended: bool,
}

/// How a run changes the suppression list.
#[derive(Clone, Debug)]
pub struct RunOptOuts {
    /// The errors of rejected messages that mean an opt-out.
    pub errors: Vec<String>,
    /// The name of the run.
    pub run: String,
    /// What such opt-outs cover.
    pub scope: OptOutScope,
    /// The gateways that they apply to.
    pub reach: OptOutReach,
    /// The clock for their time.
    pub clock: fn() -> Timestamp,
}

impl RunOptOuts {
    /// The settings of a run whose rejections are never opt-outs.
    #[must_use]
    pub fn without_errors(run: String) -> Self {
        let (scope, reach) = (OptOutScope::Marketing, OptOutReach::AllGateways);
        Self { errors: Vec::new(), run, scope, reach, clock: Timestamp::now }
    }

    /// The opt-outs that the answer to an envelope reports.
    pub(super) fn collect_opt_outs(&self, envelope: &Envelope, reply: &GatewayReply) -> Vec<OptOut> {
        let answered = envelope.operations().iter().zip(&reply.outcomes);
        let refusals = answered.filter_map(|(operation, outcome)| match outcome {
            OperationOutcome::Rejected { error } => {
                let known = self.errors.iter().find(|known| **known == *error.trim())?;
                Some(OptOut {
                    who: operation.phone.into(),
                    scope: self.scope.clone(),
                    reach: self.reach,
                    reason: format!("the gateway rejected a message: {known}").into(),
                    source: rejection_source(&self.run).into(),
                    at: (self.clock)(),
                })
            }
            _ => None,
        });
        refusals.collect()
    }
}

/// An event of sending. Counts are reported only after their commit.
#[derive(Clone, Debug)]
pub enum DeliveryEvent {
    /// An envelope was settled; these are the counts of the whole run.
    Settled {
        /// Counts by state.
        counts: StateCounts,
    },
    /// A warning; the run continues.
    Warning(String),
    /// Sending is paused.
    Waiting {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
        /// What leaves after the pause.
        next: AfterWait,
    },
    /// An answer is late: the time waited so far, and the maximum.
    Slow {
        /// The time waited so far.
        waited: Duration,
        /// The maximum wait.
        at_most: Duration,
    },
    /// Before sending more, the gateway is asked about the first messages.
    Asking {
        /// How long at most.
        at_most: Duration,
    },
    /// No further envelope begins; those in flight are waited for.
    Stopping {
        /// Why.
        reason: String,
        /// Operations in flight.
        in_flight: usize,
        /// The maximum time.
        at_most: Duration,
    },
}

/// What leaves after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWait {
    /// Unsent messages are resent.
    Retry,
    /// The next messages leave.
    Next {
        /// The number of messages of the last request in doubt. They are not resent.
        in_doubt: usize,
    },
}

impl AfterWait {
    /// The next messages leave, and none is in doubt.
    pub const NEXT: Self = Self::Next { in_doubt: 0 };
}

/// A receiver of events.
pub type DeliveryObserver = Arc<dyn Fn(DeliveryEvent) + Send + Sync>;

/// An interrupt of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interrupt {
    /// No interrupt.
    #[default]
    None,
    /// The first signal, with its number: begin nothing new, wait for envelopes in flight.
    Graceful(u8),
    /// The second signal, with its number: exit at once. Envelopes in flight stay in doubt.
    Immediate(u8),
}
