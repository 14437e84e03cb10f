//! What somebody wants of a campaign.

use std::sync::Arc;

use crate::calendar::Occurrence;
use crate::domain::RowSet;
use crate::sandbox::Scenario;

/// Whom a call sends to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Round {
    /// Whoever has no message yet.
    #[default]
    Same,
    /// Everybody once more, who are so many.
    Again(u64),
}

/// What somebody wants of a campaign; the default sends what is left.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Only these rows.
    pub rows: Option<RowSet>,
    /// Only so many of the rows that are left.
    pub limit: Option<u64>,
    /// Whom it sends to.
    pub round: Round,
    /// A run whose inputs changed ends, and a new one begins.
    pub accept_changes: bool,
    /// The runs of this name are of this file, whatever file they began from.
    pub moved: bool,
    /// So many recipients are right, above the profile's own limit.
    pub up_to: Option<u64>,
    /// Rejected messages do not stop it.
    pub keep_going: bool,
    /// A live gateway is not asked about key, sender names and money first.
    pub offline: bool,
    /// A rehearsal keeps the pace of the real run.
    pub real_time: bool,
    /// Rows in doubt are asked about once at the end, without staying for it.
    pub no_wait: bool,
    /// The ledger counts, whatever contradicts it.
    pub new_ledger: bool,
    /// The occurrence of the campaign's schedule that it is; it fires at most once.
    pub occurrence: Option<Occurrence>,
    /// What a rehearsal plays; nothing for the usual sandbox.
    pub scenario: Option<Arc<Scenario>>,
}
