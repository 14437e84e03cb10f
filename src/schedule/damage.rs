//! Schedules that a damaged record stops: each is told once, in the log and to whoever wants to hear of its campaign.
//!
//! Nothing of such a schedule fires. The server goes on.

use std::collections::hash_map::Entry;

use super::ScheduleEvent;
use super::daemon::DaemonState;
use super::notices::{NotifiedSchedule, notify_about};
use crate::domain::NotificationEvent;
use crate::ledger::{ActiveSchedule, DamagedSchedule, LedgerError};

impl DaemonState {
    /// Tells once that a damaged record stops a schedule. Returns the damage in words.
    pub(super) async fn report_damaged(
        &mut self,
        armed: &ActiveSchedule,
        error: &LedgerError,
    ) -> Result<String, LedgerError> {
        let problem = error.describe_damage();
        self.report_damage_once(armed.into(), &problem).await?;
        Ok(problem)
    }

    /// Tells once that the record of a schedule is damaged. Of its campaign file only what can still be read is known.
    pub(super) async fn report_unreadable(&mut self, damaged: &DamagedSchedule) -> Result<(), LedgerError> {
        let named = NotifiedSchedule { name: &damaged.name, file: damaged.file.as_ref(), armed: None };
        self.report_damage_once(named, &damaged.error.describe_damage()).await
    }

    async fn report_damage_once(&mut self, schedule: NotifiedSchedule<'_>, problem: &str) -> Result<(), LedgerError> {
        let name = schedule.name;
        match self.damaged.entry(name.to_owned()) {
            Entry::Occupied(told) if told.get() == problem => return Ok(()),
            Entry::Occupied(mut told) => drop(told.insert(problem.to_owned())),
            Entry::Vacant(untold) => drop(untold.insert(problem.to_owned())),
        }
        self.notify_observer(ScheduleEvent::Damaged { schedule: name.to_owned(), problem: problem.to_owned() });
        let what = format!("the ledger is damaged ({problem}), so nothing is sent until it is repaired");
        notify_about(&self.daemon.adapters, schedule, NotificationEvent::Changed, &what).await
    }
}
