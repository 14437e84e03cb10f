//! Active schedules and their occurrences in the tables.

use jiff::Timestamp;
use sqlx::Row as _;

use super::dialect::{Adapter, Connection, Record};
use super::runs::{self, InitialRunState, PREPARING, timestamp_from_micros};
use super::{StatementError, capture_damage, query, read_ledger, read_lossy, scalar};
use crate::encoding::Checksum;
use crate::rules::{may_fire, may_skip};
use crate::{
    ActiveSchedule, DamagedOccurrence, DamagedSchedule, LedgerError, LedgerFuture, NewRun, OccurrenceFilter,
    OccurrenceKey, OccurrenceOutcome, OccurrenceRecord, Run, RunId, ScheduleOrder, ScheduleStore, ScheduleUpdate,
    ScheduledOccurrence, SkipCondition,
};

impl ScheduleStore for Adapter {
    fn update_schedules(&self, change: ScheduleUpdate) -> LedgerFuture<'_, bool> {
        Box::pin(self.write(move |connection, _| {
            let change = change.clone();
            Box::pin(async move {
                match change {
                    ScheduleUpdate::Activate(schedule) => store_schedule(connection, schedule).await.map(|()| true),
                    ScheduleUpdate::Order { name, order } => change_schedule(connection, name, order).await,
                    ScheduleUpdate::Skip { occurrence, reason, condition } => {
                        skip_occurrence(connection, occurrence, reason, condition).await
                    }
                }
            })
        }))
    }

    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>> {
        Box::pin(async move { read_ledger!(self, load_schedules) })
    }

    fn list_occurrences<'a>(
        &'a self,
        filter: OccurrenceFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>> {
        Box::pin(async move { read_ledger!(self, list_occurrences, filter) })
    }
}

async fn store_schedule(connection: &mut Connection, schedule: ActiveSchedule) -> Result<(), StatementError> {
    let sum = schedule_checksum(&schedule).finish();
    let ActiveSchedule { name, file, digest, gateway, addresses, account, by, activated_at, since, paused } = schedule;
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
    .bind(activated_at.as_microsecond())
    .bind(since.as_microsecond())
    .bind(paused)
    .bind(sum)
    .execute(connection)
    .await?;
    Ok(())
}

async fn load_schedules(
    reader: &mut Connection,
) -> Result<Vec<Result<ActiveSchedule, DamagedSchedule>>, StatementError> {
    let rows = query("SELECT * FROM schedules ORDER BY name").fetch_all(reader).await?;
    let read_schedule = |row: &Record| {
        let damaged = |error| DamagedSchedule { name: read_lossy(row, "name"), file: read_lossy(row, "file"), error };
        Ok(capture_damage(schedule_from_row(row))?.map_err(damaged))
    };
    rows.iter().map(read_schedule).collect()
}

/// Pauses, resumes or removes a schedule. Returns `false` if no schedule has this name.
async fn change_schedule(
    connection: &mut Connection,
    name: String,
    order: ScheduleOrder,
) -> Result<bool, StatementError> {
    // A damaged schedule can be removed, so it is not read.
    if order == ScheduleOrder::Remove {
        let deleted = query("DELETE FROM schedules WHERE name = $1").bind(name).execute(connection).await?;
        return Ok(deleted.rows_affected() > 0);
    }
    let row = query("SELECT * FROM schedules WHERE name = $1").bind(name).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(false) };
    if let Some(changed) = order.apply(schedule_from_row(&row)?) {
        store_schedule(connection, changed).await?;
    }
    Ok(true)
}

/// The recorded occurrences that match the filter, latest first.
async fn list_occurrences(
    reader: &mut Connection,
    filter: OccurrenceFilter<'_>,
) -> Result<Vec<Result<OccurrenceRecord, DamagedOccurrence>>, StatementError> {
    let statement = match filter {
        OccurrenceFilter::Latest { schedule, until, most } => {
            query("SELECT * FROM occurrences WHERE schedule = $1 AND at <= $2 ORDER BY at DESC, nominal DESC LIMIT $3")
                .bind(schedule)
                .bind(until.as_microsecond())
                .bind(i64::from(most))
        }
        OccurrenceFilter::Key(OccurrenceKey { schedule, nominal, zone }) => {
            query("SELECT * FROM occurrences WHERE schedule = $1 AND nominal = $2 AND zone = $3")
                .bind(schedule)
                .bind(nominal)
                .bind(zone)
        }
        OccurrenceFilter::Run(run) => query("SELECT * FROM occurrences WHERE run = $1").bind(run.0),
    };
    let rows = statement.fetch_all(reader).await?;
    let read_occurrence = |row: &Record| {
        let at = row.try_get("at").ok().and_then(|at| timestamp_from_micros(at).ok());
        Ok(capture_damage(occurrence_from_row(row))?.map_err(|error| DamagedOccurrence { at, error }))
    };
    rows.iter().map(read_occurrence).collect()
}

/// The outcome of an occurrence, and whether its run was opened.
async fn find_outcome_and_run_state(
    connection: &mut Connection,
    key: &OccurrenceKey,
) -> Result<(Option<OccurrenceOutcome>, bool), StatementError> {
    let first = list_occurrences(&mut *connection, OccurrenceFilter::Key(key)).await?.into_iter().next();
    let outcome = first.transpose().map_err(|damaged| damaged.error)?.map(|record| record.outcome);
    let Some(OccurrenceOutcome::Fired(run)) = outcome else { return Ok((outcome, false)) };
    let progress: Option<String> =
        scalar("SELECT progress FROM runs WHERE key = $1").bind(run.0).fetch_optional(connection).await?;
    let describe = || format!("the run of schedule {} for {}", key.schedule, key.nominal);
    let progress = progress.ok_or_else(|| LedgerError::Damaged { what: describe() })?;
    Ok((outcome, progress != PREPARING))
}

/// Creates the run of an occurrence, and records the run as the outcome. `None` if the occurrence must not fire.
pub(super) async fn fire_occurrence(
    connection: &mut Connection,
    new: NewRun,
    ScheduledOccurrence { key, at }: &ScheduledOccurrence,
) -> Result<Option<Run>, StatementError> {
    let (before, was_opened) = find_outcome_and_run_state(&mut *connection, key).await?;
    if !may_fire(before.as_ref(), was_opened) {
        return Ok(None);
    }
    let run = runs::insert_run(&mut *connection, new, InitialRunState::Preparing).await?;
    store_outcome(connection, key, *at, &OccurrenceOutcome::Fired(run.key)).await?;
    Ok(Some(run))
}

/// Records an occurrence as skipped if the condition permits it. Returns whether the occurrence was recorded.
async fn skip_occurrence(
    connection: &mut Connection,
    ScheduledOccurrence { key, at }: ScheduledOccurrence,
    reason: String,
    condition: SkipCondition,
) -> Result<bool, StatementError> {
    let (before, was_opened) = find_outcome_and_run_state(&mut *connection, &key).await?;
    let skips = may_skip(condition, before.as_ref(), was_opened);
    if skips {
        store_outcome(connection, &key, at, &OccurrenceOutcome::Skipped(reason)).await?;
    }
    Ok(skips)
}

/// Stores the outcome of an occurrence, and replaces an earlier outcome.
async fn store_outcome(
    connection: &mut Connection,
    key: &OccurrenceKey,
    at: Timestamp,
    outcome: &OccurrenceOutcome,
) -> Result<(), StatementError> {
    let (run, reason) = match outcome {
        OccurrenceOutcome::Fired(run) => (Some(run.0), None),
        OccurrenceOutcome::Skipped(reason) => (None, Some(reason)),
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
    .bind(occurrence_checksum(key, at, outcome).finish())
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) fn occurrence_from_row(row: &Record) -> Result<OccurrenceRecord, StatementError> {
    let (schedule, nominal) = (row.try_get("schedule")?, row.try_get("nominal")?);
    let key = OccurrenceKey { schedule, nominal, zone: row.try_get("zone")? };
    let at = timestamp_from_micros(row.try_get("at")?)?;
    let (run, reason): (Option<i64>, Option<String>) = (row.try_get("run")?, row.try_get("reason")?);
    let outcome = run.map_or_else(
        || OccurrenceOutcome::Skipped(reason.unwrap_or_default()),
        |run| OccurrenceOutcome::Fired(RunId(run)),
    );
    if !occurrence_checksum(&key, at, &outcome).matches(row.try_get("sum")?) {
        let record = format!("the record of schedule {} for {}", key.schedule, key.nominal);
        return Err(LedgerError::Damaged { what: record }.into());
    }
    Ok(OccurrenceRecord { key, at, outcome })
}

pub(super) fn schedule_from_row(row: &Record) -> Result<ActiveSchedule, StatementError> {
    let schedule = ActiveSchedule {
        name: row.try_get("name")?,
        file: row.try_get("file")?,
        digest: row.try_get("digest")?,
        gateway: row.try_get("gateway")?,
        addresses: row.try_get("addresses")?,
        account: row.try_get("account")?,
        by: row.try_get("armed_by")?,
        activated_at: timestamp_from_micros(row.try_get("armed_at")?)?,
        since: timestamp_from_micros(row.try_get("since")?)?,
        paused: row.try_get("paused")?,
    };
    match schedule_checksum(&schedule).matches(row.try_get("sum")?) {
        true => Ok(schedule),
        false => Err(LedgerError::Damaged { what: format!("the schedule {}", schedule.name) }.into()),
    }
}

fn schedule_checksum(schedule: &ActiveSchedule) -> Checksum {
    let ActiveSchedule { name, file, digest, gateway, addresses, account, by, activated_at, since, paused } = schedule;
    let texts = [name, file, digest, gateway, addresses, account, by];
    let sum = texts.into_iter().fold(Checksum::for_table("schedules"), |sum, text| sum.with_text(text));
    sum.with_number(activated_at.as_microsecond()).with_number(since.as_microsecond()).with_number(*paused)
}

fn occurrence_checksum(key: &OccurrenceKey, at: Timestamp, outcome: &OccurrenceOutcome) -> Checksum {
    let OccurrenceKey { schedule, nominal, zone } = key;
    let sum = Checksum::for_table("occurrences")
        .with_text(schedule)
        .with_text(nominal)
        .with_text(zone)
        .with_number(at.as_microsecond());
    match outcome {
        OccurrenceOutcome::Fired(run) => sum.with_number(run.0),
        OccurrenceOutcome::Skipped(reason) => sum.with_text(reason),
    }
}
