//! The engine: keeps envelopes in the air and does about their answers what the course says.

mod others;
mod passes;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::bounded::BoundEffect;
use super::course::{FlowControl, FollowUp, Halt, QueuedMessage};
use super::event::{AfterWait, DeliveryEvent};
use super::feed::Feed;
use super::first_messages;
use super::flight::{EnvelopeResult, FlightEvent, InFlight, ReturnedEnvelope};
use super::gate::RateGate;
use super::hours::SendingPasses;
use super::retry::{ResendBatch, RetryMoment, random_share, resend_batches};
use super::slow_answers::SlowAnswers;
use super::start::{SendConditions, SendContext, SendEnding};
use super::stop::{Interrupt, Stop, StopKind};
use super::submission::{SubmissionEnd, Submitter};
use super::tally::RunTally;
use super::watchdog::Watchdog;
use crate::domain::Row;
use crate::gateway::Envelope;
use crate::ledger::{Bound, LedgerError, Ownership, Permit, RowState, StateCounts};

/// How often the run looks whether a pause is over, or whether somebody asked it to stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long nothing is said to a person who waits for an answer.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// How long a second signal waits for what is to be recorded.
const EXIT_LIMIT: Duration = Duration::from_millis(250);

/// Sends everything that `feed` brings. `counts` are those of the run before this start.
pub async fn send_operations(
    conditions: SendConditions,
    edges: SendContext,
    feed: Feed,
    counts: StateCounts,
) -> SendEnding {
    let course = FlowControl::new(&conditions);
    let route = Arc::new(Submitter {
        ledger: edges.ledger,
        gateway: edges.gateway,
        lease: conditions.lease,
        account: conditions.account,
        bounds: conditions.bounds,
        gate: RateGate::new(conditions.rate),
        pace: conditions.sharing.as_ref().and_then(|together| together.pace.clone()),
        timeout: conditions.timeout,
        watchdog: Watchdog::new(conditions.timeout),
        slow: SlowAnswers::new(conditions.timeout, Arc::clone(&edges.observer)),
        observer: edges.observer,
        hours: edges.passes.as_ref().map(|passes| Arc::clone(&passes.hours)),
    });
    let engine = Engine {
        flight: InFlight::new(Arc::clone(&route), conditions.batch, feed),
        route,
        course,
        planned: counts.get(RowState::Planned),
        tally: RunTally::new(counts),
        passes: edges.passes,
        is_expired: false,
        interrupt: edges.interrupt,
        began: Instant::now(),
        attended: conditions.is_attended,
        silent_until: None,
        asking_announced: false,
        is_shared: conditions.sharing.is_some(),
        most_doubtful: conditions.limits.doubtful_envelopes,
        proven: conditions.proven,
    };
    // On a worker thread, where its envelopes are too: nothing has to be woken across threads.
    match tokio::spawn(engine.run_to_end()).await {
        Ok(ending) => ending,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// One start of a run.
struct Engine {
    route: Arc<Submitter>,
    flight: InFlight,
    course: FlowControl,
    tally: RunTally,
    /// How many rows were left to send at the start.
    planned: u64,
    passes: Option<Arc<SendingPasses>>,
    /// Whether what is left has no time any more.
    is_expired: bool,
    interrupt: watch::Receiver<Interrupt>,
    began: Instant,
    /// Whether a person waits.
    attended: bool,
    /// When that person is told that the answer is still waited for.
    silent_until: Option<Instant>,
    /// Whether somebody was told that the first messages are asked about.
    asking_announced: bool,
    /// Whether others send the run too.
    is_shared: bool,
    /// So many envelopes in a row that are in doubt stop all of them.
    most_doubtful: u32,
    /// Whether the others know that the gateway has taken a message.
    proven: bool,
}

impl Engine {
    async fn run_to_end(mut self) -> SendEnding {
        let route = Arc::clone(&self.route);
        let mut look_at = Instant::now() + CHECK_INTERVAL;
        loop {
            self.begin_envelopes();
            let stops = self.course.stop_reason().is_some();
            if stops && self.flight.is_empty() {
                break;
            }
            if self.flight.is_through() {
                match self.begin_next_pass().await {
                    true => continue,
                    false => break,
                }
            }
            let waits = !stops && (self.is_shared || self.course.is_paused() || !self.flight.is_empty());
            tokio::select! {
                biased;
                interrupt = next_interrupt(&mut self.interrupt) => match interrupt {
                    Interrupt::Immediate(signal) => {
                        self.course.record_stop(Stop::new(StopKind::Interrupted(signal), "interrupted twice"));
                        self.exit_now().await;
                        break;
                    }
                    Interrupt::Graceful(signal) => self.stop_sending(Stop::new(StopKind::Interrupted(signal), "interrupted")),
                    Interrupt::None => {}
                },
                arrival = self.flight.next_event(!stops) => self.handle_event(arrival).await,
                () = sleep_until(look_at), if waits => {
                    self.check_stop_request().await;
                    look_at = Instant::now() + CHECK_INTERVAL;
                }
                () = wait_for_instant(self.silent_until) => {
                    self.silent_until = None;
                    let what = "still waiting for the rate limit or for the gateway's response";
                    (self.route.observer)(DeliveryEvent::Warning(what.to_owned()));
                }
                what = route.watchdog.wait_overdue(), if !self.flight.is_empty() => {
                    self.abandon_in_flight(what);
                    break;
                }
            }
        }
        let stopped = self.course.stop_reason().cloned();
        let expired = self.is_expired;
        SendEnding { expired, ..self.tally.into_ending(stopped) }
    }

    /// Begins as many envelopes as may fly now.
    fn begin_envelopes(&mut self) {
        while self.course.may_begin(self.flight.count_flying(), self.flight.count_settling()) {
            let Some(count) = self.flight.begin_envelope(self.course.next_size()) else { return };
            self.tally.count_begun(count);
            self.silent_until = self.attended.then(|| Instant::now() + SILENCE_LIMIT);
        }
    }

    async fn handle_event(&mut self, arrival: FlightEvent) {
        match arrival {
            FlightEvent::Returned(landing) => self.handle_return(landing),
            FlightEvent::Recorded(record, recorded) => self.handle_recorded(record, recorded).await,
            FlightEvent::Fed => {}
            FlightEvent::Failed(stop) => self.stop_sending(stop),
        }
    }

    /// Ends the pause when its time is over, and the run when somebody asked for it: an envelope may wait for long.
    async fn check_stop_request(&mut self) {
        self.course.expire_pause(self.began.elapsed());
        match self.route.ledger.is_stop_requested(self.route.lease.run).await {
            Ok(false) => {}
            Ok(true) => self.stop_sending(asked_stop()),
            Err(error) => self.stop_sending(ledger_stop(&error)),
        }
    }

    /// Takes in an envelope that came back.
    fn handle_return(&mut self, ReturnedEnvelope { envelope, is_piece: piece, submission }: ReturnedEnvelope) {
        self.silent_until = None;
        let stop = match submission {
            Ok(SubmissionEnd::Replied(number, mut reply)) => {
                if let Some(halt) = self.course.observe_answer(&envelope, piece, &mut reply) {
                    self.recall_waiting(halt);
                }
                return self.flight.record_result(EnvelopeResult {
                    number,
                    envelope,
                    is_piece: piece,
                    reply,
                    is_held_back: false,
                });
            }
            Ok(SubmissionEnd::HeldBack(number, reply)) => {
                return self.flight.record_result(EnvelopeResult {
                    number,
                    envelope,
                    is_piece: piece,
                    reply,
                    is_held_back: true,
                });
            }
            Ok(SubmissionEnd::Recalled) => return self.put_back(envelope, piece),
            Ok(SubmissionEnd::OptedOut(rows)) => {
                self.tally.count_opted_out(rows.len());
                return self.skip_rows(envelope, piece, &rows);
            }
            Ok(SubmissionEnd::Capped(rows) | SubmissionEnd::Delivered(rows)) => {
                return self.skip_rows(envelope, piece, &rows);
            }
            Ok(SubmissionEnd::OverBound(fits, bound)) => return self.cut_to_bound(envelope, piece, fits, &bound),
            Ok(SubmissionEnd::TooLate(at)) => return self.put_back_late(envelope, piece, at),
            Ok(SubmissionEnd::Refused(Permit::Lost)) => not_owner_stop(),
            Ok(SubmissionEnd::Refused(_)) => asked_stop(),
            Err(error) => ledger_stop(&error),
        };
        self.put_back(envelope, piece);
        self.stop_sending(stop);
    }

    /// Puts back what is left of an envelope without these rows, which are skipped.
    fn skip_rows(&mut self, envelope: Envelope, piece: bool, rows: &[Row]) {
        let mut operations = envelope.into_operations();
        let count = operations.len();
        operations.retain(|operation| !rows.contains(&operation.row));
        self.tally.shift_state(RowState::Sending, RowState::Skipped, count - operations.len());
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        if !operations.is_empty() {
            self.flight.put_back(ResendBatch { operations, is_piece: piece });
        }
        (self.route.observer)(DeliveryEvent::Settled { counts: self.tally.counts().clone() });
    }

    /// Puts back what keeps within the bounds apart from the rest of an envelope; where nothing does, it may be the end.
    fn cut_to_bound(&mut self, envelope: Envelope, piece: bool, fits: usize, bound: &Bound) {
        let mut operations = envelope.into_operations();
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        let rest = operations.split_off(fits.min(operations.len()));
        for operations in [operations, rest].into_iter().filter(|operations| !operations.is_empty()) {
            self.flight.put_back(ResendBatch { operations, is_piece: piece });
        }
        match self.course.apply_bound((fits, self.flight.is_empty()), bound, self.began.elapsed()) {
            BoundEffect::Continue => {}
            BoundEffect::Wait { reason, time } => self.announce_pause(reason, time, AfterWait::NEXT),
            BoundEffect::Stop(halt) => self.recall_waiting(halt),
        }
    }

    /// Puts back an envelope without an intent.
    fn put_back(&mut self, envelope: Envelope, piece: bool) {
        let operations = envelope.into_operations();
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        self.flight.put_back(ResendBatch { operations, is_piece: piece });
    }

    async fn handle_recorded(&mut self, record: EnvelopeResult, recorded: Result<(), LedgerError>) {
        let EnvelopeResult { number, envelope, is_piece: piece, reply, is_held_back: held_back } = record;
        if let Err(error) = recorded {
            // The intents stay, so what was sent shows as doubt and is not sent again.
            self.tally.shift_state(RowState::Sending, RowState::InDoubt, envelope.operations().len());
            return self.stop_sending(ledger_stop(&error));
        }
        self.tally.count_reply(&envelope, &reply);
        let steps = if held_back {
            resend_batches(envelope, piece, &reply).into_iter().map(FollowUp::Resend).collect()
        } else {
            let moment = RetryMoment { at: self.began.elapsed(), chance: random_share(self.route.lease.epoch, number) };
            self.course.follow_ups(envelope, piece, &reply, moment)
        };
        for step in steps {
            self.apply_follow_up(step, number).await;
        }
        if self.is_shared && !held_back {
            self.share_progress(number, &reply).await;
        }
        (self.route.observer)(DeliveryEvent::Settled { counts: self.tally.counts().clone() });
    }

    /// Takes a step that follows from the answer to an envelope.
    async fn apply_follow_up(&mut self, step: FollowUp, number: u32) {
        match step {
            FollowUp::Warn(what) => (self.route.observer)(DeliveryEvent::Warning(what)),
            FollowUp::Pause { reason, time, next } => self.announce_pause(reason, time, next),
            FollowUp::SlowDown(wait) => {
                self.route.gate.slow_down();
                if let Err(error) = self.route.ledger.slow_account(&self.route.account.name, wait).await {
                    self.stop_sending(ledger_stop(&error));
                }
            }
            FollowUp::AskStatus { queued, until } => {
                if let Err(stop) = self.ask_about_queued(number, &queued, self.began + until).await {
                    self.stop_sending(stop);
                }
            }
            FollowUp::Resend(parcel) => self.flight.put_back(parcel),
            FollowUp::Stop(halt) => self.recall_waiting(halt),
        }
    }

    /// Calls back what waits to leave, and tells how long nothing begins.
    fn announce_pause(&mut self, reason: String, time: Duration, next: AfterWait) {
        self.flight.recall_waiting();
        if !self.flight.is_through() {
            (self.route.observer)(DeliveryEvent::Waiting { reason, time, next });
        }
    }

    /// Asks what became of queued messages; those that were refused after all are recorded as such.
    async fn ask_about_queued(&mut self, number: u32, queued: &[QueuedMessage], deadline: Instant) -> Result<(), Stop> {
        if !std::mem::replace(&mut self.asking_announced, true) {
            let at_most = deadline.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
            let at_most = Duration::from_secs(at_most as u64);
            (self.route.observer)(DeliveryEvent::Asking { at_most });
        }
        let learned = tokio::select! {
            biased;
            learned = first_messages::ask_until_known(&self.route, queued, deadline) => learned.map_err(|error| ledger_stop(&error))?,
            // The signal itself is taken up by the loop.
            _ = self.interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => return Ok(()),
        };
        self.tally.record_lag(learned.lag);
        if learned.rejected.is_empty() {
            return Ok(());
        }
        if let Some(halt) = self.course.observe_late_rejections(learned.rejected.len(), learned.asked) {
            self.recall_waiting(halt);
        }
        match self.route.record_late_rejections(number, &learned.rejected).await {
            Ok(Ownership::Held) => self.tally.shift_state(RowState::Queued, RowState::Failed, learned.rejected.len()),
            Ok(Ownership::Lost) => return Err(not_owner_stop()),
            Err(error) => return Err(ledger_stop(&error)),
        }
        Ok(())
    }

    /// Begins nothing any more.
    fn stop_sending(&mut self, stop: Stop) {
        let halt = self.course.record_stop(stop);
        self.recall_waiting(halt);
    }

    /// Calls back what still waits to leave, and tells what is waited for.
    fn recall_waiting(&mut self, Halt { reason, first }: Halt) {
        if first && self.flight.count_flying() > 0 {
            let (in_flight, at_most) = (self.tally.count_sending(), self.route.timeout);
            (self.route.observer)(DeliveryEvent::Stopping { reason, in_flight, at_most });
        }
        self.flight.recall_waiting();
    }

    /// Leaves at once, but for recording what is known: which envelopes never left, and answers that are in.
    async fn exit_now(&mut self) {
        self.flight.recall_waiting();
        let deadline = Instant::now() + EXIT_LIMIT;
        while !self.flight.is_empty() {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => break,
                arrival = self.flight.next_event(false) => self.handle_event(arrival).await,
            }
        }
        self.flight.abandon();
    }

    /// Leaves what is in flight as it is: something it waits for has not kept its time.
    fn abandon_in_flight(&mut self, what: String) {
        (self.route.observer)(DeliveryEvent::Warning(what.clone()));
        self.flight.abandon();
        self.tally.leave_in_doubt();
        self.course.record_stop(Stop::new(StopKind::Unreachable, what));
    }
}

/// Waits until then, or for ever.
async fn wait_for_instant(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// The next change of what the outside asks.
async fn next_interrupt(interrupt: &mut watch::Receiver<Interrupt>) -> Interrupt {
    match interrupt.changed().await {
        Ok(()) => *interrupt.borrow_and_update(),
        // Nobody can interrupt any more.
        Err(_) => std::future::pending().await,
    }
}

fn asked_stop() -> Stop {
    Stop::new(StopKind::StopRequested, "asked to stop")
}

fn not_owner_stop() -> Stop {
    Stop::new(StopKind::LeaseLost, "another process has taken over the run")
}

fn ledger_stop(error: &LedgerError) -> Stop {
    // What to do about it depends on what was sent, and is said with that.
    Stop::new(StopKind::Ledger, format!("the ledger could not be written: {}", error.reason()))
}
