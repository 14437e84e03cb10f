//! A look at each record that no run and no suppression list has: schedules, occurrences, plans, approvals and others.

use serde_json::Value;
use sqlx::Row as _;

use super::change::{StatementError, capture_damage};
use super::dialect::{Connection, Record};
use super::notifications;
use super::statement::{query, read_lossy};
use super::{approval_rules, forgetting, pace, plans, schedules};
use crate::ledger::{DamagedRecord, LedgerError, RecordKind};

/// Approvals, each with every use of it.
const SELECT_APPROVALS: &str = "
    SELECT approvals.*, used.at AS used_at, used.run AS used_run, used.sum AS used_sum FROM approvals
    LEFT JOIN approval_uses used ON used.token = approvals.token ORDER BY approvals.key, used.key";

/// The damaged records; of approval rules only if the tables have a place for them.
pub(super) async fn find_damaged_records(
    reader: &mut Connection,
    with_rules: bool,
) -> Result<Vec<DamagedRecord>, StatementError> {
    let mut damaged = Vec::new();
    for row in fetch_rows(reader, "SELECT * FROM schedules ORDER BY name").await? {
        let (name, file) = (read_lossy(&row, "name"), read_lossy(&row, "file"));
        let what = format!("the schedule {name}");
        record_damage(&mut damaged, schedules::schedule_from_row(&row), what, RecordKind::Schedule { name, file })?;
    }
    for row in fetch_rows(reader, "SELECT * FROM occurrences ORDER BY schedule, at").await? {
        let schedule = read_lossy(&row, "schedule");
        let what = format!("the record of schedule {schedule} for {}", read_lossy(&row, "nominal"));
        record_damage(&mut damaged, schedules::occurrence_from_row(&row), what, RecordKind::Occurrence { schedule })?;
    }
    for row in fetch_rows(reader, "SELECT * FROM plans ORDER BY at").await? {
        let what = format!("the plan {}", read_lossy(&row, "digest"));
        record_damage(&mut damaged, plans::plan_from_row(&row), what, RecordKind::Plan)?;
    }
    for row in fetch_rows(reader, SELECT_APPROVALS).await? {
        let what = format!("an approval of plan {}", read_lossy(&row, "digest"));
        record_damage(&mut damaged, plans::approval_from_row(&row), what, RecordKind::Approval)?;
    }
    let stray = "SELECT token FROM approval_uses WHERE token NOT IN (SELECT token FROM approvals)";
    if !fetch_rows(reader, stray).await?.is_empty() {
        let what = "the usage record of a missing approval".to_owned();
        let error = LedgerError::Damaged { what: what.clone() };
        record_damage::<()>(&mut damaged, Err(error.into()), what, RecordKind::Approval)?;
    }
    let rules = if with_rules { approval_rules::list_stored_rules(&mut *reader).await? } else { Vec::new() };
    for (record, rule) in rules {
        record_damage(&mut damaged, rule, format!("the approval rule for account {record}"), RecordKind::ApprovalRule)?;
    }
    for row in fetch_rows(reader, "SELECT * FROM notifications ORDER BY key").await? {
        let what = format!("notification {}", row.try_get::<i64, _>("key")?);
        record_damage(&mut damaged, check_notification(&row), what, RecordKind::Notification)?;
    }
    let (rates, numbers) = (pace::list_paces(&mut *reader).await, forgetting::load_number_key(reader).await);
    record_damage(&mut damaged, rates, "the rate limit of an account".to_owned(), RecordKind::Account)?;
    record_damage(&mut damaged, numbers, "the key for forgotten numbers".to_owned(), RecordKind::Forgetting)?;
    Ok(damaged)
}

async fn fetch_rows(reader: &mut Connection, statement: &'static str) -> Result<Vec<Record>, StatementError> {
    Ok(query(statement).fetch_all(reader).await?)
}

/// A notification that can be read, with the JSON of what is said and how.
fn check_notification(row: &Record) -> Result<(), StatementError> {
    let notification = notifications::notification_from_row(row)?;
    let unreadable = |error: serde_json::Error| LedgerError::Unreadable(error.to_string());
    serde_json::from_str::<Value>(&notification.content.target).map_err(unreadable)?;
    serde_json::from_str::<Value>(&notification.content.notice).map_err(unreadable)?;
    Ok(())
}

/// Adds a record, known by these words, that is damaged.
fn record_damage<T>(
    damaged: &mut Vec<DamagedRecord>,
    read: Result<T, StatementError>,
    record: String,
    kind: RecordKind,
) -> Result<(), StatementError> {
    let Err(error) = capture_damage(read)? else { return Ok(()) };
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
