//! Channels and endpoints of the gateway.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One way to reach a recipient: a messaging channel or a service on a number (contract 1 and 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// A text message.
    Sms,
    /// A Viber business message.
    Viber,
    /// A rich message (RCS).
    Rcs,
    /// A one-time code by Telegram.
    Telegram,
    /// A spoken message.
    Voice,
    /// A WhatsApp message; only a stage of a pipeline.
    Whatsapp,
    /// A lookup of a number; sends nothing.
    Hlr,
    /// A call whose last four digits are a one-time code.
    #[serde(rename = "call/otp")]
    CallOtp,
}

impl Channel {
    /// Every channel, in the order in which documents name them.
    pub const ALL: [Channel; 8] = [
        Channel::Sms,
        Channel::Viber,
        Channel::Rcs,
        Channel::Telegram,
        Channel::Voice,
        Channel::Whatsapp,
        Channel::Hlr,
        Channel::CallOtp,
    ];

    /// The channel's name in campaign files and in a pipeline.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Channel::Sms => "sms",
            Channel::Viber => "viber",
            Channel::Rcs => "rcs",
            Channel::Telegram => "telegram",
            Channel::Voice => "voice",
            Channel::Whatsapp => "whatsapp",
            Channel::Hlr => "hlr",
            Channel::CallOtp => "call/otp",
        }
    }

    /// The channel of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The gateway's endpoint that a campaign is sent through (contract 4.1 and 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// Answers each operation with a `msg_id`.
    #[default]
    Sync,
    /// Queues the envelope and answers with one `request_id`.
    Async,
}

impl Endpoint {
    /// The endpoint's name in campaign files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Sync => "sync",
            Endpoint::Async => "async",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
