//! Identifiers of messages: ours and the gateway's.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Row;

/// Our identifier of one message: the contract's `id`, below 2^53 so that every JSON reader reads it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MessageId(u64);

impl MessageId {
    /// One more than the largest identifier.
    pub const LIMIT: u64 = 1 << 53;

    /// The identifier with this number, unless it is too large.
    pub fn new(number: u64) -> Option<Self> {
        (number < Self::LIMIT).then_some(Self(number))
    }

    /// The identifier as a number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The identifiers that a run reserves, one for each row number from 0, so that an identifier can be calculated from
/// its row.
///
/// No message is ever sent with the identifier of row 1, the header. Status inquiries use it as a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdRange {
    /// The identifier of row 0.
    pub first: u64,
    /// The number of reserved identifiers.
    pub len: u64,
}

impl IdRange {
    /// The number of days since 2026-01-01 that fit into the upper 14 bits of an identifier.
    const DAYS: u64 = 1 << 14;
    /// The lower bits: a random start plus an index.
    const SPAN: u64 = 1 << 39;

    /// A range of `len` identifiers, whose upper bits are the days since 2026-01-01 and whose lower bits begin at a
    /// random number.
    ///
    /// `len` is at most 2^32 + 2, so the range always fits.
    pub fn draw(days: u64, random: u64, len: u64) -> Self {
        let start = random % (Self::SPAN - len);
        Self { first: (days % Self::DAYS) * Self::SPAN + start, len }
    }

    /// The identifier of a row of the run. `None` for a row outside the range.
    pub fn id_for_row(self, row: Row) -> Option<MessageId> {
        let offset = u64::from(row.get());
        (offset < self.len).then(|| MessageId::new(self.first + offset)).flatten()
    }

    /// The row to which an identifier belongs. `None` for an identifier outside the range.
    pub fn row_for_id(self, id: MessageId) -> Option<Row> {
        let offset = id.get().checked_sub(self.first)?;
        if offset >= self.len { None } else { u32::try_from(offset).ok().map(Row::new) }
    }

    /// Whether the two ranges overlap. The ledger checks this in its database; tests use this function.
    pub fn overlaps(self, other: Self) -> bool {
        self.first < other.first + other.len && other.first < self.first + self.len
    }
}

/// The gateway's identifier of a message (contract 2.2: string or number), unchanged.
///
/// Stored by position: only append variants. A ledger stores the number of a variant instead of its name. A variant
/// inserted before others would therefore change what old messages mean, and the checksum over the bytes would not
/// detect the change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum GatewayMessageId {
    /// A non-negative whole JSON number.
    Number(u64),
    /// Anything else, as text.
    Text(String),
}

impl GatewayMessageId {
    /// Converts a numeric text to a number, because webhooks send identifiers as text, but answers contain numbers
    /// (contract 2.4, 2.2).
    #[must_use]
    pub fn normalize(self) -> Self {
        match self {
            GatewayMessageId::Text(text) => match text.parse::<u64>() {
                Ok(number) if number.to_string() == text => GatewayMessageId::Number(number),
                _ => GatewayMessageId::Text(text),
            },
            GatewayMessageId::Number(number) => GatewayMessageId::Number(number),
        }
    }
}

impl fmt::Display for GatewayMessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayMessageId::Number(number) => number.fmt(f),
            GatewayMessageId::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn row_ids_map_back_to_their_rows(days in 0_u64..100_000, random: u64, len in 2_u64..6_000_000, row in 0_u32..6_000_000) {
            let range = IdRange::draw(days, random, len);
            match range.id_for_row(Row::new(row)) {
                Some(id) => prop_assert_eq!(range.row_for_id(id), Some(Row::new(row))),
                None => prop_assert!(u64::from(row) >= len),
            }
            prop_assert!(range.first + range.len <= MessageId::LIMIT);
        }
    }
}
