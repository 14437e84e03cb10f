//! The notification queue.

use std::time::Duration;

use super::scene::*;
use crate::{Ledger, NewNotification, Notification, NotificationOutcome, RunEnd};
use campaign_core::domain::NotificationEvent;

const LONG: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;

fn new_notification(way: &str, notice: &str) -> NewNotification {
    NewNotification { occasion: NotificationEvent::Finished, target: way.to_owned(), notice: notice.to_owned() }
}

/// Texts and attempts of taken notifications.
fn texts(taken: &[Notification]) -> Vec<(&str, u32)> {
    taken.iter().map(|one| (one.content.notice.as_str(), one.attempts)).collect()
}

fn keys(taken: &[Notification]) -> Vec<i64> {
    taken.iter().map(|one| one.key).collect()
}

pub(super) async fn taken_notification_returns_until_it_was_sent<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    assert!(!ledger.has_due_notifications(LONG).await.unwrap());
    ledger.queue_notifications(vec![new_notification("a", "one"), new_notification("b", "two")]).await.unwrap();
    assert!(ledger.has_due_notifications(LONG).await.unwrap());
    let taken = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&taken), [("one", 1), ("two", 1)]);
    assert_eq!(taken[0].content, new_notification("a", "one"));
    assert!(!ledger.has_due_notifications(LONG).await.unwrap(), "they are taken");
    assert!(ledger.take_notifications(LONG, LONG).await.unwrap().is_empty(), "they are taken");
    ledger.record_notification_outcome(keys(&taken[..1]), NotificationOutcome::RetryAfter(NOW)).await.unwrap();
    ledger.record_notification_outcome(keys(&taken[1..]), NotificationOutcome::RetryAfter(LONG)).await.unwrap();
    // The notifications are held for no time at all, as if the process had been killed.
    let again = ledger.take_notifications(LONG, NOW).await.unwrap();
    assert_eq!(texts(&again), [("one", 2)]);
    let again = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&again), [("one", 3)]);
    ledger.record_notification_outcome(keys(&again), NotificationOutcome::GivenUp).await.unwrap();
    assert!(!ledger.has_due_notifications(NOW).await.unwrap());
}

pub(super) async fn related_notifications_are_taken_together_and_spaced<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    ledger.queue_notifications(vec![new_notification("a", "one")]).await.unwrap();
    let first = ledger.take_notifications(LONG, LONG).await.unwrap();
    ledger.record_notification_outcome(keys(&first), NotificationOutcome::RetryAfter(LONG)).await.unwrap();
    ledger.queue_notifications(vec![new_notification("a", "two"), new_notification("b", "other")]).await.unwrap();
    let together = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(
        texts(&together),
        [("one", 2), ("two", 1), ("other", 1)],
        "notifications that wait for a retry are included"
    );
    ledger.record_notification_outcome(keys(&together), NotificationOutcome::Sent).await.unwrap();
    let stopped = NewNotification { occasion: NotificationEvent::Stopped, ..new_notification("a", "stopped") };
    ledger.queue_notifications(vec![new_notification("a", "three"), stopped]).await.unwrap();
    let soon = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&soon), [("stopped", 1)], "another event does not wait");
    assert!(!ledger.has_due_notifications(LONG).await.unwrap() && ledger.has_due_notifications(NOW).await.unwrap());
    let last = ledger.take_notifications(NOW, LONG).await.unwrap();
    assert_eq!(texts(&last), [("three", 1)]);
}

pub(super) async fn run_end_and_its_notifications_are_one_commit<L: Ledger>(scene: Scene<L>) {
    let end = RunEnd { notifications: vec![new_notification("a", "the end")], ..run_end() };
    scene.ledger.end_run(scene.forged_lease(), end.clone()).await.unwrap();
    assert!(!scene.ledger.has_due_notifications(NOW).await.unwrap(), "a lost lease queues no notifications");
    scene.ledger.end_run(scene.mine, end).await.unwrap();
    let taken = scene.ledger.take_notifications(NOW, LONG).await.unwrap();
    assert_eq!(texts(&taken), [("the end", 1)]);
}
