//! Occurrences that wait for the campaign lock, which another process holds.
//!
//! The holder might start the same occurrence, send another run, or only ask the gateway about messages in doubt. So
//! the occurrence waits until another process records it, the lock is free, or it is too late.

use jiff::Timestamp;

use super::due::{AwaitingLock, FileStat, ScheduleMemory, start_deadline};
use super::firing::CHECK_INTERVAL;
use super::{DaemonState, SkipReason};
use campaign_core::calendar::Occurrence;
use campaign_engine::report::is_owned;
use campaign_ledger::{ActiveSchedule, LedgerError, OccurrenceFilter, RunFilter, find_occurrence};
use campaign_runs::occurrence_key;

impl DaemonState {
    /// Makes an occurrence wait for the campaign lock.
    pub(super) fn await_lock(&mut self, active: &ActiveSchedule, occurrence: Occurrence) {
        let now = (self.daemon.adapters.clock)();
        let list = self.find_list(active, &occurrence).ok().flatten();
        let Some(memory) = self.memories.get_mut(&active.name) else { return };
        let Some(schedule) = &memory.schedule else { return };
        let until = match memory.unapproved.take() {
            // The approval can come long after the scheduled time, so the grace period starts with it.
            Some(unapproved) => now.checked_add(schedule.grace).unwrap_or(Timestamp::MAX).min(unapproved.until),
            None => start_deadline(schedule, &occurrence, list.as_deref().and_then(FileStat::read)),
        };
        let until =
            memory.locked.take().filter(|known| known.occurrence == occurrence).map_or(until, |known| known.until);
        tracing::info!(schedule = active.name, occurrence = occurrence.format_nominal(), "waiting for the campaign");
        memory.locked = Some(AwaitingLock { occurrence, until, tried_at: now });
    }

    /// Starts the occurrence that waits for the campaign lock once the lock is free, or skips it after the deadline.
    /// Returns whether the occurrence still waits.
    pub(super) async fn poll_lock(
        &mut self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let Some(locked) = memory.locked.as_ref().filter(|_| memory.running.is_none()) else { return Ok(false) };
        let (ledger, key) = (self.ledger(), occurrence_key(&active.name, &locked.occurrence));
        if find_occurrence(ledger.as_ref(), OccurrenceFilter::Key(&key)).await?.is_some() {
            // Another daemon started or skipped it.
            memory.locked = None;
            return Ok(false);
        }
        if now > locked.until {
            self.skip_locked(memory, active).await?;
            return Ok(false);
        }
        let tried_recently = now.duration_since(locked.tried_at).unsigned_abs() < CHECK_INTERVAL;
        if tried_recently || memory.damage.is_some() {
            return Ok(true);
        }
        if ledger.find_campaign_lock(&active.name, &active.account).await?.is_none() {
            let occurrence = locked.occurrence.clone();
            self.start_occurrence(memory, active, occurrence, false);
        }
        Ok(true)
    }

    /// Skips the occurrence that waits for the campaign lock, if there is one.
    pub(super) async fn skip_locked(
        &self,
        memory: &mut ScheduleMemory,
        active: &ActiveSchedule,
    ) -> Result<(), LedgerError> {
        let Some(locked) = memory.locked.take() else { return Ok(()) };
        let reason = match memory.damage.clone() {
            Some(problem) => SkipReason::Damaged(problem),
            None if self.is_being_sent(active).await? => SkipReason::Busy,
            None => SkipReason::Missed,
        };
        self.skip_occurrence(active, &locked.occurrence, 0, reason).await.map(drop)
    }

    /// Whether a process has an unfinished run of the campaign.
    async fn is_being_sent(&self, active: &ActiveSchedule) -> Result<bool, LedgerError> {
        let ledger = self.ledger();
        let open = RunFilter { open: true, ..RunFilter::for_campaign(&active.name) };
        for run in ledger.list_stored_runs(open).await?.into_iter().flatten() {
            if run.account == active.account && is_owned(ledger.as_ref(), &run).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
