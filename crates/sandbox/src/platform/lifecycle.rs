//! Message lifecycles in virtual time: the next state of a message, its time, and the queue of due states.
//!
//! This module does no I/O. When the delivery of a message ends, it settles the charge and queues a webhook, which
//! another module sends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::time::Duration;

use campaign_core::domain::{Amount, Channel};
use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Serialize, Serializer};

use super::{ChannelStage, GatewayEmulator, SandboxMessage, messages, msg_id_of};
use crate::journal::{ChargeReason, JournalLine, JournalLines};
use crate::scenario::{Behaviour, MessageFacts, RandomDraw, Scenario};

/// The progress of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The gateway has accepted the message.
    Queued,
    /// A channel tries to deliver the message.
    Accepted,
    /// A channel delivered the message.
    Delivered,
    /// The recipient read the message.
    Read,
    /// The recipient replied.
    Replied,
    /// No channel delivered the message.
    Failed(DeliveryFailure),
    /// The message was rejected on arrival.
    Rejected,
}

/// The reason why the last channel did not deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeliveryFailure {
    /// The message's lifetime ended before the delivery.
    Expired,
    /// The scenario prevents delivery, by this behaviour.
    ByPattern(Pattern),
}

/// The behaviour that a message follows on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    channel: Channel,
    /// The index of the exception that applies; `None` for the channel's own behaviour.
    exception: Option<u32>,
}

impl Pattern {
    /// Returns the behaviour to which the pattern refers.
    pub(crate) fn resolve_behaviour(self, scenario: &Scenario) -> &Behaviour {
        let exception = self.exception.and_then(|index| scenario.exceptions.get(index as usize));
        exception.map_or(&scenario.behaviours, |exception| &exception.behaviours).for_channel(self.channel)
    }
}

impl Phase {
    /// The gateway's name for the status in this phase.
    pub(crate) fn status_name(self, scenario: &Scenario) -> &str {
        match self {
            Phase::Queued => "QUEUED",
            Phase::Accepted => "ACCEPTED",
            Phase::Delivered => "DELIVERED",
            Phase::Read => "READ",
            Phase::Replied => "REPLIED",
            Phase::Failed(DeliveryFailure::Expired) => "EXPIRED",
            Phase::Failed(DeliveryFailure::ByPattern(pattern)) => pattern.resolve_behaviour(scenario).fails_as.name(),
            Phase::Rejected => "REJECTED",
        }
    }

    /// Whether delivery has ended, in which case a webhook reports the phase (contract 6.2). READ or a reply can still
    /// follow a delivery.
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Phase::Queued | Phase::Accepted)
    }

    /// Whether the message reached its recipient.
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Phase::Delivered | Phase::Read | Phase::Replied)
    }
}

/// The current state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LifecycleState {
    /// The time at which the state began.
    pub(crate) since: VirtualTime,
    pub(crate) phase: Phase,
    /// The index of the stage that is being tried, or of the last one.
    pub(crate) stage: u8,
}

impl LifecycleState {
    /// The state of a message that has just been accepted or rejected.
    pub(crate) fn at_intake(phase: Phase, since: VirtualTime) -> Self {
        Self { since, phase, stage: 0 }
    }
}

/// The inputs that determine the lifecycle of one message.
#[derive(Clone, Copy)]
pub(crate) struct MessageLifecycle<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) facts: MessageFacts,
    pub(crate) stages: &'a [ChannelStage],
    /// The time at which the message was accepted.
    pub(crate) intake: VirtualTime,
}

/// The kinds of random draws. Each has its own range of numbers, with one number per channel or exception.
#[derive(Clone, Copy)]
enum DrawKind {
    Exception = 1,
    Delivery,
    Reading,
    Reply,
}

impl MessageLifecycle<'_> {
    /// The next state and its time; `None` if the state is final.
    ///
    /// The first channel accepts the message halfway to the outcome; later channels accept the message immediately.
    pub(crate) fn next_state(&self, state: LifecycleState) -> Option<LifecycleState> {
        let stage = self.stages.get(usize::from(state.stage))?;
        let behaviour = self.choose_pattern(stage.channel).resolve_behaviour(self.scenario);
        match state.phase {
            Phase::Queued => {
                let since = self.intake.saturating_add(behaviour.after.min(stage.lifetime()) / 2);
                Some(LifecycleState { since, phase: Phase::Accepted, ..state })
            }
            Phase::Accepted => Some(self.stage_outcome(stage, state)),
            Phase::Delivered => self.state_after_delivery(stage, behaviour, state),
            Phase::Read => self.reply_state(stage, behaviour, state),
            Phase::Replied | Phase::Failed(_) | Phase::Rejected => None,
        }
    }

    /// The next reported state; after the failure of an earlier channel, this is the outcome of the next channel.
    pub(crate) fn next_reported_state(&self, reported: LifecycleState) -> Option<LifecycleState> {
        let is_failure = matches!(reported.phase, Phase::Failed(_));
        match is_failure && usize::from(reported.stage) + 1 < self.stages.len() {
            true => self.next_state(LifecycleState { phase: Phase::Accepted, stage: reported.stage + 1, ..reported }),
            false => self.next_state(reported),
        }
    }

    /// Chooses the behaviour of the message on a channel.
    pub(crate) fn choose_pattern(&self, channel: Channel) -> Pattern {
        let exceptions = self.scenario.exceptions.iter().enumerate();
        let mut applying = exceptions.filter(|(index, exception)| {
            exception.channel.is_none_or(|only| only == channel)
                && exception.when.applies_to_message(self.random_draw(DrawKind::Exception, *index), self.facts)
        });
        Pattern { channel, exception: applying.next().and_then(|(index, _)| u32::try_from(index).ok()) }
    }

    /// The outcome of a stage: delivered, passed on to the next channel, or failed.
    fn stage_outcome(&self, stage: &ChannelStage, state: LifecycleState) -> LifecycleState {
        let pattern = self.choose_pattern(stage.channel);
        let behaviour = pattern.resolve_behaviour(self.scenario);
        // The first channel gets the message at intake. Each later channel gets it when the previous channel fails.
        let start = if state.stage == 0 { self.intake } else { state.since };
        let in_time = behaviour.after <= stage.lifetime();
        let since = start.saturating_add(behaviour.after.min(stage.lifetime()));
        if in_time && behaviour.delivered.includes_draw(self.draw_for_channel(DrawKind::Delivery, stage.channel)) {
            return LifecycleState { since, phase: Phase::Delivered, ..state };
        }
        if usize::from(state.stage) + 1 < self.stages.len() {
            return LifecycleState { since, phase: Phase::Accepted, stage: state.stage + 1 };
        }
        LifecycleState { since, phase: Phase::Failed(self.stage_failure(stage)), ..state }
    }

    /// Determines why a stage fails: the lifetime has expired, or the behaviour prevents delivery.
    pub(crate) fn stage_failure(&self, stage: &ChannelStage) -> DeliveryFailure {
        let pattern = self.choose_pattern(stage.channel);
        let in_time = pattern.resolve_behaviour(self.scenario).after <= stage.lifetime();
        if in_time { DeliveryFailure::ByPattern(pattern) } else { DeliveryFailure::Expired }
    }

    fn state_after_delivery(
        &self,
        stage: &ChannelStage,
        behaviour: &Behaviour,
        state: LifecycleState,
    ) -> Option<LifecycleState> {
        let reading = behaviour
            .read
            .filter(|read| read.share.includes_draw(self.draw_for_channel(DrawKind::Reading, stage.channel)));
        let read_state = reading.map(|reading| LifecycleState {
            since: state.since.saturating_add(reading.after),
            phase: Phase::Read,
            ..state
        });
        read_state.or_else(|| self.reply_state(stage, behaviour, state))
    }

    fn reply_state(
        &self,
        stage: &ChannelStage,
        behaviour: &Behaviour,
        state: LifecycleState,
    ) -> Option<LifecycleState> {
        let reply = behaviour.reply.as_ref()?;
        let replied = reply.share.includes_draw(self.draw_for_channel(DrawKind::Reply, stage.channel));
        replied.then(|| LifecycleState {
            since: state.since.saturating_add(reply.after),
            phase: Phase::Replied,
            ..state
        })
    }

    fn draw_for_channel(&self, draw: DrawKind, channel: Channel) -> u64 {
        self.random_draw(draw, channel as usize).draw_number(self.facts.phone.to_u64())
    }

    fn random_draw(&self, draw: DrawKind, number: usize) -> RandomDraw {
        RandomDraw { seed: self.scenario.seed, decision: (draw as u64) << 48 | number as u64 }
    }
}

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

    /// The time of the next event or webhook, which might be in the past.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let event = self.agenda.next_event().map(|(due, _)| due);
        event.into_iter().chain(self.outbox.next_due()).min().map(VirtualTime::to_timestamp)
    }

    /// Executes at most `limit` events, regardless of when they are due. Returns whether any events are left. Webhooks
    /// stay in the outbox.
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

    /// Queues the next state of a message, if there is one.
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
            self.counts.count_channel_result(channel, before, state.phase);
        }
    }

    /// Charges a message for the stage that ended its delivery, and refunds the unspent part of the reservation
    /// (contract 4.3).
    fn settle_charge(&mut self, index: u32, state: LifecycleState, lines: &mut JournalLines) {
        let message = self.messages.message_at(index);
        let is_charged = match state.phase {
            // Lookups and verification calls are charged immediately.
            _ if !message.kind.is_message() => return,
            Phase::Delivered => true,
            Phase::Failed(_) => self.scenario.charge_undelivered,
            Phase::Queued | Phase::Accepted | Phase::Read | Phase::Replied | Phase::Rejected => return,
        };
        let stages = self.plans.stages_of(message.plan);
        let Some(stage) = stages.get(usize::from(state.stage)) else { return };
        let reserved = messages::highest_price(stages, &self.scenario.prices);
        let spent = if is_charged { stage.price(&self.scenario.prices) } else { Amount::default() };
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

    /// The channel stage that a message has reached in this state.
    pub(crate) fn current_stage(&self, message: &SandboxMessage, state: LifecycleState) -> Option<&ChannelStage> {
        self.plans.stages_of(message.plan).get(usize::from(state.stage))
    }

    /// The `type` of a message in a state: the channel that is being tried, or the operation's type if no channel was
    /// tried.
    pub(crate) fn type_name(&self, message: &SandboxMessage, state: LifecycleState) -> &'static str {
        self.current_stage(message, state).map_or(message.kind.name(), |stage| stage.channel.name())
    }
}

/// A virtual time in microseconds since 1970 in UTC.
///
/// The journal writes times in ISO 8601 with an offset and milliseconds.
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

    /// Adds a duration, saturating at the latest representable time.
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
    fn virtual_time_is_formatted_with_an_offset_and_saturates() {
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
