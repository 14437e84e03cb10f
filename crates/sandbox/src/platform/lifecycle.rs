//! Message lifecycles: the next state of a message and its time. Pure.
//!
//! This module must not know money or webhooks.

use super::{ChannelStage, MessageFacts, RandomDraw, VirtualTime};
use crate::scenario::{Behaviour, Scenario};
use campaign_core::domain::Channel;

/// The progress of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The gateway has accepted it.
    Queued,
    /// A channel tries to deliver it.
    Accepted,
    /// A channel delivered it.
    Delivered,
    /// The recipient read it.
    Read,
    /// The recipient replied.
    Replied,
    /// No channel delivered it.
    Failed(DeliveryFailure),
    /// It was rejected on arrival.
    Rejected,
}

/// Why the last channel did not deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeliveryFailure {
    /// Its lifetime ended before the delivery.
    Expired,
    /// The scenario says so, by this behaviour.
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
    /// The behaviour itself.
    pub(crate) fn resolve_behaviour(self, scenario: &Scenario) -> &Behaviour {
        let exception = self.exception.and_then(|index| scenario.exceptions.get(index as usize));
        exception.map_or(&scenario.behaviours, |exception| &exception.behaviours).for_channel(self.channel)
    }
}

impl Phase {
    /// The status in the gateway's words.
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

    /// Whether a webhook reports it (contract 6.2).
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
    /// When it began.
    pub(crate) since: VirtualTime,
    pub(crate) phase: Phase,
    /// The stage that is being tried, or the last one.
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
    /// When the message was accepted.
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
    /// The first channel accepts the message halfway to its outcome, later channels at once.
    pub(crate) fn next_state(&self, state: LifecycleState) -> Option<LifecycleState> {
        let stage = self.stages.get(usize::from(state.stage))?;
        let behaviour = self.choose_pattern(stage.channel).resolve_behaviour(self.scenario);
        match state.phase {
            Phase::Queued => {
                let since = self.intake.saturating_add(behaviour.after.min(stage.lifetime()) / 2);
                Some(LifecycleState { since, phase: Phase::Accepted, ..state })
            }
            Phase::Accepted => Some(self.stage_outcome(stage, state)),
            Phase::Delivered => self.read_state(stage, behaviour, state),
            Phase::Read => self.reply_state(stage, behaviour, state),
            Phase::Replied | Phase::Failed(_) | Phase::Rejected => None,
        }
    }

    /// The next reported state: after the failure of an earlier channel, the outcome of the next one.
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
                && exception.when.applies_to_message(self.chance_for(DrawKind::Exception, *index), self.facts)
        });
        Pattern { channel, exception: applying.next().and_then(|(index, _)| u32::try_from(index).ok()) }
    }

    /// The outcome of a stage: delivered, passed on to the next channel, or failed.
    fn stage_outcome(&self, stage: &ChannelStage, state: LifecycleState) -> LifecycleState {
        let pattern = self.choose_pattern(stage.channel);
        let behaviour = pattern.resolve_behaviour(self.scenario);
        // Later channels get the message as soon as they are tried.
        let tried = if state.stage == 0 { self.intake } else { state.since };
        let in_time = behaviour.after <= stage.lifetime();
        let since = tried.saturating_add(behaviour.after.min(stage.lifetime()));
        if in_time && behaviour.delivered.includes_draw(self.draw_for_channel(DrawKind::Delivery, stage.channel)) {
            return LifecycleState { since, phase: Phase::Delivered, ..state };
        }
        if usize::from(state.stage) + 1 < self.stages.len() {
            return LifecycleState { since, phase: Phase::Accepted, stage: state.stage + 1 };
        }
        LifecycleState { since, phase: Phase::Failed(self.stage_failure(stage)), ..state }
    }

    /// The failure of a stage.
    pub(crate) fn stage_failure(&self, stage: &ChannelStage) -> DeliveryFailure {
        let pattern = self.choose_pattern(stage.channel);
        let in_time = pattern.resolve_behaviour(self.scenario).after <= stage.lifetime();
        if in_time { DeliveryFailure::ByPattern(pattern) } else { DeliveryFailure::Expired }
    }

    fn read_state(&self, stage: &ChannelStage, behaviour: &Behaviour, state: LifecycleState) -> Option<LifecycleState> {
        let read = behaviour
            .read
            .filter(|read| read.share.includes_draw(self.draw_for_channel(DrawKind::Reading, stage.channel)));
        let read = read.map(|read| LifecycleState {
            since: state.since.saturating_add(read.after),
            phase: Phase::Read,
            ..state
        });
        read.or_else(|| self.reply_state(stage, behaviour, state))
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
        self.chance_for(draw, channel as usize).draw_number(self.facts.phone.to_u64())
    }

    fn chance_for(&self, draw: DrawKind, number: usize) -> RandomDraw {
        RandomDraw { seed: self.scenario.seed, decision: (draw as u64) << 48 | number as u64 }
    }
}
