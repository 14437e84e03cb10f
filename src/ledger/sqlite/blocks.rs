//! Queries about blocks: the rows of a shared run that processes draw.

use sqlx::sqlite::SqliteExecutor;
use sqlx::{Row as _, SqliteConnection};

use super::change::{Failure, Now};
use super::checksum::Checksum;
use super::envelopes;
use super::places::Place;
use super::runs::{self, Stage, instant};
use crate::domain::{IdRange, Row};
use crate::ledger::rules::{HOUR, next_draw, next_rows, owns};
use crate::ledger::{BlockIds, BlockRequest, Drawn, Epoch, Lease, LedgerError, Rows, Run, RunId, SharedRun};

/// What a process draws: rows of which run, at which place, by which right.
pub(super) struct Draw {
    pub(super) shared: SharedRun,
    pub(super) wanted: BlockRequest,
    pub(super) place: u32,
    pub(super) epoch: Epoch,
    pub(super) random: u64,
}

/// Gives a free place the next rows of the latest such run, or of a new one where that has none left; or why not.
pub(super) async fn draw(
    connection: &mut SqliteConnection,
    now: Now,
    draw: Draw,
) -> Result<Result<(Run, Lease), Drawn>, Failure> {
    let Draw { shared, wanted, place, epoch, random } = draw;
    let BlockRequest { rows, id, per_hour } = wanted;
    let of_id = id.map(|id| IdRange { first: id.get(), len: 1 });
    if let Some(ids) = of_id
        && !runs::are_free(connection, ids).await?
    {
        return Ok(Err(Drawn::IdTaken));
    }
    if let Some(most) = per_hour
        && let Some(next) = next_draw(&drawn(connection, now, &shared).await?, now.0, most)
    {
        return Ok(Err(Drawn::TooMany(instant(next)?)));
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
    sqlx::query(
        "INSERT INTO blocks (run, place, first_row, last_row, first_id, sum, epoch, drawn_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(run.key.0)
    .bind(place)
    .bind(rows.first.get())
    .bind(rows.last.get())
    .bind(runs::signed(first))
    .bind(sum(run.key, ids).finish())
    .bind(epoch.0)
    .bind(now.0)
    .execute(connection)
    .await?;
    run.blocks.push(ids);
    let lease = Lease { run: run.key, rows, epoch };
    Ok(Ok((run, lease)))
}

/// When blocks were drawn through a profile within the last hour, the first first.
async fn drawn(connection: &mut SqliteConnection, now: Now, shared: &SharedRun) -> Result<Vec<i64>, Failure> {
    let drawn = sqlx::query_scalar(
        "SELECT drawn_at FROM blocks JOIN runs ON key = run
         WHERE campaign = ? AND gateway = ? AND drawn_at > ? ORDER BY drawn_at",
    )
    .bind(&shared.campaign)
    .bind(&shared.gateway)
    .bind(now.0.saturating_sub(HOUR))
    .fetch_all(connection)
    .await?;
    Ok(drawn)
}

/// Takes the blocks of a place where nobody is any more: what was begun of them is in doubt from here on.
async fn give_up(connection: &mut SqliteConnection, now: Now, shared: &SharedRun, place: u32) -> Result<(), Failure> {
    let blocks = sqlx::query(
        "SELECT run, first_row, last_row FROM blocks JOIN runs ON key = run
         WHERE campaign = ? AND account = ? AND place = ? AND epoch IS NOT NULL",
    )
    .bind(&shared.campaign)
    .bind(&shared.account)
    .bind(place)
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
pub(super) async fn shut_out(
    connection: &mut SqliteConnection,
    run: RunId,
    shut: &[u32],
) -> Result<Vec<Rows>, Failure> {
    for place in shut {
        close(connection, run, *place).await?;
    }
    Ok(places(connection, run).await?.into_iter().map(|place| place.rows).collect())
}

/// Takes the block of a place from whoever had it. It stays recorded, so that its rows are never drawn again.
async fn close(connection: &mut SqliteConnection, run: RunId, place: u32) -> Result<(), Failure> {
    sqlx::query("UPDATE blocks SET epoch = NULL WHERE run = ? AND place = ?")
        .bind(run.0)
        .bind(place)
        .execute(connection)
        .await?;
    Ok(())
}

/// The latest such run, be it full or not.
async fn latest(connection: &mut SqliteConnection, shared: &SharedRun) -> Result<Option<Run>, Failure> {
    let keys: Vec<i64> =
        sqlx::query_scalar("SELECT key FROM runs WHERE shared AND campaign = ? AND edition = ? ORDER BY key DESC")
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

async fn last_drawn(connection: &mut SqliteConnection, run: RunId) -> Result<Option<Row>, Failure> {
    let last: Option<u32> =
        sqlx::query_scalar("SELECT MAX(last_row) FROM blocks WHERE run = ?").bind(run.0).fetch_one(connection).await?;
    Ok(last.map(Row::new))
}

/// The identifiers of a shared run's rows, in their order.
pub(super) async fn ids(readers: impl SqliteExecutor<'_>, run: RunId) -> Result<Vec<BlockIds>, Failure> {
    let blocks = sqlx::query("SELECT first_row, last_row, first_id, sum FROM blocks WHERE run = ? ORDER BY first_row")
        .bind(run.0)
        .fetch_all(readers)
        .await?;
    let mut ids = Vec::with_capacity(blocks.len());
    for block in blocks {
        let rows = Rows { first: row(&block, 0)?, last: row(&block, 1)? };
        let known = BlockIds { rows, first: runs::unsigned(block.try_get(2)?) };
        if !sum(run, known).agrees(block.try_get(3)?) {
            let what = format!("the record of the identifiers from row {} on", rows.first);
            return Err(LedgerError::Damaged { what }.into());
        }
        ids.push(known);
    }
    Ok(ids)
}

/// Whether some block has one of these identifiers.
pub(super) async fn have(connection: impl SqliteExecutor<'_>, ids: IdRange) -> Result<bool, Failure> {
    // No block is longer than a run, so the index finds the few that could.
    let found: Option<i64> = sqlx::query_scalar(
        "SELECT 1 FROM blocks WHERE first_id < ?1 AND first_id > ?2 - ?3 AND first_id + last_row - first_row >= ?2 LIMIT 1",
    )
    .bind(runs::signed(ids.first + ids.len))
    .bind(runs::signed(ids.first))
    .bind(SharedRun::ROWS)
    .fetch_optional(connection)
    .await?;
    Ok(found.is_some())
}

fn sum(run: RunId, BlockIds { rows, first }: BlockIds) -> Checksum {
    Checksum::of("blocks").number(run.0).number(rows.first.get()).number(rows.last.get()).number(runs::signed(first))
}

/// Whether somebody has these rows by this right still, as a block.
pub(super) async fn is_leased(connection: impl SqliteExecutor<'_>, lease: Lease) -> Result<bool, Failure> {
    let Lease { run, rows, epoch } = lease;
    let found: Option<i64> =
        sqlx::query_scalar("SELECT 1 FROM blocks WHERE run = ? AND first_row = ? AND last_row = ? AND epoch = ?")
            .bind(run.0)
            .bind(rows.first.get())
            .bind(rows.last.get())
            .bind(epoch.0)
            .fetch_optional(connection)
            .await?;
    Ok(found.is_some())
}

/// The places of a run where somebody is, or was last.
pub(super) async fn places(readers: impl SqliteExecutor<'_>, run: RunId) -> Result<Vec<Place>, Failure> {
    let places = sqlx::query("SELECT place, first_row, last_row FROM blocks WHERE run = ? AND epoch IS NOT NULL")
        .bind(run.0)
        .fetch_all(readers)
        .await?;
    let place = |place: &sqlx::sqlite::SqliteRow| {
        Ok(Place { number: place.try_get(0)?, rows: Rows { first: row(place, 1)?, last: row(place, 2)? } })
    };
    places.iter().map(place).collect()
}

fn row(record: &sqlx::sqlite::SqliteRow, column: usize) -> Result<Row, Failure> {
    Ok(Row::new(record.try_get(column)?))
}
