//! The notification queue in memory.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::contents::{LedgerContents, timestamp_from_micros};
use crate::rules::NumberErasure;
use crate::{LedgerError, NewNotification, Notification, NotificationOutcome, NotificationUpdate};
use campaign_core::domain::NotificationEvent;

#[derive(Clone, Debug)]
pub(super) struct QueuedNotification {
    notification: Notification,
    next_at: Timestamp,
    taken_until: Option<Timestamp>,
    /// The time at which the notification was finished, and whether the target accepted it.
    finished: Option<(Timestamp, bool)>,
}

impl QueuedNotification {
    /// Erases a number from the text of the notification.
    pub(super) fn erase_number(&mut self, forgotten: NumberErasure) {
        forgotten.erase_from_notification(&mut self.notification.content);
    }

    fn group_key(&self) -> (String, NotificationEvent) {
        (self.notification.content.target.clone(), self.notification.content.occasion)
    }

    fn is_free(&self, now: Timestamp) -> bool {
        self.finished.is_none() && self.taken_until.is_none_or(|until| until <= now)
    }
}

impl LedgerContents {
    pub fn update_notifications(&mut self, now: i64, update: NotificationUpdate) -> Result<(), LedgerError> {
        match update {
            NotificationUpdate::Queued(new) => self.queue_notifications(now, new),
            NotificationUpdate::Attempted { keys, outcome } => self.record_attempt(now, &keys, outcome),
        }
    }

    pub(super) fn queue_notifications(&mut self, now: i64, new: Vec<NewNotification>) -> Result<(), LedgerError> {
        let at = timestamp_from_micros(now)?;
        for content in new {
            let key = i64::try_from(self.notifications.len()).unwrap_or(i64::MAX);
            let notification = Notification { key, at, attempts: 0, content };
            self.notifications.push(QueuedNotification {
                notification,
                next_at: at,
                taken_until: None,
                finished: None,
            });
        }
        Ok(())
    }

    /// The groups of notifications that are due.
    fn list_due_groups(
        &self,
        now: i64,
        interval: Duration,
    ) -> Result<BTreeSet<(String, NotificationEvent)>, LedgerError> {
        let now = timestamp_from_micros(now)?;
        let is_recent = |(finished_at, was_accepted): &(Timestamp, bool)| {
            *was_accepted && now.duration_since(*finished_at) < to_signed(interval)
        };
        let recent: BTreeSet<_> = self
            .notifications
            .iter()
            .filter(|queued| queued.finished.as_ref().is_some_and(is_recent))
            .map(QueuedNotification::group_key)
            .collect();
        let due = self
            .notifications
            .iter()
            .filter(|queued| queued.is_free(now) && queued.next_at <= now)
            .map(QueuedNotification::group_key);
        Ok(due.filter(|group| !recent.contains(group)).collect())
    }

    pub fn take_notifications(
        &mut self,
        now: i64,
        interval: Duration,
        reserved_for: Duration,
    ) -> Result<Vec<Notification>, LedgerError> {
        let (due, now) = (self.list_due_groups(now, interval)?, timestamp_from_micros(now)?);
        let notifications =
            self.notifications.iter_mut().filter(|queued| queued.is_free(now) && due.contains(&queued.group_key()));
        Ok(notifications
            .map(|queued| {
                queued.taken_until = now.checked_add(to_signed(reserved_for)).ok();
                queued.notification.attempts += 1;
                queued.notification.clone()
            })
            .collect())
    }

    fn record_attempt(&mut self, now: i64, keys: &[i64], outcome: NotificationOutcome) -> Result<(), LedgerError> {
        let now = timestamp_from_micros(now)?;
        for queued in self.notifications.iter_mut().filter(|queued| keys.contains(&queued.notification.key)) {
            queued.taken_until = None;
            match outcome {
                NotificationOutcome::Sent => queued.finished = Some((now, true)),
                NotificationOutcome::GivenUp => queued.finished = Some((now, false)),
                NotificationOutcome::RetryAfter(wait) => {
                    queued.next_at = now.checked_add(to_signed(wait)).unwrap_or(Timestamp::MAX)
                }
            }
        }
        Ok(())
    }
}

fn to_signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}
