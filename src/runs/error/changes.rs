//! Inputs that changed since a run began.

use std::fmt;
use std::path::PathBuf;

use crate::manifest::RecipientSource;

/// What changed between the inputs that a run began with and the current ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputChanges {
    /// The list, and nothing else.
    List {
        /// The list.
        list: String,
        /// How it changed.
        how: String,
    },
    /// Settings or texts of the campaign, and maybe its list.
    Campaign(Vec<String>),
    /// The copies that the run is sent from are lost.
    Copies {
        /// Where they were.
        place: String,
        /// Whether they are there, and damaged.
        damaged: bool,
    },
}

/// An unfinished run that cannot be resumed, because its inputs changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ChangedInputs {
    /// The run.
    pub run: String,
    /// The campaign file.
    pub file: PathBuf,
    /// The gateway, if the command names another one than the campaign.
    pub gateway: Option<String>,
    /// What changed.
    pub changes: InputChanges,
    /// Its edition, if the campaign has another one now.
    pub earlier_edition: Option<EarlierEdition>,
}

/// The edition of an unfinished run, if the campaign has another one now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierEdition {
    /// That of the run; empty if it has none.
    pub unfinished: String,
    /// That of now; empty if there is none.
    pub current: String,
    /// Whether a run that replaces it after the changes are accepted keeps the earlier edition.
    pub is_kept: bool,
}

impl InputChanges {
    /// The changes of settings and of the list, if there are any.
    pub(in crate::runs) fn from_parts(
        settings: Vec<String>,
        list: Option<String>,
        name: &RecipientSource,
    ) -> Option<Self> {
        match (settings, list) {
            (settings, None) if settings.is_empty() => None,
            (settings, Some(how)) if settings.is_empty() => Some(Self::List { list: name.to_string(), how }),
            (mut settings, list) => {
                settings.extend(list.map(|how| format!("the list `{name}` ({how})")));
                Some(Self::Campaign(settings))
            }
        }
    }

    /// A sentence about what changed since a run began.
    #[must_use]
    pub fn describe_since(&self, run: &str) -> String {
        match self {
            Self::List { list, how } => format!("the list `{list}` has changed since {run} began: {how}"),
            Self::Campaign(what) => format!("the campaign has changed since {run} began: {}", what.join(", ")),
            Self::Copies { place, .. } => {
                format!("the stored inputs of {run} in `{place}` are missing or damaged, so the run cannot be resumed")
            }
        }
    }
}

impl EarlierEdition {
    /// The edition of the run, in a sentence.
    #[must_use]
    pub fn describe_unfinished(&self) -> String {
        describe_edition(&self.unfinished)
    }

    /// The current edition, in a sentence.
    #[must_use]
    pub fn describe_current(&self) -> String {
        describe_edition(&self.current)
    }
}

fn describe_edition(edition: &str) -> String {
    match edition {
        "" => "no edition".to_owned(),
        edition => format!("the edition `{edition}`"),
    }
}

impl fmt::Display for ChangedInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.changes.describe_since(&self.run))?;
        match &self.earlier_edition {
            Some(edition) => write!(
                f,
                "; {} is unfinished and belongs to {}, but the campaign now has {}",
                self.run,
                edition.describe_unfinished(),
                edition.describe_current()
            ),
            None => Ok(()),
        }
    }
}
