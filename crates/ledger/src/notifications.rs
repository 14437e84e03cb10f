//! The queue of notifications, which survives the process that creates them.

use std::time::Duration;

use jiff::Timestamp;

use super::LedgerFuture;
use campaign_core::domain::NotificationEvent;

/// A notification to be queued.
///
/// The ledger does not interpret target and text. Neither contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// The event.
    pub occasion: NotificationEvent,
    /// The target: recipient and transport.
    pub target: String,
    /// The text.
    pub notice: String,
}

/// A notification that was taken from the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The ledger's key.
    pub key: i64,
    /// The time at which the notification was queued.
    pub at: Timestamp,
    /// The number of attempts, including this one.
    pub attempts: u32,
    /// Target and text.
    pub content: NewNotification,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// The target accepted the notification.
    Sent,
    /// The attempt failed. Retry after this time.
    RetryAfter(Duration),
    /// The attempt failed and is not retried.
    GivenUp,
}

/// A change to the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotificationUpdate {
    /// Queues these notifications.
    Queued(Vec<NewNotification>),
    /// An attempt at taken notifications has this outcome.
    Attempted {
        /// The keys of the notifications.
        keys: Vec<i64>,
        /// The outcome, which is the same for all these notifications.
        outcome: NotificationOutcome,
    },
}

/// The notification queue of a ledger.
///
/// Notifications with the same event and target form a group. A group is taken as a whole, no earlier than
/// `interval` after a notification of the group was sent.
pub trait NotificationQueue: Send + Sync {
    /// Takes all due groups and reserves them for the duration `reserved_for`. If no group is due, nothing is written.
    fn take_notifications(&self, interval: Duration, reserved_for: Duration) -> LedgerFuture<'_, Vec<Notification>>;

    /// Queues notifications, or records the outcome of taken ones.
    fn update_notifications(&self, update: NotificationUpdate) -> LedgerFuture<'_, ()>;
}
