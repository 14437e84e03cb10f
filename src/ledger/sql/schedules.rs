//! Queries about armed schedules and their occurrences.

use jiff::Timestamp;
use sqlx::Row as _;

use super::change::{Failure, intact};
use super::dialect::{Adapter, Connection, Record};
use super::look::look;
use super::runs::{self, PREPARING, Stage, instant};
use super::statement::{query, readable, scalar};
use crate::ledger::checksum::Checksum;
use crate::ledger::rules::may_fire;
use crate::ledger::{
    ArmedSchedule, DamagedOccurrence, DamagedSchedule, Fate, LedgerError, LedgerFuture, NewRun, OccurrenceKey,
    OccurrenceRecord, Run, RunId, Schedules,
};

impl Schedules for Adapter {
    fn arm(&self, schedule: ArmedSchedule) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(arm(connection, schedule.clone()))))
    }

    fn schedules(&self) -> LedgerFuture<'_, Vec<Result<ArmedSchedule, DamagedSchedule>>> {
        Box::pin(async move { look!(self, armed) })
    }

    fn pause<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        let name = name.to_owned();
        Box::pin(
            self.write(move |connection, _| {
                Box::pin(change(connection, name.clone(), |schedule| schedule.paused = true))
            }),
        )
    }

    fn resume<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |connection, _| {
            Box::pin(change(connection, name.clone(), move |schedule| {
                (schedule.paused, schedule.since) = (false, since)
            }))
        }))
    }

    fn disarm<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |connection, _| Box::pin(disarm(connection, name.clone()))))
    }

    fn fire<'a>(&'a self, new: &'a NewRun, key: &'a OccurrenceKey, at: Timestamp) -> LedgerFuture<'a, Option<Run>> {
        let (new, key) = (new.clone(), key.clone());
        Box::pin(async move {
            self.fit_for_sending().await?;
            self.write(move |connection, _| Box::pin(fire(connection, new.clone(), key.clone(), at))).await
        })
    }

    fn skip<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        let (key, fate) = (key.clone(), Fate::Skipped(reason.to_owned()));
        Box::pin(self.write(move |connection, _| Box::pin(skip(connection, key.clone(), at, fate.clone()))))
    }

    fn give_up<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        let (key, fate) = (key.clone(), Fate::Skipped(reason.to_owned()));
        Box::pin(self.write(move |connection, _| Box::pin(give_up(connection, key.clone(), at, fate.clone()))))
    }

    fn occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        Box::pin(async move { look!(self, last, schedule, until, latest) })
    }

    fn occurrence_of(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        Box::pin(async move { look!(self, of_run, run) })
    }

    fn occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<Fate>> {
        Box::pin(async move { look!(self, recorded, key) })
    }
}

async fn arm(connection: &mut Connection, schedule: ArmedSchedule) -> Result<(), Failure> {
    let sum = schedule_sum(&schedule).finish();
    let ArmedSchedule { name, file, digest, gateway, addresses, account, by, armed_at, since, paused } = schedule;
    query(
        "INSERT INTO schedules
             (name, file, digest, gateway, addresses, account, armed_by, armed_at, since, paused, sum)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (name) DO UPDATE SET file = excluded.file, digest = excluded.digest, gateway = excluded.gateway,
             addresses = excluded.addresses, account = excluded.account, armed_by = excluded.armed_by,
             armed_at = excluded.armed_at, since = excluded.since, paused = excluded.paused, sum = excluded.sum",
    )
    .bind(name)
    .bind(file)
    .bind(digest)
    .bind(gateway)
    .bind(addresses)
    .bind(account)
    .bind(by)
    .bind(armed_at.as_microsecond())
    .bind(since.as_microsecond())
    .bind(paused)
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(())
}

async fn armed(reader: &mut Connection) -> Result<Vec<Result<ArmedSchedule, DamagedSchedule>>, Failure> {
    let rows = query("SELECT * FROM schedules ORDER BY name").fetch_all(reader).await?;
    let stored = |row: &Record| {
        let damaged = |error| DamagedSchedule { name: readable(row, "name"), file: readable(row, "file"), error };
        Ok(intact(schedule(row))?.map_err(damaged))
    };
    rows.iter().map(stored).collect()
}

async fn change(
    connection: &mut Connection,
    name: String,
    change: impl FnOnce(&mut ArmedSchedule) + Send,
) -> Result<bool, Failure> {
    let row = query("SELECT * FROM schedules WHERE name = $1").bind(name).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(false) };
    let mut schedule = schedule(&row)?;
    change(&mut schedule);
    arm(connection, schedule).await?;
    Ok(true)
}

async fn disarm(connection: &mut Connection, name: String) -> Result<bool, Failure> {
    let gone = query("DELETE FROM schedules WHERE name = $1").bind(name).execute(connection).await?;
    Ok(gone.rows_affected() > 0)
}

/// The last occurrences of a schedule until a moment, the last first.
async fn last(
    reader: &mut Connection,
    schedule: &str,
    until: Timestamp,
    latest: u32,
) -> Result<Vec<Result<OccurrenceRecord, DamagedOccurrence>>, Failure> {
    let found =
        query("SELECT * FROM occurrences WHERE schedule = $1 AND at <= $2 ORDER BY at DESC, nominal DESC LIMIT $3")
            .bind(schedule)
            .bind(until.as_microsecond())
            .bind(i64::from(latest))
            .fetch_all(reader)
            .await?;
    let stored = |row: &Record| {
        let at = row.try_get("at").ok().and_then(|at| instant(at).ok());
        Ok(intact(record(row))?.map_err(|error| DamagedOccurrence { at, error }))
    };
    found.iter().map(stored).collect()
}

/// The occurrence that began a run.
async fn of_run(reader: &mut Connection, run: RunId) -> Result<Option<OccurrenceRecord>, Failure> {
    let found = query("SELECT * FROM occurrences WHERE run = $1").bind(run.0).fetch_optional(reader).await?;
    found.as_ref().map(record).transpose()
}

/// What became of an occurrence, and whether the run that it began was opened.
async fn standing(connection: &mut Connection, key: &OccurrenceKey) -> Result<(Option<Fate>, bool), Failure> {
    let fate = recorded(&mut *connection, key).await?;
    let Some(Fate::Fired(run)) = fate else { return Ok((fate, false)) };
    let progress: Option<String> =
        scalar("SELECT progress FROM runs WHERE key = $1").bind(run.0).fetch_optional(connection).await?;
    let what = || format!("the run of schedule {} for {}", key.schedule, key.nominal);
    let progress = progress.ok_or_else(|| LedgerError::Damaged { what: what() })?;
    Ok((fate, progress != PREPARING))
}

async fn fire(
    connection: &mut Connection,
    new: NewRun,
    key: OccurrenceKey,
    at: Timestamp,
) -> Result<Option<Run>, Failure> {
    let (before, was_opened) = standing(&mut *connection, &key).await?;
    if !may_fire(before.as_ref(), was_opened) {
        return Ok(None);
    }
    let run = runs::create(&mut *connection, new, Stage::Preparing).await?;
    keep(connection, &key, at, &Fate::Fired(run.key)).await?;
    Ok(Some(run))
}

async fn give_up(connection: &mut Connection, key: OccurrenceKey, at: Timestamp, fate: Fate) -> Result<bool, Failure> {
    let (Some(Fate::Fired(_)), false) = standing(&mut *connection, &key).await? else { return Ok(false) };
    keep(connection, &key, at, &fate).await?;
    Ok(true)
}

async fn skip(connection: &mut Connection, key: OccurrenceKey, at: Timestamp, fate: Fate) -> Result<bool, Failure> {
    if recorded(&mut *connection, &key).await?.is_some() {
        return Ok(false);
    }
    keep(connection, &key, at, &fate).await?;
    Ok(true)
}

/// Keeps what became of an occurrence, in the place of what was kept before.
async fn keep(connection: &mut Connection, key: &OccurrenceKey, at: Timestamp, fate: &Fate) -> Result<(), Failure> {
    let (run, reason) = match fate {
        Fate::Fired(run) => (Some(run.0), None),
        Fate::Skipped(reason) => (None, Some(reason)),
    };
    query(
        "INSERT INTO occurrences (schedule, nominal, zone, at, run, reason, sum) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (schedule, nominal, zone) DO UPDATE SET at = excluded.at, run = excluded.run,
             reason = excluded.reason, sum = excluded.sum",
    )
    .bind(&key.schedule)
    .bind(&key.nominal)
    .bind(&key.zone)
    .bind(at.as_microsecond())
    .bind(run)
    .bind(reason)
    .bind(occurrence_sum(key, at, fate).finish())
    .execute(connection)
    .await?;
    Ok(())
}

/// What became of an occurrence.
async fn recorded(connection: &mut Connection, key: &OccurrenceKey) -> Result<Option<Fate>, Failure> {
    let row = query("SELECT * FROM occurrences WHERE schedule = $1 AND nominal = $2 AND zone = $3")
        .bind(&key.schedule)
        .bind(&key.nominal)
        .bind(&key.zone)
        .fetch_optional(connection)
        .await?;
    row.map(|row| record(&row).map(|record| record.fate)).transpose()
}

pub(super) fn record(row: &Record) -> Result<OccurrenceRecord, Failure> {
    let (schedule, nominal) = (row.try_get("schedule")?, row.try_get("nominal")?);
    let key = OccurrenceKey { schedule, nominal, zone: row.try_get("zone")? };
    let at = instant(row.try_get("at")?)?;
    let (run, reason): (Option<i64>, Option<String>) = (row.try_get("run")?, row.try_get("reason")?);
    let fate = run.map_or_else(|| Fate::Skipped(reason.unwrap_or_default()), |run| Fate::Fired(RunId(run)));
    if !occurrence_sum(&key, at, &fate).agrees(row.try_get("sum")?) {
        let what = format!("the record of schedule {} for {}", key.schedule, key.nominal);
        return Err(LedgerError::Damaged { what }.into());
    }
    Ok(OccurrenceRecord { key, at, fate })
}

pub(super) fn schedule(row: &Record) -> Result<ArmedSchedule, Failure> {
    let schedule = ArmedSchedule {
        name: row.try_get("name")?,
        file: row.try_get("file")?,
        digest: row.try_get("digest")?,
        gateway: row.try_get("gateway")?,
        addresses: row.try_get("addresses")?,
        account: row.try_get("account")?,
        by: row.try_get("armed_by")?,
        armed_at: instant(row.try_get("armed_at")?)?,
        since: instant(row.try_get("since")?)?,
        paused: row.try_get("paused")?,
    };
    match schedule_sum(&schedule).agrees(row.try_get("sum")?) {
        true => Ok(schedule),
        false => Err(LedgerError::Damaged { what: format!("the schedule {}", schedule.name) }.into()),
    }
}

fn schedule_sum(schedule: &ArmedSchedule) -> Checksum {
    let ArmedSchedule { name, file, digest, gateway, addresses, account, by, armed_at, since, paused } = schedule;
    let texts = [name, file, digest, gateway, addresses, account, by];
    let sum = texts.into_iter().fold(Checksum::of("schedules"), |sum, text| sum.text(text));
    sum.number(armed_at.as_microsecond()).number(since.as_microsecond()).number(*paused)
}

fn occurrence_sum(key: &OccurrenceKey, at: Timestamp, fate: &Fate) -> Checksum {
    let OccurrenceKey { schedule, nominal, zone } = key;
    let sum = Checksum::of("occurrences").text(schedule).text(nominal).text(zone).number(at.as_microsecond());
    match fate {
        Fate::Fired(run) => sum.number(run.0),
        Fate::Skipped(reason) => sum.text(reason),
    }
}
