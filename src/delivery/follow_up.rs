//! What a run does about an answer, besides recording it: go on, wait, slow down, ask, try again.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use super::engine::{Conductor, Outage, Parcel};
use super::event::Event;
use super::stop::{Interrupt, Stop, StopKind};
use super::{backoff, canary};
use crate::domain::{MessageId, Outcome};
use crate::gateway::{Encoded, Envelope, Reply, Signal};
use crate::ledger::{Recorded, State};

impl Conductor {
    /// Does what the answer asks of the run.
    pub(super) async fn follow(&mut self, reply: &Reply) {
        match &reply.signal {
            Signal::Go | Signal::Split(_) | Signal::Stop(..) => self.outage = None,
            Signal::Warn(what) | Signal::Broken(what) | Signal::Strange(what) => {
                self.outage = None;
                (self.observer)(Event::Warning(what.clone()));
            }
            Signal::Slow { reason, retry_after } => {
                (self.observer)(Event::Warning(format!(
                    "the gateway asks to slow down ({reason}); the pace is halved"
                )));
                // A refusal that proves that nothing was sent is tried again, but not for ever.
                if !reply.is_unsent() {
                    self.outage = None;
                } else if self.still_out(reason).is_none() {
                    return;
                }
                self.route.gate.slow();
                self.pause_for(reason, retry_after.unwrap_or(Duration::from_secs(1)));
                if let Err(error) = self.route.ledger.slow_down(&self.route.account.name, *retry_after).await {
                    self.halt(Stop::new(StopKind::Ledger, error.to_string()));
                }
            }
            Signal::Unreachable(reason) => {
                if let Some((attempts, left)) = self.still_out(reason) {
                    self.pause_for(
                        reason,
                        backoff::wait(attempts, backoff::share(self.conditions.owner, attempts)).min(left),
                    );
                }
            }
        }
    }

    /// Notes that the gateway took nothing; gives the attempts so far and the time left, or stops when there is none.
    fn still_out(&mut self, reason: &str) -> Option<(u32, Duration)> {
        let now = Instant::now();
        let (since, attempts) = self.outage.as_ref().map_or((now, 0), |outage| (outage.since, outage.attempts));
        let limit = self.conditions.limits.unreachable;
        if now - since >= limit {
            let time = SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
            let reason = format!("the gateway took nothing for {time:#}: {reason}");
            self.halt(Stop::new(StopKind::Halted, reason));
            return None;
        }
        let attempts = attempts + 1;
        self.outage = Some(Outage { since, attempts });
        Some((attempts, limit.saturating_sub(now - since)))
    }

    /// Begins no envelope for a while: an intent that waits would only be doubt after a crash.
    fn pause_for(&mut self, reason: &str, time: Duration) {
        self.paused_until = Some(Instant::now() + time);
        self.recall.send_modify(|recalls| *recalls += 1);
        (self.observer)(Event::Waiting { reason: reason.to_owned(), time });
    }

    /// Ends the pause when its time is over, and the run when somebody asked for it: an envelope may wait for long.
    pub(super) async fn look_up(&mut self) {
        if self.paused_until.is_some_and(|until| until <= Instant::now()) {
            self.paused_until = None;
        }
        match self.route.ledger.stop_requested(self.conditions.run).await {
            Ok(false) => {}
            Ok(true) => self.halt(Stop::new(StopKind::Halted, "asked to stop")),
            Err(error) => self.halt(Stop::new(StopKind::Ledger, error.to_string())),
        }
    }

    /// Puts back what is proven not sent; a spoilt envelope comes back as its halves.
    pub(super) fn try_again(&mut self, envelope: Envelope, piece: bool, reply: &Reply) {
        let split = matches!(reply.signal, Signal::Split(_));
        let mut operations: Vec<Encoded> = envelope
            .into_operations()
            .into_iter()
            .zip(&reply.outcomes)
            .filter(|(_, outcome)| matches!(outcome, Outcome::NotSent { .. }))
            .map(|(operation, _)| operation)
            .collect();
        if split && operations.len() > 1 {
            let second = operations.split_off(operations.len() / 2);
            self.put_back(second, true);
        }
        self.put_back(operations, piece || split);
    }

    /// Keeps operations that were not sent for the next envelopes, in the order of the file.
    pub(super) fn put_back(&mut self, operations: Vec<Encoded>, piece: bool) {
        let Some(first) = operations.first().map(|operation| operation.row) else { return };
        let place = self.again.partition_point(|parcel| parcel.operations.first().is_some_and(|one| one.row < first));
        self.again.insert(place, Parcel { operations, piece });
    }

    /// Asks what became of queued messages; those that were refused after all are recorded as such.
    pub(super) async fn ask_about(&mut self, number: u32, envelope: &Envelope, reply: &Reply) {
        let ids = queued_ids(envelope, reply);
        if ids.is_empty() || self.stop.is_some() || self.conditions.canary.is_zero() {
            return;
        }
        let deadline = *self.canary_until.get_or_insert_with(|| Instant::now() + self.conditions.canary);
        let asked = tokio::select! {
            biased;
            asked = canary::ask(&self.route, &ids, deadline) => asked,
            // The signal itself is taken up by the loop.
            _ = self.interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => return,
        };
        if let Ok(asked) = &asked {
            self.lag = self.lag.max(asked.lag);
        }
        let recorded = match asked {
            Ok(asked) if asked.rejected.is_empty() => return,
            Ok(asked) => {
                if let Some(stop) = self.breaker.observe_late(asked.rejected.len(), asked.of) {
                    self.halt(stop);
                }
                let recorded = self.route.keep_rejected(number, envelope, &asked.rejected).await;
                recorded.map(|recorded| (recorded, asked.rejected.len() as u64))
            }
            Err(error) => Err(error),
        };
        match recorded {
            Ok((Recorded::Done, rejected)) => self.counts.shift(State::Queued, State::Failed, rejected),
            Ok((Recorded::NotOwner, _)) => {
                self.halt(Stop::new(StopKind::NotOwner, "another process took the run"));
            }
            Err(error) => self.halt(Stop::new(StopKind::Ledger, error.to_string())),
        }
    }
}

fn queued_ids(envelope: &Envelope, reply: &Reply) -> Vec<MessageId> {
    let pairs = envelope.operations().iter().zip(&reply.outcomes);
    pairs.filter(|(_, outcome)| matches!(outcome, Outcome::Queued { .. })).map(|(operation, _)| operation.id).collect()
}
