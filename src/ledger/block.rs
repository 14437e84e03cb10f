//! Shared runs: whose rows processes draw in blocks, for messages that are asked for one at a time.

use std::any::Any;
use std::fmt;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::{ExcludedRows, Lease, NewRun, Run, SuppressionPolicy};
use crate::domain::{Endpoint, MessageId, OperationKind, Row};

/// What the messages of a shared run have in common; those that agree in all of it go into one run until that is full.
#[derive(Clone, Debug)]
pub struct SharedRun {
    /// What stands in the place of a campaign's name.
    pub campaign: String,
    /// What tells runs of one kind of message apart, where they do not all belong together; empty otherwise.
    pub edition: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account whose pace it takes from.
    pub account: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The kind of its operations; of messages that may be of any kind, the one that carries all channels.
    pub kind: OperationKind,
    /// Whether it sends to real people.
    pub live: bool,
    /// What of the suppression list holds it back.
    pub suppression: SuppressionPolicy,
}

impl SharedRun {
    /// How many rows a shared run has; then the next one begins.
    pub const ROWS: u32 = 10_000;

    /// What stands in the place of a campaign's name for messages of assistants; they count towards caps.
    pub const ASSISTANT_MESSAGES: &str = "assistant.message";

    /// The run as it begins.
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
            // Nobody knows beforehand how many there will be.
            recipients: 0,
            last_row: Row::new(Row::HEADER.get() + Self::ROWS),
            excluded: ExcludedRows::default(),
            suppression: self.suppression,
            file: None,
            began_at,
            random,
        }
    }

    /// Whether a run is this one, be it full or not.
    pub(super) fn matches(&self, run: &Run) -> bool {
        let Self { campaign, edition, gateway, account, endpoint, kind, live, suppression: heed } = self;
        run.shared
            && run.purged_at.is_none()
            && (&run.campaign, &run.edition, &run.gateway, &run.account) == (campaign, edition, gateway, account)
            && (run.endpoint, run.kind, run.live, run.suppression) == (*endpoint, *kind, *live, *heed)
    }
}

/// What a process wants of a shared run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    /// How many rows, at most; one of those with an identifier of their own.
    pub(super) rows: u32,
    /// The identifier that the row is to have; else the ledger draws one.
    pub(super) id: Option<MessageId>,
    /// The most blocks that are drawn through the profile within an hour, whoever draws them.
    pub(super) per_hour: Option<u32>,
}

impl BlockRequest {
    /// So many rows at most.
    #[must_use]
    pub fn for_rows(rows: u32) -> Self {
        Self { rows, id: None, per_hour: None }
    }

    /// One row, with this identifier if one is given, unless so many were drawn within the last hour.
    #[must_use]
    pub fn for_message(id: Option<MessageId>, per_hour: Option<u32>) -> Self {
        Self { rows: 1, id, per_hour }
    }
}

/// What a request for rows of a shared run comes to.
#[derive(Debug)]
pub enum DrawOutcome {
    /// Rows, for this process alone.
    Block(Box<RowBlock>),
    /// Nothing.
    Refused(DrawRefusal),
}

/// Why no rows of a shared run are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawRefusal {
    /// The identifier was given to a message before.
    IdTaken,
    /// As many as are allowed were drawn within the last hour, and the next may be drawn then.
    TooMany(Timestamp),
}

/// Rows of a run from one to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpan {
    /// The first.
    pub first: Row,
    /// The last.
    pub last: Row,
}

impl RowSpan {
    /// Whether this row is among them.
    #[must_use]
    pub fn contains(self, row: Row) -> bool {
        (self.first..=self.last).contains(&row)
    }

    /// How many they are.
    pub(super) fn len(self) -> u64 {
        u64::from(self.last.get().saturating_sub(self.first.get())) + 1
    }

    /// The rows of all of these.
    pub(crate) fn union(blocks: &[RowSpan]) -> RoaringBitmap {
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
    pub rows: RowSpan,
    /// The identifier of the first.
    pub first: u64,
}

impl BlockIds {
    /// The identifier of a row of the block.
    #[must_use]
    pub fn message_id(self, row: Row) -> Option<MessageId> {
        let offset = u64::from(row.get().checked_sub(self.rows.first.get())?);
        if self.rows.contains(row) { MessageId::new(self.first + offset) } else { None }
    }

    /// The row that an identifier belongs to.
    #[must_use]
    pub fn find_row(self, id: MessageId) -> Option<Row> {
        let offset = u32::try_from(id.get().checked_sub(self.first)?).ok()?;
        Some(Row::new(self.rows.first.get().checked_add(offset)?)).filter(|row| self.rows.contains(*row))
    }
}

/// Rows of a shared run that this process alone may send to, until it is dropped.
///
/// A process that ends, however it ends, gives it back, and what it had begun of it is in doubt; nothing else is.
pub struct RowBlock {
    /// The run.
    pub run: Run,
    /// The right to the rows.
    pub lease: Lease,
    /// What the adapter lets go of when this is dropped.
    _kept: Box<dyn Any + Send + Sync>,
}

impl RowBlock {
    /// A block that lasts as long as what is kept.
    pub(super) fn new(run: Run, lease: Lease, kept: impl Any + Send + Sync) -> Box<Self> {
        Box::new(Self { run, lease, _kept: Box::new(kept) })
    }
}

impl DrawOutcome {
    /// The block, where there is one.
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
        f.debug_struct("Block").field("run", &self.run.key).field("lease", &self.lease).finish_non_exhaustive()
    }
}
