//! The messaging gateway as a port, and its JSON API as the only adapter.
//!
//! The port takes encoded operations and returns an outcome for each, and a signal for the run. Pure functions here
//! decide what a reply means. The engine decides whether to retry.

mod json_api;
mod webhook_urls;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use campaign_core::domain::{
    Amount, Chain, GatewayMessageId, MessageId, Operation, OperationKind, OperationOutcome, Phone, ReportedChannel,
    Row, Status,
};

pub use json_api::{
    AnswerRules, AskBalance, AskSenders, AskStatus, Balance, CheckKey, CreateTemplate, DeleteTemplate, FailureCause,
    GatewayAddress, IdentifiedReceipt, Inquiry, InquiryFailure, JsonApi, JsonApiError, ListTemplates, MessageRecord,
    MessageTemplate, OperationForm, RedactingReader, SenderName, TemplateChannel, UnreadableReceipt, encode_operation,
    read_receipts,
};
pub use json_api::{HttpExchange, read_reply, read_status_answers};
pub use webhook_urls::{
    RunWebhookUrls, WEBHOOK_TEST_HEADER, WebhookSecretError, WebhookSecrets, WebhookTestAnswer, WebhookUrls,
    test_webhook,
};

/// A boxed future. Compared with the network, the indirection costs almost nothing.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether an envelope may still be sent, checked as late as possible.
pub type MayLeave = Arc<dyn Fn() -> bool + Send + Sync>;

/// The gateway port.
pub trait Gateway: Send + Sync {
    /// Sends an envelope once and returns an outcome for each operation, in order. Returns `None` and sends nothing if
    /// the envelope may no longer be sent when its first byte is due.
    fn submit<'a>(&'a self, envelope: &'a Envelope, may_leave: MayLeave) -> BoxFuture<'a, Option<GatewayReply>>;

    /// Asks for the status of messages by our identifiers (contract 4.3 `status`). Returns one answer for each
    /// identifier.
    fn ask_statuses<'a>(&'a self, ids: &'a [MessageId]) -> BoxFuture<'a, Vec<StatusAnswer>>;
}

/// An operation, encoded as an item of `data[]`.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedOperation {
    /// The recipient's row.
    pub row: Row,
    /// Our identifier.
    pub id: MessageId,
    /// The recipient.
    pub phone: Phone,
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The channels to try.
    pub chain: Chain,
    /// The first eight bytes of the SHA-256 of `json`.
    pub digest: [u8; 8],
    /// The operation as JSON.
    pub json: Vec<u8>,
    /// The cost on its most expensive channel. `None` if the prices are unknown.
    pub cost: Option<Amount>,
    /// The time before which the operation must be sent. `None` if there is no limit.
    pub leave_before: Option<Timestamp>,
    /// Whether the row had an earlier message, whose delivery can be reported while this operation waits.
    pub repeats: bool,
}

impl EncodedOperation {
    /// Encodes an operation for the recipient in `row`.
    pub fn encode(row: Row, operation: &Operation<'_>) -> Self {
        let Operation { id, phone, content } = operation;
        let json = encode_operation(operation);
        Self::with_digest(row, *id, *phone, content.kind, content.channel_chain(), json)
    }

    /// Encodes an operation from `form` for the recipient in `row`. `text` returns the rendered text at an index.
    pub fn from_form<'t>(
        row: Row,
        id: MessageId,
        phone: Phone,
        form: &OperationForm,
        text: impl Fn(usize) -> &'t str,
    ) -> Self {
        Self::with_digest(row, id, phone, form.kind, form.chain, form.encode_operation(id, phone, text))
    }

    fn with_digest(row: Row, id: MessageId, phone: Phone, kind: OperationKind, chain: Chain, json: Vec<u8>) -> Self {
        let hash = Sha256::digest(&json);
        let mut digest = [0; 8];
        digest.copy_from_slice(&hash[..8]);
        Self { row, id, phone, kind, chain, digest, json, cost: None, leave_before: None, repeats: false }
    }

    /// The operation with its cost.
    #[must_use]
    pub fn with_cost(self, cost: Option<Amount>) -> Self {
        Self { cost, ..self }
    }

    /// The operation with the time before which it must be sent.
    #[must_use]
    pub fn with_leave_before(self, leave_before: Option<Timestamp>) -> Self {
        Self { leave_before, ..self }
    }

    /// The operation, with a flag that says whether its row had an earlier message.
    #[must_use]
    pub fn with_repeats(self, repeats: bool) -> Self {
        Self { repeats, ..self }
    }

    /// The operation with the address of its webhook (contract 4.3 `hook`). The address is not part of the operation's
    /// digest.
    #[must_use]
    pub fn with_hook(mut self, address: &str) -> Self {
        // An operation is an object with at least a type, so a comma precedes the new key.
        if self.json.pop().is_some() {
            self.json.extend_from_slice(br#","hook":"#);
            serde_json::to_writer(&mut self.json, address).expect("a string is written to memory");
            self.json.push(b'}');
        }
        self
    }
}

impl std::fmt::Debug for EncodedOperation {
    /// Does not show the content, which can be personal data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncodedOperation").field("row", &self.row).field("id", &self.id).finish_non_exhaustive()
    }
}

/// Operations of one kind in one request. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    kind: OperationKind,
    operations: Vec<EncodedOperation>,
}

impl Envelope {
    /// An envelope of `operations`. `None` if there are no operations, because contract 2.1 requires at least one.
    ///
    /// # Panics
    /// If the operations have different kinds: the meaning of an answer depends on the kind.
    pub fn new(operations: Vec<EncodedOperation>) -> Option<Self> {
        let kind = operations.first()?.kind;
        assert!(
            operations.iter().all(|operation| operation.kind == kind),
            "all operations in an envelope have the same kind"
        );
        Some(Self { kind, operations })
    }

    /// The kind that all operations of the envelope have.
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The operations in the order in which they are sent.
    pub fn operations(&self) -> &[EncodedOperation] {
        &self.operations
    }

    /// The operations, to be sent in another envelope.
    pub fn into_operations(self) -> Vec<EncodedOperation> {
        self.operations
    }
}

/// The reason why a run must stop, independently of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// The gateway rejected the key.
    KeyRefused,
    /// The connection cannot be trusted: the TLS handshake failed, or there was a redirect.
    Connection,
    /// The gateway rejected the whole envelope.
    EnvelopeRefused,
    /// The gateway's answer does not follow the contract.
    OffContract,
    /// A fatal error according to the profile.
    FatalError,
}

/// The meaning of an answer for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Continue.
    Go,
    /// Continue, and warn the user.
    Warn(String),
    /// The gateway is unreachable, and nothing was sent. Wait, then resend the same operations.
    Unreachable(String),
    /// A timeout or a broken connection. The gateway might have read the envelope.
    Broken(String),
    /// An answer outside the contract (HTML, another HTTP status, too long).
    Strange(String),
    /// The gateway asks to slow down.
    Slow {
        /// The reason, for example `HTTP 429`.
        reason: String,
        /// The requested wait.
        retry_after: Option<Duration>,
    },
    /// The gateway rejected the envelope because of one operation. Send the halves of the envelope separately.
    Split(String),
    /// Stop after this envelope.
    Stop(StopCause, String),
}

/// A deviation from the contract that is reported in addition to the outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContractDeviation {
    /// A numeric `request_id` (contract 2.3: a string).
    NumericRequestId,
    /// A negative `msg_id` (contract 2.2: a string or a number).
    NegativeMsgId,
    /// A `msg_id` that another message also has.
    RepeatedMsgId,
    /// An HTTP status that asks to slow down and that `trust_status` in the profile does not list: the message is in
    /// doubt.
    UntrustedStatus(u16),
}

/// The outcomes of an envelope's operations, in order, and their meaning for the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayReply {
    /// One outcome per operation.
    pub outcomes: Vec<OperationOutcome>,
    /// The signal for the run.
    pub signal: Signal,
    /// The beginning of the body of the answer, if a person must review it.
    pub evidence: Option<String>,
    /// The deviations from the contract, with one entry per occurrence.
    pub deviations: Vec<ContractDeviation>,
}

impl GatewayReply {
    /// A reply without evidence or deviations.
    pub fn new(outcomes: Vec<OperationOutcome>, signal: Signal) -> Self {
        Self { outcomes, signal, evidence: None, deviations: Vec::new() }
    }

    /// A reply with the same outcome for all `count` operations.
    pub fn for_all(count: usize, outcome: &OperationOutcome, signal: Signal) -> Self {
        Self::new(vec![outcome.clone(); count], signal)
    }

    /// Whether the gateway certainly accepted or rejected at least one operation.
    pub fn has_proof(&self) -> bool {
        self.outcomes
            .iter()
            .any(|outcome| !matches!(outcome, OperationOutcome::InDoubt { .. } | OperationOutcome::NotSent { .. }))
    }

    /// Whether the reply proves that no operation was executed.
    pub fn is_unsent(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::NotSent { .. }))
    }

    /// The number of operations without a proven outcome.
    pub fn count_in_doubt(&self) -> usize {
        self.outcomes.iter().filter(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. })).count()
    }

    /// Whether no outcome is proven.
    pub fn is_in_doubt(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. }))
    }
}

/// The gateway's answer to a status inquiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusAnswer {
    /// The gateway knows the message.
    Known {
        /// The status of the message.
        status: Status,
        /// The gateway's identifier.
        msg_id: Option<GatewayMessageId>,
        /// The channel, if it is reported and known.
        channel: Option<ReportedChannel>,
        /// The time at which the status changed, by the gateway's clock.
        updated: Option<Timestamp>,
    },
    /// The gateway does not know the message. Contains its error text.
    Denied(String),
    /// No usable answer.
    Unclear(String),
}
