//! The notification queue in the tables.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row as _;

use super::dialect::{Adapter, Connection, Record};
use super::{Now, StatementError, capture_damage, parse_name, query, read_ledger, read_u32, scalar, serialize_name};
use crate::rules::NumberErasure;
use crate::{
    LedgerError, LedgerFuture, NewNotification, Notification, NotificationOutcome, NotificationQueue,
    NotificationUpdate,
};
use campaign_core::domain::NotificationEvent;

/// The period for which finished notifications are kept.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl NotificationQueue for Adapter {
    fn take_notifications(&self, interval: Duration, reserved_for: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        Box::pin(async move {
            // A server asks every second, and every write is a commit, so a read checks first whether anything is due.
            match read_ledger!(self, is_any_due, self.now(), interval)? {
                true => {
                    self.write(move |connection, now| {
                        Box::pin(take_due_notifications(connection, now, interval, reserved_for))
                    })
                    .await
                }
                false => Ok(Vec::new()),
            }
        })
    }

    fn update_notifications(&self, update: NotificationUpdate) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| {
            let update = update.clone();
            Box::pin(async move {
                match update {
                    NotificationUpdate::Queued(new) => queue_notifications(connection, now, new).await,
                    NotificationUpdate::Attempted { keys, outcome } => {
                        record_attempt(connection, now, keys, outcome).await
                    }
                }
            })
        }))
    }
}

/// Queues notifications in the transaction that causes them.
pub(super) async fn queue_notifications(
    connection: &mut Connection,
    now: Now,
    new: Vec<NewNotification>,
) -> Result<(), StatementError> {
    for NewNotification { occasion, target, notice } in new {
        query("INSERT INTO notifications (at, occasion, way, notice, next_at) VALUES ($1, $2, $3, $4, $1)")
            .bind(now.0)
            .bind(serialize_name(&occasion)?)
            .bind(target)
            .bind(notice)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Removes a number from the texts of all notifications.
pub(super) async fn redact_notifications(
    connection: &mut Connection,
    forgotten: NumberErasure,
) -> Result<(), StatementError> {
    let stored = query("SELECT key, way, notice FROM notifications").fetch_all(&mut *connection).await?;
    for row in &stored {
        // The event is not written back, so an unreadable event does not matter.
        let occasion = NotificationEvent::Finished;
        let before = NewNotification { occasion, target: row.try_get("way")?, notice: row.try_get("notice")? };
        let mut content = before.clone();
        forgotten.erase_from_notification(&mut content);
        if content != before {
            let NewNotification { occasion: _, target, notice } = content;
            query("UPDATE notifications SET way = $1, notice = $2 WHERE key = $3")
                .bind(target)
                .bind(notice)
                .bind(row.try_get::<i64, _>("key")?)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

/// The groups of notifications that are due at `$1`, except for groups with a notification sent after `$2`.
macro_rules! due_groups {
    () => {
        "SELECT way, occasion FROM notifications WHERE done_at IS NULL AND taken_until <= $1 AND next_at <= $1
             EXCEPT SELECT way, occasion FROM notifications WHERE sent AND done_at > $2"
    };
}

async fn is_any_due(reader: &mut Connection, now: Now, interval: Duration) -> Result<bool, StatementError> {
    let statement = scalar(concat!("SELECT EXISTS (", due_groups!(), ")"));
    Ok(statement.bind(now.0).bind(micros_before(now, interval)).fetch_one(reader).await?)
}

async fn take_due_notifications(
    connection: &mut Connection,
    now: Now,
    interval: Duration,
    reserved_for: Duration,
) -> Result<Vec<Notification>, StatementError> {
    let rows = query(concat!(
        "UPDATE notifications SET taken_until = $3, tries = tries + 1
         WHERE done_at IS NULL AND taken_until <= $1 AND (way, occasion) IN (",
        due_groups!(),
        ") RETURNING key, at, tries, occasion, way, notice",
    ))
    .bind(now.0)
    .bind(micros_before(now, interval))
    .bind(now.0.saturating_add(to_micros(reserved_for)))
    .fetch_all(&mut *connection)
    .await?;
    let mut notifications = Vec::with_capacity(rows.len());
    for row in &rows {
        match capture_damage(notification_from_row(row))? {
            Ok(notification) => notifications.push(notification),
            Err(error) => {
                tracing::error!(
                    "a notification is not sent, because its record is damaged: {}",
                    error.describe_damage()
                );
                record_attempt(&mut *connection, now, vec![row.try_get("key")?], NotificationOutcome::GivenUp).await?;
            }
        }
    }
    notifications.sort_by_key(|notification| notification.key);
    Ok(notifications)
}

pub(super) fn notification_from_row(row: &Record) -> Result<Notification, StatementError> {
    let at = Timestamp::from_microsecond(row.try_get("at")?);
    Ok(Notification {
        key: row.try_get("key")?,
        at: at.map_err(|error| LedgerError::Unreadable(error.to_string()))?,
        attempts: read_u32(row, "tries")?,
        content: NewNotification {
            occasion: parse_name(row.try_get("occasion")?)?,
            target: row.try_get("way")?,
            notice: row.try_get("notice")?,
        },
    })
}

async fn record_attempt(
    connection: &mut Connection,
    now: Now,
    keys: Vec<i64>,
    outcome: NotificationOutcome,
) -> Result<(), StatementError> {
    let change = match outcome {
        NotificationOutcome::Sent => {
            "UPDATE notifications SET done_at = $1, sent = TRUE, taken_until = 0 WHERE key = $3"
        }
        NotificationOutcome::GivenUp => "UPDATE notifications SET done_at = $1, taken_until = 0 WHERE key = $3",
        NotificationOutcome::RetryAfter(_) => {
            "UPDATE notifications SET next_at = $1 + $2, taken_until = 0 WHERE key = $3"
        }
    };
    let wait = if let NotificationOutcome::RetryAfter(wait) = outcome { to_micros(wait) } else { 0 };
    for key in keys {
        query(change).bind(now.0).bind(wait).bind(key).execute(&mut *connection).await?;
    }
    query("DELETE FROM notifications WHERE done_at < $1")
        .bind(micros_before(now, RETENTION))
        .execute(connection)
        .await?;
    Ok(())
}

fn micros_before(now: Now, time: Duration) -> i64 {
    now.0.saturating_sub(to_micros(time))
}

fn to_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
