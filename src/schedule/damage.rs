//! Schedules that a damaged record stops: each is told once, in the log and to whoever wants to hear of its campaign.
//!
//! Nothing of such a schedule fires. The server goes on.

use std::collections::hash_map::Entry;

use super::ScheduleEvent;
use super::daemon::Work;
use super::notices::{Named, tell_of};
use crate::domain::Occasion;
use crate::ledger::{ArmedSchedule, DamagedSchedule, LedgerError};

impl Work {
    /// Tells once that a damaged record stops a schedule. Returns the damage in words.
    pub(super) async fn stop_damaged(
        &mut self,
        armed: &ArmedSchedule,
        error: &LedgerError,
    ) -> Result<String, LedgerError> {
        let problem = error.damage();
        self.tell_damage(armed.into(), &problem).await?;
        Ok(problem)
    }

    /// Tells once that the record of a schedule is damaged. Of its campaign file only what can still be read is known.
    pub(super) async fn stop_unreadable(&mut self, damaged: &DamagedSchedule) -> Result<(), LedgerError> {
        let named = Named { name: &damaged.name, file: damaged.file.as_ref(), armed: None };
        self.tell_damage(named, &damaged.error.damage()).await
    }

    async fn tell_damage(&mut self, schedule: Named<'_>, problem: &str) -> Result<(), LedgerError> {
        let name = schedule.name;
        match self.damaged.entry(name.to_owned()) {
            Entry::Occupied(told) if told.get() == problem => return Ok(()),
            Entry::Occupied(mut told) => drop(told.insert(problem.to_owned())),
            Entry::Vacant(untold) => drop(untold.insert(problem.to_owned())),
        }
        self.tell(ScheduleEvent::Damaged { schedule: name.to_owned(), problem: problem.to_owned() });
        let what = format!("the ledger is damaged ({problem}), so nothing is sent until it is repaired");
        tell_of(&self.daemon.adapters, schedule, Occasion::Changed, &what).await
    }
}
