//! What becomes of a message in time: pure, from one state to the next.
//!
//! It must not know money, webhooks or who asks. Chance is drawn by number, so that neither order
//! nor concurrency changes what becomes of anybody.

use super::{Chance, MessageFacts, Moment, Stage};
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
    Failed(Failure),
    /// Refused at intake.
    Rejected,
}

/// Why the last channel did not deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    /// Its lifetime ended first.
    Expired,
    /// As the pattern says.
    As(Pattern),
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
    pub(crate) fn behaviour(self, scenario: &Scenario) -> &Behaviour {
        let exception = self.exception.and_then(|index| scenario.exceptions.get(index as usize));
        exception.map_or(&scenario.behaviours, |exception| &exception.behaviours).of(self.channel)
    }
}

impl Phase {
    /// The gateway's word.
    pub(crate) fn word(self, scenario: &Scenario) -> &str {
        match self {
            Phase::Queued => "QUEUED",
            Phase::Accepted => "ACCEPTED",
            Phase::Delivered => "DELIVERED",
            Phase::Read => "READ",
            Phase::Replied => "REPLIED",
            Phase::Failed(Failure::Expired) => "EXPIRED",
            Phase::Failed(Failure::As(pattern)) => pattern.behaviour(scenario).fails_as.name(),
            Phase::Rejected => "REJECTED",
        }
    }

    /// Whether a webhook tells of it (contract 6.2).
    pub(crate) fn is_final(self) -> bool {
        !matches!(self, Phase::Queued | Phase::Accepted)
    }

    /// Whether the message reached its recipient.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Phase::Delivered | Phase::Read | Phase::Replied)
    }
}

/// Where a message is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    /// Since when.
    pub since: Moment,
    pub phase: Phase,
    /// The stage that is tried, or that ended its life.
    pub stage: u8,
}

impl State {
    /// The state of a message that was taken or refused just now.
    pub(crate) fn at_intake(phase: Phase, since: Moment) -> Self {
        Self { since, phase, stage: 0 }
    }
}

/// What the life of one message depends on.
#[derive(Clone, Copy)]
pub(crate) struct Life<'a> {
    pub scenario: &'a Scenario,
    pub facts: MessageFacts,
    pub stages: &'a [Stage],
    /// When it was taken.
    pub intake: Moment,
}

/// What is drawn; each kind of draw has numbers of its own far from those of others, one for each channel or exception.
#[derive(Clone, Copy)]
enum Draw {
    Exception = 1,
    Delivery,
    Reading,
    Reply,
}

impl Life<'_> {
    /// The state that follows, and since when; nothing if this one stays.
    ///
    /// The first channel is handed the message half-way to its outcome, later ones at once.
    pub(crate) fn next(&self, state: State) -> Option<State> {
        let stage = self.stages.get(usize::from(state.stage))?;
        let behaviour = self.pattern(stage.channel).behaviour(self.scenario);
        match state.phase {
            Phase::Queued => {
                let since = self.intake.after(behaviour.after.min(stage.lifetime()) / 2);
                Some(State { since, phase: Phase::Accepted, ..state })
            }
            Phase::Accepted => Some(self.outcome(stage, state)),
            Phase::Delivered => self.reading(stage, behaviour, state),
            Phase::Read => self.reply(stage, behaviour, state),
            Phase::Replied | Phase::Failed(_) | Phase::Rejected => None,
        }
    }

    /// The state that is reported after this one: after the failure of an earlier channel, the outcome of the next one.
    pub(crate) fn after(&self, told: State) -> Option<State> {
        let is_failure = matches!(told.phase, Phase::Failed(_));
        match is_failure && usize::from(told.stage) + 1 < self.stages.len() {
            true => self.next(State { phase: Phase::Accepted, stage: told.stage + 1, ..told }),
            false => self.next(told),
        }
    }

    /// The pattern that the message follows in a channel.
    pub(crate) fn pattern(&self, channel: Channel) -> Pattern {
        let exceptions = self.scenario.exceptions.iter().enumerate();
        let mut applying = exceptions.filter(|(index, exception)| {
            exception.channel.is_none_or(|only| only == channel)
                && exception.when.holds_for_message(self.chance(Draw::Exception, *index), self.facts)
        });
        Pattern { channel, exception: applying.next().and_then(|(index, _)| u32::try_from(index).ok()) }
    }

    /// How the channel's try ends: delivered, or on to the next channel, or failed.
    fn outcome(&self, stage: &Stage, state: State) -> State {
        let pattern = self.pattern(stage.channel);
        let behaviour = pattern.behaviour(self.scenario);
        // Later channels have it as soon as they are tried.
        let tried = if state.stage == 0 { self.intake } else { state.since };
        let in_time = behaviour.after <= stage.lifetime();
        let since = tried.after(behaviour.after.min(stage.lifetime()));
        if in_time && behaviour.delivered.takes(self.draw(Draw::Delivery, stage.channel)) {
            return State { since, phase: Phase::Delivered, ..state };
        }
        if usize::from(state.stage) + 1 < self.stages.len() {
            return State { since, phase: Phase::Accepted, stage: state.stage + 1 };
        }
        State { since, phase: Phase::Failed(self.failure(stage)), ..state }
    }

    /// How a stage fails if it does.
    pub(crate) fn failure(&self, stage: &Stage) -> Failure {
        let pattern = self.pattern(stage.channel);
        let in_time = pattern.behaviour(self.scenario).after <= stage.lifetime();
        if in_time { Failure::As(pattern) } else { Failure::Expired }
    }

    fn reading(&self, stage: &Stage, behaviour: &Behaviour, state: State) -> Option<State> {
        let read = behaviour.read.filter(|read| read.share.takes(self.draw(Draw::Reading, stage.channel)));
        let read = read.map(|read| State { since: state.since.after(read.after), phase: Phase::Read, ..state });
        read.or_else(|| self.reply(stage, behaviour, state))
    }

    fn reply(&self, stage: &Stage, behaviour: &Behaviour, state: State) -> Option<State> {
        let reply = behaviour.reply.as_ref()?;
        let replied = reply.share.takes(self.draw(Draw::Reply, stage.channel));
        replied.then(|| State { since: state.since.after(reply.after), phase: Phase::Replied, ..state })
    }

    fn draw(&self, draw: Draw, channel: Channel) -> u64 {
        self.chance(draw, channel as usize).draw(self.facts.phone.get())
    }

    fn chance(&self, draw: Draw, number: usize) -> Chance {
        Chance { seed: self.scenario.seed, decision: (draw as u64) << 48 | number as u64 }
    }
}
