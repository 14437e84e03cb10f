//! Starting, skipping and resuming the occurrences of a schedule, and waiting for lists and approvals.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::daemon::{DaemonState, StartResult};
use super::due::{
    AwaitingApproval, AwaitingList, FileStat, ListWatch, ScheduleMemory, find_due, lateness, read_handled_until,
};
use super::{ScheduleEvent, SkipReason, notify_about};
use campaign_core::calendar::{Occurrence, Schedule};
use campaign_core::domain::NotificationEvent;
use campaign_core::finding::BriefFinding;
use campaign_engine::report::format_local_minute;
use campaign_ledger::{
    ActiveSchedule, Ledger, LedgerError, OccurrenceOutcome, OccurrenceRecord, RunFilter, RunId, RunProgress,
    SkipCondition, StopKind,
};
use campaign_runs::{
    EndedRun, Error, PlanRefusal, RunOutcome, ScheduleChange, ScheduleRefusal, SkipRecord, check_schedule,
    count_approvals, find_occurrence_plan, find_schedule_damage, has_same_text, list_recent_occurrences, load_schedule,
    occurrence_key, occurrence_list_path, recorded_occurrence, short_digest,
};

/// The interval between two looks for an awaited list.
const LIST_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The number of records that are searched for the last run; skipped occurrences between two runs are seldom more.
const MAX_RECORDS_BACK: u32 = 50;

impl DaemonState {
    pub(super) fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.daemon.adapters.ledger)
    }

    pub(super) fn notify_observer(&self, event: ScheduleEvent) {
        (self.daemon.observer)(event);
    }

    /// Handles the due occurrences of a schedule. Returns the time until the next one.
    pub(super) async fn attend_schedule(
        &mut self,
        armed: ActiveSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        let ledger = self.ledger();
        let mut memory = match self.memories.remove(&armed.name) {
            Some(memory) => memory,
            None => ScheduleMemory::load(ledger.as_ref(), &armed, now).await?,
        };
        // It was activated again or resumed, or the clock was set back. The ledger knows which occurrences started.
        if memory.since != armed.since || now < self.last_round {
            (memory.handled, memory.since) = (read_handled_until(ledger.as_ref(), &armed, now).await?, armed.since);
            memory.checked_at = None;
            memory.handle_clock_set_back(now);
        }
        let before = memory.handled;
        let next = self.process_due(&mut memory, &armed, now).await;
        if next.is_err() {
            // An occurrence that could not be recorded is still due; the ledger tells.
            if memory.running.is_none() {
                return next;
            }
            memory.handled = before;
        }
        self.memories.insert(armed.name, memory);
        next
    }

    async fn process_due(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        if armed.paused {
            (memory.waiting, memory.unapproved) = (None, None);
            return Ok(self.daemon.refresh);
        }
        if self.needs_check(memory, now) {
            self.check_schedule(memory, armed, now).await?;
            memory.checked_at = Some(now);
        }
        if memory.damage.is_none() && !std::mem::replace(&mut memory.resume_checked, true) && memory.running.is_none() {
            self.resume_interrupted_run(memory, armed, now).await?;
        }
        let Some(schedule) = memory.schedule.clone() else { return Ok(self.daemon.refresh) };
        let due = find_due(&schedule, memory.handled, now, schedule.latest_delay());
        if let Some(missed) = due.missed {
            memory.handled = missed.at;
            let is_left = !memory.is_in_progress(&missed);
            if is_left && (due.begins.is_some() || !self.restore_awaiting(memory, armed, &missed, now).await?) {
                let damaged = memory.damage.clone().map(SkipReason::Damaged);
                self.skip_occurrence(armed, &missed, due.before, damaged.unwrap_or(SkipReason::Missed)).await?;
            }
        }
        if let Some(occurrence) = due.begins {
            self.begin_occurrence(memory, armed, &schedule, occurrence, now).await?;
        }
        let waits = self.wait_for_list(memory, armed, now).await? | self.poll_approval(memory, armed, now).await?;
        let next = due.next.map_or(self.daemon.refresh, |next| lateness(now, next));
        Ok(if waits { next.min(LIST_CHECK_INTERVAL) } else { next })
    }

    /// Whether the schedule must be checked for changes: regularly, and before each occurrence.
    fn needs_check(&self, memory: &ScheduleMemory, now: Timestamp) -> bool {
        let (Some(schedule), Some(looked)) = (&memory.schedule, memory.checked_at) else { return true };
        let is_due = || schedule.occurrences_after(memory.handled).next().is_some_and(|next| next.at <= now);
        lateness(looked, now) >= self.daemon.refresh || is_due()
    }

    /// Checks that the campaign is unchanged and its records are intact, and reports problems once.
    async fn check_schedule(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        memory.damage = match find_schedule_damage(self.ledger().as_ref(), armed, now).await? {
            Some(error) => Some(self.report_damaged(armed, &error).await?),
            None => None,
        };
        let change = match load_schedule(&self.daemon.adapters, armed).await {
            Ok(Ok(schedule)) => {
                memory.schedule = Some(schedule);
                None
            }
            Ok(Err(change)) => Some(change),
            Err(_) => Some(ScheduleChange::Unreadable),
        };
        if let Some(change) = change.filter(|_| change != memory.change) {
            let findings = self.load_findings(armed, change).await;
            let mut what =
                "the campaign has changed since its schedule was activated, so nothing is sent until you activate the schedule again"
                    .to_owned();
            what.extend(findings.iter().map(|finding| format!("; {finding}")));
            self.notify_observer(ScheduleEvent::Changed { schedule: armed.name.clone(), change, findings });
            notify_about(&self.daemon.adapters, armed, NotificationEvent::Changed, &what).await?;
        }
        memory.change = change;
        Ok(())
    }

    /// The findings about the file of a schedule, if those are the change.
    async fn load_findings(&self, armed: &ActiveSchedule, change: ScheduleChange) -> Vec<BriefFinding> {
        match change {
            ScheduleChange::Unreadable => check_schedule(&self.daemon.adapters, armed).await.unwrap_or_default(),
            ScheduleChange::Campaign | ScheduleChange::Addresses | ScheduleChange::Account => Vec::new(),
        }
    }

    /// Resumes a run that an earlier daemon did not finish. A stopped run stays stopped.
    async fn resume_interrupted_run(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let Some((record, run)) = find_last_fired(self.ledger().as_ref(), armed, now).await? else { return Ok(()) };
        let goes = match self.ledger().list_runs(RunFilter::with_key(run)).await?.pop() {
            // The run was never opened, so no messages were sent: it starts again if it is not too late.
            None => match &memory.schedule {
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
            self.start_occurrence(memory, armed, occurrence, true);
        }
        Ok(())
    }

    /// Whether it is too late for an occurrence of an earlier daemon.
    fn is_expired(
        &self,
        schedule: &Schedule,
        armed: &ActiveSchedule,
        record: &OccurrenceRecord,
        now: Timestamp,
    ) -> bool {
        let Some(occurrence) = recorded_occurrence(record) else { return true };
        let list = occurrence_list_path(&self.daemon.adapters, armed, &occurrence).ok().flatten();
        is_too_late(schedule, &occurrence, list.as_deref().and_then(FileStat::read), now)
    }

    /// Skips and reports an occurrence of an earlier daemon of which no messages were sent.
    async fn give_up_occurrence(&self, armed: &ActiveSchedule, record: &OccurrenceRecord) -> Result<(), LedgerError> {
        let Some(occurrence) = recorded_occurrence(record) else { return Ok(()) };
        // The owner of the campaign lock might be about to send it.
        let Some(_held) = self.ledger().acquire_campaign_lock(&armed.name, &armed.account).await? else {
            return Ok(());
        };
        let reason = SkipReason::Missed;
        let (text, condition) = (reason.to_record().to_text(), SkipCondition::RunNotOpened);
        if self.ledger().skip_occurrence(&record.key, record.at, &text, condition).await? {
            self.report_skipped(armed, &occurrence, 0, reason).await?;
        }
        Ok(())
    }

    /// Begins an occurrence that is due, waits for its list, or skips it.
    async fn begin_occurrence(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        schedule: &Schedule,
        occurrence: Occurrence,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        memory.handled = occurrence.at;
        // The clock was set back over it: it was already handled as due.
        if memory.is_in_progress(&occurrence) {
            return Ok(());
        }
        if let Some(waiting) = memory.waiting.take() {
            self.skip_occurrence(armed, &waiting.occurrence, 0, SkipReason::Overtaken).await?;
        }
        if memory.running.is_none() {
            self.skip_unapproved(memory, armed).await?;
        }
        if let Some(problem) = memory.damage.clone() {
            self.skip_occurrence(armed, &occurrence, 0, SkipReason::Damaged(problem)).await?;
        } else if let Some(change) = memory.change {
            let findings = self.load_findings(armed, change).await;
            self.skip_occurrence(armed, &occurrence, 0, SkipReason::Changed(change, findings)).await?;
        } else if memory.running.is_some() {
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
            if !is_awaited && is_too_late(schedule, &occurrence, seen, now) {
                return self.skip_occurrence(armed, &occurrence, 0, SkipReason::Missed).await.map(|_| ());
            }
            let Some(list) = list else {
                self.start_occurrence(memory, armed, occurrence, false);
                return Ok(());
            };
            if is_awaited {
                let what = format!("the run scheduled for {} is waiting for its list", occurrence.format_nominal());
                notify_about(&self.daemon.adapters, armed, NotificationEvent::Waiting, &what).await?;
                let (schedule, occurrence) = (armed.name.clone(), occurrence.clone());
                self.notify_observer(ScheduleEvent::Waiting { schedule, occurrence });
            }
            let until = occurrence.at.checked_add(wait).unwrap_or(Timestamp::MAX);
            memory.waiting = Some(AwaitingList { occurrence, list, until, watch: ListWatch::default() });
        } else {
            self.start_occurrence(memory, armed, occurrence, false);
        }
        Ok(())
    }

    /// Begins the occurrence that waits for its list, as soon as that is complete; returns whether it still waits.
    async fn wait_for_list(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(mut waiting) = memory.waiting.take() else { return Ok(false) };
        if waiting.watch.is_stable(FileStat::read(&waiting.list), now) && memory.damage.is_none() {
            self.start_occurrence(memory, armed, waiting.occurrence, false);
            return Ok(false);
        }
        if now > waiting.until {
            self.skip_occurrence(armed, &waiting.occurrence, 0, SkipReason::NoList(waiting.list)).await?;
            return Ok(false);
        }
        memory.waiting = Some(waiting);
        Ok(true)
    }

    pub(super) fn start_occurrence(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        occurrence: Occurrence,
        went_on: bool,
    ) {
        memory.running = Some(occurrence.clone());
        let armed = armed.clone();
        let sent = self.daemon.starter.start_occurrence(armed.clone(), occurrence.clone(), self.interrupt.clone());
        self.running.spawn(async move { StartResult { armed, occurrence, resumed: went_on, outcome: sent.await } });
    }

    /// Records and reports a skipped occurrence. Returns whether it had no record before.
    pub(super) async fn skip_occurrence(
        &self,
        armed: &ActiveSchedule,
        occurrence: &Occurrence,
        before: usize,
        reason: SkipReason,
    ) -> Result<bool, LedgerError> {
        let key = occurrence_key(&armed.name, occurrence);
        let (text, condition) = (reason.to_record().to_text(), SkipCondition::NotRecorded);
        let is_new = self.ledger().skip_occurrence(&key, occurrence.at, &text, condition).await?;
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

    /// Handles the result of a start.
    pub(super) async fn handle_end(&mut self, started: StartResult) -> Result<(), LedgerError> {
        let StartResult { armed, occurrence, resumed: went_on, outcome } = started;
        if let Some(memory) = self.memories.get_mut(&armed.name) {
            memory.running = None;
        }
        if let Err(Error::Plan(PlanRefusal::Unapproved { digest: Some(digest), .. })) = outcome {
            return self.await_approval(&armed, occurrence, digest).await;
        }
        if let Some(memory) = self.memories.get_mut(&armed.name) {
            memory.unapproved = None;
        }
        let reason = match outcome {
            Ok(RunOutcome::Ended(ended)) => return self.report_sent(armed, occurrence, ended).await,
            Ok(RunOutcome::NothingLeft(_)) => SkipReason::NobodyLeft,
            // After a restart it resumes, or starts if it is not too late. Or another daemon started it.
            Err(Error::Interrupted { .. } | Error::Schedule(ScheduleRefusal::Recorded { .. })) => return Ok(()),
            Err(Error::Busy { .. }) if went_on => return Ok(()),
            Err(Error::Busy { .. }) => SkipReason::Busy,
            Err(Error::Schedule(ScheduleRefusal::Changed(change))) => SkipReason::Changed(change, Vec::new()),
            Err(Error::Ledger(LedgerError::Busy { .. })) => {
                self.memories.remove(&armed.name);
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

/// Whether it is too late for an occurrence: its time has long passed, and so has that of an awaited list.
fn is_too_late(schedule: &Schedule, occurrence: &Occurrence, seen: Option<FileStat>, now: Timestamp) -> bool {
    let came = seen.filter(|_| schedule.wait_for_file.is_some()).and_then(FileStat::modified_at);
    let late = lateness(came.map_or(occurrence.at, |came| came.max(occurrence.at)), now);
    late > schedule.grace || lateness(occurrence.at, now) > schedule.latest_delay()
}

/// The last occurrence up to a moment that began a run, and the run.
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

/// The longest wait of an occurrence.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl AwaitingApproval {
    fn for_occurrence(occurrence: Occurrence, digest: String) -> Self {
        let until = occurrence.at.checked_add(MAX_WAIT).unwrap_or(Timestamp::MAX);
        Self { occurrence, digest, until, seen: 0 }
    }
}

impl DaemonState {
    /// Lets an occurrence wait for a missing approval, and reports its digest once.
    pub(super) async fn await_approval(
        &mut self,
        armed: &ActiveSchedule,
        occurrence: Occurrence,
        digest: String,
    ) -> Result<(), LedgerError> {
        let Some(memory) = self.memories.get_mut(&armed.name) else { return Ok(()) };
        // The given approvals were not valid. New ones are checked in the next round.
        if memory.unapproved.as_ref().is_some_and(|known| known.digest == digest) {
            return Ok(());
        }
        let unapproved = AwaitingApproval::for_occurrence(occurrence.clone(), digest.clone());
        let (name, until) = (occurrence.format_nominal(), unapproved.until);
        memory.unapproved = Some(unapproved);
        let (until, plan) = (format_local_minute(until), short_digest(&digest));
        let what = format!("the run scheduled for {name} waits until {until} for approval of plan {plan}");
        notify_about(&self.daemon.adapters, armed, NotificationEvent::Waiting, &what).await?;
        self.notify_observer(ScheduleEvent::Unapproved { schedule: armed.name.clone(), occurrence, digest });
        Ok(())
    }

    /// Starts the pending occurrence once approved, or skips it after its deadline.
    ///
    /// Returns whether it is still pending.
    pub(super) async fn poll_approval(
        &mut self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(unapproved) = memory.unapproved.as_mut().filter(|_| memory.running.is_none()) else {
            return Ok(false);
        };
        if now > unapproved.until {
            self.skip_unapproved(memory, armed).await?;
            return Ok(false);
        }
        if memory.damage.is_some() {
            return Ok(true);
        }
        let given = count_approvals(self.ledger().as_ref(), armed, &unapproved.digest).await?;
        if given > unapproved.seen {
            unapproved.seen = given;
            let occurrence = unapproved.occurrence.clone();
            self.start_occurrence(memory, armed, occurrence, false);
        }
        Ok(true)
    }

    /// Skips the occurrence that waits for an approval, if there is one.
    pub(super) async fn skip_unapproved(
        &self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
    ) -> Result<(), LedgerError> {
        let Some(unapproved) = memory.unapproved.take() else { return Ok(()) };
        self.skip_occurrence(armed, &unapproved.occurrence, 0, SkipReason::Unapproved).await.map(|_| ())
    }

    /// Whether a past occurrence was waiting for an approval when the previous daemon ended; it then continues to
    /// wait.
    pub(super) async fn restore_awaiting(
        &self,
        memory: &mut ScheduleMemory,
        armed: &ActiveSchedule,
        missed: &Occurrence,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        if lateness(missed.at, now) > MAX_WAIT || memory.running.is_some() {
            return Ok(false);
        }
        let key = occurrence_key(&armed.name, missed);
        let planned = find_occurrence_plan(self.ledger().as_ref(), &key).await?;
        memory.unapproved = planned.map(|digest| AwaitingApproval::for_occurrence(missed.clone(), digest));
        Ok(memory.unapproved.is_some())
    }
}
