//! Active schedules and their occurrences in the ledger.

use jiff::Timestamp;

use super::{DamagedOccurrence, DamagedSchedule, LedgerError, LedgerFuture, RunId};

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
    /// The person or program that activated the schedule.
    pub by: String,
    /// The time of the activation.
    pub activated_at: Timestamp,
    /// Only occurrences after this moment count: the activation, or the last resumption.
    pub since: Timestamp,
    /// Whether the schedule is paused.
    pub paused: bool,
}

/// The identity of an occurrence, which fires at most once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OccurrenceKey {
    /// The name of the schedule, which is also the campaign's name.
    pub schedule: String,
    /// The scheduled local time: `2026-12-01 10:00`.
    pub nominal: String,
    /// The time zone.
    pub zone: String,
}

/// An occurrence with its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledOccurrence {
    /// The identity of the occurrence.
    pub key: OccurrenceKey,
    /// The moment of the occurrence.
    pub at: Timestamp,
}

/// Whether an occurrence started a run or was skipped.
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
    /// The identity of the occurrence.
    pub key: OccurrenceKey,
    /// The moment of the occurrence.
    pub at: Timestamp,
    /// The outcome of the occurrence.
    pub outcome: OccurrenceOutcome,
}

/// A change to the records of schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleUpdate {
    /// Activates a schedule, and replaces any schedule with the same name.
    Activate(ActiveSchedule),
    /// Pauses, resumes or removes the active schedule with this name. A removed schedule keeps its occurrences, which
    /// never fire again.
    Order {
        /// The name of the schedule, which is also the campaign's name.
        name: String,
        /// Whether to pause, resume or remove the schedule.
        order: ScheduleOrder,
    },
    /// Records that an occurrence was skipped.
    Skip {
        /// The skipped occurrence, whose earlier record is replaced, if there is one.
        occurrence: ScheduledOccurrence,
        /// The reason, as text.
        reason: String,
        /// The condition under which occurrences may be skipped.
        condition: SkipCondition,
    },
}

/// An order about an active schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleOrder {
    /// The schedule does not fire until it is resumed.
    Pause,
    /// Occurrences after this time fire again.
    Resume {
        /// The moment.
        since: Timestamp,
    },
    /// The schedule is removed.
    Remove,
}

/// The condition under which occurrences may be recorded as skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipCondition {
    /// Only an occurrence without a record.
    NotRecorded,
    /// Only an occurrence whose run was never opened. The caller's campaign lock ensures that no process is about to
    /// open it.
    RunNotOpened,
}

/// Selects recorded occurrences.
#[derive(Clone, Copy, Debug)]
pub enum OccurrenceFilter<'a> {
    /// The latest occurrences of a schedule up to a moment, latest first.
    Latest {
        /// The name of the schedule, which can be removed already.
        schedule: &'a str,
        /// The moment.
        until: Timestamp,
        /// The maximum number of occurrences.
        most: u32,
    },
    /// The occurrence with this identity.
    Key(&'a OccurrenceKey),
    /// The occurrence that started this run.
    Run(RunId),
}

/// Schedules and occurrences in a ledger.
pub trait ScheduleStore: Send + Sync {
    /// Makes a change in one transaction. Returns `false` and changes nothing if no active schedule has the name, or if
    /// the occurrence does not meet the condition.
    fn update_schedules(&self, change: ScheduleUpdate) -> LedgerFuture<'_, bool>;

    /// The active schedules, ordered by name. A damaged schedule is returned as an error and does not hide the other
    /// schedules.
    fn list_schedules(&self) -> LedgerFuture<'_, Vec<Result<ActiveSchedule, DamagedSchedule>>>;

    /// The recorded occurrences that match the filter. Among the latest occurrences, a damaged record does not hide the
    /// other records.
    fn list_occurrences<'a>(
        &'a self,
        filter: OccurrenceFilter<'a>,
    ) -> LedgerFuture<'a, Vec<Result<OccurrenceRecord, DamagedOccurrence>>>;
}

/// The first recorded occurrence that matches the filter.
///
/// # Errors
/// If the ledger cannot be read, or the record is damaged.
pub async fn find_occurrence(
    ledger: &(impl ScheduleStore + ?Sized),
    filter: OccurrenceFilter<'_>,
) -> Result<Option<OccurrenceRecord>, LedgerError> {
    let first = ledger.list_occurrences(filter).await?.into_iter().next();
    first.transpose().map_err(|damaged| damaged.error)
}

/// Whether an occurrence may start a run: it is not recorded, or its run was never opened and therefore sent nothing.
pub(crate) fn may_fire(recorded: Option<&OccurrenceOutcome>, was_opened: bool) -> bool {
    match recorded {
        None => true,
        Some(OccurrenceOutcome::Fired(_)) => !was_opened,
        Some(OccurrenceOutcome::Skipped(_)) => false,
    }
}

/// Whether an occurrence may be recorded as skipped under this condition.
pub(crate) fn may_skip(condition: SkipCondition, recorded: Option<&OccurrenceOutcome>, was_opened: bool) -> bool {
    match condition {
        SkipCondition::NotRecorded => recorded.is_none(),
        SkipCondition::RunNotOpened => matches!(recorded, Some(OccurrenceOutcome::Fired(_))) && !was_opened,
    }
}

impl ScheduleOrder {
    /// Applies the order to a schedule. Returns `None` if the schedule is removed.
    pub(crate) fn apply(self, schedule: ActiveSchedule) -> Option<ActiveSchedule> {
        match self {
            Self::Pause => Some(ActiveSchedule { paused: true, ..schedule }),
            Self::Resume { since } => Some(ActiveSchedule { paused: false, since, ..schedule }),
            Self::Remove => None,
        }
    }
}
