//! How often a number gets a message, from whichever campaign.

use std::sync::Arc;
use std::time::Duration;

use super::bounds::beside;
use super::scene::{
    Scene, accepted, doubt, event, granted, new_run, not_sent, not_sent_after_all, phone, rejected, shared_run,
    single_intent,
};
use crate::domain::{Cap, OperationKind, Purpose, Row};
use crate::ledger::{BlockRequest, Bounds, CAPPED, Heed, Intent, Ledger, NewRun, Permit, SentRow, SharedRun, State};

const DAY: Duration = Duration::from_secs(86_400);

fn cap(messages: u32, period: Duration) -> Cap {
    Cap { messages, period }
}

/// An intent for the rows of an envelope within these caps.
async fn begin<L: Ledger>(scene: &Scene<L>, envelope: u32, caps: &[Cap]) -> Permit {
    let bounds = (!caps.is_empty()).then(|| Arc::new(Bounds { caps: caps.to_vec(), ..Bounds::default() }));
    scene.ledger.begin(Intent { bounds, ..scene.intent(envelope, scene.mine) }).await.unwrap()
}

/// The rows, of 2 to 9, whose numbers caps hold back at the planning.
async fn planned_out<L: Ledger>(scene: &Scene<L>, caps: &[Cap], loopback: bool) -> Vec<u32> {
    let numbers = scene.ledger.capped(caps, loopback).await.unwrap();
    for row in 2..=9 {
        let is_capped = scene.ledger.is_capped(phone(row), caps, loopback).await.unwrap();
        assert_eq!(is_capped, numbers.contains(phone(row)), "one number is asked as all are");
    }
    (2..=9).filter(|row| numbers.contains(phone(*row))).collect()
}

fn out(rows: &[u32]) -> Permit {
    Permit::Capped(rows.iter().copied().map(Row::new).collect())
}

fn other(campaign: &str, random: u64) -> NewRun {
    NewRun { campaign: campaign.into(), ..new_run(random) }
}

pub(super) async fn who_got_as_many_messages_as_a_cap_allows_is_left_out_of_every_campaign<L: Ledger>(scene: Scene<L>) {
    let (once, twice) = (cap(1, DAY), cap(2, DAY));
    // Nobody said a cap yet, and it counts all the same.
    assert_eq!(begin(&scene, 1, &[]).await, granted(1));
    assert_eq!(planned_out(&scene, &[once], false).await, [2, 3]);
    assert_eq!(planned_out(&scene, &[twice], false).await, [0; 0]);
    let scene = beside(scene, other("second", 7)).await;
    assert_eq!(begin(&scene, 1, &[once]).await, out(&[2, 3]));
    assert!(scene.ledger.envelope_summaries(scene.run.key).await.unwrap().is_empty(), "no intent");
    let left_out = scene.ledger.left_out(scene.run.key).await.unwrap();
    assert_eq!(left_out.of(Row::new(3)), Some((State::Skipped, CAPPED)));
    assert_eq!(begin(&scene, 1, &[twice]).await, granted(1));
    assert_eq!(begin(&scene, 1, &[cap(9, DAY), twice]).await, out(&[2, 3]), "each cap holds");
    assert_eq!(begin(&scene, 1, &[cap(1, Duration::from_micros(1))]).await, granted(2), "it was longer ago");
    assert_eq!(planned_out(&scene, &[cap(3, DAY)], false).await, [2, 3]);
    assert_eq!(planned_out(&scene, &[cap(4, DAY)], false).await, [0; 0]);
    let scene = beside(scene, other("third", 8)).await;
    assert_eq!(begin(&scene, 1, &[]).await, granted(1), "without a cap nobody is held back");
    assert_eq!(planned_out(&scene, &[cap(4, DAY)], false).await, [2, 3], "and it counts");
    // A number that stands in an envelope twice gets no more.
    let mut intent = scene.intent(3, scene.mine);
    intent.rows.push(SentRow { row: Row::new(9), ..intent.rows[0] });
    intent.bounds = Some(Arc::new(Bounds { caps: vec![once], ..Bounds::default() }));
    assert_eq!(scene.ledger.begin(intent).await.unwrap(), out(&[9]));
}

pub(super) async fn what_did_not_go_out_counts_for_no_cap_and_doubt_does<L: Ledger>(scene: Scene<L>) {
    let once = [cap(1, DAY)];
    begin(&scene, 1, &[]).await;
    begin(&scene, 2, &[]).await;
    scene.settle(1, [doubt(), not_sent()]).await;
    scene.settle(2, [rejected(), accepted()]).await;
    let scene = beside(scene, other("second", 7)).await;
    // Before anybody kept it, and after.
    assert_eq!(planned_out(&scene, &once, false).await, [2, 5]);
    assert_eq!(begin(&scene, 1, &once).await, out(&[2]));
    assert_eq!(planned_out(&scene, &once, false).await, [2, 5]);
    assert_eq!(begin(&scene, 3, &once).await, granted(1));
    assert_eq!(begin(&scene, 4, &once).await, granted(2));
    assert_eq!(planned_out(&scene, &once, false).await, [2, 5, 6, 7, 8, 9], "what is on its way counts");
    scene.settle(1, [not_sent(), doubt()]).await;
    scene.settle(2, [accepted(), rejected()]).await;
    assert_eq!(planned_out(&scene, &once, false).await, [2, 5, 7, 8]);
    let mut again = scene.intent(3, scene.mine);
    again.rows.truncate(1);
    again.bounds = Some(Arc::new(Bounds { caps: once.to_vec(), ..Bounds::default() }));
    assert_eq!(scene.ledger.begin(again).await.unwrap(), granted(3), "what was not sent is tried again");
    scene.record(scene.mine, vec![event(7, 1, not_sent_after_all())]).await;
    assert_eq!(planned_out(&scene, &once, false).await, [2, 5, 6, 8], "as a person decided");
    // Whoever takes the run finds doubt.
    let scene = Scene { mine: scene.take().await, ..scene };
    assert_eq!(begin(&scene, 3, &once).await, out(&[6]));
}

pub(super) async fn only_campaigns_to_people_count_and_those_on_loopback_for_such_gateways_alone<L: Ledger>(
    scene: Scene<L>,
) {
    let once = [cap(1, DAY)];
    let heed = |loopback, purpose| Heed { loopback, purpose, ..Heed::default() };
    let mut scene = scene;
    let uncounted = [
        NewRun { live: false, ..other("rehearsal", 31) },
        NewRun { heed: heed(false, Purpose::Service), ..other("orders", 32) },
        NewRun { kind: OperationKind::Hlr, ..other("lookups", 33) },
    ];
    for new in uncounted {
        let name = new.campaign.clone();
        scene = beside(scene, new).await;
        assert_eq!(begin(&scene, 1, &once).await, granted(1), "{name}");
        assert_eq!(begin(&scene, 1, &once).await, granted(2), "{name} is not held back");
        assert_eq!(planned_out(&scene, &once, false).await, [0; 0], "{name}");
    }
    scene = beside(scene, NewRun { heed: heed(true, Purpose::Marketing), ..other("local", 34) }).await;
    assert_eq!(begin(&scene, 1, &once).await, granted(1));
    assert_eq!(begin(&scene, 1, &once).await, out(&[2, 3]));
    let (local, remote) = (planned_out(&scene, &once, true).await, planned_out(&scene, &once, false).await);
    assert_eq!((local, remote), (vec![2, 3], vec![]));
    scene = beside(scene, other("people", 35)).await;
    assert_eq!(begin(&scene, 1, &once).await, granted(1), "what went through loopback does not count");
    assert_eq!(begin(&scene, 1, &once).await, out(&[2, 3]));
}

pub(super) async fn what_went_to_who_was_forgotten_since_counts_for_caps_as_before<L: Ledger>(scene: Scene<L>) {
    let once = cap(1, DAY);
    begin(&scene, 1, &[once]).await;
    scene.settle(1, [accepted(), accepted()]).await;
    super::forgetting::forget(&scene, 2).await;
    assert_eq!(planned_out(&scene, &[once], false).await, [2, 3]);
    let removal = crate::ledger::Removal { phone: phone(2), scope: None, by: "olena".into(), why: None };
    scene.ledger.unsuppress(removal).await.unwrap();
    let scene = beside(scene, other("second", 7)).await;
    assert_eq!(begin(&scene, 1, &[once]).await, out(&[2, 3]));
}

pub(super) async fn messages_of_assistants_count_towards_caps_and_tests_do_not<L: Ledger>(scene: Scene<L>) {
    let once = [cap(1, DAY)];
    let single = async |campaign: &str, to: u32, caps: &[Cap]| {
        let (kind, heed) = (OperationKind::Pipeline, Heed::default());
        let shared = SharedRun { campaign: campaign.into(), kind, heed, ..shared_run() };
        let block = scene.ledger.draw(&shared, BlockRequest::rows(1)).await.unwrap().block().unwrap();
        let mut intent = Intent { kind, ..single_intent(block.lease, block.lease.rows.first.get()) };
        intent.rows[0].to = phone(to).into();
        intent.bounds = (!caps.is_empty()).then(|| Arc::new(Bounds { caps: caps.to_vec(), ..Bounds::default() }));
        matches!(scene.ledger.begin(intent).await.unwrap(), Permit::Granted { .. })
    };
    let (assistant, test) = (SharedRun::ASSISTANT_MESSAGES, "campaign.test");
    assert!(single(assistant, 2, &[]).await && single(test, 5, &[]).await);
    // Before the index of caps exists, and after.
    assert_eq!(planned_out(&scene, &once, false).await, [2]);
    assert_eq!(begin(&scene, 1, &once).await, out(&[2]));
    assert_eq!(planned_out(&scene, &once, false).await, [2]);
    assert!(!single(assistant, 2, &once).await, "an assistant is held back by its own message");
    assert!(single(test, 2, &once).await, "a test is held back by none");
    assert!(single(assistant, 4, &once).await && single(test, 7, &once).await);
    assert_eq!(planned_out(&scene, &once, false).await, [2, 4]);
    assert_eq!(begin(&scene, 2, &once).await, out(&[4]));
    assert_eq!(begin(&scene, 3, &once).await, granted(1));
    assert!(!single(assistant, 6, &once).await, "a campaign's message counts for assistants");
}
