//! Blocks of rows that processes draw from a shared run, and the numbered places, each locked by one process, that own
//! the blocks.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Row as _};

use super::dialect::{self, Adapter, Connection, Lock, Record};
use super::envelopes;
use super::runs::{self, InitialRunState, timestamp_from_micros};
use super::{Now, StatementError, query, read_row_number, read_u32, scalar, to_u32};
use crate::encoding::Checksum;
use crate::rules::{HOUR, list_refusals, next_draw_time, next_rows, owns_rows};
use crate::{
    BlockIds, BlockRequest, DrawRefusal, Epoch, Lease, LedgerError, OwnedBlock, Ownership, RowSpan, Run, RunId,
    SharedRun, run,
};
use campaign_core::domain::{IdRange, Row};

/// A request for a block.
#[derive(Clone)]
pub(super) struct BlockDraw {
    pub(super) shared: SharedRun,
    pub(super) request: BlockRequest,
    pub(super) place: u32,
    pub(super) epoch: Epoch,
    pub(super) random: u64,
}

/// Draws the next rows of the latest matching run, or of a new run if that run has no rows left. Returns a refusal as
/// the inner error.
pub(super) async fn draw_block(
    connection: &mut Connection,
    now: Now,
    draw: BlockDraw,
) -> Result<Result<(Run, Lease), DrawRefusal>, StatementError> {
    let BlockDraw { shared, request, place, epoch, random } = draw;
    let BlockRequest { rows, id, .. } = request;
    let id_range = id.map(|id| IdRange { first: id.get(), len: 1 });
    if let Some(refusal) = find_refusals(connection, now, &shared, request).await?.into_iter().next() {
        return Ok(Err(refusal));
    }
    reclaim_blocks(connection, now, &shared, place).await?;
    let latest = find_latest_run(connection, &shared).await?;
    let next = match &latest {
        Some(run) => next_rows(run, find_last_drawn_row(connection, run.key).await?, rows),
        None => None,
    };
    let (mut run, rows) = match latest.zip(next) {
        Some(drawn) => drawn,
        None => {
            let new = shared.new_run(timestamp_from_micros(now.0)?, random);
            let run = runs::insert_run(connection, new, InitialRunState::Shared).await?;
            let rows = next_rows(&run, None, rows);
            (run, rows.ok_or_else(|| LedgerError::Unreadable("a new run has no rows".to_owned()))?)
        }
    };
    let first = match id_range {
        Some(ids) => ids.first,
        None => runs::find_free_ids(connection, now, rand::random(), rows.len()).await?.first,
    };
    let ids = BlockIds { rows, first };
    insert_block(connection, now, run.key, ids, BlockOwner { place, epoch, name: None }).await?;
    run.blocks.push(ids);
    let lease = Lease { run: run.key, rows, epoch };
    Ok(Ok((run, lease)))
}

/// All reasons that prevent a draw now. If the given identifier is already used, this reason comes first.
pub(super) async fn find_refusals(
    connection: &mut Connection,
    now: Now,
    shared: &SharedRun,
    BlockRequest { id, per_hour, .. }: BlockRequest,
) -> Result<Vec<DrawRefusal>, StatementError> {
    let is_id_taken = match id {
        Some(id) => !runs::are_ids_free(connection, IdRange { first: id.get(), len: 1 }).await?,
        None => false,
    };
    let next = match per_hour {
        Some(limit) => next_draw_time(&list_draw_times(connection, now, shared).await?, now.0, limit),
        None => None,
    };
    Ok(list_refusals(is_id_taken, next.map(timestamp_from_micros).transpose()?))
}

/// The process that draws a block, and its place.
pub(super) struct BlockOwner<'a> {
    pub(super) place: u32,
    pub(super) epoch: Epoch,
    /// The name of the worker, which is shown for sharded runs.
    pub(super) name: Option<&'a str>,
}

/// Records a drawn block in one message to the database, because other processes are waiting for their turn to write.
pub(super) async fn insert_block(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    ids: BlockIds,
    BlockOwner { place, epoch, name }: BlockOwner<'_>,
) -> Result<(), StatementError> {
    let BlockIds { rows, first } = ids;
    let name = name.map_or_else(|| "NULL".to_owned(), dialect::text_literal);
    // Only numbers, and a hexadecimal literal or `NULL`, are inserted into the statement.
    let statement = format!(
        "INSERT INTO blocks (run, place, first_row, last_row, first_id, sum, epoch, drawn_at, drawn_by)
         VALUES ({}, {place}, {}, {}, {}, {}, {}, {}, {name})",
        run.0,
        rows.first.get(),
        rows.last.get(),
        runs::to_signed(first),
        block_checksum(run, ids).finish(),
        epoch.0,
        now.0
    );
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}

/// The times when blocks of a campaign were drawn through a gateway profile within the last hour, in ascending order.
async fn list_draw_times(
    connection: &mut Connection,
    now: Now,
    shared: &SharedRun,
) -> Result<Vec<i64>, StatementError> {
    let drawn = scalar(
        "SELECT drawn_at FROM blocks JOIN runs ON key = run
         WHERE campaign = $1 AND gateway = $2 AND drawn_at > $3 ORDER BY drawn_at",
    )
    .bind(&shared.campaign)
    .bind(&shared.gateway)
    .bind(now.0.saturating_sub(HOUR))
    .fetch_all(connection)
    .await?;
    Ok(drawn)
}

/// Excludes a block from the hourly count.
pub(super) async fn clear_draw_time(connection: &mut Connection, lease: Lease) -> Result<Ownership, StatementError> {
    let cleared = query("UPDATE blocks SET drawn_at = NULL WHERE run = $1 AND first_row = $2 AND epoch = $3")
        .bind(lease.run.0)
        .bind(i64::from(lease.rows.first.get()))
        .bind(lease.epoch.0)
        .execute(connection)
        .await?;
    Ok(if cleared.rows_affected() > 0 { Ownership::Held } else { Ownership::Lost })
}

/// Takes back the blocks of a place that no process holds, and puts the open intents of these blocks in doubt.
async fn reclaim_blocks(
    connection: &mut Connection,
    now: Now,
    shared: &SharedRun,
    place: u32,
) -> Result<(), StatementError> {
    let blocks = query(
        "SELECT run, first_row, last_row FROM blocks JOIN runs ON key = run
         WHERE campaign = $1 AND account = $2 AND place = $3 AND epoch IS NOT NULL",
    )
    .bind(&shared.campaign)
    .bind(&shared.account)
    .bind(i64::from(place))
    .fetch_all(&mut *connection)
    .await?;
    for block in blocks {
        let (run, rows) = (
            RunId(block.try_get(0)?),
            RowSpan { first: read_row_number(&block, 1)?, last: read_row_number(&block, 2)? },
        );
        envelopes::mark_intents_in_doubt(connection, now, run, |intent| owns_rows(rows, intent)).await?;
        close_blocks(connection, run, place).await?;
    }
    Ok(())
}

/// Closes the blocks of these vacant places. Returns the rows of the remaining blocks, which other processes might
/// still hold.
pub(super) async fn close_places(
    connection: &mut Connection,
    run: RunId,
    vacant: &[u32],
) -> Result<Vec<RowSpan>, StatementError> {
    for place in vacant {
        close_blocks(connection, run, *place).await?;
    }
    Ok(list_places(connection, run).await?.into_iter().flat_map(|place| place.rows).collect())
}

/// Ends the leases of the blocks at a place. The records stay, so that the rows are never drawn again.
async fn close_blocks(connection: &mut Connection, run: RunId, place: u32) -> Result<(), StatementError> {
    query("UPDATE blocks SET epoch = NULL WHERE run = $1 AND place = $2")
        .bind(run.0)
        .bind(i64::from(place))
        .execute(connection)
        .await?;
    Ok(())
}

/// The latest shared run with these properties, even if the run is full.
async fn find_latest_run(connection: &mut Connection, shared: &SharedRun) -> Result<Option<Run>, StatementError> {
    let keys: Vec<i64> =
        scalar("SELECT key FROM runs WHERE shared AND campaign = $1 AND edition = $2 ORDER BY key DESC")
            .bind(&shared.campaign)
            .bind(&shared.edition)
            .fetch_all(&mut *connection)
            .await?;
    for key in keys {
        let run = runs::load_run(&mut *connection, RunId(key)).await?;
        if shared.matches(&run) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// The last drawn row of a run.
pub(super) async fn find_last_drawn_row(
    connection: &mut Connection,
    run: RunId,
) -> Result<Option<Row>, StatementError> {
    let last: Option<i64> = scalar("SELECT last_row FROM blocks WHERE run = $1 ORDER BY first_row DESC LIMIT 1")
        .bind(run.0)
        .fetch_optional(connection)
        .await?;
    last.map(|last| to_u32(last).map(Row::new)).transpose()
}

/// The identifiers of a shared run's rows, in order.
pub(super) async fn load_block_ids(reader: &mut Connection, run: RunId) -> Result<Vec<BlockIds>, StatementError> {
    let blocks = query("SELECT first_row, last_row, first_id, sum FROM blocks WHERE run = $1 ORDER BY first_row")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut ids = Vec::with_capacity(blocks.len());
    for block in blocks {
        let rows = RowSpan { first: read_row_number(&block, 0)?, last: read_row_number(&block, 1)? };
        let block_ids = BlockIds { rows, first: runs::to_unsigned(block.try_get(2)?) };
        if !block_checksum(run, block_ids).matches(block.try_get(3)?) {
            let record = format!("the record of identifiers starting at row {}", rows.first);
            return Err(LedgerError::Damaged { what: record }.into());
        }
        ids.push(block_ids);
    }
    Ok(ids)
}

/// Whether any block has one of these identifiers.
pub(super) async fn are_ids_used(connection: &mut Connection, ids: IdRange) -> Result<bool, StatementError> {
    // No block is longer than a run, so the index finds the few candidates.
    let overlap: Option<i64> = scalar(
        "SELECT first_id FROM blocks WHERE first_id < $1 AND first_id > $2 - $3 AND first_id + last_row - first_row >= $2 LIMIT 1",
    )
    .bind(runs::to_signed(ids.first + ids.len))
    .bind(runs::to_signed(ids.first))
    .bind(i64::from(SharedRun::ROWS))
    .fetch_optional(connection)
    .await?;
    Ok(overlap.is_some())
}

fn block_checksum(run: RunId, BlockIds { rows, first }: BlockIds) -> Checksum {
    Checksum::for_table("blocks")
        .with_number(run.0)
        .with_number(rows.first.get())
        .with_number(rows.last.get())
        .with_number(runs::to_signed(first))
}

/// Whether these rows belong to a block of this lease.
pub(super) async fn are_rows_leased(
    connection: &mut Connection,
    Lease { run, epoch, .. }: Lease,
    RowSpan { first, last }: RowSpan,
) -> Result<bool, StatementError> {
    let block: Option<i64> = scalar(
        "SELECT first_id FROM blocks WHERE run = $1 AND epoch = $2 AND last_row >= $4
             AND first_row = (SELECT MAX(first_row) FROM blocks WHERE run = $1 AND first_row <= $3)",
    )
    .bind(run.0)
    .bind(epoch.0)
    .bind(i64::from(first.get()))
    .bind(i64::from(last.get()))
    .fetch_optional(connection)
    .await?;
    Ok(block.is_some())
}

/// The places at which blocks of a run are leased.
pub(super) async fn list_places(reader: &mut Connection, run: RunId) -> Result<Vec<DrawPlace>, StatementError> {
    let blocks =
        query("SELECT place, first_row, last_row FROM blocks WHERE run = $1 AND epoch IS NOT NULL ORDER BY place")
            .bind(run.0)
            .fetch_all(reader)
            .await?;
    let mut places: Vec<DrawPlace> = Vec::new();
    for block in &blocks {
        let (number, rows) =
            (read_u32(block, 0)?, RowSpan { first: read_row_number(block, 1)?, last: read_row_number(block, 2)? });
        match places.last_mut().filter(|place| place.number == number) {
            Some(place) => place.rows.push(rows),
            None => places.push(DrawPlace { number, rows: vec![rows] }),
        }
    }
    Ok(places)
}

/// The holder numbers of the locks on which a change relies. Each number was drawn when this process took the lock.
/// Empty with SQLite, where the system never gives a held lock to another process.
pub(crate) type LockProof = Vec<i64>;

/// A place and the rows that were drawn there.
pub(super) struct DrawPlace {
    pub(super) number: u32,
    pub(super) rows: Vec<RowSpan>,
}

/// The leased blocks of a run, oldest first.
pub(super) async fn list_leased_blocks(reader: &mut Connection, run: RunId) -> Result<Vec<OwnedBlock>, StatementError> {
    let blocks = query(
        "SELECT place, first_row, last_row, drawn_at, drawn_by FROM blocks
         WHERE run = $1 AND epoch IS NOT NULL ORDER BY drawn_at, first_row",
    )
    .bind(run.0)
    .fetch_all(reader)
    .await?;
    let to_block = |block: &Record| {
        let drawn_at: Option<i64> = block.try_get(3)?;
        Ok(OwnedBlock {
            rows: RowSpan { first: read_row_number(block, 1)?, last: read_row_number(block, 2)? },
            place: read_u32(block, 0)?,
            worker: block.try_get(4)?,
            drawn_at: drawn_at.map(timestamp_from_micros).transpose()?,
        })
    };
    blocks.iter().map(to_block).collect()
}

/// Keeps only the blocks whose places are occupied by a process. Takes no locks.
pub(super) async fn retain_occupied(
    ledger: &Adapter,
    run: &Run,
    blocks: Vec<OwnedBlock>,
) -> Result<Vec<OwnedBlock>, LedgerError> {
    let (mut occupied, mut owned) = (BTreeMap::new(), Vec::new());
    for block in blocks {
        let is_occupied = match occupied.get(&block.place) {
            Some(known) => *known,
            None => {
                let is_locked = ledger.is_locked(&run::place_name(&run.campaign, &run.account, block.place)).await?;
                occupied.insert(block.place, is_locked);
                is_locked
            }
        };
        owned.extend(is_occupied.then_some(block));
    }
    Ok(owned)
}

/// Locks the vacant places among `places`, and returns their numbers and locks. No process can occupy these places
/// while the locks are held.
pub(super) async fn lock_vacant_places(
    ledger: &Adapter,
    run: &Run,
    places: &[DrawPlace],
) -> Result<(Vec<u32>, Vec<Lock>), LedgerError> {
    let (mut vacant, mut locks) = (Vec::new(), Vec::new());
    for place in places {
        if let Some(lock) = ledger.try_lock(&place_lock_name(run, place)).await? {
            vacant.push(place.number);
            locks.push(lock);
        }
    }
    Ok((vacant, locks))
}

/// Locks the first vacant place, and returns its number and the lock.
pub(super) async fn lock_first_vacant_place(
    ledger: &Adapter,
    campaign: &str,
    account: &str,
) -> Result<(u32, Lock), LedgerError> {
    let mut number = 0;
    loop {
        // A place that was never used is vacant.
        if let Some(lock) = ledger.try_lock(&run::place_name(campaign, account, number)).await? {
            return Ok((number, lock));
        }
        number += 1;
    }
}

fn place_lock_name(run: &Run, place: &DrawPlace) -> String {
    run::place_name(&run.campaign, &run.account, place.number)
}
