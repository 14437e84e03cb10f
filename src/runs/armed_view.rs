//! What is armed, as it stands.

use serde_json::{Value, json};

use super::{Adapters, ArmedChange, Error, look_at_armed};
use crate::calendar::{Occurrence, Schedule};
use crate::ledger::ArmedSchedule;

/// Whether what is armed fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmedState {
    /// It fires when it is due.
    Armed,
    /// It was paused, and waits for somebody to resume it.
    Paused,
    /// It is not what was armed any more, and waits for somebody to arm it anew.
    Changed(ArmedChange),
}

/// A schedule that is armed, as it stands.
#[derive(Clone, Debug)]
pub struct ArmedView {
    /// As it was armed.
    pub armed: ArmedSchedule,
    /// Whether it fires.
    pub state: ArmedState,
    /// When it is due; nothing where its file changed.
    pub schedule: Option<Schedule>,
    /// The next occurrence that fires.
    pub next: Option<Occurrence>,
}

impl ArmedState {
    /// Its word for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Armed => "armed",
            Self::Paused => "paused",
            Self::Changed(_) => "changed",
        }
    }
}

impl ArmedView {
    /// It for programs, as `schedule list --json` prints it.
    #[must_use]
    pub fn json(&self) -> Value {
        let (name, file) = (&self.armed.name, &self.armed.file);
        let next = self.next.as_ref().map(Occurrence::moment);
        json!({ "name": name, "file": file, "state": self.state.word(), "next": next })
    }
}

/// Everything that is armed, by name.
///
/// # Errors
/// When the ledger or a file cannot be looked at.
pub async fn armed_views(adapters: &Adapters) -> Result<Vec<ArmedView>, Error> {
    let mut views = Vec::new();
    for armed in adapters.ledger.schedules().await? {
        let (state, schedule) = match look_at_armed(adapters, &armed).await? {
            Ok(schedule) if armed.paused => (ArmedState::Paused, Some(schedule)),
            Ok(schedule) => (ArmedState::Armed, Some(schedule)),
            Err(change) => (ArmedState::Changed(change), None),
        };
        let from = (adapters.clock)().max(armed.since);
        let due = schedule.as_ref().filter(|_| state == ArmedState::Armed);
        let next = due.and_then(|schedule| schedule.after(from).next());
        views.push(ArmedView { armed, state, schedule, next });
    }
    Ok(views)
}
