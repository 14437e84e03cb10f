//! Sending windows: hours of the day, days of the week and excluded dates, in any time zone.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

const MINUTES_PER_DAY: u16 = 24 * 60;
/// The number of hours that are searched for an opening or closing: a little more than a year.
const LOOKAHEAD_HOURS: i64 = 400 * 24;
/// The maximum number of openings that are counted.
const MAX_OPENINGS: u64 = 10_000;
/// The names of the days of the week in campaign files.
const DAY_NAMES: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// Hours of a day, excluding the end.
///
/// Hours that end before they begin span midnight and belong to the day on which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DailyHours {
    /// The first minute, counted from midnight.
    from: u16,
    /// The minute of the end, counted from midnight; at most 24:00.
    to: u16,
}

/// Days of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Days([bool; 7]);

/// A sending window, independent of the zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The hours of a day.
    pub hours: DailyHours,
    /// The days of the week.
    pub days: Days,
    /// Dates without sending.
    pub except: BTreeSet<Date>,
}

impl DailyHours {
    /// Parses `09:00-20:00`; `24:00` is the end of the day.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (parse_minute(from.trim())?, parse_minute(to.trim())?);
        (from != to && from < MINUTES_PER_DAY && to > 0).then_some(Self { from, to }).or_else(|| {
            // `22:00-00:00` ends at the end of the day.
            (to == 0 && from > 0 && from < MINUTES_PER_DAY).then_some(Self { from, to: MINUTES_PER_DAY })
        })
    }
}

/// Parses a time such as `09:00` into the minute of the day.
fn parse_minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let parse_number = |digits: &str, min: usize| {
        let fits = (min..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| digits.parse::<u16>().ok()).flatten()
    };
    let (hours, minutes) = (parse_number(hours, 1)?, parse_number(minutes, 2)?);
    (minutes < 60).then_some(hours * 60 + minutes).filter(|minute| *minute <= MINUTES_PER_DAY)
}

impl Days {
    /// All days.
    pub const ALL: Self = Self([true; 7]);

    /// Parses `mon-fri`, `sat, sun` or `mon`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut days = [false; 7];
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (mut day, last) = (parse_weekday(first)?, parse_weekday(last)?);
            // Ranges can span the end of the week: `sat-mon` covers three days.
            loop {
                days[day] = true;
                if day == last {
                    break;
                }
                day = (day + 1) % 7;
            }
        }
        Some(Self(days))
    }

    /// Formats the days, with three or more consecutive days as a range: `mon-fri`, `mon, sat, sun`.
    pub(crate) fn format_ranges(self) -> String {
        let (mut parts, mut day) = (Vec::new(), 0);
        while day < self.0.len() {
            let length = self.0[day..].iter().take_while(|included| **included).count();
            match length {
                0..3 => parts.extend(DAY_NAMES[day..day + length].iter().map(|(name, _)| (*name).to_owned())),
                _ => parts.push(format!("{}-{}", DAY_NAMES[day].0, DAY_NAMES[day + length - 1].0)),
            }
            // The day after a range is never selected, so it is skipped.
            day += length + 1;
        }
        parts.join(", ")
    }

    fn contains(self, day: Weekday) -> bool {
        self.0[usize::from(day.to_monday_zero_offset().unsigned_abs())]
    }
}

fn parse_weekday(name: &str) -> Option<usize> {
    let name = name.trim().to_lowercase();
    DAY_NAMES.iter().position(|(known, _)| *known == name)
}

impl Window {
    /// Formats the window as text, with ranges of days: `09:00-20:00 on mon-fri`.
    ///
    /// Plans store the output of `Display`, so that output must not change.
    pub fn format_short(&self) -> String {
        self.format_with_days(&self.days.format_ranges())
    }

    fn format_with_days(&self, days: &str) -> String {
        let mut text = self.hours.to_string();
        if self.days != Days::ALL {
            text += &format!(" on {days}");
        }
        for (index, date) in self.except.iter().enumerate() {
            text += &format!("{}{date}", if index == 0 { ", but for " } else { ", " });
        }
        text
    }

    /// Whether the window is open at a local time.
    fn contains(&self, local: DateTime) -> bool {
        let minute = local.hour().unsigned_abs() as u16 * 60 + local.minute().unsigned_abs() as u16;
        let includes_day = |date: Date| self.days.contains(date.weekday()) && !self.except.contains(&date);
        let DailyHours { from, to } = self.hours;
        if from < to {
            return (from..to).contains(&minute) && includes_day(local.date());
        }
        (minute >= from && includes_day(local.date()))
            || (minute < to && local.date().yesterday().is_ok_and(includes_day))
    }

    /// The next moment at which the window can open or close in a zone.
    fn next_change_after(&self, moment: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut next = zone.following(moment).next().map(|change| change.timestamp());
        let mut date = zone.to_datetime(moment).date().yesterday().ok()?;
        // From yesterday to the day after tomorrow, because a clock change can skip a whole day.
        for _ in 0..4 {
            for minute in [0, self.hours.from, self.hours.to % MINUTES_PER_DAY] {
                let local = date.at((minute / 60) as i8, (minute % 60) as i8, 0, 0);
                let ambiguous = zone.to_ambiguous_timestamp(local);
                // A skipped local time never occurs, so its moments are needless but harmless candidates. The clock
                // change itself is handled above.
                for at in [ambiguous.earlier(), ambiguous.later()].into_iter().flatten() {
                    if at > moment && next.is_none_or(|next| at < next) {
                        next = Some(at);
                    }
                }
            }
            date = date.tomorrow().ok()?;
        }
        next
    }
}

/// Windows with their zones. Messages are sent only while all of them are open.
#[derive(Clone, Debug, Default)]
pub struct Windows(Vec<(Window, TimeZone)>);

impl Windows {
    /// Combines windows: messages may be sent only while all of them are open.
    pub fn new(windows: Vec<(Window, TimeZone)>) -> Self {
        Self(windows)
    }

    /// Whether messages may be sent at a moment.
    pub fn are_open(&self, moment: Timestamp) -> bool {
        self.0.iter().all(|(window, zone)| window.contains(zone.to_datetime(moment)))
    }

    /// The first moment, from `moment` on, at which all windows are open. `None` if there is no such moment within a
    /// year.
    pub fn next_open_from(&self, moment: Timestamp) -> Option<Timestamp> {
        self.find_first_moment(moment, true)
    }

    /// The first moment, from `moment` on, at which a window is closed. `None` if there is no such moment within a
    /// year.
    pub fn next_closed_from(&self, moment: Timestamp) -> Option<Timestamp> {
        if self.0.is_empty() { None } else { self.find_first_moment(moment, false) }
    }

    /// The number of times that the windows open, from `moment` on, until they have been open for `time` in total.
    /// `None` if they stay closed for more than a year before that. At most 10 000 openings are counted.
    pub fn count_openings(&self, moment: Timestamp, time: Duration) -> Option<u64> {
        let (mut at, mut remaining, mut openings) = (moment, time, 0);
        loop {
            let opens = self.next_open_from(at)?;
            openings += 1;
            let Some(closes) = self.next_closed_from(opens) else { return Some(openings) };
            remaining = remaining.saturating_sub(Duration::try_from(closes.duration_since(opens)).unwrap_or_default());
            if remaining.is_zero() || openings >= MAX_OPENINGS {
                return Some(openings);
            }
            at = closes;
        }
    }

    fn find_first_moment(&self, moment: Timestamp, must_be_open: bool) -> Option<Timestamp> {
        let (mut at, limit) = (moment, moment.checked_add(LOOKAHEAD_HOURS.hours()).ok()?);
        while at <= limit {
            if self.are_open(at) == must_be_open {
                return Some(at);
            }
            at = self.0.iter().filter_map(|(window, zone)| window.next_change_after(at, zone)).min()?;
        }
        None
    }
}

impl fmt::Display for Window {
    /// Formats the window as text: `09:00-20:00 on mon, tue, but for 2026-12-25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format_with_days(&self.days.to_string()))
    }
}

impl fmt::Display for DailyHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = DAY_NAMES.iter().filter(|(_, day)| self.contains(*day)).map(|(name, _)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;

    const ZONES: [&str; 5] =
        ["Europe/Kyiv", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"];

    fn window(hours: &str, days: &str, except: &[Date]) -> Window {
        let except = except.iter().copied().collect();
        Window { hours: DailyHours::parse(hours).unwrap(), days: Days::parse(days).unwrap(), except }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Days with a clock change in some zone, and an ordinary day. Apia skipped a whole day in 2011.
    fn days() -> Vec<Timestamp> {
        [
            "2026-03-28T12:00:00Z",
            "2026-10-24T12:00:00Z",
            "2026-03-07T18:00:00Z",
            "2026-10-31T18:00:00Z",
            "2026-04-04T00:00:00Z",
            "2026-10-03T00:00:00Z",
            "2011-12-29T12:00:00Z",
            "2026-06-10T00:00:00Z",
        ]
        .map(at)
        .to_vec()
    }

    /// Searches minute by minute for the first moment at which the window is open or closed, without knowledge of clock
    /// changes.
    fn find_by_minutes(window: &Window, zone: &TimeZone, from: Timestamp, open: bool) -> Option<Timestamp> {
        let minute_start = Timestamp::from_second(from.as_second().div_euclid(60) * 60).unwrap();
        let mut moments =
            (0..4 * 24 * 60).map(|minute| minute_start.checked_add(minute.minutes()).unwrap()).map(|at| at.max(from));
        moments.find(|at| {
            let local = zone.to_datetime(*at);
            let clock = local.time().strftime("%H:%M").to_string();
            let (first, last) = (&window.hours.to_string()[..5], &window.hours.to_string()[6..]);
            let includes_day = |date: Date| window.days.contains(date.weekday()) && !window.except.contains(&date);
            let within = if first < last {
                (first..last).contains(&clock.as_str()) && includes_day(local.date())
            } else {
                (clock.as_str() >= first && includes_day(local.date()))
                    || (clock.as_str() < last && includes_day(local.date().yesterday().unwrap()))
            };
            within == open
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn window_matches_a_minute_by_minute_search(
            zone in 0..ZONES.len(),
            day in 0..8_usize,
            offset in 0..2 * 86_400_i64,
            (from, to) in (0..48_u16, 1..=48_u16).prop_filter("some time", |(from, to)| from != to),
            week in 1..128_u8,
            free in 0..4_i64,
        ) {
            let zone = TimeZone::get(ZONES[zone]).unwrap();
            let from_moment = days()[day].checked_add(offset.seconds()).unwrap();
            let free = zone.to_datetime(from_moment).date().checked_add(free.days()).unwrap();
            let mut set = [false; 7];
            set.iter_mut().enumerate().for_each(|(day, on)| *on = week & (1 << day) != 0);
            let window = Window { hours: DailyHours { from: from * 30, to: to * 30 }, days: Days(set), except: [free].into() };
            let windows = Windows::new(vec![(window.clone(), zone.clone())]);
            for (open, found) in [(true, windows.next_open_from(from_moment)), (false, windows.next_closed_from(from_moment))] {
                match find_by_minutes(&window, &zone, from_moment, open) {
                    Some(expected) => prop_assert_eq!(found, Some(expected), "{} {}", window, open),
                    None => prop_assert!(found.is_none_or(|at| at > from_moment.checked_add(90.hours()).unwrap())),
                }
            }
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = (DailyHours::parse(&text), Days::parse(&text));
        }
    }

    #[test]
    fn hours_and_days_are_parsed_and_formatted() {
        for (text, expected) in [
            ("09:00-20:00", "09:00-20:00"),
            ("9:00 - 20:30", "09:00-20:30"),
            ("22:00-06:00", "22:00-06:00"),
            ("00:00-24:00", "00:00-24:00"),
            ("22:00-00:00", "22:00-24:00"),
        ] {
            assert_eq!(DailyHours::parse(text).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "",
            "9-20",
            "09:00",
            "09:00-09:00",
            "00:00-00:00",
            "24:00-09:00",
            "09:00-24:01",
            "09:60-20:00",
            "09:0-20:00",
        ] {
            assert_eq!(DailyHours::parse(text), None, "{text}");
        }
        for (text, expected) in
            [("mon-fri", "mon, tue, wed, thu, fri"), ("Sat-Mon", "mon, sat, sun"), ("wed, fri", "wed, fri")]
        {
            assert_eq!(Days::parse(text).unwrap().to_string(), expected);
        }
        for (text, ranges) in [("mon-fri", "mon-fri"), ("Sat-Mon", "mon, sat, sun"), ("wed, fri-sun", "wed, fri-sun")] {
            assert_eq!(Days::parse(text).unwrap().format_ranges(), ranges);
        }
        for text in ["", "mo", "mon-", "mon;tue", "mon tue"] {
            assert_eq!(Days::parse(text), None, "{text}");
        }
    }

    #[test]
    fn window_follows_skipped_and_repeated_hours() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let windows = Windows::new(vec![(window("02:30-04:00", "mon-sun", &[]), berlin.clone())]);
        // 02:00 becomes 03:00.
        assert_eq!(windows.next_open_from(at("2026-03-29T00:00:00Z")), Some(at("2026-03-29T01:00:00Z")));
        // 03:00 becomes 02:00: the window is open from the first 02:30, closed from the change, and open again.
        assert_eq!(windows.next_open_from(at("2026-10-24T22:00:00Z")), Some(at("2026-10-25T00:30:00Z")));
        assert_eq!(windows.next_closed_from(at("2026-10-25T00:30:00Z")), Some(at("2026-10-25T01:00:00Z")));
        assert_eq!(windows.next_open_from(at("2026-10-25T01:00:00Z")), Some(at("2026-10-25T01:30:00Z")));
        // Apia had no 30 December 2011.
        let apia = TimeZone::get("Pacific/Apia").unwrap();
        let windows = Windows::new(vec![(window("09:00-10:00", "fri", &[]), apia)]);
        let friday = windows.next_open_from(at("2011-12-29T20:00:00Z")).unwrap();
        assert_eq!(friday.to_string(), "2012-01-05T19:00:00Z", "the Friday after the skipped one");
    }

    #[test]
    fn window_openings_of_a_long_run_are_counted() {
        let kyiv = TimeZone::get("Europe/Kyiv").unwrap();
        let windows = Windows::new(vec![(window("09:00-20:00", "mon-fri", &[]), kyiv)]);
        let hours = |hours: u64| windows.count_openings(at("2026-11-27T12:00:00Z"), Duration::from_secs(hours * 3_600));
        // It is Friday 14:00, and the window closes in six hours. On each further day, it is open for eleven hours.
        assert_eq!([0, 6, 7, 17, 18, 1_000_000].map(hours), [1, 1, 2, 2, 3, 10_000].map(Some));
        assert_eq!(Windows::default().count_openings(at("2026-11-27T12:00:00Z"), Duration::MAX), Some(1));
    }

    #[test]
    fn combined_windows_are_open_only_when_all_are() {
        let kyiv = TimeZone::get("Europe/Kyiv").unwrap();
        let both = Windows::new(vec![
            (window("09:00-20:00", "mon-sun", &[]), kyiv.clone()),
            (window("18:00-23:00", "mon-fri", &[date(2026, 12, 1)]), TimeZone::get("Europe/Berlin").unwrap()),
        ]);
        // Monday 30 November: 18:00 in Berlin is 19:00 in Kyiv.
        assert_eq!(both.next_open_from(at("2026-11-28T12:00:00Z")), Some(at("2026-11-30T17:00:00Z")));
        assert_eq!(both.next_closed_from(at("2026-11-30T17:00:00Z")), Some(at("2026-11-30T18:00:00Z")));
        assert_eq!(
            both.next_open_from(at("2026-11-30T18:00:00Z")),
            Some(at("2026-12-02T17:00:00Z")),
            "but for 1 December"
        );
        let never = Windows::new(vec![
            (window("09:00-12:00", "mon-sun", &[]), kyiv.clone()),
            (window("12:00-20:00", "mon-sun", &[]), kyiv),
        ]);
        assert_eq!(never.next_open_from(at("2026-11-28T12:00:00Z")), None);
        assert_eq!(Windows::default().next_closed_from(at("2026-11-28T12:00:00Z")), None);
        assert!(Windows::default().are_open(at("2026-11-28T12:00:00Z")));
    }
}
