//! Behaviour of messages on a channel, and exceptions to it.

use std::time::Duration;

use super::keys::{BEHAVIOUR, EXCEPTION, channel_defaults};
use super::{ScenarioCondition, fault, read_duration};
use campaign_core::domain::{Channel, Status};
use campaign_core::finding::{Finding, rules};
use campaign_manifest::Percentage;
use campaign_manifest::document::{ConfigSection, FindingCollector, Node};

/// The behaviour of messages on one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// The share of messages that are delivered.
    pub delivered: Percentage,
    /// The time from the attempt to the delivery or failure.
    pub after: Duration,
    /// The status of a message that is not delivered.
    pub fails_as: Status,
    /// The share of delivered messages that are read; `None` if the channel does not report it.
    pub read: Option<ReadBehaviour>,
    /// A reply to a message that was delivered.
    pub reply: Option<ReplyBehaviour>,
    /// The digit that the recipient presses (DTMF).
    pub digit: Option<char>,
    /// The duration of a call; only for voice.
    pub duration: Option<Duration>,
}

/// The share of delivered messages that are read, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadBehaviour {
    /// The share of delivered messages that are read.
    pub share: Percentage,
    /// The time after the delivery.
    pub after: Duration,
}

/// Replies to messages.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyBehaviour {
    /// The share of delivered messages that get a reply.
    pub share: Percentage,
    /// The time after the message was read, or after its delivery if it was not read.
    pub after: Duration,
    /// The text of the reply.
    pub message: String,
}

/// Messages with a different behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    /// The messages.
    pub when: ScenarioCondition,
    /// The channel; `None` for all channels.
    pub channel: Option<Channel>,
    /// The behaviour on each channel.
    pub behaviours: Behaviours,
}

/// The behaviour of each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviours([Behaviour; Channel::ALL.len()]);

impl Behaviours {
    /// The behaviour on a channel.
    pub fn for_channel(&self, channel: Channel) -> &Behaviour {
        &self.0[channel as usize]
    }

    /// Sets the behaviour on a channel.
    pub fn set(&mut self, channel: Channel, behaviour: Behaviour) {
        self.0[channel as usize] = behaviour;
    }
}

impl Behaviour {
    /// The default behaviour of a channel.
    pub fn default_for(channel: Channel) -> Self {
        let defaults = channel_defaults(channel);
        let read = ReadBehaviour { share: Percentage::WHOLE, after: Duration::from_secs(3) };
        Self {
            delivered: Percentage::WHOLE,
            after: Duration::from_secs(2),
            fails_as: Status::Undeliverable,
            read: defaults.reports_reading.then_some(read),
            reply: None,
            digit: None,
            duration: defaults.is_spoken.then_some(Duration::from_secs(12)),
        }
    }
}

impl Default for Behaviours {
    fn default() -> Self {
        Self(Channel::ALL.map(Behaviour::default_for))
    }
}

/// Reads the behaviours of the channels.
pub(super) fn read_behaviours(channels: ConfigSection<'_>, report: &mut FindingCollector) -> Behaviours {
    let mut behaviours = Behaviours::default();
    for channel in Channel::ALL {
        let changed =
            read_behaviour(behaviours.for_channel(channel), Some(channel), channels.subsection(channel.name()), report);
        behaviours.set(channel, changed);
    }
    behaviours
}

/// Reads the exceptions of a scenario. Exceptions inherit the usual behaviour of the channel.
pub(super) fn read_exceptions(items: &[Node], usual: &Behaviours, report: &mut FindingCollector) -> Vec<Exception> {
    let exception = |item: &Node, report: &mut FindingCollector| {
        let section = ConfigSection::new(Some(item), EXCEPTION);
        let channel = section.text("channel").and_then(Channel::from_name);
        let then = section.subsection("then");
        let mut behaviours = usual.clone();
        for target in Channel::ALL.into_iter().filter(|target| channel.is_none_or(|only| only == *target)) {
            // Keys that only some channels support are allowed if the exception covers all channels.
            behaviours.set(target, read_behaviour(usual.for_channel(target), channel, then, report));
        }
        Exception { when: fault::read_condition(section.subsection("when"), report), channel, behaviours }
    };
    items.iter().map(|item| exception(item, report)).collect()
}

/// Reads a behaviour; the usual behaviour supplies missing values. `channel` is set if the section concerns a single
/// channel.
fn read_behaviour(
    usual: &Behaviour,
    channel: Option<Channel>,
    section: ConfigSection<'_>,
    report: &mut FindingCollector,
) -> Behaviour {
    let digit = section.typed_text("digit");
    if let Some((text, span)) = digit
        && !matches!(text.as_bytes(), [b'0'..=b'9' | b'*' | b'#'])
    {
        let finding = Finding::new(
            &rules::WRONG_TYPE,
            format!("`digit` is `{text}`, but must be a single key on a phone keypad"),
        );
        report.add(span, finding.help("write a digit, `*` or `#`"));
    }
    if let Some(channel) = channel {
        report_unsupported(channel, section, report);
    }
    let read = usual.read.map(|read| ReadBehaviour {
        share: section.parse_value("read").unwrap_or(read.share),
        after: read_duration(section, "read_after").unwrap_or(read.after),
    });
    Behaviour {
        delivered: section.parse_value("delivered").unwrap_or(usual.delivered),
        after: read_duration(section, "after").unwrap_or(usual.after),
        fails_as: section.text("fails_as").map_or_else(|| usual.fails_as.clone(), Status::from_name),
        read,
        reply: read_reply(section.subsection("reply")).or_else(|| usual.reply.clone()),
        digit: digit.and_then(|(text, _)| text.chars().next()).or(usual.digit),
        duration: read_duration(section, "duration").filter(|_| usual.duration.is_some()).or(usual.duration),
    }
}

/// Reports keys that the channel does not support.
fn report_unsupported(channel: Channel, section: ConfigSection<'_>, report: &mut FindingCollector) {
    let defaults = channel_defaults(channel);
    let is_supported = |key: &str| match key {
        "read" | "read_after" => defaults.reports_reading,
        "digit" | "duration" => defaults.is_spoken,
        _ => true,
    };
    for key in BEHAVIOUR.iter().filter(|key| !is_supported(key.name)) {
        if let Some(entry) = section.entry(key.name) {
            let finding = Finding::new(&rules::NOT_KNOWN, format!("`{channel}` does not support `{}`", key.name));
            report.add(&entry.key_span, finding.help("remove it"));
        }
    }
}

fn read_reply(section: ConfigSection<'_>) -> Option<ReplyBehaviour> {
    let message = section.typed_text("message")?.0.to_owned();
    Some(ReplyBehaviour { share: section.parse_value("share")?, after: read_duration(section, "after")?, message })
}
