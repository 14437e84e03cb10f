//! The armed schedules and their occurrences, in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::adapter::MemoryLedger;
use super::contents::LedgerContents;
use crate::ledger::rules::may_fire;
use crate::ledger::{
    ActiveSchedule, DamagedOccurrence, DamagedSchedule, LedgerError, LedgerFuture, NewRun, OccurrenceKey,
    OccurrenceOutcome, OccurrenceRecord, Run, RunId, ScheduleStore,
};

/// What is armed, and what became of occurrences.
#[derive(Clone, Debug, Default)]
pub(super) struct ScheduleTable {
    active: BTreeMap<String, ActiveSchedule>,
    occurrences: BTreeMap<OccurrenceKey, (Timestamp, OccurrenceOutcome)>,
}

fn to_record((key, (at, fate)): (&OccurrenceKey, &(Timestamp, OccurrenceOutcome))) -> OccurrenceRecord {
    OccurrenceRecord { key: key.clone(), at: *at, outcome: fate.clone() }
}

impl LedgerContents {
    /// Whether the run that an occurrence began was opened; nothing where it began none.
    fn was_opened(&self, key: &OccurrenceKey) -> Result<Option<bool>, LedgerError> {
        match self.schedules.occurrences.get(key) {
            Some((_, OccurrenceOutcome::Fired(run))) => Ok(Some(self.stored_run(*run)?.opened)),
            _ => Ok(None),
        }
    }

    fn fire_occurrence(
        &mut self,
        new: &NewRun,
        key: &OccurrenceKey,
        at: Timestamp,
    ) -> Result<Option<Run>, LedgerError> {
        let before = self.schedules.occurrences.get(key).map(|(_, fate)| fate);
        if !may_fire(before, self.was_opened(key)?.unwrap_or(false)) {
            return Ok(None);
        }
        let run = self.create_run(new)?;
        self.schedules.occurrences.insert(key.clone(), (at, OccurrenceOutcome::Fired(run.key)));
        Ok(Some(run))
    }
}

impl ScheduleStore for MemoryLedger {
    fn activate_schedule(&self, schedule: ActiveSchedule) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| {
            contents.schedules.active.insert(schedule.name.clone(), schedule);
            Ok(())
        })
    }

    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>> {
        self.read_contents(|contents| contents.schedules.active.values().cloned().map(Ok).collect())
    }

    fn pause_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let armed = contents.schedules.active.get_mut(name);
            Ok(armed.map(|schedule| schedule.paused = true).is_some())
        })
    }

    fn resume_schedule<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let armed = contents.schedules.active.get_mut(name);
            Ok(armed.map(|schedule| (schedule.paused, schedule.since) = (false, since)).is_some())
        })
    }

    fn deactivate_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| Ok(contents.schedules.active.remove(name).is_some()))
    }

    fn fire_occurrence<'a>(
        &'a self,
        new: &'a NewRun,
        key: &'a OccurrenceKey,
        at: Timestamp,
    ) -> LedgerFuture<'a, Option<Run>> {
        self.write_contents(move |contents, _| contents.fire_occurrence(new, key, at))
    }

    fn skip_occurrence<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let is_new = !contents.schedules.occurrences.contains_key(key);
            if is_new {
                contents.schedules.occurrences.insert(key.clone(), (at, OccurrenceOutcome::Skipped(reason.to_owned())));
            }
            Ok(is_new)
        })
    }

    fn abandon_occurrence<'a>(
        &'a self,
        key: &'a OccurrenceKey,
        at: Timestamp,
        reason: &'a str,
    ) -> LedgerFuture<'a, bool> {
        self.write_contents(move |contents, _| {
            let unopened = contents.was_opened(key)? == Some(false);
            if unopened {
                contents.schedules.occurrences.insert(key.clone(), (at, OccurrenceOutcome::Skipped(reason.to_owned())));
            }
            Ok(unopened)
        })
    }

    fn list_occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        self.read_contents(move |contents| {
            let known = contents.schedules.occurrences.iter();
            let of = known.filter(|(key, (at, _))| key.schedule == schedule && *at <= until);
            let mut found: Vec<OccurrenceRecord> = of.map(to_record).collect();
            found.sort_by(|one, other| (other.at, &other.key).cmp(&(one.at, &one.key)));
            found.truncate(latest as usize);
            found.into_iter().map(Ok).collect()
        })
    }

    fn find_run_occurrence(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        self.read_contents(move |contents| {
            let mut known = contents.schedules.occurrences.iter();
            known.find(|(_, (_, fate))| *fate == OccurrenceOutcome::Fired(run)).map(to_record)
        })
    }

    fn find_occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<OccurrenceOutcome>> {
        self.read_contents(move |contents| contents.schedules.occurrences.get(key).map(|(_, fate)| fate.clone()))
    }
}
