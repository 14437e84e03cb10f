//! Which of a scenario's faults apply to an envelope, to a message, to a webhook.
//!
//! It decides and does nothing: the platform leaves out, refuses and reorders, the shell delays
//! and cuts. What is left to chance is a draw of its own for each fault, by its place in the
//! scenario. Where two faults would set the same thing, the one that was written first does.

use super::{Door, Loss, Page, Wire};
use crate::domain::Endpoint;
use crate::sandbox::platform::{Chance, EnvelopeFacts, MessageFacts};
use crate::sandbox::scenario::{Effect, Fault, Scenario, WebhookFault};

/// The decisions of faults begin here, far from those that are taken about a message's life.
const FIRST_DECISION: u64 = 1 << 32;

/// What goes wrong with an envelope that holds sends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EnvelopeFaults<'a> {
    /// The error with which all of it is refused.
    pub refusal: Option<&'a str>,
    /// Whether it is executed.
    pub executed: bool,
    /// What goes wrong with the items of its answer, in this order.
    pub items: Vec<&'a Effect>,
    /// What happens to its answer, and at the door after it.
    pub wire: Wire,
    /// The names of the faults that set any of this, as the journal tells them.
    pub fired: Vec<&'static str>,
}

impl Default for EnvelopeFaults<'_> {
    /// Nothing goes wrong.
    fn default() -> Self {
        Self { refusal: None, executed: true, items: Vec::new(), wire: Wire::default(), fired: Vec::new() }
    }
}

/// What goes wrong with an envelope, and at the door before the one that follows it.
pub(crate) fn of_envelope<'a>(scenario: &'a Scenario, facts: EnvelopeFacts) -> EnvelopeFaults<'a> {
    let mut faults = EnvelopeFaults::default();
    for (chance, fault) in drawn(scenario) {
        // The asynchronous answer has no items (contract 4.2) that could go wrong.
        let about_items = matches!(fault.effect, Effect::Reordered | Effect::Missing | Effect::Foreign);
        let heard = facts.endpoint == Endpoint::Sync || !about_items;
        if heard && fault.when.holds_for_envelope(chance, facts) && faults.add(&fault.effect) {
            faults.fired.push(name(&fault.effect));
        }
    }
    let (door, fault) = door_before(scenario, facts.envelope.saturating_add(1));
    faults.wire.door = door;
    faults.fired.extend(fault);
    faults
}

/// The error with which a message is refused.
pub(crate) fn item_error(scenario: &Scenario, facts: MessageFacts) -> Option<&str> {
    about_message(scenario, facts, |effect| match effect {
        Effect::ItemError(error) => Some(error.as_str()),
        _ => None,
    })
}

/// What goes wrong with the webhooks of a message.
pub(crate) fn webhook(scenario: &Scenario, facts: MessageFacts) -> Option<WebhookFault> {
    about_message(scenario, facts, |effect| match effect {
        Effect::Webhook(fault) => Some(*fault),
        _ => None,
    })
}

/// The first of the wanted effects that applies to a message.
fn about_message<'a, T>(
    scenario: &'a Scenario,
    facts: MessageFacts,
    wanted: impl Fn(&'a Effect) -> Option<T>,
) -> Option<T> {
    drawn(scenario).find_map(|(chance, fault)| {
        let effect = wanted(&fault.effect)?;
        fault.when.holds_for_message(chance, facts).then_some(effect)
    })
}

/// What the door does before an envelope of which nothing is known yet but its number.
///
/// Neither its recipients nor its endpoint are known: a fault that asks for one does not apply.
pub(crate) fn door_before(scenario: &Scenario, envelope: u64) -> (Door, Option<&'static str>) {
    let facts = EnvelopeFacts { phones: &[], envelope, endpoint: Endpoint::Sync };
    let found = drawn(scenario).find_map(|(chance, fault)| {
        let door = match fault.effect {
            Effect::Refused(duration) => Door::Refuse(duration),
            Effect::Closed => Door::Close,
            _ => return None,
        };
        let applies = fault.when.endpoint.is_none() && fault.when.holds_for_envelope(chance, facts);
        applies.then(|| (door, Some(name(&fault.effect))))
    });
    found.unwrap_or_default()
}

/// Every fault with the chance that decides about it.
fn drawn(scenario: &Scenario) -> impl Iterator<Item = (Chance, &Fault)> {
    (FIRST_DECISION..).zip(&scenario.faults).map(|(decision, fault)| (Chance { seed: scenario.seed, decision }, fault))
}

impl<'a> EnvelopeFaults<'a> {
    /// Adds an effect; tells whether it is one on an envelope and set anything.
    fn add(&mut self, effect: &'a Effect) -> bool {
        match effect {
            Effect::TopError(error) => {
                self.executed = false;
                set(&mut self.refusal, error)
            }
            Effect::Http { status, retry_after, executed } => {
                let added = set(&mut self.wire.page, Page { status: *status, retry_after: *retry_after });
                self.executed &= *executed || !added;
                added
            }
            Effect::Delay(delay) => set(&mut self.wire.delay, *delay),
            Effect::Dropped => set(&mut self.wire.loss, Loss::Dropped),
            Effect::Truncated => set(&mut self.wire.loss, Loss::Truncated),
            Effect::Reordered | Effect::Missing | Effect::Foreign => {
                let free = !self.items.contains(&effect);
                self.items.extend(Some(effect).filter(|_| free));
                free
            }
            Effect::ItemError(_) | Effect::Webhook(_) | Effect::Refused(_) | Effect::Closed => false,
        }
    }
}

/// Sets what is not set yet; tells whether it did.
fn set<T>(slot: &mut Option<T>, value: T) -> bool {
    let free = slot.is_none();
    slot.get_or_insert(value);
    free
}

/// The name of a fault in the journal, which is its name in a scenario.
fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::ItemError(_) => "item_error",
        Effect::TopError(_) => "top_error",
        Effect::Delay(_) => "delay",
        Effect::Refused(_) => "refused",
        Effect::Closed => "closed",
        Effect::Dropped => "dropped",
        Effect::Truncated => "truncated",
        Effect::Http { .. } => "http",
        Effect::Reordered => "reordered",
        Effect::Missing => "missing",
        Effect::Foreign => "foreign",
        Effect::Webhook(_) => "webhook",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::Phone;
    use crate::sandbox::scenario::When;

    fn playing(faults: impl IntoIterator<Item = (When, Effect)>) -> Scenario {
        let faults = faults.into_iter().map(|(when, effect)| Fault { when, effect }).collect();
        Scenario { seed: 7, faults, ..Scenario::default() }
    }

    fn envelope(number: u64) -> When {
        When { envelope: Some(number..=number), ..When::default() }
    }

    fn facts(envelope: u64) -> EnvelopeFacts<'static> {
        EnvelopeFacts { phones: &[], envelope, endpoint: Endpoint::Sync }
    }

    fn http(status: u16, executed: bool) -> Effect {
        Effect::Http { status, retry_after: None, executed }
    }

    fn message(digits: u64) -> MessageFacts {
        MessageFacts { phone: Phone::new(digits).expect("a phone"), envelope: 1, endpoint: Endpoint::Sync }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn every_fault_that_applies_has_its_effect() {
        let scenario = playing([
            (envelope(2), Effect::TopError("Access denied".into())),
            (envelope(2), Effect::Delay(SECOND)),
            (envelope(2), http(503, true)),
            (envelope(2), Effect::Truncated),
            (envelope(2), Effect::Missing),
            (envelope(2), Effect::Reordered),
            (envelope(3), Effect::Closed),
        ]);
        assert_eq!(of_envelope(&scenario, facts(1)), EnvelopeFaults::default());
        let page = Some(Page { status: 503, retry_after: None });
        let loss = Some(Loss::Truncated);
        let expected = EnvelopeFaults {
            refusal: Some("Access denied"),
            executed: false,
            items: vec![&Effect::Missing, &Effect::Reordered],
            wire: Wire { delay: Some(SECOND), page, loss, door: Door::Close },
            fired: vec!["top_error", "delay", "http", "truncated", "missing", "reordered", "closed"],
        };
        assert_eq!(of_envelope(&scenario, facts(2)), expected);
    }

    #[test]
    fn an_answer_without_items_has_none_that_go_wrong() {
        let scenario =
            playing([Effect::Reordered, Effect::Missing, Effect::Foreign].map(|effect| (When::default(), effect)));
        let asynchronous = EnvelopeFacts { endpoint: Endpoint::Async, ..facts(1) };
        assert_eq!(of_envelope(&scenario, asynchronous), EnvelopeFaults::default());
        assert_eq!(of_envelope(&scenario, facts(1)).fired.len(), 3);
    }

    #[test]
    fn of_two_faults_about_the_same_thing_the_first_written_counts() {
        let always = When::default;
        let scenario = playing([
            (always(), http(503, true)),
            (always(), http(500, false)),
            (always(), Effect::Dropped),
            (always(), Effect::Truncated),
            (always(), Effect::Refused(SECOND)),
            (always(), Effect::Closed),
            (always(), Effect::ItemError("No route".into())),
            (always(), Effect::ItemError("Not enough money".into())),
            (always(), Effect::Webhook(WebhookFault::Lost)),
            (always(), Effect::Webhook(WebhookFault::Twice)),
        ]);
        let faults = of_envelope(&scenario, facts(1));
        assert!(faults.executed, "the page that would not have executed it is not the one that is shown");
        assert_eq!(faults.wire.page, Some(Page { status: 503, retry_after: None }));
        assert_eq!((faults.wire.loss, faults.wire.door), (Some(Loss::Dropped), Door::Refuse(SECOND)));
        assert_eq!(faults.fired, ["http", "dropped", "refused"]);
        assert_eq!(item_error(&scenario, message(380_501_234_567)), Some("No route"));
        assert_eq!(webhook(&scenario, message(380_501_234_567)), Some(WebhookFault::Lost));
    }

    #[test]
    fn the_door_acts_before_its_envelope_and_asks_for_nothing_that_cannot_be_known() {
        let scenario = playing([(envelope(1), Effect::Refused(SECOND)), (envelope(3), Effect::Closed)]);
        assert_eq!(door_before(&scenario, 1), (Door::Refuse(SECOND), Some("refused")));
        let doors: Vec<_> = (1..=3).map(|number| of_envelope(&scenario, facts(number)).wire.door).collect();
        assert_eq!(doors, [Door::Open, Door::Close, Door::Open]);
        let suffix = When { suffix: Some("67".into()), ..When::default() };
        let endpoint = When { endpoint: Some(Endpoint::Sync), ..When::default() };
        for when in [suffix, endpoint] {
            assert_eq!(door_before(&playing([(when, Effect::Closed)]), 1), (Door::Open, None));
        }
    }

    #[test]
    fn a_door_with_a_share_is_drawn_for_the_envelope_that_finds_it() {
        let half = When { share: Some("50%".parse().expect("a share")), ..When::default() };
        // The same fault drawn for the same envelope: once as a door before it, once as a loss after it.
        let (doors, losses) = (playing([(half.clone(), Effect::Closed)]), playing([(half, Effect::Dropped)]));
        let lost = |number| of_envelope(&losses, facts(number)).wire.loss.is_some();
        assert_eq!(door_before(&doors, 1).0 == Door::Close, lost(1));
        for number in 1..1_000 {
            let closed = of_envelope(&doors, facts(number)).wire.door == Door::Close;
            assert_eq!(closed, lost(number + 1), "before envelope {}", number + 1);
        }
    }

    fn effect() -> impl Strategy<Value = Effect> {
        prop_oneof![
            any::<u8>().prop_map(|text| Effect::ItemError(text.to_string())),
            any::<u8>().prop_map(|text| Effect::TopError(text.to_string())),
            (1..9_u64).prop_map(|seconds| Effect::Delay(Duration::from_secs(seconds))),
            (1..9_u64).prop_map(|seconds| Effect::Refused(Duration::from_secs(seconds))),
            (200..600_u16, any::<bool>()).prop_map(|(status, executed)| http(status, executed)),
            Just(Effect::Closed),
            Just(Effect::Dropped),
            Just(Effect::Truncated),
            Just(Effect::Reordered),
            Just(Effect::Missing),
            Just(Effect::Foreign),
            Just(Effect::Webhook(WebhookFault::Lost)),
        ]
    }

    fn when() -> impl Strategy<Value = When> {
        (any::<Option<u8>>(), prop::option::of(1..5_u64)).prop_map(|(share, from)| When {
            share: share.map(|share| format!("{}%", share % 101).parse().expect("a share")),
            envelope: from.map(|from| from..=from + 1),
            ..When::default()
        })
    }

    proptest! {
        #[test]
        fn nothing_is_decided_twice_and_nothing_without_a_fault_that_says_so(
            faults in prop::collection::vec((when(), effect()), 0..12), number in 1..6_u64,
        ) {
            let scenario = playing(faults);
            let found = of_envelope(&scenario, facts(number));
            prop_assert_eq!(&found, &of_envelope(&scenario, facts(number)));
            let mut names = found.fired.clone();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), found.fired.len());
            let fired = |name| found.fired.contains(&name);
            prop_assert_eq!(found.refusal.is_some(), fired("top_error"));
            prop_assert_eq!(found.wire.page.is_some(), fired("http"));
            prop_assert_eq!(found.wire.delay.is_some(), fired("delay"));
            prop_assert_eq!(found.wire.loss.is_some(), fired("dropped") || fired("truncated"));
            prop_assert_eq!(found.wire.door != Door::Open, fired("refused") || fired("closed"));
            prop_assert!(found.executed || fired("top_error") || fired("http"));
            prop_assert!(!(found.executed && fired("top_error")));
        }
    }
}
