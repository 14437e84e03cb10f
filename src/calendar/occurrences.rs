//! The occurrences of a schedule: which moment a local time is, whatever the clocks do that day.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp, ToSpan as _, Zoned};

use super::Schedule;

/// One firing of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The local time that is meant, which clocks may never show.
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

    /// The occurrence of this local time; nothing beyond the times that there are.
    ///
    /// A local time that does not exist is the first moment after those that are left out; of one that comes twice it is the
    /// first.
    #[must_use]
    pub fn at_local_time(nominal: DateTime, zone: &TimeZone) -> Option<Self> {
        Some(Self { nominal, at: resolve_local_time(nominal, zone)?.0, zone: zone.clone() })
    }

    /// What clocks show at its moment.
    #[must_use]
    pub fn local_time(&self) -> Zoned {
        self.at.to_zoned(self.zone.clone())
    }

    /// The name of its zone, as the database has it.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The local time that is meant, as people write it: `2026-12-01 10:00`.
    #[must_use]
    pub fn format_nominal(&self) -> String {
        self.nominal.strftime("%Y-%m-%d %H:%M").to_string()
    }
}

/// The occurrences of a schedule after a moment, the first first; no two at the same moment.
#[derive(Debug)]
pub struct Occurrences<'s> {
    schedule: &'s Schedule,
    after: Timestamp,
    /// The first local time that was not looked at.
    from: Option<DateTime>,
}

impl<'s> Occurrences<'s> {
    pub(super) fn new(schedule: &'s Schedule, after: Timestamp) -> Self {
        // Nothing that the clocks showed before is later than what they show now, since of two the first counts.
        let from = Some(after.to_zoned(schedule.zone.clone()).datetime());
        Self { schedule, after, from }
    }

    /// The next local time with its moment, and whether clocks show it.
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
            // Local times that do not exist fall on one moment, and with them the first that exists again.
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

/// The moment of a local time, and whether clocks show that time.
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
