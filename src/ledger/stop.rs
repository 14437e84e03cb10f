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
    NotOwner,
    /// The gateway refused the key.
    KeyRefused,
    /// The gateway could not be reached, answered off the contract, or refused too much; or somebody asked for it.
    Halted,
    /// Only some rows were asked for, and they are through.
    Limit,
    /// What would be sent is not what was recorded: a message would differ from its intent.
    Inconsistent,
    /// A part of the engine ended early: a bug.
    Internal,
}

impl StopKind {
    /// The name under which it is kept.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            StopKind::Interrupted(_) => "interrupted",
            StopKind::Ledger => "ledger",
            StopKind::ResultsUnwritten => "results_unwritten",
            StopKind::NotOwner => "not_owner",
            StopKind::KeyRefused => "key_refused",
            StopKind::Halted => "halted",
            StopKind::Limit => "limit",
            StopKind::Inconsistent => "inconsistent",
            StopKind::Internal => "internal",
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
        let kinds = [
            StopKind::Interrupted(signal.unwrap_or_default()),
            StopKind::Ledger,
            StopKind::ResultsUnwritten,
            StopKind::NotOwner,
            StopKind::KeyRefused,
            StopKind::Halted,
            StopKind::Limit,
            StopKind::Inconsistent,
            StopKind::Internal,
        ];
        kinds.into_iter().find(|kind| kind.name() == name)
    }
}
