//! How far a run is while it is sent: the rows that are through, and how long the rest takes. Pure: the time is an
//! argument.

use std::time::Instant;

use super::figures::counts_json;
use super::speed::{Estimate, Speed};
use crate::ledger::{State, StateCounts};

/// How far a run is while it is sent.
#[derive(Debug)]
pub struct SendingProgress {
    total: u64,
    counts: StateCounts,
    speed: Speed,
}

impl SendingProgress {
    /// The beginning of a run with so many rows.
    #[must_use]
    pub fn new(total: u64) -> Self {
        Self { total, counts: StateCounts::default(), speed: Speed::default() }
    }

    /// The rows stand like this now.
    pub fn settled(&mut self, now: Instant, counts: &StateCounts) {
        self.counts.clone_from(counts);
        self.speed.through(now, self.through());
    }

    /// Nothing is sent for a while; there is no estimate until it goes on.
    pub fn waits(&mut self) {
        self.speed.waits();
    }

    /// The rows of the run.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The rows by state; none before the first news.
    #[must_use]
    pub fn counts(&self) -> &StateCounts {
        &self.counts
    }

    /// The rows that need nothing more; none before the first news.
    #[must_use]
    pub fn through(&self) -> u64 {
        if self.counts.total() == 0 {
            return 0;
        }
        self.total.saturating_sub(self.counts.get(State::Planned) + self.counts.get(State::Sending))
    }

    /// How far it is, for programs.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        let estimate = self.estimate();
        serde_json::json!({
            "event": "progress",
            "rows": self.total,
            "through": self.through(),
            "counts": counts_json(&self.counts),
            "rate": estimate.map(|estimate| estimate.rate),
            "seconds_left": estimate.map(|estimate| estimate.left.as_secs()),
        })
    }

    /// The speed, and the time that is left at it; nothing while there is none to tell.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        self.speed.estimate(self.total.saturating_sub(self.through()))
    }
}
