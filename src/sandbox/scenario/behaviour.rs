//! How messages fare in a channel.

use std::time::Duration;

use super::When;
use crate::domain::{Channel, Status};
use crate::manifest::Share;

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
    pub read: Option<Read>,
    /// A reply to a message that was delivered.
    pub reply: Option<Reply>,
    /// The digit that a recipient presses in a call (DTMF).
    pub digit: Option<char>,
    /// How long a call takes; only for voice.
    pub duration: Option<Duration>,
}

/// How many messages are read, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
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
    /// How they fare there.
    pub behaviour: Behaviour,
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
        let read = knows_read(channel).then_some(Read { share: Share::WHOLE, after: Duration::from_secs(3) });
        Self {
            delivered: Share::WHOLE,
            after: Duration::from_secs(2),
            fails_as: Status::Undeliverable,
            read,
            reply: None,
            digit: None,
            duration: (channel == Channel::Voice).then_some(Duration::from_secs(12)),
        }
    }
}

/// Whether the channel tells that a message was read.
#[must_use]
pub(in crate::sandbox) fn knows_read(channel: Channel) -> bool {
    match channel {
        Channel::Viber | Channel::Rcs | Channel::Telegram | Channel::Whatsapp => true,
        Channel::Sms | Channel::Voice | Channel::Hlr | Channel::CallOtp => false,
    }
}

impl Default for Behaviours {
    fn default() -> Self {
        Self(Channel::ALL.map(Behaviour::usual))
    }
}
