//! How messages fare in a channel.

use std::time::Duration;

use super::channels::play;
use super::keys::{BEHAVIOUR, EXCEPTION};
use super::load::seconds;
use super::{When, fault};
use crate::domain::{Channel, Status};
use crate::finding::{Finding, rules};
use crate::manifest::Share;
use crate::manifest::document::{Node, Report, Section};

/// How messages fare in one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// How many are delivered.
    pub delivered: Share,
    /// How long after the channel was tried the message is delivered, or failed.
    pub after: Duration,
    /// The status of a message that is not delivered.
    pub fails_as: Status,
    /// How many of the delivered ones are read; nothing where the channel does not know it.
    pub read: Option<Reading>,
    /// A reply to a message that was delivered.
    pub reply: Option<Reply>,
    /// The digit that a recipient presses in a call (DTMF).
    pub digit: Option<char>,
    /// How long a call takes; only for voice.
    pub duration: Option<Duration>,
}

/// How many messages are read, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// How many of those that were delivered.
    pub share: Share,
    /// How long after the delivery.
    pub after: Duration,
}

/// Replies to messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// How many of those that were delivered are replied to.
    pub share: Share,
    /// How long after the delivery, or after it was read if it was.
    pub after: Duration,
    /// What it says.
    pub message: String,
}

/// Messages that fare otherwise than their channel's behaviour says.
#[derive(Clone, Debug, PartialEq)]
pub struct Exception {
    /// Which messages.
    pub when: When,
    /// In which channel; nothing for all.
    pub channel: Option<Channel>,
    /// How they fare, channel by channel.
    pub behaviours: Behaviours,
}

/// The behaviour of each channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviours([Behaviour; Channel::ALL.len()]);

impl Behaviours {
    /// How messages fare in that channel.
    #[must_use]
    pub fn of(&self, channel: Channel) -> &Behaviour {
        &self.0[channel as usize]
    }

    /// Sets how messages fare in that channel.
    pub fn set(&mut self, channel: Channel, behaviour: Behaviour) {
        self.0[channel as usize] = behaviour;
    }
}

impl Behaviour {
    /// How messages fare in that channel if nobody says otherwise.
    #[must_use]
    pub fn usual(channel: Channel) -> Self {
        let play = play(channel);
        let read = play.tells_reading.then_some(Reading { share: Share::WHOLE, after: Duration::from_secs(3) });
        Self {
            delivered: Share::WHOLE,
            after: Duration::from_secs(2),
            fails_as: Status::Undeliverable,
            read,
            reply: None,
            digit: None,
            duration: play.is_spoken.then_some(Duration::from_secs(12)),
        }
    }
}

impl Default for Behaviours {
    fn default() -> Self {
        Self(Channel::ALL.map(Behaviour::usual))
    }
}

/// The behaviours that a scenario gives to its channels.
pub(super) fn behaviours(channels: Section<'_>, report: &mut Report) -> Behaviours {
    let mut behaviours = Behaviours::default();
    for channel in Channel::ALL {
        let changed = change(behaviours.of(channel), Some(channel), channels.section(channel.name()), report);
        behaviours.set(channel, changed);
    }
    behaviours
}

/// The exceptions of a scenario; what they do not say is as their channel's behaviour says.
pub(super) fn exceptions(items: &[Node], usual: &Behaviours, report: &mut Report) -> Vec<Exception> {
    let exception = |item: &Node, report: &mut Report| {
        let section = Section::new(Some(item), EXCEPTION);
        let channel = section.text("channel").and_then(Channel::from_name);
        let then = section.section("then");
        let mut behaviours = usual.clone();
        for each in Channel::ALL.into_iter().filter(|each| channel.is_none_or(|only| only == *each)) {
            // What only some channels know is no mistake where all are meant.
            behaviours.set(each, change(usual.of(each), channel, then, report));
        }
        Exception { when: fault::when(section.section("when"), report), channel, behaviours }
    };
    items.iter().map(|item| exception(item, report)).collect()
}

/// A behaviour with what a section says of it; `channel` is the only one that is meant, if there is one.
fn change(usual: &Behaviour, channel: Option<Channel>, section: Section<'_>, report: &mut Report) -> Behaviour {
    let digit = section.typed("digit");
    if let Some((text, span)) = digit
        && !matches!(text.as_bytes(), [b'0'..=b'9' | b'*' | b'#'])
    {
        let finding =
            Finding::new(&rules::WRONG_TYPE, format!("`digit` is `{text}`, but must be one key on a phone keypad"));
        report.at(span, finding.help("write a digit, `*` or `#`"));
    }
    if let Some(channel) = channel {
        refuse_unknown(channel, section, report);
    }
    let read = usual.read.map(|read| Reading {
        share: section.parsed("read").unwrap_or(read.share),
        after: seconds(section, "read_after").unwrap_or(read.after),
    });
    Behaviour {
        delivered: section.parsed("delivered").unwrap_or(usual.delivered),
        after: seconds(section, "after").unwrap_or(usual.after),
        fails_as: section.text("fails_as").map_or_else(|| usual.fails_as.clone(), Status::from_name),
        read,
        reply: reply(section.section("reply")).or_else(|| usual.reply.clone()),
        digit: digit.and_then(|(text, _)| text.chars().next()).or(usual.digit),
        duration: seconds(section, "duration").filter(|_| usual.duration.is_some()).or(usual.duration),
    }
}

/// Tells what the channel cannot know.
fn refuse_unknown(channel: Channel, section: Section<'_>, report: &mut Report) {
    let play = play(channel);
    let known = |key: &str| match key {
        "read" | "read_after" => play.tells_reading,
        "digit" | "duration" => play.is_spoken,
        _ => true,
    };
    for key in BEHAVIOUR.iter().filter(|key| !known(key.name)) {
        if let Some(entry) = section.entry(key.name) {
            let finding = Finding::new(&rules::NOT_KNOWN, format!("`{channel}` does not support `{}`", key.name));
            report.at(&entry.key_span, finding.help("remove it"));
        }
    }
}

fn reply(section: Section<'_>) -> Option<Reply> {
    let message = section.typed("message")?.0.to_owned();
    Some(Reply { share: section.parsed("share")?, after: seconds(section, "after")?, message })
}
