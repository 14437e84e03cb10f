//! Shares in memory: the rules of them are methods of what is held, for whoever plays a ledger over it.

use std::any::Any;

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

    /// By which right somebody has the share that these rows are of, if somebody does.
    pub(crate) fn share_of(&self, rows: Rows) -> Option<Epoch> {
        self.shares.iter().find(|share| owns(share.rows, rows)).and_then(|share| share.epoch)
    }

    /// The places at which shares were drawn that are not finished.
    pub(crate) fn share_places(&self) -> impl Iterator<Item = u32> {
        self.shares.iter().filter(|share| share.epoch.is_some()).map(|share| share.place)
    }

    /// Whether somebody has a share by this right.
    pub(crate) fn has_shares(&self, epoch: Epoch) -> bool {
        self.shares.iter().any(|share| share.epoch == Some(epoch))
    }

    /// What is drawn at places that are like this, and not finished.
    pub(crate) fn shares_at(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = Rows> {
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
    /// Has a run sent in shares from now on. As long as somebody has some of the last time, no row is drawn twice.
    pub(crate) fn share_out(&mut self, lease: Lease, terms: String, proven: bool) -> Result<Ownership, LedgerError> {
        let id = self.next_epoch().0;
        let book = self.book_mut(lease.run)?;
        if !book.run.is_leased(lease) {
            return Ok(Ownership::Lost);
        }
        if book.shares.iter().all(|share| share.epoch.is_none()) {
            book.shares.clear();
        }
        book.run.sharing = Some(Sharing { terms, id, by: lease.epoch, proven });
        Ok(Ownership::Held)
    }

    /// A seat at a place that is taken for it, as long as what is kept is; nothing where the run is not shared out.
    pub(crate) fn seat(&mut self, run: &Run, (place, by): (u32, String), kept: impl Any + Send + Sync) -> Option<Seat> {
        let sharing = run.sharing.as_ref()?.id;
        let lease = Lease { run: run.key, rows: run.rows(), epoch: self.next_epoch() };
        Some(Seat::new(lease, (sharing, place, by), kept))
    }

    /// Draws for a seat; `is_there` tells of a place whether somebody is at it.
    pub(crate) fn draw_share(
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

    /// Has nothing drawn again of what was drawn in a seat.
    pub(crate) fn finish_shares(&mut self, Lease { run, epoch, .. }: Lease) -> Result<(), LedgerError> {
        let mine = self.book_mut(run)?.shares.iter_mut().filter(|share| share.epoch == Some(epoch));
        mine.for_each(|share| share.epoch = None);
        Ok(())
    }

    /// Keeps that the gateway has taken a message of a run.
    pub(crate) fn prove(&mut self, run: RunId) -> Result<(), LedgerError> {
        if let Some(sharing) = &mut self.book_mut(run)?.run.sharing {
            sharing.proven = true;
        }
        Ok(())
    }

    /// Asks everybody who sends a run to stop, unless they are asked already; tells whether they were not.
    pub(crate) fn halt(&mut self, run: RunId, kind: StopKind, reason: String) -> Result<bool, LedgerError> {
        let run = &mut self.book_mut(run)?.run;
        if run.stop_requested {
            return Ok(false);
        }
        (run.stop_requested, run.stop, run.stopped) = (true, Some(kind), Some(reason));
        Ok(true)
    }
}

impl Shares for MemoryLedger {
    fn share_out(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership> {
        self.change(move |contents, _| contents.share_out(lease, terms, proven))
    }

    fn take_seat<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<Seat>> {
        self.change(move |contents, _| {
            let (place, kept) = self.free_place(&run.campaign, &run.account);
            Ok(contents.seat(run, (place, by), kept))
        })
    }

    fn draw_share<'a>(&'a self, seat: &'a Seat, rows: u32, looks: bool) -> LedgerFuture<'a, Share> {
        self.change(move |contents, now| {
            let run = contents.book(seat.lease.run)?.run.clone();
            contents.draw_share(now, seat, (rows, looks), |place| self.has_taken(&run, place))
        })
    }

    fn finish_shares<'a>(&'a self, seat: &'a Seat) -> LedgerFuture<'a, ()> {
        self.change(move |contents, _| contents.finish_shares(seat.lease))
    }

    fn prove(&self, run: RunId) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.prove(run))
    }

    fn halt(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.halt(run, kind, reason).map(drop))
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
