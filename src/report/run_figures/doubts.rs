//! The rows in doubt of a run: how many, since when, and the first of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{OperationOutcome, Row};
use crate::ledger::{ENDED_EARLY, RowChange, RowState};
use crate::report::next_step::IN_DOUBT_STATES;
use crate::report::row_records::RowRecord;

/// How many rows are named.
const MAX_NAMED_ROWS: usize = 20;

/// The rows in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowsInDoubt {
    /// When the first of them was sent.
    pub since: Option<Timestamp>,
    /// The first rows.
    pub rows: Vec<RowInDoubt>,
}

/// A row in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowInDoubt {
    /// Its row in the list.
    pub row: u32,
    /// In doubt, or unresolved.
    pub state: RowState,
    /// When it was sent, in seconds since the beginning of 1970.
    pub sent_at: i64,
    /// What was seen instead of a proof.
    pub why: String,
    /// How often the gateway was asked until nothing was left to ask; nothing where it can be asked still.
    pub asked: Option<u32>,
}

impl RowsInDoubt {
    /// Adds a row, if it is in doubt.
    pub(super) fn add_row(&mut self, row: Row, record: &RowRecord) {
        if !IN_DOUBT_STATES.contains(&record.state) {
            return;
        }
        self.since = Some(self.since.map_or(record.begun_at, |since| since.min(record.begun_at)));
        if self.rows.len() < MAX_NAMED_ROWS {
            self.rows.push(RowInDoubt::from_record(row, record));
        }
    }
}

impl RowInDoubt {
    fn from_record(row: Row, record: &RowRecord) -> Self {
        let why = match &record.settled {
            Some((_, OperationOutcome::InDoubt { reason })) => reason.to_string(),
            Some(_) => String::new(),
            None => ENDED_EARLY.to_owned(),
        };
        let last = record.amendment.as_ref().and_then(|amendment| amendment.last.as_ref());
        let asked = match last {
            Some((_, RowChange::NotFound { asked } | RowChange::Unresolved { asked })) => Some(*asked),
            _ => None,
        };
        Self { row: row.get(), state: record.state, sent_at: record.begun_at.as_second(), why, asked }
    }
}
