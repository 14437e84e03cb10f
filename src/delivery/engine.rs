//! The conductor: takes rendered operations, cuts envelopes, keeps them in flight, and decides when to stop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::breaker::Breaker;
use super::conditions::{Conditions, Ending};
use super::errors::{Errors, without_numbers};
use super::event::{Event, Observer};
use super::feed::Feed;
use super::gate::Gate;
use super::oddities::Oddities;
use super::ramp::Ramp;
use super::stop::{Interrupt, Stop, StopKind};
use super::submission::{Route, Sent, keep_doubt};
use super::watchdog::Watchdog;
use crate::domain::Outcome;
use crate::gateway::{Encoded, Envelope, Gateway, Reply};
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
    let (recall, recalls) = watch::channel(0);
    let route = Route {
        recalls,
        ledger,
        gateway,
        run: conditions.run,
        owner: conditions.owner,
        account: conditions.account.clone(),
        gate: Gate::new(conditions.rate),
        last_envelope: AtomicU32::new(conditions.last_envelope),
        timeout: conditions.timeout,
        watchdog: Watchdog::new(conditions.timeout),
        observer: Arc::clone(&observer),
    };
    let conductor = Conductor {
        route: Arc::new(route),
        breaker: Breaker::new(conditions.limits.clone()),
        ramp: Ramp::new(largest),
        ready: VecDeque::new(),
        again: VecDeque::new(),
        flying: JoinSet::new(),
        settling: JoinSet::new(),
        outage: None,
        paused_until: None,
        canary_until: None,
        recall,
        interrupt: interrupt.clone(),
        stop: None,
        counts,
        parts: 0,
        errors: Errors::default(),
        oddities: Oddities::default(),
        lag: None,
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

/// Operations that go out again together; never none.
pub(super) struct Parcel {
    pub(super) operations: Vec<Encoded>,
    /// Whether it is a part of an envelope that one of its operations spoilt.
    pub(super) piece: bool,
}

/// An envelope that came back, and what came with it.
struct Landed {
    envelope: Envelope,
    piece: bool,
    sent: Result<Sent, LedgerError>,
}

/// An envelope whose outcome was recorded.
struct Settled {
    number: u32,
    envelope: Envelope,
    piece: bool,
    /// What came back; nothing from the gateway when the envelope was held back.
    reply: Reply,
    held_back: bool,
    recorded: Result<(), LedgerError>,
}

/// How often the run looks whether a pause is over, or whether somebody asked it to stop.
const LOOK: Duration = Duration::from_millis(250);
/// How long a second signal waits for what is to be recorded.
const LEAVING: Duration = Duration::from_millis(250);

/// A time in which the gateway cannot be reached.
pub(super) struct Outage {
    pub(super) since: Instant,
    pub(super) attempts: u32,
}

pub(super) struct Conductor {
    pub(super) route: Arc<Route>,
    pub(super) conditions: Conditions,
    pub(super) observer: Observer,
    pub(super) breaker: Breaker,
    pub(super) ramp: Ramp,
    /// Rendered operations in the order of the file; nothing more comes when there is no feed.
    pub(super) feed: Option<Feed>,
    pub(super) ready: VecDeque<Encoded>,
    /// Operations that are proven not sent, by the envelopes in which they go out again.
    pub(super) again: VecDeque<Parcel>,
    flying: JoinSet<Landed>,
    settling: JoinSet<Settled>,
    pub(super) outage: Option<Outage>,
    pub(super) paused_until: Option<Instant>,
    pub(super) canary_until: Option<Instant>,
    /// Calls back the envelopes that still wait at a gate; counts how often.
    pub(super) recall: watch::Sender<u64>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    pub(super) stop: Option<Stop>,
    pub(super) counts: StateCounts,
    pub(super) parts: u64,
    pub(super) errors: Errors,
    oddities: Oddities,
    /// How late the gateway was seen to know a message.
    pub(super) lag: Option<Duration>,
}

impl Conductor {
    async fn run(mut self, mut interrupt: watch::Receiver<Interrupt>) -> Ending {
        let route = Arc::clone(&self.route);
        let mut look_at = Instant::now() + LOOK;
        loop {
            self.take_off();
            let nothing_flies = self.flying.is_empty() && self.settling.is_empty();
            if nothing_flies && (self.stop.is_some() || self.is_through()) {
                break;
            }
            let hungry = self.stop.is_none() && self.ready.len() < self.conditions.batch;
            let waits = self.stop.is_none() && (self.paused_until.is_some() || !nothing_flies);
            tokio::select! {
                biased;
                interrupt = changed(&mut interrupt) => match interrupt {
                    Interrupt::AtOnce(signal) => {
                        self.stop_for(Stop::new(StopKind::Interrupted(signal), "interrupted twice"));
                        self.leave().await;
                        break;
                    }
                    Interrupt::Gently(signal) => self.halt(Stop::new(StopKind::Interrupted(signal), "interrupted")),
                    Interrupt::None => {}
                },
                Some(settled) = self.settling.join_next() => self.settled(settled).await,
                Some(landed) = self.flying.join_next() => self.landed(landed),
                more = next(&mut self.feed), if hungry && self.feed.is_some() => self.fed(more),
                () = tokio::time::sleep_until(look_at), if waits => {
                    self.look_up().await;
                    look_at = Instant::now() + LOOK;
                }
                what = route.watchdog.overdue(), if !nothing_flies => {
                    self.abandon(what);
                    break;
                }
            }
        }
        let Self { stop: stopped, counts, parts, errors, oddities, lag, .. } = self;
        Ending { stopped, counts, parts, errors, oddities, lag }
    }

    /// Whether every operation that was to be sent is through.
    fn is_through(&self) -> bool {
        self.feed.is_none() && self.ready.is_empty() && self.again.is_empty()
    }

    /// Begins as many envelopes as may fly now.
    fn take_off(&mut self) {
        while self.may_take_off() {
            let Some(Parcel { operations, piece }) = self.cut() else { return };
            let Some(envelope) = Envelope::new(self.conditions.kind, operations) else { return };
            let route = Arc::clone(&self.route);
            self.counts.shift(State::Planned, State::Sending, envelope.operations().len() as u64);
            let mut recalls = route.recalls.clone();
            recalls.mark_unchanged();
            let span = tracing::info_span!("envelope", number = tracing::field::Empty);
            let flight = async move {
                let sent = route.send(&envelope, recalls).await;
                Landed { envelope, piece, sent }
            };
            self.flying.spawn(flight.instrument(span));
        }
    }

    fn may_take_off(&self) -> bool {
        let paused = self.paused_until.is_some();
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
    fn cut(&mut self) -> Option<Parcel> {
        if let Some(parcel) = self.again.pop_front() {
            return Some(parcel);
        }
        let size = self.ramp.size();
        // A short envelope goes out only when nothing more comes.
        if self.ready.is_empty() || (self.ready.len() < size && self.feed.is_some()) {
            return None;
        }
        let size = size.min(self.ready.len());
        Some(Parcel { operations: self.ready.drain(..size).collect(), piece: false })
    }

    fn fed(&mut self, more: Option<Result<Vec<Encoded>, Stop>>) {
        match more {
            Some(Ok(operations)) => self.ready.extend(operations),
            Some(Err(stop)) => self.halt(stop),
            None => self.feed = None,
        }
    }

    /// Leaves what is in flight as it is: something it waits for has not kept its time.
    fn abandon(&mut self, what: String) {
        (self.observer)(Event::Warning(what.clone()));
        self.flying.abort_all();
        self.settling.abort_all();
        self.counts.shift(State::Sending, State::InDoubt, self.counts.get(State::Sending));
        self.stop_for(Stop::new(StopKind::Halted, what));
    }

    fn landed(&mut self, landed: Result<Landed, tokio::task::JoinError>) {
        let Ok(Landed { envelope, piece, sent }) = landed else {
            return self.halt(Stop::new(StopKind::Internal, "a task of the engine ended early; this is a bug"));
        };
        let count = envelope.operations().len() as u64;
        match sent {
            Ok(Sent::Replied(number, mut reply)) => {
                let canary = self.ramp.is_canary() && !piece;
                if let Some(stop) = self.breaker.observe(&without_numbers(&envelope, &reply), canary) {
                    self.halt(stop);
                }
                keep_doubt(&self.conditions.repeated, &envelope, &mut reply);
                self.settle(Settled { number, envelope, piece, reply, held_back: false, recorded: Ok(()) });
            }
            Ok(Sent::HeldBack(number, reply)) => {
                self.settle(Settled { number, envelope, piece, reply, held_back: true, recorded: Ok(()) });
            }
            Ok(Sent::Recalled) => {
                self.counts.shift(State::Sending, State::Planned, count);
                self.put_back(envelope.into_operations(), piece);
            }
            Ok(Sent::Refused(refusal)) => {
                self.counts.shift(State::Sending, State::Planned, count);
                self.put_back(envelope.into_operations(), piece);
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

    /// Has an outcome recorded.
    fn settle(&mut self, mut settled: Settled) {
        self.route.watchdog.leaves(settled.number);
        let route = Arc::clone(&self.route);
        self.settling.spawn(async move {
            settled.recorded = route.settle(settled.number, &settled.reply).await;
            settled
        });
    }

    async fn settled(&mut self, settled: Result<Settled, tokio::task::JoinError>) {
        let Ok(Settled { number, envelope, piece, reply, held_back, recorded }) = settled else {
            return self.halt(Stop::new(StopKind::Internal, "a task of the engine ended early; this is a bug"));
        };
        self.route.watchdog.leaves(number);
        if let Err(error) = recorded {
            // The intents stay, so what was sent shows as doubt and is not sent again.
            self.counts.shift(State::Sending, State::InDoubt, envelope.operations().len() as u64);
            return self.halt(Stop::new(StopKind::Ledger, error.to_string()));
        }
        self.account_for(&envelope, &reply);
        if !held_back {
            self.follow(&reply).await;
            // Only an answer that proves something lets the envelopes grow.
            if self.ramp.is_canary() && !piece && reply.proves_something() {
                self.ask_about(number, &envelope, &reply).await;
                self.ramp.advance();
            }
        }
        self.try_again(envelope, piece, &reply);
        (self.observer)(Event::Settled { counts: self.counts.clone() });
    }

    /// Counts what was recorded.
    fn account_for(&mut self, envelope: &Envelope, reply: &Reply) {
        for (operation, outcome) in envelope.operations().iter().zip(&reply.outcomes) {
            match outcome {
                Outcome::Accepted { parts, .. } => self.parts += u64::from(parts.unwrap_or(0)),
                Outcome::Rejected { error } => self.errors.count(operation.phone, error),
                Outcome::Queued { .. } | Outcome::NotSent { .. } | Outcome::InDoubt { .. } => {}
            }
            self.counts.shift(State::Sending, State::of(outcome), 1);
        }
        self.oddities.observe(reply);
    }

    /// Begins nothing any more, and calls back what still waits at a gate.
    pub(super) fn halt(&mut self, stop: Stop) {
        if self.stop.is_none() && !self.flying.is_empty() {
            let in_flight = usize::try_from(self.counts.get(State::Sending)).unwrap_or(usize::MAX);
            let (reason, at_most) = (stop.reason.clone(), self.conditions.timeout);
            (self.observer)(Event::Stopping { reason, in_flight, at_most });
        }
        self.stop_for(stop);
        self.recall.send_modify(|recalls| *recalls += 1);
    }

    /// Leaves at once, but for recording what is known: which envelopes never left a gate, and answers that are in.
    async fn leave(&mut self) {
        self.recall.send_modify(|recalls| *recalls += 1);
        let deadline = Instant::now() + LEAVING;
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => break,
                Some(settled) = self.settling.join_next() => self.settled(settled).await,
                Some(landed) = self.flying.join_next() => self.landed(landed),
                else => break,
            }
        }
        self.flying.abort_all();
    }

    /// Of several reasons the gravest counts, of equal ones the first.
    fn stop_for(&mut self, stop: Stop) {
        if self.stop.as_ref().is_none_or(|known| stop.kind.gravity() > known.kind.gravity()) {
            self.stop = Some(stop);
        }
    }
}

async fn next(feed: &mut Option<Feed>) -> Option<Result<Vec<Encoded>, Stop>> {
    feed.as_mut()?.next().await
}

/// The next change of what the outside asks.
pub(super) async fn changed(interrupt: &mut watch::Receiver<Interrupt>) -> Interrupt {
    match interrupt.changed().await {
        Ok(()) => *interrupt.borrow_and_update(),
        // Nobody can interrupt any more.
        Err(_) => std::future::pending().await,
    }
}
