//! Rows and outcomes as compact bytes (postcard: variable-length integers, no names).

use roaring::RoaringBitmap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::Outcome;
use crate::ledger::LedgerError;

/// More rows than any envelope has; a damaged record must not fill the memory.
const LARGEST_ENVELOPE: usize = 1_000_000;

/// The bytes of a list.
pub(super) fn pack<T: Serialize>(list: &[T]) -> Result<Vec<u8>, LedgerError> {
    postcard::to_stdvec(list).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// The list of these bytes.
pub(super) fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Result<Vec<T>, LedgerError> {
    postcard::from_bytes(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// The bytes of an envelope's outcomes: equal neighbours are written once with their number.
pub(super) fn pack_outcomes(outcomes: &[Outcome]) -> Result<Vec<u8>, LedgerError> {
    let stretches: Vec<(usize, &Outcome)> =
        outcomes.chunk_by(|one, next| one == next).map(|equal| (equal.len(), &equal[0])).collect();
    pack(&stretches)
}

/// The outcomes of these bytes.
pub(super) fn unpack_outcomes(bytes: &[u8]) -> Result<Vec<Outcome>, LedgerError> {
    let stretches: Vec<(usize, Outcome)> = unpack(bytes)?;
    if stretches.iter().any(|(count, _)| *count > LARGEST_ENVELOPE) {
        return Err(LedgerError::Unreadable("an envelope with more rows than envelopes have".to_owned()));
    }
    Ok(stretches.into_iter().flat_map(|(count, outcome)| std::iter::repeat_n(outcome, count)).collect())
}

/// The bytes of a set of rows, in the format that all Roaring libraries read.
pub(super) fn pack_set(rows: &RoaringBitmap) -> Result<Vec<u8>, LedgerError> {
    let mut bytes = Vec::with_capacity(rows.serialized_size());
    rows.serialize_into(&mut bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
    Ok(bytes)
}

/// The set of these bytes.
pub(super) fn unpack_set(bytes: &[u8]) -> Result<RoaringBitmap, LedgerError> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}
