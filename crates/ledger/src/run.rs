//! Runs: their records, leases, campaign locks and transitions.
//!
//! The transitions are pure; every adapter applies them inside its transactions.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    Allowance, AskedRow, BlockIds, ConsentBlock, ExcludedRows, LedgerError, NewNotification, NewRowEvent, OptOut,
    RetriedRow, RetryOrder, RowChange, RowSpan, RowStates, Sharding, StateCounts, SuppressionPolicy,
};
use crate::stop_kind::StopKind;
use campaign_core::domain::{Endpoint, IdRange, MessageId, OperationKind, Row};

/// The ledger's key of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub i64);

/// The fencing token of a claim: a number that the ledger draws for each claim of a run or of some of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch(pub i64);

/// The right to write to rows of a run. Every write carries its lease, which ends when another process claims the
/// rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The run to which the rows belong.
    pub run: RunId,
    /// The rows: the whole run, or a block of a shared run.
    pub rows: RowSpan,
    /// The fencing token.
    pub epoch: Epoch,
}

/// A claimed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The lease of the new owner.
    pub lease: Lease,
    /// The number of envelopes of the previous owner that are in doubt now.
    pub in_doubt: usize,
}

/// The description of a run to be created.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// The campaign's name.
    pub campaign: String,
    /// The rendered edition. Empty if the campaign has none.
    pub edition: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account whose rate limit applies.
    pub account: String,
    /// The gateway endpoint that receives the run's envelopes.
    pub endpoint: Endpoint,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// Whether the run sends to real recipients, and not to the built-in sandbox or as a dry run.
    pub live: bool,
    /// The round. A new round (`--again`) ignores the guards of earlier rounds.
    pub round: u32,
    /// The number of recipients.
    pub recipients: u64,
    /// The last row with a recipient.
    pub last_row: Row,
    /// The rows that are skipped or invalid from the start.
    pub excluded: ExcludedRows,
    /// The effect of the suppression list.
    pub suppression: SuppressionPolicy,
    /// The campaign file, relative to the root. `None` for lookups and code calls.
    pub file: Option<String>,
    /// The time at which the run starts.
    pub began_at: Timestamp,
    /// A random number for its identifiers.
    pub random: u64,
}

/// The message that an identifier belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageOrigin {
    /// The run that sent or will send the message.
    pub run: RunId,
    /// The row of the message in the run.
    pub row: Row,
}

/// Whether a run is open, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunProgress {
    /// The run is being sent or was interrupted; `run` resumes it.
    Open,
    /// All rows are final.
    Finished,
    /// A run with changed inputs replaced this run.
    Replaced,
    /// The run was stopped for good.
    Cancelled,
}

/// A run, as stored in the ledger.
#[derive(Clone, Debug)]
pub struct Run {
    /// The ledger's key.
    pub key: RunId,
    /// The number within its campaign: the `3` of `autumn-sale@3`.
    pub number: u32,
    /// The campaign's name.
    pub campaign: String,
    /// The edition. Empty if the campaign has none.
    pub edition: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The account, which determines rate limit and guard. The profile's name does not matter.
    pub account: String,
    /// The gateway endpoint that receives the run's envelopes.
    pub endpoint: Endpoint,
    /// The kind of its operations.
    pub kind: OperationKind,
    /// Whether the run sends to real recipients.
    pub live: bool,
    /// The round (`--again`).
    pub round: u32,
    /// The effect of the suppression list.
    pub suppression: SuppressionPolicy,
    /// The number of recipients. 0 for a shared run, which has no list.
    pub recipients: u64,
    /// Whether processes draw its rows in blocks, for messages that are requested one at a time.
    pub shared: bool,
    /// The identifiers of its rows.
    pub ids: IdRange,
    /// The campaign file, relative to the root. `None` for lookups and code calls, and for runs of early versions.
    pub file: Option<String>,
    /// The time at which the run started.
    pub began_at: Timestamp,
    /// The time at which the run last ended or paused.
    pub ended_at: Option<Timestamp>,
    /// The time at which the run's row records were purged.
    pub purged_at: Option<Timestamp>,
    /// The progress, which returns to `Open` if rows are to be sent again.
    pub progress: RunProgress,
    /// The kind of its last early stop. Cleared when the run is claimed again.
    pub stop: Option<StopKind>,
    /// The reason for its last early stop, as text. Cleared when the run is claimed again.
    pub stop_reason: Option<String>,
    /// Counts by state, and billed parts, from its last end or a later count.
    pub counts: Option<(StateCounts, u64)>,
    /// The number of stored receipts for the run's messages.
    pub receipts: u64,
    /// The number of these receipts that are included in the counts.
    pub receipts_counted: u64,
    /// The results file.
    pub results: Option<String>,
    /// Whether a stop was requested.
    pub stop_requested: bool,
    /// The fencing token of the process that owns the run. `None` without an owner.
    pub epoch: Option<Epoch>,
    /// The longest observed delay until the gateway knew a message.
    pub lag: Option<Duration>,
    /// The identifiers of its retry orders, oldest first.
    pub orders: Vec<IdRange>,
    /// The row identifiers of a shared run, in row order. Such a run does not use `ids` for rows.
    pub blocks: Vec<BlockIds>,
    /// The way in which several processes send the run together. `None` if only its owner sends it.
    pub sharding: Option<Sharding>,
}

impl Run {
    /// Whether an opt-out suppresses messages of this run.
    pub fn is_suppressed_by(&self, opt_out: &OptOut) -> bool {
        self.suppression.covers_kind(self.kind) && self.suppression.applies_opt_out(&self.campaign, opt_out)
    }

    /// The last row with a recipient.
    pub fn last_row(&self) -> Row {
        // The range has an identifier for each row from 0 on, and a spare one.
        Row::new(u32::try_from(self.ids.len.saturating_sub(2)).unwrap_or(u32::MAX))
    }

    /// The counts and billed parts, unless receipts arrived since the count.
    pub fn current_counts(&self) -> Option<&(StateCounts, u64)> {
        self.counts.as_ref().filter(|_| self.receipts == self.receipts_counted)
    }

    /// Whether this is a shared run of lookups or code calls. The outcome of such an operation is known at once or
    /// never, because the gateway cannot be asked later.
    pub fn is_shared_single_run(&self) -> bool {
        self.shared && self.kind.is_single()
    }

    /// The span of all rows that the run can have.
    pub fn row_span(&self) -> RowSpan {
        RowSpan { first: Row::FIRST, last: self.last_row() }
    }

    /// All reserved ranges of identifiers.
    pub fn id_ranges(&self) -> impl Iterator<Item = IdRange> {
        let to_range = |block: &BlockIds| IdRange { first: block.first, len: block.rows.len() };
        [self.ids].into_iter().chain(self.orders.iter().copied()).chain(self.blocks.iter().map(to_range))
    }

    /// The last block that begins at or before a row. `None` if all blocks begin later.
    fn find_block(&self, row: Row) -> Option<BlockIds> {
        let after = self.blocks.partition_point(|block| block.rows.first <= row);
        self.blocks.get(after.checked_sub(1)?).copied()
    }

    /// The identifier of the message to a row, assigned by a retry order or, with `None`, by the run itself. `None` if
    /// no such identifier is reserved.
    pub fn message_id(&self, row: Row, order: Option<u32>) -> Option<MessageId> {
        match order {
            None if self.shared => self.find_block(row)?.message_id(row),
            None => self.ids.id_for_row(row),
            Some(order) => self.orders.get(usize::try_from(order).ok()?.checked_sub(1)?)?.id_for_row(row),
        }
    }

    /// The row to which a message identifier belongs. The identifier can be assigned by the run itself or by a retry
    /// order.
    pub fn find_row(&self, id: MessageId) -> Option<Row> {
        self.find_message(id).map(|(row, _)| row)
    }

    /// The row to which a message identifier belongs, and the retry order that assigned the identifier. The order is
    /// `None` for identifiers of the run itself.
    pub fn find_message(&self, id: MessageId) -> Option<(Row, Option<u32>)> {
        if self.shared {
            return self.blocks.iter().find_map(|block| block.find_row(id)).map(|row| (row, None));
        }
        let orders = (1..).zip(&self.orders).map(|(order, ids)| (Some(order), ids));
        let mut ranges = [(None, &self.ids)].into_iter().chain(orders);
        let (row, order) = ranges.find_map(|(order, ids)| Some((ids.row_for_id(id)?, order)))?;
        // The identifiers of the header row and the spare one are never sent.
        (row >= Row::FIRST && row <= self.last_row()).then_some((row, order))
    }

    /// Whether the run used this gateway profile or account.
    ///
    /// A profile can be renamed, and an account can move to another host, but recipients keep their messages.
    pub fn uses_gateway(&self, gateway: &str, account: &str) -> bool {
        self.account == account || self.gateway == gateway
    }

    /// The allowance of the run's account.
    pub fn allowance(&self, rate: Option<f64>) -> Allowance {
        Allowance::of_account(&self.account, self.suppression.loopback, rate)
    }

    /// Whether recipients of the other run can have messages of this run. Both runs must be live or both rehearsals,
    /// both must use loopback or neither, and they must share a profile or an account.
    pub fn can_share_recipients(&self, other: &Run) -> bool {
        (self.live, self.suppression.loopback) == (other.live, other.suppression.loopback)
            && other.uses_gateway(&self.gateway, &self.account)
    }

    /// The name in commands: `autumn-sale@3`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.campaign, self.number)
    }
}

/// The end of one execution of a run.
#[derive(Clone, Debug)]
pub struct RunEnd {
    /// The progress of the run.
    pub progress: RunProgress,
    /// The kind of an early stop.
    pub stop: Option<StopKind>,
    /// The reason for an early stop, as text.
    pub stop_reason: Option<String>,
    /// Counts by state.
    pub counts: StateCounts,
    /// Billed parts, as far as the gateway reported them.
    pub parts: u64,
    /// The number of receipts that are included in the counts.
    pub receipts: u64,
    /// The results file.
    pub results: Option<String>,
    /// The longest observed delay until the gateway knew a message. `None` if none was observed.
    pub lag: Option<Duration>,
    /// The time at which the run ended.
    pub at: Timestamp,
    /// The notifications about the end, stored in the same commit.
    pub notifications: Vec<NewNotification>,
}

/// A request to the processes that send a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopRequest {
    /// Stop after the requests in flight.
    Stop,
    /// Stop all workers for this reason. Changes nothing if a stop is already requested.
    Halt {
        /// The kind of the stop.
        kind: StopKind,
        /// The reason, as text.
        reason: String,
    },
    /// Continue: the request is withdrawn.
    Withdraw,
}

/// A change to the records of runs that needs no lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunUpdate {
    /// The campaign file is at this path now.
    CampaignFile(String),
    /// The results file is at this path now.
    ResultsFile(String),
    /// The unfinished run ends as it is. No more of its messages are sent.
    Retired,
    /// A request to the processes that send the run.
    Stop(StopRequest),
    /// The rows of a finished run were counted again.
    Counts {
        /// The rows by state.
        counts: StateCounts,
        /// The billed parts.
        parts: u64,
        /// The number of receipts that the counts include.
        receipts: u64,
    },
    /// The figures that a projection calculated from all rows, as a cache. The ledger does not interpret them and may
    /// discard them.
    Figures(Vec<u8>),
    /// The gateway accepted a message of the run.
    Proven,
    /// The inquiries about each of these rows. They replace the earlier entries of the rows.
    Inquiries(Vec<AskedRow>),
    /// Evidence of the consent of its recipients. The run is not open yet.
    Consents(Arc<[ConsentBlock]>),
    /// The copies and the results no longer contain forgotten rows.
    RowsErased,
}

/// A campaign lock that a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CampaignLockInfo {
    /// The time at which the campaign was locked, if the ledger knows.
    pub since: Option<Timestamp>,
}

/// The host to remember for a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostChange {
    /// This host, unless the profile has one. Loopback is recorded with the first run, so remembering it here needs no
    /// commit.
    IfUnknown,
    /// This host, instead of any other.
    Replace,
}

/// A filter for runs. The default matches all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only the run with this key.
    pub key: Option<RunId>,
    /// Only runs of this campaign.
    pub campaign: Option<String>,
    /// Only unfinished runs.
    pub open: bool,
    /// Only runs to real recipients.
    pub live: bool,
    /// Only runs that wrote to this results file.
    pub results: Option<String>,
    /// Only runs that reserved any of these identifiers.
    pub ids: Option<IdRange>,
    /// Only runs with receipts since the last count.
    pub uncounted: bool,
    /// Only this many of the latest runs.
    pub latest: Option<u32>,
}

impl RunFilter {
    /// Matches all runs.
    pub fn all() -> Self {
        Self::default()
    }

    /// Matches one run.
    pub fn with_key(key: RunId) -> Self {
        Self { key: Some(key), ..Self::default() }
    }

    /// Matches the run that reserved this identifier.
    pub fn with_id(id: MessageId) -> Self {
        Self { ids: Some(IdRange { first: id.get(), len: 1 }), ..Self::default() }
    }

    /// Matches the runs of a campaign.
    pub fn for_campaign(campaign: &str) -> Self {
        Self { campaign: Some(campaign.to_owned()), ..Self::default() }
    }
}

/// A lock of this process on a campaign of an account. It is acquired before the guard is read, and released on drop.
///
/// If the process ends, the lock is released: at once if the ledger can detect it, otherwise after a timeout.
pub struct CampaignLock {
    campaign: String,
    account: String,
    /// The adapter's resources, released on drop.
    _resources: Box<dyn Any + Send + Sync>,
}

impl CampaignLock {
    /// Creates a lock that owns `resources` and releases them on drop.
    pub fn new(campaign: &str, account: &str, resources: impl Any + Send + Sync) -> Self {
        Self { campaign: campaign.to_owned(), account: account.to_owned(), _resources: Box::new(resources) }
    }

    /// Whether a run belongs to this campaign and account.
    pub fn covers_run(&self, run: &Run) -> bool {
        (&run.campaign, &run.account) == (&self.campaign, &self.account)
    }

    /// The name of the lock, usable as a file name on every system.
    pub fn name(&self) -> String {
        lock_name(&self.campaign, &self.account)
    }
}

/// The name of the lock on a campaign of an account.
pub(super) fn lock_name(campaign: &str, account: &str) -> String {
    let to_safe =
        |character: char| if character.is_alphanumeric() || "-_".contains(character) { character } else { '_' };
    let account: String = account.chars().map(to_safe).collect();
    format!("{campaign}.{account}")
}

/// The name of the lock on a numbered place of a worker, for the shared and sharded runs of a campaign on an account.
pub(super) fn place_name(campaign: &str, account: &str, place: u32) -> String {
    // Account names contain no dots here, so the name cannot collide with another lock.
    format!("{}.{place}", lock_name(campaign, account))
}

impl fmt::Debug for CampaignLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CampaignLock")
            .field("campaign", &self.campaign)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Whether this lease covers the whole run. Only the holder of such a lease may record events or end the run.
    pub fn is_leased(&self, lease: Lease) -> bool {
        self.key == lease.run && self.epoch == Some(lease.epoch)
    }

    /// Whether this lease permits sending any row. No lease permits this if the run is sent in shards.
    pub(crate) fn may_send_whole_run(&self, lease: Lease) -> bool {
        self.is_leased(lease) && self.sharding.is_none()
    }

    /// Whether workers may send drawn rows. In a sharded run, workers may no longer send after the owner has ended the
    /// run.
    pub(crate) fn may_send_drawn_rows(&self) -> bool {
        self.shared || self.ended_at.is_none()
    }

    /// Applies a stop request. Returns whether the request changes the run.
    pub(crate) fn apply_stop_request(&mut self, request: StopRequest) -> bool {
        let is_requested = request != StopRequest::Withdraw;
        if self.stop_requested == is_requested {
            return false;
        }
        self.stop_requested = is_requested;
        if let StopRequest::Halt { kind, reason } = request {
            (self.stop, self.stop_reason) = (Some(kind), Some(reason));
        }
        true
    }

    /// Starts a claim and clears the previous end.
    pub(crate) fn start_claim(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
        (self.stop, self.stop_reason, self.counts, self.ended_at) = (None, None, None, None);
    }

    /// Ends the run for the holder of the lease, and returns the notifications to be queued. Without the lease, this
    /// does nothing.
    pub(crate) fn record_end(&mut self, lease: Lease, end: RunEnd) -> Vec<NewNotification> {
        if !self.is_leased(lease) {
            return Vec::new();
        }
        let RunEnd { progress, stop, stop_reason, counts, parts, receipts, results, lag, at, notifications } = end;
        (self.epoch, self.stop_requested) = (None, false);
        (self.progress, self.stop, self.stop_reason) = (progress, stop, stop_reason);
        self.results = results;
        // Other processes continue a shared run, so the counts of one of them are not final.
        if !self.shared {
            (self.counts, self.receipts_counted, self.ended_at) = (Some((counts, parts)), receipts, Some(at));
        }
        // The longest observed delay is kept.
        self.lag = self.lag.max(lag);
        notifications
    }

    /// Ends the run as it is, because another run replaces it.
    pub(crate) fn mark_replaced(&mut self, at: Timestamp) {
        (self.progress, self.epoch, self.ended_at) = (RunProgress::Replaced, None, Some(at));
        self.skip_unsent();
    }

    /// Counts the unsent rows of a replaced run as skipped, which is also the state of these rows. An earlier version
    /// counted them as planned.
    pub(crate) fn skip_unsent(&mut self) {
        if let (RunProgress::Replaced, Some((counts, _))) = (self.progress, &mut self.counts) {
            counts.skip_planned();
        }
    }

    /// Stores new counts, which include `receipts` receipts. Does nothing if a process owns the run or the run never
    /// ended.
    pub(crate) fn set_counts(&mut self, counts: StateCounts, parts: u64, receipts: u64) {
        if self.counts.is_some() && self.epoch.is_none() {
            (self.counts, self.receipts_counted) = (Some((counts, parts)), receipts);
        }
    }

    /// Recounts an ended run after a late answer proved more.
    pub(crate) fn recount(&mut self, states: &RowStates, excluded: &ExcludedRows) {
        if let Some(counts) = &mut self.counts {
            *counts = (states.count_states(self.recipients, excluded), states.billed_parts().billed);
            self.receipts_counted = self.receipts;
        }
    }

    /// Marks the run as purged and keeps its counts. Returns `false` if the run is open, owned by a process, already
    /// purged, or changed since `counted` was read.
    pub(crate) fn mark_purged(&mut self, at: Timestamp, counted: &Run, counts: (StateCounts, u64)) -> bool {
        let snapshot = |run: &Self| (run.progress, run.receipts, run.ended_at, run.blocks.len(), run.purged_at);
        let is_over = self.epoch.is_none() && self.progress != RunProgress::Open && self.purged_at.is_none();
        if !is_over || snapshot(self) != snapshot(counted) {
            return false;
        }
        (self.purged_at, self.counts, self.receipts_counted) = (Some(at), Some(counts), self.receipts);
        true
    }

    /// Reopens the run if any of these changes plans a row to be sent again.
    pub(crate) fn reopen_for_planned_rows<'a>(&mut self, changes: impl IntoIterator<Item = &'a RowChange>) {
        if changes.into_iter().any(|change| matches!(change, RowChange::SendAgain { .. } | RowChange::Retry { .. })) {
            self.progress = RunProgress::Open;
        }
    }
}

/// Checks that the campaign of a run is locked and that the run is not purged.
pub(crate) fn check_lock(lock: &CampaignLock, run: &Run) -> Result<(), LedgerError> {
    LedgerError::refuse_purged(run)?;
    if lock.covers_run(run) { Ok(()) } else { Err(LedgerError::CampaignNotLocked { run: run.name() }) }
}

impl RetryOrder {
    /// The events of this order, which is recorded as `number`.
    pub(crate) fn into_events(self, number: u32) -> Vec<NewRowEvent> {
        let by = self.by;
        let to_event = |RetriedRow { row, envelope }| NewRowEvent {
            row,
            envelope,
            change: RowChange::Retry { by: by.clone(), order: number },
        };
        self.rows.into_iter().map(to_event).collect()
    }
}

/// 2026-01-01T00:00:00Z in seconds. Identifiers count days from here.
const FIRST_DAY: i64 = 1_767_225_600;

/// An endless sequence of candidate ranges with `len` identifiers. The ledger takes the first range that overlaps no
/// used identifiers.
///
/// `now` is in microseconds since 1970.
pub(crate) fn id_candidates(now: i64, random: u64, len: u64) -> impl Iterator<Item = IdRange> {
    let days = u64::try_from((now / 1_000_000 - FIRST_DAY) / 86_400).unwrap_or(0);
    // The multiplier and increment of Knuth's MMIX generator.
    let next =
        |random: &u64| Some(random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(random), next).map(move |random| IdRange::draw(days, random, len))
}
