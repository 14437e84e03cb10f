//! Shares: rows of a campaign's run that one of several processes sends.

use std::any::Any;
use std::fmt;

use jiff::Timestamp;

use super::{Epoch, Lease, LedgerFuture, Ownership, RowSpan, Run, RunId, StopKind};

/// On what terms several processes send a run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// What they have to know of the campaign besides what the run froze, as it was given.
    pub terms: String,
    /// A number of its own for each sharing out: what was read of rows before it may not be true any more.
    pub id: i64,
    /// By which taking of the run it was shared out.
    pub by: Epoch,
    /// Whether the gateway has taken a message of it; until then one process alone tries the way for all.
    pub proven: bool,
}

/// A process among those that send a run together, until this is dropped; then others take over what it has drawn.
pub struct ShardWorker {
    /// The right to what it draws.
    pub lease: Lease,
    /// Which sharing out of the run it knows.
    pub(crate) sharding: i64,
    pub(crate) place: u32,
    /// How people know the process.
    pub(super) name: String,
    /// What the adapter lets go of when this is dropped.
    _kept: Box<dyn Any + Send + Sync>,
}

/// What a request for a share comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardDraw {
    /// Rows that nobody drew before.
    NewRows(RowSpan),
    /// Rows that processes drew which are gone, and how many envelopes of theirs are in doubt from here on.
    TakenOver {
        /// The rows, in their order.
        rows: Vec<RowSpan>,
        /// The envelopes.
        doubtful: usize,
    },
    /// Nothing now: others have what is left, or try the way for all.
    Unavailable,
    /// Nothing: every row was drawn, and nobody has any.
    Exhausted,
    /// Nothing any more: the run ended, somebody asked it to stop, it was shared out anew, or another process has the place.
    Ended,
}

/// What one process has of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardHolder {
    /// How people know the process.
    pub name: String,
    /// How many rows it has, sent or not.
    pub rows: u64,
    /// When it drew the first of them.
    pub since: Timestamp,
}

/// How several processes send one run, each what it drew.
///
/// From the first sharing out on, whoever has the whole run sends nothing by that right.
pub trait ShardStore: Send + Sync {
    /// Has whoever takes a seat draw rows of a run. What nobody has then is drawn anew.
    fn shard_run(&self, lease: Lease, terms: String, proven: bool) -> LedgerFuture<'_, Ownership>;

    /// Takes a seat among those that send a run; nothing where it is not shared out.
    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>>;

    /// Draws so many rows at most; if it `looks` who is gone, it takes over first what those had, and what they had begun is in
    /// doubt from here on.
    fn draw_shard<'a>(&'a self, seat: &'a ShardWorker, rows: u32, looks: bool) -> LedgerFuture<'a, ShardDraw>;

    /// Records that nothing of what was drawn in a seat is to be drawn again.
    fn finish_shards<'a>(&'a self, seat: &'a ShardWorker) -> LedgerFuture<'a, ()>;

    /// Records that the gateway has taken a message of a run.
    fn mark_proven(&self, run: RunId) -> LedgerFuture<'_, ()>;

    /// Stops a run for everybody who sends it, unless it is asked to stop already; tells them why.
    fn halt_run(&self, run: RunId, kind: StopKind, reason: String) -> LedgerFuture<'_, ()>;

    /// Who has what of a run.
    fn list_shard_holders<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Vec<ShardHolder>>;
}

impl ShardWorker {
    /// A seat that lasts as long as what is kept.
    pub(super) fn new(lease: Lease, (sharing, place, by): (i64, u32, String), kept: impl Any + Send + Sync) -> Self {
        Self { lease, sharding: sharing, place, name: by, _kept: Box::new(kept) }
    }
}

impl fmt::Debug for ShardWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("lease", &self.lease).field("place", &self.place).finish_non_exhaustive()
    }
}
