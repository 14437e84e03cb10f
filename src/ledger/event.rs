//! What was learnt or decided about single rows after their envelope was settled.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::RowState;
use crate::domain::{Chain, GatewayMessageId, ReportedChannel, Row, Status};

/// Something that was learnt or decided about one row. Events are added and never changed.
#[derive(Clone, Debug, PartialEq)]
pub struct RowEvent {
    /// The row.
    pub row: Row,
    /// The envelope of the attempt that it is about.
    pub envelope: u32,
    /// When it was recorded.
    pub at: Timestamp,
    /// What it is.
    pub change: RowChange,
}

/// An event that is to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRowEvent {
    /// The row.
    pub row: Row,
    /// The envelope of the attempt that it is about.
    pub envelope: u32,
    /// What it is.
    pub change: RowChange,
}

/// What was learnt or decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredChange", into = "StoredChange")]
pub enum RowChange {
    /// The gateway knows the message: it went out, or was refused after it was queued.
    Found {
        /// The gateway's word for its status.
        status: String,
        /// The gateway's identifier.
        msg_id: Option<GatewayMessageId>,
        /// The channel that the answer names; nothing if it names none.
        channel: Option<ReportedChannel>,
    },
    /// The gateway was asked often and long enough, and does not know the message. It stays in doubt.
    NotFound {
        /// How often it was asked.
        asked: u32,
    },
    /// Everything that could be asked was asked.
    Unresolved {
        /// How often it was asked.
        asked: u32,
    },
    /// It counts as sent.
    AssumedSent {
        /// Who decided.
        by: Author,
        /// Why, in the words of who decided.
        why: Option<String>,
    },
    /// It counts as not sent, and is not sent by itself.
    NotSent {
        /// Who decided.
        by: Author,
        /// Why, in the words of who decided.
        why: Option<String>,
    },
    /// It is to be sent again under the same identifier.
    SendAgain {
        /// Who decided.
        by: Author,
        /// Why, in the words of who decided.
        why: Option<String>,
    },
    /// It is to be sent as a new message, under an identifier of this order.
    Retry {
        /// Who decided.
        by: Author,
        /// The order, from 1.
        order: u32,
    },
}

/// A change as it is stored.
///
/// Stored by position: only append. A ledger holds the number of a variant and not its name, so one put before
/// others changes what was recorded of old messages, and the checksum, which is over the bytes, still agrees.
#[derive(Clone, Serialize, Deserialize)]
enum StoredChange {
    /// [`Change::Found`] without a channel.
    Found {
        status: String,
        msg_id: Option<GatewayMessageId>,
    },
    NotFound {
        asked: u32,
    },
    Unresolved {
        asked: u32,
    },
    AssumedSent {
        by: Author,
        why: Option<String>,
    },
    NotSent {
        by: Author,
        why: Option<String>,
    },
    SendAgain {
        by: Author,
        why: Option<String>,
    },
    Retry {
        by: Author,
        order: u32,
    },
    /// [`Change::Found`] with the word for a channel.
    FoundOnChannel {
        status: String,
        msg_id: Option<GatewayMessageId>,
        channel: String,
    },
}

impl From<StoredChange> for RowChange {
    fn from(stored: StoredChange) -> Self {
        match stored {
            StoredChange::Found { status, msg_id } => Self::Found { status, msg_id, channel: None },
            StoredChange::FoundOnChannel { status, msg_id, channel } => {
                Self::Found { status, msg_id, channel: ReportedChannel::parse(&channel) }
            }
            StoredChange::NotFound { asked } => Self::NotFound { asked },
            StoredChange::Unresolved { asked } => Self::Unresolved { asked },
            StoredChange::AssumedSent { by, why } => Self::AssumedSent { by, why },
            StoredChange::NotSent { by, why } => Self::NotSent { by, why },
            StoredChange::SendAgain { by, why } => Self::SendAgain { by, why },
            StoredChange::Retry { by, order } => Self::Retry { by, order },
        }
    }
}

impl From<RowChange> for StoredChange {
    fn from(change: RowChange) -> Self {
        match change {
            RowChange::Found { status, msg_id, channel: None } => Self::Found { status, msg_id },
            RowChange::Found { status, msg_id, channel: Some(channel) } => {
                Self::FoundOnChannel { status, msg_id, channel: channel.as_str().to_owned() }
            }
            RowChange::NotFound { asked } => Self::NotFound { asked },
            RowChange::Unresolved { asked } => Self::Unresolved { asked },
            RowChange::AssumedSent { by, why } => Self::AssumedSent { by, why },
            RowChange::NotSent { by, why } => Self::NotSent { by, why },
            RowChange::SendAgain { by, why } => Self::SendAgain { by, why },
            RowChange::Retry { by, order } => Self::Retry { by, order },
        }
    }
}

/// Who decided about a row.
///
/// Stored by position: only append. A ledger holds the number of a variant and not its name, so one put before
/// others changes what was recorded of old messages, and the checksum, which is over the bytes, still agrees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Author {
    /// A person, by the name of the account on this computer.
    Person(String),
    /// The campaign's own rule, as it is written there.
    Policy(String),
}

impl fmt::Display for Author {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Author::Person(name) => f.write_str(name),
            Author::Policy(rule) => write!(f, "the campaign (`{rule}`)"),
        }
    }
}

impl RowChange {
    /// The new state of a row whose message has this chain; `None` if the state does not change.
    #[must_use]
    pub fn resulting_state(&self, chain: Chain) -> Option<RowState> {
        match self {
            RowChange::Found { status, channel, .. } => {
                let failed = Status::from_name(status).is_failure() && chain.ends_with(channel.as_ref());
                Some(if failed { RowState::Failed } else { RowState::Accepted })
            }
            RowChange::NotFound { .. } => None,
            RowChange::Unresolved { .. } => Some(RowState::Unresolved),
            RowChange::AssumedSent { .. } => Some(RowState::AssumedSent),
            RowChange::NotSent { .. } => Some(RowState::NotSent),
            RowChange::SendAgain { .. } | RowChange::Retry { .. } => Some(RowState::Planned),
        }
    }

    /// Whether a row in that state, whose message has this chain, can be changed so.
    #[must_use]
    pub fn applies_to(&self, state: RowState, chain: Chain) -> bool {
        match (self, self.resulting_state(chain)) {
            // Trying again is a new message, so what is final about the old one stays final.
            (RowChange::Retry { .. }, _) => matches!(state, RowState::Rejected | RowState::NotSent | RowState::Failed),
            // Proof that it went out wins over everything that was only concluded.
            (RowChange::Found { .. }, _) if state == RowState::Planned => true,
            // What is on its way has no end yet that a decision could be about.
            (RowChange::NotSent { .. } | RowChange::SendAgain { .. }, _) if state == RowState::Sending => false,
            (_, Some(next)) => state.can_become(next),
            (_, None) => state == RowState::InDoubt,
        }
    }
}

/// A row that the gateway was asked about: how often, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRow {
    /// The row.
    pub row: Row,
    /// The envelope of the attempt that was asked about.
    pub envelope: u32,
    /// How often it was asked about.
    pub asked: u32,
    /// How many denials count: those that came long enough after the sending and after each other.
    pub negatives: u32,
    /// When it was first asked about.
    pub first_at: Timestamp,
    /// When it was last asked about.
    pub last_at: Timestamp,
    /// When the last denial that counts came.
    pub negative_at: Option<Timestamp>,
    /// The last answer, in words.
    pub answer: String,
}

/// A row that goes out again as a new message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetriedRow {
    /// The row.
    pub row: Row,
    /// The envelope of the attempt that was refused.
    pub envelope: u32,
}

/// An order to send rows again as new messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryOrder {
    /// The rows.
    pub rows: Vec<RetriedRow>,
    /// Who gave it.
    pub by: Author,
    /// A random number for its identifiers.
    pub random: u64,
}
