//! The recipients of a run's frozen list, by row or by number.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::frozen_list::{FrozenList, ListSource};
use super::{ResultsError, load_copies};
use crate::audience::{Chunk, RecipientReader};
use crate::check::reader_settings;
use crate::delivery::FrozenInputs;
use crate::domain::{Phone, Row};
use crate::ledger::{Copies, Ledger, Run};

/// What tells a recipient from the others.
#[derive(Clone, Copy, Debug)]
pub enum RecipientKey {
    /// The row in the list.
    Row(Row),
    /// The number, which several rows may have.
    Number(Phone),
}

/// A recipient of a list.
#[derive(Clone, Copy, Debug)]
pub struct Recipient {
    /// The row.
    pub row: Row,
    /// The number, if what stands there is one.
    pub phone: Option<Phone>,
}

/// Everybody in the frozen list with that key, in the list's order.
///
/// # Errors
/// When the list cannot be read, or is not what the run began with.
pub fn find_recipients(
    copies: &Copies,
    frozen: &FrozenInputs,
    key: RecipientKey,
) -> Result<Vec<Recipient>, ResultsError> {
    filter_recipients(copies, frozen, |row, phone| match key {
        RecipientKey::Row(wanted) => row == wanted,
        RecipientKey::Number(number) => phone() == Some(number),
    })
}

/// The recipients in these rows of the frozen list, in the list's order.
///
/// # Errors
/// When the list cannot be read, or is not what the run began with.
pub fn find_recipients_by_row(
    copies: &Copies,
    frozen: &FrozenInputs,
    rows: &RoaringBitmap,
) -> Result<Vec<Recipient>, ResultsError> {
    filter_recipients(copies, frozen, |row, _| rows.contains(row.get()))
}

/// The numbers in the list of a run that are meant.
///
/// # Errors
/// When the list cannot be read, or is not what the run began with.
pub async fn find_numbers(
    ledger: &dyn Ledger,
    run: &Run,
    is_meant: impl Fn(Phone) -> bool,
) -> Result<RoaringTreemap, ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let found = filter_recipients(&copies, &frozen, |_, phone| phone().is_some_and(&is_meant))?;
    Ok(found.into_iter().filter_map(|recipient| recipient.phone).map(Phone::to_u64).collect())
}

fn filter_recipients(
    copies: &Copies,
    frozen: &FrozenInputs,
    is_meant: impl Fn(Row, &dyn Fn() -> Option<Phone>) -> bool,
) -> Result<Vec<Recipient>, ResultsError> {
    let (source, brief) = (ListSource::Copies(copies), &frozen.brief);
    let mut list = FrozenList::open(source)?;
    let mut reader = RecipientReader::open(&mut list, source.path(), &reader_settings(brief))?;
    let (columns, region) = (reader.header().phones().clone(), brief.region);
    let (mut found, mut chunk) = (Vec::new(), Chunk::new());
    while reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
        for record in chunk.iter() {
            let phone = || columns.choose_phone(record.fields, region).ok();
            if is_meant(record.row, &phone) {
                found.push(Recipient { row: record.row, phone: phone() });
            }
        }
    }
    list.verify_hash(&frozen.recipients_sha256)?;
    Ok(found)
}
