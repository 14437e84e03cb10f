//! Faults of a scenario: which ones apply to an envelope, a message or a webhook, and how they change answers.
//!
//! Deciding and applying are separate. Faults of the whole answer (an HTTP 429 page, a delay, a truncation) and of the
//! connection are only described here; `server` applies them.

use std::time::Duration;

use crate::platform::{
    ApiResponse, GatewayEmulator, OperationError, OperationOrigin, ResultData, ResultItem, SendResult,
};
use crate::request::{ClientId, ParsedEnvelope, RequestItem};
use crate::scenario::{EnvelopeFacts, FaultEffect, MessageFacts, RandomDraw, Scenario, ScenarioFault, WebhookFault};
use campaign_core::domain::Endpoint;

/// The first decision number of faults, far from the numbers of message lifecycles.
const FIRST_DECISION: u64 = 1 << 32;

/// The faults of an envelope that contains messages.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EnvelopeFaults<'a> {
    /// The error of a rejected envelope.
    pub(crate) refusal: Option<&'a str>,
    /// Whether the envelope is executed.
    pub(crate) executed: bool,
    /// The faults of the answer's items, in this order.
    pub(crate) items: Vec<&'a FaultEffect>,
    /// The faults of the whole answer, and the behaviour of the port after it.
    pub(crate) wire: WireFaults,
    /// The names of the faults that took effect, as in the journal.
    pub(crate) fired: Vec<&'static str>,
}

impl Default for EnvelopeFaults<'_> {
    /// Without faults, the envelope is executed.
    fn default() -> Self {
        Self { refusal: None, executed: true, items: Vec::new(), wire: WireFaults::default(), fired: Vec::new() }
    }
}

/// Decides which faults apply to an envelope, and to the port before the next envelope.
pub(crate) fn decide_envelope_faults<'a>(scenario: &'a Scenario, facts: EnvelopeFacts) -> EnvelopeFaults<'a> {
    let mut faults = EnvelopeFaults::default();
    for (draw, fault) in faults_with_draws(scenario) {
        // The asynchronous answer has no items (contract 4.2), so item faults do not apply.
        let concerns_items =
            matches!(fault.effect, FaultEffect::Reordered | FaultEffect::Missing | FaultEffect::Foreign);
        let is_visible = facts.endpoint == Endpoint::Sync || !concerns_items;
        if is_visible && fault.when.applies_to_envelope(draw, facts) && faults.add_effect(&fault.effect) {
            faults.fired.push(effect_name(&fault.effect));
        }
    }
    let (behaviour, fault) = decide_port_behaviour(scenario, facts.envelope.saturating_add(1));
    faults.wire.port = behaviour;
    faults.fired.extend(fault);
    faults
}

/// Decides whether a fault rejects a message, and returns the error.
pub(crate) fn decide_item_error(scenario: &Scenario, facts: MessageFacts) -> Option<&str> {
    find_message_effect(scenario, facts, |effect| match effect {
        FaultEffect::ItemError(error) => Some(error.as_str()),
        _ => None,
    })
}

/// Decides which webhook fault applies to a message.
pub(crate) fn decide_webhook_fault(scenario: &Scenario, facts: MessageFacts) -> Option<WebhookFault> {
    find_message_effect(scenario, facts, |effect| match effect {
        FaultEffect::Webhook(fault) => Some(*fault),
        _ => None,
    })
}

/// The first effect of the wanted kind that applies to a message.
fn find_message_effect<'a, T>(
    scenario: &'a Scenario,
    facts: MessageFacts,
    select: impl Fn(&'a FaultEffect) -> Option<T>,
) -> Option<T> {
    faults_with_draws(scenario).find_map(|(draw, fault)| {
        let effect = select(&fault.effect)?;
        fault.when.applies_to_message(draw, facts).then_some(effect)
    })
}

/// Decides the behaviour of the port before the envelope with this number. Also returns the name of the fault that
/// causes the behaviour, if any.
///
/// The recipients and the endpoint of the envelope are unknown at that time, so a fault with such a condition does not
/// apply.
pub(crate) fn decide_port_behaviour(scenario: &Scenario, envelope: u64) -> (PortBehaviour, Option<&'static str>) {
    let facts = EnvelopeFacts { phones: &[], envelope, endpoint: Endpoint::Sync };
    let port_fault = faults_with_draws(scenario).find_map(|(draw, fault)| {
        let behaviour = match fault.effect {
            FaultEffect::Refused(duration) => PortBehaviour::Refuse(duration),
            FaultEffect::Closed => PortBehaviour::Close,
            _ => return None,
        };
        let applies = fault.when.endpoint.is_none() && fault.when.applies_to_envelope(draw, facts);
        applies.then(|| (behaviour, Some(effect_name(&fault.effect))))
    });
    port_fault.unwrap_or_default()
}

/// Every fault with its random draw.
fn faults_with_draws(scenario: &Scenario) -> impl Iterator<Item = (RandomDraw, &ScenarioFault)> {
    (FIRST_DECISION..)
        .zip(&scenario.faults)
        .map(|(decision, fault)| (RandomDraw { seed: scenario.seed, decision }, fault))
}

impl<'a> EnvelopeFaults<'a> {
    /// Adds an effect. Returns whether the effect concerns the envelope and changed anything.
    fn add_effect(&mut self, effect: &'a FaultEffect) -> bool {
        match effect {
            FaultEffect::TopError(error) => {
                self.executed = false;
                set_if_empty(&mut self.refusal, error)
            }
            FaultEffect::Http { status, retry_after, executed } => {
                let added = set_if_empty(&mut self.wire.page, ErrorPage { status: *status, retry_after: *retry_after });
                self.executed &= *executed || !added;
                added
            }
            FaultEffect::Delay(delay) => set_if_empty(&mut self.wire.delay, *delay),
            FaultEffect::Dropped => set_if_empty(&mut self.wire.loss, ResponseLoss::Dropped),
            FaultEffect::Truncated => set_if_empty(&mut self.wire.loss, ResponseLoss::Truncated),
            FaultEffect::Reordered | FaultEffect::Missing | FaultEffect::Foreign => {
                let is_new = !self.items.contains(&effect);
                self.items.extend(Some(effect).filter(|_| is_new));
                is_new
            }
            FaultEffect::ItemError(_) | FaultEffect::Webhook(_) | FaultEffect::Refused(_) | FaultEffect::Closed => {
                false
            }
        }
    }
}

/// Sets the slot if it is empty. Returns whether the slot was empty.
fn set_if_empty<T>(slot: &mut Option<T>, value: T) -> bool {
    let was_empty = slot.is_none();
    slot.get_or_insert(value);
    was_empty
}

/// The name of a fault in scenarios and in the journal.
fn effect_name(effect: &FaultEffect) -> &'static str {
    match effect {
        FaultEffect::ItemError(_) => "item_error",
        FaultEffect::TopError(_) => "top_error",
        FaultEffect::Delay(_) => "delay",
        FaultEffect::Refused(_) => "refused",
        FaultEffect::Closed => "closed",
        FaultEffect::Dropped => "dropped",
        FaultEffect::Truncated => "truncated",
        FaultEffect::Http { .. } => "http",
        FaultEffect::Reordered => "reordered",
        FaultEffect::Missing => "missing",
        FaultEffect::Foreign => "foreign",
        FaultEffect::Webhook(_) => "webhook",
    }
}

/// The answer to a request, with the faults of its transmission.
pub(crate) struct ResponsePlan {
    pub(crate) answer: ApiResponse,
    pub(crate) wire: WireFaults,
}

/// Faults of the transmission; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireFaults {
    /// The delay of the answer.
    pub(crate) delay: Option<Duration>,
    /// An error page instead of the answer.
    pub(crate) page: Option<ErrorPage>,
    /// The way in which the answer is lost.
    pub(crate) loss: Option<ResponseLoss>,
    /// The port's behaviour before the next envelope with messages.
    pub(crate) port: PortBehaviour,
}

/// An HTML page with an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorPage {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
}

/// The way in which an answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseLoss {
    /// The connection closes without an answer.
    Dropped,
    /// The connection closes in the middle of the answer.
    Truncated,
}

/// The port's treatment of the next connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PortBehaviour {
    /// The port accepts the connection.
    #[default]
    Open,
    /// The port refuses connections for this long and closes the open ones.
    Refuse(Duration),
    /// The port accepts and closes the next connection, and closes the open ones.
    Close,
}

/// The identifiers of a foreign message: the largest `id` that a client can use, and a `msg_id` that does not exist.
const FOREIGN_IDS: (u64, u64) = (9_007_199_254_740_991, 1);

impl GatewayEmulator {
    /// Rejects an operation if a fault applies to one of its recipients.
    pub(crate) fn check_item_faults(&self, item: &RequestItem, origin: OperationOrigin) -> Result<(), OperationError> {
        let (envelope, endpoint) = (origin.envelope.into(), origin.endpoint());
        let error = item
            .phones
            .iter()
            .find_map(|phone| decide_item_error(&self.scenario, MessageFacts { phone: *phone, envelope, endpoint }));
        match error {
            Some(error) => Err(OperationError::custom(error)),
            None => Ok(()),
        }
    }
}

/// Decides which faults apply to a parsed envelope. No faults apply to an envelope without messages.
pub(crate) fn faults_for_envelope<'a>(
    scenario: &'a Scenario,
    envelope: &ParsedEnvelope,
    origin: OperationOrigin,
) -> EnvelopeFaults<'a> {
    if scenario.faults.is_empty() || !envelope.contains_sends() {
        return EnvelopeFaults::default();
    }
    let phones: Vec<_> = envelope.items.iter().flat_map(|item| item.phones.iter().copied()).collect();
    let facts = EnvelopeFacts { phones: &phones, envelope: origin.envelope.into(), endpoint: origin.endpoint() };
    decide_envelope_faults(scenario, facts)
}

/// Applies item faults to the items of an answer.
pub(crate) fn apply_item_faults(mut items: Vec<ResultItem>, faults: &[&FaultEffect]) -> Vec<ResultItem> {
    for fault in faults {
        match fault {
            FaultEffect::Reordered => items.reverse(),
            FaultEffect::Missing => drop(items.pop()),
            FaultEffect::Foreign => items.splice(..items.len().min(1), [foreign_result()]).for_each(drop),
            _ => {}
        }
    }
    items
}

/// The result of a message that the client did not send.
fn foreign_result() -> ResultItem {
    let (id, msg_id) = FOREIGN_IDS;
    ResultItem::new(None, Ok(ResultData::Sent(SendResult { id: ClientId::Whole(id), msg_id, data: 1, parts: 1 })))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::scenario::ScenarioCondition;
    use campaign_core::domain::Phone;

    fn scenario_with(faults: impl IntoIterator<Item = (ScenarioCondition, FaultEffect)>) -> Scenario {
        let faults = faults.into_iter().map(|(when, effect)| ScenarioFault { when, effect }).collect();
        Scenario { seed: 7, faults, ..Scenario::default() }
    }

    fn when_envelope(number: u64) -> ScenarioCondition {
        ScenarioCondition { envelope: Some(number..=number), ..ScenarioCondition::default() }
    }

    fn facts(envelope: u64) -> EnvelopeFacts<'static> {
        EnvelopeFacts { phones: &[], envelope, endpoint: Endpoint::Sync }
    }

    fn http(status: u16, executed: bool) -> FaultEffect {
        FaultEffect::Http { status, retry_after: None, executed }
    }

    fn message(digits: u64) -> MessageFacts {
        MessageFacts { phone: Phone::new(digits).expect("a phone"), envelope: 1, endpoint: Endpoint::Sync }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn every_matching_fault_takes_effect() {
        let scenario = scenario_with([
            (when_envelope(2), FaultEffect::TopError("Access denied".into())),
            (when_envelope(2), FaultEffect::Delay(SECOND)),
            (when_envelope(2), http(503, true)),
            (when_envelope(2), FaultEffect::Truncated),
            (when_envelope(2), FaultEffect::Missing),
            (when_envelope(2), FaultEffect::Reordered),
            (when_envelope(3), FaultEffect::Closed),
        ]);
        assert_eq!(decide_envelope_faults(&scenario, facts(1)), EnvelopeFaults::default());
        let page = Some(ErrorPage { status: 503, retry_after: None });
        let loss = Some(ResponseLoss::Truncated);
        let expected = EnvelopeFaults {
            refusal: Some("Access denied"),
            executed: false,
            items: vec![&FaultEffect::Missing, &FaultEffect::Reordered],
            wire: WireFaults { delay: Some(SECOND), page, loss, port: PortBehaviour::Close },
            fired: vec!["top_error", "delay", "http", "truncated", "missing", "reordered", "closed"],
        };
        assert_eq!(decide_envelope_faults(&scenario, facts(2)), expected);
    }

    #[test]
    fn async_answer_has_no_item_faults() {
        let scenario = scenario_with(
            [FaultEffect::Reordered, FaultEffect::Missing, FaultEffect::Foreign]
                .map(|effect| (ScenarioCondition::default(), effect)),
        );
        let asynchronous = EnvelopeFacts { endpoint: Endpoint::Async, ..facts(1) };
        assert_eq!(decide_envelope_faults(&scenario, asynchronous), EnvelopeFaults::default());
        assert_eq!(decide_envelope_faults(&scenario, facts(1)).fired.len(), 3);
    }

    #[test]
    fn first_of_conflicting_faults_wins() {
        let always = ScenarioCondition::default;
        let scenario = scenario_with([
            (always(), http(503, true)),
            (always(), http(500, false)),
            (always(), FaultEffect::Dropped),
            (always(), FaultEffect::Truncated),
            (always(), FaultEffect::Refused(SECOND)),
            (always(), FaultEffect::Closed),
            (always(), FaultEffect::ItemError("No route".into())),
            (always(), FaultEffect::ItemError("Not enough money".into())),
            (always(), FaultEffect::Webhook(WebhookFault::Lost)),
            (always(), FaultEffect::Webhook(WebhookFault::Twice)),
        ]);
        let faults = decide_envelope_faults(&scenario, facts(1));
        assert!(faults.executed, "the page of the second fault, which would prevent execution, is not shown");
        assert_eq!(faults.wire.page, Some(ErrorPage { status: 503, retry_after: None }));
        assert_eq!((faults.wire.loss, faults.wire.port), (Some(ResponseLoss::Dropped), PortBehaviour::Refuse(SECOND)));
        assert_eq!(faults.fired, ["http", "dropped", "refused"]);
        assert_eq!(decide_item_error(&scenario, message(380_501_234_567)), Some("No route"));
        assert_eq!(decide_webhook_fault(&scenario, message(380_501_234_567)), Some(WebhookFault::Lost));
    }

    #[test]
    fn port_fault_takes_effect_before_its_envelope() {
        let scenario =
            scenario_with([(when_envelope(1), FaultEffect::Refused(SECOND)), (when_envelope(3), FaultEffect::Closed)]);
        assert_eq!(decide_port_behaviour(&scenario, 1), (PortBehaviour::Refuse(SECOND), Some("refused")));
        let behaviours: Vec<_> =
            (1..=3).map(|number| decide_envelope_faults(&scenario, facts(number)).wire.port).collect();
        assert_eq!(behaviours, [PortBehaviour::Open, PortBehaviour::Close, PortBehaviour::Open]);
        let suffix = ScenarioCondition { suffix: Some("67".into()), ..ScenarioCondition::default() };
        let endpoint = ScenarioCondition { endpoint: Some(Endpoint::Sync), ..ScenarioCondition::default() };
        for when in [suffix, endpoint] {
            assert_eq!(
                decide_port_behaviour(&scenario_with([(when, FaultEffect::Closed)]), 1),
                (PortBehaviour::Open, None)
            );
        }
    }

    #[test]
    fn port_fault_share_is_drawn_per_envelope() {
        let half = ScenarioCondition { share: Some("50%".parse().expect("a share")), ..ScenarioCondition::default() };
        // For each envelope, both faults use the same draw. The first closes the port before the envelope, the second
        // drops the answer.
        let (closing, losing) =
            (scenario_with([(half.clone(), FaultEffect::Closed)]), scenario_with([(half, FaultEffect::Dropped)]));
        let lost = |number| decide_envelope_faults(&losing, facts(number)).wire.loss.is_some();
        assert_eq!(decide_port_behaviour(&closing, 1).0 == PortBehaviour::Close, lost(1));
        for number in 1..1_000 {
            let closed = decide_envelope_faults(&closing, facts(number)).wire.port == PortBehaviour::Close;
            assert_eq!(closed, lost(number + 1), "before envelope {}", number + 1);
        }
    }

    fn any_effect() -> impl Strategy<Value = FaultEffect> {
        prop_oneof![
            any::<u8>().prop_map(|text| FaultEffect::ItemError(text.to_string())),
            any::<u8>().prop_map(|text| FaultEffect::TopError(text.to_string())),
            (1..9_u64).prop_map(|seconds| FaultEffect::Delay(Duration::from_secs(seconds))),
            (1..9_u64).prop_map(|seconds| FaultEffect::Refused(Duration::from_secs(seconds))),
            (200..600_u16, any::<bool>()).prop_map(|(status, executed)| http(status, executed)),
            Just(FaultEffect::Closed),
            Just(FaultEffect::Dropped),
            Just(FaultEffect::Truncated),
            Just(FaultEffect::Reordered),
            Just(FaultEffect::Missing),
            Just(FaultEffect::Foreign),
            Just(FaultEffect::Webhook(WebhookFault::Lost)),
        ]
    }

    fn any_condition() -> impl Strategy<Value = ScenarioCondition> {
        (any::<Option<u8>>(), prop::option::of(1..5_u64)).prop_map(|(share, from)| ScenarioCondition {
            share: share.map(|share| format!("{}%", share % 101).parse().expect("a share")),
            envelope: from.map(|from| from..=from + 1),
            ..ScenarioCondition::default()
        })
    }

    proptest! {
        #[test]
        fn every_effect_comes_from_exactly_one_fault(
            faults in prop::collection::vec((any_condition(), any_effect()), 0..12), number in 1..6_u64,
        ) {
            let scenario = scenario_with(faults);
            let decided = decide_envelope_faults(&scenario, facts(number));
            prop_assert_eq!(&decided, &decide_envelope_faults(&scenario, facts(number)));
            let mut names = decided.fired.clone();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), decided.fired.len());
            let fired = |name| decided.fired.contains(&name);
            prop_assert_eq!(decided.refusal.is_some(), fired("top_error"));
            prop_assert_eq!(decided.wire.page.is_some(), fired("http"));
            prop_assert_eq!(decided.wire.delay.is_some(), fired("delay"));
            prop_assert_eq!(decided.wire.loss.is_some(), fired("dropped") || fired("truncated"));
            prop_assert_eq!(decided.wire.port != PortBehaviour::Open, fired("refused") || fired("closed"));
            prop_assert!(decided.executed || fired("top_error") || fired("http"));
            prop_assert!(!(decided.executed && fired("top_error")));
        }
    }
}
