//! Frozen recipients, rendered and encoded on all cores, in the order of the file.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use roaring::RoaringBitmap;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::hours::SendingHours;
use super::share_draw::ShareDraw;
use super::stop::{Stop, StopKind};
use crate::audience::{Chunk, RecordRef, ValidNumber};
use crate::check::online::MessagePrices;
use crate::check::{
    CompiledCampaign, ComposeFailure, ComposedMessage, Composer, MessageSize, count_sms_parts, process_in_order,
};
use crate::domain::{IdRange, Row, RowSet};
use crate::gateway::{EncodedOperation, OperationForm, RunWebhookUrls};
use crate::ledger::RowSpan;

/// Groups of rendered operations that wait for the engine; one group is at most a chunk.
const READ_AHEAD: usize = 4;
/// The same where rows are drawn in shares: what waits here for long had better be drawn by others.
const SHARE_READ_AHEAD: usize = 1;

/// Operations that come together; none at the end of a share, where what came before goes out without what follows.
type OperationGroup = Result<Vec<EncodedOperation>, Stop>;

/// Rendered operations, a group at a time.
pub struct Feed(mpsc::Receiver<OperationGroup>);

impl Feed {
    /// The next group; nothing when all rows are through.
    pub async fn next_group(&mut self) -> Option<OperationGroup> {
        self.0.recv().await
    }
}

impl Feed {
    /// A feed of operations that are rendered already.
    pub(super) fn from_groups(groups: Vec<Vec<EncodedOperation>>) -> Self {
        let (sender, receiver) = mpsc::channel(groups.len().max(1));
        // The channel has room for all of them.
        groups.into_iter().for_each(|group| drop(sender.try_send(Ok(group))));
        Self(receiver)
    }
}

#[cfg(test)]
impl Feed {
    /// A feed of those of the operations that are drawn, share by share, as [`feed_shares`] brings them.
    pub(super) fn from_shares(shares: ShareDraw, mut operations: Vec<EncodedOperation>) -> Self {
        let (sender, receiver) = mpsc::channel(SHARE_READ_AHEAD);
        tokio::spawn(async move {
            loop {
                let rows = match shares.next_rows().await {
                    Ok(Some(rows)) => rows,
                    Ok(None) => return,
                    Err(error) => {
                        let stop = Stop::new(StopKind::Ledger, error.to_string());
                        return drop(sender.send(Err(stop)).await);
                    }
                };
                let (drawn, rest) = operations.into_iter().partition(|operation| rows.contains(operation.row));
                operations = rest;
                // An empty group is the end of a share, also where nothing of it is to be sent.
                for group in [drawn, Vec::new()] {
                    if sender.send(Ok(group)).await.is_err() {
                        return;
                    }
                }
            }
        });
        Self(receiver)
    }
}

/// Which rows of a run are to be sent now.
#[derive(Clone, Debug, Default)]
pub struct SendSelection {
    /// Rows that are never sent, or have an envelope that stands.
    pub settled: RoaringBitmap,
    /// The rows that the user asked for; all when there are none.
    pub rows: Option<RowSet>,
    /// At most so many.
    pub limit: Option<u64>,
    /// The hashes of rows that had an envelope before and go out again: they must not have changed.
    pub digests: HashMap<Row, [u8; 8]>,
    /// Rows that go out under the identifiers of an order to send them again.
    pub renumbered: Vec<(RoaringBitmap, IdRange)>,
    /// Where the webhooks of its messages go.
    pub hook: Option<RunWebhookUrls>,
    /// When rows may leave; nothing where they may at any time.
    pub hours: Option<Arc<SendingHours>>,
    /// What its messages cost, where that is known.
    pub prices: Option<MessagePrices>,
}

impl SendSelection {
    /// The identifiers that a row goes out under, in a run with these of its own.
    fn ids_for(&self, row: Row, own: IdRange) -> IdRange {
        let order = self.renumbered.iter().find(|(rows, _)| rows.contains(row.get()));
        order.map_or(own, |(_, ids)| *ids)
    }

    /// Whether a row had a message before: under these identifiers, or others.
    fn had_message(&self, row: Row) -> bool {
        self.digests.contains_key(&row) || self.renumbered.iter().any(|(rows, _)| rows.contains(row.get()))
    }

    fn with_hook(&self, operation: EncodedOperation) -> EncodedOperation {
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

/// Starts a thread that reads, renders and encodes.
pub fn start_feed<R: Read + Send + 'static>(
    prepared: CompiledCampaign<R>,
    ids: IdRange,
    selection: SendSelection,
) -> Feed {
    spawn_feed(READ_AHEAD, move |sender| {
        let mut producer = Producer::new(prepared, ids, selection, sender.clone());
        let _through = producer.produce_groups(None);
    })
}

/// Starts a thread that does the same with the rows that are drawn, share by share; after each comes an empty group.
pub fn start_share_feed<R: Read + Send + 'static>(
    prepared: CompiledCampaign<R>,
    ids: IdRange,
    selection: SendSelection,
    shares: ShareDraw,
) -> Feed {
    let runtime = Handle::current();
    spawn_feed(SHARE_READ_AHEAD, move |sender| {
        // Drawn while the one before is rendered, where shares are through so soon that drawing them is felt. Where rows wait for
        // their hour a pass may end in the middle of a share, and begins again with those that were drawn by then.
        let ahead = selection.hours.is_none() && shares.has_largest_shares();
        let mut producer = Producer::new(prepared, ids, selection, sender.clone());
        let draw = || {
            runtime.spawn({
                let shares = shares.clone();
                async move { shares.next_rows().await }
            })
        };
        let mut next = draw();
        loop {
            let rows = match runtime.block_on(next) {
                Ok(Ok(Some(rows))) => rows,
                Ok(Ok(None)) => return,
                Ok(Err(error)) => {
                    let stop = Stop::new(StopKind::Ledger, format!("the ledger could not be written: {error}"));
                    // The engine may be gone; then nobody has to know.
                    return drop(sender.blocking_send(Err(stop)));
                }
                // The runtime is going down, or drawing is not what it should be; the thread's own end tells the engine.
                Err(ended) => std::panic::resume_unwind(Box::new(ended)),
            };
            let drawn = ahead.then(&draw);
            if producer.produce_groups(Some(rows)).is_break() || sender.blocking_send(Ok(Vec::new())).is_err() {
                return;
            }
            next = drawn.unwrap_or_else(&draw);
        }
    })
}

fn spawn_feed(ahead: usize, produce: impl FnOnce(&mpsc::Sender<OperationGroup>) + Send + 'static) -> Feed {
    let (sender, receiver) = mpsc::channel(ahead);
    std::thread::spawn(move || {
        let produced = catch_unwind(AssertUnwindSafe(|| produce(&sender)));
        if produced.is_err() {
            // Without this the list would seem to be through. The engine may be gone; then nobody has to know.
            let stop = Stop::new(StopKind::Internal, "message preparation ended early; this is a bug");
            let _ = sender.blocking_send(Err(stop));
        }
    });
    Feed(receiver)
}

/// Reads a list once, and hands over what is chosen of it.
struct Producer<R> {
    prepared: CompiledCampaign<R>,
    ids: IdRange,
    selection: SendSelection,
    /// At most so many are still handed over.
    left: u64,
    /// What was read last and goes on behind the rows that were wanted.
    ahead: Option<Arc<Chunk>>,
    sender: mpsc::Sender<OperationGroup>,
}

impl<R: Read + Send> Producer<R> {
    fn new(
        prepared: CompiledCampaign<R>,
        ids: IdRange,
        selection: SendSelection,
        sender: mpsc::Sender<OperationGroup>,
    ) -> Self {
        let left = selection.limit.unwrap_or(u64::MAX);
        Self { prepared, ids, selection, left, ahead: None, sender }
    }

    /// Hands over these rows, which come after those before; all where none are named. Breaks when nothing more is wanted.
    fn produce_groups(&mut self, rows: Option<RowSpan>) -> ControlFlow<()> {
        let Self { prepared, ids, selection, left, ahead, sender } = self;
        let (CompiledCampaign { reader, recipe, .. }, ids) = (prepared, *ids);
        let forms: Vec<OperationForm> =
            recipe.text_sources().map(|sources| OperationForm::from_content(&sources)).collect();
        let (mut damage, mut through, mut over) = (None, false, false);
        let read = || {
            while !through {
                let chunk = match ahead.take() {
                    Some(chunk) => chunk,
                    None => {
                        let mut chunk = Chunk::new();
                        match reader.read_chunk(&mut chunk) {
                            Ok(true) => Arc::new(chunk),
                            Ok(false) => return None,
                            Err(finding) => {
                                damage = Some(Stop::new(StopKind::Inconsistent, finding.message));
                                return None;
                            }
                        }
                    }
                };
                let Some(RowSpan { first, last }) = rows else { return Some(chunk) };
                let row = |record: Option<RecordRef<'_>>| record.map_or(Row::HEADER, |record| record.row);
                let (begins, ends) =
                    (row(chunk.get(0)), row(chunk.len().checked_sub(1).and_then(|end| chunk.get(end))));
                if ends > last {
                    through = true;
                    *ahead = Some(Arc::clone(&chunk));
                }
                if ends >= first && begins <= last {
                    return Some(chunk);
                }
            }
            None
        };
        let is_wanted = |row: Row| rows.is_none_or(|rows| rows.contains(row)) && selection.is_selected(row);
        let encode = |composer: &mut Composer<'_>, chunk: Arc<Chunk>| -> Result<Vec<EncodedOperation>, Stop> {
            let chosen = chunk.iter().filter(|record| is_wanted(record.row));
            let encode = |record: RecordRef<'_>| {
                let ids = selection.ids_for(record.row, ids);
                let operation = encode_record((composer, &forms), (ids, selection.prices.as_ref()), record)?;
                let operation = match &selection.hours {
                    None => operation,
                    // Outside its window a row stays planned.
                    Some(hours) => match hours.leave_limit(operation.phone, record.fields) {
                        Some(leave_by) => operation.with_leave_before(leave_by),
                        None => return Ok(None),
                    },
                };
                let repeats = selection.had_message(operation.row);
                Ok(Some(selection.with_hook(operation).with_repeats(repeats)))
            };
            chosen.map(encode).filter_map(Result::transpose).collect()
        };
        let hand_over = |operations: Result<Vec<EncodedOperation>, Stop>| {
            let operations = operations.and_then(|mut operations| {
                operations.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                // Variants may be of several kinds, and an envelope is of one.
                operations.sort_by_key(|operation| operation.kind);
                *left -= operations.len() as u64;
                check_unchanged(&selection.digests, &operations).map(|()| operations)
            });
            // Rows that could not leave may now, and come before those behind them.
            let due = selection.hours.as_ref().is_some_and(|hours| hours.is_due());
            over = operations.is_err() || *left == 0 || due;
            if operations.as_ref().is_ok_and(Vec::is_empty) {
                return if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            over |= sender.blocking_send(operations).is_err();
            if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        process_in_order(crate::check::count_cores(), read, || recipe.composer(), encode, hand_over);
        if let Some(stop) = damage {
            // The engine may be gone already; then nobody has to know.
            let _ = sender.blocking_send(Err(stop));
            over = true;
        }
        if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn encode_record(
    (composer, forms): (&mut Composer<'_>, &[OperationForm]),
    (ids, prices): (IdRange, Option<&MessagePrices>),
    record: RecordRef<'_>,
) -> Result<EncodedOperation, Stop> {
    let row = record.row;
    let inconsistent = |what: &str| Stop::new(StopKind::Inconsistent, format!("row {row} {what}"));
    let composed = composer.compose(record);
    let ComposedMessage { number: ValidNumber { phone, .. }, arm, message } =
        composed.map_err(|ComposeFailure { reason, .. }| {
            inconsistent(&format!("was valid when the run started, but is now invalid: {reason}"))
        })?;
    let id = ids.id_for_row(row).ok_or_else(|| inconsistent("is outside the run's range of identifiers"))?;
    let cost = prices.map(|prices| prices.message_cost(MessageSize { arm, sms_parts: count_sms_parts(message) }));
    Ok(EncodedOperation::from_form(row, (id, phone), &forms[arm], |place| message.text(place)).with_cost(cost))
}

/// A message that goes out again must be the one that its first intent recorded.
fn check_unchanged(digests: &HashMap<Row, [u8; 8]>, operations: &[EncodedOperation]) -> Result<(), Stop> {
    let changed = operations
        .iter()
        .find(|operation| digests.get(&operation.row).is_some_and(|digest| *digest != operation.digest));
    changed.map_or(Ok(()), |operation| {
        let reason = format!("the message for row {} differs from the recorded message", operation.row);
        Err(Stop::new(StopKind::Inconsistent, reason))
    })
}
