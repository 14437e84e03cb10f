//! What the daemon remembers of one schedule.

use std::path::PathBuf;

use jiff::Timestamp;

use super::list_watch::ListWatch;
use crate::calendar::{Occurrence, Schedule};
use crate::ledger::{ActiveSchedule, Ledger, LedgerError};
use crate::runs::{ScheduleChange, list_recent_occurrences};

/// What the daemon remembers of one schedule; the ledger knows all that must not be forgotten.
#[derive(Debug)]
pub(super) struct ScheduleMemory {
    /// Every occurrence until this moment began, or was left out.
    pub(super) handled: Timestamp,
    /// Since when its occurrences counted when that was found.
    pub(super) since: Timestamp,
    /// When it is due, as it was last seen unchanged.
    pub(super) schedule: Option<Schedule>,
    /// When that was.
    pub(super) checked_at: Option<Timestamp>,
    /// What changed since it was armed, which was told.
    pub(super) change: Option<ScheduleChange>,
    /// The damaged record that stops it, in words.
    pub(super) damage: Option<String>,
    /// Whether a run of it was looked for that an earlier daemon left.
    pub(super) resume_checked: bool,
    /// The occurrence whose run is being begun or sent.
    pub(super) running: Option<Occurrence>,
    /// The occurrence that waits for its list.
    pub(super) waiting: Option<AwaitingList>,
    /// The occurrence that waits for an approval.
    pub(super) unapproved: Option<AwaitingApproval>,
}

/// An occurrence that waits for an approval.
#[derive(Debug)]
pub(super) struct AwaitingApproval {
    pub(super) occurrence: Occurrence,
    /// The digest of its plan.
    pub(super) digest: String,
    /// Until when.
    pub(super) until: Timestamp,
    /// How many approvals were given when it was tried last.
    pub(super) seen: usize,
}

/// An occurrence that waits for its list.
#[derive(Debug)]
pub(super) struct AwaitingList {
    pub(super) occurrence: Occurrence,
    pub(super) list: PathBuf,
    /// Until when.
    pub(super) until: Timestamp,
    pub(super) watch: ListWatch,
}

impl ScheduleMemory {
    /// What is known of a schedule from the ledger.
    pub(super) async fn load(ledger: &dyn Ledger, armed: &ActiveSchedule, now: Timestamp) -> Result<Self, LedgerError> {
        Ok(Self {
            handled: read_handled_until(ledger, armed, now).await?,
            since: armed.since,
            schedule: None,
            checked_at: None,
            change: None,
            damage: None,
            resume_checked: false,
            running: None,
            waiting: None,
            unapproved: None,
        })
    }

    /// Whether an occurrence was begun, or waits, which the ledger may not know yet.
    pub(super) fn is_in_progress(&self, occurrence: &Occurrence) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.occurrence);
        let unapproved = self.unapproved.as_ref().map(|unapproved| &unapproved.occurrence);
        [self.running.as_ref(), waiting, unapproved].into_iter().flatten().any(|own| own == occurrence)
    }

    /// The clock went back: what waits for its time once more is due then, and not before.
    pub(super) fn handle_clock_set_back(&mut self, now: Timestamp) {
        self.waiting.take_if(|waiting| waiting.occurrence.at > now);
        self.unapproved.take_if(|unapproved| unapproved.occurrence.at > now);
    }
}

/// Until when every occurrence has its record; what was recorded of a time to come, by a clock that was wrong, says nothing.
pub(super) async fn read_handled_until(
    ledger: &dyn Ledger,
    armed: &ActiveSchedule,
    now: Timestamp,
) -> Result<Timestamp, LedgerError> {
    let last = list_recent_occurrences(ledger, armed, now, 1).await?.pop();
    Ok(last.map_or(armed.since, |last| last.at.max(armed.since)))
}
