//! The campaign once more in the same world: the guard skips whoever has a message of the first run, or may have one.

use std::sync::Arc;

use super::chance::Chance;
use super::judge::phone;
use super::life::wall;
use super::sighting::Sighting;
use super::story::{Errand, World};
use crate::domain::{Phone, Row};
use crate::ledger::{Ledger, LeftOut, NumberSet, RunFilter, RunId, State};

impl World {
    /// Whom a run that began now would skip.
    pub(super) async fn guard(&self) -> NumberSet {
        let ledger = self.ledger(&self.immortal());
        let runs: Vec<RunId> = ledger.runs(RunFilter::all()).await.unwrap().iter().map(|run| run.key).collect();
        let skipped = ledger.numbers_sent_to(&runs).await.unwrap();
        self.judge.guard(&self.plan, &self.snapshot().await, &self.platform.taken(), &skipped);
        skipped
    }

    /// The campaign once more: it goes to those alone whom the guard does not skip.
    pub(super) async fn go_again(self: &Arc<Self>) {
        let skipped = self.guard().await;
        let mut left_out = LeftOut::default();
        let rows =
            (2..=self.plan.rows + 1).map(Row::new).filter(|row| skipped.contains(Phone::new(phone(*row)).unwrap()));
        rows.for_each(|row| left_out.insert(row, State::Skipped, "sent to before"));
        if left_out.count(State::Skipped) == u64::from(self.plan.rows) {
            return;
        }
        self.judge.begun_anew();
        let new = self.plan.new_run(self.chance(Chance::bits), left_out);
        let run = self.disk.lock().unwrap().begin_run(wall().as_microsecond(), &new);
        *self.run.lock().unwrap() = run;
        self.process(Errand::Send, self.immortal()).await;
        self.saw(Sighting::BegunAnew, 1);
        self.compare(false).await;
        self.guard().await;
    }
}
