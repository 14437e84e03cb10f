//! On what terms a run is sent, as far as it is told beside its figures.

use serde::{Deserialize, Serialize};

use crate::domain::Budget;

/// How fast a run may be sent, and what it may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTerms {
    /// Operations per second; nothing where there is no limit, or none was kept.
    pub rate: Option<f64>,
    /// The most that all runs of its edition may use together.
    pub budget: Budget,
    /// The currency of the prices.
    pub currency: Option<String>,
}
