//! How often a person may be written to.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The most messages that a number may get in any time of this length, from all campaigns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrequencyCap {
    /// The messages.
    pub messages: u32,
    /// The time, in whole seconds.
    pub period: Duration,
}

impl FrequencyCap {
    /// The longest time: what was sent before that is not counted any more.
    pub const MAX_PERIOD: Duration = Duration::from_secs(400 * 86_400);

    /// Whether a number that got messages at these times, in microseconds, may get another one now.
    #[must_use]
    pub fn allows_another(&self, now: i64, times: impl Iterator<Item = i64>) -> bool {
        let period = i64::try_from(self.period.as_micros()).unwrap_or(i64::MAX);
        let since = now.saturating_sub(period);
        times.filter(|time| *time > since).count() < self.messages as usize
    }
}

impl fmt::Display for FrequencyCap {
    /// As campaign files have it: `2/7d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.period.as_secs();
        let (unit, of) = [("d", 86_400), ("h", 3_600), ("m", 60)]
            .into_iter()
            .find(|(_, of)| seconds > 0 && seconds.is_multiple_of(*of))
            .unwrap_or(("s", 1));
        write!(f, "{}/{}{unit}", self.messages, seconds / of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_period_contains_more_messages_than_the_cap(
            waits in prop::collection::vec(0_i64..5_000_000, 1..60),
            messages in 1_u32..5,
            seconds in 1_u64..8,
        ) {
            let cap = FrequencyCap { messages, period: Duration::from_secs(seconds) };
            let (mut now, mut times) = (0, Vec::<i64>::new());
            for wait in waits {
                now += wait;
                let before = now - seconds as i64 * 1_000_000;
                let within = times.iter().filter(|time| **time > before).count() as u32;
                let allowed = cap.allows_another(now, times.iter().copied());
                prop_assert_eq!(allowed, within < messages);
                times.extend(allowed.then_some(now));
            }
        }
    }
}
