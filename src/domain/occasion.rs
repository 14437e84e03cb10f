//! What somebody may want to be told of.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An occasion to tell somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationEvent {
    /// A run came to its end.
    Finished,
    /// A run stopped before its end.
    Stopped,
    /// A run ended with rows of which nobody knows whether they were sent.
    Doubt,
    /// An occurrence of a schedule was skipped.
    Skipped,
    /// An occurrence waits for something.
    Waiting,
    /// A campaign was changed since it was armed, so nothing was sent.
    Changed,
}

impl NotificationEvent {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Finished, Self::Stopped, Self::Doubt, Self::Skipped, Self::Waiting, Self::Changed];

    /// Its word, in campaign files and elsewhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Doubt => "doubt",
            Self::Skipped => "skipped",
            Self::Waiting => "waiting",
            Self::Changed => "changed",
        }
    }
}

impl FromStr for NotificationEvent {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|occasion| occasion.name() == word).ok_or(())
    }
}
