//! How the ledger of a process begins an intent: as it should, or by a mistake.

use super::disk::SimulatedDisk;
use super::ledger::ProcessLedger;
use super::mistake::Mistake;
use crate::ledger::{Intent, Lease, LedgerError, Permit, RowSpan, SlotWait};

impl ProcessLedger {
    pub(super) async fn begin_as_planned(&self, intent: Intent) -> Result<Permit, LedgerError> {
        let unrecorded = || {
            let envelope = self.disk().next_unrecorded();
            (envelope, Permit::Granted { envelope, wait: SlotWait::NONE })
        };
        match self.mistake {
            Some(Mistake::NoIntent) => Ok(unrecorded().1),
            Some(Mistake::IntentAfterSend) => {
                let (envelope, permit) = unrecorded();
                self.report_before_commit(permit, move |disk: &mut SimulatedDisk, now| {
                    disk.insert(now, envelope, intent)
                })
                .await
            }
            Some(Mistake::NoEpochCheck) => {
                let change = |disk: &mut SimulatedDisk, now| {
                    let epoch = disk.book(intent.lease.run).run.epoch.unwrap_or(intent.lease.epoch);
                    disk.begin(now, Intent { lease: Lease { epoch, ..intent.lease }, ..intent })
                };
                self.write(change).await
            }
            Some(Mistake::ShareEpochIgnored) => {
                let change = |disk: &mut SimulatedDisk, now| {
                    let holder = intent_rows(&intent).and_then(|rows| disk.find_holder(intent.lease.run, rows));
                    let epoch = holder.unwrap_or(intent.lease.epoch);
                    disk.begin(now, Intent { lease: Lease { epoch, ..intent.lease }, ..intent })
                };
                self.write(change).await
            }
            Some(Mistake::OptOutIgnored) => {
                let change = |disk: &mut SimulatedDisk, now| {
                    let version = disk.contents.opt_outs.version();
                    disk.contents.stored_run_mut(intent.lease.run)?.run.suppression.version = version;
                    disk.begin(now, intent)
                };
                self.write(change).await
            }
            _ => self.write(|disk, now| disk.begin(now, intent)).await,
        }
    }

    /// Makes the pace wrong before room is taken from it.
    pub(super) fn spoil_pace(&self, account: &str, rate: Option<f64>) {
        let mut disk = self.disk();
        if self.mistake == Some(Mistake::BurstingPace)
            && let (Some(pace), Some(rate)) = (disk.contents.paces.get_mut(account), rate)
        {
            // A whole second's room is there at once.
            pace.next_free -= if rate >= 1.0 { 900_000 } else { 0 };
        }
    }
}

/// Between which rows those of an intent are.
fn intent_rows(intent: &Intent) -> Option<RowSpan> {
    let rows = intent.rows.iter().map(|sent| sent.row);
    rows.clone().min().zip(rows.max()).map(|(first, last)| RowSpan { first, last })
}
