//! Single messages that were sent lately.

use super::scene::Scene;
use crate::ledger::{Ledger, RepeatCheck, RepeatPlace};

/// Takes the place of a message; nothing if the tables have no place for it.
async fn take_place<L: Ledger>(scene: &Scene<L>, message: &str, again: bool) -> Option<Result<RepeatPlace, u64>> {
    match scene.ledger.take_repeat_place(message.as_bytes().to_vec(), again).await.unwrap() {
        RepeatCheck::Taken(place) => Some(Ok(place)),
        RepeatCheck::Repeated(ago) => Some(Err(ago.as_secs())),
        RepeatCheck::Unavailable => None,
    }
}

async fn was_sent<L: Ledger>(scene: &Scene<L>, message: &str) -> bool {
    scene.ledger.find_time_since_sent(message.as_bytes().to_vec()).await.unwrap().is_some()
}

pub(super) async fn repeat_place_blocks_a_message_until_it_is_released<L: Ledger>(scene: Scene<L>) {
    assert!(!was_sent(&scene, "380 Hi").await);
    // Tables of the version before have no place for messages.
    let Some(first) = take_place(&scene, "380 Hi", false).await else { return };
    let first = first.unwrap();
    assert!(was_sent(&scene, "380 Hi").await && !was_sent(&scene, "381 Hi").await);
    assert_eq!(take_place(&scene, "380 Hi", false).await, Some(Err(0)));
    assert!(matches!(take_place(&scene, "381 Hi", false).await, Some(Ok(_))));
    // A second one that did not leave takes nothing from the first.
    let again = take_place(&scene, "380 Hi", true).await.unwrap().unwrap();
    scene.ledger.release_repeat_place(again.clone()).await.unwrap();
    assert!(was_sent(&scene, "380 Hi").await);
    if again.until != first.until {
        // Its place was given back already.
        scene.ledger.release_repeat_place(again).await.unwrap();
        assert!(was_sent(&scene, "380 Hi").await);
    }
    scene.ledger.release_repeat_place(first).await.unwrap();
    assert!(!was_sent(&scene, "380 Hi").await);
    assert!(matches!(take_place(&scene, "380 Hi", false).await, Some(Ok(_))));
}

pub(super) async fn repeat_place_goes_to_one_of_many_callers<L: Ledger>(scene: Scene<L>) {
    let takes = (0..8).map(|_| async { take_place(&scene, "380 Hi", false).await });
    let taken = futures_util::future::join_all(takes).await;
    let kept: Vec<_> = taken.into_iter().flatten().collect();
    assert!(kept.is_empty() || kept.iter().filter(|place| place.is_ok()).count() == 1, "{kept:?}");
}
