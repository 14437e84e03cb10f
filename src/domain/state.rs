//! The states of a message and the table of changes between them. Pure.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Outcome;

/// Why a row is in doubt whose process ended with an intent open.
pub const ENDED_EARLY: &str = "the process that sent it ended before the answer was recorded";

/// Why a row is skipped whose run was stopped for good.
pub const CANCELLED: &str = "cancelled";

/// The reason for a row that its run did not send before it was replaced.
pub const REPLACED: &str = "replaced";

/// Why a row is skipped whose number was cancelled in an earlier run of the same edition.
pub const CANCELLED_EARLIER: &str = "cancelled earlier";

/// Why a row is skipped whose run had its time.
pub const EXPIRED: &str = "expired";

/// The reason of a failed row with a failed earlier channel, if the gateway never reported its last channel.
pub const FALLBACK_NOT_REPORTED: &str = "fallback not reported";

/// What is known of one row of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No attempt yet, or proven not sent and still to be tried.
    Planned,
    /// Never sent: already sent to, or a duplicate.
    Skipped,
    /// Never sent: something about the row is wrong.
    Invalid,
    /// An intent is recorded and a process has the run.
    Sending,
    /// Proven not sent, and a person or the run gave it up.
    NotSent,
    /// Nothing proves what became of it.
    InDoubt,
    /// In doubt, and everything that could be asked was asked.
    Unresolved,
    /// A person or the policy decided that it went out.
    AssumedSent,
    /// The gateway took it.
    Accepted,
    /// The gateway queued it.
    Queued,
    /// The gateway refused it.
    Rejected,
    /// It arrived.
    Delivered,
    /// It was read.
    Read,
    /// It did not arrive.
    Failed,
}

impl State {
    /// Every state, in the order in which summaries show them.
    pub const ALL: [State; 14] = [
        State::Planned,
        State::Skipped,
        State::Invalid,
        State::Sending,
        State::NotSent,
        State::InDoubt,
        State::Unresolved,
        State::AssumedSent,
        State::Accepted,
        State::Queued,
        State::Rejected,
        State::Delivered,
        State::Read,
        State::Failed,
    ];

    /// Whether the message reached its recipient, read or not.
    #[must_use]
    pub fn is_delivered(self) -> bool {
        matches!(self, State::Delivered | State::Read)
    }

    /// Whether the figure for people with this state's name counts a message in that state: `delivered` includes `read`.
    #[must_use]
    pub fn covers(self, state: State) -> bool {
        self == state || (self == State::Delivered && state.is_delivered())
    }

    /// The state of a row by the outcome of its attempt alone.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Accepted { .. } => State::Accepted,
            Outcome::Queued { .. } => State::Queued,
            Outcome::Rejected { .. } => State::Rejected,
            Outcome::NotSent { .. } => State::Planned,
            Outcome::InDoubt { .. } => State::InDoubt,
        }
    }

    /// The names of all states, and `undelivered` for all that was meant to arrive and did not.
    pub const WORDS: [&str; 15] = [
        "planned",
        "skipped",
        "invalid",
        "sending",
        "not_sent",
        "in_doubt",
        "unresolved",
        "assumed_sent",
        "accepted",
        "queued",
        "rejected",
        "delivered",
        "read",
        "failed",
        "undelivered",
    ];

    /// The states that a word means: its own, or all that `undelivered` covers; none where it is no such word.
    ///
    /// Who was left out or has no valid number is not undelivered: nothing was ever meant to reach them.
    #[must_use]
    pub fn meant_by(word: &str) -> Vec<Self> {
        let apart = |state: &Self| matches!(state, Self::Skipped | Self::Invalid) || state.is_delivered();
        match word {
            "undelivered" => Self::ALL.into_iter().filter(|state| !apart(state)).collect(),
            word => Self::from_name(word).into_iter().collect(),
        }
    }

    /// The state in a sentence, such as `in doubt`.
    #[must_use]
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }

    /// The state's name in results, summaries and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            State::Planned => "planned",
            State::Skipped => "skipped",
            State::Invalid => "invalid",
            State::Sending => "sending",
            State::NotSent => "not_sent",
            State::InDoubt => "in_doubt",
            State::Unresolved => "unresolved",
            State::AssumedSent => "assumed_sent",
            State::Accepted => "accepted",
            State::Queued => "queued",
            State::Rejected => "rejected",
            State::Delivered => "delivered",
            State::Read => "read",
            State::Failed => "failed",
        }
    }

    /// The state of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether a message in this state went out or may have: its number is guarded.
    #[must_use]
    pub fn has_operation(self) -> bool {
        match self {
            State::Sending
            | State::InDoubt
            | State::Unresolved
            | State::AssumedSent
            | State::Accepted
            | State::Queued
            | State::Delivered
            | State::Read
            | State::Failed => true,
            State::Planned | State::Skipped | State::Invalid | State::NotSent | State::Rejected => false,
        }
    }

    /// Whether the gateway proved this state, so that no earlier doubt or decision explains it.
    #[must_use]
    pub fn is_proven(self) -> bool {
        self.has_left() || matches!(self, State::Rejected | State::Failed)
    }

    /// Whether the gateway has the message and reports no failure, so that no earlier error explains the state.
    #[must_use]
    pub fn has_left(self) -> bool {
        matches!(self, State::Accepted | State::Queued | State::Delivered | State::Read)
    }

    /// Whether a message may change from this state to `next`.
    ///
    /// Evidence only moves forward: doubt and decisions give way to proof, proof to nothing but
    /// a delivery. To try again after a rejection or a failure is a new message.
    #[must_use]
    pub fn can_become(self, next: State) -> bool {
        use State::{
            Accepted, AssumedSent, Delivered, Failed, InDoubt, Invalid, NotSent, Planned, Queued, Read, Rejected,
            Sending, Skipped, Unresolved,
        };
        match self {
            Planned => matches!(next, Sending | NotSent | Skipped),
            // A receipt may come before the answer.
            Sending => {
                matches!(next, Planned | NotSent | InDoubt | Accepted | Queued | Rejected | Delivered | Read | Failed)
            }
            InDoubt | Unresolved | AssumedSent | NotSent if self != next => {
                let evidence = matches!(next, Accepted | Queued | Rejected | Delivered | Read | Failed);
                let decision = matches!(next, AssumedSent | NotSent | Planned) && self != AssumedSent;
                evidence || decision || (self == InDoubt && next == Unresolved)
            }
            Accepted | Queued => matches!(next, Delivered | Read | Failed) || (self == Queued && next == Accepted),
            Delivered => next == Read,
            // A delivery proves itself, whatever was reported before it.
            Failed | Rejected => matches!(next, Delivered | Read),
            InDoubt | Unresolved | AssumedSent | NotSent | Skipped | Invalid | Read => false,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::State::{
        Accepted, AssumedSent, Delivered, Failed, InDoubt, NotSent, Planned, Queued, Read, Rejected, Sending, Skipped,
        Unresolved,
    };
    use super::*;

    /// All changes that are allowed, from the sending protocol; every other pair is an error.
    const ALLOWED: &[(State, &[State])] = &[
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
    fn every_pair_of_states_is_allowed_or_forbidden_as_the_protocol_says() {
        for from in State::ALL {
            for to in State::ALL {
                let allowed = ALLOWED.iter().any(|(state, next)| *state == from && next.contains(&to));
                assert_eq!(from.can_become(to), allowed, "{from} -> {to}");
            }
        }
    }

    #[test]
    fn every_word_means_its_state_and_undelivered_all_that_did_not_arrive() {
        for (word, state) in State::WORDS.into_iter().zip(State::ALL) {
            assert_eq!(State::meant_by(word), [state]);
        }
        let undelivered = State::meant_by(State::WORDS[14]);
        assert!(undelivered.contains(&State::Failed) && undelivered.contains(&State::Planned));
        assert!(![State::Delivered, State::Read, State::Skipped].iter().any(|state| undelivered.contains(state)));
        assert!(State::meant_by("gone").is_empty());
    }

    #[test]
    fn states_keep_their_names() {
        for state in State::ALL {
            assert_eq!(State::from_name(state.name()), Some(state));
        }
    }
}
