//! How the ledger of a process begins an intent: as it should, or by a mistake.

use super::disk::Disk;
use super::ledger::ProcessLedger;
use super::mistake::Mistake;
use crate::ledger::{Intent, Lease, LedgerError, Permit, Rows, Wait};

impl ProcessLedger {
    pub(super) async fn begin_as_planned(&self, intent: Intent) -> Result<Permit, LedgerError> {
        let unrecorded = || {
            let envelope = self.disk().unrecorded();
            (envelope, Permit::Granted { envelope, wait: Wait::NONE })
        };
        match self.mistake {
            Some(Mistake::NoIntent) => Ok(unrecorded().1),
            Some(Mistake::IntentAfterTheSend) => {
                let (envelope, permit) = unrecorded();
                self.tell_before(permit, move |disk: &mut Disk, now| disk.insert(now, envelope, intent)).await
            }
            Some(Mistake::NoEpochCheck) => {
                let change = |disk: &mut Disk, now| {
                    let epoch = disk.book(intent.lease.run).run.epoch.unwrap_or(intent.lease.epoch);
                    disk.begin(now, Intent { lease: Lease { epoch, ..intent.lease }, ..intent })
                };
                self.write(change).await
            }
            Some(Mistake::ShareEpochUnseen) => {
                let change = |disk: &mut Disk, now| {
                    let holder = rows_of(&intent).and_then(|rows| disk.holder(intent.lease.run, rows));
                    let epoch = holder.unwrap_or(intent.lease.epoch);
                    disk.begin(now, Intent { lease: Lease { epoch, ..intent.lease }, ..intent })
                };
                self.write(change).await
            }
            Some(Mistake::OptOutIgnored) => {
                let change = |disk: &mut Disk, now| {
                    let version = disk.contents.opt_outs.version();
                    disk.contents.book_mut(intent.lease.run)?.run.heed.version = version;
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
fn rows_of(intent: &Intent) -> Option<Rows> {
    let rows = intent.rows.iter().map(|sent| sent.row);
    rows.clone().min().zip(rows.max()).map(|(first, last)| Rows { first, last })
}
