//! The stored form of records: rows and outcomes in postcard (variable-length integers, no names), row sets, and
//! checksums.

use roaring::RoaringBitmap;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::{LedgerError, SentRow};
use campaign_core::domain::{Amount, Chain, OperationOutcome, ParseAmountError};

/// More rows than any envelope has. A damaged record must not exhaust the memory.
const MAX_ENVELOPE_ROWS: usize = 1_000_000;

/// Encodes a list.
pub(crate) fn pack_list<T: Serialize>(list: &[T]) -> Result<Vec<u8>, LedgerError> {
    postcard::to_stdvec(list).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// Decodes a list.
pub(crate) fn unpack_list<T: DeserializeOwned>(bytes: &[u8]) -> Result<Vec<T>, LedgerError> {
    postcard::from_bytes(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// Encodes the outcomes of an envelope. Equal neighbours are stored once with their count.
pub(crate) fn pack_outcomes(outcomes: &[OperationOutcome]) -> Result<Vec<u8>, LedgerError> {
    let groups: Vec<(usize, &OperationOutcome)> =
        outcomes.chunk_by(|one, next| one == next).map(|chunk| (chunk.len(), &chunk[0])).collect();
    pack_list(&groups)
}

/// Decodes outcomes.
pub(crate) fn unpack_outcomes(bytes: &[u8]) -> Result<Vec<OperationOutcome>, LedgerError> {
    let groups: Vec<(usize, OperationOutcome)> = unpack_list(bytes)?;
    if groups.iter().any(|(count, _)| *count > MAX_ENVELOPE_ROWS) {
        return Err(LedgerError::Unreadable("a request has too many rows".to_owned()));
    }
    Ok(groups.into_iter().flat_map(|(count, outcome)| std::iter::repeat_n(outcome, count)).collect())
}

/// Encodes the costs of an envelope's rows. Equal neighbours are stored once with their count. `None` if there are no
/// costs.
pub(crate) fn pack_costs(costs: &[Amount]) -> Result<Option<Vec<u8>>, LedgerError> {
    if costs.is_empty() {
        return Ok(None);
    }
    let groups: Vec<(usize, String)> =
        costs.chunk_by(|one, next| one == next).map(|chunk| (chunk.len(), chunk[0].to_json_digits())).collect();
    pack_list(&groups).map(Some)
}

/// Decodes costs.
pub(crate) fn unpack_costs(bytes: &[u8]) -> Result<Vec<Amount>, LedgerError> {
    let groups: Vec<(usize, String)> = unpack_list(bytes)?;
    let mut costs = Vec::new();
    for (count, digits) in groups {
        let cost = parse_amount(&digits)?;
        if count > MAX_ENVELOPE_ROWS {
            return Err(LedgerError::Unreadable("a request has too many rows".to_owned()));
        }
        costs.extend(std::iter::repeat_n(cost, count));
    }
    Ok(costs)
}

/// The channels of an envelope's pipelines as text: `viber sms`, or `viber sms*12, sms viber*3` if they differ. `None`
/// if the channels are unknown or follow from the operation type.
pub(crate) fn format_chains(rows: &[SentRow]) -> Option<String> {
    let groups: Vec<&[SentRow]> = rows.chunk_by(|one, next| one.chain == next.chain).collect();
    match groups[..] {
        [] => None,
        [alike] => alike[0].chain.is_known().then(|| alike[0].chain.to_string()),
        _ => {
            let write = |stretch: &&[SentRow]| format!("{}*{}", stretch[0].chain, stretch.len());
            Some(groups.iter().map(write).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Parses stored channels and assigns them to rows.
pub(crate) fn parse_chains(text: &str, rows: &mut [SentRow]) -> Result<(), LedgerError> {
    let unreadable = || LedgerError::Unreadable(format!("`{text}` does not name the channels of {} rows", rows.len()));
    let mut chains: Vec<Chain> = Vec::with_capacity(rows.len());
    for stretch in text.split(',') {
        let (names, count) = match stretch.rsplit_once('*') {
            Some((names, count)) => (names, count.parse().ok().filter(|count| *count <= rows.len())),
            None => (stretch, Some(rows.len())),
        };
        let chain: Chain = names.parse().map_err(|()| unreadable())?;
        chains.extend(std::iter::repeat_n(chain, count.ok_or_else(unreadable)?));
    }
    if chains.len() != rows.len() {
        return Err(unreadable());
    }
    rows.iter_mut().zip(chains).for_each(|(sent, chain)| sent.chain = chain);
    Ok(())
}

/// Parses an amount.
pub(crate) fn parse_amount(digits: &str) -> Result<Amount, LedgerError> {
    digits.parse().map_err(|ParseAmountError| LedgerError::Unreadable(format!("`{digits}` is not an amount")))
}

/// Encodes a set of rows in the portable Roaring format.
pub(crate) fn pack_set(rows: &RoaringBitmap) -> Result<Vec<u8>, LedgerError> {
    let mut bytes = Vec::with_capacity(rows.serialized_size());
    rows.serialize_into(&mut bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
    Ok(bytes)
}

/// Decodes a set of rows.
pub(crate) fn unpack_set(bytes: &[u8]) -> Result<RoaringBitmap, LedgerError> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// The checksum of a record over its columns, in order. It detects damaged records.
pub(crate) struct Checksum(Sha256);

impl Checksum {
    /// A checksum for records of a table.
    pub(crate) fn for_table(table: &str) -> Self {
        Self(Sha256::new()).with_text(table)
    }

    /// Adds an integer.
    pub(crate) fn with_number(mut self, number: impl Into<i64>) -> Self {
        self.0.update(number.into().to_le_bytes());
        self
    }

    /// Adds bytes.
    pub(crate) fn with_bytes(mut self, bytes: &[u8]) -> Self {
        // The length prefix distinguishes different splits into columns.
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a text.
    pub(crate) fn with_text(self, text: &str) -> Self {
        self.with_bytes(text.as_bytes())
    }

    /// The first eight bytes of the hash, as stored.
    pub(crate) fn finish(self) -> i64 {
        let hash = self.0.finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        i64::from_le_bytes(first)
    }

    /// Whether a record is unchanged. Records without a checksum are from an early version and count as unchanged.
    pub(crate) fn matches(self, stored: Option<i64>) -> bool {
        stored.is_none_or(|stored| stored == self.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_covers_every_column_and_its_boundary() {
        let sum = |first: &str, second: &str| Checksum::for_table("a").with_text(first).with_text(second).finish();
        let same = sum("ab", "c");
        assert_eq!(same, sum("ab", "c"));
        for other in [sum("a", "bc"), sum("ab", "d"), Checksum::for_table("b").with_text("ab").with_text("c").finish()]
        {
            assert_ne!(same, other);
        }
        assert!(
            Checksum::for_table("a").with_number(7).matches(Some(Checksum::for_table("a").with_number(7).finish()))
        );
        assert!(
            !Checksum::for_table("a").with_number(8).matches(Some(Checksum::for_table("a").with_number(7).finish()))
        );
        assert!(Checksum::for_table("a").matches(None));
    }
}
