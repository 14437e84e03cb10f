//! Receipts are kept whoever brings them, once, and count for states, counts and the guard.

use jiff::Timestamp;

use super::scene::*;
use super::suppression::opt_out;
use crate::domain::{Media, MsgId, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Row, Status};
use crate::ledger::{Ledger, NewReceipt, Progress, Reception, Removal, RunEnd, RunId, State, StateCounts};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

/// A receipt in which everything is told that can be.
fn whole() -> Receipt {
    let media = Media { url: "https://cdn.example/1.jpg".into(), filename: Some("1.jpg".into()), filesize: Some(9) };
    let reply = |media| RecipientReply { at: Some(at(3)), text: "Так".into(), media };
    Receipt {
        source: ReceiptSource::Asked,
        status: Status::Other("PAUSED".into()),
        channel: ReportedChannel::from_word("viber"),
        updated: Some(at(2)),
        msg_id: Some(MsgId::Text("0042".into())),
        request_id: Some("cf-1".into()),
        error: Some("why".into()),
        digit: Some("1".into()),
        duration: Some(17),
        replies: vec![reply(None), reply(Some(media))],
    }
}

pub(super) async fn receipts_come_back_by_row_as_they_came_and_none_twice<L: Ledger>(scene: Scene<L>) {
    let delivered = Receipt { updated: Some(at(1)), ..Receipt::new(ReceiptSource::Webhook, Status::Delivered) };
    let told = [
        (200_000, None, delivered.clone()),
        (2, None, whole()),
        (33, Some(7), delivered.clone()),
        (2, None, delivered.clone()),
        (2, None, whole()),
        (31, None, delivered.clone()),
    ];
    let new = |(row, order, receipt): &(u32, Option<u32>, Receipt)| NewReceipt {
        run: scene.run.key,
        row: Row::new(*row),
        order: *order,
        receipt: receipt.clone(),
        opt_out: None,
    };
    let receptions = scene.ledger.receive(told.iter().map(new).collect()).await.unwrap();
    let kept = [true, true, true, true, false, true];
    assert_eq!(receptions, kept.map(|kept| if kept { Reception::Kept } else { Reception::Known }));
    let again = scene.ledger.receive(told.iter().map(new).collect()).await.unwrap();
    assert_eq!(again, [Reception::Known; 6]);
    let read = async |rows| {
        let read = scene.ledger.receipts(scene.run.key, rows).await.unwrap();
        let of = |(row, kept): (Row, Vec<crate::ledger::KeptReceipt>)| {
            kept.into_iter().map(|kept| (row.get(), kept.order, kept.receipt)).collect::<Vec<_>>()
        };
        read.into_iter().flat_map(of).collect::<Vec<_>>()
    };
    let expected = [&told[1], &told[3], &told[5], &told[2], &told[0]].map(Clone::clone);
    assert_eq!(read(0..300_000).await, expected);
    assert_eq!(read(3..33).await, expected[2..3]);
    assert_eq!(read(34..200_000).await, []);
    assert_eq!(scene.ledger.receipts(RunId(scene.run.key.0 + 1), 0..u32::MAX).await.unwrap(), []);
}

pub(super) async fn last_answers_and_other_words_for_channels_are_kept<L: Ledger>(scene: Scene<L>) {
    let channel = ReportedChannel::from_word("MAX");
    let last = Receipt { channel, ..Receipt::new(ReceiptSource::AskedLast, Status::Expired) };
    let new = NewReceipt { run: scene.run.key, row: Row::new(2), order: None, receipt: last.clone(), opt_out: None };
    scene.ledger.receive(vec![new]).await.unwrap();
    let kept = scene.ledger.receipts(scene.run.key, 0..9).await.unwrap().remove(0).1.remove(0).receipt;
    // The version before, which shares its tables, would take it for the failure of the message.
    let shared = Receipt::new(ReceiptSource::Asked, Status::Unknown);
    assert!(kept == last || kept == shared, "{kept:?}");
}

pub(super) async fn every_opt_out_is_recorded_even_if_its_receipt_is_not_stored<L: Ledger>(scene: Scene<L>) {
    let replied = |second| {
        let reply = RecipientReply { at: Some(at(second)), text: "STOP".into(), media: None };
        Receipt { replies: vec![reply], ..Receipt::new(ReceiptSource::Webhook, Status::Replied) }
    };
    let receive = async |receipt, opt_out| {
        let new = NewReceipt { run: scene.run.key, row: Row::new(2), order: None, receipt, opt_out };
        scene.ledger.receive(vec![new]).await.unwrap()[0]
    };
    let listed = async || scene.ledger.opt_outs_of(phone(2)).await.unwrap().len();
    for second in 0..64 {
        receive(replied(second), None).await;
    }
    assert_eq!(receive(replied(64), None).await, Reception::Known, "there are as many as are stored");
    assert_eq!(listed().await, 0);
    assert_eq!(receive(replied(65), Some(opt_out(2))).await, Reception::Known);
    assert_eq!(listed().await, 1);
    let removal = Removal { phone: phone(2), scope: None, by: "ivan".into(), why: None };
    assert_eq!(scene.ledger.unsuppress(removal).await.unwrap().len(), 1);
    assert_eq!(receive(replied(65), Some(opt_out(2))).await, Reception::Known);
    assert_eq!(listed().await, 1, "a repeated STOP counts again");
}

pub(super) async fn a_receipt_needs_no_lease_and_makes_what_was_counted_old_until_it_is_counted_anew<L: Ledger>(
    scene: Scene<L>,
) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [accepted(), accepted()]).await;
    let mut counts = StateCounts::default();
    counts.add(State::Accepted, 2);
    let end = RunEnd { progress: Progress::Finished, counts: counts.clone(), ..run_end() };
    scene.ledger.end(scene.mine, end).await.unwrap();
    assert_eq!(scene.now().await.standing_counts().unwrap().0, counts);
    assert_eq!(scene.receive(2, Status::Delivered).await, Reception::Kept);
    let run = scene.now().await;
    assert_eq!((run.standing_counts(), run.receipts), (None, 1));
    counts.shift(State::Accepted, State::Delivered, 1);
    scene.ledger.counted(run.key, counts.clone(), 2, run.receipts).await.unwrap();
    assert_eq!(scene.now().await.standing_counts(), Some(&(counts.clone(), 2)));
    scene.receive(3, Status::Read).await;
    scene.ledger.counted(run.key, counts.clone(), 2, run.receipts).await.unwrap();
    assert_eq!(scene.now().await.standing_counts(), None, "what was counted before it came does not know of it");
    scene.take().await;
    scene.ledger.counted(run.key, counts, 2, run.receipts + 1).await.unwrap();
    assert_eq!(scene.now().await.counts, None, "whoever has the run counts");
}

pub(super) async fn what_is_kept_of_a_runs_rows_is_what_was_kept_last<L: Ledger>(scene: Scene<L>) {
    assert_eq!(scene.ledger.figures(scene.run.key).await.unwrap(), None);
    for figures in [vec![1, 0, 255], Vec::new(), vec![7; 100_000]] {
        scene.ledger.keep_figures(scene.run.key, figures.clone()).await.unwrap();
        let kept = scene.ledger.figures(scene.run.key).await.unwrap();
        // Tables of the version before have no place for it.
        assert!(kept.is_none_or(|kept| kept == figures));
    }
}

pub(super) async fn a_receipt_that_comes_before_the_answer_wins_over_doubt<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.begin(2, scene.mine).await;
    scene.receive(2, Status::Routing).await;
    scene.receive(3, Status::Delivered).await;
    scene.take().await;
    let doubt = Some(State::InDoubt);
    assert_eq!(scene.row_states().await, [Some(State::Accepted), Some(State::Delivered), doubt, doubt]);
    scene.settle(2, [not_sent(), accepted()]).await;
    scene.receive(4, Status::Rejected).await;
    scene.receive(5, Status::Other("PAUSED".into())).await;
    let states = scene.row_states().await;
    assert_eq!(states[2..], [Some(State::Failed), Some(State::Accepted)]);
}

pub(super) async fn an_answer_that_comes_after_the_end_is_counted_with_the_receipts<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.receive(2, Status::Delivered).await;
    let mine = scene.take().await;
    scene.ledger.end(mine, RunEnd { progress: Progress::Finished, ..run_end() }).await.unwrap();
    scene.settle(1, [accepted(), accepted()]).await;
    let run = scene.now().await;
    let (counts, _) = run.standing_counts().expect("they are counted anew");
    assert_eq!((counts.get(State::Delivered), counts.get(State::Accepted)), (1, 1));
}

pub(super) async fn whoever_a_receipt_proves_to_have_a_message_is_guarded<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [not_sent(), not_sent()]).await;
    scene.begin(2, scene.mine).await;
    scene.settle(2, [rejected(), rejected()]).await;
    assert!(scene.guarded().await.is_empty());
    scene.receive(3, Status::Delivered).await;
    scene.receive(5, Status::Routing).await;
    assert_eq!(scene.guarded().await, [3], "what was refused stays refused");
}
