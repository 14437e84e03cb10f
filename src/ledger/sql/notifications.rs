//! Notifications that wait to be sent.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row as _;

use super::change::{Failure, Now, intact};
use super::dialect::{Adapter, Connection, Record};
use super::look::look;
use super::statement::{query, scalar, small};
use super::words::{parse, word};
use crate::ledger::{LedgerError, LedgerFuture, NewNotification, Notification, NotificationQueue, Told};

/// How long what was told is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl NotificationQueue for Adapter {
    fn notify(&self, new: Vec<NewNotification>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(keep(connection, now, new.clone()))))
    }

    fn notifications_due(&self, apart: Duration) -> LedgerFuture<'_, bool> {
        let now = self.now();
        Box::pin(async move { look!(self, due, now, apart) })
    }

    fn take_notifications(&self, apart: Duration, held: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        Box::pin(self.write(move |connection, now| Box::pin(take(connection, now, apart, held))))
    }

    fn told(&self, keys: Vec<i64>, told: Told) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(settle(connection, now, keys.clone(), told))))
    }
}

/// Keeps notifications, in the transaction of what they tell of.
pub(super) async fn keep(connection: &mut Connection, now: Now, new: Vec<NewNotification>) -> Result<(), Failure> {
    for NewNotification { occasion, way, notice } in new {
        query("INSERT INTO notifications (at, occasion, way, notice, next_at) VALUES ($1, $2, $3, $4, $1)")
            .bind(now.0)
            .bind(word(&occasion)?)
            .bind(way)
            .bind(notice)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn due(reader: &mut Connection, now: Now, apart: Duration) -> Result<bool, Failure> {
    let found: bool = scalar(
        "SELECT EXISTS (SELECT 1 FROM notifications n WHERE done_at IS NULL AND taken_until <= $1 AND next_at <= $1
             AND NOT EXISTS (SELECT 1 FROM notifications d WHERE d.sent AND d.done_at > $2 AND d.way = n.way
                 AND d.occasion = n.occasion))",
    )
    .bind(now.0)
    .bind(before(now, apart))
    .fetch_one(reader)
    .await?;
    Ok(found)
}

async fn take(
    connection: &mut Connection,
    now: Now,
    apart: Duration,
    held: Duration,
) -> Result<Vec<Notification>, Failure> {
    let rows = query(
        "UPDATE notifications SET taken_until = $3, tries = tries + 1
         WHERE done_at IS NULL AND taken_until <= $1 AND (way, occasion) IN (
             SELECT way, occasion FROM notifications WHERE done_at IS NULL AND taken_until <= $1 AND next_at <= $1
             EXCEPT SELECT way, occasion FROM notifications WHERE sent AND done_at > $2)
         RETURNING key, at, tries, occasion, way, notice",
    )
    .bind(now.0)
    .bind(before(now, apart))
    .bind(before(now, Duration::ZERO).saturating_add(micros(held)))
    .fetch_all(&mut *connection)
    .await?;
    let mut taken = Vec::with_capacity(rows.len());
    for row in &rows {
        match intact(read(row))? {
            Ok(notification) => taken.push(notification),
            Err(error) => {
                tracing::error!("a notification is not sent, because its record is damaged: {}", error.damage());
                settle(&mut *connection, now, vec![row.try_get("key")?], Told::GivenUp).await?;
            }
        }
    }
    taken.sort_by_key(|notification| notification.key);
    Ok(taken)
}

pub(super) fn read(row: &Record) -> Result<Notification, Failure> {
    let at = Timestamp::from_microsecond(row.try_get("at")?);
    Ok(Notification {
        key: row.try_get("key")?,
        at: at.map_err(|error| LedgerError::Unreadable(error.to_string()))?,
        tries: small(row, "tries")?,
        what: NewNotification {
            occasion: parse(row.try_get("occasion")?)?,
            way: row.try_get("way")?,
            notice: row.try_get("notice")?,
        },
    })
}

async fn settle(connection: &mut Connection, now: Now, keys: Vec<i64>, told: Told) -> Result<(), Failure> {
    let change = match told {
        Told::Sent => "UPDATE notifications SET done_at = $1, sent = TRUE, taken_until = 0 WHERE key = $3",
        Told::GivenUp => "UPDATE notifications SET done_at = $1, taken_until = 0 WHERE key = $3",
        Told::Again(_) => "UPDATE notifications SET next_at = $1 + $2, taken_until = 0 WHERE key = $3",
    };
    let wait = if let Told::Again(wait) = told { micros(wait) } else { 0 };
    for key in keys {
        query(change).bind(now.0).bind(wait).bind(key).execute(&mut *connection).await?;
    }
    query("DELETE FROM notifications WHERE done_at < $1").bind(before(now, KEPT)).execute(connection).await?;
    Ok(())
}

fn before(now: Now, time: Duration) -> i64 {
    now.0.saturating_sub(micros(time))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
