//! The people of an earlier run by what became of them: as a list of their own, or as numbers.

use std::io::Write;

use roaring::RoaringTreemap;

use super::ResultsError;
use super::frozen_list::{FrozenList, ListSource};
use super::{is_owned, load_copies};
use crate::audience::{Chunk, RecipientReader, RecordRef};
use crate::check::{DUPLICATE, reader_settings};
use crate::delivery::{FrozenInputs, Snapshot};
use crate::domain::{Phone, Row};
use crate::ledger::{Ledger, RowState, Run};

/// How many people of a run were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecipientsWritten {
    /// They.
    pub recipients: u64,
    /// Messages of the run, theirs or not, of which more may be learnt: what became of them has no end yet.
    pub undecided: u64,
}

/// Writes the rows of a run's list whose people are in one of these states, under its own header, as CSV.
///
/// # Errors
/// When the ledger or the list cannot be read, or `out` cannot be written.
pub async fn write_run_recipients(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[RowState],
    out: impl Write,
) -> Result<RecipientsWritten, ResultsError> {
    let mut out = csv::Writer::from_writer(out);
    let mut people = 0;
    let undecided = for_each_matching_recipient(ledger, run, states, |header, person| {
        match person {
            None => out.write_record(header)?,
            Some((record, _)) => {
                people += 1;
                for column in 0..header.len() {
                    out.write_field(record.fields.get(column))?;
                }
                out.write_record(None::<&[u8]>)?;
            }
        }
        Ok(())
    })
    .await?;
    out.flush().map_err(|error| ResultsError::Recipients(error.to_string()))?;
    Ok(RecipientsWritten { recipients: people, undecided })
}

/// The numbers of the people of a run that are in one of these states, and how many messages of the run have no end yet.
///
/// # Errors
/// When the ledger or the list cannot be read.
pub async fn load_run_numbers(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[RowState],
) -> Result<(RoaringTreemap, u64), ResultsError> {
    let mut numbers = RoaringTreemap::new();
    let undecided = for_each_matching_recipient(ledger, run, states, |_, person| {
        numbers.extend(person.map(|(_, phone)| phone.to_u64()));
        Ok(())
    })
    .await?;
    Ok((numbers, undecided))
}

/// The numbers of a run that was stopped for good whose rows were cancelled by that.
///
/// # Errors
/// When the ledger or the list cannot be read.
pub async fn load_cancelled_numbers(ledger: &dyn Ledger, run: &Run) -> Result<RoaringTreemap, ResultsError> {
    let snapshot = Snapshot::load(ledger, run, false).await?;
    let is_cancelled =
        |row| snapshot.row_state(row) == RowState::Skipped && snapshot.left_out.find_reason(row).is_none();
    let mut numbers = RoaringTreemap::new();
    if snapshot.counts.get(RowState::Skipped) == snapshot.left_out.count_rows(RowState::Skipped) {
        return Ok(numbers);
    }
    for_each_recipient((ledger, run), is_cancelled, |_, person| {
        numbers.extend(person.map(|(_, phone)| phone.to_u64()));
        Ok(())
    })
    .await?;
    Ok(numbers)
}

/// Goes over the people of a run in the order of its list: the header alone first, then each person. Tells how many messages
/// of the run have no end yet.
///
/// A row that was left out because its number stands in another one is no person of its own.
async fn for_each_matching_recipient(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[RowState],
    take: impl FnMut(&[String], Option<(RecordRef<'_>, Phone)>) -> csv::Result<()>,
) -> Result<u64, ResultsError> {
    let snapshot = Snapshot::load(ledger, run, is_owned(ledger, run).await?).await?;
    let is_repeated = |row| snapshot.left_out.find_reason(row).is_some_and(|(_, reason)| reason == DUPLICATE);
    for_each_recipient((ledger, run), |row| states.contains(&snapshot.row_state(row)) && !is_repeated(row), take)
        .await?;
    let open = [RowState::Sending, RowState::InDoubt, RowState::Unresolved, RowState::Accepted, RowState::Queued];
    Ok(open.into_iter().map(|state| snapshot.counts.get(state)).sum())
}

/// Goes over the rows of a run's list that are wanted and have a number: the header alone first, then each row.
async fn for_each_recipient(
    (ledger, run): (&dyn Ledger, &Run),
    is_wanted: impl Fn(Row) -> bool,
    mut take: impl FnMut(&[String], Option<(RecordRef<'_>, Phone)>) -> csv::Result<()>,
) -> Result<(), ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let source = ListSource::Copies(&copies);
    let mut list = FrozenList::open(source)?;
    let mut reader = RecipientReader::open(&mut list, source.path(), &reader_settings(&frozen.brief))?;
    let (region, header) = (frozen.brief.region, reader.header().headers().to_vec());
    let columns = reader.header().phones().clone();
    let failed = |error: csv::Error| ResultsError::Recipients(error.to_string());
    take(&header, None).map_err(failed)?;
    let mut chunk = Chunk::new();
    while reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
        for record in chunk.iter().filter(|record| is_wanted(record.row)) {
            let Ok(phone) = columns.choose_phone(record.fields, region) else { continue };
            take(&header, Some((record, phone))).map_err(failed)?;
        }
    }
    drop(reader);
    list.verify_hash(&frozen.recipients_sha256)
}
