//! Proven outcomes of operations, and errors that sending again does not fix.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::GatewayMessageId;

/// The proven outcome of one operation of an envelope.
///
/// Stored by position: only append variants. A ledger holds the number of a variant instead of its name, so a variant
/// inserted before others would change what old messages mean, and the checksum over the bytes would not detect it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationOutcome {
    /// The gateway accepted the operation.
    Accepted {
        /// The gateway's identifier; a lookup or a code call may have none.
        msg_id: Option<GatewayMessageId>,
        /// The number of billed parts.
        parts: Option<u32>,
        /// The `data` of a lookup or a code call, as JSON.
        answer: Option<String>,
    },
    /// The gateway queued the envelope.
    Queued {
        /// The identifier of the envelope (contract 2.3).
        request_id: Arc<str>,
    },
    /// The gateway rejected the operation; this is final.
    Rejected {
        /// The error in the gateway's words.
        error: String,
    },
    /// The gateway provably did not execute the operation.
    NotSent {
        /// The proof.
        reason: Arc<str>,
    },
    /// The outcome is unknown.
    InDoubt {
        /// What was observed instead of a proof.
        reason: Arc<str>,
    },
}

/// An error that sending the message again does not fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermanentError {
    /// The number is not a valid phone number.
    InvalidNumber,
    /// The recipient opted out at the gateway or the operator.
    OptedOut,
    /// The text is empty.
    EmptyText,
}

/// Parts of errors and statuses, in lower case: first those of the contract (7) and the platform, then those of other
/// platforms.
const ERROR_PARTS: [(PermanentError, &[&str]); 3] = [
    (
        PermanentError::InvalidNumber,
        &[
            "valid receiver phone number",
            "invalid destination",
            "invalid number",
            "invalid phone",
            "invalid msisdn",
            "wrong number",
        ],
    ),
    (
        PermanentError::OptedOut,
        &["opted out", "opt-out", "unsubscribed", "blacklist", "black list", "blocklist", "stop list", "stop-list"],
    ),
    (PermanentError::EmptyText, &["please enter sms text", "empty text"]),
];

impl PermanentError {
    /// The kind of a gateway error or status. `None` if sending again can help, or the error is unknown.
    #[must_use]
    pub fn classify(error: &str) -> Option<Self> {
        let error = error.to_lowercase();
        let known = ERROR_PARTS.iter().find(|(_, signs)| signs.iter().any(|sign| error.contains(sign)));
        known.map(|(kind, _)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Status;

    #[test]
    fn permanent_errors_are_classified_by_gateway_text() {
        for (error, kind) in [
            ("Please enter valid receiver phone number", Some(PermanentError::InvalidNumber)),
            (Status::InvalidDestination.name(), Some(PermanentError::InvalidNumber)),
            ("Number is in Stop List", Some(PermanentError::OptedOut)),
            ("Please enter SMS text", Some(PermanentError::EmptyText)),
            ("No route", None),
            ("Not enough money", None),
            ("Error in Alpha-name", None),
            (Status::InvalidSource.name(), None),
            ("", None),
        ] {
            assert_eq!(PermanentError::classify(error), kind, "{error}");
        }
    }
}
