//! Submission of an envelope: its turn, the intent, the account's slot, the request, and the outcome.
//!
//! This module also contains the watchdog and the warnings about slow answers.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::flow_control::QueuedMessage;
use super::rate_gate::RateGate;
use super::{AfterWait, DeliveryEvent, DeliveryObserver, SendContext, SendOptions};
use campaign_core::domain::{DeliveryState, OperationOutcome, ReportedChannel, Row, Status};
use campaign_core::failpoint;
use campaign_gateway::{Envelope, GatewayReply, MayLeave, Signal};
use campaign_ledger::{
    Bound, Intent, LedgerError, NewRowEvent, OPTED_OUT, Ownership, Permit, RowChange, RowUpdate, SentRow, Settlement,
    StoredReceipt,
};

/// The time after the request's timeout until the engine treats the answer as missing.
const GRACE: Duration = Duration::from_secs(5);

/// A wait for the account's slot is announced if it is longer than this.
const ANNOUNCE_AFTER: Duration = Duration::from_secs(2);

/// Submits envelopes of a run.
pub(super) struct Submitter {
    pub(super) options: Arc<SendOptions>,
    pub(super) context: SendContext,
    pub(super) gate: RateGate,
    pub(super) watchdog: Watchdog,
    slow: SlowAnswers,
}

/// The result of submitting an envelope.
pub(super) enum SubmissionEnd {
    /// The envelope was sent under this number, with this reply.
    Replied(u32, GatewayReply),
    /// Withdrawn before its first byte was sent; the reply says so for each operation.
    Withdrawn(u32, GatewayReply),
    /// Recalled before its intent, so there is nothing to record.
    Recalled,
    /// No operation was sent, because the recipients of these rows opted out. The other operations go into another
    /// envelope.
    OptedOut(Vec<Row>),
    /// No operation was sent, because the recipients of these rows have had the maximum number of messages. The other
    /// operations go into another envelope.
    Capped(Vec<Row>),
    /// No operation was sent, because the numbers of these rows are outside the allowed countries. The other
    /// operations go into another envelope.
    OutsideCountries(Vec<Row>),
    /// No operation was sent, because earlier messages of these rows have been delivered. The other operations go into
    /// another envelope.
    Delivered(Vec<Row>),
    /// No operation was sent, because only this many of the first operations are within the bounds.
    OverBound(usize, Bound),
    /// No operation was sent, because this time is too late for some operations.
    TooLate(Timestamp),
    /// No intent was recorded, so no operation was sent.
    Refused(Permit),
    /// No operation was sent, because it is unknown which recipients opted out. Contains the reason.
    OptOutsUnknown(String),
}

impl Submitter {
    pub(super) fn new(options: Arc<SendOptions>, context: SendContext) -> Self {
        Self {
            gate: RateGate::new(options.rate),
            watchdog: Watchdog::new(options.timeout),
            slow: SlowAnswers::new(options.timeout, Arc::clone(&context.observer)),
            options,
            context,
        }
    }

    /// Emits an event.
    pub(super) fn emit(&self, event: DeliveryEvent) {
        (self.context.observer)(event);
    }

    /// Waits for the envelope's turn, records the intent, waits for the account's slot, and sends.
    ///
    /// A change of `recalls` ends these waits: before its intent, the envelope is recalled; after its intent, it is
    /// withdrawn.
    ///
    /// # Errors
    /// If the ledger cannot be read, or the intent cannot be recorded; then nothing was sent.
    pub(super) async fn send_envelope(
        &self,
        envelope: &Envelope,
        mut recalls: watch::Receiver<u64>,
    ) -> Result<SubmissionEnd, LedgerError> {
        let began = Instant::now();
        let (SendOptions { lease, timeout, .. }, SendContext { ledger, gateway, .. }) = (&*self.options, &self.context);
        let turn = tokio::select! {
            biased;
            _ = recalls.changed() => return Ok(SubmissionEnd::Recalled),
            turn = self.gate.wait_for_turn(envelope.operations().len()) => turn,
        };
        if let Some(run_allowance) = self.options.sharing.as_ref().and_then(|sharing| sharing.pace.as_ref()) {
            let count = u32::try_from(envelope.operations().len()).unwrap_or(u32::MAX);
            let wait = ledger.reserve_rate(run_allowance, count).await?;
            tokio::select! {
                biased;
                _ = recalls.changed() => return Ok(SubmissionEnd::Recalled),
                () = tokio::time::sleep(wait.time) => {}
            }
        }
        let leave_by = envelope.operations().iter().filter_map(|operation| operation.leave_before).min();
        let hours = self.context.passes.as_ref().map(|passes| Arc::clone(&passes.hours));
        let find_lateness =
            move || hours.as_ref().map(|hours| hours.now()).filter(|now| leave_by.is_some_and(|by| *now >= by));
        if let Some(now) = find_lateness() {
            return Ok(SubmissionEnd::TooLate(now));
        }
        let opted_out = tokio::select! {
            biased;
            _ = recalls.changed() => return Ok(SubmissionEnd::Recalled),
            opted_out = self.find_late_opt_outs(envelope) => match opted_out {
                Ok(rows) => rows,
                Err(reason) => return Ok(SubmissionEnd::OptOutsUnknown(reason)),
            },
        };
        if !opted_out.is_empty() {
            let update = RowUpdate::Skipped { rows: opted_out.clone(), reason: OPTED_OUT };
            return Ok(match ledger.update_rows(*lease, update).await? {
                Ownership::Held => SubmissionEnd::OptedOut(opted_out),
                Ownership::Lost => SubmissionEnd::Refused(Permit::Lost),
            });
        }
        let delivered = self.find_delivered(envelope).await?;
        if !delivered.is_empty() {
            return Ok(SubmissionEnd::Delivered(delivered));
        }
        let rows = envelope
            .operations()
            .iter()
            .map(|operation| SentRow {
                row: operation.row,
                to: operation.phone.into(),
                digest: operation.digest,
                chain: operation.chain,
            })
            .collect();
        tracing::debug!(waited_ms = elapsed_millis(began), "turn granted");
        let (account, bounds) = (self.options.allowance.clone(), self.options.bounds.clone());
        let costs = envelope.operations().iter().map_while(|operation| operation.cost).collect();
        let intent = Intent { lease: *lease, kind: envelope.kind(), account, rows, costs, bounds, leave_by };
        let registration = self.watchdog.register();
        let permit = ledger.begin_envelope(intent).await;
        self.watchdog.remove(registration);
        let (number, wait) = match permit? {
            Permit::Granted { envelope, wait } => (envelope, wait),
            Permit::OptedOut(rows) => {
                failpoint::pass("opt_outs.kept");
                return Ok(SubmissionEnd::OptedOut(rows));
            }
            Permit::TooLate(at) => return Ok(SubmissionEnd::TooLate(at)),
            Permit::Capped(rows) => return Ok(SubmissionEnd::Capped(rows)),
            Permit::OutsideCountries(rows) => return Ok(SubmissionEnd::OutsideCountries(rows)),
            Permit::BoundExceeded { fits, bound } => return Ok(SubmissionEnd::OverBound(fits, bound)),
            refused @ (Permit::StopRequested | Permit::Lost) => return Ok(SubmissionEnd::Refused(refused)),
        };
        tracing::Span::current().record("number", number);
        failpoint::pass("intent.kept");
        tracing::debug!(slot_in_ms = u64::try_from(wait.time.as_millis()).unwrap_or(u64::MAX), "intent recorded");
        if recalls.has_changed().unwrap_or(false) {
            return Ok(SubmissionEnd::Withdrawn(number, withdrawn_reply(envelope)));
        }
        if !wait.time.is_zero() {
            self.watchdog.enter_step(WatchedEnvelope::Envelope(number), WaitStep::Slot);
            if wait.time > ANNOUNCE_AFTER {
                let (reason, time) = (wait.reason.describe().to_owned(), wait.time);
                self.emit(DeliveryEvent::Waiting { reason, time, next: AfterWait::NEXT });
            }
            tokio::select! {
                biased;
                _ = recalls.changed() => return Ok(SubmissionEnd::Withdrawn(number, withdrawn_reply(envelope))),
                () = tokio::time::sleep(wait.time) => {}
            }
        }
        // The computer might have slept for a long time: the deadline might have passed, or another process might own
        // the run.
        let (ledger, lease) = (Arc::clone(ledger), *lease);
        let may_leave: MayLeave = Arc::new(move || find_lateness().is_none() && ledger.may_still_send(lease));
        failpoint::pass("envelope.leaves");
        self.watchdog.enter_step(WatchedEnvelope::Envelope(number), WaitStep::Answer);
        turn.mark_departed();
        let submitted = gateway.submit(envelope, may_leave);
        let reply = self.slow.wait_for(tokio::time::timeout(*timeout + GRACE, submitted)).await;
        failpoint::pass("answer.came");
        let Some(reply) = reply.unwrap_or_else(|_| Some(self.no_answer_reply(envelope))) else {
            return Ok(SubmissionEnd::Withdrawn(number, withdrawn_reply(envelope)));
        };
        log_reply(&reply, began);
        Ok(SubmissionEnd::Replied(number, reply))
    }

    /// The rows of an envelope whose recipients opted out elsewhere since the run was prepared.
    async fn find_late_opt_outs(&self, envelope: &Envelope) -> Result<Vec<Row>, String> {
        let Some(source) = &self.context.late_opt_outs else { return Ok(Vec::new()) };
        let operations = envelope.operations();
        let opted_out = source.find_opted_out(operations.iter().map(|operation| operation.phone).collect()).await?;
        let rows = operations.iter().filter(|operation| opted_out.contains(&operation.phone));
        Ok(rows.map(|operation| operation.row).collect())
    }

    /// The resent rows of an envelope whose earlier message has been delivered by now.
    async fn find_delivered(&self, envelope: &Envelope) -> Result<Vec<Row>, LedgerError> {
        let repeats =
            || envelope.operations().iter().filter(|operation| operation.repeats).map(|operation| operation.row);
        let (Some(first), Some(last)) = (repeats().min(), repeats().max()) else { return Ok(Vec::new()) };
        let rows = first.get()..last.get().saturating_add(1);
        let mut receipts = self.context.ledger.load_receipts(self.options.lease.run, rows).await?;
        let is_delivery = |stored: &StoredReceipt| {
            matches!(stored.receipt.status.delivery_state(), DeliveryState::Delivered | DeliveryState::Read)
        };
        receipts.retain(|(row, stored)| stored.iter().any(is_delivery) && repeats().any(|repeated| repeated == *row));
        Ok(receipts.into_iter().map(|(row, _)| row).collect())
    }

    /// Records the outcome of the envelope.
    ///
    /// # Errors
    /// If the outcome cannot be recorded; then the intent stays, and the messages are in doubt.
    pub(super) async fn record_outcome(
        &self,
        number: u32,
        envelope: &Envelope,
        reply: &GatewayReply,
    ) -> Result<(), LedgerError> {
        self.watchdog.enter_step(WatchedEnvelope::Envelope(number), WaitStep::Outcome);
        let (run, outcomes, evidence) = (self.options.lease.run, reply.outcomes.clone(), reply.evidence.clone());
        let opt_outs = self.options.opt_outs.collect_opt_outs(envelope, reply);
        let settlement = Settlement { run, envelope: number, outcomes, evidence, opt_outs };
        self.context.ledger.settle_envelope(settlement).await?;
        failpoint::pass("outcome.kept");
        tracing::debug!(envelope = number, "outcome recorded");
        Ok(())
    }

    /// Records that queued messages of an envelope were rejected later.
    ///
    /// # Errors
    /// If the rejections cannot be recorded; then the messages stay queued.
    pub(super) async fn record_late_rejections(
        &self,
        number: u32,
        rejected: &[(QueuedMessage, Option<ReportedChannel>)],
    ) -> Result<Ownership, LedgerError> {
        let event = |(message, channel): &(QueuedMessage, Option<ReportedChannel>)| {
            let (status, channel) = (Status::Rejected.name().to_owned(), channel.clone());
            NewRowEvent {
                row: message.row,
                envelope: number,
                change: RowChange::Found { status, msg_id: None, channel },
            }
        };
        let events = rejected.iter().map(event).collect();
        self.context.ledger.update_rows(self.options.lease, RowUpdate::Events(events)).await
    }

    fn no_answer_reply(&self, envelope: &Envelope) -> GatewayReply {
        let reason = format!("no answer within {} s", self.options.timeout.as_secs_f64());
        let doubt = OperationOutcome::InDoubt { reason: reason.as_str().into() };
        GatewayReply::for_all(envelope.operations().len(), &doubt, Signal::Broken(reason))
    }
}

/// Logs only counts from a reply, without texts, phone numbers or keys.
fn log_reply(reply: &GatewayReply, began: Instant) {
    let count =
        |is_counted: fn(&OperationOutcome) -> bool| reply.outcomes.iter().filter(|outcome| is_counted(outcome)).count();
    tracing::info!(
        operations = reply.outcomes.len(),
        taken = count(|outcome| matches!(outcome, OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. })),
        rejected = count(|outcome| matches!(outcome, OperationOutcome::Rejected { .. })),
        not_sent = count(|outcome| matches!(outcome, OperationOutcome::NotSent { .. })),
        in_doubt = count(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. })),
        ms = elapsed_millis(began),
        "answered"
    );
}

fn elapsed_millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The reply to an envelope that never left.
fn withdrawn_reply(envelope: &Envelope) -> GatewayReply {
    let reason = "withdrawn before it was sent".into();
    GatewayReply::for_all(envelope.operations().len(), &OperationOutcome::NotSent { reason }, Signal::Go)
}

/// The wait for an answer after which it is reported as slow.
const SLOW_AFTER: Duration = Duration::from_secs(10);

/// Reports slow answers to a run. One report covers all envelopes that wait at the same time.
pub(super) struct SlowAnswers {
    /// The maximum wait for an answer.
    at_most: Duration,
    /// Receives the reports.
    observer: DeliveryObserver,
    /// Whether a slow answer was announced, and no answer has come in time since.
    is_announced: AtomicBool,
}

impl SlowAnswers {
    pub(super) fn new(at_most: Duration, observer: DeliveryObserver) -> Self {
        Self { at_most, observer, is_announced: AtomicBool::new(false) }
    }

    /// Waits for an answer, and announces a long wait.
    pub(super) async fn wait_for<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => {
                self.is_announced.store(false, Ordering::Relaxed);
                return answer;
            }
            () = tokio::time::sleep(SLOW_AFTER), if self.at_most > SLOW_AFTER => {}
        }
        if !self.is_announced.swap(true, Ordering::Relaxed) {
            (self.observer)(DeliveryEvent::Slow { waited: SLOW_AFTER, at_most: self.at_most });
        }
        answer.await
    }
}

/// The minimum time limit of a step: waiting for a ledger that another process holds takes up to a minute.
const MIN_PATIENCE: Duration = Duration::from_secs(90);
/// The interval of the watchdog's checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A step of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// The envelope's intent is being recorded.
    Intent,
    /// The envelope waits for its slot in the account's rate, which can take arbitrarily long.
    Slot,
    /// The envelope was sent and has no answer yet.
    Answer,
    /// The envelope's outcome is being recorded.
    Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WatchedEnvelope {
    /// An envelope without a number yet, by the order of registration.
    New(u32),
    /// The envelope of this number.
    Envelope(u32),
}

/// Detects an envelope that stays in one step for too long.
pub(super) struct Watchdog {
    /// The maximum time of a step: three times the request's timeout, but at least [`MIN_PATIENCE`].
    patience: Duration,
    state: Mutex<WatchState>,
}

/// The state of the watchdog. Only time in which the process is awake counts: after a suspension, the clock is far
/// ahead and every answer seems late.
struct WatchState {
    awake: Duration,
    checked_at: Instant,
    /// The step of each envelope in flight, and the awake time when the step began.
    steps: BTreeMap<WatchedEnvelope, (WaitStep, Duration)>,
    /// The number of registered envelopes.
    registered_count: u32,
}

impl WatchState {
    /// Advances and returns the time for which the process has been awake. A gap since the last check counts as at most
    /// two check intervals.
    fn advance_clock(&mut self) -> Duration {
        let now = Instant::now();
        self.awake += (now - self.checked_at).min(2 * CHECK_INTERVAL);
        self.checked_at = now;
        self.awake
    }
}

impl Watchdog {
    /// A watchdog for requests with this timeout.
    pub(super) fn new(timeout: Duration) -> Self {
        let (awake, checked_at) = (Duration::ZERO, Instant::now());
        let state = WatchState { awake, checked_at, steps: BTreeMap::new(), registered_count: 0 };
        Self { patience: timeout.saturating_mul(3).max(MIN_PATIENCE), state: Mutex::new(state) }
    }

    /// Registers an envelope whose intent is being recorded; recording the intent gives the envelope a number.
    pub(super) fn register(&self) -> WatchedEnvelope {
        let new = {
            let mut state = self.state();
            state.registered_count += 1;
            WatchedEnvelope::New(state.registered_count)
        };
        self.enter_step(new, WaitStep::Intent);
        new
    }

    /// Records that an envelope enters a step.
    pub(super) fn enter_step(&self, envelope: WatchedEnvelope, step: WaitStep) {
        let mut state = self.state();
        let now = state.advance_clock();
        state.steps.insert(envelope, (step, now));
    }

    /// Removes an envelope that is no longer in flight.
    pub(super) fn remove(&self, envelope: WatchedEnvelope) {
        self.state().steps.remove(&envelope);
    }

    /// Waits until an envelope has been in one step for too long. Returns a description of all waiting envelopes.
    pub(super) async fn wait_until_overdue(&self) -> String {
        loop {
            if let Some(description) = self.describe_overdue() {
                return description;
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// A description of the waiting envelopes, if one is overdue.
    fn describe_overdue(&self) -> Option<String> {
        let mut state = self.state();
        let now = state.advance_clock();
        let is_overdue =
            |(step, began): &(WaitStep, Duration)| *step != WaitStep::Slot && now - *began >= self.patience;
        state.steps.values().any(is_overdue).then(|| {
            let waiting = state.steps.iter();
            let waiting = waiting
                .map(|(envelope, (step, began))| format!("{envelope} {step} for {} s", (now - *began).as_secs()));
            format!("sending is stuck: {}", waiting.collect::<Vec<_>>().join(", "))
        })
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for WatchedEnvelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WatchedEnvelope::New(_) => f.write_str("a request"),
            WatchedEnvelope::Envelope(number) => write!(f, "request {number}"),
        }
    }
}

impl fmt::Display for WaitStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitStep::Intent => "has been waiting to be recorded in the ledger",
            WaitStep::Slot => "has been waiting for the rate limit",
            WaitStep::Answer => "has been waiting for its response",
            WaitStep::Outcome => "has been waiting for its outcome to be recorded",
        })
    }
}

#[cfg(test)]
mod slow_answers_tests {
    use std::sync::{Arc, Mutex};

    use tokio::time::{Instant, sleep};

    use super::*;

    /// The seconds from the start at which slow answers are announced. `answers` are the seconds that the answers take.
    async fn announcement_times(at_most: u64, answers: &[u64]) -> Vec<u64> {
        let (began, announced) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let times = Arc::clone(&announced);
        let observer: DeliveryObserver = Arc::new(move |event| {
            let DeliveryEvent::Slow { waited, at_most: reported } = event else { panic!("unexpected event") };
            assert_eq!((waited, reported), (SLOW_AFTER, Duration::from_secs(at_most)));
            times.lock().unwrap().push(began.elapsed().as_secs());
        });
        let slow = SlowAnswers::new(Duration::from_secs(at_most), observer);
        for &seconds in answers {
            slow.wait_for(sleep(Duration::from_secs(seconds))).await;
        }
        assert_eq!(began.elapsed().as_secs(), answers.iter().sum::<u64>(), "only the answers take time");
        let announced = announced.lock().unwrap();
        announced.clone()
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_in_a_row_are_announced_once() {
        assert_eq!(announcement_times(30, &[9, 9]).await, [0_u64; 0]);
        assert_eq!(announcement_times(30, &[12]).await, [10]);
        assert_eq!(announcement_times(30, &[12, 25, 11]).await, [10]);
        assert_eq!(announcement_times(30, &[12, 1, 25]).await, [10, 23]);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_with_a_short_timeout_are_not_announced() {
        assert_eq!(announcement_times(10, &[10, 10]).await, [0_u64; 0]);
    }
}

#[cfg(test)]
mod watchdog_tests {
    use super::*;

    /// The seconds until an envelope is overdue, and the description of the waiting envelopes. `None` if nothing is
    /// overdue within a day.
    async fn measure_overdue(watchdog: &Watchdog) -> Option<(u64, String)> {
        let start = Instant::now();
        let overdue = tokio::time::timeout(Duration::from_secs(86_400), watchdog.wait_until_overdue()).await.ok()?;
        Some((start.elapsed().as_secs(), overdue))
    }

    #[tokio::test(start_paused = true)]
    async fn overdue_envelope_is_named_with_its_step() {
        for (timeout, patience) in [(1, 90), (30, 90), (60, 180)] {
            for step in [WaitStep::Intent, WaitStep::Answer, WaitStep::Outcome] {
                let watchdog = Watchdog::new(Duration::from_secs(timeout));
                watchdog.enter_step(WatchedEnvelope::Envelope(7), step);
                let (seconds, overdue) = measure_overdue(&watchdog).await.expect("it is overdue");
                assert_eq!(seconds, patience);
                assert!(overdue.contains(&format!("request 7 {step} for {patience} s")), "{overdue}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progressing_or_rate_limited_envelope_is_never_overdue() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        let new = watchdog.register();
        watchdog.remove(new);
        watchdog.enter_step(WatchedEnvelope::Envelope(1), WaitStep::Slot);
        watchdog.enter_step(WatchedEnvelope::Envelope(2), WaitStep::Outcome);
        watchdog.remove(WatchedEnvelope::Envelope(2));
        assert_eq!(measure_overdue(&watchdog).await, None);
        for step in [WaitStep::Intent, WaitStep::Answer, WaitStep::Outcome] {
            watchdog.enter_step(WatchedEnvelope::Envelope(3), step);
            let result = tokio::time::timeout(Duration::from_secs(89), watchdog.wait_until_overdue()).await;
            assert!(result.is_err(), "each step has its own time");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn watchdog_does_not_count_suspended_time() {
        let watchdog = Watchdog::new(Duration::from_secs(30));
        watchdog.enter_step(WatchedEnvelope::Envelope(1), WaitStep::Answer);
        for _ in 0..3 {
            let result = tokio::time::timeout(Duration::from_secs(20), watchdog.wait_until_overdue()).await;
            assert!(result.is_err(), "awake for 20 s");
            tokio::time::advance(Duration::from_secs(3_600)).await;
        }
        assert!(measure_overdue(&watchdog).await.is_some(), "the envelope is still watched");
    }
}
