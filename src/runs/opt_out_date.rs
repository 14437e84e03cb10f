//! The dates of opt-outs in other programs' lists: which column has them, and the forms that are read. Pure.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// Headers of columns with the date of an opt-out, the more certain ones first.
const DATE_HEADERS: &[&str] = &[
    "unsubscribedat",
    "unsubscribedon",
    "unsubscribeddate",
    "unsubscribedate",
    "dateunsubscribed",
    "unsubscribetime",
    "optedoutat",
    "optedouton",
    "optoutat",
    "optoutdate",
    "optouttime",
    "optedoutdate",
    "dateofoptout",
    "датавідписки",
    "датавідмови",
    "датаотписки",
    "датаотказа",
    "date",
    "datetime",
    "timestamp",
    "дата",
    "датаічас",
    "датаивремя",
];

/// The forms besides ISO 8601. A day before a month with slashes may be the other way round, so such dates are not read.
const DATE_TIME_FORMATS: &[&str] = &["%d.%m.%Y %H:%M:%S", "%d.%m.%Y, %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y, %H:%M"];
const DATE_FORMATS: &[&str] = &["%d.%m.%Y", "%Y/%m/%d"];

/// The header, of these, of the column with the dates of the opt-outs.
pub(super) fn find_date_header<'h>(headers: impl Iterator<Item = &'h str> + Clone) -> Option<&'h str> {
    DATE_HEADERS.iter().find_map(|known| headers.clone().find(|header| normalize_header(header) == *known))
}

/// The time that a cell tells, where one without an offset is of this time zone; nothing if it cannot be read, or is yet to come.
pub(super) fn parse_date(cell: &str, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let cell = cell.trim();
    let local = || {
        let date_time = || DATE_TIME_FORMATS.iter().find_map(|form| DateTime::strptime(form, cell).ok());
        let date = || DATE_FORMATS.iter().find_map(|form| Date::strptime(form, cell).ok()).map(DateTime::from);
        let local = cell.parse::<DateTime>().ok().or_else(date_time).or_else(date)?;
        zone.to_timestamp(local).ok()
    };
    cell.parse().ok().or_else(local).filter(|at| *at <= now)
}

/// A text without case, spaces, dashes and other signs: `Opt-Out` and `opt_out` become `optout`.
pub(super) fn normalize_header(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_parsed_in_common_formats() {
        let (kyiv, now) = (TimeZone::get("Europe/Kyiv").unwrap(), "2026-11-26T10:00:00Z".parse().unwrap());
        for (cell, at) in [
            ("2026-03-01T10:00:00Z", Some("2026-03-01T10:00:00Z")),
            ("2026-03-01T10:00:00+02:00", Some("2026-03-01T08:00:00Z")),
            ("2026-03-01 10:00:00", Some("2026-03-01T08:00:00Z")),
            ("2026-03-01 10:00", Some("2026-03-01T08:00:00Z")),
            ("2026-03-01", Some("2026-02-28T22:00:00Z")),
            ("01.03.2026", Some("2026-02-28T22:00:00Z")),
            (" 01.03.2026 10:00 ", Some("2026-03-01T08:00:00Z")),
            ("01.03.2026, 10:00:30", Some("2026-03-01T08:00:30Z")),
            ("2026/03/01", Some("2026-02-28T22:00:00Z")),
            ("03/04/2026", None),
            ("31.02.2026", None),
            ("2027-01-01", None),
            ("yesterday", None),
            ("380501234567", None),
            ("", None),
        ] {
            let at = at.map(|at| at.parse::<Timestamp>().unwrap());
            assert_eq!(parse_date(cell, &kyiv, now), at, "{cell}");
        }
    }

    #[test]
    fn most_certain_header_names_the_date_column() {
        let found = |headers: &[&str]| find_date_header(headers.iter().copied()).map(str::to_owned);
        assert_eq!(found(&["Name", "Date", "Unsubscribed At"]).as_deref(), Some("Unsubscribed At"));
        assert_eq!(found(&["Ім'я", "Дата"]).as_deref(), Some("Дата"));
        assert_eq!(found(&["birthday", "created_at", "at"]), None);
    }
}
