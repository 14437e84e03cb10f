//! Active schedules and their occurrences in the ledger.

use jiff::Timestamp;

use super::{DamagedOccurrence, DamagedSchedule, LedgerFuture, NewRun, Run, RunId};

/// An active schedule, as activated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveSchedule {
    /// The name of the campaign and of the schedule.
    pub name: String,
    /// The campaign file, relative to the root.
    pub file: String,
    /// The digest of the campaign file and its texts.
    pub digest: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The addresses of the profile.
    pub addresses: String,
    /// The account of the profile.
    pub account: String,
    /// Who activated it.
    pub by: String,
    /// When it was activated.
    pub activated_at: Timestamp,
    /// Only occurrences after this moment count: the activation, or the last resumption.
    pub since: Timestamp,
    /// Whether it is paused.
    pub paused: bool,
}

/// The identity of an occurrence, which fires at most once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OccurrenceKey {
    /// The schedule.
    pub schedule: String,
    /// The scheduled local time: `2026-12-01 10:00`.
    pub nominal: String,
    /// The time zone.
    pub zone: String,
}

/// The outcome of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OccurrenceOutcome {
    /// The occurrence started this run.
    Fired(RunId),
    /// The occurrence was skipped for this reason.
    Skipped(String),
}

/// A recorded occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceRecord {
    /// Its identity.
    pub key: OccurrenceKey,
    /// Its moment.
    pub at: Timestamp,
    /// Its outcome.
    pub outcome: OccurrenceOutcome,
}

/// Schedules and occurrences in a ledger.
pub trait ScheduleStore: Send + Sync {
    /// Stores an active schedule and replaces one with the same name.
    fn activate_schedule(&self, schedule: ActiveSchedule) -> LedgerFuture<'_, ()>;

    /// The active schedules by name. A damaged record does not hide the others.
    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>>;

    /// Pauses a schedule. Returns whether it exists.
    fn pause_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool>;

    /// Resumes a schedule for occurrences after `since`. Returns whether it exists.
    fn resume_schedule<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool>;

    /// Removes a schedule and keeps its occurrences, which never fire again. Returns whether it existed.
    fn deactivate_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool>;

    /// Creates a run like [`Ledger::create_run`] and records it for this occurrence, in one transaction.
    ///
    /// `None` if the occurrence is already recorded, unless its run was never opened. Such a run sent nothing, and the
    /// caller's campaign lock ensures that no process is about to open it.
    ///
    /// [`Ledger::create_run`]: super::Ledger::create_run
    fn fire_occurrence<'a>(
        &'a self,
        new: &'a NewRun,
        key: &'a OccurrenceKey,
        at: Timestamp,
    ) -> LedgerFuture<'a, Option<Run>>;

    /// Records that an occurrence was skipped. Returns whether it had no record before.
    fn skip_occurrence<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool>;

    /// Records that an occurrence was skipped although it has a run that was never opened. Returns whether that was its
    /// record. The caller's campaign lock ensures that no process is about to open the run.
    fn abandon_occurrence<'a>(
        &'a self,
        key: &'a OccurrenceKey,
        at: Timestamp,
        reason: &'a str,
    ) -> LedgerFuture<'a, bool>;

    /// The latest occurrences of a schedule up to a moment, latest first. A damaged record does not hide the others.
    fn list_occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>>;

    /// The occurrence of a run, if it has one.
    fn find_run_occurrence(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>>;

    /// The outcome of an occurrence. `None` if it is not recorded.
    fn find_occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<OccurrenceOutcome>>;
}

/// Whether an occurrence may start a run: it is not recorded, or its run was never opened and therefore sent nothing.
pub(crate) fn may_fire(recorded: Option<&OccurrenceOutcome>, was_opened: bool) -> bool {
    match recorded {
        None => true,
        Some(OccurrenceOutcome::Fired(_)) => !was_opened,
        Some(OccurrenceOutcome::Skipped(_)) => false,
    }
}
