//! The durable truth of every message, as a port and its SQLite adapter.
//!
//! The port knows nothing of SQLite: holds, leases, identifiers, envelope numbers and the account's pace
//! belong to it, so that several machines can share one ledger later.

mod allowance;
mod approval_rules;
mod backup;
mod block;
mod bounds;
mod checksum;
#[cfg(test)]
mod conformance;
mod copies;
mod damage;
mod earlier_chains;
mod earlier_words;
mod error;
mod event;
mod forgetting;
mod hold;
mod left_out;
mod mark;
#[cfg(test)]
pub(crate) mod memory;
mod message_state;
mod notification;
mod number_set;
mod pace;
mod pack;
mod parts;
mod plans;
mod postgres;
mod question_pace;
mod receipts;
mod record;
mod repeat_guard;
mod row_events;
mod row_state;
mod row_states;
mod rules;
mod run_filter;
mod schedules;
mod share;
mod sqlite;
mod stop;
mod suppression;
mod upkeep;
mod walk;

pub use allowance::Allowance;
pub use approval_rules::{ApprovalRuleStore, KeptApprovalRule};
pub use backup::{Backup, CopiedLedger};
pub use block::{BlockIds, BlockRequest, DrawOutcome, DrawRefusal, RowBlock, RowSpan, SharedRun};
pub use bounds::{Bound, Bounds, CAPPED, ContactHistory};
pub use copies::{Copies, ListReader, NewCopies, StrayCopies};
pub use damage::{DamagedOccurrence, DamagedPlan, DamagedRecord, DamagedRun, DamagedSchedule, RecordKind};
pub use error::LedgerError;
pub use event::{AskedRow, Author, NewRowEvent, RetriedRow, RetryOrder, RowChange, RowEvent};
pub use forgetting::{ForgetOrder, Forgetting};
pub use hold::CampaignLock;
pub use left_out::ExcludedRows;
pub use notification::{NewNotification, Notification, NotificationOutcome, NotificationQueue};
pub use number_set::{NumberKey, NumberSet};
pub use pace::{AccountRateLimit, Reservation, SlotWait, WaitReason, halve_share, recover_share};
pub use parts::BilledParts;
pub use plans::{Approval, ApprovalUse, KeptApproval, Plan, PlanStore};
pub use postgres::{PostgresAddress, PostgresAddressError, PostgresLedger};
pub use question_pace::QuestionPermit;
pub use receipts::{KeptReceipt, NewReceipt, ReceiptOutcome, ReceiptReader, ReceiptStore, RowReceipts};
pub use record::{
    Claim, EnvelopeRecord, EnvelopeSummary, Epoch, Intent, Lease, MessageOrigin, NewRun, Ownership, Permit, Run,
    RunEnd, RunId, RunProgress, SentRow, Settlement,
};
pub use repeat_guard::{REPEAT_WINDOW, RepeatCheck, RepeatGuard, RepeatPlace};
pub use row_events::{Judgement, RowEvents};
pub use row_state::{Attempt, RowActivities, RunActivity};
pub use row_states::{RowStates, StateCounts};
pub use rules::share_budget;
pub use run_filter::RunFilter;
pub use schedules::{ActiveSchedule, OccurrenceKey, OccurrenceOutcome, OccurrenceRecord, ScheduleStore};
pub use share::{ShardDraw, ShardHolder, ShardStore, ShardWorker, Sharding};
pub use sqlite::SqliteLedger;
pub use stop::StopKind;
pub use suppression::{
    Additions, EntryRemoval, OPTED_OUT, OptOut, OptOutPage, OptOutReach, OptOutRemoval, OptOutScope, SuppressedNumbers,
    SuppressionList, SuppressionPolicy, import_source,
};
pub use upkeep::LedgerMaintenance;
pub use walk::EnvelopeReader;

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use crate::domain::MessageId;
pub use crate::domain::{CANCELLED, CANCELLED_EARLIER, ENDED_EARLY, EXPIRED, REPLACED, RowState};

/// A boxed future of a ledger operation: the disk is an edge where one indirection does not matter.
pub type LedgerFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LedgerError>> + Send + 'a>>;

/// Everything durable that a run needs.
///
/// A returned `Ok` means that the change survives a power loss.
pub trait Ledger:
    ReceiptStore
    + ScheduleStore
    + PlanStore
    + ApprovalRuleStore
    + RepeatGuard
    + SuppressionList
    + ContactHistory
    + Forgetting
    + NotificationQueue
    + ShardStore
    + LedgerMaintenance
{
    /// Creates a run, gives it the next number of its campaign, and reserves identifiers for its rows.
    ///
    /// The run is not open until [`Ledger::open_run`] was called: its frozen copies are not in place yet.
    fn create_run<'a>(&'a self, new: &'a NewRun) -> LedgerFuture<'a, Run>;

    /// Opens a created run, and ends the unfinished run that it replaces.
    fn open_run(&self, run: RunId, replaced: Option<RunId>) -> LedgerFuture<'_, ()>;

    /// Ends an unfinished run as it is: nothing of it is sent any more.
    fn retire_run(&self, run: RunId) -> LedgerFuture<'_, ()>;

    /// Keeps for these runs that they are of this campaign file.
    fn set_campaign_file(&self, runs: Vec<RunId>, file: String) -> LedgerFuture<'_, ()>;

    /// Records that the results of a run are in this file now.
    fn set_results_file(&self, run: RunId, results: String) -> LedgerFuture<'_, ()>;

    /// The runs that are wanted of those that were opened, oldest first.
    fn list_runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Run>>;

    /// The same, for lists that people look at: a damaged record does not hide the others.
    ///
    /// What decides about sending uses [`Ledger::runs`], which refuses to answer without the damaged one.
    fn list_stored_runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Result<Run, DamagedRun>>> {
        Box::pin(async move { Ok(self.list_runs(wanted).await?.into_iter().map(Ok).collect()) })
    }

    /// The run that gave a message this identifier, and the row: by ranges, so nothing is kept per message.
    fn find_message(&self, id: MessageId) -> LedgerFuture<'_, Option<MessageOrigin>>;

    /// Takes a campaign on an account, before anybody looks who has a message of it; nothing while another process has it.
    fn acquire_campaign_lock<'a>(
        &'a self,
        campaign: &'a str,
        account: &'a str,
    ) -> LedgerFuture<'a, Option<CampaignLock>>;

    /// Whether some process has a campaign on an account.
    fn is_campaign_locked<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, bool>;

    /// Since when a process has a campaign on an account, as far as the ledger knows.
    fn find_lock_time<'a>(&'a self, _campaign: &'a str, _account: &'a str) -> LedgerFuture<'a, Option<Timestamp>> {
        Box::pin(async { Ok(None) })
    }

    /// Makes room for the copies of a run of what is held; what an interrupted start left for it there is discarded.
    fn prepare_copies<'a>(&'a self, hold: &'a CampaignLock) -> LedgerFuture<'a, Box<dyn NewCopies>>;

    /// The copies that a run is sent from.
    fn load_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies>;

    /// The copies that are there of runs that the ledger does not have, by the names of the runs: it was lost, or put back.
    fn list_stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>>;

    /// Takes the copies of a run that the ledger does not have out of its way, and tells where they are from now on.
    fn set_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String>;

    /// Takes a run of what is held: whoever had it before has lost it, and what that one had begun is in doubt.
    ///
    /// Of a shared run, blocks that some process has stay its own, with what was begun of them.
    fn claim_run<'a>(&'a self, hold: &'a CampaignLock, run: RunId) -> LedgerFuture<'a, Claim>;

    /// Takes the next rows of a shared run for this process alone; a run begins where there is none, or none has room.
    /// What a process that ended had begun of a block in the same place is in doubt from here on.
    fn draw_block<'a>(&'a self, shared: &'a SharedRun, wanted: BlockRequest) -> LedgerFuture<'a, DrawOutcome>;

    /// Everything that would refuse such rows now. Nothing is drawn.
    fn list_draw_refusals<'a>(
        &'a self,
        shared: &'a SharedRun,
        wanted: BlockRequest,
    ) -> LedgerFuture<'a, Vec<DrawRefusal>>;

    /// The rows of a shared run that some process has.
    fn load_claimed_rows(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap>;

    /// Records why and how a run ended or paused, and gives it up; nothing if it was lost.
    fn end_run(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()>;

    /// Records an intent, unless the run was lost or somebody asked it to stop, and gives its envelope the next number of
    /// the run; takes from the account's pace.
    ///
    /// Where somebody of it opted out since the run was planned, it records instead that those rows are left out; so also
    /// where somebody got as many messages as a cap of the intent allows. Where it
    /// would go over a bound of the intent, it records nothing and tells how much of it would not.
    fn begin_envelope(&self, intent: Intent) -> LedgerFuture<'_, Permit>;

    /// Whether an envelope that was begun by this right may still leave, as far as this process knows without asking: looked
    /// at once more before its first byte, since a process may have slept between.
    fn may_still_send(&self, _lease: Lease) -> bool {
        true
    }

    /// Records what became of an envelope, whoever has the run by now: an answer is evidence.
    fn settle_envelope(&self, settlement: Settlement) -> LedgerFuture<'_, ()>;

    /// Asks whoever has a run to stop after what is in flight; `false` takes the request back.
    fn request_stop(&self, run: RunId, requested: bool) -> LedgerFuture<'_, ()>;

    /// Whether whoever has a run is asked to stop.
    fn is_stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool>;

    /// Halves the account's pace after the gateway asked to slow down; nothing is sent before the wait is over.
    fn slow_account<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()>;

    /// Takes room for `count` questions from the account's pace, and tells how long to wait.
    fn reserve_rate<'a>(&'a self, account: &'a Allowance, count: u32) -> LedgerFuture<'a, SlotWait>;

    /// Takes room for one question of an assistant, if it leaves within `longest`. While messages are sent through the
    /// account, all such questions together have a tenth of its rate.
    fn reserve_question<'a>(&'a self, account: &'a Allowance, longest: Duration) -> LedgerFuture<'a, QuestionPermit>;

    /// Removes drawn rows from the count of their hour: the gateway did not accept the key that they were drawn for.
    fn uncount_block(&self, lease: Lease) -> LedgerFuture<'_, ()>;

    /// The envelopes of a run without their rows, in the order of their numbers.
    fn list_envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>>;

    /// The envelopes of a run with numbers in this range, whole, in the order of their numbers.
    fn load_envelopes(&self, run: RunId, numbers: RangeInclusive<u32>) -> LedgerFuture<'_, Vec<EnvelopeRecord>>;

    /// The body of an envelope's answer, where one was kept for a person to look at.
    fn load_evidence(&self, run: RunId, envelope: u32) -> LedgerFuture<'_, Option<String>>;

    /// The rows of a run that are never sent, with the reason.
    fn load_excluded_rows(&self, run: RunId) -> LedgerFuture<'_, ExcludedRows>;

    /// The numbers that have an operation in one of these runs.
    fn load_sent_numbers<'a>(&'a self, runs: &'a [RunId]) -> LedgerFuture<'a, NumberSet>;

    /// The rows of a run that have an operation; none of a purged run.
    fn load_sent_rows(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap>;

    /// Records what was learnt or decided about rows, unless the run was lost. One that plans a row again opens the run.
    fn record_events(&self, lease: Lease, events: Vec<NewRowEvent>) -> LedgerFuture<'_, Ownership>;

    /// Reserves identifiers for an order and has its rows sent as new messages, unless the run was lost.
    fn retry_rows(&self, lease: Lease, order: RetryOrder) -> LedgerFuture<'_, Ownership>;

    /// What was learnt or decided about rows of a run, in the order in which it was recorded.
    fn load_events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>>;

    /// Keeps how often rows were asked about; what is told of a row takes the place of what was told before.
    fn keep_asked_rows(&self, run: RunId, rows: Vec<AskedRow>) -> LedgerFuture<'_, ()>;

    /// How often the rows of a run were asked about.
    fn load_asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>>;

    /// The host that a profile had when it was first used; remembers `host` if there is none. Loopback is remembered by the
    /// first run through it, so that this costs no commit there.
    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, String>;

    /// Remembers another host for a profile.
    fn trust_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, ()>;
}
