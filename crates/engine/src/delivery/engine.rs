//! The sending engine: keeps envelopes in flight and follows the decisions of [`FlowControl`].

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::feed::Feed;
use super::flow_control::{BoundEffect, FlowControl, FollowUp, Halt, QueuedMessage};
use super::in_flight::{EnvelopeResult, FlightEvent, InFlight, ReturnedEnvelope};
use super::reported_rejections::ReportedRejections;
use super::retry_policy::{ResendBatch, RetryMoment, random_share, split_into_resend_batches};
use super::sending_hours::{NextCheck, SendingPasses};
use super::shared_run::{DOUBT_WINDOW, count_trailing_doubtful};
use super::status_poll;
use super::submission::{SubmissionEnd, Submitter};
use super::tally::{RunTally, SendEnding, Stop, StopKind};
use super::{AfterWait, DeliveryEvent, Interrupt, SendContext, SendOptions};
use campaign_core::domain::{OperationOutcome, Row, choose_plural, format_count};
use campaign_gateway::{Envelope, GatewayReply};
use campaign_ledger::{
    Bound, EnvelopeFilter, LedgerError, Ownership, Permit, RateRequest, RowState, RunUpdate, StateCounts,
};

/// The interval between checks for the end of a pause, stop requests, opt-outs and reported rejections.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The reason for the stop of a run whose sending window never opens.
pub const NEVER_OPENS: &str = "the sending window does not open within a year";
/// The wait after which an attended run announces that an answer is missing.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// The maximum time that the engine waits for pending records after a second signal.
const EXIT_LIMIT: Duration = Duration::from_millis(250);

/// Sends all operations of `feed`. `counts` are the run's current row counts by state.
pub async fn send_operations(
    options: SendOptions,
    context: SendContext,
    feed: Feed,
    counts: StateCounts,
) -> SendEnding {
    let options = Arc::new(options);
    let interrupt = context.interrupt.clone();
    let submitter = Arc::new(Submitter::new(Arc::clone(&options), context));
    let engine = Engine {
        in_flight: InFlight::new(Arc::clone(&submitter), feed),
        submitter,
        control: FlowControl::new(Arc::clone(&options)),
        planned: counts.get(RowState::Planned),
        tally: RunTally::new(counts),
        reported: ReportedRejections::default(),
        is_expired: false,
        interrupt,
        began: Instant::now(),
        silent_until: None,
        is_inquiry_announced: false,
        is_proven: options.proven,
        options,
    };
    // The engine runs on a worker thread, like its envelopes, so that wake-ups do not cross to the calling thread.
    match tokio::spawn(engine.run_to_end()).await {
        Ok(ending) => ending,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The engine, with the state of one call of [`send_operations`].
struct Engine {
    options: Arc<SendOptions>,
    submitter: Arc<Submitter>,
    in_flight: InFlight,
    control: FlowControl,
    tally: RunTally,
    reported: ReportedRejections,
    /// The number of planned rows at the start.
    planned: u64,
    /// Whether the remaining rows can no longer be sent in time.
    is_expired: bool,
    interrupt: watch::Receiver<Interrupt>,
    began: Instant,
    /// The time when an attended run announces that an answer is missing.
    silent_until: Option<Instant>,
    /// Whether the inquiry about the first messages was announced.
    is_inquiry_announced: bool,
    /// Whether the other workers know that the gateway accepts messages.
    is_proven: bool,
}

impl Engine {
    async fn run_to_end(mut self) -> SendEnding {
        let submitter = Arc::clone(&self.submitter);
        let mut next_check = Instant::now() + CHECK_INTERVAL;
        // The opt-out limit applies to the whole run, so it is checked before a resumed run sends anything.
        self.check_opt_outs().await;
        loop {
            self.begin_envelopes();
            let is_stopping = self.control.recorded_stop().is_some();
            if (is_stopping || self.is_expired) && self.in_flight.is_empty() {
                break;
            }
            if self.in_flight.is_finished() {
                match self.begin_next_pass().await {
                    true => continue,
                    false => break,
                }
            }
            let must_check =
                !is_stopping && (self.is_shared() || self.control.is_paused() || !self.in_flight.is_empty());
            tokio::select! {
                biased;
                interrupt = next_interrupt(&mut self.interrupt) => match interrupt {
                    Interrupt::Immediate(signal) => {
                        self.control.record_stop(Stop::new(StopKind::Interrupted(signal), "interrupted twice"));
                        self.exit_now().await;
                        break;
                    }
                    Interrupt::Graceful(signal) => self.stop_sending(Stop::new(StopKind::Interrupted(signal), "interrupted")),
                    Interrupt::None => {}
                },
                event = self.in_flight.next_event(!is_stopping) => self.handle_event(event).await,
                () = sleep_until(next_check), if must_check => {
                    self.run_periodic_checks().await;
                    next_check = Instant::now() + CHECK_INTERVAL;
                }
                () = wait_for_instant(self.silent_until) => {
                    self.silent_until = None;
                    let text = "still waiting for the rate limit or for the gateway's response";
                    self.submitter.emit(DeliveryEvent::Warning(text.to_owned()));
                }
                reason = submitter.watchdog.wait_until_overdue(), if !self.in_flight.is_empty() => {
                    self.abandon_in_flight(reason);
                    break;
                }
            }
        }
        let stopped = self.control.recorded_stop().cloned();
        self.tally.into_ending(stopped, self.is_expired)
    }

    /// Whether other workers also send messages of this run.
    fn is_shared(&self) -> bool {
        self.options.sharing.is_some()
    }

    /// Begins as many envelopes as are allowed now.
    fn begin_envelopes(&mut self) {
        while !self.is_expired
            && self.control.may_begin(self.in_flight.count_in_flight(), self.in_flight.count_settling())
        {
            let Some(count) = self.in_flight.begin_envelope(self.control.next_size()) else { return };
            self.tally.count_begun(count);
            self.silent_until = self.options.is_attended.then(|| Instant::now() + SILENCE_LIMIT);
        }
    }

    async fn handle_event(&mut self, event: FlightEvent) {
        match event {
            FlightEvent::Returned(returned) => self.handle_returned(returned),
            FlightEvent::Recorded(record, recorded) => self.handle_recorded(record, recorded).await,
            FlightEvent::Fed => {}
            FlightEvent::Failed(stop) => self.stop_sending(stop),
        }
    }

    /// Ends an expired pause. Stops the run if a stop was requested, or if too many recipients opted out or too many
    /// messages were rejected. Called regularly, because an envelope can wait for a long time.
    async fn run_periodic_checks(&mut self) {
        self.control.expire_pause(self.began.elapsed());
        match self.submitter.context.ledger.is_stop_requested(self.options.lease.run).await {
            Ok(false) => {
                self.check_opt_outs().await;
                self.check_reported_rejections().await;
            }
            Ok(true) => self.stop_sending(requested_stop()),
            Err(error) => self.stop_sending(ledger_stop(&error)),
        }
    }

    /// Stops the run if too many recipients opted out because of the run's messages.
    async fn check_opt_outs(&mut self) {
        if self.options.limits.opted_out.is_none() {
            return;
        }
        match self.find_opt_out_stop().await {
            Ok(None) => {}
            Ok(Some(stop)) => self.stop_sending(stop),
            Err(error) => self.stop_sending(ledger_stop(&error)),
        }
    }

    /// Stops the run if receipts report that too many of its messages were rejected.
    async fn check_reported_rejections(&mut self) {
        if self.options.limits.keep_going {
            return;
        }
        let (ledger, run) = (self.submitter.context.ledger.as_ref(), self.options.lease.run);
        match self.reported.count_new_rejections(ledger, run).await {
            Ok(0) => {}
            Ok(rejected) => {
                if let Some(halt) = self.control.observe_reported_rejections(rejected) {
                    self.recall_waiting(halt);
                }
            }
            Err(error) => self.stop_sending(ledger_stop(&error)),
        }
    }

    async fn find_opt_out_stop(&self) -> Result<Option<Stop>, LedgerError> {
        let (ledger, limits) = (&self.submitter.context.ledger, &self.options.limits);
        let opted_out = ledger.count_opt_outs_from(&self.options.opt_outs.run).await?;
        if opted_out == 0 {
            return Ok(None);
        }
        // In a shared run, the opt-outs and messages of all processes count.
        Ok(limits.check_opt_outs(opted_out, ledger.load_sent_rows(self.options.lease.run).await?.len()))
    }

    /// Records the reply to a returned envelope. Without a reply, skips rows, puts operations back, or stops the run.
    fn handle_returned(&mut self, ReturnedEnvelope { envelope, is_piece, submission }: ReturnedEnvelope) {
        self.silent_until = None;
        let stop = match submission {
            Ok(SubmissionEnd::Replied(number, mut reply)) => {
                if let Some(halt) = self.control.observe_answer(&envelope, is_piece, &mut reply) {
                    self.recall_waiting(halt);
                }
                return self.in_flight.record_result(EnvelopeResult {
                    number,
                    envelope,
                    is_piece,
                    reply,
                    is_withdrawn: false,
                });
            }
            Ok(SubmissionEnd::Withdrawn(number, reply)) => {
                return self.in_flight.record_result(EnvelopeResult {
                    number,
                    envelope,
                    is_piece,
                    reply,
                    is_withdrawn: true,
                });
            }
            Ok(SubmissionEnd::Recalled) => return self.put_back(envelope, is_piece),
            Ok(SubmissionEnd::OptedOut(rows)) => {
                self.tally.count_opted_out(&rows);
                return self.skip_rows(envelope, is_piece, &rows);
            }
            Ok(
                SubmissionEnd::Capped(rows) | SubmissionEnd::OutsideCountries(rows) | SubmissionEnd::Delivered(rows),
            ) => {
                return self.skip_rows(envelope, is_piece, &rows);
            }
            Ok(SubmissionEnd::OverBound(fits, bound)) => return self.split_at_bound(envelope, is_piece, fits, &bound),
            Ok(SubmissionEnd::TooLate(at)) => return self.put_back_unexpired(envelope, is_piece, at),
            Ok(SubmissionEnd::OptOutsUnknown(reason)) => {
                Stop { is_local: true, ..Stop::new(StopKind::Inconsistent, reason) }
            }
            Ok(SubmissionEnd::Refused(Permit::Lost)) => lease_lost_stop(),
            Ok(SubmissionEnd::Refused(_)) => requested_stop(),
            Err(error) => ledger_stop(&error),
        };
        self.put_back(envelope, is_piece);
        self.stop_sending(stop);
    }

    /// Skips `rows` of an envelope, and puts back the other operations.
    fn skip_rows(&mut self, envelope: Envelope, is_piece: bool, rows: &[Row]) {
        let mut operations = envelope.into_operations();
        operations.retain(|operation| !rows.contains(&operation.row));
        // A skipped row whose message was in doubt is in doubt again.
        let in_doubt = rows.iter().filter(|row| self.options.repeated.contains(row.get())).count();
        self.tally.shift_state(RowState::Sending, RowState::InDoubt, in_doubt);
        self.tally.shift_state(RowState::Sending, RowState::Skipped, rows.len() - in_doubt);
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        if !operations.is_empty() {
            self.in_flight.put_back(ResendBatch { operations, is_piece });
        }
        self.submitter.emit(DeliveryEvent::Settled { counts: self.tally.counts().clone() });
    }

    /// Puts back the operations within the bound, and separately the operations beyond it. If no operation is within
    /// the bound, the run can pause, stop or end.
    fn split_at_bound(&mut self, envelope: Envelope, is_piece: bool, fit_count: usize, bound: &Bound) {
        let mut operations = envelope.into_operations();
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        let rest = operations.split_off(fit_count.min(operations.len()));
        for operations in [operations, rest].into_iter().filter(|operations| !operations.is_empty()) {
            self.in_flight.put_back(ResendBatch { operations, is_piece });
        }
        let is_alone = self.in_flight.is_empty();
        let postponed = self.postpone_to_opening(bound);
        // Envelopes in flight can still make room for messages today.
        if postponed.is_none() && fit_count == 0 && is_alone {
            self.is_expired = true;
            return;
        }
        match self.control.apply_bound(fit_count, is_alone, postponed.as_ref().unwrap_or(bound), self.began.elapsed()) {
            BoundEffect::Continue => {}
            BoundEffect::Wait { reason, time } => self.announce_pause(reason, time, AfterWait::NEXT),
            BoundEffect::Stop(halt) => self.recall_waiting(halt),
        }
    }

    /// Postpones the end of a daily bound to the next opening of the sending windows. Returns `None` if all sending
    /// ends before that opening. Other bounds, and bounds of runs without windows, are returned unchanged.
    fn postpone_to_opening(&self, bound: &Bound) -> Option<Bound> {
        let (Bound::Day { limit, until, wait }, Some(passes)) = (bound, &self.submitter.context.passes) else {
            return Some(bound.clone());
        };
        let next_day = until.timestamp();
        let opens = passes.hours.find_next_departure(next_day)?;
        let wait = *wait + Duration::try_from(opens.duration_since(next_day)).unwrap_or_default();
        Some(Bound::Day { limit: *limit, until: opens.to_zoned(until.time_zone().clone()), wait })
    }

    /// Puts back an envelope without an intent.
    fn put_back(&mut self, envelope: Envelope, is_piece: bool) {
        let operations = envelope.into_operations();
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        self.in_flight.put_back(ResendBatch { operations, is_piece });
    }

    /// Counts a recorded result, and carries out its follow-ups. Stops the run if the result could not be recorded.
    async fn handle_recorded(&mut self, record: EnvelopeResult, recorded: Result<(), LedgerError>) {
        let EnvelopeResult { number, envelope, is_piece, reply, is_withdrawn } = record;
        if let Err(error) = recorded {
            // The intents stay, so sent messages are in doubt and are not resent.
            self.tally.shift_state(RowState::Sending, RowState::InDoubt, envelope.operations().len());
            return self.stop_sending(ledger_stop(&error));
        }
        self.tally.count_reply(&envelope, &reply);
        self.reported.add_answered(number, &envelope, &reply);
        let steps = if is_withdrawn {
            split_into_resend_batches(envelope, is_piece, &reply).into_iter().map(FollowUp::Resend).collect()
        } else {
            let moment =
                RetryMoment { at: self.began.elapsed(), chance: random_share(self.options.lease.epoch, number) };
            self.control.plan_follow_ups(envelope, is_piece, &reply, moment)
        };
        for step in steps {
            self.apply_follow_up(step, number).await;
        }
        if self.is_shared() && !is_withdrawn {
            self.share_progress(number, &reply).await;
        }
        self.submitter.emit(DeliveryEvent::Settled { counts: self.tally.counts().clone() });
    }

    /// Carries out a follow-up to an answer.
    async fn apply_follow_up(&mut self, step: FollowUp, number: u32) {
        match step {
            FollowUp::Warn(text) => self.submitter.emit(DeliveryEvent::Warning(text)),
            FollowUp::Pause { reason, time, next } => self.announce_pause(reason, time, next),
            FollowUp::SlowDown(wait) => {
                self.submitter.gate.slow_down();
                let (ledger, account) = (&self.submitter.context.ledger, &self.options.allowance);
                if let Err(error) = ledger.use_rate_limit(account, RateRequest::SlowDown(wait)).await {
                    self.stop_sending(ledger_stop(&error));
                }
            }
            FollowUp::AskStatus { queued, until } => {
                if let Err(stop) = self.ask_about_queued(number, &queued, self.began + until).await {
                    self.stop_sending(stop);
                }
            }
            FollowUp::Resend(batch) => self.in_flight.put_back(batch),
            FollowUp::Stop(halt) => self.recall_waiting(halt),
        }
    }

    /// Recalls waiting envelopes, and announces the length of the pause.
    fn announce_pause(&mut self, reason: String, time: Duration, next: AfterWait) {
        self.in_flight.recall_waiting();
        if !self.in_flight.is_finished() {
            self.submitter.emit(DeliveryEvent::Waiting { reason, time, next });
        }
    }

    /// Asks for the status of queued messages, and records late rejections.
    async fn ask_about_queued(&mut self, number: u32, queued: &[QueuedMessage], deadline: Instant) -> Result<(), Stop> {
        if !std::mem::replace(&mut self.is_inquiry_announced, true) {
            let seconds = deadline.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
            let at_most = Duration::from_secs(seconds as u64);
            self.submitter.emit(DeliveryEvent::Asking { at_most });
        }
        // A clone, so that `self.interrupt` has not seen the signal yet and the main loop handles it.
        let mut interrupt = self.interrupt.clone();
        let result = tokio::select! {
            biased;
            result = status_poll::ask_until_known(&self.submitter, queued, deadline) => {
                result.map_err(|error| ledger_stop(&error))?
            }
            _ = Interrupt::wait_for_signal(&mut interrupt) => return Ok(()),
        };
        self.tally.record_lag(result.lag);
        if result.rejected.is_empty() {
            return Ok(());
        }
        if let Some(halt) = self.control.observe_late_rejections(result.rejected.len(), result.asked) {
            self.recall_waiting(halt);
        }
        result.rejected.iter().for_each(|(message, _)| self.reported.add_known_rejection(message.row));
        match self.submitter.record_late_rejections(number, &result.rejected).await {
            Ok(Ownership::Held) => self.tally.shift_state(RowState::Queued, RowState::Failed, result.rejected.len()),
            Ok(Ownership::Lost) => return Err(lease_lost_stop()),
            Err(error) => return Err(ledger_stop(&error)),
        }
        Ok(())
    }

    /// Stops sending: no further envelopes begin.
    fn stop_sending(&mut self, stop: Stop) {
        let halt = self.control.record_stop(stop);
        self.recall_waiting(halt);
    }

    /// Recalls waiting envelopes, and announces the reason for the remaining wait.
    fn recall_waiting(&mut self, Halt { reason, is_first }: Halt) {
        if is_first && self.in_flight.count_in_flight() > 0 {
            let (in_flight, at_most) = (self.tally.count_sending(), self.options.timeout);
            self.submitter.emit(DeliveryEvent::Stopping { reason, in_flight, at_most });
        }
        self.in_flight.recall_waiting();
    }

    /// Exits at once, after recording known results: envelopes that never left, and received answers.
    async fn exit_now(&mut self) {
        self.in_flight.recall_waiting();
        let deadline = Instant::now() + EXIT_LIMIT;
        while !self.in_flight.is_empty() {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => break,
                event = self.in_flight.next_event(false) => self.handle_event(event).await,
            }
        }
        self.in_flight.abandon();
    }

    /// Abandons everything in flight, because a step took too long.
    fn abandon_in_flight(&mut self, reason: String) {
        self.submitter.emit(DeliveryEvent::Warning(reason.clone()));
        self.in_flight.abandon();
        self.tally.leave_in_doubt();
        self.control.record_stop(Stop::new(StopKind::Unreachable, reason));
    }
}

/// Waits until `instant`, or forever if it is `None`.
async fn wait_for_instant(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next interrupt.
async fn next_interrupt(interrupt: &mut watch::Receiver<Interrupt>) -> Interrupt {
    match interrupt.changed().await {
        Ok(()) => *interrupt.borrow_and_update(),
        // No more interrupts can come.
        Err(_) => std::future::pending().await,
    }
}

fn requested_stop() -> Stop {
    Stop::new(StopKind::StopRequested, "asked to stop")
}

fn lease_lost_stop() -> Stop {
    Stop::new(StopKind::LeaseLost, "another process has taken over the run")
}

fn ledger_stop(error: &LedgerError) -> Stop {
    // The remedy depends on what was sent, so it is added where that is known.
    Stop::new(StopKind::Ledger, format!("the ledger could not be read or written: {}", error.reason()))
}

impl Engine {
    /// Reports to the other workers that the gateway accepts messages. Stops the run if too many consecutive envelopes
    /// of all workers are in doubt.
    async fn share_progress(&mut self, number: u32, reply: &GatewayReply) {
        if let Err(error) = self.update_shared_run(number, reply).await {
            self.stop_sending(ledger_stop(&error));
        }
    }

    async fn update_shared_run(&mut self, number: u32, reply: &GatewayReply) -> Result<(), LedgerError> {
        let (ledger, run) = (&self.submitter.context.ledger, self.options.lease.run);
        let is_accepted = |outcome: &OperationOutcome| {
            matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })
        };
        if !self.is_proven && self.control.recorded_stop().is_none() && reply.outcomes.iter().any(is_accepted) {
            self.is_proven = true;
            ledger.update_runs(vec![run], RunUpdate::Proven).await?;
        }
        if reply.is_in_doubt() && self.control.recorded_stop().is_none() {
            let window = number.saturating_sub(DOUBT_WINDOW).max(1)..=number.saturating_add(DOUBT_WINDOW);
            let in_a_row = count_trailing_doubtful(&ledger.load_envelopes(run, EnvelopeFilter::Numbers(window)).await?);
            if in_a_row >= self.options.limits.doubtful_envelopes {
                let (requests, are) =
                    (format_count(in_a_row.into(), "request"), choose_plural(in_a_row.into(), "is", "are"));
                let reason = format!("{requests} in a row {are} in doubt, counted across all processes of the run");
                self.stop_sending(Stop::new(StopKind::Breaker, reason));
            }
        }
        Ok(())
    }
}

impl Engine {
    /// Puts back the operations that can still be sent at the time `at`. The other operations stay planned for the next
    /// pass.
    fn put_back_unexpired(&mut self, envelope: Envelope, is_piece: bool, at: Timestamp) {
        let mut operations = envelope.into_operations();
        self.tally.shift_state(RowState::Sending, RowState::Planned, operations.len());
        let passed_deadline =
            operations.iter().filter_map(|operation| operation.leave_before).filter(|deadline| *deadline <= at).min();
        operations.retain(|operation| operation.leave_before.is_none_or(|deadline| deadline > at));
        if let Some((passes, closing)) = self.submitter.context.passes.as_ref().zip(passed_deadline) {
            passes.hours.note_closing(closing);
        }
        if !operations.is_empty() {
            self.in_flight.put_back(ResendBatch { operations, is_piece });
        }
    }

    /// Waits until skipped rows can be sent, and starts another pass. Records a stop if the run must not wait.
    ///
    /// Returns false if nothing is left to send: no rows are planned, the limit is reached, or the sending deadline
    /// comes before the next opening.
    async fn begin_next_pass(&mut self) -> bool {
        let Some(passes) = self.submitter.context.passes.clone() else { return false };
        let remaining = self.tally.counts().get(RowState::Planned);
        let sent = self.planned.saturating_sub(remaining);
        if remaining == 0 || passes.limit.is_some_and(|limit| sent >= limit) {
            return false;
        }
        match passes.hours.take_next_check() {
            NextCheck::AtOpening(at) if at > passes.hours.now() => {
                let until = passes.hours.format_time(at);
                let reason =
                    format!("the sending window is closed for all remaining recipients; sending resumes {until}");
                if !passes.waits {
                    self.stop_sending(Stop::new(StopKind::Window, reason));
                    return true;
                }
                let time = passes.hours.time_until(at);
                self.submitter.emit(DeliveryEvent::Waiting { reason, time, next: AfterWait::NEXT });
                self.wait_until(&passes, at).await;
            }
            // A person is waiting for this process, so it stops instead of waiting for the next window.
            NextCheck::AtClosing(_) if self.options.is_attended => {
                self.stop_sending(Stop::new(
                    StopKind::Window,
                    "the sending window closes before the message can be sent",
                ));
                return true;
            }
            // An operation that the rate limit would delay too long waits like an operation outside its window.
            NextCheck::AtClosing(at) => self.wait_until(&passes, at).await,
            NextCheck::AtOpening(_) => {}
            NextCheck::Ended => {
                self.is_expired = true;
                return false;
            }
            NextCheck::NeverOpens => {
                self.stop_sending(Stop::new(StopKind::Window, NEVER_OPENS));
                return true;
            }
            NextCheck::Nothing => return false,
        }
        if self.control.recorded_stop().is_none() {
            match (passes.restart_feed)(sent).await {
                Ok(feed) => self.in_flight.set_feed(feed),
                Err(stop) => self.stop_sending(stop),
            }
        }
        true
    }

    /// Waits until the wall clock reaches `at`, or until the run stops.
    async fn wait_until(&mut self, passes: &SendingPasses, at: Timestamp) {
        while self.control.recorded_stop().is_none() && passes.hours.now() < at {
            tokio::select! {
                biased;
                interrupt = next_interrupt(&mut self.interrupt) => match interrupt {
                    Interrupt::Immediate(signal) | Interrupt::Graceful(signal) => {
                        self.stop_sending(Stop::new(StopKind::Interrupted(signal), "interrupted"));
                    }
                    Interrupt::None => {}
                },
                () = tokio::time::sleep(passes.hours.time_until(at).min(CHECK_INTERVAL)) => self.run_periodic_checks().await,
            }
        }
    }
}
