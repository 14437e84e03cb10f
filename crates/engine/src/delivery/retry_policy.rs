//! Retry policy: which operations are resent, how, when and how often, for runs and single messages. This module does
//! no I/O.
//!
//! Only operations that are proven unsent are resent. Messages in doubt and rejected messages never are.

use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use jiff::SignedDuration;
use roaring::RoaringBitmap;
use rustc_hash::FxHasher;

use super::tally::{Stop, StopKind};
use campaign_core::domain::OperationOutcome;
use campaign_gateway::{EncodedOperation, Envelope, GatewayReply, Signal};
use campaign_ledger::Epoch;

/// The upper bound of the first backoff. The bound doubles with each attempt.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// The maximum upper bound of a backoff.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// The pause if the gateway asks to slow down without a time.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// The time of a retry decision, with the random share of its backoff.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryMoment {
    /// The time since sending began.
    pub(super) at: Duration,
    /// The share of the maximum backoff to wait, from 0 to 1.
    pub(super) chance: f64,
}

/// Operations that are resent together. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResendBatch {
    pub(super) operations: Vec<EncodedOperation>,
    /// Whether the batch is part of an envelope that was split to isolate a bad operation.
    pub(super) is_piece: bool,
}

/// The operations of an envelope that were proven unsent, in batches to resend. If the envelope must be split, there
/// are two batches, each with half of the operations.
pub(super) fn split_into_resend_batches(envelope: Envelope, is_piece: bool, reply: &GatewayReply) -> Vec<ResendBatch> {
    let split = matches!(reply.signal, Signal::Split(_));
    let mut operations: Vec<EncodedOperation> = envelope
        .into_operations()
        .into_iter()
        .zip(&reply.outcomes)
        .filter(|(_, outcome)| matches!(outcome, OperationOutcome::NotSent { .. }))
        .map(|(operation, _)| operation)
        .collect();
    let second = if split && operations.len() > 1 { operations.split_off(operations.len() / 2) } else { Vec::new() };
    let halves = [operations, second].into_iter().filter(|half| !half.is_empty());
    halves.map(|operations| ResendBatch { operations, is_piece: is_piece || split }).collect()
}

/// Puts rejected resends back in doubt, because the rejection says nothing about the earlier attempt.
pub(super) fn restore_doubt(repeated: &RoaringBitmap, envelope: &Envelope, reply: &mut GatewayReply) {
    if repeated.is_empty() {
        return;
    }
    for (operation, outcome) in envelope.operations().iter().zip(&mut reply.outcomes) {
        if let OperationOutcome::Rejected { error } = outcome
            && repeated.contains(operation.row.get())
        {
            let reason = format!("rejected when sent again (`{error}`), but an earlier attempt might have succeeded");
            *outcome = OperationOutcome::InDoubt { reason: reason.into() };
        }
    }
}

/// The earliest time at which the retry policy allows the next envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RetryPause {
    /// The next envelope may begin at once.
    None,
    /// The next envelope may begin after this time.
    For(Duration),
    /// Never: the gateway accepted nothing for too long.
    Forever(Stop),
}

/// Decides when to retry while the gateway accepts nothing, and when to give up.
#[derive(Debug)]
pub(super) struct RetryPolicy {
    /// The maximum duration of an outage before sending stops.
    patience: Duration,
    /// Whether a person waits. Then the patience counts from the start, and no pause is longer than the remaining
    /// patience.
    is_attended: bool,
    outage: Option<Outage>,
}

/// A time in which the gateway accepts nothing.
#[derive(Clone, Copy, Debug)]
struct Outage {
    since: Duration,
    attempts: u32,
}

impl RetryPolicy {
    pub(super) fn new(patience: Duration, is_attended: bool) -> Self {
        Self { patience, is_attended, outage: None }
    }

    /// Whether the last attempt failed completely because the gateway was unreachable or throttling.
    pub(super) fn has_outage(&self) -> bool {
        self.outage.is_some()
    }

    /// Records a reply. Returns the pause before the next envelope.
    pub(super) fn observe_reply(&mut self, reply: &GatewayReply, moment: RetryMoment) -> RetryPause {
        let (reason, pause) = match &reply.signal {
            Signal::Unreachable(reason) => (reason, None),
            Signal::Slow { reason, retry_after } => (reason, Some(retry_after.unwrap_or(DEFAULT_PAUSE))),
            Signal::Go
            | Signal::Warn(_)
            | Signal::Broken(_)
            | Signal::Strange(_)
            | Signal::Split(_)
            | Signal::Stop(..) => {
                self.outage = None;
                return RetryPause::None;
            }
        };
        // A throttled request is retried if no message was sent, but not forever. Otherwise there is only a pause.
        if let Some(pause) = pause.filter(|_| !reply.is_unsent()) {
            self.outage = None;
            return RetryPause::For(pause);
        }
        let start = if self.is_attended { Duration::ZERO } else { moment.at };
        let Outage { since, attempts } = self.outage.unwrap_or(Outage { since: start, attempts: 0 });
        let remaining = self.patience.saturating_sub(moment.at.saturating_sub(since));
        if remaining.is_zero() || (self.is_attended && pause.is_some_and(|pause| pause > remaining)) {
            return RetryPause::Forever(Stop::new(StopKind::Unreachable, self.describe_outage(reason)));
        }
        let attempts = attempts.saturating_add(1);
        self.outage = Some(Outage { since, attempts });
        RetryPause::For(pause.unwrap_or_else(|| backoff_delay(attempts, moment.chance).min(remaining)))
    }

    fn describe_outage(&self, reason: &str) -> String {
        if self.is_attended {
            return reason.to_owned();
        }
        let time = SignedDuration::try_from(self.patience).unwrap_or(SignedDuration::MAX);
        format!("the gateway accepted no requests for {time:#}: {reason}")
    }
}

/// The backoff before attempt `attempt` (from 1): a random share of a bound that doubles from 1 to 60 s.
///
/// `chance` is between 0 and 1. Full jitter keeps many processes from retrying at the same time.
fn backoff_delay(attempt: u32, chance: f64) -> Duration {
    let doubled = MIN_BACKOFF.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
    doubled.min(MAX_BACKOFF).mul_f64(chance.clamp(0.0, 1.0))
}

/// A pseudo-random fraction from 0 to 1, which determines the wait after an envelope.
///
/// It is derived from the epoch, which is drawn at each start, so different processes wait for different times. With
/// the same epoch, the waits can be reproduced exactly.
pub(super) fn random_share(epoch: Epoch, envelope: u32) -> f64 {
    let mut hasher = FxHasher::default();
    (epoch.0, envelope).hash(&mut hasher);
    // The upper bits of this hash are mixed well; 53 of them fill the mantissa of a float.
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::delivery::fixtures::{envelope, outcome};
    use campaign_gateway::StopCause;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn unsent_reply(signal: Signal) -> GatewayReply {
        GatewayReply::for_all(1, &OperationOutcome::NotSent { reason: Arc::from("no") }, signal)
    }

    fn unreachable_reply() -> GatewayReply {
        unsent_reply(Signal::Unreachable("connection refused".into()))
    }

    fn slow_signal(retry_after: Option<u64>) -> Signal {
        Signal::Slow { reason: "HTTP 429".into(), retry_after: retry_after.map(seconds) }
    }

    fn at_second(second: u64) -> RetryMoment {
        RetryMoment { at: seconds(second), chance: 1.0 }
    }

    #[test]
    fn backoff_doubles_up_to_a_minute_with_full_jitter() {
        let bounds: Vec<u64> = (1..=9).map(|attempt| backoff_delay(attempt, 1.0).as_secs()).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff_delay(u32::MAX, 1.0), MAX_BACKOFF);
        assert_eq!(backoff_delay(5, 0.0), Duration::ZERO);
        assert_eq!(backoff_delay(5, 0.5), seconds(8));
    }

    #[test]
    fn random_share_is_spread_evenly_across_envelopes() {
        let chances: Vec<f64> =
            (0..100).flat_map(|owner| (1..=10).map(move |n| random_share(Epoch(owner), n))).collect();
        for tenth in 0..10 {
            let bounds = f64::from(tenth) / 10.0..f64::from(tenth + 1) / 10.0;
            let within = chances.iter().filter(|chance| bounds.contains(chance)).count();
            assert!((50..200).contains(&within), "{within} of 1000 in {bounds:?}");
        }
    }

    #[test]
    fn unreachable_gateway_is_retried_until_patience_runs_out() {
        let mut retries = RetryPolicy::new(seconds(10), false);
        let waits: Vec<RetryPause> =
            [100, 101, 103, 107].map(|second| retries.observe_reply(&unreachable_reply(), at_second(second))).into();
        // The fourth wait would be eight seconds, but only three are left.
        assert_eq!(waits, [1, 2, 4, 3].map(|wait| RetryPause::For(seconds(wait))));
        let RetryPause::Forever(stop) = retries.observe_reply(&unreachable_reply(), at_second(110)) else {
            panic!("the patience is over")
        };
        assert_eq!(
            stop,
            Stop::new(StopKind::Unreachable, "the gateway accepted no requests for 10s: connection refused")
        );
    }

    #[test]
    fn attended_run_waits_no_longer_than_its_patience() {
        let observe =
            |reply: &GatewayReply, second| RetryPolicy::new(seconds(5), true).observe_reply(reply, at_second(second));
        assert_eq!(observe(&unreachable_reply(), 1), RetryPause::For(seconds(1)));
        assert_eq!(observe(&unsent_reply(slow_signal(Some(3))), 1), RetryPause::For(seconds(3)));
        for (reply, second, reason) in [
            (unreachable_reply(), 10, "connection refused"),
            (unsent_reply(slow_signal(Some(5))), 1, "HTTP 429"),
            (unsent_reply(slow_signal(None)), 5, "HTTP 429"),
        ] {
            assert_eq!(observe(&reply, second), RetryPause::Forever(Stop::new(StopKind::Unreachable, reason)));
        }
    }

    #[test]
    fn outage_ends_unless_a_slow_down_proves_nothing_was_sent() {
        let doubt = |signal| GatewayReply::for_all(1, &OperationOutcome::InDoubt { reason: Arc::from("?") }, signal);
        let accepted = OperationOutcome::Accepted { msg_id: None, parts: None, answer: None };
        for (reply, expected, is_out) in [
            (GatewayReply::for_all(1, &accepted, Signal::Go), RetryPause::None, false),
            (doubt(Signal::Broken("reset".into())), RetryPause::None, false),
            (doubt(Signal::Strange("HTTP 502".into())), RetryPause::None, false),
            (doubt(slow_signal(None)), RetryPause::For(DEFAULT_PAUSE), false),
            (doubt(slow_signal(Some(7))), RetryPause::For(seconds(7)), false),
            (unsent_reply(slow_signal(Some(7))), RetryPause::For(seconds(7)), true),
            (unsent_reply(slow_signal(None)), RetryPause::For(DEFAULT_PAUSE), true),
            (unsent_reply(Signal::Split("Operator not supported".into())), RetryPause::None, false),
            (unsent_reply(Signal::Stop(StopCause::KeyRefused, "Access denied".into())), RetryPause::None, false),
        ] {
            let mut retries = RetryPolicy::new(seconds(1_800), false);
            assert_eq!(retries.observe_reply(&unreachable_reply(), at_second(0)), RetryPause::For(seconds(1)));
            assert_eq!(retries.observe_reply(&reply, at_second(1)), expected, "{reply:?}");
            assert_eq!(retries.has_outage(), is_out, "{reply:?}");
        }
    }

    proptest! {
        #[test]
        fn only_operations_proven_unsent_are_resent_and_only_once(
            kinds in prop::collection::vec(0..5_usize, 1..60), split: bool, is_piece: bool,
        ) {
            let outcomes: Vec<OperationOutcome> = kinds.iter().map(|kind| outcome(*kind)).collect();
            let signal = if split { Signal::Split("spoilt".into()) } else { Signal::Go };
            let sent = envelope(0..outcomes.len() as u32);
            let unsent = sent.operations().iter().zip(&outcomes);
            let unsent = unsent.filter(|(_, outcome)| matches!(outcome, OperationOutcome::NotSent { .. }));
            let expected: Vec<EncodedOperation> = unsent.map(|(operation, _)| operation.clone()).collect();
            let batches = split_into_resend_batches(sent, is_piece, &GatewayReply::new(outcomes, signal));
            let max_batches = if split && expected.len() > 1 { 2 } else { 1 };
            prop_assert!(batches.len() <= max_batches);
            prop_assert!(batches.iter().all(|batch| !batch.operations.is_empty() && batch.is_piece == (is_piece || split)));
            let resent: Vec<EncodedOperation> = batches.into_iter().flat_map(|batch| batch.operations).collect();
            prop_assert_eq!(resent, expected);
        }

        #[test]
        fn unreachable_gateway_is_retried_for_exactly_the_time_limit(
            patience in 1..4_000_u64, chances in prop::collection::vec(0.01..1.0_f64, 1..40),
        ) {
            let mut retries = RetryPolicy::new(seconds(patience), false);
            let mut now = Duration::ZERO;
            for chance in chances.into_iter().cycle().take(100_000) {
                match retries.observe_reply(&unreachable_reply(), RetryMoment { at: now, chance }) {
                    RetryPause::For(time) => {
                        prop_assert!(time <= MAX_BACKOFF && now + time <= seconds(patience));
                        now += time;
                    }
                    RetryPause::Forever(_) => {
                        prop_assert_eq!(now, seconds(patience));
                        return Ok(());
                    }
                    RetryPause::None => prop_assert!(false, "it continues at once"),
                }
            }
            prop_assert!(false, "it never gives up");
        }

        #[test]
        fn message_in_doubt_is_never_reported_as_rejected(kinds in prop::collection::vec(0..5_usize, 1..20)) {
            let outcomes: Vec<OperationOutcome> = kinds.iter().map(|kind| outcome(*kind)).collect();
            let sent = envelope(0..outcomes.len() as u32);
            let every_second = sent.operations().iter().step_by(2);
            let repeated: RoaringBitmap = every_second.map(|operation| operation.row.get()).collect();
            let mut reply = GatewayReply::new(outcomes.clone(), Signal::Go);
            restore_doubt(&repeated, &sent, &mut reply);
            for ((operation, reported), restored) in sent.operations().iter().zip(&outcomes).zip(&reply.outcomes) {
                let doubt = repeated.contains(operation.row.get()) && matches!(reported, OperationOutcome::Rejected { .. });
                let is_in_doubt = |outcome: &OperationOutcome| matches!(outcome, OperationOutcome::InDoubt { .. });
                prop_assert_eq!(is_in_doubt(restored), doubt || is_in_doubt(reported));
                prop_assert!(doubt || restored == reported);
            }
        }
    }
}
