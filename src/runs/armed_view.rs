//! What is armed, as it stands.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Adapters, Error, ScheduleChange, SkippedOccurrence, check_schedule, find_schedule_damage, list_recent_occurrences,
    load_schedule,
};
use crate::calendar::{Occurrence, Schedule};
use crate::finding::BriefFinding;
use crate::ledger::{ActiveSchedule, DamagedSchedule};

/// Whether what is armed fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleStatus {
    /// It fires when it is due.
    Active,
    /// It was paused, and waits for somebody to resume it.
    Paused,
    /// It is not what was armed any more, and waits for somebody to arm it anew.
    Changed(ScheduleChange),
    /// A record in the ledger that it needs is damaged, so nothing of it fires.
    Damaged(String),
}

/// A schedule that is armed, as it stands.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    /// The campaign's name, which is the schedule's.
    pub name: String,
    /// The campaign file.
    pub file: String,
    /// Only occurrences after this count.
    pub since: Timestamp,
    /// Whether it fires.
    pub state: ScheduleStatus,
    /// When it is due; nothing where its file changed or a record of it is damaged.
    pub schedule: Option<Schedule>,
    /// The next occurrence that fires.
    pub next: Option<Occurrence>,
    /// The last occurrence, if it was skipped, until a later one fires.
    pub skipped: Option<SkippedOccurrence>,
    /// The findings about its file as it is now.
    pub findings: Vec<BriefFinding>,
}

impl ScheduleStatus {
    /// Its word for programs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "armed",
            Self::Paused => "paused",
            Self::Changed(_) => "changed",
            Self::Damaged(_) => "damaged",
        }
    }

    /// What is damaged.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        match self {
            Self::Damaged(problem) => Some(problem),
            Self::Active | Self::Paused | Self::Changed(_) => None,
        }
    }
}

impl ScheduleView {
    /// It for programs, as `schedule list --json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let next = self.next.as_ref().map(Occurrence::format_moment);
        let mut object = json!({ "name": self.name, "file": self.file, "state": self.state.as_str(), "next": next });
        if let Some(problem) = self.state.problem() {
            object["problem"] = problem.into();
        }
        if let Some(skipped) = &self.skipped {
            object["skipped"] = skipped.to_json();
        }
        if !self.findings.is_empty() {
            object["findings"] = json!(self.findings);
        }
        object
    }

    async fn load(adapters: &Adapters, armed: ActiveSchedule) -> Result<Self, Error> {
        let now = (adapters.clock)();
        let damage = find_schedule_damage(adapters.ledger.as_ref(), &armed, now).await?;
        // The records are known to be intact.
        let last = match &damage {
            Some(_) => Vec::new(),
            None => list_recent_occurrences(adapters.ledger.as_ref(), &armed, now, 1).await?,
        };
        let skipped = last.first().and_then(SkippedOccurrence::from_record);
        let (state, schedule) = match (damage, load_schedule(adapters, &armed).await?) {
            (Some(error), _) => (ScheduleStatus::Damaged(error.describe_damage()), None),
            (None, Ok(schedule)) if armed.paused => (ScheduleStatus::Paused, Some(schedule)),
            (None, Ok(schedule)) => (ScheduleStatus::Active, Some(schedule)),
            (None, Err(change)) => (ScheduleStatus::Changed(change), None),
        };
        let findings = match state {
            ScheduleStatus::Changed(ScheduleChange::Unreadable) => check_schedule(adapters, &armed).await?,
            _ => Vec::new(),
        };
        let due = schedule.as_ref().filter(|_| state == ScheduleStatus::Active);
        let next = due.and_then(|schedule| schedule.occurrences_after(now.max(armed.since)).next());
        Ok(Self { name: armed.name, file: armed.file, since: armed.since, state, schedule, next, skipped, findings })
    }
}

impl From<DamagedSchedule> for ScheduleView {
    fn from(DamagedSchedule { name, file, error }: DamagedSchedule) -> Self {
        let state = ScheduleStatus::Damaged(error.describe_damage());
        Self {
            name,
            file,
            since: Timestamp::MAX,
            state,
            schedule: None,
            next: None,
            skipped: None,
            findings: Vec::new(),
        }
    }
}

/// Everything that is armed, by name. A damaged schedule is shown as such, beside the others.
///
/// # Errors
/// When the ledger or a file cannot be looked at.
pub async fn load_schedule_views(adapters: &Adapters) -> Result<Vec<ScheduleView>, Error> {
    let mut views = Vec::new();
    for stored in adapters.ledger.list_schedules().await? {
        views.push(match stored {
            Ok(armed) => ScheduleView::load(adapters, armed).await?,
            Err(damaged) => damaged.into(),
        });
    }
    Ok(views)
}
