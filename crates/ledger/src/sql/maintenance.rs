//! Maintenance: integrity checks, damaged records, backup state and closing.

use futures_util::future::BoxFuture;
use serde_json::Value;
use sqlx::Row as _;

use super::dialect::{self, Adapter, Connection, Record};
use super::runs::timestamp_from_micros;
use super::{StatementError, capture_damage, query, read_ledger, read_lossy};
use super::{approvals, consents, forgetting, limits, notifications, schedules};
use crate::{
    AccountRateLimit, Backup, DamagedRecord, IntegrityReport, LedgerError, LedgerFuture, LedgerMaintenance,
    LedgerProperties, LedgerRisks, RecordKind,
};

impl LedgerMaintenance for Adapter {
    fn properties(&self) -> LedgerProperties {
        LedgerProperties {
            location: Adapter::location(self),
            shared: dialect::SHARED,
            lacks_high_water_mark: self.has_no_mark(),
            stores_consents: self.supports_consents(),
        }
    }

    fn check_integrity(&self) -> BoxFuture<'_, IntegrityReport> {
        Box::pin(async move {
            let storage = self.ensure_can_send().await;
            let (with_rules, with_consents) = (self.supports_approval_rules(), self.supports_consents());
            IntegrityReport { storage, records: read_ledger!(self, find_damaged_records, with_rules, with_consents) }
        })
    }

    fn list_rate_limits(&self) -> LedgerFuture<'_, Vec<(String, AccountRateLimit)>> {
        Box::pin(async move { read_ledger!(self, limits::list_rate_limits) })
    }

    fn load_risks(&self) -> LedgerFuture<'_, LedgerRisks> {
        Box::pin(async move {
            let backup = read_ledger!(self, load_backup)?;
            Ok(LedgerRisks { backup, unconfirmed_replicas: self.count_unconfirmed_replicas().await? })
        })
    }

    fn mark_restored(&self) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(|connection, now| {
            Box::pin(async move {
                query("UPDATE backup SET restored_at = $1").bind(now.0).execute(connection).await?;
                Ok(())
            })
        }))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Adapter::close(self))
    }
}

async fn load_backup(reader: &mut Connection) -> Result<Option<Backup>, StatementError> {
    let known = query("SELECT made_at, restored_at FROM backup").fetch_optional(reader).await?;
    let Some(row) = known else { return Ok(None) };
    let restored_at: Option<i64> = row.try_get("restored_at")?;
    let made_at = timestamp_from_micros(row.try_get("made_at")?)?;
    Ok(Some(Backup { made_at, restored_at: restored_at.map(timestamp_from_micros).transpose()? }))
}

/// Selects approvals, each with all its uses.
const SELECT_ALL_USES: &str = "
    SELECT approvals.*, used.at AS used_at, used.run AS used_run, used.sum AS used_sum FROM approvals
    LEFT JOIN approval_uses used ON used.token = approvals.token ORDER BY approvals.key, used.key";

/// Finds damaged evidence of consent, and damaged records outside runs and the suppression list. `with_rules` and
/// `with_consents` say whether the tables store approval rules and evidence of consent.
pub(super) async fn find_damaged_records(
    reader: &mut Connection,
    with_rules: bool,
    with_consents: bool,
) -> Result<Vec<DamagedRecord>, StatementError> {
    let mut damaged = Vec::new();
    for row in fetch_rows(reader, "SELECT * FROM schedules ORDER BY name").await? {
        let (name, file) = (read_lossy(&row, "name"), read_lossy(&row, "file"));
        let record = format!("the schedule {name}");
        record_damage(&mut damaged, schedules::schedule_from_row(&row), record, RecordKind::Schedule { name, file })?;
    }
    for row in fetch_rows(reader, "SELECT * FROM occurrences ORDER BY schedule, at").await? {
        let schedule = read_lossy(&row, "schedule");
        let record = format!("the record of schedule {schedule} for {}", read_lossy(&row, "nominal"));
        record_damage(&mut damaged, schedules::occurrence_from_row(&row), record, RecordKind::Occurrence { schedule })?;
    }
    for row in fetch_rows(reader, "SELECT * FROM plans ORDER BY at").await? {
        let record = format!("the plan {}", read_lossy(&row, "digest"));
        record_damage(&mut damaged, approvals::plan_from_row(&row), record, RecordKind::Plan)?;
    }
    for row in fetch_rows(reader, SELECT_ALL_USES).await? {
        let record = format!("an approval of plan {}", read_lossy(&row, "digest"));
        record_damage(&mut damaged, approvals::approval_from_row(&row), record, RecordKind::Approval)?;
    }
    let stray = "SELECT token FROM approval_uses WHERE token NOT IN (SELECT token FROM approvals)";
    if !fetch_rows(reader, stray).await?.is_empty() {
        let record = "the usage record of a missing approval".to_owned();
        let error = LedgerError::Damaged { what: record.clone() };
        record_damage::<()>(&mut damaged, Err(error.into()), record, RecordKind::Approval)?;
    }
    let rules = if with_rules { approvals::list_stored_rules(&mut *reader).await? } else { Vec::new() };
    for (record, rule) in rules {
        record_damage(&mut damaged, rule, format!("the approval rule for account {record}"), RecordKind::ApprovalRule)?;
    }
    for row in fetch_rows(reader, "SELECT * FROM notifications ORDER BY key").await? {
        let record = format!("notification {}", row.try_get::<i64, _>("key")?);
        record_damage(&mut damaged, check_notification(&row), record, RecordKind::Notification)?;
    }
    let blocks = if with_consents { consents::find_damaged_blocks(&mut *reader).await? } else { Vec::new() };
    for (record, damage) in blocks {
        record_damage(&mut damaged, damage, record, RecordKind::Consent)?;
    }
    let (rates, numbers) = (limits::list_rate_limits(&mut *reader).await, forgetting::load_number_key(reader).await);
    record_damage(&mut damaged, rates, "the rate limit of an account".to_owned(), RecordKind::Account)?;
    record_damage(&mut damaged, numbers, "the key for forgotten numbers".to_owned(), RecordKind::Forgetting)?;
    Ok(damaged)
}

async fn fetch_rows(reader: &mut Connection, statement: &'static str) -> Result<Vec<Record>, StatementError> {
    Ok(query(statement).fetch_all(reader).await?)
}

/// Checks that a notification and its JSON columns are readable.
fn check_notification(row: &Record) -> Result<(), StatementError> {
    let notification = notifications::notification_from_row(row)?;
    let unreadable = |error: serde_json::Error| LedgerError::Unreadable(error.to_string());
    serde_json::from_str::<Value>(&notification.content.target).map_err(unreadable)?;
    serde_json::from_str::<Value>(&notification.content.notice).map_err(unreadable)?;
    Ok(())
}

/// Adds the record with this description to `damaged` if the record could not be read.
fn record_damage<T>(
    damaged: &mut Vec<DamagedRecord>,
    read: Result<T, StatementError>,
    record: String,
    kind: RecordKind,
) -> Result<(), StatementError> {
    let Err(error) = capture_damage(read)? else { return Ok(()) };
    let record = match error {
        LedgerError::Damaged { .. } => format!("{record} is corrupt"),
        error => format!("{record} cannot be read: {}", error.reason()),
    };
    let entry = DamagedRecord { what: record, kind };
    if !damaged.contains(&entry) {
        damaged.push(entry);
    }
    Ok(())
}
