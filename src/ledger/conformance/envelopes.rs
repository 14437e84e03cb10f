//! Envelopes: begun by the owner alone, settled by anybody, in doubt when their process ended.

use std::time::Duration;

use super::scene::*;
use crate::ledger::{Allowance, Ledger, Owner, Permit, Settlement, State, Wait, Walk};

pub(super) async fn an_intent_needs_the_owner_and_no_request_to_stop<L: Ledger>(scene: Scene<L>) {
    assert_eq!(scene.begin(1, ME).await, Permit::After(Wait::NONE));
    assert_eq!(scene.begin(2, Owner(8)).await, Permit::Lost);
    scene.ledger.request_stop(scene.run.key, true).await.unwrap();
    assert_eq!(scene.begin(2, ME).await, Permit::StopRequested);
    assert_eq!(scene.ledger.envelope_summaries(scene.run.key).await.unwrap().len(), 1);
}

pub(super) async fn taking_a_run_turns_what_was_begun_into_doubt_and_shuts_the_old_owner_out<L: Ledger>(
    scene: Scene<L>,
) {
    scene.begin(1, ME).await;
    scene.begin(2, ME).await;
    scene.settle(2, [accepted(), rejected()]).await;
    assert_eq!(scene.ledger.claim(scene.run.key, Owner(8)).await.unwrap(), 1);
    assert_eq!(scene.states(1).await, [State::InDoubt, State::InDoubt]);
    assert_eq!(scene.states(2).await, [State::Accepted, State::Rejected]);
    assert_eq!(scene.begin(3, ME).await, Permit::Lost);
}

pub(super) async fn a_late_answer_is_evidence_and_late_proof_of_nothing_sent_is_not<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, ME).await;
    scene.ledger.claim(scene.run.key, Owner(8)).await.unwrap();
    scene.settle(1, [accepted(), not_sent()]).await;
    assert_eq!(scene.states(1).await, [State::Accepted, State::InDoubt]);
    scene.settle(1, [rejected(), doubt()]).await;
    assert_eq!(scene.states(1).await, [State::Accepted, State::InDoubt], "what is proven stays");
}

pub(super) async fn a_rated_account_makes_the_next_envelope_wait_whoever_sends_it<L: Ledger>(scene: Scene<L>) {
    let mut intent = scene.intent(1, ME);
    intent.account = Allowance::new("account", Some(0.5));
    assert_eq!(scene.ledger.begin(intent.clone()).await.unwrap(), Permit::After(Wait::NONE));
    intent.envelope = 2;
    let Permit::After(Wait { time: wait, .. }) = scene.ledger.begin(intent).await.unwrap() else { panic!("refused") };
    assert!(wait > Duration::from_secs(3) && wait <= Duration::from_secs(4), "two operations at 0.5/s: {wait:?}");
    scene.ledger.slow_down("other", Some(Duration::from_secs(60))).await.unwrap();
    assert!(scene.ledger.reserve(&Allowance::new("other", None), 1).await.unwrap().time > Duration::from_secs(59));
}

pub(super) async fn a_walk_meets_every_envelope_once_and_in_order_whatever_numbers_are_missing<L: Ledger>(
    scene: Scene<L>,
) {
    let numbers: Vec<u32> = (1..=600).filter(|number| number % 7 != 0 && *number != 257).collect();
    futures_util::future::join_all(numbers.iter().map(|number| scene.begin(*number, ME))).await;
    let (mut walk, mut met) = (Walk::over(&scene.ledger, scene.run.key), Vec::new());
    while let Some(envelope) = walk.next().await.unwrap() {
        met.push(envelope.envelope);
    }
    assert_eq!(met, numbers);
}

pub(super) async fn the_body_of_an_answer_is_kept_until_a_later_one_has_another<L: Ledger>(scene: Scene<L>) {
    let evidence = async || scene.ledger.evidence(scene.run.key, 1).await.unwrap();
    let settle = async |evidence: Option<&str>| {
        let evidence = evidence.map(str::to_owned);
        let settlement = Settlement { run: scene.run.key, envelope: 1, outcomes: vec![doubt(), doubt()], evidence };
        scene.ledger.settle(settlement).await.unwrap();
    };
    scene.begin(1, ME).await;
    assert_eq!(evidence().await, None);
    for (body, kept) in [(Some("oops"), "oops"), (None, "oops"), (Some("later"), "later")] {
        settle(body).await;
        assert_eq!(evidence().await.as_deref(), Some(kept));
    }
}

pub(super) async fn an_answer_that_comes_after_the_end_of_a_run_is_counted<L: Ledger>(scene: Scene<L>) {
    let next = Owner(8);
    scene.begin(1, ME).await;
    scene.ledger.claim(scene.run.key, next).await.unwrap();
    scene.settle(1, [doubt(), doubt()]).await;
    assert_eq!(scene.now().await.counts, None, "as long as somebody has it nothing is counted");
    scene.ledger.end(scene.run.key, next, run_end()).await.unwrap();
    scene.settle(1, [accepted(), rejected()]).await;
    let (counts, parts) = scene.now().await.counts.unwrap();
    let expected = [(State::Invalid, 1), (State::NotSent, 7), (State::Accepted, 1), (State::Rejected, 1)];
    assert_eq!((counts.iter().collect::<Vec<_>>(), parts), (expected.to_vec(), 2));
}
