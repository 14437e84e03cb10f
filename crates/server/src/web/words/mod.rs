//! Texts of pages in English and Ukrainian, by key; numbers, money, durations, dates and times in each language.
//!
//! The texts are in `en.yaml` and `uk.yaml`. A test compares the two with each other, and with the code and the
//! templates that use them. Times are always in a given time zone.
//!
//! This module does not read a clock or the environment, and does not produce HTML. Callers escape the texts.

#[cfg(test)]
mod table_tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use campaign_core::domain::Amount;
use campaign_engine::check::online::Cost;
use campaign_engine::report::{format_thousands, round_up_duration};
use icu_locale_core::locale;
use icu_plurals::{PluralCategory, PluralRules};
use jiff::Zoned;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde::Deserialize;

/// The sources of the tables, in the order of [`PageLanguage::ALL`].
const SOURCES: [&str; 2] = [include_str!("en.yaml"), include_str!("uk.yaml")];

/// The texts of pages in one language.
#[derive(Debug)]
pub struct PageWords {
    language: PageLanguage,
    messages: BTreeMap<String, Translation>,
}

/// A translated message.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Translation {
    /// A text that does not depend on a number.
    Text(String),
    /// A text with a form for each plural category.
    Counted(PluralForms),
}

/// The forms of a counted message, by the plural categories of Unicode.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluralForms {
    one: Option<String>,
    few: Option<String>,
    many: Option<String>,
    other: String,
}

impl PluralForms {
    /// The form for a plural category. `None` if the message lacks that form.
    fn for_category(&self, category: PluralCategory) -> Option<&String> {
        match category {
            PluralCategory::One => self.one.as_ref(),
            PluralCategory::Few => self.few.as_ref(),
            PluralCategory::Many => self.many.as_ref(),
            PluralCategory::Other => Some(&self.other),
            PluralCategory::Zero | PluralCategory::Two => None,
        }
    }
}

static WORDS: LazyLock<[PageWords; 2]> = LazyLock::new(|| PageLanguage::ALL.map(PageWords::load));

impl PageWords {
    /// The texts of a language.
    pub fn in_language(language: PageLanguage) -> &'static Self {
        &WORDS[language as usize]
    }

    fn load(language: PageLanguage) -> Self {
        // The tables are compiled into the program, and a test reads them.
        let messages = serde_yaml::from_str(SOURCES[language as usize]).unwrap_or_default();
        Self { language, messages }
    }

    /// The language of the texts, which also determines the format of numbers.
    pub fn language(&self) -> PageLanguage {
        self.language
    }

    /// The text for a key.
    pub fn say<'w>(&'w self, key: &'w str) -> &'w str {
        match self.messages.get(key) {
            Some(Translation::Text(text)) => text,
            Some(Translation::Counted(forms)) => &forms.other,
            // A missing key is shown as is; a test detects missing keys earlier.
            None => key,
        }
    }

    /// The text for a key, with placeholders such as `{name}` replaced by these values.
    pub fn say_with(&self, key: &str, values: &[(&str, &str)]) -> String {
        fill_placeholders(self.say(key), values)
    }

    /// The text for a key in the plural form of `count`, which fills `{count}`; `values` fill the other placeholders.
    pub fn count(&self, key: &str, count: u64, values: &[(&str, &str)]) -> String {
        let text = match self.messages.get(key) {
            Some(Translation::Counted(forms)) => {
                forms.for_category(plural_rules(self.language).category_for(count)).unwrap_or(&forms.other)
            }
            _ => self.say(key),
        };
        let number = self.format_number(count);
        fill_placeholders(text, &[&[("count", number.as_str())], values].concat())
    }

    /// The translated name of an item, such as `item_name("state", "in_doubt")`; `None` if the item has no translation.
    pub fn item_name(&self, kind: &str, word: &str) -> Option<&str> {
        match self.messages.get(&format!("{kind}.{word}")) {
            Some(Translation::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// All messages of this language.
    #[cfg(test)]
    fn messages(&self) -> &BTreeMap<String, Translation> {
        &self.messages
    }
}

/// The plural rules of a language. The rules cannot be shared between threads, but are cheap to create.
fn plural_rules(language: PageLanguage) -> PluralRules {
    let locale = match language {
        PageLanguage::English => locale!("en"),
        PageLanguage::Ukrainian => locale!("uk"),
    };
    PluralRules::try_new_cardinal(locale.into()).expect("the library has the rules of every language")
}

/// Fills the placeholders of a text. Unknown placeholders are left as they are. Inserted values are not searched for
/// placeholders.
fn fill_placeholders(text: &str, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let placeholder = after.split_once('}').and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((*value, after))
        });
        match placeholder {
            Some((value, after)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled + rest
}

/// A language of pages. The order of the variants is that of [`Self::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageLanguage {
    /// English, the default.
    #[default]
    English,
    /// Ukrainian.
    Ukrainian,
}

impl PageLanguage {
    /// Every language.
    pub const ALL: [PageLanguage; 2] = [PageLanguage::English, PageLanguage::Ukrainian];

    /// The code for the `lang` attribute of a page.
    pub fn code(self) -> &'static str {
        match self {
            PageLanguage::English => "en",
            PageLanguage::Ukrainian => "uk",
        }
    }

    /// Returns the language that a browser prefers by `Accept-Language` (RFC 9110, 12.5.4), or English if no language
    /// matches.
    pub fn from_accept_language(header: &str) -> Self {
        let preference = |language: &Self| language_weight(header, language.code());
        let ranked = Self::ALL.into_iter().map(|language| (language, preference(&language)));
        // On a tie, the first language wins.
        let best = ranked.reduce(|best, next| match next.1.total_cmp(&best.1) {
            Ordering::Greater => next,
            _ => best,
        });
        best.filter(|(_, weight)| *weight > 0.0).map(|(language, _)| language).unwrap_or_default()
    }

    /// Returns the language of a locale such as `uk_UA.UTF-8`, or English if no language matches.
    pub fn from_locale(locale: &str) -> Self {
        let code = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
        Self::ALL.into_iter().find(|language| code.eq_ignore_ascii_case(language.code())).unwrap_or_default()
    }
}

/// Returns the weight of a language in an `Accept-Language` header, from 0 to 1. If no range names the language, the
/// weight of `*` counts.
fn language_weight(header: &str, code: &str) -> f32 {
    let ranges = header.split(',').filter_map(parse_range);
    let names_language = |tag: &str| tag.split('-').next().is_some_and(|first| first.eq_ignore_ascii_case(code));
    let (mut exact, mut wildcard) = (None, 0.0_f32);
    for (tag, quality) in ranges {
        if names_language(tag) {
            exact = Some(exact.map_or(quality, |exact: f32| exact.max(quality)));
        } else if tag == "*" {
            wildcard = wildcard.max(quality);
        }
    }
    exact.unwrap_or(wildcard)
}

/// Parses a language range with its quality; returns `None` if the quality is not a number from 0 to 1.
fn parse_range(text: &str) -> Option<(&str, f32)> {
    let mut pieces = text.split(';').map(str::trim);
    let tag = pieces.next().filter(|tag| !tag.is_empty())?;
    let quality = pieces.find_map(|piece| piece.strip_prefix("q=").or_else(|| piece.strip_prefix("Q=")));
    let quality = quality.map_or(Some(1.0), |quality| quality.parse().ok())?;
    (0.0..=1.0).contains(&quality).then_some((tag, quality))
}

/// The thousands separator: a narrow no-break space.
const NARROW_NBSP: &str = "\u{202f}";
/// A no-break space between a number and its unit.
const NBSP: char = '\u{a0}';

impl PageWords {
    /// Formats a number with thousands separators.
    pub fn format_number(&self, number: u64) -> String {
        format_thousands(number).replace(' ', NARROW_NBSP)
    }

    /// Formats an amount of money, with the currency if it is known.
    pub fn format_money(&self, amount: Amount, currency: Option<&str>) -> String {
        let amount = amount.trim_decimals().to_string().replace(' ', NARROW_NBSP).replace('-', "\u{2212}");
        let amount = match self.language() {
            PageLanguage::English => amount,
            PageLanguage::Ukrainian => amount.replace('.', ","),
        };
        match currency {
            Some(currency) => format!("{amount}{NBSP}{currency}"),
            None => amount,
        }
    }

    /// Formats a note that a cost lacks this many messages, because their price is unknown. Returns `None` if the
    /// number is 0.
    pub fn format_unpriced(&self, messages: u64) -> Option<String> {
        (messages > 0).then(|| self.count("figure.unpriced", messages, &[]))
    }

    /// Formats a number with at most three decimal places.
    pub fn format_decimal(&self, number: f64) -> String {
        let text = format!("{number:.3}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match self.language() {
            PageLanguage::English => text.to_owned(),
            PageLanguage::Ukrainian => text.replace('.', ","),
        }
    }

    /// Formats a duration in whole seconds, minutes, hours or days, such as `10 s` or `5 min`. Durations below two days
    /// are not shown in days.
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
        format!("{}{NBSP}{unit}", self.format_number(number))
    }

    /// Formats a duration in units that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
    pub fn format_duration(&self, time: Duration) -> String {
        let seconds = time.as_secs();
        let (large, small) = match seconds {
            0 if time.as_millis() < 100 => return format!("{}{NBSP}{}", time.as_millis(), self.say("time.ms")),
            0..10 => {
                let tenths = self.format_decimal((time.as_secs_f64() * 10.0).round() / 10.0);
                return format!("{tenths}{NBSP}{}", self.say("time.s"));
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

    /// Formats an upper bound of a duration in the same units as [`Self::format_duration`], but rounded up.
    pub fn format_duration_limit(&self, time: Duration) -> String {
        let milliseconds = time.as_micros().div_ceil(1_000).max(1);
        match u64::try_from(milliseconds) {
            Ok(milliseconds @ 0..100) => self.format_duration(Duration::from_millis(milliseconds)),
            _ => self.format_duration(round_up_duration(time)),
        }
    }

    /// Formats the maximum cost of messages, or names the channels without a price.
    pub fn format_cost(&self, cost: &Cost, currency: Option<&str>) -> String {
        match cost {
            Cost::AtMost(amount) => self.format_money(*amount, currency),
            Cost::Unknown(channels) => {
                let named = channels.iter().map(|channel| {
                    let word = channel.name();
                    self.item_name("channel", word).map_or(Cow::Borrowed(word), Cow::Borrowed)
                });
                let channels = named.collect::<Vec<_>>().join(", ");
                self.say_with("cost.unknown", &[("channels", &channels)])
            }
        }
    }
}

/// The number of letters of a month on an axis.
const SHORT_MONTH_LETTERS: usize = 3;

impl PageWords {
    /// Formats a day, such as `21 November 2026`.
    pub fn format_day(&self, date: Date) -> String {
        let (day, month, year) = (date.day().to_string(), date.month().to_string(), date.year().to_string());
        let month = self.item_name("month", &month).unwrap_or_default();
        self.say_with("moment.day", &[("day", &day), ("month", month), ("year", &year)])
    }

    /// Formats a day for an axis, such as `21 Nov`.
    pub fn format_short_day(&self, date: Date) -> String {
        let month = date.month().to_string();
        let month: String =
            self.item_name("month", &month).unwrap_or_default().chars().take(SHORT_MONTH_LETTERS).collect();
        format!("{}{NBSP}{month}", date.day())
    }

    /// Formats a time of day to the minute, in 24-hour form, such as `09:05`.
    pub fn format_time(&self, time: Time) -> String {
        time.strftime("%H:%M").to_string()
    }

    /// Formats a moment to the minute in its time zone, such as `21 November 2026, 09:05`.
    pub fn format_moment(&self, moment: &Zoned) -> String {
        let (day, time) = (self.format_day(moment.date()), self.format_time(moment.time()));
        self.say_with("moment.moment", &[("day", &day), ("time", &time)])
    }

    /// Formats a moment to the second in its time zone, such as `21 November 2026, 09:05:07`.
    pub fn format_moment_with_seconds(&self, moment: &Zoned) -> String {
        let (day, time) = (self.format_day(moment.date()), moment.time().strftime("%H:%M:%S").to_string());
        self.say_with("moment.moment", &[("day", &day), ("time", &time)])
    }

    /// Formats a moment with the name of its time zone, such as `21 November 2026, 09:05 (Europe/Kyiv)`.
    pub fn format_moment_in_zone(&self, moment: &Zoned) -> String {
        format!("{} ({})", self.format_moment(moment), zone_name(moment.time_zone()))
    }
}

/// The IANA name of a time zone, or `UTC` for every alias of UTC and for a zone without a name.
pub fn zone_name(zone: &TimeZone) -> &str {
    match zone.iana_name() {
        None | Some("Etc/UTC" | "Etc/UCT" | "Etc/Universal" | "Etc/Zulu") => "UTC",
        Some(name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_uses_the_plural_form_of_its_language() {
        let table = [
            (PageLanguage::English, 1, "1 part"),
            (PageLanguage::English, 0, "0 parts"),
            (PageLanguage::English, 1_000_000, "1\u{202f}000\u{202f}000 parts"),
            (PageLanguage::Ukrainian, 1, "1 частина"),
            (PageLanguage::Ukrainian, 3, "3 частини"),
            (PageLanguage::Ukrainian, 5, "5 частин"),
            (PageLanguage::Ukrainian, 12, "12 частин"),
            (PageLanguage::Ukrainian, 21, "21 частина"),
            (PageLanguage::Ukrainian, 1_002, "1\u{202f}002 частини"),
        ];
        for (language, count, text) in table {
            assert_eq!(PageWords::in_language(language).count("phone.parts", count, &[]), text);
        }
    }

    #[test]
    fn placeholders_are_filled_once_and_not_recursively() {
        let values = [("a", "{b}"), ("b", "x")];
        let table = [("{a} and {b}", "{b} and x"), ("{c} {a", "{c} {a"), ("} {{a}", "} {{b}"), ("", "")];
        for (text, filled) in table {
            assert_eq!(fill_placeholders(text, &values), filled, "{text}");
        }
    }
}

#[cfg(test)]
mod language_tests {
    use proptest::prelude::*;

    use crate::web::words::*;

    #[test]
    fn accept_language_selects_the_preferred_language() {
        use PageLanguage::{English, Ukrainian};
        let table = [
            ("", English),
            ("uk", Ukrainian),
            ("uk-UA,uk;q=0.9,en-US;q=0.8,en;q=0.7", Ukrainian),
            ("en-US,en;q=0.9,uk;q=0.8", English),
            ("de-DE,de;q=0.9,uk;q=0.5,en;q=0.3", Ukrainian),
            ("de, fr;q=0.5", English),
            ("uk;q=0, *", English),
            ("en;q=0, *;q=0.1", Ukrainian),
            ("*", English),
            ("*;q=0.5, uk;q=0.8", Ukrainian),
            ("UK-ua", Ukrainian),
            ("uk;q=2, en;q=0.1", English),
            ("uk;q=x", English),
            ("uk ; Q=0.4 , en ; q=0.3", Ukrainian),
            (";q=1,,uk", Ukrainian),
            ("ukr", English),
        ];
        for (header, language) in table {
            assert_eq!(PageLanguage::from_accept_language(header), language, "{header}");
        }
    }

    #[test]
    fn locale_selects_its_language() {
        let table = [("uk_UA.UTF-8", "uk"), ("uk", "uk"), ("UK@euro", "uk"), ("en_GB", "en"), ("C", "en"), ("", "en")];
        for (locale, code) in table {
            assert_eq!(PageLanguage::from_locale(locale).code(), code, "{locale}");
        }
    }

    proptest! {
        #[test]
        fn any_header_or_locale_selects_a_language(header in any::<String>(), likely in "[a-z*;,q=.0-9 -]{0,60}") {
            for header in [header, likely] {
                let selected = [PageLanguage::from_accept_language(&header), PageLanguage::from_locale(&header)];
                prop_assert!(selected.iter().all(|language| PageLanguage::ALL.contains(language)));
            }
        }
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
            assert_eq!(english.format_duration(time).replace(NBSP, " "), in_english);
            assert_eq!(ukrainian.format_duration(time).replace(NBSP, " "), in_ukrainian);
        }
        let bounds = [(0, "1 ms"), (99, "99 ms"), (401, "0.5 s"), (10_990, "11 s"), (59_970, "1 min")];
        for (milliseconds, text) in bounds {
            let limit = english.format_duration_limit(Duration::from_millis(milliseconds));
            assert_eq!(limit.replace(NBSP, " "), text, "{milliseconds} ms");
        }
        let spans = [(1, "1 s"), (90, "90 s"), (60, "1 min"), (5_400, "90 min"), (86_400, "24 h"), (604_800, "7 d")];
        for (seconds, expected) in spans {
            assert_eq!(english.format_span(seconds).replace(NBSP, " "), expected);
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
    fn utc_has_one_name_and_other_zones_keep_theirs() {
        let named = |name: &str| zone_name(&TimeZone::get(name).unwrap()).to_owned();
        assert_eq!(["Etc/UTC", "UTC", "Europe/Kyiv"].map(named), ["UTC", "UTC", "Europe/Kyiv"]);
        assert_eq!(zone_name(&TimeZone::UTC), "UTC");
    }

    #[test]
    fn timestamp_is_formatted_in_its_time_zone() {
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
