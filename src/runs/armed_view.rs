//! What is armed, as it stands.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Adapters, ArmedChange, Error, SkippedOccurrence, findings_of_armed, look_at_armed, recent_occurrences,
    schedule_damage,
};
use crate::calendar::{Occurrence, Schedule};
use crate::finding::BriefFinding;
use crate::ledger::{ArmedSchedule, DamagedSchedule};

/// Whether what is armed fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArmedState {
    /// It fires when it is due.
    Armed,
    /// It was paused, and waits for somebody to resume it.
    Paused,
    /// It is not what was armed any more, and waits for somebody to arm it anew.
    Changed(ArmedChange),
    /// A record in the ledger that it needs is damaged, so nothing of it fires.
    Damaged(String),
}

/// A schedule that is armed, as it stands.
#[derive(Clone, Debug)]
pub struct ArmedView {
    /// The campaign's name, which is the schedule's.
    pub name: String,
    /// The campaign file.
    pub file: String,
    /// Only occurrences after this count.
    pub since: Timestamp,
    /// Whether it fires.
    pub state: ArmedState,
    /// When it is due; nothing where its file changed or a record of it is damaged.
    pub schedule: Option<Schedule>,
    /// The next occurrence that fires.
    pub next: Option<Occurrence>,
    /// The last occurrence, if it was skipped, until a later one fires.
    pub skipped: Option<SkippedOccurrence>,
    /// The findings about its file as it is now.
    pub findings: Vec<BriefFinding>,
}

impl ArmedState {
    /// Its word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Armed => "armed",
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
            Self::Armed | Self::Paused | Self::Changed(_) => None,
        }
    }
}

impl ArmedView {
    /// It for programs, as `schedule list --json` prints it.
    #[must_use]
    pub fn json(&self) -> Value {
        let next = self.next.as_ref().map(Occurrence::moment);
        let mut object = json!({ "name": self.name, "file": self.file, "state": self.state.word(), "next": next });
        if let Some(problem) = self.state.problem() {
            object["problem"] = problem.into();
        }
        if let Some(skipped) = &self.skipped {
            object["skipped"] = skipped.json();
        }
        if !self.findings.is_empty() {
            object["findings"] = json!(self.findings);
        }
        object
    }

    async fn of(adapters: &Adapters, armed: ArmedSchedule) -> Result<Self, Error> {
        let now = (adapters.clock)();
        let damage = schedule_damage(adapters.ledger.as_ref(), &armed, now).await?;
        // The records are known to be intact.
        let last = match &damage {
            Some(_) => Vec::new(),
            None => recent_occurrences(adapters.ledger.as_ref(), &armed, now, 1).await?,
        };
        let skipped = last.first().and_then(SkippedOccurrence::of);
        let (state, schedule) = match (damage, look_at_armed(adapters, &armed).await?) {
            (Some(error), _) => (ArmedState::Damaged(error.damage()), None),
            (None, Ok(schedule)) if armed.paused => (ArmedState::Paused, Some(schedule)),
            (None, Ok(schedule)) => (ArmedState::Armed, Some(schedule)),
            (None, Err(change)) => (ArmedState::Changed(change), None),
        };
        let findings = match state {
            ArmedState::Changed(ArmedChange::Unreadable) => findings_of_armed(adapters, &armed).await?,
            _ => Vec::new(),
        };
        let due = schedule.as_ref().filter(|_| state == ArmedState::Armed);
        let next = due.and_then(|schedule| schedule.after(now.max(armed.since)).next());
        Ok(Self { name: armed.name, file: armed.file, since: armed.since, state, schedule, next, skipped, findings })
    }
}

impl From<DamagedSchedule> for ArmedView {
    fn from(DamagedSchedule { name, file, error }: DamagedSchedule) -> Self {
        let state = ArmedState::Damaged(error.damage());
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
pub async fn armed_views(adapters: &Adapters) -> Result<Vec<ArmedView>, Error> {
    let mut views = Vec::new();
    for stored in adapters.ledger.schedules().await? {
        views.push(match stored {
            Ok(armed) => ArmedView::of(adapters, armed).await?,
            Err(damaged) => damaged.into(),
        });
    }
    Ok(views)
}
