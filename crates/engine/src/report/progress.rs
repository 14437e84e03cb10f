//! Progress of a run: messages that are done, speed, and time left. This module does no I/O: the time is an argument.

use std::time::{Duration, Instant};

use super::format::counts_json;
use campaign_ledger::{RowState, StateCounts};

/// The progress of a run while it is sent.
#[derive(Debug)]
pub struct SendingProgress {
    /// The rows of the run.
    rows: u64,
    /// Planned rows that this command does not send.
    later: u64,
    /// Messages that earlier commands of the run have processed.
    earlier: u64,
    counts: StateCounts,
    speed: Speed,
}

impl SendingProgress {
    /// The progress at the start of a run with `rows` rows; this command leaves `later` of these rows planned.
    pub fn new(rows: u64, later: u64) -> Self {
        Self { rows, later, earlier: 0, counts: StateCounts::default(), speed: Speed::default() }
    }

    /// The progress of a command that begins with these counts. Earlier commands of the run have processed the messages
    /// that are neither planned nor excluded.
    #[must_use]
    pub fn starting_from(self, counts: StateCounts) -> Self {
        let unprocessed = [RowState::Planned, RowState::Skipped, RowState::Invalid].map(|state| counts.get(state));
        let earlier = counts.total().saturating_sub(unprocessed.into_iter().sum());
        Self { earlier, counts, ..self }
    }

    /// Replaces the counts, and updates the speed with the messages done at `now`.
    pub fn update_counts(&mut self, now: Instant, counts: &StateCounts) {
        self.counts.clone_from(counts);
        self.speed.update(now, self.count_done());
    }

    /// Records that sending pauses. The estimate is unknown until sending continues.
    pub fn pause(&mut self) {
        self.speed.pause();
    }

    /// The number of messages in the run: all rows except skipped rows, invalid rows and rows that this command leaves
    /// planned.
    pub fn total(&self) -> u64 {
        let excluded = self.counts.get(RowState::Skipped) + self.counts.get(RowState::Invalid);
        self.rows.saturating_sub(excluded + self.later)
    }

    /// The rows by state; empty before the first update, unless the initial counts are known.
    pub fn counts(&self) -> &StateCounts {
        &self.counts
    }

    /// The number of messages that are done; 0 while the counts are unknown.
    pub fn count_done(&self) -> u64 {
        if self.counts.total() == 0 {
            return 0;
        }
        let planned = self.counts.get(RowState::Planned).saturating_sub(self.later);
        self.total().saturating_sub(planned + self.counts.get(RowState::Sending))
    }

    /// The progress of this command as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let estimate = self.estimate();
        serde_json::json!({
            "event": "progress",
            "rows": self.rows,
            "messages": self.total().saturating_sub(self.earlier),
            "through": self.count_done().saturating_sub(self.earlier),
            "counts": counts_json(&self.counts),
            "rate": estimate.map(|estimate| estimate.rate),
            "seconds_left": estimate.map(|estimate| estimate.left.as_secs()),
        })
    }

    /// The speed and the time left. `None` if the speed is unknown.
    pub fn estimate(&self) -> Option<Estimate> {
        self.speed.estimate(self.total().saturating_sub(self.count_done()))
    }
}

/// The shortest interval for measuring the speed.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The speed since sending started or continued, without rows of earlier starts.
#[derive(Debug, Default)]
pub(super) struct Speed {
    /// The time when the first rows were done, and the number of these rows.
    first: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
}

/// A speed, and the time left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Rows per second.
    pub rate: f64,
    /// The time left.
    pub left: Duration,
}

impl Speed {
    /// Updates the number of rows that are done, including rows of earlier starts.
    pub(super) fn update(&mut self, now: Instant, rows: u64) {
        self.first.get_or_insert((now, rows));
        self.last = Some((now, rows));
    }

    /// Records that sending pauses. Earlier measurements no longer apply.
    pub(super) fn pause(&mut self) {
        *self = Self::default();
    }

    /// The speed, and the time that `rows` more rows will take. `None` if the speed is unknown.
    pub(super) fn estimate(&self, rows: u64) -> Option<Estimate> {
        let ((began, done_before), (now, done_now)) = (self.first?, self.last?);
        let (time, sent) = (now.saturating_duration_since(began), done_now.saturating_sub(done_before));
        if time < MIN_INTERVAL || sent == 0 {
            return None;
        }
        let rate = sent as f64 / time.as_secs_f64();
        let left = Duration::try_from_secs_f64(rows as f64 / rate).ok()?;
        Some(Estimate { rate, left })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn progress_counts_only_messages_sent_by_this_command() {
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
        let object = progress.to_json();
        assert_eq!((&object["rows"], &object["messages"], &object["through"]), (&10.into(), &2.into(), &2.into()));
    }

    #[test]
    fn json_excludes_messages_of_earlier_commands() {
        let mut counts = StateCounts::default();
        for (state, rows) in [(RowState::Planned, 5), (RowState::Accepted, 3), (RowState::Rejected, 1)] {
            counts.add(state, rows);
        }
        counts.add(RowState::Skipped, 1);
        let mut progress = SendingProgress::new(10, 3).starting_from(counts.clone());
        let figures = |progress: &SendingProgress| {
            let object = progress.to_json();
            [&object["messages"], &object["through"]].map(serde_json::Value::as_u64)
        };
        assert_eq!(figures(&progress), [Some(2), Some(0)]);
        counts.shift(RowState::Planned, RowState::Accepted, 2);
        progress.update_counts(Instant::now(), &counts);
        assert_eq!(figures(&progress), [Some(2), Some(2)]);
        assert_eq!((progress.count_done(), progress.total()), (6, 6), "the bar shows the whole run");
    }

    #[test]
    fn speed_counts_only_rows_sent_since_the_start() {
        let (mut speed, start) = (Speed::default(), Instant::now());
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        speed.update(after(0.1), 150_000);
        assert_eq!(speed.estimate(50_000), None, "one moment has no speed");
        speed.update(after(0.6), 151_000);
        assert_eq!(speed.estimate(49_000), None, "nor does a short time");
        speed.update(after(2.1), 154_000);
        let estimate = speed.estimate(46_000).unwrap();
        assert_eq!((estimate.rate.round(), estimate.left.as_secs()), (2_000.0, 23));
    }

    #[test]
    fn paused_sending_has_no_estimate() {
        let (mut speed, start) = (Speed::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        speed.update(after(0), 10);
        speed.update(after(5), 10);
        assert_eq!(speed.estimate(90), None);
        speed.update(after(10), 20);
        assert!(speed.estimate(80).is_some());
        speed.pause();
        assert_eq!(speed.estimate(80), None);
        speed.update(after(100), 21);
        speed.update(after(102), 41);
        assert_eq!(speed.estimate(59).unwrap().rate, 10.0, "the pause does not count");
    }
}
