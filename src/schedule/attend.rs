//! What is done about one schedule in a round, and about what came of its starts.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::daemon::{DaemonState, StartResult};
use super::due::{find_due, lateness};
use super::list_watch::{FileStat, ListWatch};
use super::notices::notify_about;
use super::post::{AwaitingList, ScheduleMemory, read_handled_until};
use super::{ScheduleEvent, SkipReason};
use crate::calendar::{Occurrence, Schedule};
use crate::domain::NotificationEvent;
use crate::finding::BriefFinding;
use crate::ledger::{
    ActiveSchedule, Ledger, LedgerError, OccurrenceOutcome, OccurrenceRecord, RunFilter, RunId, RunProgress, StopKind,
};
use crate::runs::{
    EndedRun, Error, PlanRefusal, RunOutcome, ScheduleChange, ScheduleRefusal, SkipRecord, check_schedule,
    find_schedule_damage, has_same_text, list_recent_occurrences, load_schedule, occurrence_key, occurrence_list_path,
    recorded_occurrence,
};

/// How often a list that is waited for is looked at.
const LIST_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How many records are looked through for the last run; between two runs there are seldom more that were left out.
const MAX_RECORDS_BACK: u32 = 50;

impl DaemonState {
    pub(super) fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.daemon.adapters.ledger)
    }

    pub(super) fn notify_observer(&self, event: ScheduleEvent) {
        (self.daemon.observer)(event);
    }

    /// Does what is due of a schedule; tells how long until the next is.
    pub(super) async fn attend_schedule(
        &mut self,
        armed: ActiveSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        let ledger = self.ledger();
        let mut post = match self.posts.remove(&armed.name) {
            Some(post) => post,
            None => ScheduleMemory::load(ledger.as_ref(), &armed, now).await?,
        };
        // It was armed anew or resumed, or the clock went back: the ledger tells what began already.
        if post.since != armed.since || now < self.last_round {
            (post.handled, post.since) = (read_handled_until(ledger.as_ref(), &armed, now).await?, armed.since);
            post.checked_at = None;
            post.handle_clock_set_back(now);
        }
        let before = post.handled;
        let next = self.process_due(&mut post, &armed, now).await;
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

    async fn process_due(
        &mut self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        if armed.paused {
            (post.waiting, post.unapproved) = (None, None);
            return Ok(self.daemon.refresh);
        }
        if self.needs_check(post, now) {
            self.check_schedule(post, armed, now).await?;
            post.checked_at = Some(now);
        }
        if post.damage.is_none() && !std::mem::replace(&mut post.resume_checked, true) && post.running.is_none() {
            self.resume_interrupted_run(post, armed, now).await?;
        }
        let Some(schedule) = post.schedule.clone() else { return Ok(self.daemon.refresh) };
        let due = find_due(&schedule, post.handled, now, schedule.latest_delay());
        if let Some(missed) = due.missed {
            post.handled = missed.at;
            let is_left = !post.is_in_progress(&missed);
            if is_left && (due.begins.is_some() || !self.restore_awaiting(post, armed, (&missed, now)).await?) {
                let damaged = post.damage.clone().map(SkipReason::Damaged);
                self.skip_occurrence(armed, &missed, due.before, damaged.unwrap_or(SkipReason::Missed)).await?;
            }
        }
        if let Some(occurrence) = due.begins {
            self.begin_occurrence(post, (armed, &schedule), occurrence, now).await?;
        }
        let waits = self.wait_for_list(post, armed, now).await? | self.wait_for_approval(post, armed, now).await?;
        let next = due.next.map_or(self.daemon.refresh, |next| lateness(now, next));
        Ok(if waits { next.min(LIST_CHECK_INTERVAL) } else { next })
    }

    /// Whether somebody may have changed it since it was looked at, which matters whenever something is due.
    fn needs_check(&self, post: &ScheduleMemory, now: Timestamp) -> bool {
        let (Some(schedule), Some(looked)) = (&post.schedule, post.checked_at) else { return true };
        let is_due = || schedule.occurrences_after(post.handled).next().is_some_and(|next| next.at <= now);
        lateness(looked, now) >= self.daemon.refresh || is_due()
    }

    /// Looks whether it is still what was armed, and whether its records are intact, and tells once if they are not.
    async fn check_schedule(
        &mut self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        post.damage = match find_schedule_damage(self.ledger().as_ref(), armed, now).await? {
            Some(error) => Some(self.report_damaged(armed, &error).await?),
            None => None,
        };
        let change = match load_schedule(&self.daemon.adapters, armed).await {
            Ok(Ok(schedule)) => {
                post.schedule = Some(schedule);
                None
            }
            Ok(Err(change)) => Some(change),
            Err(_) => Some(ScheduleChange::Unreadable),
        };
        if let Some(change) = change.filter(|_| change != post.change) {
            let findings = self.load_findings(armed, change).await;
            let mut what =
                "the campaign has changed since its schedule was activated, so nothing is sent until you activate the schedule again"
                    .to_owned();
            what.extend(findings.iter().map(|finding| format!("; {finding}")));
            self.notify_observer(ScheduleEvent::Changed { schedule: armed.name.clone(), change, findings });
            notify_about(&self.daemon.adapters, armed, NotificationEvent::Changed, &what).await?;
        }
        post.change = change;
        Ok(())
    }

    /// The findings about the file of a schedule, if that is the change.
    async fn load_findings(&self, armed: &ActiveSchedule, change: ScheduleChange) -> Vec<BriefFinding> {
        match change {
            ScheduleChange::Unreadable => check_schedule(&self.daemon.adapters, armed).await.unwrap_or_default(),
            ScheduleChange::Campaign | ScheduleChange::Addresses | ScheduleChange::Account => Vec::new(),
        }
    }

    /// Goes on with a run that an earlier daemon began and did not end; one that stopped stays stopped.
    async fn resume_interrupted_run(
        &mut self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let Some((record, run)) = find_last_fired(self.ledger().as_ref(), armed, now).await? else { return Ok(()) };
        let goes = match self.ledger().list_runs(RunFilter::with_key(run)).await?.pop() {
            // It was never opened, so nothing of it was sent: it begins anew, if it is not too late.
            None => match &post.schedule {
                Some(schedule) if self.is_expired(schedule, armed, &record, now) => {
                    return self.give_up_occurrence(armed, &record).await;
                }
                schedule => schedule.is_some(),
            },
            Some(run) => {
                let interrupted = matches!(run.stop, None | Some(StopKind::Interrupted(_)));
                run.progress == RunProgress::Open && interrupted && !run.stop_requested
            }
        };
        if let Some(occurrence) = recorded_occurrence(&record).filter(|_| goes) {
            self.start_occurrence(post, armed, occurrence, true);
        }
        Ok(())
    }

    /// Whether it is too late for what an earlier daemon began.
    fn is_expired(
        &self,
        schedule: &Schedule,
        armed: &ActiveSchedule,
        record: &OccurrenceRecord,
        now: Timestamp,
    ) -> bool {
        let Some(occurrence) = recorded_occurrence(record) else { return true };
        let list = occurrence_list_path(&self.daemon.adapters, armed, &occurrence).ok().flatten();
        is_too_late(schedule, (&occurrence, list.as_deref().and_then(FileStat::read)), now)
    }

    /// Leaves out what an earlier daemon began so long ago, and of which nothing was sent; tells it once.
    async fn give_up_occurrence(&self, armed: &ActiveSchedule, record: &OccurrenceRecord) -> Result<(), LedgerError> {
        let Some(occurrence) = recorded_occurrence(record) else { return Ok(()) };
        // Whoever has the campaign may be about to send it.
        let Some(_held) = self.ledger().acquire_campaign_lock(&armed.name, &armed.account).await? else {
            return Ok(());
        };
        let reason = SkipReason::Missed;
        if self.ledger().abandon_occurrence(&record.key, record.at, &reason.to_record().to_text()).await? {
            self.report_skipped(armed, &occurrence, 0, reason).await?;
        }
        Ok(())
    }

    /// Begins an occurrence that is due, has it wait for its list, or leaves it out.
    async fn begin_occurrence(
        &mut self,
        post: &mut ScheduleMemory,
        (armed, schedule): (&ActiveSchedule, &Schedule),
        occurrence: Occurrence,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        post.handled = occurrence.at;
        // The clock went back over it: that it is due was heard already.
        if post.is_in_progress(&occurrence) {
            return Ok(());
        }
        if let Some(waiting) = post.waiting.take() {
            self.skip_occurrence(armed, &waiting.occurrence, 0, SkipReason::Overtaken).await?;
        }
        if post.running.is_none() {
            self.skip_unapproved(post, armed).await?;
        }
        if let Some(problem) = post.damage.clone() {
            self.skip_occurrence(armed, &occurrence, 0, SkipReason::Damaged(problem)).await?;
        } else if let Some(change) = post.change {
            let findings = self.load_findings(armed, change).await;
            self.skip_occurrence(armed, &occurrence, 0, SkipReason::Changed(change, findings)).await?;
        } else if post.running.is_some() {
            self.skip_occurrence(armed, &occurrence, 0, SkipReason::Busy).await?;
        } else if let Some(wait) = schedule.wait_for_file {
            let list = match occurrence_list_path(&self.daemon.adapters, armed, &occurrence) {
                Ok(list) => list,
                Err(error) => {
                    let reason = SkipReason::Refused(SkipRecord::from_error(&error));
                    return self.skip_occurrence(armed, &occurrence, 0, reason).await.map(|_| ());
                }
            };
            let seen = list.as_deref().and_then(FileStat::read);
            let is_awaited = list.is_some() && seen.is_none();
            if !is_awaited && is_too_late(schedule, (&occurrence, seen), now) {
                return self.skip_occurrence(armed, &occurrence, 0, SkipReason::Missed).await.map(|_| ());
            }
            let Some(list) = list else {
                self.start_occurrence(post, armed, occurrence, false);
                return Ok(());
            };
            if is_awaited {
                let what = format!("the run scheduled for {} is waiting for its list", occurrence.format_nominal());
                notify_about(&self.daemon.adapters, armed, NotificationEvent::Waiting, &what).await?;
                let (schedule, occurrence) = (armed.name.clone(), occurrence.clone());
                self.notify_observer(ScheduleEvent::Waiting { schedule, occurrence });
            }
            let until = occurrence.at.checked_add(wait).unwrap_or(Timestamp::MAX);
            post.waiting = Some(AwaitingList { occurrence, list, until, watch: ListWatch::default() });
        } else {
            self.start_occurrence(post, armed, occurrence, false);
        }
        Ok(())
    }

    /// Begins the occurrence that waits for its list, once that is whole; whether it waits still.
    async fn wait_for_list(
        &mut self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(mut waiting) = post.waiting.take() else { return Ok(false) };
        if waiting.watch.is_stable(FileStat::read(&waiting.list), now) && post.damage.is_none() {
            self.start_occurrence(post, armed, waiting.occurrence, false);
            return Ok(false);
        }
        if now > waiting.until {
            self.skip_occurrence(armed, &waiting.occurrence, 0, SkipReason::NoList(waiting.list)).await?;
            return Ok(false);
        }
        post.waiting = Some(waiting);
        Ok(true)
    }

    pub(super) fn start_occurrence(
        &mut self,
        post: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        occurrence: Occurrence,
        went_on: bool,
    ) {
        post.running = Some(occurrence.clone());
        let armed = armed.clone();
        let sent = self.daemon.starter.start_occurrence(armed.clone(), occurrence.clone(), self.interrupt.clone());
        self.running.spawn(async move { StartResult { armed, occurrence, resumed: went_on, outcome: sent.await } });
    }

    /// Records that an occurrence is left out, and tells it; whether it had no record before.
    pub(super) async fn skip_occurrence(
        &self,
        armed: &ActiveSchedule,
        occurrence: &Occurrence,
        before: usize,
        reason: SkipReason,
    ) -> Result<bool, LedgerError> {
        let key = occurrence_key(&armed.name, occurrence);
        let is_new = self.ledger().skip_occurrence(&key, occurrence.at, &reason.to_record().to_text()).await?;
        if is_new {
            self.report_skipped(armed, occurrence, before, reason).await?;
        }
        Ok(is_new)
    }

    async fn report_skipped(
        &self,
        armed: &ActiveSchedule,
        occurrence: &Occurrence,
        before: usize,
        reason: SkipReason,
    ) -> Result<(), LedgerError> {
        let what = format!("the run scheduled for {} was skipped: {}", occurrence.format_nominal(), reason.to_record());
        notify_about(&self.daemon.adapters, armed, NotificationEvent::Skipped, &what).await?;
        let (schedule, occurrence) = (armed.name.clone(), occurrence.clone());
        self.notify_observer(ScheduleEvent::Skipped { schedule, occurrence, before, reason });
        Ok(())
    }

    /// Hears what came of a start.
    pub(super) async fn handle_end(&mut self, started: StartResult) -> Result<(), LedgerError> {
        let StartResult { armed, occurrence, resumed: went_on, outcome } = started;
        if let Some(post) = self.posts.get_mut(&armed.name) {
            post.running = None;
        }
        if let Err(Error::Plan(PlanRefusal::Unapproved { digest: Some(digest), .. })) = outcome {
            return self.await_approval(&armed, occurrence, digest).await;
        }
        if let Some(post) = self.posts.get_mut(&armed.name) {
            post.unapproved = None;
        }
        let reason = match outcome {
            Ok(RunOutcome::Ended(ended)) => return self.report_sent(armed, occurrence, ended).await,
            Ok(RunOutcome::NothingLeft(_)) => SkipReason::NobodyLeft,
            // It is over here: after the next start it goes on, or begins if it is not too late. Or another daemon had it.
            Err(Error::Interrupted { .. } | Error::Schedule(ScheduleRefusal::Recorded { .. })) => return Ok(()),
            Err(Error::Busy { .. }) if went_on => return Ok(()),
            Err(Error::Busy { .. }) => SkipReason::Busy,
            Err(Error::Schedule(ScheduleRefusal::Changed(change))) => SkipReason::Changed(change, Vec::new()),
            Err(Error::Ledger(LedgerError::Busy { .. })) => {
                self.posts.remove(&armed.name);
                return Ok(());
            }
            Err(Error::Ledger(error)) if error.concerns_records() => SkipReason::Damaged(error.describe_damage()),
            Err(Error::Ledger(error)) => return Err(error),
            Err(error) => SkipReason::Refused(SkipRecord::from_error(&error)),
        };
        let (words, is_damage) = (reason.to_record().to_string(), matches!(reason, SkipReason::Damaged(_)));
        if !self.skip_occurrence(&armed, &occurrence, 0, reason).await? {
            if is_damage {
                let what = format!("the run scheduled for {} ended early: {words}", occurrence.format_nominal());
                notify_about(&self.daemon.adapters, &armed, NotificationEvent::Stopped, &what).await?;
            }
            self.notify_observer(ScheduleEvent::Broke { schedule: armed.name, occurrence, why: words });
        }
        Ok(())
    }

    async fn report_sent(
        &self,
        armed: ActiveSchedule,
        occurrence: Occurrence,
        ended: Box<EndedRun>,
    ) -> Result<(), LedgerError> {
        let just_before = Timestamp::from_microsecond(occurrence.at.as_microsecond() - 1).unwrap_or(occurrence.at);
        let same_text = match find_last_fired(self.ledger().as_ref(), &armed, just_before).await? {
            Some((_, before)) => has_same_text(self.ledger().as_ref(), &ended.run, before).await.unwrap_or(false),
            None => false,
        };
        if same_text {
            let occasion = if ended.stop.is_some() { NotificationEvent::Stopped } else { NotificationEvent::Finished };
            let what = format!(
                "the run scheduled for {} sent the same message as the previous run",
                occurrence.format_nominal()
            );
            notify_about(&self.daemon.adapters, &armed, occasion, &what).await?;
        }
        self.notify_observer(ScheduleEvent::Ended { schedule: armed.name, occurrence, ended, same_text });
        Ok(())
    }
}

/// Whether it is too late for an occurrence: it was due long ago, and so was its list where that is waited for.
fn is_too_late(schedule: &Schedule, (occurrence, seen): (&Occurrence, Option<FileStat>), now: Timestamp) -> bool {
    let came = seen.filter(|_| schedule.wait_for_file.is_some()).and_then(FileStat::modified_at);
    let late = lateness(came.map_or(occurrence.at, |came| came.max(occurrence.at)), now);
    late > schedule.grace || lateness(occurrence.at, now) > schedule.latest_delay()
}

/// The last occurrence until a moment that began a run, and the run.
async fn find_last_fired(
    ledger: &dyn Ledger,
    armed: &ActiveSchedule,
    until: Timestamp,
) -> Result<Option<(OccurrenceRecord, RunId)>, LedgerError> {
    let last = list_recent_occurrences(ledger, armed, until, MAX_RECORDS_BACK).await?;
    Ok(last.into_iter().find_map(|record| match record.outcome {
        OccurrenceOutcome::Fired(run) => Some((record, run)),
        OccurrenceOutcome::Skipped(_) => None,
    }))
}
