//! Nothing is armed in a world: runs are started by the story.

use jiff::Timestamp;

use super::ledger::ProcessLedger;
use crate::ledger::{
    ArmedSchedule, DamagedOccurrence, DamagedSchedule, Fate, LedgerFuture, NewRun, OccurrenceKey, OccurrenceRecord,
    Run, RunId, Schedules,
};

const NOTHING: &str = "nothing is armed in a world";

impl Schedules for ProcessLedger {
    fn arm(&self, _: ArmedSchedule) -> LedgerFuture<'_, ()> {
        unreachable!("{NOTHING}")
    }

    fn schedules(&self) -> LedgerFuture<'_, Vec<Result<ArmedSchedule, DamagedSchedule>>> {
        unreachable!("{NOTHING}")
    }

    fn pause<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn resume<'a>(&'a self, _: &'a str, _: Timestamp) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn disarm<'a>(&'a self, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn fire<'a>(&'a self, _: &'a NewRun, _: &'a OccurrenceKey, _: Timestamp) -> LedgerFuture<'a, Option<Run>> {
        unreachable!("{NOTHING}")
    }

    fn skip<'a>(&'a self, _: &'a OccurrenceKey, _: Timestamp, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn give_up<'a>(&'a self, _: &'a OccurrenceKey, _: Timestamp, _: &'a str) -> LedgerFuture<'a, bool> {
        unreachable!("{NOTHING}")
    }

    fn occurrences<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
        _: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        unreachable!("{NOTHING}")
    }

    fn occurrence_of(&self, _: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        unreachable!("{NOTHING}")
    }

    fn occurrence<'a>(&'a self, _: &'a OccurrenceKey) -> LedgerFuture<'a, Option<Fate>> {
        unreachable!("{NOTHING}")
    }
}
