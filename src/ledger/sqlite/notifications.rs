//! Notifications that wait to be sent.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{Row as _, SqliteConnection, SqlitePool};

use super::change::{Failure, Now};
use super::ledger::SqliteLedger;
use super::words::{parse, word};
use crate::ledger::{LedgerError, LedgerFuture, NewNotification, Notification, NotificationQueue, Told};

/// How long what was told is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl NotificationQueue for SqliteLedger {
    fn notify(&self, new: Vec<NewNotification>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(keep(connection, now, new))))
    }

    fn notifications_due(&self, apart: Duration) -> LedgerFuture<'_, bool> {
        let now = self.now();
        Box::pin(async move { due(&self.readers, now, apart).await.map_err(|failure| self.read_error(failure)) })
    }

    fn take_notifications(&self, apart: Duration, held: Duration) -> LedgerFuture<'_, Vec<Notification>> {
        Box::pin(self.write(move |connection, now| Box::pin(take(connection, now, apart, held))))
    }

    fn told(&self, keys: Vec<i64>, told: Told) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(settle(connection, now, keys, told))))
    }
}

/// Keeps notifications, in the transaction of what they tell of.
pub(super) async fn keep(
    connection: &mut SqliteConnection,
    now: Now,
    new: Vec<NewNotification>,
) -> Result<(), Failure> {
    for NewNotification { occasion, way, notice } in new {
        sqlx::query("INSERT INTO notifications (at, occasion, way, notice, next_at) VALUES (?1, ?2, ?3, ?4, ?1)")
            .bind(now.0)
            .bind(word(&occasion)?)
            .bind(way)
            .bind(notice)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn due(readers: &SqlitePool, now: Now, apart: Duration) -> Result<bool, Failure> {
    let found: i64 = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM notifications n WHERE done_at IS NULL AND taken_until <= ?1 AND next_at <= ?1
             AND NOT EXISTS (SELECT 1 FROM notifications d WHERE d.sent = 1 AND d.done_at > ?2 AND d.way = n.way
                 AND d.occasion = n.occasion))",
    )
    .bind(now.0)
    .bind(before(now, apart))
    .fetch_one(readers)
    .await?;
    Ok(found != 0)
}

async fn take(
    connection: &mut SqliteConnection,
    now: Now,
    apart: Duration,
    held: Duration,
) -> Result<Vec<Notification>, Failure> {
    let rows = sqlx::query(
        "UPDATE notifications SET taken_until = ?3, tries = tries + 1
         WHERE done_at IS NULL AND taken_until <= ?1 AND (way, occasion) IN (
             SELECT way, occasion FROM notifications WHERE done_at IS NULL AND taken_until <= ?1 AND next_at <= ?1
             EXCEPT SELECT way, occasion FROM notifications WHERE sent = 1 AND done_at > ?2)
         RETURNING key, at, tries, occasion, way, notice",
    )
    .bind(now.0)
    .bind(before(now, apart))
    .bind(before(now, Duration::ZERO).saturating_add(micros(held)))
    .fetch_all(connection)
    .await?;
    let mut taken = rows.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    taken.sort_by_key(|notification| notification.key);
    Ok(taken)
}

fn read(row: &sqlx::sqlite::SqliteRow) -> Result<Notification, Failure> {
    let at = Timestamp::from_microsecond(row.try_get("at")?);
    Ok(Notification {
        key: row.try_get("key")?,
        at: at.map_err(|error| LedgerError::Unreadable(error.to_string()))?,
        tries: row.try_get("tries")?,
        what: NewNotification {
            occasion: parse(row.try_get("occasion")?)?,
            way: row.try_get("way")?,
            notice: row.try_get("notice")?,
        },
    })
}

async fn settle(connection: &mut SqliteConnection, now: Now, keys: Vec<i64>, told: Told) -> Result<(), Failure> {
    let change = match told {
        Told::Sent => "UPDATE notifications SET done_at = ?1, sent = 1, taken_until = 0 WHERE key = ?3",
        Told::GivenUp => "UPDATE notifications SET done_at = ?1, taken_until = 0 WHERE key = ?3",
        Told::Again(_) => "UPDATE notifications SET next_at = ?1 + ?2, taken_until = 0 WHERE key = ?3",
    };
    let wait = if let Told::Again(wait) = told { micros(wait) } else { 0 };
    for key in keys {
        sqlx::query(change).bind(now.0).bind(wait).bind(key).execute(&mut *connection).await?;
    }
    sqlx::query("DELETE FROM notifications WHERE done_at < ?").bind(before(now, KEPT)).execute(connection).await?;
    Ok(())
}

fn before(now: Now, time: Duration) -> i64 {
    now.0.saturating_sub(micros(time))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
