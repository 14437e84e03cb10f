//! What an answer of the gateway says of each operation, and of the run.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{GatewayMessageId, OperationOutcome, ReportedChannel, Status};

/// Why a run has to stop, whatever its breaker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The gateway refused the key.
    KeyRefused,
    /// The connection cannot be trusted: the TLS handshake failed, or a redirect came.
    Connection,
    /// The gateway refused the envelope as a whole.
    EnvelopeRefused,
    /// The gateway answered with something that the contract does not know.
    OffContract,
    /// An error that the profile calls fatal came.
    FatalError,
}

/// What an answer means for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Go on.
    Go,
    /// Go on, and tell the user.
    Warn(String),
    /// The gateway could not be reached; nothing was sent. Wait, then try the same operations again.
    Unreachable(String),
    /// The time ran out, or the connection broke, after the envelope may have been read.
    Broken(String),
    /// An answer that is no answer of this contract (HTML, another HTTP status, too long).
    Strange(String),
    /// The gateway asks to slow down.
    Slow {
        /// What it said.
        reason: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// One operation of the envelope spoils it; send the halves apart.
    Split(String),
    /// Stop after this envelope.
    Stop(StopCause, String),
}

/// What an answer does otherwise than the contract says, and proves no less for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContractDeviation {
    /// A `request_id` that is a number (contract 2.3: a string).
    NumericRequestId,
    /// A `msg_id` that is a negative number (contract 2.2: a string or a number).
    NegativeMsgId,
    /// A `msg_id` that another message has as well.
    RepeatedMsgId,
    /// This HTTP status, which asks to slow down, as the answer about a message, although the profile does not name it in
    /// `trust_status`: the message is in doubt.
    UntrustedStatus(u16),
}

/// The outcomes on an envelope's operations, in their order, and what they mean for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayReply {
    /// One outcome per operation.
    pub outcomes: Vec<OperationOutcome>,
    /// What the run should do.
    pub signal: Signal,
    /// The answer's body, where a person will have to look at it.
    pub evidence: Option<String>,
    /// What is odd about it, as often as it occurs.
    pub deviations: Vec<ContractDeviation>,
}

impl GatewayReply {
    /// A reply whose answer needs no second look.
    #[must_use]
    pub fn new(outcomes: Vec<OperationOutcome>, signal: Signal) -> Self {
        Self { outcomes, signal, evidence: None, deviations: Vec::new() }
    }

    /// A reply with the same outcome on all `count` operations.
    #[must_use]
    pub fn for_all(count: usize, outcome: &OperationOutcome, signal: Signal) -> Self {
        Self::new(vec![outcome.clone(); count], signal)
    }

    /// Whether the gateway is known to have taken or refused at least one operation.
    #[must_use]
    pub fn has_proof(&self) -> bool {
        self.outcomes
            .iter()
            .any(|outcome| !matches!(outcome, OperationOutcome::InDoubt { .. } | OperationOutcome::NotSent { .. }))
    }

    /// Whether it is proven that nothing of the envelope was executed.
    #[must_use]
    pub fn is_unsent(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::NotSent { .. }))
    }

    /// How many operations have no proven outcome.
    #[must_use]
    pub fn count_in_doubt(&self) -> usize {
        self.outcomes.iter().filter(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. })).count()
    }

    /// Whether nothing is proven of any operation.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. }))
    }
}

/// What the gateway said when asked for a message's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusAnswer {
    /// It knows the message.
    Known {
        /// Its status.
        status: Status,
        /// The gateway's identifier.
        msg_id: Option<GatewayMessageId>,
        /// The channel that it is about, where that is told and known here.
        channel: Option<ReportedChannel>,
        /// When the status changed, by the gateway's clock.
        updated: Option<Timestamp>,
    },
    /// It said that it does not know the message, in its words.
    Denied(String),
    /// No usable answer.
    Unclear(String),
}
