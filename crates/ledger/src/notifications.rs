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
    /// When it was queued.
    pub at: Timestamp,
    /// The number of attempts, including this one.
    pub attempts: u32,
    /// Target and text.
    pub content: NewNotification,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// The target accepted it.
    Sent,
    /// The attempt failed. Retry after this time.
    RetryAfter(Duration),
    /// The attempt failed and is not retried.
    GivenUp,
}

/// The notification queue of a ledger.
///
/// Notifications with the same event and target form a group. A group is taken together, and at the earliest `apart`
/// after the last one was sent.
pub trait NotificationQueue: Send + Sync {
    /// Queues notifications.
    fn queue_notifications(&self, new: Vec<NewNotification>) -> LedgerFuture<'_, ()>;

    /// Whether a notification is due.
    fn has_due_notifications(&self, apart: Duration) -> LedgerFuture<'_, bool>;

    /// Takes all due groups and reserves them for the duration `held`.
    fn take_notifications(&self, apart: Duration, held: Duration) -> LedgerFuture<'_, Vec<Notification>>;

    /// Records the outcome of taken notifications.
    fn record_notification_outcome(&self, keys: Vec<i64>, outcome: NotificationOutcome) -> LedgerFuture<'_, ()>;
}
