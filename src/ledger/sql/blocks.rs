//! Queries about blocks: the rows of a shared run that processes draw.

use sqlx::{AssertSqlSafe, Row as _};

use super::change::{Failure, Now};
use super::dialect::{self, Connection};
use super::envelopes;
use super::places::Place;
use super::runs::{self, Stage, instant};
use super::statement::{as_small, query, row, scalar, small};
use crate::domain::{IdRange, Row};
use crate::ledger::checksum::Checksum;
use crate::ledger::rules::{HOUR, next_draw, next_rows, owns};
use crate::ledger::{BlockIds, BlockRequest, DrawRefusal, Epoch, Lease, LedgerError, Rows, Run, RunId, SharedRun};

/// What a process draws: rows of which run, at which place, by which right.
#[derive(Clone)]
pub(super) struct Draw {
    pub(super) shared: SharedRun,
    pub(super) wanted: BlockRequest,
    pub(super) place: u32,
    pub(super) epoch: Epoch,
    pub(super) random: u64,
}

/// Gives a free place the next rows of the latest such run, or of a new one where that has none left; or why not.
pub(super) async fn draw(
    connection: &mut Connection,
    now: Now,
    draw: Draw,
) -> Result<Result<(Run, Lease), DrawRefusal>, Failure> {
    let Draw { shared, wanted, place, epoch, random } = draw;
    let BlockRequest { rows, id, .. } = wanted;
    let of_id = id.map(|id| IdRange { first: id.get(), len: 1 });
    if let Some(refusal) = refusals(connection, now, &shared, wanted).await?.into_iter().next() {
        return Ok(Err(refusal));
    }
    give_up(connection, now, &shared, place).await?;
    let latest = latest(connection, &shared).await?;
    let next = match &latest {
        Some(run) => next_rows(run, last_drawn(connection, run.key).await?, rows),
        None => None,
    };
    let (mut run, rows) = match latest.zip(next) {
        Some(drawn) => drawn,
        None => {
            let new = shared.new_run(instant(now.0)?, random);
            let run = runs::create(connection, new, Stage::Shared).await?;
            let rows = next_rows(&run, None, rows);
            (run, rows.ok_or_else(|| LedgerError::Unreadable("a new run has no rows".to_owned()))?)
        }
    };
    let first = match of_id {
        Some(ids) => ids.first,
        None => runs::free_ids(connection, (now, rand::random()), rows.len()).await?.first,
    };
    let ids = BlockIds { rows, first };
    add(connection, now, (run.key, ids), (place, epoch, None)).await?;
    run.blocks.push(ids);
    let lease = Lease { run: run.key, rows, epoch };
    Ok(Ok((run, lease)))
}

/// Everything that refuses a draw now, that of the identifier first.
pub(super) async fn refusals(
    connection: &mut Connection,
    now: Now,
    shared: &SharedRun,
    BlockRequest { id, per_hour, .. }: BlockRequest,
) -> Result<Vec<DrawRefusal>, Failure> {
    let mut refusals = Vec::new();
    if let Some(id) = id
        && !runs::are_free(connection, IdRange { first: id.get(), len: 1 }).await?
    {
        refusals.push(DrawRefusal::IdTaken);
    }
    if let Some(most) = per_hour
        && let Some(next) = next_draw(&drawn(connection, now, shared).await?, now.0, most)
    {
        refusals.push(DrawRefusal::TooMany(instant(next)?));
    }
    Ok(refusals)
}

/// Records that a block was drawn at a place; by whom, where people are told that. In one message: others wait for the turn
/// meanwhile.
pub(super) async fn add(
    connection: &mut Connection,
    now: Now,
    (run, ids): (RunId, BlockIds),
    (place, epoch, by): (u32, Epoch, Option<&str>),
) -> Result<(), Failure> {
    let BlockIds { rows, first } = ids;
    let by = by.map_or_else(|| "NULL".to_owned(), dialect::literal);
    // Numbers alone are put into it, and a literal that is made of digits.
    let added = format!(
        "INSERT INTO blocks (run, place, first_row, last_row, first_id, sum, epoch, drawn_at, drawn_by)
         VALUES ({}, {place}, {}, {}, {}, {}, {}, {}, {by})",
        run.0,
        rows.first.get(),
        rows.last.get(),
        runs::signed(first),
        sum(run, ids).finish(),
        epoch.0,
        now.0
    );
    sqlx::raw_sql(AssertSqlSafe(added)).execute(connection).await?;
    Ok(())
}

/// When blocks were drawn through a profile within the last hour, the first first.
async fn drawn(connection: &mut Connection, now: Now, shared: &SharedRun) -> Result<Vec<i64>, Failure> {
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

/// Has a block count for no hour.
pub(super) async fn uncount(connection: &mut Connection, lease: Lease) -> Result<(), Failure> {
    query("UPDATE blocks SET drawn_at = NULL WHERE run = $1 AND first_row = $2 AND epoch = $3")
        .bind(lease.run.0)
        .bind(i64::from(lease.rows.first.get()))
        .bind(lease.epoch.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes the blocks of a place where nobody is any more: what was begun of them is in doubt from here on.
async fn give_up(connection: &mut Connection, now: Now, shared: &SharedRun, place: u32) -> Result<(), Failure> {
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
        let (run, rows) = (RunId(block.try_get(0)?), Rows { first: row(&block, 1)?, last: row(&block, 2)? });
        envelopes::doubt_intents(connection, now, run, |intent| owns(rows, intent)).await?;
        close(connection, run, place).await?;
    }
    Ok(())
}

/// Takes the blocks of these places of a run, where nobody is; tells those that somebody may have still.
pub(super) async fn shut_out(connection: &mut Connection, run: RunId, shut: &[u32]) -> Result<Vec<Rows>, Failure> {
    for place in shut {
        close(connection, run, *place).await?;
    }
    Ok(places(connection, run).await?.into_iter().flat_map(|place| place.rows).collect())
}

/// Takes the block of a place from whoever had it. It stays recorded, so that its rows are never drawn again.
async fn close(connection: &mut Connection, run: RunId, place: u32) -> Result<(), Failure> {
    query("UPDATE blocks SET epoch = NULL WHERE run = $1 AND place = $2")
        .bind(run.0)
        .bind(i64::from(place))
        .execute(connection)
        .await?;
    Ok(())
}

/// The latest such run, be it full or not.
async fn latest(connection: &mut Connection, shared: &SharedRun) -> Result<Option<Run>, Failure> {
    let keys: Vec<i64> =
        scalar("SELECT key FROM runs WHERE shared AND campaign = $1 AND edition = $2 ORDER BY key DESC")
            .bind(&shared.campaign)
            .bind(&shared.edition)
            .fetch_all(&mut *connection)
            .await?;
    for key in keys {
        let run = runs::read(&mut *connection, RunId(key)).await?;
        if shared.is(&run) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// The last row of a run that was drawn.
pub(super) async fn last_drawn(connection: &mut Connection, run: RunId) -> Result<Option<Row>, Failure> {
    let last: Option<i64> = scalar("SELECT last_row FROM blocks WHERE run = $1 ORDER BY first_row DESC LIMIT 1")
        .bind(run.0)
        .fetch_optional(connection)
        .await?;
    last.map(|last| as_small(last).map(Row::new)).transpose()
}

/// The identifiers of a shared run's rows, in their order.
pub(super) async fn ids(reader: &mut Connection, run: RunId) -> Result<Vec<BlockIds>, Failure> {
    let blocks = query("SELECT first_row, last_row, first_id, sum FROM blocks WHERE run = $1 ORDER BY first_row")
        .bind(run.0)
        .fetch_all(reader)
        .await?;
    let mut ids = Vec::with_capacity(blocks.len());
    for block in blocks {
        let rows = Rows { first: row(&block, 0)?, last: row(&block, 1)? };
        let known = BlockIds { rows, first: runs::unsigned(block.try_get(2)?) };
        if !sum(run, known).agrees(block.try_get(3)?) {
            let what = format!("the record of identifiers starting at row {}", rows.first);
            return Err(LedgerError::Damaged { what }.into());
        }
        ids.push(known);
    }
    Ok(ids)
}

/// Whether some block has one of these identifiers.
pub(super) async fn have(connection: &mut Connection, ids: IdRange) -> Result<bool, Failure> {
    // No block is longer than a run, so the index finds the few that could.
    let found: Option<i64> = scalar(
        "SELECT first_id FROM blocks WHERE first_id < $1 AND first_id > $2 - $3 AND first_id + last_row - first_row >= $2 LIMIT 1",
    )
    .bind(runs::signed(ids.first + ids.len))
    .bind(runs::signed(ids.first))
    .bind(i64::from(SharedRun::ROWS))
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

fn sum(run: RunId, BlockIds { rows, first }: BlockIds) -> Checksum {
    Checksum::of("blocks").number(run.0).number(rows.first.get()).number(rows.last.get()).number(runs::signed(first))
}

/// Whether these rows are of a block that is had by this right still.
pub(super) async fn are_leased(
    connection: &mut Connection,
    Lease { run, epoch, .. }: Lease,
    Rows { first, last }: Rows,
) -> Result<bool, Failure> {
    let found: Option<i64> = scalar(
        "SELECT first_id FROM blocks WHERE run = $1 AND epoch = $2 AND last_row >= $4
             AND first_row = (SELECT MAX(first_row) FROM blocks WHERE run = $1 AND first_row <= $3)",
    )
    .bind(run.0)
    .bind(epoch.0)
    .bind(i64::from(first.get()))
    .bind(i64::from(last.get()))
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

/// The places of a run where somebody is, or was last.
pub(super) async fn places(reader: &mut Connection, run: RunId) -> Result<Vec<Place>, Failure> {
    let blocks =
        query("SELECT place, first_row, last_row FROM blocks WHERE run = $1 AND epoch IS NOT NULL ORDER BY place")
            .bind(run.0)
            .fetch_all(reader)
            .await?;
    let mut places: Vec<Place> = Vec::new();
    for block in &blocks {
        let (number, rows) = (small(block, 0)?, Rows { first: row(block, 1)?, last: row(block, 2)? });
        match places.last_mut().filter(|place| place.number == number) {
            Some(place) => place.rows.push(rows),
            None => places.push(Place { number, rows: vec![rows] }),
        }
    }
    Ok(places)
}
