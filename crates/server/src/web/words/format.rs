//! Numbers, money, durations, dates and times in each language, always in a given time zone.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use super::{PageLanguage, PageWords};
use campaign_core::domain::Amount;
use campaign_engine::check::online::Cost;
use campaign_engine::report::format_thousands;

/// The thousands separator: a narrow no-break space.
const THIN: &str = "\u{202f}";
/// A no-break space between a number and its unit.
const FIRM: char = '\u{a0}';

impl PageWords {
    /// A number with thousands separators.
    #[must_use]
    pub fn format_number(&self, number: u64) -> String {
        format_thousands(number).replace(' ', THIN)
    }

    /// An amount of money with its currency, if that is known.
    #[must_use]
    pub fn format_money(&self, amount: Amount, currency: Option<&str>) -> String {
        let amount = amount.trim_decimals().to_string().replace(' ', THIN).replace('-', "\u{2212}");
        let amount = match self.language() {
            PageLanguage::English => amount,
            PageLanguage::Ukrainian => amount.replace('.', ","),
        };
        match currency {
            Some(currency) => format!("{amount}{FIRM}{currency}"),
            None => amount,
        }
    }

    /// A number with at most three decimal places.
    #[must_use]
    pub fn format_decimal(&self, number: f64) -> String {
        let text = format!("{number:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match self.language() {
            PageLanguage::English => text.to_owned(),
            PageLanguage::Ukrainian => text.replace('.', ","),
        }
    }

    /// A duration of whole seconds, minutes, hours or days: `10 s`, `5 min`.
    #[must_use]
    pub fn format_span(&self, seconds: u64) -> String {
        let (number, unit) = match seconds {
            0..60 => (seconds, self.say("time.s")),
            _ if !seconds.is_multiple_of(60) => (seconds, self.say("time.s")),
            60..3_600 => (seconds / 60, self.say("time.min")),
            _ if !seconds.is_multiple_of(3_600) => (seconds / 60, self.say("time.min")),
            3_600..172_800 => (seconds / 3_600, self.say("time.h")),
            _ if !seconds.is_multiple_of(86_400) => (seconds / 3_600, self.say("time.h")),
            _ => (seconds / 86_400, self.say("time.d")),
        };
        format!("{}{FIRM}{unit}", self.format_number(number))
    }

    /// A duration in units that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
    #[must_use]
    pub fn format_duration(&self, time: Duration) -> String {
        let seconds = time.as_secs();
        let (large, small) = match seconds {
            0 if time.as_millis() < 100 => return format!("{}{FIRM}{}", time.as_millis(), self.say("time.ms")),
            0..10 => {
                let tenths = self.format_decimal((time.as_secs_f64() * 10.0).round() / 10.0);
                return format!("{tenths}{FIRM}{}", self.say("time.s"));
            }
            10..60 => (seconds, 0),
            60..3_600 => (seconds - seconds % 60, seconds % 60),
            3_600..172_800 => (seconds - seconds % 3_600, seconds % 3_600 / 60 * 60),
            _ => (seconds - seconds % 86_400, seconds % 86_400 / 3_600 * 3_600),
        };
        match small {
            0 => self.format_span(large),
            small => format!("{} {}", self.format_span(large), self.format_span(small)),
        }
    }

    /// The highest cost of messages, or the channels without a price.
    #[must_use]
    pub fn format_cost(&self, cost: &Cost, currency: Option<&str>) -> String {
        match cost {
            Cost::AtMost(amount) => self.format_money(*amount, currency),
            Cost::Unknown(channels) => {
                let named = channels.iter().map(|channel| {
                    let word = channel.name();
                    self.kind("channel", word).map_or(Cow::Borrowed(word), Cow::Borrowed)
                });
                let channels = named.collect::<Vec<_>>().join(", ");
                self.say_with("cost.unknown", &[("channels", &channels)])
            }
        }
    }
}

/// The number of letters of a month on an axis.
const SHORT_MONTH: usize = 3;

impl PageWords {
    /// A day: `21 November 2026`.
    #[must_use]
    pub fn format_day(&self, date: Date) -> String {
        let (day, month, year) = (date.day().to_string(), date.month().to_string(), date.year().to_string());
        let month = self.kind("month", &month).unwrap_or_default();
        self.say_with("moment.day", &[("day", &day), ("month", month), ("year", &year)])
    }

    /// A day on an axis: `21 Nov`.
    #[must_use]
    pub fn format_short_day(&self, date: Date) -> String {
        let month = date.month().to_string();
        let month: String = self.kind("month", &month).unwrap_or_default().chars().take(SHORT_MONTH).collect();
        format!("{}{FIRM}{month}", date.day())
    }

    /// A time of day to the minute, in 24 hours: `09:05`.
    #[must_use]
    pub fn format_time(&self, time: Time) -> String {
        time.strftime("%H:%M").to_string()
    }

    /// A moment to the minute, in its zone: `21 November 2026, 09:05`.
    #[must_use]
    pub fn format_moment(&self, moment: &Zoned) -> String {
        let (day, time) = (self.format_day(moment.date()), self.format_time(moment.time()));
        self.say_with("moment.moment", &[("day", &day), ("time", &time)])
    }

    /// A moment to the second, in its zone: `21 November 2026, 09:05:07`.
    #[must_use]
    pub fn format_second(&self, moment: &Zoned) -> String {
        let (day, time) = (self.format_day(moment.date()), moment.time().strftime("%H:%M:%S").to_string());
        self.say_with("moment.moment", &[("day", &day), ("time", &time)])
    }

    /// A moment with its time zone: `21 November 2026, 09:05 (Europe/Kyiv)`.
    #[must_use]
    pub fn format_moment_in_zone(&self, moment: &Zoned) -> String {
        format!("{} ({})", self.format_moment(moment), zone_name(moment.time_zone()))
    }
}

/// The name of a time zone: its IANA name, or UTC for all its aliases.
#[must_use]
pub fn zone_name(zone: &TimeZone) -> &str {
    match zone.iana_name() {
        None | Some("Etc/UTC" | "Etc/UCT" | "Etc/Universal" | "Etc/Zulu") => "UTC",
        Some(name) => name,
    }
}

#[cfg(test)]
mod number_tests {
    use super::*;

    #[test]
    fn numbers_and_money_follow_the_language() {
        let (english, ukrainian) =
            (PageWords::in_language(PageLanguage::English), PageWords::in_language(PageLanguage::Ukrainian));
        assert_eq!(english.format_number(1_234_567), "1\u{202f}234\u{202f}567");
        let amount: Amount = "-1234.5".parse().unwrap();
        assert_eq!(english.format_money(amount, Some("UAH")), "\u{2212}1\u{202f}234.50\u{a0}UAH");
        assert_eq!(ukrainian.format_money(amount, Some("UAH")), "\u{2212}1\u{202f}234,50\u{a0}UAH");
        assert_eq!(ukrainian.format_money("0.85".parse().unwrap(), None), "0,85");
    }

    #[test]
    fn durations_use_units_that_fit_their_size() {
        let (english, ukrainian) =
            (PageWords::in_language(PageLanguage::English), PageWords::in_language(PageLanguage::Ukrainian));
        let table = [
            (7, "7 ms", "7 мс"),
            (400, "0.4 s", "0,4 с"),
            (12_000, "12 s", "12 с"),
            (200_000, "3 min 20 s", "3 хв 20 с"),
            (7_500_000, "2 h 5 min", "2 год 5 хв"),
            (300_000_000, "3 d 11 h", "3 д 11 год"),
        ];
        for (milliseconds, in_english, in_ukrainian) in table {
            let time = Duration::from_millis(milliseconds);
            assert_eq!(english.format_duration(time).replace(FIRM, " "), in_english);
            assert_eq!(ukrainian.format_duration(time).replace(FIRM, " "), in_ukrainian);
        }
        let spans = [(1, "1 s"), (90, "90 s"), (60, "1 min"), (5_400, "90 min"), (86_400, "24 h"), (604_800, "7 d")];
        for (seconds, expected) in spans {
            assert_eq!(english.format_span(seconds).replace(FIRM, " "), expected);
        }
        assert_eq!(
            (english.format_decimal(0.5), ukrainian.format_decimal(12.25), english.format_decimal(100.0)),
            ("0.5".into(), "12,25".into(), "100".into())
        );
    }
}

#[cfg(test)]
mod time_tests {
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
