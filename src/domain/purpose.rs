//! What messages are for.

use serde::{Deserialize, Serialize};

/// What the messages of a run are for: that decides whether an opt-out holds them back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// To sell or to tell; whoever opted out gets none.
    #[default]
    Marketing,
    /// Codes, statuses of orders, calls: what somebody asked for, or has to know.
    Service,
}

impl Purpose {
    /// The purpose's name in campaign files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Marketing => "marketing",
            Purpose::Service => "service",
        }
    }

    /// The purpose of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Purpose::Marketing, Purpose::Service].into_iter().find(|purpose| purpose.name() == name)
    }

    /// Whether it is the usual one.
    #[must_use]
    pub fn is_marketing(&self) -> bool {
        *self == Purpose::Marketing
    }
}
