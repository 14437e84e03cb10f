//! Messages of earlier runs that rows skipped as `already sent` refer to.
//!
//! Rows are looked up in batches, so only the messages of one batch are in memory, never those of a whole run.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::listing::{FrozenList, ListSource, ReadAheadList};
use super::row_records::{RowRecord, RowRecords};
use super::{ResultsError, is_owned};
use crate::check::{ALREADY_SENT, TextHash, find_equal_range, reader_settings};
use crate::delivery::{FrozenInputs, compile_without_condition, for_each_text_hash};
use campaign_content::audience::{PhoneColumns, RecipientReader};
use campaign_core::domain::{GatewayMessageId, MessageId, Phone, Region, Row};
use campaign_ledger::{
    Copies, EnvelopeReader, ExcludedRows, Ledger, LedgerError, NumberFilter, RowState, Run, RunFilter, RunProgress,
};
use campaign_manifest::{CampaignBrief, DuplicatePolicy};

/// The maximum number of rows that are looked up at once.
const BATCH_ROWS: usize = 500_000;
/// The maximum number of rows for which the envelopes of a run are read one by one.
const SINGLE_READ_ROWS: u64 = 5_000;
/// The number of rows of an earlier run that are loaded at once.
const STEP_ROWS: u32 = 4_096;

/// A message that a skipped row refers to.
#[derive(Clone, Debug)]
pub(super) struct EarlierMessage {
    /// The run that sent it.
    pub(super) run: Arc<str>,
    /// The state of the message. `None` if the run was purged.
    pub(super) state: Option<RowState>,
    /// Our identifier.
    pub(super) id: Option<MessageId>,
    /// The gateway's identifier for the message.
    pub(super) msg_id: Option<GatewayMessageId>,
    /// The gateway's identifier for the request.
    pub(super) request_id: Option<Arc<str>>,
}

/// The runs whose messages the rows of a list can refer to.
pub struct EarlierRuns<'a> {
    ledger: &'a dyn Ledger,
    /// The runs, newest first.
    runs: Vec<Run>,
    /// The rows that refer to a message.
    rows: RoaringBitmap,
    /// The frozen copies of the run, which include its list.
    copies: &'a Copies,
    brief: &'a CampaignBrief,
}

impl<'a> EarlierRuns<'a> {
    /// Loads the earlier runs that sent the messages to which rows of `run` refer. `None` if no row refers to an
    /// earlier message.
    pub(super) async fn load(
        ledger: &'a dyn Ledger,
        run: &Run,
        left_out: &ExcludedRows,
        copies: &'a Copies,
        brief: &'a CampaignBrief,
    ) -> Result<Option<Self>, ResultsError> {
        let Some(rows) = find_already_sent_rows(left_out).filter(|_| run.live) else { return Ok(None) };
        let mut runs = ledger.list_runs(RunFilter::for_campaign(&run.campaign)).await?;
        // A run of another edition counts only if it was replaced.
        let is_same_edition = |other: &Run| (&other.edition, other.round) == (&run.edition, run.round);
        runs.retain(|other| {
            let is_related = is_same_edition(other) || other.progress == RunProgress::Replaced;
            other.live && other.key.0 < run.key.0 && other.can_share_recipients(run) && is_related
        });
        runs.sort_by_key(|other| (!is_same_edition(other), Reverse(other.key)));
        Ok((!runs.is_empty()).then_some(Self { ledger, runs, rows, copies, brief }))
    }

    /// Opens the run's list, so that the earlier messages can be looked up while the list is read.
    pub(super) fn open_messages(self) -> Result<EarlierMessages<'a>, ResultsError> {
        let list = FrozenList::open(ListSource::Copies(self.copies))?;
        let reader = RecipientReader::open(list, self.copies.place().as_ref(), &reader_settings(self.brief))?;
        let columns = reader.header().phones().clone();
        let list = ReadAheadList::spawn(reader);
        Ok(EarlierMessages { runs: self, list, columns, last_row: 0, messages: VecDeque::new() })
    }

    /// Looks up the earlier messages for `wanted_rows` in each run, newest run first.
    async fn look_up(&self, mut wanted_rows: Vec<WantedRow>) -> Result<Vec<(u32, EarlierMessage)>, ResultsError> {
        let mut messages = Vec::new();
        for run in &self.runs {
            if wanted_rows.is_empty() {
                break;
            }
            let earlier_count = messages.len();
            match run.purged_at {
                Some(_) => self.add_purged_run(run, &wanted_rows, &mut messages).await?,
                None => self.add_run_messages(run, &wanted_rows, &mut messages).await?,
            }
            let found_rows: RoaringBitmap = messages[earlier_count..].iter().map(|(row, _)| *row).collect();
            wanted_rows.retain(|(_, row)| !found_rows.contains(*row));
        }
        messages.sort_unstable_by_key(|(row, _)| *row);
        Ok(messages)
    }

    /// Adds the messages of a purged run, whose numbers the ledger keeps only as hashes.
    async fn add_purged_run(
        &self,
        run: &Run,
        wanted_rows: &[WantedRow],
        messages: &mut Vec<(u32, EarlierMessage)>,
    ) -> Result<(), ResultsError> {
        let numbers = self.ledger.load_numbers(NumberFilter::Sent(&[run.key])).await?;
        let name: Arc<str> = run.name().into();
        let message = |row| {
            (row, EarlierMessage { run: Arc::clone(&name), state: None, id: None, msg_id: None, request_id: None })
        };
        messages.extend(wanted_rows.iter().filter(|(phone, _)| numbers.contains(*phone)).map(|(_, row)| message(*row)));
        Ok(())
    }

    /// Adds the messages of a run that the `wanted_rows` refer to.
    async fn add_run_messages(
        &self,
        run: &Run,
        wanted_rows: &[WantedRow],
        messages: &mut Vec<(u32, EarlierMessage)>,
    ) -> Result<(), ResultsError> {
        let ledger = self.ledger;
        let sent = ledger.load_sent_rows(run.key).await?;
        if sent.is_empty() {
            return Ok(());
        }
        let mut pairs = match self.brief.duplicates {
            DuplicatePolicy::Allow => self.match_by_text(run, sent, wanted_rows).await?,
            DuplicatePolicy::Skip | DuplicatePolicy::Refuse => self.match_by_number(run, sent, wanted_rows).await?,
        };
        pairs.sort_unstable();
        let earlier: RoaringBitmap = pairs.iter().map(|(earlier, _)| *earlier).collect();
        let Some(last) = earlier.max() else { return Ok(()) };
        let (name, owned): (Arc<str>, bool) = (run.name().into(), is_owned(ledger, run).await?);
        let is_few = earlier.len() <= SINGLE_READ_ROWS;
        let mut records = match is_few {
            true => RowRecords::open_for_rows(ledger, run, owned, &earlier).await?,
            false => RowRecords::open(ledger, run, owned).await?,
        };
        let steps: Vec<(u32, u32)> = match is_few {
            true => earlier.iter().map(|row| (row, row)).collect(),
            false => (Row::FIRST.get()..=last)
                .step_by(STEP_ROWS as usize)
                .map(|first| (first, first.saturating_add(STEP_ROWS - 1).min(last)))
                .collect(),
        };
        let mut pairs = pairs.into_iter().peekable();
        for (first, last) in steps {
            records.read_rows(Row::new(first), Row::new(last)).await?;
            for row in first..=last {
                // Each record is removed, so that it does not stay in memory.
                let record = records.take_loaded(Row::new(row));
                while let Some((_, current)) = pairs.next_if(|(earlier, _)| *earlier == row) {
                    let message = record.as_ref().map(|record| build_message(run, &name, Row::new(row), record));
                    messages.extend(message.map(|message| (current, message)));
                }
            }
        }
        Ok(())
    }

    /// Pairs the rows of a run that have a message with the `wanted_rows` that have the same phone number.
    async fn match_by_number(
        &self,
        run: &Run,
        mut sent: RoaringBitmap,
        wanted_rows: &[WantedRow],
    ) -> Result<Vec<RowPair>, ResultsError> {
        let (mut pairs, mut envelopes) = (Vec::new(), EnvelopeReader::new(self.ledger, run.key));
        while let Some(envelope) = envelopes.next_envelope().await? {
            for row in &envelope.rows {
                // A row can have several attempts, but it is listed once.
                let Some(phone) = row.to.phone().filter(|_| sent.remove(row.row.get())) else { continue };
                let current = &wanted_rows[find_equal_range(wanted_rows, |(other, _)| other.cmp(&phone))];
                pairs.extend(current.iter().map(|(_, current)| (row.row.get(), *current)));
            }
        }
        Ok(pairs)
    }

    /// Pairs the rows of a run that have a message with the `wanted_rows` that have the same phone number and text.
    /// Several rows with the same text are paired with different messages while there are enough messages.
    async fn match_by_text(
        &self,
        run: &Run,
        sent: RoaringBitmap,
        wanted_rows: &[WantedRow],
    ) -> Result<Vec<RowPair>, ResultsError> {
        let earlier = match self.ledger.load_copies(run).await {
            Ok(earlier) => earlier,
            // Without texts, it is unknown which rows the messages belong to.
            Err(LedgerError::CopiesUnreadable { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let current = self.copies.clone();
        let rows: RoaringBitmap = wanted_rows.iter().map(|(_, row)| *row).collect();
        let read = tokio::task::spawn_blocking(move || {
            // Damaged copies of an earlier run must not prevent the results of this run from being written.
            let earlier = FrozenInputs::from_copies(&earlier)
                .ok()
                .and_then(|frozen| Some((load_texts(&frozen, &earlier, &sent).ok()??, frozen)));
            let Some((earlier, frozen)) = earlier else { return Ok(Vec::new()) };
            let current = load_texts(&frozen, &current, &rows)?;
            Ok(current.map_or_else(Vec::new, |current| match_rows(&earlier, &current)))
        });
        read.await.map_err(|error| ResultsError::Recipients(error.to_string()))?
    }
}

/// The rows that were skipped because their recipients had already been sent the message. `None` if there are no such
/// rows.
fn find_already_sent_rows(left_out: &ExcludedRows) -> Option<RoaringBitmap> {
    let mut sets = left_out.sets().filter(|(state, reason, _)| *state == RowState::Skipped && *reason == ALREADY_SENT);
    sets.next().map(|(.., rows)| rows.clone())
}

/// The messages that the rows of a list refer to, from the first row to the last.
pub(super) struct EarlierMessages<'a> {
    runs: EarlierRuns<'a>,
    /// The list, read ahead.
    list: ReadAheadList,
    columns: PhoneColumns,
    /// The last row that was looked up.
    last_row: u32,
    /// Messages that were found but not taken yet, by row.
    messages: VecDeque<(u32, EarlierMessage)>,
}

/// A row that refers to a message, with its number.
type WantedRow = (Phone, u32);

/// A row of an earlier run, and the row that refers to it.
type RowPair = (u32, u32);

impl EarlierMessages<'_> {
    /// Looks up the earlier messages for all rows up to `last`. Rows must be passed in ascending order.
    pub(super) async fn look_up_through(&mut self, last: Row) -> Result<(), ResultsError> {
        while self.last_row < last.get() && self.runs.rows.max().is_some_and(|last_wanted| last_wanted > self.last_row)
        {
            let batch = self.next_batch().await;
            if batch.is_empty() {
                self.last_row = u32::MAX;
            }
            let messages = self.runs.look_up(batch).await?;
            self.messages.extend(messages);
        }
        Ok(())
    }

    /// Takes the earlier message that a row refers to, if it is known. Rows must be passed in ascending order.
    pub(super) fn take_message(&mut self, row: Row) -> Option<EarlierMessage> {
        while self.messages.front().is_some_and(|(first_row, _)| *first_row < row.get()) {
            self.messages.pop_front();
        }
        self.messages.pop_front_if(|(first_row, _)| *first_row == row.get()).map(|(_, message)| message)
    }

    /// Reads the next rows that refer to earlier messages.
    async fn next_batch(&mut self) -> Vec<WantedRow> {
        let region: Option<Region> = self.runs.brief.region;
        let mut wanted_rows = Vec::new();
        while wanted_rows.len() < BATCH_ROWS {
            let Some(chunk) = self.list.next_chunk().await else { break };
            for record in chunk.iter() {
                self.last_row = record.row.get();
                if self.runs.rows.contains(record.row.get())
                    && let Ok(phone) = self.columns.choose_phone(record.fields, region)
                {
                    wanted_rows.push((phone, record.row.get()));
                }
            }
        }
        wanted_rows.sort_unstable();
        wanted_rows
    }
}

/// A row with its number and its text.
type RowText = ((Phone, TextHash), u32);

/// Loads the hashes of a run's texts for `rows` of a list, sorted by phone number and text. `None` if the texts do not
/// fit the list.
fn load_texts(
    frozen: &FrozenInputs,
    list: &Copies,
    rows: &RoaringBitmap,
) -> Result<Option<Vec<RowText>>, ResultsError> {
    let opened = FrozenList::open(ListSource::Copies(list))?;
    let Ok(compiled) = compile_without_condition(frozen, opened, list.place().as_ref()) else { return Ok(None) };
    let mut texts = Vec::new();
    for_each_text_hash(compiled, &mut |row, phone, text| {
        let text = text.filter(|_| rows.contains(row.get()));
        texts.extend(text.map(|text| ((phone, text), row.get())));
    })
    .map_err(|finding| vec![*finding])?;
    texts.sort_unstable();
    Ok(Some(texts))
}

/// Pairs the rows of two lists that have the same phone number and text.
fn match_rows(earlier: &[RowText], current: &[RowText]) -> Vec<RowPair> {
    let mut pairs = Vec::new();
    for current_rows in current.chunk_by(|(text, _), (next_text, _)| text == next_text) {
        let Some((text, _)) = current_rows.first() else { continue };
        let earlier_rows = &earlier[find_equal_range(earlier, |(other, _)| other.cmp(text))];
        let Some(last) = earlier_rows.last() else { continue };
        pairs.extend(current_rows.iter().enumerate().map(|(index, (_, row))| {
            // If there are fewer messages than rows, the remaining rows are paired with the last message.
            let (_, earlier_row) = earlier_rows.get(index).unwrap_or(last);
            (*earlier_row, *row)
        }));
    }
    pairs
}

fn build_message(run: &Run, name: &Arc<str>, row: Row, record: &RowRecord) -> EarlierMessage {
    EarlierMessage {
        run: Arc::clone(name),
        state: Some(record.state),
        id: run.message_id(row, record.order()),
        msg_id: record.msg_id().cloned(),
        request_id: record.request_id().cloned(),
    }
}
