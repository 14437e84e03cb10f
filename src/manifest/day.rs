//! The day for which a campaign file is read, and the names of files that have it in them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The day for which a campaign file is read: `today` in its texts and in the names of its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Day {
    /// That of this moment, in the campaign's zone.
    Of(Timestamp),
    /// This one.
    Is(Date),
    /// This one, which is to come: texts that are named by it need not be there.
    Coming(Date),
}

impl Day {
    /// Its date in a zone; without one in that of the computer.
    pub(super) fn date(self, zone: Option<&str>) -> Date {
        match self {
            Day::Is(date) | Day::Coming(date) => date,
            Day::Of(moment) => {
                let zone = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(TimeZone::system);
                moment.to_zoned(zone).date()
            }
        }
    }
}

/// Whether the name of a file has the date in it, or tries to.
pub(super) fn is_dated(name: &str) -> bool {
    name.contains("{{") || name.contains("{%")
}

/// The name of a file on a day: `daily-{{ today }}.csv` is `daily-2026-12-01.csv`; nothing if anything else stands in braces.
pub(super) fn dated(name: &str, today: Date) -> Option<String> {
    let mut pieces = name.split("{{");
    let mut dated = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (inner, rest) = piece.split_once("}}")?;
        if inner.trim() != "today" {
            return None;
        }
        dated += &format!("{today}{rest}");
    }
    (!is_dated(&dated)).then_some(dated)
}

/// A text with the date in place of each `{{ today }}`; whatever else stands in braces is its own.
pub(super) fn with_date(text: &str, today: Date) -> String {
    let mut pieces = text.split("{{");
    let mut dated = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once("}}") {
            Some((inner, rest)) if inner.trim() == "today" => dated += &format!("{today}{rest}"),
            _ => dated += &format!("{{{{{piece}"),
        }
    }
    dated
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_name_has_the_date_in_it_and_nothing_else() {
        for (name, expected) in [
            ("a.csv", Some("a.csv")),
            ("daily-{{ today }}.csv", Some("daily-2026-12-01.csv")),
            ("{{today}}/{{ today }}.csv", Some("2026-12-01/2026-12-01.csv")),
            ("a-{{ name }}.csv", None),
            ("a-{{ today.csv", None),
            ("a-{% if x %}.csv", None),
            ("a-{{ today }}{{", None),
            ("a}}.csv", Some("a}}.csv")),
        ] {
            assert_eq!(dated(name, date(2026, 12, 1)).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_word_gets_the_date_and_keeps_all_other_braces() {
        let on = |text| with_date(text, date(2026, 12, 1));
        assert_eq!(on("--day={{ today }}/{{today}}"), "--day=2026-12-01/2026-12-01");
        assert_eq!(on("{{json .}} {{ today }} {{"), "{{json .}} 2026-12-01 {{");
    }

    #[test]
    fn the_day_of_a_moment_is_that_of_the_zone() {
        let night = Day::Of("2026-11-30T23:30:00Z".parse().unwrap());
        assert_eq!(night.date(Some("Europe/Kyiv")), date(2026, 12, 1));
        assert_eq!(night.date(Some("America/New_York")), date(2026, 11, 30));
    }
}
