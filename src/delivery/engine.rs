//! The conductor: takes rendered operations, cuts envelopes, keeps them in flight, and decides when to stop.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::backoff;
use super::breaker::Breaker;
use super::canary;
use super::conditions::{Conditions, Ending};
use super::event::{Event, Observer};
use super::feed::Feed;
use super::gate::Gate;
use super::ramp::Ramp;
use super::stop::{Interrupt, Stop, StopKind};
use super::submission::{Route, Sent};
use crate::domain::MessageId;
use crate::gateway::{Encoded, Envelope, Gateway, Reply, Signal, Verdict};
use crate::ledger::{Begun, Ledger, LedgerError, State, StateCounts};

/// Sends everything that `feed` brings. `counts` are those of the run before this start.
pub async fn send(
    conditions: Conditions,
    (ledger, gateway): (Arc<dyn Ledger>, Arc<dyn Gateway>),
    feed: Feed,
    counts: StateCounts,
    (observer, interrupt): (Observer, watch::Receiver<Interrupt>),
) -> Ending {
    let largest = conditions.batch.min(conditions.rate.map_or(usize::MAX, |rate| (rate as usize).max(1)));
    let (stopping, stops) = watch::channel(false);
    let route = Route {
        stopping: stops,
        ledger,
        gateway,
        run: conditions.run,
        owner: conditions.owner,
        account: conditions.account.clone(),
        gate: Gate::new(conditions.rate, largest),
        timeout: conditions.timeout,
    };
    let conductor = Conductor {
        route: Arc::new(route),
        breaker: Breaker::new(conditions.limits.clone()),
        ramp: Ramp::new(largest),
        number: conditions.last_envelope,
        ready: VecDeque::new(),
        again: VecDeque::new(),
        flying: JoinSet::new(),
        settling: JoinSet::new(),
        outage: None,
        paused_until: None,
        canary_until: None,
        stopping,
        interrupt: interrupt.clone(),
        stop: None,
        counts,
        parts: 0,
        errors: BTreeMap::new(),
        feed: Some(feed),
        conditions,
        observer,
    };
    // On a worker thread, where its envelopes are too: nothing has to be woken across threads.
    match tokio::spawn(conductor.run(interrupt)).await {
        Ok(ending) => ending,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// An envelope that came back, and what came with it.
struct Landed {
    number: u32,
    envelope: Envelope,
    sent: Result<Sent, LedgerError>,
}

/// An envelope whose outcome was recorded.
struct Settled {
    envelope: Envelope,
    reply: Reply,
    recorded: Result<(), LedgerError>,
}

/// A time in which the gateway cannot be reached.
struct Outage {
    since: Instant,
    attempts: u32,
}

struct Conductor {
    route: Arc<Route>,
    conditions: Conditions,
    observer: Observer,
    breaker: Breaker,
    ramp: Ramp,
    /// The number of the last envelope.
    number: u32,
    /// Rendered operations in the order of the file; nothing more comes when there is no feed.
    feed: Option<Feed>,
    ready: VecDeque<Encoded>,
    /// Operations that are proven not sent, by the envelopes in which they go out again.
    again: VecDeque<Vec<Encoded>>,
    flying: JoinSet<Landed>,
    settling: JoinSet<Settled>,
    outage: Option<Outage>,
    paused_until: Option<Instant>,
    canary_until: Option<Instant>,
    /// Tells the envelopes that still wait at a gate that they need not go.
    stopping: watch::Sender<bool>,
    interrupt: watch::Receiver<Interrupt>,
    stop: Option<Stop>,
    counts: StateCounts,
    parts: u64,
    errors: BTreeMap<String, u64>,
}

impl Conductor {
    async fn run(mut self, mut interrupt: watch::Receiver<Interrupt>) -> Ending {
        loop {
            self.take_off();
            let nothing_flies = self.flying.is_empty() && self.settling.is_empty();
            if nothing_flies && (self.stop.is_some() || self.is_through()) {
                break;
            }
            let hungry = self.stop.is_none() && self.ready.len() < self.conditions.batch;
            let paused_until = self.paused_until.filter(|&until| self.stop.is_none() && until > Instant::now());
            tokio::select! {
                biased;
                interrupt = changed(&mut interrupt) => match interrupt {
                    Interrupt::AtOnce(signal) => {
                        self.flying.abort_all();
                        self.stop = Some(Stop::new(StopKind::Interrupted(signal), "interrupted twice"));
                        break;
                    }
                    Interrupt::Gently(signal) => self.halt(Stop::new(StopKind::Interrupted(signal), "interrupted")),
                    Interrupt::None => {}
                },
                Some(settled) = self.settling.join_next() => self.settled(settled).await,
                Some(landed) = self.flying.join_next() => self.landed(landed),
                more = next(&mut self.feed), if hungry && self.feed.is_some() => self.fed(more),
                () = pause(paused_until), if paused_until.is_some() => {}
            }
        }
        Ending { stopped: self.stop, counts: self.counts, parts: self.parts, errors: self.errors }
    }

    /// Whether every operation that was to be sent is through.
    fn is_through(&self) -> bool {
        self.feed.is_none() && self.ready.is_empty() && self.again.is_empty()
    }

    /// Begins as many envelopes as may fly now.
    fn take_off(&mut self) {
        while self.may_take_off() {
            let Some(operations) = self.cut() else { return };
            let Some(envelope) = Envelope::new(self.conditions.kind, operations) else { return };
            self.number += 1;
            let (number, route) = (self.number, Arc::clone(&self.route));
            self.counts.shift(State::Planned, State::Sending, envelope.operations().len() as u64);
            self.flying.spawn(async move {
                let sent = route.send(number, &envelope).await;
                Landed { number, envelope, sent }
            });
        }
    }

    fn may_take_off(&self) -> bool {
        let paused = self.paused_until.is_some_and(|until| until > Instant::now());
        // After an outage one envelope tries the way for all, as the canary does at the start.
        let alone = self.ramp.is_canary() || self.outage.is_some();
        let room = if alone {
            self.flying.is_empty() && self.settling.is_empty()
        } else {
            self.flying.len() < self.conditions.in_flight && self.settling.len() <= self.conditions.in_flight
        };
        self.stop.is_none() && !paused && room
    }

    /// The operations of the next envelope: first what goes out again, then the next rows.
    fn cut(&mut self) -> Option<Vec<Encoded>> {
        if let Some(operations) = self.again.pop_front() {
            return Some(operations);
        }
        let size = self.ramp.size();
        // A short envelope goes out only when nothing more comes.
        if self.ready.is_empty() || (self.ready.len() < size && self.feed.is_some()) {
            return None;
        }
        let size = size.min(self.ready.len());
        Some(self.ready.drain(..size).collect())
    }

    fn fed(&mut self, more: Option<Result<Vec<Encoded>, Stop>>) {
        match more {
            Some(Ok(operations)) => self.ready.extend(operations),
            Some(Err(stop)) => self.halt(stop),
            None => self.feed = None,
        }
    }

    fn landed(&mut self, landed: Result<Landed, tokio::task::JoinError>) {
        let Ok(Landed { number, envelope, sent }) = landed else {
            return self.halt(Stop::new(StopKind::Inconsistent, "a task of the engine ended early; this is a bug"));
        };
        let count = envelope.operations().len() as u64;
        match sent {
            Ok(Sent::Replied(reply)) => {
                let canary = self.ramp.is_canary();
                if let Some(stop) = self.breaker.observe(&reply, canary) {
                    self.halt(stop);
                }
                let route = Arc::clone(&self.route);
                self.settling.spawn(async move {
                    let recorded = route.settle(number, &reply).await;
                    Settled { envelope, reply, recorded }
                });
            }
            Ok(Sent::Refused(refusal)) => {
                self.counts.shift(State::Sending, State::Planned, count);
                self.again.push_front(envelope.into_operations());
                self.halt(match refusal {
                    Begun::NotOwner => Stop::new(StopKind::NotOwner, "another process took the run"),
                    Begun::StopRequested | Begun::After(_) => Stop::new(StopKind::Halted, "asked to stop"),
                });
            }
            Err(error) => {
                self.counts.shift(State::Sending, State::Planned, count);
                self.halt(Stop::new(StopKind::Ledger, error.to_string()));
            }
        }
    }

    async fn settled(&mut self, settled: Result<Settled, tokio::task::JoinError>) {
        let Ok(Settled { envelope, reply, recorded }) = settled else {
            return self.halt(Stop::new(StopKind::Inconsistent, "a task of the engine ended early; this is a bug"));
        };
        if let Err(error) = recorded {
            // The intents stay, so what was sent shows as doubt and is not sent again.
            self.counts.shift(State::Sending, State::InDoubt, envelope.operations().len() as u64);
            return self.halt(Stop::new(StopKind::Ledger, error.to_string()));
        }
        self.account_for(&reply);
        self.follow(&reply.signal).await;
        let asked = self.ramp.is_canary() && !matches!(reply.signal, Signal::Unreachable(_) | Signal::Split(_));
        let ids = queued_ids(&envelope, &reply);
        self.try_again(envelope, &reply);
        if asked {
            if !ids.is_empty() {
                self.ask_about(&ids).await;
            }
            self.ramp.advance();
        }
        (self.observer)(Event::Settled { counts: self.counts.clone() });
    }

    /// Counts what was recorded.
    fn account_for(&mut self, reply: &Reply) {
        for verdict in &reply.verdicts {
            let state = match verdict {
                Verdict::Accepted { parts, .. } => {
                    self.parts += u64::from(parts.unwrap_or(0));
                    State::Accepted
                }
                Verdict::Queued { .. } => State::Queued,
                Verdict::Rejected { error } => {
                    *self.errors.entry(error.clone()).or_insert(0) += 1;
                    State::Rejected
                }
                Verdict::NotSent { .. } => State::Planned,
                Verdict::InDoubt { .. } => State::InDoubt,
            };
            self.counts.shift(State::Sending, state, 1);
        }
    }

    /// Does what the answer asks of the run.
    async fn follow(&mut self, signal: &Signal) {
        match signal {
            Signal::Go | Signal::Split(_) | Signal::Stop(..) => self.outage = None,
            Signal::Warn(what) | Signal::Broken(what) | Signal::Strange(what) => {
                self.outage = None;
                (self.observer)(Event::Warning(what.clone()));
            }
            Signal::Slow { reason, retry_after } => {
                self.outage = None;
                (self.observer)(Event::Warning(format!(
                    "the gateway asks to slow down ({reason}); the pace is halved"
                )));
                self.pause_for(reason, retry_after.unwrap_or(Duration::from_secs(1)));
                if let Err(error) = self.route.ledger.slow_down(&self.route.account.0, *retry_after).await {
                    self.halt(Stop::new(StopKind::Ledger, error.to_string()));
                }
            }
            Signal::Unreachable(reason) => self.wait_for_the_gateway(reason),
        }
    }

    fn wait_for_the_gateway(&mut self, reason: &str) {
        let now = Instant::now();
        let (since, attempts) = self.outage.as_ref().map_or((now, 0), |outage| (outage.since, outage.attempts));
        let limit = self.conditions.limits.unreachable;
        if now - since >= limit {
            let minutes = limit.as_secs_f64() / 60.0;
            let reason = format!("the gateway was out of reach for {minutes:.0} minutes: {reason}");
            return self.halt(Stop::new(StopKind::Halted, reason));
        }
        let attempts = attempts + 1;
        let time = backoff::wait(attempts, rand::random()).min(limit.saturating_sub(now - since));
        self.outage = Some(Outage { since, attempts });
        self.pause_for(reason, time);
    }

    /// Begins no envelope for a while: an intent that waits would only be doubt after a crash.
    fn pause_for(&mut self, reason: &str, time: Duration) {
        self.paused_until = Some(Instant::now() + time);
        (self.observer)(Event::Waiting { reason: reason.to_owned(), time });
    }

    /// Puts back what is proven not sent; a spoilt envelope comes back as its halves.
    fn try_again(&mut self, envelope: Envelope, reply: &Reply) {
        let split = matches!(reply.signal, Signal::Split(_));
        let mut operations: Vec<Encoded> = envelope
            .into_operations()
            .into_iter()
            .zip(&reply.verdicts)
            .filter(|(_, verdict)| matches!(verdict, Verdict::NotSent { .. }))
            .map(|(operation, _)| operation)
            .collect();
        if split && operations.len() > 1 {
            let second = operations.split_off(operations.len() / 2);
            self.again.push_front(second);
        }
        if !operations.is_empty() {
            self.again.push_front(operations);
        }
    }

    async fn ask_about(&mut self, ids: &[MessageId]) {
        if self.stop.is_some() || self.conditions.canary.is_zero() {
            return;
        }
        let deadline = *self.canary_until.get_or_insert_with(|| Instant::now() + self.conditions.canary);
        if deadline <= Instant::now() {
            return;
        }
        let asked = tokio::select! {
            asked = canary::ask(&self.route, ids, &mut self.breaker, deadline) => asked,
            // The signal itself is taken up by the loop.
            _ = self.interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => Ok(None),
        };
        match asked {
            Ok(None) => {}
            Ok(Some(stop)) => self.halt(stop),
            Err(error) => self.halt(Stop::new(StopKind::Ledger, error.to_string())),
        }
    }

    /// Begins nothing any more. The first reason counts, except that a failed ledger outweighs all.
    fn halt(&mut self, stop: Stop) {
        if self.stop.is_none() && !self.flying.is_empty() {
            let in_flight = usize::try_from(self.counts.get(State::Sending)).unwrap_or(usize::MAX);
            let (reason, at_most) = (stop.reason.clone(), self.conditions.timeout);
            (self.observer)(Event::Stopping { reason, in_flight, at_most });
        }
        let known = self.stop.as_ref().map(|stop| stop.kind);
        if known.is_none() || (stop.kind == StopKind::Ledger && known != Some(StopKind::Ledger)) {
            self.stop = Some(stop);
        }
        self.stopping.send_replace(true);
    }
}

fn queued_ids(envelope: &Envelope, reply: &Reply) -> Vec<MessageId> {
    let pairs = envelope.operations().iter().zip(&reply.verdicts);
    pairs.filter(|(_, verdict)| matches!(verdict, Verdict::Queued { .. })).map(|(operation, _)| operation.id).collect()
}

async fn next(feed: &mut Option<Feed>) -> Option<Result<Vec<Encoded>, Stop>> {
    feed.as_mut()?.next().await
}

async fn changed(interrupt: &mut watch::Receiver<Interrupt>) -> Interrupt {
    match interrupt.changed().await {
        Ok(()) => *interrupt.borrow_and_update(),
        // Nobody can interrupt any more.
        Err(_) => std::future::pending().await,
    }
}

async fn pause(until: Option<Instant>) {
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
}
