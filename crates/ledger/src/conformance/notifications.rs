//! Conformance tests of the notification queue.

use std::time::Duration;

use super::scene::*;
use crate::{Ledger, NewNotification, Notification, NotificationOutcome, NotificationUpdate, RunEnd};
use campaign_core::domain::NotificationEvent;

const LONG: Duration = Duration::from_secs(60);
const NO_TIME: Duration = Duration::ZERO;

fn new_notification(target: &str, notice: &str) -> NewNotification {
    NewNotification { occasion: NotificationEvent::Finished, target: target.to_owned(), notice: notice.to_owned() }
}

/// The text and the number of attempts of each taken notification.
fn texts_and_attempts(notifications: &[Notification]) -> Vec<(&str, u32)> {
    notifications.iter().map(|taken| (taken.content.notice.as_str(), taken.attempts)).collect()
}

async fn queue(ledger: &dyn Ledger, new: Vec<NewNotification>) {
    ledger.update_notifications(NotificationUpdate::Queued(new)).await.unwrap();
}

async fn record_attempt(ledger: &dyn Ledger, keys: Vec<i64>, outcome: NotificationOutcome) {
    ledger.update_notifications(NotificationUpdate::Attempted { keys, outcome }).await.unwrap();
}

fn keys(notifications: &[Notification]) -> Vec<i64> {
    notifications.iter().map(|taken| taken.key).collect()
}

pub(super) async fn taken_notification_returns_until_it_is_given_up(scene: Scene) {
    let ledger = scene.port();
    assert!(ledger.take_notifications(LONG, LONG).await.unwrap().is_empty());
    queue(ledger, vec![new_notification("a", "one"), new_notification("b", "two")]).await;
    let notifications = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts_and_attempts(&notifications), [("one", 1), ("two", 1)]);
    assert_eq!(notifications[0].content, new_notification("a", "one"));
    assert!(ledger.take_notifications(LONG, LONG).await.unwrap().is_empty(), "they are taken");
    record_attempt(ledger, keys(&notifications[..1]), NotificationOutcome::RetryAfter(NO_TIME)).await;
    record_attempt(ledger, keys(&notifications[1..]), NotificationOutcome::RetryAfter(LONG)).await;
    // The notifications are reserved for no time at all, as if the process had been killed.
    let again = ledger.take_notifications(LONG, NO_TIME).await.unwrap();
    assert_eq!(texts_and_attempts(&again), [("one", 2)]);
    let again = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts_and_attempts(&again), [("one", 3)]);
    record_attempt(ledger, keys(&again), NotificationOutcome::GivenUp).await;
    assert!(ledger.take_notifications(NO_TIME, LONG).await.unwrap().is_empty());
}

pub(super) async fn related_notifications_are_taken_together_and_spaced(scene: Scene) {
    let ledger = scene.port();
    queue(ledger, vec![new_notification("a", "one")]).await;
    let first = ledger.take_notifications(LONG, LONG).await.unwrap();
    record_attempt(ledger, keys(&first), NotificationOutcome::RetryAfter(LONG)).await;
    queue(ledger, vec![new_notification("a", "two"), new_notification("b", "other")]).await;
    let together = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(
        texts_and_attempts(&together),
        [("one", 2), ("two", 1), ("other", 1)],
        "notifications that wait for a retry are included"
    );
    record_attempt(ledger, keys(&together), NotificationOutcome::Sent).await;
    let stopped = NewNotification { occasion: NotificationEvent::Stopped, ..new_notification("a", "stopped") };
    queue(ledger, vec![new_notification("a", "three"), stopped]).await;
    let soon = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts_and_attempts(&soon), [("stopped", 1)], "another event does not wait");
    assert!(ledger.take_notifications(LONG, LONG).await.unwrap().is_empty());
    let last = ledger.take_notifications(NO_TIME, LONG).await.unwrap();
    assert_eq!(texts_and_attempts(&last), [("three", 1)]);
}

pub(super) async fn run_end_and_its_notifications_are_one_commit(scene: Scene) {
    let end = RunEnd { notifications: vec![new_notification("a", "the end")], ..run_end() };
    scene.ledger.end_run(scene.forged_lease(), end.clone()).await.unwrap();
    let notifications = scene.ledger.take_notifications(NO_TIME, LONG).await.unwrap();
    assert!(notifications.is_empty(), "a lost lease queues no notifications");
    scene.ledger.end_run(scene.lease, end).await.unwrap();
    let notifications = scene.ledger.take_notifications(NO_TIME, LONG).await.unwrap();
    assert_eq!(texts_and_attempts(&notifications), [("the end", 1)]);
}
