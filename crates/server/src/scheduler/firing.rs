//! Starting, skipping and resuming the occurrences of a schedule, and waiting for lists and approvals.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::Timestamp;

use super::memory::{
    AwaitingApproval, FileStat, ListArrival, ListStart, ScheduleMemory, read_handled_until, start_deadline, time_until,
};
use super::{DaemonState, ScheduleEvent, SkipReason, StartResult, notify_about};
use campaign_core::calendar::{Occurrence, Schedule, lateness};
use campaign_core::domain::NotificationEvent;
use campaign_core::finding::BriefFinding;
use campaign_engine::report::format_local_minute;
use campaign_ledger::{
    ActiveSchedule, Ledger, LedgerError, OccurrenceFilter, OccurrenceOutcome, OccurrenceRecord, RunFilter, RunId,
    RunProgress, ScheduleUpdate, ScheduledOccurrence, SkipCondition, StopKind, find_occurrence,
};
use campaign_runs::{
    EndedRun, Error, MAX_APPROVAL_WAIT, PlanRefusal, RunOutcome, ScheduleChange, ScheduleRefusal, SkipRecord,
    count_approvals, find_occurrence_list_path, find_occurrence_plan, find_run_deadline, find_schedule_damage,
    find_schedule_problems, has_same_text, list_recent_occurrences, load_schedule, occurrence_key, recorded_occurrence,
    short_digest,
};

/// The interval between checks for an awaited list, approval or campaign lock.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The maximum number of records to search for the last run. Few schedules skip more occurrences between two runs.
const MAX_SEARCHED_RECORDS: u32 = 50;

impl DaemonState {
    pub(super) fn ledger(&self) -> Arc<dyn Ledger> {
        Arc::clone(&self.daemon.adapters.ledger)
    }

    pub(super) fn notify_observer(&self, event: ScheduleEvent) {
        (self.daemon.observer)(event);
    }

    /// Processes a schedule with its memory, which is loaded or refreshed first if necessary. Returns the time until
    /// the schedule must be processed again.
    pub(super) async fn process_schedule(
        &mut self,
        active: ActiveSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        let ledger = self.ledger();
        let mut memory = match self.memories.remove(&active.name) {
            Some(memory) => memory,
            None => ScheduleMemory::load(ledger.as_ref(), &active, now).await?,
        };
        let handled_before = memory.handled;
        let next = match self.refresh_memory(&mut memory, &active, now).await {
            Ok(()) => self.process_due(&mut memory, &active, now).await,
            Err(error) => Err(error),
        };
        if next.is_err() {
            // Drop the memory. The next round loads it from the ledger.
            if memory.running.is_none() {
                return next;
            }
            // Keep the memory of the current run. The occurrence that could not be recorded is still due.
            memory.handled = handled_before;
        }
        self.memories.insert(active.name, memory);
        next
    }

    /// Updates the memory if the schedule was activated again or resumed, or if the clock was set back. The ledger
    /// shows which occurrences have started.
    async fn refresh_memory(
        &self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let was_activated_again = memory.since != active.since;
        if was_activated_again {
            self.skip_withdrawn(memory, active).await?;
        }
        if was_activated_again || now < self.last_round {
            let handled = read_handled_until(self.ledger().as_ref(), active, now).await?;
            (memory.handled, memory.since) = (handled, active.since);
            memory.checked_at = None;
            memory.handle_clock_set_back(now);
        }
        Ok(())
    }

    /// Starts or skips the due occurrences of a schedule, and polls the occurrences that wait. Returns the time until
    /// the schedule must be processed again.
    async fn process_due(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<Duration, LedgerError> {
        if active.paused {
            self.skip_withdrawn(memory, active).await?;
            return Ok(self.daemon.refresh);
        }
        if self.needs_check(memory, now) {
            self.check_schedule(memory, active, now).await?;
            memory.checked_at = Some(now);
        }
        if memory.damage.is_none() && !memory.resume_checked {
            memory.resume_checked = true;
            if memory.running.is_none() {
                self.resume_interrupted_run(memory, active, now).await?;
            }
        }
        let Some(schedule) = memory.schedule.clone() else { return Ok(self.daemon.refresh) };
        let due = schedule.find_due(memory.handled, now);
        if let Some(missed) = due.missed {
            memory.handled = missed.at;
            let was_missed = !memory.is_in_progress(&missed);
            if was_missed
                && (due.current.is_some() || !self.restore_awaiting_approval(memory, active, &missed, now).await?)
            {
                let reason = match memory.damage.clone() {
                    Some(problem) => SkipReason::Damaged(problem),
                    None if memory.running.is_some() => SkipReason::Busy,
                    None => SkipReason::Missed,
                };
                self.skip_occurrence(active, &missed, due.missed_before, reason).await?;
            }
        }
        let mut previous_ends = None;
        if let Some(occurrence) = due.current {
            previous_ends = self.find_awaited_end(memory, active, &schedule, &occurrence).await?;
            if previous_ends.is_none() {
                self.begin_occurrence(memory, active, &schedule, occurrence, now).await?;
            }
        }
        // All three are polled, so the operator must not short-circuit.
        let waits = self.poll_list(memory, active, now).await?
            | self.poll_approval(memory, active, now).await?
            | self.poll_lock(memory, active, now).await?;
        let wait = due.next.map_or(self.daemon.refresh, |next| time_until(next, now));
        let wait = previous_ends.map_or(wait, |end| wait.min(time_until(end, now).max(CHECK_INTERVAL)));
        Ok(if waits { wait.min(CHECK_INTERVAL) } else { wait })
    }

    /// Finds the time at which the previous run ends, if a due occurrence waits for that run. Until then, the
    /// occurrence stays due. Without this wait, every second occurrence would be skipped if `until` is as long as the
    /// interval of the schedule.
    async fn find_awaited_end(
        &self,
        memory: &ScheduleMemory,
        active: &ActiveSchedule,
        schedule: &Schedule,
        occurrence: &Occurrence,
    ) -> Result<Option<Timestamp>, LedgerError> {
        let is_unimpaired = memory.damage.is_none() && memory.change.is_none();
        let Some(running) = memory.running.as_ref().filter(|running| is_unimpaired && *running != occurrence) else {
            return Ok(None);
        };
        let end = find_run_deadline(&self.daemon.adapters, active, running).await?;
        Ok(end.filter(|end| schedule.can_start_after(occurrence, *end)))
    }

    /// Whether the schedule must be checked for changes: regularly, and before each occurrence.
    fn needs_check(&self, memory: &ScheduleMemory, now: Timestamp) -> bool {
        let (Some(schedule), Some(checked_at)) = (&memory.schedule, memory.checked_at) else { return true };
        let is_due = || schedule.occurrences_after(memory.handled).next().is_some_and(|next| next.at <= now);
        lateness(checked_at, now) >= self.daemon.refresh || is_due()
    }

    /// Checks that the campaign is unchanged and the schedule's records are intact, and reports problems once.
    async fn check_schedule(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        memory.damage = match find_schedule_damage(self.ledger().as_ref(), active, now).await? {
            Some(error) => Some(self.report_damaged(active, &error).await?),
            None => None,
        };
        let change = match load_schedule(&self.daemon.adapters, active).await {
            Ok(Ok(schedule)) => {
                memory.schedule = Some(schedule);
                None
            }
            Ok(Err(change)) => Some(change),
            Err(_) => Some(ScheduleChange::Unreadable),
        };
        if let Some(change) = change.filter(|_| change != memory.change) {
            let findings = self.load_findings(active, change).await;
            let mut message = format!("{change}, so nothing is sent until you activate the schedule again");
            message.extend(findings.iter().map(|finding| format!("; {finding}")));
            self.notify_observer(ScheduleEvent::Changed { schedule: active.name.clone(), change, findings });
            notify_about(&self.daemon.adapters, active, NotificationEvent::Changed, &message).await?;
        }
        memory.change = change;
        Ok(())
    }

    /// Loads the findings about the file of a schedule, if the change makes the file unreadable.
    async fn load_findings(&self, active: &ActiveSchedule, change: ScheduleChange) -> Vec<BriefFinding> {
        match change {
            ScheduleChange::Unreadable => {
                find_schedule_problems(&self.daemon.adapters, active).await.unwrap_or_default()
            }
            ScheduleChange::Campaign | ScheduleChange::Addresses | ScheduleChange::Account => Vec::new(),
        }
    }

    /// Skips the occurrences that are waiting to start, because the schedule was paused or activated again.
    async fn skip_withdrawn(&self, memory: &mut ScheduleMemory, active: &ActiveSchedule) -> Result<(), LedgerError> {
        let waiting = memory.waiting.take().map(|waiting| waiting.occurrence);
        let unapproved = memory.unapproved.take().map(|unapproved| unapproved.occurrence);
        let locked = memory.locked.take().map(|locked| locked.occurrence);
        for occurrence in [waiting, unapproved, locked].into_iter().flatten() {
            self.skip_occurrence(active, &occurrence, 0, SkipReason::Withdrawn).await?;
        }
        Ok(())
    }

    /// Resumes a run that an earlier daemon did not finish. A run is not resumed if it was stopped, or if it began
    /// before the schedule was last activated or resumed.
    async fn resume_interrupted_run(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let last = find_last_fired(self.ledger().as_ref(), active, now).await?;
        let Some((record, run)) = last.filter(|(record, _)| record.at >= active.since) else { return Ok(()) };
        let should_resume = match self.ledger().list_runs(RunFilter::with_key(run)).await?.pop() {
            // The run was never opened, so no messages were sent. The occurrence starts again unless it is too late.
            None => match &memory.schedule {
                Some(schedule) if self.is_expired(schedule, active, &record, now) => {
                    return self.skip_missed_occurrence(active, &record).await;
                }
                schedule => schedule.is_some(),
            },
            Some(run) => {
                let interrupted = matches!(run.stop, None | Some(StopKind::Interrupted(_)));
                run.progress == RunProgress::Open && interrupted && !run.stop_requested
            }
        };
        if let Some(occurrence) = recorded_occurrence(&record).filter(|_| should_resume) {
            self.start_occurrence(memory, active, occurrence, true);
        }
        Ok(())
    }

    /// Whether it is too late to start an occurrence that an earlier daemon recorded.
    fn is_expired(
        &self,
        schedule: &Schedule,
        active: &ActiveSchedule,
        record: &OccurrenceRecord,
        now: Timestamp,
    ) -> bool {
        let Some(occurrence) = recorded_occurrence(record) else { return true };
        let list = self.find_list(active, &occurrence).ok().flatten();
        now > start_deadline(schedule, &occurrence, list.as_deref().and_then(FileStat::read))
    }

    /// Skips an occurrence for which an earlier daemon sent no messages, and reports the skipped occurrence.
    async fn skip_missed_occurrence(
        &self,
        active: &ActiveSchedule,
        record: &OccurrenceRecord,
    ) -> Result<(), LedgerError> {
        let Some(occurrence) = recorded_occurrence(record) else { return Ok(()) };
        // The process that holds the campaign lock might be about to send the occurrence.
        let Some(_lock) = self.ledger().acquire_campaign_lock(&active.name, &active.account).await? else {
            return Ok(());
        };
        let reason = SkipReason::Missed;
        let skip = ScheduleUpdate::Skip {
            occurrence: ScheduledOccurrence { key: record.key.clone(), at: record.at },
            reason: reason.to_record().to_text(),
            condition: SkipCondition::RunNotOpened,
        };
        if self.ledger().update_schedules(skip).await? {
            self.report_skipped(active, &occurrence, 0, reason).await?;
        }
        Ok(())
    }

    /// Starts a due occurrence, waits for its list, or skips it.
    async fn begin_occurrence(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        schedule: &Schedule,
        occurrence: Occurrence,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        memory.handled = occurrence.at;
        // If the clock was set back, this occurrence might already be in progress.
        if memory.is_in_progress(&occurrence) {
            return Ok(());
        }
        if let Some(waiting) = memory.waiting.take() {
            self.skip_occurrence(active, &waiting.occurrence, 0, SkipReason::Overtaken).await?;
        }
        if memory.running.is_none() {
            self.skip_unapproved(memory, active).await?;
            self.skip_locked(memory, active).await?;
        }
        if let Some(problem) = memory.damage.clone() {
            self.skip_occurrence(active, &occurrence, 0, SkipReason::Damaged(problem)).await?;
        } else if let Some(change) = memory.change {
            let findings = self.load_findings(active, change).await;
            self.skip_occurrence(active, &occurrence, 0, SkipReason::Changed(change, findings)).await?;
        } else if memory.running.is_some() {
            self.skip_occurrence(active, &occurrence, 0, SkipReason::Busy).await?;
        } else if schedule.wait_for_file.is_some() {
            let list = match self.find_list(active, &occurrence) {
                Ok(list) => list,
                Err(error) => {
                    let reason = SkipReason::Refused(SkipRecord::from_error(&error));
                    return self.skip_occurrence(active, &occurrence, 0, reason).await.map(|_| ());
                }
            };
            let waiting = match ListStart::determine(schedule, occurrence.clone(), list, now) {
                ListStart::Awaits(waiting) => waiting,
                ListStart::TooLate => {
                    return self.skip_occurrence(active, &occurrence, 0, SkipReason::Missed).await.map(|_| ());
                }
                ListStart::Now => {
                    self.start_occurrence(memory, active, occurrence, false);
                    return Ok(());
                }
            };
            if waiting.is_missing() {
                let message =
                    format!("the run scheduled for {} is waiting for its list", occurrence.format_nominal_time());
                notify_about(&self.daemon.adapters, active, NotificationEvent::Waiting, &message).await?;
                self.notify_observer(ScheduleEvent::Waiting { schedule: active.name.clone(), occurrence });
            }
            memory.waiting = Some(waiting);
        } else {
            self.start_occurrence(memory, active, occurrence, false);
        }
        Ok(())
    }

    /// Starts the occurrence that waits for its list once the list is complete. Returns whether the occurrence still
    /// waits.
    async fn poll_list(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(mut waiting) = memory.waiting.take() else { return Ok(false) };
        match waiting.check_arrival(now) {
            ListArrival::Complete if memory.damage.is_none() => {
                self.start_occurrence(memory, active, waiting.occurrence, false);
                return Ok(false);
            }
            ListArrival::Complete | ListArrival::Overdue if now > waiting.until => {
                let reason = memory.damage.clone().map_or(SkipReason::NoList(waiting.list), SkipReason::Damaged);
                self.skip_occurrence(active, &waiting.occurrence, 0, reason).await?;
                return Ok(false);
            }
            ListArrival::Complete | ListArrival::Pending | ListArrival::Overdue => {}
        }
        memory.waiting = Some(waiting);
        Ok(true)
    }

    /// The path of an occurrence's list. `None` if the list is not a file.
    pub(super) fn find_list(&self, active: &ActiveSchedule, occurrence: &Occurrence) -> Result<Option<PathBuf>, Error> {
        find_occurrence_list_path(&self.daemon.adapters.profiles, Path::new(&active.file), None, occurrence)
    }

    /// Starts or resumes the run of an occurrence in a separate task. [`Self::handle_end`] handles the result.
    pub(super) fn start_occurrence(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        occurrence: Occurrence,
        resumed: bool,
    ) {
        memory.running = Some(occurrence.clone());
        let active = active.clone();
        let run = self.daemon.starter.start_occurrence(active.clone(), occurrence.clone(), self.interrupt.clone());
        self.running.spawn(async move {
            // Without a result, the schedule would wait for this run forever.
            let outcome = AssertUnwindSafe(run)
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err(Error::Internal("the run ended unexpectedly".to_owned())));
            StartResult { active, occurrence, resumed, outcome }
        });
    }

    /// Records a skipped occurrence, and reports it if it had no record before. Returns whether it had none.
    pub(super) async fn skip_occurrence(
        &self,
        active: &ActiveSchedule,
        occurrence: &Occurrence,
        skipped_before: usize,
        reason: SkipReason,
    ) -> Result<bool, LedgerError> {
        let key = occurrence_key(&active.name, occurrence);
        let skip = ScheduleUpdate::Skip {
            occurrence: ScheduledOccurrence { key, at: occurrence.at },
            reason: reason.to_record().to_text(),
            condition: SkipCondition::NotRecorded,
        };
        let is_new = self.ledger().update_schedules(skip).await?;
        if is_new {
            self.report_skipped(active, occurrence, skipped_before, reason).await?;
        }
        Ok(is_new)
    }

    async fn report_skipped(
        &self,
        active: &ActiveSchedule,
        occurrence: &Occurrence,
        skipped_before: usize,
        reason: SkipReason,
    ) -> Result<(), LedgerError> {
        let message =
            format!("the run scheduled for {} was skipped: {}", occurrence.format_nominal_time(), reason.to_record());
        let (schedule, occurrence) = (active.name.clone(), occurrence.clone());
        self.notify_observer(ScheduleEvent::Skipped { schedule, occurrence, skipped_before, reason });
        notify_about(&self.daemon.adapters, active, NotificationEvent::Skipped, &message).await
    }

    /// Handles the result of starting an occurrence.
    pub(super) async fn handle_end(&mut self, result: StartResult) -> Result<(), LedgerError> {
        let StartResult { active, occurrence, resumed, outcome } = result;
        if let Some(memory) = self.memories.get_mut(&active.name) {
            memory.running = None;
        }
        // Another process holds the campaign lock. If this daemon wanted to resume a run, that process sends the run,
        // so only new occurrences wait for the lock.
        if matches!(outcome, Err(Error::Busy { .. })) && !resumed {
            self.await_lock(&active, occurrence);
            return Ok(());
        }
        if let Some(memory) = self.memories.get_mut(&active.name) {
            memory.locked = None;
        }
        if let Err(Error::Plan(PlanRefusal::Unapproved { digest: Some(digest), .. })) = outcome {
            return self.await_approval(&active, occurrence, digest).await;
        }
        if let Some(memory) = self.memories.get_mut(&active.name) {
            memory.unapproved = None;
        }
        let reason = match outcome {
            Ok(RunOutcome::Ended(ended)) => return self.report_ended_run(active, occurrence, ended).await,
            Ok(RunOutcome::NothingLeft(_)) => SkipReason::NoRecipientsLeft,
            // After an interruption, the next daemon resumes the run, or starts it unless it is too late. If the
            // occurrence is already recorded, another daemon started it.
            Err(Error::Interrupted { .. } | Error::Busy { .. } | Error::Schedule(ScheduleRefusal::Recorded { .. })) => {
                return Ok(());
            }
            Err(Error::Schedule(ScheduleRefusal::Changed(change))) => SkipReason::Changed(change, Vec::new()),
            Err(Error::Ledger(LedgerError::Busy { .. })) => {
                self.memories.remove(&active.name);
                return Ok(());
            }
            Err(Error::Ledger(error)) if error.concerns_records() => SkipReason::Damaged(error.describe_damage()),
            Err(Error::Ledger(error)) => return Err(error),
            Err(error) => SkipReason::Refused(SkipRecord::from_error(&error)),
        };
        let (skip_reason, is_damage) = (reason.to_record().to_string(), matches!(reason, SkipReason::Damaged(_)));
        if !self.skip_occurrence(&active, &occurrence, 0, reason).await? {
            let key = occurrence_key(&active.name, &occurrence);
            let recorded = find_occurrence(self.ledger().as_ref(), OccurrenceFilter::Key(&key)).await?;
            if recorded.is_some_and(|record| matches!(record.outcome, OccurrenceOutcome::Skipped(_))) {
                // Another daemon skipped and reported the occurrence.
                return Ok(());
            }
            if is_damage {
                let message =
                    format!("the run scheduled for {} ended early: {skip_reason}", occurrence.format_nominal_time());
                notify_about(&self.daemon.adapters, &active, NotificationEvent::Stopped, &message).await?;
            }
            self.notify_observer(ScheduleEvent::Broke { schedule: active.name, occurrence, why: skip_reason });
        }
        Ok(())
    }

    /// Reports the end of a run. If the run sent the same text as the previous run, a notification says so.
    async fn report_ended_run(
        &self,
        active: ActiveSchedule,
        occurrence: Occurrence,
        ended: Box<EndedRun>,
    ) -> Result<(), LedgerError> {
        let just_before = Timestamp::from_microsecond(occurrence.at.as_microsecond() - 1).unwrap_or(occurrence.at);
        let same_text = match find_last_fired(self.ledger().as_ref(), &active, just_before).await? {
            Some((_, previous_run)) => {
                has_same_text(self.ledger().as_ref(), &ended.run, previous_run).await.unwrap_or(false)
            }
            None => false,
        };
        if same_text {
            let occasion = if ended.stop.is_some() { NotificationEvent::Stopped } else { NotificationEvent::Finished };
            let message = format!(
                "the run scheduled for {} sent the same message as the previous run",
                occurrence.format_nominal_time()
            );
            notify_about(&self.daemon.adapters, &active, occasion, &message).await?;
        }
        self.notify_observer(ScheduleEvent::Ended { schedule: active.name, occurrence, ended, same_text });
        Ok(())
    }
}

/// Finds the last occurrence that fired up to `until`, with the run that the occurrence started.
async fn find_last_fired(
    ledger: &dyn Ledger,
    active: &ActiveSchedule,
    until: Timestamp,
) -> Result<Option<(OccurrenceRecord, RunId)>, LedgerError> {
    let last = list_recent_occurrences(ledger, active, until, MAX_SEARCHED_RECORDS).await?;
    Ok(last.into_iter().find_map(|record| match record.outcome {
        OccurrenceOutcome::Fired(run) => Some((record, run)),
        OccurrenceOutcome::Skipped(_) => None,
    }))
}

impl AwaitingApproval {
    fn for_occurrence(occurrence: Occurrence, digest: String) -> Self {
        let until = occurrence.at.checked_add(MAX_APPROVAL_WAIT).unwrap_or(Timestamp::MAX);
        Self { occurrence, digest, until, approvals: 0 }
    }
}

impl DaemonState {
    /// Makes an occurrence wait for its approval, and reports the digest once.
    pub(super) async fn await_approval(
        &mut self,
        active: &ActiveSchedule,
        occurrence: Occurrence,
        digest: String,
    ) -> Result<(), LedgerError> {
        let Some(memory) = self.memories.get_mut(&active.name) else { return Ok(()) };
        // The plan was already waiting, and its approvals are not valid. The next round checks new approvals.
        if memory.unapproved.as_ref().is_some_and(|known| known.digest == digest) {
            return Ok(());
        }
        let unapproved = AwaitingApproval::for_occurrence(occurrence.clone(), digest.clone());
        let (name, until) = (occurrence.format_nominal_time(), format_local_minute(unapproved.until));
        memory.unapproved = Some(unapproved);
        let plan = short_digest(&digest);
        let message = format!("the run scheduled for {name} is waiting until {until} for approval of plan {plan}");
        notify_about(&self.daemon.adapters, active, NotificationEvent::Waiting, &message).await?;
        self.notify_observer(ScheduleEvent::Unapproved { schedule: active.name.clone(), occurrence, digest });
        Ok(())
    }

    /// Starts the occurrence that waits for an approval once it is approved, or skips it after the deadline. Returns
    /// whether the daemon must check again soon, which is unnecessary while a run of the schedule is being sent.
    pub(super) async fn poll_approval(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(unapproved) = memory.unapproved.as_mut().filter(|_| memory.running.is_none()) else {
            return Ok(false);
        };
        if now > unapproved.until {
            self.skip_unapproved(memory, active).await?;
            return Ok(false);
        }
        if memory.damage.is_some() {
            return Ok(true);
        }
        let approvals = count_approvals(self.ledger().as_ref(), active, &unapproved.digest).await?;
        if approvals > unapproved.approvals {
            unapproved.approvals = approvals;
            let occurrence = unapproved.occurrence.clone();
            self.start_occurrence(memory, active, occurrence, false);
        }
        Ok(true)
    }

    /// Skips the occurrence that waits for an approval, if there is one.
    pub(super) async fn skip_unapproved(
        &self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
    ) -> Result<(), LedgerError> {
        let Some(unapproved) = memory.unapproved.take() else { return Ok(()) };
        self.skip_occurrence(active, &unapproved.occurrence, 0, SkipReason::Unapproved).await.map(|_| ())
    }

    /// Restores an occurrence that was waiting for an approval when the previous daemon ended. Returns whether there
    /// was such an occurrence.
    pub(super) async fn restore_awaiting_approval(
        &self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        missed: &Occurrence,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        if lateness(missed.at, now) > MAX_APPROVAL_WAIT || memory.running.is_some() {
            return Ok(false);
        }
        let key = occurrence_key(&active.name, missed);
        let planned = find_occurrence_plan(self.ledger().as_ref(), &key).await?;
        memory.unapproved = planned.map(|digest| AwaitingApproval::for_occurrence(missed.clone(), digest));
        Ok(memory.unapproved.is_some())
    }
}
