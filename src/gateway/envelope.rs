//! What is sent in one request.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::OperationForm;
use crate::domain::{Amount, Chain, MessageId, Operation, OperationKind, Phone, Row};

/// One operation, encoded as it will stand in `data[]`.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedOperation {
    /// The recipient's row.
    pub row: Row,
    /// Our identifier.
    pub id: MessageId,
    /// The recipient.
    pub phone: Phone,
    /// What kind it is.
    pub kind: OperationKind,
    /// The channels that it tries.
    pub chain: Chain,
    /// The first eight bytes of the SHA-256 of `json`.
    pub digest: [u8; 8],
    /// The operation as JSON.
    pub json: Vec<u8>,
    /// What it costs by its dearest channel; nothing where nobody knows the prices.
    pub cost: Option<Amount>,
    /// The moment before which it has to leave; nothing where it may leave at any time.
    pub leave_before: Option<Timestamp>,
    /// Whether the row had a message before, which may be reported as delivered while this one waits.
    pub repeats: bool,
}

impl EncodedOperation {
    /// Encodes an operation for the recipient in `row`.
    #[must_use]
    pub fn encode(row: Row, operation: &Operation<'_>) -> Self {
        let Operation { id, phone, content } = operation;
        Self::with_digest(
            row,
            (*id, *phone),
            (content.kind, content.channel_chain()),
            super::encode_operation(operation),
        )
    }

    /// Encodes an operation of that form for the recipient in `row`; `text` gives the text at a place among those that are filled.
    #[must_use]
    pub fn from_form<'t>(
        row: Row,
        (id, phone): (MessageId, Phone),
        form: &OperationForm,
        text: impl Fn(usize) -> &'t str,
    ) -> Self {
        Self::with_digest(row, (id, phone), (form.kind, form.chain), form.encode_operation(id, phone, text))
    }

    fn with_digest(
        row: Row,
        (id, phone): (MessageId, Phone),
        (kind, chain): (OperationKind, Chain),
        json: Vec<u8>,
    ) -> Self {
        let hash = Sha256::digest(&json);
        let mut digest = [0; 8];
        digest.copy_from_slice(&hash[..8]);
        Self { row, id, phone, kind, chain, digest, json, cost: None, leave_before: None, repeats: false }
    }

    /// The same with what it costs.
    #[must_use]
    pub fn with_cost(self, cost: Option<Amount>) -> Self {
        Self { cost, ..self }
    }

    /// The same with the moment before which it has to leave.
    #[must_use]
    pub fn with_leave_before(self, leave_by: Option<Timestamp>) -> Self {
        Self { leave_before: leave_by, ..self }
    }

    /// The same for a row that had a message before, or had none.
    #[must_use]
    pub fn with_repeats(self, repeats: bool) -> Self {
        Self { repeats, ..self }
    }

    /// The same with the address of its webhook (contract 4.3 `hook`), which its digest does not know.
    #[must_use]
    pub fn with_hook(mut self, address: &str) -> Self {
        // An operation is an object with its type at least.
        if self.json.pop().is_some() {
            self.json.extend_from_slice(br#","hook":"#);
            serde_json::to_writer(&mut self.json, address).expect("a string is written to memory");
            self.json.push(b'}');
        }
        self
    }
}

impl std::fmt::Debug for EncodedOperation {
    /// Shows no content: it may hold a person's data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EncodedOperation").field("row", &self.row).field("id", &self.id).finish_non_exhaustive()
    }
}

/// Operations of one kind that travel together; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    kind: OperationKind,
    operations: Vec<EncodedOperation>,
}

impl Envelope {
    /// An envelope of these operations, unless there are none (contract 2.1: at least one).
    ///
    /// # Panics
    /// When they are of several kinds: what an answer proves depends on it.
    #[must_use]
    pub fn new(operations: Vec<EncodedOperation>) -> Option<Self> {
        let kind = operations.first()?.kind;
        assert!(operations.iter().all(|operation| operation.kind == kind), "an envelope is of one kind");
        Some(Self { kind, operations })
    }

    /// The kind of all its operations.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        self.kind
    }

    /// The operations in the order in which they are sent.
    #[must_use]
    pub fn operations(&self) -> &[EncodedOperation] {
        &self.operations
    }

    /// The operations, to be sent in another envelope.
    #[must_use]
    pub fn into_operations(self) -> Vec<EncodedOperation> {
        self.operations
    }
}
