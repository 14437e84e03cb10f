//! Runs that several processes send: blocks of shared runs for single messages, and shards of a campaign's run.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::{
    EnvelopeReader, Epoch, ExcludedRows, Lease, Ledger, LedgerError, LedgerFuture, NewRun, Run, RunProgress,
    SuppressionPolicy,
};
use campaign_core::domain::{Endpoint, MessageId, OperationKind, Row};

/// The common properties of single messages. Messages with equal properties go into one run until it is full.
#[derive(Clone, Debug)]
pub struct SharedRun {
    /// The stand-in for the campaign's name.
    pub campaign: String,
    /// Separates runs with the same stand-in. Empty if no separation is needed.
    pub edition: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account whose rate limit applies.
    pub account: String,
    /// The gateway endpoint that receives the messages.
    pub endpoint: Endpoint,
    /// The kind of its operations. For messages of any kind, the kind that carries all channels.
    pub kind: OperationKind,
    /// Whether the run sends to real recipients.
    pub live: bool,
    /// The effect of the suppression list.
    pub suppression: SuppressionPolicy,
}

impl SharedRun {
    /// The maximum number of rows of a shared run. Further messages go into a new run.
    pub const ROWS: u32 = 10_000;

    /// The stand-in for the campaign's name for messages of assistants, which count towards caps.
    pub const ASSISTANT_MESSAGES: &str = "assistant.message";

    /// Describes the run to be created.
    pub(super) fn new_run(&self, began_at: Timestamp, random: u64) -> NewRun {
        NewRun {
            campaign: self.campaign.clone(),
            edition: self.edition.clone(),
            gateway: self.gateway.clone(),
            account: self.account.clone(),
            endpoint: self.endpoint,
            kind: self.kind,
            live: self.live,
            round: 1,
            // The final number is not known yet.
            recipients: 0,
            last_row: Row::new(Row::HEADER.get() + Self::ROWS),
            excluded: ExcludedRows::default(),
            suppression: self.suppression,
            file: None,
            began_at,
            random,
        }
    }

    /// Whether a run is shared, not purged and has these properties. A full run also matches.
    pub(super) fn matches(&self, run: &Run) -> bool {
        let Self { campaign, edition, gateway, account, endpoint, kind, live, suppression: policy } = self;
        run.shared
            && run.purged_at.is_none()
            && (&run.campaign, &run.edition, &run.gateway, &run.account) == (campaign, edition, gateway, account)
            && (run.endpoint, run.kind, run.live, run.suppression) == (*endpoint, *kind, *live, *policy)
    }
}

/// A request for rows of a shared run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// The maximum number of rows; 1 for a row with a given identifier.
    pub(super) rows: u32,
    /// The identifier of the row. Without it, the ledger draws one.
    pub(super) id: Option<MessageId>,
    /// The maximum number of blocks per hour for this stand-in and profile, over all processes.
    pub(super) per_hour: Option<u32>,
}

impl BlockRequest {
    /// Requests up to this many rows.
    pub fn for_rows(rows: u32) -> Self {
        Self { rows, id: None, per_hour: None }
    }

    /// Requests one row within the hourly limit, with the given identifier, if any.
    pub fn for_message(id: Option<MessageId>, per_hour: Option<u32>) -> Self {
        Self { rows: 1, id, per_hour }
    }
}

/// The result of a request for rows.
#[derive(Debug)]
pub enum DrawOutcome {
    /// Rows for this process alone.
    Block(Box<RowBlock>),
    /// No rows.
    Refused(DrawRefusal),
}

/// The reason why a request for rows was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawRefusal {
    /// The identifier is already in use.
    IdTaken,
    /// The hourly limit is reached. Rows are available again at this moment.
    TooMany(Timestamp),
}

/// A range of rows, including both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpan {
    /// The first row.
    pub first: Row,
    /// The last row.
    pub last: Row,
}

impl RowSpan {
    /// Whether the span contains a row.
    pub fn contains(self, row: Row) -> bool {
        (self.first..=self.last).contains(&row)
    }

    /// The number of rows.
    pub(super) fn len(self) -> u64 {
        u64::from(self.last.get().saturating_sub(self.first.get())) + 1
    }

    /// The rows that are in any of these spans.
    pub fn union(spans: &[RowSpan]) -> RoaringBitmap {
        let mut rows = RoaringBitmap::new();
        for span in spans {
            rows.insert_range(span.first.get()..=span.last.get());
        }
        rows
    }
}

/// The identifiers of a block's rows. The range is drawn with the block, so that a restored ledger or a second
/// installation does not repeat the identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIds {
    /// The rows, whose identifiers are consecutive.
    pub rows: RowSpan,
    /// The identifier of the first row.
    pub first: u64,
}

impl BlockIds {
    /// The identifier of a row's message. `None` for a row outside this block.
    pub fn message_id(self, row: Row) -> Option<MessageId> {
        let offset = u64::from(row.get().checked_sub(self.rows.first.get())?);
        if self.rows.contains(row) { MessageId::new(self.first + offset) } else { None }
    }

    /// The row to which an identifier belongs. `None` for an identifier outside this block.
    pub fn find_row(self, id: MessageId) -> Option<Row> {
        let offset = u32::try_from(id.get().checked_sub(self.first)?).ok()?;
        Some(Row::new(self.rows.first.get().checked_add(offset)?)).filter(|row| self.rows.contains(*row))
    }
}

/// Rows of a shared run that this process owns until the value is dropped.
///
/// If the process ends, its block is released and the open intents of the block are in doubt.
pub struct RowBlock {
    /// The shared run to which the rows belong.
    pub run: Run,
    /// The lease on the rows.
    pub lease: Lease,
    /// The adapter's resources, released on drop.
    _resources: Box<dyn Any + Send + Sync>,
}

impl RowBlock {
    /// Creates a block that owns `resources` and releases them on drop.
    pub(super) fn new(run: Run, lease: Lease, resources: impl Any + Send + Sync) -> Box<Self> {
        Box::new(Self { run, lease, _resources: Box::new(resources) })
    }
}

impl DrawOutcome {
    /// The block, unless the draw was refused.
    #[cfg(test)]
    pub(crate) fn into_block(self) -> Option<RowBlock> {
        match self {
            DrawOutcome::Block(block) => Some(*block),
            DrawOutcome::Refused(_) => None,
        }
    }
}

impl fmt::Debug for RowBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowBlock").field("run", &self.run.key).field("lease", &self.lease).finish_non_exhaustive()
    }
}

/// The number of rows of a run. A shared run has no list, so these are its sent and skipped rows.
///
/// # Errors
/// If the records of a shared run cannot be read.
pub async fn count_run_rows(ledger: &dyn Ledger, run: &Run) -> Result<u64, LedgerError> {
    if !run.shared {
        return Ok(run.recipients);
    }
    if let Some((counts, _)) = run.counts.as_ref().filter(|_| run.purged_at.is_some()) {
        return Ok(counts.total());
    }
    let mut rows = ledger.load_excluded_rows(run.key).await?.rows();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    while let Some(envelope) = envelopes.next_envelope().await? {
        rows.extend(envelope.rows.iter().map(|sent| sent.row.get()));
    }
    Ok(rows.len())
}

/// The next rows of a run after `last`, the last row ever drawn. `None` if no rows are left.
pub(crate) fn next_rows(run: &Run, last: Option<Row>, rows: u32) -> Option<RowSpan> {
    let first = last.map_or(Row::FIRST, |last| Row::new(last.get().saturating_add(1)));
    let last = Row::new(first.get().saturating_add(rows.max(1) - 1)).min(run.last_row());
    (first <= last).then_some(RowSpan { first, last })
}

/// An hour in microseconds.
pub(crate) const HOUR: i64 = 3_600_000_000;

/// The time of the next draw within the hourly limit. `None` if a block may be drawn now.
///
/// `drawn` contains the times of earlier draws in ascending order. Times are in microseconds since 1970.
pub(crate) fn next_draw_time(drawn: &[i64], now: i64, per_hour: u32) -> Option<i64> {
    let recent: Vec<i64> = drawn.iter().copied().filter(|at| at.saturating_add(HOUR) > now).collect();
    // Once the draw at this index is an hour old, fewer than `per_hour` draws are recent.
    let index = recent.len().checked_sub(usize::try_from(per_hour).unwrap_or(usize::MAX))?;
    Some(recent.get(index).map_or(now, |at| *at).saturating_add(HOUR))
}

/// Whether a block contains the rows of an intent. If so, the intent is in doubt once the owner of the block has ended.
pub(crate) fn owns_rows(block: RowSpan, intent: RowSpan) -> bool {
    block.contains(intent.first) && block.contains(intent.last)
}

/// The way in which several processes send a run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The caller's stored data that workers need in addition to the frozen inputs.
    pub terms: String,
    /// The number of this sharding. State that was read under an earlier number might be outdated.
    pub id: i64,
    /// The fencing token of the claim that sharded the run.
    pub by: Epoch,
    /// Whether the gateway accepted a message of the run. Until then, only one worker sends.
    pub proven: bool,
}

/// A worker of a sharded run. After drop, other workers take over its shards.
pub struct ShardWorker {
    /// The lease on its shards.
    pub lease: Lease,
    /// The number of the sharding that the worker joined.
    pub sharding: i64,
    /// The number of the worker's place. Each place is locked by one process.
    pub place: u32,
    /// The display name of the process.
    pub(super) name: String,
    /// The adapter's resources, released on drop.
    _resources: Box<dyn Any + Send + Sync>,
}

/// The result of a request for a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardDraw {
    /// Rows that were never drawn before.
    NewRows(RowSpan),
    /// Rows of workers that ended, with the number of envelopes that are in doubt now.
    TakenOver {
        /// The rows in order.
        rows: Vec<RowSpan>,
        /// The number of envelopes.
        doubtful: usize,
    },
    /// No shard now: other workers have the remaining rows, one of them sends the first messages, or a process has
    /// claimed the whole run.
    Unavailable,
    /// No shard: all rows are drawn and finished.
    Exhausted,
    /// No more shards: the run ended, a stop was requested, the run was sharded again, or another process holds the
    /// place.
    Ended,
}

/// The shards of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardHolder {
    /// The display name of the process.
    pub name: String,
    /// The number of the worker's rows, sent or not.
    pub rows: u64,
    /// The time at which the worker drew its first shard.
    pub since: Timestamp,
}

/// A block of rows that a process owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBlock {
    /// The rows that the process owns, sent or not.
    pub rows: RowSpan,
    /// The number of the process's place. Each place is locked by one process.
    pub place: u32,
    /// The display name of the worker. `None` for a process that draws blocks for single messages.
    pub worker: Option<String>,
    /// The time at which the block was drawn. `None` if the block is excluded from the hourly count.
    pub drawn_at: Option<Timestamp>,
}

impl ShardHolder {
    /// The workers that hold these blocks. The blocks must be ordered by age.
    pub fn from_blocks(blocks: &[OwnedBlock]) -> Vec<Self> {
        let mut holders = BTreeMap::new();
        for OwnedBlock { rows, place, worker, drawn_at } in blocks {
            let (Some(name), Some(since)) = (worker, drawn_at) else { continue };
            let holder = holders.entry(place).or_insert(Self { name: name.clone(), rows: 0, since: *since });
            holder.rows += rows.len();
        }
        holders.into_values().collect()
    }
}

/// Sharded runs: several workers send one run, each its own shards.
///
/// [`RowUpdate::Sharded`](super::RowUpdate::Sharded) shards a run. After the first sharding, the owner of the whole run
/// can no longer send with its lease.
pub trait ShardStore: Send + Sync {
    /// Registers a worker for a run. `None` if the run is not sharded.
    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>>;

    /// Draws a shard of at most `rows` rows. With `takes_abandoned`, the ledger first takes over the shards of ended
    /// workers and puts the open intents of these shards in doubt.
    fn draw_shard<'a>(
        &'a self,
        worker: &'a ShardWorker,
        rows: u32,
        takes_abandoned: bool,
    ) -> LedgerFuture<'a, ShardDraw>;
}

impl ShardWorker {
    /// Creates a worker that owns `resources` and releases them on drop.
    pub(super) fn new(
        lease: Lease,
        sharding: i64,
        place: u32,
        name: String,
        resources: impl Any + Send + Sync,
    ) -> Self {
        Self { lease, sharding, place, name, _resources: Box::new(resources) }
    }
}

impl fmt::Debug for ShardWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardWorker").field("lease", &self.lease).field("place", &self.place).finish_non_exhaustive()
    }
}

/// All reasons to refuse a draw now: a used identifier, then an exhausted hourly limit with the time of the next draw.
pub(crate) fn list_refusals(is_id_taken: bool, next: Option<Timestamp>) -> Vec<DrawRefusal> {
    is_id_taken.then_some(DrawRefusal::IdTaken).into_iter().chain(next.map(DrawRefusal::TooMany)).collect()
}

/// Whether a worker may draw shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrawReadiness {
    /// The worker may draw now.
    Now,
    /// Not now: a process has claimed the whole run.
    Later,
    /// Never again.
    NoMore,
}

/// Whether a worker that joined the sharding `joined_id` may draw shards now, later or never.
pub(crate) fn check_draw(run: &Run, joined_id: i64) -> DrawReadiness {
    let Some(sharding) = run.sharding.as_ref().filter(|sharding| sharding.id == joined_id) else {
        return DrawReadiness::NoMore;
    };
    if run.progress != RunProgress::Open || run.stop_requested || run.ended_at.is_some() {
        return DrawReadiness::NoMore;
    }
    match run.epoch {
        Some(owner) if owner != sharding.by => DrawReadiness::Later,
        _ => DrawReadiness::Now,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hourly_draw_limit_is_enforced_without_needless_waits(
            waits in prop::collection::vec(0..HOUR / 2, 1..80),
            per_hour in 0_u32..6,
        ) {
            let (mut now, mut drawn) = (1_800_000_000_000_000, Vec::new());
            for wait in waits {
                now += wait;
                let within = drawn.iter().filter(|at| **at > now - HOUR).count();
                match next_draw_time(&drawn, now, per_hour) {
                    None => drawn.push(now),
                    Some(next) => {
                        prop_assert!(within >= per_hour as usize && next > now && next <= now + HOUR);
                        let then = drawn.iter().filter(|at| **at > next - HOUR).count();
                        prop_assert!(then < per_hour as usize || per_hour == 0);
                    }
                }
                prop_assert!(drawn.iter().filter(|at| **at > now - HOUR).count() <= per_hour as usize);
            }
        }
    }
}
