//! When numbers got messages of campaigns, for caps: an index over envelopes that is made when the first cap asks for it, and
//! kept from then on with each intent and settlement. Nobody pays for it before.
//!
//! What goes through gateways on loopback has an index of its own, and counts for such gateways alone.

use futures_util::TryStreamExt as _;
use roaring::{RoaringBitmap, RoaringTreemap};
use rustc_hash::FxHashMap;
use serde_json::json;
use sqlx::{Connection as _, Row as _};

use super::change::{Failure, Now};
use super::dialect::{Adapter, Connection, given};
use super::look::look;
use super::runs::{self, signed, unsigned};
use super::statement::{query, scalar};
use super::{envelopes, events, forgetting};
use crate::domain::{Addressee, Cap, ForgottenNumber, Phone, Row};
use crate::ledger::rules::{Forgotten, allowed, capped, contacts, counts_for_caps};
use crate::ledger::{
    Contacts, EnvelopeRecord, Intent, LedgerError, LedgerFuture, NumberKey, NumberSet, RowEvents, Run, RunId, SharedRun,
};

/// Envelopes that are read at once.
const BLOCK: u32 = 256;
/// A day in microseconds.
const DAY: i64 = 86_400_000_000;

impl Contacts for Adapter {
    fn capped<'a>(&'a self, caps: &'a [Cap], loopback: bool) -> LedgerFuture<'a, NumberSet> {
        Box::pin(async move { look!(self, numbers, self.now(), caps, loopback) })
    }

    fn is_capped<'a>(&'a self, phone: Phone, caps: &'a [Cap], loopback: bool) -> LedgerFuture<'a, bool> {
        Box::pin(async move { look!(self, is_capped, self.now(), phone, caps, loopback) })
    }
}

/// The rows of an intent that its caps hold back.
pub(super) async fn held_by_caps(
    connection: &mut Connection,
    now: Now,
    run: &Run,
    intent: &Intent,
) -> Result<Vec<Row>, Failure> {
    let caps = intent.bounds.as_ref().map_or(&[][..], |bounds| &bounds.caps);
    if caps.is_empty() || !counts_for_caps(run) {
        return Ok(Vec::new());
    }
    keep_from_now(connection, now, run.heed.loopback).await?;
    let mut people: FxHashMap<u64, Addressee> = intent.rows.iter().map(|sent| (sent.to.get(), sent.to)).collect();
    if let Some(key) = forgetting::key(&mut *connection).await? {
        let stays = intent.rows.iter().filter_map(|sent| Some((key.forgotten(sent.to.number()?), sent.to)));
        people.extend(stays.map(|(stays, to)| (Addressee::Forgotten(stays).get(), to)));
    }
    let found = query(concat!(
        "SELECT DISTINCT contacts.* FROM ",
        given!("$1"),
        " CROSS JOIN contacts
             WHERE phone = CAST(value AS BIGINT) AND loopback = $2 AND at > $3",
    ))
    .bind(json!(people.keys().collect::<Vec<_>>()).to_string())
    .bind(run.heed.loopback)
    .bind(since(now, caps))
    .fetch_all(connection)
    .await?;
    let mut times = FxHashMap::<Addressee, Vec<i64>>::default();
    for row in &found {
        let who = people.get(&unsigned(row.try_get("phone")?)).ok_or_else(damaged)?;
        times.entry(*who).or_default().push(row.try_get("at")?);
    }
    Ok(capped(caps, now.0, &intent.rows, times))
}

/// Whether caps hold a number back. Only where no index is kept, all numbers are read.
async fn is_capped(
    reader: &mut Connection,
    now: Now,
    phone: Phone,
    caps: &[Cap],
    loopback: bool,
) -> Result<bool, Failure> {
    if caps.is_empty() {
        return Ok(false);
    }
    if !is_kept(&mut *reader, loopback).await? {
        return Ok(numbers(reader, now, caps, loopback).await?.contains(phone));
    }
    let key = forgetting::key(&mut *reader).await?;
    let stays = key.map_or(phone.get(), |key| Addressee::Forgotten(key.forgotten(phone)).get());
    let times: Vec<i64> = scalar("SELECT at FROM contacts WHERE phone IN ($1, $2) AND loopback = $3 AND at > $4")
        .bind(signed(phone.get()))
        .bind(signed(stays))
        .bind(loopback)
        .bind(since(now, caps))
        .fetch_all(reader)
        .await?;
    Ok(!allowed(caps, now.0, &times))
}

/// The numbers that caps hold back.
async fn numbers(reader: &mut Connection, now: Now, caps: &[Cap], loopback: bool) -> Result<NumberSet, Failure> {
    // In one transaction, so that nobody begins to keep them meanwhile.
    let mut reader = reader.begin().await?;
    let key = forgetting::key(&mut reader).await?;
    let mut numbers = RoaringTreemap::new();
    if !is_kept(&mut reader, loopback).await? {
        let mut times = FxHashMap::<u64, Vec<i64>>::default();
        for run in counting(&mut reader, loopback).await? {
            let found = of_run(&mut reader, run, since(now, caps)).await?;
            found.into_iter().for_each(|contact| times.entry(contact.phone).or_default().push(contact.at));
        }
        numbers.extend(times.into_iter().filter(|(_, times)| !allowed(caps, now.0, times)).map(|(phone, _)| phone));
        return Ok(NumberSet::new(numbers, key));
    }
    let mut found = query("SELECT phone, at FROM contacts WHERE loopback = $1 AND at > $2 ORDER BY phone")
        .bind(loopback)
        .bind(since(now, caps))
        .fetch(&mut *reader);
    let (mut last, mut times) = (0, Vec::new());
    loop {
        let next = match found.try_next().await? {
            Some(row) => Some((unsigned(row.try_get(0)?), row.try_get::<i64, _>(1)?)),
            None => None,
        };
        if next.is_none_or(|(phone, _)| phone != last) {
            if !allowed(caps, now.0, &times) {
                numbers.insert(last);
            }
            times.clear();
        }
        let Some((phone, at)) = next else { return Ok(NumberSet::new(numbers, key)) };
        last = phone;
        times.push(at);
    }
}

/// Keeps that the messages of an intent go out, where that is kept.
pub(super) async fn add(connection: &mut Connection, now: Now, envelope: u32, intent: &Intent) -> Result<(), Failure> {
    let run = runs::read(&mut *connection, intent.lease.run).await?;
    if !counts_for_caps(&run) {
        return Ok(());
    }
    let sent = intent.rows.iter().map(|sent| (sent.to.get(), sent.row.get()));
    let sent: Vec<Contact> = sent.map(|(phone, row)| Contact { phone, at: now.0, envelope, row }).collect();
    insert(connection, &run, &sent).await
}

/// Keeps of an envelope what counts by now, where anything of it is kept: what was refused does not.
pub(super) async fn renew(connection: &mut Connection, run: RunId, envelope: u32) -> Result<(), Failure> {
    if !is_any_kept(&mut *connection).await? {
        return Ok(());
    }
    let of = runs::read(&mut *connection, run).await?;
    if !counts_for_caps(&of) || !is_kept(&mut *connection, of.heed.loopback).await? {
        return Ok(());
    }
    let events = RowEvents::from(events::read(&mut *connection, run).await?);
    for record in envelopes::read(&mut *connection, run, envelope..=envelope).await? {
        for sent in &record.rows {
            query(
                "DELETE FROM contacts WHERE phone = $1 AND loopback = $2 AND run = $3 AND envelope = $4 AND row = $5",
            )
            .bind(signed(sent.to.get()))
            .bind(of.heed.loopback)
            .bind(run.0)
            .bind(i64::from(envelope))
            .bind(i64::from(sent.row.get()))
            .execute(&mut *connection)
            .await?;
        }
        insert(connection, &of, &Contact::of(&record, &events)).await?;
    }
    Ok(())
}

/// Keeps what stays of a number instead of it, for these rows of a run.
pub(super) async fn forget(
    connection: &mut Connection,
    run: RunId,
    rows: &RoaringBitmap,
    forgotten: Forgotten,
) -> Result<(), Failure> {
    for row in rows {
        query("UPDATE contacts SET phone = $1 WHERE phone = $2 AND run = $3 AND row = $4")
            .bind(signed(forgotten.who().get()))
            .bind(signed(forgotten.phone.get()))
            .bind(run.0)
            .bind(i64::from(row))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Keeps what stays of the numbers of a run instead of them, before its envelopes go.
pub(super) async fn purge(
    connection: &mut Connection,
    now: Now,
    (run, key): (RunId, &NumberKey),
) -> Result<(), Failure> {
    let of = runs::read(&mut *connection, run).await?;
    if !counts_for_caps(&of) {
        return Ok(());
    }
    if of.ended_at.is_none_or(|at| at.as_microsecond() > oldest(now)) {
        keep_from_now(connection, now, of.heed.loopback).await?;
    }
    let phones: Vec<i64> = scalar("SELECT DISTINCT phone FROM contacts WHERE run = $1 AND phone < $2")
        .bind(run.0)
        .bind(signed(ForgottenNumber::LEAST))
        .fetch_all(&mut *connection)
        .await?;
    for some in phones.chunks(4_096) {
        let stays = some.iter().filter_map(|phone| Some((*phone, key.forgotten(Phone::new(unsigned(*phone))?))));
        let stays: Vec<_> = stays.map(|(phone, stays)| json!([phone, Addressee::Forgotten(stays).get()])).collect();
        query(concat!(
            "UPDATE contacts SET phone = CAST(value ->> 1 AS BIGINT) FROM ",
            given!("$1"),
            "
                 WHERE phone = CAST(value ->> 0 AS BIGINT) AND run = $2",
        ))
        .bind(json!(stays).to_string())
        .bind(run.0)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Forgets what is older than any cap looks at, once a day.
pub(super) async fn clear(connection: &mut Connection, now: Now) -> Result<(), Failure> {
    let cleared = query("UPDATE contacts_kept SET cleared_at = $1 WHERE cleared_at < $1 - $2 OR cleared_at > $1")
        .bind(now.0)
        .bind(DAY)
        .execute(&mut *connection)
        .await?;
    if cleared.rows_affected() > 0 {
        query("DELETE FROM contacts WHERE at < $1").bind(oldest(now)).execute(connection).await?;
    }
    Ok(())
}

/// A message to a number.
struct Contact {
    phone: u64,
    at: i64,
    envelope: u32,
    row: u32,
}

impl Contact {
    /// Those of an envelope that count.
    fn of(record: &EnvelopeRecord, events: &RowEvents) -> Vec<Self> {
        let (at, envelope) = (record.begun_at.as_microsecond(), record.envelope);
        let sent = contacts(record, events).map(|sent| (sent.to.get(), sent.row.get()));
        sent.map(|(phone, row)| Self { phone, at, envelope, row }).collect()
    }
}

async fn insert(connection: &mut Connection, run: &Run, found: &[Contact]) -> Result<(), Failure> {
    let records: Vec<_> = found.iter().map(|one| json!([one.phone, one.at, one.envelope, one.row])).collect();
    query(concat!(
        "INSERT INTO contacts (phone, loopback, at, run, envelope, row)
             SELECT CAST(value ->> 0 AS BIGINT), $2, CAST(value ->> 1 AS BIGINT), $3, CAST(value ->> 2 AS BIGINT),
                 CAST(value ->> 3 AS BIGINT)
             FROM ",
        given!("$1"),
        " WHERE TRUE ON CONFLICT DO NOTHING",
    ))
    .bind(json!(records).to_string())
    .bind(run.heed.loopback)
    .bind(run.key.0)
    .execute(connection)
    .await?;
    Ok(())
}

/// Begins to keep when numbers got messages, if nobody did: what was sent before is taken from the envelopes.
async fn keep_from_now(connection: &mut Connection, now: Now, loopback: bool) -> Result<(), Failure> {
    if is_kept(&mut *connection, loopback).await? {
        return Ok(());
    }
    for run in counting(connection, loopback).await? {
        let found = of_run(connection, run, oldest(now)).await?;
        let run = runs::read(&mut *connection, run).await?;
        for some in found.chunks(4_096) {
            insert(connection, &run, some).await?;
        }
    }
    let kept = query("INSERT INTO contacts_kept (loopback, cleared_at) VALUES ($1, $2)").bind(loopback).bind(now.0);
    kept.execute(connection).await?;
    Ok(())
}

/// The runs whose messages count.
async fn counting(connection: &mut Connection, loopback: bool) -> Result<Vec<RunId>, Failure> {
    let keys: Vec<i64> = scalar("SELECT key FROM runs WHERE live AND (NOT shared OR campaign = $1) AND loopback = $2")
        .bind(SharedRun::ASSISTANT_MESSAGES)
        .bind(loopback)
        .fetch_all(&mut *connection)
        .await?;
    let mut counting = Vec::new();
    for key in keys {
        let run = runs::read(&mut *connection, RunId(key)).await?;
        counting.extend(counts_for_caps(&run).then_some(run.key));
    }
    Ok(counting)
}

/// The messages of a run since a time.
async fn of_run(connection: &mut Connection, run: RunId, since: i64) -> Result<Vec<Contact>, Failure> {
    let events = RowEvents::from(events::read(&mut *connection, run).await?);
    let (mut found, mut next) = (Vec::new(), 1);
    loop {
        let block = envelopes::read(&mut *connection, run, next..=next.saturating_add(BLOCK)).await?;
        let Some(last) = block.last() else { return Ok(found) };
        next = last.envelope.saturating_add(1);
        let late = block.iter().filter(|envelope| envelope.begun_at.as_microsecond() > since);
        found.extend(late.flat_map(|envelope| Contact::of(envelope, &events)));
    }
}

async fn is_kept(connection: &mut Connection, loopback: bool) -> Result<bool, Failure> {
    let kept = scalar("SELECT EXISTS (SELECT 1 FROM contacts_kept WHERE loopback = $1)").bind(loopback);
    Ok(kept.fetch_one(connection).await?)
}

async fn is_any_kept(connection: &mut Connection) -> Result<bool, Failure> {
    Ok(scalar("SELECT EXISTS (SELECT 1 FROM contacts_kept)").fetch_one(connection).await?)
}

/// From when on caps look at messages.
fn since(now: Now, caps: &[Cap]) -> i64 {
    let longest = caps.iter().map(|cap| cap.period).max().unwrap_or_default();
    now.0.saturating_sub(i64::try_from(longest.as_micros()).unwrap_or(i64::MAX))
}

fn oldest(now: Now) -> i64 {
    now.0.saturating_sub(i64::try_from(Cap::LONGEST.as_micros()).unwrap_or(i64::MAX))
}

fn damaged() -> LedgerError {
    LedgerError::Damaged { what: "a record of sent messages".to_owned() }
}
