//! Circuit breaker: stops a run when the answers show that continuing would do harm. This module does no I/O.

use std::time::Duration;

use super::tally::{Stop, StopKind};
use campaign_core::domain::{OperationOutcome, choose_plural, format_count, format_thousands};
use campaign_gateway::{GatewayReply, Signal, StopCause};

/// The share of rejected operations counts only after this many answers, and the share of opt-outs only after this many
/// sent messages.
const MIN_ANSWERS: u64 = 200;
/// If the gateway has not accepted any message of a run yet, the run stops when this many first messages are rejected
/// with the same text.
const MAX_FIRST_REJECTIONS: u32 = 4;

/// The bounds of a campaign's `stop_after`.
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerLimits {
    /// Consecutive envelopes in doubt.
    pub doubtful_envelopes: u32,
    /// Operations in a row that were rejected with the same text.
    pub same_error_in_a_row: u32,
    /// The share of rejected operations, 0 to 1.
    pub rejected: f64,
    /// The maximum share of recipients who can opt out because of the run, 0 to 1. `None` for no limit.
    pub opted_out: Option<f64>,
    /// The maximum time that the gateway can be unreachable.
    pub unreachable: Duration,
    /// Whether rejections are only reported (`--keep-going`).
    pub keep_going: bool,
}

impl BreakerLimits {
    /// Returns a stop if too many recipients opted out because of the run. A run that has sent only a few messages is
    /// never stopped for this reason.
    pub(super) fn check_opt_outs(&self, opted_out: u64, sent: u64) -> Option<Stop> {
        let share = self.opted_out?;
        (sent >= MIN_ANSWERS && opted_out > 0 && opted_out as f64 >= share * sent as f64).then(|| {
            let (opted_out, sent) = (format_thousands(opted_out), format_count(sent, "recipient"));
            Stop::new(
                StopKind::Breaker,
                format!(
                    "{opted_out} of {sent} opted out because of this run, reaching the `stop_after.opted_out` limit"
                ),
            )
        })
    }
}

/// The circuit breaker of one start of a run, with its counts.
#[derive(Debug)]
pub(super) struct Breaker {
    limits: BreakerLimits,
    /// The number of replies, except those of an unreachable gateway.
    envelopes: u64,
    /// The number of consecutive envelopes in doubt.
    doubtful: u32,
    /// The error of the last rejection.
    last_error: String,
    /// The number of consecutive rejections with `last_error`.
    same_error_count: u32,
    answers: u64,
    rejected: u64,
    /// Whether the limit for rejected first messages does not apply: the gateway has accepted a message, or all
    /// messages are resends.
    is_proven: bool,
}

impl Breaker {
    /// Creates a breaker. `is_proven` means that the limit for rejected first messages does not apply, because the
    /// gateway has already accepted a message, or because all messages are resends.
    pub(super) fn new(limits: BreakerLimits, is_proven: bool) -> Self {
        Self {
            limits,
            envelopes: 0,
            doubtful: 0,
            last_error: String::new(),
            same_error_count: 0,
            answers: 0,
            rejected: 0,
            is_proven,
        }
    }

    /// Whether rejected first messages can still stop the run.
    pub(super) fn is_unproven(&self) -> bool {
        !self.is_proven && !self.limits.keep_going
    }

    /// Records a reply. Returns a stop if the run must stop.
    pub(super) fn observe(&mut self, reply: &GatewayReply, is_warming_up: bool) -> Option<Stop> {
        let is_first = self.envelopes == 0;
        if !matches!(reply.signal, Signal::Unreachable(_)) {
            self.envelopes += 1;
        }
        self.doubtful = match (reply.is_in_doubt(), &reply.signal) {
            (true, _) => self.doubtful + 1,
            (false, Signal::Unreachable(_)) => self.doubtful,
            (false, _) => 0,
        };
        for outcome in &reply.outcomes {
            match outcome {
                OperationOutcome::Accepted { .. } => self.count_answer(None),
                // A queued message can still be rejected, so it does not end a series of errors.
                OperationOutcome::Queued { .. } => self.answers += 1,
                OperationOutcome::Rejected { error } => self.count_answer(Some(error)),
                OperationOutcome::NotSent { .. } | OperationOutcome::InDoubt { .. } => {}
            }
        }
        self.check_signal(&reply.signal, is_first)
            .or_else(|| self.check_doubt(&reply.signal))
            .or_else(|| self.check_rejections(is_warming_up))
    }

    /// Records that `rejected` queued messages were rejected later; `inquiries` is the number of messages that the
    /// gateway was asked about.
    ///
    /// Returns a stop if a limit is reached.
    pub(super) fn observe_late_rejections(&mut self, rejected: usize, inquiries: usize) -> Option<Stop> {
        const ERROR: &str = "REJECTED after being queued";
        for _ in 0..rejected {
            // Queued messages already count as answered.
            self.answers -= 1;
            self.count_answer(Some(ERROR));
        }
        if self.limits.keep_going {
            return None;
        }
        if rejected == inquiries && self.is_unproven() && self.same_error_count >= MAX_FIRST_REJECTIONS {
            let messages = self.same_error_count;
            let reason = format!("the gateway queued the first {messages} messages, then reported them as `REJECTED`");
            return Some(rejection_stop(&reason));
        }
        self.check_rejection_limits()
    }

    /// Records that receipts report `rejected` messages as rejected, although the gateway had accepted or queued them.
    /// Receipts arrive in any order, so they are not counted as consecutive errors.
    ///
    /// Returns a stop if the share of rejected messages is too high.
    pub(super) fn observe_reported_rejections(&mut self, rejected: u64) -> Option<Stop> {
        self.rejected += rejected;
        if self.limits.keep_going { None } else { self.check_rejection_share() }
    }

    /// Counts an answer that accepts a message, or rejects it with an error.
    fn count_answer(&mut self, rejection: Option<&str>) {
        self.answers += 1;
        match rejection {
            None => {
                self.is_proven = true;
                self.same_error_count = 0;
            }
            Some(error) => {
                self.rejected += 1;
                if self.last_error != error {
                    self.last_error = error.to_owned();
                    self.same_error_count = 0;
                }
                self.same_error_count += 1;
            }
        }
    }

    fn check_signal(&self, signal: &Signal, is_first: bool) -> Option<Stop> {
        match signal {
            Signal::Stop(cause, reason) => {
                let kind = match cause {
                    StopCause::KeyRefused => StopKind::KeyRefused,
                    StopCause::Connection => StopKind::Unreachable,
                    StopCause::EnvelopeRefused => StopKind::Breaker,
                    StopCause::OffContract => StopKind::OffContract,
                    StopCause::FatalError => StopKind::Credit,
                };
                Some(Stop::new(kind, reason.clone()))
            }
            Signal::Strange(reason) if is_first => Some(Stop::new(
                StopKind::OffContract,
                format!("the first response did not come from the gateway: {reason}"),
            )),
            _ => None,
        }
    }

    fn check_doubt(&self, signal: &Signal) -> Option<Stop> {
        let (Signal::Broken(reason) | Signal::Strange(reason) | Signal::Warn(reason) | Signal::Slow { reason, .. }) =
            signal
        else {
            return None;
        };
        (self.doubtful >= self.limits.doubtful_envelopes).then(|| {
            let doubtful = u64::from(self.doubtful);
            let (requests, are) = (format_count(doubtful, "request"), choose_plural(doubtful, "is", "are"));
            Stop::new(StopKind::Breaker, format!("{requests} in a row {are} in doubt; last reason: {reason}"))
        })
    }

    fn check_rejections(&self, is_warming_up: bool) -> Option<Stop> {
        if self.limits.keep_going {
            return None;
        }
        let (error, in_a_row) = (&self.last_error, self.same_error_count);
        if is_warming_up && self.is_unproven() && in_a_row >= MAX_FIRST_REJECTIONS {
            return Some(rejection_stop(&format!(
                "{in_a_row} messages in a row were rejected with `{error}` during the warm-up"
            )));
        }
        self.check_rejection_limits()
    }

    fn check_rejection_limits(&self) -> Option<Stop> {
        let (error, in_a_row) = (&self.last_error, self.same_error_count);
        if in_a_row >= self.limits.same_error_in_a_row {
            let in_a_row = u64::from(in_a_row);
            let (messages, were) = (format_count(in_a_row, "message"), choose_plural(in_a_row, "was", "were"));
            let reason = format!("{messages} in a row {were} rejected with `{error}`");
            return Some(rejection_stop(&reason));
        }
        self.check_rejection_share()
    }

    fn check_rejection_share(&self) -> Option<Stop> {
        let is_too_high = self.answers >= MIN_ANSWERS
            && self.rejected > 0
            && self.rejected as f64 >= self.limits.rejected * self.answers as f64;
        is_too_high.then(|| rejection_stop(&format!("{} of {} messages were rejected", self.rejected, self.answers)))
    }
}

/// A stop that `--keep-going` overrides.
fn rejection_stop(rejections: &str) -> Stop {
    Stop::new(StopKind::Breaker, format!("{rejections}; use `--keep-going` to continue despite rejections"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use campaign_core::domain::GatewayMessageId;

    fn limits() -> BreakerLimits {
        BreakerLimits {
            doubtful_envelopes: 3,
            same_error_in_a_row: 50,
            rejected: 0.2,
            opted_out: None,
            unreachable: Duration::from_secs(1800),
            keep_going: false,
        }
    }

    fn accepted(count: usize) -> GatewayReply {
        let outcome =
            OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(1)), parts: Some(1), answer: None };
        GatewayReply::for_all(count, &outcome, Signal::Go)
    }

    fn rejected(count: usize, error: &str) -> GatewayReply {
        GatewayReply::for_all(count, &OperationOutcome::Rejected { error: error.to_owned() }, Signal::Go)
    }

    fn doubtful(signal: Signal) -> GatewayReply {
        GatewayReply::for_all(1, &OperationOutcome::InDoubt { reason: Arc::from("?") }, signal)
    }

    #[test]
    fn three_consecutive_envelopes_in_doubt_stop_a_run() {
        let mut breaker = Breaker::new(limits(), false);
        let broken = doubtful(Signal::Broken("reset".into()));
        for reply in [&broken, &broken, &accepted(1), &broken, &broken] {
            assert_eq!(breaker.observe(reply, false), None);
        }
        let stop = breaker.observe(&broken, false).unwrap();
        assert_eq!(
            (stop.kind, stop.reason.as_str()),
            (StopKind::Breaker, "3 requests in a row are in doubt; last reason: reset")
        );
    }

    #[test]
    fn strange_answer_stops_the_run_only_if_it_comes_first() {
        let strange = doubtful(Signal::Strange("HTTP 502".into()));
        assert!(Breaker::new(limits(), false).observe(&strange, true).is_some());
        let mut breaker = Breaker::new(limits(), false);
        assert_eq!(breaker.observe(&accepted(1), true), None);
        assert_eq!(breaker.observe(&strange, false), None);
    }

    #[test]
    fn fifty_identical_rejections_in_a_row_stop_the_run() {
        let mut breaker = Breaker::new(limits(), false);
        assert_eq!(breaker.observe(&accepted(1_000), false), None);
        assert_eq!(breaker.observe(&rejected(49, "No route"), false), None);
        assert_eq!(breaker.observe(&rejected(1, "Other"), false), None);
        assert_eq!(breaker.observe(&rejected(49, "No route"), false), None);
        assert!(breaker.observe(&rejected(1, "No route"), false).is_some());
    }

    #[test]
    fn rejection_share_stops_a_run_after_200_answers() {
        let mut breaker = Breaker::new(limits(), false);
        for _ in 0..4 {
            let mut reply = accepted(49);
            reply.outcomes.truncate(34);
            for n in 0..15 {
                reply.outcomes.push(OperationOutcome::Rejected { error: format!("error {}", n % 2) });
            }
            assert_eq!(breaker.observe(&reply, false), None);
        }
        assert!(breaker.observe(&accepted(4), false).is_some(), "60 of 200");
        let mut strict = Breaker::new(BreakerLimits { rejected: 0.0, ..limits() }, false);
        assert!((0..6).all(|_| strict.observe(&accepted(49), false).is_none()), "nothing was rejected");
        let mut one_rejected = accepted(49);
        one_rejected.outcomes[7] = OperationOutcome::Rejected { error: "No route".into() };
        assert!(strict.observe(&one_rejected, false).is_some());
    }

    #[test]
    fn share_of_opt_outs_stops_a_run_after_200_messages() {
        let limits = BreakerLimits { opted_out: Some(0.01), ..limits() };
        for (opted_out, sent, stops) in
            [(2, 199, false), (1, 200, false), (2, 200, true), (0, 5_000, false), (50, 5_000, true)]
        {
            assert_eq!(limits.check_opt_outs(opted_out, sent).is_some(), stops, "{opted_out} of {sent}");
        }
        assert_eq!(BreakerLimits { opted_out: None, ..limits }.check_opt_outs(200, 200), None);
    }

    #[test]
    fn four_identical_first_rejections_stop_an_unproven_run() {
        let rejection = rejected(1, "Error in Alpha-name");
        let stopping_reply = |limits: BreakerLimits, proven| {
            let mut breaker = Breaker::new(limits, proven);
            (1..10).find(|_| breaker.observe(&rejection, true).is_some())
        };
        assert_eq!(stopping_reply(limits(), false), Some(4));
        assert_eq!(stopping_reply(limits(), true), None, "other messages were accepted before");
        assert_eq!(stopping_reply(BreakerLimits { keep_going: true, ..limits() }, false), None);
        let mut proven = Breaker::new(limits(), false);
        assert_eq!(proven.observe(&accepted(1), true), None);
        assert_eq!(proven.observe(&rejected(5, "No route"), true), None, "one was accepted");
        let mut mixed = Breaker::new(limits(), false);
        let texts = ["No route", "Wrong number", "No route", "Wrong number"];
        assert!(texts.iter().all(|text| mixed.observe(&rejected(1, text), true).is_none()), "several texts");
        assert!(mixed.observe(&rejected(5, "No route"), true).is_some());
        assert_eq!(Breaker::new(limits(), false).observe(&rejected(5, "No route"), false), None, "no warm-up");
    }

    #[test]
    fn late_rejections_stop_a_run_without_acceptances() {
        let queued = GatewayReply::for_all(5, &OperationOutcome::Queued { request_id: Arc::from("r") }, Signal::Go);
        let observe = |limits: BreakerLimits, rejected| {
            let mut breaker = Breaker::new(limits, false);
            assert_eq!(breaker.observe(&queued, true), None);
            breaker.observe_late_rejections(rejected, 5)
        };
        assert!(observe(limits(), 5).is_some());
        assert_eq!(observe(limits(), 4), None);
        assert_eq!(observe(BreakerLimits { keep_going: true, ..limits() }, 5), None);
        assert!(observe(BreakerLimits { same_error_in_a_row: 4, ..limits() }, 4).is_some());
        let mut single = Breaker::new(limits(), false);
        let stopping_message = (1..10).find(|_| {
            assert_eq!(
                single.observe(&GatewayReply { outcomes: queued.outcomes[..1].to_vec(), ..queued.clone() }, true),
                None
            );
            single.observe_late_rejections(1, 1).is_some()
        });
        assert_eq!(stopping_message, Some(4));
    }

    #[test]
    fn rejected_key_has_its_own_stop_kind() {
        let stop = Signal::Stop(StopCause::KeyRefused, "Access denied".into());
        let reply = GatewayReply::for_all(1, &OperationOutcome::NotSent { reason: Arc::from("Access denied") }, stop);
        assert_eq!(
            Breaker::new(limits(), false).observe(&reply, true).map(|stop| stop.kind),
            Some(StopKind::KeyRefused)
        );
    }
}
