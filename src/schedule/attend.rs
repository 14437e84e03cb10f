//! What is done about one schedule in a round, and about what came of its starts.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::daemon::{Started, Work};
use super::due::{due, lateness};
use super::list_watch::{ListWatch, Sight};
use super::notices::tell_of;
use super::post::{Post, Waiting, handled};
use super::{ScheduleEvent, SkipReason};
use crate::calendar::{Occurrence, Schedule};
use crate::domain::Occasion;
use crate::finding::BriefFinding;
use crate::ledger::{ArmedSchedule, Fate, Ledger, LedgerError, OccurrenceRecord, Progress, RunFilter, RunId, StopKind};
use crate::runs::{
    ArmedChange, EndedRun, Error, Outcome, PlanRefusal, ScheduleRefusal, SkipRecord, findings_of_armed, list_of,
    look_at_armed, occurrence_key, recent_occurrences, recorded_occurrence, says_the_same, schedule_damage,
};

/// How often a list that is waited for is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How many records are looked through for the last run; between two runs there are seldom more that were left out.
const BACK: u32 = 50;

impl Work {
    pub(super) fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.daemon.adapters.ledger)
    }

    pub(super) fn tell(&self, event: ScheduleEvent) {
        (self.daemon.observer)(event);
    }

    /// Does what is due of a schedule; tells how long until the next is.
    pub(super) async fn attend(&mut self, armed: ArmedSchedule, now: Timestamp) -> Result<Duration, LedgerError> {
        let ledger = self.ledger();
        let mut post = match self.posts.remove(&armed.name) {
            Some(post) => post,
            None => Post::of(ledger.as_ref(), &armed, now).await?,
        };
        // It was armed anew or resumed, or the clock went back: the ledger tells what began already.
        if post.since != armed.since || now < self.looked {
            (post.handled, post.since) = (handled(ledger.as_ref(), &armed, now).await?, armed.since);
            post.looked = None;
            post.goes_back_to(now);
        }
        let before = post.handled;
        let next = self.attend_to(&mut post, &armed, now).await;
        if next.is_err() {
            // What could not be recorded is due still, which the ledger tells.
            if post.running.is_none() {
                return next;
            }
            post.handled = before;
        }
        self.posts.insert(armed.name, post);
        next
    }

    async fn attend_to(
        &mut self,
        post: &mut Post,
        armed: &ArmedSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        if armed.paused {
            (post.waiting, post.unapproved) = (None, None);
            return Ok(self.daemon.refresh);
        }
        if self.is_to_be_looked_at(post, now) {
            self.look(post, armed, now).await?;
            post.looked = Some(now);
        }
        if post.damage.is_none() && !std::mem::replace(&mut post.went_on, true) && post.running.is_none() {
            self.go_on(post, armed, now).await?;
        }
        let Some(schedule) = post.schedule.clone() else { return Ok(self.daemon.refresh) };
        let due = due(&schedule, post.handled, now, schedule.patience());
        if let Some(missed) = due.missed {
            post.handled = missed.at;
            let is_left = !post.has(&missed);
            if is_left && (due.begins.is_some() || !self.waits_on(post, armed, (&missed, now)).await?) {
                let damaged = post.damage.clone().map(SkipReason::Damaged);
                self.skip(armed, &missed, due.before, damaged.unwrap_or(SkipReason::Missed)).await?;
            }
        }
        if let Some(occurrence) = due.begins {
            self.begin(post, (armed, &schedule), occurrence, now).await?;
        }
        let waits = self.wait_for_list(post, armed, now).await? | self.wait_for_approval(post, armed, now).await?;
        let next = due.next.map_or(self.daemon.refresh, |next| lateness(now, next));
        Ok(if waits { next.min(LOOK) } else { next })
    }

    /// Whether somebody may have changed it since it was looked at, which matters whenever something is due.
    fn is_to_be_looked_at(&self, post: &Post, now: Timestamp) -> bool {
        let (Some(schedule), Some(looked)) = (&post.schedule, post.looked) else { return true };
        let is_due = || schedule.after(post.handled).next().is_some_and(|next| next.at <= now);
        lateness(looked, now) >= self.daemon.refresh || is_due()
    }

    /// Looks whether it is still what was armed, and whether its records are intact, and tells once if they are not.
    async fn look(&mut self, post: &mut Post, armed: &ArmedSchedule, now: Timestamp) -> Result<(), LedgerError> {
        post.damage = match schedule_damage(self.ledger().as_ref(), armed, now).await? {
            Some(error) => Some(self.stop_damaged(armed, &error).await?),
            None => None,
        };
        let change = match look_at_armed(&self.daemon.adapters, armed).await {
            Ok(Ok(schedule)) => {
                post.schedule = Some(schedule);
                None
            }
            Ok(Err(change)) => Some(change),
            Err(_) => Some(ArmedChange::Unreadable),
        };
        if let Some(change) = change.filter(|_| change != post.change) {
            let findings = self.findings_of(armed, change).await;
            let mut what =
                "the campaign has changed since its schedule was activated, so nothing is sent until you activate the schedule again"
                    .to_owned();
            what.extend(findings.iter().map(|finding| format!("; {finding}")));
            self.tell(ScheduleEvent::Changed { schedule: armed.name.clone(), change, findings });
            tell_of(&self.daemon.adapters, armed, Occasion::Changed, &what).await?;
        }
        post.change = change;
        Ok(())
    }

    /// The findings about the file of a schedule, if that is the change.
    async fn findings_of(&self, armed: &ArmedSchedule, change: ArmedChange) -> Vec<BriefFinding> {
        match change {
            ArmedChange::Unreadable => findings_of_armed(&self.daemon.adapters, armed).await.unwrap_or_default(),
            ArmedChange::Campaign | ArmedChange::Addresses | ArmedChange::Account => Vec::new(),
        }
    }

    /// Goes on with a run that an earlier daemon began and did not end; one that stopped stays stopped.
    async fn go_on(&mut self, post: &mut Post, armed: &ArmedSchedule, now: Timestamp) -> Result<(), LedgerError> {
        let Some((record, run)) = last_fired(self.ledger().as_ref(), armed, now).await? else { return Ok(()) };
        let goes = match self.ledger().runs(RunFilter::one(run)).await?.pop() {
            // It was never opened, so nothing of it was sent: it begins anew, if it is not too late.
            None => match &post.schedule {
                Some(schedule) if self.is_over(schedule, armed, &record, now) => {
                    return self.give_up(armed, &record).await;
                }
                schedule => schedule.is_some(),
            },
            Some(run) => {
                let interrupted = matches!(run.stop, None | Some(StopKind::Interrupted(_)));
                run.progress == Progress::Open && interrupted && !run.stop_requested
            }
        };
        if let Some(occurrence) = recorded_occurrence(&record).filter(|_| goes) {
            self.start(post, armed, occurrence, true);
        }
        Ok(())
    }

    /// Whether it is too late for what an earlier daemon began.
    fn is_over(&self, schedule: &Schedule, armed: &ArmedSchedule, record: &OccurrenceRecord, now: Timestamp) -> bool {
        let Some(occurrence) = recorded_occurrence(record) else { return true };
        let list = list_of(&self.daemon.adapters, armed, &occurrence).ok().flatten();
        is_too_late(schedule, (&occurrence, list.as_deref().and_then(Sight::of)), now)
    }

    /// Leaves out what an earlier daemon began so long ago, and of which nothing was sent; tells it once.
    async fn give_up(&self, armed: &ArmedSchedule, record: &OccurrenceRecord) -> Result<(), LedgerError> {
        let Some(occurrence) = recorded_occurrence(record) else { return Ok(()) };
        // Whoever has the campaign may be about to send it.
        let Some(_held) = self.ledger().hold(&armed.name, &armed.account).await? else { return Ok(()) };
        let reason = SkipReason::Missed;
        if self.ledger().give_up(&record.key, record.at, &reason.record().to_text()).await? {
            self.tell_skipped(armed, &occurrence, 0, reason).await?;
        }
        Ok(())
    }

    /// Begins an occurrence that is due, has it wait for its list, or leaves it out.
    async fn begin(
        &mut self,
        post: &mut Post,
        (armed, schedule): (&ArmedSchedule, &Schedule),
        occurrence: Occurrence,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        post.handled = occurrence.at;
        // The clock went back over it: that it is due was heard already.
        if post.has(&occurrence) {
            return Ok(());
        }
        if let Some(waiting) = post.waiting.take() {
            self.skip(armed, &waiting.occurrence, 0, SkipReason::Overtaken).await?;
        }
        if post.running.is_none() {
            self.leave_unapproved(post, armed).await?;
        }
        if let Some(problem) = post.damage.clone() {
            self.skip(armed, &occurrence, 0, SkipReason::Damaged(problem)).await?;
        } else if let Some(change) = post.change {
            let findings = self.findings_of(armed, change).await;
            self.skip(armed, &occurrence, 0, SkipReason::Changed(change, findings)).await?;
        } else if post.running.is_some() {
            self.skip(armed, &occurrence, 0, SkipReason::Busy).await?;
        } else if let Some(wait) = schedule.wait_for_file {
            let list = match list_of(&self.daemon.adapters, armed, &occurrence) {
                Ok(list) => list,
                Err(error) => {
                    let reason = SkipReason::Refused(SkipRecord::of_error(&error));
                    return self.skip(armed, &occurrence, 0, reason).await.map(|_| ());
                }
            };
            let seen = list.as_deref().and_then(Sight::of);
            let is_awaited = list.is_some() && seen.is_none();
            if !is_awaited && is_too_late(schedule, (&occurrence, seen), now) {
                return self.skip(armed, &occurrence, 0, SkipReason::Missed).await.map(|_| ());
            }
            let Some(list) = list else {
                self.start(post, armed, occurrence, false);
                return Ok(());
            };
            if is_awaited {
                let what = format!("the run scheduled for {} is waiting for its list", occurrence.name());
                tell_of(&self.daemon.adapters, armed, Occasion::Waiting, &what).await?;
                let (schedule, occurrence) = (armed.name.clone(), occurrence.clone());
                self.tell(ScheduleEvent::Waiting { schedule, occurrence });
            }
            let until = occurrence.at.checked_add(wait).unwrap_or(Timestamp::MAX);
            post.waiting = Some(Waiting { occurrence, list, until, watch: ListWatch::default() });
        } else {
            self.start(post, armed, occurrence, false);
        }
        Ok(())
    }

    /// Begins the occurrence that waits for its list, once that is whole; whether it waits still.
    async fn wait_for_list(
        &mut self,
        post: &mut Post,
        armed: &ArmedSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(mut waiting) = post.waiting.take() else { return Ok(false) };
        if waiting.watch.look(Sight::of(&waiting.list), now) && post.damage.is_none() {
            self.start(post, armed, waiting.occurrence, false);
            return Ok(false);
        }
        if now > waiting.until {
            self.skip(armed, &waiting.occurrence, 0, SkipReason::NoList(waiting.list)).await?;
            return Ok(false);
        }
        post.waiting = Some(waiting);
        Ok(true)
    }

    pub(super) fn start(&mut self, post: &mut Post, armed: &ArmedSchedule, occurrence: Occurrence, went_on: bool) {
        post.running = Some(occurrence.clone());
        let armed = armed.clone();
        let sent = self.daemon.starter.start(armed.clone(), occurrence.clone(), self.interrupt.clone());
        self.running.spawn(async move { Started { armed, occurrence, went_on, outcome: sent.await } });
    }

    /// Records that an occurrence is left out, and tells it; whether it had no record before.
    pub(super) async fn skip(
        &self,
        armed: &ArmedSchedule,
        occurrence: &Occurrence,
        before: usize,
        reason: SkipReason,
    ) -> Result<bool, LedgerError> {
        let key = occurrence_key(&armed.name, occurrence);
        let is_new = self.ledger().skip(&key, occurrence.at, &reason.record().to_text()).await?;
        if is_new {
            self.tell_skipped(armed, occurrence, before, reason).await?;
        }
        Ok(is_new)
    }

    async fn tell_skipped(
        &self,
        armed: &ArmedSchedule,
        occurrence: &Occurrence,
        before: usize,
        reason: SkipReason,
    ) -> Result<(), LedgerError> {
        let what = format!("the run scheduled for {} was skipped: {}", occurrence.name(), reason.record());
        tell_of(&self.daemon.adapters, armed, Occasion::Skipped, &what).await?;
        let (schedule, occurrence) = (armed.name.clone(), occurrence.clone());
        self.tell(ScheduleEvent::Skipped { schedule, occurrence, before, reason });
        Ok(())
    }

    /// Hears what came of a start.
    pub(super) async fn ended(&mut self, started: Started) -> Result<(), LedgerError> {
        let Started { armed, occurrence, went_on, outcome } = started;
        if let Some(post) = self.posts.get_mut(&armed.name) {
            post.running = None;
        }
        if let Err(Error::Plan(PlanRefusal::Unapproved { digest: Some(digest), .. })) = outcome {
            return self.has_to_be_approved(&armed, occurrence, digest).await;
        }
        if let Some(post) = self.posts.get_mut(&armed.name) {
            post.unapproved = None;
        }
        let reason = match outcome {
            Ok(Outcome::Ended(ended)) => return self.sent(armed, occurrence, ended).await,
            Ok(Outcome::NothingLeft(_)) => SkipReason::NobodyLeft,
            // It is over here: after the next start it goes on, or begins if it is not too late. Or another daemon had it.
            Err(Error::Interrupted { .. } | Error::Schedule(ScheduleRefusal::Recorded { .. })) => return Ok(()),
            Err(Error::Busy { .. }) if went_on => return Ok(()),
            Err(Error::Busy { .. }) => SkipReason::Busy,
            Err(Error::Schedule(ScheduleRefusal::Changed(change))) => SkipReason::Changed(change, Vec::new()),
            Err(Error::Ledger(LedgerError::Busy { .. })) => {
                self.posts.remove(&armed.name);
                return Ok(());
            }
            Err(Error::Ledger(error)) if error.concerns_records() => SkipReason::Damaged(error.damage()),
            Err(Error::Ledger(error)) => return Err(error),
            Err(error) => SkipReason::Refused(SkipRecord::of_error(&error)),
        };
        let (words, is_damage) = (reason.record().to_string(), matches!(reason, SkipReason::Damaged(_)));
        if !self.skip(&armed, &occurrence, 0, reason).await? {
            if is_damage {
                let what = format!("the run scheduled for {} ended early: {words}", occurrence.name());
                tell_of(&self.daemon.adapters, &armed, Occasion::Stopped, &what).await?;
            }
            self.tell(ScheduleEvent::Broke { schedule: armed.name, occurrence, why: words });
        }
        Ok(())
    }

    async fn sent(
        &self,
        armed: ArmedSchedule,
        occurrence: Occurrence,
        ended: Box<EndedRun>,
    ) -> Result<(), LedgerError> {
        let just_before = Timestamp::from_microsecond(occurrence.at.as_microsecond() - 1).unwrap_or(occurrence.at);
        let same_text = match last_fired(self.ledger().as_ref(), &armed, just_before).await? {
            Some((_, before)) => says_the_same(self.ledger().as_ref(), &ended.run, before).await.unwrap_or(false),
            None => false,
        };
        if same_text {
            let occasion = if ended.stop.is_some() { Occasion::Stopped } else { Occasion::Finished };
            let what = format!("the run scheduled for {} sent the same message as the previous run", occurrence.name());
            tell_of(&self.daemon.adapters, &armed, occasion, &what).await?;
        }
        self.tell(ScheduleEvent::Ended { schedule: armed.name, occurrence, ended, same_text });
        Ok(())
    }
}

/// Whether it is too late for an occurrence: it was due long ago, and so was its list where that is waited for.
fn is_too_late(schedule: &Schedule, (occurrence, seen): (&Occurrence, Option<Sight>), now: Timestamp) -> bool {
    let came = seen.filter(|_| schedule.wait_for_file.is_some()).and_then(Sight::came);
    let late = lateness(came.map_or(occurrence.at, |came| came.max(occurrence.at)), now);
    late > schedule.grace || lateness(occurrence.at, now) > schedule.patience()
}

/// The last occurrence until a moment that began a run, and the run.
async fn last_fired(
    ledger: &dyn Ledger,
    armed: &ArmedSchedule,
    until: Timestamp,
) -> Result<Option<(OccurrenceRecord, RunId)>, LedgerError> {
    let last = recent_occurrences(ledger, armed, until, BACK).await?;
    Ok(last.into_iter().find_map(|record| match record.fate {
        Fate::Fired(run) => Some((record, run)),
        Fate::Skipped(_) => None,
    }))
}
