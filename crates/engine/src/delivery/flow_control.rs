//! Flow control of a run: warm-up, bounds, pauses and stops decide whether and how the next envelope goes. Pure.

#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::breaker::Breaker;
use super::retry::{ResendBatch, RetryMoment, RetryPause, RetryPolicy, resend_batches, restore_doubt};
use super::start::{AfterWait, SendConditions, Stop, StopKind};
use super::tally::hide_numbers;
use campaign_core::domain::{MessageId, OperationOutcome, Row, format_count};
use campaign_gateway::{Envelope, GatewayReply, Signal};
use campaign_ledger::Bound;

/// A follow-up to an answer, besides recording it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// Warn the user.
    Warn(String),
    /// Recall waiting envelopes and announce the pause: a waiting intent would be in doubt after a crash.
    Pause {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
        /// What leaves after the pause.
        next: AfterWait,
    },
    /// Halve the rate. The gateway may have asked for a pause of this length.
    SlowDown(Option<Duration>),
    /// Ask for the status of queued messages before sending more.
    AskStatus {
        /// The messages.
        queued: Vec<QueuedMessage>,
        /// The deadline, measured from the start.
        until: Duration,
    },
    /// Resend these.
    Resend(ResendBatch),
    /// Begin no further envelope.
    Stop(Halt),
}

/// A recorded stop: waiting envelopes are recalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    /// Why.
    pub(super) reason: String,
    /// Whether this is the first stop.
    pub(super) first: bool,
}

/// A message that the gateway queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedMessage {
    pub(super) row: Row,
    pub(super) id: MessageId,
}

/// Flow control of a run: when and how large the next envelope is, and why the run stops. Pure.
#[derive(Debug)]
pub(super) struct FlowControl {
    breaker: Breaker,
    warm_up: WarmUp,
    retries: RetryPolicy,
    /// The maximum number of envelopes in flight.
    in_flight: usize,
    /// Rows whose message was in doubt and is resent.
    repeated: RoaringBitmap,
    paused_until: Option<Duration>,
    /// Whether a bound is near. Then envelopes go one at a time, because a rejection makes room for the next.
    bounded: bool,
    /// Whether it waits at daily bounds.
    waits_at_bounds: bool,
    /// The last announced wait.
    announced_wait: Option<Timestamp>,
    /// The time for asking about first messages.
    ask_duration: Duration,
    ask_deadline: Option<Duration>,
    /// Whether a person waits, who sees the answer itself.
    attended: bool,
    stop: Option<Stop>,
}

impl FlowControl {
    pub(super) fn new(conditions: &SendConditions) -> Self {
        let largest = conditions.batch.min(conditions.rate.map_or(usize::MAX, |rate| (rate as usize).max(1)));
        Self {
            breaker: Breaker::new(conditions.limits.clone(), conditions.proven),
            warm_up: WarmUp::new(largest),
            retries: RetryPolicy::new(conditions.limits.unreachable, conditions.is_attended),
            in_flight: conditions.in_flight,
            repeated: conditions.repeated.clone(),
            paused_until: None,
            bounded: false,
            waits_at_bounds: conditions.waits_at_bounds,
            announced_wait: None,
            ask_duration: conditions.first_messages,
            ask_deadline: None,
            attended: conditions.is_attended,
            stop: None,
        }
    }

    /// Whether another envelope may begin with this many in flight and being recorded.
    pub(super) fn may_begin(&self, flying: usize, settling: usize) -> bool {
        // After an outage, one envelope probes for all, as at the start.
        let alone = self.warm_up.is_warming_up() || self.retries.has_outage() || self.bounded;
        let room = if alone { flying + settling == 0 } else { flying < self.in_flight && settling <= self.in_flight };
        self.stop.is_none() && !self.is_paused() && room
    }

    /// The maximum number of operations in the next envelope.
    pub(super) fn next_size(&self) -> usize {
        self.warm_up.batch_size()
    }

    /// Whether sending is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }

    /// Ends the pause when its time is over.
    pub(super) fn expire_pause(&mut self, now: Duration) {
        self.paused_until = self.paused_until.filter(|until| *until > now);
    }

    /// The stop, if any.
    pub(super) fn stop_reason(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Records a stop. The most severe reason counts; of equal ones, the first.
    pub(super) fn record_stop(&mut self, stop: Stop) -> Halt {
        let (reason, first) = (stop.reason.clone(), self.stop.is_none());
        if self.stop.as_ref().is_none_or(|known| stop.kind.severity() > known.kind.severity()) {
            self.stop = Some(stop);
        }
        Halt { reason, first }
    }

    /// Applies a bound that only the first `fits` operations of an envelope keep. `alone` means that no other envelope
    /// in flight can make room.
    pub(super) fn apply_bound(&mut self, fits: usize, alone: bool, bound: &Bound, now: Duration) -> BoundEffect {
        self.bounded = true;
        if fits > 0 || !alone {
            return BoundEffect::Continue;
        }
        match bound {
            Bound::Day { until, wait, .. } if self.waits_at_bounds => {
                // The new day has room for several envelopes again.
                self.bounded = false;
                self.paused_until = Some(now + (*wait).min(RECHECK_INTERVAL));
                match self.announced_wait.replace(until.timestamp()) == Some(until.timestamp()) {
                    true => BoundEffect::Continue,
                    false => BoundEffect::Wait { reason: describe_bound(bound), time: *wait },
                }
            }
            bound => BoundEffect::Stop(self.record_stop(exhausted_stop(bound))),
        }
    }

    /// Records an answer before it is stored, so that nothing begins after an answer that stops the run.
    pub(super) fn observe_answer(
        &mut self,
        envelope: &Envelope,
        piece: bool,
        reply: &mut GatewayReply,
    ) -> Option<Halt> {
        let warming_up = self.warm_up.is_warming_up() && !piece;
        let stop = self.breaker.observe(&hide_numbers(envelope, reply), warming_up);
        restore_doubt(&self.repeated, envelope, reply);
        stop.map(|stop| self.record_stop(stop))
    }

    /// The follow-ups to a stored answer, in order.
    pub(super) fn follow_ups(
        &mut self,
        envelope: Envelope,
        piece: bool,
        reply: &GatewayReply,
        moment: RetryMoment,
    ) -> Vec<FollowUp> {
        let warning = warning_for(reply).filter(|_| !self.attended);
        let mut steps: Vec<FollowUp> = warning.map(FollowUp::Warn).into_iter().collect();
        let question = self.grow_batch(&envelope, piece, reply, moment.at);
        // Operations are put back before a pause is announced.
        steps.extend(resend_batches(envelope, piece, reply).into_iter().map(FollowUp::Resend));
        match self.retries.observe_reply(reply, moment) {
            RetryPause::None => {}
            RetryPause::For(time) => {
                self.paused_until = Some(moment.at + time);
                if let Signal::Unreachable(reason) | Signal::Slow { reason, .. } = &reply.signal {
                    let next = match reply.is_unsent() {
                        true => AfterWait::Retry,
                        false => AfterWait::Next { in_doubt: reply.count_in_doubt() },
                    };
                    steps.push(FollowUp::Pause { reason: reason.clone(), time, next });
                }
                if let Signal::Slow { retry_after, .. } = &reply.signal {
                    steps.push(FollowUp::SlowDown(*retry_after));
                }
            }
            RetryPause::Forever(stop) => steps.push(FollowUp::Stop(self.record_stop(stop))),
        }
        steps.extend(question);
        steps
    }

    /// Records that `refused` of `asked` first messages were rejected after being queued.
    pub(super) fn observe_late_rejections(&mut self, refused: usize, asked: usize) -> Option<Halt> {
        let stop = self.breaker.observe_late(refused, asked);
        if (refused, asked) == (1, 1) && self.breaker.is_unproven() {
            self.warm_up.return_to_singles();
        }
        stop.map(|stop| self.record_stop(stop))
    }

    /// Advances the warm-up after an answer that proves something. Queued messages are asked about, within one deadline
    /// for all first messages.
    fn grow_batch(
        &mut self,
        envelope: &Envelope,
        piece: bool,
        reply: &GatewayReply,
        now: Duration,
    ) -> Option<FollowUp> {
        if !self.warm_up.is_warming_up() || piece || !reply.has_proof() {
            return None;
        }
        let refused = reply.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::Rejected { .. }));
        if refused && self.breaker.is_unproven() {
            self.warm_up.allow_single()
        } else {
            self.warm_up.next_step()
        }
        let pairs = envelope.operations().iter().zip(&reply.outcomes);
        let queued = pairs.filter(|(_, outcome)| matches!(outcome, OperationOutcome::Queued { .. }));
        let queued: Vec<_> =
            queued.map(|(operation, _)| QueuedMessage { row: operation.row, id: operation.id }).collect();
        if queued.is_empty() || self.stop.is_some() || self.ask_duration.is_zero() {
            return None;
        }
        let until = *self.ask_deadline.get_or_insert(now + self.ask_duration);
        Some(FollowUp::AskStatus { queued, until })
    }
}

/// A warning about an answer for the user.
fn warning_for(reply: &GatewayReply) -> Option<String> {
    match &reply.signal {
        Signal::Warn(what) | Signal::Broken(what) | Signal::Strange(what) => Some(what.clone()),
        Signal::Slow { reason, .. } if reply.is_unsent() => {
            Some(format!("the gateway asked campaign to slow down ({reason}); the rate is halved"))
        }
        Signal::Slow { reason, .. } => Some(format!(
            "the gateway asked campaign to slow down ({reason}); the rate is halved; the messages in this request are \
             in doubt and not retried, because the response does not prove that none were sent"
        )),
        Signal::Go | Signal::Unreachable(_) | Signal::Split(_) | Signal::Stop(..) => None,
    }
}

/// The maximum time between checks of whether something may leave: the clock can change, and the computer can sleep.
pub(super) const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The effect of a bound that an envelope exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BoundEffect {
    /// Send what is within the bound, or wait for envelopes in flight.
    Continue,
    /// Pause sending.
    Wait {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
    },
    /// Begin no further envelope.
    Stop(Halt),
}

/// The stop for an exhausted bound.
pub(super) fn exhausted_stop(bound: &Bound) -> Stop {
    let kind = match bound {
        Bound::Recipients { .. } | Bound::Cost { .. } => StopKind::Budget,
        Bound::Day { .. } => StopKind::Window,
    };
    Stop::new(kind, describe_bound(bound))
}

/// Why the bound allows no further message.
pub(super) fn describe_bound(bound: &Bound) -> String {
    match bound {
        Bound::Recipients { limit } => {
            format!("this edition has reached its `limits.recipients` of {limit}")
        }
        Bound::Cost { limit, used } => format!(
            "this edition has used {used} of its `limits.cost` of {limit}; the next message costs more than what is \
             left"
        ),
        Bound::Day { limit, until, .. } => {
            let (moment, zone) = (until.strftime("%Y-%m-%d %H:%M"), until.time_zone().iana_name().unwrap_or("UTC"));
            let messages = format_count(*limit, "message");
            format!("`delivery.per_day` allows {messages} today; sending continues at {moment} ({zone})")
        }
    }
}

/// The sizes of the warm-up envelopes.
const STEPS: [usize; 4] = [1, 5, 20, 50];

/// Further single operations after a first rejected one.
const MAX_SINGLES: usize = 3;

/// The warm-up of a run: envelopes grow from one operation to the batch size.
#[derive(Debug)]
pub(super) struct WarmUp {
    largest: usize,
    step: usize,
    /// Single operations that may still follow a rejected one.
    further: usize,
}

impl WarmUp {
    /// A warm-up to envelopes of `largest` operations.
    pub(super) fn new(largest: usize) -> Self {
        Self { largest: largest.max(1), step: 0, further: MAX_SINGLES }
    }

    /// The maximum number of operations in the next envelope.
    pub(super) fn batch_size(&self) -> usize {
        STEPS.get(self.step).map_or(self.largest, |&size| size.min(self.largest))
    }

    /// Whether the run is still warming up: the next envelope waits for the answer to the previous one.
    pub(super) fn is_warming_up(&self) -> bool {
        self.step < STEPS.len()
    }

    /// Allows another single operation after a rejected one, or takes the next step after enough of them.
    pub(super) fn allow_single(&mut self) {
        if self.step > 0 || !self.return_to_singles() {
            self.next_step();
        }
    }

    /// Returns to single operations, because a queued one was rejected. Returns whether one may follow.
    pub(super) fn return_to_singles(&mut self) -> bool {
        let more = self.further > 0;
        if more {
            self.further -= 1;
            self.step = 0;
        }
        more
    }

    /// Takes the next step after an answer, skipping steps that would not grow.
    pub(super) fn next_step(&mut self) {
        let size = self.batch_size();
        while self.is_warming_up() {
            self.step += 1;
            if self.batch_size() > size {
                break;
            }
        }
    }
}

#[cfg(test)]
mod warm_up_tests {
    use super::*;

    fn batch_sizes(largest: usize) -> Vec<usize> {
        let mut warm_up = WarmUp::new(largest);
        let mut sizes = Vec::new();
        while warm_up.is_warming_up() {
            sizes.push(warm_up.batch_size());
            warm_up.next_step();
        }
        assert_eq!(warm_up.batch_size(), largest);
        sizes
    }

    #[test]
    fn warm_up_grows_from_one_operation_to_the_batch() {
        assert_eq!(batch_sizes(100), [1, 5, 20, 50]);
        assert_eq!(batch_sizes(20), [1, 5, 20]);
        assert_eq!(batch_sizes(7), [1, 5, 7]);
        assert_eq!(batch_sizes(1), [1]);
    }

    #[test]
    fn rejected_first_operation_is_followed_by_three_at_most() {
        let mut warm_up = WarmUp::new(100);
        let refused: Vec<usize> = (0..6).map(|_| (warm_up.batch_size(), warm_up.allow_single()).0).collect();
        assert_eq!(refused, [1, 1, 1, 1, 5, 20]);
        let mut small = WarmUp::new(1);
        (0..3).for_each(|_| small.allow_single());
        assert!(small.is_warming_up());
        small.allow_single();
        assert!(!small.is_warming_up());
    }
}
