//! Delivery receipts: what a webhook, or an answer to `status`, tells of a message that was sent.

use jiff::Timestamp;

use super::{Channel, MsgId, Status};

/// What the gateway told of one message (contract 2.4 and 2.5).
///
/// Two receipts that are equal tell the same thing twice.
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    /// How it was told.
    pub source: ReceiptSource,
    /// The gateway's word.
    pub status: Status,
    /// The channel that it is about, where it was told and is known here.
    pub channel: Option<Channel>,
    /// When the status changed, by the gateway's clock.
    pub updated: Option<Timestamp>,
    /// The gateway's identifier of the message.
    pub msg_id: Option<MsgId>,
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
    /// The gateway sent it by itself, to the message's own address.
    Webhook,
    /// The gateway answered it when it was asked.
    Asked,
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

impl Receipt {
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
