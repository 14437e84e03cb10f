//! The progress of a run: the messages that are done, and the time for the rest. Pure: the time is an
//! argument.

use std::time::Instant;

use super::figures::counts_json;
use super::speed::{Estimate, Speed};
use crate::ledger::{RowState, StateCounts};

/// How far a run is while it is sent.
#[derive(Debug)]
pub struct SendingProgress {
    /// The rows of the run.
    rows: u64,
    /// Planned rows that this command does not send.
    later: u64,
    counts: StateCounts,
    speed: Speed,
}

impl SendingProgress {
    /// The start of a run with this many rows; this command leaves `later` of them planned.
    #[must_use]
    pub fn new(rows: u64, later: u64) -> Self {
        Self { rows, later, counts: StateCounts::default(), speed: Speed::default() }
    }

    /// The rows stand like this now.
    pub fn update_counts(&mut self, now: Instant, counts: &StateCounts) {
        self.counts.clone_from(counts);
        self.speed.update(now, self.count_done());
    }

    /// Nothing is sent for a while; there is no estimate until it goes on.
    pub fn pause(&mut self) {
        self.speed.pause();
    }

    /// The messages of the run: its rows without skipped and invalid ones, and without those that this command leaves planned.
    #[must_use]
    pub fn total(&self) -> u64 {
        let never = self.counts.get(RowState::Skipped) + self.counts.get(RowState::Invalid);
        self.rows.saturating_sub(never + self.later)
    }

    /// The rows by state; none before the first news.
    #[must_use]
    pub fn counts(&self) -> &StateCounts {
        &self.counts
    }

    /// The messages that are done; 0 before the first report.
    #[must_use]
    pub fn count_done(&self) -> u64 {
        if self.counts.total() == 0 {
            return 0;
        }
        let planned = self.counts.get(RowState::Planned).saturating_sub(self.later);
        self.total().saturating_sub(planned + self.counts.get(RowState::Sending))
    }

    /// How far it is, for programs.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let estimate = self.estimate();
        serde_json::json!({
            "event": "progress",
            "rows": self.rows,
            "messages": self.total(),
            "through": self.count_done(),
            "counts": counts_json(&self.counts),
            "rate": estimate.map(|estimate| estimate.rate),
            "seconds_left": estimate.map(|estimate| estimate.left.as_secs()),
        })
    }

    /// The speed, and the time that is left at it; nothing while there is none to tell.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        self.speed.estimate(self.total().saturating_sub(self.count_done()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn progress_counts_only_messages_that_this_call_sends() {
        let (mut progress, mut counts, start) = (SendingProgress::new(10, 3), StateCounts::default(), Instant::now());
        for (state, rows) in [(RowState::Planned, 6), (RowState::Skipped, 3), (RowState::Invalid, 1)] {
            counts.add(state, rows);
        }
        progress.update_counts(start, &counts);
        assert_eq!((progress.count_done(), progress.total()), (0, 3));
        counts.shift(RowState::Planned, RowState::Accepted, 1);
        counts.shift(RowState::Planned, RowState::Sending, 1);
        progress.update_counts(start + Duration::from_secs(2), &counts);
        assert_eq!((progress.count_done(), progress.total()), (1, 3));
        assert_eq!(progress.estimate().map(|estimate| estimate.left), Some(Duration::from_secs(4)));
        // A recipient opts out while the run is sent.
        counts.shift(RowState::Planned, RowState::Skipped, 1);
        counts.shift(RowState::Sending, RowState::Accepted, 1);
        progress.update_counts(start + Duration::from_secs(3), &counts);
        assert_eq!((progress.count_done(), progress.total()), (2, 2));
        let told = progress.to_json();
        assert_eq!((&told["rows"], &told["messages"], &told["through"]), (&10.into(), &2.into(), &2.into()));
    }
}
