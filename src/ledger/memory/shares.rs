//! Shares in memory.

use super::adapter::MemoryLedger;
use super::book::Book;
use super::contents::{Contents, instant};
use crate::ledger::rules::{Draws, draws, next_rows, owns};
use crate::ledger::{
    Epoch, Lease, LedgerError, LedgerFuture, Ownership, Rows, Run, RunId, Seat, Share, ShareHolder, Shares, Sharing,
    StopKind, hold,
};

/// Rows that somebody drew.
#[derive(Clone, Debug)]
pub(super) struct DrawnRows {
    place: u32,
    pub(super) rows: Rows,
    /// By which right they are had; nothing once nobody is to draw them any more.
    epoch: Option<Epoch>,
    by: String,
    drawn_at: i64,
}

impl Book {
    /// Whether these rows are of a share that is had by this right.
    pub(super) fn has_share(&self, epoch: Epoch, rows: Rows) -> bool {
        self.shares.iter().any(|share| share.epoch == Some(epoch) && owns(share.rows, rows))
    }

    /// What is drawn at places that are like this, and not finished.
    pub(super) fn shares_at(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = Rows> {
        let had = self.shares.iter().filter(|share| share.epoch.is_some());
        had.filter(move |share| is_wanted(share.place)).map(|share| share.rows)
    }

    /// Finishes what others have not.
    pub(super) fn close_shares(&mut self, others: &[Rows]) {
        let left = self.shares.iter_mut().filter(|share| !others.contains(&share.rows));
        left.for_each(|share| share.epoch = None);
    }
}

impl Contents {
    fn share_out(&mut self, lease: Lease, terms: String, proven: bool) -> Result<Ownership, LedgerError> {
        let book = self.book_mut(lease.run)?;
        if !book.run.is_leased(lease) {
            return Ok(Ownership::Lost);
        }
        if book.shares.iter().all(|share| share.epoch.is_none()) {
            book.shares.clear();
        }
        book.run.sharing = Some(Sharing { terms, id: rand::random(), by: lease.epoch, proven });
        Ok(Ownership::Held)
    }

    fn draw_share(
        &mut self,
        now: i64,
        seat: &Seat,
        (rows, looks): (u32, bool),
        is_there: impl Fn(u32) -> bool,
    ) -> Result<Share, LedgerError> {
        let (at, Lease { run, epoch, .. }) = (instant(now)?, seat.lease);
        let book = self.book_mut(run)?;
        match draws(&book.run, seat.sharing) {
            Draws::Now => {}
            Draws::Later => return Ok(Share::InOtherHands),
            Draws::NoMore => return Ok(Share::Over),
        }
        let is_left = |share: &DrawnRows| {
            looks
                && share.epoch.is_some_and(|had| had != epoch)
                && (share.place == seat.place || !is_there(share.place))
        };
        let mut left = Vec::new();
        for share in book.shares.iter_mut().filter(|share| is_left(share)) {
            (share.place, share.epoch, share.by) = (seat.place, Some(epoch), seat.by.clone());
            left.push(share.rows);
        }
        if !left.is_empty() {
            let doubtful = book.doubt(at, |intent| left.iter().any(|rows| owns(*rows, intent)));
            return Ok(Share::TakenOver { rows: left, doubtful });
        }
        let in_other_hands = book.shares_at(|place| place != seat.place).next().is_some();
        if in_other_hands && !book.run.sharing.as_ref().is_some_and(|sharing| sharing.proven) {
            return Ok(Share::InOtherHands);
        }
        match next_rows(&book.run, book.shares.last().map(|share| share.rows.last), rows) {
            Some(rows) => {
                let by = seat.by.clone();
                book.shares.push(DrawnRows { place: seat.place, rows, epoch: Some(epoch), by, drawn_at: now });
                Ok(Share::Fresh(rows))
            }
            None if in_other_hands => Ok(Share::InOtherHands),
            None => Ok(Share::Through),
        }
    }
}

impl Shares for MemoryLedger {
    fn share_out(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership> {
        self.change(move |contents, _| contents.share_out(lease, terms, proven))
    }

    fn take_seat<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<Seat>> {
        self.change(move |contents, _| {
            let Some(sharing) = run.sharing.as_ref().map(|sharing| sharing.id) else { return Ok(None) };
            let (place, kept) = self.free_place(&run.campaign, &run.account);
            let lease = Lease { run: run.key, rows: run.rows(), epoch: contents.next_epoch() };
            Ok(Some(Seat::new(lease, (sharing, place, by), kept)))
        })
    }

    fn draw_share<'a>(&'a self, seat: &'a Seat, rows: u32, looks: bool) -> LedgerFuture<'a, Share> {
        self.change(move |contents, now| {
            let run = contents.book(seat.lease.run)?.run.clone();
            contents.draw_share(now, seat, (rows, looks), |place| self.has_taken(&run, place))
        })
    }

    fn finish_shares<'a>(&'a self, seat: &'a Seat) -> LedgerFuture<'a, ()> {
        self.change(move |contents, _| {
            let mine = contents.book_mut(seat.lease.run)?.shares.iter_mut();
            mine.filter(|share| share.epoch == Some(seat.lease.epoch)).for_each(|share| share.epoch = None);
            Ok(())
        })
    }

    fn prove(&self, run: RunId) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            if let Some(sharing) = &mut contents.book_mut(run)?.run.sharing {
                sharing.proven = true;
            }
            Ok(())
        })
    }

    fn halt(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            let run = &mut contents.book_mut(run)?.run;
            if !run.stop_requested {
                (run.stop_requested, run.stop, run.stopped) = (true, Some(kind), Some(reason));
            }
            Ok(())
        })
    }

    fn share_holders<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Vec<ShareHolder>> {
        self.change(move |contents, _| {
            let mut holders: Vec<(u32, ShareHolder)> = Vec::new();
            let had = contents.book(run.key)?.shares.iter().filter(|share| share.epoch.is_some());
            for share in had.filter(|share| self.is_taken(&hold::place_name(&run.campaign, &run.account, share.place)))
            {
                match holders.iter_mut().find(|(place, _)| *place == share.place) {
                    Some((_, holder)) => holder.rows += share.rows.len(),
                    None => {
                        let since = instant(share.drawn_at)?;
                        let holder = ShareHolder { by: share.by.clone(), rows: share.rows.len(), since };
                        holders.push((share.place, holder));
                    }
                }
            }
            Ok(holders.into_iter().map(|(_, holder)| holder).collect())
        })
    }
}
