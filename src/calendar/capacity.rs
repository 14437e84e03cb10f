//! How many messages can leave until a moment.

use jiff::{SignedDuration, Timestamp};

use super::{DailyLimits, Windows};

/// What holds messages back, whoever they are for.
#[derive(Clone, Copy, Debug)]
pub struct Capacity<'c> {
    /// The most in a second; nothing where nobody limits it.
    pub rate: Option<f64>,
    /// When they may leave.
    pub windows: &'c Windows,
    /// The most on a day.
    pub per_day: Option<&'c DailyLimits>,
}

/// The progress of a run's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendProgress {
    /// The messages that have not left.
    pub(super) left: u64,
    /// When the last message leaves; undefined if some have not left.
    pub(super) at: Timestamp,
}

impl Capacity<'_> {
    /// How many of so many messages can leave from a moment on before another one, where none has left yet.
    #[must_use]
    pub fn count_sendable(&self, messages: u64, from: Timestamp, until: Timestamp) -> u64 {
        messages - self.simulate_sending(messages, from, until).left
    }

    /// Sends this many messages from one moment until another.
    pub(super) fn simulate_sending(&self, messages: u64, from: Timestamp, until: Timestamp) -> SendProgress {
        let (mut at, mut left, mut days) = (from, messages, 0);
        while at < until && left > 0 {
            let next = self.per_day.map_or(until, |per_day| per_day.next_day_start(at).timestamp().min(until));
            let today = self.per_day.map_or(left, |per_day| per_day.limit(days).min(left));
            let day = self.send_within_day(today, at, next);
            left -= today - day.left;
            days += usize::from(day.left < today);
            at = if left == 0 { day.at } else { next };
        }
        SendProgress { left, at }
    }

    /// The same within a day.
    fn send_within_day(&self, messages: u64, from: Timestamp, until: Timestamp) -> SendProgress {
        let (mut at, mut left) = (from, messages);
        while left > 0
            && let Some(opens) = self.windows.next_open_from(at).filter(|opens| *opens < until)
        {
            let Some(rate) = self.rate else { return SendProgress { left: 0, at: opens } };
            let closes = self.windows.next_closed_from(opens).map_or(until, |closes| closes.min(until));
            // A rate is a whole number a day at least, and what is beyond any number is all of them.
            let fit = (closes.duration_since(opens).as_secs_f64() * rate) as u64;
            if left <= fit {
                let takes = SignedDuration::try_from_secs_f64(left as f64 / rate).unwrap_or_default();
                return SendProgress { left: 0, at: opens.checked_add(takes).map_or(closes, |at| at.min(closes)) };
            }
            left -= fit;
            at = closes;
        }
        SendProgress { left, at }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::{DailyHours, Days, Window};

    fn windows(hours: &[&str]) -> Windows {
        let window = |hours: &&str| Window {
            hours: DailyHours::parse(hours).unwrap(),
            days: Days::ALL,
            except: Default::default(),
        };
        Windows::new(hours.iter().map(|hours| (window(hours), TimeZone::UTC)).collect())
    }

    fn at(text: &str) -> Timestamp {
        format!("2026-11-{text}:00Z").parse().unwrap()
    }

    #[test]
    fn sendable_messages_depend_on_rate_window_and_day() {
        let (always, office) = (windows(&[]), windows(&["09:00-17:00"]));
        let per_day = DailyLimits::new(vec![100, 300], TimeZone::UTC);
        for (rate, windows, days, from, until, expected) in [
            (Some(1.0), &always, None, "23T10:00", "23T10:01", 60),
            (Some(1.0), &always, None, "23T10:00", "23T10:00", 0),
            (Some(1.0), &always, None, "23T10:00", "23T09:00", 0),
            (None, &always, None, "23T10:00", "23T10:01", 100_000),
            (Some(0.5), &office, None, "23T08:00", "23T10:00", 1_800),
            (Some(1.0), &office, None, "23T16:00", "25T09:01", 3_600 + 8 * 3_600 + 60),
            (Some(1.0), &office, None, "23T17:00", "24T09:00", 0),
            (None, &office, None, "23T17:00", "24T09:00", 0),
            (None, &always, per_day.as_ref(), "23T10:00", "23T12:00", 100),
            (None, &always, per_day.as_ref(), "23T10:00", "25T00:01", 700),
            (Some(1.0), &office, per_day.as_ref(), "23T17:00", "24T09:01", 60),
            (Some(1.0), &office, per_day.as_ref(), "23T16:00", "24T10:00", 400),
        ] {
            let capacity = Capacity { rate, windows, per_day: days };
            let left = capacity.count_sendable(100_000, at(from), at(until));
            assert_eq!(left, expected, "{rate:?} {from} {until}");
        }
    }

    proptest! {
        #[test]
        fn only_open_window_time_counts(hours in 0_u32..23, open in 1_u32..20, minutes in 1_i64..5_000) {
            let hours = format!("{:02}:00-{:02}:00", hours, (hours + open) % 24);
            let windows = windows(&[&hours]);
            let (from, until) = (at("23T00:00"), at("23T00:00") + Duration::from_secs(60 * minutes.unsigned_abs()));
            let open = (0..minutes).filter(|minute| windows.are_open(from + Duration::from_secs(60 * minute.unsigned_abs())));
            let capacity = Capacity { rate: Some(1.0), windows: &windows, per_day: None };
            prop_assert_eq!(capacity.count_sendable(1_000_000, from, until), 60 * open.count() as u64);
        }
    }
}
