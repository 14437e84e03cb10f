//! Queries about armed schedules and their occurrences.

use jiff::Timestamp;
use sqlx::sqlite::{SqliteExecutor, SqliteRow};
use sqlx::{Row as _, SqliteConnection, SqlitePool};

use super::SqliteLedger;
use super::change::Failure;
use super::checksum::Checksum;
use super::runs::{self, PREPARING, Stage, instant};
use crate::ledger::rules::may_fire;
use crate::ledger::{
    ArmedSchedule, Fate, LedgerError, LedgerFuture, NewRun, OccurrenceKey, OccurrenceRecord, Run, RunId, Schedules,
};

impl Schedules for SqliteLedger {
    fn arm(&self, schedule: ArmedSchedule) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(arm(connection, schedule))))
    }

    fn schedules(&self) -> LedgerFuture<'_, Vec<ArmedSchedule>> {
        Box::pin(async move { armed(&self.readers).await.map_err(|failure| self.read_error(failure)) })
    }

    fn pause<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |connection, _| Box::pin(change(connection, name, |schedule| schedule.paused = true))))
    }

    fn resume<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |connection, _| {
            Box::pin(change(connection, name, move |schedule| (schedule.paused, schedule.since) = (false, since)))
        }))
    }

    fn disarm<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool> {
        let name = name.to_owned();
        Box::pin(self.write(move |connection, _| Box::pin(disarm(connection, name))))
    }

    fn fire<'a>(&'a self, new: &'a NewRun, key: &'a OccurrenceKey, at: Timestamp) -> LedgerFuture<'a, Option<Run>> {
        let (new, key) = (new.clone(), key.clone());
        Box::pin(async move {
            self.fit_for_sending().await?;
            self.write(move |connection, _| Box::pin(fire(connection, new, key, at))).await
        })
    }

    fn skip<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        let (key, fate) = (key.clone(), Fate::Skipped(reason.to_owned()));
        Box::pin(self.write(move |connection, _| Box::pin(skip(connection, key, at, fate))))
    }

    fn give_up<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool> {
        let (key, fate) = (key.clone(), Fate::Skipped(reason.to_owned()));
        Box::pin(self.write(move |connection, _| Box::pin(give_up(connection, key, at, fate))))
    }

    fn occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<OccurrenceRecord>> {
        Box::pin(async move {
            let found = sqlx::query(
                "SELECT * FROM occurrences WHERE schedule = ? AND at <= ? ORDER BY at DESC, nominal DESC LIMIT ?",
            )
            .bind(schedule)
            .bind(until.as_microsecond())
            .bind(latest)
            .fetch_all(&self.readers)
            .await;
            let rows = found.map_err(|error| self.read_error(error.into()))?;
            rows.iter().map(|row| record(row).map_err(|failure| self.read_error(failure))).collect()
        })
    }

    fn occurrence_of(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>> {
        Box::pin(async move {
            let found =
                sqlx::query("SELECT * FROM occurrences WHERE run = ?").bind(run.0).fetch_optional(&self.readers).await;
            let row = found.map_err(|error| self.read_error(error.into()))?;
            row.map(|row| record(&row)).transpose().map_err(|failure| self.read_error(failure))
        })
    }

    fn occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<Fate>> {
        Box::pin(async move { recorded(&self.readers, key).await.map_err(|failure| self.read_error(failure)) })
    }
}

async fn arm(connection: &mut SqliteConnection, schedule: ArmedSchedule) -> Result<(), Failure> {
    let sum = schedule_sum(&schedule).finish();
    let ArmedSchedule { name, file, digest, gateway, addresses, account, by, armed_at, since, paused } = schedule;
    sqlx::query(
        "INSERT OR REPLACE INTO schedules
             (name, file, digest, gateway, addresses, account, armed_by, armed_at, since, paused, sum)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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

async fn armed(readers: &SqlitePool) -> Result<Vec<ArmedSchedule>, Failure> {
    let rows = sqlx::query("SELECT * FROM schedules ORDER BY name").fetch_all(readers).await?;
    rows.iter().map(schedule).collect()
}

async fn change(
    connection: &mut SqliteConnection,
    name: String,
    change: impl FnOnce(&mut ArmedSchedule) + Send,
) -> Result<bool, Failure> {
    let row = sqlx::query("SELECT * FROM schedules WHERE name = ?").bind(name).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(false) };
    let mut schedule = schedule(&row)?;
    change(&mut schedule);
    arm(connection, schedule).await?;
    Ok(true)
}

async fn disarm(connection: &mut SqliteConnection, name: String) -> Result<bool, Failure> {
    let gone = sqlx::query("DELETE FROM schedules WHERE name = ?").bind(name).execute(connection).await?;
    Ok(gone.rows_affected() > 0)
}

/// What became of an occurrence, and whether the run that it began was opened.
async fn standing(connection: &mut SqliteConnection, key: &OccurrenceKey) -> Result<(Option<Fate>, bool), Failure> {
    let fate = recorded(&mut *connection, key).await?;
    let Some(Fate::Fired(run)) = fate else { return Ok((fate, false)) };
    let progress: String =
        sqlx::query_scalar("SELECT progress FROM runs WHERE key = ?").bind(run.0).fetch_one(connection).await?;
    Ok((fate, progress != PREPARING))
}

async fn fire(
    connection: &mut SqliteConnection,
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

async fn give_up(
    connection: &mut SqliteConnection,
    key: OccurrenceKey,
    at: Timestamp,
    fate: Fate,
) -> Result<bool, Failure> {
    let (Some(Fate::Fired(_)), false) = standing(&mut *connection, &key).await? else { return Ok(false) };
    keep(connection, &key, at, &fate).await?;
    Ok(true)
}

async fn skip(
    connection: &mut SqliteConnection,
    key: OccurrenceKey,
    at: Timestamp,
    fate: Fate,
) -> Result<bool, Failure> {
    if recorded(&mut *connection, &key).await?.is_some() {
        return Ok(false);
    }
    keep(connection, &key, at, &fate).await?;
    Ok(true)
}

/// Keeps what became of an occurrence, in the place of what was kept before.
async fn keep(
    connection: &mut SqliteConnection,
    key: &OccurrenceKey,
    at: Timestamp,
    fate: &Fate,
) -> Result<(), Failure> {
    let (run, reason) = match fate {
        Fate::Fired(run) => (Some(run.0), None),
        Fate::Skipped(reason) => (None, Some(reason)),
    };
    sqlx::query(
        "INSERT OR REPLACE INTO occurrences (schedule, nominal, zone, at, run, reason, sum) VALUES (?, ?, ?, ?, ?, ?, ?)",
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
async fn recorded(connection: impl SqliteExecutor<'_>, key: &OccurrenceKey) -> Result<Option<Fate>, Failure> {
    let row = sqlx::query("SELECT * FROM occurrences WHERE schedule = ? AND nominal = ? AND zone = ?")
        .bind(&key.schedule)
        .bind(&key.nominal)
        .bind(&key.zone)
        .fetch_optional(connection)
        .await?;
    row.map(|row| record(&row).map(|record| record.fate)).transpose()
}

fn record(row: &SqliteRow) -> Result<OccurrenceRecord, Failure> {
    let (schedule, nominal) = (row.try_get("schedule")?, row.try_get("nominal")?);
    let key = OccurrenceKey { schedule, nominal, zone: row.try_get("zone")? };
    let at = instant(row.try_get("at")?)?;
    let (run, reason): (Option<i64>, Option<String>) = (row.try_get("run")?, row.try_get("reason")?);
    let fate = run.map_or_else(|| Fate::Skipped(reason.unwrap_or_default()), |run| Fate::Fired(RunId(run)));
    if !occurrence_sum(&key, at, &fate).agrees(row.try_get("sum")?) {
        let what = format!("the record of the occurrence of {} at {}", key.schedule, key.nominal);
        return Err(LedgerError::Damaged { what }.into());
    }
    Ok(OccurrenceRecord { key, at, fate })
}

fn schedule(row: &SqliteRow) -> Result<ArmedSchedule, Failure> {
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
