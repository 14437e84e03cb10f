//! The course of a start: from a reply and what came before to the steps that follow. Pure.
//!
//! It says how large the next envelope may be and whether it may begin, and keeps why the start stops. Time and chance
//! are arguments; whoever calls does what the steps say.

use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::bounded::{BoundEffect, RECHECK_INTERVAL, describe_bound, exhausted_stop};
use super::breaker::Breaker;
use super::errors::hide_numbers;
use super::event::AfterWait;
use super::ramp::WarmUp;
use super::retry::{ResendBatch, RetryMoment, RetryPause, RetryPolicy, resend_batches, restore_doubt};
use super::start::SendConditions;
use super::stop::Stop;
use crate::domain::{MessageId, OperationOutcome, Row};
use crate::gateway::{Envelope, GatewayReply, Signal};
use crate::ledger::Bound;

/// A thing to do about an answer besides recording it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// Tell a person.
    Warn(String),
    /// Call back what waits to leave, and tell how long nothing is begun: an intent that waits would be doubt after a crash.
    Pause {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
        /// What leaves after the wait.
        next: AfterWait,
    },
    /// Halve the pace; the gateway may have said how long nothing should come.
    SlowDown(Option<Duration>),
    /// Ask what became of queued messages before more are sent.
    AskStatus {
        /// The messages.
        queued: Vec<QueuedMessage>,
        /// The time since the start at which the asking ends.
        until: Duration,
    },
    /// Put these back, to go out again.
    Resend(ResendBatch),
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
pub(super) struct FlowControl {
    breaker: Breaker,
    ramp: WarmUp,
    retries: RetryPolicy,
    /// The most envelopes at a time.
    in_flight: usize,
    /// Rows whose message was in doubt and is sent again.
    repeated: RoaringBitmap,
    paused_until: Option<Duration>,
    /// Whether a bound is near: envelopes go alone, since what is refused of one makes room for the next.
    bounded: bool,
    /// Whether it waits for another day.
    waits_at_bounds: bool,
    /// For what it was told last that it waits.
    announced_wait: Option<Timestamp>,
    /// How long first messages are asked about.
    ask_duration: Duration,
    ask_deadline: Option<Duration>,
    /// Whether a person waits, who is told what the answer was.
    attended: bool,
    stop: Option<Stop>,
}

impl FlowControl {
    pub(super) fn new(conditions: &SendConditions) -> Self {
        let largest = conditions.batch.min(conditions.rate.map_or(usize::MAX, |rate| (rate as usize).max(1)));
        Self {
            breaker: Breaker::new(conditions.limits.clone(), conditions.proven),
            ramp: WarmUp::new(largest),
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

    /// Whether another envelope may begin beside so many on their way and so many whose outcome is being recorded.
    pub(super) fn may_begin(&self, flying: usize, settling: usize) -> bool {
        // After an outage one envelope tries the way for all, as the canary does at the start.
        let alone = self.ramp.is_warming_up() || self.retries.has_outage() || self.bounded;
        let room = if alone { flying + settling == 0 } else { flying < self.in_flight && settling <= self.in_flight };
        self.stop.is_none() && !self.is_paused() && room
    }

    /// The most operations of the next envelope.
    pub(super) fn next_size(&self) -> usize {
        self.ramp.batch_size()
    }

    /// Whether nothing begins for a while.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }

    /// Ends the pause when its time is over.
    pub(super) fn expire_pause(&mut self, now: Duration) {
        self.paused_until = self.paused_until.filter(|until| *until > now);
    }

    /// Why it stops, if it does.
    pub(super) fn stop_reason(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Stops it; of several reasons the gravest counts, of equal ones the first.
    pub(super) fn record_stop(&mut self, stop: Stop) -> Halt {
        let (reason, first) = (stop.reason.clone(), self.stop.is_none());
        if self.stop.as_ref().is_none_or(|known| stop.kind.gravity() > known.kind.gravity()) {
            self.stop = Some(stop);
        }
        Halt { reason, first }
    }

    /// Takes in that only so many operations of an envelope keep within a bound, and whether no other envelope is on its way
    /// that may make room.
    pub(super) fn apply_bound(&mut self, (fits, alone): (usize, bool), bound: &Bound, now: Duration) -> BoundEffect {
        self.bounded = true;
        if fits > 0 || !alone {
            return BoundEffect::Continue;
        }
        match bound {
            Bound::Day { until, wait, .. } if self.waits_at_bounds => {
                // The day begins with room for several again.
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

    /// Takes in an answer before it is recorded, so that after one that stops the start nothing more begins.
    pub(super) fn observe_answer(
        &mut self,
        envelope: &Envelope,
        piece: bool,
        reply: &mut GatewayReply,
    ) -> Option<Halt> {
        let canary = self.ramp.is_warming_up() && !piece;
        let stop = self.breaker.observe(&hide_numbers(envelope, reply), canary);
        restore_doubt(&self.repeated, envelope, reply);
        stop.map(|stop| self.record_stop(stop))
    }

    /// What follows from an answer that is recorded, in this order.
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
        // What goes out again is there before anybody is told of a pause.
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

    /// Takes in that of `asked` first messages `refused` were refused after they had been queued.
    pub(super) fn observe_late_rejections(&mut self, refused: usize, asked: usize) -> Option<Halt> {
        let stop = self.breaker.observe_late(refused, asked);
        if (refused, asked) == (1, 1) && self.breaker.is_unproven() {
            self.ramp.return_to_singles();
        }
        stop.map(|stop| self.record_stop(stop))
    }

    /// Lets the envelopes grow after an answer of the canary that proves something; what was queued is to be asked
    /// about, in one time that all first messages share.
    fn grow_batch(
        &mut self,
        envelope: &Envelope,
        piece: bool,
        reply: &GatewayReply,
        now: Duration,
    ) -> Option<FollowUp> {
        if !self.ramp.is_warming_up() || piece || !reply.has_proof() {
            return None;
        }
        let refused = reply.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::Rejected { .. }));
        if refused && self.breaker.is_unproven() {
            self.ramp.allow_single()
        } else {
            self.ramp.next_step()
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

/// What a person should know of an answer.
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

#[cfg(test)]
mod tests;
