//! What was learnt and decided about rows is kept, in its order, by the one who has the run.

use jiff::Timestamp;

use super::scene::*;
use crate::domain::{MsgId, Row};
use crate::ledger::{
    AskedRow, Change, Ledger, Ownership, Progress, RetriedRow, RetryOrder, RunEnd, RunFilter, RunId, State,
};

pub(super) async fn events_need_the_lease_and_come_back_in_their_order<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [doubt(), doubt()]).await;
    assert_eq!(scene.record(scene.forged(), vec![event(2, 1, again())]).await, Ownership::Lost);
    let found = Change::Found { status: "READ".into(), msg_id: Some(MsgId::Number(5)), channel: None };
    let changes = [(2, Change::NotFound { asked: 3 }), (3, found), (2, again())];
    let events = changes.iter().cloned().map(|(row, change)| event(row, 1, change)).collect();
    assert_eq!(scene.record(scene.mine, events).await, Ownership::Held);
    let told: Vec<_> = scene.events().await.into_iter().map(|event| (event.row.get(), event.change)).collect();
    assert_eq!(told, changes);
    assert_eq!(scene.row_states().await, [Some(State::Planned), Some(State::Accepted), None, None]);
}

pub(super) async fn a_run_with_something_to_send_again_is_open<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [doubt(), rejected()]).await;
    let mut mine = scene.mine;
    for (change, open) in [(Change::Unresolved { asked: 20 }, false), (again(), true)] {
        let end = RunEnd { progress: Progress::Finished, ..run_end() };
        scene.ledger.end(mine, end).await.unwrap();
        mine = scene.take().await;
        scene.record(mine, vec![event(2, 1, change)]).await;
        let progress = scene.ledger.runs(RunFilter::all()).await.unwrap()[0].progress;
        assert_eq!(progress == Progress::Open, open);
    }
}

pub(super) async fn an_order_to_send_again_has_identifiers_that_nothing_else_has<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [rejected(), accepted()]).await;
    // The random number that the run drew: the range that comes of it is taken.
    let order = |random| RetryOrder { rows: vec![RetriedRow { row: Row::new(2), envelope: 1 }], by: by(), random };
    assert_eq!(scene.ledger.retry(scene.forged(), order(1)).await.unwrap(), Ownership::Lost);
    for _ in 0..2 {
        assert_eq!(scene.ledger.retry(scene.mine, order(1)).await.unwrap(), Ownership::Held);
    }
    let run = scene.ledger.runs(RunFilter::all()).await.unwrap().remove(0);
    let [first, second] = run.orders.as_slice() else { panic!("two orders") };
    assert!(!first.overlaps(run.ids) && !second.overlaps(run.ids) && !first.overlaps(*second));
    assert_eq!(run.id(Row::new(2), Some(2)), second.id(Row::new(2)));
    assert_eq!(run.id(Row::new(2), Some(3)), None);
    assert_eq!(scene.row_states().await, [Some(State::Planned), Some(State::Accepted), None, None]);
}

pub(super) async fn questions_are_kept_by_row<L: Ledger>(scene: Scene<L>) {
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
    let ask = async |questions| scene.ledger.keep_asked(scene.run.key, questions).await.unwrap();
    ask(vec![question(2, 1, None), question(3, 1, Some(at))]).await;
    ask(vec![question(2, 2, Some(at))]).await;
    let kept = scene.ledger.asked_rows(scene.run.key).await.unwrap();
    assert_eq!(kept, [question(2, 2, Some(at)), question(3, 1, Some(at))]);
    assert_eq!(scene.ledger.asked_rows(RunId(99)).await.unwrap(), []);
}
