//! Conformance tests of receipts: stored once, from any sender, and included in states, counts and the guard.

use jiff::Timestamp;

use super::scene::*;
use super::suppression::opt_out;
use crate::{
    AskedRow, Author, EXPIRED, NewReceipt, OptOutRemoval, Ownership, ReceiptOutcome, RemovalTarget, RetriedRow,
    RetryOrder, RowChange, RowState, RowUpdate, RunEnd, RunFilter, RunId, RunProgress, RunUpdate, StateCounts,
};
use campaign_core::domain::{
    GatewayMessageId, Media, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Row, Status,
};

fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

/// A receipt with all possible fields.
fn full_receipt() -> Receipt {
    let media = Media { url: "https://cdn.example/1.jpg".into(), filename: Some("1.jpg".into()), filesize: Some(9) };
    let reply = |media| RecipientReply { at: Some(at_second(3)), text: "Так".into(), media };
    Receipt {
        source: ReceiptSource::Asked,
        status: Status::Other("PAUSED".into()),
        channel: ReportedChannel::parse("viber"),
        updated: Some(at_second(2)),
        msg_id: Some(GatewayMessageId::Text("0042".into())),
        request_id: Some("cf-1".into()),
        error: Some("why".into()),
        digit: Some("1".into()),
        duration: Some(17),
        replies: vec![reply(None), reply(Some(media))],
    }
}

pub(super) async fn receipts_are_kept_by_row_in_order_without_duplicates(scene: Scene) {
    let delivered = Receipt { updated: Some(at_second(1)), ..Receipt::new(ReceiptSource::Webhook, Status::Delivered) };
    let reported = [
        (200_000, None, delivered.clone()),
        (2, None, full_receipt()),
        (33, Some(7), delivered.clone()),
        (2, None, delivered.clone()),
        (2, None, full_receipt()),
        (31, None, delivered.clone()),
    ];
    let new = |(row, order, receipt): &(u32, Option<u32>, Receipt)| NewReceipt {
        run: scene.run.key,
        row: Row::new(*row),
        order: *order,
        receipt: receipt.clone(),
        opt_out: None,
        opt_in: None,
    };
    let outcomes = scene.ledger.store_receipts(reported.iter().map(new).collect()).await.unwrap();
    let stored = [true, true, true, true, false, true];
    assert_eq!(outcomes, stored.map(|stored| if stored { ReceiptOutcome::Stored } else { ReceiptOutcome::Known }));
    let again = scene.ledger.store_receipts(reported.iter().map(new).collect()).await.unwrap();
    assert_eq!(again, [ReceiptOutcome::Known; 6]);
    let read = async |rows| {
        let read = scene.ledger.load_receipts(scene.run.key, rows).await.unwrap();
        let flatten = |(row, stored): (Row, Vec<crate::StoredReceipt>)| {
            stored.into_iter().map(|stored| (row.get(), stored.order, stored.receipt)).collect::<Vec<_>>()
        };
        read.into_iter().flat_map(flatten).collect::<Vec<_>>()
    };
    let expected = [&reported[1], &reported[3], &reported[5], &reported[2], &reported[0]].map(Clone::clone);
    assert_eq!(read(0..300_000).await, expected);
    assert_eq!(read(3..33).await, expected[2..3]);
    assert_eq!(read(34..200_000).await, []);
    assert_eq!(scene.ledger.load_receipts(RunId(scene.run.key.0 + 1), 0..u32::MAX).await.unwrap(), []);
}

pub(super) async fn last_answers_and_unknown_channel_names_are_kept(scene: Scene) {
    let channel = ReportedChannel::parse("MAX");
    let last = Receipt { channel, ..Receipt::new(ReceiptSource::AskedLast, Status::Expired) };
    let new = NewReceipt {
        run: scene.run.key,
        row: Row::new(2),
        order: None,
        receipt: last.clone(),
        opt_out: None,
        opt_in: None,
    };
    scene.ledger.store_receipts(vec![new]).await.unwrap();
    let stored = scene.ledger.load_receipts(scene.run.key, 0..9).await.unwrap().remove(0).1.remove(0).receipt;
    // An early version that still uses the tables would treat this receipt as the failure of the message.
    let shared = Receipt::new(ReceiptSource::Asked, Status::Unknown);
    assert!(stored == last || stored == shared, "{stored:?}");
}

pub(super) async fn opt_out_is_recorded_even_if_its_receipt_is_not_stored(scene: Scene) {
    let reply_receipt = |second| {
        let reply = RecipientReply { at: Some(at_second(second)), text: "STOP".into(), media: None };
        Receipt { replies: vec![reply], ..Receipt::new(ReceiptSource::Webhook, Status::Replied) }
    };
    let receive = async |receipt, opt_out| {
        let new = NewReceipt { run: scene.run.key, row: Row::new(2), order: None, receipt, opt_out, opt_in: None };
        scene.ledger.store_receipts(vec![new]).await.unwrap()[0]
    };
    let count_opt_outs = async || scene.port().find_opt_outs(phone(2)).await.unwrap().len();
    for second in 0..64 {
        receive(reply_receipt(second), None).await;
    }
    assert_eq!(receive(reply_receipt(64), None).await, ReceiptOutcome::Known, "the maximum is reached");
    assert_eq!(count_opt_outs().await, 0);
    assert_eq!(receive(reply_receipt(65), Some(opt_out(2))).await, ReceiptOutcome::Known);
    assert_eq!(count_opt_outs().await, 1);
    let removal =
        OptOutRemoval { target: RemovalTarget::Number { phone: phone(2), scope: None }, by: "ivan".into(), why: None };
    assert_eq!(scene.ledger.remove_opt_outs(removal).await.unwrap().len(), 1);
    assert_eq!(receive(reply_receipt(65), Some(opt_out(2))).await, ReceiptOutcome::Known);
    assert_eq!(count_opt_outs().await, 1, "a repeated STOP counts again");
}

pub(super) async fn receipt_needs_no_lease_and_outdates_the_counts(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [accepted(), accepted()]).await;
    let mut counts = StateCounts::default();
    counts.add(RowState::Accepted, 2);
    let end = RunEnd { progress: RunProgress::Finished, counts: counts.clone(), ..run_end() };
    scene.ledger.end_run(scene.lease, end).await.unwrap();
    assert_eq!(scene.reload_run().await.current_counts().unwrap().0, counts);
    assert_eq!(scene.store_receipt(2, Status::Delivered).await, ReceiptOutcome::Stored);
    let run = scene.reload_run().await;
    assert_eq!((run.current_counts(), run.receipts), (None, 1));
    counts.shift(RowState::Accepted, RowState::Delivered, 1);
    scene
        .ledger
        .update_runs(vec![run.key], RunUpdate::Counts { counts: counts.clone(), parts: 2, receipts: run.receipts })
        .await
        .unwrap();
    assert_eq!(scene.reload_run().await.current_counts(), Some(&(counts.clone(), 2)));
    scene.store_receipt(3, Status::Read).await;
    scene
        .ledger
        .update_runs(vec![run.key], RunUpdate::Counts { counts: counts.clone(), parts: 2, receipts: run.receipts })
        .await
        .unwrap();
    assert_eq!(scene.reload_run().await.current_counts(), None, "earlier counts do not include it");
    scene.claim_again().await;
    scene
        .ledger
        .update_runs(vec![run.key], RunUpdate::Counts { counts, parts: 2, receipts: run.receipts + 1 })
        .await
        .unwrap();
    assert_eq!(scene.reload_run().await.counts, None, "the owner counts");
}

pub(super) async fn latest_figures_of_a_run_are_loaded(scene: Scene) {
    assert_eq!(scene.ledger.load_figures(scene.run.key).await.unwrap(), None);
    for figures in [vec![1, 0, 255], Vec::new(), vec![7; 100_000]] {
        scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Figures(figures.clone())).await.unwrap();
        let loaded = scene.ledger.load_figures(scene.run.key).await.unwrap();
        // The tables of early versions cannot store figures.
        assert!(loaded.is_none_or(|loaded| loaded == figures));
    }
}

pub(super) async fn receipt_before_the_answer_overrides_doubt(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.begin_envelope(2, scene.lease).await;
    scene.store_receipt(2, Status::Routing).await;
    scene.store_receipt(3, Status::Delivered).await;
    scene.claim_again().await;
    let doubt = Some(RowState::InDoubt);
    assert_eq!(scene.row_states().await, [Some(RowState::Accepted), Some(RowState::Delivered), doubt, doubt]);
    scene.settle_envelope(2, [not_sent(), accepted()]).await;
    scene.store_receipt(4, Status::Rejected).await;
    scene.store_receipt(5, Status::Other("PAUSED".into())).await;
    let states = scene.row_states().await;
    assert_eq!(states[2..], [Some(RowState::Failed), Some(RowState::Accepted)]);
}

pub(super) async fn answer_after_the_end_is_counted_with_the_receipts(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.store_receipt(2, Status::Delivered).await;
    let lease = scene.claim_again().await;
    scene.ledger.end_run(lease, RunEnd { progress: RunProgress::Finished, ..run_end() }).await.unwrap();
    scene.settle_envelope(1, [accepted(), accepted()]).await;
    let run = scene.reload_run().await;
    let (counts, _) = run.current_counts().expect("the run is recounted");
    assert_eq!((counts.get(RowState::Delivered), counts.get(RowState::Accepted)), (1, 1));
}

pub(super) async fn number_with_a_delivery_receipt_is_guarded(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [not_sent(), not_sent()]).await;
    scene.begin_envelope(2, scene.lease).await;
    scene.settle_envelope(2, [rejected(), rejected()]).await;
    assert!(scene.guarded_rows().await.is_empty());
    scene.store_receipt(3, Status::Delivered).await;
    scene.store_receipt(5, Status::Routing).await;
    assert_eq!(scene.guarded_rows().await, [3], "a rejection stays");
}

pub(super) async fn events_need_the_lease_and_keep_their_order(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [in_doubt(), in_doubt()]).await;
    assert_eq!(scene.record_events(scene.forged_lease(), vec![event(2, 1, send_again())]).await, Ownership::Lost);
    let found = RowChange::Found { status: "READ".into(), msg_id: Some(GatewayMessageId::Number(5)), channel: None };
    let changes = [(2, RowChange::NotFound { asked: 3 }), (3, found), (2, send_again())];
    let events = changes.iter().cloned().map(|(row, change)| event(row, 1, change)).collect();
    assert_eq!(scene.record_events(scene.lease, events).await, Ownership::Held);
    let reported: Vec<_> = scene.load_events().await.into_iter().map(|event| (event.row.get(), event.change)).collect();
    assert_eq!(reported, changes);
    assert_eq!(scene.row_states().await, [Some(RowState::Planned), Some(RowState::Accepted), None, None]);
}

pub(super) async fn run_with_rows_to_send_again_is_open(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [in_doubt(), rejected()]).await;
    let mut lease = scene.lease;
    for (change, open) in [(RowChange::Unresolved { asked: 20 }, false), (send_again(), true)] {
        let end = RunEnd { progress: RunProgress::Finished, ..run_end() };
        scene.ledger.end_run(lease, end).await.unwrap();
        lease = scene.claim_again().await;
        scene.record_events(lease, vec![event(2, 1, change)]).await;
        let progress = scene.port().list_runs(RunFilter::all()).await.unwrap()[0].progress;
        assert_eq!(progress == RunProgress::Open, open);
    }
}

pub(super) async fn retry_order_has_unique_identifiers(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [rejected(), accepted()]).await;
    // With the run's own random number, the range is already taken.
    let order = |random| RetryOrder { rows: vec![RetriedRow { row: Row::new(2), envelope: 1 }], by: author(), random };
    assert_eq!(
        scene.ledger.update_rows(scene.forged_lease(), RowUpdate::Retry(order(1))).await.unwrap(),
        Ownership::Lost
    );
    for _ in 0..2 {
        assert_eq!(scene.ledger.update_rows(scene.lease, RowUpdate::Retry(order(1))).await.unwrap(), Ownership::Held);
    }
    let run = scene.port().list_runs(RunFilter::all()).await.unwrap().remove(0);
    let [first, second] = run.orders.as_slice() else { panic!("two orders") };
    assert!(!first.overlaps(run.ids) && !second.overlaps(run.ids) && !first.overlaps(*second));
    assert_eq!(run.message_id(Row::new(2), Some(2)), second.id_for_row(Row::new(2)));
    assert_eq!(run.message_id(Row::new(2), Some(3)), None);
    assert_eq!(scene.row_states().await, [Some(RowState::Planned), Some(RowState::Accepted), None, None]);
}

pub(super) async fn manual_decision_ends_the_skip_of_its_rows(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [rejected(), in_doubt()]).await;
    let skipped = RowUpdate::Skipped { rows: [2, 3, 5].map(Row::new).to_vec(), reason: EXPIRED };
    scene.ledger.update_rows(scene.lease, skipped).await.unwrap();
    let are_skipped = async || {
        let excluded = scene.ledger.load_excluded_rows(scene.run.key).await.unwrap();
        [2, 3, 5].map(|row| excluded.find_reason(Row::new(row)).is_some())
    };
    let by = Author::Policy("on_in_doubt: resend_if_not_found".into());
    scene.record_events(scene.lease, vec![event(3, 1, RowChange::SendAgain { by, why: None })]).await;
    assert_eq!(are_skipped().await, [true; 3], "a rule of the campaign ends no skip");
    scene.record_events(scene.lease, vec![event(3, 1, send_again())]).await;
    assert_eq!(are_skipped().await, [true, false, true]);
    let rows = vec![RetriedRow { row: Row::new(2), envelope: 1 }];
    let order = RetryOrder { rows, by: author(), random: 7 };
    scene.ledger.update_rows(scene.lease, RowUpdate::Retry(order)).await.unwrap();
    assert_eq!(are_skipped().await, [false, false, true]);
    assert_eq!(scene.row_states().await, [Some(RowState::Planned), Some(RowState::Planned), None, None]);
}

pub(super) async fn inquiries_are_kept_by_row(scene: Scene) {
    let at = Timestamp::from_second(1_000).unwrap();
    let inquiry = |row, asked, negative_at| AskedRow {
        row: Row::new(row),
        envelope: 4,
        asked,
        negatives: 1,
        first_at: at,
        last_at: at,
        negative_at,
        answer: "no such message".into(),
    };
    let ask =
        async |inquiries| scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Inquiries(inquiries)).await.unwrap();
    ask(vec![inquiry(2, 1, None), inquiry(3, 1, Some(at))]).await;
    ask(vec![inquiry(2, 2, Some(at))]).await;
    let inquiries = scene.ledger.load_asked_rows(scene.run.key).await.unwrap();
    assert_eq!(inquiries, [inquiry(2, 2, Some(at)), inquiry(3, 1, Some(at))]);
    assert_eq!(scene.ledger.load_asked_rows(RunId(99)).await.unwrap(), []);
}
