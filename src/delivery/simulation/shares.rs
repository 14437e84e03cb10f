//! How the ledger of a process shares a run out: by the rules of the ledger in memory, as it should, or by a mistake.

use std::sync::Arc;

use super::disk::SimulatedDisk;
use super::ledger::ProcessLedger;
use super::life::ProcessLife;
use super::mistake::Mistake;
use super::places::SeatGuard;
use super::sighting::Sighting;
use crate::ledger::{
    Epoch, Lease, LedgerError, LedgerFuture, Ownership, RowSpan, Run, RunId, ShardDraw, ShardHolder, ShardStore,
    ShardWorker, StopKind,
};

impl SimulatedDisk {
    /// Whether a process may send these rows of the last run: all where it is sent whole, else those of one share of its own.
    pub(super) fn may_send(&self, life: &Arc<ProcessLife>, rows: RowSpan) -> bool {
        let Some(book) = self.contents.stored_runs().last().filter(|book| book.run.sharding.is_some()) else {
            return true;
        };
        let holder = book.find_shard_epoch(rows).and_then(|epoch| self.seats.get(&epoch));
        holder.is_some_and(|holder| Arc::ptr_eq(holder, life))
    }

    /// Whether nobody else who is there has some of the last run while it is not known that the gateway takes its messages.
    pub(super) fn is_trying_alone(&self, life: &Arc<ProcessLife>) -> bool {
        let Some(run) = self.contents.stored_runs().last().map(|book| &book.run) else { return true };
        run.sharding.as_ref().is_none_or(|sharing| sharing.proven) || !self.has_others(run.key, life)
    }

    /// Whether somebody else has some of a run that is there.
    fn has_others(&self, run: RunId, life: &Arc<ProcessLife>) -> bool {
        let others = self.seats.iter().filter(|(_, other)| !Arc::ptr_eq(other, life) && !other.is_over());
        let mut had = others.map(|(epoch, _)| self.book(run).has_shards(*epoch));
        had.any(|has| has)
    }

    /// By which right somebody has the share that these rows are of.
    pub(super) fn find_holder(&self, run: RunId, rows: RowSpan) -> Option<Epoch> {
        self.book(run).find_shard_epoch(rows)
    }

    /// The places with something of a run where nobody is, but for this one.
    pub(super) fn abandoned_places(&self, run: RunId, but: Option<u32>) -> Vec<u32> {
        let is_left = |place: &u32| Some(*place) != but && !self.places.is_occupied(*place);
        let mut left: Vec<u32> = self.book(run).list_shard_places().filter(is_left).collect();
        left.sort_unstable();
        left.dedup();
        left
    }

    fn draw_share(
        &mut self,
        now: i64,
        (seat, rows): (&ShardWorker, u32),
        shut: Option<&[u32]>,
        mistake: Option<Mistake>,
    ) -> Result<ShardDraw, LedgerError> {
        let is_there = |place| shut.is_none_or(|shut| !shut.contains(&place));
        let book = self.contents.stored_run_mut(seat.lease.run)?;
        if mistake == Some(Mistake::ShareWithoutDoubt) {
            let left: Vec<RowSpan> = book.list_shards_at(|place| !is_there(place)).collect();
            let is_of = |rows: &RowSpan, row| rows.contains(row);
            book.envelopes.retain(|_, envelope| {
                let row = envelope.rows.first().map(|sent| sent.row);
                envelope.settled.is_some() || !left.iter().any(|rows| row.is_some_and(|row| is_of(rows, row)))
            });
        }
        let known = book.run.sharding.clone();
        if let Some(sharing) = book.run.sharding.as_mut().filter(|_| mistake == Some(Mistake::SharingUnnumbered)) {
            sharing.id = seat.sharding;
        }
        let drawn = self.contents.draw_shard(now, seat, (rows, shut.is_some()), is_there);
        self.contents.stored_run_mut(seat.lease.run)?.run.sharding = known;
        drawn
    }
}

impl ProcessLedger {
    /// Renews what this process has, if it does not know any more that it has this right: it may have slept. Tells whether it
    /// has it.
    pub(super) async fn renew_if_lost(&self, epoch: Epoch) -> Result<bool, LedgerError> {
        if self.leases.is_reliable(epoch) == Some(false) {
            let renew = |disk: &mut SimulatedDisk, _| {
                self.leases.renew_all(&mut disk.places);
                Ok(())
            };
            self.write(renew).await?;
        }
        Ok(self.leases.is_reliable(epoch) != Some(false))
    }

    /// Takes the places where nobody is any more of those that have something of a run, but for this one, as long as what it
    /// gives is kept.
    async fn take_abandoned(&self, seat: &ShardWorker) -> Result<(Vec<u32>, Vec<SeatGuard>), LedgerError> {
        self.life.take_step().await;
        if self.disk().abandoned_places(seat.lease.run, Some(seat.place)).is_empty() {
            return Ok(<_>::default());
        }
        let shut = |disk: &mut SimulatedDisk, _| {
            let left = disk.abandoned_places(seat.lease.run, Some(seat.place));
            if disk.places.has_sleeper_at(&left) {
                disk.record_sighting(Sighting::SuspendedPastItsLease);
            }
            let take = |place: &u32| {
                SeatGuard::unrenewed((*place, disk.places.take_seat(*place, &self.life)), &self.disk, &self.leases)
            };
            let taken = left.iter().map(take).collect();
            Ok((left, taken))
        };
        self.write(shut).await
    }
}

impl ShardStore for ProcessLedger {
    fn shard_run(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership> {
        Box::pin(async move {
            self.write(|disk, _| {
                let shared = disk.contents.shard_run(lease, terms, proven)?;
                if shared == Ownership::Held {
                    disk.record_sighting(Sighting::SharedOut);
                }
                Ok(shared)
            })
            .await
        })
    }

    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>> {
        Box::pin(async move {
            if run.sharding.is_none() {
                return Ok(None);
            }
            self.write(|disk, _| {
                let place = disk.places.find_free();
                if disk.places.has_sleeper_at(&[place]) {
                    disk.record_sighting(Sighting::SuspendedPastItsLease);
                }
                let holder = disk.places.take_seat(place, &self.life);
                let sitting = SeatGuard::unrenewed((place, holder), &self.disk, &self.leases).with_renewal(&self.life);
                let seat = disk.contents.register_worker(run, (place, by), sitting);
                if let Some(seat) = &seat {
                    self.leases.record_taken(seat.lease.epoch, place, holder);
                    disk.seats.insert(seat.lease.epoch, Arc::clone(&self.life));
                }
                Ok(seat)
            })
            .await
        })
    }

    fn draw_shard<'a>(&'a self, seat: &'a ShardWorker, rows: u32, looks: bool) -> LedgerFuture<'a, ShardDraw> {
        Box::pin(async move {
            let (shut, taken) = if looks { Some(self.take_abandoned(seat).await?) } else { None }.unzip();
            if !self.renew_if_lost(seat.lease.epoch).await? {
                return Ok(ShardDraw::Ended);
            }
            self.write(|disk, now| {
                // It may have slept since it looked.
                let own = self
                    .leases
                    .find_place(seat.lease.epoch)
                    .is_some_and(|(place, by)| disk.places.is_held_by(place, by));
                let mut taken = taken.iter().flatten();
                match own && taken.all(|sitting| sitting.is_still_held(&disk.places)) {
                    true => disk.draw_share(now, (seat, rows), shut.as_deref(), self.mistake),
                    false => Ok(ShardDraw::Ended),
                }
            })
            .await
        })
    }

    fn finish_shards<'a>(&'a self, seat: &'a ShardWorker) -> LedgerFuture<'a, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.finish_shards(seat.lease)).await })
    }

    fn mark_proven(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.mark_proven(run)).await })
    }

    fn halt_run(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            self.write(|disk, _| {
                if disk.contents.halt_run(run, kind, reason)? && disk.has_others(run, &self.life) {
                    disk.record_sighting(Sighting::HaltedForAll);
                }
                Ok(())
            })
            .await
        })
    }

    fn list_shard_holders<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Vec<ShardHolder>> {
        unreachable!("nobody is shown who has what")
    }
}
