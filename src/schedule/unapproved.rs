//! Occurrences that nobody approved yet, where the profile wants an approval: they wait for one, for a day at most.

use std::time::Duration;

use jiff::Timestamp;

use super::daemon::DaemonState;
use super::due::lateness;
use super::notices::notify_about;
use super::post::{AwaitingApproval, ScheduleMemory};
use super::{ScheduleEvent, SkipReason};
use crate::calendar::Occurrence;
use crate::domain::NotificationEvent;
use crate::ledger::{ActiveSchedule, LedgerError};
use crate::report::format_local_minute;
use crate::runs::{count_approvals, find_occurrence_plan, occurrence_key, short_digest};

/// How long an occurrence waits.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl AwaitingApproval {
    fn for_occurrence(occurrence: Occurrence, digest: String) -> Self {
        let until = occurrence.at.checked_add(MAX_WAIT).unwrap_or(Timestamp::MAX);
        Self { occurrence, digest, until, seen: 0 }
    }
}

impl DaemonState {
    /// Has an occurrence wait that could not begin without an approval, and tells it once with its digest.
    pub(super) async fn await_approval(
        &mut self,
        armed: &ActiveSchedule,
        occurrence: Occurrence,
        digest: String,
    ) -> Result<(), LedgerError> {
        let Some(post) = self.posts.get_mut(&armed.name) else { return Ok(()) };
        // What was given to it was not good; what was given since is looked at in the next round.
        if post.unapproved.as_ref().is_some_and(|known| known.digest == digest) {
            return Ok(());
        }
        let unapproved = AwaitingApproval::for_occurrence(occurrence.clone(), digest.clone());
        let (name, until) = (occurrence.format_nominal(), unapproved.until);
        post.unapproved = Some(unapproved);
        let (until, plan) = (format_local_minute(until), short_digest(&digest));
        let what = format!("the run scheduled for {name} waits until {until} for approval of plan {plan}");
        notify_about(&self.daemon.adapters, armed, NotificationEvent::Waiting, &what).await?;
        self.notify_observer(ScheduleEvent::Unapproved { schedule: armed.name.clone(), occurrence, digest });
        Ok(())
    }

    /// Begins the occurrence that waits for an approval, once somebody gave one; whether it waits still.
    pub(super) async fn wait_for_approval(
        &mut self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(unapproved) = post.unapproved.as_mut().filter(|_| post.running.is_none()) else { return Ok(false) };
        if now > unapproved.until {
            self.skip_unapproved(post, armed).await?;
            return Ok(false);
        }
        if post.damage.is_some() {
            return Ok(true);
        }
        let given = count_approvals(self.ledger().as_ref(), armed, &unapproved.digest).await?;
        if given > unapproved.seen {
            unapproved.seen = given;
            let occurrence = unapproved.occurrence.clone();
            self.start_occurrence(post, armed, occurrence, false);
        }
        Ok(true)
    }

    /// Leaves out the occurrence that waits for an approval, if there is one.
    pub(super) async fn skip_unapproved(
        &self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
    ) -> Result<(), LedgerError> {
        let Some(unapproved) = post.unapproved.take() else { return Ok(()) };
        self.skip_occurrence(armed, &unapproved.occurrence, 0, SkipReason::Unapproved).await.map(|_| ())
    }

    /// Whether an occurrence whose time has passed waited for an approval when the daemon before ended; it waits on then.
    pub(super) async fn restore_awaiting(
        &self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        (missed, now): (&Occurrence, Timestamp),
    ) -> Result<bool, LedgerError> {
        if lateness(missed.at, now) > MAX_WAIT || post.running.is_some() {
            return Ok(false);
        }
        let key = occurrence_key(&armed.name, missed);
        let planned = find_occurrence_plan(self.ledger().as_ref(), &key).await?;
        post.unapproved = planned.map(|digest| AwaitingApproval::for_occurrence(missed.clone(), digest));
        Ok(post.unapproved.is_some())
    }
}
