//! How fast rows get through now, and how long the rest takes at that speed. Pure: the time is an argument.

use std::time::{Duration, Instant};

/// The shortest time that tells a speed.
const ENOUGH: Duration = Duration::from_secs(1);

/// The speed since sending began or went on, of the rows of this start alone.
#[derive(Debug, Default)]
pub(super) struct Speed {
    /// When the first rows were through, and how many those were.
    first: Option<(Instant, u64)>,
    last: Option<(Instant, u64)>,
}

/// A speed, and the time that is left at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Rows per second.
    pub rate: f64,
    /// How long the rest takes.
    pub left: Duration,
}

impl Speed {
    /// So many rows of the run are through now, those of earlier starts among them.
    pub(super) fn through(&mut self, now: Instant, rows: u64) {
        self.first.get_or_insert((now, rows));
        self.last = Some((now, rows));
    }

    /// Nothing is sent for a while; what was measured before tells nothing of the time after it.
    pub(super) fn waits(&mut self) {
        *self = Self::default();
    }

    /// The speed and the time for `rows` more; nothing while there is none to tell.
    pub(super) fn estimate(&self, rows: u64) -> Option<Estimate> {
        let ((began, before), (now, through)) = (self.first?, self.last?);
        let (time, sent) = (now.saturating_duration_since(began), through.saturating_sub(before));
        if time < ENOUGH || sent == 0 {
            return None;
        }
        let rate = sent as f64 / time.as_secs_f64();
        let left = Duration::try_from_secs_f64(rows as f64 / rate).ok()?;
        Some(Estimate { rate, left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_went_through_in_this_start_counts() {
        let (mut speed, start) = (Speed::default(), Instant::now());
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        speed.through(after(0.1), 150_000);
        assert_eq!(speed.estimate(50_000), None, "one moment tells no speed");
        speed.through(after(0.6), 151_000);
        assert_eq!(speed.estimate(49_000), None, "nor does a short time");
        speed.through(after(2.1), 154_000);
        let estimate = speed.estimate(46_000).unwrap();
        assert_eq!((estimate.rate.round(), estimate.left.as_secs()), (2_000.0, 23));
    }

    #[test]
    fn while_nothing_goes_through_there_is_no_estimate() {
        let (mut speed, start) = (Speed::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        speed.through(after(0), 10);
        speed.through(after(5), 10);
        assert_eq!(speed.estimate(90), None);
        speed.through(after(10), 20);
        assert!(speed.estimate(80).is_some());
        speed.waits();
        assert_eq!(speed.estimate(80), None);
        speed.through(after(100), 21);
        speed.through(after(102), 41);
        assert_eq!(speed.estimate(59).unwrap().rate, 10.0, "the wait is no part of it");
    }
}
