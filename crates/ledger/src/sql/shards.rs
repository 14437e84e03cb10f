//! Shards: blocks of rows of one run that several workers send.

use sqlx::{AssertSqlSafe, Row as _};

use super::blocks::{self, BlockOwner, LockProof};
use super::dialect::{Adapter, Connection, Lock};
use super::envelopes;
use super::runs;
use super::{Now, StatementError, query, read_row_number, read_u32, scalar, to_u32};
use crate::rules::{DrawReadiness, check_draw, next_rows, owns_rows};
use crate::{
    BlockIds, Epoch, Lease, LedgerError, LedgerFuture, Ownership, RowSpan, Run, RunId, ShardDraw, ShardStore,
    ShardWorker, run,
};
use campaign_core::domain::Row;

/// A worker's request for rows.
#[derive(Clone)]
struct ShardRequest {
    lease: Lease,
    sharding: i64,
    place: u32,
    by: String,
    /// The maximum number of rows.
    rows: u32,
    /// The vacant places other than the worker's own. `None` if the worker did not look for them.
    vacant: Option<Vec<u32>>,
    /// The worker's own lock and the locks of the vacant places.
    proof: LockProof,
}

impl ShardStore for Adapter {
    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>> {
        Box::pin(async move {
            let Some(sharding) = run.sharding.as_ref().map(|sharding| sharding.id) else { return Ok(None) };
            self.ensure_can_send().await?;
            let (place, lock) = blocks::lock_first_vacant_place(self, &run.campaign, &run.account).await?;
            let lease = Lease { run: run.key, rows: run.row_span(), epoch: Epoch(rand::random()) };
            self.bind_lease(lease.epoch, &run::place_name(&run.campaign, &run.account, place));
            Ok(Some(ShardWorker::new(lease, sharding, place, by, lock)))
        })
    }

    fn draw_shard<'a>(
        &'a self,
        worker: &'a ShardWorker,
        rows: u32,
        takes_abandoned: bool,
    ) -> LedgerFuture<'a, ShardDraw> {
        Box::pin(async move {
            let ShardWorker { lease, sharding, place, name: by, .. } = worker;
            let (vacant, locks) =
                if takes_abandoned { Some(self.lock_abandoned_places(worker).await?) } else { None }.unzip();
            let proof = self.lock_proof(lease.epoch, locks.as_deref().unwrap_or_default());
            let draw =
                ShardRequest { lease: *lease, sharding: *sharding, place: *place, by: by.clone(), rows, vacant, proof };
            self.renew_if_stale(lease.epoch).await?;
            // Another worker might have taken the place by now; that worker keeps its rows.
            if !self.holds_lease(lease.epoch) {
                return Ok(ShardDraw::Ended);
            }
            self.write(move |connection, now| Box::pin(draw_next_shard(connection, now, draw.clone()))).await
        })
    }
}

impl Adapter {
    /// Locks the places of other workers that have ended.
    async fn lock_abandoned_places(&self, worker: &ShardWorker) -> Result<(Vec<u32>, Vec<Lock>), LedgerError> {
        let (run, places) = self.load_places(worker.lease.run).await?;
        let (mut vacant, mut locks) = (Vec::new(), Vec::new());
        for place in places.iter().filter(|place| place.number != worker.place) {
            // Checking a lock is cheap; only vacant places are locked.
            let name = run::place_name(&run.campaign, &run.account, place.number);
            if !self.is_locked(&name).await?
                && let Some(lock) = self.try_lock(&name).await?
            {
                vacant.push(place.number);
                locks.push(lock);
            }
        }
        Ok((vacant, locks))
    }
}

/// Starts sharding a run. Blocks are kept while workers of an earlier sharding still hold rows, so that no row is drawn
/// twice.
pub(super) async fn start_sharding(
    connection: &mut Connection,
    lease: Lease,
    terms: String,
    proven: bool,
) -> Result<Ownership, StatementError> {
    let run = lease.run;
    let loaded = runs::load_run(&mut *connection, run).await?;
    if !loaded.is_leased(lease) {
        return Ok(Ownership::Lost);
    }
    if blocks::list_places(&mut *connection, run).await?.is_empty() {
        query("DELETE FROM blocks WHERE run = $1").bind(run.0).execute(&mut *connection).await?;
    }
    query("UPDATE runs SET terms = $1, sharing = $2, shared_by = $3, proven = $4 WHERE key = $5")
        .bind(terms)
        .bind(rand::random::<i64>())
        .bind(lease.epoch.0)
        .bind(proven)
        .bind(run.0)
        .execute(connection)
        .await?;
    Ok(Ownership::Held)
}

/// Marks the shards of a worker as complete.
pub(super) async fn finish_shards(
    connection: &mut Connection,
    Lease { run, epoch, .. }: Lease,
) -> Result<Ownership, StatementError> {
    let finished = query("UPDATE blocks SET epoch = NULL WHERE run = $1 AND epoch = $2")
        .bind(run.0)
        .bind(epoch.0)
        .execute(connection)
        .await?;
    Ok(if finished.rows_affected() > 0 { Ownership::Held } else { Ownership::Lost })
}

async fn draw_next_shard(
    connection: &mut Connection,
    now: Now,
    draw: ShardRequest,
) -> Result<ShardDraw, StatementError> {
    let ShardRequest { lease, sharding, place, by, rows, vacant, proof } = draw;
    let DrawableRun { run, last_drawn, holds_locks } = load_drawable_run(&mut *connection, lease.run, &proof).await?;
    // A worker that was suspended might have lost its locks. Other workers might hold its places now, so it must not
    // draw more rows.
    if !holds_locks {
        return Ok(ShardDraw::Ended);
    }
    match check_draw(&run, sharding) {
        DrawReadiness::Now => {}
        DrawReadiness::Later => return Ok(ShardDraw::Unavailable),
        DrawReadiness::NoMore => return Ok(ShardDraw::Ended),
    }
    if let Some(vacant) = vacant {
        let abandoned = find_abandoned_rows(&mut *connection, lease, place, &vacant).await?;
        if !abandoned.is_empty() {
            let owner = BlockOwner { place, epoch: lease.epoch, name: Some(&by) };
            let doubtful = take_over_rows(connection, now, &run, &abandoned, owner).await?;
            return Ok(ShardDraw::TakenOver { rows: abandoned, doubtful });
        }
    }
    let proven = run.sharding.as_ref().is_some_and(|sharding| sharding.proven);
    if !proven && others_hold_rows(&mut *connection, run.key, place).await? {
        return Ok(ShardDraw::Unavailable);
    }
    let Some(rows) = next_rows(&run, last_drawn, rows) else {
        let others_have_shards = others_hold_rows(connection, run.key, place).await?;
        return Ok(if others_have_shards { ShardDraw::Unavailable } else { ShardDraw::Exhausted });
    };
    let first = run.ids.id_for_row(rows.first).map_or(run.ids.first, |id| id.get());
    let ids = BlockIds { rows, first };
    blocks::insert_block(connection, now, run.key, ids, BlockOwner { place, epoch: lease.epoch, name: Some(&by) })
        .await?;
    Ok(ShardDraw::NewRows(rows))
}

/// A run with the facts that a draw needs.
struct DrawableRun {
    run: Run,
    /// The last row that any worker drew.
    last_drawn: Option<Row>,
    /// Whether this process still holds all the locks.
    holds_locks: bool,
}

/// Loads everything that a draw needs in one round trip, because other processes are waiting for the write lock.
async fn load_drawable_run(
    connection: &mut Connection,
    run: RunId,
    proof: &LockProof,
) -> Result<DrawableRun, StatementError> {
    let holders = proof.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let held_locks = match proof.len() {
        0 => "0".to_owned(),
        _ => format!("(SELECT count(*) FROM locks WHERE holder IN ({holders}))"),
    };
    let statement = format!(
        "SELECT runs.*, (SELECT last_row FROM blocks WHERE run = {run} ORDER BY first_row DESC LIMIT 1) AS last_drawn, {held_locks} AS kept
         FROM runs WHERE key = {run}",
        run = run.0
    );
    // Only numbers are inserted into the statement.
    let record = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_one(connection).await?;
    let (last_drawn, held_locks): (Option<i64>, i64) = (record.try_get("last_drawn")?, record.try_get("kept")?);
    let last_drawn = last_drawn.map(to_u32).transpose()?.map(Row::new);
    Ok(DrawableRun {
        run: runs::run_from_record(&record)?,
        last_drawn,
        holds_locks: usize::try_from(held_locks).is_ok_and(|held_locks| held_locks == proof.len()),
    })
}

/// Takes over rows of ended workers. Returns the number of open intents of those workers that were marked as in doubt.
async fn take_over_rows(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    abandoned: &[RowSpan],
    BlockOwner { place, epoch, name }: BlockOwner<'_>,
) -> Result<usize, StatementError> {
    let is_abandoned = |intent| abandoned.iter().any(|block| owns_rows(*block, intent));
    let doubtful = envelopes::mark_intents_in_doubt(&mut *connection, now, run.key, is_abandoned).await?;
    for rows in abandoned {
        query("UPDATE blocks SET place = $1, epoch = $2, drawn_by = $3 WHERE run = $4 AND first_row = $5")
            .bind(i64::from(place))
            .bind(epoch.0)
            .bind(name)
            .bind(run.key.0)
            .bind(i64::from(rows.first.get()))
            .execute(&mut *connection)
            .await?;
    }
    Ok(doubtful)
}

/// Whether another worker holds unfinished rows of the run.
async fn others_hold_rows(connection: &mut Connection, run: RunId, place: u32) -> Result<bool, StatementError> {
    // Two range conditions, so that the index can be used on both sides of the worker's own place.
    let exists = scalar(
        "SELECT EXISTS (SELECT 1 FROM blocks WHERE run = $1 AND place < $2 AND epoch IS NOT NULL)
             OR EXISTS (SELECT 1 FROM blocks WHERE run = $1 AND place > $2 AND epoch IS NOT NULL)",
    );
    Ok(exists.bind(run.0).bind(i64::from(place)).fetch_one(connection).await?)
}

/// Finds rows of workers that ended, either at a vacant place or at this place under an earlier lease.
async fn find_abandoned_rows(
    connection: &mut Connection,
    lease: Lease,
    place: u32,
    vacant: &[u32],
) -> Result<Vec<RowSpan>, StatementError> {
    let blocks = query(
        "SELECT place, first_row, last_row FROM blocks
         WHERE run = $1 AND epoch IS NOT NULL AND epoch <> $2 ORDER BY first_row",
    )
    .bind(lease.run.0)
    .bind(lease.epoch.0)
    .fetch_all(connection)
    .await?;
    let mut abandoned = Vec::new();
    for block in &blocks {
        let block_place = read_u32(block, 0)?;
        if block_place == place || vacant.contains(&block_place) {
            abandoned.push(RowSpan { first: read_row_number(block, 1)?, last: read_row_number(block, 2)? });
        }
    }
    Ok(abandoned)
}
