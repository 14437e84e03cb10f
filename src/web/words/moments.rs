//! Days and times as each language writes them, always in a zone that the caller knows.

use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use super::PageWords;

impl PageWords {
    /// A day: `21 November 2026`.
    #[must_use]
    pub fn format_day(&self, date: Date) -> String {
        let (day, month, year) = (date.day().to_string(), date.month().to_string(), date.year().to_string());
        let month = self.kind("month", &month).unwrap_or_default();
        self.say_with("moment.day", &[("day", &day), ("month", month), ("year", &year)])
    }

    /// A time of the day to the minute, on a clock of 24 hours: `09:05`.
    #[must_use]
    pub fn format_time(&self, time: Time) -> String {
        time.strftime("%H:%M").to_string()
    }

    /// A moment to the minute, on the clock of its zone: `21 November 2026, 09:05`.
    #[must_use]
    pub fn format_moment(&self, moment: &Zoned) -> String {
        let (day, time) = (self.format_day(moment.date()), self.format_time(moment.time()));
        self.say_with("moment.moment", &[("day", &day), ("time", &time)])
    }

    /// The same with the name of its zone: `21 November 2026, 09:05 (Europe/Kyiv)`.
    #[must_use]
    pub fn format_moment_in_zone(&self, moment: &Zoned) -> String {
        format!("{} ({})", self.format_moment(moment), zone_name(moment.time_zone()))
    }
}

/// What a zone is called: as the time zone database names it, and UTC by its own name wherever its clock is meant.
#[must_use]
pub fn zone_name(zone: &TimeZone) -> &str {
    match zone.iana_name() {
        None | Some("Etc/UTC" | "Etc/UCT" | "Etc/Universal" | "Etc/Zulu") => "UTC",
        Some(name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::words::PageLanguage;

    #[test]
    fn zone_has_one_name() {
        let named = |name: &str| zone_name(&TimeZone::get(name).unwrap()).to_owned();
        assert_eq!(["Etc/UTC", "UTC", "Europe/Kyiv"].map(named), ["UTC", "UTC", "Europe/Kyiv"]);
        assert_eq!(zone_name(&TimeZone::UTC), "UTC");
    }

    #[test]
    fn moment_is_formatted_in_its_zone() {
        let moment: Zoned = "2026-11-21T07:05:59Z[UTC]".parse().unwrap();
        let moment = moment.in_tz("Europe/Kyiv").unwrap();
        let table = [
            (PageLanguage::English, "21 November 2026, 09:05 (Europe/Kyiv)"),
            (PageLanguage::Ukrainian, "21 листопада 2026, 09:05 (Europe/Kyiv)"),
        ];
        for (language, text) in table {
            assert_eq!(PageWords::in_language(language).format_moment_in_zone(&moment), text);
        }
    }
}
