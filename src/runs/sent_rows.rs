//! Which rows of a list have a message of the edition, for campaigns with `duplicates: allow`.
//!
//! The lists of earlier runs are read from their copies, and the texts of the earlier run are rendered for both lists.
//! Nothing is sent or recorded here. If a copy cannot be read, the rows of its numbers are skipped.

use std::io::{BufReader, Sink};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::guard::find_cancelled_recipients;
use super::{Error, Inputs, SentRecipients, run_blocking};
use crate::audience::Chunk;
use crate::check::{CompiledCampaign, CurrentRow, EarlierOutcome, EarlierRow, EarlierRun, SentRows, Tee, TextHash};
use crate::delivery::{FrozenInputs, Snapshot, compile_without_condition, for_each_text};
use crate::domain::{Phone, Row};
use crate::ledger::{Copies, Ledger, LedgerError, NumberSet, RowState, Run, RunProgress};
use crate::manifest::DuplicatePolicy;

/// The numbers whose rows are judged: they have a message of the edition, or were cancelled.
pub(super) struct GuardedNumbers<'n> {
    /// They have a message, or might have one.
    pub(super) sent: &'n NumberSet,
    /// `stop --for-good` cancelled them.
    pub(super) cancelled: &'n NumberSet,
}

impl GuardedNumbers<'_> {
    fn contains(&self, phone: Phone) -> bool {
        self.sent.contains(phone) || self.cancelled.contains(phone)
    }

    fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.cancelled.is_empty()
    }
}

/// The rows of the list that have a message of these runs. `None` if a message excludes all rows of its number.
///
/// # Errors
/// When the list or the ledger cannot be read, or the list changes in the meantime. No message is sent then.
pub(super) async fn find_sent_rows(
    ledger: &dyn Ledger,
    inputs: &Arc<Inputs>,
    runs: &[Run],
    numbers: GuardedNumbers<'_>,
) -> Result<Option<SentRows>, Error> {
    if inputs.campaign.brief.duplicates != DuplicatePolicy::Allow || numbers.is_empty() {
        return Ok(None);
    }
    let (listed, sha256) = list_numbered_rows(inputs, &numbers).await?;
    let (listed, mut sent) = (Arc::new(listed), SentRows::for_list(sha256));
    for run in runs {
        let numbers = ledger.load_sent_numbers(&[run.key]).await?;
        let cancelled = find_cancelled_recipients(ledger, std::slice::from_ref(run)).await?.numbers;
        if numbers.is_empty() && cancelled.is_empty() {
            continue;
        }
        let read = match run.purged_at {
            Some(_) => None,
            None => read_run_rows(ledger, run, (inputs, &listed, &sent.sha256)).await?,
        };
        let (rows, mut listed) = read.unwrap_or_else(|| (Vec::new(), rows_without_texts(&listed)));
        sent.compare_run(EarlierRun { rows, sent: numbers, cancelled }, &mut listed);
    }
    Ok(Some(sent))
}

impl SentRecipients {
    /// The rows of the list that have a message, or were cancelled. `None` if all rows of such a number count as one.
    ///
    /// # Errors
    /// As for [`sent_rows`].
    pub(super) async fn find_sent_rows(
        &self,
        ledger: &dyn Ledger,
        inputs: &Arc<Inputs>,
        (cancelled, replaced): (&NumberSet, Option<&Run>),
    ) -> Result<Option<SentRows>, Error> {
        let mut runs = self.runs().to_vec();
        runs.extend(replaced.filter(|replaced| runs.iter().all(|run| run.key != replaced.key)).cloned());
        find_sent_rows(ledger, inputs, &runs, GuardedNumbers { sent: &self.numbers, cancelled }).await
    }
}

/// A row of the list whose number has a message.
type NumberedRow = (Row, Phone);

/// The rows of the list with one of these numbers, and the SHA-256 of the list.
async fn list_numbered_rows(
    inputs: &Arc<Inputs>,
    numbers: &GuardedNumbers<'_>,
) -> Result<(Vec<NumberedRow>, String), Error> {
    let inputs = Arc::clone(inputs);
    let (sent, cancelled) = (numbers.sent.clone(), numbers.cancelled.clone());
    run_blocking(move || {
        let numbers = GuardedNumbers { sent: &sent, cancelled: &cancelled };
        let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, inputs.open_list()?), None::<Sink>);
        let CompiledCampaign { mut reader, recipe, .. } = inputs.compile_list(&mut tee)?;
        let (mut listed, mut chunk) = (Vec::new(), Chunk::new());
        while reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
            let numbered = chunk.iter().filter_map(|record| Some((record.row, recipe.parse_phone(record)?)));
            listed.extend(numbered.filter(|(_, phone)| numbers.contains(*phone)));
        }
        drop(reader);
        let sha256 = tee.finish().map_err(|error| inputs.unreadable_error(&error))?;
        Ok((listed, sha256))
    })
    .await?
}

/// How much of a list is read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// The rows of an earlier run, and its texts for the rows of the list. `None` if its copies cannot be used.
async fn read_run_rows(
    ledger: &dyn Ledger,
    run: &Run,
    (inputs, listed, sha256): (&Arc<Inputs>, &Arc<Vec<NumberedRow>>, &str),
) -> Result<Option<(Vec<EarlierRow>, Vec<CurrentRow>)>, Error> {
    let copies = match ledger.load_copies(run).await {
        Ok(copies) => copies,
        Err(LedgerError::CopiesUnreadable { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let fates = RowOutcomes::read(ledger, run).await?;
    let (inputs, listed, sha256) = (Arc::clone(inputs), Arc::clone(listed), sha256.to_owned());
    run_blocking(move || {
        let Some((frozen, earlier)) = read_earlier_rows(&copies, &fates) else { return Ok(None) };
        let (texts, now) = hash_listed_texts(&inputs, &frozen)?;
        if now != sha256 {
            return Err(inputs.changed_error());
        }
        let Some(texts) = texts else { return Ok(None) };
        let text = |row: Row| {
            let place = texts.binary_search_by_key(&row, |(row, _)| *row).ok()?;
            texts.get(place).map(|(_, text)| *text)
        };
        let listed = listed.iter().map(|&(row, phone)| CurrentRow { phone, text: text(row), row });
        Ok(Some((earlier, listed.collect())))
    })
    .await?
}

/// The rows of the list with one of the numbers, with unknown texts.
fn rows_without_texts(listed: &[NumberedRow]) -> Vec<CurrentRow> {
    listed.iter().map(|&(row, phone)| CurrentRow { phone, text: None, row }).collect()
}

/// The outcome of the rows of a run.
struct RowOutcomes {
    sent: RoaringBitmap,
    /// The rows that were planned when the run was stopped for good.
    cancelled: RoaringBitmap,
}

impl RowOutcomes {
    async fn read(ledger: &dyn Ledger, run: &Run) -> Result<Self, Error> {
        let sent = ledger.load_sent_rows(run.key).await?;
        let mut cancelled = RoaringBitmap::new();
        if run.live && run.progress == RunProgress::Cancelled {
            let snapshot = Snapshot::load(ledger, run, false).await?;
            let is_cancelled =
                |row| snapshot.row_state(row) == RowState::Skipped && snapshot.left_out.find_reason(row).is_none();
            cancelled.extend((Row::FIRST.get()..=run.last_row().get()).filter(|row| is_cancelled(Row::new(*row))));
        }
        Ok(Self { sent, cancelled })
    }

    fn outcome_of(&self, row: Row) -> EarlierOutcome {
        match () {
            () if self.sent.contains(row.get()) => EarlierOutcome::Sent,
            () if self.cancelled.contains(row.get()) => EarlierOutcome::Cancelled,
            () => EarlierOutcome::NotSent,
        }
    }
}

/// The rows of an earlier run with its texts, and its frozen inputs. `None` if its copies are damaged.
fn read_earlier_rows(copies: &Copies, fates: &RowOutcomes) -> Option<(FrozenInputs, Vec<EarlierRow>)> {
    let frozen = FrozenInputs::from_copies(copies).ok()?;
    let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, copies.open_list().ok()?), None::<Sink>);
    let prepared = compile_without_condition(&frozen, (&mut tee, copies.place().as_ref())).ok()?;
    let mut rows = Vec::new();
    let add = |row, phone, text| rows.push(EarlierRow { phone, text, outcome: fates.outcome_of(row) });
    for_each_text(prepared, add).ok()?;
    let read = tee.finish().ok()?;
    (read == frozen.recipients_sha256).then_some((frozen, rows))
}

/// The hash of the text of each row that has a message, in the order of the rows.
type TextHashes = Vec<(Row, TextHash)>;

/// The texts of an earlier run for each row of the current list, in the order of the rows, and the SHA-256 of the list. No texts
/// if they do not fit the list.
fn hash_listed_texts(inputs: &Inputs, frozen: &FrozenInputs) -> Result<(Option<TextHashes>, String), Error> {
    let mut tee = Tee::new(BufReader::with_capacity(BUFFER_BYTES, inputs.open_list()?), None::<Sink>);
    let texts = match compile_without_condition(frozen, (&mut tee, inputs.list.place())) {
        Ok(prepared) => {
            let mut texts = Vec::new();
            for_each_text(prepared, |row, _, text| texts.extend(text.map(|text| (row, text))))
                .map_err(|finding| Error::Findings(vec![*finding]))?;
            Some(texts)
        }
        Err(_) => None,
    };
    let sha256 = tee.finish().map_err(|error| inputs.unreadable_error(&error))?;
    Ok((texts, sha256))
}
