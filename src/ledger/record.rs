//! The records that the ledger keeps.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Allowance, BlockIds, Bound, Bounds, ExcludedRows, NewNotification, RowSpan, Sharding, SlotWait, StateCounts,
    StopKind, SuppressionPolicy,
};
use crate::domain::{Addressee, Amount, Chain, Endpoint, IdRange, MessageId, OperationKind, OperationOutcome, Row};

/// The ledger's own number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub i64);

/// One taking of a run, or of rows of one, by a process: a number that the ledger draws anew each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub i64);

/// The right to write to rows of a run, until another process takes them; every write carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// The rows: all of the run, or a block of a shared one.
    pub rows: RowSpan,
    /// By which taking.
    pub epoch: Epoch,
}

/// A run that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The right to write to it.
    pub lease: Lease,
    /// Envelopes of whoever had it before that are in doubt from now on.
    pub in_doubt: usize,
}

/// What a run is made of when it begins.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The campaign's name.
    pub campaign: String,
    /// The campaign's edition, rendered; empty when it has none.
    pub edition: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account whose pace it takes from.
    pub account: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The operation that each recipient becomes.
    pub kind: OperationKind,
    /// Whether it sends to real people: neither the built-in sandbox nor a dry run.
    pub live: bool,
    /// A new round for everybody (`--again`): runs of earlier rounds do not guard.
    pub round: u32,
    /// Recipients.
    pub recipients: u64,
    /// The last row with a recipient.
    pub last_row: Row,
    /// The rows that are never sent.
    pub excluded: ExcludedRows,
    /// What of the suppression list holds it back.
    pub suppression: SuppressionPolicy,
    /// The campaign file, from the root; nothing for a lookup or a code call.
    pub file: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// A random number for its identifiers.
    pub random: u64,
}

/// Which message an identifier is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageOrigin {
    /// The run that gave it.
    pub run: RunId,
    /// The row that it went to, or is to go to.
    pub row: Row,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunProgress {
    /// It is going on, or was interrupted; `run` goes on.
    Open,
    /// Every row has its end.
    Finished,
    /// A run with changed inputs took its place.
    Replaced,
    /// Somebody stopped it for good.
    Cancelled,
}

/// A run as the ledger knows it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The ledger's number.
    pub key: RunId,
    /// The number within its campaign: the `3` of `autumn-sale@3`.
    pub number: u32,
    /// The campaign's name.
    pub campaign: String,
    /// The edition; empty when it has none.
    pub edition: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account, whose rate and guard are the run's, whatever its profile is called.
    pub account: String,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The operation that each recipient becomes.
    pub kind: OperationKind,
    /// Whether it sends to real people.
    pub live: bool,
    /// The round (`--again`).
    pub round: u32,
    /// What of the suppression list holds it back.
    pub suppression: SuppressionPolicy,
    /// Recipients; of a shared run, which has no list, none.
    pub recipients: u64,
    /// Whether processes draw its rows in blocks, for messages that are asked for one at a time.
    pub shared: bool,
    /// The identifiers of its rows.
    pub ids: IdRange,
    /// The campaign file that it is of, from the root; nothing where an earlier version did not keep it.
    pub file: Option<String>,
    /// When it began.
    pub began_at: Timestamp,
    /// When it last ended or paused.
    pub ended_at: Option<Timestamp>,
    /// When what the ledger had of its rows was removed, if it was.
    pub purged_at: Option<Timestamp>,
    /// Where it stands.
    pub progress: RunProgress,
    /// Why its last start ended early.
    pub stop: Option<StopKind>,
    /// Why it last stopped before its end, in words; kept while nothing went on with it.
    pub stop_reason: Option<String>,
    /// Counts by state and parts when it last ended.
    pub counts: Option<(StateCounts, u64)>,
    /// How many receipts of its messages came.
    pub receipts: u64,
    /// How many of them its counts know of.
    pub receipts_counted: u64,
    /// Where its results are.
    pub results: Option<String>,
    /// Whether somebody asked it to stop.
    pub stop_requested: bool,
    /// Since which taking a process has it; nothing if none does.
    pub epoch: Option<Epoch>,
    /// How late the gateway was seen to know a message.
    pub lag: Option<Duration>,
    /// The identifiers of its orders to send rows again as new messages, the first first.
    pub orders: Vec<IdRange>,
    /// Of a shared run the identifiers of its rows, in their order; no row has one of its own range.
    pub blocks: Vec<BlockIds>,
    /// On what terms several processes send it together; nothing where whoever has it sends it alone.
    pub sharding: Option<Sharding>,
}

impl Run {
    /// The last row with a recipient.
    #[must_use]
    pub fn last_row(&self) -> Row {
        // The range has an identifier for each row from 0 on, and one to spare.
        Row::new(u32::try_from(self.ids.len.saturating_sub(2)).unwrap_or(u32::MAX))
    }

    /// Its counts and parts, unless receipts came since they were counted.
    #[must_use]
    pub fn current_counts(&self) -> Option<&(StateCounts, u64)> {
        self.counts.as_ref().filter(|_| self.receipts == self.receipts_counted)
    }

    /// Whether it is of lookups or code calls: each was answered at once or never, and nothing can be asked about it later.
    #[must_use]
    pub fn is_lookup_run(&self) -> bool {
        self.shared && self.kind.is_single()
    }

    /// All rows that it can have.
    #[must_use]
    pub fn row_span(&self) -> RowSpan {
        RowSpan { first: Row::FIRST, last: self.last_row() }
    }

    /// All ranges of identifiers that it reserved.
    pub fn id_ranges(&self) -> impl Iterator<Item = IdRange> {
        let block = |block: &BlockIds| IdRange { first: block.first, len: block.rows.len() };
        [self.ids].into_iter().chain(self.orders.iter().copied()).chain(self.blocks.iter().map(block))
    }

    /// The block of a row.
    fn find_block(&self, row: Row) -> Option<BlockIds> {
        let after = self.blocks.partition_point(|block| block.rows.first <= row);
        self.blocks.get(after.checked_sub(1)?).copied()
    }

    /// Our identifier of a row's message: of the run itself, or of an order to send again.
    #[must_use]
    pub fn message_id(&self, row: Row, order: Option<u32>) -> Option<MessageId> {
        match order {
            None if self.shared => self.find_block(row)?.message_id(row),
            None => self.ids.id_for_row(row),
            Some(order) => self.orders.get(usize::try_from(order).ok()?.checked_sub(1)?)?.id_for_row(row),
        }
    }

    /// The row whose message has this identifier: of the run itself, or of an order to send again.
    #[must_use]
    pub fn find_row(&self, id: MessageId) -> Option<Row> {
        self.find_message(id).map(|(row, _)| row)
    }

    /// The row whose message has this identifier, with the order that it is of; nothing for the run's own.
    #[must_use]
    pub fn find_message(&self, id: MessageId) -> Option<(Row, Option<u32>)> {
        if self.shared {
            return self.blocks.iter().find_map(|block| block.find_row(id)).map(|row| (row, None));
        }
        let orders = (1..).zip(&self.orders).map(|(order, ids)| (Some(order), ids));
        let mut ranges = [(None, &self.ids)].into_iter().chain(orders);
        let (row, order) = ranges.find_map(|(order, ids)| Some((ids.row_for_id(id)?, order)))?;
        // The identifiers of the header and of what is to spare are never sent.
        (row >= Row::FIRST && row <= self.last_row()).then_some((row, order))
    }

    /// Whether its messages went where those through this profile of this account go.
    ///
    /// A profile may have got another name since, or its account another host; whoever has a message has it all the same.
    #[must_use]
    pub fn uses_gateway(&self, gateway: &str, account: &str) -> bool {
        self.account == account || self.gateway == gateway
    }

    /// The allowance of its account.
    #[must_use]
    pub fn allowance(&self, rate: Option<f64>) -> Allowance {
        Allowance::of_account(&self.account, self.suppression.loopback, rate)
    }

    /// Whether recipients of the other run have the messages of this one too: both are rehearsals, or both go through loopback,
    /// or both are live, and they share a profile's name or an account.
    #[must_use]
    pub fn shares_recipients(&self, other: &Run) -> bool {
        (self.live, self.suppression.loopback) == (other.live, other.suppression.loopback)
            && other.uses_gateway(&self.gateway, &self.account)
    }

    /// The name by which commands call it.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}@{}", self.campaign, self.number)
    }
}

/// How a call to `run` ended.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// Where the run stands now.
    pub progress: RunProgress,
    /// Why it ended early.
    pub stop: Option<StopKind>,
    /// Why it stopped before its end, in words.
    pub stop_reason: Option<String>,
    /// Counts by state.
    pub counts: StateCounts,
    /// Parts billed, as far as the gateway told.
    pub parts: u64,
    /// How many receipts the counts know of.
    pub receipts: u64,
    /// Where the results are.
    pub results: Option<String>,
    /// How late the gateway was seen to know a message; nothing if that was not seen.
    pub lag: Option<Duration>,
    /// When.
    pub at: Timestamp,
    /// Who is told of it: kept with the end, or not at all.
    pub notifications: Vec<NewNotification>,
}

/// One row of an envelope.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentRow {
    /// The row.
    pub row: Row,
    /// Whom it goes to.
    pub to: Addressee,
    /// The beginning of the hash of its encoded operation.
    pub digest: [u8; 8],
    /// The channels of its pipeline; unknown for other kinds, whose type names them. Stored beside the rows.
    #[serde(skip)]
    pub chain: Chain,
}

/// What is recorded before the first byte of an envelope may leave.
#[derive(Clone, Debug)]
pub struct Intent {
    /// By what right.
    pub lease: Lease,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// The account whose pace it takes from.
    pub account: Allowance,
    /// Its rows.
    pub rows: Vec<SentRow>,
    /// What each of them costs by its dearest channel; nothing where nobody knows the prices.
    pub costs: Vec<Amount>,
    /// The bounds that it has to keep within; nothing where there are none.
    pub bounds: Option<Arc<Bounds>>,
    /// The moment before which it has to leave; nothing where it may leave at any time.
    pub leave_by: Option<Timestamp>,
}

impl std::fmt::Debug for SentRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SentRow").field("row", &self.row).field("to", &self.to).finish_non_exhaustive()
    }
}

/// Whether an envelope may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Its intent is recorded.
    Granted {
        /// Its number within the run, from 1; a further attempt is a new envelope.
        envelope: u32,
        /// How long it has to wait before it leaves.
        wait: SlotWait,
    },
    /// It may not: somebody asked the run to stop.
    StopRequested,
    /// It may not: another process has the run.
    Lost,
    /// It may not as it is: the people of these rows, which are left out from now on, opted out meanwhile.
    OptedOut(Vec<Row>),
    /// It may not as it is: the numbers of these rows, which are left out from now on, got as many messages as they may.
    Capped(Vec<Row>),
    /// It may not as it is: only so many of its first rows keep within the bounds, and this one holds back the next.
    BoundExceeded {
        /// How many.
        fits: usize,
        /// The bound.
        bound: Bound,
    },
    /// It may not now: with the account's slot it would leave at this moment, which is too late.
    TooLate(Timestamp),
}

/// Whether whoever writes still has the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// It does, and what it wrote is recorded.
    Held,
    /// Another process has the run, and nothing was recorded.
    Lost,
}

/// What became of an envelope.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// The run.
    pub run: RunId,
    /// The envelope's number.
    pub envelope: u32,
    /// One outcome per row, in the order of the intent.
    pub outcomes: Vec<OperationOutcome>,
    /// The answer's body, where a person has to look at it.
    pub evidence: Option<String>,
}

/// An envelope without its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeSummary {
    /// Its number.
    pub envelope: u32,
    /// The smallest row in it.
    pub first: Row,
    /// The largest row in it.
    pub last: Row,
}

/// An envelope with its rows and what became of them.
#[derive(Clone, Debug)]
pub struct EnvelopeRecord {
    /// Its number.
    pub envelope: u32,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// When its intent was recorded.
    pub begun_at: Timestamp,
    /// Its rows.
    pub rows: Vec<SentRow>,
    /// What each of them costs by its dearest channel; nothing where nobody knew the prices.
    pub costs: Vec<Amount>,
    /// When it was settled, and the outcome of each row; nothing for an intent alone.
    pub settled: Option<(Timestamp, Vec<OperationOutcome>)>,
}

impl EnvelopeRecord {
    /// The channels of the message to one of its rows, as it was sent.
    #[must_use]
    pub fn chain(&self, sent: &SentRow) -> Chain {
        match self.kind {
            OperationKind::Pipeline => sent.chain,
            kind => Chain::from(kind),
        }
    }

    /// Why its rows are in doubt whose outcomes are not as they were written.
    pub(super) const DAMAGED: &'static str = "the record of its outcome is corrupt";

    /// Whether its outcomes are not as they were written, so that all its rows count as in doubt.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        let outcomes = self.settled.iter().flat_map(|(_, outcomes)| outcomes);
        outcomes
            .into_iter()
            .any(|outcome| matches!(outcome, OperationOutcome::InDoubt { reason } if **reason == *Self::DAMAGED))
    }
}
