//! Events that people can be notified of.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An event that people can be notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationEvent {
    /// A run finished.
    Finished,
    /// A run stopped before it finished.
    Stopped,
    /// A run ended with messages in doubt.
    Doubt,
    /// An occurrence of a schedule was skipped.
    Skipped,
    /// An occurrence waits for a condition.
    Waiting,
    /// A campaign changed after its schedule was activated, so no messages were sent.
    Changed,
}

impl NotificationEvent {
    /// All events.
    pub const ALL: [Self; 6] =
        [Self::Finished, Self::Stopped, Self::Doubt, Self::Skipped, Self::Waiting, Self::Changed];

    /// The name in campaign files and JSON.
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
        Self::ALL.into_iter().find(|event| event.name() == word).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_event_name_matches_the_name_in_campaign_files() {
        for event in NotificationEvent::ALL {
            assert_eq!(serde_json::to_value(event).unwrap(), event.name());
            assert_eq!(event.name().parse(), Ok(event));
        }
    }
}
