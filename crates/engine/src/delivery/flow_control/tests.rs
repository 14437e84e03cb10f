//! Tests of the follow-ups to answers.

use proptest::prelude::*;

use super::*;
use crate::delivery::BreakerLimits;
use crate::delivery::fixtures::{envelope, outcome};
use crate::delivery::start::StopKind;
use campaign_core::domain::{Endpoint, Row};
use campaign_gateway::StopCause;
use campaign_ledger::{Allowance, Epoch, Lease, RowSpan, RunId};

fn conditions() -> SendConditions {
    SendConditions {
        lease: Lease { run: RunId(1), rows: RowSpan { first: Row::FIRST, last: Row::FIRST }, epoch: Epoch(1) },
        endpoint: Endpoint::Async,
        repeated: RoaringBitmap::new(),
        rate: None,
        bounds: None,
        waits_at_bounds: true,
        account: Allowance::new("account", None),
        batch: 100,
        in_flight: 2,
        timeout: Duration::from_secs(30),
        limits: BreakerLimits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            unreachable: Duration::from_secs(1_800),
            keep_going: false,
        },
        proven: false,
        first_messages: Duration::from_secs(10),
        sharing: None,
        is_attended: false,
    }
}

fn at_second(second: u64) -> RetryMoment {
    RetryMoment { at: Duration::from_secs(second), chance: 1.0 }
}

/// All follow-ups to a reply to an envelope.
fn apply_reply(control: &mut FlowControl, reply: &GatewayReply, moment: RetryMoment) -> Vec<FollowUp> {
    let sent = envelope(0..u32::try_from(reply.outcomes.len()).unwrap());
    let mut reply = reply.clone();
    let early = control.observe_answer(&sent, false, &mut reply).map(FollowUp::Stop);
    early.into_iter().chain(control.follow_ups(sent, false, &reply, moment)).collect()
}

/// Flow control after warm-up.
fn warmed_up(conditions: &SendConditions) -> FlowControl {
    let mut control = FlowControl::new(conditions);
    while control.warm_up.is_warming_up() {
        apply_reply(&mut control, &GatewayReply::for_all(1, &outcome(0), Signal::Go), at_second(0));
    }
    control
}

fn all_signals() -> Vec<Signal> {
    let slow = |retry_after| Signal::Slow { reason: "HTTP 429".into(), retry_after };
    vec![
        Signal::Go,
        Signal::Warn("odd".into()),
        Signal::Unreachable("refused".into()),
        Signal::Broken("reset".into()),
        Signal::Strange("HTTP 502".into()),
        slow(None),
        slow(Some(Duration::from_secs(7))),
        Signal::Split("Operator not supported".into()),
        Signal::Stop(StopCause::KeyRefused, "Access denied".into()),
    ]
}

#[test]
fn each_answer_has_its_follow_ups() {
    let warn = |what: &str| FollowUp::Warn(what.to_owned());
    let slow_down = || warn("the gateway asked campaign to slow down (HTTP 429); the rate is halved");
    let in_doubt = || {
        warn(
            "the gateway asked campaign to slow down (HTTP 429); the rate is halved; the messages in this request are \
             in doubt and not retried, because the response does not prove that none were sent",
        )
    };
    let pause = |reason: &str, seconds, next| {
        let time = Duration::from_secs(seconds);
        FollowUp::Pause { reason: reason.into(), time, next }
    };
    let one_in_doubt = AfterWait::Next { in_doubt: 1 };
    let again = |piece| FollowUp::Resend(ResendBatch { operations: envelope(0..1).into_operations(), is_piece: piece });
    let stop = |reason: &str| FollowUp::Stop(Halt { reason: reason.into(), first: true });
    let seven = Duration::from_secs(7);
    let table: [(usize, usize, Vec<FollowUp>); 12] = [
        (0, 0, vec![]),
        (1, 0, vec![warn("odd")]),
        (1, 4, vec![warn("odd")]),
        (2, 3, vec![again(false), pause("refused", 1, AfterWait::Retry)]),
        (3, 4, vec![warn("reset")]),
        (4, 4, vec![warn("HTTP 502")]),
        (5, 4, vec![in_doubt(), pause("HTTP 429", 1, one_in_doubt), FollowUp::SlowDown(None)]),
        (6, 4, vec![in_doubt(), pause("HTTP 429", 7, one_in_doubt), FollowUp::SlowDown(Some(seven))]),
        (
            6,
            3,
            vec![slow_down(), again(false), pause("HTTP 429", 7, AfterWait::Retry), FollowUp::SlowDown(Some(seven))],
        ),
        (7, 3, vec![again(true)]),
        (8, 3, vec![stop("Access denied"), again(false)]),
        (0, 2, vec![]),
    ];
    for (signal, kind, expected) in table {
        let signal = all_signals().swap_remove(signal);
        let told = apply_reply(
            &mut warmed_up(&conditions()),
            &GatewayReply::for_all(1, &outcome(kind), signal.clone()),
            at_second(9),
        );
        assert_eq!(told, expected, "{signal:?} {:?}", outcome(kind));
    }
}

#[test]
fn attended_start_gets_the_answer_without_warnings() {
    let mut control = FlowControl::new(&SendConditions { is_attended: true, ..conditions() });
    for signal in all_signals() {
        let steps = apply_reply(&mut control, &GatewayReply::for_all(1, &outcome(4), signal), at_second(1));
        assert!(!steps.iter().any(|step| matches!(step, FollowUp::Warn(_))), "{steps:?}");
    }
}

#[test]
fn queued_first_messages_share_one_deadline() {
    let queued = GatewayReply::for_all(1, &outcome(1), Signal::Go);
    let until = |steps: &[FollowUp]| match steps {
        [FollowUp::AskStatus { until, .. }] => Some(until.as_secs()),
        _ => None,
    };
    let mut control = FlowControl::new(&conditions());
    assert_eq!(until(&apply_reply(&mut control, &queued, at_second(5))), Some(15));
    assert_eq!(until(&apply_reply(&mut control, &queued, at_second(9))), Some(15));
    control.record_stop(Stop::new(StopKind::StopRequested, "asked to stop"));
    assert_eq!(apply_reply(&mut control, &queued, at_second(9)), [], "a start that stops asks nothing more");
    let rehearsal = SendConditions { first_messages: Duration::ZERO, ..conditions() };
    assert_eq!(apply_reply(&mut FlowControl::new(&rehearsal), &queued, at_second(5)), []);
    assert_eq!(apply_reply(&mut warmed_up(&conditions()), &queued, at_second(5)), [], "only the first messages");
}

#[test]
fn messages_are_sent_singly_after_a_rejected_first_message() {
    let refused = |text: &str| GatewayReply::for_all(1, &OperationOutcome::Rejected { error: text.into() }, Signal::Go);
    let mut control = FlowControl::new(&conditions());
    for text in ["No route", "No route", "No route"] {
        assert_eq!(apply_reply(&mut control, &refused(text), at_second(1)), []);
        assert_eq!((control.next_size(), control.stop_reason()), (1, None));
    }
    let mut taken = FlowControl::new(&conditions());
    apply_reply(&mut taken, &refused("No route"), at_second(1));
    apply_reply(&mut taken, &GatewayReply::for_all(1, &outcome(0), Signal::Go), at_second(2));
    assert_eq!(taken.next_size(), 5);
    assert!(matches!(apply_reply(&mut control, &refused("No route"), at_second(2))[..], [FollowUp::Stop(_)]));
    let mut proven = FlowControl::new(&SendConditions { proven: true, ..conditions() });
    apply_reply(&mut proven, &refused("No route"), at_second(1));
    assert_eq!((proven.next_size(), proven.stop_reason()), (5, None));
    let mut queued = FlowControl::new(&conditions());
    for _ in 0..3 {
        apply_reply(&mut queued, &GatewayReply::for_all(1, &outcome(1), Signal::Go), at_second(1));
        assert_eq!((queued.observe_late_rejections(1, 1), queued.next_size()), (None, 1));
    }
    apply_reply(&mut queued, &GatewayReply::for_all(1, &outcome(1), Signal::Go), at_second(1));
    assert!(queued.observe_late_rejections(1, 1).is_some());
}

#[test]
fn gravest_stop_reason_counts_then_the_first() {
    let mut control = FlowControl::new(&conditions());
    for (kind, reason, first, told) in [
        (StopKind::StopRequested, "one", true, "one"),
        (StopKind::Inconsistent, "two", false, "one"),
        (StopKind::Ledger, "three", false, "three"),
        (StopKind::Interrupted(2), "four", false, "three"),
    ] {
        assert_eq!(control.record_stop(Stop::new(kind, reason)), Halt { reason: reason.into(), first });
        assert_eq!(control.stop_reason().map(|stop| stop.reason.as_str()), Some(told));
    }
}

#[test]
fn one_envelope_probes_after_an_outage() {
    let mut control = warmed_up(&conditions());
    assert!(control.may_begin(1, 2) && !control.may_begin(2, 0) && !control.may_begin(1, 3));
    apply_reply(
        &mut control,
        &GatewayReply::for_all(1, &outcome(3), Signal::Unreachable("refused".into())),
        at_second(5),
    );
    assert!(!control.may_begin(0, 0), "it pauses");
    control.expire_pause(Duration::from_secs(6));
    assert!(control.may_begin(0, 0) && !control.may_begin(1, 0) && !control.may_begin(0, 1));
    apply_reply(&mut control, &GatewayReply::for_all(1, &outcome(0), Signal::Go), at_second(6));
    assert!(control.may_begin(1, 2));
}

proptest! {
    #[test]
    fn stop_is_final_pause_is_kept_envelopes_only_grow(
        replies in prop::collection::vec((0..9_usize, 0..5_usize, 1..8_usize, 0..120_u64, 0.0..1.0_f64), 1..60),
    ) {
        let mut control = FlowControl::new(&conditions());
        let mut now = Duration::ZERO;
        for (signal, kind, count, seconds, chance) in replies {
            let (size, stopped) = (control.next_size(), control.stop_reason().cloned());
            now += Duration::from_secs(seconds);
            control.expire_pause(now);
            let reply = GatewayReply::for_all(count, &outcome(kind), all_signals().swap_remove(signal));
            let steps = apply_reply(&mut control, &reply, RetryMoment { at: now, chance });
            prop_assert!(size <= control.next_size() && control.next_size() <= 100);
            prop_assert!(size == control.next_size() || reply.has_proof());
            prop_assert!(stopped.is_none() || (control.stop_reason().is_some() && !control.may_begin(0, 0)));
            for step in steps {
                match step {
                    FollowUp::Pause { time, .. } => {
                        prop_assert!(!control.may_begin(0, 0));
                        control.expire_pause((now + time).saturating_sub(Duration::from_nanos(1)));
                        prop_assert!(control.is_paused() || time.is_zero());
                    }
                    FollowUp::Stop(Halt { first, .. }) => {
                        prop_assert!(control.stop_reason().is_some() && !control.may_begin(0, 0));
                        prop_assert!(!first || stopped.is_none());
                    }
                    FollowUp::Resend(_) => prop_assert_eq!(kind, 3),
                    FollowUp::AskStatus { queued, until } => {
                        prop_assert!(queued.len() == count && until >= now.min(Duration::from_secs(10)));
                    }
                    FollowUp::Warn(_) | FollowUp::SlowDown(_) => {}
                }
            }
        }
    }
}

#[test]
fn start_at_a_bound_sends_the_rest_then_waits_or_stops() {
    let until = jiff::civil::date(2026, 11, 24).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
    let day = Bound::Day { limit: 5, until, wait: Duration::from_secs(3_600) };
    let second = Duration::from_secs(1);
    let mut control = FlowControl::new(&conditions());
    assert_eq!(control.apply_bound(3, true, &day, second), BoundEffect::Continue);
    assert_eq!(
        control.apply_bound(0, false, &day, second),
        BoundEffect::Continue,
        "an envelope in flight may make room"
    );
    assert!(!control.may_begin(1, 0) && control.may_begin(0, 0));
    let BoundEffect::Wait { reason, time } = control.apply_bound(0, true, &day, second) else { panic!("it waits") };
    assert_eq!((time, control.is_paused()), (Duration::from_secs(3_600), true));
    assert!(reason.contains("at 2026-11-24 00:00 (UTC)"), "{reason}");
    // It asks again from time to time, but announces the wait once.
    control.expire_pause(second + RECHECK_INTERVAL);
    assert!(!control.is_paused());
    assert_eq!(control.apply_bound(0, true, &day, Duration::from_secs(61)), BoundEffect::Continue);
    assert!(control.is_paused() && control.stop_reason().is_none());
    for (conditions, bound, kind) in [
        (SendConditions { waits_at_bounds: false, ..conditions() }, day, StopKind::Window),
        (conditions(), Bound::Recipients { limit: 5 }, StopKind::Budget),
    ] {
        let mut control = FlowControl::new(&conditions);
        let BoundEffect::Stop(halt) = control.apply_bound(0, true, &bound, second) else { panic!("it stops") };
        assert_eq!((control.stop_reason().map(|stop| stop.kind), halt.first), (Some(kind), true));
    }
}
