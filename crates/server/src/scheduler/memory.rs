//! The daemon's memory of a schedule: what it has handled, and the occurrences that wait for a list, an approval or the
//! campaign lock.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use campaign_core::calendar::{Occurrence, Schedule};
use campaign_ledger::{ActiveSchedule, Ledger, LedgerError};
use campaign_runs::{ScheduleChange, handled_until, list_recent_occurrences};

/// Returns the time from `now` to `time`, or zero if `time` is in the past.
pub(super) fn time_until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default()
}

/// The latest time at which an occurrence can start. The grace period begins when the occurrence is due or when its
/// list arrives, whichever is later. The maximum delay always counts from the due time.
pub(super) fn start_deadline(schedule: &Schedule, occurrence: &Occurrence, list: Option<FileStat>) -> Timestamp {
    let arrived = list.filter(|_| schedule.wait_for_file.is_some()).and_then(FileStat::modified_at);
    let grace_start = arrived.map_or(occurrence.at, |arrived| arrived.max(occurrence.at));
    let after = |time: Timestamp, delay| time.checked_add(delay).unwrap_or(Timestamp::MAX);
    after(grace_start, schedule.grace).min(after(occurrence.at, schedule.max_delay()))
}

/// The daemon's memory of one schedule. Everything that must survive a restart is in the ledger.
#[derive(Debug)]
pub(super) struct ScheduleMemory {
    /// All occurrences up to this time were started or skipped.
    pub(super) handled: Timestamp,
    /// The time of the schedule's activation, as last read; earlier occurrences do not count.
    pub(super) since: Timestamp,
    /// The schedule at the last check that found the campaign unchanged.
    pub(super) schedule: Option<Schedule>,
    /// The time of that check.
    pub(super) checked_at: Option<Timestamp>,
    /// The reported change since the activation of the schedule.
    pub(super) change: Option<ScheduleChange>,
    /// A description of the damaged record that stops the schedule.
    pub(super) damage: Option<String>,
    /// Whether the daemon has looked for an interrupted run of an earlier daemon.
    pub(super) resume_checked: bool,
    /// The occurrence whose run is being started or sent.
    pub(super) running: Option<Occurrence>,
    /// The occurrence that waits for its list.
    pub(super) waiting: Option<AwaitingList>,
    /// The occurrence that waits for an approval.
    pub(super) unapproved: Option<AwaitingApproval>,
    /// The occurrence that waits for the campaign lock.
    pub(super) locked: Option<AwaitingLock>,
}

/// An occurrence that waits for the campaign lock.
#[derive(Debug)]
pub(super) struct AwaitingLock {
    pub(super) occurrence: Occurrence,
    /// The deadline.
    pub(super) until: Timestamp,
    /// The time of the last attempt.
    pub(super) tried_at: Timestamp,
}

/// An occurrence that waits for an approval.
#[derive(Debug)]
pub(super) struct AwaitingApproval {
    pub(super) occurrence: Occurrence,
    /// The digest of the occurrence's plan.
    pub(super) digest: String,
    /// The deadline.
    pub(super) until: Timestamp,
    /// The number of approvals at the last attempt.
    pub(super) approvals: usize,
}

/// An occurrence that waits until its list is complete.
#[derive(Debug)]
pub struct AwaitingList {
    /// The due occurrence, which starts once its list is complete.
    pub occurrence: Occurrence,
    /// The path of the list.
    pub list: PathBuf,
    /// The deadline.
    pub until: Timestamp,
    watch: ListWatch,
}

/// Whether and when a due occurrence of a schedule with `wait_for_file` starts.
#[derive(Debug)]
pub enum ListStart {
    /// The occurrence starts at once, because its list is not a file.
    Now,
    /// The occurrence does not start, because it is too late.
    TooLate,
    /// The occurrence starts once the list is complete.
    Awaits(AwaitingList),
}

/// The state of an awaited list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListArrival {
    /// The list is complete.
    Complete,
    /// The list is missing or might still be incomplete.
    Pending,
    /// The list did not arrive before the deadline.
    Overdue,
}

impl ListStart {
    /// Determines whether and when an occurrence that is due now starts. `list` is the path of its list, if the list is
    /// a file.
    pub fn determine(schedule: &Schedule, occurrence: Occurrence, list: Option<PathBuf>, now: Timestamp) -> Self {
        let stat = list.as_deref().and_then(FileStat::read);
        let is_missing = list.is_some() && stat.is_none();
        if !is_missing && now > start_deadline(schedule, &occurrence, stat) {
            return Self::TooLate;
        }
        let Some(list) = list else { return Self::Now };
        let until = occurrence.at.checked_add(schedule.wait_for_file.unwrap_or_default()).unwrap_or(Timestamp::MAX);
        Self::Awaits(AwaitingList { occurrence, list, until, watch: ListWatch::default() })
    }
}

impl AwaitingList {
    /// Whether the list does not exist.
    pub fn is_missing(&self) -> bool {
        FileStat::read(&self.list).is_none()
    }

    /// Checks whether the list has arrived and is complete.
    pub fn check_arrival(&mut self, now: Timestamp) -> ListArrival {
        match self.watch.record_and_check_stability(FileStat::read(&self.list), now) {
            true => ListArrival::Complete,
            false if now > self.until => ListArrival::Overdue,
            false => ListArrival::Pending,
        }
    }
}

impl ScheduleMemory {
    /// Loads the memory of a schedule from the records of the ledger.
    pub(super) async fn load(
        ledger: &dyn Ledger,
        active: &ActiveSchedule,
        now: Timestamp,
    ) -> Result<Self, LedgerError> {
        Ok(Self {
            handled: read_handled_until(ledger, active, now).await?,
            since: active.since,
            schedule: None,
            checked_at: None,
            change: None,
            damage: None,
            resume_checked: false,
            running: None,
            waiting: None,
            unapproved: None,
            locked: None,
        })
    }

    /// Whether an occurrence was started or is waiting. Such an occurrence might have no record in the ledger yet.
    pub(super) fn is_in_progress(&self, occurrence: &Occurrence) -> bool {
        let waiting = self.waiting.as_ref().map(|waiting| &waiting.occurrence);
        let unapproved = self.unapproved.as_ref().map(|unapproved| &unapproved.occurrence);
        let locked = self.locked.as_ref().map(|locked| &locked.occurrence);
        [self.running.as_ref(), waiting, unapproved, locked].into_iter().flatten().any(|current| current == occurrence)
    }

    /// Forgets waiting occurrences that are in the future again after the clock was set back. These occurrences become
    /// due again at the scheduled time.
    pub(super) fn handle_clock_set_back(&mut self, now: Timestamp) {
        self.waiting.take_if(|waiting| waiting.occurrence.at > now);
        self.unapproved.take_if(|unapproved| unapproved.occurrence.at > now);
        self.locked.take_if(|locked| locked.occurrence.at > now);
    }
}

/// Reads the time up to which every occurrence counts as handled. Records in the future come from a wrong clock and are
/// ignored.
pub(super) async fn read_handled_until(
    ledger: &dyn Ledger,
    active: &ActiveSchedule,
    now: Timestamp,
) -> Result<Timestamp, LedgerError> {
    let last = list_recent_occurrences(ledger, active, now, 1).await?.pop();
    Ok(handled_until(active, last.as_ref()))
}

/// The time for which a file must be unchanged to count as complete.
const STABLE_TIME: Duration = Duration::from_secs(5);

/// The size and modification time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStat {
    size: u64,
    changed: Option<SystemTime>,
}

impl FileStat {
    /// Reads the metadata of a file; `None` if no regular file has this path.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { size: metadata.len(), changed: metadata.modified().ok() })
    }

    /// The modification time, if known.
    pub(super) fn modified_at(self) -> Option<Timestamp> {
        self.changed.and_then(|changed| Timestamp::try_from(changed).ok())
    }
}

/// The latest metadata of a file, and the time since which it has not changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListWatch(Option<(FileStat, Timestamp)>);

impl ListWatch {
    /// Records metadata. Returns whether the file has been unchanged long enough to be complete.
    pub(super) fn record_and_check_stability(&mut self, stat: Option<FileStat>, now: Timestamp) -> bool {
        let Some(stat) = stat else {
            self.0 = None;
            return false;
        };
        match self.0 {
            // If the clock was set back, the wait restarts.
            Some((known, since)) if known == stat && since <= now => {
                now.duration_since(since).unsigned_abs() >= STABLE_TIME
            }
            _ => {
                self.0 = Some((stat, now));
                false
            }
        }
    }
}

#[cfg(test)]
mod list_watch_tests {
    use crate::scheduler::memory::*;

    #[test]
    fn list_is_complete_after_five_seconds_without_change() {
        let now = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let stat =
            |size, second| Some(FileStat { size, changed: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second)) });
        let mut watch = ListWatch::default();
        for (second, observed_stat, stable) in [
            (0, None, false),
            (1, stat(10, 1), false),
            (5, stat(10, 1), false),
            (6, stat(20, 1), false),
            (10, stat(20, 9), false),
            (14, stat(20, 9), false),
            (15, stat(20, 9), true),
            (16, None, false),
            (17, stat(20, 9), false),
            (3, stat(20, 9), false),
            (8, stat(20, 9), true),
        ] {
            assert_eq!(watch.record_and_check_stability(observed_stat, now(second)), stable, "{second}");
        }
    }
}
