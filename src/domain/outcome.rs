//! What became of an operation: what an answer proves, what a ledger keeps.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::GatewayMessageId;

/// What became of one operation of an envelope, as far as it is proven.
///
/// Stored by position: only append. A ledger holds the number of a variant and not its name, so one put before
/// others changes what was recorded of old messages, and the checksum, which is over the bytes, still agrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationOutcome {
    /// The gateway took it.
    Accepted {
        /// The gateway's identifier; a lookup or a code call may have none.
        msg_id: Option<GatewayMessageId>,
        /// Parts billed.
        parts: Option<u32>,
        /// The `data` of a lookup or a code call, as JSON.
        answer: Option<String>,
    },
    /// The gateway queued the envelope that it was in.
    Queued {
        /// The identifier of the envelope (contract 2.3).
        request_id: Arc<str>,
    },
    /// The gateway refused it: final.
    Rejected {
        /// The gateway's words.
        error: String,
    },
    /// It is proven that the gateway did not execute it.
    NotSent {
        /// The proof.
        reason: Arc<str>,
    },
    /// Nothing proves what became of it.
    InDoubt {
        /// What was seen instead of a proof.
        reason: Arc<str>,
    },
}
