//! Each mistake, handed to the same judge as the right implementation: it has to see it, and by the promise it breaks.
//!
//! Mistakes that no port can make are patches in `tests/mistakes`.

use super::judge::Breach;
use super::mistake::Mistake;
use super::plan::{Fault, Plan, SharingPlan};
use super::world;

/// So many worlds are enough for each mistake to show.
const WORLDS: u64 = 600;

/// The judge has to name one of these promises in some world, and only then is it of use.
fn caught(mistake: Mistake, promises: &[Breach]) {
    caught_in(mistake, promises, |plan| Plan { starts: 4, ..plan });
}

/// The same, in worlds that were changed so that nothing else hides the mistake.
fn caught_in(mistake: Mistake, promises: &[Breach], change: impl Fn(Plan) -> Plan) {
    let plan = |seed| change(Plan::of(seed));
    let seed = (0..WORLDS).find(|seed| {
        let broken = world(plan(*seed), Some(mistake)).broken;
        promises.iter().all(|promise| broken.contains_key(promise))
    });
    let Some(seed) = seed else { panic!("{mistake:?} was seen in none of {WORLDS} worlds") };
    let right = world(plan(seed), None).broken;
    assert!(right.is_empty(), "the same world without the mistake, seed {seed}: {right:#?}");
}

/// Only the account's gate: the process's own would hide most of what the account's does wrong.
fn account_only(plan: Plan) -> Plan {
    Plan { starts: 4, rate: None, account_rate: Some(10.0), batch: 10, ..plan }
}

/// Several processes send the run, in small shares.
fn shared(plan: Plan) -> Plan {
    Plan { starts: 4, ..plan }.shared(SharingPlan { size: 3, workers: 3 })
}

#[test]
fn an_intent_for_a_share_that_another_process_has_by_then_is_caught() {
    // What is recorded so never leaves, and is tried again and again: at a pace that a test can wait for.
    let slow = |plan| Plan { rate: Some(1.0), account_rate: Some(1.0), ..shared(plan) };
    caught_in(Mistake::ShareEpochUnseen, &[Breach::Duplicated], slow);
}

#[test]
fn an_envelope_that_leaves_although_its_share_is_anothers_by_then_is_caught() {
    caught_in(Mistake::ShareLeaseUnseen, &[Breach::AfterItsRunWasLost, Breach::NotOfItsShare], shared);
}

#[test]
fn a_share_that_is_taken_over_without_doubt_is_caught() {
    caught_in(Mistake::ShareWithoutDoubt, &[Breach::Duplicated], shared);
}

#[test]
fn rows_that_are_drawn_again_by_whoever_knows_an_earlier_sharing_out_are_caught() {
    caught_in(Mistake::SharingUnnumbered, &[Breach::Duplicated], shared);
}

#[test]
fn an_engine_without_intents_is_caught() {
    caught(Mistake::NoIntent, &[Breach::WithoutIntent]);
    caught(Mistake::NoIntent, &[Breach::WithoutIntent, Breach::Duplicated]);
}

#[test]
fn an_intent_that_is_kept_after_the_send_is_caught() {
    caught(Mistake::IntentAfterTheSend, &[Breach::WithoutIntent]);
}

#[test]
fn a_result_that_is_shown_before_its_commit_is_caught() {
    caught(Mistake::ToldBeforeTheCommit, &[Breach::ShownEarly]);
}

#[test]
fn a_ledger_that_does_not_look_who_has_the_run_is_caught() {
    caught(Mistake::NoEpochCheck, &[Breach::Duplicated]);
}

#[test]
fn an_envelope_that_leaves_although_its_run_is_anothers_by_then_is_caught() {
    caught(Mistake::LeaseUnseen, &[Breach::AfterItsRunWasLost]);
}

#[test]
fn doubt_that_is_sent_again_by_itself_is_caught() {
    caught(Mistake::DoubtSentAgain, &[Breach::Duplicated]);
}

#[test]
fn silence_that_is_taken_as_not_sent_is_caught() {
    caught(Mistake::SilenceIsNotSent, &[Breach::Duplicated]);
}

#[test]
fn an_http_status_that_is_taken_as_not_sent_is_caught() {
    caught(Mistake::StatusIsNotSent, &[Breach::Duplicated]);
}

#[test]
fn a_fresh_identifier_for_a_message_that_is_tried_again_is_caught() {
    caught(Mistake::FreshIdentifier, &[Breach::Unexpected]);
}

#[test]
fn answers_that_are_matched_by_their_position_alone_are_caught() {
    caught(Mistake::ByPositionOnly, &[Breach::Misattributed]);
}

#[test]
fn a_first_denial_that_is_taken_as_proof_is_caught() {
    caught(Mistake::OneDenialIsEnough, &[Breach::Duplicated]);
}

#[test]
fn a_blind_gateway_that_is_believed_is_caught() {
    caught(Mistake::BlindOracleBelieved, &[Breach::FalselyAccepted]);
    caught(Mistake::BlindOracleBelieved, &[Breach::Duplicated]);
}

#[test]
fn a_pace_that_bursts_is_caught() {
    caught_in(Mistake::BurstingPace, &[Breach::Pace], account_only);
}

#[test]
fn a_start_that_goes_on_after_four_first_rejections_is_caught() {
    let refusing = |plan| Plan { faults: vec![Fault::SomeRejected], fault_every: 1, starts: 4, ..plan };
    caught_in(Mistake::NoCanary, &[Breach::Canary], refusing);
}

#[test]
fn a_receipt_that_is_acknowledged_before_its_commit_is_caught() {
    caught(Mistake::AcknowledgedBeforeTheCommit, &[Breach::ReceiptLost]);
}

#[test]
fn an_engine_that_does_not_look_at_receipts_is_caught() {
    caught(Mistake::ReceiptsForgotten, &[Breach::AskedThoughProven]);
    caught(Mistake::ReceiptsForgotten, &[Breach::SentThoughProven]);
}

#[test]
fn an_opt_out_that_is_ignored_in_flight_is_caught() {
    caught(Mistake::OptOutIgnored, &[Breach::SentToWhoOptedOut]);
}

#[test]
fn retry_that_does_not_ask_is_caught() {
    // The ledger cannot know of a delivery that nobody told.
    caught_in(Mistake::RetryUnasked, &[Breach::Duplicated], |plan| Plan { retry_rejected: true, starts: 1, ..plan });
}

#[test]
fn a_guard_that_forgets_whoever_may_have_a_message_is_caught() {
    caught(Mistake::GuardForgetsDoubt, &[Breach::Unguarded, Breach::Duplicated]);
}
