//! Whom the guard skips: whoever has a message, or may have one.

use super::scene::*;
use crate::domain::Chain;
use crate::domain::Row;
use crate::ledger::{Ledger, RetriedRow, RetryOrder, SentRow, Settlement};

pub(super) async fn the_guard_knows_every_number_that_may_have_a_message<L: Ledger>(scene: Scene<L>) {
    for envelope in 1..=3 {
        scene.begin(envelope, scene.mine).await;
    }
    scene.settle(1, [accepted(), rejected()]).await;
    scene.settle(2, [doubt(), not_sent()]).await;
    let numbers = scene.ledger.numbers_sent_to(&[scene.run.key]).await.unwrap();
    let guarded: Vec<u32> = (2..=7).filter(|&row| numbers.contains(phone(row))).collect();
    assert_eq!(guarded, [2, 4, 6, 7], "accepted, in doubt, and an intent without an answer");
    let rows = scene.ledger.rows_sent(scene.run.key).await.unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), guarded, "the rows that have them");
}

pub(super) async fn the_guard_knows_what_was_learnt_and_decided<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [doubt(), doubt()]).await;
    assert_eq!(scene.guarded().await, [2, 3]);
    scene.record(scene.mine, vec![event(2, 1, not_sent_after_all())]).await;
    assert_eq!(scene.guarded().await, [3]);
    scene.record(scene.mine, vec![event(2, 1, found("DELIVERED"))]).await;
    assert_eq!(scene.guarded().await, [2, 3], "proof wins over a decision");
    scene.record(scene.mine, vec![event(3, 1, again())]).await;
    assert_eq!(scene.guarded().await, [2, 3], "an order to send again undoes no doubt");
    let rows = scene.ledger.rows_sent(scene.run.key).await.unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), [2, 3]);
    scene.begin(2, scene.mine).await;
    scene.settle(2, [rejected(), not_sent()]).await;
    assert_eq!(scene.guarded().await, [2, 3], "and rows that were refused have nothing");
}

pub(super) async fn the_guard_knows_what_came_late_and_of_all_runs_that_are_asked_about<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.take().await;
    assert_eq!(scene.guarded().await, [2, 3], "what was begun by who had it before");
    // The answer comes to who had it before.
    scene.settle(1, [accepted(), rejected()]).await;
    assert_eq!(scene.guarded().await, [2]);
    let other = scene.ledger.create_run(&new_run(2)).await.unwrap();
    scene.ledger.open_run(other.key, None).await.unwrap();
    let lease = scene.ledger.claim(&scene.hold, other.key).await.unwrap().lease;
    let intent = scene.intent(2, lease);
    scene.ledger.begin(intent).await.unwrap();
    assert_eq!(scene.guarded().await, [2], "another run is not asked about");
    let both = scene.ledger.numbers_sent_to(&[other.key, scene.run.key]).await.unwrap();
    assert!([2, 4, 5].iter().all(|&row| both.contains(phone(row))) && both.len() == 3, "{both:?}");
}

pub(super) async fn an_order_to_send_again_leaves_the_guard_as_it_was_until_the_message_went_out<L: Ledger>(
    scene: Scene<L>,
) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [rejected(), accepted()]).await;
    let order = RetryOrder { rows: vec![RetriedRow { row: Row::new(2), envelope: 1 }], by: by(), random: 1 };
    scene.ledger.retry(scene.mine, order).await.unwrap();
    assert_eq!(scene.guarded().await, [3]);
    let mut intent = scene.intent(2, scene.mine);
    intent.rows = vec![SentRow { row: Row::new(2), to: phone(2).into(), digest: [0; 8], chain: Chain::UNKNOWN }];
    scene.ledger.begin(intent).await.unwrap();
    assert_eq!(scene.guarded().await, [2, 3]);
    let settlement = Settlement { run: scene.run.key, envelope: 2, outcomes: vec![rejected()], evidence: None };
    scene.ledger.settle(settlement).await.unwrap();
    assert_eq!(scene.guarded().await, [3]);
}
