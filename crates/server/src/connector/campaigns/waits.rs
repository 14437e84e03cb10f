//! Pauses of the runs that this process sends: why nothing is sent now, and until when.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::connector::tools::text_schema;
use campaign_core::finding::escape_to_one_line;

/// A pause of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunWait {
    /// The reason, on one line.
    reason: String,
    /// The end of the pause.
    until: Timestamp,
}

impl RunWait {
    pub(super) fn new(reason: &str, until: Timestamp) -> Self {
        Self { reason: escape_to_one_line(reason), until }
    }

    /// Adds the pause to the result of a tool.
    pub(super) fn add_to(&self, result: &mut Value) {
        result["waiting_until"] = json!(self.until.to_string());
        result["waiting_for"] = json!(self.reason);
    }
}

/// The schemas of the members that [`RunWait::add_to`] adds.
pub(super) fn wait_schemas() -> Value {
    json!({
        "waiting_until": text_schema("The end of the current pause, for example when the sending window opens. Nothing \
                                      is sent before that."),
        "waiting_for": text_schema("The reason for the pause."),
    })
}

/// The current pauses, by run.
#[derive(Debug, Default)]
pub(super) struct RunWaits(Mutex<HashMap<String, RunWait>>);

impl RunWaits {
    /// Records a pause of a run, or its end.
    pub(super) fn record(&self, run: &str, wait: Option<RunWait>) {
        match wait {
            Some(wait) => drop(self.lock().insert(run.to_owned(), wait)),
            None => drop(self.lock().remove(run)),
        }
    }

    /// The pause of a run at this time.
    pub(super) fn find(&self, run: &str, now: Timestamp) -> Option<RunWait> {
        self.lock().get(run).filter(|wait| wait.until > now).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, RunWait>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
