//! Envelopes: numbered by the ledger, begun by whoever has the run, settled by anybody, in doubt when their process ended.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::scene::*;
use crate::domain::{Chain, OperationKind};
use crate::ledger::{Allowance, EnvelopeRecord, Intent, Ledger, Permit, QuestionTurn, Settlement, State, Wait, Walk};

pub(super) async fn an_intent_needs_the_lease_and_no_request_to_stop<L: Ledger>(scene: Scene<L>) {
    assert_eq!(scene.begin(1, scene.mine).await, granted(1));
    assert_eq!(scene.begin(2, scene.forged()).await, Permit::Lost);
    scene.ledger.request_stop(scene.run.key, true).await.unwrap();
    assert_eq!(scene.begin(2, scene.mine).await, Permit::StopRequested);
    assert_eq!(scene.ledger.envelope_summaries(scene.run.key).await.unwrap().len(), 1);
}

pub(super) async fn taking_a_run_turns_what_was_begun_into_doubt_and_shuts_out_who_had_it<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.begin(2, scene.mine).await;
    scene.settle(2, [accepted(), rejected()]).await;
    let claim = scene.ledger.claim(&scene.hold, scene.run.key).await.unwrap();
    assert_eq!(claim.doubtful, 1);
    assert_ne!(claim.lease.epoch, scene.mine.epoch);
    assert_eq!(scene.states(1).await, [State::InDoubt, State::InDoubt]);
    assert_eq!(scene.states(2).await, [State::Accepted, State::Rejected]);
    assert_eq!(scene.begin(3, scene.mine).await, Permit::Lost);
    assert_eq!(scene.begin(3, claim.lease).await, granted(3));
}

pub(super) async fn a_late_answer_is_evidence_and_late_proof_of_nothing_sent_is_not<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    scene.take().await;
    scene.settle(1, [accepted(), not_sent()]).await;
    assert_eq!(scene.states(1).await, [State::Accepted, State::InDoubt]);
    scene.settle(1, [rejected(), doubt()]).await;
    assert_eq!(scene.states(1).await, [State::Accepted, State::InDoubt], "what is proven stays");
}

pub(super) async fn a_rated_account_makes_the_next_envelope_wait_whoever_sends_it<L: Ledger>(scene: Scene<L>) {
    let mut intent = scene.intent(1, scene.mine);
    intent.account = Allowance::new("account", Some(0.5));
    assert_eq!(scene.ledger.begin(intent.clone()).await.unwrap(), granted(1));
    intent.rows = scene.intent(2, scene.mine).rows;
    let Permit::Granted { wait: Wait { time: wait, .. }, .. } = scene.ledger.begin(intent).await.unwrap() else {
        panic!("refused")
    };
    assert!(wait > Duration::from_secs(3) && wait <= Duration::from_secs(4), "two operations at 0.5/s: {wait:?}");
    let told = scene.ledger.paces().await.unwrap();
    let (name, pace) = &told[0];
    assert_eq!(
        (told.len(), name.as_str(), pace.rate, pace.taken),
        (1, "account", Some(0.5), 4),
        "two envelopes of two"
    );
    scene.ledger.slow_down("other", Some(Duration::from_secs(60))).await.unwrap();
    assert!(scene.ledger.reserve(&Allowance::new("other", None), 1).await.unwrap().time > Duration::from_secs(59));
}

pub(super) async fn questions_leave_the_rate_of_an_account_to_its_messages<L: Ledger>(scene: Scene<L>) {
    let (account, longest) = (Allowance::new("account", Some(0.5)), Duration::from_secs(5));
    let ask = async |account: &Allowance| scene.ledger.reserve_question(account, longest).await.unwrap();
    scene.ledger.reserve(&account, 1).await.unwrap();
    let QuestionTurn::Granted { wait, next } = ask(&account).await else { panic!("no room") };
    assert!(wait.time <= Duration::from_secs(2), "{wait:?} behind one message");
    assert_eq!(next, Duration::from_secs(20), "a tenth of 0.5/s");
    let QuestionTurn::Later(wait) = ask(&account).await else { panic!("a second question") };
    assert!(wait > Duration::from_secs(10) && wait <= next, "{wait:?}");
    assert!(scene.ledger.reserve(&account, 1).await.unwrap().time <= Duration::from_secs(4), "one question is ahead");
    let told = scene.ledger.paces().await.unwrap();
    assert_eq!((told.len(), told[0].0.as_str(), told[0].1.taken), (1, "account", 3), "questions are no account");
    let idle = Allowance::new("idle", Some(1_000.0));
    let turn = ask(&idle).await;
    assert!(matches!(turn, QuestionTurn::Granted { next, .. } if next == Duration::from_millis(1)), "{turn:?}");
    assert!(matches!(ask(&Allowance::new("other", None)).await, QuestionTurn::Granted { .. }));
}

pub(super) async fn a_walk_meets_every_envelope_once_and_in_order<L: Ledger>(scene: Scene<L>) {
    let numbers: Vec<u32> = (1..=600).collect();
    futures_util::future::join_all(numbers.iter().map(|number| scene.begin(*number, scene.mine))).await;
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
    scene.begin(1, scene.mine).await;
    assert_eq!(evidence().await, None);
    for (body, kept) in [(Some("oops"), "oops"), (None, "oops"), (Some("later"), "later")] {
        settle(body).await;
        assert_eq!(evidence().await.as_deref(), Some(kept));
    }
    // What a gateway says can be anything.
    settle(Some("a\0b\u{1f600}")).await;
    assert!(evidence().await.is_some_and(|kept| kept.starts_with('a') && kept.ends_with("b\u{1f600}")));
}

pub(super) async fn an_answer_that_comes_after_the_end_of_a_run_is_counted<L: Ledger>(scene: Scene<L>) {
    scene.begin(1, scene.mine).await;
    let next = scene.take().await;
    scene.settle(1, [doubt(), doubt()]).await;
    assert_eq!(scene.now().await.counts, None, "as long as somebody has it nothing is counted");
    scene.ledger.end(next, run_end()).await.unwrap();
    scene.settle(1, [accepted(), rejected()]).await;
    let (counts, parts) = scene.now().await.counts.unwrap();
    let expected = [(State::Invalid, 1), (State::NotSent, 7), (State::Accepted, 1), (State::Rejected, 1)];
    assert_eq!((counts.iter().collect::<Vec<_>>(), parts), (expected.to_vec(), 2));
}

pub(super) async fn every_envelope_has_a_number_of_its_own_whoever_begins_it<L: Ledger>(scene: Scene<L>) {
    let mut numbers = Vec::new();
    let mut lease = scene.mine;
    for envelope in 1..=9 {
        if envelope % 3 == 0 {
            lease = scene.take().await;
        }
        assert_eq!(scene.begin(envelope, scene.forged()).await, Permit::Lost, "what is refused takes no number");
        let Permit::Granted { envelope, .. } = scene.begin(envelope, lease).await else { panic!("refused") };
        numbers.push(envelope);
    }
    assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
}

pub(super) async fn an_envelope_keeps_the_kind_of_its_operations<L: Ledger>(scene: Scene<L>) {
    let kinds = [OperationKind::ViberSms, OperationKind::Sms, OperationKind::Hlr];
    for (envelope, kind) in (1..).zip(kinds) {
        scene.ledger.begin(Intent { kind, ..scene.intent(envelope, scene.mine) }).await.unwrap();
    }
    let kept = scene.ledger.envelopes(scene.run.key, 1..=9).await.unwrap();
    assert_eq!(kept.iter().map(|envelope| envelope.kind).collect::<Vec<_>>(), kinds);
}

pub(super) async fn channels_of_pipelines_are_recorded_row_by_row<L: Ledger>(scene: Scene<L>) {
    let (one, other) = ("viber sms".parse().unwrap(), "sms viber".parse().unwrap());
    let chains: [&[Chain]; 3] = [&[one, one], &[one, other], &[Chain::UNKNOWN, one]];
    for (envelope, chains) in (1..).zip(chains) {
        let mut intent = Intent { kind: OperationKind::Pipeline, ..scene.intent(envelope, scene.mine) };
        intent.rows.iter_mut().zip(chains).for_each(|(sent, chain)| sent.chain = *chain);
        scene.ledger.begin(intent).await.unwrap();
    }
    let kind = OperationKind::ViberSms;
    scene.ledger.begin(Intent { kind, ..scene.intent(4, scene.mine) }).await.unwrap();
    let kept = scene.ledger.envelopes(scene.run.key, 1..=9).await.unwrap();
    let kept: Vec<Vec<Chain>> =
        kept.iter().map(|envelope| envelope.rows.iter().map(|sent| envelope.chain(sent)).collect()).collect();
    assert_eq!(kept[3], [one, one], "the type names them");
    // Tables of the version before have no column for them.
    if kept[0] != [Chain::UNKNOWN; 2] {
        assert_eq!(kept[..3], chains);
    }
}

pub(super) async fn what_would_leave_too_late_by_its_slot_is_not_recorded_and_takes_none<L: Ledger>(scene: Scene<L>) {
    let by = |envelope, seconds: i64, rate| {
        let leave_by = Some(Timestamp::now() + SignedDuration::from_secs(seconds));
        let account = Allowance::new("account", rate);
        scene.ledger.begin(Intent { account, leave_by, ..scene.intent(envelope, scene.mine) })
    };
    assert!(matches!(by(1, 0, None).await.unwrap(), Permit::Late(_)), "its time is over");
    assert!(
        matches!(by(1, 100, Some(0.1)).await.unwrap(), Permit::Granted { envelope: 1, wait } if wait == Wait::NONE)
    );
    // The next slot is twenty seconds from now.
    let soon = Timestamp::now() + SignedDuration::from_secs(15);
    for _ in 0..3 {
        let Permit::Late(at) = by(2, 10, Some(0.1)).await.unwrap() else { panic!("it would leave too late") };
        assert!(at > soon && at < soon + SignedDuration::from_secs(20), "nobody took the slot: {at}");
    }
    let Permit::Granted { envelope: 2, wait } = by(2, 100, Some(0.1)).await.unwrap() else { panic!("it may leave") };
    assert!(wait.time > Duration::from_secs(15));
    assert_eq!(scene.ledger.envelope_summaries(scene.run.key).await.unwrap().len(), 2);
}

/// Envelopes of a run whose calls reach the ledger together, as those of an engine do.
pub(super) async fn what_is_begun_and_settled_at_once_comes_to_what_it_comes_to_one_after_another<L: Ledger>(
    scene: Scene<L>,
) {
    // Twice as many are asked for at once, and all find room with what writes: so they come in their order.
    const ENVELOPES: u32 = 32;
    let begin = |envelope: u32, lease| scene.ledger.begin(scene.intent(envelope, lease));
    // Who has not the run gets nothing, whoever asks beside them.
    let some_without = (1..=ENVELOPES).flat_map(|n| [begin(n, scene.mine), begin(ENVELOPES + n, scene.forged())]);
    let permits = join_all(some_without).await;
    let mut numbers = Vec::new();
    for pair in permits.chunks(2) {
        match pair {
            [Ok(Permit::Granted { envelope, wait: Wait::NONE }), Ok(Permit::Lost)] => numbers.push(*envelope),
            other => panic!("{other:?}"),
        }
    }
    let expected: Vec<u32> = (1..=ENVELOPES).collect();
    assert_eq!(numbers, expected, "each has a number of its own, in the order in which they came");
    for (record, number) in whole(&scene).await.iter().zip(1..) {
        assert_eq!(
            (record.envelope, record.rows[0].row.get(), record.rows[1].row.get()),
            (number, number * 2, number * 2 + 1)
        );
        assert_eq!((record.kind, &record.settled), (OperationKind::ViberSms, &None));
    }
    // Those of who had it before are in doubt, and late answers about them are evidence.
    let claim = scene.ledger.claim(&scene.hold, scene.run.key).await.unwrap();
    assert_eq!(claim.doubtful, ENVELOPES as usize);
    let lost = join_all((81..=90).map(|n| begin(n, scene.mine))).await;
    assert!(lost.into_iter().all(|permit| permit.unwrap() == Permit::Lost));
    let later = join_all((ENVELOPES + 1..=2 * ENVELOPES).map(|n| begin(n, claim.lease))).await;
    assert!(later.into_iter().map(Result::unwrap).eq((ENVELOPES + 1..=2 * ENVELOPES).map(granted)));
    let outcomes = |n: u32| match n % 3 {
        0 => vec![accepted(), not_sent()],
        1 => vec![rejected(), accepted()],
        _ => vec![doubt(), doubt()],
    };
    let settle = |n: u32| {
        let evidence = n.is_multiple_of(4).then(|| format!("the body of {n}"));
        let settlement = Settlement { run: scene.run.key, envelope: n, outcomes: outcomes(n), evidence };
        scene.ledger.settle(settlement)
    };
    // One comes twice.
    let settled = join_all((1..=2 * ENVELOPES).chain([7]).map(settle)).await;
    assert!(settled.iter().all(Result::is_ok), "{settled:?}");
    for record in whole(&scene).await {
        let (number, states) =
            (record.envelope, record.settled.iter().flat_map(|(_, outcomes)| outcomes.iter().map(State::of)));
        let late = number <= ENVELOPES;
        let expected: Vec<State> = outcomes(number)
            .iter()
            .map(|outcome| match State::of(outcome) {
                // What is only said not to have been sent proves nothing once it was in doubt.
                State::Planned if late => State::InDoubt,
                state => state,
            })
            .collect();
        assert_eq!(states.collect::<Vec<_>>(), expected, "envelope {number}");
        let evidence = scene.ledger.evidence(scene.run.key, number).await.unwrap();
        assert_eq!(evidence, number.is_multiple_of(4).then(|| format!("the body of {number}")));
    }
    scene.ledger.request_stop(scene.run.key, true).await.unwrap();
    let refused = join_all((81..=90).map(|n| begin(n, claim.lease))).await;
    assert!(refused.into_iter().all(|permit| permit.unwrap() == Permit::StopRequested));
}

async fn whole<L: Ledger>(scene: &Scene<L>) -> Vec<EnvelopeRecord> {
    scene.ledger.envelopes(scene.run.key, 1..=u32::MAX).await.unwrap()
}
