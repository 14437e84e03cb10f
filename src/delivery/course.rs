//! The course of a start: from a reply and what came before to the steps that follow. Pure.
//!
//! It says how large the next envelope may be and whether it may begin, and keeps why the start stops. Time and chance
//! are arguments; whoever calls does what the steps say.

use std::time::Duration;

use roaring::RoaringBitmap;

use super::breaker::Breaker;
use super::errors::without_numbers;
use super::ramp::Ramp;
use super::retry::{Moment, Parcel, Pause, Retries, keep_doubt, parcels};
use super::start::Conditions;
use super::stop::Stop;
use crate::domain::{MessageId, Outcome, Row};
use crate::gateway::{Envelope, Reply, Signal};

/// A thing to do about an answer besides recording it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Tell a person.
    Warn(String),
    /// Call back what waits to leave, and tell how long nothing is begun: an intent that waits would be doubt after a crash.
    Pause {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
    },
    /// Halve the pace; the gateway may have said how long nothing should come.
    SlowDown(Option<Duration>),
    /// Ask what became of queued messages before more are sent.
    Ask {
        /// The messages.
        queued: Vec<QueuedMessage>,
        /// The time since the start at which the asking ends.
        until: Duration,
    },
    /// Put these back, to go out again.
    TryAgain(Parcel),
    /// Begin nothing more.
    Stop(Halt),
}

/// What is to be done about a stop: whatever waits to leave is called back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    /// Why.
    pub(super) reason: String,
    /// Whether nothing else had stopped it before.
    pub(super) first: bool,
}

/// A message that the gateway put into its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedMessage {
    pub(super) row: Row,
    pub(super) id: MessageId,
}

/// Where a start is: how it may go on, or why it does not.
#[derive(Debug)]
pub(super) struct Course {
    breaker: Breaker,
    ramp: Ramp,
    retries: Retries,
    /// The most envelopes at a time.
    in_flight: usize,
    /// Rows whose message was in doubt and is sent again.
    repeated: RoaringBitmap,
    paused_until: Option<Duration>,
    /// How long first messages are asked about.
    asks_for: Duration,
    asks_until: Option<Duration>,
    /// Whether a person waits, who is told what the answer was.
    attended: bool,
    stop: Option<Stop>,
}

impl Course {
    pub(super) fn new(conditions: &Conditions) -> Self {
        let largest = conditions.batch.min(conditions.rate.map_or(usize::MAX, |rate| (rate as usize).max(1)));
        Self {
            breaker: Breaker::new(conditions.limits.clone()),
            ramp: Ramp::new(largest),
            retries: Retries::new(conditions.limits.unreachable, conditions.attended),
            in_flight: conditions.in_flight,
            repeated: conditions.repeated.clone(),
            paused_until: None,
            asks_for: conditions.first_messages,
            asks_until: None,
            attended: conditions.attended,
            stop: None,
        }
    }

    /// Whether another envelope may begin beside so many on their way and so many whose outcome is being recorded.
    pub(super) fn may_begin(&self, flying: usize, settling: usize) -> bool {
        // After an outage one envelope tries the way for all, as the canary does at the start.
        let alone = self.ramp.is_canary() || self.retries.is_out();
        let room = if alone { flying + settling == 0 } else { flying < self.in_flight && settling <= self.in_flight };
        self.stop.is_none() && !self.is_paused() && room
    }

    /// The most operations of the next envelope.
    pub(super) fn size(&self) -> usize {
        self.ramp.size()
    }

    /// Whether nothing begins for a while.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }

    /// Ends the pause when its time is over.
    pub(super) fn look(&mut self, now: Duration) {
        self.paused_until = self.paused_until.filter(|until| *until > now);
    }

    /// Why it stops, if it does.
    pub(super) fn stopped(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Stops it; of several reasons the gravest counts, of equal ones the first.
    pub(super) fn stop(&mut self, stop: Stop) -> Halt {
        let (reason, first) = (stop.reason.clone(), self.stop.is_none());
        if self.stop.as_ref().is_none_or(|known| stop.kind.gravity() > known.kind.gravity()) {
            self.stop = Some(stop);
        }
        Halt { reason, first }
    }

    /// Takes in an answer before it is recorded, so that after one that stops the start nothing more begins.
    pub(super) fn answered(&mut self, envelope: &Envelope, piece: bool, reply: &mut Reply) -> Option<Halt> {
        let canary = self.ramp.is_canary() && !piece;
        let stop = self.breaker.observe(&without_numbers(envelope, reply), canary);
        keep_doubt(&self.repeated, envelope, reply);
        stop.map(|stop| self.stop(stop))
    }

    /// What follows from an answer that is recorded, in this order.
    pub(super) fn recorded(&mut self, envelope: Envelope, piece: bool, reply: &Reply, moment: Moment) -> Vec<Step> {
        let warning = warning(&reply.signal).filter(|_| !self.attended);
        let mut steps: Vec<Step> = warning.map(Step::Warn).into_iter().collect();
        let question = self.grow(&envelope, piece, reply, moment.at);
        // What goes out again is there before anybody is told of a pause.
        steps.extend(parcels(envelope, piece, reply).into_iter().map(Step::TryAgain));
        match self.retries.observe(reply, moment) {
            Pause::None => {}
            Pause::For(time) => {
                self.paused_until = Some(moment.at + time);
                if let Signal::Unreachable(reason) | Signal::Slow { reason, .. } = &reply.signal {
                    steps.push(Step::Pause { reason: reason.clone(), time });
                }
                if let Signal::Slow { retry_after, .. } = &reply.signal {
                    steps.push(Step::SlowDown(*retry_after));
                }
            }
            Pause::Forever(stop) => steps.push(Step::Stop(self.stop(stop))),
        }
        steps.extend(question);
        steps
    }

    /// Takes in that of `asked` first messages `refused` were refused after they had been queued.
    pub(super) fn refused_late(&mut self, refused: usize, asked: usize) -> Option<Halt> {
        let stop = self.breaker.observe_late(refused, asked);
        stop.map(|stop| self.stop(stop))
    }

    /// Lets the envelopes grow after an answer of the canary that proves something; what was queued is to be asked
    /// about, in one time that all first messages share.
    fn grow(&mut self, envelope: &Envelope, piece: bool, reply: &Reply, now: Duration) -> Option<Step> {
        if !self.ramp.is_canary() || piece || !reply.proves_something() {
            return None;
        }
        self.ramp.advance();
        let pairs = envelope.operations().iter().zip(&reply.outcomes);
        let queued = pairs.filter(|(_, outcome)| matches!(outcome, Outcome::Queued { .. }));
        let queued: Vec<_> =
            queued.map(|(operation, _)| QueuedMessage { row: operation.row, id: operation.id }).collect();
        if queued.is_empty() || self.stop.is_some() || self.asks_for.is_zero() {
            return None;
        }
        let until = *self.asks_until.get_or_insert(now + self.asks_for);
        Some(Step::Ask { queued, until })
    }
}

/// What a person should know of an answer.
fn warning(signal: &Signal) -> Option<String> {
    match signal {
        Signal::Warn(what) | Signal::Broken(what) | Signal::Strange(what) => Some(what.clone()),
        Signal::Slow { reason, .. } => Some(format!("the gateway asks to slow down ({reason}); the pace is halved")),
        Signal::Go | Signal::Unreachable(_) | Signal::Split(_) | Signal::Stop(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::delivery::Limits;
    use crate::delivery::fixtures::{envelope, outcome};
    use crate::delivery::stop::StopKind;
    use crate::domain::{Endpoint, OperationKind};
    use crate::gateway::StopCause;
    use crate::ledger::{Allowance, Epoch, Lease, RunId};

    fn conditions() -> Conditions {
        Conditions {
            lease: Lease { run: RunId(1), epoch: Epoch(1) },
            endpoint: Endpoint::Async,
            kind: OperationKind::Sms,
            repeated: RoaringBitmap::new(),
            rate: None,
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
            first_messages: Duration::from_secs(10),
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
        let slow_down = || warn("the gateway asks to slow down (HTTP 429); the pace is halved");
        let pause = |reason: &str, seconds| Step::Pause { reason: reason.into(), time: Duration::from_secs(seconds) };
        let again = |piece| Step::TryAgain(Parcel { operations: envelope(0..1).into_operations(), piece });
        let stop = |reason: &str| Step::Stop(Halt { reason: reason.into(), first: true });
        let seven = Duration::from_secs(7);
        let table: [(usize, usize, Vec<Step>); 12] = [
            (0, 0, vec![]),
            (1, 0, vec![warn("odd")]),
            (1, 4, vec![warn("odd")]),
            (2, 3, vec![again(false), pause("refused", 1)]),
            (3, 4, vec![warn("reset")]),
            (4, 4, vec![warn("HTTP 502")]),
            (5, 4, vec![slow_down(), pause("HTTP 429", 1), Step::SlowDown(None)]),
            (6, 4, vec![slow_down(), pause("HTTP 429", 7), Step::SlowDown(Some(seven))]),
            (6, 3, vec![slow_down(), again(false), pause("HTTP 429", 7), Step::SlowDown(Some(seven))]),
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
        course.stop(Stop::new(StopKind::Halted, "asked to stop"));
        assert_eq!(follow(&mut course, &queued, at(9)), [], "a start that stops asks nothing more");
        let rehearsal = Conditions { first_messages: Duration::ZERO, ..conditions() };
        assert_eq!(follow(&mut Course::new(&rehearsal), &queued, at(5)), []);
        assert_eq!(follow(&mut grown(&conditions()), &queued, at(5)), [], "only the first messages");
    }

    #[test]
    fn of_several_reasons_to_stop_the_gravest_counts_and_of_equal_ones_the_first() {
        let mut course = Course::new(&conditions());
        for (kind, reason, first, told) in [
            (StopKind::Halted, "one", true, "one"),
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
}
