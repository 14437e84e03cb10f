//! Conformance tests of the guards: numbers that have or might have a message, and repeated single messages.

use super::scene::*;
use crate::{
    NumberFilter, RepeatCheck, RepeatRequest, RepeatReservation, RetriedRow, RetryOrder, RowUpdate, SentRow, Settlement,
};
use campaign_core::domain::{Chain, Row};

pub(super) async fn guard_covers_every_number_that_might_have_a_message(scene: Scene) {
    for envelope in 1..=3 {
        scene.begin_envelope(envelope, scene.lease).await;
    }
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    scene.settle_envelope(2, [in_doubt(), not_sent()]).await;
    let numbers = scene.ledger.load_numbers(NumberFilter::Sent(&[scene.run.key])).await.unwrap();
    let guarded: Vec<u32> = (2..=7).filter(|&row| numbers.contains(phone(row))).collect();
    assert_eq!(guarded, [2, 4, 6, 7], "accepted, in doubt, and an intent without an answer");
    let rows = scene.port().load_sent_rows(scene.run.key).await.unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), guarded, "the rows of these numbers");
}

pub(super) async fn guard_follows_events_and_decisions(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [in_doubt(), in_doubt()]).await;
    assert_eq!(scene.guarded_rows().await, [2, 3]);
    scene.record_events(scene.lease, vec![event(2, 1, not_sent_after_all())]).await;
    assert_eq!(scene.guarded_rows().await, [3]);
    scene.record_events(scene.lease, vec![event(2, 1, found("DELIVERED"))]).await;
    assert_eq!(scene.guarded_rows().await, [2, 3], "proof wins over a decision");
    scene.record_events(scene.lease, vec![event(3, 1, send_again())]).await;
    assert_eq!(scene.guarded_rows().await, [2, 3], "an order to send again does not remove doubt");
    let rows = scene.port().load_sent_rows(scene.run.key).await.unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), [2, 3]);
    scene.begin_envelope(2, scene.lease).await;
    scene.settle_envelope(2, [rejected(), not_sent()]).await;
    assert_eq!(scene.guarded_rows().await, [2, 3], "rejected rows have no message");
}

pub(super) async fn guard_covers_late_answers_and_all_named_runs(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.claim_again().await;
    assert_eq!(scene.guarded_rows().await, [2, 3], "open intents of the previous owner");
    // The answer reaches the previous owner.
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    assert_eq!(scene.guarded_rows().await, [2]);
    let other = scene.ledger.create_run(&new_run(2), None).await.unwrap().expect("a run");
    scene.ledger.open_run(other.key, None, None).await.unwrap();
    let lease = scene.ledger.claim_run(&scene.lock, other.key).await.unwrap().lease;
    let intent = scene.new_intent(2, lease);
    scene.ledger.begin_envelope(intent).await.unwrap();
    assert_eq!(scene.guarded_rows().await, [2], "other runs do not count");
    let both = scene.ledger.load_numbers(NumberFilter::Sent(&[other.key, scene.run.key])).await.unwrap();
    assert!([2, 4, 5].iter().all(|&row| both.contains(phone(row))) && both.len() == 3, "{both:?}");
}

pub(super) async fn retry_guards_its_row_from_the_intent_until_a_rejection(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [rejected(), accepted()]).await;
    let order = RetryOrder { rows: vec![RetriedRow { row: Row::new(2), envelope: 1 }], by: author(), random: 1 };
    scene.ledger.update_rows(scene.lease, RowUpdate::Retry(order)).await.unwrap();
    assert_eq!(scene.guarded_rows().await, [3]);
    let mut intent = scene.new_intent(2, scene.lease);
    intent.rows = vec![SentRow { row: Row::new(2), to: phone(2).into(), digest: [0; 8], chain: Chain::UNKNOWN }];
    scene.ledger.begin_envelope(intent).await.unwrap();
    assert_eq!(scene.guarded_rows().await, [2, 3]);
    let settlement = Settlement {
        opt_outs: Vec::new(),
        run: scene.run.key,
        envelope: 2,
        outcomes: vec![rejected()],
        evidence: None,
    };
    scene.ledger.settle_envelope(settlement).await.unwrap();
    assert_eq!(scene.guarded_rows().await, [3]);
}

/// Reserves a message that is about to be sent. If the message was sent recently, returns its age in seconds as an
/// error. `None` if the ledger's tables do not support reservations.
async fn reserve_entry(scene: &Scene, message: &str, again: bool) -> Option<Result<RepeatReservation, u64>> {
    let request = RepeatRequest::Reserve { message: message.as_bytes().to_vec(), again };
    match scene.ledger.check_repeat(request).await.unwrap() {
        RepeatCheck::Reserved(reservation) => Some(Ok(reservation)),
        RepeatCheck::Repeated(ago) => Some(Err(ago.as_secs())),
        RepeatCheck::Unavailable => None,
        RepeatCheck::Free => panic!("a reservation is made or refused"),
    }
}

async fn was_sent(scene: &Scene, message: &str) -> bool {
    let check = scene.ledger.check_repeat(RepeatRequest::Look(message.as_bytes().to_vec())).await.unwrap();
    matches!(check, RepeatCheck::Repeated(_))
}

pub(super) async fn reservation_blocks_a_repeated_message_until_released(scene: Scene) {
    assert!(!was_sent(&scene, "380 Hi").await);
    // The tables of early versions do not support reservations.
    let Some(first) = reserve_entry(&scene, "380 Hi", false).await else { return };
    let first = first.unwrap();
    assert!(was_sent(&scene, "380 Hi").await && !was_sent(&scene, "381 Hi").await);
    assert_eq!(reserve_entry(&scene, "380 Hi", false).await, Some(Err(0)));
    assert!(matches!(reserve_entry(&scene, "381 Hi", false).await, Some(Ok(_))));
    // Releasing a second message does not release the first.
    let again = reserve_entry(&scene, "380 Hi", true).await.unwrap().unwrap();
    scene.ledger.check_repeat(RepeatRequest::Release(again.clone())).await.unwrap();
    assert!(was_sent(&scene, "380 Hi").await);
    if again.until != first.until {
        // Another release of the second message does not release the first either. With the same expiry, the two
        // reservations cannot be distinguished.
        scene.ledger.check_repeat(RepeatRequest::Release(again)).await.unwrap();
        assert!(was_sent(&scene, "380 Hi").await);
    }
    scene.ledger.check_repeat(RepeatRequest::Release(first)).await.unwrap();
    assert!(!was_sent(&scene, "380 Hi").await);
    assert!(matches!(reserve_entry(&scene, "380 Hi", false).await, Some(Ok(_))));
}

pub(super) async fn reservation_goes_to_one_of_many_callers(scene: Scene) {
    let reservations = (0..8).map(|_| async { reserve_entry(&scene, "380 Hi", false).await });
    let results = futures_util::future::join_all(reservations).await;
    let permits: Vec<_> = results.into_iter().flatten().collect();
    assert!(permits.is_empty() || permits.iter().filter(|permit| permit.is_ok()).count() == 1, "{permits:?}");
}
