//! How the ledger of a process shares a run out: by the rules of the ledger in memory, as it should, or by a mistake.

use std::sync::Arc;

use super::disk::Disk;
use super::ledger::ProcessLedger;
use super::life::Life;
use super::mistake::Mistake;
use super::places::Sitting;
use super::sighting::Sighting;
use crate::ledger::{
    Epoch, Lease, LedgerError, LedgerFuture, Ownership, Rows, Run, RunId, Seat, Share, ShareHolder, Shares, StopKind,
};

impl Disk {
    /// Whether a process may send these rows of the last run: all where it is sent whole, else those of one share of its own.
    pub(super) fn may_send(&self, life: &Arc<Life>, rows: Rows) -> bool {
        let Some(book) = self.contents.books().last().filter(|book| book.run.sharing.is_some()) else { return true };
        let holder = book.share_of(rows).and_then(|epoch| self.seats.get(&epoch));
        holder.is_some_and(|holder| Arc::ptr_eq(holder, life))
    }

    /// Whether nobody else who is there has some of the last run while it is not known that the gateway takes its messages.
    pub(super) fn tries_alone(&self, life: &Arc<Life>) -> bool {
        let Some(run) = self.contents.books().last().map(|book| &book.run) else { return true };
        run.sharing.as_ref().is_none_or(|sharing| sharing.proven) || !self.has_others(run.key, life)
    }

    /// Whether somebody else has some of a run that is there.
    fn has_others(&self, run: RunId, life: &Arc<Life>) -> bool {
        let others = self.seats.iter().filter(|(_, other)| !Arc::ptr_eq(other, life) && !other.is_over());
        let mut had = others.map(|(epoch, _)| self.book(run).has_shares(*epoch));
        had.any(|has| has)
    }

    /// By which right somebody has the share that these rows are of.
    pub(super) fn holder(&self, run: RunId, rows: Rows) -> Option<Epoch> {
        self.book(run).share_of(rows)
    }

    /// The places with something of a run where nobody is, but for this one.
    pub(super) fn left(&self, run: RunId, but: Option<u32>) -> Vec<u32> {
        let is_left = |place: &u32| Some(*place) != but && !self.places.is_there(*place);
        let mut left: Vec<u32> = self.book(run).share_places().filter(is_left).collect();
        left.sort_unstable();
        left.dedup();
        left
    }

    fn draw_share(
        &mut self,
        now: i64,
        (seat, rows): (&Seat, u32),
        shut: Option<&[u32]>,
        mistake: Option<Mistake>,
    ) -> Result<Share, LedgerError> {
        let is_there = |place| shut.is_none_or(|shut| !shut.contains(&place));
        let book = self.contents.book_mut(seat.lease.run)?;
        if mistake == Some(Mistake::ShareWithoutDoubt) {
            let left: Vec<Rows> = book.shares_at(|place| !is_there(place)).collect();
            let is_of = |rows: &Rows, row| rows.contain(row);
            book.envelopes.retain(|_, envelope| {
                let row = envelope.rows.first().map(|sent| sent.row);
                envelope.settled.is_some() || !left.iter().any(|rows| row.is_some_and(|row| is_of(rows, row)))
            });
        }
        let known = book.run.sharing.clone();
        if let Some(sharing) = book.run.sharing.as_mut().filter(|_| mistake == Some(Mistake::SharingUnnumbered)) {
            sharing.id = seat.sharing;
        }
        let drawn = self.contents.draw_share(now, seat, (rows, shut.is_some()), is_there);
        self.contents.book_mut(seat.lease.run)?.run.sharing = known;
        drawn
    }
}

impl ProcessLedger {
    /// Renews what this process has, if it does not know any more that it has this right: it may have slept. Tells whether it
    /// has it.
    pub(super) async fn be_heard(&self, epoch: Epoch) -> Result<bool, LedgerError> {
        if self.leases.last(epoch) == Some(false) {
            let renew = |disk: &mut Disk, _| {
                self.leases.renew(&mut disk.places);
                Ok(())
            };
            self.write(renew).await?;
        }
        Ok(self.leases.last(epoch) != Some(false))
    }

    /// Takes the places where nobody is any more of those that have something of a run, but for this one, as long as what it
    /// gives is kept.
    async fn shut(&self, seat: &Seat) -> Result<(Vec<u32>, Vec<Sitting>), LedgerError> {
        self.life.step().await;
        if self.disk().left(seat.lease.run, Some(seat.place)).is_empty() {
            return Ok(<_>::default());
        }
        let shut = |disk: &mut Disk, _| {
            let left = disk.left(seat.lease.run, Some(seat.place));
            if disk.places.slept_at(&left) {
                disk.saw(Sighting::SuspendedPastItsLease);
            }
            let take = |place: &u32| {
                Sitting::briefly((*place, disk.places.take(*place, &self.life)), &self.disk, &self.leases)
            };
            let taken = left.iter().map(take).collect();
            Ok((left, taken))
        };
        self.write(shut).await
    }
}

impl Shares for ProcessLedger {
    fn share_out(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership> {
        Box::pin(async move {
            self.write(|disk, _| {
                let shared = disk.contents.share_out(lease, terms, proven)?;
                if shared == Ownership::Held {
                    disk.saw(Sighting::SharedOut);
                }
                Ok(shared)
            })
            .await
        })
    }

    fn take_seat<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<Seat>> {
        Box::pin(async move {
            if run.sharing.is_none() {
                return Ok(None);
            }
            self.write(|disk, _| {
                let place = disk.places.free();
                if disk.places.slept_at(&[place]) {
                    disk.saw(Sighting::SuspendedPastItsLease);
                }
                let holder = disk.places.take(place, &self.life);
                let sitting = Sitting::briefly((place, holder), &self.disk, &self.leases).renewed(&self.life);
                let seat = disk.contents.seat(run, (place, by), sitting);
                if let Some(seat) = &seat {
                    self.leases.took(seat.lease.epoch, place, holder);
                    disk.seats.insert(seat.lease.epoch, Arc::clone(&self.life));
                }
                Ok(seat)
            })
            .await
        })
    }

    fn draw_share<'a>(&'a self, seat: &'a Seat, rows: u32, looks: bool) -> LedgerFuture<'a, Share> {
        Box::pin(async move {
            let (shut, taken) = if looks { Some(self.shut(seat).await?) } else { None }.unzip();
            if !self.be_heard(seat.lease.epoch).await? {
                return Ok(Share::Over);
            }
            self.write(|disk, now| {
                // It may have slept since it looked.
                let own = self.leases.place_of(seat.lease.epoch).is_some_and(|(place, by)| disk.places.has(place, by));
                let mut taken = taken.iter().flatten();
                match own && taken.all(|sitting| sitting.is_had(&disk.places)) {
                    true => disk.draw_share(now, (seat, rows), shut.as_deref(), self.mistake),
                    false => Ok(Share::Over),
                }
            })
            .await
        })
    }

    fn finish_shares<'a>(&'a self, seat: &'a Seat) -> LedgerFuture<'a, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.finish_shares(seat.lease)).await })
    }

    fn prove(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.contents.prove(run)).await })
    }

    fn halt(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            self.write(|disk, _| {
                if disk.contents.halt(run, kind, reason)? && disk.has_others(run, &self.life) {
                    disk.saw(Sighting::HaltedForAll);
                }
                Ok(())
            })
            .await
        })
    }

    fn share_holders<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Vec<ShareHolder>> {
        unreachable!("nobody is shown who has what")
    }
}
