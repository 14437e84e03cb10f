//! The engine: keeps envelopes in the air and does about their answers what the course says.

mod others;
mod passes;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::bounded::Bounded;
use super::course::{Course, Halt, QueuedMessage, Step};
use super::event::{AfterWait, DeliveryEvent};
use super::feed::Feed;
use super::first_messages;
use super::flight::{Arrival, Flight, Landing, Record};
use super::gate::Gate;
use super::hours::Passes;
use super::retry::{Moment, Parcel, chance, parcels};
use super::slow_answers::SlowAnswers;
use super::start::{Conditions, Edges, Ending};
use super::stop::{Interrupt, Stop, StopKind};
use super::submission::{Route, Submission};
use super::tally::Tally;
use super::watchdog::Watchdog;
use crate::domain::Row;
use crate::gateway::Envelope;
use crate::ledger::{Bound, LedgerError, Ownership, Permit, State, StateCounts};

/// How often the run looks whether a pause is over, or whether somebody asked it to stop.
const LOOK: Duration = Duration::from_millis(250);
/// How long nothing is said to a person who waits for an answer.
const SILENCE: Duration = Duration::from_secs(3);
/// How long a second signal waits for what is to be recorded.
const LEAVING: Duration = Duration::from_millis(250);

/// Sends everything that `feed` brings. `counts` are those of the run before this start.
pub async fn send(conditions: Conditions, edges: Edges, feed: Feed, counts: StateCounts) -> Ending {
    let course = Course::new(&conditions);
    let route = Arc::new(Route {
        ledger: edges.ledger,
        gateway: edges.gateway,
        lease: conditions.lease,
        account: conditions.account,
        bounds: conditions.bounds,
        gate: Gate::new(conditions.rate),
        pace: conditions.together.as_ref().and_then(|together| together.pace.clone()),
        timeout: conditions.timeout,
        watchdog: Watchdog::new(conditions.timeout),
        slow: SlowAnswers::new(conditions.timeout, Arc::clone(&edges.observer)),
        observer: edges.observer,
        hours: edges.passes.as_ref().map(|passes| Arc::clone(&passes.hours)),
    });
    let engine = Engine {
        flight: Flight::new(Arc::clone(&route), conditions.batch, feed),
        route,
        course,
        planned: counts.get(State::Planned),
        tally: Tally::new(counts),
        passes: edges.passes,
        expired: false,
        interrupt: edges.interrupt,
        began: Instant::now(),
        attended: conditions.attended,
        silent_until: None,
        asking_told: false,
        together: conditions.together.is_some(),
        most_doubtful: conditions.limits.doubtful_envelopes,
        proven: conditions.proven,
    };
    // On a worker thread, where its envelopes are too: nothing has to be woken across threads.
    match tokio::spawn(engine.run()).await {
        Ok(ending) => ending,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// One start of a run.
struct Engine {
    route: Arc<Route>,
    flight: Flight,
    course: Course,
    tally: Tally,
    /// How many rows were left to send at the start.
    planned: u64,
    passes: Option<Arc<Passes>>,
    /// Whether what is left has no time any more.
    expired: bool,
    interrupt: watch::Receiver<Interrupt>,
    began: Instant,
    /// Whether a person waits.
    attended: bool,
    /// When that person is told that the answer is still waited for.
    silent_until: Option<Instant>,
    /// Whether somebody was told that the first messages are asked about.
    asking_told: bool,
    /// Whether others send the run too.
    together: bool,
    /// So many envelopes in a row that are in doubt stop all of them.
    most_doubtful: u32,
    /// Whether the others know that the gateway has taken a message.
    proven: bool,
}

impl Engine {
    async fn run(mut self) -> Ending {
        let route = Arc::clone(&self.route);
        let mut look_at = Instant::now() + LOOK;
        loop {
            self.take_off();
            let stops = self.course.stopped().is_some();
            if stops && self.flight.is_empty() {
                break;
            }
            if self.flight.is_through() {
                match self.another_pass().await {
                    true => continue,
                    false => break,
                }
            }
            let waits = !stops && (self.together || self.course.is_paused() || !self.flight.is_empty());
            tokio::select! {
                biased;
                interrupt = changed(&mut self.interrupt) => match interrupt {
                    Interrupt::AtOnce(signal) => {
                        self.course.stop(Stop::new(StopKind::Interrupted(signal), "interrupted twice"));
                        self.leave().await;
                        break;
                    }
                    Interrupt::Gently(signal) => self.halt(Stop::new(StopKind::Interrupted(signal), "interrupted")),
                    Interrupt::None => {}
                },
                arrival = self.flight.next(!stops) => self.arrived(arrival).await,
                () = sleep_until(look_at), if waits => {
                    self.look().await;
                    look_at = Instant::now() + LOOK;
                }
                () = until(self.silent_until) => {
                    self.silent_until = None;
                    let what = "still waiting for the rate limit or for the gateway's response";
                    (self.route.observer)(DeliveryEvent::Warning(what.to_owned()));
                }
                what = route.watchdog.overdue(), if !self.flight.is_empty() => {
                    self.abandon(what);
                    break;
                }
            }
        }
        let stopped = self.course.stopped().cloned();
        let expired = self.expired;
        Ending { expired, ..self.tally.end(stopped) }
    }

    /// Begins as many envelopes as may fly now.
    fn take_off(&mut self) {
        while self.course.may_begin(self.flight.flying(), self.flight.settling()) {
            let Some(count) = self.flight.take_off(self.course.size()) else { return };
            self.tally.begun(count);
            self.silent_until = self.attended.then(|| Instant::now() + SILENCE);
        }
    }

    async fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Landed(landing) => self.landed(landing),
            Arrival::Recorded(record, recorded) => self.recorded(record, recorded).await,
            Arrival::Fed => {}
            Arrival::Failed(stop) => self.halt(stop),
        }
    }

    /// Ends the pause when its time is over, and the run when somebody asked for it: an envelope may wait for long.
    async fn look(&mut self) {
        self.course.look(self.began.elapsed());
        match self.route.ledger.stop_requested(self.route.lease.run).await {
            Ok(false) => {}
            Ok(true) => self.halt(asked_to_stop()),
            Err(error) => self.halt(unwritten(&error)),
        }
    }

    /// Takes in an envelope that came back.
    fn landed(&mut self, Landing { envelope, piece, submission }: Landing) {
        self.silent_until = None;
        let stop = match submission {
            Ok(Submission::Replied(number, mut reply)) => {
                if let Some(halt) = self.course.answered(&envelope, piece, &mut reply) {
                    self.call_back(halt);
                }
                return self.flight.settle(Record { number, envelope, piece, reply, held_back: false });
            }
            Ok(Submission::HeldBack(number, reply)) => {
                return self.flight.settle(Record { number, envelope, piece, reply, held_back: true });
            }
            Ok(Submission::Recalled) => return self.put_back(envelope, piece),
            Ok(Submission::OptedOut(rows)) => {
                self.tally.opted_out(rows.len());
                return self.leave_out(envelope, piece, &rows);
            }
            Ok(Submission::Capped(rows) | Submission::Delivered(rows)) => {
                return self.leave_out(envelope, piece, &rows);
            }
            Ok(Submission::Over(fits, bound)) => return self.cut(envelope, piece, fits, &bound),
            Ok(Submission::Late(at)) => return self.too_late(envelope, piece, at),
            Ok(Submission::Refused(Permit::Lost)) => lost(),
            Ok(Submission::Refused(_)) => asked_to_stop(),
            Err(error) => unwritten(&error),
        };
        self.put_back(envelope, piece);
        self.halt(stop);
    }

    /// Puts back what is left of an envelope without these rows, which are skipped.
    fn leave_out(&mut self, envelope: Envelope, piece: bool, rows: &[Row]) {
        let mut operations = envelope.into_operations();
        let count = operations.len();
        operations.retain(|operation| !rows.contains(&operation.row));
        self.tally.shift(State::Sending, State::Skipped, count - operations.len());
        self.tally.shift(State::Sending, State::Planned, operations.len());
        if !operations.is_empty() {
            self.flight.put_back(Parcel { operations, piece });
        }
        (self.route.observer)(DeliveryEvent::Settled { counts: self.tally.counts().clone() });
    }

    /// Puts back what keeps within the bounds apart from the rest of an envelope; where nothing does, it may be the end.
    fn cut(&mut self, envelope: Envelope, piece: bool, fits: usize, bound: &Bound) {
        let mut operations = envelope.into_operations();
        self.tally.shift(State::Sending, State::Planned, operations.len());
        let rest = operations.split_off(fits.min(operations.len()));
        for operations in [operations, rest].into_iter().filter(|operations| !operations.is_empty()) {
            self.flight.put_back(Parcel { operations, piece });
        }
        match self.course.bounded((fits, self.flight.is_empty()), bound, self.began.elapsed()) {
            Bounded::GoesOn => {}
            Bounded::Waits { reason, time } => self.pause(reason, time, AfterWait::NEXT),
            Bounded::Stops(halt) => self.call_back(halt),
        }
    }

    /// Puts back an envelope without an intent.
    fn put_back(&mut self, envelope: Envelope, piece: bool) {
        let operations = envelope.into_operations();
        self.tally.shift(State::Sending, State::Planned, operations.len());
        self.flight.put_back(Parcel { operations, piece });
    }

    async fn recorded(&mut self, record: Record, recorded: Result<(), LedgerError>) {
        let Record { number, envelope, piece, reply, held_back } = record;
        if let Err(error) = recorded {
            // The intents stay, so what was sent shows as doubt and is not sent again.
            self.tally.shift(State::Sending, State::InDoubt, envelope.operations().len());
            return self.halt(unwritten(&error));
        }
        self.tally.recorded(&envelope, &reply);
        let steps = if held_back {
            parcels(envelope, piece, &reply).into_iter().map(Step::TryAgain).collect()
        } else {
            let moment = Moment { at: self.began.elapsed(), chance: chance(self.route.lease.epoch, number) };
            self.course.recorded(envelope, piece, &reply, moment)
        };
        for step in steps {
            self.take(step, number).await;
        }
        if self.together && !held_back {
            self.tell_others(number, &reply).await;
        }
        (self.route.observer)(DeliveryEvent::Settled { counts: self.tally.counts().clone() });
    }

    /// Takes a step that follows from the answer to an envelope.
    async fn take(&mut self, step: Step, number: u32) {
        match step {
            Step::Warn(what) => (self.route.observer)(DeliveryEvent::Warning(what)),
            Step::Pause { reason, time, next } => self.pause(reason, time, next),
            Step::SlowDown(wait) => {
                self.route.gate.slow();
                if let Err(error) = self.route.ledger.slow_down(&self.route.account.name, wait).await {
                    self.halt(unwritten(&error));
                }
            }
            Step::Ask { queued, until } => {
                if let Err(stop) = self.ask(number, &queued, self.began + until).await {
                    self.halt(stop);
                }
            }
            Step::TryAgain(parcel) => self.flight.put_back(parcel),
            Step::Stop(halt) => self.call_back(halt),
        }
    }

    /// Calls back what waits to leave, and tells how long nothing begins.
    fn pause(&mut self, reason: String, time: Duration, next: AfterWait) {
        self.flight.recall();
        if !self.flight.is_through() {
            (self.route.observer)(DeliveryEvent::Waiting { reason, time, next });
        }
    }

    /// Asks what became of queued messages; those that were refused after all are recorded as such.
    async fn ask(&mut self, number: u32, queued: &[QueuedMessage], deadline: Instant) -> Result<(), Stop> {
        if !std::mem::replace(&mut self.asking_told, true) {
            let at_most = deadline.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
            let at_most = Duration::from_secs(at_most as u64);
            (self.route.observer)(DeliveryEvent::Asking { at_most });
        }
        let learned = tokio::select! {
            biased;
            learned = first_messages::ask(&self.route, queued, deadline) => learned.map_err(|error| unwritten(&error))?,
            // The signal itself is taken up by the loop.
            _ = self.interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => return Ok(()),
        };
        self.tally.lagged(learned.lag);
        if learned.refused.is_empty() {
            return Ok(());
        }
        if let Some(halt) = self.course.refused_late(learned.refused.len(), learned.asked) {
            self.call_back(halt);
        }
        match self.route.keep_rejected(number, &learned.refused).await {
            Ok(Ownership::Held) => self.tally.shift(State::Queued, State::Failed, learned.refused.len()),
            Ok(Ownership::Lost) => return Err(lost()),
            Err(error) => return Err(unwritten(&error)),
        }
        Ok(())
    }

    /// Begins nothing any more.
    fn halt(&mut self, stop: Stop) {
        let halt = self.course.stop(stop);
        self.call_back(halt);
    }

    /// Calls back what still waits to leave, and tells what is waited for.
    fn call_back(&mut self, Halt { reason, first }: Halt) {
        if first && self.flight.flying() > 0 {
            let (in_flight, at_most) = (self.tally.sending(), self.route.timeout);
            (self.route.observer)(DeliveryEvent::Stopping { reason, in_flight, at_most });
        }
        self.flight.recall();
    }

    /// Leaves at once, but for recording what is known: which envelopes never left, and answers that are in.
    async fn leave(&mut self) {
        self.flight.recall();
        let deadline = Instant::now() + LEAVING;
        while !self.flight.is_empty() {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => break,
                arrival = self.flight.next(false) => self.arrived(arrival).await,
            }
        }
        self.flight.abandon();
    }

    /// Leaves what is in flight as it is: something it waits for has not kept its time.
    fn abandon(&mut self, what: String) {
        (self.route.observer)(DeliveryEvent::Warning(what.clone()));
        self.flight.abandon();
        self.tally.leave();
        self.course.stop(Stop::new(StopKind::Unreachable, what));
    }
}

/// Waits until then, or for ever.
async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// The next change of what the outside asks.
async fn changed(interrupt: &mut watch::Receiver<Interrupt>) -> Interrupt {
    match interrupt.changed().await {
        Ok(()) => *interrupt.borrow_and_update(),
        // Nobody can interrupt any more.
        Err(_) => std::future::pending().await,
    }
}

fn asked_to_stop() -> Stop {
    Stop::new(StopKind::Asked, "asked to stop")
}

fn lost() -> Stop {
    Stop::new(StopKind::NotOwner, "another process has taken over the run")
}

fn unwritten(error: &LedgerError) -> Stop {
    // What to do about it depends on what was sent, and is said with that.
    Stop::new(StopKind::Ledger, format!("the ledger could not be written: {}", error.reason()))
}
