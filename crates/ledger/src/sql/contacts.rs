//! Contact times per number for frequency caps.
//!
//! The index is built from the envelopes when the first cap needs it, and maintained with each intent and settlement
//! from then on. Campaigns without caps need no index. Loopback gateways have their own index, which applies only
//! to them.

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashMap;
use serde_json::json;
use sqlx::{Connection as _, Row as _};

use super::dialect::{Connection, json_elements};
use super::runs::{self, to_signed, to_unsigned};
use super::{Now, StatementError, query, read_u32, scalar};
use super::{counted_messages, forgetting};
use crate::rules::{CountedMessage, NumberErasure, PriorMessage, caps_allow, counts_for_caps, find_capped_rows};
use crate::{CapQuery, Intent, LedgerError, NumberKey, NumberSet, Run, RunId, SharedRun};
use campaign_core::domain::{Addressee, ForgottenNumber, FrequencyCap, Phone, Row};

const MICROS_PER_DAY: i64 = 86_400_000_000;
/// The maximum number of index entries or numbers in one statement.
const MAX_PER_STATEMENT: usize = 4_096;

/// The rows of an intent whose recipients have reached a cap.
pub(super) async fn find_rows_over_cap(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    intent: &Intent,
) -> Result<Vec<Row>, StatementError> {
    let Some(bounds) = intent.bounds.as_deref().filter(|bounds| !bounds.caps.is_empty() && counts_for_caps(run)) else {
        return Ok(Vec::new());
    };
    build_index(connection, now, run.suppression.loopback).await?;
    let mut recipients: FxHashMap<u64, Addressee> =
        intent.rows.iter().map(|sent| (sent.to.to_u64(), sent.to)).collect();
    if let Some(key) = forgetting::load_number_key(&mut *connection).await? {
        let hashes = intent.rows.iter().filter_map(|sent| Some((key.hash_number(sent.to.phone()?), sent.to)));
        recipients.extend(hashes.map(|(hash, to)| (Addressee::Forgotten(hash).to_u64(), to)));
    }
    let contacts = query(concat!(
        "SELECT DISTINCT contacts.* FROM ",
        json_elements!("$1"),
        " CROSS JOIN contacts
             WHERE phone = CAST(value AS BIGINT) AND loopback = $2 AND at > $3",
    ))
    .bind(json!(recipients.keys().collect::<Vec<_>>()).to_string())
    .bind(run.suppression.loopback)
    .bind(window_start(now, &bounds.caps))
    .fetch_all(connection)
    .await?;
    let mut messages = FxHashMap::<Addressee, Vec<PriorMessage>>::default();
    for row in &contacts {
        let addressee = recipients.get(&to_unsigned(row.try_get("phone")?)).ok_or_else(damaged_contact)?;
        let is_own = row.try_get::<i64, _>("run")? == run.key.0;
        let own_row = if is_own { Some(Row::new(read_u32(row, "row")?)) } else { None };
        messages.entry(*addressee).or_default().push(PriorMessage { at: row.try_get("at")?, row: own_row });
    }
    Ok(find_capped_rows(bounds, now.0, &intent.rows, messages))
}

/// The numbers that have reached a cap. Without an index, this reads all messages.
pub(super) async fn load_capped_numbers(
    reader: &mut Connection,
    now: Now,
    query: CapQuery<'_>,
) -> Result<NumberSet, StatementError> {
    match query.only {
        Some(phone) if is_indexed(&mut *reader, query.loopback).await? => {
            let capped = is_number_capped(reader, now, phone, query).await?;
            Ok(NumberSet::new(capped.then_some(phone.to_u64()).into_iter().collect(), None))
        }
        _ => load_all_capped_numbers(reader, now, query).await,
    }
}

/// Whether the index shows that a number has reached a cap.
async fn is_number_capped(
    reader: &mut Connection,
    now: Now,
    phone: Phone,
    CapQuery { caps, loopback, .. }: CapQuery<'_>,
) -> Result<bool, StatementError> {
    let key = forgetting::load_number_key(&mut *reader).await?;
    let hash_or_number = key.map_or(phone.to_u64(), |key| Addressee::Forgotten(key.hash_number(phone)).to_u64());
    let times: Vec<i64> = scalar("SELECT at FROM contacts WHERE phone IN ($1, $2) AND loopback = $3 AND at > $4")
        .bind(to_signed(phone.to_u64()))
        .bind(to_signed(hash_or_number))
        .bind(loopback)
        .bind(window_start(now, caps))
        .fetch_all(reader)
        .await?;
    Ok(!caps_allow(caps, now.0, &times))
}

/// All numbers that have reached a cap.
async fn load_all_capped_numbers(
    reader: &mut Connection,
    now: Now,
    CapQuery { caps, loopback, .. }: CapQuery<'_>,
) -> Result<NumberSet, StatementError> {
    // One transaction, so that no other process builds the index in between.
    let mut reader = reader.begin().await?;
    let key = forgetting::load_number_key(&mut reader).await?;
    let mut numbers = RoaringTreemap::new();
    if !is_indexed(&mut reader, loopback).await? {
        let mut times = FxHashMap::<u64, Vec<i64>>::default();
        for run in list_counted_runs(&mut reader, loopback).await? {
            let contacts = load_run_contacts(&mut reader, run, window_start(now, caps)).await?;
            contacts.into_iter().for_each(|contact| times.entry(contact.phone).or_default().push(contact.at));
        }
        numbers.extend(times.into_iter().filter(|(_, times)| !caps_allow(caps, now.0, times)).map(|(phone, _)| phone));
        return Ok(NumberSet::new(numbers, key));
    }
    let mut contacts = query("SELECT phone, at FROM contacts WHERE loopback = $1 AND at > $2 ORDER BY phone")
        .bind(loopback)
        .bind(window_start(now, caps))
        .fetch(&mut *reader);
    // The contacts are ordered by number. When the number changes, all times of the last number are known.
    let (mut last, mut times) = (0, Vec::new());
    loop {
        let next = match contacts.try_next().await? {
            Some(row) => Some((to_unsigned(row.try_get(0)?), row.try_get::<i64, _>(1)?)),
            None => None,
        };
        if next.is_none_or(|(phone, _)| phone != last) {
            if !caps_allow(caps, now.0, &times) {
                numbers.insert(last);
            }
            times.clear();
        }
        let Some((phone, at)) = next else { return Ok(NumberSet::new(numbers, key)) };
        last = phone;
        times.push(at);
    }
}

/// Adds the messages of an intent to the index, if the messages count towards frequency caps. The caller has checked
/// that the index exists.
pub(super) async fn record_contacts(
    connection: &mut Connection,
    now: Now,
    envelope: u32,
    intent: &Intent,
) -> Result<(), StatementError> {
    let run = runs::load_run(&mut *connection, intent.lease.run).await?;
    if !counts_for_caps(&run) {
        return Ok(());
    }
    let sent = intent.rows.iter().map(|sent| (sent.to.to_u64(), sent.row.get()));
    let sent: Vec<Contact> = sent.map(|(phone, row)| Contact { phone, at: now.0, envelope, row }).collect();
    insert_contacts(connection, &run, &sent).await
}

/// Updates the index entries of an envelope and drops messages that no longer count towards frequency caps.
pub(super) async fn refresh_contacts(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
) -> Result<(), StatementError> {
    if !has_any_index(&mut *connection).await? {
        return Ok(());
    }
    let loaded = runs::load_run(&mut *connection, run).await?;
    if !counts_for_caps(&loaded) || !is_indexed(&mut *connection, loaded.suppression.loopback).await? {
        return Ok(());
    }
    let (rows, counted) = counted_messages::load_envelope_messages(connection, run, envelope).await?;
    for sent in &rows {
        query("DELETE FROM contacts WHERE phone = $1 AND loopback = $2 AND run = $3 AND envelope = $4 AND row = $5")
            .bind(to_signed(sent.to.to_u64()))
            .bind(loaded.suppression.loopback)
            .bind(run.0)
            .bind(i64::from(envelope))
            .bind(i64::from(sent.row.get()))
            .execute(&mut *connection)
            .await?;
    }
    let contacts: Vec<Contact> = counted.into_iter().map(Contact::from).collect();
    insert_contacts(connection, &loaded, &contacts).await
}

/// Replaces a number with its hash in the index entries of these rows of a run.
pub(super) async fn hash_contact_number(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: NumberErasure,
) -> Result<(), StatementError> {
    for row in rows {
        query("UPDATE contacts SET phone = $1 WHERE phone = $2 AND run = $3 AND row = $4")
            .bind(to_signed(forgotten.addressee().to_u64()))
            .bind(to_signed(forgotten.phone.to_u64()))
            .bind(run.0)
            .bind(i64::from(row))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Replaces the numbers of a run with their hashes in the index, before the envelopes of the run are deleted. If
/// messages of the run can still count, the index is built first.
pub(super) async fn hash_run_contacts(
    connection: &mut Connection,
    now: Now,
    run: RunId,
    key: &NumberKey,
) -> Result<(), StatementError> {
    let loaded = runs::load_run(&mut *connection, run).await?;
    if !counts_for_caps(&loaded) {
        return Ok(());
    }
    if loaded.ended_at.is_none_or(|at| at.as_microsecond() > longest_window_start(now)) {
        build_index(connection, now, loaded.suppression.loopback).await?;
    }
    let phones: Vec<i64> = scalar("SELECT DISTINCT phone FROM contacts WHERE run = $1 AND phone < $2")
        .bind(run.0)
        .bind(to_signed(ForgottenNumber::MIN))
        .fetch_all(&mut *connection)
        .await?;
    for chunk in phones.chunks(MAX_PER_STATEMENT) {
        let hashes = chunk.iter().filter_map(|phone| Some((*phone, key.hash_number(Phone::new(to_unsigned(*phone))?))));
        let hashes: Vec<_> = hashes.map(|(phone, hash)| json!([phone, Addressee::Forgotten(hash).to_u64()])).collect();
        query(concat!(
            "UPDATE contacts SET phone = CAST(value ->> 1 AS BIGINT) FROM ",
            json_elements!("$1"),
            "
                 WHERE phone = CAST(value ->> 0 AS BIGINT) AND run = $2",
        ))
        .bind(json!(hashes).to_string())
        .bind(run.0)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Deletes index entries that are older than the longest period of any possible cap, at most once a day.
pub(super) async fn delete_old_contacts(connection: &mut Connection, now: Now) -> Result<(), StatementError> {
    let cleared = query("UPDATE contacts_kept SET cleared_at = $1 WHERE cleared_at < $1 - $2 OR cleared_at > $1")
        .bind(now.0)
        .bind(MICROS_PER_DAY)
        .execute(&mut *connection)
        .await?;
    if cleared.rows_affected() > 0 {
        query("DELETE FROM contacts WHERE at < $1").bind(longest_window_start(now)).execute(connection).await?;
    }
    Ok(())
}

/// An index entry: a message to a number.
struct Contact {
    phone: u64,
    at: i64,
    envelope: u32,
    row: u32,
}

impl From<CountedMessage> for Contact {
    fn from(CountedMessage { envelope, begun_at, row, to, cost: _ }: CountedMessage) -> Self {
        Self { phone: to.to_u64(), at: begun_at.as_microsecond(), envelope, row: row.get() }
    }
}

async fn insert_contacts(connection: &mut Connection, run: &Run, contacts: &[Contact]) -> Result<(), StatementError> {
    let records: Vec<_> =
        contacts.iter().map(|contact| json!([contact.phone, contact.at, contact.envelope, contact.row])).collect();
    query(concat!(
        "INSERT INTO contacts (phone, loopback, at, run, envelope, row)
             SELECT CAST(value ->> 0 AS BIGINT), $2, CAST(value ->> 1 AS BIGINT), $3, CAST(value ->> 2 AS BIGINT),
                 CAST(value ->> 3 AS BIGINT)
             FROM ",
        json_elements!("$1"),
        " WHERE TRUE ON CONFLICT DO NOTHING",
    ))
    .bind(json!(records).to_string())
    .bind(run.suppression.loopback)
    .bind(run.key.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Builds the index from the envelopes, unless it already exists.
async fn build_index(connection: &mut Connection, now: Now, loopback: bool) -> Result<(), StatementError> {
    if is_indexed(&mut *connection, loopback).await? {
        return Ok(());
    }
    for run in list_counted_runs(connection, loopback).await? {
        let contacts = load_run_contacts(connection, run, longest_window_start(now)).await?;
        let run = runs::load_run(&mut *connection, run).await?;
        for chunk in contacts.chunks(MAX_PER_STATEMENT) {
            insert_contacts(connection, &run, chunk).await?;
        }
    }
    let record = query("INSERT INTO contacts_kept (loopback, cleared_at) VALUES ($1, $2)").bind(loopback).bind(now.0);
    record.execute(connection).await?;
    Ok(())
}

/// The runs whose messages count towards frequency caps.
async fn list_counted_runs(connection: &mut Connection, loopback: bool) -> Result<Vec<RunId>, StatementError> {
    let keys: Vec<i64> = scalar("SELECT key FROM runs WHERE live AND (NOT shared OR campaign = $1) AND loopback = $2")
        .bind(SharedRun::ASSISTANT_MESSAGES)
        .bind(loopback)
        .fetch_all(&mut *connection)
        .await?;
    let mut counting = Vec::new();
    for key in keys {
        let run = runs::load_run(&mut *connection, RunId(key)).await?;
        counting.extend(counts_for_caps(&run).then_some(run.key));
    }
    Ok(counting)
}

/// Loads the counted messages of a run that were sent after `since`.
async fn load_run_contacts(
    connection: &mut Connection,
    run: RunId,
    since: i64,
) -> Result<Vec<Contact>, StatementError> {
    let mut contacts = Vec::new();
    let add =
        |message: CountedMessage| contacts.extend((message.begun_at.as_microsecond() > since).then(|| message.into()));
    counted_messages::visit_messages(connection, run, add).await?;
    Ok(contacts)
}

async fn is_indexed(connection: &mut Connection, loopback: bool) -> Result<bool, StatementError> {
    let exists = scalar("SELECT EXISTS (SELECT 1 FROM contacts_kept WHERE loopback = $1)").bind(loopback);
    Ok(exists.fetch_one(connection).await?)
}

async fn has_any_index(connection: &mut Connection) -> Result<bool, StatementError> {
    Ok(scalar("SELECT EXISTS (SELECT 1 FROM contacts_kept)").fetch_one(connection).await?)
}

/// The time at which the longest period of these caps began, in microseconds since 1970.
fn window_start(now: Now, caps: &[FrequencyCap]) -> i64 {
    let longest = caps.iter().map(|cap| cap.period).max().unwrap_or_default();
    now.0.saturating_sub(i64::try_from(longest.as_micros()).unwrap_or(i64::MAX))
}

/// The time at which the longest period of any possible cap began, in microseconds since 1970.
fn longest_window_start(now: Now) -> i64 {
    now.0.saturating_sub(i64::try_from(FrequencyCap::MAX_PERIOD.as_micros()).unwrap_or(i64::MAX))
}

fn damaged_contact() -> LedgerError {
    LedgerError::Damaged { what: "a record of sent messages".to_owned() }
}
