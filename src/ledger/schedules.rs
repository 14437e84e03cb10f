//! The armed schedules and their occurrences, as the ledger keeps them.

use jiff::Timestamp;

use super::{DamagedOccurrence, DamagedSchedule, LedgerFuture, NewRun, Run, RunId};

/// A campaign that runs by itself, as it was armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveSchedule {
    /// The campaign's name, which is the schedule's.
    pub name: String,
    /// The campaign file, from the root.
    pub file: String,
    /// The digest of the campaign file and its texts.
    pub digest: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The addresses that the profile had.
    pub addresses: String,
    /// The account behind it.
    pub account: String,
    /// Who armed it.
    pub by: String,
    /// When it was armed.
    pub activated_at: Timestamp,
    /// Only occurrences after this count: it was armed then, or resumed.
    pub since: Timestamp,
    /// Whether nothing of it fires until it is resumed.
    pub paused: bool,
}

/// Which occurrence it is: what fires at most once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OccurrenceKey {
    /// The schedule.
    pub schedule: String,
    /// The local time that is meant: `2026-12-01 10:00`.
    pub nominal: String,
    /// The zone whose clocks it is read on.
    pub zone: String,
}

/// What became of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OccurrenceOutcome {
    /// A run began.
    Fired(RunId),
    /// It was left out, for this reason.
    Skipped(String),
}

/// An occurrence that fired or was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OccurrenceRecord {
    /// Which one.
    pub key: OccurrenceKey,
    /// Its moment.
    pub at: Timestamp,
    /// What became of it.
    pub outcome: OccurrenceOutcome,
}

/// The part of the ledger that is about what runs by itself.
pub trait ScheduleStore: Send + Sync {
    /// Keeps a schedule as armed, in the place of one of the same name.
    fn activate_schedule(&self, schedule: ActiveSchedule) -> LedgerFuture<'_, ()>;

    /// What is armed, by name. A damaged record does not hide the others.
    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>>;

    /// Has nothing of a schedule fire until it is resumed; whether there is one.
    fn pause_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool>;

    /// Has occurrences after this moment fire again; whether there is such a schedule.
    fn resume_schedule<'a>(&'a self, name: &'a str, since: Timestamp) -> LedgerFuture<'a, bool>;

    /// Forgets a schedule, and keeps its occurrences: none of them ever fires again. Whether there was one.
    fn deactivate_schedule<'a>(&'a self, name: &'a str) -> LedgerFuture<'a, bool>;

    /// Creates a run as [`Ledger::create_run`] does and records that it is of this occurrence, in one transaction.
    ///
    /// Nothing if the occurrence has its record already, unless that is of a run that was never opened: nothing of it was
    /// ever sent, and whoever holds the campaign knows that nobody is about to.
    ///
    /// [`Ledger::create_run`]: super::Ledger::create_run
    fn fire_occurrence<'a>(
        &'a self,
        new: &'a NewRun,
        key: &'a OccurrenceKey,
        at: Timestamp,
    ) -> LedgerFuture<'a, Option<Run>>;

    /// Records that an occurrence was left out; whether it had no record before.
    fn skip_occurrence<'a>(&'a self, key: &'a OccurrenceKey, at: Timestamp, reason: &'a str) -> LedgerFuture<'a, bool>;

    /// Records that an occurrence was left out whose run was never opened; whether that was its record. Only whoever holds
    /// the campaign knows that nobody is about to open it.
    fn abandon_occurrence<'a>(
        &'a self,
        key: &'a OccurrenceKey,
        at: Timestamp,
        reason: &'a str,
    ) -> LedgerFuture<'a, bool>;

    /// The last occurrences of a schedule that were not after this moment, so many at most, the last first. A damaged record
    /// does not hide the others.
    fn list_occurrences<'a>(
        &'a self,
        schedule: &'a str,
        until: Timestamp,
        latest: u32,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>>;

    /// The occurrence that a run is of; nothing if it is of none.
    fn find_run_occurrence(&self, run: RunId) -> LedgerFuture<'_, Option<OccurrenceRecord>>;

    /// What became of an occurrence; nothing if it has no record.
    fn find_occurrence<'a>(&'a self, key: &'a OccurrenceKey) -> LedgerFuture<'a, Option<OccurrenceOutcome>>;
}
