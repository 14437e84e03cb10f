//! Nothing is armed in a world: runs are started by the story.

use jiff::Timestamp;

use super::ledger::ProcessLedger;
use crate::ledger::{
    ActiveSchedule, DamagedOccurrence, DamagedSchedule, LedgerFuture, NewRun, OccurrenceKey, OccurrenceOutcome,
    OccurrenceRecord, Run, RunId, ScheduleStore,
};

const NOTHING: &str = "nothing is armed in a world";

impl ScheduleStore for ProcessLedger {
    fn activate_schedule(&self, _: ActiveSchedule) -> LedgerFuture<'_, ()> {
        unreachable!("{NOTHING}")
    }

    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>> {
        unreachable!("{NOTHING}")
    }

    fn pause_schedule<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn resume_schedule<'a>(&'a self, _: &'a str, _: Timestamp) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn deactivate_schedule<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn fire_occurrence<'a>(
        &'a self,
        _: &'a NewRun,
        _: &'a OccurrenceKey,
        _: Timestamp,
    ) -> LedgerFuture<'a, Option<Run>> {
        unreachable!("{NOTHING}")
    }

    fn skip_occurrence<'a>(&'a self, _: &'a OccurrenceKey, _: Timestamp, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn abandon_occurrence<'a>(&'a self, _: &'a OccurrenceKey, _: Timestamp, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn list_occurrences<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
        _: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        unreachable!("{NOTHING}")
    }

    fn find_run_occurrence(&self, _: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        unreachable!("{NOTHING}")
    }

    fn find_occurrence<'a>(&'a self, _: &'a OccurrenceKey) -> LedgerFuture<'a, Option<OccurrenceOutcome>> {
        unreachable!("{NOTHING}")
    }
}
