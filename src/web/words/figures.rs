//! Numbers and money as each language writes them.

use std::borrow::Cow;
use std::time::Duration;

use super::{PageLanguage, PageWords};
use crate::check::online::Cost;
use crate::domain::Amount;
use crate::report::format_thousands;

/// Between thousands: narrow, and no line ends there.
const THIN: &str = "\u{202f}";
/// Between a number and what it counts, where no line should end.
const FIRM: char = '\u{a0}';

impl PageWords {
    /// A number with its thousands apart.
    #[must_use]
    pub fn format_number(&self, number: u64) -> String {
        format_thousands(number).replace(' ', THIN)
    }

    /// An amount of money with its currency, where that is known.
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

    /// A number that may have a part behind the point, at most three digits of it.
    #[must_use]
    pub fn format_decimal(&self, number: f64) -> String {
        let text = format!("{number:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match self.language() {
            PageLanguage::English => text.to_owned(),
            PageLanguage::Ukrainian => text.replace('.', ","),
        }
    }

    /// A time of whole seconds, minutes, hours or days: `10 s`, `5 min`.
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

    /// A time in words that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
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

    /// What messages cost at most, or which channels have no price.
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

#[cfg(test)]
mod tests {
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
        for (milliseconds, told, said) in table {
            let time = Duration::from_millis(milliseconds);
            assert_eq!(english.format_duration(time).replace(FIRM, " "), told);
            assert_eq!(ukrainian.format_duration(time).replace(FIRM, " "), said);
        }
        let spans = [(1, "1 s"), (90, "90 s"), (60, "1 min"), (5_400, "90 min"), (86_400, "24 h"), (604_800, "7 d")];
        for (seconds, told) in spans {
            assert_eq!(english.format_span(seconds).replace(FIRM, " "), told);
        }
        assert_eq!(
            (english.format_decimal(0.5), ukrainian.format_decimal(12.25), english.format_decimal(100.0)),
            ("0.5".into(), "12,25".into(), "100".into())
        );
    }
}
