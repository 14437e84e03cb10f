//! What follows from each answer.

use proptest::prelude::*;

use super::*;
use crate::delivery::Limits;
use crate::delivery::fixtures::{envelope, outcome};
use crate::delivery::stop::StopKind;
use crate::domain::{Endpoint, Row};
use crate::gateway::StopCause;
use crate::ledger::{Allowance, Epoch, Lease, Rows, RunId};

fn conditions() -> Conditions {
    Conditions {
        lease: Lease { run: RunId(1), rows: Rows { first: Row::FIRST, last: Row::FIRST }, epoch: Epoch(1) },
        endpoint: Endpoint::Async,
        repeated: RoaringBitmap::new(),
        rate: None,
        bounds: None,
        waits: true,
        account: Allowance::new("account", None),
        batch: 100,
        in_flight: 2,
        timeout: Duration::from_secs(30),
        limits: Limits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            unreachable: Duration::from_secs(1_800),
            keep_going: false,
        },
        proven: false,
        first_messages: Duration::from_secs(10),
        together: None,
        attended: false,
    }
}

fn at(second: u64) -> Moment {
    Moment { at: Duration::from_secs(second), chance: 1.0 }
}

/// Everything that follows from a reply to an envelope of one operation.
fn follow(course: &mut Course, reply: &Reply, moment: Moment) -> Vec<Step> {
    let sent = envelope(0..u32::try_from(reply.outcomes.len()).unwrap());
    let mut reply = reply.clone();
    let early = course.answered(&sent, false, &mut reply).map(Step::Stop);
    early.into_iter().chain(course.recorded(sent, false, &reply, moment)).collect()
}

/// A course whose first envelopes were all taken.
fn grown(conditions: &Conditions) -> Course {
    let mut course = Course::new(conditions);
    while course.ramp.is_canary() {
        follow(&mut course, &Reply::all(1, &outcome(0), Signal::Go), at(0));
    }
    course
}

fn signals() -> Vec<Signal> {
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
fn each_answer_has_its_steps() {
    let warn = |what: &str| Step::Warn(what.to_owned());
    let slow_down = || warn("the gateway asked campaign to slow down (HTTP 429); the rate is halved");
    let in_doubt = || {
        warn(
            "the gateway asked campaign to slow down (HTTP 429); the rate is halved; the messages in this request are \
             in doubt and not retried, because the response does not prove that none were sent",
        )
    };
    let pause = |reason: &str, seconds, next| {
        let time = Duration::from_secs(seconds);
        Step::Pause { reason: reason.into(), time, next }
    };
    let one_in_doubt = AfterWait::Next { in_doubt: 1 };
    let again = |piece| Step::TryAgain(Parcel { operations: envelope(0..1).into_operations(), piece });
    let stop = |reason: &str| Step::Stop(Halt { reason: reason.into(), first: true });
    let seven = Duration::from_secs(7);
    let table: [(usize, usize, Vec<Step>); 12] = [
        (0, 0, vec![]),
        (1, 0, vec![warn("odd")]),
        (1, 4, vec![warn("odd")]),
        (2, 3, vec![again(false), pause("refused", 1, AfterWait::Retry)]),
        (3, 4, vec![warn("reset")]),
        (4, 4, vec![warn("HTTP 502")]),
        (5, 4, vec![in_doubt(), pause("HTTP 429", 1, one_in_doubt), Step::SlowDown(None)]),
        (6, 4, vec![in_doubt(), pause("HTTP 429", 7, one_in_doubt), Step::SlowDown(Some(seven))]),
        (6, 3, vec![slow_down(), again(false), pause("HTTP 429", 7, AfterWait::Retry), Step::SlowDown(Some(seven))]),
        (7, 3, vec![again(true)]),
        (8, 3, vec![stop("Access denied"), again(false)]),
        (0, 2, vec![]),
    ];
    for (signal, kind, expected) in table {
        let signal = signals().swap_remove(signal);
        let told = follow(&mut grown(&conditions()), &Reply::all(1, &outcome(kind), signal.clone()), at(9));
        assert_eq!(told, expected, "{signal:?} {:?}", outcome(kind));
    }
}

#[test]
fn whoever_waits_for_an_answer_is_told_the_answer_and_no_warning_before_it() {
    let mut course = Course::new(&Conditions { attended: true, ..conditions() });
    for signal in signals() {
        let steps = follow(&mut course, &Reply::all(1, &outcome(4), signal), at(1));
        assert!(!steps.iter().any(|step| matches!(step, Step::Warn(_))), "{steps:?}");
    }
}

#[test]
fn queued_first_messages_are_asked_about_for_one_time_that_all_of_them_share() {
    let queued = Reply::all(1, &outcome(1), Signal::Go);
    let until = |steps: &[Step]| match steps {
        [Step::Ask { until, .. }] => Some(until.as_secs()),
        _ => None,
    };
    let mut course = Course::new(&conditions());
    assert_eq!(until(&follow(&mut course, &queued, at(5))), Some(15));
    assert_eq!(until(&follow(&mut course, &queued, at(9))), Some(15));
    course.stop(Stop::new(StopKind::Asked, "asked to stop"));
    assert_eq!(follow(&mut course, &queued, at(9)), [], "a start that stops asks nothing more");
    let rehearsal = Conditions { first_messages: Duration::ZERO, ..conditions() };
    assert_eq!(follow(&mut Course::new(&rehearsal), &queued, at(5)), []);
    assert_eq!(follow(&mut grown(&conditions()), &queued, at(5)), [], "only the first messages");
}

#[test]
fn a_first_message_that_is_refused_is_followed_by_single_ones_until_four_were_with_one_text() {
    let refused = |text: &str| Reply::all(1, &Outcome::Rejected { error: text.into() }, Signal::Go);
    let mut course = Course::new(&conditions());
    for text in ["No route", "No route", "No route"] {
        assert_eq!(follow(&mut course, &refused(text), at(1)), []);
        assert_eq!((course.size(), course.stopped()), (1, None));
    }
    let mut taken = Course::new(&conditions());
    follow(&mut taken, &refused("No route"), at(1));
    follow(&mut taken, &Reply::all(1, &outcome(0), Signal::Go), at(2));
    assert_eq!(taken.size(), 5);
    assert!(matches!(follow(&mut course, &refused("No route"), at(2))[..], [Step::Stop(_)]));
    let mut proven = Course::new(&Conditions { proven: true, ..conditions() });
    follow(&mut proven, &refused("No route"), at(1));
    assert_eq!((proven.size(), proven.stopped()), (5, None));
    let mut queued = Course::new(&conditions());
    for _ in 0..3 {
        follow(&mut queued, &Reply::all(1, &outcome(1), Signal::Go), at(1));
        assert_eq!((queued.refused_late(1, 1), queued.size()), (None, 1));
    }
    follow(&mut queued, &Reply::all(1, &outcome(1), Signal::Go), at(1));
    assert!(queued.refused_late(1, 1).is_some());
}

#[test]
fn of_several_reasons_to_stop_the_gravest_counts_and_of_equal_ones_the_first() {
    let mut course = Course::new(&conditions());
    for (kind, reason, first, told) in [
        (StopKind::Asked, "one", true, "one"),
        (StopKind::Inconsistent, "two", false, "one"),
        (StopKind::Ledger, "three", false, "three"),
        (StopKind::Interrupted(2), "four", false, "three"),
    ] {
        assert_eq!(course.stop(Stop::new(kind, reason)), Halt { reason: reason.into(), first });
        assert_eq!(course.stopped().map(|stop| stop.reason.as_str()), Some(told));
    }
}

#[test]
fn after_an_outage_one_envelope_tries_the_way_for_all() {
    let mut course = grown(&conditions());
    assert!(course.may_begin(1, 2) && !course.may_begin(2, 0) && !course.may_begin(1, 3));
    follow(&mut course, &Reply::all(1, &outcome(3), Signal::Unreachable("refused".into())), at(5));
    assert!(!course.may_begin(0, 0), "it pauses");
    course.look(Duration::from_secs(6));
    assert!(course.may_begin(0, 0) && !course.may_begin(1, 0) && !course.may_begin(0, 1));
    follow(&mut course, &Reply::all(1, &outcome(0), Signal::Go), at(6));
    assert!(course.may_begin(1, 2));
}

proptest! {
    #[test]
    fn whatever_comes_a_stop_is_final_a_pause_is_kept_and_envelopes_only_grow(
        replies in prop::collection::vec((0..9_usize, 0..5_usize, 1..8_usize, 0..120_u64, 0.0..1.0_f64), 1..60),
    ) {
        let mut course = Course::new(&conditions());
        let mut now = Duration::ZERO;
        for (signal, kind, count, seconds, chance) in replies {
            let (size, stopped) = (course.size(), course.stopped().cloned());
            now += Duration::from_secs(seconds);
            course.look(now);
            let reply = Reply::all(count, &outcome(kind), signals().swap_remove(signal));
            let steps = follow(&mut course, &reply, Moment { at: now, chance });
            prop_assert!(size <= course.size() && course.size() <= 100);
            prop_assert!(size == course.size() || reply.proves_something());
            prop_assert!(stopped.is_none() || (course.stopped().is_some() && !course.may_begin(0, 0)));
            for step in steps {
                match step {
                    Step::Pause { time, .. } => {
                        prop_assert!(!course.may_begin(0, 0));
                        course.look((now + time).saturating_sub(Duration::from_nanos(1)));
                        prop_assert!(course.is_paused() || time.is_zero());
                    }
                    Step::Stop(Halt { first, .. }) => {
                        prop_assert!(course.stopped().is_some() && !course.may_begin(0, 0));
                        prop_assert!(!first || stopped.is_none());
                    }
                    Step::TryAgain(_) => prop_assert_eq!(kind, 3),
                    Step::Ask { queued, until } => {
                        prop_assert!(queued.len() == count && until >= now.min(Duration::from_secs(10)));
                    }
                    Step::Warn(_) | Step::SlowDown(_) => {}
                }
            }
        }
    }
}

#[test]
fn at_a_bound_what_fits_goes_alone_and_a_start_waits_for_another_day_or_stops() {
    let until = jiff::civil::date(2026, 11, 24).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
    let day = Bound::Day { limit: 5, until, wait: Duration::from_secs(3_600) };
    let second = Duration::from_secs(1);
    let mut course = Course::new(&conditions());
    assert_eq!(course.bounded((3, true), &day, second), Bounded::GoesOn);
    assert_eq!(course.bounded((0, false), &day, second), Bounded::GoesOn, "what is on its way may make room");
    assert!(!course.may_begin(1, 0) && course.may_begin(0, 0));
    let Bounded::Waits { reason, time } = course.bounded((0, true), &day, second) else { panic!("it waits") };
    assert_eq!((time, course.is_paused()), (Duration::from_secs(3_600), true));
    assert!(reason.contains("at 2026-11-24 00:00 (UTC)"), "{reason}");
    // It asks again from time to time, and tells it once.
    course.look(second + ASKS_AGAIN);
    assert!(!course.is_paused());
    assert_eq!(course.bounded((0, true), &day, Duration::from_secs(61)), Bounded::GoesOn);
    assert!(course.is_paused() && course.stopped().is_none());
    for (conditions, bound, kind) in [
        (Conditions { waits: false, ..conditions() }, day, StopKind::Window),
        (conditions(), Bound::Recipients { limit: 5 }, StopKind::Budget),
    ] {
        let mut course = Course::new(&conditions);
        let Bounded::Stops(halt) = course.bounded((0, true), &bound, second) else { panic!("it stops") };
        assert_eq!((course.stopped().map(|stop| stop.kind), halt.first), (Some(kind), true));
    }
}
