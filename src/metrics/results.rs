//! What may become of what a server does, each with its word.

/// What became of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiptResult {
    /// It was new, and is in the ledger.
    Kept,
    /// It told what was known.
    Repeated,
    /// Nobody gave the address that it came to.
    Forged,
    /// It names another message than its address.
    Contradicting,
    /// It came to the account's own address, and is asked about.
    Notice,
    /// It is about nothing that we know.
    Unknown,
    /// It cannot be read.
    Unreadable,
    /// Its sender was too fast.
    Slowed,
    /// The ledger could not keep it.
    NotKept,
}

impl ReceiptResult {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Repeated => "repeated",
            Self::Forged => "forged",
            Self::Contradicting => "contradicting",
            Self::Notice => "notice",
            Self::Unknown => "unknown",
            Self::Unreadable => "unreadable",
            Self::Slowed => "slowed",
            Self::NotKept => "not_kept",
        }
    }
}

/// What became of an occurrence of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OccurrenceResult {
    /// Its run began.
    Fired,
    /// It was missed by more than its grace.
    Missed,
    /// The run before it was still going.
    StillRunning,
    /// The campaign was changed since it was armed.
    Changed,
    /// Its run could not begin.
    Refused,
}

impl OccurrenceResult {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Missed => "missed",
            Self::StillRunning => "still_running",
            Self::Changed => "changed",
            Self::Refused => "refused",
        }
    }
}
