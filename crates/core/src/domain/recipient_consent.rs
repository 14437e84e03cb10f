//! Recipients' consent to marketing: whether a consent is valid, given its answer and its date. This module
//! does no I/O.

use std::fmt;
use std::str::FromStr;

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, Timestamp, Zoned};

/// The reason to skip a recipient without consent.
pub const NO_CONSENT: &str = "no consent";
/// The reason to skip a recipient whose consent is too old.
pub const CONSENT_EXPIRED: &str = "consent expired";

/// The answers that mean consent by default, in lower case.
pub const CONSENT_WORDS: [&str; 5] = ["yes", "true", "1", "так", "да"];

/// The cells about one recipient's consent. A cell without a column is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ConsentCells<'c> {
    /// The answer.
    pub value: &'c str,
    /// The time of the consent, as written.
    pub at: &'c str,
    /// The place where the consent was given.
    pub source: &'c str,
    /// The wording that the recipient agreed to.
    pub wording: &'c str,
}

/// The judgement of a consent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsentVerdict {
    /// The recipient consented, or consent is not required.
    #[default]
    Given,
    /// The consent is too old.
    Expired,
    /// The recipient did not consent.
    Missing,
    /// The answer is yes, but its date is empty, unreadable or in the future.
    Undated,
}

impl ConsentVerdict {
    /// The reason to skip the recipient. `None` if consent was given.
    pub fn skip_reason(self) -> Option<&'static str> {
        match self {
            Self::Given => None,
            Self::Expired => Some(CONSENT_EXPIRED),
            Self::Missing | Self::Undated => Some(NO_CONSENT),
        }
    }
}

/// The period for which a consent is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsentPeriod {
    count: u16,
    unit: PeriodUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeriodUnit {
    Days,
    Weeks,
    Months,
    Years,
}

impl PeriodUnit {
    const NAMES: [(Self, &str); 4] =
        [(Self::Days, "day"), (Self::Weeks, "week"), (Self::Months, "month"), (Self::Years, "year")];

    fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(unit, _)| *unit == self).map_or("", |(_, name)| name)
    }

    /// The unit with this name: `month`, `months`, or `d` for days.
    fn from_name(name: &str) -> Option<Self> {
        let singular = name.strip_suffix('s').unwrap_or(name);
        let known = Self::NAMES.into_iter().find(|(_, known)| *known == singular).map(|(unit, _)| unit);
        known.or_else(|| (name == "d").then_some(Self::Days))
    }
}

impl ConsentPeriod {
    /// The longest period, in units.
    const MAX: u16 = 9_999;

    /// The latest day whose consents have expired by `today`. A consent expires on the day after its period ends.
    pub fn last_expired_day(self, today: Date) -> Option<Date> {
        let count = i64::from(self.count);
        let span = match self.unit {
            PeriodUnit::Days => Span::new().days(count),
            PeriodUnit::Weeks => Span::new().weeks(count),
            PeriodUnit::Months => Span::new().months(count),
            PeriodUnit::Years => Span::new().years(count),
        };
        let is_over = |day: &Date| day.checked_add(span).is_ok_and(|end| end < today);
        // Months have different lengths, so subtracting the period gives a day that is only close to the last expired
        // day.
        let mut last_expired = today.checked_sub(span).ok()?;
        while !is_over(&last_expired) {
            last_expired = last_expired.yesterday().ok()?;
        }
        while let Some(next) = last_expired.tomorrow().ok().filter(&is_over) {
            last_expired = next;
        }
        Some(last_expired)
    }
}

/// The error for a text that is not a period such as `24 months`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a period such as `24 months`")]
pub struct ParsePeriodError;

impl FromStr for ConsentPeriod {
    type Err = ParsePeriodError;

    fn from_str(text: &str) -> Result<Self, ParsePeriodError> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, unit) = text.split_at(digits);
        let count: u16 = count.parse().map_err(|_| ParsePeriodError)?;
        let unit = PeriodUnit::from_name(&unit.trim().to_lowercase()).ok_or(ParsePeriodError)?;
        if (1..=Self::MAX).contains(&count) { Ok(Self { count, unit }) } else { Err(ParsePeriodError) }
    }
}

impl fmt::Display for ConsentPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.count, self.unit.name(), if self.count == 1 { "" } else { "s" })
    }
}

/// The rules for judging a consent on a day.
#[derive(Clone, Debug)]
pub struct ConsentRules {
    /// The answers that mean consent, in lower case.
    words: Vec<String>,
    /// Whether a consent must have a date.
    requires_date: bool,
    today: Date,
    /// The latest day whose consents have expired.
    last_expired_day: Option<Date>,
}

impl ConsentRules {
    /// The rules on the day `today`; `words` are the answers that mean consent. If `words` is empty, the default
    /// answers apply.
    pub fn new(words: &[String], requires_date: bool, valid_for: Option<ConsentPeriod>, today: Date) -> Self {
        let words = match words {
            [] => CONSENT_WORDS.map(str::to_owned).to_vec(),
            words => words.iter().map(|word| word.trim().to_lowercase()).collect(),
        };
        let last_expired_day = valid_for.and_then(|period| period.last_expired_day(today));
        Self { words, requires_date, today, last_expired_day }
    }

    /// Whether an answer means consent.
    pub fn is_yes(&self, answer: &str) -> bool {
        let answer = answer.trim();
        // Most answers match a word of the rules exactly, so the cheaper comparison comes first.
        self.words.iter().any(|word| word == answer) || self.words.iter().any(|word| is_same_word(word, answer))
    }

    /// The day of a consent. `None` if the cell is empty or unreadable, or the day is in the future.
    pub fn parse_day(&self, at: &str) -> Option<Date> {
        parse_consent_day(at).filter(|day| *day <= self.today)
    }

    /// Decides from the cells of a row whether consent was given and is still valid.
    pub fn judge(&self, cells: ConsentCells<'_>) -> ConsentVerdict {
        match self.is_yes(cells.value) {
            true => self.judge_date(cells.at),
            false => ConsentVerdict::Missing,
        }
    }

    /// Decides from the date of a given consent whether the consent is still valid. If no date is required, the
    /// consent is always valid.
    pub fn judge_date(&self, at: &str) -> ConsentVerdict {
        if !self.requires_date {
            return ConsentVerdict::Given;
        }
        match (self.parse_day(at), self.last_expired_day) {
            (None, _) => ConsentVerdict::Undated,
            (Some(day), Some(last_expired)) if day <= last_expired => ConsentVerdict::Expired,
            (Some(_), _) => ConsentVerdict::Given,
        }
    }
}

/// The day of a date or time, as written: `2026-03-01`, `01.03.2026`, `2026/03/01`, with or without a time.
///
/// Other dates with slashes are not read, because day and month might be swapped.
pub fn parse_consent_day(cell: &str) -> Option<Date> {
    let cell = cell.trim();
    let (day, rest) = cell.split_at_checked(DAY_LENGTH)?;
    let parsed = parse_day_digits(day.as_bytes())?;
    if rest.is_empty() {
        return Some(parsed);
    }
    let time = rest.strip_prefix([' ', 'T', ','])?.trim_start();
    let is_time = is_plain_time(time.as_bytes())
        || time.parse::<Time>().is_ok()
        || cell.parse::<DateTime>().is_ok()
        || cell.parse::<Timestamp>().is_ok()
        || cell.parse::<Zoned>().is_ok();
    is_time.then_some(parsed)
}

/// The number of bytes of a day.
const DAY_LENGTH: usize = 10;

/// Whether a text is a time such as `10:05` or `10:05:59`. All other times are parsed by the calendar library, which is
/// slower.
fn is_plain_time(time: &[u8]) -> bool {
    let is_below = |tens: u8, ones: u8, limit: u8| {
        let digits = [tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0')];
        digits.iter().all(|digit| *digit < 10) && digits[0] * 10 + digits[1] < limit
    };
    match *time {
        [h1, h2, b':', m1, m2] => is_below(h1, h2, 24) && is_below(m1, m2, 60),
        [h1, h2, b':', m1, m2, b':', s1, s2] => is_below(h1, h2, 24) && is_below(m1, m2, 60) && is_below(s1, s2, 60),
        _ => false,
    }
}

/// Reads `2026-03-01`, `2026/03/01` or `01.03.2026` without an allocation.
fn parse_day_digits(text: &[u8]) -> Option<Date> {
    let [year, month, day] = match *text {
        [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2]
        | [y1, y2, y3, y4, b'/', m1, m2, b'/', d1, d2]
        | [d1, d2, b'.', m1, m2, b'.', y1, y2, y3, y4] => {
            [[y1, y2, y3, y4], [b'0', b'0', m1, m2], [b'0', b'0', d1, d2]]
        }
        _ => return None,
    };
    let parse_number = |digits: [u8; 4]| {
        let is_number = digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| digits.iter().fold(0_i16, |number, digit| number * 10 + i16::from(digit - b'0')))
    };
    Date::new(parse_number(year)?, i8::try_from(parse_number(month)?).ok()?, i8::try_from(parse_number(day)?).ok()?)
        .ok()
}

/// Whether an answer equals a lower-case word, ignoring case.
fn is_same_word(word: &str, answer: &str) -> bool {
    answer.chars().flat_map(char::to_lowercase).eq(word.chars())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn rules(valid_for: &str) -> ConsentRules {
        ConsentRules::new(&[], true, valid_for.parse().ok(), date(2026, 11, 27))
    }

    #[test]
    fn consent_answers_match_regardless_of_letter_case() {
        let rules = rules("");
        for yes in ["yes", "YES", " Yes ", "true", "1", "так", "ТАК", "Да"] {
            assert!(rules.is_yes(yes), "{yes}");
        }
        for no in ["", "no", "0", "yes please", "ні", "так?", "11"] {
            assert!(!rules.is_yes(no), "{no}");
        }
        let rules = ConsentRules::new(&["Згоден".to_owned()], false, None, date(2026, 11, 27));
        assert!(rules.is_yes("ЗГОДЕН") && !rules.is_yes("yes"));
    }

    #[test]
    fn unambiguous_consent_dates_are_parsed_and_others_rejected() {
        let day = Some(date(2026, 3, 1));
        for cell in [
            "2026-03-01",
            "01.03.2026",
            "2026/03/01",
            "2026-03-01 10:00",
            "2026-03-01T10:00:05.25+02:00",
            "2026-03-01T10:00:05Z",
            "01.03.2026 10:00",
            "01.03.2026, 10:00:59",
        ] {
            assert_eq!(parse_consent_day(cell), day, "{cell}");
        }
        for cell in ["", "soon", "03/01/2026", "1.3.2026", "2026-02-30", "2026-03", "2026-03-01x", "2026-03-01 noon"] {
            assert_eq!(parse_consent_day(cell), None, "{cell}");
        }
    }

    #[test]
    fn consent_expires_the_day_after_its_period_ends() {
        let verdict = |at: &str| rules("24 months").judge(ConsentCells { value: "yes", at, ..Default::default() });
        assert_eq!(verdict("2024-11-27"), ConsentVerdict::Given);
        assert_eq!(verdict("2024-11-26"), ConsentVerdict::Expired);
        assert_eq!(verdict("2026-11-27 23:59"), ConsentVerdict::Given);
        assert_eq!(verdict("2026-11-28"), ConsentVerdict::Undated, "a consent dated tomorrow has not been given yet");
        assert_eq!(verdict(""), ConsentVerdict::Undated);
        let leap = "1 year".parse::<ConsentPeriod>().unwrap();
        assert_eq!(leap.last_expired_day(date(2025, 3, 1)), Some(date(2024, 2, 29)));
        assert_eq!(leap.last_expired_day(date(2025, 2, 28)), Some(date(2024, 2, 27)));
    }

    #[test]
    fn periods_are_parsed_and_formatted() {
        for (text, shown) in
            [("24 months", "24 months"), ("1 year", "1 year"), ("90d", "90 days"), ("2 Weeks", "2 weeks")]
        {
            assert_eq!(text.parse::<ConsentPeriod>().map(|period| period.to_string()), Ok(shown.to_owned()));
        }
        for text in ["", "24", "months", "0 days", "2 moons", "99999 days", "-1 day"] {
            assert_eq!(text.parse::<ConsentPeriod>(), Err(ParsePeriodError), "{text}");
        }
    }
}
