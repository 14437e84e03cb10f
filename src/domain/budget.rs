//! The most that a campaign may use, and what of it was used.

use serde::{Deserialize, Serialize};

use super::Amount;

/// The most that the runs of an edition may use together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// What messages may cost, in the currency of the profile.
    pub cost: Option<Amount>,
    /// How many messages may go out.
    pub recipients: Option<u64>,
}

impl Budget {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// What was used of a budget: messages that went out or may have, and what each costs by its dearest channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// The messages.
    pub recipients: u64,
    /// Their cost.
    pub cost: Amount,
}

impl Spending {
    /// This and other spending.
    #[must_use]
    pub fn add_spending(self, other: Self) -> Self {
        Self { recipients: self.recipients + other.recipients, cost: self.cost.saturating_add(other.cost) }
    }

    /// What is left of it without other spending.
    #[must_use]
    pub fn subtract_spending(self, other: Self) -> Self {
        Self {
            recipients: self.recipients.saturating_sub(other.recipients),
            cost: self.cost.saturating_sub(other.cost),
        }
    }
}
