//! Conformance tests of frequency caps across campaigns.

use std::sync::Arc;
use std::time::Duration;

use super::bounds::with_second_run;
use super::scene::{
    Scene, accepted, author, event, granted, in_doubt, new_run, not_sent, not_sent_after_all, phone, rejected,
    shared_run, single_intent,
};
use crate::{
    BlockRequest, Bounds, CAPPED, CapQuery, Intent, NewRun, NumberFilter, OptOutRemoval, Permit, RemovalTarget,
    RetriedRow, RetryOrder, RowState, RowUpdate, SentRow, SharedRun, SuppressionPolicy, is_number_capped,
};
use campaign_core::domain::{FrequencyCap, OperationKind, Purpose, Row, Status};

const DAY: Duration = Duration::from_secs(86_400);

fn cap(messages: u32, period: Duration) -> FrequencyCap {
    FrequencyCap { messages, period }
}

/// Begins an envelope within these caps.
async fn begin_with_caps(scene: &Scene, envelope: u32, caps: &[FrequencyCap]) -> Permit {
    let bounds = (!caps.is_empty()).then(|| Arc::new(Bounds { caps: caps.to_vec(), ..Bounds::default() }));
    scene.ledger.begin_envelope(Intent { bounds, ..scene.new_intent(envelope, scene.lease) }).await.unwrap()
}

/// The rows from 2 to 9 whose numbers are suppressed by caps at planning time.
async fn list_capped_rows(scene: &Scene, caps: &[FrequencyCap], loopback: bool) -> Vec<u32> {
    let numbers =
        scene.ledger.load_numbers(NumberFilter::Capped(CapQuery { caps, loopback, only: None })).await.unwrap();
    for row in 2..=9 {
        let is_capped = is_number_capped(&*scene.ledger, phone(row), caps, loopback).await.unwrap();
        assert_eq!(is_capped, numbers.contains(phone(row)), "a single number gives the same answer");
    }
    (2..=9).filter(|row| numbers.contains(phone(*row))).collect()
}

fn capped_permit(rows: &[u32]) -> Permit {
    Permit::Capped(rows.iter().copied().map(Row::new).collect())
}

fn other_campaign(campaign: &str, random: u64) -> NewRun {
    NewRun { campaign: campaign.into(), ..new_run(random) }
}

pub(super) async fn capped_number_is_skipped_in_every_campaign(scene: Scene) {
    let (once, twice) = (cap(1, DAY), cap(2, DAY));
    // Messages count even without a cap.
    assert_eq!(begin_with_caps(&scene, 1, &[]).await, granted(1));
    assert_eq!(list_capped_rows(&scene, &[once], false).await, [2, 3]);
    assert_eq!(list_capped_rows(&scene, &[twice], false).await, [0; 0]);
    let scene = with_second_run(scene, other_campaign("second", 7)).await;
    assert_eq!(begin_with_caps(&scene, 1, &[once]).await, capped_permit(&[2, 3]));
    assert!(scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap().is_empty(), "no intent");
    let excluded = scene.ledger.load_excluded_rows(scene.run.key).await.unwrap();
    assert_eq!(excluded.find_reason(Row::new(3)), Some((RowState::Skipped, CAPPED)));
    assert_eq!(begin_with_caps(&scene, 1, &[twice]).await, granted(1));
    assert_eq!(begin_with_caps(&scene, 1, &[cap(9, DAY), twice]).await, capped_permit(&[2, 3]), "each cap applies");
    assert_eq!(
        begin_with_caps(&scene, 1, &[cap(1, Duration::from_micros(1))]).await,
        granted(2),
        "the message is older than the period"
    );
    assert_eq!(list_capped_rows(&scene, &[cap(3, DAY)], false).await, [2, 3]);
    assert_eq!(list_capped_rows(&scene, &[cap(4, DAY)], false).await, [0; 0]);
    let scene = with_second_run(scene, other_campaign("third", 8)).await;
    assert_eq!(begin_with_caps(&scene, 1, &[]).await, granted(1), "without a cap, no number is suppressed");
    assert_eq!(list_capped_rows(&scene, &[cap(4, DAY)], false).await, [2, 3], "the message counts");
    // A number cannot exceed the cap by occurring twice in one envelope.
    let mut intent = scene.new_intent(3, scene.lease);
    intent.rows.push(SentRow { row: Row::new(9), ..intent.rows[0] });
    intent.bounds = Some(Arc::new(Bounds { caps: vec![once], ..Bounds::default() }));
    assert_eq!(scene.ledger.begin_envelope(intent).await.unwrap(), capped_permit(&[9]));
}

pub(super) async fn cap_counts_messages_in_doubt_but_not_unsent_ones(scene: Scene) {
    let once = [cap(1, DAY)];
    begin_with_caps(&scene, 1, &[]).await;
    begin_with_caps(&scene, 2, &[]).await;
    scene.settle_envelope(1, [in_doubt(), not_sent()]).await;
    scene.settle_envelope(2, [rejected(), accepted()]).await;
    let scene = with_second_run(scene, other_campaign("second", 7)).await;
    // The result is the same before and after the index of contacts exists.
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 5]);
    assert_eq!(begin_with_caps(&scene, 1, &once).await, capped_permit(&[2]));
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 5]);
    assert_eq!(begin_with_caps(&scene, 3, &once).await, granted(1));
    assert_eq!(begin_with_caps(&scene, 4, &once).await, granted(2));
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 5, 6, 7, 8, 9], "open messages count");
    scene.settle_envelope(1, [not_sent(), in_doubt()]).await;
    scene.settle_envelope(2, [accepted(), rejected()]).await;
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 5, 7, 8]);
    let mut again = scene.new_intent(3, scene.lease);
    again.rows.truncate(1);
    again.bounds = Some(Arc::new(Bounds { caps: once.to_vec(), ..Bounds::default() }));
    assert_eq!(scene.ledger.begin_envelope(again).await.unwrap(), granted(3), "unsent messages are tried again");
    scene.record_events(scene.lease, vec![event(7, 1, not_sent_after_all())]).await;
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 5, 6, 8], "by a person's decision");
    // After a new claim, the open message is in doubt and counts.
    let scene = Scene { lease: scene.claim_again().await, ..scene };
    assert_eq!(begin_with_caps(&scene, 3, &once).await, capped_permit(&[6]));
}

pub(super) async fn cap_ignores_only_the_attempt_that_a_row_repeats(scene: Scene) {
    let caps = vec![cap(1, DAY)];
    assert_eq!(begin_with_caps(&scene, 1, &caps).await, granted(1));
    scene.settle_envelope(1, [in_doubt(), in_doubt()]).await;
    let repeating = |scene: &Scene, repeated: &[u32]| {
        let bounds = Bounds { caps: caps.clone(), repeated: repeated.iter().copied().collect(), ..Bounds::default() };
        Intent { bounds: Some(Arc::new(bounds)), ..scene.new_intent(1, scene.lease) }
    };
    let permit = scene.ledger.begin_envelope(repeating(&scene, &[2])).await.unwrap();
    assert_eq!(permit, capped_permit(&[3]), "row 3 repeats nothing");
    assert_eq!(scene.ledger.begin_envelope(repeating(&scene, &[2, 3])).await.unwrap(), granted(2));
    let scene = with_second_run(scene, other_campaign("second", 7)).await;
    let permit = scene.ledger.begin_envelope(repeating(&scene, &[2, 3])).await.unwrap();
    assert_eq!(permit, capped_permit(&[2, 3]), "messages of other runs count");
}

pub(super) async fn cap_counts_messages_that_receipts_prove(scene: Scene) {
    let once = [cap(1, DAY)];
    begin_with_caps(&scene, 1, &[]).await;
    begin_with_caps(&scene, 2, &[]).await;
    scene.settle_envelope(1, [rejected(), in_doubt()]).await;
    scene.settle_envelope(2, [not_sent(), rejected()]).await;
    scene.record_events(scene.lease, vec![event(3, 1, not_sent_after_all())]).await;
    assert_eq!(list_capped_rows(&scene, &once, false).await, [0; 0]);
    // The cap counts the message before and after the index of contacts exists.
    scene.store_receipt(2, Status::Delivered).await;
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2]);
    assert_eq!(begin_with_caps(&scene, 3, &once).await, granted(3));
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 6, 7]);
    for (row, status, capped) in [
        (5, Status::Rejected, &[2, 6, 7][..]),
        (5, Status::Routing, &[2, 6, 7]),
        (3, Status::Routing, &[2, 3, 6, 7]),
        (3, Status::Rejected, &[2, 3, 6, 7]),
        (4, Status::Read, &[2, 3, 4, 6, 7]),
        (4, Status::Delivered, &[2, 3, 4, 6, 7]),
        // This receipt arrives before the answer, which rejects both messages.
        (6, Status::Delivered, &[2, 3, 4, 6, 7]),
    ] {
        scene.store_receipt(row, status.clone()).await;
        assert_eq!(list_capped_rows(&scene, &once, false).await, capped, "{row} {status:?}");
    }
    scene.settle_envelope(3, [rejected(), rejected()]).await;
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 3, 4, 6]);
    let first = scene.run.key;
    let scene = with_second_run(scene, other_campaign("second", 7)).await;
    assert_eq!(begin_with_caps(&scene, 2, &once).await, capped_permit(&[4]));
    scene.store_receipt_of(first, 5, Status::Delivered).await;
    assert_eq!(begin_with_caps(&scene, 2, &once).await, capped_permit(&[4, 5]));
    assert_eq!(list_capped_rows(&scene, &[cap(2, DAY)], false).await, [0; 0], "each message counts once");
}

pub(super) async fn cap_counts_a_resent_message_once(scene: Scene) {
    let (once, twice) = ([cap(1, DAY)], [cap(2, DAY)]);
    begin_with_caps(&scene, 1, &once).await;
    scene.settle_envelope(1, [not_sent(), rejected()]).await;
    let again = scene.new_intent(1, scene.lease);
    assert_eq!(scene.ledger.begin_envelope(again).await.unwrap(), granted(2));
    scene.settle_envelope(2, [accepted(), not_sent()]).await;
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2]);
    for row in [2, 3] {
        scene.store_receipt(row, Status::Delivered).await;
    }
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 3]);
    assert_eq!(list_capped_rows(&scene, &twice, false).await, [0; 0]);
    // The receipt is about the retry, not about the rejected message.
    let order = RetryOrder { rows: vec![RetriedRow { row: Row::new(4), envelope: 3 }], by: author(), random: 9 };
    begin_with_caps(&scene, 2, &[]).await;
    scene.settle_envelope(3, [rejected(), accepted()]).await;
    scene.ledger.update_rows(scene.lease, RowUpdate::Retry(order)).await.unwrap();
    let mut again = scene.new_intent(2, scene.lease);
    again.rows.truncate(1);
    assert_eq!(scene.ledger.begin_envelope(again).await.unwrap(), granted(4));
    assert_eq!(list_capped_rows(&scene, &twice, false).await, [0; 0]);
    scene.store_receipt(4, Status::Delivered).await;
    assert_eq!(list_capped_rows(&scene, &twice, false).await, [4], "the rejected message was sent too");
}

pub(super) async fn cap_counts_live_campaigns_and_loopback_separately(scene: Scene) {
    let once = [cap(1, DAY)];
    let policy = |loopback, purpose| SuppressionPolicy { loopback, purpose, ..SuppressionPolicy::default() };
    let mut scene = scene;
    let uncounted = [
        NewRun { live: false, ..other_campaign("rehearsal", 31) },
        NewRun { suppression: policy(false, Purpose::Service), ..other_campaign("orders", 32) },
        NewRun { kind: OperationKind::Hlr, ..other_campaign("lookups", 33) },
    ];
    for new in uncounted {
        let name = new.campaign.clone();
        scene = with_second_run(scene, new).await;
        assert_eq!(begin_with_caps(&scene, 1, &once).await, granted(1), "{name}");
        assert_eq!(begin_with_caps(&scene, 1, &once).await, granted(2), "{name} is not suppressed");
        assert_eq!(list_capped_rows(&scene, &once, false).await, [0; 0], "{name}");
    }
    scene =
        with_second_run(scene, NewRun { suppression: policy(true, Purpose::Marketing), ..other_campaign("local", 34) })
            .await;
    assert_eq!(begin_with_caps(&scene, 1, &once).await, granted(1));
    assert_eq!(begin_with_caps(&scene, 1, &once).await, capped_permit(&[2, 3]));
    let (local, remote) = (list_capped_rows(&scene, &once, true).await, list_capped_rows(&scene, &once, false).await);
    assert_eq!((local, remote), (vec![2, 3], vec![]));
    scene = with_second_run(scene, other_campaign("people", 35)).await;
    assert_eq!(begin_with_caps(&scene, 1, &once).await, granted(1), "messages through loopback do not count");
    assert_eq!(begin_with_caps(&scene, 1, &once).await, capped_permit(&[2, 3]));
}

pub(super) async fn cap_counts_messages_to_a_forgotten_number(scene: Scene) {
    let once = cap(1, DAY);
    begin_with_caps(&scene, 1, &[once]).await;
    scene.settle_envelope(1, [accepted(), accepted()]).await;
    super::forgetting::forget_row(&scene, 2).await;
    assert_eq!(list_capped_rows(&scene, &[once], false).await, [2, 3]);
    // Forgetting a number also adds an opt-out, which would hide the effect of the cap.
    let removal =
        OptOutRemoval { target: RemovalTarget::Number { phone: phone(2), scope: None }, by: "olena".into(), why: None };
    scene.ledger.remove_opt_outs(removal).await.unwrap();
    let scene = with_second_run(scene, other_campaign("second", 7)).await;
    assert_eq!(begin_with_caps(&scene, 1, &[once]).await, capped_permit(&[2, 3]));
}

pub(super) async fn cap_counts_assistant_messages_but_not_tests(scene: Scene) {
    let once = [cap(1, DAY)];
    let is_granted = async |campaign: &str, to: u32, caps: &[FrequencyCap]| {
        let (kind, policy) = (OperationKind::Pipeline, SuppressionPolicy::default());
        let shared = SharedRun { campaign: campaign.into(), kind, suppression: policy, ..shared_run() };
        let block = scene.ledger.draw_block(&shared, BlockRequest::for_rows(1)).await.unwrap().into_block().unwrap();
        let mut intent = Intent { kind, ..single_intent(block.lease, block.lease.rows.first.get()) };
        intent.rows[0].to = phone(to).into();
        intent.bounds = (!caps.is_empty()).then(|| Arc::new(Bounds { caps: caps.to_vec(), ..Bounds::default() }));
        matches!(scene.ledger.begin_envelope(intent).await.unwrap(), Permit::Granted { .. })
    };
    let (assistant, test) = (SharedRun::ASSISTANT_MESSAGES, "campaign.test");
    assert!(is_granted(assistant, 2, &[]).await && is_granted(test, 5, &[]).await);
    // The result is the same before and after the index of contacts exists.
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2]);
    assert_eq!(begin_with_caps(&scene, 1, &once).await, capped_permit(&[2]));
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2]);
    assert!(!is_granted(assistant, 2, &once).await, "an assistant's message counts for the assistant");
    assert!(is_granted(test, 2, &once).await, "tests are never suppressed");
    assert!(is_granted(assistant, 4, &once).await && is_granted(test, 7, &once).await);
    assert_eq!(list_capped_rows(&scene, &once, false).await, [2, 4]);
    assert_eq!(begin_with_caps(&scene, 2, &once).await, capped_permit(&[4]));
    assert_eq!(begin_with_caps(&scene, 3, &once).await, granted(1));
    assert!(!is_granted(assistant, 6, &once).await, "a campaign's message counts for assistants");
}
