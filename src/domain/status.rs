//! Statuses that the gateway tells of a message.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a status says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// The gateway has it; nothing is final.
    Pending,
    /// It arrived.
    Delivered,
    /// It arrived and was read.
    Read,
    /// It will not arrive.
    Failed,
}

/// A message's status in the gateway's words (contract 2.4, 2.5 and 3; the set is open).
///
/// Stored by position: only append. A ledger holds the number of a variant and not its name, so one put before
/// others changes what was recorded of old messages, and the checksum, which is over the bytes, still agrees.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Status {
    /// Taken, not yet routed.
    Queued,
    /// On its way to the operator.
    Routing,
    /// Taken by the operator.
    Accepted,
    /// Arrived.
    Delivered,
    /// Some of its parts arrived.
    PartiallyDelivered,
    /// Was read.
    Read,
    /// Was answered.
    Replied,
    /// Its lifetime ended first.
    Expired,
    /// Cannot be delivered.
    Undeliverable,
    /// Refused by the gateway.
    Rejected,
    /// Removed by the gateway.
    Deleted,
    /// Held by a filter.
    Filtered,
    /// The number is wrong.
    InvalidDestination,
    /// The sender name is wrong.
    InvalidSource,
    /// No way to the operator.
    NoRoute,
    /// The recipient's SIM is full.
    SimFull,
    /// The gateway does not know; it may become anything.
    Unknown,
    /// A word that is not known here, kept as it is.
    Other(String),
}

impl Status {
    /// Every status that is known by name.
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

    /// The status of that name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        Self::KNOWN_STATUSES
            .into_iter()
            .find(|status| status.name().eq_ignore_ascii_case(name.trim()))
            .unwrap_or_else(|| Status::Other(name.to_owned()))
    }

    /// What it says of the message.
    ///
    /// The contract shows no list; this is the platform's. UNKNOWN and words that are not known here may become anything.
    #[must_use]
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

    /// Whether it is final and the message did not arrive.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.delivery_state() == DeliveryState::Failed
    }

    /// The gateway's word.
    #[must_use]
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
    fn status_keeps_gateway_spelling() {
        for status in Status::KNOWN_STATUSES {
            assert_eq!(Status::from_name(status.name()), status);
        }
        assert_eq!(Status::from_name("Paused"), Status::Other("Paused".into()));
        assert_eq!(Status::from_name("read"), Status::Read);
    }
}
