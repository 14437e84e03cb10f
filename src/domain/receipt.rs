//! Delivery receipts: what a webhook, or an answer to `status`, tells of a message that was sent.

use jiff::Timestamp;

use super::{Channel, GatewayMessageId, Status};

/// What the gateway told of one message (contract 2.4 and 2.5).
///
/// Two receipts that are equal tell the same thing twice.
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    /// How it was told.
    pub source: ReceiptSource,
    /// The gateway's word.
    pub status: Status,
    /// The channel that it names; nothing if it names none.
    pub channel: Option<ReportedChannel>,
    /// When the status changed, by the gateway's clock.
    pub updated: Option<Timestamp>,
    /// The gateway's identifier of the message.
    pub msg_id: Option<GatewayMessageId>,
    /// The identifier of the queued envelope that it was in (contract 2.3).
    pub request_id: Option<String>,
    /// Why it was refused or did not arrive, in the gateway's words.
    pub error: Option<String>,
    /// The digits that the recipient pressed (DTMF).
    pub digit: Option<String>,
    /// How long the call lasted, in whole seconds.
    pub duration: Option<u64>,
    /// What the recipient answered.
    pub replies: Vec<RecipientReply>,
}

/// How a receipt came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptSource {
    /// A webhook to the message's own address.
    Webhook,
    /// The answer to a `status` question.
    Asked,
    /// The answer to a `status` question after the lifetimes of all channels: no later receipt is expected.
    AskedLast,
}

/// The channel that a receipt names in `type` (contract 2.4 and 2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportedChannel {
    /// A channel that `campaign` knows.
    Known(Channel),
    /// Any other word, verbatim.
    Other(String),
}

/// What a recipient answered to a message (contract 2.4 `replies`).
#[derive(Clone, PartialEq, Eq)]
pub struct RecipientReply {
    /// When, by the gateway's clock.
    pub at: Option<Timestamp>,
    /// The words.
    pub text: String,
    /// What came with them.
    pub media: Option<Media>,
}

/// A file that came with an answer (contract 2.4 `media`).
#[derive(Clone, PartialEq, Eq)]
pub struct Media {
    /// Where it is.
    pub url: String,
    /// Its name.
    pub filename: Option<String>,
    /// Its size in bytes.
    pub filesize: Option<u64>,
}

impl ReportedChannel {
    /// The channel that this word names, in any case; nothing for a blank word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let name = word.trim();
        let known = Channel::from_name(&name.to_ascii_lowercase()).map(Self::Known);
        known.or_else(|| (!name.is_empty()).then(|| Self::Other(name.to_owned())))
    }

    /// The channel, if `campaign` knows it.
    #[must_use]
    pub fn as_known(&self) -> Option<Channel> {
        match self {
            Self::Known(channel) => Some(*channel),
            Self::Other(_) => None,
        }
    }

    /// The gateway's word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(channel) => channel.name(),
            Self::Other(word) => word,
        }
    }
}

impl Receipt {
    /// The channel that it names, if `campaign` knows it.
    #[must_use]
    pub fn known_channel(&self) -> Option<Channel> {
        self.channel.as_ref().and_then(ReportedChannel::as_known)
    }

    /// A receipt that tells nothing but a status.
    #[must_use]
    pub fn new(source: ReceiptSource, status: Status) -> Self {
        Self {
            source,
            status,
            channel: None,
            updated: None,
            msg_id: None,
            request_id: None,
            error: None,
            digit: None,
            duration: None,
            replies: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Receipt {
    /// Shows nothing that a recipient said: it is a person's own.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receipt").field("source", &self.source).field("status", &self.status).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RecipientReply {
    /// Shows nothing that a recipient said: it is a person's own.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecipientReply").field("at", &self.at).finish_non_exhaustive()
    }
}
