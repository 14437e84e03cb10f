//! Notifications that wait to be sent, so that none is lost with the process that it comes from.

use std::time::Duration;

use jiff::Timestamp;

use super::LedgerFuture;
use crate::domain::NotificationEvent;

/// Something that somebody is to be told.
///
/// The ledger does not read where it goes and what it says; no secret is in either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotification {
    /// What it is about.
    pub occasion: NotificationEvent,
    /// Who is told, and how.
    pub target: String,
    /// What is told.
    pub notice: String,
}

/// A notification that was taken to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The ledger's number.
    pub key: i64,
    /// When it was kept.
    pub at: Timestamp,
    /// How often it was taken, this time too.
    pub attempts: u32,
    /// What it says, and to whom.
    pub content: NewNotification,
}

/// What became of notifications that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// They were taken in.
    Sent,
    /// They were not, and are tried again after this time.
    RetryAfter(Duration),
    /// They were not, and are not tried again.
    GivenUp,
}

/// The notifications that wait.
///
/// Those of one occasion to one place belong together: they are taken together, and at most once in the time `apart`
/// after something was sent there about it.
pub trait NotificationQueue: Send + Sync {
    /// Keeps notifications.
    fn queue_notifications(&self, new: Vec<NewNotification>) -> LedgerFuture<'_, ()>;

    /// Whether there is one to be taken.
    fn has_due_notifications(&self, apart: Duration) -> LedgerFuture<'_, bool>;

    /// Takes what is due, with everything else that belongs to it and nobody has; it is nobody else's for so long.
    fn take_notifications(&self, apart: Duration, held: Duration) -> LedgerFuture<'_, Vec<Notification>>;

    /// Keeps what became of notifications that were taken.
    fn record_notification_outcome(&self, keys: Vec<i64>, told: NotificationOutcome) -> LedgerFuture<'_, ()>;
}
