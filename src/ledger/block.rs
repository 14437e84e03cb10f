//! Shared runs: whose rows processes draw in blocks, for messages that are asked for one at a time.

use std::any::Any;
use std::fmt;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::{Heed, Lease, LeftOut, NewRun, Run};
use crate::domain::{Endpoint, MessageId, OperationKind, Row};

/// What the messages of a shared run have in common; those that agree in all of it go into one run until that is full.
#[derive(Clone, Debug)]
pub struct SharedRun {
    /// What stands in the place of a campaign's name.
    pub campaign: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account whose pace it takes from.
    pub account: String,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// Whether it sends to real people.
    pub live: bool,
}

impl SharedRun {
    /// How many rows a shared run has; then the next one begins.
    pub const ROWS: u32 = 10_000;

    /// The run as it begins.
    pub(super) fn new_run(&self, began_at: Timestamp, random: u64) -> NewRun {
        NewRun {
            campaign: self.campaign.clone(),
            edition: String::new(),
            gateway: self.gateway.clone(),
            account: self.account.clone(),
            // The asynchronous endpoint would answer with a `request_id` and never with what was asked for.
            endpoint: Endpoint::Sync,
            kind: self.kind,
            live: self.live,
            round: 1,
            // Nobody knows beforehand how many there will be.
            recipients: 0,
            last_row: Row::new(Row::HEADER.get() + Self::ROWS),
            left_out: LeftOut::default(),
            // Somebody asked for them.
            heed: Heed::NOBODY,
            file: None,
            began_at,
            random,
        }
    }

    /// Whether a run is this one, be it full or not.
    pub(super) fn is(&self, run: &Run) -> bool {
        let Self { campaign, gateway, account, kind, live } = self;
        run.shared
            && (&run.campaign, &run.gateway, &run.account) == (campaign, gateway, account)
            && (run.kind, run.live) == (*kind, *live)
    }
}

/// Rows of a run from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The first.
    pub first: Row,
    /// The last.
    pub last: Row,
}

impl Rows {
    /// Whether this row is among them.
    #[must_use]
    pub fn contain(self, row: Row) -> bool {
        (self.first..=self.last).contains(&row)
    }

    /// How many they are.
    pub(super) fn len(self) -> u64 {
        u64::from(self.last.get().saturating_sub(self.first.get())) + 1
    }

    /// The rows of all of these.
    pub(super) fn all_of(blocks: &[Rows]) -> RoaringBitmap {
        let mut rows = RoaringBitmap::new();
        for block in blocks {
            rows.insert_range(block.first.get()..=block.last.get());
        }
        rows
    }
}

/// The identifiers of a block's rows: a range that was drawn with the block, so that an old copy of a ledger which is put
/// back, or a second installation, gives none of them again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIds {
    /// The rows.
    pub rows: Rows,
    /// The identifier of the first.
    pub first: u64,
}

impl BlockIds {
    /// The identifier of a row of the block.
    #[must_use]
    pub fn id(self, row: Row) -> Option<MessageId> {
        let offset = u64::from(row.get().checked_sub(self.rows.first.get())?);
        if self.rows.contain(row) { MessageId::new(self.first + offset) } else { None }
    }

    /// The row that an identifier belongs to.
    #[must_use]
    pub fn row(self, id: MessageId) -> Option<Row> {
        let offset = u32::try_from(id.get().checked_sub(self.first)?).ok()?;
        Some(Row::new(self.rows.first.get().checked_add(offset)?)).filter(|row| self.rows.contain(*row))
    }
}

/// Rows of a shared run that this process alone may send to, until it is dropped.
///
/// A process that ends, however it ends, gives it back, and what it had begun of it is in doubt; nothing else is.
pub struct Block {
    /// The run.
    pub run: Run,
    /// The right to the rows.
    pub lease: Lease,
    /// What the adapter lets go of when this is dropped.
    _kept: Box<dyn Any + Send + Sync>,
}

impl Block {
    /// A block that lasts as long as what is kept.
    pub(super) fn new(run: Run, lease: Lease, kept: impl Any + Send + Sync) -> Self {
        Self { run, lease, _kept: Box::new(kept) }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("run", &self.run.key).field("lease", &self.lease).finish_non_exhaustive()
    }
}
