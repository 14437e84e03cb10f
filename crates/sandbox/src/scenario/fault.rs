//! Faults in a scenario, their conditions, and the random draws that conditions use.
//!
//! A draw depends on the scenario's seed, the decision, and its subject, such as a phone number; never on the order of
//! events. So the same phone numbers get the same results, even with concurrent connections. The generator is ChaCha8,
//! whose output is the same in every release.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};

use super::keys::FAULT;
use super::read_duration;
use campaign_core::domain::{Endpoint, Phone};
use campaign_core::finding::{Finding, rules};
use campaign_manifest::Percentage;
use campaign_manifest::document::{ConfigSection, FindingCollector, Node};

/// A fault of the gateway, of its answers or of its webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioFault {
    /// The messages or envelopes to which the fault applies.
    pub when: ScenarioCondition,
    /// The effect of the fault.
    pub effect: FaultEffect,
}

/// A condition for messages or envelopes: all given parts must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioCondition {
    /// Numbers that end with these digits; for an envelope, at least one of its numbers.
    pub suffix: Option<String>,
    /// A share of all messages or envelopes, drawn by phone number for messages and by position for envelopes.
    pub share: Option<Percentage>,
    /// The position among envelopes with messages, counted from 1 over both endpoints.
    pub envelope: Option<RangeInclusive<u64>>,
    /// The endpoint of the envelopes.
    pub endpoint: Option<Endpoint>,
}

/// What goes wrong: with a message, an envelope, its answer, a connection or a webhook.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultEffect {
    /// A message is rejected with this error; the rest of its envelope is executed.
    ItemError(String),
    /// The whole envelope is rejected with this error and not executed.
    TopError(String),
    /// The envelope is executed at once, and the answer is delayed by this time.
    Delay(Duration),
    /// Connections are refused for this long before the envelope.
    Refused(Duration),
    /// The connection is closed before the envelope is read.
    Closed,
    /// The envelope is executed, and the connection is closed without an answer.
    Dropped,
    /// The envelope is executed, and the connection is closed in the middle of the answer.
    Truncated,
    /// An answer with this HTTP status and an HTML page.
    Http {
        /// The HTTP status.
        status: u16,
        /// The header `Retry-After`, in whole seconds.
        retry_after: Option<Duration>,
        /// Whether the envelope is still executed.
        executed: bool,
    },
    /// The items of the answer are in reverse order.
    Reordered,
    /// The last item of the answer is missing.
    Missing,
    /// The answer's first item is about a message that the client did not send.
    Foreign,
    /// A fault of the message's webhook.
    Webhook(WebhookFault),
}

/// What goes wrong with one webhook of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookFault {
    /// The webhook is sent twice.
    Twice,
    /// The webhook is delayed by this time.
    Late(Duration),
    /// The webhook is sent after the webhook of the message's next state, if any.
    Reordered,
    /// The webhook is never sent.
    Lost,
}

/// A wrong answer to every `status` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blindness {
    /// The message does not exist.
    Denies,
    /// The message is queued.
    Affirms,
}

/// The keys of effects; a fault has exactly one.
const EFFECTS: [&str; 7] = ["item_error", "top_error", "delay", "connection", "answer", "http", "webhook"];

/// Keys that require a certain effect: the key, the key of the effect and its value.
const COMPANION_KEYS: [(&str, &str, &str); 4] = [
    ("lasts", "connection", "refused"),
    ("retry_after", "http", ""),
    ("executed", "http", ""),
    ("by", "webhook", "late"),
];

/// Conditions that are unknown before a connection exists, with their descriptions.
const UNKNOWN_BEFORE_CONNECTION: [(&str, &str); 2] =
    [("suffix", "the recipient's number"), ("endpoint", "the endpoint")];

/// Reads the faults of a scenario.
pub(super) fn read_faults(items: &[Node], report: &mut FindingCollector) -> Vec<ScenarioFault> {
    items.iter().filter_map(|item| read_fault(item, report)).collect()
}

fn read_fault(item: &Node, report: &mut FindingCollector) -> Option<ScenarioFault> {
    let section = ConfigSection::new(Some(item), FAULT);
    let effects: Vec<&str> = EFFECTS.into_iter().filter(|key| section.has_value(key)).collect();
    let [effect_key] = effects.as_slice() else {
        let message = match effects.as_slice() {
            [] => "this fault has no effect".to_owned(),
            many => format!("this fault has {} effects, but only one is allowed", many.len()),
        };
        let finding = Finding::new(&rules::FAULT_EFFECT, message);
        report.add(
            &item.span,
            finding.help(format!("use exactly one of {}", campaign_core::finding::join_alternatives(EFFECTS))),
        );
        return None;
    };
    for (key, effect, word) in COMPANION_KEYS {
        let fits = *effect_key == effect && (word.is_empty() || section.text(effect) == Some(word));
        if let Some(entry) = section.entry(key).filter(|_| !fits) {
            let needs = if word.is_empty() { format!("`{effect}`") } else { format!("`{effect}: {word}`") };
            let finding = Finding::new(&rules::FAULT_EFFECT, format!("`{key}` needs {needs}"));
            report.add(&entry.key_span, finding.help("remove it"));
        }
    }
    let condition = section.subsection("when");
    let when = read_condition(condition, report);
    for (key, unknown) in UNKNOWN_BEFORE_CONNECTION {
        if let Some(entry) = condition.entry(key).filter(|_| *effect_key == "connection") {
            let message = format!("{unknown} is not known until the connection is established");
            let finding = Finding::new(&rules::FAULT_EFFECT, message);
            report.add(&entry.key_span, finding.help("use `envelope` or `share` as the condition for `connection`"));
        }
    }
    Some(ScenarioFault { when, effect: read_effect(section, effect_key)? })
}

fn read_effect(section: ConfigSection<'_>, key: &str) -> Option<FaultEffect> {
    let text = section.text(key)?;
    Some(match (key, text) {
        ("item_error", text) => FaultEffect::ItemError(text.to_owned()),
        ("top_error", text) => FaultEffect::TopError(text.to_owned()),
        ("delay", _) => FaultEffect::Delay(read_duration(section, "delay")?),
        ("connection", "refused") => FaultEffect::Refused(read_duration(section, "lasts")?),
        ("connection", "closed") => FaultEffect::Closed,
        ("answer", "dropped") => FaultEffect::Dropped,
        ("answer", "truncated") => FaultEffect::Truncated,
        ("answer", "reordered") => FaultEffect::Reordered,
        ("answer", "missing") => FaultEffect::Missing,
        ("answer", "foreign") => FaultEffect::Foreign,
        ("http", _) => FaultEffect::Http {
            status: section.parse_value("http")?,
            retry_after: read_duration(section, "retry_after"),
            executed: section.parse_value("executed")?,
        },
        ("webhook", "twice") => FaultEffect::Webhook(WebhookFault::Twice),
        ("webhook", "late") => FaultEffect::Webhook(WebhookFault::Late(read_duration(section, "by")?)),
        ("webhook", "reordered") => FaultEffect::Webhook(WebhookFault::Reordered),
        ("webhook", "lost") => FaultEffect::Webhook(WebhookFault::Lost),
        _ => return None,
    })
}

pub(super) fn read_condition(section: ConfigSection<'_>, report: &mut FindingCollector) -> ScenarioCondition {
    let is_suffix = |text: &str| (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((text, span)) = section.typed_text("suffix").filter(|(text, _)| !is_suffix(text)) {
        let finding =
            Finding::new(&rules::WRONG_TYPE, format!("`suffix` is `{text}`, but must be the last digits of a number"));
        report.add(span, finding.help("write, for example, `suffix: \"07\"`"));
    }
    let envelope = section.typed_text("envelope").and_then(|(text, span)| {
        let envelopes = parse_envelope_range(text);
        if envelopes.is_none() {
            let finding =
                Finding::new(&rules::WRONG_TYPE, format!("`envelope` is `{text}`, but must be a number or a range"));
            report.add(
                span,
                finding.help("write, for example, `envelope: 3` or `envelope: 3-5`; the first request is 1"),
            );
        }
        envelopes
    });
    ScenarioCondition {
        suffix: section.text("suffix").map(str::to_owned),
        share: section.parse_value("share"),
        envelope,
        endpoint: section.text("endpoint").map(|name| if name == "async" { Endpoint::Async } else { Endpoint::Sync }),
    }
}

/// Parses the number of an envelope, or a range of envelope numbers.
fn parse_envelope_range(text: &str) -> Option<RangeInclusive<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (1 <= first && first <= last).then_some(first..=last)
}

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
    /// The number of the message's envelope among the envelopes with messages.
    pub(crate) envelope: u64,
    pub(crate) endpoint: Endpoint,
}

/// The facts about an envelope with messages that a condition can use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeFacts<'a> {
    /// The phone numbers of all its recipients.
    pub(crate) phones: &'a [Phone],
    /// The envelope's number among the envelopes with messages.
    pub(crate) envelope: u64,
    pub(crate) endpoint: Endpoint,
}

impl ScenarioCondition {
    /// Whether the condition applies to a message.
    pub(crate) fn applies_to_message(&self, draw: RandomDraw, facts: MessageFacts) -> bool {
        self.matches_envelope(facts.envelope, facts.endpoint)
            && self.suffix.as_deref().is_none_or(|suffix| ends_with(facts.phone, suffix))
            && self.share.is_none_or(|share| share.includes_draw(draw.draw_number(facts.phone.to_u64())))
    }

    /// Whether the condition applies to an envelope.
    pub(crate) fn applies_to_envelope(&self, draw: RandomDraw, facts: EnvelopeFacts) -> bool {
        self.matches_envelope(facts.envelope, facts.endpoint)
            && self.suffix.as_deref().is_none_or(|suffix| facts.phones.iter().any(|phone| ends_with(*phone, suffix)))
            && self.share.is_none_or(|share| share.includes_draw(draw.draw_number(facts.envelope)))
    }

    fn matches_envelope(&self, envelope: u64, endpoint: Endpoint) -> bool {
        self.envelope.as_ref().is_none_or(|envelopes| envelopes.contains(&envelope))
            && self.endpoint.is_none_or(|only| only == endpoint)
    }
}

/// Whether a phone number ends with these digits.
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
        let draw = RandomDraw { seed: 1, decision: 1 };
        let when = ScenarioCondition {
            suffix: Some("67".into()),
            envelope: Some(2..=3),
            endpoint: Some(Endpoint::Sync),
            share: Some("100%".parse().expect("a share")),
        };
        assert!(when.applies_to_message(draw, facts(380_501_234_567, 2)));
        assert!(!when.applies_to_message(draw, facts(380_501_234_568, 2)));
        assert!(!when.applies_to_message(draw, facts(380_501_234_567, 4)));
        let other = ScenarioCondition { endpoint: Some(Endpoint::Async), ..when.clone() };
        assert!(!other.applies_to_message(draw, facts(380_501_234_567, 2)));
        let never = ScenarioCondition { share: Some("0%".parse().expect("a share")), ..when.clone() };
        assert!(!never.applies_to_message(draw, facts(380_501_234_567, 2)));
        let phones = [380_501_234_500, 380_501_234_567].map(|phone| Phone::new(phone).expect("a phone"));
        let envelope = |phones| EnvelopeFacts { phones, envelope: 3, endpoint: Endpoint::Sync };
        assert!(when.applies_to_envelope(draw, envelope(&phones)));
        assert!(!when.applies_to_envelope(draw, envelope(&phones[..1])));
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
        let selected = |seed, decision| -> Vec<bool> {
            let draw = RandomDraw { seed, decision };
            (0..10_000).map(|n| when.applies_to_message(draw, facts(380_500_000_000 + n, 1))).collect()
        };
        let count = |selected: &[bool]| selected.iter().filter(|selected| **selected).count();
        let first = selected(7, 1);
        assert!((2_800..3_200).contains(&count(&first)), "{}", count(&first));
        assert_eq!(first, selected(7, 1));
        // Another decision or seed selects other messages.
        for other in [selected(7, 2), selected(8, 1)] {
            let both = first.iter().zip(&other).filter(|(a, b)| **a && **b).count();
            assert!((700..1_100).contains(&both), "{both}");
        }
    }
}
