//! Occurrences that nobody approved yet, where the profile wants an approval: they wait for one, for a day at most.

use std::time::Duration;

use jiff::Timestamp;

use super::daemon::Work;
use super::due::lateness;
use super::notices::tell_of;
use super::post::{Post, Unapproved};
use super::{ScheduleEvent, SkipReason};
use crate::calendar::Occurrence;
use crate::domain::Occasion;
use crate::ledger::{ArmedSchedule, LedgerError};
use crate::report::local_minute;
use crate::runs::{approvals_given, occurrence_key, planned_occurrence, short};

/// How long an occurrence waits.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Unapproved {
    fn of(occurrence: Occurrence, digest: String) -> Self {
        let until = occurrence.at.checked_add(LONGEST).unwrap_or(Timestamp::MAX);
        Self { occurrence, digest, until, seen: 0 }
    }
}

impl Work {
    /// Has an occurrence wait that could not begin without an approval, and tells it once with its digest.
    pub(super) async fn has_to_be_approved(
        &mut self,
        armed: &ArmedSchedule,
        occurrence: Occurrence,
        digest: String,
    ) -> Result<(), LedgerError> {
        let Some(post) = self.posts.get_mut(&armed.name) else { return Ok(()) };
        // What was given to it was not good; what was given since is looked at in the next round.
        if post.unapproved.as_ref().is_some_and(|known| known.digest == digest) {
            return Ok(());
        }
        let unapproved = Unapproved::of(occurrence.clone(), digest.clone());
        let (name, until) = (occurrence.name(), unapproved.until);
        post.unapproved = Some(unapproved);
        let (until, plan) = (local_minute(until), short(&digest));
        let what = format!("the run scheduled for {name} waits until {until} for approval of plan {plan}");
        tell_of(&self.daemon.adapters, armed, Occasion::Waiting, &what).await?;
        self.tell(ScheduleEvent::Unapproved { schedule: armed.name.clone(), occurrence, digest });
        Ok(())
    }

    /// Begins the occurrence that waits for an approval, once somebody gave one; whether it waits still.
    pub(super) async fn wait_for_approval(
        &mut self,
        post: &mut Post,
        armed: &ArmedSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(unapproved) = post.unapproved.as_mut().filter(|_| post.running.is_none()) else { return Ok(false) };
        if now > unapproved.until {
            self.leave_unapproved(post, armed).await?;
            return Ok(false);
        }
        if post.damage.is_some() {
            return Ok(true);
        }
        let given = approvals_given(self.ledger().as_ref(), armed, &unapproved.digest).await?;
        if given > unapproved.seen {
            unapproved.seen = given;
            let occurrence = unapproved.occurrence.clone();
            self.start(post, armed, occurrence, false);
        }
        Ok(true)
    }

    /// Leaves out the occurrence that waits for an approval, if there is one.
    pub(super) async fn leave_unapproved(&self, post: &mut Post, armed: &ArmedSchedule) -> Result<(), LedgerError> {
        let Some(unapproved) = post.unapproved.take() else { return Ok(()) };
        self.skip(armed, &unapproved.occurrence, 0, SkipReason::Unapproved).await.map(|_| ())
    }

    /// Whether an occurrence whose time has passed waited for an approval when the daemon before ended; it waits on then.
    pub(super) async fn waits_on(
        &self,
        post: &mut Post,
        armed: &ArmedSchedule,
        (missed, now): (&Occurrence, Timestamp),
    ) -> Result<bool, LedgerError> {
        if lateness(missed.at, now) > LONGEST || post.running.is_some() {
            return Ok(false);
        }
        let key = occurrence_key(&armed.name, missed);
        let planned = planned_occurrence(self.ledger().as_ref(), &key).await?;
        post.unapproved = planned.map(|digest| Unapproved::of(missed.clone(), digest));
        Ok(post.unapproved.is_some())
    }
}
