//! Random draws, and the conditions of a scenario that use them. Pure.
//!
//! Draws depend on the scenario's seed and on the number, never on the order of events. So the same numbers get the same
//! results, even with concurrent connections. The generator is ChaCha8, whose output is the same in every release.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

use crate::scenario::ScenarioCondition;
use campaign_core::domain::{Endpoint, Phone};

/// The source of a random draw for one decision. Different decisions about one message are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomDraw {
    /// The scenario's seed.
    pub(crate) seed: u64,
    /// The number of the decision; each decision has its own.
    pub(crate) decision: u64,
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

/// The facts about a message that a condition can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts {
    pub(crate) phone: Phone,
    /// The number of its envelope among those with messages.
    pub(crate) envelope: u64,
    pub(crate) endpoint: Endpoint,
}

/// The facts about an envelope with messages that a condition can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeFacts<'a> {
    /// All its numbers.
    pub(crate) phones: &'a [Phone],
    /// Its number among the envelopes with messages.
    pub(crate) envelope: u64,
    pub(crate) endpoint: Endpoint,
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
        // The first value is the start of the ChaCha8 key stream for a zero key.
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
