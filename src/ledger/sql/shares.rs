//! Queries about shares: rows of a run that several processes send, each a block that it drew.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Row as _};

use super::blocks;
use super::change::{Failure, Now};
use super::dialect::{Adapter, Connection, Lock};
use super::envelopes;
use super::look::look;
use super::places::{self, Proof};
use super::runs::{self, instant};
use super::statement::{as_small, query, row, scalar, small};
use super::stops;
use crate::domain::Row;
use crate::ledger::rules::{Draws, draws, next_rows, owns};
use crate::ledger::{
    BlockIds, Epoch, Lease, LedgerError, LedgerFuture, Ownership, Rows, Run, RunId, Seat, Share, ShareHolder, Shares,
    Sharing, StopKind, hold,
};

/// What a process in a seat draws.
#[derive(Clone)]
struct Draw {
    lease: Lease,
    sharing: i64,
    place: u32,
    by: String,
    /// How many rows.
    rows: u32,
    /// The places where nobody is, but for its own; nothing where nobody looked.
    shut: Option<Vec<u32>>,
    /// Its own place and those, as it has them.
    proof: Proof,
}

impl Shares for Adapter {
    fn share_out(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership> {
        let sharing = Sharing { terms, id: rand::random(), by: lease.epoch, proven };
        Box::pin(self.write(move |connection, _| Box::pin(share_out(connection, lease, sharing.clone()))))
    }

    fn take_seat<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<Seat>> {
        Box::pin(async move {
            let Some(sharing) = run.sharing.as_ref().map(|sharing| sharing.id) else { return Ok(None) };
            self.fit_for_sending().await?;
            let (place, lock) = places::free(self, &run.campaign, &run.account).await?;
            let lease = Lease { run: run.key, rows: run.rows(), epoch: Epoch(rand::random()) };
            self.bind(lease.epoch, &hold::place_name(&run.campaign, &run.account, place));
            Ok(Some(Seat::new(lease, (sharing, place, by), lock)))
        })
    }

    fn draw_share<'a>(&'a self, seat: &'a Seat, rows: u32, looks: bool) -> LedgerFuture<'a, Share> {
        Box::pin(async move {
            let Seat { lease, sharing, place, by, .. } = seat;
            let (shut, locks) = if looks { Some(self.shut_places(seat).await?) } else { None }.unzip();
            let proof = self.proof(lease.epoch, locks.as_deref().unwrap_or_default());
            let draw = Draw { lease: *lease, sharing: *sharing, place: *place, by: by.clone(), rows, shut, proof };
            self.be_heard(lease.epoch).await?;
            // Somebody else may sit at its place by now, and keeps what they have.
            if !self.still_has(lease.epoch) {
                return Ok(Share::Over);
            }
            self.write(move |connection, now| Box::pin(draw_share(connection, now, draw.clone()))).await
        })
    }

    fn finish_shares<'a>(&'a self, seat: &'a Seat) -> LedgerFuture<'a, ()> {
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

    fn prove(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| {
            Box::pin(async move {
                query("UPDATE runs SET proven = $1 WHERE key = $2").bind(true).bind(run.0).execute(connection).await?;
                Ok(())
            })
        }))
    }

    fn halt(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(stops::halt(connection, run, kind, reason.clone()))))
    }

    fn share_holders<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Vec<ShareHolder>> {
        Box::pin(async move {
            let holders = look!(self, holders, run.key)?;
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
    async fn shut_places(&self, seat: &Seat) -> Result<(Vec<u32>, Vec<Lock>), LedgerError> {
        let (run, places) = self.places(seat.lease.run).await?;
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
async fn share_out(
    connection: &mut Connection,
    lease: Lease,
    Sharing { terms, id, by, proven }: Sharing,
) -> Result<Ownership, Failure> {
    let run = lease.run;
    let known = runs::read(&mut *connection, run).await?;
    if !known.is_leased(lease) {
        return Ok(Ownership::Lost);
    }
    if blocks::places(&mut *connection, run).await?.is_empty() {
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

async fn draw_share(connection: &mut Connection, now: Now, draw: Draw) -> Result<Share, Failure> {
    let Draw { lease, sharing, place, by, rows, shut, proof } = draw;
    let Drawable { run, last_drawn, kept } = drawable(&mut *connection, lease.run, &proof).await?;
    // Whoever slept since it looked may find somebody at these places by now, who keeps what they have.
    if !kept {
        return Ok(Share::Over);
    }
    match draws(&run, sharing) {
        Draws::Now => {}
        Draws::Later => return Ok(Share::InOtherHands),
        Draws::NoMore => return Ok(Share::Over),
    }
    if let Some(shut) = shut {
        let left = abandoned(&mut *connection, lease, (place, &shut)).await?;
        if !left.is_empty() {
            let doubtful = take_over(connection, now, &run, (&left, place, lease.epoch, &by)).await?;
            return Ok(Share::TakenOver { rows: left, doubtful });
        }
    }
    let proven = run.sharing.as_ref().is_some_and(|sharing| sharing.proven);
    if !proven && others_have_some(&mut *connection, run.key, place).await? {
        return Ok(Share::InOtherHands);
    }
    let Some(rows) = next_rows(&run, last_drawn, rows) else {
        let in_other_hands = others_have_some(connection, run.key, place).await?;
        return Ok(if in_other_hands { Share::InOtherHands } else { Share::Through });
    };
    let first = run.ids.id(rows.first).map_or(run.ids.first, |id| id.get());
    let ids = BlockIds { rows, first };
    blocks::add(connection, now, (run.key, ids), (place, lease.epoch, Some(&by))).await?;
    Ok(Share::Fresh(rows))
}

/// A run to draw from.
struct Drawable {
    run: Run,
    /// The last of its rows that somebody drew.
    last_drawn: Option<Row>,
    /// Whether nobody else took one of the locks meanwhile.
    kept: bool,
}

/// All that a draw looks at, in one message: others wait for the turn meanwhile.
async fn drawable(connection: &mut Connection, run: RunId, proof: &Proof) -> Result<Drawable, Failure> {
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
    let last_drawn = last_drawn.map(as_small).transpose()?.map(Row::new);
    Ok(Drawable {
        run: runs::of(&record)?,
        last_drawn,
        kept: usize::try_from(kept).is_ok_and(|kept| kept == proof.len()),
    })
}

/// Takes over what processes had which are gone, with doubt about what they had begun; tells how many envelopes that are.
async fn take_over(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    (left, place, epoch, by): (&[Rows], u32, Epoch, &str),
) -> Result<usize, Failure> {
    let fallen = |intent| left.iter().any(|block| owns(*block, intent));
    let doubtful = envelopes::doubt_intents(&mut *connection, now, run.key, fallen).await?;
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
async fn others_have_some(connection: &mut Connection, run: RunId, place: u32) -> Result<bool, Failure> {
    // Each side of the own place apart, so that an index leads there whatever that one has.
    let some = scalar(
        "SELECT EXISTS (SELECT 1 FROM blocks WHERE run = $1 AND place < $2 AND epoch IS NOT NULL)
             OR EXISTS (SELECT 1 FROM blocks WHERE run = $1 AND place > $2 AND epoch IS NOT NULL)",
    );
    Ok(some.bind(run.0).bind(i64::from(place)).fetch_one(connection).await?)
}

/// The rows that processes drew which are gone: at places that are shut, or at this one before it was taken.
async fn abandoned(
    connection: &mut Connection,
    lease: Lease,
    (place, shut): (u32, &[u32]),
) -> Result<Vec<Rows>, Failure> {
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
        let at = small(block, 0)?;
        if at == place || shut.contains(&at) {
            left.push(Rows { first: row(block, 1)?, last: row(block, 2)? });
        }
    }
    Ok(left)
}

/// Who drew what, by their places.
async fn holders(reader: &mut Connection, run: RunId) -> Result<BTreeMap<u32, ShareHolder>, Failure> {
    let blocks = query(
        "SELECT place, first_row, last_row, drawn_at, drawn_by FROM blocks
         WHERE run = $1 AND epoch IS NOT NULL AND drawn_by IS NOT NULL ORDER BY drawn_at",
    )
    .bind(run.0)
    .fetch_all(reader)
    .await?;
    let mut holders = BTreeMap::new();
    for block in &blocks {
        let rows = Rows { first: row(block, 1)?, last: row(block, 2)? };
        let (since, by) = (instant(block.try_get(3)?)?, block.try_get(4)?);
        let holder = holders.entry(small(block, 0)?).or_insert(ShareHolder { by, rows: 0, since });
        holder.rows += rows.len();
    }
    Ok(holders)
}
