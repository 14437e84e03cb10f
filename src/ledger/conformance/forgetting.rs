//! Forgetting: the number goes out of every record, what stays holds guard and opt-outs, and nothing else changes.

use roaring::RoaringBitmap;

use super::scene::*;
use crate::domain::{Addressee, MsgId, Outcome, Phone, Receipt, ReceiptSource, RecipientReply, Row, Status};
use crate::ledger::{
    ForgetOrder, Ledger, NewReceipt, OPTED_OUT, OptOut, Permit, Reach, Removal, RunId, Scope, Settlement, State,
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
