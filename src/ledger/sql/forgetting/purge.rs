//! Removing what is known of the rows of a run, but for what the guard needs.

use roaring::RoaringTreemap;
use sqlx::Row as _;

use super::super::change::{Now, StatementError};
use super::super::dialect::Connection;
use super::super::runs::{self, timestamp_from_micros};
use super::super::statement::query;
use super::super::{blocks, contacts, guard, receipts, spending};
use super::load_or_create_key;
use crate::domain::{Addressee, Phone};
use crate::ledger::checksum::Checksum;
use crate::ledger::pack::{pack_list, unpack_list};
use crate::ledger::{LedgerError, NumberKey, NumberSet, Ownership, Run, RunId, StateCounts};

/// Where rows of runs are.
const PURGED_TABLES: [&str; 5] = ["envelopes", "left_out", "events", "questions", "forgotten_rows"];

/// Removes what is known of the rows of a run that stands as it was counted, but for what stays of the numbers.
pub(super) async fn purge_run(
    connection: &mut Connection,
    now: Now,
    counted: Run,
    counts: (StateCounts, u64),
) -> Result<Ownership, StatementError> {
    let run = counted.key;
    let (mut purged, at) = (false, timestamp_from_micros(now.0)?);
    let blocks = blocks::load_block_ids(&mut *connection, run).await?;
    let change = |run: &mut Run| {
        // Shares are none of its messages: their identifiers are its own.
        run.blocks = if run.shared { blocks } else { Vec::new() };
        purged = run.mark_purged(at, &counted, counts);
    };
    runs::update_run(connection, run, change).await?;
    if !purged {
        return Ok(Ownership::Lost);
    }
    let key = load_or_create_key(connection).await?;
    // What the run used of its budget is made of its envelopes as long as they are there.
    spending::freeze_spending(connection, run).await?;
    contacts::purge_contacts(connection, now, (run, &key)).await?;
    store_guarded_numbers(connection, run, &key).await?;
    for table in PURGED_TABLES {
        let statement = format!("DELETE FROM {table} WHERE run = $1");
        query(sqlx::AssertSqlSafe(statement)).bind(run.0).execute(&mut *connection).await?;
    }
    receipts::delete_receipts(connection, run).await?;
    Ok(Ownership::Held)
}

/// What marks a number that was cancelled in the record of a purged run; no other number has this bit.
const CANCELLED_BIT: u64 = 1 << 63;

/// Keeps what stays of the numbers that have a message of a run.
async fn store_guarded_numbers(connection: &mut Connection, run: RunId, key: &NumberKey) -> Result<(), StatementError> {
    let numbers = guard::load_numbers_of_run(connection, run).await?;
    let cancelled = load_members(connection, run).await?.into_iter().filter(|member| member & CANCELLED_BIT > 0);
    let stay = hash_numbers(&numbers, key).chain(cancelled).collect();
    write_members(connection, run, stay).await
}

/// Keeps what stays of the numbers that were cancelled in a run.
pub(super) async fn store_cancelled_numbers(
    connection: &mut Connection,
    run: RunId,
    numbers: &RoaringTreemap,
) -> Result<(), StatementError> {
    let key = load_or_create_key(connection).await?;
    let guarded = load_members(connection, run).await?.into_iter().filter(|member| member & CANCELLED_BIT == 0);
    let stay = hash_numbers(numbers, &key).map(|member| member | CANCELLED_BIT).chain(guarded).collect();
    write_members(connection, run, stay).await
}

/// Numbers as they are kept.
fn hash_numbers(numbers: &RoaringTreemap, key: &NumberKey) -> impl Iterator<Item = u64> {
    let stays =
        |member| Phone::new(member).map_or(member, |phone| Addressee::Forgotten(key.hash_number(phone)).to_u64());
    numbers.iter().map(stays)
}

async fn write_members(connection: &mut Connection, run: RunId, mut stay: Vec<u64>) -> Result<(), StatementError> {
    stay.sort_unstable();
    let numbers = pack_list(&stay)?;
    query(
        "INSERT INTO guarded (run, numbers, sum) VALUES ($1, $2, $3)
         ON CONFLICT (run) DO UPDATE SET numbers = excluded.numbers, sum = excluded.sum",
    )
    .bind(run.0)
    .bind(&numbers)
    .bind(members_checksum(run, &numbers).finish())
    .execute(connection)
    .await?;
    Ok(())
}

/// What stays of the numbers that had a message of a run when it was purged.
pub(in crate::ledger) async fn load_guarded_numbers(
    reader: &mut Connection,
    run: RunId,
) -> Result<RoaringTreemap, StatementError> {
    Ok(load_members(reader, run).await?.into_iter().filter(|member| member & CANCELLED_BIT == 0).collect())
}

/// The numbers that were cancelled in a run when it was purged.
pub(super) async fn load_cancelled_numbers(reader: &mut Connection, run: RunId) -> Result<NumberSet, StatementError> {
    let kept = load_members(&mut *reader, run).await?.into_iter().filter(|member| member & CANCELLED_BIT > 0);
    Ok(NumberSet::new(kept.map(|member| member & !CANCELLED_BIT).collect(), super::load_number_key(reader).await?))
}

async fn load_members(reader: &mut Connection, run: RunId) -> Result<Vec<u64>, StatementError> {
    let kept = query("SELECT numbers, sum FROM guarded WHERE run = $1").bind(run.0).fetch_optional(reader).await?;
    let Some(kept) = kept else { return Ok(Vec::new()) };
    let numbers: &[u8] = kept.try_get(0)?;
    if !members_checksum(run, numbers).matches(kept.try_get(1)?) {
        return Err(LedgerError::Damaged { what: "the recipient record of a purged run".to_owned() }.into());
    }
    Ok(unpack_list::<u64>(numbers)?)
}

fn members_checksum(run: RunId, numbers: &[u8]) -> Checksum {
    Checksum::for_table("guarded").with_number(run.0).with_bytes(numbers)
}
