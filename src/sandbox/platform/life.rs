//! What becomes of a message in time: pure, from one state to the next.
//!
//! It must not know money, webhooks or who asks. Chance is drawn by number, so that neither order
//! nor concurrency changes what becomes of anybody.

use super::{ChannelStage, MessageFacts, RandomDraw, VirtualTime};
use crate::domain::Channel;
use crate::sandbox::scenario::{Behaviour, Scenario};

/// How far a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Taken.
    Queued,
    /// Handed on to a channel.
    Accepted,
    Delivered,
    Read,
    Replied,
    /// No channel delivered it.
    Failed(DeliveryFailure),
    /// Refused at intake.
    Rejected,
}

/// Why the last channel did not deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeliveryFailure {
    /// Its lifetime ended first.
    Expired,
    /// As the pattern says.
    ByPattern(Pattern),
}

/// Which of the scenario's behaviours a message follows in a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    channel: Channel,
    /// The exception that applies, by its index; nothing for the channel's own behaviour.
    exception: Option<u32>,
}

impl Pattern {
    /// How messages fare that follow it.
    pub(crate) fn resolve_behaviour(self, scenario: &Scenario) -> &Behaviour {
        let exception = self.exception.and_then(|index| scenario.exceptions.get(index as usize));
        exception.map_or(&scenario.behaviours, |exception| &exception.behaviours).for_channel(self.channel)
    }
}

impl Phase {
    /// The gateway's word.
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

    /// Whether a webhook tells of it (contract 6.2).
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Phase::Queued | Phase::Accepted)
    }

    /// Whether the message reached its recipient.
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Phase::Delivered | Phase::Read | Phase::Replied)
    }
}

/// Where a message is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LifecycleState {
    /// Since when.
    pub since: VirtualTime,
    pub phase: Phase,
    /// The stage that is tried, or that ended its life.
    pub stage: u8,
}

impl LifecycleState {
    /// The state of a message that was taken or refused just now.
    pub(crate) fn at_intake(phase: Phase, since: VirtualTime) -> Self {
        Self { since, phase, stage: 0 }
    }
}

/// What the life of one message depends on.
#[derive(Clone, Copy)]
pub(crate) struct MessageLifecycle<'a> {
    pub scenario: &'a Scenario,
    pub facts: MessageFacts,
    pub stages: &'a [ChannelStage],
    /// When it was taken.
    pub intake: VirtualTime,
}

/// What is drawn; each kind of draw has numbers of its own far from those of others, one for each channel or exception.
#[derive(Clone, Copy)]
enum DrawKind {
    Exception = 1,
    Delivery,
    Reading,
    Reply,
}

impl MessageLifecycle<'_> {
    /// The state that follows, and since when; nothing if this one stays.
    ///
    /// The first channel is handed the message half-way to its outcome, later ones at once.
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

    /// The state that is reported after this one: after the failure of an earlier channel, the outcome of the next one.
    pub(crate) fn next_reported_state(&self, told: LifecycleState) -> Option<LifecycleState> {
        let is_failure = matches!(told.phase, Phase::Failed(_));
        match is_failure && usize::from(told.stage) + 1 < self.stages.len() {
            true => self.next_state(LifecycleState { phase: Phase::Accepted, stage: told.stage + 1, ..told }),
            false => self.next_state(told),
        }
    }

    /// The pattern that the message follows in a channel.
    pub(crate) fn choose_pattern(&self, channel: Channel) -> Pattern {
        let exceptions = self.scenario.exceptions.iter().enumerate();
        let mut applying = exceptions.filter(|(index, exception)| {
            exception.channel.is_none_or(|only| only == channel)
                && exception.when.applies_to_message(self.chance_for(DrawKind::Exception, *index), self.facts)
        });
        Pattern { channel, exception: applying.next().and_then(|(index, _)| u32::try_from(index).ok()) }
    }

    /// How the channel's try ends: delivered, or on to the next channel, or failed.
    fn stage_outcome(&self, stage: &ChannelStage, state: LifecycleState) -> LifecycleState {
        let pattern = self.choose_pattern(stage.channel);
        let behaviour = pattern.resolve_behaviour(self.scenario);
        // Later channels have it as soon as they are tried.
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

    /// How a stage fails if it does.
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
