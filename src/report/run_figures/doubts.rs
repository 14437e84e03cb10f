//! The rows in doubt of a run: how many, since when, and the first of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{Outcome, Row};
use crate::ledger::{Change, ENDED_EARLY, State};
use crate::report::next_step::DOUBTFUL;
use crate::report::row_records::RowRecord;

/// How many rows are named.
const NAMED: usize = 20;

/// The rows in doubt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// When the first of them was sent.
    pub since: Option<Timestamp>,
    /// The first rows.
    pub rows: Vec<DoubtfulRow>,
}

/// A row in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoubtfulRow {
    /// Its row in the list.
    pub row: u32,
    /// In doubt, or unresolved.
    pub state: State,
    /// When it was sent, in seconds since the beginning of 1970.
    pub sent_at: i64,
    /// What was seen instead of a proof.
    pub why: String,
    /// How often the gateway was asked until nothing was left to ask; nothing where it can be asked still.
    pub asked: Option<u32>,
}

impl Doubts {
    /// Adds a row, if it is in doubt.
    pub(super) fn add(&mut self, row: Row, record: &RowRecord) {
        if !DOUBTFUL.contains(&record.state) {
            return;
        }
        self.since = Some(self.since.map_or(record.begun_at, |since| since.min(record.begun_at)));
        if self.rows.len() < NAMED {
            self.rows.push(DoubtfulRow::of(row, record));
        }
    }
}

impl DoubtfulRow {
    fn of(row: Row, record: &RowRecord) -> Self {
        let why = match &record.settled {
            Some((_, Outcome::InDoubt { reason })) => reason.to_string(),
            Some(_) => String::new(),
            None => ENDED_EARLY.to_owned(),
        };
        let last = record.amendment.as_ref().and_then(|amendment| amendment.last.as_ref());
        let asked = match last {
            Some((_, Change::NotFound { asked } | Change::Unresolved { asked })) => Some(*asked),
            _ => None,
        };
        Self { row: row.get(), state: record.state, sent_at: record.begun_at.as_second(), why, asked }
    }
}
