//! Removing what is known of the rows of a run, but for what the guard needs.

use roaring::RoaringTreemap;
use sqlx::Row as _;

use super::super::change::{Failure, Now};
use super::super::dialect::Connection;
use super::super::runs::{self, instant};
use super::super::statement::query;
use super::super::{blocks, contacts, guard, receipts, spending};
use super::known_or_new_key;
use crate::domain::{Addressee, Phone};
use crate::ledger::checksum::Checksum;
use crate::ledger::pack::{pack, unpack};
use crate::ledger::{LedgerError, NumberKey, NumberSet, Ownership, Run, RunId, StateCounts};

/// Where rows of runs are.
const TABLES: [&str; 5] = ["envelopes", "left_out", "events", "questions", "forgotten_rows"];

/// Removes what is known of the rows of a run that stands as it was counted, but for what stays of the numbers.
pub(super) async fn purge(
    connection: &mut Connection,
    now: Now,
    counted: Run,
    counts: (StateCounts, u64),
) -> Result<Ownership, Failure> {
    let run = counted.key;
    let (mut purged, at) = (false, instant(now.0)?);
    let blocks = blocks::ids(&mut *connection, run).await?;
    let change = |run: &mut Run| {
        // Shares are none of its messages: their identifiers are its own.
        run.blocks = if run.shared { blocks } else { Vec::new() };
        purged = run.purge(at, &counted, counts);
    };
    runs::change(connection, run, change).await?;
    if !purged {
        return Ok(Ownership::Lost);
    }
    let key = known_or_new_key(connection).await?;
    // What the run used of its budget is made of its envelopes as long as they are there.
    spending::keep_for_good(connection, run).await?;
    contacts::purge(connection, now, (run, &key)).await?;
    keep_guarded(connection, run, &key).await?;
    for table in TABLES {
        let statement = format!("DELETE FROM {table} WHERE run = $1");
        query(sqlx::AssertSqlSafe(statement)).bind(run.0).execute(&mut *connection).await?;
    }
    receipts::purge(connection, run).await?;
    Ok(Ownership::Held)
}

/// What marks a number that was cancelled in the record of a purged run; no other number has this bit.
const CANCELLED: u64 = 1 << 63;

/// Keeps what stays of the numbers that have a message of a run.
async fn keep_guarded(connection: &mut Connection, run: RunId, key: &NumberKey) -> Result<(), Failure> {
    let numbers = guard::sent_to(connection, run).await?;
    let cancelled = kept(connection, run).await?.into_iter().filter(|member| member & CANCELLED > 0);
    let stay = stays(&numbers, key).chain(cancelled).collect();
    write(connection, run, stay).await
}

/// Keeps what stays of the numbers that were cancelled in a run.
pub(super) async fn keep_cancelled(
    connection: &mut Connection,
    run: RunId,
    numbers: &RoaringTreemap,
) -> Result<(), Failure> {
    let key = known_or_new_key(connection).await?;
    let guarded = kept(connection, run).await?.into_iter().filter(|member| member & CANCELLED == 0);
    let stay = stays(numbers, &key).map(|member| member | CANCELLED).chain(guarded).collect();
    write(connection, run, stay).await
}

/// Numbers as they are kept.
fn stays(numbers: &RoaringTreemap, key: &NumberKey) -> impl Iterator<Item = u64> {
    let stays = |member| Phone::new(member).map_or(member, |phone| Addressee::Forgotten(key.forgotten(phone)).get());
    numbers.iter().map(stays)
}

async fn write(connection: &mut Connection, run: RunId, mut stay: Vec<u64>) -> Result<(), Failure> {
    stay.sort_unstable();
    let numbers = pack(&stay)?;
    query(
        "INSERT INTO guarded (run, numbers, sum) VALUES ($1, $2, $3)
         ON CONFLICT (run) DO UPDATE SET numbers = excluded.numbers, sum = excluded.sum",
    )
    .bind(run.0)
    .bind(&numbers)
    .bind(sum(run, &numbers).finish())
    .execute(connection)
    .await?;
    Ok(())
}

/// What stays of the numbers that had a message of a run when it was purged.
pub(in crate::ledger) async fn guarded(reader: &mut Connection, run: RunId) -> Result<RoaringTreemap, Failure> {
    Ok(kept(reader, run).await?.into_iter().filter(|member| member & CANCELLED == 0).collect())
}

/// The numbers that were cancelled in a run when it was purged.
pub(super) async fn cancelled(reader: &mut Connection, run: RunId) -> Result<NumberSet, Failure> {
    let kept = kept(&mut *reader, run).await?.into_iter().filter(|member| member & CANCELLED > 0);
    Ok(NumberSet::new(kept.map(|member| member & !CANCELLED).collect(), super::key(reader).await?))
}

async fn kept(reader: &mut Connection, run: RunId) -> Result<Vec<u64>, Failure> {
    let kept = query("SELECT numbers, sum FROM guarded WHERE run = $1").bind(run.0).fetch_optional(reader).await?;
    let Some(kept) = kept else { return Ok(Vec::new()) };
    let numbers: &[u8] = kept.try_get(0)?;
    if !sum(run, numbers).agrees(kept.try_get(1)?) {
        return Err(LedgerError::Damaged { what: "the recipient record of a purged run".to_owned() }.into());
    }
    Ok(unpack::<u64>(numbers)?)
}

fn sum(run: RunId, numbers: &[u8]) -> Checksum {
    Checksum::of("guarded").number(run.0).bytes(numbers)
}
