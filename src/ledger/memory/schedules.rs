//! The armed schedules and their occurrences, in memory.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::adapter::MemoryLedger;
use super::contents::Contents;
use crate::ledger::rules::may_fire;
use crate::ledger::{
    ArmedSchedule, DamagedOccurrence, DamagedSchedule, Fate, LedgerError, LedgerFuture, NewRun, OccurrenceKey,
    OccurrenceRecord, Run, RunId, Schedules,
};

/// What is armed, and what became of occurrences.
#[derive(Clone, Debug, Default)]
pub(super) struct Timetable {
    armed: BTreeMap<String, ArmedSchedule>,
    occurrences: BTreeMap<OccurrenceKey, (Timestamp, Fate)>,
}

fn record((key, (at, fate)): (&OccurrenceKey, &(Timestamp, Fate))) -> OccurrenceRecord {
    OccurrenceRecord { key: key.clone(), at: *at, fate: fate.clone() }
}

impl Contents {
    /// Whether the run that an occurrence began was opened; nothing where it began none.
    fn was_opened(&self, key: &OccurrenceKey) -> Result<Option<bool>, LedgerError> {
        match self.timetable.occurrences.get(key) {
            Some((_, Fate::Fired(run))) => Ok(Some(self.book(*run)?.opened)),
            _ => Ok(None),
        }
    }

    fn fire(&mut self, new: &NewRun, key: &OccurrenceKey, at: Timestamp) -> Result<Option<Run>, LedgerError> {
        let before = self.timetable.occurrences.get(key).map(|(_, fate)| fate);
        if !may_fire(before, self.was_opened(key)?.unwrap_or(false)) {
            return Ok(None);
        }
        let run = self.create_run(new)?;
        self.timetable.occurrences.insert(key.clone(), (at, Fate::Fired(run.key)));
        Ok(Some(run))
    }
}

impl Schedules for MemoryLedger {
    fn arm(&self, schedule: ArmedSchedule) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            contents.timetable.armed.insert(schedule.name.clone(), schedule);
            Ok(())
        })
    }

    fn schedules(&self) -> LedgerFuture<'_, Vec<Result<ArmedSchedule, DamagedSchedule>>> {
        self.look(|contents| contents.timetable.armed.values().cloned().map(Ok).collect())
    }

    fn pause<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        self.change(move |contents, _| {
            let armed = contents.timetable.armed.get_mut(name);
            Ok(armed.map(|schedule| schedule.paused = true).is_some())
        })
    }

    fn resume<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool> {
        self.change(move |contents, _| {
            let armed = contents.timetable.armed.get_mut(name);
            Ok(armed.map(|schedule| (schedule.paused, schedule.since) = (false, since)).is_some())
        })
    }

    fn disarm<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        self.change(move |contents, _| Ok(contents.timetable.armed.remove(name).is_some()))
    }

    fn fire<'a>(&'a self, new: &'a NewRun, key: &'a OccurrenceKey, at: Timestamp) -> LedgerFuture<'a, Option<Run>> {
        self.change(move |contents, _| contents.fire(new, key, at))
    }

    fn skip<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        self.change(move |contents, _| {
            let is_new = !contents.timetable.occurrences.contains_key(key);
            if is_new {
                contents.timetable.occurrences.insert(key.clone(), (at, Fate::Skipped(reason.to_owned())));
            }
            Ok(is_new)
        })
    }

    fn give_up<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        self.change(move |contents, _| {
            let unopened = contents.was_opened(key)? == Some(false);
            if unopened {
                contents.timetable.occurrences.insert(key.clone(), (at, Fate::Skipped(reason.to_owned())));
            }
            Ok(unopened)
        })
    }

    fn occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        self.look(move |contents| {
            let known = contents.timetable.occurrences.iter();
            let of = known.filter(|(key, (at, _))| key.schedule == schedule && *at <= until);
            let mut found: Vec<OccurrenceRecord> = of.map(record).collect();
            found.sort_by(|one, other| (other.at, &other.key).cmp(&(one.at, &one.key)));
            found.truncate(latest as usize);
            found.into_iter().map(Ok).collect()
        })
    }

    fn occurrence_of(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        self.look(move |contents| {
            let mut known = contents.timetable.occurrences.iter();
            known.find(|(_, (_, fate))| *fate == Fate::Fired(run)).map(record)
        })
    }

    fn occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<Fate>> {
        self.look(move |contents| contents.timetable.occurrences.get(key).map(|(_, fate)| fate.clone()))
    }
}
