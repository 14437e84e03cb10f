//! Chance that plays the same way every time.
//!
//! What is drawn depends on the scenario's seed and on what is decided about, never on the order in
//! which things happen: two connections may race, and the same numbers fare the same. The generator is ChaCha8,
//! whose output is specified and stays the same in every release.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

use crate::domain::{Endpoint, Phone};
use crate::sandbox::scenario::ScenarioCondition;

/// What one decision is about: two decisions about one message must not be the same draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomDraw {
    /// The scenario's seed.
    pub seed: u64,
    /// Which decision: a number of its own for each.
    pub decision: u64,
}

/// What a condition can ask about a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFacts {
    pub phone: Phone,
    /// The number of its envelope among those that hold sends.
    pub envelope: u64,
    pub endpoint: Endpoint,
}

/// What a condition can ask about an envelope that holds sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeFacts<'a> {
    /// All its numbers.
    pub phones: &'a [Phone],
    /// Its number among those that hold sends.
    pub envelope: u64,
    pub endpoint: Endpoint,
}

impl RandomDraw {
    /// A number drawn evenly from all, the same for the same subject.
    ///
    /// Seed, decision and subject are the key of the cipher, so that no draw tells anything of another.
    pub(crate) fn draw_number(self, subject: u64) -> u64 {
        let mut key = [0; 32];
        for (bytes, part) in key.chunks_exact_mut(8).zip([self.seed, self.decision, subject]) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key).next_u64()
    }
}

impl ScenarioCondition {
    /// Whether it applies to a message.
    pub(crate) fn applies_to_message(&self, chance: RandomDraw, facts: MessageFacts) -> bool {
        self.matches_envelope(facts.envelope, facts.endpoint)
            && self.suffix.as_deref().is_none_or(|suffix| ends_with(facts.phone, suffix))
            && self.share.is_none_or(|share| share.includes_draw(chance.draw_number(facts.phone.to_u64())))
    }

    /// Whether it applies to an envelope.
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

/// Whether the last digits of a number are these.
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
        // The first is the beginning of the key stream of eight rounds under a key of zeros.
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
        // Another decision or another seed takes others.
        for other in [taken(7, 2), taken(8, 1)] {
            let both = first.iter().zip(&other).filter(|(a, b)| **a && **b).count();
            assert!((700..1_100).contains(&both), "{both}");
        }
    }
}
