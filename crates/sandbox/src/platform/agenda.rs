//! Virtual time of the sandbox, and its event queue: each message advances when its next state is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

use super::{
    ChannelStage, GatewayEmulator, LifecycleState, MessageLifecycle, Phase, SandboxMessage, messages, msg_id_of,
};
use crate::journal::{ChargeReason, JournalLine, JournalLines};
use campaign_core::domain::Amount;

/// The queue of messages by the time of their next state. A message has at most one entry.
#[derive(Debug, Default)]
pub(crate) struct Agenda(BinaryHeap<Reverse<(VirtualTime, u32)>>);

impl Agenda {
    fn add(&mut self, due: VirtualTime, index: u32) {
        self.0.push(Reverse((due, index)));
    }

    fn next_event(&self) -> Option<(VirtualTime, u32)> {
        self.0.peek().map(|Reverse(event)| *event)
    }

    fn take_due(&mut self, now: VirtualTime) -> Option<(VirtualTime, u32)> {
        self.next_event().filter(|(due, _)| *due <= now)?;
        self.0.pop().map(|Reverse(event)| event)
    }
}

impl GatewayEmulator {
    /// Executes at most `limit` events that are due up to `now`, in order of time. Returns whether more are due.
    ///
    /// Time never runs backwards: an earlier `now` changes nothing.
    pub(crate) fn advance(&mut self, now: Timestamp, limit: usize, lines: &mut JournalLines) -> bool {
        let now = VirtualTime::from_timestamp(now);
        for _ in 0..limit {
            let Some((due, index)) = self.agenda.take_due(now) else {
                self.now = self.now.max(now);
                return false;
            };
            self.now = self.now.max(due);
            self.advance_message(index, lines);
        }
        true
    }

    /// The time of the next event or webhook, which may be in the past.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let event = self.agenda.next_event().map(|(due, _)| due);
        event.into_iter().chain(self.outbox.next_due()).min().map(VirtualTime::to_timestamp)
    }

    /// Executes at most `limit` events, whenever they are due. Returns whether any are left. Webhooks stay in the
    /// outbox.
    pub(crate) fn drain(&mut self, limit: usize, lines: &mut JournalLines) -> bool {
        for _ in 0..limit {
            let Some((due, index)) = self.agenda.take_due(VirtualTime::MAX) else { return false };
            self.now = self.now.max(due);
            self.advance_message(index, lines);
        }
        true
    }

    /// The lifecycle of a message; `None` if it was rejected because it has no recipient.
    pub(crate) fn lifecycle(&self, message: &SandboxMessage) -> Option<MessageLifecycle<'_>> {
        let stages = self.plans.stages_of(message.plan);
        Some(MessageLifecycle {
            scenario: &self.scenario,
            facts: message.condition_facts()?,
            stages,
            intake: message.at,
        })
    }

    /// Queues a message's next state, if it has one.
    pub(crate) fn schedule_next_state(&mut self, index: u32) {
        let message = self.messages.message_at(index);
        let next = self.lifecycle(message).and_then(|life| life.next_state(message.state));
        if let Some(next) = next {
            self.agenda.add(next.since, index);
        }
    }

    /// Advances a message to the state that is due.
    fn advance_message(&mut self, index: u32, lines: &mut JournalLines) {
        let message = self.messages.message_at(index);
        let before = message.state;
        let Some(life) = self.lifecycle(message) else { return };
        let Some(state) = life.next_state(before) else { return };
        // `status` never reports the failure of an earlier channel, because the next one is tried at the same moment.
        if let Some(stage) = self.current_stage(message, before).filter(|_| state.stage > before.stage) {
            let failed =
                LifecycleState { since: state.since, phase: Phase::Failed(life.stage_failure(stage)), ..before };
            self.write_status(index, failed, lines);
            if self.scenario.webhooks.intermediate {
                self.enqueue_channel_failure(index, failed);
            }
        }
        self.messages.set_state(index, state);
        self.write_status(index, state, lines);
        if state.phase.is_final() {
            self.count_final_state(index, before.phase, state);
            self.settle_charge(index, state, lines);
            self.enqueue_notice(index, state);
        }
        self.schedule_next_state(index);
    }

    /// Writes a current or earlier state of a message to the journal.
    fn write_status(&self, index: u32, state: LifecycleState, lines: &mut JournalLines) {
        let message = self.messages.message_at(index);
        lines.push_line(&JournalLine::Status {
            at: state.since,
            msg_id: msg_id_of(index),
            id: message.id.as_ref(),
            channel: self.type_name(message, state),
            status: state.phase.status_name(&self.scenario),
        });
    }

    fn count_final_state(&mut self, index: u32, before: Phase, state: LifecycleState) {
        if before.is_final() {
            self.counts.uncount_status(before.status_name(&self.scenario));
        }
        self.counts.count_final_status(state.phase.status_name(&self.scenario));
        if let Some(channel) = self.current_stage(self.messages.message_at(index), state).map(|stage| stage.channel) {
            self.counts.count_channel_result(channel, state.phase);
        }
    }

    /// Charges a message for the stage that ended its delivery, and refunds the rest of the reservation (contract
    /// 4.3).
    fn settle_charge(&mut self, index: u32, state: LifecycleState, lines: &mut JournalLines) {
        let message = self.messages.message_at(index);
        let charged = match state.phase {
            // Lookups and verification calls are charged immediately.
            _ if !message.kind.is_message() => return,
            Phase::Delivered => true,
            Phase::Failed(_) => self.scenario.charge_undelivered,
            Phase::Queued | Phase::Accepted | Phase::Read | Phase::Replied | Phase::Rejected => return,
        };
        let stages = self.plans.stages_of(message.plan);
        let Some(stage) = stages.get(usize::from(state.stage)) else { return };
        let reserved = messages::highest_price(stages, &self.scenario.prices);
        let spent = if charged { stage.price(&self.scenario.prices) } else { Amount::default() };
        self.counts.settle_funds(stage.channel, reserved, spent);
        let returned = reserved.saturating_sub(spent);
        if returned > Amount::default() {
            let account = &mut self.accounts[message.account as usize];
            account.refund(returned);
            let amount = Amount::default().saturating_sub(returned);
            let line =
                JournalLine::charge(state.since, msg_id_of(index), ChargeReason::Returned, amount, account.balance());
            lines.push_line(&line);
        }
    }

    /// The stage of a state.
    pub(crate) fn current_stage(&self, message: &SandboxMessage, state: LifecycleState) -> Option<&ChannelStage> {
        self.plans.stages_of(message.plan).get(usize::from(state.stage))
    }

    /// The `type` of a state: the channel that is being tried, or the operation's type if none was.
    pub(crate) fn type_name(&self, message: &SandboxMessage, state: LifecycleState) -> &'static str {
        self.current_stage(message, state).map_or(message.kind.name(), |stage| stage.channel.name())
    }
}

/// A virtual time in microseconds since 1970 in UTC.
///
/// The journal has it in ISO 8601 with an offset and milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VirtualTime(i64);

impl VirtualTime {
    /// Before all events.
    pub(crate) const MIN: VirtualTime = VirtualTime(i64::MIN);
    /// After all events.
    pub(crate) const MAX: VirtualTime = VirtualTime(i64::MAX);

    /// The virtual time of a timestamp, rounded down.
    pub(crate) fn from_timestamp(timestamp: Timestamp) -> Self {
        Self(timestamp.as_microsecond())
    }

    /// Adds a duration, up to the end of time.
    pub(crate) fn saturating_add(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(micros).min(Timestamp::MAX.as_microsecond()))
    }

    /// The timestamp of a virtual time.
    pub(crate) fn to_timestamp(self) -> Timestamp {
        Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }
}

impl fmt::Display for VirtualTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_timestamp().display_with_offset(Offset::UTC))
    }
}

impl Serialize for VirtualTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A time as the gateway writes it: whole seconds with an offset, PHP's `DATE_ATOM` (contract 2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireTime(pub(crate) VirtualTime);

impl Serialize for WireTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:.0}", self.0.to_timestamp().display_with_offset(Offset::UTC)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_has_offset_and_saturates() {
        let at = VirtualTime::from_timestamp(Timestamp::UNIX_EPOCH).saturating_add(Duration::from_millis(1_500));
        assert_eq!(at.to_string(), "1970-01-01T00:00:01.500+00:00");
        assert_eq!(at.to_timestamp().as_millisecond(), 1_500);
        assert_eq!(serde_json::to_value(WireTime(at)).expect("JSON"), "1970-01-01T00:00:01+00:00");
        for wait in [Duration::MAX, Duration::from_secs(u64::from(u32::MAX) * 1_000)] {
            let end = at.saturating_add(wait).saturating_add(wait);
            assert_eq!(end.to_timestamp().as_second(), Timestamp::MAX.as_second());
            assert!(end.to_string().starts_with("9999-"), "{end}");
        }
        assert_eq!(VirtualTime::MIN.to_timestamp(), Timestamp::MIN);
        assert!(VirtualTime::MIN < VirtualTime::from_timestamp(Timestamp::MIN));
    }
}
