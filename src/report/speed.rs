//! How fast rows get through now, and how long the rest takes at that speed. Pure: the time is an argument.

use std::time::{Duration, Instant};

/// The shortest time that tells a speed.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

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
    pub(super) fn update(&mut self, now: Instant, rows: u64) {
        self.first.get_or_insert((now, rows));
        self.last = Some((now, rows));
    }

    /// Nothing is sent for a while; what was measured before tells nothing of the time after it.
    pub(super) fn pause(&mut self) {
        *self = Self::default();
    }

    /// The speed and the time for `rows` more; nothing while there is none to tell.
    pub(super) fn estimate(&self, rows: u64) -> Option<Estimate> {
        let ((began, before), (now, through)) = (self.first?, self.last?);
        let (time, sent) = (now.saturating_duration_since(began), through.saturating_sub(before));
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
    use super::*;

    #[test]
    fn speed_counts_only_rows_of_this_start() {
        let (mut speed, start) = (Speed::default(), Instant::now());
        let after = |seconds: f64| start + Duration::from_secs_f64(seconds);
        speed.update(after(0.1), 150_000);
        assert_eq!(speed.estimate(50_000), None, "one moment tells no speed");
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
        assert_eq!(speed.estimate(59).unwrap().rate, 10.0, "the wait is no part of it");
    }
}
