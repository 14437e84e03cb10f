//! Conformance tests of the suppression list: its entries, the numbers that it suppresses, and opt-outs between
//! planning and sending.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::scene::*;
use crate::{
    AdditionMode, Additions, EXPIRED, EndedOptOut, LedgerError, NewReceipt, NewRun, OPTED_OUT, OptIn, OptOut,
    OptOutEnd, OptOutFilter, OptOutReach, OptOutRemoval, OptOutScope, Ownership, Permit, RemovalTarget, RowState,
    RowUpdate, StateCounts, SuppressionPolicy, import_source, opt_in_source,
};
use campaign_core::domain::{Purpose, Receipt, ReceiptSource, RecipientReply, Row, Status};

/// An opt-out from marketing messages.
pub(super) fn opt_out(row: u32) -> OptOut {
    OptOut {
        who: phone(row).into(),
        scope: OptOutScope::Marketing,
        reach: OptOutReach::AllGateways,
        reason: "STOP".into(),
        source: "olena".into(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn campaign_opt_out(row: u32, campaign: &str) -> OptOut {
    OptOut { scope: OptOutScope::from_campaign(Some(campaign)), ..opt_out(row) }
}

fn opt_out_from_all_messages(row: u32) -> OptOut {
    OptOut { scope: OptOutScope::All, ..opt_out(row) }
}

fn loopback_opt_out(row: u32) -> OptOut {
    OptOut { reach: OptOutReach::LoopbackGateways, ..opt_out(row) }
}

fn removal(row: u32, scope: Option<OptOutScope>) -> OptOutRemoval {
    let target = RemovalTarget::Number { phone: phone(row), scope };
    OptOutRemoval { target, by: "ivan".into(), why: Some(Arc::from("asked to be back")) }
}

async fn list_entries(scene: &Scene) -> Vec<OptOut> {
    let page = scene.ledger.list_opt_outs(OptOutFilter::Listed { behind: None, at_most: 100 }).await.unwrap();
    page.into_opt_outs().collect()
}

/// The rows from 2 to 5 that are suppressed, and the version of the suppression list.
async fn suppressed_rows(scene: &Scene, campaign: &str, loopback: bool) -> (Vec<u32>, u64) {
    rows_suppressed_under(scene, campaign, SuppressionPolicy { loopback, ..SuppressionPolicy::default() }).await
}

/// The rows from 2 to 5 that are suppressed under a policy, and the version of the suppression list.
async fn rows_suppressed_under(scene: &Scene, campaign: &str, policy: SuppressionPolicy) -> (Vec<u32>, u64) {
    let opted_out = scene.ledger.load_suppressed_numbers(campaign, policy).await.unwrap();
    ((2..=5).filter(|row| opted_out.numbers.contains(phone(*row))).collect(), opted_out.version)
}

/// A scene whose run has this policy.
async fn with_policy(scene: Scene, policy: SuppressionPolicy) -> Scene {
    let Scene { ledger, lock, .. } = scene;
    drop(lock);
    Scene::with_run(ledger, &NewRun { suppression: policy, campaign: "other".into(), ..new_run(7) }).await
}

pub(super) async fn opt_out_is_listed_once_with_reason_source_and_time(scene: Scene) {
    let first = vec![opt_out(2), campaign_opt_out(2, "sale"), loopback_opt_out(3)];
    let added = scene.ledger.add_opt_outs(first.clone().into(), AdditionMode::Add).await.unwrap();
    assert_eq!(added, Additions { added: 3, ..Additions::default() });
    let again = OptOut { reason: "a complaint".into(), at: Timestamp::now(), ..opt_out(2) };
    let added = scene.ledger.add_opt_outs(vec![again, opt_out(4)].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(added, Additions { added: 1, existing: 1, known: vec![opt_out(2)] }, "the entry is unchanged");
    assert_eq!(list_entries(&scene).await, [first, vec![opt_out(4)]].concat());
    let part = scene.ledger.list_opt_outs(OptOutFilter::Listed { behind: None, at_most: 3 }).await.unwrap();
    assert_eq!((part.entries.len(), part.next.is_some()), (3, true));
    let rest = OptOutFilter::Listed { behind: part.next, at_most: 3 };
    let rest = scene.ledger.list_opt_outs(rest).await.unwrap();
    assert_eq!(rest.next, None);
    assert_eq!(rest.into_opt_outs().collect::<Vec<_>>(), [opt_out(4)]);
}

pub(super) async fn number_added_twice_is_listed_once(scene: Scene) {
    let opt_outs: Vec<OptOut> = (0..10_000).map(|row| opt_out(row % 9_000)).collect();
    let added = scene.ledger.add_opt_outs(opt_outs.into(), AdditionMode::Add).await.unwrap();
    assert_eq!((added.added, added.existing, added.known.len()), (9_000, 1_000, 0));
    assert_eq!(
        scene.ledger.load_suppressed_numbers("sale", SuppressionPolicy::default()).await.unwrap().numbers.len(),
        9_000
    );
}

pub(super) async fn removed_opt_out_can_return_and_changes_raise_the_version(scene: Scene) {
    let version = async || suppressed_rows(&scene, "sale", false).await.1;
    let mut versions = vec![version().await];
    scene.ledger.add_opt_outs(vec![opt_out(2), campaign_opt_out(2, "sale")].into(), AdditionMode::Add).await.unwrap();
    versions.push(version().await);
    scene.ledger.add_opt_outs(vec![opt_out(2)].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(version().await, versions[1], "nothing changed");
    let removed = scene.ledger.remove_opt_outs(removal(2, Some(OptOutScope::Marketing))).await.unwrap();
    assert_eq!(removed, [opt_out(2)]);
    versions.push(version().await);
    assert_eq!(list_entries(&scene).await, [campaign_opt_out(2, "sale")]);
    assert_eq!(scene.ledger.remove_opt_outs(removal(2, None)).await.unwrap(), [campaign_opt_out(2, "sale")]);
    versions.push(version().await);
    assert_eq!(scene.ledger.remove_opt_outs(removal(2, None)).await.unwrap(), []);
    assert_eq!(version().await, versions[3], "nothing changed");
    scene.ledger.add_opt_outs(vec![opt_out(2)].into(), AdditionMode::Add).await.unwrap();
    versions.push(version().await);
    assert_eq!(list_entries(&scene).await, [opt_out(2)]);
    assert!(versions.is_sorted_by(|before, after| before < after), "{versions:?}");
}

pub(super) async fn numbers_are_suppressed_by_campaign_and_gateway(scene: Scene) {
    scene
        .ledger
        .add_opt_outs(vec![opt_out(2), campaign_opt_out(3, "sale"), loopback_opt_out(4)].into(), AdditionMode::Add)
        .await
        .unwrap();
    for (campaign, loopback, expected) in [
        ("sale", false, vec![2, 3]),
        ("sale", true, vec![2, 3, 4]),
        ("other", false, vec![2]),
        ("other", true, vec![2, 4]),
    ] {
        assert_eq!(suppressed_rows(&scene, campaign, loopback).await.0, expected, "{campaign} {loopback}");
    }
}

pub(super) async fn opt_out_before_the_intent_skips_the_row(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.ledger.add_opt_outs(vec![opt_out(3), opt_out(4)].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(scene.begin_envelope(2, scene.forged_lease()).await, Permit::Lost, "a lost lease skips no rows");
    assert_eq!(scene.excluded_rows().await, [9]);
    assert_eq!(scene.begin_envelope(2, scene.lease).await, Permit::OptedOut(vec![Row::new(4)]));
    assert_eq!(scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap().len(), 1, "no intent");
    assert_eq!(scene.excluded_rows().await, [4, 9]);
    let excluded = scene.ledger.load_excluded_rows(scene.run.key).await.unwrap();
    assert_eq!(excluded.find_reason(Row::new(4)), Some((RowState::Skipped, OPTED_OUT)));
    let mut rest = scene.new_intent(2, scene.lease);
    rest.rows.retain(|sent| sent.row != Row::new(4));
    assert_eq!(scene.ledger.begin_envelope(rest).await.unwrap(), granted(2));
    assert_eq!(scene.begin_envelope(3, scene.lease).await, granted(3), "the list changed, but not for this envelope");
    scene.ledger.add_opt_outs(vec![opt_out(13)].into(), AdditionMode::Add).await.unwrap();
    let at_once = join_all((4..=9).map(|n| scene.ledger.begin_envelope(scene.new_intent(n, scene.lease)))).await;
    let expected = [granted(4), granted(5), Permit::OptedOut(vec![Row::new(13)]), granted(6), granted(7), granted(8)];
    assert_eq!(at_once.into_iter().map(Result::unwrap).collect::<Vec<_>>(), expected);
}

pub(super) async fn rows_are_skipped_with_a_reason_by_the_lease_holder(scene: Scene) {
    let rows = |rows: &[u32]| rows.iter().copied().map(Row::new).collect::<Vec<_>>();
    assert_eq!(
        scene
            .ledger
            .update_rows(scene.forged_lease(), RowUpdate::Skipped { rows: rows(&[2]), reason: OPTED_OUT })
            .await
            .unwrap(),
        Ownership::Lost
    );
    assert_eq!(scene.excluded_rows().await, [9]);
    assert_eq!(
        scene
            .ledger
            .update_rows(scene.lease, RowUpdate::Skipped { rows: rows(&[4]), reason: OPTED_OUT })
            .await
            .unwrap(),
        Ownership::Held
    );
    assert_eq!(
        scene.ledger.update_rows(scene.lease, RowUpdate::Skipped { rows: rows(&[2]), reason: EXPIRED }).await.unwrap(),
        Ownership::Held
    );
    assert_eq!(scene.excluded_rows().await, [2, 4, 9]);
    let excluded = scene.ledger.load_excluded_rows(scene.run.key).await.unwrap();
    assert_eq!(excluded.find_reason(Row::new(4)), Some((RowState::Skipped, OPTED_OUT)));
    assert_eq!(excluded.find_reason(Row::new(2)), Some((RowState::Skipped, EXPIRED)));
    assert_eq!(
        scene.ledger.load_suppressed_numbers("sale", SuppressionPolicy::default()).await.unwrap().numbers.len(),
        0,
        "the ledger's list is unchanged"
    );
}

pub(super) async fn policy_of_a_run_decides_which_opt_outs_apply(scene: Scene) {
    scene
        .ledger
        .add_opt_outs(vec![opt_out(2), loopback_opt_out(3), campaign_opt_out(4, "sale")].into(), AdditionMode::Add)
        .await
        .unwrap();
    let remote = SuppressionPolicy::default();
    let opted_out = |rows: &[u32]| Permit::OptedOut(rows.iter().copied().map(Row::new).collect());
    let scene = with_policy(scene, remote).await;
    assert_eq!(scene.begin_envelope(1, scene.lease).await, opted_out(&[2]));
    assert_eq!(scene.begin_envelope(2, scene.lease).await, granted(1), "another campaign's opt-out");
    let scene = with_policy(scene, SuppressionPolicy { loopback: true, ..remote }).await;
    assert_eq!(scene.begin_envelope(1, scene.lease).await, opted_out(&[2, 3]));
    let scene = with_policy(scene, SuppressionPolicy::SERVICE).await;
    assert_eq!(scene.begin_envelope(1, scene.lease).await, granted(1));
    let reloaded = scene.reload_run().await;
    assert_eq!(reloaded.suppression, SuppressionPolicy::SERVICE);
}

pub(super) async fn scope_of_an_opt_out_decides_which_purpose_it_covers(scene: Scene) {
    let listed = vec![opt_out(2), opt_out_from_all_messages(3), campaign_opt_out(4, "other")];
    if let Err(LedgerError::NotUpgraded { .. }) =
        scene.ledger.add_opt_outs(listed.clone().into(), AdditionMode::Add).await
    {
        assert_eq!(list_entries(&scene).await, [], "the previous version would ignore one of them");
        return;
    }
    assert_eq!(list_entries(&scene).await, listed);
    let service = SuppressionPolicy::SERVICE;
    let mandatory = SuppressionPolicy { mandatory: true, ..service };
    for (policy, expected) in [
        (SuppressionPolicy::default(), &[2, 3, 4][..]),
        (service, &[3]),
        (mandatory, &[]),
        (SuppressionPolicy { mandatory: true, ..SuppressionPolicy::default() }, &[2, 3, 4]),
    ] {
        assert_eq!(rows_suppressed_under(&scene, "other", policy).await.0, expected, "{policy:?}");
    }
    let removed = scene.ledger.remove_opt_outs(removal(3, Some(OptOutScope::Marketing))).await.unwrap();
    assert_eq!(removed, [], "the opt-out from all messages stays");
    let scene = with_policy(scene, service).await;
    assert_eq!(scene.begin_envelope(1, scene.lease).await, Permit::OptedOut(vec![Row::new(3)]));
    scene.ledger.add_opt_outs(vec![opt_out_from_all_messages(4)].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(scene.begin_envelope(2, scene.lease).await, Permit::OptedOut(vec![Row::new(4)]), "since the run began");
    let scene = with_policy(scene, mandatory).await;
    assert_eq!(scene.reload_run().await.suppression, mandatory);
    assert_eq!(scene.begin_envelope(1, scene.lease).await, granted(1));
}

pub(super) async fn reply_opts_out_of_all_messages_if_the_tables_allow_it(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    let receipt = Receipt::new(ReceiptSource::Webhook, Status::Replied);
    let opt_out = Some(opt_out_from_all_messages(2));
    let new = NewReceipt { run: scene.run.key, row: Row::new(2), order: None, receipt, opt_out, opt_in: None };
    scene.ledger.store_receipts(vec![new]).await.unwrap();
    let listed = list_entries(&scene).await;
    // The previous version, which shares the tables, knows only opt-outs from marketing.
    assert!(listed == [opt_out_from_all_messages(2)] || listed == [super::suppression::opt_out(2)], "{listed:?}");
}

fn at_second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn opt_out_at(row: u32, seconds: i64) -> OptOut {
    OptOut { at: at_second(seconds), ..opt_out(row) }
}

/// An opt-in by the recipient in row 2.
fn opt_in(seconds: i64) -> OptIn {
    OptIn {
        who: phone(2).into(),
        campaign: "sale".into(),
        purpose: Purpose::Marketing,
        reach: OptOutReach::AllGateways,
        reason: "answered START".into(),
        source: opt_in_source("sale@1", Row::new(2)).into(),
        at: at_second(seconds),
    }
}

/// A receipt of the message in row 2.
fn new_receipt(scene: &Scene) -> NewReceipt {
    let receipt = Receipt::new(ReceiptSource::Webhook, Status::Replied);
    NewReceipt { run: scene.run.key, row: Row::new(2), order: None, receipt, opt_out: None, opt_in: None }
}

async fn store_opt_in(scene: &Scene, opt_in: OptIn) {
    let new = NewReceipt { opt_in: Some(opt_in), ..new_receipt(scene) };
    scene.ledger.store_receipts(vec![new]).await.unwrap();
}

async fn store_opt_out(scene: &Scene, opt_out: OptOut) {
    let new = NewReceipt { opt_out: Some(opt_out), ..new_receipt(scene) };
    scene.ledger.store_receipts(vec![new]).await.unwrap();
}

async fn add_opt_out(scene: &Scene, opt_out: OptOut) -> Additions {
    scene.ledger.add_opt_outs([opt_out].into(), AdditionMode::Add).await.unwrap()
}

pub(super) async fn reply_ends_earlier_opt_outs_from_the_message_it_answers(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    let other = OptOut { at: at_second(10), ..campaign_opt_out(2, "other") };
    let others = [opt_out_at(3, 10), other, loopback_opt_out(2), opt_out_at(2, 30)];
    let imported =
        OptOut { source: imported_opt_out(2, "a.csv").source, at: at_second(10), ..campaign_opt_out(2, "sale") };
    let listed = [others.to_vec(), vec![imported.clone()]].concat();
    scene.ledger.add_opt_outs(listed.into(), AdditionMode::Add).await.unwrap();
    let version = suppressed_rows(&scene, "sale", false).await.1;
    store_opt_in(&scene, OptIn { purpose: Purpose::Service, ..opt_in(20) }).await;
    assert_eq!(suppressed_rows(&scene, "sale", false).await.1, version, "marketing is not service");
    store_opt_in(&scene, opt_in(20)).await;
    assert_eq!(list_entries(&scene).await, others, "a later opt-out, another campaign and another number stay");
    assert_eq!(suppressed_rows(&scene, "sale", false).await.1, version + 1);
    let (by, reason) = ("reply to sale@1, row 2".to_owned(), "answered START".to_owned());
    let end = OptOutEnd { at: at_second(20), by, why: reason };
    let ended = scene.port().find_ended_opt_outs(phone(2)).await.unwrap();
    assert_eq!(ended, [EndedOptOut { opt_out: imported, end }]);
    // A repeated webhook does not end a later opt-out.
    store_opt_in(&scene, opt_in(20)).await;
    assert_eq!(list_entries(&scene).await, others);
    assert_eq!(scene.port().find_ended_opt_outs(phone(3)).await.unwrap(), []);
}

pub(super) async fn late_opt_in_keeps_the_latest_opt_out(scene: Scene) {
    let complaint = OptOut { reason: "a complaint".into(), source: "olena".into(), ..opt_out_at(2, 30) };
    let import = OptOut { at: at_second(40), ..imported_opt_out(2, "a.csv") };
    for (later, others) in [
        (complaint.clone(), vec![opt_out_at(2, 25)]),
        (import.clone(), vec![complaint.clone(), opt_out_at(2, 5)]),
        (opt_out_at(2, 20), vec![]),
    ] {
        add_opt_out(&scene, opt_out_at(2, 10)).await;
        for repeated in others.into_iter().chain([later.clone()]) {
            assert_eq!(add_opt_out(&scene, repeated).await.known, [opt_out_at(2, 10)]);
        }
        assert_eq!(list_entries(&scene).await, [opt_out_at(2, 10)], "the first entry is unchanged");
        let version = suppressed_rows(&scene, "sale", false).await.1;
        store_opt_in(&scene, opt_in(20)).await;
        assert_eq!(list_entries(&scene).await, [later]);
        assert!(suppressed_rows(&scene, "sale", false).await.1 > version);
        scene.ledger.remove_opt_outs(removal(2, None)).await.unwrap();
    }
    // One import names the number twice.
    let twice = [imported_opt_out(2, "a.csv"), import.clone()];
    scene.ledger.add_opt_outs(twice.into(), AdditionMode::Add).await.unwrap();
    store_opt_in(&scene, opt_in(20)).await;
    assert_eq!(list_entries(&scene).await, std::slice::from_ref(&import));
    // A reply replaces the import although it is older.
    add_opt_out(&scene, opt_out_at(2, 21)).await;
    assert_eq!(list_entries(&scene).await, [opt_out_at(2, 21)]);
    store_opt_in(&scene, opt_in(22)).await;
    assert_eq!(list_entries(&scene).await, [import]);
    store_opt_in(&scene, opt_in(50)).await;
    assert_eq!(list_entries(&scene).await, []);
}

pub(super) async fn removing_an_opt_out_removes_its_repetitions(scene: Scene) {
    add_opt_out(&scene, opt_out_at(2, 10)).await;
    add_opt_out(&scene, opt_out_at(2, 30)).await;
    scene.ledger.remove_opt_outs(removal(2, None)).await.unwrap();
    add_opt_out(&scene, opt_out_at(2, 15)).await;
    store_opt_in(&scene, opt_in(20)).await;
    assert_eq!(list_entries(&scene).await, []);
}

pub(super) async fn reply_repeated_after_an_opt_in_is_not_recorded(scene: Scene) {
    store_opt_out(&scene, opt_out_at(2, 10)).await;
    store_opt_in(&scene, opt_in(20)).await;
    store_opt_out(&scene, opt_out_at(2, 10)).await;
    assert_eq!(list_entries(&scene).await, []);
    for other in [opt_out_at(2, 20), opt_out_at(3, 10), OptOut { at: at_second(10), ..loopback_opt_out(2) }] {
        store_opt_out(&scene, other.clone()).await;
        assert_eq!(list_entries(&scene).await, std::slice::from_ref(&other));
        let target = RemovalTarget::Entries(vec![other]);
        scene.ledger.remove_opt_outs(OptOutRemoval { target, by: "ivan".into(), why: None }).await.unwrap();
    }
    // An operator may list the number again, even with an earlier date.
    assert_eq!(add_opt_out(&scene, imported_opt_out(2, "a.csv")).await.added, 1);
    // A removal by an operator is not an opt-in.
    scene.ledger.remove_opt_outs(removal(2, None)).await.unwrap();
    store_opt_out(&scene, opt_out_at(2, 21)).await;
    assert_eq!(list_entries(&scene).await, [opt_out_at(2, 21)]);
}

pub(super) async fn repeated_receipt_is_not_a_new_wish(scene: Scene) {
    let now = Timestamp::now().as_second();
    let store = async |at: Option<i64>, text: &str, opt_out, opt_in| {
        let mut new = NewReceipt { opt_out, opt_in, ..new_receipt(&scene) };
        new.receipt.replies = vec![RecipientReply { at: at.map(at_second), text: text.into(), media: None }];
        scene.ledger.store_receipts(vec![new]).await.unwrap();
    };
    // A repeated receipt gets at most the time of its first arrival, so a fast gateway clock does not matter.
    store(Some(now + 9_000), "STOP", Some(opt_out_at(2, now)), None).await;
    store(None, "START", None, Some(opt_in(now + 100))).await;
    assert_eq!(list_entries(&scene).await, []);
    store(Some(now + 9_000), "STOP", Some(opt_out_at(2, now + 200)), None).await;
    assert_eq!(list_entries(&scene).await, [], "a repeated STOP");
    store(Some(now + 9_500), "STOP", Some(opt_out_at(2, now + 300)), None).await;
    store(None, "START", None, Some(opt_in(now + 400))).await;
    assert_eq!(list_entries(&scene).await, [opt_out_at(2, now + 300)], "a repeated START");
    // A STOP without a time might be a new one.
    store(None, "STOP", Some(opt_out_at(3, now + 100)), None).await;
    scene.ledger.remove_opt_outs(removal(3, None)).await.unwrap();
    store(None, "STOP", Some(opt_out_at(3, now + 600)), None).await;
    assert_eq!(list_entries(&scene).await[1..], [opt_out_at(3, now + 600)]);
}

pub(super) async fn run_with_the_current_list_version_is_not_checked_again(scene: Scene) {
    scene.ledger.add_opt_outs(vec![opt_out(2)].into(), AdditionMode::Add).await.unwrap();
    let (_, version) = suppressed_rows(&scene, "other", false).await;
    let scene = with_policy(scene, SuppressionPolicy { version, ..SuppressionPolicy::default() }).await;
    assert_eq!(scene.reload_run().await.suppression.version, version);
    // The plan skipped opted-out recipients, so an envelope with one of them shows that the list is not read again.
    assert_eq!(scene.begin_envelope(1, scene.lease).await, granted(1));
    scene.ledger.add_opt_outs(vec![opt_out(9)].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(scene.begin_envelope(1, scene.lease).await, Permit::OptedOut(vec![Row::new(2)]));
}

pub(super) async fn opt_out_between_attempts_skips_the_row_and_keeps_doubt(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.begin_envelope(2, scene.lease).await;
    scene.settle_envelope(1, [not_sent(), in_doubt()]).await;
    scene.settle_envelope(2, [in_doubt(), accepted()]).await;
    let events = [3, 4].map(|row| event(row, row / 2, send_again()));
    scene.record_events(scene.lease, events.to_vec()).await;
    scene.ledger.add_opt_outs((2..=5).map(opt_out).collect::<Vec<_>>().into(), AdditionMode::Add).await.unwrap();
    let mut intent = scene.new_intent(1, scene.lease);
    intent.rows.extend(scene.new_intent(2, scene.lease).rows.drain(..1));
    assert_eq!(scene.ledger.begin_envelope(intent).await.unwrap(), Permit::OptedOut([2, 3, 4].map(Row::new).to_vec()));
    let reported = [RowState::Skipped, RowState::InDoubt, RowState::InDoubt, RowState::Accepted];
    assert_eq!(scene.row_states().await, reported.map(Some));
    // Later proof counts despite an opt-out.
    scene.record_events(scene.lease, vec![event(4, 2, found("DELIVERED"))]).await;
    assert_eq!(scene.row_states().await[2], Some(RowState::Accepted));
    let mut expected = StateCounts::default();
    for state in reported.into_iter().take(2).chain([RowState::Accepted; 2]).chain([RowState::Invalid]) {
        expected.add(state, 1);
    }
    expected.add(RowState::Planned, 5);
    assert_eq!(scene.count_states().await, expected, "each row is counted once");
}

/// An opt-out that was imported from this file.
fn imported_opt_out(row: u32, file: &str) -> OptOut {
    OptOut { source: import_source(file, "olena", Timestamp::UNIX_EPOCH).into(), ..opt_out(row) }
}

pub(super) async fn opt_out_by_a_recipient_replaces_an_imported_one(scene: Scene) {
    let import = vec![imported_opt_out(2, "a.csv"), imported_opt_out(3, "a.csv"), imported_opt_out(4, "a.csv")];
    scene.ledger.add_opt_outs(import.clone().into(), AdditionMode::Add).await.unwrap();
    let reply = OptOut { source: "reply to sale@1".into(), ..opt_out(2) };
    let new: Arc<[OptOut]> = [reply.clone(), imported_opt_out(3, "b.csv"), opt_out(5), opt_out(5)].into();
    let expected = Additions { added: 2, existing: 2, known: Vec::new() };
    let preview = scene.ledger.add_opt_outs(new.clone(), AdditionMode::Preview).await.unwrap();
    assert_eq!(preview, expected);
    assert_eq!(list_entries(&scene).await, import, "the preview changes nothing");
    let added = scene.ledger.add_opt_outs(new, AdditionMode::Add).await.unwrap();
    assert_eq!((added.added, added.existing), (2, 2));
    assert_eq!(
        list_entries(&scene).await,
        [imported_opt_out(3, "a.csv"), imported_opt_out(4, "a.csv"), reply, opt_out(5)]
    );
    // From here on, the reply is the older opt-out. An import does not replace it.
    scene.ledger.add_opt_outs(vec![imported_opt_out(2, "b.csv")].into(), AdditionMode::Add).await.unwrap();
    assert_eq!(suppressed_rows(&scene, "sale", false).await.0, [2, 3, 4, 5]);
}

pub(super) async fn only_unchanged_entries_are_removed(scene: Scene) {
    let for_sale = OptOut { source: imported_opt_out(2, "a.csv").source, ..campaign_opt_out(2, "sale") };
    scene
        .ledger
        .add_opt_outs(
            vec![imported_opt_out(2, "a.csv"), for_sale.clone(), imported_opt_out(3, "a.csv"), opt_out(4)].into(),
            AdditionMode::Add,
        )
        .await
        .unwrap();
    scene.ledger.add_opt_outs(vec![opt_out(3)].into(), AdditionMode::Add).await.unwrap();
    let version = suppressed_rows(&scene, "sale", false).await.1;
    let entries =
        vec![imported_opt_out(2, "a.csv"), for_sale, imported_opt_out(3, "a.csv"), imported_opt_out(5, "a.csv")];
    let target = RemovalTarget::Entries(entries.clone());
    let removal = OptOutRemoval { target, by: "ivan".into(), why: Some("a mistake".into()) };
    let mut removed = scene.ledger.remove_opt_outs(removal.clone()).await.unwrap();
    removed.sort_by_key(|opt_out| entries.iter().position(|entry| entry == opt_out));
    assert_eq!(removed, entries[..2]);
    assert_eq!(suppressed_rows(&scene, "sale", false).await, (vec![3, 4], version + 1));
    assert_eq!(scene.ledger.remove_opt_outs(removal).await.unwrap(), []);
    assert_eq!(suppressed_rows(&scene, "sale", false).await.1, version + 1);
}
