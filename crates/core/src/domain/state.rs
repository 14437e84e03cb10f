//! States of a message in a run, and the allowed changes between them. This module does no I/O.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::OperationOutcome;

/// The reason for a row in doubt whose process ended while an intent was open.
pub const ENDED_EARLY: &str = "the process that sent it ended before the answer was recorded";

/// The reason for a skipped row whose run was cancelled.
pub const CANCELLED: &str = "cancelled";

/// The reason for a skipped row that was still unsent when another run replaced its run.
pub const REPLACED: &str = "replaced";

/// The reason for a skipped row whose number was cancelled in an earlier run of the same edition.
pub const CANCELLED_EARLIER: &str = "cancelled earlier";

/// The reason for a skipped row whose run expired.
pub const EXPIRED: &str = "expired";

/// The reason for a failed row if an earlier channel failed and the gateway never reported the last channel.
pub const FALLBACK_NOT_REPORTED: &str = "fallback not reported";

/// The state of one row of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// No attempt yet, or proven not sent and still to be tried.
    Planned,
    /// Never sent, for a reason such as an opt-out, a duplicate number or an earlier message.
    Skipped,
    /// Never sent: something about the row is wrong.
    Invalid,
    /// An intent is recorded and a process is sending the run.
    Sending,
    /// Proven not sent, and given up by a person or the run.
    NotSent,
    /// The outcome is unknown.
    InDoubt,
    /// Still in doubt after the gateway was asked about it.
    Unresolved,
    /// Counted as sent by a person or a policy.
    AssumedSent,
    /// The gateway accepted the message.
    Accepted,
    /// The gateway queued the message.
    Queued,
    /// The gateway rejected the message.
    Rejected,
    /// Delivered, perhaps only in part, and not known to be read.
    Delivered,
    /// The recipient read the message or replied to it.
    Read,
    /// Not delivered.
    Failed,
}

impl RowState {
    /// Every state, in the order of summaries.
    pub const ALL: [RowState; 14] = [
        RowState::Planned,
        RowState::Skipped,
        RowState::Invalid,
        RowState::Sending,
        RowState::NotSent,
        RowState::InDoubt,
        RowState::Unresolved,
        RowState::AssumedSent,
        RowState::Accepted,
        RowState::Queued,
        RowState::Rejected,
        RowState::Delivered,
        RowState::Read,
        RowState::Failed,
    ];

    /// Whether the message was delivered, whether or not it was also read.
    pub fn is_delivered(self) -> bool {
        matches!(self, RowState::Delivered | RowState::Read)
    }

    /// Whether the count named after this state includes messages in `state`: `delivered` includes `read`.
    pub fn includes_state(self, state: RowState) -> bool {
        self == state || (self == RowState::Delivered && state.is_delivered())
    }

    /// The state of a row that follows from the outcome of its attempt.
    pub fn from_outcome(outcome: &OperationOutcome) -> Self {
        match outcome {
            OperationOutcome::Accepted { .. } => RowState::Accepted,
            OperationOutcome::Queued { .. } => RowState::Queued,
            OperationOutcome::Rejected { .. } => RowState::Rejected,
            OperationOutcome::NotSent { .. } => RowState::Planned,
            OperationOutcome::InDoubt { .. } => RowState::InDoubt,
        }
    }

    /// The names of all states, and `undelivered` for all failed messages.
    pub const STATE_WORDS: [&str; Self::ALL.len() + 1] = {
        let mut words = ["undelivered"; Self::ALL.len() + 1];
        let mut at = 0;
        while at < Self::ALL.len() {
            words[at] = Self::ALL[at].name();
            at += 1;
        }
        words
    };

    /// The states that a word selects: the state with this name, or all states that `undelivered` covers; empty for an
    /// unknown word.
    ///
    /// Skipped and invalid rows are not undelivered: no message was sent for them.
    pub fn parse_states(word: &str) -> Vec<Self> {
        let is_excluded = |state: &Self| matches!(state, Self::Skipped | Self::Invalid) || state.is_delivered();
        match word {
            "undelivered" => Self::ALL.into_iter().filter(|state| !is_excluded(state)).collect(),
            word => Self::from_name(word).into_iter().collect(),
        }
    }

    /// The state as words in a sentence, such as `in doubt`.
    pub fn format_words(self) -> String {
        self.name().replace('_', " ")
    }

    /// The state's name in results, summaries and options.
    pub const fn name(self) -> &'static str {
        match self {
            RowState::Planned => "planned",
            RowState::Skipped => "skipped",
            RowState::Invalid => "invalid",
            RowState::Sending => "sending",
            RowState::NotSent => "not_sent",
            RowState::InDoubt => "in_doubt",
            RowState::Unresolved => "unresolved",
            RowState::AssumedSent => "assumed_sent",
            RowState::Accepted => "accepted",
            RowState::Queued => "queued",
            RowState::Rejected => "rejected",
            RowState::Delivered => "delivered",
            RowState::Read => "read",
            RowState::Failed => "failed",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether a message in this state was or might have been sent, which means that its number is guarded.
    pub fn is_guarded(self) -> bool {
        match self {
            RowState::Sending
            | RowState::InDoubt
            | RowState::Unresolved
            | RowState::AssumedSent
            | RowState::Accepted
            | RowState::Queued
            | RowState::Delivered
            | RowState::Read
            | RowState::Failed => true,
            RowState::Planned | RowState::Skipped | RowState::Invalid | RowState::NotSent | RowState::Rejected => false,
        }
    }

    /// Whether the gateway proved this state, so earlier doubts or decisions no longer explain it.
    pub fn is_proven(self) -> bool {
        self.is_with_gateway() || matches!(self, RowState::Rejected | RowState::Failed)
    }

    /// Whether the gateway has the message and reports no failure, so earlier errors no longer explain the state.
    pub fn is_with_gateway(self) -> bool {
        matches!(self, RowState::Accepted | RowState::Queued | RowState::Delivered | RowState::Read)
    }

    /// Whether a message can change from this state to `next`.
    ///
    /// Evidence only moves forward: proof replaces doubt and decisions, and only a delivery replaces a rejection or
    /// failure. Another attempt after a rejection or failure is a new message.
    pub fn can_become(self, next: RowState) -> bool {
        use RowState::{
            Accepted, AssumedSent, Delivered, Failed, InDoubt, Invalid, NotSent, Planned, Queued, Read, Rejected,
            Sending, Skipped, Unresolved,
        };
        match self {
            Planned => matches!(next, Sending | NotSent | Skipped),
            // A receipt can arrive before the answer.
            Sending => {
                matches!(next, Planned | NotSent | InDoubt | Accepted | Queued | Rejected | Delivered | Read | Failed)
            }
            InDoubt | Unresolved | AssumedSent | NotSent if self != next => {
                let is_evidence = matches!(next, Accepted | Queued | Rejected | Delivered | Read | Failed);
                let is_decision = matches!(next, AssumedSent | NotSent | Planned) && self != AssumedSent;
                is_evidence || is_decision || (self == InDoubt && next == Unresolved)
            }
            Accepted | Queued => matches!(next, Delivered | Read | Failed) || (self == Queued && next == Accepted),
            Delivered => next == Read,
            // A delivery is proof and overrides earlier reports.
            Failed | Rejected => matches!(next, Delivered | Read),
            InDoubt | Unresolved | AssumedSent | NotSent | Skipped | Invalid | Read => false,
        }
    }
}

impl fmt::Display for RowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::RowState::{
        Accepted, AssumedSent, Delivered, Failed, InDoubt, NotSent, Planned, Queued, Read, Rejected, Sending, Skipped,
        Unresolved,
    };
    use super::*;

    #[test]
    fn state_in_a_sentence_has_spaces() {
        assert_eq!((InDoubt.format_words(), Sending.format_words()), ("in doubt".to_owned(), "sending".to_owned()));
    }

    /// All allowed changes, from the sending protocol; every other pair is an error.
    const ALLOWED_CHANGES: &[(RowState, &[RowState])] = &[
        (Planned, &[Sending, NotSent, Skipped]),
        (Sending, &[Planned, NotSent, InDoubt, Accepted, Queued, Rejected, Delivered, Read, Failed]),
        (InDoubt, &[Accepted, Queued, Rejected, Delivered, Read, Failed, Unresolved, AssumedSent, NotSent, Planned]),
        (Unresolved, &[Accepted, Queued, Rejected, Delivered, Read, Failed, AssumedSent, NotSent, Planned]),
        (AssumedSent, &[Accepted, Queued, Rejected, Delivered, Read, Failed]),
        (NotSent, &[Accepted, Queued, Rejected, Delivered, Read, Failed, AssumedSent, Planned]),
        (Accepted, &[Delivered, Read, Failed]),
        (Queued, &[Accepted, Delivered, Read, Failed]),
        (Delivered, &[Read]),
        (Failed, &[Delivered, Read]),
        (Rejected, &[Delivered, Read]),
    ];

    #[test]
    fn state_changes_match_the_protocol() {
        for from in RowState::ALL {
            for to in RowState::ALL {
                let is_allowed = ALLOWED_CHANGES.iter().any(|(state, next)| *state == from && next.contains(&to));
                assert_eq!(from.can_become(to), is_allowed, "{from} -> {to}");
            }
        }
    }

    #[test]
    fn state_words_parse_and_undelivered_covers_failures() {
        for (word, state) in RowState::STATE_WORDS.into_iter().zip(RowState::ALL) {
            assert_eq!(RowState::parse_states(word), [state]);
        }
        let undelivered = RowState::parse_states(RowState::STATE_WORDS[RowState::ALL.len()]);
        assert!(undelivered.contains(&RowState::Failed) && undelivered.contains(&RowState::Planned));
        assert!(
            ![RowState::Delivered, RowState::Read, RowState::Skipped].iter().any(|state| undelivered.contains(state))
        );
        assert!(RowState::parse_states("gone").is_empty());
    }

    #[test]
    fn state_names_round_trip() {
        for state in RowState::ALL {
            assert_eq!(RowState::from_name(state.name()), Some(state));
        }
    }
}
