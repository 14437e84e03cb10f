//! The ledger: the durable record of runs, as a port with adapters for SQLite and PostgreSQL.
//!
//! The port is independent of the storage. Locks, leases, identifiers, envelope numbers and rate limits belong to it,
//! so that several machines can share a ledger.

mod approvals;
mod bounds;
#[cfg(test)]
mod conformance;
mod consents;
mod copies;
mod encoding;
mod envelope;
mod error;
mod events;
mod forgetting;
mod guards;
mod high_water_mark;
mod maintenance;
#[expect(missing_docs, reason = "its methods and fields are those of the port and of the stored tables")]
pub mod memory;
mod message_state;
mod notifications;
mod postgres;
mod queries;
mod rate_limit;
mod receipts;
mod row_state;
mod run;
mod schedules;
mod shared_runs;
mod sqlite;
mod stop_kind;
mod suppression;

/// Rules of the ledger that every adapter applies inside its transactions.
mod rules {
    pub(super) use super::approvals::oldest_kept_plan_time;
    pub(super) use super::bounds::{
        BudgetScope, CountedMessage, CountedMessages, PriorMessage, caps_allow, counts_for_caps, find_capped_rows,
        find_exceeded_budget, find_exceeded_daily_limit, find_rows_outside_countries, intended_spending,
        may_have_been_sent, refunded_spending, tighter_bound,
    };
    pub(super) use super::envelope::{
        check_deadline, departure_time, find_refusal, in_doubt_outcomes, merge_outcomes, takes_slot,
    };
    pub(super) use super::events::list_included_rows;
    pub(super) use super::forgetting::{NumberErasure, erase_text_from_change, erase_texts_from_receipt};
    pub(super) use super::guards::{Guard, ReservationRelease, check_repeat, look_for_repeat};
    pub(super) use super::run::{check_lock, id_candidates};
    pub(super) use super::schedules::{may_fire, may_skip};
    pub(super) use super::shared_runs::{
        DrawReadiness, HOUR, check_draw, list_refusals, next_draw_time, next_rows, owns_rows,
    };
    pub(super) use super::suppression::REPLACED_REASON;
}

pub use approvals::{
    Approval, ApprovalFilter, ApprovalUse, Plan, PlanFilter, PlanRecord, PlanStore, StoredApproval, StoredApprovalRule,
    StoredPlanRecord,
};
pub use bounds::{Bound, Bounds, BudgetScope, CAPPED, COUNTRY, CapQuery, is_number_capped, share_budget};
pub use consents::{ConsentBlock, ConsentBlockBuilder, ConsentEvidence, ConsentStore};
pub use copies::{Copies, CopiesPurpose, ListReader, NewCopies, StrayCopies};
pub use envelope::{
    EnvelopeFilter, EnvelopeReader, EnvelopeRecord, EnvelopeSummary, Intent, Ownership, Permit, SentRow, Settlement,
};
pub use error::LedgerError;
pub use events::{
    AskedRow, Author, Judgement, NewRowEvent, RetriedRow, RetryOrder, RowChange, RowEvent, RowEvents, RowUpdate,
};
pub use forgetting::{ForgetOrder, Forgetting, NumberFilter, NumberKey, NumberSet, PurgeOrder};
pub use guards::{REPEAT_WINDOW, RepeatCheck, RepeatGuard, RepeatRequest, RepeatReservation};
pub use maintenance::{
    Backup, CopiedLedger, DamagedOccurrence, DamagedPlan, DamagedRecord, DamagedRun, DamagedSchedule, IntegrityReport,
    LedgerMaintenance, LedgerProperties, LedgerRisks, RecordKind,
};
pub use notifications::{NewNotification, Notification, NotificationOutcome, NotificationQueue, NotificationUpdate};
pub use postgres::{PostgresAddress, PostgresAddressError, PostgresLedger};
pub use rate_limit::{
    AccountRateLimit, Allowance, RateRequest, Reservation, SlotPermit, SlotWait, WaitReason, halve_share, recover_share,
};
pub use receipts::{NewReceipt, ReceiptOutcome, ReceiptReader, ReceiptStore, RowReceipts, StoredReceipt};
pub use row_state::{Attempt, BilledParts, ExcludedRows, RowActivities, RowStates, RunActivity, StateCounts};
pub use run::{
    CampaignLock, CampaignLockInfo, Claim, Epoch, HostChange, Lease, MessageOrigin, NewRun, Run, RunEnd, RunFilter,
    RunId, RunProgress, RunUpdate, StopRequest,
};
pub use schedules::{
    ActiveSchedule, OccurrenceFilter, OccurrenceKey, OccurrenceOutcome, OccurrenceRecord, ScheduleOrder, ScheduleStore,
    ScheduleUpdate, ScheduledOccurrence, SkipCondition, find_occurrence,
};
pub use shared_runs::{
    BlockIds, BlockRequest, DrawOutcome, DrawRefusal, OwnedBlock, RowBlock, RowSpan, ShardDraw, ShardHolder,
    ShardStore, ShardWorker, Sharding, SharedRun, count_run_rows,
};
pub use sqlite::SqliteLedger;
pub use stop_kind::StopKind;
pub use suppression::{
    AdditionMode, Additions, EndedOptOut, OPTED_OUT, OptIn, OptOut, OptOutEnd, OptOutFilter, OptOutPage, OptOutReach,
    OptOutRecord, OptOutRemoval, OptOutScope, RemovalTarget, SuppressedNumbers, SuppressionList, SuppressionPolicy,
    import_name, import_source, opt_in_source, rejection_source, reply_source,
};

use std::future::Future;
use std::pin::Pin;

use roaring::RoaringBitmap;

pub use campaign_core::domain::{CANCELLED, CANCELLED_EARLIER, ENDED_EARLY, EXPIRED, REPLACED, RowState};

/// The boxed future of a ledger operation. Its indirection costs little compared with the disk.
pub type LedgerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'a>>;

/// The port to the durable storage of runs. `queries.rs` has the queries that combine its methods.
///
/// `Ok` means that the change survives a power loss.
pub trait Ledger:
    ReceiptStore
    + ScheduleStore
    + PlanStore
    + RepeatGuard
    + SuppressionList
    + ConsentStore
    + Forgetting
    + NotificationQueue
    + ShardStore
    + LedgerMaintenance
{
    /// Creates a run with the next number of its campaign and reserves identifiers for its rows. The same transaction
    /// records the run as the outcome of its occurrence.
    ///
    /// The run is not open until [`Ledger::open_run`] is called, because its frozen copies are not in place yet.
    ///
    /// `None` if the occurrence is already recorded. An occurrence whose run was never opened can fire again: that run
    /// sent nothing, and the caller's campaign lock ensures that no process is about to open it.
    fn create_run<'a>(
        &'a self,
        new: &'a NewRun,
        occurrence: Option<&'a ScheduledOccurrence>,
    ) -> LedgerFuture<'a, Option<Run>>;

    /// Opens a created run, ends the unfinished run that it replaces, and uses the approval with this token for it, in
    /// one transaction. Does nothing and returns `false` if the approval is no longer valid.
    fn open_run<'a>(&'a self, run: RunId, replaced: Option<RunId>, approval: Option<&'a str>)
    -> LedgerFuture<'a, bool>;

    /// Changes the records of these runs in one transaction, which is committed even if the list is empty.
    fn update_runs(&self, runs: Vec<RunId>, update: RunUpdate) -> LedgerFuture<'_, ()>;

    /// The opened runs that match the filter, oldest first. A damaged record is returned as an error and does not hide
    /// the other runs.
    ///
    /// Decisions about sending use `list_runs`, which fails if a record is damaged.
    fn list_stored_runs(&self, filter: RunFilter) -> LedgerFuture<'_, Vec<Result<Run, DamagedRun>>>;

    /// Locks a campaign of an account. The lock must be acquired before the guard is read. `None` if another process
    /// holds the lock.
    fn acquire_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLock>>;

    /// The lock on a campaign of an account, if a process holds it.
    fn find_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLockInfo>>;

    /// Prepares copies, which are stored once they are frozen.
    fn prepare_copies<'a>(&'a self, purpose: CopiesPurpose<'a>) -> LedgerFuture<'a, Box<dyn NewCopies>>;

    /// Loads the frozen copies of a run's inputs.
    fn load_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies>;

    /// Copies of runs that are missing from the ledger, ordered by run name. Such copies exist after the ledger was
    /// lost or restored.
    fn list_stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>>;

    /// Moves the copies of a run that is missing from the ledger out of the way, and returns their new location.
    fn set_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String>;

    /// Claims a run of the locked campaign. The previous owner loses its lease, and its open intents are put in doubt.
    ///
    /// Other processes keep the blocks that they own in a shared or sharded run.
    fn claim_run<'a>(&'a self, lock: &'a CampaignLock, run: RunId) -> LedgerFuture<'a, Claim>;

    /// Draws the next rows of a shared run for this process. Creates a new run if no run has unused rows. If this
    /// process takes the place of an ended process, the open intents of that process are put in doubt.
    fn draw_block<'a>(&'a self, shared: &'a SharedRun, request: BlockRequest) -> LedgerFuture<'a, DrawOutcome>;

    /// All reasons why [`Ledger::draw_block`] would refuse this draw now. Draws nothing.
    fn list_draw_refusals<'a>(
        &'a self,
        shared: &'a SharedRun,
        request: BlockRequest,
    ) -> LedgerFuture<'a, Vec<DrawRefusal>>;

    /// The blocks that processes own in a shared or sharded run, oldest first.
    fn list_owned_blocks(&self, run: RunId) -> LedgerFuture<'_, Vec<OwnedBlock>>;

    /// Records the end or pause of a run and releases the lease. Does nothing if the lease was lost.
    fn end_run(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()>;

    /// Records an intent, assigns the envelope's number and takes a slot of the account's rate limit. The intent is
    /// refused if the lease was lost, a stop was requested, or the envelope would miss its deadline.
    ///
    /// If recipients opted out since the run was planned, reached a cap or are outside the allowed countries, their
    /// rows are recorded as skipped instead. If the envelope exceeds a budget or a daily limit, nothing is recorded and
    /// the permit contains the number of rows that fit.
    fn begin_envelope(&self, intent: Intent) -> LedgerFuture<'_, Permit>;

    /// Whether an envelope may still be sent under this lease, without querying the storage. This is checked again
    /// right before the first byte is sent, because the process might have been suspended.
    fn may_still_send(&self, _lease: Lease) -> bool {
        true
    }

    /// Records the outcome of an envelope, even if another process owns the run, because an answer is evidence.
    fn settle_envelope(&self, settlement: Settlement) -> LedgerFuture<'_, ()>;

    /// Whether a stop was requested for a run.
    fn is_stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool>;

    /// Makes a request to the account's rate limit: takes slots if they become free in time, or slows the account down.
    fn use_rate_limit<'a>(&'a self, account: &'a Allowance, request: RateRequest) -> LedgerFuture<'a, SlotPermit>;

    /// The row ranges of the envelopes of a run, ordered by envelope number.
    fn list_envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>>;

    /// The matching envelopes of a run, in the order of their numbers.
    fn load_envelopes(&self, run: RunId, filter: EnvelopeFilter) -> LedgerFuture<'_, Vec<EnvelopeRecord>>;

    /// The skipped and invalid rows of a run, with reasons.
    fn load_excluded_rows(&self, run: RunId) -> LedgerFuture<'_, ExcludedRows>;

    /// The numbers that match the filter, forgotten or not.
    fn load_numbers<'a>(&'a self, filter: NumberFilter<'a>) -> LedgerFuture<'a, NumberSet>;

    /// The rows of a run that have or might have a message. Empty for a purged run.
    fn load_sent_rows(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap>;

    /// Records facts or decisions about the rows of a lease, or shards the run, unless the lease was lost.
    fn update_rows(&self, lease: Lease, update: RowUpdate) -> LedgerFuture<'_, Ownership>;

    /// The events of a run, in the order in which they were recorded.
    fn load_events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>>;

    /// The rows of a run about which the gateway was asked, each with the number of inquiries and the last answer.
    fn load_asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>>;

    /// Remembers a host for a profile, and returns the host that the profile has now.
    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str, change: HostChange) -> LedgerFuture<'a, String>;
}
