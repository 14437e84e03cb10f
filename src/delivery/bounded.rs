//! What a start does at a bound: it waits for another day, or stops. Pure.

use std::time::Duration;

use super::course::Halt;
use super::stop::{Stop, StopKind};
use crate::domain::plural;
use crate::ledger::Bound;

/// After what time at most it is asked again whether something may leave: the clock may be set, or the computer sleep.
pub(super) const ASKS_AGAIN: Duration = Duration::from_secs(60);

/// What follows from an envelope that does not keep within a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bounded {
    /// What keeps within it goes out, or what is on its way is waited for.
    GoesOn,
    /// Nothing begins for a while.
    Waits {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
    },
    /// Nothing begins any more.
    Stops(Halt),
}

/// The stop where nothing more goes out.
pub(super) fn exhausted(bound: &Bound) -> Stop {
    let kind = match bound {
        Bound::Recipients { .. } | Bound::Cost { .. } => StopKind::Budget,
        Bound::Day { .. } => StopKind::Window,
    };
    Stop::new(kind, words(bound))
}

/// Why nothing more goes out.
pub(super) fn words(bound: &Bound) -> String {
    match bound {
        Bound::Recipients { limit } => {
            format!("this edition has reached its `limits.recipients` of {limit}")
        }
        Bound::Cost { limit, used } => format!(
            "this edition has used {used} of its `limits.cost` of {limit}; the next message costs more than what is \
             left"
        ),
        Bound::Day { limit, until, .. } => {
            let (moment, zone) = (until.strftime("%Y-%m-%d %H:%M"), until.time_zone().iana_name().unwrap_or("UTC"));
            let messages = plural(*limit, "message");
            format!("`delivery.per_day` allows {messages} today; sending continues at {moment} ({zone})")
        }
    }
}
