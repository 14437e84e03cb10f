//! The reason why a run stopped.

/// The reason why a run stopped early. Each surface has its own texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopKind {
    /// A signal with this number arrived.
    Interrupted(u8),
    /// The ledger or the stored inputs of the run could not be read, or the ledger could not be written.
    Ledger,
    /// The results could not be written. This takes precedence over other kinds.
    ResultsUnwritten,
    /// Another process claimed the run.
    LeaseLost,
    /// The gateway rejected the key.
    KeyRefused,
    /// A stop was requested.
    StopRequested,
    /// The circuit breaker opened: too many rejections or messages in doubt, or a request that was rejected as a whole.
    Breaker,
    /// The gateway could not be reached, or the connection was not trustworthy.
    Unreachable,
    /// The gateway's answer violates its contract.
    OffContract,
    /// The profile declares the error fatal, for example insufficient funds.
    Credit,
    /// The next message exceeds the campaign's limits.
    Budget,
    /// No window is open, and the run does not wait for one.
    Window,
    /// The deadline has passed.
    DeadlineReached,
    /// Any of the kinds above; an earlier version did not record which one.
    Halted,
    /// The requested part of the rows is complete.
    Limit,
    /// A message differs from its recorded intent, or an input of the run can no longer be read.
    Inconsistent,
    /// A part of the engine ended unexpectedly: a bug.
    Internal,
}

impl StopKind {
    /// All kinds; the signal of an interrupt is 0.
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

    /// The stored name.
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

    /// The name in JSON output.
    pub fn json_name(self) -> &'static str {
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

    /// The signal that interrupted the run. `None` for other kinds of stop.
    pub fn signal(self) -> Option<u8> {
        match self {
            StopKind::Interrupted(signal) => Some(signal),
            _ => None,
        }
    }

    /// The kind with this stored name and signal. `None` for unknown names.
    pub fn from_name(name: &str, signal: Option<u8>) -> Option<Self> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name)?;
        Some(match kind {
            StopKind::Interrupted(_) => StopKind::Interrupted(signal.unwrap_or_default()),
            kind => kind,
        })
    }

    /// The severity of a stop. Of several stops, the most severe is reported.
    pub fn severity(self) -> u8 {
        match self {
            Self::Ledger | Self::ResultsUnwritten => 5,
            Self::Interrupted(_) => 4,
            Self::LeaseLost => 3,
            Self::KeyRefused => 2,
            Self::StopRequested
            | Self::Breaker
            | Self::Unreachable
            | Self::OffContract
            | Self::Credit
            | Self::Budget
            | Self::Window
            | Self::Halted
            | Self::Inconsistent
            | Self::Internal => 1,
            Self::Limit | Self::DeadlineReached => 0,
        }
    }
}
