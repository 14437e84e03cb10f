//! Why a run stopped.

/// Why a start of a run ended early; each surface says it in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    /// A signal of this number came.
    Interrupted(u8),
    /// The ledger could not be written.
    Ledger,
    /// The results could not be written, whatever else had stopped it.
    ResultsUnwritten,
    /// Another process took the run.
    LeaseLost,
    /// The gateway refused the key.
    KeyRefused,
    /// Somebody asked for it.
    StopRequested,
    /// Too many rejections or too much doubt in a row, or an envelope that was refused as a whole.
    Breaker,
    /// The gateway could not be reached, or the connection to it could not be trusted.
    Unreachable,
    /// The gateway answered with something that its contract does not know.
    OffContract,
    /// An error came that the profile calls fatal, such as that no money is left.
    Credit,
    /// The next message would be more than the campaign's limits allow.
    Budget,
    /// Nothing may leave now, and nobody waits until something may.
    Window,
    /// Nothing may leave any more: its time is over.
    DeadlineReached,
    /// One of the reasons above; an earlier version kept no more of it.
    Halted,
    /// Only some rows were asked for, and they are through.
    Limit,
    /// What would be sent is not what was recorded: a message would differ from its intent.
    Inconsistent,
    /// A part of the engine ended early: a bug.
    Internal,
}

impl StopKind {
    /// Every kind; the signal of an interrupt is 0.
    pub const ALL: [StopKind; 17] = [
        StopKind::Interrupted(0),
        StopKind::Ledger,
        StopKind::ResultsUnwritten,
        StopKind::LeaseLost,
        StopKind::KeyRefused,
        StopKind::StopRequested,
        StopKind::Breaker,
        StopKind::Unreachable,
        StopKind::OffContract,
        StopKind::Credit,
        StopKind::Budget,
        StopKind::Window,
        StopKind::DeadlineReached,
        StopKind::Halted,
        StopKind::Limit,
        StopKind::Inconsistent,
        StopKind::Internal,
    ];

    /// The name under which it is kept.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StopKind::Interrupted(_) => "interrupted",
            StopKind::Ledger => "ledger",
            StopKind::ResultsUnwritten => "results_unwritten",
            StopKind::LeaseLost => "not_owner",
            StopKind::KeyRefused => "key_refused",
            StopKind::StopRequested => "asked",
            StopKind::Breaker => "breaker",
            StopKind::Unreachable => "unreachable",
            StopKind::OffContract => "off_contract",
            StopKind::Credit => "credit",
            StopKind::Budget => "budget",
            StopKind::Window => "window",
            StopKind::DeadlineReached => "until",
            StopKind::Halted => "halted",
            StopKind::Limit => "limit",
            StopKind::Inconsistent => "inconsistent",
            StopKind::Internal => "internal",
        }
    }

    /// The word by which programs are told of it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            StopKind::Interrupted(_) => "signal",
            StopKind::Ledger | StopKind::ResultsUnwritten | StopKind::Inconsistent => "ledger",
            StopKind::LeaseLost => "owner",
            StopKind::KeyRefused => "key",
            StopKind::StopRequested => "stop",
            StopKind::Breaker | StopKind::Halted => "breaker",
            StopKind::Unreachable
            | StopKind::OffContract
            | StopKind::Credit
            | StopKind::Budget
            | StopKind::Window
            | StopKind::DeadlineReached
            | StopKind::Limit
            | StopKind::Internal => self.name(),
        }
    }

    /// The signal that it was interrupted by.
    #[must_use]
    pub fn signal(self) -> Option<u8> {
        match self {
            StopKind::Interrupted(signal) => Some(signal),
            _ => None,
        }
    }

    /// What is kept under that name, with that signal; nothing if there is no such kind.
    #[must_use]
    pub fn from_name(name: &str, signal: Option<u8>) -> Option<Self> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name)?;
        Some(match kind {
            StopKind::Interrupted(_) => StopKind::Interrupted(signal.unwrap_or_default()),
            kind => kind,
        })
    }
}
