//! Schedules and their occurrences: the moments at which a campaign is due, across clock changes.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

use super::Timing;

/// A campaign's schedule, with the maximum delay of an occurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The local times.
    pub timing: Timing,
    /// The time zone of the local times.
    pub zone: TimeZone,
    /// The last day with an occurrence, if there is one.
    pub ends: Option<Date>,
    /// How late an occurrence may begin.
    pub grace: Duration,
    /// How long an occurrence waits for its list. Without it, the list must exist at the start.
    pub wait_for_file: Option<Duration>,
}

impl Schedule {
    /// The occurrences after a moment, earliest first.
    #[must_use]
    pub fn occurrences_after(&self, moment: Timestamp) -> Occurrences<'_> {
        Occurrences::new(self, moment)
    }

    /// The maximum delay of an occurrence. Only an occurrence that waits for its list can exceed `grace`.
    #[must_use]
    pub fn latest_delay(&self) -> Duration {
        self.grace.max(self.wait_for_file.unwrap_or_default())
    }

    /// Whether there is more than one occurrence after a moment.
    #[must_use]
    pub fn repeats_after(&self, moment: Timestamp) -> bool {
        self.occurrences_after(moment).nth(1).is_some()
    }

    /// The name of the zone in the IANA database.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}

/// One firing of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The scheduled local time. A clock change can skip it.
    pub nominal: DateTime,
    /// The moment.
    pub at: Timestamp,
    zone: TimeZone,
}

impl Occurrence {
    /// The moment as RFC 3339, with the offset of the zone.
    #[must_use]
    pub fn format_moment(&self) -> String {
        self.local_time().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    /// The occurrence at a local time. `None` outside the supported range.
    ///
    /// A local time that a clock change skips moves to the moment of the change. A repeated local time means its first
    /// occurrence.
    #[must_use]
    pub fn at_local_time(nominal: DateTime, zone: &TimeZone) -> Option<Self> {
        Some(Self { nominal, at: resolve_local_time(nominal, zone)?.0, zone: zone.clone() })
    }

    /// The local time at the moment of the occurrence.
    #[must_use]
    pub fn local_time(&self) -> Zoned {
        self.at.to_zoned(self.zone.clone())
    }

    /// The name of the zone in the IANA database.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The scheduled local time: `2026-12-01 10:00`.
    #[must_use]
    pub fn format_nominal(&self) -> String {
        self.nominal.strftime("%Y-%m-%d %H:%M").to_string()
    }
}

/// The occurrences of a schedule after a moment, earliest first, each moment once.
#[derive(Debug)]
pub struct Occurrences<'s> {
    schedule: &'s Schedule,
    after: Timestamp,
    /// The first local time that is not examined yet.
    from: Option<DateTime>,
}

impl<'s> Occurrences<'s> {
    pub(super) fn new(schedule: &'s Schedule, after: Timestamp) -> Self {
        // Earlier local times cannot be later moments, because a repeated local time means its first occurrence.
        let from = Some(after.to_zoned(schedule.zone.clone()).datetime());
        Self { schedule, after, from }
    }

    /// The next local time with its moment, and whether that local time exists.
    fn find_from(&self, from: DateTime) -> Option<(DateTime, Timestamp, bool)> {
        let nominal = self.schedule.timing.first_from(from)?;
        if self.schedule.ends.is_some_and(|last| nominal.date() > last) {
            return None;
        }
        let (at, exists) = resolve_local_time(nominal, &self.schedule.zone)?;
        Some((nominal, at, exists))
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        loop {
            let (mut nominal, at, mut exists) = {
                let from = self.from.take()?;
                self.find_from(from)?
            };
            self.from = next_minute(nominal);
            // All skipped local times share one moment with the first local time after the change.
            while let Some((later, same, there)) = self.from.filter(|_| !exists).and_then(|from| self.find_from(from))
                && same == at
            {
                self.from = next_minute(later);
                if there {
                    (nominal, exists) = (later, true);
                }
            }
            if at > self.after {
                return Some(Occurrence { nominal, at, zone: self.schedule.zone.clone() });
            }
        }
    }
}

fn next_minute(local: DateTime) -> Option<DateTime> {
    let minute: Span = 1.minute();
    local.checked_add(minute).ok()
}

/// The moment of a local time, and whether that local time exists. If a clock change skips the time, the moment is
/// that of the change.
fn resolve_local_time(local: DateTime, zone: &TimeZone) -> Option<(Timestamp, bool)> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { before, .. } => {
            let beyond = before.to_timestamp(local).ok()?.checked_add(1.second()).ok()?;
            let change = zone.preceding(beyond).next()?;
            Some((change.timestamp(), false))
        }
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => Some((ambiguous.earlier().ok()?, true)),
    }
}
