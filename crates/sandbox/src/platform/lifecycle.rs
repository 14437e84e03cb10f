//! Message lifecycles: the next state of a message and its time, with reproducible random draws. Pure.
//!
//! This module must not know money or webhooks. Draws depend on the scenario's seed and on the number, never on the
//! order of events. So the same numbers get the same results, even with concurrent connections. The generator is
//! ChaCha8, whose output is the same in every release.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

use super::{ChannelStage, VirtualTime};
use crate::scenario::{Behaviour, Scenario, ScenarioCondition};
use campaign_core::domain::{Channel, Endpoint, Phone};

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
    /// Since when.
    pub since: VirtualTime,
    pub phase: Phase,
    /// The stage that is being tried, or the last one.
    pub stage: u8,
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
    pub scenario: &'a Scenario,
    pub facts: MessageFacts,
    pub stages: &'a [ChannelStage],
    /// When it was taken.
    pub intake: VirtualTime,
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

/// The source of a random draw for one decision. Different decisions about one message are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomDraw {
    /// The scenario's seed.
    pub seed: u64,
    /// The number of the decision; each decision has its own.
    pub decision: u64,
}

/// The facts about a message that a condition can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts {
    pub phone: Phone,
    /// The number of its envelope among those with messages.
    pub envelope: u64,
    pub endpoint: Endpoint,
}

/// The facts about an envelope with messages that a condition can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeFacts<'a> {
    /// All its numbers.
    pub phones: &'a [Phone],
    /// Its number among the envelopes with messages.
    pub envelope: u64,
    pub endpoint: Endpoint,
}

impl RandomDraw {
    /// Draws a uniformly distributed number, always the same for the same subject.
    ///
    /// Seed, decision and subject form the key of the cipher, so draws are independent of each other.
    pub(crate) fn draw_number(self, subject: u64) -> u64 {
        let mut key = [0; 32];
        for (bytes, part) in key.chunks_exact_mut(8).zip([self.seed, self.decision, subject]) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key).next_u64()
    }
}

impl ScenarioCondition {
    /// Whether the condition applies to a message.
    pub(crate) fn applies_to_message(&self, chance: RandomDraw, facts: MessageFacts) -> bool {
        self.matches_envelope(facts.envelope, facts.endpoint)
            && self.suffix.as_deref().is_none_or(|suffix| ends_with(facts.phone, suffix))
            && self.share.is_none_or(|share| share.includes_draw(chance.draw_number(facts.phone.to_u64())))
    }

    /// Whether the condition applies to an envelope.
    pub(crate) fn applies_to_envelope(&self, chance: RandomDraw, facts: EnvelopeFacts) -> bool {
        self.matches_envelope(facts.envelope, facts.endpoint)
            && self.suffix.as_deref().is_none_or(|suffix| facts.phones.iter().any(|phone| ends_with(*phone, suffix)))
            && self.share.is_none_or(|share| share.includes_draw(chance.draw_number(facts.envelope)))
    }

    fn matches_envelope(&self, envelope: u64, endpoint: Endpoint) -> bool {
        self.envelope.as_ref().is_none_or(|envelopes| envelopes.contains(&envelope))
            && self.endpoint.is_none_or(|only| only == endpoint)
    }
}

/// Whether a number ends with these digits.
fn ends_with(phone: Phone, suffix: &str) -> bool {
    phone.to_string().ends_with(suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(phone: u64, envelope: u64) -> MessageFacts {
        MessageFacts { phone: Phone::new(phone).expect("a phone"), envelope, endpoint: Endpoint::Sync }
    }

    #[test]
    fn condition_applies_only_if_all_parts_hold() {
        let chance = RandomDraw { seed: 1, decision: 1 };
        let when = ScenarioCondition {
            suffix: Some("67".into()),
            envelope: Some(2..=3),
            endpoint: Some(Endpoint::Sync),
            share: Some("100%".parse().expect("a share")),
        };
        assert!(when.applies_to_message(chance, facts(380_501_234_567, 2)));
        assert!(!when.applies_to_message(chance, facts(380_501_234_568, 2)));
        assert!(!when.applies_to_message(chance, facts(380_501_234_567, 4)));
        let other = ScenarioCondition { endpoint: Some(Endpoint::Async), ..when.clone() };
        assert!(!other.applies_to_message(chance, facts(380_501_234_567, 2)));
        let none = ScenarioCondition { share: Some("0%".parse().expect("a share")), ..when.clone() };
        assert!(!none.applies_to_message(chance, facts(380_501_234_567, 2)));
        let phones = [380_501_234_500, 380_501_234_567].map(|phone| Phone::new(phone).expect("a phone"));
        let envelope = |phones| EnvelopeFacts { phones, envelope: 3, endpoint: Endpoint::Sync };
        assert!(when.applies_to_envelope(chance, envelope(&phones)));
        assert!(!when.applies_to_envelope(chance, envelope(&phones[..1])));
    }

    #[test]
    fn random_draw_is_stable_across_releases() {
        let draws = [(0, 0, 0), (7, 1, 380_501_234_567)]
            .map(|(seed, decision, subject)| RandomDraw { seed, decision }.draw_number(subject));
        // The first value is the start of the key stream after eight rounds with a zero key.
        assert_eq!(draws, [0xd640_5f89_2fef_003e, 7_332_914_244_742_273_376]);
    }

    #[test]
    fn share_selects_the_same_messages_every_time() {
        let when = ScenarioCondition { share: Some("30%".parse().expect("a share")), ..ScenarioCondition::default() };
        let taken = |seed, decision| -> Vec<bool> {
            let chance = RandomDraw { seed, decision };
            (0..10_000).map(|n| when.applies_to_message(chance, facts(380_500_000_000 + n, 1))).collect()
        };
        let count = |taken: &[bool]| taken.iter().filter(|taken| **taken).count();
        let first = taken(7, 1);
        assert!((2_800..3_200).contains(&count(&first)), "{}", count(&first));
        assert_eq!(first, taken(7, 1));
        // Another decision or seed selects other messages.
        for other in [taken(7, 2), taken(8, 1)] {
            let both = first.iter().zip(&other).filter(|(a, b)| **a && **b).count();
            assert!((700..1_100).contains(&both), "{both}");
        }
    }
}
