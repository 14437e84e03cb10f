//! Sending engine, which sends the messages of a run and never sends a message twice.
//!
//! The engine records an intent before each envelope and an outcome after it, respects the rate limit, warms up, and
//! stops rather than guessing. It emits [`DeliveryEvent`]s and does not know who displays them. This file contains its
//! inputs (options and context) and its events.

mod breaker;
mod engine;
mod feed;
mod flow_control;
mod frozen;
mod in_flight;
mod rate_gate;
mod reconcile;
mod reported_rejections;
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
pub use engine::{NEVER_OPENS, send_operations};
pub use feed::{Feed, SendSelection, start_feed, start_shard_feed};
pub use frozen::{
    CHANGED_TEXTS, FrozenInputs, FrozenRun, compile_frozen, compile_without_condition, for_each_text_hash,
};
pub use reconcile::{
    MAX_RECONCILE_TIME, MessageInDoubt, MessagesInDoubt, RECONCILE_WAITS, Reconciler, Reconciliation, denial_wait,
};
pub use sending_hours::{
    Departure, FeedFactory, FeedFuture, SendingHours, SendingPasses, SendingRules, WallClock, ZoneSource,
};
pub use shared_run::{DrawEnd, POLL_INTERVAL, Participant, ShardSender, ShardSource, SharedPace, shard_size};
pub use single::{SingleEnding, SingleKind, send_single};
pub use snapshot::Snapshot;
pub use status_poll::{ChainLifetimes, ConfirmedStatus, PendingMessage, PollCounts, StatusPoller, load_pending};
pub use tally::{DeviationCounts, ErrorCounts, SendEnding, Stop, StopKind};

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use tokio::sync::watch;

use campaign_core::domain::{Addressee, OperationOutcome, Phone};
use campaign_gateway::{Envelope, Gateway, GatewayReply};
use campaign_ledger::{
    Allowance, Bounds, Lease, Ledger, OptOut, OptOutReach, OptOutScope, StateCounts, rejection_source,
};

/// The context of sending: ledger, gateway, observer and interrupts.
#[derive(Clone)]
pub struct SendContext {
    /// Records each envelope before it is sent, and its outcomes afterwards.
    pub ledger: Arc<dyn Ledger>,
    /// Sends the envelopes.
    pub gateway: Arc<dyn Gateway>,
    /// Receives events.
    pub observer: DeliveryObserver,
    /// Receives interrupts.
    pub interrupt: watch::Receiver<Interrupt>,
    /// The times at which rows may be sent, and further passes. `None` if they may be sent at any time.
    pub passes: Option<Arc<SendingPasses>>,
    /// Finds recipients who opted out elsewhere since the run was prepared. `None` if no other source has opt-outs.
    pub late_opt_outs: Option<Arc<dyn LateOptOuts>>,
}

/// A future that returns those of the given numbers that opted out, or the reason why the opt-outs are unknown.
pub type OptedOutFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<Phone>, String>> + Send + 'a>>;

/// Opt-outs outside the ledger that can change while a run is being sent.
pub trait LateOptOuts: Send + Sync {
    /// Finds which of these numbers have opted out since the run was prepared. An error stops the run, because an
    /// opt-out could be missed.
    fn find_opted_out(&self, phones: Vec<Phone>) -> OptedOutFuture<'_>;
}

/// The options of sending, which do not change until the end.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The lease of the run.
    pub lease: Lease,
    /// Rows whose message was in doubt and is resent, so that it might have been sent before.
    pub repeated: RoaringBitmap,
    /// The campaign's operations per second. `None` means no limit.
    pub rate: Option<f64>,
    /// The account and its rate limit.
    pub allowance: Allowance,
    /// The bounds within which each envelope must stay, if any.
    pub bounds: Option<Arc<Bounds>>,
    /// Whether the run waits at a bound instead of stopping.
    pub waits_at_bounds: bool,
    /// The maximum number of operations in an envelope.
    pub batch: usize,
    /// The maximum number of envelopes in flight.
    pub in_flight: usize,
    /// The timeout of a request.
    pub timeout: Duration,
    /// The limits at which the circuit breaker stops the run.
    pub limits: BreakerLimits,
    /// Whether the gateway has already accepted messages of the run, or the run is a retry. Then the limit for rejected
    /// first messages does not apply.
    pub proven: bool,
    /// The time for asking about the first messages of an asynchronous run. Zero in a rehearsal.
    pub first_messages_timeout: Duration,
    /// The rate limit of a run that several workers send. `None` if this process sends alone.
    pub sharing: Option<SharedPace>,
    /// The rules that turn rejections into opt-outs, and the name of the run in the suppression list.
    pub opt_outs: Arc<RunOptOuts>,
    /// Whether a person waits for the end. Then no warnings about answers are emitted, a long silence is announced, and
    /// the time limit for an unreachable gateway counts from the start.
    pub is_attended: bool,
}

/// The rules by which a run changes the suppression list.
#[derive(Clone, Debug)]
pub struct RunOptOuts {
    /// The errors with which the gateway rejects a message to a recipient who opted out.
    pub errors: Vec<String>,
    /// The name of the run.
    pub run: String,
    /// The scope of such opt-outs.
    pub scope: OptOutScope,
    /// The gateways to which such opt-outs apply.
    pub reach: OptOutReach,
    /// The clock that dates such opt-outs.
    pub clock: fn() -> Timestamp,
}

impl RunOptOuts {
    /// The settings of a run whose rejections are never opt-outs.
    pub fn without_errors(run: String) -> Self {
        let (scope, reach) = (OptOutScope::Marketing, OptOutReach::AllGateways);
        Self { errors: Vec::new(), run, scope, reach, clock: Timestamp::now }
    }

    /// The opt-outs that the answer to an envelope reports.
    fn collect_opt_outs(&self, envelope: &Envelope, reply: &GatewayReply) -> Vec<OptOut> {
        let answered = envelope.operations().iter().zip(&reply.outcomes);
        let opt_outs = answered.filter_map(|(operation, outcome)| match outcome {
            OperationOutcome::Rejected { error } => {
                let known = self.find_error(error)?;
                Some(self.build_opt_out(operation.phone.into(), known, (self.clock)()))
            }
            _ => None,
        });
        opt_outs.collect()
    }

    /// The configured error that equals the error of a rejection. `None` if the rejection is not an opt-out.
    pub fn find_error(&self, error: &str) -> Option<&str> {
        self.errors.iter().map(String::as_str).find(|known| *known == error.trim())
    }

    /// The opt-out of a recipient whose message was rejected with a configured error.
    pub fn build_opt_out(&self, addressee: Addressee, error: &str, at: Timestamp) -> OptOut {
        OptOut {
            who: addressee,
            scope: self.scope.clone(),
            reach: self.reach,
            reason: format!("the gateway rejected a message: {error}").into(),
            source: rejection_source(&self.run).into(),
            at,
        }
    }
}

/// An event of sending. Counts are reported only after their commit.
#[derive(Clone, Debug)]
pub enum DeliveryEvent {
    /// An envelope was settled, or rows were skipped; these are the counts of the whole run.
    Settled {
        /// Counts by state.
        counts: StateCounts,
    },
    /// A warning; the run continues.
    Warning(String),
    /// Sending is paused.
    Waiting {
        /// The reason for people: a fragment without a full stop, such as `HTTP 429`.
        reason: String,
        /// The length of the pause.
        time: Duration,
        /// The kind of envelope that is sent after the pause.
        next: AfterWait,
    },
    /// An answer is late.
    Slow {
        /// The time waited so far.
        waited: Duration,
        /// The maximum wait.
        at_most: Duration,
    },
    /// The gateway is asked about the first messages before more are sent.
    Asking {
        /// The maximum time that this takes.
        at_most: Duration,
    },
    /// The run begins no more envelopes, and waits for those in flight.
    Stopping {
        /// The reason for the stop, as in [`Stop::reason`].
        reason: String,
        /// Operations in flight.
        in_flight: usize,
        /// The maximum time to wait for them.
        at_most: Duration,
    },
}

/// The kind of envelope that is sent after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWait {
    /// Unsent messages are resent.
    Retry,
    /// The next messages are sent.
    Next {
        /// The number of messages of the last request in doubt. They are not resent.
        in_doubt: usize,
    },
}

impl AfterWait {
    /// The next messages are sent, and none is in doubt.
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

impl Interrupt {
    /// The number of the signal, if one arrived.
    pub fn signal(self) -> Option<u8> {
        match self {
            Self::None => None,
            Self::Graceful(signal) | Self::Immediate(signal) => Some(signal),
        }
    }

    /// Waits for a signal, which might already have arrived, and returns its number.
    pub async fn wait_for_signal(interrupt: &mut watch::Receiver<Self>) -> u8 {
        let state = interrupt.wait_for(|interrupt| *interrupt != Self::None).await.map(|interrupt| *interrupt);
        match state.ok().and_then(Self::signal) {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// Outcomes and envelopes for the tests of the engine's pure parts.
#[cfg(test)]
mod fixtures {
    use std::ops::Range;
    use std::sync::Arc;

    use campaign_core::domain::{MessageId, OperationKind, OperationOutcome, Phone, Row};
    use campaign_gateway::{EncodedOperation, Envelope};

    /// One of the five outcomes: 0 accepted, 1 queued, 2 rejected, 3 not sent, 4 in doubt.
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

    /// An envelope for `rows`, counted from the first row of the list.
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
