//! Conformance tests of forgetting: the number is erased from every record, its hash keeps the guard and opt-outs
//! working, and other records stay unchanged.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::bounds::with_second_run;
use super::scene::*;
use crate::{
    AdditionMode, BlockRequest, Bounds, CapQuery, ConsentBlockBuilder, ConsentEvidence, EnvelopeFilter, ForgetOrder,
    Intent, LedgerError, NewNotification, NewReceipt, NumberFilter, OPTED_OUT, OptIn, OptOut, OptOutFilter,
    OptOutReach, OptOutRemoval, OptOutScope, Ownership, Permit, PurgeOrder, ReceiptOutcome, RemovalTarget, RowSpan,
    RowState, Run, RunEnd, RunFilter, RunId, RunProgress, RunUpdate, Settlement, StateCounts, SuppressionPolicy,
};
use campaign_core::domain::{
    Addressee, Budget, ConsentCells, FrequencyCap, GatewayMessageId, NotificationEvent, OperationOutcome, Phone,
    Purpose, Receipt, ReceiptSource, RecipientReply, Row, Status,
};

fn opt_out(phone: Phone) -> OptOut {
    OptOut {
        who: phone.into(),
        scope: OptOutScope::Marketing,
        reach: OptOutReach::AllGateways,
        reason: "forgotten".into(),
        source: "olena".into(),
        at: "2026-11-21T10:00:00Z".parse().unwrap(),
    }
}

fn forget_order(row: u32, rows: Vec<(RunId, RoaringBitmap)>) -> ForgetOrder {
    ForgetOrder { phone: phone(row), rows, cancelled_in: Vec::new(), opt_out: opt_out(phone(row)) }
}

/// Forgets the number of a row of the scene's run.
pub(super) async fn forget_row(scene: &Scene, row: u32) {
    scene.ledger.forget_number(forget_order(row, vec![(scene.run.key, RoaringBitmap::from([row]))])).await.unwrap();
}

fn reply_receipt(row: u32, run: RunId) -> NewReceipt {
    let reply = RecipientReply { at: None, text: "call me, I am Olena".into(), media: None };
    let (digit, error) = (Some("5".to_owned()), Some(format!("{} is busy", phone(row))));
    let receipt =
        Receipt { replies: vec![reply], digit, error, ..Receipt::new(ReceiptSource::Webhook, Status::Delivered) };
    NewReceipt { run, row: Row::new(row), order: None, receipt, opt_out: None, opt_in: None }
}

pub(super) async fn forgetting_erases_only_the_forgotten_number_everywhere(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.begin_envelope(2, scene.lease).await;
    let reported = |row: u32| format!("no route to {}", phone(row));
    let outcomes = vec![
        OperationOutcome::Accepted {
            msg_id: Some(GatewayMessageId::Number(5)),
            parts: Some(2),
            answer: Some("{\"imsi\":1}".into()),
        },
        OperationOutcome::Rejected { error: reported(3) },
    ];
    let evidence = Some(format!("[{}, {}]", phone(2), phone(3)));
    scene
        .ledger
        .settle_envelope(Settlement { opt_outs: Vec::new(), run: scene.run.key, envelope: 1, outcomes, evidence })
        .await
        .unwrap();
    scene.settle_envelope(2, [rejected(), accepted()]).await;
    scene.ledger.store_receipts(vec![reply_receipt(2, scene.run.key), reply_receipt(3, scene.run.key)]).await.unwrap();
    let states = scene.row_states().await;
    forget_row(&scene, 2).await;
    let envelopes = scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=2)).await.unwrap();
    let [forgotten, other] = envelopes[0].rows.as_slice() else { panic!("two rows") };
    assert!(matches!(forgotten.to, Addressee::Forgotten(_)) && forgotten.digest == [0; 8], "{forgotten:?}");
    assert_eq!((other.to, other.digest), (phone(3).into(), [3; 8]));
    let (_, outcomes) = envelopes[0].settled.clone().unwrap();
    let sent = OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(5)), parts: Some(2), answer: None };
    assert_eq!(outcomes, [sent, OperationOutcome::Rejected { error: reported(3) }]);
    let evidence = envelopes[0].evidence.clone().unwrap();
    assert!(!evidence.contains(&phone(2).to_string()) && evidence.contains(&phone(3).to_string()), "{evidence}");
    let receipts = scene.ledger.load_receipts(scene.run.key, 2..4).await.unwrap();
    let reported: Vec<_> = receipts.iter().map(|(_, stored)| &stored[0].receipt).collect();
    assert!(reported[0].replies.is_empty() && reported[0].digit.is_none() && reported[0].error.is_none());
    assert_eq!((reported[0].status.clone(), reported[1].replies.len()), (Status::Delivered, 1));
    assert_eq!(scene.row_states().await, states, "other outcomes are unchanged");
    assert_eq!(scene.port().find_addressee(scene.run.key, Row::new(2)).await.unwrap(), Some(forgotten.to));
    // Later receipts are stored without texts, too.
    let mut later = reply_receipt(2, scene.run.key);
    later.receipt.status = Status::Read;
    scene.ledger.store_receipts(vec![later]).await.unwrap();
    let receipts = scene.ledger.load_receipts(scene.run.key, 2..3).await.unwrap();
    assert!(receipts[0].1.len() == 2 && receipts[0].1.iter().all(|stored| stored.receipt.replies.is_empty()));
}

pub(super) async fn forgotten_number_is_guarded_and_suppressed_by_its_hash(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    forget_row(&scene, 2).await;
    forget_row(&scene, 3).await;
    assert_eq!(scene.guarded_rows().await, [2], "rejected rows have no message");
    let suppressed = scene.ledger.load_suppressed_numbers("sale", SuppressionPolicy::default()).await.unwrap().numbers;
    assert!([2, 3].iter().all(|row| suppressed.contains(phone(*row))) && !suppressed.contains(phone(4)));
    let listed = scene.port().find_opt_outs(phone(2)).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(matches!(listed[0].who, Addressee::Forgotten(_)), "{listed:?}");
    // Adding the number again finds the forgotten entry and does not store the number.
    let again = scene.ledger.add_opt_outs(vec![opt_out(phone(2))].into(), AdditionMode::Add).await.unwrap();
    assert_eq!((again.added, again.known), (0, listed.clone()));
    let removal =
        OptOutRemoval { target: RemovalTarget::Number { phone: phone(2), scope: None }, by: "olena".into(), why: None };
    assert_eq!(scene.ledger.remove_opt_outs(removal).await.unwrap(), listed);
    assert!(
        !scene
            .ledger
            .load_suppressed_numbers("sale", SuppressionPolicy::default())
            .await
            .unwrap()
            .numbers
            .contains(phone(2))
    );
    assert_eq!(scene.guarded_rows().await, [2], "the row still has its message");
}

pub(super) async fn forgotten_number_stays_on_the_list_as_a_hash(scene: Scene) {
    let (reason, source) = (format!("{} called", phone(2)).into(), format!("SMS from {}", phone(2)).into());
    let reported = OptOut { reason, source, ..opt_out(phone(2)) };
    scene.ledger.add_opt_outs(vec![reported.clone(), opt_out(phone(3))].into(), AdditionMode::Add).await.unwrap();
    scene.ledger.forget_number(forget_order(2, Vec::new())).await.unwrap();
    let listed = scene.ledger.list_opt_outs(OptOutFilter::Listed { behind: None, at_most: 9 }).await.unwrap();
    let listed: Vec<OptOut> = listed.into_opt_outs().collect();
    assert_eq!((listed.len(), &listed[1]), (2, &opt_out(phone(3))));
    assert!(listed[0].who.phone().is_none() && !format!("{:?}", listed[0]).contains(&digits(2)), "{listed:?}");
    let texts = (listed[0].reason.to_string(), listed[0].source.to_string());
    assert_eq!(texts, ("erased".to_owned(), "erased".to_owned()), "a person wrote them");
    assert_eq!(listed[0].at, reported.at);
    // An envelope that was rendered before the opt-outs is refused, too.
    assert_eq!(scene.begin_envelope(1, scene.lease).await, Permit::OptedOut(vec![Row::new(2), Row::new(3)]));
}

/// The number of a row, without its plus sign.
fn digits(row: u32) -> String {
    phone(row).to_u64().to_string()
}

pub(super) async fn number_is_erased_from_texts_that_mention_it(scene: Scene) {
    let text = format!("{} and {} called", phone(2), phone(3));
    let target = RemovalTarget::Number { phone: phone(2), scope: None };
    let removal = OptOutRemoval { target, by: "olena".into(), why: Some(text.clone().into()) };
    scene.ledger.add_opt_outs(vec![opt_out(phone(2))].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(scene.ledger.remove_opt_outs(removal).await.unwrap().len(), 1);
    let (occasion, target) = (NotificationEvent::Stopped, "a".to_owned());
    let notifications = vec![NewNotification { occasion, target, notice: text.clone() }];
    let end = RunEnd { stop_reason: Some(text.clone()), notifications, ..run_end() };
    scene.ledger.end_run(scene.lease, end).await.unwrap();
    scene.ledger.forget_number(forget_order(2, Vec::new())).await.unwrap();
    let page = scene.ledger.list_opt_outs(OptOutFilter::EndedOfNumber(phone(2))).await.unwrap();
    let reason = page.entries.into_iter().next().unwrap().end.unwrap().why;
    let queued = scene.ledger.take_notifications(Duration::ZERO, Duration::ZERO).await.unwrap();
    assert_eq!(reason, "erased");
    for text in [queued[0].content.notice.clone(), scene.reload_run().await.stop_reason.unwrap()] {
        assert!(!text.contains(&digits(2)) && text.contains(&digits(3)), "{text}");
    }
}

pub(super) async fn number_is_erased_from_a_repeated_opt_out(scene: Scene) {
    let at = |second| Timestamp::from_second(second).unwrap();
    let repeated = OptOut { at: at(1_900_000_000), reason: format!("{} called", phone(2)).into(), ..opt_out(phone(2)) };
    for opt_out in [OptOut { at: at(10), ..repeated.clone() }, repeated.clone()] {
        scene.ledger.add_opt_outs([opt_out].into(), AdditionMode::Add).await.unwrap();
    }
    scene.ledger.forget_number(forget_order(2, Vec::new())).await.unwrap();
    let OptOut { who, reach, source, .. } = scene.port().find_opt_outs(phone(2)).await.unwrap().remove(0);
    let (campaign, purpose, reason) = ("sale".into(), Purpose::Marketing, "START".into());
    let opt_in = Some(OptIn { who, campaign, purpose, reach, reason, source, at: at(20) });
    scene.ledger.store_receipts(vec![NewReceipt { opt_in, ..reply_receipt(2, scene.run.key) }]).await.unwrap();
    let listed = scene.port().find_opt_outs(phone(2)).await.unwrap();
    assert!(listed.len() == 1 && !format!("{listed:?}").contains(&digits(2)), "{listed:?}");
}

pub(super) async fn planned_rows_of_a_forgotten_number_are_skipped_once(scene: Scene) {
    let rows = RoaringBitmap::from([7, 9]);
    scene.ledger.forget_number(forget_order(7, vec![(scene.run.key, rows)])).await.unwrap();
    let excluded = scene.ledger.load_excluded_rows(scene.run.key).await.unwrap();
    assert_eq!(excluded.find_reason(Row::new(7)), Some((RowState::Skipped, OPTED_OUT)));
    assert_eq!(excluded.find_reason(Row::new(9)), Some((RowState::Invalid, "too short")), "with the earlier reason");
    assert_eq!((excluded.count_rows(RowState::Skipped), excluded.count_rows(RowState::Invalid)), (1, 1));
}

pub(super) async fn forgotten_rows_are_listed_until_their_removal_is_recorded(scene: Scene) {
    assert_eq!(scene.ledger.list_rows_to_forget().await.unwrap(), []);
    forget_row(&scene, 3).await;
    forget_row(&scene, 5).await;
    let waiting = vec![(scene.run.key, RoaringBitmap::from([3, 5]))];
    assert_eq!(scene.ledger.list_rows_to_forget().await.unwrap(), waiting);
    scene.ledger.overwrite_remains(&[]).await.unwrap();
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::RowsErased).await.unwrap();
    assert_eq!(scene.ledger.list_rows_to_forget().await.unwrap(), []);
    forget_row(&scene, 6).await;
    assert_eq!(scene.ledger.list_rows_to_forget().await.unwrap(), [(scene.run.key, RoaringBitmap::from([6]))]);
}

/// The final counts of the run.
fn final_counts() -> StateCounts {
    let mut counts = StateCounts::default();
    counts.add(RowState::Accepted, 3);
    counts.add(RowState::Rejected, 1);
    counts
}

/// Sends rows 2 to 5 in two envelopes, with row 3 rejected, then ends and purges the scene's run with these cancelled
/// numbers.
async fn send_and_purge_run(scene: &Scene, cancelled: RoaringTreemap) -> Run {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    scene.begin_envelope(2, scene.lease).await;
    scene.settle_envelope(2, [accepted(), accepted()]).await;
    scene.record_events(scene.lease, vec![event(4, 2, found("delivered"))]).await;
    scene.ledger.store_receipts(vec![reply_receipt(2, scene.run.key)]).await.unwrap();
    scene.ledger.end_run(scene.lease, RunEnd { stop_reason: None, stop: None, ..run_end() }).await.unwrap();
    let counted = scene.reload_run().await;
    let order = PurgeOrder { cancelled, ..purge_order(counted.clone(), final_counts(), 7) };
    assert_eq!(scene.ledger.purge_run(order).await.unwrap(), Ownership::Held);
    counted
}

pub(super) async fn purged_run_keeps_its_counts_but_no_rows(scene: Scene) {
    let before = send_and_purge_run(&scene, RoaringTreemap::new()).await;
    let (ledger, key) = (scene.port(), scene.run.key);
    assert!(ledger.list_envelope_summaries(key).await.unwrap().is_empty());
    assert!(ledger.load_envelopes(key, EnvelopeFilter::Numbers(1..=9)).await.unwrap().is_empty());
    assert!(ledger.load_events(key).await.unwrap().is_empty());
    assert!(ledger.load_receipts(key, 0..99).await.unwrap().is_empty());
    assert!(ledger.load_excluded_rows(key).await.unwrap().rows().is_empty());
    assert!(ledger.load_sent_rows(key).await.unwrap().is_empty());
    assert_eq!(ledger.find_addressee(key, Row::new(2)).await.unwrap(), None);
    let run = scene.reload_run().await;
    assert!(run.purged_at.is_some());
    assert_eq!(run.current_counts(), Some(&(final_counts(), 7)));
    let id = run.message_id(Row::new(2), None).unwrap();
    let unpurged =
        Run { purged_at: None, counts: before.counts.clone(), receipts_counted: before.receipts_counted, ..run };
    assert_eq!(format!("{unpurged:?}"), format!("{before:?}"), "it is the same run with the same identifiers");
    let origin = ledger.find_message(id).await.unwrap().expect("an identifier leads to its run");
    assert_eq!((origin.run, origin.row), (key, Row::new(2)));
    assert!(matches!(ledger.load_copies(&scene.reload_run().await).await, Err(LedgerError::Purged { .. })));
    // Later receipts are not stored, and the counts stay current.
    assert_eq!(ledger.store_receipts(vec![reply_receipt(4, key)]).await.unwrap(), [ReceiptOutcome::Known]);
    assert!(ledger.load_receipts(key, 0..99).await.unwrap().is_empty());
    assert!(scene.reload_run().await.current_counts().is_some());
}

pub(super) async fn numbers_of_a_purged_run_stay_guarded_and_capped(scene: Scene) {
    let month = FrequencyCap { messages: 1, period: Duration::from_secs(30 * 86_400) };
    send_and_purge_run(&scene, RoaringTreemap::new()).await;
    assert_eq!(scene.guarded_rows().await, [2, 4, 5], "rejected rows have no message");
    let capped = scene
        .ledger
        .load_numbers(NumberFilter::Capped(CapQuery { caps: &[month], loopback: false, only: None }))
        .await
        .unwrap();
    assert_eq!([2, 3, 4, 5].map(|row| capped.contains(phone(row))), [true, false, true, true]);
    // Numbers that are forgotten later stay guarded too.
    forget_row(&scene, 4).await;
    assert_eq!(scene.guarded_rows().await, [2, 4, 5]);
    // The spending of the run still counts.
    let scene = with_second_run(scene, new_run(7)).await;
    let budget = Budget { recipients: Some(4), ..Budget::default() };
    let bounds = Some(Arc::new(Bounds { budget, ..Bounds::default() }));
    let permit = scene.ledger.begin_envelope(Intent { bounds, ..scene.new_intent(3, scene.lease) }).await.unwrap();
    assert!(matches!(permit, Permit::BoundExceeded { fits: 1, .. }), "{permit:?}");
    let bounds = Some(Arc::new(Bounds { caps: vec![month], ..Bounds::default() }));
    let permit = scene.ledger.begin_envelope(Intent { bounds, ..scene.new_intent(1, scene.lease) }).await.unwrap();
    assert_eq!(permit, Permit::Capped(vec![Row::new(2)]));
}

pub(super) async fn cancelled_numbers_of_a_purged_run_are_kept_as_hashes(scene: Scene) {
    let numbers = [phone(8), phone(9)].map(|phone| phone.to_u64()).into_iter().collect();
    send_and_purge_run(&scene, numbers).await;
    let cancelled_numbers = scene.ledger.load_numbers(NumberFilter::Cancelled(scene.run.key)).await.unwrap();
    assert_eq!([4, 8, 9].map(|row| cancelled_numbers.contains(phone(row))), [false, true, true]);
    assert_eq!(scene.guarded_rows().await, [2, 4, 5], "they have no message");
    assert_eq!(scene.ledger.load_numbers(NumberFilter::Sent(&[scene.run.key])).await.unwrap().len(), 3);
}

pub(super) async fn claimed_or_changed_run_is_not_purged(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    let assert_refused = async |counted: Run| {
        assert_eq!(scene.ledger.purge_run(purge_order(counted, final_counts(), 7)).await.unwrap(), Ownership::Lost);
        assert_eq!(scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=9)).await.unwrap().len(), 1);
    };
    assert_refused(scene.reload_run().await).await;
    let paused = RunEnd { progress: RunProgress::Open, ..run_end() };
    scene.ledger.end_run(scene.lease, paused).await.unwrap();
    assert_refused(scene.reload_run().await).await;
    let again = scene.claim_again().await;
    scene.ledger.end_run(again, run_end()).await.unwrap();
    let counted = scene.reload_run().await;
    scene.ledger.store_receipts(vec![reply_receipt(2, scene.run.key)]).await.unwrap();
    assert_refused(counted).await;
    let counted = scene.reload_run().await;
    assert_eq!(scene.ledger.purge_run(purge_order(counted.clone(), final_counts(), 7)).await.unwrap(), Ownership::Held);
    assert_eq!(
        scene.ledger.purge_run(purge_order(counted, final_counts(), 9)).await.unwrap(),
        Ownership::Lost,
        "once is enough"
    );
    assert_eq!(scene.reload_run().await.counts, Some((final_counts(), 7)));
}

pub(super) async fn purged_run_cannot_be_claimed_or_drawn_from(scene: Scene) {
    send_and_purge_run(&scene, RoaringTreemap::new()).await;
    let claim = scene.ledger.claim_run(&scene.lock, scene.run.key).await;
    assert!(matches!(claim, Err(LedgerError::Purged { .. })), "{claim:?}");
    let draw_run = || async {
        let drawn = scene.ledger.draw_block(&shared_run(), BlockRequest::for_message(None, None)).await.unwrap();
        drawn.into_block().expect("a row").run
    };
    let shared = draw_run().await;
    assert_eq!(draw_run().await.key, shared.key);
    let current_run = scene.port().list_runs(RunFilter::with_key(shared.key)).await.unwrap().pop().unwrap();
    assert_eq!(
        scene.ledger.purge_run(purge_order(current_run, StateCounts::default(), 0)).await.unwrap(),
        Ownership::Held
    );
    assert_ne!(draw_run().await.key, shared.key);
}

/// Stores evidence for rows 2 to 4 and 7, in two blocks. Returns `false` if the ledger cannot store evidence.
async fn store_consents(scene: &Scene) -> bool {
    // The tables of early versions cannot store this evidence.
    if !scene.ledger.properties().stores_consents {
        return false;
    }
    let blocks = [&[2, 3, 4][..], &[7]].map(|rows| {
        let mut block = ConsentBlockBuilder::default();
        for row in rows {
            let (at, source) = (format!("2026-03-0{row}"), format!("form {}", phone(*row)));
            let cells = ConsentCells { value: "так", at: &at, source: &source, wording: "I agree" };
            block.add_row(Row::new(*row), cells);
        }
        block.build()
    });
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Consents(blocks.into())).await.unwrap();
    true
}

async fn list_consent_sources(scene: &Scene, first: u32, last: u32) -> Vec<(u32, String)> {
    let rows = RowSpan { first: Row::new(first), last: Row::new(last) };
    let consents = scene.ledger.load_consents(scene.run.key, rows).await.unwrap();
    for ConsentEvidence { row, value, at, source: _, wording } in &consents {
        assert_eq!((value.as_str(), at, wording.as_str()), ("так", &format!("2026-03-0{row}"), "I agree"));
    }
    consents.into_iter().map(|evidence| (evidence.row.get(), evidence.source)).collect()
}

pub(super) async fn evidence_of_consent_is_kept_by_row_until_forgotten(scene: Scene) {
    if !store_consents(&scene).await {
        return;
    }
    let source = |row: u32| (row, format!("form {}", phone(row)));
    assert_eq!(list_consent_sources(&scene, 2, 9).await, [2, 3, 4, 7].map(source));
    assert_eq!(list_consent_sources(&scene, 3, 3).await, [source(3)]);
    assert_eq!(list_consent_sources(&scene, 5, 6).await, []);
    forget_row(&scene, 3).await;
    assert_eq!(list_consent_sources(&scene, 2, 9).await, [2, 4, 7].map(source));
    forget_row(&scene, 7).await;
    assert_eq!(list_consent_sources(&scene, 2, 9).await, [2, 4].map(source));
}

pub(super) async fn evidence_of_consent_is_purged_with_its_run(scene: Scene) {
    if store_consents(&scene).await {
        send_and_purge_run(&scene, RoaringTreemap::new()).await;
        assert_eq!(list_consent_sources(&scene, 2, 9).await, []);
    }
}

pub(super) async fn forgotten_number_stays_cancelled_and_known_by_its_row(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    let key = scene.run.key;
    forget_row(&scene, 3).await;
    let rows = RoaringBitmap::from([2, 3, 8]);
    let numbers = scene.ledger.load_numbers(NumberFilter::Rows(key, &rows)).await.unwrap();
    assert_eq!([2, 3, 4, 8].map(|row| numbers.contains(phone(row))), [true, true, false, false]);
    let order = ForgetOrder { cancelled_in: vec![key], ..forget_order(8, vec![(key, RoaringBitmap::from([8]))]) };
    scene.ledger.forget_number(order.clone()).await.unwrap();
    scene.ledger.forget_number(order).await.unwrap();
    let hashes = scene.ledger.load_numbers(NumberFilter::Cancelled(key)).await.unwrap();
    assert_eq!((hashes.len(), hashes.contains(phone(8)), hashes.contains(phone(3))), (1, true, false));
    assert_eq!(scene.guarded_rows().await, [2], "a cancelled number has no message");
    // The purge keeps the hash, although the list no longer contains the number.
    scene.ledger.end_run(scene.lease, RunEnd { stop_reason: None, stop: None, ..run_end() }).await.unwrap();
    let mut counts = StateCounts::default();
    counts.add(RowState::Accepted, 1);
    counts.add(RowState::Rejected, 1);
    let cancelled = [phone(9).to_u64()].into_iter().collect();
    let order = PurgeOrder { cancelled, ..purge_order(scene.reload_run().await, counts, 1) };
    assert_eq!(scene.ledger.purge_run(order).await.unwrap(), Ownership::Held);
    let hashes = scene.ledger.load_numbers(NumberFilter::Cancelled(key)).await.unwrap();
    assert_eq!([3, 8, 9].map(|row| hashes.contains(phone(row))), [false, true, true]);
}
