//! Forgetting: the number goes out of every record, what stays holds guard and opt-outs, and nothing else changes.

use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringBitmap;

use super::bounds::beside;
use super::scene::*;
use crate::domain::{
    Addressee, Budget, Cap, MsgId, Outcome, Phone, Receipt, ReceiptSource, RecipientReply, Row, Status,
};
use crate::ledger::{
    BlockRequest, Bounds, ForgetOrder, Intent, Ledger, LedgerError, NewReceipt, OPTED_OUT, OptOut, Ownership, Permit,
    Progress, Reach, Reception, Removal, Run, RunEnd, RunFilter, RunId, Scope, Settlement, State, StateCounts,
};

fn opt_out(phone: Phone) -> OptOut {
    OptOut {
        who: phone.into(),
        scope: Scope::Everything,
        reach: Reach::AllGateways,
        reason: "forgotten".into(),
        source: "olena".into(),
        at: "2026-11-21T10:00:00Z".parse().unwrap(),
    }
}

fn order(row: u32, rows: Vec<(RunId, RoaringBitmap)>) -> ForgetOrder {
    ForgetOrder { phone: phone(row), rows, opt_out: opt_out(phone(row)) }
}

/// Forgets the number of a row of the scene's run.
pub(super) async fn forget<L: Ledger>(scene: &Scene<L>, row: u32) {
    scene.ledger.forget(order(row, vec![(scene.run.key, RoaringBitmap::from([row]))])).await.unwrap();
}

fn said(row: u32, run: RunId) -> NewReceipt {
    let reply = RecipientReply { at: None, text: "call me, I am Olena".into(), media: None };
    let (digit, error) = (Some("5".to_owned()), Some(format!("{} is busy", phone(row))));
    let receipt =
        Receipt { replies: vec![reply], digit, error, ..Receipt::new(ReceiptSource::Webhook, Status::Delivered) };
    NewReceipt { run, row: Row::new(row), order: None, receipt, opt_out: None }
}

pub(super) async fn a_forgotten_number_is_in_no_record_and_the_rows_beside_it_are_as_they_were<L: Ledger>(
    scene: Scene<L>,
) {
    scene.begin(1, scene.mine).await;
    scene.begin(2, scene.mine).await;
    let told = |row: u32| format!("no route to {}", phone(row));
    let outcomes = vec![
        Outcome::Accepted { msg_id: Some(MsgId::Number(5)), parts: Some(2), answer: Some("{\"imsi\":1}".into()) },
        Outcome::Rejected { error: told(3) },
    ];
    let evidence = Some(format!("[{}, {}]", phone(2), phone(3)));
    scene.ledger.settle(Settlement { run: scene.run.key, envelope: 1, outcomes, evidence }).await.unwrap();
    scene.settle(2, [rejected(), accepted()]).await;
    scene.ledger.receive(vec![said(2, scene.run.key), said(3, scene.run.key)]).await.unwrap();
    let states = scene.row_states().await;
    forget(&scene, 2).await;
    let envelopes = scene.ledger.envelopes(scene.run.key, 1..=2).await.unwrap();
    let [gone, kept] = envelopes[0].rows.as_slice() else { panic!("two rows") };
    assert!(matches!(gone.to, Addressee::Forgotten(_)) && gone.digest == [0; 8], "{gone:?}");
    assert_eq!((kept.to, kept.digest), (phone(3).into(), [3; 8]));
    let (_, outcomes) = envelopes[0].settled.clone().unwrap();
    let taken = Outcome::Accepted { msg_id: Some(MsgId::Number(5)), parts: Some(2), answer: None };
    assert_eq!(outcomes, [taken, Outcome::Rejected { error: told(3) }]);
    let evidence = scene.ledger.evidence(scene.run.key, 1).await.unwrap().unwrap();
    assert!(!evidence.contains(&phone(2).to_string()) && evidence.contains(&phone(3).to_string()), "{evidence}");
    let receipts = scene.ledger.receipts(scene.run.key, 2..4).await.unwrap();
    let told: Vec<_> = receipts.iter().map(|(_, kept)| &kept[0].receipt).collect();
    assert!(told[0].replies.is_empty() && told[0].digit.is_none() && told[0].error.is_none());
    assert_eq!((told[0].status.clone(), told[1].replies.len()), (Status::Delivered, 1));
    assert_eq!(scene.row_states().await, states, "what became of them is what it was");
    assert_eq!(scene.ledger.sent_to(scene.run.key, Row::new(2)).await.unwrap(), Some(gone.to));
    // What is told of it later is not kept either.
    let mut later = said(2, scene.run.key);
    later.receipt.status = Status::Read;
    scene.ledger.receive(vec![later]).await.unwrap();
    let receipts = scene.ledger.receipts(scene.run.key, 2..3).await.unwrap();
    assert!(receipts[0].1.len() == 2 && receipts[0].1.iter().all(|kept| kept.receipt.replies.is_empty()));
}

pub(super) async fn who_was_forgotten_is_guarded_and_held_back_by_what_stays_of_the_number<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [accepted(), rejected()]).await;
    forget(&scene, 2).await;
    forget(&scene, 3).await;
    assert_eq!(scene.guarded().await, [2], "who was refused has nothing");
    let held = scene.ledger.opted_out("sale", false).await.unwrap().numbers;
    assert!([2, 3].iter().all(|row| held.contains(phone(*row))) && !held.contains(phone(4)));
    let listed = scene.ledger.opt_outs_of(phone(2)).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(matches!(listed[0].who, Addressee::Forgotten(_)), "{listed:?}");
    // Somebody who is known by what stays comes onto the list no second time, and by no number.
    let again = scene.ledger.suppress(vec![opt_out(phone(2))]).await.unwrap();
    assert_eq!((again.added, again.known), (0, listed.clone()));
    let removal = Removal { phone: phone(2), scope: None, by: "olena".into(), why: None };
    assert_eq!(scene.ledger.unsuppress(removal).await.unwrap(), listed);
    assert!(!scene.ledger.opted_out("sale", false).await.unwrap().numbers.contains(phone(2)));
    assert_eq!(scene.guarded().await, [2], "it has its message all the same");
}

pub(super) async fn who_opted_out_before_stays_on_the_list_by_what_stays_of_the_number<L: Ledger>(scene: Scene<L>) {
    let told = OptOut { reason: format!("{} called", phone(2)).into(), ..opt_out(phone(2)) };
    scene.ledger.suppress(vec![told.clone(), opt_out(phone(3))]).await.unwrap();
    scene.ledger.forget(order(2, Vec::new())).await.unwrap();
    let listed = scene.ledger.opt_outs(None, 9).await.unwrap().entries;
    assert_eq!((listed.len(), &listed[1]), (2, &opt_out(phone(3))));
    assert!(listed[0].who.number().is_none() && !listed[0].reason.contains(&phone(2).to_string()), "{listed:?}");
    assert_eq!(listed[0].at, told.at);
    // An envelope that was rendered before is held back, too.
    assert_eq!(scene.begin(1, scene.mine).await, Permit::OptedOut(vec![Row::new(2), Row::new(3)]));
}

pub(super) async fn what_was_planned_for_who_is_forgotten_is_left_out_once<L: Ledger>(scene: Scene<L>) {
    let rows = RoaringBitmap::from([7, 9]);
    scene.ledger.forget(order(7, vec![(scene.run.key, rows)])).await.unwrap();
    let left_out = scene.ledger.left_out(scene.run.key).await.unwrap();
    assert_eq!(left_out.of(Row::new(7)), Some((State::Skipped, OPTED_OUT)));
    assert_eq!(left_out.of(Row::new(9)), Some((State::Invalid, "too short")), "as it was left out before");
    assert_eq!((left_out.count(State::Skipped), left_out.count(State::Invalid)), (1, 1));
}

pub(super) async fn rows_wait_to_leave_copies_until_somebody_says_that_they_did<L: Ledger>(scene: Scene<L>) {
    assert_eq!(scene.ledger.to_be_forgotten().await.unwrap(), []);
    forget(&scene, 3).await;
    forget(&scene, 5).await;
    let waiting = vec![(scene.run.key, RoaringBitmap::from([3, 5]))];
    assert_eq!(scene.ledger.to_be_forgotten().await.unwrap(), waiting);
    scene.ledger.sweep().await.unwrap();
    scene.ledger.forgot(vec![scene.run.key]).await.unwrap();
    assert_eq!(scene.ledger.to_be_forgotten().await.unwrap(), []);
    forget(&scene, 6).await;
    assert_eq!(scene.ledger.to_be_forgotten().await.unwrap(), [(scene.run.key, RoaringBitmap::from([6]))]);
}

/// What its rows came to, for the tests.
fn came_to() -> StateCounts {
    let mut counts = StateCounts::default();
    counts.add(State::Accepted, 3);
    counts.add(State::Rejected, 1);
    counts
}

/// Ends the scene's run, with two envelopes sent to the rows 2 to 5 of which row 3 was refused, and purges it.
async fn purge<L: Ledger>(scene: &Scene<L>) -> Run {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [accepted(), rejected()]).await;
    scene.begin(2, scene.mine).await;
    scene.settle(2, [accepted(), accepted()]).await;
    scene.record(scene.mine, vec![event(4, 2, found("delivered"))]).await;
    scene.ledger.receive(vec![said(2, scene.run.key)]).await.unwrap();
    scene.ledger.end(scene.mine, RunEnd { stopped: None, stop: None, ..run_end() }).await.unwrap();
    let counted = scene.now().await;
    assert_eq!(scene.ledger.purge(counted.clone(), came_to(), 7).await.unwrap(), Ownership::Held);
    counted
}

pub(super) async fn of_a_purged_run_nothing_of_its_rows_is_left_and_what_it_came_to_stays<L: Ledger>(scene: Scene<L>) {
    let before = purge(&scene).await;
    let (ledger, key) = (&scene.ledger, scene.run.key);
    assert!(ledger.envelope_summaries(key).await.unwrap().is_empty());
    assert!(ledger.envelopes(key, 1..=9).await.unwrap().is_empty());
    assert!(ledger.events(key).await.unwrap().is_empty());
    assert!(ledger.receipts(key, 0..99).await.unwrap().is_empty());
    assert!(ledger.left_out(key).await.unwrap().rows().is_empty());
    assert_eq!(ledger.sent_to(key, Row::new(2)).await.unwrap(), None);
    let run = scene.now().await;
    assert!(run.purged_at.is_some());
    assert_eq!(run.standing_counts(), Some(&(came_to(), 7)));
    let id = run.id(Row::new(2), None).unwrap();
    let same = Run { purged_at: None, counts: before.counts.clone(), receipts_counted: before.receipts_counted, ..run };
    assert_eq!(format!("{same:?}"), format!("{before:?}"), "it is the same run with the same identifiers");
    let found = ledger.find(id).await.unwrap().expect("an identifier leads to its run");
    assert_eq!((found.run, found.row), (key, Row::new(2)));
    assert!(matches!(ledger.copies(&scene.now().await).await, Err(LedgerError::Purged { .. })));
    // What is told of it later is not kept, and makes nothing old.
    assert_eq!(ledger.receive(vec![said(4, key)]).await.unwrap(), [Reception::Known]);
    assert!(ledger.receipts(key, 0..99).await.unwrap().is_empty());
    assert!(scene.now().await.standing_counts().is_some());
}

pub(super) async fn who_has_a_message_of_a_purged_run_is_guarded_and_counted_as_before<L: Ledger>(scene: Scene<L>) {
    let month = Cap { messages: 1, period: Duration::from_secs(30 * 86_400) };
    purge(&scene).await;
    assert_eq!(scene.guarded().await, [2, 4, 5], "who was refused has nothing");
    let held = scene.ledger.capped(&[month], false).await.unwrap();
    assert_eq!([2, 3, 4, 5].map(|row| held.contains(phone(row))), [true, false, true, true]);
    // So is who is forgotten afterwards.
    forget(&scene, 4).await;
    assert_eq!(scene.guarded().await, [2, 4, 5]);
    // What the run used of its edition's budget is used.
    let scene = beside(scene, new_run(7)).await;
    let budget = Budget { recipients: Some(4), ..Budget::default() };
    let bounds = Some(Arc::new(Bounds { budget, ..Bounds::default() }));
    let permit = scene.ledger.begin(Intent { bounds, ..scene.intent(3, scene.mine) }).await.unwrap();
    assert!(matches!(permit, Permit::Over { fits: 1, .. }), "{permit:?}");
    let bounds = Some(Arc::new(Bounds { caps: vec![month], ..Bounds::default() }));
    let permit = scene.ledger.begin(Intent { bounds, ..scene.intent(1, scene.mine) }).await.unwrap();
    assert_eq!(permit, Permit::Capped(vec![Row::new(2)]));
}

pub(super) async fn numbers_cancelled_in_a_purged_run_are_known_by_a_hash<L: Ledger>(scene: Scene<L>) {
    let numbers = [phone(8), phone(9)].map(|phone| phone.get()).into_iter().collect();
    scene.ledger.keep_cancelled(scene.run.key, numbers).await.unwrap();
    purge(&scene).await;
    let kept = scene.ledger.kept_cancelled(scene.run.key).await.unwrap();
    assert_eq!([4, 8, 9].map(|row| kept.contains(phone(row))), [false, true, true]);
    assert_eq!(scene.guarded().await, [2, 4, 5], "they have no message");
    assert_eq!(scene.ledger.numbers_sent_to(&[scene.run.key]).await.unwrap().len(), 3);
}

pub(super) async fn nothing_is_purged_that_somebody_has_or_of_which_more_became_known<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.settle(1, [accepted(), rejected()]).await;
    let refused = async |counted: Run| {
        assert_eq!(scene.ledger.purge(counted, came_to(), 7).await.unwrap(), Ownership::Lost);
        assert_eq!(scene.ledger.envelopes(scene.run.key, 1..=9).await.unwrap().len(), 1);
    };
    refused(scene.now().await).await;
    let paused = RunEnd { progress: Progress::Open, ..run_end() };
    scene.ledger.end(scene.mine, paused).await.unwrap();
    refused(scene.now().await).await;
    let again = scene.take().await;
    scene.ledger.end(again, run_end()).await.unwrap();
    let counted = scene.now().await;
    scene.ledger.receive(vec![said(2, scene.run.key)]).await.unwrap();
    refused(counted).await;
    let counted = scene.now().await;
    assert_eq!(scene.ledger.purge(counted.clone(), came_to(), 7).await.unwrap(), Ownership::Held);
    assert_eq!(scene.ledger.purge(counted, came_to(), 9).await.unwrap(), Ownership::Lost, "once is enough");
    assert_eq!(scene.now().await.counts, Some((came_to(), 7)));
}

pub(super) async fn nobody_takes_a_purged_run_or_draws_rows_of_it<L: Ledger>(scene: Scene<L>) {
    purge(&scene).await;
    let taken = scene.ledger.claim(&scene.hold, scene.run.key).await;
    assert!(matches!(taken, Err(LedgerError::Purged { .. })), "{taken:?}");
    let drawn = || async {
        let drawn = scene.ledger.draw(&shared_run(), BlockRequest::message(None, None)).await.unwrap();
        drawn.block().expect("a row").run
    };
    let shared = drawn().await;
    assert_eq!(drawn().await.key, shared.key);
    let now = scene.ledger.runs(RunFilter::one(shared.key)).await.unwrap().pop().unwrap();
    assert_eq!(scene.ledger.purge(now, StateCounts::default(), 0).await.unwrap(), Ownership::Held);
    assert_ne!(drawn().await.key, shared.key);
}
