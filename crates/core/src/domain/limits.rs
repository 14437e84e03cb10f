//! Budgets and frequency caps.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Amount;

/// The maximum cost and number of messages of all runs of an edition together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// The maximum cost, in the currency of the profile.
    pub cost: Option<Amount>,
    /// The maximum number of messages.
    pub recipients: Option<u64>,
}

impl Budget {
    /// Whether no limit is set.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The used part of a budget: messages that were or might have been sent, each at the price of its most expensive
/// channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// The number of messages.
    pub recipients: u64,
    /// The cost of the messages.
    pub cost: Amount,
}

impl Spending {
    /// This spending plus `other`.
    #[must_use]
    pub fn add_spending(self, other: Self) -> Self {
        Self { recipients: self.recipients + other.recipients, cost: self.cost.saturating_add(other.cost) }
    }

    /// This spending minus `other`.
    #[must_use]
    pub fn subtract_spending(self, other: Self) -> Self {
        Self {
            recipients: self.recipients.saturating_sub(other.recipients),
            cost: self.cost.saturating_sub(other.cost),
        }
    }
}

/// A frequency cap: the maximum number of messages that a number gets in a period, from all campaigns together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrequencyCap {
    /// The maximum number of messages.
    pub messages: u32,
    /// The period, in whole seconds.
    pub period: Duration,
}

impl FrequencyCap {
    /// The longest allowed period. Messages older than this count towards no cap.
    pub const MAX_PERIOD: Duration = Duration::from_secs(400 * 86_400);

    /// Whether a phone number that received messages at these times, in microseconds, may receive another one now.
    pub fn allows_another(&self, now: i64, times: impl Iterator<Item = i64>) -> bool {
        let period = i64::try_from(self.period.as_micros()).unwrap_or(i64::MAX);
        let since = now.saturating_sub(period);
        times.filter(|time| *time > since).count() < self.messages as usize
    }
}

impl fmt::Display for FrequencyCap {
    /// Formats the cap as campaign files write it: `2/7d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.period.as_secs();
        let (unit, length) = [("d", 86_400), ("h", 3_600), ("m", 60)]
            .into_iter()
            .find(|(_, length)| seconds > 0 && seconds.is_multiple_of(*length))
            .unwrap_or(("s", 1));
        write!(f, "{}/{}{unit}", self.messages, seconds / length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spending_is_subtracted_without_an_underflow() {
        let spending = |recipients, cost: &str| Spending { recipients, cost: cost.parse().unwrap() };
        assert_eq!(spending(7, "5.50").subtract_spending(spending(3, "2.25")), spending(4, "3.25"));
        assert_eq!(spending(3, "2.25").subtract_spending(spending(7, "2.25")).recipients, 0);
    }

    proptest! {
        #[test]
        fn cap_limits_the_messages_in_every_period(
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
