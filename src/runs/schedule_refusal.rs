//! Why nothing was done about a schedule. Surfaces find the words.

use std::path::PathBuf;

use super::ArmedChange;

/// Why nothing was done about a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleRefusal {
    /// A campaign has none.
    None {
        /// The campaign file.
        file: PathBuf,
    },
    /// A campaign is no longer due.
    Over {
        /// The campaign file.
        file: PathBuf,
    },
    /// A campaign of the same name is armed from another file.
    OtherFile {
        /// The name.
        name: String,
        /// The other file.
        there: PathBuf,
    },
    /// Nothing is armed under a name.
    Unknown {
        /// The name.
        name: String,
        /// What is armed under nearly that name.
        near: Option<String>,
        /// Whether anything is armed at all.
        any: bool,
    },
    /// It is not what was armed any more.
    Changed(ArmedChange),
    /// An occurrence fired, or was left out, before.
    Recorded {
        /// The local time that was meant.
        nominal: String,
    },
}
