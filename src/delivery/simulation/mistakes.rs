//! Each mistake, handed to the same judge as the right implementation: it has to see it, and by the promise it breaks.
//!
//! Mistakes that no port can make are patches in `tests/mistakes`.

use super::judge::Breach;
use super::mistake::Mistake;
use super::plan::{SharingPlan, WorldFault, WorldPlan};
use super::play_world;

/// So many worlds are enough for each mistake to show.
const WORLDS: u64 = 600;

/// The judge has to name one of these promises in some world, and only then is it of use.
fn assert_caught(mistake: Mistake, promises: &[Breach]) {
    assert_caught_in(mistake, promises, |plan| WorldPlan { starts: 4, ..plan });
}

/// The same, in worlds that were changed so that nothing else hides the mistake.
fn assert_caught_in(mistake: Mistake, promises: &[Breach], change: impl Fn(WorldPlan) -> WorldPlan) {
    let plan = |seed| change(WorldPlan::from_seed(seed));
    let seed = (0..WORLDS).find(|seed| {
        let broken = play_world(plan(*seed), Some(mistake)).broken;
        promises.iter().all(|promise| broken.contains_key(promise))
    });
    let Some(seed) = seed else { panic!("{mistake:?} was seen in none of {WORLDS} worlds") };
    let right = play_world(plan(seed), None).broken;
    assert!(right.is_empty(), "the same world without the mistake, seed {seed}: {right:#?}");
}

/// Only the account's gate: the process's own would hide most of what the account's does wrong.
fn account_only(plan: WorldPlan) -> WorldPlan {
    WorldPlan { starts: 4, rate: None, account_rate: Some(10.0), batch: 10, ..plan }
}

/// Several processes send the run, in small shares.
fn share_plan(plan: WorldPlan) -> WorldPlan {
    WorldPlan { starts: 4, ..plan }.with_sharing(SharingPlan { size: 3, workers: 3 })
}

#[test]
fn intent_for_a_lost_share_is_caught() {
    // What is recorded so never leaves, and is tried again and again: at a pace that a test can wait for.
    let slow = |plan| WorldPlan { rate: Some(1.0), account_rate: Some(1.0), ..share_plan(plan) };
    assert_caught_in(Mistake::ShareEpochIgnored, &[Breach::Duplicated], slow);
}

#[test]
fn envelope_of_a_lost_share_is_caught() {
    assert_caught_in(Mistake::ShareLeaseIgnored, &[Breach::AfterRunWasLost, Breach::NotOfItsShare], share_plan);
}

#[test]
fn share_taken_over_without_doubt_is_caught() {
    assert_caught_in(Mistake::ShareWithoutDoubt, &[Breach::Duplicated], share_plan);
}

#[test]
fn rows_drawn_from_an_earlier_sharing_are_caught() {
    assert_caught_in(Mistake::SharingUnnumbered, &[Breach::Duplicated], share_plan);
}

#[test]
fn engine_without_intents_is_caught() {
    assert_caught(Mistake::NoIntent, &[Breach::WithoutIntent]);
    assert_caught(Mistake::NoIntent, &[Breach::WithoutIntent, Breach::Duplicated]);
}

#[test]
fn intent_recorded_after_the_send_is_caught() {
    assert_caught(Mistake::IntentAfterSend, &[Breach::WithoutIntent]);
}

#[test]
fn result_shown_before_its_commit_is_caught() {
    assert_caught(Mistake::ReportedBeforeCommit, &[Breach::ShownEarly]);
}

#[test]
fn ledger_without_epoch_check_is_caught() {
    assert_caught(Mistake::NoEpochCheck, &[Breach::Duplicated]);
}

#[test]
fn envelope_of_a_lost_run_is_caught() {
    assert_caught(Mistake::LeaseIgnored, &[Breach::AfterRunWasLost]);
}

#[test]
fn doubt_resent_without_decision_is_caught() {
    assert_caught(Mistake::DoubtResent, &[Breach::Duplicated]);
}

#[test]
fn timeout_taken_as_not_sent_is_caught() {
    assert_caught(Mistake::SilenceIsNotSent, &[Breach::Duplicated]);
}

#[test]
fn http_status_taken_as_not_sent_is_caught() {
    assert_caught(Mistake::StatusIsNotSent, &[Breach::Duplicated]);
}

#[test]
fn fresh_identifier_for_a_resent_message_is_caught() {
    assert_caught(Mistake::FreshIdentifier, &[Breach::Unexpected]);
}

#[test]
fn answers_matched_by_position_alone_are_caught() {
    assert_caught(Mistake::ByPositionOnly, &[Breach::Misattributed]);
}

#[test]
fn first_denial_taken_as_proof_is_caught() {
    assert_caught(Mistake::OneDenialIsEnough, &[Breach::Duplicated]);
}

#[test]
fn trusting_a_blind_gateway_is_caught() {
    assert_caught(Mistake::BlindStatusTrusted, &[Breach::FalselyAccepted]);
    assert_caught(Mistake::BlindStatusTrusted, &[Breach::Duplicated]);
}

#[test]
fn rate_limit_that_bursts_is_caught() {
    assert_caught_in(Mistake::BurstingPace, &[Breach::Pace], account_only);
}

#[test]
fn start_that_continues_after_four_rejections_is_caught() {
    let refusing = |plan| WorldPlan { faults: vec![WorldFault::SomeRejected], fault_every: 1, starts: 4, ..plan };
    assert_caught_in(Mistake::NoCanary, &[Breach::Canary], refusing);
}

#[test]
fn receipt_acknowledged_before_its_commit_is_caught() {
    assert_caught(Mistake::AcknowledgedBeforeCommit, &[Breach::ReceiptLost]);
}

#[test]
fn engine_that_ignores_receipts_is_caught() {
    assert_caught(Mistake::ReceiptsForgotten, &[Breach::AskedAlthoughProven]);
    assert_caught(Mistake::ReceiptsForgotten, &[Breach::SentAlthoughProven]);
}

#[test]
fn opt_out_ignored_in_flight_is_caught() {
    assert_caught(Mistake::OptOutIgnored, &[Breach::SentAfterOptOut]);
}

#[test]
fn retry_without_asking_is_caught() {
    // The ledger cannot know of a delivery that nobody told.
    assert_caught_in(Mistake::RetryUnasked, &[Breach::Duplicated], |plan| WorldPlan {
        retry_rejected: true,
        starts: 1,
        ..plan
    });
}

#[test]
fn guard_that_forgets_doubt_is_caught() {
    assert_caught(Mistake::GuardForgetsDoubt, &[Breach::Unguarded, Breach::Duplicated]);
}
