//! Why nothing was done about a schedule.

use std::path::PathBuf;

use super::ScheduleChange;

/// Why nothing was done about a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleRefusal {
    /// A campaign has none.
    #[error("`{file}` has no `schedule`")]
    None {
        /// The campaign file.
        file: PathBuf,
    },
    /// A campaign is no longer due.
    #[error("all times in the `schedule` of `{file}` have passed")]
    Over {
        /// The campaign file.
        file: PathBuf,
    },
    /// A campaign of the same name is armed from another file.
    #[error("the active schedule `{name}` belongs to another file, `{there}`")]
    OtherFile {
        /// The name.
        name: String,
        /// The other file.
        there: PathBuf,
    },
    /// Nothing is armed under a name.
    #[error("there is no active schedule `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// What is armed under nearly that name.
        near: Option<String>,
        /// Whether anything is armed at all.
        any: bool,
    },
    /// It is not what was activated.
    #[error("the active schedule is outdated: {0}")]
    Changed(ScheduleChange),
    /// An occurrence fired, or was left out, before.
    #[error("the run scheduled for {nominal} has already started or was skipped")]
    Recorded {
        /// The local time that was meant.
        nominal: String,
    },
}
