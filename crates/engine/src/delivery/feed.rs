//! Feed of operations: the frozen recipients of a run, rendered and encoded on all cores, in the order of the list.

use std::collections::HashMap;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roaring::RoaringBitmap;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::sending_hours::SendingHours;
use super::shared_run::ShardSource;
use super::snapshot::Snapshot;
use super::tally::{Stop, StopKind};
use crate::check::online::MessagePrices;
use crate::check::{
    CompiledCampaign, ComposeFailure, ComposedMessage, Composer, MessageSize, count_sms_parts, process_in_order,
};
use campaign_content::audience::{Chunk, RecordRef, ValidNumber};
use campaign_core::domain::{IdRange, Row, RowSet};
use campaign_gateway::{EncodedOperation, OperationForm, RunWebhookUrls};
use campaign_ledger::{ListReader, RowSpan};

/// The maximum number of rendered groups that wait for the engine. A group contains at most the rows of one chunk.
const READ_AHEAD: usize = 4;
/// The read-ahead for rows drawn in shards. It is small, so that other workers can draw rows that would wait here.
const SHARD_READ_AHEAD: usize = 1;

/// A group of operations, or the stop that ends the feed. An empty group marks the end of a shard, so that its rows do
/// not wait for rows of the next shard.
type OperationGroup = Result<Vec<EncodedOperation>, Stop>;

/// A feed of rendered operations, in groups.
pub struct Feed(mpsc::Receiver<OperationGroup>);

impl Feed {
    /// Waits for the next group of operations. `None` after the last row.
    pub async fn next_group(&mut self) -> Option<OperationGroup> {
        self.0.recv().await
    }
}

impl Feed {
    /// A feed of already rendered operations.
    pub(super) fn from_groups(groups: Vec<Vec<EncodedOperation>>) -> Self {
        let (sender, receiver) = mpsc::channel(groups.len().max(1));
        // The channel has room for all groups.
        groups.into_iter().for_each(|group| drop(sender.try_send(Ok(group))));
        Self(receiver)
    }
}

#[cfg(test)]
impl Feed {
    /// A feed of the operations in the drawn shards, one shard after another, as in [`start_shard_feed`].
    pub(super) fn from_shards(shards: ShardSource, mut operations: Vec<EncodedOperation>) -> Self {
        let (sender, receiver) = mpsc::channel(SHARD_READ_AHEAD);
        tokio::spawn(async move {
            loop {
                let rows = match shards.next_rows().await {
                    Ok(Some(rows)) => rows,
                    Ok(None) => return,
                    Err(error) => {
                        let stop = Stop::new(StopKind::Ledger, error.to_string());
                        return drop(sender.send(Err(stop)).await);
                    }
                };
                let (shard_operations, rest) =
                    operations.into_iter().partition(|operation| rows.contains(operation.row));
                operations = rest;
                // An empty group ends a shard, even if none of its rows is sent.
                for group in [shard_operations, Vec::new()] {
                    if sender.send(Ok(group)).await.is_err() {
                        return;
                    }
                }
            }
        });
        Self(receiver)
    }
}

/// The rows of a run to send now.
#[derive(Clone, Debug, Default)]
pub struct SendSelection {
    /// Rows that are never sent, or whose envelope is final.
    pub settled: RoaringBitmap,
    /// The rows that the user selected. `None` for all rows.
    pub rows: Option<RowSet>,
    /// The maximum number of rows.
    pub limit: Option<u64>,
    /// The hashes of the recorded messages of resent rows. If a message has changed, the run stops.
    pub digests: HashMap<Row, [u8; 8]>,
    /// Rows with the identifiers of a retry order.
    pub renumbered: Vec<(RoaringBitmap, IdRange)>,
    /// The webhook URLs of the run.
    pub hook: Option<RunWebhookUrls>,
    /// The times at which rows may be sent. `None` if they may be sent at any time.
    pub hours: Option<Arc<SendingHours>>,
    /// The prices of the run's messages, if known.
    pub prices: Option<MessagePrices>,
}

impl SendSelection {
    /// Selects all rows that are not settled in `snapshot`.
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        Self::default().with_snapshot(snapshot)
    }

    /// Returns the same selection, restricted to rows that are not settled in `snapshot`.
    pub fn with_snapshot(self, snapshot: &Snapshot) -> Self {
        let Snapshot { settled, digests, renumbered, .. } = snapshot;
        let (settled, digests, renumbered) = (settled.clone(), digests.clone(), renumbered.clone());
        Self { settled, digests, renumbered, ..self }
    }

    /// The message identifiers for a row: the range of the row's retry order if there is one, otherwise the range of
    /// the run.
    fn ids_for(&self, row: Row, run_ids: IdRange) -> IdRange {
        let order = self.renumbered.iter().find(|(rows, _)| rows.contains(row.get()));
        order.map_or(run_ids, |(_, ids)| *ids)
    }

    /// Whether there is an earlier message for a row, with any identifier.
    fn had_message(&self, row: Row) -> bool {
        self.digests.contains_key(&row) || self.renumbered.iter().any(|(rows, _)| rows.contains(row.get()))
    }

    fn add_hook(&self, operation: EncodedOperation) -> EncodedOperation {
        match &self.hook {
            Some(hook) => {
                let address = hook.message_url(operation.id);
                operation.with_hook(&address)
            }
            None => operation,
        }
    }

    fn is_selected(&self, row: Row) -> bool {
        !self.settled.contains(row.get()) && self.rows.as_ref().is_none_or(|rows| rows.contains(row))
    }
}

/// Starts a thread that reads the list, and renders and encodes the messages.
pub fn start_feed(prepared: CompiledCampaign<BufReader<ListReader>>, ids: IdRange, selection: SendSelection) -> Feed {
    spawn_feed(READ_AHEAD, move |sender| {
        let mut producer = Producer::new(prepared, ids, selection, sender.clone());
        let _flow = producer.render_groups(None);
    })
}

/// Starts a thread that reads, renders and encodes the drawn rows, shard by shard. An empty group ends each shard.
pub fn start_shard_feed(
    prepared: CompiledCampaign<BufReader<ListReader>>,
    ids: IdRange,
    selection: SendSelection,
    shards: ShardSource,
) -> Feed {
    let runtime = Handle::current();
    spawn_feed(SHARD_READ_AHEAD, move |sender| {
        // If shards are finished quickly, the next shard is drawn while the current one is rendered. If rows wait for
        // their window, a pass can end within a shard, so such a pass draws one shard at a time. The next pass begins
        // with the shards that are already drawn.
        let draws_ahead = selection.hours.is_none() && shards.has_largest_shards();
        let mut producer = Producer::new(prepared, ids, selection, sender.clone());
        let draw = || {
            runtime.spawn({
                let shards = shards.clone();
                async move { shards.next_rows().await }
            })
        };
        let mut next = draw();
        loop {
            let rows = match runtime.block_on(next) {
                Ok(Ok(Some(rows))) => rows,
                Ok(Ok(None)) => return,
                Ok(Err(error)) => {
                    let stop = Stop::new(StopKind::Ledger, format!("the ledger could not be written: {error}"));
                    // If the engine is gone, the error does not matter.
                    return drop(sender.blocking_send(Err(stop)));
                }
                // The runtime is shutting down, or drawing panicked. `spawn_feed` reports the panic to the engine.
                Err(join_error) => std::panic::resume_unwind(Box::new(join_error)),
            };
            let next_draw = draws_ahead.then(&draw);
            if producer.render_groups(Some(rows)).is_break() || sender.blocking_send(Ok(Vec::new())).is_err() {
                return;
            }
            next = next_draw.unwrap_or_else(&draw);
        }
    })
}

fn spawn_feed(read_ahead: usize, produce: impl FnOnce(&mpsc::Sender<OperationGroup>) + Send + 'static) -> Feed {
    let (sender, receiver) = mpsc::channel(read_ahead);
    std::thread::spawn(move || {
        let produced = catch_unwind(AssertUnwindSafe(|| produce(&sender)));
        if produced.is_err() {
            // Without this stop, the list would seem to be complete. If the engine is gone, the error does not matter.
            let stop = Stop::new(StopKind::Internal, "message preparation ended early; this is a bug");
            let _ = sender.blocking_send(Err(stop));
        }
    });
    Feed(receiver)
}

/// Reads a list once, and sends the selected rows to the engine.
struct Producer {
    prepared: CompiledCampaign<BufReader<ListReader>>,
    ids: IdRange,
    selection: SendSelection,
    /// The number of rows that may still be sent.
    remaining: u64,
    /// The last chunk that was read, if it extends beyond the requested rows.
    unfinished_chunk: Option<Arc<Chunk>>,
    sender: mpsc::Sender<OperationGroup>,
}

impl Producer {
    fn new(
        prepared: CompiledCampaign<BufReader<ListReader>>,
        ids: IdRange,
        selection: SendSelection,
        sender: mpsc::Sender<OperationGroup>,
    ) -> Self {
        let remaining = selection.limit.unwrap_or(u64::MAX);
        Self { prepared, ids, selection, remaining, unfinished_chunk: None, sender }
    }

    /// Renders `rows`, or all rows, and passes the operations to the engine in groups. `rows` must follow the rows of
    /// the previous call.
    ///
    /// Breaks if rendering must end: the engine accepts no more operations, the limit is reached, earlier rows are due,
    /// or the feed failed.
    fn render_groups(&mut self, rows: Option<RowSpan>) -> ControlFlow<()> {
        let Self { prepared, ids, selection, remaining, unfinished_chunk, sender } = self;
        let (CompiledCampaign { reader, recipe, .. }, ids) = (prepared, *ids);
        let forms: Vec<OperationForm> =
            recipe.text_sources().map(|sources| OperationForm::from_content(&sources)).collect();
        let (mut read_error, mut is_past_last, mut is_over) = (None, false, false);
        let read = || {
            while !is_past_last {
                let chunk = match unfinished_chunk.take() {
                    Some(chunk) => chunk,
                    None => {
                        let mut chunk = Chunk::new();
                        match reader.read_chunk(&mut chunk) {
                            Ok(true) => Arc::new(chunk),
                            Ok(false) => return None,
                            Err(finding) => {
                                read_error = Some(Stop::new(StopKind::Inconsistent, finding.message));
                                return None;
                            }
                        }
                    }
                };
                let Some(RowSpan { first, last }) = rows else { return Some(chunk) };
                let row_of = |record: Option<RecordRef<'_>>| record.map_or(Row::HEADER, |record| record.row);
                let (chunk_first, chunk_last) =
                    (row_of(chunk.get(0)), row_of(chunk.len().checked_sub(1).and_then(|end| chunk.get(end))));
                if chunk_last > last {
                    is_past_last = true;
                    *unfinished_chunk = Some(Arc::clone(&chunk));
                }
                if chunk_last >= first && chunk_first <= last {
                    return Some(chunk);
                }
            }
            None
        };
        let is_wanted = |row: Row| rows.is_none_or(|rows| rows.contains(row)) && selection.is_selected(row);
        let encode = |composer: &mut Composer<'_>, chunk: Arc<Chunk>| -> Result<Vec<EncodedOperation>, Stop> {
            let chosen = chunk.iter().filter(|record| is_wanted(record.row));
            let encode_selected = |record: RecordRef<'_>| {
                let ids = selection.ids_for(record.row, ids);
                let operation = encode_record(composer, &forms, ids, selection.prices.as_ref(), record)?;
                let operation = match &selection.hours {
                    None => operation,
                    // Outside its window, a row stays planned.
                    Some(hours) => match hours.departure_deadline(operation.phone, record.fields) {
                        Some(leave_by) => operation.with_leave_before(leave_by),
                        None => return Ok(None),
                    },
                };
                let repeats = selection.had_message(operation.row);
                Ok(Some(selection.add_hook(operation).with_repeats(repeats)))
            };
            chosen.map(encode_selected).filter_map(Result::transpose).collect()
        };
        let send_group = |operations: Result<Vec<EncodedOperation>, Stop>| {
            let operations = operations.and_then(|mut operations| {
                operations.truncate(usize::try_from(*remaining).unwrap_or(usize::MAX));
                // Variants can have different kinds, but an envelope has only one, so operations are grouped by kind.
                operations.sort_by_key(|operation| operation.kind);
                *remaining -= operations.len() as u64;
                check_unchanged(&selection.digests, &operations).map(|()| operations)
            });
            // Rows that could not be sent before might be due now, and they come before the following rows.
            let is_due = selection.hours.as_ref().is_some_and(|hours| hours.is_due());
            is_over = operations.is_err() || *remaining == 0 || is_due;
            if operations.as_ref().is_ok_and(Vec::is_empty) {
                return if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            is_over |= sender.blocking_send(operations).is_err();
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        process_in_order(crate::check::count_cores(), read, || recipe.composer(), encode, send_group);
        if let Some(stop) = read_error {
            // If the engine is gone, the error does not matter.
            let _ = sender.blocking_send(Err(stop));
            is_over = true;
        }
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn encode_record(
    composer: &mut Composer<'_>,
    forms: &[OperationForm],
    ids: IdRange,
    prices: Option<&MessagePrices>,
    record: RecordRef<'_>,
) -> Result<EncodedOperation, Stop> {
    let row = record.row;
    let inconsistent = |problem: &str| Stop::new(StopKind::Inconsistent, format!("row {row} {problem}"));
    let composed = composer.compose(record);
    let ComposedMessage { number: ValidNumber { phone, .. }, arm, message } =
        composed.map_err(|ComposeFailure { reason, .. }| {
            inconsistent(&format!("was valid when the run started, but is now invalid: {reason}"))
        })?;
    let id = ids.id_for_row(row).ok_or_else(|| inconsistent("is outside the run's range of identifiers"))?;
    let cost =
        prices.map(|prices| prices.message_cost(MessageSize { arm, sms_parts: count_sms_parts(message) }, phone));
    Ok(EncodedOperation::from_form(row, id, phone, &forms[arm], |place| message.text(place)).with_cost(cost))
}

/// Checks that each resent message is equal to the message of its recorded intent.
fn check_unchanged(digests: &HashMap<Row, [u8; 8]>, operations: &[EncodedOperation]) -> Result<(), Stop> {
    let changed = operations
        .iter()
        .find(|operation| digests.get(&operation.row).is_some_and(|digest| *digest != operation.digest));
    changed.map_or(Ok(()), |operation| {
        let reason = format!("the message for row {} differs from the recorded message", operation.row);
        Err(Stop::new(StopKind::Inconsistent, reason))
    })
}
