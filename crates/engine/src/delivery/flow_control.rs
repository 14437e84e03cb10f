//! Flow control of a run: warm-up, bounds, pauses and stops decide whether and how the next envelope is sent. This
//! module does no I/O.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::breaker::Breaker;
use super::retry_policy::{
    ResendBatch, RetryMoment, RetryPause, RetryPolicy, restore_doubt, split_into_resend_batches,
};
use super::sending_hours::format_with_zone;
use super::tally::{Stop, StopKind, hide_numbers};
use super::{AfterWait, SendOptions};
use campaign_core::domain::{MessageId, OperationOutcome, Row, format_count};
use campaign_gateway::{Envelope, GatewayReply, Signal};
use campaign_ledger::Bound;

/// A follow-up to a recorded answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    /// Warn the user.
    Warn(String),
    /// Recall waiting envelopes and announce the pause: a waiting intent would be in doubt after a crash.
    Pause {
        /// The reason in the gateway's signal, such as `HTTP 429`.
        reason: String,
        /// The length of the pause.
        time: Duration,
        /// The kind of envelope that is sent after the pause.
        next: AfterWait,
    },
    /// Halve the rate. Contains the length of the pause that the gateway asked for, if any.
    SlowDown(Option<Duration>),
    /// Ask for the status of queued messages before sending more.
    AskStatus {
        /// The messages.
        queued: Vec<QueuedMessage>,
        /// The deadline, measured from the start.
        until: Duration,
    },
    /// Resend these operations.
    Resend(ResendBatch),
    /// Begin no further envelope.
    Stop(Halt),
}

/// A recorded stop: waiting envelopes are recalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    pub(super) reason: String,
    /// Whether this is the first stop.
    pub(super) is_first: bool,
}

/// A message that the gateway queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuedMessage {
    pub(super) row: Row,
    pub(super) id: MessageId,
}

/// Flow control of a run: when and how large the next envelope is, and why the run stops. This type does no I/O.
#[derive(Debug)]
pub(super) struct FlowControl {
    options: Arc<SendOptions>,
    breaker: Breaker,
    warm_up: WarmUp,
    retries: RetryPolicy,
    paused_until: Option<Duration>,
    /// Whether a bound is near. Then envelopes are sent one at a time, because a rejection makes room for the next
    /// envelope.
    is_bounded: bool,
    /// The last announced wait.
    announced_wait: Option<Timestamp>,
    /// The time at which inquiries about the first messages end, measured from the start.
    ask_deadline: Option<Duration>,
    stop: Option<Stop>,
}

impl FlowControl {
    pub(super) fn new(options: Arc<SendOptions>) -> Self {
        let largest = options.batch.min(options.rate.map_or(usize::MAX, |rate| (rate as usize).max(1)));
        Self {
            breaker: Breaker::new(options.limits.clone(), options.proven),
            warm_up: WarmUp::new(largest),
            retries: RetryPolicy::new(options.limits.unreachable, options.is_attended),
            options,
            paused_until: None,
            is_bounded: false,
            announced_wait: None,
            ask_deadline: None,
            stop: None,
        }
    }

    /// Whether another envelope may begin while `in_flight` envelopes are in flight and `settling` envelopes are being
    /// recorded.
    pub(super) fn may_begin(&self, in_flight: usize, settling: usize) -> bool {
        // After an outage, a single envelope probes the gateway, as at the start.
        let must_be_alone = self.warm_up.is_warming_up() || self.retries.has_outage() || self.is_bounded;
        let limit = self.options.in_flight;
        let has_capacity =
            if must_be_alone { in_flight + settling == 0 } else { in_flight < limit && settling <= limit };
        self.stop.is_none() && !self.is_paused() && has_capacity
    }

    /// The maximum number of operations in the next envelope.
    pub(super) fn next_size(&self) -> usize {
        self.warm_up.batch_size()
    }

    /// Whether sending is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }

    /// Ends the pause if it is over at `now`.
    pub(super) fn expire_pause(&mut self, now: Duration) {
        self.paused_until = self.paused_until.filter(|until| *until > now);
    }

    /// The recorded stop, if there is one.
    pub(super) fn recorded_stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    /// Records a stop. The most severe stop is kept; of equally severe stops, the first.
    pub(super) fn record_stop(&mut self, stop: Stop) -> Halt {
        let (reason, is_first) = (stop.reason.clone(), self.stop.is_none());
        if self.stop.as_ref().is_none_or(|known| stop.kind.severity() > known.kind.severity()) {
            self.stop = Some(stop);
        }
        Halt { reason, is_first }
    }

    /// Applies a bound that allows only the first `fit_count` operations of an envelope. `is_alone` means that no other
    /// envelope is in flight, so a rejection cannot make room.
    pub(super) fn apply_bound(
        &mut self,
        fit_count: usize,
        is_alone: bool,
        bound: &Bound,
        now: Duration,
    ) -> BoundEffect {
        self.is_bounded = true;
        if fit_count > 0 || !is_alone {
            return BoundEffect::Continue;
        }
        match bound {
            Bound::Day { until, wait, .. } if self.options.waits_at_bounds => {
                // On the new day, several envelopes can be in flight again.
                self.is_bounded = false;
                self.paused_until = Some(now + (*wait).min(RECHECK_INTERVAL));
                match self.announced_wait.replace(until.timestamp()) == Some(until.timestamp()) {
                    true => BoundEffect::Continue,
                    false => BoundEffect::Wait { reason: describe_bound(bound), time: *wait },
                }
            }
            bound => BoundEffect::Stop(self.record_stop(stop_for_exhausted_bound(bound))),
        }
    }

    /// Records an answer before it is stored, so that no envelope begins after an answer that stops the run. Puts
    /// rejected resends in `reply` back in doubt.
    pub(super) fn observe_answer(
        &mut self,
        envelope: &Envelope,
        is_piece: bool,
        reply: &mut GatewayReply,
    ) -> Option<Halt> {
        let is_warming_up = self.warm_up.is_warming_up() && !is_piece;
        let stop = self.breaker.observe(&hide_numbers(envelope, reply), is_warming_up);
        restore_doubt(&self.options.repeated, envelope, reply);
        stop.map(|stop| self.record_stop(stop))
    }

    /// Plans the follow-ups to a stored answer, in order.
    pub(super) fn plan_follow_ups(
        &mut self,
        envelope: Envelope,
        is_piece: bool,
        reply: &GatewayReply,
        moment: RetryMoment,
    ) -> Vec<FollowUp> {
        // An operator who is waiting sees the answer anyway, so no warning is needed.
        let warning = warning_for(reply).filter(|_| !self.options.is_attended);
        let mut steps: Vec<FollowUp> = warning.map(FollowUp::Warn).into_iter().collect();
        let inquiry = self.advance_warm_up(&envelope, is_piece, reply, moment.at);
        // Operations are put back before a pause is announced.
        steps.extend(split_into_resend_batches(envelope, is_piece, reply).into_iter().map(FollowUp::Resend));
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
        steps.extend(inquiry);
        steps
    }

    /// Records that `rejected` of the first messages were rejected after being queued; `inquiries` is the number of
    /// messages that the gateway was asked about.
    pub(super) fn observe_late_rejections(&mut self, rejected: usize, inquiries: usize) -> Option<Halt> {
        let stop = self.breaker.observe_late_rejections(rejected, inquiries);
        if (rejected, inquiries) == (1, 1) && self.breaker.is_unproven() {
            self.warm_up.return_to_singles();
        }
        stop.map(|stop| self.record_stop(stop))
    }

    /// Records that receipts report `rejected` messages as rejected, although the gateway had accepted or queued them.
    pub(super) fn observe_reported_rejections(&mut self, rejected: u64) -> Option<Halt> {
        self.breaker.observe_reported_rejections(rejected).map(|stop| self.record_stop(stop))
    }

    /// Advances the warm-up after a conclusive answer. Returns a status inquiry for queued messages, with one deadline
    /// for all first messages.
    fn advance_warm_up(
        &mut self,
        envelope: &Envelope,
        is_piece: bool,
        reply: &GatewayReply,
        now: Duration,
    ) -> Option<FollowUp> {
        if !self.warm_up.is_warming_up() || is_piece || !reply.has_proof() {
            return None;
        }
        let is_rejected = reply.outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::Rejected { .. }));
        if is_rejected && self.breaker.is_unproven() {
            self.warm_up.allow_single()
        } else {
            self.warm_up.next_step()
        }
        let pairs = envelope.operations().iter().zip(&reply.outcomes);
        let queued = pairs.filter(|(_, outcome)| matches!(outcome, OperationOutcome::Queued { .. }));
        let queued: Vec<_> =
            queued.map(|(operation, _)| QueuedMessage { row: operation.row, id: operation.id }).collect();
        if queued.is_empty() || self.stop.is_some() || self.options.first_messages_timeout.is_zero() {
            return None;
        }
        let until = *self.ask_deadline.get_or_insert(now + self.options.first_messages_timeout);
        Some(FollowUp::AskStatus { queued, until })
    }
}

/// The warning about an answer that the user must see, if there is one.
fn warning_for(reply: &GatewayReply) -> Option<String> {
    match &reply.signal {
        Signal::Warn(text) | Signal::Broken(text) | Signal::Strange(text) => Some(text.clone()),
        Signal::Slow { reason, .. } if reply.is_unsent() => {
            Some(format!("the gateway asked campaign to slow down ({reason}); the rate has been halved"))
        }
        Signal::Slow { reason, .. } => Some(format!(
            "the gateway asked campaign to slow down ({reason}); the rate has been halved; the messages in this request are \
             in doubt and will not be retried, because the response does not prove that none were sent"
        )),
        Signal::Go | Signal::Unreachable(_) | Signal::Split(_) | Signal::Stop(..) => None,
    }
}

/// The maximum time between checks of whether a message may be sent: the clock can change, and the computer can sleep.
pub(super) const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The effect of a bound that an envelope exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BoundEffect {
    /// Send the operations within the bound, or wait for envelopes in flight.
    Continue,
    /// Pause sending.
    Wait {
        /// The reason from [`describe_bound`], which includes the time when sending resumes.
        reason: String,
        /// The length of the pause.
        time: Duration,
    },
    /// Begin no further envelope.
    Stop(Halt),
}

/// The stop for an exhausted bound.
pub(super) fn stop_for_exhausted_bound(bound: &Bound) -> Stop {
    let kind = match bound {
        Bound::Recipients { .. } | Bound::Cost { .. } => StopKind::Budget,
        Bound::Day { .. } => StopKind::Window,
    };
    Stop::new(kind, describe_bound(bound))
}

/// Describes why a bound allows no more messages.
pub(super) fn describe_bound(bound: &Bound) -> String {
    match bound {
        Bound::Recipients { limit } => {
            format!("this edition has reached its `limits.recipients` of {limit}")
        }
        Bound::Cost { limit, used } => {
            format!("this edition has used {used} of its `limits.cost` of {limit}; the next message would exceed it")
        }
        Bound::Day { limit, until, .. } => {
            let (messages, time) = (format_count(*limit, "message"), format_with_zone(until));
            format!("`delivery.per_day` allows only {messages} today; sending resumes at {time}")
        }
    }
}

/// The numbers of operations in the warm-up envelopes.
const STEPS: [usize; 4] = [1, 5, 20, 50];

/// The maximum number of further single operations after the first one is rejected.
const MAX_SINGLES: usize = 3;

/// The warm-up of a run: envelopes grow from one operation to the batch size.
#[derive(Debug)]
pub(super) struct WarmUp {
    largest: usize,
    step: usize,
    /// The number of single operations that can still follow a rejected single operation.
    singles_left: usize,
}

impl WarmUp {
    /// A warm-up that ends with envelopes of `largest` operations.
    pub(super) fn new(largest: usize) -> Self {
        Self { largest: largest.max(1), step: 0, singles_left: MAX_SINGLES }
    }

    /// The maximum number of operations in the next envelope.
    pub(super) fn batch_size(&self) -> usize {
        STEPS.get(self.step).map_or(self.largest, |&size| size.min(self.largest))
    }

    /// Whether the run is still warming up: the next envelope waits for the answer to the previous one.
    pub(super) fn is_warming_up(&self) -> bool {
        self.step < STEPS.len()
    }

    /// Allows another single operation after a rejected operation, or takes the next step if enough single operations
    /// were rejected.
    pub(super) fn allow_single(&mut self) {
        if self.step > 0 || !self.return_to_singles() {
            self.next_step();
        }
    }

    /// Returns to single operations after a rejection, if another single operation is allowed. Returns whether it is
    /// allowed.
    pub(super) fn return_to_singles(&mut self) -> bool {
        let is_allowed = self.singles_left > 0;
        if is_allowed {
            self.singles_left -= 1;
            self.step = 0;
        }
        is_allowed
    }

    /// Takes the next step after an answer, skipping steps that would not enlarge the envelopes.
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
mod tests {
    use proptest::prelude::*;
    use roaring::RoaringBitmap;

    use super::*;
    use crate::delivery::fixtures::{envelope, outcome};
    use crate::delivery::tally::StopKind;
    use crate::delivery::{BreakerLimits, RunOptOuts};
    use campaign_core::domain::Row;
    use campaign_gateway::StopCause;
    use campaign_ledger::{Allowance, Epoch, Lease, RowSpan, RunId};

    fn options() -> SendOptions {
        SendOptions {
            lease: Lease { run: RunId(1), rows: RowSpan { first: Row::FIRST, last: Row::FIRST }, epoch: Epoch(1) },
            repeated: RoaringBitmap::new(),
            rate: None,
            bounds: None,
            waits_at_bounds: true,
            allowance: Allowance::new("account", None),
            batch: 100,
            in_flight: 2,
            timeout: Duration::from_secs(30),
            limits: BreakerLimits {
                doubtful_envelopes: 3,
                same_error_in_a_row: 50,
                rejected: 0.2,
                opted_out: None,
                unreachable: Duration::from_secs(1_800),
                keep_going: false,
            },
            proven: false,
            first_messages_timeout: Duration::from_secs(10),
            sharing: None,
            opt_outs: Arc::new(RunOptOuts::without_errors("sale@1".to_owned())),
            is_attended: false,
        }
    }

    fn at_second(second: u64) -> RetryMoment {
        RetryMoment { at: Duration::from_secs(second), chance: 1.0 }
    }

    /// Applies a reply to an envelope and returns all follow-ups.
    fn apply_reply(control: &mut FlowControl, reply: &GatewayReply, moment: RetryMoment) -> Vec<FollowUp> {
        let sent = envelope(0..u32::try_from(reply.outcomes.len()).unwrap());
        let mut reply = reply.clone();
        let early = control.observe_answer(&sent, false, &mut reply).map(FollowUp::Stop);
        early.into_iter().chain(control.plan_follow_ups(sent, false, &reply, moment)).collect()
    }

    /// Flow control after warm-up.
    fn warmed_up_control(options: SendOptions) -> FlowControl {
        let mut control = FlowControl::new(options.into());
        while control.warm_up.is_warming_up() {
            apply_reply(&mut control, &GatewayReply::for_all(1, &outcome(0), Signal::Go), at_second(0));
        }
        control
    }

    fn all_signals() -> Vec<Signal> {
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
    fn each_gateway_answer_triggers_the_expected_follow_ups() {
        let warn = |text: &str| FollowUp::Warn(text.to_owned());
        let slow_down = || warn("the gateway asked campaign to slow down (HTTP 429); the rate has been halved");
        let in_doubt = || {
            warn(
                "the gateway asked campaign to slow down (HTTP 429); the rate has been halved; the messages in this request are \
                 in doubt and will not be retried, because the response does not prove that none were sent",
            )
        };
        let pause = |reason: &str, seconds, next| {
            let time = Duration::from_secs(seconds);
            FollowUp::Pause { reason: reason.into(), time, next }
        };
        let one_in_doubt = AfterWait::Next { in_doubt: 1 };
        let again = |is_piece| FollowUp::Resend(ResendBatch { operations: envelope(0..1).into_operations(), is_piece });
        let stop = |reason: &str| FollowUp::Stop(Halt { reason: reason.into(), is_first: true });
        let seven = Duration::from_secs(7);
        // The index of the signal in `all_signals`, the argument of `outcome`, and the expected follow-ups.
        let table: [(usize, usize, Vec<FollowUp>); 12] = [
            (0, 0, vec![]),
            (1, 0, vec![warn("odd")]),
            (1, 4, vec![warn("odd")]),
            (2, 3, vec![again(false), pause("refused", 1, AfterWait::Retry)]),
            (3, 4, vec![warn("reset")]),
            (4, 4, vec![warn("HTTP 502")]),
            (5, 4, vec![in_doubt(), pause("HTTP 429", 1, one_in_doubt), FollowUp::SlowDown(None)]),
            (6, 4, vec![in_doubt(), pause("HTTP 429", 7, one_in_doubt), FollowUp::SlowDown(Some(seven))]),
            (
                6,
                3,
                vec![
                    slow_down(),
                    again(false),
                    pause("HTTP 429", 7, AfterWait::Retry),
                    FollowUp::SlowDown(Some(seven)),
                ],
            ),
            (7, 3, vec![again(true)]),
            (8, 3, vec![stop("Access denied"), again(false)]),
            (0, 2, vec![]),
        ];
        for (signal, kind, expected) in table {
            let signal = all_signals().swap_remove(signal);
            let follow_ups = apply_reply(
                &mut warmed_up_control(options()),
                &GatewayReply::for_all(1, &outcome(kind), signal.clone()),
                at_second(9),
            );
            assert_eq!(follow_ups, expected, "{signal:?} {:?}", outcome(kind));
        }
    }

    #[test]
    fn attended_run_gets_no_warnings_for_any_answer() {
        let mut control = FlowControl::new(SendOptions { is_attended: true, ..options() }.into());
        for signal in all_signals() {
            let steps = apply_reply(&mut control, &GatewayReply::for_all(1, &outcome(4), signal), at_second(1));
            assert!(!steps.iter().any(|step| matches!(step, FollowUp::Warn(_))), "{steps:?}");
        }
    }

    #[test]
    fn queued_first_messages_share_one_deadline() {
        let queued = GatewayReply::for_all(1, &outcome(1), Signal::Go);
        let until = |steps: &[FollowUp]| match steps {
            [FollowUp::AskStatus { until, .. }] => Some(until.as_secs()),
            _ => None,
        };
        let mut control = FlowControl::new(options().into());
        assert_eq!(until(&apply_reply(&mut control, &queued, at_second(5))), Some(15));
        assert_eq!(until(&apply_reply(&mut control, &queued, at_second(9))), Some(15));
        control.record_stop(Stop::new(StopKind::StopRequested, "asked to stop"));
        assert_eq!(apply_reply(&mut control, &queued, at_second(9)), [], "a stopping run sends no more inquiries");
        let rehearsal = SendOptions { first_messages_timeout: Duration::ZERO, ..options() };
        assert_eq!(apply_reply(&mut FlowControl::new(rehearsal.into()), &queued, at_second(5)), []);
        assert_eq!(
            apply_reply(&mut warmed_up_control(options()), &queued, at_second(5)),
            [],
            "only the first messages"
        );
    }

    #[test]
    fn messages_are_sent_one_by_one_after_a_rejected_first_message() {
        let rejected =
            |text: &str| GatewayReply::for_all(1, &OperationOutcome::Rejected { error: text.into() }, Signal::Go);
        let mut control = FlowControl::new(options().into());
        for text in ["No route", "No route", "No route"] {
            assert_eq!(apply_reply(&mut control, &rejected(text), at_second(1)), []);
            assert_eq!((control.next_size(), control.recorded_stop()), (1, None));
        }
        let mut accepted = FlowControl::new(options().into());
        apply_reply(&mut accepted, &rejected("No route"), at_second(1));
        apply_reply(&mut accepted, &GatewayReply::for_all(1, &outcome(0), Signal::Go), at_second(2));
        assert_eq!(accepted.next_size(), 5);
        assert!(matches!(apply_reply(&mut control, &rejected("No route"), at_second(2))[..], [FollowUp::Stop(_)]));
        let mut proven = FlowControl::new(SendOptions { proven: true, ..options() }.into());
        apply_reply(&mut proven, &rejected("No route"), at_second(1));
        assert_eq!((proven.next_size(), proven.recorded_stop()), (5, None));
        let mut queued = FlowControl::new(options().into());
        for _ in 0..3 {
            apply_reply(&mut queued, &GatewayReply::for_all(1, &outcome(1), Signal::Go), at_second(1));
            assert_eq!((queued.observe_late_rejections(1, 1), queued.next_size()), (None, 1));
        }
        apply_reply(&mut queued, &GatewayReply::for_all(1, &outcome(1), Signal::Go), at_second(1));
        assert!(queued.observe_late_rejections(1, 1).is_some());
    }

    #[test]
    fn most_severe_stop_reason_wins_and_ties_keep_the_first() {
        let mut control = FlowControl::new(options().into());
        for (kind, reason, is_first, expected) in [
            (StopKind::StopRequested, "one", true, "one"),
            (StopKind::Inconsistent, "two", false, "one"),
            (StopKind::Ledger, "three", false, "three"),
            (StopKind::Interrupted(2), "four", false, "three"),
        ] {
            assert_eq!(control.record_stop(Stop::new(kind, reason)), Halt { reason: reason.into(), is_first });
            assert_eq!(control.recorded_stop().map(|stop| stop.reason.as_str()), Some(expected));
        }
    }

    #[test]
    fn one_envelope_probes_the_gateway_after_an_outage() {
        let mut control = warmed_up_control(options());
        assert!(control.may_begin(1, 2) && !control.may_begin(2, 0) && !control.may_begin(1, 3));
        apply_reply(
            &mut control,
            &GatewayReply::for_all(1, &outcome(3), Signal::Unreachable("refused".into())),
            at_second(5),
        );
        assert!(!control.may_begin(0, 0), "it pauses");
        control.expire_pause(Duration::from_secs(6));
        assert!(control.may_begin(0, 0) && !control.may_begin(1, 0) && !control.may_begin(0, 1));
        apply_reply(&mut control, &GatewayReply::for_all(1, &outcome(0), Signal::Go), at_second(6));
        assert!(control.may_begin(1, 2));
    }

    proptest! {
        #[test]
        fn stops_are_final_and_envelope_sizes_never_shrink(
            replies in prop::collection::vec((0..9_usize, 0..5_usize, 1..8_usize, 0..120_u64, 0.0..1.0_f64), 1..60),
        ) {
            let mut control = FlowControl::new(options().into());
            let mut now = Duration::ZERO;
            for (signal, kind, count, seconds, chance) in replies {
                let (size, stopped) = (control.next_size(), control.recorded_stop().cloned());
                now += Duration::from_secs(seconds);
                control.expire_pause(now);
                let reply = GatewayReply::for_all(count, &outcome(kind), all_signals().swap_remove(signal));
                let steps = apply_reply(&mut control, &reply, RetryMoment { at: now, chance });
                prop_assert!(size <= control.next_size() && control.next_size() <= 100);
                prop_assert!(size == control.next_size() || reply.has_proof());
                prop_assert!(stopped.is_none() || (control.recorded_stop().is_some() && !control.may_begin(0, 0)));
                for step in steps {
                    match step {
                        FollowUp::Pause { time, .. } => {
                            prop_assert!(!control.may_begin(0, 0));
                            control.expire_pause((now + time).saturating_sub(Duration::from_nanos(1)));
                            prop_assert!(control.is_paused() || time.is_zero());
                        }
                        FollowUp::Stop(Halt { is_first, .. }) => {
                            prop_assert!(control.recorded_stop().is_some() && !control.may_begin(0, 0));
                            prop_assert!(!is_first || stopped.is_none());
                        }
                        FollowUp::Resend(_) => prop_assert_eq!(kind, 3),
                        FollowUp::AskStatus { queued, until } => {
                            prop_assert!(queued.len() == count && until >= now.min(Duration::from_secs(10)));
                        }
                        FollowUp::Warn(_) | FollowUp::SlowDown(_) => {}
                    }
                }
            }
        }
    }

    #[test]
    fn run_at_a_bound_sends_what_fits_then_waits_or_stops() {
        let until = jiff::civil::date(2026, 11, 24).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        let day = Bound::Day { limit: 5, until, wait: Duration::from_secs(3_600) };
        let second = Duration::from_secs(1);
        let mut control = FlowControl::new(options().into());
        assert_eq!(control.apply_bound(3, true, &day, second), BoundEffect::Continue);
        assert_eq!(
            control.apply_bound(0, false, &day, second),
            BoundEffect::Continue,
            "an envelope in flight may make room"
        );
        assert!(!control.may_begin(1, 0) && control.may_begin(0, 0));
        let BoundEffect::Wait { reason, time } = control.apply_bound(0, true, &day, second) else { panic!("it waits") };
        assert_eq!((time, control.is_paused()), (Duration::from_secs(3_600), true));
        assert!(reason.contains("at 2026-11-24 00:00 (UTC)"), "{reason}");
        // The engine checks the limit again from time to time, but announces the wait only once.
        control.expire_pause(second + RECHECK_INTERVAL);
        assert!(!control.is_paused());
        assert_eq!(control.apply_bound(0, true, &day, Duration::from_secs(61)), BoundEffect::Continue);
        assert!(control.is_paused() && control.recorded_stop().is_none());
        for (options, bound, kind) in [
            (SendOptions { waits_at_bounds: false, ..options() }, day, StopKind::Window),
            (options(), Bound::Recipients { limit: 5 }, StopKind::Budget),
        ] {
            let mut control = FlowControl::new(options.into());
            let BoundEffect::Stop(halt) = control.apply_bound(0, true, &bound, second) else { panic!("it stops") };
            assert_eq!((control.recorded_stop().map(|stop| stop.kind), halt.is_first), (Some(kind), true));
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
    fn rejected_first_operation_allows_three_more_singles() {
        let mut warm_up = WarmUp::new(100);
        let sizes: Vec<usize> = (0..6).map(|_| (warm_up.batch_size(), warm_up.allow_single()).0).collect();
        assert_eq!(sizes, [1, 1, 1, 1, 5, 20]);
        let mut small = WarmUp::new(1);
        (0..3).for_each(|_| small.allow_single());
        assert!(small.is_warming_up());
        small.allow_single();
        assert!(!small.is_warming_up());
    }
}
