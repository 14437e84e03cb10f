//! What a campaign has to keep within while it is sent.

use crate::domain::{Amount, Budget};

/// The bounds that each intent of a start has to keep within.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The most that all runs of its edition may use together.
    pub budget: Budget,
}

/// A bound that holds back the next message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// As many messages went out as may.
    Recipients {
        /// How many may.
        limit: u64,
    },
    /// The next message would cost more than is left.
    Cost {
        /// How much all may cost.
        limit: Amount,
        /// How much of it is used.
        used: Amount,
    },
}
