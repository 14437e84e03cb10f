//! Guard queries: numbers that already have a message of an edition, and recent single messages.

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::dialect::{Adapter, Connection};
use super::envelopes::{SELECT_ENVELOPES, SELECT_ENVELOPES_WITHIN, envelope_from_row};
use super::{Now, StatementError, parse_name, query, read_ledger, scalar};
use super::{events, forgetting, receipts};
use crate::guards::{RepeatHash, RepeatKey, latest_expiry};
use crate::rules::{Guard, ReservationRelease, check_repeat, look_for_repeat};
use crate::{
    LedgerError, LedgerFuture, NumberSet, RepeatCheck, RepeatGuard, RepeatRequest, RepeatReservation, RunId,
    RunProgress,
};

/// The numbers that have or might have a message in any of these runs.
pub(super) async fn load_numbers_sent_to(reader: &mut Connection, runs: &[RunId]) -> Result<NumberSet, StatementError> {
    let mut numbers = RoaringTreemap::new();
    for run in runs {
        numbers |= load_numbers_of_run(&mut *reader, *run).await?;
        // A purge moves the numbers out of the envelopes, so its numbers are read after the envelopes.
        numbers |= forgetting::load_guarded_numbers(&mut *reader, *run).await?;
    }
    Ok(NumberSet::new(numbers, forgetting::load_number_key(&mut *reader).await?))
}

/// The numbers that have or might have a message in a run, from its envelopes and receipts.
pub(super) async fn load_numbers_of_run(reader: &mut Connection, run: RunId) -> Result<RoaringTreemap, StatementError> {
    Ok(load_guard(reader, run).await?.into_numbers())
}

/// The numbers of these rows, as the envelopes of the run record them.
pub(super) async fn load_numbers_of_rows(
    reader: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
) -> Result<NumberSet, StatementError> {
    let (Some(first), Some(last)) = (rows.min(), rows.max()) else { return Ok(NumberSet::default()) };
    let mut numbers = RoaringTreemap::new();
    let within = query(SELECT_ENVELOPES_WITHIN).bind(run.0).bind(i64::from(last)).bind(i64::from(first));
    let mut records = within.fetch(&mut *reader);
    while let Some(row) = records.try_next().await? {
        let matching = envelope_from_row(&row)?.rows.into_iter().filter(|sent| rows.contains(sent.row.get()));
        numbers.extend(matching.map(|sent| sent.to.to_u64()));
    }
    drop(records);
    Ok(NumberSet::new(numbers, forgetting::load_number_key(reader).await?))
}

/// The rows that have or might have a message from a run, according to its envelopes and receipts.
pub(super) async fn load_sent_rows(reader: &mut Connection, run: RunId) -> Result<RoaringBitmap, StatementError> {
    Ok(load_guard(reader, run).await?.into_rows())
}

/// Builds the guard of a run from its envelopes and receipts.
async fn load_guard(reader: &mut Connection, run: RunId) -> Result<Guard, StatementError> {
    let progress: String =
        scalar("SELECT progress FROM runs WHERE key = $1").bind(run.0).fetch_one(&mut *reader).await?;
    // A run that is being prepared has no envelopes.
    let progress = parse_name(&progress).unwrap_or(RunProgress::Open);
    let mut guard = Guard::new(progress, events::load_row_events(&mut *reader, run).await?);
    let mut rows = query(SELECT_ENVELOPES).bind(run.0).bind(1_i64).bind(i64::from(u32::MAX)).fetch(&mut *reader);
    while let Some(row) = rows.try_next().await? {
        guard.add_envelope(&envelope_from_row(&row)?);
    }
    drop(rows);
    let mut chunks = receipts::stream_receipts(&mut *reader, run);
    while let Some(chunk) = chunks.try_next().await? {
        chunk.iter().for_each(|(row, receipts)| guard.add_receipts(*row, receipts));
    }
    Ok(guard)
}

impl RepeatGuard for Adapter {
    fn check_repeat(&self, request: RepeatRequest) -> LedgerFuture<'_, RepeatCheck> {
        Box::pin(async move {
            if !self.supports_repeat_guard() {
                return Ok(RepeatCheck::Unavailable);
            }
            match request {
                RepeatRequest::Look(message) => read_ledger!(self, look_for_message, self.now(), &message),
                RepeatRequest::Reserve { message, again } => {
                    self.write(move |connection, now| {
                        let message = message.clone();
                        Box::pin(async move { reserve_entry(connection, now, &message, again).await })
                    })
                    .await
                }
                RepeatRequest::Release(reservation) => {
                    self.write(move |connection, now| Box::pin(release_entry(connection, now, reservation.clone())))
                        .await
                }
            }
        })
    }
}

/// Deletes expired entries, and reserves the entry of a message. `again` permits a repeat.
async fn reserve_entry(
    connection: &mut Connection,
    now: Now,
    message: &[u8],
    again: bool,
) -> Result<RepeatCheck, StatementError> {
    query("DELETE FROM repeats WHERE until <= $1 OR until > $2")
        .bind(now.0)
        .bind(latest_expiry(now.0))
        .execute(&mut *connection)
        .await?;
    let hash = load_or_create_key(&mut *connection).await?.hash_message(message);
    let check = check_repeat(hash, find_expiry(&mut *connection, &hash).await?, again, now.0);
    if let RepeatCheck::Reserved(reservation) = &check {
        store_expiry(connection, &hash, reservation.until).await?;
    }
    Ok(check)
}

async fn look_for_message(reader: &mut Connection, now: Now, message: &[u8]) -> Result<RepeatCheck, StatementError> {
    let Some(key) = load_repeat_key(&mut *reader).await? else { return Ok(RepeatCheck::Free) };
    Ok(look_for_repeat(find_expiry(reader, &key.hash_message(message)).await?, now.0))
}

/// Releases a reservation, unless a later message with the same content replaced it.
async fn release_entry(
    connection: &mut Connection,
    now: Now,
    reservation: RepeatReservation,
) -> Result<RepeatCheck, StatementError> {
    let known = find_expiry(&mut *connection, &reservation.hash).await?;
    match reservation.plan_release(known, now.0) {
        ReservationRelease::Nothing => {}
        ReservationRelease::Restore(before) => store_expiry(&mut *connection, &reservation.hash, before).await?,
        ReservationRelease::Delete => {
            query("DELETE FROM repeats WHERE hash = $1")
                .bind(reservation.hash.to_vec())
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(look_for_repeat(find_expiry(connection, &reservation.hash).await?, now.0))
}

async fn store_expiry(connection: &mut Connection, hash: &RepeatHash, until: i64) -> Result<(), StatementError> {
    query("INSERT INTO repeats (hash, until) VALUES ($1, $2) ON CONFLICT (hash) DO UPDATE SET until = excluded.until")
        .bind(hash.to_vec())
        .bind(until)
        .execute(connection)
        .await?;
    Ok(())
}

async fn find_expiry(reader: &mut Connection, hash: &RepeatHash) -> Result<Option<i64>, StatementError> {
    Ok(scalar("SELECT until FROM repeats WHERE hash = $1").bind(hash.to_vec()).fetch_optional(reader).await?)
}

/// The key for hashing messages; `None` before the first message.
async fn load_repeat_key(reader: &mut Connection) -> Result<Option<RepeatKey>, StatementError> {
    let key: Option<Vec<u8>> = scalar("SELECT key FROM repeat_key").fetch_optional(reader).await?;
    let damaged = |_| LedgerError::Damaged { what: "the key for hashing messages".to_owned() };
    Ok(key.map(|bytes| bytes.try_into().map(RepeatKey)).transpose().map_err(damaged)?)
}

async fn load_or_create_key(connection: &mut Connection) -> Result<RepeatKey, StatementError> {
    if let Some(known) = load_repeat_key(&mut *connection).await? {
        return Ok(known);
    }
    let bytes: [u8; RepeatKey::LENGTH] = rand::random();
    query("INSERT INTO repeat_key (key) VALUES ($1)").bind(bytes.to_vec()).execute(connection).await?;
    Ok(RepeatKey(bytes))
}
