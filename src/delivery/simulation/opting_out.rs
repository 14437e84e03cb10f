//! People who opt out while their message is planned, on its way, in doubt, or to be sent again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::judge::row_phone;
use super::life::wall_now;
use super::sighting::Sighting;
use super::story::SimulatedWorld;
use crate::domain::{Phone, Row};
use crate::ledger::{OptOut, OptOutReach, OptOutScope};

impl SimulatedWorld {
    /// Has somebody opt out now and then, within seconds after a process began to send.
    pub(super) fn schedule_opt_out(self: &Arc<Self>) {
        let (after, row, opts_out) = self.with_random(|chance| {
            let row = Row::new(2 + chance.below(self.plan.rows.into()) as u32);
            (Duration::from_millis(chance.below(5_000)), row, chance.once_in(3))
        });
        if opts_out {
            let world = Arc::clone(self);
            tokio::spawn(async move {
                sleep(after).await;
                world.opt_out(row);
            });
        }
    }

    /// The opt-out is on the disk at one instant: an intent after it breaks the promise.
    fn opt_out(&self, row: Row) {
        let mut disk = self.disk.lock().unwrap();
        let opt_out = OptOut {
            who: Phone::new(row_phone(row)).unwrap().into(),
            scope: OptOutScope::Everything,
            reach: OptOutReach::AllGateways,
            reason: "STOP".into(),
            source: "a reply".into(),
            at: wall_now(),
        };
        if disk.contents.opt_outs.add_opt_outs(vec![opt_out]).added > 0 {
            self.judge.note_opt_out(row, disk.intents.get(&row).copied().unwrap_or(0));
            self.record_sighting(Sighting::OptedOut, 1);
        }
    }
}
