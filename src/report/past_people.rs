//! The people of an earlier run by what became of them: as a list of their own, or as numbers.

use std::io::Write;

use roaring::RoaringTreemap;

use super::ResultsError;
use super::frozen_list::{FrozenList, ListSource};
use super::{copies_of, is_owned};
use crate::audience::{Chunk, Reader, RecordRef};
use crate::check::{DUPLICATE, settings};
use crate::delivery::{FrozenInputs, Snapshot};
use crate::domain::{Phone, Row};
use crate::ledger::{Ledger, Run, State};

/// How many people of a run were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastPeopleWritten {
    /// They.
    pub people: u64,
    /// Messages of the run, theirs or not, of which more may be learnt: what became of them has no end yet.
    pub undecided: u64,
}

/// Writes the rows of a run's list whose people are in one of these states, under its own header, as CSV.
///
/// # Errors
/// When the ledger or the list cannot be read, or `out` cannot be written.
pub async fn write_past_people(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[State],
    out: impl Write,
) -> Result<PastPeopleWritten, ResultsError> {
    let mut out = csv::Writer::from_writer(out);
    let mut people = 0;
    let undecided = past_people(ledger, run, states, |header, person| {
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
    Ok(PastPeopleWritten { people, undecided })
}

/// The numbers of the people of a run that are in one of these states, and how many messages of the run have no end yet.
///
/// # Errors
/// When the ledger or the list cannot be read.
pub async fn past_numbers(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[State],
) -> Result<(RoaringTreemap, u64), ResultsError> {
    let mut numbers = RoaringTreemap::new();
    let undecided = past_people(ledger, run, states, |_, person| {
        numbers.extend(person.map(|(_, phone)| phone.get()));
        Ok(())
    })
    .await?;
    Ok((numbers, undecided))
}

/// The numbers of a run that was stopped for good whose rows were cancelled by that.
///
/// # Errors
/// When the ledger or the list cannot be read.
pub async fn cancelled_numbers(ledger: &dyn Ledger, run: &Run) -> Result<RoaringTreemap, ResultsError> {
    let snapshot = Snapshot::read(ledger, run, false).await?;
    let is_cancelled = |row| snapshot.state(row) == State::Skipped && snapshot.left_out.of(row).is_none();
    let mut numbers = RoaringTreemap::new();
    if snapshot.counts.get(State::Skipped) == snapshot.left_out.count(State::Skipped) {
        return Ok(numbers);
    }
    each_recipient((ledger, run), is_cancelled, |_, person| {
        numbers.extend(person.map(|(_, phone)| phone.get()));
        Ok(())
    })
    .await?;
    Ok(numbers)
}

/// Goes over the people of a run in the order of its list: the header alone first, then each person. Tells how many messages
/// of the run have no end yet.
///
/// A row that was left out because its number stands in another one is no person of its own.
async fn past_people(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[State],
    take: impl FnMut(&[String], Option<(RecordRef<'_>, Phone)>) -> csv::Result<()>,
) -> Result<u64, ResultsError> {
    let snapshot = Snapshot::read(ledger, run, is_owned(ledger, run).await?).await?;
    let is_repeated = |row| snapshot.left_out.of(row).is_some_and(|(_, reason)| reason == DUPLICATE);
    each_recipient((ledger, run), |row| states.contains(&snapshot.state(row)) && !is_repeated(row), take).await?;
    let open = [State::Sending, State::InDoubt, State::Unresolved, State::Accepted, State::Queued];
    Ok(open.into_iter().map(|state| snapshot.counts.get(state)).sum())
}

/// Goes over the rows of a run's list that are wanted and have a number: the header alone first, then each row.
async fn each_recipient(
    (ledger, run): (&dyn Ledger, &Run),
    is_wanted: impl Fn(Row) -> bool,
    mut take: impl FnMut(&[String], Option<(RecordRef<'_>, Phone)>) -> csv::Result<()>,
) -> Result<(), ResultsError> {
    let copies = copies_of(ledger, run).await?;
    let frozen = FrozenInputs::of(&copies)?;
    let source = ListSource::Copies(&copies);
    let mut list = FrozenList::open(source)?;
    let mut reader = Reader::open(&mut list, source.place(), &settings(&frozen.brief))?;
    let (region, header) = (frozen.brief.region, reader.header().headers().to_vec());
    let columns = reader.header().phones().clone();
    let failed = |error: csv::Error| ResultsError::Recipients(error.to_string());
    take(&header, None).map_err(failed)?;
    let mut chunk = Chunk::new();
    while reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
        for record in chunk.iter().filter(|record| is_wanted(record.row)) {
            let Ok(phone) = columns.phone(record.fields, region) else { continue };
            take(&header, Some((record, phone))).map_err(failed)?;
        }
    }
    drop(reader);
    list.finish(&frozen.recipients_sha256)
}
