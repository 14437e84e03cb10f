//! Tests with planted mistakes: for each mistake, the judge must report the broken promise.
//!
//! Mistakes that cannot be planted behind a port are patches in `tests/mistakes`.

use super::judge::Breach;
use super::plan::{SharingPlan, WorldFault, WorldPlan};
use super::play_world;

/// The number of worlds among which each mistake must show at least once.
const WORLDS: u64 = 600;

/// The seed at which the search for a mistake begins. Mistakes that rarely show, or slow down many worlds, begin at a
/// world that showed them when this list was written.
fn first_seed(mistake: Mistake) -> u64 {
    match mistake {
        Mistake::NoEpochCheck => 34,
        Mistake::ShardEpochIgnored => 42,
        Mistake::ShardLeaseIgnored => 117,
        Mistake::ByPositionOnly => 239,
        Mistake::LeaseIgnored => 482,
        _ => 0,
    }
}

/// Asserts that, in some world, the judge reports breaches of all `promises`.
fn assert_caught(mistake: Mistake, promises: &[Breach]) {
    assert_caught_in(mistake, promises, |plan| WorldPlan { starts: 4, ..plan });
}

/// Like [`assert_caught`], but in worlds that are changed so that nothing else hides the mistake.
fn assert_caught_in(mistake: Mistake, promises: &[Breach], change: impl Fn(WorldPlan) -> WorldPlan) {
    let build_plan = |seed| change(WorldPlan::from_seed(seed));
    let first = first_seed(mistake);
    let seed = (first..first + WORLDS).find(|seed| {
        let breaches = play_world(build_plan(*seed), Some(mistake)).broken;
        promises.iter().all(|promise| breaches.contains_key(promise))
    });
    let Some(seed) = seed else { panic!("no world of {WORLDS} showed {mistake:?}") };
    let breaches = play_world(build_plan(seed), None).broken;
    assert!(breaches.is_empty(), "the same world without the mistake, seed {seed}: {breaches:#?}");
}

/// The plan, changed to limit only the account's rate, because the gate of the process would hide most mistakes of the
/// account's gate.
fn with_account_gate_only(plan: WorldPlan) -> WorldPlan {
    WorldPlan { starts: 4, rate: None, account_rate: Some(10.0), batch: 10, ..plan }
}

/// The plan, changed so that several workers send the run in small shards.
fn with_workers(plan: WorldPlan) -> WorldPlan {
    WorldPlan { starts: 4, ..plan }.with_sharing(SharingPlan { size: 3, workers: 3 })
}

#[test]
fn intent_for_a_lost_shard_is_caught() {
    // Operations with an intent for a lost shard are never sent, but retried again and again, so the test needs a slow
    // rate.
    let with_slow_workers = |plan| WorldPlan { rate: Some(1.0), account_rate: Some(1.0), ..with_workers(plan) };
    assert_caught_in(Mistake::ShardEpochIgnored, &[Breach::Duplicated], with_slow_workers);
}

#[test]
fn envelope_of_a_lost_shard_is_caught() {
    assert_caught_in(Mistake::ShardLeaseIgnored, &[Breach::AfterRunWasLost, Breach::OutsideItsShards], with_workers);
}

#[test]
fn shard_taken_over_without_marking_doubt_is_caught() {
    assert_caught_in(Mistake::ShardWithoutDoubt, &[Breach::Duplicated], with_workers);
}

#[test]
fn rows_drawn_under_an_earlier_sharding_are_caught() {
    assert_caught_in(Mistake::SharingUnnumbered, &[Breach::Duplicated], with_workers);
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
fn message_in_doubt_resent_without_a_decision_is_caught() {
    assert_caught(Mistake::DoubtResent, &[Breach::Duplicated]);
}

#[test]
fn timeout_treated_as_not_sent_is_caught() {
    assert_caught(Mistake::SilenceIsNotSent, &[Breach::Duplicated]);
}

#[test]
fn http_status_treated_as_not_sent_is_caught() {
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
fn first_denial_treated_as_proof_is_caught() {
    assert_caught(Mistake::OneDenialIsEnough, &[Breach::Duplicated]);
}

#[test]
fn trusting_a_blind_gateway_is_caught() {
    assert_caught(Mistake::BlindStatusTrusted, &[Breach::FalselyAccepted]);
    assert_caught(Mistake::BlindStatusTrusted, &[Breach::Duplicated]);
}

#[test]
fn rate_limit_that_allows_bursts_is_caught() {
    assert_caught_in(Mistake::BurstingRateLimit, &[Breach::RateLimit], with_account_gate_only);
}

#[test]
fn run_that_continues_after_four_rejections_is_caught() {
    let with_rejections =
        |plan| WorldPlan { faults: vec![WorldFault::SomeRejected], fault_every: 1, starts: 4, ..plan };
    assert_caught_in(Mistake::NoWarmUp, &[Breach::WarmUp], with_rejections);
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
fn retry_without_asking_the_gateway_is_caught() {
    // The ledger cannot know of an unreported delivery.
    assert_caught_in(Mistake::RetryWithoutInquiry, &[Breach::Duplicated], |plan| WorldPlan {
        retry_rejected: true,
        starts: 1,
        ..plan
    });
}

#[test]
fn guard_that_forgets_messages_in_doubt_is_caught() {
    assert_caught(Mistake::GuardForgetsDoubt, &[Breach::Unguarded, Breach::Duplicated]);
}

/// A planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// No intent is recorded.
    NoIntent,
    /// An intent is reported as recorded before it is.
    IntentAfterSend,
    /// An outcome is reported as recorded before it is.
    ReportedBeforeCommit,
    /// An intent is recorded without checking the owner of the run.
    NoEpochCheck,
    /// An envelope is sent without checking the owner of the run.
    LeaseIgnored,
    /// Messages that the previous owner had begun are resent.
    DoubtResent,
    /// A timeout counts as proof that nothing was sent.
    SilenceIsNotSent,
    /// An HTTP status other than 200 counts as proof that nothing was sent.
    StatusIsNotSent,
    /// Another start gives a row another identifier.
    FreshIdentifier,
    /// Answers are matched by position only.
    ByPositionOnly,
    /// One denial is enough to resend.
    OneDenialIsEnough,
    /// Answers are trusted although the gateway says the same about everything.
    BlindStatusTrusted,
    /// The account's rate limit lets a whole second's operations through at once after a pause.
    BurstingRateLimit,
    /// An unproven start ignores the outcome of its first messages.
    NoWarmUp,
    /// The guard skips only recipients whose message was certainly accepted.
    GuardForgetsDoubt,
    /// A webhook is acknowledged before its receipt is on the disk.
    AcknowledgedBeforeCommit,
    /// Receipts of webhooks are ignored.
    ReceiptsForgotten,
    /// An intent for rows of a shard is recorded without checking the owner of the shard.
    ShardEpochIgnored,
    /// An envelope of a shard is sent without checking the owner of the shard.
    ShardLeaseIgnored,
    /// The unfinished envelopes of dead workers are not in doubt.
    ShardWithoutDoubt,
    /// A worker of an earlier sharding draws rows of a later sharding.
    SharingUnnumbered,
    /// A recipient who opts out after planning gets the message.
    OptOutIgnored,
    /// A message that seems to have failed is resent without asking whether another channel delivered it.
    RetryWithoutInquiry,
}
