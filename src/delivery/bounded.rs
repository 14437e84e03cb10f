//! What a start does at a bound: it waits for another day, or stops. Pure.

use std::time::Duration;

use super::course::Halt;
use super::stop::{Stop, StopKind};
use crate::domain::format_count;
use crate::ledger::Bound;

/// After what time at most it is asked again whether something may leave: the clock may be set, or the computer sleep.
pub(super) const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

/// What follows from an envelope that does not keep within a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BoundEffect {
    /// What keeps within it goes out, or what is on its way is waited for.
    Continue,
    /// Nothing begins for a while.
    Wait {
        /// Why.
        reason: String,
        /// How long.
        time: Duration,
    },
    /// Nothing begins any more.
    Stop(Halt),
}

/// The stop where nothing more goes out.
pub(super) fn exhausted_stop(bound: &Bound) -> Stop {
    let kind = match bound {
        Bound::Recipients { .. } | Bound::Cost { .. } => StopKind::Budget,
        Bound::Day { .. } => StopKind::Window,
    };
    Stop::new(kind, describe_bound(bound))
}

/// Why nothing more goes out.
pub(super) fn describe_bound(bound: &Bound) -> String {
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
            let messages = format_count(*limit, "message");
            format!("`delivery.per_day` allows {messages} today; sending continues at {moment} ({zone})")
        }
    }
}
