//! The suppression list: who is on it, whom it holds back, and that an opt-out wins over whatever was rendered before.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::scene::*;
use crate::domain::Row;
use crate::ledger::{
    Additions, EXPIRED, EntryRemoval, Heed, Ledger, NewRun, OPTED_OUT, OptOut, Ownership, Permit, Reach, Removal,
    Scope, State, StateCounts, import_source,
};

/// Somebody who opted out of everything.
pub(super) fn opt_out(row: u32) -> OptOut {
    OptOut {
        who: phone(row).into(),
        scope: Scope::Everything,
        reach: Reach::AllGateways,
        reason: "STOP".into(),
        source: "olena".into(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn of_campaign(row: u32, campaign: &str) -> OptOut {
    OptOut { scope: Scope::of(Some(campaign)), ..opt_out(row) }
}

fn on_loopback(row: u32) -> OptOut {
    OptOut { reach: Reach::LoopbackGateways, ..opt_out(row) }
}

fn removal(row: u32, scope: Option<Scope>) -> Removal {
    Removal { phone: phone(row), scope, by: "ivan".into(), why: Some(Arc::from("asked to be back")) }
}

async fn listed<L: Ledger>(scene: &Scene<L>) -> Vec<OptOut> {
    scene.ledger.opt_outs(None, 100).await.unwrap().entries
}

/// The rows, of 2 to 5, that are held back, and the version of the list.
async fn held_back<L: Ledger>(scene: &Scene<L>, campaign: &str, loopback: bool) -> (Vec<u32>, u64) {
    let opted_out = scene.ledger.opted_out(campaign, loopback).await.unwrap();
    ((2..=5).filter(|row| opted_out.numbers.contains(phone(*row))).collect(), opted_out.version)
}

/// A scene whose run heeds the list so.
async fn heeding<L: Ledger>(scene: Scene<L>, heed: Heed) -> Scene<L> {
    let Scene { ledger, hold, .. } = scene;
    drop(hold);
    Scene::of(ledger, &NewRun { heed, campaign: "other".into(), ..new_run(7) }).await
}

pub(super) async fn who_is_on_the_list_is_told_once_with_why_whence_and_since_when<L: Ledger>(scene: Scene<L>) {
    let first = vec![opt_out(2), of_campaign(2, "sale"), on_loopback(3)];
    let added = scene.ledger.suppress(first.clone()).await.unwrap();
    assert_eq!(added, Additions { added: 3, ..Additions::default() });
    let again = OptOut { reason: "a complaint".into(), at: Timestamp::now(), ..opt_out(2) };
    let added = scene.ledger.suppress(vec![again, opt_out(4)]).await.unwrap();
    assert_eq!(added, Additions { added: 1, already: 1, known: vec![opt_out(2)] }, "it stands as it did");
    assert_eq!(listed(&scene).await, [first, vec![opt_out(4)]].concat());
    let part = scene.ledger.opt_outs(None, 3).await.unwrap();
    assert_eq!((part.entries.len(), part.next.is_some()), (3, true));
    let rest = scene.ledger.opt_outs(part.next, 3).await.unwrap();
    assert_eq!((rest.entries, rest.next), (vec![opt_out(4)], None));
}

pub(super) async fn a_number_that_is_twice_among_those_added_is_on_the_list_once<L: Ledger>(scene: Scene<L>) {
    let many: Vec<OptOut> = (0..10_000).map(|row| opt_out(row % 9_000)).collect();
    let added = scene.ledger.suppress(many).await.unwrap();
    assert_eq!((added.added, added.already, added.known.len()), (9_000, 1_000, 0));
    assert_eq!(scene.ledger.opted_out("sale", false).await.unwrap().numbers.len(), 9_000);
}

pub(super) async fn who_was_taken_off_may_come_back_and_each_change_raises_the_version<L: Ledger>(scene: Scene<L>) {
    let version = async || held_back(&scene, "sale", false).await.1;
    let mut seen = vec![version().await];
    scene.ledger.suppress(vec![opt_out(2), of_campaign(2, "sale")]).await.unwrap();
    seen.push(version().await);
    scene.ledger.suppress(vec![opt_out(2)]).await.unwrap();
    assert_eq!(version().await, seen[1], "nothing changed");
    let removed = scene.ledger.unsuppress(removal(2, Some(Scope::Everything))).await.unwrap();
    assert_eq!(removed, [opt_out(2)]);
    seen.push(version().await);
    assert_eq!(listed(&scene).await, [of_campaign(2, "sale")]);
    assert_eq!(scene.ledger.unsuppress(removal(2, None)).await.unwrap(), [of_campaign(2, "sale")]);
    seen.push(version().await);
    assert_eq!(scene.ledger.unsuppress(removal(2, None)).await.unwrap(), []);
    assert_eq!(version().await, seen[3], "nothing changed");
    scene.ledger.suppress(vec![opt_out(2)]).await.unwrap();
    seen.push(version().await);
    assert_eq!(listed(&scene).await, [opt_out(2)]);
    assert!(seen.is_sorted_by(|before, after| before < after), "{seen:?}");
}

pub(super) async fn numbers_are_held_back_by_campaign_and_gateway<L: Ledger>(scene: Scene<L>) {
    scene.ledger.suppress(vec![opt_out(2), of_campaign(3, "sale"), on_loopback(4)]).await.unwrap();
    for (campaign, loopback, expected) in [
        ("sale", false, vec![2, 3]),
        ("sale", true, vec![2, 3, 4]),
        ("other", false, vec![2]),
        ("other", true, vec![2, 4]),
    ] {
        assert_eq!(held_back(&scene, campaign, loopback).await.0, expected, "{campaign} {loopback}");
    }
}

pub(super) async fn an_opt_out_before_an_intent_leaves_its_row_out_whatever_was_rendered<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.ledger.suppress(vec![opt_out(3), opt_out(4)]).await.unwrap();
    assert_eq!(scene.begin(2, scene.forged()).await, Permit::Lost, "who has lost the run leaves nobody out");
    assert_eq!(scene.left_out().await, [9]);
    assert_eq!(scene.begin(2, scene.mine).await, Permit::OptedOut(vec![Row::new(4)]));
    assert_eq!(scene.ledger.envelope_summaries(scene.run.key).await.unwrap().len(), 1, "no intent");
    assert_eq!(scene.left_out().await, [4, 9]);
    let left_out = scene.ledger.left_out(scene.run.key).await.unwrap();
    assert_eq!(left_out.of(Row::new(4)), Some((State::Skipped, OPTED_OUT)));
    let mut rest = scene.intent(2, scene.mine);
    rest.rows.retain(|sent| sent.row != Row::new(4));
    assert_eq!(scene.ledger.begin(rest).await.unwrap(), granted(2));
    assert_eq!(scene.begin(3, scene.mine).await, granted(3), "the list changed, and nobody of this envelope is on it");
    scene.ledger.suppress(vec![opt_out(13)]).await.unwrap();
    let at_once = join_all((4..=9).map(|n| scene.ledger.begin(scene.intent(n, scene.mine)))).await;
    let expected = [granted(4), granted(5), Permit::OptedOut(vec![Row::new(13)]), granted(6), granted(7), granted(8)];
    assert_eq!(at_once.into_iter().map(Result::unwrap).collect::<Vec<_>>(), expected);
}

pub(super) async fn rows_are_left_out_for_a_reason_by_whoever_has_the_run<L: Ledger>(scene: Scene<L>) {
    let rows = |rows: &[u32]| rows.iter().copied().map(Row::new).collect::<Vec<_>>();
    assert_eq!(scene.ledger.leave_out(scene.forged(), rows(&[2]), OPTED_OUT).await.unwrap(), Ownership::Lost);
    assert_eq!(scene.left_out().await, [9]);
    assert_eq!(scene.ledger.leave_out(scene.mine, rows(&[4]), OPTED_OUT).await.unwrap(), Ownership::Held);
    assert_eq!(scene.ledger.leave_out(scene.mine, rows(&[2]), EXPIRED).await.unwrap(), Ownership::Held);
    assert_eq!(scene.left_out().await, [2, 4, 9]);
    let left_out = scene.ledger.left_out(scene.run.key).await.unwrap();
    assert_eq!(left_out.of(Row::new(4)), Some((State::Skipped, OPTED_OUT)));
    assert_eq!(left_out.of(Row::new(2)), Some((State::Skipped, EXPIRED)));
    assert_eq!(
        scene.ledger.opted_out("sale", false).await.unwrap().numbers.len(),
        0,
        "the ledger's own list is as it was"
    );
}

pub(super) async fn a_run_is_held_back_by_what_it_heeds_alone<L: Ledger>(scene: Scene<L>) {
    scene.ledger.suppress(vec![opt_out(2), on_loopback(3), of_campaign(4, "sale")]).await.unwrap();
    let remote = Heed::default();
    let out = |rows: &[u32]| Permit::OptedOut(rows.iter().copied().map(Row::new).collect());
    let scene = heeding(scene, remote).await;
    assert_eq!(scene.begin(1, scene.mine).await, out(&[2]));
    assert_eq!(scene.begin(2, scene.mine).await, granted(1), "another campaign's opt-out");
    let scene = heeding(scene, Heed { loopback: true, ..remote }).await;
    assert_eq!(scene.begin(1, scene.mine).await, out(&[2, 3]));
    let scene = heeding(scene, Heed::NOBODY).await;
    assert_eq!(scene.begin(1, scene.mine).await, granted(1));
    let now = scene.now().await;
    assert_eq!(now.heed, Heed::NOBODY);
}

pub(super) async fn a_run_planned_with_the_list_as_it_is_asks_nobody_again<L: Ledger>(scene: Scene<L>) {
    scene.ledger.suppress(vec![opt_out(2)]).await.unwrap();
    let (_, version) = held_back(&scene, "other", false).await;
    let scene = heeding(scene, Heed { version, ..Heed::default() }).await;
    assert_eq!(scene.now().await.heed.version, version);
    // Whoever planned it left them out, so that an envelope with one of them shows that nobody looked.
    assert_eq!(scene.begin(1, scene.mine).await, granted(1));
    scene.ledger.suppress(vec![opt_out(9)]).await.unwrap();
    assert_eq!(scene.begin(1, scene.mine).await, Permit::OptedOut(vec![Row::new(2)]));
}

pub(super) async fn who_opts_out_between_two_attempts_is_skipped_and_what_was_in_doubt_stays_so<L: Ledger>(
    scene: Scene<L>,
) {
    scene.begin(1, scene.mine).await;
    scene.begin(2, scene.mine).await;
    scene.settle(1, [not_sent(), doubt()]).await;
    scene.settle(2, [doubt(), accepted()]).await;
    let events = [3, 4].map(|row| event(row, row / 2, again()));
    scene.record(scene.mine, events.to_vec()).await;
    scene.ledger.suppress((2..=5).map(opt_out).collect()).await.unwrap();
    let mut intent = scene.intent(1, scene.mine);
    intent.rows.extend(scene.intent(2, scene.mine).rows.drain(..1));
    assert_eq!(scene.ledger.begin(intent).await.unwrap(), Permit::OptedOut([2, 3, 4].map(Row::new).to_vec()));
    let told = [State::Skipped, State::InDoubt, State::InDoubt, State::Accepted];
    assert_eq!(scene.row_states().await, told.map(Some));
    // What is proven later counts, whoever opted out meanwhile.
    scene.record(scene.mine, vec![event(4, 2, found("DELIVERED"))]).await;
    assert_eq!(scene.row_states().await[2], Some(State::Accepted));
    let mut expected = StateCounts::default();
    for state in told.into_iter().take(2).chain([State::Accepted; 2]).chain([State::Invalid]) {
        expected.add(state, 1);
    }
    expected.add(State::Planned, 5);
    assert_eq!(scene.counts().await, expected, "each row is counted once");
}

/// Somebody whom an import of this file opted out.
fn imported(row: u32, file: &str) -> OptOut {
    OptOut { source: import_source(file, "olena", Timestamp::UNIX_EPOCH).into(), ..opt_out(row) }
}

pub(super) async fn an_opt_out_of_their_own_replaces_an_imported_one<L: Ledger>(scene: Scene<L>) {
    let import = vec![imported(2, "a.csv"), imported(3, "a.csv"), imported(4, "a.csv")];
    scene.ledger.suppress(import.clone()).await.unwrap();
    let reply = OptOut { source: "reply to sale@1".into(), ..opt_out(2) };
    let news = [reply.clone(), imported(3, "b.csv"), opt_out(5), opt_out(5)];
    let expected = Additions { added: 2, already: 2, known: Vec::new() };
    assert_eq!(scene.ledger.additions(&news).await.unwrap(), expected);
    assert_eq!(listed(&scene).await, import, "looking changes nothing");
    let added = scene.ledger.suppress(news.to_vec()).await.unwrap();
    assert_eq!((added.added, added.already), (2, 2));
    assert_eq!(listed(&scene).await, [imported(3, "a.csv"), imported(4, "a.csv"), reply, opt_out(5)]);
    // The reply is the older news from here on: an import does not take its place.
    scene.ledger.suppress(vec![imported(2, "b.csv")]).await.unwrap();
    assert_eq!(held_back(&scene, "sale", false).await.0, [2, 3, 4, 5]);
}

pub(super) async fn removed_entries_are_those_that_stand_as_they_were_read<L: Ledger>(scene: Scene<L>) {
    let of_sale = OptOut { source: imported(2, "a.csv").source, ..of_campaign(2, "sale") };
    scene.ledger.suppress(vec![imported(2, "a.csv"), of_sale.clone(), imported(3, "a.csv"), opt_out(4)]).await.unwrap();
    scene.ledger.suppress(vec![opt_out(3)]).await.unwrap();
    let version = held_back(&scene, "sale", false).await.1;
    let entries = vec![imported(2, "a.csv"), of_sale, imported(3, "a.csv"), imported(5, "a.csv")];
    let removal = EntryRemoval { entries, by: "ivan".into(), why: Some("a mistake".into()) };
    assert_eq!(scene.ledger.remove_entries(removal.clone()).await.unwrap(), 2);
    assert_eq!(held_back(&scene, "sale", false).await, (vec![3, 4], version + 1));
    assert_eq!(scene.ledger.remove_entries(removal).await.unwrap(), 0);
    assert_eq!(held_back(&scene, "sale", false).await.1, version + 1);
}
