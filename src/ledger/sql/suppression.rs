//! The suppression list: queries, and the port over them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use roaring::RoaringTreemap;
use serde_json::json;
use sqlx::{Connection as _, Row as _};

use super::change::{Failure, Now};
use super::dialect::{Adapter, Connection, Record, given};
use super::forgetting;
use super::look::look;
use super::runs::{instant, signed, unsigned};
use super::statement::{query, scalar};
use super::{imported, left_out, runs};
use crate::domain::{Addressee, ForgottenNumber, Phone, Row};
use crate::ledger::checksum::Checksum;
use crate::ledger::rules::Forgotten;
use crate::ledger::{
    Additions, EntryRemoval, Lease, LedgerError, LedgerFuture, LeftOut, NumberKey, NumberSet, OptOut, OptOuts,
    OptedOut, Ownership, Reach, Removal, Run, Scope, SentRow, SuppressionList,
};

/// Records that one statement adds.
pub(super) const AT_ONCE: usize = 4_096;

/// The version of the list.
const VERSION: &str = "SELECT version FROM opt_out_list";

impl SuppressionList for Adapter {
    fn suppress(&self, opt_outs: Vec<OptOut>) -> LedgerFuture<'_, Additions> {
        let opt_outs = Arc::new(opt_outs);
        Box::pin(self.write(move |connection, _| {
            let opt_outs = Arc::clone(&opt_outs);
            Box::pin(async move { add(connection, &opt_outs).await })
        }))
    }

    fn unsuppress(&self, removal: Removal) -> LedgerFuture<'_, Vec<OptOut>> {
        Box::pin(self.write(move |connection, now| {
            let removal = removal.clone();
            Box::pin(async move { remove(connection, now, &removal).await })
        }))
    }

    fn additions<'a>(&'a self, opt_outs: &'a [OptOut]) -> LedgerFuture<'a, Additions> {
        Box::pin(async move { look!(self, imported::additions, opt_outs) })
    }

    fn remove_entries(&self, removal: EntryRemoval) -> LedgerFuture<'_, u64> {
        let removal = Arc::new(removal);
        Box::pin(self.write(move |connection, now| {
            let removal = Arc::clone(&removal);
            Box::pin(async move { imported::remove(connection, now, &removal).await })
        }))
    }

    fn opted_out<'a>(&'a self, campaign: &'a str, loopback: bool) -> LedgerFuture<'a, OptedOut> {
        Box::pin(async move { look!(self, opted_out, campaign, loopback) })
    }

    fn leave_out(&self, lease: Lease, rows: Vec<Row>, reason: &'static str) -> LedgerFuture<'_, Ownership> {
        Box::pin(self.write(move |connection, _| {
            let rows = rows.clone();
            Box::pin(async move {
                if !runs::read(&mut *connection, lease.run).await?.is_leased(lease) {
                    return Ok(Ownership::Lost);
                }
                left_out::add(connection, lease.run, &LeftOut::skipped(&rows, reason)).await?;
                Ok(Ownership::Held)
            })
        }))
    }

    fn opt_outs_of(&self, phone: Phone) -> LedgerFuture<'_, Vec<OptOut>> {
        Box::pin(async move { look!(self, of_phone, phone) })
    }

    fn opt_outs(&self, behind: Option<i64>, at_most: u32) -> LedgerFuture<'_, OptOuts> {
        Box::pin(async move { look!(self, opt_outs, behind, at_most) })
    }
}

/// Keeps what stays of a number on the list instead of it, and puts it there if it is not.
pub(super) async fn forget(connection: &mut Connection, forgotten: Forgotten, opt_out: OptOut) -> Result<(), Failure> {
    let rows = query("SELECT * FROM opt_outs WHERE phone = $1")
        .bind(signed(forgotten.phone.get()))
        .fetch_all(&mut *connection)
        .await?;
    for row in &rows {
        let known = Columns::of(row)?;
        let (reason, source) = (forgotten.in_words(known.reason), forgotten.in_words(known.source));
        let columns = Columns { phone: signed(forgotten.who().get()), reason: &reason, source: &source, ..known };
        let mut sum = columns.sum();
        let mut removal = (String::new(), String::new());
        if let Some(at) = row.try_get::<Option<i64>, _>("removed_at")? {
            removal = (row.try_get("removed_by")?, forgotten.in_words(row.try_get("removed_why")?));
            sum = sum.number(at).text(&removal.0).text(&removal.1);
        }
        query(
            "UPDATE opt_outs SET phone = $1, reason = $2, source = $3, sum = $4,
                 removed_why = CASE WHEN removed_at IS NULL THEN NULL ELSE $5 END
             WHERE key = $6",
        )
        .bind(columns.phone)
        .bind(&reason)
        .bind(&source)
        .bind(sum.finish())
        .bind(removal.1)
        .bind(row.try_get::<i64, _>("key")?)
        .execute(&mut *connection)
        .await?;
    }
    add(connection, &[OptOut { who: forgotten.who(), ..opt_out }]).await?;
    Ok(())
}

/// Whom the list knows by what stays of a forgotten number alone.
struct ForgottenOnes {
    key: NumberKey,
    listed: HashSet<u64>,
}

impl ForgottenOnes {
    /// Nothing where nobody was forgotten.
    async fn read(connection: &mut Connection) -> Result<Option<Self>, Failure> {
        let Some(key) = forgetting::key(&mut *connection).await? else { return Ok(None) };
        let listed: Vec<i64> = scalar("SELECT DISTINCT phone FROM opt_outs WHERE phone >= $1")
            .bind(signed(ForgottenNumber::LEAST))
            .fetch_all(connection)
            .await?;
        Ok(Some(Self { key, listed: listed.into_iter().map(unsigned).collect() }))
    }

    /// Somebody, as the list has them.
    fn of(&self, who: Addressee) -> Addressee {
        let stays = who.number().map(|phone| Addressee::Forgotten(self.key.forgotten(phone)));
        stays.filter(|stays| self.listed.contains(&stays.get())).unwrap_or(who)
    }
}

/// These opt-outs, about people as the list has them.
pub(super) async fn as_listed<'o>(
    connection: &mut Connection,
    opt_outs: &'o [OptOut],
) -> Result<Cow<'o, [OptOut]>, Failure> {
    let mut listed = Cow::Borrowed(opt_outs);
    if let Some(forgotten) = ForgottenOnes::read(connection).await? {
        listed.to_mut().iter_mut().for_each(|opt_out| opt_out.who = forgotten.of(opt_out.who));
    }
    Ok(listed)
}

/// Puts all of these on the list; the version is another one where any of them was not there.
pub(super) async fn add(connection: &mut Connection, opt_outs: &[OptOut]) -> Result<Additions, Failure> {
    let listed = as_listed(connection, opt_outs).await?;
    let opt_outs = &*listed;
    imported::replace(connection, opt_outs).await?;
    let known = if opt_outs.len() <= Additions::TOLD { known(connection, opt_outs).await? } else { Vec::new() };
    let mut additions = Additions { known, ..Additions::default() };
    for some in opt_outs.chunks(AT_ONCE) {
        let records: Vec<_> = some.iter().map(record).collect();
        let added = query(concat!(
            "INSERT INTO opt_outs (phone, campaign, loopback, reason, source, at, sum)
                 SELECT CAST(value ->> 0 AS BIGINT), value ->> 1, CAST(value ->> 2 AS BIGINT), value ->> 3, value ->> 4,
                     CAST(value ->> 5 AS BIGINT), CAST(value ->> 6 AS BIGINT)
                 FROM ",
            given!("$1"),
            " WHERE TRUE
                 ON CONFLICT (phone, campaign, loopback) WHERE removed_at IS NULL DO NOTHING",
        ))
        .bind(json!(records).to_string())
        .execute(&mut *connection)
        .await?
        .rows_affected();
        additions.added += added;
    }
    additions.already = opt_outs.len() as u64 - additions.added;
    if additions.added > 0 {
        raise(connection).await?;
    }
    Ok(additions)
}

/// A record that is on the list, as it is bound.
fn record(opt_out: &OptOut) -> serde_json::Value {
    let OptOut { who, scope, reach, reason, source, at } = opt_out;
    let (campaign, loopback) = (scope.campaign().unwrap_or(""), i64::from(*reach == Reach::LoopbackGateways));
    let sum = Columns { phone: signed(who.get()), campaign, loopback, reason, source, at: at.as_microsecond() }.sum();
    json!([who.get(), campaign, loopback, **reason, **source, at.as_microsecond(), sum.finish()])
}

/// Those of these that are on the list already, as they stand there.
async fn known(connection: &mut Connection, opt_outs: &[OptOut]) -> Result<Vec<OptOut>, Failure> {
    let mut known = of(connection, opt_outs.iter().map(|opt_out| opt_out.who)).await?;
    known.retain(|known| opt_outs.iter().any(|new| new.covers(known)));
    Ok(known)
}

/// Takes a number off the list; the records stay, with who took it off.
async fn remove(connection: &mut Connection, now: Now, removal: &Removal) -> Result<Vec<OptOut>, Failure> {
    let Removal { phone, scope, by, why } = removal;
    let mut who = Addressee::from(*phone);
    if let Some(forgotten) = ForgottenOnes::read(connection).await? {
        who = forgotten.of(who);
    }
    let rows = query("SELECT * FROM opt_outs WHERE removed_at IS NULL AND phone = $1 ORDER BY key")
        .bind(signed(who.get()))
        .fetch_all(&mut *connection)
        .await?;
    let mut removed = Vec::new();
    for row in &rows {
        let opt_out = opt_out(row)?;
        if scope.as_ref().is_some_and(|scope| *scope != opt_out.scope) {
            continue;
        }
        take_off(connection, now, row, (by, why.as_deref().unwrap_or(""))).await?;
        removed.push(opt_out);
    }
    if !removed.is_empty() {
        raise(connection).await?;
    }
    Ok(removed)
}

/// Takes a record off the list.
pub(super) async fn take_off(
    connection: &mut Connection,
    now: Now,
    record: &Record,
    (by, why): (&str, &str),
) -> Result<(), Failure> {
    let sum = Columns::of(record)?.sum().number(now.0).text(by).text(why).finish();
    query("UPDATE opt_outs SET removed_at = $1, removed_by = $2, removed_why = $3, sum = $4 WHERE key = $5")
        .bind(now.0)
        .bind(by)
        .bind(why)
        .bind(sum)
        .bind(record.try_get::<i64, _>("key")?)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn raise(connection: &mut Connection) -> Result<(), Failure> {
    query("UPDATE opt_out_list SET version = version + 1").execute(connection).await?;
    Ok(())
}

/// The rows of an envelope whose people opted out of what their run sends.
pub(super) async fn among(connection: &mut Connection, run: &Run, rows: &[SentRow]) -> Result<Vec<Row>, Failure> {
    let forgotten = ForgottenOnes::read(connection).await?;
    let as_listed = |sent: &SentRow| forgotten.as_ref().map_or(sent.to, |forgotten| forgotten.of(sent.to));
    let listed = of(connection, rows.iter().map(as_listed)).await?;
    let held = |sent: &&SentRow| {
        let who = as_listed(sent);
        listed.iter().any(|out| out.who == who && run.heed.is_held_back(&run.campaign, out))
    };
    Ok(rows.iter().filter(held).map(|sent| sent.row).collect())
}

/// Where a number is on the list.
async fn of_phone(reader: &mut Connection, phone: Phone) -> Result<Vec<OptOut>, Failure> {
    let forgotten = ForgottenOnes::read(reader).await?;
    let who = forgotten.map_or(phone.into(), |forgotten| forgotten.of(phone.into()));
    of(reader, [who].into_iter()).await
}

/// Who is on the list of these.
async fn of(connection: &mut Connection, people: impl Iterator<Item = Addressee>) -> Result<Vec<OptOut>, Failure> {
    records_of(connection, people).await?.iter().map(opt_out).collect()
}

/// The records of these people that are on the list, each once.
pub(super) async fn records_of(
    connection: &mut Connection,
    people: impl Iterator<Item = Addressee>,
) -> Result<Vec<Record>, Failure> {
    let phones: BTreeSet<u64> = people.map(Addressee::get).collect();
    let rows = query(concat!(
        "SELECT opt_outs.* FROM ",
        given!("$1"),
        " CROSS JOIN opt_outs
             WHERE phone = CAST(value AS BIGINT) AND removed_at IS NULL",
    ))
    .bind(json!(phones).to_string())
    .fetch_all(connection)
    .await?;
    Ok(rows)
}

/// The numbers that are held back from a campaign. Records that were taken off are looked at too: one that is damaged
/// there may be on the list.
async fn opted_out(reader: &mut Connection, campaign: &str, loopback: bool) -> Result<OptedOut, Failure> {
    // In one transaction, so that the numbers are those of the version.
    let mut reader = reader.begin().await?;
    let (version, key) = (version(&mut reader).await?, forgetting::key(&mut reader).await?);
    let mut numbers = RoaringTreemap::new();
    let mut rows = query("SELECT * FROM opt_outs").fetch(&mut *reader);
    while let Some(row) = rows.try_next().await? {
        let (entry, removed): (_, Option<i64>) = (opt_out(&row)?, row.try_get("removed_at")?);
        if removed.is_none() && entry.holds(campaign, loopback) {
            numbers.insert(entry.who.get());
        }
    }
    drop(rows);
    Ok(OptedOut { version, numbers: NumberSet::new(numbers, key) })
}

async fn version(reader: &mut Connection) -> Result<u64, Failure> {
    Ok(unsigned(scalar(VERSION).fetch_one(reader).await?))
}

/// Who is on the list: so many at most, in the order in which they came.
async fn opt_outs(reader: &mut Connection, behind: Option<i64>, at_most: u32) -> Result<OptOuts, Failure> {
    let rows = query("SELECT * FROM opt_outs WHERE removed_at IS NULL AND key > $1 ORDER BY key LIMIT $2")
        .bind(behind.unwrap_or(0))
        .bind(i64::from(at_most))
        .fetch_all(reader)
        .await?;
    let full = rows.len() >= at_most as usize;
    let next = rows.last().filter(|_| full).map(|row| row.try_get("key")).transpose()?;
    Ok(OptOuts { entries: rows.iter().map(opt_out).collect::<Result<_, _>>()?, next })
}

/// The columns of a record that never change.
struct Columns<'a> {
    phone: i64,
    campaign: &'a str,
    loopback: i64,
    reason: &'a str,
    source: &'a str,
    at: i64,
}

impl<'a> Columns<'a> {
    fn of(row: &'a Record) -> Result<Self, Failure> {
        Ok(Self {
            phone: row.try_get("phone")?,
            campaign: row.try_get("campaign")?,
            loopback: row.try_get("loopback")?,
            reason: row.try_get("reason")?,
            source: row.try_get("source")?,
            at: row.try_get("at")?,
        })
    }

    fn sum(&self) -> Checksum {
        let Self { phone, campaign, loopback, reason, source, at } = *self;
        Checksum::of("opt_outs").number(phone).text(campaign).number(loopback).text(reason).text(source).number(at)
    }
}

/// A record, as long as it is as it was written.
pub(super) fn opt_out(row: &Record) -> Result<OptOut, Failure> {
    let columns = Columns::of(row)?;
    let sum = match row.try_get::<Option<i64>, _>("removed_at")? {
        None => columns.sum(),
        Some(at) => columns.sum().number(at).text(row.try_get("removed_by")?).text(row.try_get("removed_why")?),
    };
    let damaged = || LedgerError::Damaged { what: "an entry in the suppression list".to_owned() };
    if !sum.agrees(Some(row.try_get("sum")?)) {
        return Err(damaged().into());
    }
    let Columns { phone, campaign, loopback, reason, source, at } = columns;
    Ok(OptOut {
        who: Addressee::try_from(unsigned(phone)).map_err(|_| damaged())?,
        scope: Scope::of(Some(campaign).filter(|name| !name.is_empty())),
        reach: if loopback == 0 { Reach::AllGateways } else { Reach::LoopbackGateways },
        reason: Arc::from(reason),
        source: Arc::from(source),
        at: instant(at)?,
    })
}
