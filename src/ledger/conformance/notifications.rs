//! Notifications: kept, taken, told.

use std::time::Duration;

use super::scene::*;
use crate::domain::Occasion;
use crate::ledger::{Ledger, NewNotification, Notification, RunEnd, Told};

const LONG: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;

fn new(way: &str, notice: &str) -> NewNotification {
    NewNotification { occasion: Occasion::Finished, way: way.to_owned(), notice: notice.to_owned() }
}

/// What was taken, by its texts and tries.
fn texts(taken: &[Notification]) -> Vec<(&str, u32)> {
    taken.iter().map(|one| (one.what.notice.as_str(), one.tries)).collect()
}

fn keys(taken: &[Notification]) -> Vec<i64> {
    taken.iter().map(|one| one.key).collect()
}

pub(super) async fn what_is_taken_is_nobody_elses_and_comes_back_until_it_was_told<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    assert!(!ledger.notifications_due(LONG).await.unwrap());
    ledger.notify(vec![new("a", "one"), new("b", "two")]).await.unwrap();
    assert!(ledger.notifications_due(LONG).await.unwrap());
    let taken = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&taken), [("one", 1), ("two", 1)]);
    assert_eq!(taken[0].what, new("a", "one"));
    assert!(!ledger.notifications_due(LONG).await.unwrap(), "somebody has them");
    assert!(ledger.take_notifications(LONG, LONG).await.unwrap().is_empty(), "somebody has them");
    ledger.told(keys(&taken[..1]), Told::Again(NOW)).await.unwrap();
    ledger.told(keys(&taken[1..]), Told::Again(LONG)).await.unwrap();
    // Held for no time, as by a process that died.
    let again = ledger.take_notifications(LONG, NOW).await.unwrap();
    assert_eq!(texts(&again), [("one", 2)]);
    let again = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&again), [("one", 3)]);
    ledger.told(keys(&again), Told::GivenUp).await.unwrap();
    assert!(!ledger.notifications_due(NOW).await.unwrap());
}

pub(super) async fn what_belongs_together_is_taken_together_and_not_soon_after_it_was_told<L: Ledger>(scene: Scene<L>) {
    let ledger = &scene.ledger;
    ledger.notify(vec![new("a", "one")]).await.unwrap();
    let first = ledger.take_notifications(LONG, LONG).await.unwrap();
    ledger.told(keys(&first), Told::Again(LONG)).await.unwrap();
    ledger.notify(vec![new("a", "two"), new("b", "other")]).await.unwrap();
    let together = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&together), [("one", 2), ("two", 1), ("other", 1)], "what waits for another try goes along");
    ledger.told(keys(&together), Told::Sent).await.unwrap();
    let stopped = NewNotification { occasion: Occasion::Stopped, ..new("a", "stopped") };
    ledger.notify(vec![new("a", "three"), stopped]).await.unwrap();
    let soon = ledger.take_notifications(LONG, LONG).await.unwrap();
    assert_eq!(texts(&soon), [("stopped", 1)], "another occasion need not wait");
    assert!(!ledger.notifications_due(LONG).await.unwrap() && ledger.notifications_due(NOW).await.unwrap());
    let last = ledger.take_notifications(NOW, LONG).await.unwrap();
    assert_eq!(texts(&last), [("three", 1)]);
}

pub(super) async fn an_end_is_kept_with_who_is_told_of_it_or_not_at_all<L: Ledger>(scene: Scene<L>) {
    let end = RunEnd { told: vec![new("a", "the end")], ..run_end() };
    scene.ledger.end(scene.forged(), end.clone()).await.unwrap();
    assert!(!scene.ledger.notifications_due(NOW).await.unwrap(), "who has lost the run tells nobody");
    scene.ledger.end(scene.mine, end).await.unwrap();
    let taken = scene.ledger.take_notifications(NOW, LONG).await.unwrap();
    assert_eq!(texts(&taken), [("the end", 1)]);
}
