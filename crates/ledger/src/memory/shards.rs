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
use campaign_core::domain::Row;

#[derive(Clone, Debug)]
pub(super) struct DrawnShard {
    place: u32,
    pub(super) rows: RowSpan,
    /// The fencing token of its worker. `None` once the shard is complete.
    epoch: Option<Epoch>,
    worker: String,
    drawn_at: i64,
}

impl StoredRun {
    /// Whether the holder of a fencing token has a shard with these rows.
    pub(super) fn has_shard_with_rows(&self, epoch: Epoch, rows: RowSpan) -> bool {
        self.shards.iter().any(|shard| shard.epoch == Some(epoch) && owns_rows(shard.rows, rows))
    }

    /// Whether there are rows, and the holder of a fencing token has shards with all of them.
    pub(super) fn are_all_rows_leased(&self, epoch: Epoch, rows: &[Row]) -> bool {
        let has_shard = |row: &Row| self.has_shard_with_rows(epoch, RowSpan { first: *row, last: *row });
        !rows.is_empty() && rows.iter().all(has_shard)
    }

    /// The fencing token of the shard with these rows, if the shard is not complete.
    pub fn find_shard_epoch(&self, rows: RowSpan) -> Option<Epoch> {
        self.shards.iter().find(|shard| owns_rows(shard.rows, rows)).and_then(|shard| shard.epoch)
    }

    /// The places of workers with incomplete shards.
    pub fn list_shard_places(&self) -> impl Iterator<Item = u32> {
        self.shards.iter().filter(|shard| shard.epoch.is_some()).map(|shard| shard.place)
    }

    /// Whether the holder of a fencing token has incomplete shards.
    pub fn has_shards(&self, epoch: Epoch) -> bool {
        self.shards.iter().any(|shard| shard.epoch == Some(epoch))
    }

    /// The incomplete shards at matching places.
    pub fn list_shards_at(&self, is_wanted: impl Fn(u32) -> bool) -> impl Iterator<Item = RowSpan> {
        let incomplete = self.shards.iter().filter(|shard| shard.epoch.is_some());
        incomplete.filter(move |shard| is_wanted(shard.place)).map(|shard| shard.rows)
    }

    /// Marks all shards as complete, except for the given shards of other workers.
    pub(super) fn close_shards(&mut self, others: &[RowSpan]) {
        let closed = self.shards.iter_mut().filter(|shard| !others.contains(&shard.rows));
        closed.for_each(|shard| shard.epoch = None);
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
        if stored.shards.iter().all(|shard| shard.epoch.is_none()) {
            stored.shards.clear();
        }
        stored.run.sharding = Some(Sharding { terms, id, by: lease.epoch, proven });
        Ok(Ownership::Held)
    }

    /// Registers a worker at a locked place. `None` if the run is not sharded.
    pub fn register_worker(
        &mut self,
        run: &Run,
        (place, by): (u32, String),
        guard: impl Any + Send + Sync,
    ) -> Option<ShardWorker> {
        let sharding = run.sharding.as_ref()?.id;
        let lease = Lease { run: run.key, rows: run.row_span(), epoch: self.next_epoch() };
        Some(ShardWorker::new(lease, sharding, place, by, guard))
    }

    /// Draws a shard for a worker. `is_occupied` says whether a place is in use.
    pub fn draw_shard(
        &mut self,
        now: i64,
        worker: &ShardWorker,
        (rows, takes_abandoned): (u32, bool),
        is_occupied: impl Fn(u32) -> bool,
    ) -> Result<ShardDraw, LedgerError> {
        let (at, Lease { run, epoch, .. }) = (timestamp_from_micros(now)?, worker.lease);
        let stored = self.stored_run_mut(run)?;
        match check_draw(&stored.run, worker.sharding) {
            DrawReadiness::Now => {}
            DrawReadiness::Later => return Ok(ShardDraw::Unavailable),
            DrawReadiness::NoMore => return Ok(ShardDraw::Ended),
        }
        let is_abandoned = |shard: &DrawnShard| {
            takes_abandoned
                && shard.epoch.is_some_and(|owner| owner != epoch)
                && (shard.place == worker.place || !is_occupied(shard.place))
        };
        let mut abandoned = Vec::new();
        for shard in stored.shards.iter_mut().filter(|shard| is_abandoned(shard)) {
            (shard.place, shard.epoch, shard.worker) = (worker.place, Some(epoch), worker.name.clone());
            abandoned.push(shard.rows);
        }
        if !abandoned.is_empty() {
            let doubtful = stored.mark_in_doubt(at, |intent| abandoned.iter().any(|rows| owns_rows(*rows, intent)));
            return Ok(ShardDraw::TakenOver { rows: abandoned, doubtful });
        }
        let others_have_shards = stored.list_shards_at(|place| place != worker.place).next().is_some();
        if others_have_shards && !stored.run.sharding.as_ref().is_some_and(|sharding| sharding.proven) {
            return Ok(ShardDraw::Unavailable);
        }
        match next_rows(&stored.run, stored.shards.last().map(|shard| shard.rows.last), rows) {
            Some(rows) => {
                let by = worker.name.clone();
                stored.shards.push(DrawnShard {
                    place: worker.place,
                    rows,
                    epoch: Some(epoch),
                    worker: by,
                    drawn_at: now,
                });
                Ok(ShardDraw::NewRows(rows))
            }
            None if others_have_shards => Ok(ShardDraw::Unavailable),
            None => Ok(ShardDraw::Exhausted),
        }
    }

    /// Marks the shards of a worker as complete.
    pub(super) fn finish_shards(&mut self, Lease { run, epoch, .. }: Lease) -> Result<Ownership, LedgerError> {
        let shards = self.stored_run_mut(run)?.shards.iter_mut().filter(|shard| shard.epoch == Some(epoch));
        let finished = shards.map(|shard| shard.epoch = None).count();
        Ok(if finished > 0 { Ownership::Held } else { Ownership::Lost })
    }

    /// The blocks of a run at places that are in use, oldest first.
    pub fn list_owned_blocks(
        &self,
        run: RunId,
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<Vec<OwnedBlock>, LedgerError> {
        let stored = self.stored_run(run)?;
        let to_single_block = |(place, block): (&u32, &Lease)| {
            Ok(OwnedBlock { rows: block.rows, place: *place, worker: None, drawn_at: None })
        };
        let to_shard_block = |shard: &DrawnShard| {
            let (worker, drawn_at) = (Some(shard.worker.clone()), Some(timestamp_from_micros(shard.drawn_at)?));
            Ok(OwnedBlock { rows: shard.rows, place: shard.place, worker, drawn_at })
        };
        let singles = stored.blocks.iter().filter(|(place, _)| is_taken(**place)).map(to_single_block);
        let drawn = stored.shards.iter().filter(|shard| shard.epoch.is_some() && is_taken(shard.place));
        singles.chain(drawn.map(to_shard_block)).collect()
    }
}

impl ShardStore for MemoryLedger {
    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>> {
        self.write_contents(move |contents, _| {
            let (place, guard) = self.lock_first_free_place(&run.campaign, &run.account);
            Ok(contents.register_worker(run, (place, by), guard))
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
            contents.draw_shard(now, worker, (rows, takes_abandoned), |place| self.is_place_locked(&run, place))
        })
    }
}
