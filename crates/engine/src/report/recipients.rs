//! Recipients of runs: lookup by row, number or state, the runs that contain a number, and the evidence about a number
//! for an authority.
//!
//! Evidence comes from the records of the runs. Consents are never read from a list, so a later list cannot change the
//! evidence.

use std::collections::BTreeMap;
use std::io::{Sink, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use roaring::{RoaringBitmap, RoaringTreemap};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::listing::{FrozenList, ListSource, ReadAheadList};
use super::run_view::load_approvals;
use super::{OptOutHistory, ResultsError, RowSelection, RunResults, is_owned};
use crate::check::{DUPLICATE, Tee, reader_settings};
use crate::delivery::{FrozenInputs, SingleKind, Snapshot};
use campaign_content::audience::{Chunk, RecipientReader, RecordRef, parse_phone_number};
use campaign_core::domain::{Addressee, FORGOTTEN, Phone, Region, Row};
use campaign_ledger::{
    Approval, ConsentEvidence, Copies, EnvelopeReader, Ledger, LedgerError, NumberFilter, NumberSet, RowSpan, RowState,
    Run, RunFilter,
};

/// The key to look up recipients by.
#[derive(Clone, Copy, Debug)]
pub enum RecipientKey {
    /// The row in the list.
    Row(Row),
    /// The number, which several rows can have.
    Number(Phone),
}

/// A recipient of a list.
#[derive(Clone, Copy, Debug)]
pub struct Recipient {
    /// The row in the frozen list.
    pub row: Row,
    /// The number, if the cell contains one.
    pub phone: Option<Phone>,
}

/// The recipients with this key in the frozen list, in list order.
///
/// # Errors
/// If the list cannot be read, or is not the list with which the run began.
pub fn find_recipients(
    copies: &Copies,
    frozen: &FrozenInputs,
    key: RecipientKey,
) -> Result<Vec<Recipient>, ResultsError> {
    filter_recipients(copies, frozen, |record, phone| match key {
        RecipientKey::Row(wanted) => record.row == wanted,
        RecipientKey::Number(number) => phone() == Some(number),
    })
}

/// The recipients in these rows of the frozen list, in list order.
///
/// # Errors
/// If the list cannot be read, or is not the list with which the run began.
pub fn find_recipients_by_row(
    copies: &Copies,
    frozen: &FrozenInputs,
    rows: &RoaringBitmap,
) -> Result<Vec<Recipient>, ResultsError> {
    filter_recipients(copies, frozen, |record, _| rows.contains(record.row.get()))
}

/// A column of a run's list, for some rows.
#[derive(Clone, Debug, Default)]
pub struct ListColumn {
    /// The cells that are not empty.
    pub cells: BTreeMap<Row, String>,
}

/// Reads the headers of a run's list, except the headers of phone columns.
///
/// # Errors
/// If the list cannot be read.
pub fn read_list_headers(copies: &Copies, frozen: &FrozenInputs) -> Result<Vec<String>, ResultsError> {
    let source = ListSource::Copies(copies);
    let reader = RecipientReader::open(FrozenList::open(source)?, source.path(), &reader_settings(&frozen.brief))?;
    let (headers, phones) = (reader.header().headers(), reader.header().phones());
    let others = headers.iter().enumerate().filter(|(index, header)| !phones.contains(*index) && !header.is_empty());
    Ok(others.map(|(_, header)| header.clone()).collect())
}

impl ListColumn {
    /// Reads the cells of the column with this header in `rows`. The list is read only up to the last of these rows.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn read(
        copies: &Copies,
        frozen: &FrozenInputs,
        header: &str,
        rows: &RoaringBitmap,
    ) -> Result<Self, ResultsError> {
        let (source, mut column) = (ListSource::Copies(copies), Self::default());
        let mut list = FrozenList::open(source)?;
        let mut reader = RecipientReader::open(&mut list, source.path(), &reader_settings(&frozen.brief))?;
        let Some(position) = reader.header().headers().iter().position(|name| name == header) else {
            return Ok(column);
        };
        let (last, mut chunk) = (rows.max().unwrap_or_default(), Chunk::new());
        while reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
            for record in chunk.iter().filter(|record| rows.contains(record.row.get())) {
                let cell = record.fields.get(position).to_owned();
                column.cells.insert(record.row, cell);
            }
            if chunk.iter().any(|record| record.row.get() >= last) {
                break;
            }
        }
        column.cells.retain(|_, cell| !cell.is_empty());
        Ok(column)
    }
}

/// Finds the phone numbers in a run's list for which `is_wanted` returns true.
///
/// # Errors
/// If the list cannot be read, or is not the list with which the run began.
pub async fn find_numbers(
    ledger: &dyn Ledger,
    run: &Run,
    is_wanted: impl Fn(Phone) -> bool,
) -> Result<RoaringTreemap, ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let recipients = filter_recipients(&copies, &frozen, |_, phone| phone().is_some_and(&is_wanted))?;
    Ok(recipients.into_iter().filter_map(|recipient| recipient.phone).map(Phone::to_u64).collect())
}

/// Loads the rows of a run's list. Blank lines are not rows.
///
/// # Errors
/// If the list cannot be read, or is not the list with which the run began.
pub(super) async fn load_list_rows(ledger: &dyn Ledger, run: &Run) -> Result<RoaringBitmap, ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let source = ListSource::Copies(&copies);
    let reader = RecipientReader::open(FrozenList::open(source)?, source.path(), &reader_settings(&frozen.brief))?;
    let (mut list, mut rows) = (ReadAheadList::spawn(reader), RoaringBitmap::new());
    while let Some(chunk) = list.next_chunk().await {
        rows.extend(chunk.iter().map(|record| record.row.get()));
    }
    list.verify_hash(&frozen.recipients_sha256).await?;
    Ok(rows)
}

/// Finds the recipients in the frozen list for which `is_wanted` returns true, in list order. `is_wanted` gets each
/// record, and a function that returns the record's phone number.
fn filter_recipients(
    copies: &Copies,
    frozen: &FrozenInputs,
    mut is_wanted: impl FnMut(RecordRef<'_>, &dyn Fn() -> Option<Phone>) -> bool,
) -> Result<Vec<Recipient>, ResultsError> {
    let (source, brief) = (ListSource::Copies(copies), &frozen.brief);
    let mut list = FrozenList::open(source)?;
    let mut reader = RecipientReader::open(&mut list, source.path(), &reader_settings(brief))?;
    let (columns, region) = (reader.header().phones().clone(), brief.region);
    let (mut recipients, mut chunk) = (Vec::new(), Chunk::new());
    while reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
        for record in chunk.iter() {
            let phone = || columns.choose_phone(record.fields, region).ok();
            if is_wanted(record, &phone) {
                recipients.push(Recipient { row: record.row, phone: phone() });
            }
        }
    }
    list.verify_hash(&frozen.recipients_sha256)?;
    Ok(recipients)
}

/// The result of writing the recipients of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecipientsWritten {
    /// The number of recipients that were written.
    pub recipients: u64,
    /// Messages of the run that are still undecided, including those of other recipients.
    pub undecided: u64,
}

/// Writes the list rows of recipients in one of these states as CSV, under the list's header.
///
/// # Errors
/// If the ledger or the list cannot be read, or `out` cannot be written.
pub async fn write_run_recipients(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[RowState],
    out: impl Write,
) -> Result<RecipientsWritten, ResultsError> {
    let mut out = csv::Writer::from_writer(out);
    let mut recipients = 0;
    let undecided = for_each_matching_recipient(ledger, run, states, |header, recipient| {
        match recipient {
            None => out.write_record(header)?,
            Some((record, _)) => {
                recipients += 1;
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
    Ok(RecipientsWritten { recipients, undecided })
}

/// The phone numbers of recipients in one of these states, and the number of undecided messages of the run. Forgotten
/// numbers with a message of the run are included.
///
/// # Errors
/// If the ledger or the list cannot be read.
pub async fn load_run_numbers(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[RowState],
) -> Result<(NumberSet, u64), ResultsError> {
    let snapshot = Snapshot::load(ledger, run, is_owned(ledger, run).await?).await?;
    let (mut numbers, mut listed) = (RoaringTreemap::new(), RoaringBitmap::new());
    for_each_recipient(
        ledger,
        run,
        |row| is_recipient_in(&snapshot, row, states),
        |_, recipient| {
            if let Some((record, phone)) = recipient {
                numbers.insert(phone.to_u64());
                listed.insert(record.row.get());
            }
            Ok(())
        },
    )
    .await?;
    let mut numbers = NumberSet::new(numbers, None);
    // Forgetting a recipient excludes the row.
    let rows = snapshot.left_out.rows() - listed;
    let forgotten = rows.into_iter().filter(|row| is_recipient_in(&snapshot, Row::new(*row), states)).collect();
    numbers |= ledger.load_numbers(NumberFilter::Rows(run.key, &forgotten)).await?;
    Ok((numbers, count_undecided(&snapshot)))
}

/// Loads the phone numbers of the recipients that `stop --for-good` cancelled, as far as the list still contains them.
///
/// # Errors
/// If the ledger or the list cannot be read.
pub async fn load_cancelled_numbers(ledger: &dyn Ledger, run: &Run) -> Result<RoaringTreemap, ResultsError> {
    let snapshot = Snapshot::load(ledger, run, false).await?;
    let mut numbers = RoaringTreemap::new();
    for_each_recipient(
        ledger,
        run,
        |row| snapshot.is_cancelled(row),
        |_, recipient| {
            numbers.extend(recipient.map(|(_, phone)| phone.to_u64()));
            Ok(())
        },
    )
    .await?;
    Ok(numbers)
}

/// Visits the recipients of a run in one of these states, in list order: first the header, then each recipient. Returns
/// the number of messages of the run that are undecided.
async fn for_each_matching_recipient(
    ledger: &dyn Ledger,
    run: &Run,
    states: &[RowState],
    visit: impl FnMut(&[String], Option<(RecordRef<'_>, Phone)>) -> csv::Result<()>,
) -> Result<u64, ResultsError> {
    let snapshot = Snapshot::load(ledger, run, is_owned(ledger, run).await?).await?;
    for_each_recipient(ledger, run, |row| is_recipient_in(&snapshot, row, states), visit).await?;
    Ok(count_undecided(&snapshot))
}

/// Whether a row is a recipient in one of these states. A row that was skipped as a duplicate is not a recipient.
fn is_recipient_in(snapshot: &Snapshot, row: Row, states: &[RowState]) -> bool {
    let is_repeated = || snapshot.left_out.find_reason(row).is_some_and(|(_, reason)| reason == DUPLICATE);
    states.contains(&snapshot.row_state(row)) && !is_repeated()
}

/// The number of messages whose outcome can still change.
fn count_undecided(snapshot: &Snapshot) -> u64 {
    let undecided_states =
        [RowState::Sending, RowState::InDoubt, RowState::Unresolved, RowState::Accepted, RowState::Queued];
    undecided_states.into_iter().map(|state| snapshot.counts.get(state)).sum()
}

/// Visits the header of a run's list, then each wanted row that has a valid phone number.
async fn for_each_recipient(
    ledger: &dyn Ledger,
    run: &Run,
    is_wanted: impl Fn(Row) -> bool,
    mut visit: impl FnMut(&[String], Option<(RecordRef<'_>, Phone)>) -> csv::Result<()>,
) -> Result<(), ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let source = ListSource::Copies(&copies);
    let mut list = FrozenList::open(source)?;
    let mut reader = RecipientReader::open(&mut list, source.path(), &reader_settings(&frozen.brief))?;
    let (region, header) = (frozen.brief.region, reader.header().headers().to_vec());
    let columns = reader.header().phones().clone();
    let to_error = |error: csv::Error| ResultsError::Recipients(error.to_string());
    visit(&header, None).map_err(to_error)?;
    let mut chunk = Chunk::new();
    while reader.read_chunk(&mut chunk).map_err(|finding| vec![*finding])? {
        for record in chunk.iter().filter(|record| is_wanted(record.row)) {
            let Ok(phone) = columns.choose_phone(record.fields, region) else { continue };
            visit(&header, Some((record, phone))).map_err(to_error)?;
        }
    }
    drop(reader);
    list.verify_hash(&frozen.recipients_sha256)
}

/// The information that the runs of a ledger recorded about a number.
#[derive(Debug, Default)]
pub struct RecipientRecord {
    /// The runs with a row for the number, oldest first.
    pub runs: Vec<RecipientInRun>,
    /// The rows of other numbers that contain the number in another column, by the name of the run.
    pub elsewhere: Vec<(String, RoaringBitmap)>,
    /// The runs that could not be searched.
    pub unreadable: Vec<UnreadableRun>,
    /// The number of purged runs, whose recipients are unknown.
    pub purged: u64,
}

/// The rows of a run with this number.
#[derive(Debug)]
pub struct RecipientInRun {
    /// The run, which can be a rehearsal or a single message.
    pub run: Run,
    /// The rows that have the number and match the selection.
    pub rows: RoaringBitmap,
    /// The results of each row.
    pub results: Vec<Value>,
}

/// A run that could not be searched.
#[derive(Debug)]
pub struct UnreadableRun {
    /// The name of the run.
    pub run: String,
    /// The reason.
    pub why: String,
}

impl RecipientRecord {
    /// Searches all runs, including rehearsals and single messages, for rows that have this phone number and match the
    /// selection.
    ///
    /// # Errors
    /// If the ledger cannot be read. A run whose own records or copies cannot be read is returned among the unreadable
    /// runs.
    pub async fn find(ledger: &dyn Ledger, phone: Phone, selection: &RowSelection) -> Result<Self, LedgerError> {
        let mut record = Self::default();
        for run in ledger.list_runs(RunFilter::default()).await? {
            if run.purged_at.is_some() {
                record.purged += 1;
                continue;
            }
            match load_recipient_in_run(ledger, run.clone(), phone, selection).await {
                Ok((found, elsewhere)) => {
                    record.runs.extend(found);
                    if !elsewhere.is_empty() && selection.is_unfiltered() {
                        record.elsewhere.push((run.name(), elsewhere));
                    }
                }
                Err(error) => record.unreadable.push(UnreadableRun { run: run.name(), why: error.to_string() }),
            }
        }
        Ok(record)
    }

    /// The number of rows with this phone number.
    pub fn count_rows(&self) -> u64 {
        self.runs.iter().map(|run| run.rows.len()).sum()
    }
}

/// Loads the rows of a run that have this phone number and match the selection, or `None` if there are no such rows.
/// The second result contains the rows of other recipients that have the number in another column.
async fn load_recipient_in_run(
    ledger: &dyn Ledger,
    run: Run,
    phone: Phone,
    selection: &RowSelection,
) -> Result<(Option<RecipientInRun>, RoaringBitmap), ResultsError> {
    let (mut rows, elsewhere) = find_rows(ledger, &run, phone).await?;
    if rows.is_empty() {
        return Ok((None, elsewhere));
    }
    let mut objects = Vec::new();
    let owned = is_owned(ledger, &run).await?;
    let results =
        RunResults::open(ledger, &run, owned).await?.with_rows(rows.clone()).with_selection(selection.clone());
    if !selection.is_unfiltered() {
        rows = results.load_listed_rows().await?;
        if rows.is_empty() {
            return Ok((None, elsewhere));
        }
    }
    results.write_json(&mut objects).await?;
    let results = serde_json::from_slice(&[b"[", objects.as_slice(), b"]"].concat());
    let results = results.map_err(|error| ResultsError::Recipients(error.to_string()))?;
    Ok((Some(RecipientInRun { run, rows, results }), elsewhere))
}

/// Finds the rows of a run's list that have this phone number, and the rows of other numbers that contain it in another
/// column.
async fn find_rows(
    ledger: &dyn Ledger,
    run: &Run,
    phone: Phone,
) -> Result<(RoaringBitmap, RoaringBitmap), ResultsError> {
    let copies = load_copies(ledger, run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let mut elsewhere = RoaringBitmap::new();
    let recipients = filter_recipients(&copies, &frozen, |record, find_phone| {
        if find_phone() == Some(phone) {
            return true;
        }
        if record.fields.iter().any(|cell| contains_number(cell, phone, frozen.brief.region)) {
            elsewhere.insert(record.row.get());
        }
        false
    })?;
    Ok((recipients.into_iter().map(|recipient| recipient.row.get()).collect(), elsewhere))
}

/// The number of last digits that identify a phone number without its country code.
const NATIONAL_DIGITS: usize = 9;
/// The minimum number of digits in a cell that can contain a phone number.
const MIN_DIGITS: usize = 7;

/// Whether a cell contains a phone number, possibly among other text.
pub(super) fn contains_number(cell: &str, phone: Phone, region: Option<Region>) -> bool {
    if cell.bytes().filter(u8::is_ascii_digit).count() < MIN_DIGITS {
        return false;
    }
    let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
    let number = phone.to_string();
    let national = &number[number.len().saturating_sub(NATIONAL_DIGITS)..];
    digits.contains(national) || parse_phone_number(cell, region) == Ok(phone)
}

/// Loads the copies of a run. For a shared run, builds a list of the recipients to whom messages were sent, each in the
/// row of the message.
///
/// # Errors
/// If the ledger cannot be read, or has no copies of the run.
pub async fn load_copies(ledger: &dyn Ledger, run: &Run) -> Result<Copies, LedgerError> {
    let Some(kind) = SingleKind::from_run(run).filter(|_| run.shared) else { return ledger.load_copies(run).await };
    let list = build_list(&load_addressees(ledger, run).await?);
    let unreadable = |error: String| LedgerError::Unreadable(error);
    let sha256 = Tee::new(list.as_slice(), None::<Sink>).finish().map_err(|error| unreadable(error.to_string()))?;
    let began = run.began_at.to_zoned(TimeZone::system()).date().to_string();
    let place = format!("the ledger's records of {}", run.name());
    let frozen = kind.frozen_inputs(&run.gateway, began, sha256).to_bytes();
    Ok(Copies::in_memory(place, frozen.map_err(|error| unreadable(error.to_string()))?, list))
}

/// The time zone for displaying a run's times: the campaign's zone, or this machine's zone if the campaign has none or
/// cannot be read.
pub async fn load_display_zone(ledger: &dyn Ledger, run: &Run) -> TimeZone {
    load_campaign_zone(ledger, run).await.unwrap_or_else(TimeZone::system)
}

/// The time zone of a run's campaign. `None` for a shared run, or if the run's copies cannot be read.
async fn load_campaign_zone(ledger: &dyn Ledger, run: &Run) -> Option<TimeZone> {
    let frozen = if run.shared { None } else { FrozenInputs::load_for_run(ledger, run).await.ok() };
    frozen.map(|frozen| frozen.brief.home_zone())
}

/// Loads the recipients to whom a run sent messages.
async fn load_addressees(ledger: &dyn Ledger, run: &Run) -> Result<BTreeMap<Row, Addressee>, LedgerError> {
    let mut numbers = BTreeMap::new();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        numbers.extend(envelope.rows.iter().map(|sent| (sent.row, sent.to)));
    }
    Ok(numbers)
}

/// Builds a list with each phone number in its row; all other rows are blank.
fn build_list(numbers: &BTreeMap<Row, Addressee>) -> Vec<u8> {
    let mut list = b"phone\n".to_vec();
    let mut row = Row::FIRST.get();
    for (number_row, number) in numbers {
        let blank_rows = number_row.get().saturating_sub(row) as usize;
        list.extend(std::iter::repeat_n(b'\n', blank_rows));
        let number = number.phone().map_or_else(|| FORGOTTEN.to_owned(), |number| number.to_string());
        list.extend(format!("{number}\n").into_bytes());
        row = number_row.get() + 1;
    }
    list
}

/// The `format` member of the facts. The digest covers it, so no digest of other data can equal a digest of evidence.
pub const EVIDENCE_FORMAT: &str = "campaign evidence 1";

/// The evidence about a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// A JSON object with the messages, the opt-outs and the runs that were not read.
    pub facts: Value,
    /// The facts as the digest covers them: JSON with sorted keys and without spaces.
    pub text: String,
    /// SHA-256 of the text, in hexadecimal.
    pub digest: String,
}

impl Evidence {
    /// Combines messages and opt-outs into the evidence about a phone number.
    pub fn from_messages(
        phone: Phone,
        record: &RecipientRecord,
        messages: Vec<Value>,
        opt_outs: &OptOutHistory,
        now: Timestamp,
    ) -> Self {
        let RecipientRecord { runs: _, elsewhere: _, unreadable, purged } = record;
        let unread: Vec<&str> = unreadable.iter().map(|UnreadableRun { run, .. }| run.as_str()).collect();
        Self::from_facts(json!({
            "format": EVIDENCE_FORMAT, "phone": phone.to_string(), "made_at": format!("{now:.3}"),
            "messages": messages, "opt_outs": opt_outs.listed_json(), "ended_opt_outs": opt_outs.ended_json(),
            "complete": unread.is_empty() && *purged == 0, "unread_runs": unread, "purged_runs": purged,
        }))
    }

    /// Creates evidence from facts, and computes its digest.
    fn from_facts(facts: Value) -> Self {
        // Maps of this type are sorted by key, so the same facts always give the same text.
        let text = facts.to_string();
        let hash = Sha256::digest(text.as_bytes());
        let digest = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { facts, text, digest }
    }
}

/// Loads the messages to a phone number, each with its consent and approvals.
///
/// # Errors
/// If the ledger cannot be read, or a record of consent is damaged.
pub async fn load_evidence_messages(ledger: &dyn Ledger, record: &RecipientRecord) -> Result<Vec<Value>, LedgerError> {
    let mut messages = Vec::new();
    for RecipientInRun { run, rows: _, results } in &record.runs {
        let approvals = load_approvals(ledger, run).await?;
        for row in results {
            let consent = load_consent(ledger, run, row).await?;
            messages.push(message_json(run, row, consent.as_ref(), &approvals));
        }
    }
    Ok(messages)
}

/// Loads the evidence of consent for a row of the results.
async fn load_consent(ledger: &dyn Ledger, run: &Run, row: &Value) -> Result<Option<ConsentEvidence>, LedgerError> {
    let Some(row) = row["row"].as_u64().and_then(|row| u32::try_from(row).ok()).map(Row::new) else {
        return Ok(None);
    };
    Ok(ledger.load_consents(run.key, RowSpan { first: row, last: row }).await?.pop())
}

fn message_json(run: &Run, row: &Value, consent: Option<&ConsentEvidence>, approvals: &[Approval]) -> Value {
    let consent = consent.map(|ConsentEvidence { row: _, value, at, source, wording }| {
        json!({ "value": value, "at": at, "source": source, "wording": wording })
    });
    let approval_json =
        |Approval { by, at, digest, .. }: &Approval| json!({ "by": by, "at": format!("{at:.3}"), "plan": digest });
    json!({
        "run": run.name(), "campaign": run.campaign, "edition": run.edition, "began_at": format!("{:.3}", run.began_at),
        "gateway": run.gateway, "rehearsal": !run.live, "purpose": run.suppression.purpose.name(),
        "mandatory": run.suppression.ignores_list(),
        "row": row["row"], "id": row["id"], "operation": row["operation"], "state": row["state"],
        "reason": row["reason"], "error": row["error"], "sent_at": row["submitted_at"],
        "delivered_by": row["delivered_by"], "delivered_at": row["delivered_at"], "consent": consent,
        "approvals": approvals.iter().map(approval_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::domain::Phone;

    #[test]
    fn written_list_keeps_each_number_in_its_row() {
        let number = |last: u64| Addressee::from(Phone::new(380_501_234_560 + last).unwrap());
        let numbers = [(2, 1), (3, 2), (6, 3)].map(|(row, last)| (Row::new(row), number(last)));
        let list = String::from_utf8(build_list(&numbers.into())).unwrap();
        let lines: Vec<&str> = list.lines().collect();
        assert_eq!(lines, ["phone", "380501234561", "380501234562", "", "", "380501234563"]);
        assert_eq!(super::build_list(&BTreeMap::new()), b"phone\n");
    }

    #[test]
    fn number_is_found_in_any_notation() {
        let (phone, region) = (Phone::new(380_501_234_567).unwrap(), "UA".parse().ok());
        for cell in ["+380501234567", "050 123-45-67", "call (050) 123 45 67 instead", "+380501234568; +380501234567"] {
            assert!(contains_number(cell, phone, region), "{cell}");
        }
        for cell in ["", "Olha", "+380501234568", "2026-11-28 10:00"] {
            assert!(!contains_number(cell, phone, region), "{cell}");
        }
    }

    #[test]
    fn digest_covers_the_facts_with_sorted_keys() {
        let evidence = Evidence::from_facts(json!({ "phone": "380501234567", "a": [1, "так"] }));
        assert_eq!(evidence.text, "{\"a\":[1,\"так\"],\"phone\":\"380501234567\"}");
        assert_eq!(evidence.digest.len(), 64);
        assert_ne!(evidence.digest, Evidence::from_facts(json!({ "phone": "380501234568", "a": [1, "так"] })).digest);
    }
}
