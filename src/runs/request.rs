//! What somebody wants of a campaign.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::Error;
use crate::calendar::Occurrence;
use crate::domain::{Row, RowSet};
use crate::manifest::Profile;
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
pub struct RunRequest {
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
    /// Workers may take shares of the run.
    pub shared: bool,
    /// The ledger counts, whatever contradicts it.
    pub new_ledger: bool,
    /// So many people may get a message twice, because the ledger was put back from a backup.
    pub accept_duplicates: Option<u64>,
    /// The occurrence of the campaign's schedule that it is; it fires at most once.
    pub occurrence: Option<Occurrence>,
    /// The digest of the plan that it is held to, or the beginning of it.
    pub plan: Option<String>,
    /// Nothing is sent without an approval of that plan, not even where nobody would be asked: on this machine.
    pub approved_only: bool,
    /// An approval that was signed elsewhere, for the plan that it names.
    pub approval: Option<String>,
    /// What all occurrences of its schedule are approved by: a digest of what is armed.
    pub schedule_digest: Option<String>,
    /// What a rehearsal plays; nothing for the usual sandbox.
    pub scenario: Option<Arc<Scenario>>,
}

impl RunRequest {
    /// The rows, of those that are left, that a call sends to.
    ///
    /// # Errors
    /// When rows were asked for that the list does not have.
    pub(super) fn choose_rows(&self, left: &RoaringBitmap, last: Row) -> Result<RoaringBitmap, Error> {
        let mut chosen = match &self.rows {
            None => left.clone(),
            Some(rows) if rows.last_row() > last => return Err(Error::NoSuchRow { row: rows.last_row(), last }),
            Some(rows) => left.iter().filter(|row| rows.contains(Row::new(*row))).collect(),
        };
        let limit = self.limit.and_then(|limit| u32::try_from(limit).ok());
        if let Some(beyond) = limit.and_then(|limit| chosen.select(limit)) {
            chosen.remove_range(beyond..);
        }
        Ok(chosen)
    }

    /// Refuses so many recipients where the request or the profile bounds them.
    pub(super) fn check_recipient_count(&self, profile: Option<&Profile>, number: u64) -> Result<(), Error> {
        match self.round {
            Round::Again(said) if said != number => return Err(Error::OtherNumber { said, number }),
            Round::Again(_) | Round::Same => {}
        }
        let limit = profile.and_then(|profile| profile.recipients_limit).map(u64::from);
        match limit.filter(|limit| number > (*limit).max(self.up_to.unwrap_or(0))) {
            None => Ok(()),
            Some(limit) => Err(Error::TooManyRecipients { number, limit }),
        }
    }
}
