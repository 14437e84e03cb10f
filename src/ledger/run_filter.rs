//! Which runs are wanted, so that nobody reads all that ever was.

use super::RunId;
use crate::domain::IdRange;

/// Which of the runs that were opened are wanted; all of them where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only this one.
    pub key: Option<RunId>,
    /// Only those of this campaign.
    pub campaign: Option<String>,
    /// Only those that can go on.
    pub open: bool,
    /// Only those that sent to real people.
    pub live: bool,
    /// Only those whose results are there.
    pub results: Option<String>,
    /// Only those that gave, or may give, messages one of these identifiers.
    pub ids: Option<IdRange>,
    /// Only those for which receipts came since their rows were counted.
    pub uncounted: bool,
    /// Only so many, the latest.
    pub latest: Option<u32>,
}

impl RunFilter {
    /// All runs.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// One run.
    #[must_use]
    pub fn with_key(key: RunId) -> Self {
        Self { key: Some(key), ..Self::default() }
    }

    /// The runs of a campaign.
    #[must_use]
    pub fn for_campaign(campaign: &str) -> Self {
        Self { campaign: Some(campaign.to_owned()), ..Self::default() }
    }
}
