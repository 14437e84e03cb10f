//! Rows and outcomes as compact bytes (postcard: variable-length integers, no names).

use roaring::RoaringBitmap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::{Amount, Chain, OperationOutcome, ParseAmountError};
use crate::ledger::{LedgerError, SentRow};

/// More rows than any envelope has; a damaged record must not fill the memory.
const LARGEST_ENVELOPE: usize = 1_000_000;

/// The bytes of a list.
pub(in crate::ledger) fn pack_list<T: Serialize>(list: &[T]) -> Result<Vec<u8>, LedgerError> {
    postcard::to_stdvec(list).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// The list of these bytes.
pub(in crate::ledger) fn unpack_list<T: DeserializeOwned>(bytes: &[u8]) -> Result<Vec<T>, LedgerError> {
    postcard::from_bytes(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}

/// The bytes of an envelope's outcomes: equal neighbours are written once with their number.
pub(in crate::ledger) fn pack_outcomes(outcomes: &[OperationOutcome]) -> Result<Vec<u8>, LedgerError> {
    let stretches: Vec<(usize, &OperationOutcome)> =
        outcomes.chunk_by(|one, next| one == next).map(|equal| (equal.len(), &equal[0])).collect();
    pack_list(&stretches)
}

/// The outcomes of these bytes.
pub(in crate::ledger) fn unpack_outcomes(bytes: &[u8]) -> Result<Vec<OperationOutcome>, LedgerError> {
    let stretches: Vec<(usize, OperationOutcome)> = unpack_list(bytes)?;
    if stretches.iter().any(|(count, _)| *count > LARGEST_ENVELOPE) {
        return Err(LedgerError::Unreadable("a request has too many rows".to_owned()));
    }
    Ok(stretches.into_iter().flat_map(|(count, outcome)| std::iter::repeat_n(outcome, count)).collect())
}

/// The bytes of what an envelope's rows cost: equal neighbours are written once with their number; nothing of nothing.
pub(in crate::ledger) fn pack_costs(costs: &[Amount]) -> Result<Option<Vec<u8>>, LedgerError> {
    if costs.is_empty() {
        return Ok(None);
    }
    let stretches: Vec<(usize, String)> =
        costs.chunk_by(|one, next| one == next).map(|equal| (equal.len(), equal[0].to_json_digits())).collect();
    pack_list(&stretches).map(Some)
}

/// What the rows of these bytes cost.
pub(in crate::ledger) fn unpack_costs(bytes: &[u8]) -> Result<Vec<Amount>, LedgerError> {
    let stretches: Vec<(usize, String)> = unpack_list(bytes)?;
    let mut costs = Vec::new();
    for (count, digits) in stretches {
        let cost = parse_amount(&digits)?;
        if count > LARGEST_ENVELOPE {
            return Err(LedgerError::Unreadable("a request has too many rows".to_owned()));
        }
        costs.extend(std::iter::repeat_n(cost, count));
    }
    Ok(costs)
}

/// The channels of an envelope's pipelines as text: `viber sms`, or `viber sms*12, sms viber*3` if they differ. Nothing if they
/// are unknown or the operation type names them.
pub(in crate::ledger) fn format_chains(rows: &[SentRow]) -> Option<String> {
    let stretches: Vec<&[SentRow]> = rows.chunk_by(|one, next| one.chain == next.chain).collect();
    match stretches[..] {
        [] => None,
        [alike] => alike[0].chain.is_known().then(|| alike[0].chain.to_string()),
        _ => {
            let write = |stretch: &&[SentRow]| format!("{}*{}", stretch[0].chain, stretch.len());
            Some(stretches.iter().map(write).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Gives rows the channels that were written of them.
pub(in crate::ledger) fn parse_chains(text: &str, rows: &mut [SentRow]) -> Result<(), LedgerError> {
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

/// The amount of these digits.
pub(in crate::ledger) fn parse_amount(digits: &str) -> Result<Amount, LedgerError> {
    digits.parse().map_err(|ParseAmountError| LedgerError::Unreadable(format!("`{digits}` is not an amount")))
}

/// The bytes of a set of rows, in the format that all Roaring libraries read.
pub(in crate::ledger) fn pack_set(rows: &RoaringBitmap) -> Result<Vec<u8>, LedgerError> {
    let mut bytes = Vec::with_capacity(rows.serialized_size());
    rows.serialize_into(&mut bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))?;
    Ok(bytes)
}

/// The set of these bytes.
pub(in crate::ledger) fn unpack_set(bytes: &[u8]) -> Result<RoaringBitmap, LedgerError> {
    RoaringBitmap::deserialize_from(bytes).map_err(|error| LedgerError::Unreadable(error.to_string()))
}
