//! Why an inquiry has no good answer, and whether it is proven that nothing was done.

use std::time::Duration;

/// An inquiry without a good answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct InquiryFailure {
    /// What kind of failure it is.
    pub cause: FailureCause,
    /// What was seen, as a lowercase fragment in plain words.
    pub reason: String,
    /// The gateway's own words, where it said any.
    pub gateway_text: Option<String>,
    /// Whether it is proven that the gateway did not execute it.
    pub undone: bool,
}

/// The kinds of failures of an inquiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCause {
    /// The gateway refused the key (contract 5 and 7).
    KeyRefused,
    /// The gateway refused the operation; the reason has its words.
    Refused,
    /// No connection was made.
    NotConnected,
    /// The gateway asks to slow down, and maybe to wait so long.
    SlowDown(Option<Duration>),
    /// No answer came in time.
    TimedOut,
    /// No answer, or one that the contract does not know.
    Unclear,
}

impl InquiryFailure {
    /// A failure that proves that nothing was done.
    pub(super) fn undone(cause: FailureCause, reason: impl Into<String>) -> Self {
        Self { cause, reason: reason.into(), gateway_text: None, undone: true }
    }

    /// A failure that proves nothing.
    pub(super) fn unclear(reason: impl Into<String>) -> Self {
        Self { cause: FailureCause::Unclear, reason: reason.into(), gateway_text: None, undone: false }
    }
}
