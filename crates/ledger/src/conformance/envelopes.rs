//! Conformance tests of envelopes: their numbers, leases, settlements, and doubt after the end of a process.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::scene::*;
use crate::{
    Allowance, EnvelopeFilter, EnvelopeReader, EnvelopeRecord, Intent, Permit, RateRequest, RowState, RunUpdate,
    Settlement, SlotPermit, SlotWait, StopRequest,
};
use campaign_core::domain::{Chain, OperationKind};

pub(super) async fn intent_needs_the_lease_and_no_stop_request(scene: Scene) {
    assert_eq!(scene.begin_envelope(1, scene.lease).await, granted(1));
    assert_eq!(scene.begin_envelope(2, scene.forged_lease()).await, Permit::Lost);
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Stop(StopRequest::Stop)).await.unwrap();
    assert_eq!(scene.begin_envelope(2, scene.lease).await, Permit::StopRequested);
    assert_eq!(scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap().len(), 1);
}

pub(super) async fn claim_puts_open_envelopes_in_doubt_and_ends_the_lease(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.begin_envelope(2, scene.lease).await;
    scene.settle_envelope(2, [accepted(), rejected()]).await;
    let claim = scene.ledger.claim_run(&scene.lock, scene.run.key).await.unwrap();
    assert_eq!(claim.in_doubt, 1);
    assert_ne!(claim.lease.epoch, scene.lease.epoch);
    assert_eq!(scene.outcome_states(1).await, [RowState::InDoubt, RowState::InDoubt]);
    assert_eq!(scene.outcome_states(2).await, [RowState::Accepted, RowState::Rejected]);
    assert_eq!(scene.begin_envelope(3, scene.lease).await, Permit::Lost);
    assert_eq!(scene.begin_envelope(3, claim.lease).await, granted(3));
}

pub(super) async fn late_answer_counts_unless_it_proves_nothing_was_sent(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    scene.claim_again().await;
    scene.settle_envelope(1, [accepted(), not_sent()]).await;
    assert_eq!(scene.outcome_states(1).await, [RowState::Accepted, RowState::InDoubt]);
    scene.settle_envelope(1, [rejected(), in_doubt()]).await;
    assert_eq!(scene.outcome_states(1).await, [RowState::Accepted, RowState::InDoubt], "proven outcomes stay");
}

pub(super) async fn rate_limit_delays_the_next_envelope_of_any_sender(scene: Scene) {
    let mut intent = scene.new_intent(1, scene.lease);
    intent.account = Allowance::new("account", Some(0.5));
    assert_eq!(scene.ledger.begin_envelope(intent.clone()).await.unwrap(), granted(1));
    intent.rows = scene.new_intent(2, scene.lease).rows;
    let Permit::Granted { wait: SlotWait { time: wait, .. }, .. } = scene.ledger.begin_envelope(intent).await.unwrap()
    else {
        panic!("refused")
    };
    assert!(wait > Duration::from_secs(3) && wait <= Duration::from_secs(4), "two operations at 0.5/s: {wait:?}");
    let reported = scene.ledger.list_rate_limits().await.unwrap();
    let (name, limit) = &reported[0];
    assert_eq!(
        (reported.len(), name.as_str(), limit.rate, limit.taken),
        (1, "account", Some(0.5), 4),
        "two envelopes of two"
    );
    let slower = RateRequest::SlowDown(Some(Duration::from_secs(60)));
    let later = scene.ledger.use_rate_limit(&Allowance::new("other", None), slower).await.unwrap();
    assert_eq!(later, SlotPermit::Later(Duration::from_secs(60)));
    assert!(scene.port().reserve_rate(&Allowance::new("other", None), 1).await.unwrap().time > Duration::from_secs(59));
}

pub(super) async fn inquiries_get_a_tenth_of_the_rate_while_messages_are_sent(scene: Scene) {
    let (account, longest) = (Allowance::new("account", Some(0.5)), Duration::from_secs(5));
    let ask = async |account: &Allowance| {
        scene.ledger.use_rate_limit(account, RateRequest::Inquiry { longest }).await.unwrap()
    };
    scene.port().reserve_rate(&account, 1).await.unwrap();
    let SlotPermit::Granted { wait, next } = ask(&account).await else { panic!("the first inquiry was refused") };
    assert!(wait.time <= Duration::from_secs(2), "{wait:?} after one message");
    assert_eq!(next, Duration::from_secs(20), "a tenth of 0.5/s");
    let SlotPermit::Later(wait) = ask(&account).await else { panic!("a second inquiry was granted") };
    assert!(wait > Duration::from_secs(10) && wait <= next, "{wait:?}");
    assert!(scene.port().reserve_rate(&account, 1).await.unwrap().time <= Duration::from_secs(4), "after one inquiry");
    let reported = scene.ledger.list_rate_limits().await.unwrap();
    assert_eq!(
        (reported.len(), reported[0].0.as_str(), reported[0].1.taken),
        (1, "account", 3),
        "the name of inquiries is not an account"
    );
    let idle = Allowance::new("idle", Some(1_000.0));
    let error = ask(&idle).await;
    assert!(matches!(error, SlotPermit::Granted { next, .. } if next == Duration::from_millis(1)), "{error:?}");
    assert!(matches!(ask(&Allowance::new("other", None)).await, SlotPermit::Granted { .. }));
}

pub(super) async fn envelope_reader_returns_each_envelope_once_in_order(scene: Scene) {
    let numbers: Vec<u32> = (1..=600).collect();
    futures_util::future::join_all(numbers.iter().map(|number| scene.begin_envelope(*number, scene.lease))).await;
    let (mut reader, mut numbers_read) = (EnvelopeReader::new(&*scene.ledger, scene.run.key), Vec::new());
    while let Some(envelope) = reader.next_envelope().await.unwrap() {
        numbers_read.push(envelope.envelope);
    }
    assert_eq!(numbers_read, numbers);
}

pub(super) async fn answer_body_is_kept_until_a_later_answer_has_one(scene: Scene) {
    let evidence = async || load_all_envelopes(&scene).await.remove(0).evidence;
    let settle = async |evidence: Option<&str>| {
        let evidence = evidence.map(str::to_owned);
        let settlement = Settlement {
            opt_outs: Vec::new(),
            run: scene.run.key,
            envelope: 1,
            outcomes: vec![in_doubt(), in_doubt()],
            evidence,
        };
        scene.ledger.settle_envelope(settlement).await.unwrap();
    };
    scene.begin_envelope(1, scene.lease).await;
    assert_eq!(evidence().await, None);
    for (body, expected) in [(Some("oops"), "oops"), (None, "oops"), (Some("later"), "later")] {
        settle(body).await;
        assert_eq!(evidence().await.as_deref(), Some(expected));
    }
    // The gateway's answer can contain anything.
    settle(Some("a\0b\u{1f600}")).await;
    assert!(evidence().await.is_some_and(|text| text.starts_with('a') && text.ends_with("b\u{1f600}")));
}

pub(super) async fn answer_after_the_end_of_a_run_is_counted(scene: Scene) {
    scene.begin_envelope(1, scene.lease).await;
    let next = scene.claim_again().await;
    scene.settle_envelope(1, [in_doubt(), in_doubt()]).await;
    assert_eq!(scene.reload_run().await.counts, None, "a run with an owner has no counts");
    scene.ledger.end_run(next, run_end()).await.unwrap();
    scene.settle_envelope(1, [accepted(), rejected()]).await;
    let (counts, parts) = scene.reload_run().await.counts.unwrap();
    let expected = [(RowState::Invalid, 1), (RowState::NotSent, 7), (RowState::Accepted, 1), (RowState::Rejected, 1)];
    assert_eq!((counts.iter().collect::<Vec<_>>(), parts), (expected.to_vec(), 2));
}

pub(super) async fn envelope_numbers_are_unique_across_senders(scene: Scene) {
    let mut numbers = Vec::new();
    let mut lease = scene.lease;
    for envelope in 1..=9 {
        if envelope % 3 == 0 {
            lease = scene.claim_again().await;
        }
        assert_eq!(
            scene.begin_envelope(envelope, scene.forged_lease()).await,
            Permit::Lost,
            "a refused envelope takes no number"
        );
        let Permit::Granted { envelope, .. } = scene.begin_envelope(envelope, lease).await else { panic!("refused") };
        numbers.push(envelope);
    }
    assert_eq!(numbers, (1..=9).collect::<Vec<_>>());
}

pub(super) async fn envelope_keeps_its_operation_kind(scene: Scene) {
    let kinds = [OperationKind::ViberSms, OperationKind::Sms, OperationKind::Hlr];
    for (envelope, kind) in (1..).zip(kinds) {
        scene.ledger.begin_envelope(Intent { kind, ..scene.new_intent(envelope, scene.lease) }).await.unwrap();
    }
    let envelopes = scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=9)).await.unwrap();
    assert_eq!(envelopes.iter().map(|envelope| envelope.kind).collect::<Vec<_>>(), kinds);
}

pub(super) async fn pipeline_channels_are_recorded_by_row(scene: Scene) {
    let (viber_first, sms_first) = ("viber sms".parse().unwrap(), "sms viber".parse().unwrap());
    let chains: [&[Chain]; 3] =
        [&[viber_first, viber_first], &[viber_first, sms_first], &[Chain::UNKNOWN, viber_first]];
    for (envelope, chains) in (1..).zip(chains) {
        let mut intent = Intent { kind: OperationKind::Pipeline, ..scene.new_intent(envelope, scene.lease) };
        intent.rows.iter_mut().zip(chains).for_each(|(sent, chain)| sent.chain = *chain);
        scene.ledger.begin_envelope(intent).await.unwrap();
    }
    let kind = OperationKind::ViberSms;
    scene.ledger.begin_envelope(Intent { kind, ..scene.new_intent(4, scene.lease) }).await.unwrap();
    let envelopes = scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=9)).await.unwrap();
    let loaded: Vec<Vec<Chain>> =
        envelopes.iter().map(|envelope| envelope.rows.iter().map(|sent| envelope.chain(sent)).collect()).collect();
    assert_eq!(loaded[3], [viber_first, viber_first], "the operation type names the channels");
    // The tables of early versions have no column for channels.
    if loaded[0] != [Chain::UNKNOWN; 2] {
        assert_eq!(loaded[..3], chains);
    }
}

pub(super) async fn late_envelope_is_not_recorded_and_takes_no_slot(scene: Scene) {
    let begin = |envelope, seconds: i64, rate| {
        let leave_by = Some(Timestamp::now() + SignedDuration::from_secs(seconds));
        let account = Allowance::new("account", rate);
        scene.ledger.begin_envelope(Intent { account, leave_by, ..scene.new_intent(envelope, scene.lease) })
    };
    assert!(matches!(begin(1, 0, None).await.unwrap(), Permit::TooLate(_)), "the deadline has passed");
    assert_eq!(begin(1, 100, Some(0.1)).await.unwrap(), granted(1));
    // The next slot is twenty seconds from now.
    let soon = Timestamp::now() + SignedDuration::from_secs(15);
    for _ in 0..3 {
        let Permit::TooLate(at) = begin(2, 10, Some(0.1)).await.unwrap() else { panic!("it would be sent too late") };
        assert!(at > soon && at < soon + SignedDuration::from_secs(20), "the slot is still free: {at}");
    }
    let Permit::Granted { envelope: 2, wait } = begin(2, 100, Some(0.1)).await.unwrap() else {
        panic!("it may be sent")
    };
    assert!(wait.time > Duration::from_secs(15));
    assert_eq!(scene.ledger.list_envelope_summaries(scene.run.key).await.unwrap().len(), 2);
}

/// Makes the calls concurrently, as the engine does.
pub(super) async fn concurrent_envelopes_match_sequential_envelopes(scene: Scene) {
    // Twice as many envelopes are requested at once. All requests fit into one batch, so they keep their order.
    const ENVELOPES: u32 = 32;
    let begin = |envelope: u32, lease| scene.ledger.begin_envelope(scene.new_intent(envelope, lease));
    // An intent with a forged lease is refused, even among valid ones.
    let intents = (1..=ENVELOPES).flat_map(|n| [begin(n, scene.lease), begin(ENVELOPES + n, scene.forged_lease())]);
    let permits = join_all(intents).await;
    let mut numbers = Vec::new();
    for pair in permits.chunks(2) {
        match pair {
            [Ok(Permit::Granted { envelope, wait: SlotWait::NONE }), Ok(Permit::Lost)] => numbers.push(*envelope),
            other => panic!("{other:?}"),
        }
    }
    let expected: Vec<u32> = (1..=ENVELOPES).collect();
    assert_eq!(numbers, expected, "numbers are unique and in order of arrival");
    for (record, number) in load_all_envelopes(&scene).await.iter().zip(1..) {
        assert_eq!(
            (record.envelope, record.rows[0].row.get(), record.rows[1].row.get()),
            (number, number * 2, number * 2 + 1)
        );
        assert_eq!((record.kind, &record.settled), (OperationKind::ViberSms, &None));
    }
    // Envelopes of the previous owner are in doubt, and late answers count as evidence.
    let claim = scene.ledger.claim_run(&scene.lock, scene.run.key).await.unwrap();
    assert_eq!(claim.in_doubt, ENVELOPES as usize);
    let results = join_all((81..=90).map(|n| begin(n, scene.lease))).await;
    assert!(results.into_iter().all(|permit| permit.unwrap() == Permit::Lost));
    let later = join_all((ENVELOPES + 1..=2 * ENVELOPES).map(|n| begin(n, claim.lease))).await;
    assert!(later.into_iter().map(Result::unwrap).eq((ENVELOPES + 1..=2 * ENVELOPES).map(granted)));
    let outcomes = |n: u32| match n % 3 {
        0 => vec![accepted(), not_sent()],
        1 => vec![rejected(), accepted()],
        _ => vec![in_doubt(), in_doubt()],
    };
    let settle = |n: u32| {
        let evidence = n.is_multiple_of(4).then(|| format!("the body of {n}"));
        let settlement =
            Settlement { opt_outs: Vec::new(), run: scene.run.key, envelope: n, outcomes: outcomes(n), evidence };
        scene.ledger.settle_envelope(settlement)
    };
    // An envelope that is settled twice at once keeps its whole batch out of a single statement.
    for numbers in [(1..=2 * ENVELOPES).collect::<Vec<_>>(), vec![7, 8, 7]] {
        let settled = join_all(numbers.into_iter().map(settle)).await;
        assert!(settled.iter().all(Result::is_ok), "{settled:?}");
    }
    for record in load_all_envelopes(&scene).await {
        let (number, states) = (
            record.envelope,
            record.settled.iter().flat_map(|(_, outcomes)| outcomes.iter().map(RowState::from_outcome)),
        );
        let is_late = number <= ENVELOPES;
        let expected: Vec<RowState> = outcomes(number)
            .iter()
            .map(|outcome| match RowState::from_outcome(outcome) {
                // An answer that nothing was sent proves nothing about a message already in doubt.
                RowState::Planned if is_late => RowState::InDoubt,
                state => state,
            })
            .collect();
        assert_eq!(states.collect::<Vec<_>>(), expected, "envelope {number}");
        assert_eq!(record.evidence, number.is_multiple_of(4).then(|| format!("the body of {number}")));
    }
    scene.ledger.update_runs(vec![scene.run.key], RunUpdate::Stop(StopRequest::Stop)).await.unwrap();
    let refusals = join_all((81..=90).map(|n| begin(n, claim.lease))).await;
    assert!(refusals.into_iter().all(|permit| permit.unwrap() == Permit::StopRequested));
}

async fn load_all_envelopes(scene: &Scene) -> Vec<EnvelopeRecord> {
    scene.ledger.load_envelopes(scene.run.key, EnvelopeFilter::Numbers(1..=u32::MAX)).await.unwrap()
}
