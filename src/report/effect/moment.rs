//! When something was bought, as the cells of a file say it.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// How people and programs write a date with a time, the zone left out.
const DATE_TIME_FORMATS: [&str; 6] = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y, %H:%M:%S",
    "%d.%m.%Y, %H:%M",
];
/// How they write a date alone.
const DATE_FORMATS: [&str; 2] = ["%Y-%m-%d", "%d.%m.%Y"];

/// A moment, or a day of which nobody says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PurchaseTime {
    first: Timestamp,
    last: Timestamp,
}

impl PurchaseTime {
    /// Reads RFC 3339, or a local date, with or without a time, in that zone: `2026-12-01 10:00`, `01.12.2026`.
    pub(super) fn parse(cell: &str, zone: &TimeZone) -> Option<Self> {
        let cell = cell.trim();
        if let Ok(at) = cell.parse::<Timestamp>() {
            return Some(Self { first: at, last: at });
        }
        let spaced = cell.replacen('T', " ", 1);
        // Fractions of a second decide nothing here.
        let spaced =
            spaced.split_once('.').filter(|(before, _)| before.contains(':')).map_or(spaced.as_str(), |(b, _)| b);
        let local = DATE_TIME_FORMATS.iter().find_map(|form| DateTime::strptime(form, spaced).ok());
        if let Some(local) = local {
            let at = zone.to_ambiguous_timestamp(local).compatible().ok()?;
            return Some(Self { first: at, last: at });
        }
        let day = DATE_FORMATS.iter().find_map(|form| Date::strptime(form, cell).ok())?;
        let start = |day: Date| Some(day.to_zoned(zone.clone()).ok()?.timestamp());
        Some(Self { first: start(day)?, last: start(day.checked_add(1.day()).ok()?)? - 1.nanosecond() })
    }

    /// Whether it is, or may be, within that time after something.
    pub(super) fn may_follow(self, at: Timestamp, within: jiff::SignedDuration) -> bool {
        self.last >= at && at.checked_add(within).is_ok_and(|end| self.first < end)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn kyiv() -> TimeZone {
        TimeZone::get("Europe/Kyiv").unwrap()
    }

    #[test]
    fn common_date_and_time_formats_are_parsed() {
        for cell in [
            "2026-12-01T08:00:00Z",
            "2026-12-01T10:00:00+02:00",
            "2026-12-01 10:00",
            "2026-12-01T10:00:00",
            "2026-12-01 10:00:00.000",
            " 01.12.2026 10:00 ",
            "1.12.2026 10:00:00",
            "01.12.2026, 10:00",
        ] {
            let read = PurchaseTime::parse(cell, &kyiv()).map(|moment| moment.first.to_string());
            assert_eq!(read.as_deref(), Some("2026-12-01T08:00:00Z"), "{cell:?}");
        }
        for cell in ["", "12/01/2026", "soon", "2026-13-01", "45000", "10:00"] {
            assert_eq!(PurchaseTime::parse(cell, &kyiv()), None, "{cell:?}");
        }
    }

    #[test]
    fn date_without_time_may_follow_a_message_of_that_day() {
        let sent: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
        let week = SignedDuration::from_hours(7 * 24);
        for (cell, counts) in [
            ("30.11.2026", false),
            ("01.12.2026", true),
            ("2026-12-01 09:59", false),
            ("2026-12-01 10:00", true),
            ("2026-12-08 09:59", true),
            ("2026-12-08 10:00", false),
            ("08.12.2026", true),
            ("09.12.2026", false),
        ] {
            assert_eq!(PurchaseTime::parse(cell, &kyiv()).unwrap().may_follow(sent, week), counts, "{cell}");
        }
    }
}
