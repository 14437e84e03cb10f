//! The campaign once more in the same world: the guard skips whoever has a message of the first run, or may have one.

use std::sync::Arc;

use super::chance::SimulationRandom;
use super::judge::row_phone;
use super::life::wall_now;
use super::sighting::Sighting;
use super::story::{ProcessTask, SimulatedWorld};
use crate::domain::{Phone, Row};
use crate::ledger::{ExcludedRows, Ledger, NumberSet, RowState, RunFilter, RunId};

impl SimulatedWorld {
    /// Whom a run that began now would skip.
    pub(super) async fn check_guard(&self) -> NumberSet {
        let ledger = self.process_ledger(&self.immortal_life());
        let runs: Vec<RunId> = ledger.list_runs(RunFilter::all()).await.unwrap().iter().map(|run| run.key).collect();
        let skipped = ledger.load_sent_numbers(&runs).await.unwrap();
        self.judge.check_guard(&self.plan, &self.load_snapshot().await, &self.platform.taken_messages(), &skipped);
        skipped
    }

    /// The campaign once more: it goes to those alone whom the guard does not skip.
    pub(super) async fn send_again(self: &Arc<Self>) {
        let skipped = self.check_guard().await;
        let mut left_out = ExcludedRows::default();
        let rows =
            (2..=self.plan.rows + 1).map(Row::new).filter(|row| skipped.contains(Phone::new(row_phone(*row)).unwrap()));
        rows.for_each(|row| left_out.insert(row, RowState::Skipped, "sent to before"));
        if left_out.count_rows(RowState::Skipped) == u64::from(self.plan.rows) {
            return;
        }
        self.judge.allow_decided_again();
        let new = self.plan.new_run(self.with_random(SimulationRandom::next_bits), left_out);
        let run = self.disk.lock().unwrap().begin_run(wall_now().as_microsecond(), &new);
        *self.run.lock().unwrap() = run;
        self.run_process(ProcessTask::SendRun, self.immortal_life()).await;
        self.record_sighting(Sighting::BegunAnew, 1);
        self.compare_with_ledger(false).await;
        self.check_guard().await;
    }
}
