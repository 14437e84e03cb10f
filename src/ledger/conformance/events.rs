//! What was learnt and decided about rows is kept, in its order, by the one who has the run.

use jiff::Timestamp;

use super::scene::*;
use crate::domain::{GatewayMessageId, Row};
use crate::ledger::{
    AskedRow, Ledger, Ownership, RetriedRow, RetryOrder, RowChange, RowState, RunEnd, RunFilter, RunId, RunProgress,
};

pub(super) async fn events_need_the_lease_and_keep_their_order<L: Ledger>(scene: Scene<L>) {
    scene.begin_envelope(1, scene.mine).await;
    scene.settle_envelope(1, [doubt(), doubt()]).await;
    assert_eq!(scene.record_events(scene.forged_lease(), vec![event(2, 1, again())]).await, Ownership::Lost);
    let found = RowChange::Found { status: "READ".into(), msg_id: Some(GatewayMessageId::Number(5)), channel: None };
    let changes = [(2, RowChange::NotFound { asked: 3 }), (3, found), (2, again())];
    let events = changes.iter().cloned().map(|(row, change)| event(row, 1, change)).collect();
    assert_eq!(scene.record_events(scene.mine, events).await, Ownership::Held);
    let told: Vec<_> = scene.load_events().await.into_iter().map(|event| (event.row.get(), event.change)).collect();
    assert_eq!(told, changes);
    assert_eq!(scene.row_states().await, [Some(RowState::Planned), Some(RowState::Accepted), None, None]);
}

pub(super) async fn run_with_rows_to_send_again_is_open<L: Ledger>(scene: Scene<L>) {
    scene.begin_envelope(1, scene.mine).await;
    scene.settle_envelope(1, [doubt(), rejected()]).await;
    let mut mine = scene.mine;
    for (change, open) in [(RowChange::Unresolved { asked: 20 }, false), (again(), true)] {
        let end = RunEnd { progress: RunProgress::Finished, ..run_end() };
        scene.ledger.end_run(mine, end).await.unwrap();
        mine = scene.claim_again().await;
        scene.record_events(mine, vec![event(2, 1, change)]).await;
        let progress = scene.ledger.list_runs(RunFilter::all()).await.unwrap()[0].progress;
        assert_eq!(progress == RunProgress::Open, open);
    }
}

pub(super) async fn retry_order_has_unique_identifiers<L: Ledger>(scene: Scene<L>) {
    scene.begin_envelope(1, scene.mine).await;
    scene.settle_envelope(1, [rejected(), accepted()]).await;
    // The random number that the run drew: the range that comes of it is taken.
    let order = |random| RetryOrder { rows: vec![RetriedRow { row: Row::new(2), envelope: 1 }], by: by(), random };
    assert_eq!(scene.ledger.retry_rows(scene.forged_lease(), order(1)).await.unwrap(), Ownership::Lost);
    for _ in 0..2 {
        assert_eq!(scene.ledger.retry_rows(scene.mine, order(1)).await.unwrap(), Ownership::Held);
    }
    let run = scene.ledger.list_runs(RunFilter::all()).await.unwrap().remove(0);
    let [first, second] = run.orders.as_slice() else { panic!("two orders") };
    assert!(!first.overlaps(run.ids) && !second.overlaps(run.ids) && !first.overlaps(*second));
    assert_eq!(run.message_id(Row::new(2), Some(2)), second.id_for_row(Row::new(2)));
    assert_eq!(run.message_id(Row::new(2), Some(3)), None);
    assert_eq!(scene.row_states().await, [Some(RowState::Planned), Some(RowState::Accepted), None, None]);
}

pub(super) async fn asked_rows_are_kept_by_row<L: Ledger>(scene: Scene<L>) {
    let at = Timestamp::from_second(1_000).unwrap();
    let question = |row, asked, negative_at| AskedRow {
        row: Row::new(row),
        envelope: 4,
        asked,
        negatives: 1,
        first_at: at,
        last_at: at,
        negative_at,
        answer: "no such message".into(),
    };
    let ask = async |questions| scene.ledger.keep_asked_rows(scene.run.key, questions).await.unwrap();
    ask(vec![question(2, 1, None), question(3, 1, Some(at))]).await;
    ask(vec![question(2, 2, Some(at))]).await;
    let kept = scene.ledger.load_asked_rows(scene.run.key).await.unwrap();
    assert_eq!(kept, [question(2, 2, Some(at)), question(3, 1, Some(at))]);
    assert_eq!(scene.ledger.load_asked_rows(RunId(99)).await.unwrap(), []);
}
