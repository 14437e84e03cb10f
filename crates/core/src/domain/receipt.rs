//! Delivery receipts and the statuses of messages.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Channel, GatewayMessageId};

/// A status report of the gateway for one message (contract 2.4 and 2.5).
///
/// Equal receipts report the same fact.
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The source of the receipt.
    pub source: ReceiptSource,
    /// The status in the gateway's terms.
    pub status: Status,
    /// The reported channel, if any.
    pub channel: Option<ReportedChannel>,
    /// The time at which the status changed, according to the gateway's clock.
    pub updated: Option<Timestamp>,
    /// The gateway's identifier for the message.
    pub msg_id: Option<GatewayMessageId>,
    /// The identifier of the queued envelope that contained the message (contract 2.3).
    pub request_id: Option<String>,
    /// The reason for the rejection or failure, in the gateway's words.
    pub error: Option<String>,
    /// The digits that the recipient pressed (DTMF).
    pub digit: Option<String>,
    /// The duration of the call, in whole seconds.
    pub duration: Option<u64>,
    /// The recipient's replies.
    pub replies: Vec<RecipientReply>,
}

/// The way in which a receipt arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptSource {
    /// A webhook to the message's own address.
    Webhook,
    /// The answer to a `status` request.
    Asked,
    /// The answer to a `status` request after the lifetimes of all channels: no later receipt is expected.
    AskedLast,
}

/// The channel in the `type` of a receipt (contract 2.4 and 2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportedChannel {
    /// A known channel.
    Known(Channel),
    /// Any other name, verbatim.
    Other(String),
}

/// A reply of the recipient to a message (contract 2.4 `replies`).
#[derive(Clone, PartialEq, Eq)]
pub struct RecipientReply {
    /// The time, according to the gateway's clock.
    pub at: Option<Timestamp>,
    /// The text of the reply.
    pub text: String,
    /// The attached file.
    pub media: Option<Media>,
}

/// A file attached to a reply (contract 2.4 `media`).
#[derive(Clone, PartialEq, Eq)]
pub struct Media {
    /// The address of the file.
    pub url: String,
    /// The name of the file.
    pub filename: Option<String>,
    /// The size in bytes.
    pub filesize: Option<u64>,
}

impl ReportedChannel {
    /// The channel with this name, ignoring case; `None` for a blank name.
    pub fn parse(word: &str) -> Option<Self> {
        let name = word.trim();
        let known = Channel::from_name(&name.to_ascii_lowercase()).map(Self::Known);
        known.or_else(|| (!name.is_empty()).then(|| Self::Other(name.to_owned())))
    }

    /// The channel, if it is known.
    pub fn as_known(&self) -> Option<Channel> {
        match self {
            Self::Known(channel) => Some(*channel),
            Self::Other(_) => None,
        }
    }

    /// The name that the gateway uses.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(channel) => channel.name(),
            Self::Other(word) => word,
        }
    }
}

impl Receipt {
    /// The reported channel, if it is known.
    pub fn known_channel(&self) -> Option<Channel> {
        self.channel.as_ref().and_then(ReportedChannel::as_known)
    }

    /// A receipt with only a status.
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
    /// Omits the replies, which are personal data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receipt").field("source", &self.source).field("status", &self.status).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RecipientReply {
    /// Omits the text, which is personal data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecipientReply").field("at", &self.at).finish_non_exhaustive()
    }
}

/// The delivery state that a status means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// The gateway has the message; the state is not final.
    Pending,
    /// Delivered, perhaps only in part, and not known to be read.
    Delivered,
    /// Delivered and read.
    Read,
    /// Final: not delivered.
    Failed,
}

/// The status of a message in the gateway's terms (contract 2.4, 2.5 and 3; the set is open).
///
/// Stored by position: only append variants. A ledger stores the number of a variant instead of its name. A variant
/// inserted before others would therefore change what old messages mean, and the checksum over the bytes would not
/// detect the change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Accepted, not yet routed.
    Queued,
    /// On the way to the operator.
    Routing,
    /// Accepted by the operator.
    Accepted,
    /// Delivered.
    Delivered,
    /// Some parts were delivered.
    PartiallyDelivered,
    /// Read.
    Read,
    /// The recipient replied.
    Replied,
    /// The lifetime ended before delivery.
    Expired,
    /// Cannot be delivered.
    Undeliverable,
    /// Rejected by the gateway.
    Rejected,
    /// Removed by the gateway.
    Deleted,
    /// Blocked by a filter.
    Filtered,
    /// The number is wrong.
    InvalidDestination,
    /// The sender name is wrong.
    InvalidSource,
    /// The gateway has no route to the operator.
    NoRoute,
    /// The recipient's SIM is full.
    SimFull,
    /// Unknown to the gateway; it can still change to any other status.
    Unknown,
    /// An unknown status, verbatim.
    Other(String),
}

impl Status {
    /// Every known status.
    pub const KNOWN_STATUSES: [Status; 17] = [
        Status::Queued,
        Status::Routing,
        Status::Accepted,
        Status::Delivered,
        Status::PartiallyDelivered,
        Status::Read,
        Status::Replied,
        Status::Expired,
        Status::Undeliverable,
        Status::Rejected,
        Status::Deleted,
        Status::Filtered,
        Status::InvalidDestination,
        Status::InvalidSource,
        Status::NoRoute,
        Status::SimFull,
        Status::Unknown,
    ];

    /// The status with this name, ignoring case; [`Status::Other`] for an unknown name.
    pub fn from_name(name: &str) -> Self {
        Self::KNOWN_STATUSES
            .into_iter()
            .find(|status| status.name().eq_ignore_ascii_case(name.trim()))
            .unwrap_or_else(|| Status::Other(name.to_owned()))
    }

    /// The delivery state that the status means.
    ///
    /// The contract does not list statuses, so this mapping follows the platform. `UNKNOWN` and unrecognized statuses
    /// can still change to any other status.
    pub fn delivery_state(&self) -> DeliveryState {
        match self {
            Status::Delivered | Status::PartiallyDelivered => DeliveryState::Delivered,
            Status::Read | Status::Replied => DeliveryState::Read,
            Status::Expired
            | Status::Undeliverable
            | Status::Rejected
            | Status::Deleted
            | Status::Filtered
            | Status::InvalidDestination
            | Status::InvalidSource
            | Status::NoRoute
            | Status::SimFull => DeliveryState::Failed,
            Status::Queued | Status::Routing | Status::Accepted | Status::Unknown | Status::Other(_) => {
                DeliveryState::Pending
            }
        }
    }

    /// Whether the status is final and the message was not delivered.
    pub fn is_failure(&self) -> bool {
        self.delivery_state() == DeliveryState::Failed
    }

    /// The name that the gateway uses.
    pub fn name(&self) -> &str {
        match self {
            Status::Queued => "QUEUED",
            Status::Routing => "ROUTING",
            Status::Accepted => "ACCEPTED",
            Status::Delivered => "DELIVERED",
            Status::PartiallyDelivered => "PARTIALLY DELIVERED",
            Status::Read => "READ",
            Status::Replied => "REPLIED",
            Status::Expired => "EXPIRED",
            Status::Undeliverable => "UNDELIVERABLE",
            Status::Rejected => "REJECTED",
            Status::Deleted => "DELETED",
            Status::Filtered => "FILTERED",
            Status::InvalidDestination => "INVALID DESTINATION ADDRESS",
            Status::InvalidSource => "INVALID SOURCE ADDRESS",
            Status::NoRoute => "NO ROUTE",
            Status::SimFull => "SIM FULL",
            Status::Unknown => "UNKNOWN",
            Status::Other(word) => word,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_status_keeps_the_spelling_of_the_gateway() {
        for status in Status::KNOWN_STATUSES {
            assert_eq!(Status::from_name(status.name()), status);
        }
        assert_eq!(Status::from_name("Paused"), Status::Other("Paused".into()));
        assert_eq!(Status::from_name("read"), Status::Read);
    }
}
