//! A look at each record that no run and no suppression list has: schedules, occurrences, plans, approvals and others.

use serde_json::Value;
use sqlx::Row as _;

use super::change::{Failure, intact};
use super::dialect::{Connection, Record};
use super::notifications;
use super::statement::{query, readable};
use super::{approval_rules, forgetting, pace, plans, schedules};
use crate::ledger::{DamagedRecord, LedgerError, RecordKind};

/// Approvals, each with every use of it.
const APPROVALS: &str = "
    SELECT approvals.*, used.at AS used_at, used.run AS used_run, used.sum AS used_sum FROM approvals
    LEFT JOIN approval_uses used ON used.token = approvals.token ORDER BY approvals.key, used.key";

/// The damaged records; of approval rules only if the tables have a place for them.
pub(super) async fn damaged_records(reader: &mut Connection, with_rules: bool) -> Result<Vec<DamagedRecord>, Failure> {
    let mut damaged = Vec::new();
    for row in all(reader, "SELECT * FROM schedules ORDER BY name").await? {
        let (name, file) = (readable(&row, "name"), readable(&row, "file"));
        let what = format!("the schedule {name}");
        note(&mut damaged, schedules::schedule(&row), what, RecordKind::Schedule { name, file })?;
    }
    for row in all(reader, "SELECT * FROM occurrences ORDER BY schedule, at").await? {
        let schedule = readable(&row, "schedule");
        let what = format!("the record of schedule {schedule} for {}", readable(&row, "nominal"));
        note(&mut damaged, schedules::record(&row), what, RecordKind::Occurrence { schedule })?;
    }
    for row in all(reader, "SELECT * FROM plans ORDER BY at").await? {
        let what = format!("the plan {}", readable(&row, "digest"));
        note(&mut damaged, plans::plan(&row), what, RecordKind::Plan)?;
    }
    for row in all(reader, APPROVALS).await? {
        let what = format!("an approval of plan {}", readable(&row, "digest"));
        note(&mut damaged, plans::approval(&row), what, RecordKind::Approval)?;
    }
    let stray = "SELECT token FROM approval_uses WHERE token NOT IN (SELECT token FROM approvals)";
    if !all(reader, stray).await?.is_empty() {
        let what = "the usage record of a missing approval".to_owned();
        let error = LedgerError::Damaged { what: what.clone() };
        note::<()>(&mut damaged, Err(error.into()), what, RecordKind::Approval)?;
    }
    let rules = if with_rules { approval_rules::stored(&mut *reader).await? } else { Vec::new() };
    for (record, rule) in rules {
        note(&mut damaged, rule, format!("the approval rule for account {record}"), RecordKind::ApprovalRule)?;
    }
    for row in all(reader, "SELECT * FROM notifications ORDER BY key").await? {
        let what = format!("notification {}", row.try_get::<i64, _>("key")?);
        note(&mut damaged, notification(&row), what, RecordKind::Notification)?;
    }
    let (rates, numbers) = (pace::all(&mut *reader).await, forgetting::key(reader).await);
    note(&mut damaged, rates, "the rate limit of an account".to_owned(), RecordKind::Account)?;
    note(&mut damaged, numbers, "the key for forgotten numbers".to_owned(), RecordKind::Forgetting)?;
    Ok(damaged)
}

async fn all(reader: &mut Connection, statement: &'static str) -> Result<Vec<Record>, Failure> {
    Ok(query(statement).fetch_all(reader).await?)
}

/// A notification that can be read, with the JSON of what is said and how.
fn notification(row: &Record) -> Result<(), Failure> {
    let notification = notifications::read(row)?;
    let unreadable = |error: serde_json::Error| LedgerError::Unreadable(error.to_string());
    serde_json::from_str::<Value>(&notification.what.way).map_err(unreadable)?;
    serde_json::from_str::<Value>(&notification.what.notice).map_err(unreadable)?;
    Ok(())
}

/// Adds a record, known by these words, that is damaged.
fn note<T>(
    damaged: &mut Vec<DamagedRecord>,
    read: Result<T, Failure>,
    record: String,
    kind: RecordKind,
) -> Result<(), Failure> {
    let Err(error) = intact(read)? else { return Ok(()) };
    let what = match error {
        LedgerError::Damaged { .. } => format!("{record} is corrupt"),
        error => format!("{record} cannot be read: {}", error.reason()),
    };
    let found = DamagedRecord { what, kind };
    if !damaged.contains(&found) {
        damaged.push(found);
    }
    Ok(())
}
