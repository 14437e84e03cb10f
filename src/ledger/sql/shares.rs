//! Queries about shares: rows of a run that several processes send, each a block that it drew.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Row as _};

use super::blocks;
use super::change::{Now, StatementError};
use super::dialect::{Adapter, Connection, Lock};
use super::envelopes;
use super::look::read_ledger;
use super::places::{self, LockProof};
use super::runs::{self, timestamp_from_micros};
use super::statement::{query, read_row_number, read_u32, scalar, to_u32};
use super::stops;
use crate::domain::Row;
use crate::ledger::rules::{DrawReadiness, check_draw, next_rows, owns_rows};
use crate::ledger::{
    BlockIds, Epoch, Lease, LedgerError, LedgerFuture, Ownership, RowSpan, Run, RunId, ShardDraw, ShardHolder,
    ShardStore, ShardWorker, Sharding, StopKind, hold,
};

/// What a process in a seat draws.
#[derive(Clone)]
struct ShareRequest {
    lease: Lease,
    sharing: i64,
    place: u32,
    by: String,
    /// How many rows.
    rows: u32,
    /// The places where nobody is, but for its own; nothing where nobody looked.
    shut: Option<Vec<u32>>,
    /// Its own place and those, as it has them.
    proof: LockProof,
}

impl ShardStore for Adapter {
    fn shard_run(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership> {
        let sharing = Sharding { terms, id: rand::random(), by: lease.epoch, proven };
        Box::pin(self.write(move |connection, _| Box::pin(start_sharing(connection, lease, sharing.clone()))))
    }

    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>> {
        Box::pin(async move {
            let Some(sharing) = run.sharding.as_ref().map(|sharing| sharing.id) else { return Ok(None) };
            self.ensure_sendable().await?;
            let (place, lock) = places::lock_first_vacant_place(self, &run.campaign, &run.account).await?;
            let lease = Lease { run: run.key, rows: run.row_span(), epoch: Epoch(rand::random()) };
            self.bind_lease(lease.epoch, &hold::place_name(&run.campaign, &run.account, place));
            Ok(Some(ShardWorker::new(lease, (sharing, place, by), lock)))
        })
    }

    fn draw_shard<'a>(&'a self, seat: &'a ShardWorker, rows: u32, looks: bool) -> LedgerFuture<'a, ShardDraw> {
        Box::pin(async move {
            let ShardWorker { lease, sharding: sharing, place, name: by, .. } = seat;
            let (shut, locks) = if looks { Some(self.lock_abandoned_places(seat).await?) } else { None }.unzip();
            let proof = self.lock_proof(lease.epoch, locks.as_deref().unwrap_or_default());
            let draw =
                ShareRequest { lease: *lease, sharing: *sharing, place: *place, by: by.clone(), rows, shut, proof };
            self.renew_if_stale(lease.epoch).await?;
            // Somebody else may sit at its place by now, and keeps what they have.
            if !self.holds_lease(lease.epoch) {
                return Ok(ShardDraw::Ended);
            }
            self.write(move |connection, now| Box::pin(draw_share(connection, now, draw.clone()))).await
        })
    }

    fn finish_shards<'a>(&'a self, seat: &'a ShardWorker) -> LedgerFuture<'a, ()> {
        let Lease { run, epoch, .. } = seat.lease;
        Box::pin(self.write(move |connection, _| {
            Box::pin(async move {
                query("UPDATE blocks SET epoch = NULL WHERE run = $1 AND epoch = $2")
                    .bind(run.0)
                    .bind(epoch.0)
                    .execute(connection)
                    .await?;
                Ok(())
            })
        }))
    }

    fn mark_proven(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| {
            Box::pin(async move {
                query("UPDATE runs SET proven = $1 WHERE key = $2").bind(true).bind(run.0).execute(connection).await?;
                Ok(())
            })
        }))
    }

    fn halt_run(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(stops::halt_run(connection, run, kind, reason.clone()))))
    }

    fn list_shard_holders<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Vec<ShardHolder>> {
        Box::pin(async move {
            let holders = read_ledger!(self, list_holders, run.key)?;
            let mut there = Vec::new();
            for (place, holder) in holders {
                if self.is_locked(&hold::place_name(&run.campaign, &run.account, place)).await? {
                    there.push(holder);
                }
            }
            Ok(there)
        })
    }
}

impl Adapter {
    /// The places where nobody is any more, but for the own one, and their locks: as long as they are kept nobody comes there.
    async fn lock_abandoned_places(&self, seat: &ShardWorker) -> Result<(Vec<u32>, Vec<Lock>), LedgerError> {
        let (run, places) = self.load_places(seat.lease.run).await?;
        let (mut shut, mut locks) = (Vec::new(), Vec::new());
        for place in places.iter().filter(|place| place.number != seat.place) {
            // To look at it is cheap; it is taken only from who is gone.
            let name = hold::place_name(&run.campaign, &run.account, place.number);
            if !self.is_locked(&name).await?
                && let Some(lock) = self.try_lock(&name).await?
            {
                shut.push(place.number);
                locks.push(lock);
            }
        }
        Ok((shut, locks))
    }
}

/// Has a run sent in shares from now on. As long as somebody has some of the last time, no row is drawn twice.
async fn start_sharing(
    connection: &mut Connection,
    lease: Lease,
    Sharding { terms, id, by, proven }: Sharding,
) -> Result<Ownership, StatementError> {
    let run = lease.run;
    let known = runs::load_run(&mut *connection, run).await?;
    if !known.is_leased(lease) {
        return Ok(Ownership::Lost);
    }
    if blocks::list_places(&mut *connection, run).await?.is_empty() {
        query("DELETE FROM blocks WHERE run = $1").bind(run.0).execute(&mut *connection).await?;
    }
    query("UPDATE runs SET terms = $1, sharing = $2, shared_by = $3, proven = $4 WHERE key = $5")
        .bind(terms)
        .bind(id)
        .bind(by.0)
        .bind(proven)
        .bind(run.0)
        .execute(connection)
        .await?;
    Ok(Ownership::Held)
}

async fn draw_share(connection: &mut Connection, now: Now, draw: ShareRequest) -> Result<ShardDraw, StatementError> {
    let ShareRequest { lease, sharing, place, by, rows, shut, proof } = draw;
    let DrawableRun { run, last_drawn, kept } = load_drawable_run(&mut *connection, lease.run, &proof).await?;
    // Whoever slept since it looked may find somebody at these places by now, who keeps what they have.
    if !kept {
        return Ok(ShardDraw::Ended);
    }
    match check_draw(&run, sharing) {
        DrawReadiness::Now => {}
        DrawReadiness::Later => return Ok(ShardDraw::Unavailable),
        DrawReadiness::NoMore => return Ok(ShardDraw::Ended),
    }
    if let Some(shut) = shut {
        let left = find_abandoned_rows(&mut *connection, lease, (place, &shut)).await?;
        if !left.is_empty() {
            let doubtful = take_over_rows(connection, now, &run, (&left, place, lease.epoch, &by)).await?;
            return Ok(ShardDraw::TakenOver { rows: left, doubtful });
        }
    }
    let proven = run.sharding.as_ref().is_some_and(|sharing| sharing.proven);
    if !proven && is_drawn_elsewhere(&mut *connection, run.key, place).await? {
        return Ok(ShardDraw::Unavailable);
    }
    let Some(rows) = next_rows(&run, last_drawn, rows) else {
        let in_other_hands = is_drawn_elsewhere(connection, run.key, place).await?;
        return Ok(if in_other_hands { ShardDraw::Unavailable } else { ShardDraw::Exhausted });
    };
    let first = run.ids.id_for_row(rows.first).map_or(run.ids.first, |id| id.get());
    let ids = BlockIds { rows, first };
    blocks::insert_block(connection, now, (run.key, ids), (place, lease.epoch, Some(&by))).await?;
    Ok(ShardDraw::NewRows(rows))
}

/// A run to draw from.
struct DrawableRun {
    run: Run,
    /// The last of its rows that somebody drew.
    last_drawn: Option<Row>,
    /// Whether nobody else took one of the locks meanwhile.
    kept: bool,
}

/// All that a draw looks at, in one message: others wait for the turn meanwhile.
async fn load_drawable_run(
    connection: &mut Connection,
    run: RunId,
    proof: &LockProof,
) -> Result<DrawableRun, StatementError> {
    let holders = proof.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let kept = match proof.len() {
        0 => "0".to_owned(),
        _ => format!("(SELECT count(*) FROM locks WHERE holder IN ({holders}))"),
    };
    let asked = format!(
        "SELECT runs.*, (SELECT last_row FROM blocks WHERE run = {run} ORDER BY first_row DESC LIMIT 1) AS last_drawn, {kept} AS kept
         FROM runs WHERE key = {run}",
        run = run.0
    );
    // Numbers alone are put into it.
    let record = sqlx::raw_sql(AssertSqlSafe(asked)).fetch_one(connection).await?;
    let (last_drawn, kept): (Option<i64>, i64) = (record.try_get("last_drawn")?, record.try_get("kept")?);
    let last_drawn = last_drawn.map(to_u32).transpose()?.map(Row::new);
    Ok(DrawableRun {
        run: runs::run_from_record(&record)?,
        last_drawn,
        kept: usize::try_from(kept).is_ok_and(|kept| kept == proof.len()),
    })
}

/// Takes over what processes had which are gone, with doubt about what they had begun; tells how many envelopes that are.
async fn take_over_rows(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    (left, place, epoch, by): (&[RowSpan], u32, Epoch, &str),
) -> Result<usize, StatementError> {
    let fallen = |intent| left.iter().any(|block| owns_rows(*block, intent));
    let doubtful = envelopes::mark_intents_in_doubt(&mut *connection, now, run.key, fallen).await?;
    for rows in left {
        query("UPDATE blocks SET place = $1, epoch = $2, drawn_by = $3 WHERE run = $4 AND first_row = $5")
            .bind(i64::from(place))
            .bind(epoch.0)
            .bind(by)
            .bind(run.key.0)
            .bind(i64::from(rows.first.get()))
            .execute(&mut *connection)
            .await?;
    }
    Ok(doubtful)
}

/// Whether something of a run is drawn at another place, and not finished.
async fn is_drawn_elsewhere(connection: &mut Connection, run: RunId, place: u32) -> Result<bool, StatementError> {
    // Each side of the own place apart, so that an index leads there whatever that one has.
    let some = scalar(
        "SELECT EXISTS (SELECT 1 FROM blocks WHERE run = $1 AND place < $2 AND epoch IS NOT NULL)
             OR EXISTS (SELECT 1 FROM blocks WHERE run = $1 AND place > $2 AND epoch IS NOT NULL)",
    );
    Ok(some.bind(run.0).bind(i64::from(place)).fetch_one(connection).await?)
}

/// The rows that processes drew which are gone: at places that are shut, or at this one before it was taken.
async fn find_abandoned_rows(
    connection: &mut Connection,
    lease: Lease,
    (place, shut): (u32, &[u32]),
) -> Result<Vec<RowSpan>, StatementError> {
    let blocks = query(
        "SELECT place, first_row, last_row FROM blocks
         WHERE run = $1 AND epoch IS NOT NULL AND epoch <> $2 ORDER BY first_row",
    )
    .bind(lease.run.0)
    .bind(lease.epoch.0)
    .fetch_all(connection)
    .await?;
    let mut left = Vec::new();
    for block in &blocks {
        let at = read_u32(block, 0)?;
        if at == place || shut.contains(&at) {
            left.push(RowSpan { first: read_row_number(block, 1)?, last: read_row_number(block, 2)? });
        }
    }
    Ok(left)
}

/// Who drew what, by their places.
async fn list_holders(reader: &mut Connection, run: RunId) -> Result<BTreeMap<u32, ShardHolder>, StatementError> {
    let blocks = query(
        "SELECT place, first_row, last_row, drawn_at, drawn_by FROM blocks
         WHERE run = $1 AND epoch IS NOT NULL AND drawn_by IS NOT NULL ORDER BY drawn_at",
    )
    .bind(run.0)
    .fetch_all(reader)
    .await?;
    let mut holders = BTreeMap::new();
    for block in &blocks {
        let rows = RowSpan { first: read_row_number(block, 1)?, last: read_row_number(block, 2)? };
        let (since, by) = (timestamp_from_micros(block.try_get(3)?)?, block.try_get(4)?);
        let holder = holders.entry(read_u32(block, 0)?).or_insert(ShardHolder { name: by, rows: 0, since });
        holder.rows += rows.len();
    }
    Ok(holders)
}
