//! Messages that count towards limits and caps, from envelopes and receipts.
//!
//! Most receipts are about accepted messages, which count anyway. The rows of these messages are cached, so storing a
//! receipt rarely reads an envelope.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use roaring::RoaringBitmap;
use serde_json::json;

use super::dialect::{Connection, Record};
use super::envelope_records::read_row_span;
use super::envelopes::{self, SELECT_ENVELOPES, SELECT_LISTED_ENVELOPES, envelope_from_row};
use super::{StatementError, query, read_u32};
use super::{events, limits, receipts};
use crate::envelope::ENVELOPES_PER_READ;
use crate::rules::{CountedMessage, CountedMessages, may_have_been_sent};
use crate::{EnvelopeRecord, RowSpan, RunId, SentRow};
use campaign_core::domain::{OperationOutcome, Row};

/// The maximum number of runs whose accepted rows are cached.
const MAX_CACHED_RUNS: usize = 256;

/// Calls a function with each message of a run that counts towards limits and caps.
pub(super) async fn visit_messages(
    connection: &mut Connection,
    run: RunId,
    mut visit: impl FnMut(CountedMessage),
) -> Result<(), StatementError> {
    let mut messages = CountedMessages::new(events::load_row_events(&mut *connection, run).await?);
    let add = |envelope: &EnvelopeRecord| messages.add_envelope(envelope).into_iter().for_each(&mut visit);
    envelopes::visit_envelopes(connection, run, add).await?;
    for (row, receipts) in receipts::load_receipts_of_rows(connection, run, &messages.uncounted_rows()).await? {
        messages.find_proven_messages(row, &receipts).into_iter().for_each(&mut visit);
    }
    Ok(())
}

/// The rows of an envelope, and its messages that count towards limits and caps.
pub(super) async fn load_envelope_messages(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
) -> Result<(Vec<SentRow>, Vec<CountedMessage>), StatementError> {
    let records = envelopes::load_envelopes(&mut *connection, run, envelope..=envelope).await?;
    let Some(record) = records.into_iter().next() else { return Ok(Default::default()) };
    let events = events::load_row_events(&mut *connection, run).await?;
    let mut messages = CountedMessages::new(events.clone());
    let mut counted = messages.add_envelope(&record);
    let proofs = receipts::load_receipts_of_rows(connection, run, &messages.uncounted_rows()).await?;
    if !proofs.is_empty() {
        // A row can have attempts with the same identifier in other envelopes.
        let mut records = BTreeMap::new();
        for (row, _) in &proofs {
            let attempts = envelopes::load_envelopes_of_row(&mut *connection, run, *row).await?;
            records.extend(attempts.into_iter().map(|record| (record.envelope, record)));
        }
        let mut messages = CountedMessages::new(events);
        records.values().for_each(|record| drop(messages.add_envelope(record)));
        let proven = proofs.iter().flat_map(|(row, receipts)| messages.find_proven_messages(*row, receipts));
        counted.extend(proven.filter(|message| message.envelope == envelope));
    }
    Ok((record.rows, counted))
}

/// Whether receipts are stored for rows of a settled envelope that were not sent, according to its outcomes.
pub(super) async fn has_receipts_of_unsent_rows(
    connection: &mut Connection,
    run: RunId,
    envelope: u32,
    outcomes: &[OperationOutcome],
) -> Result<bool, StatementError> {
    let records = envelopes::load_envelopes(&mut *connection, run, envelope..=envelope).await?;
    let unsent = records.iter().flat_map(|record| record.rows.iter().zip(outcomes));
    let unsent = unsent.filter(|(_, outcome)| !may_have_been_sent(outcome)).map(|(sent, _)| sent.row.get()).collect();
    Ok(!receipts::load_receipts_of_rows(connection, run, &unsent).await?.is_empty())
}

/// Discards the totals of a run and refreshes the contacts if any of these messages counts only because of newly stored
/// receipts. A message has a row and a retry order.
///
/// Damaged records do not prevent the storage of receipts: the next reader of the limits reports the damage.
pub(super) async fn reset_after_receipts(
    connection: &mut Connection,
    accepted: &mut AcceptedRows,
    run: RunId,
    messages: &BTreeSet<(Row, Option<u32>)>,
) -> Result<(), StatementError> {
    match find_proven_envelopes(connection, accepted, run, messages).await {
        Ok(envelopes) if envelopes.is_empty() => Ok(()),
        Ok(envelopes) => limits::reset_envelopes(connection, run, envelopes).await,
        Err(StatementError::Ledger(error)) if error.concerns_records() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The envelopes of the messages that count only because of their receipts.
async fn find_proven_envelopes(
    connection: &mut Connection,
    accepted: &mut AcceptedRows,
    run: RunId,
    messages: &BTreeSet<(Row, Option<u32>)>,
) -> Result<BTreeSet<u32>, StatementError> {
    let is_unknown = |accepted: &AcceptedRows, message: &(Row, Option<u32>)| !accepted.contains(run, message);
    if !messages.iter().any(|message| is_unknown(accepted, message)) || !limits::has_counts(connection, run).await? {
        return Ok(BTreeSet::new());
    }
    accepted.read_new_envelopes(connection, run).await?;
    let unknown = messages.iter().filter(|message| is_unknown(accepted, message));
    let rows: RoaringBitmap = unknown.map(|(row, _)| row.get()).collect();
    let envelopes = accepted.list_envelopes(run, &rows);
    if envelopes.is_empty() {
        return Ok(envelopes);
    }
    let mut counted = CountedMessages::new(events::load_row_events(&mut *connection, run).await?);
    for record in load_listed_envelopes(connection, run, &envelopes).await? {
        counted.add_envelope(&record);
    }
    let proofs = receipts::load_receipts_of_rows(connection, run, &(rows & counted.uncounted_rows())).await?;
    let proven = proofs.iter().flat_map(|(row, receipts)| counted.find_proven_messages(*row, receipts));
    Ok(proven.map(|message| message.envelope).collect())
}

/// The undamaged envelopes of a run among these, in order.
async fn load_listed_envelopes(
    connection: &mut Connection,
    run: RunId,
    envelopes: &BTreeSet<u32>,
) -> Result<Vec<EnvelopeRecord>, StatementError> {
    if envelopes.is_empty() {
        return Ok(Vec::new());
    }
    let records =
        query(SELECT_LISTED_ENVELOPES).bind(run.0).bind(json!(envelopes).to_string()).fetch_all(connection).await?;
    records.iter().filter_map(read_intact_envelope).collect()
}

/// Reads an envelope. `None` if it is damaged.
fn read_intact_envelope(record: &Record) -> Option<Result<EnvelopeRecord, StatementError>> {
    match envelope_from_row(record) {
        Err(StatementError::Ledger(_)) => None,
        read => Some(read),
    }
}

/// The rows whose first attempt the gateway accepted, as far as this process has read them. These messages always
/// count.
#[derive(Default)]
pub(super) struct AcceptedRows {
    runs: HashMap<RunId, KnownRows>,
}

/// The rows of a run in the envelopes that were read.
#[derive(Default)]
struct KnownRows {
    accepted: RoaringBitmap,
    /// The rows with another outcome. Their next attempt might be a message with another identifier.
    others: RoaringBitmap,
    /// The row span of each envelope.
    spans: BTreeMap<u32, RowSpan>,
    /// The envelopes without outcomes.
    open: BTreeSet<u32>,
}

impl AcceptedRows {
    /// Whether the message of a row is known to be accepted. Only the first messages of rows are tracked, not those of
    /// retry orders.
    fn contains(&self, run: RunId, (row, order): &(Row, Option<u32>)) -> bool {
        order.is_none() && self.runs.get(&run).is_some_and(|rows| rows.accepted.contains(row.get()))
    }

    /// The envelopes of a run whose span of rows contains any of these rows.
    fn list_envelopes(&self, run: RunId, rows: &RoaringBitmap) -> BTreeSet<u32> {
        let contains = |span: &RowSpan| rows.range_cardinality(span.first.get()..=span.last.get()) > 0;
        let known = self.runs.get(&run).into_iter().flat_map(|known| &known.spans);
        known.filter(|(_, span)| contains(span)).map(|(envelope, _)| *envelope).collect()
    }

    /// Reads the new envelopes and outcomes of a run.
    async fn read_new_envelopes(&mut self, connection: &mut Connection, run: RunId) -> Result<(), StatementError> {
        if self.runs.len() >= MAX_CACHED_RUNS && !self.runs.contains_key(&run) {
            self.runs.clear();
        }
        let known = self.runs.entry(run).or_default();
        let open = std::mem::take(&mut known.open);
        for record in load_listed_envelopes(connection, run, &open).await? {
            known.add_envelope(&record);
        }
        loop {
            let next = known.spans.last_key_value().map_or(1, |(last, _)| last.saturating_add(1));
            let records = query(SELECT_ENVELOPES)
                .bind(run.0)
                .bind(i64::from(next))
                .bind(i64::from(next.saturating_add(ENVELOPES_PER_READ - 1)))
                .fetch_all(&mut *connection)
                .await?;
            if records.is_empty() {
                return Ok(());
            }
            for record in &records {
                known.spans.insert(read_u32(record, "envelope")?, read_row_span(record)?);
            }
            for record in records.iter().filter_map(read_intact_envelope) {
                known.add_envelope(&record?);
            }
        }
    }
}

impl KnownRows {
    fn add_envelope(&mut self, envelope: &EnvelopeRecord) {
        let Some((_, outcomes)) = &envelope.settled else {
            self.open.insert(envelope.envelope);
            return;
        };
        for (sent, outcome) in envelope.rows.iter().zip(outcomes) {
            let row = sent.row.get();
            match outcome {
                OperationOutcome::Accepted { .. } | OperationOutcome::Queued { .. } if !self.others.contains(row) => {
                    self.accepted.insert(row);
                }
                _ => drop(self.others.insert(row)),
            }
        }
    }
}
