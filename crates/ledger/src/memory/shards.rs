//! Shards in memory. Their rules are methods of the contents, so the simulation can use them too.

use std::any::Any;

use super::adapter::MemoryLedger;
use super::contents::{LedgerContents, timestamp_from_micros};
use super::stored_run::StoredRun;
use crate::rules::{DrawReadiness, check_draw, next_rows, owns_rows};
use crate::{
    Epoch, Lease, LedgerError, LedgerFuture, OwnedBlock, Ownership, RowSpan, Run, RunId, ShardDraw, ShardStore,
    ShardWorker, Sharding,
};

/// A drawn shard.
#[derive(Clone, Debug)]
pub(super) struct DrawnShard {
    place: u32,
    pub(super) rows: RowSpan,
    /// The fencing token of its worker. `None` once it is complete.
    epoch: Option<Epoch>,
    worker: String,
    drawn_at: i64,
}

impl StoredRun {
    /// Whether the holder of a fencing token has a shard with these rows.
    pub(super) fn has_shard_rows(&self, epoch: Epoch, rows: RowSpan) -> bool {
        self.shares.iter().any(|share| share.epoch == Some(epoch) && owns_rows(share.rows, rows))
    }

    /// The fencing token of the shard with these rows, if the shard is not complete.
    pub fn find_shard_epoch(&self, rows: RowSpan) -> Option<Epoch> {
        self.shares.iter().find(|share| owns_rows(share.rows, rows)).and_then(|share| share.epoch)
    }

    /// The places of workers with incomplete shards.
    pub fn list_shard_places(&self) -> impl Iterator<Item = u32> {
        self.shares.iter().filter(|share| share.epoch.is_some()).map(|share| share.place)
    }

    /// Whether the holder of a fencing token has incomplete shards.
    pub fn has_shards(&self, epoch: Epoch) -> bool {
        self.shares.iter().any(|share| share.epoch == Some(epoch))
    }

    /// The incomplete shards at matching places.
    pub fn list_shards_at(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = RowSpan> {
        let had = self.shares.iter().filter(|share| share.epoch.is_some());
        had.filter(move |share| is_wanted(share.place)).map(|share| share.rows)
    }

    /// Marks all shards as complete, except for the given shards of other workers.
    pub(super) fn close_shards(&mut self, others: &[RowSpan]) {
        let left = self.shares.iter_mut().filter(|share| !others.contains(&share.rows));
        left.for_each(|share| share.epoch = None);
    }
}

impl LedgerContents {
    /// Shards a run. Earlier shards are kept while any of them is incomplete, so no row is drawn twice.
    pub(super) fn shard_run(&mut self, lease: Lease, terms: String, proven: bool) -> Result<Ownership, LedgerError> {
        let id = self.next_epoch().0;
        let stored = self.stored_run_mut(lease.run)?;
        if !stored.run.is_leased(lease) {
            return Ok(Ownership::Lost);
        }
        if stored.shares.iter().all(|share| share.epoch.is_none()) {
            stored.shares.clear();
        }
        stored.run.sharding = Some(Sharding { terms, id, by: lease.epoch, proven });
        Ok(Ownership::Held)
    }

    /// Registers a worker at a locked place. `None` if the run is not sharded.
    pub fn register_worker(
        &mut self,
        run: &Run,
        (place, by): (u32, String),
        kept: impl Any + Send + Sync,
    ) -> Option<ShardWorker> {
        let sharing = run.sharding.as_ref()?.id;
        let lease = Lease { run: run.key, rows: run.row_span(), epoch: self.next_epoch() };
        Some(ShardWorker::new(lease, sharing, place, by, kept))
    }

    /// Draws a shard for a worker. `is_there` says whether a place is in use.
    pub fn draw_shard(
        &mut self,
        now: i64,
        worker: &ShardWorker,
        (rows, takes_abandoned): (u32, bool),
        is_there: impl Fn(u32) -> bool,
    ) -> Result<ShardDraw, LedgerError> {
        let (at, Lease { run, epoch, .. }) = (timestamp_from_micros(now)?, worker.lease);
        let stored = self.stored_run_mut(run)?;
        match check_draw(&stored.run, worker.sharding) {
            DrawReadiness::Now => {}
            DrawReadiness::Later => return Ok(ShardDraw::Unavailable),
            DrawReadiness::NoMore => return Ok(ShardDraw::Ended),
        }
        let is_left = |share: &DrawnShard| {
            takes_abandoned
                && share.epoch.is_some_and(|had| had != epoch)
                && (share.place == worker.place || !is_there(share.place))
        };
        let mut left = Vec::new();
        for share in stored.shares.iter_mut().filter(|share| is_left(share)) {
            (share.place, share.epoch, share.worker) = (worker.place, Some(epoch), worker.name.clone());
            left.push(share.rows);
        }
        if !left.is_empty() {
            let doubtful = stored.mark_in_doubt(at, |intent| left.iter().any(|rows| owns_rows(*rows, intent)));
            return Ok(ShardDraw::TakenOver { rows: left, doubtful });
        }
        let in_other_hands = stored.list_shards_at(|place| place != worker.place).next().is_some();
        if in_other_hands && !stored.run.sharding.as_ref().is_some_and(|sharing| sharing.proven) {
            return Ok(ShardDraw::Unavailable);
        }
        match next_rows(&stored.run, stored.shares.last().map(|share| share.rows.last), rows) {
            Some(rows) => {
                let by = worker.name.clone();
                stored.shares.push(DrawnShard {
                    place: worker.place,
                    rows,
                    epoch: Some(epoch),
                    worker: by,
                    drawn_at: now,
                });
                Ok(ShardDraw::NewRows(rows))
            }
            None if in_other_hands => Ok(ShardDraw::Unavailable),
            None => Ok(ShardDraw::Exhausted),
        }
    }

    /// Marks the shards of a worker as complete.
    pub(super) fn finish_shards(&mut self, Lease { run, epoch, .. }: Lease) -> Result<Ownership, LedgerError> {
        let mine = self.stored_run_mut(run)?.shares.iter_mut().filter(|share| share.epoch == Some(epoch));
        let finished = mine.map(|share| share.epoch = None).count();
        Ok(if finished > 0 { Ownership::Held } else { Ownership::Lost })
    }

    /// The blocks of a run at places that are in use, oldest first.
    pub fn list_owned_blocks(
        &self,
        run: RunId,
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<Vec<OwnedBlock>, LedgerError> {
        let stored = self.stored_run(run)?;
        let single = |(place, block): (&u32, &Lease)| {
            Ok(OwnedBlock { rows: block.rows, place: *place, worker: None, drawn_at: None })
        };
        let shard = |share: &DrawnShard| {
            let (worker, drawn_at) = (Some(share.worker.clone()), Some(timestamp_from_micros(share.drawn_at)?));
            Ok(OwnedBlock { rows: share.rows, place: share.place, worker, drawn_at })
        };
        let singles = stored.blocks.iter().filter(|(place, _)| is_taken(**place)).map(single);
        let drawn = stored.shares.iter().filter(|share| share.epoch.is_some() && is_taken(share.place));
        singles.chain(drawn.map(shard)).collect()
    }
}

impl ShardStore for MemoryLedger {
    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>> {
        self.write_contents(move |contents, _| {
            let (place, kept) = self.take_free_place(&run.campaign, &run.account);
            Ok(contents.register_worker(run, (place, by), kept))
        })
    }

    fn draw_shard<'a>(
        &'a self,
        worker: &'a ShardWorker,
        rows: u32,
        takes_abandoned: bool,
    ) -> LedgerFuture<'a, ShardDraw> {
        self.write_contents(move |contents, now| {
            let run = contents.stored_run(worker.lease.run)?.run.clone();
            contents.draw_shard(now, worker, (rows, takes_abandoned), |place| self.is_place_taken(&run, place))
        })
    }
}
