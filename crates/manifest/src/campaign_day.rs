//! The day of a campaign, and its date in file names and other texts of the campaign file.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The day for which a campaign file is read: `today` in its texts and file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignDay {
    /// The day of this moment, in the campaign's time zone.
    Of(Timestamp),
    /// This day.
    Is(Date),
    /// This future day: text files that are named after it can be missing.
    Coming(Date),
}

impl CampaignDay {
    /// The date in a time zone, or in that of the computer.
    pub(super) fn resolve_date(self, zone: Option<&str>) -> Date {
        match self {
            CampaignDay::Is(date) | CampaignDay::Coming(date) => date,
            CampaignDay::Of(moment) => {
                let zone = zone.and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(TimeZone::system);
                moment.to_zoned(zone).date()
            }
        }
    }
}

/// Whether a file name contains a date placeholder or something like it.
pub(super) fn has_placeholder(name: &str) -> bool {
    name.contains("{{") || name.contains("{%")
}

/// The file name on a day: `daily-{{ today }}.csv` is `daily-2026-12-01.csv`; `None` if braces contain anything else.
pub(super) fn insert_date(name: &str, today: Date) -> Option<String> {
    let mut pieces = name.split("{{");
    let mut dated = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (inner, rest) = piece.split_once("}}")?;
        if inner.trim() != "today" {
            return None;
        }
        dated += &format!("{today}{rest}");
    }
    (!has_placeholder(&dated)).then_some(dated)
}

/// Replaces each `{{ today }}` with the date; other braces stay.
pub(super) fn replace_today(text: &str, today: Date) -> String {
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
    fn file_name_can_contain_only_the_date_variable() {
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
            assert_eq!(insert_date(name, date(2026, 12, 1)).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn date_is_inserted_into_text_and_other_braces_are_kept() {
        let on = |text| replace_today(text, date(2026, 12, 1));
        assert_eq!(on("--day={{ today }}/{{today}}"), "--day=2026-12-01/2026-12-01");
        assert_eq!(on("{{json .}} {{ today }} {{"), "{{json .}} 2026-12-01 {{");
    }

    #[test]
    fn date_of_a_timestamp_depends_on_the_time_zone() {
        let night = CampaignDay::Of("2026-11-30T23:30:00Z".parse().unwrap());
        assert_eq!(night.resolve_date(Some("Europe/Kyiv")), date(2026, 12, 1));
        assert_eq!(night.resolve_date(Some("America/New_York")), date(2026, 11, 30));
    }
}
