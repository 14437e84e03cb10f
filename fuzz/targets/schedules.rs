//! Fuzz target for schedules and sending windows, compared with a calendar that checks every minute.

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use campaign_core::calendar::{DailyHours, Days, Schedule, Timing, Window, Windows, suggest_date_order};

/// The minutes that the reference checks for a schedule: 40 days.
const SCHEDULE_MINUTES: i64 = 40 * 24 * 60;
/// The minutes that the reference checks for a window: 9 days.
const WINDOW_MINUTES: i64 = 9 * 24 * 60;
/// The maximum number of occurrences. More occurrences take longer and find nothing new.
const MAX_OCCURRENCES: usize = 300;

/// Checks how a text is read as a schedule or a window. The first byte selects the kind of text: `cron`, `every`, `at`,
/// or the hours and days of a window.
pub(super) fn check(data: &[u8]) {
    let Some((kind, rest)) = super::split_choice(data, 4) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind {
        0 => check_cron(text),
        1 => check_every(text),
        2 => check_at(text),
        _ => check_window(text),
    }
}

/// The occurrences of a schedule in UTC after the start of 2026, at most [`MAX_OCCURRENCES`].
fn list_occurrences(timing: Timing) -> Vec<DateTime> {
    let schedule = Schedule { timing, zone: TimeZone::UTC, ends: None, grace: Default::default(), wait_for_file: None };
    let occurrences = schedule.occurrences_after(start().to_zoned(TimeZone::UTC).expect("a moment").timestamp());
    let times: Vec<DateTime> = occurrences.take(MAX_OCCURRENCES).map(|occurrence| occurrence.nominal).collect();
    assert!(times.is_sorted_by(|earlier, later| earlier < later), "occurrences out of order");
    assert!(times.iter().all(|time| time.second() == 0), "an occurrence within a minute");
    times
}

fn start() -> DateTime {
    date(2026, 1, 1).at(0, 0, 0, 0)
}

fn check_cron(text: &str) {
    let Ok(timing) = Timing::parse_cron(text) else { return };
    let times = list_occurrences(timing);
    assert!(!times.is_empty(), "{text:?} never occurs");
    let Some(pattern) = CronPattern::parse(text) else { return };
    let end = start().checked_add(SCHEDULE_MINUTES.minutes()).expect("a time");
    let minutes = (1..SCHEDULE_MINUTES).map(|minute| start().checked_add(minute.minutes()).expect("a time"));
    let expected: Vec<DateTime> = minutes.filter(|time| pattern.matches(*time)).take(MAX_OCCURRENCES).collect();
    let occurrences: Vec<DateTime> = times.into_iter().filter(|time| *time < end).collect();
    assert_eq!(occurrences, expected, "{text:?}");
}

/// A cron pattern of numbers, lists, ranges and steps.
struct CronPattern {
    minutes: Vec<i64>,
    hours: Vec<i64>,
    days: Option<Vec<i64>>,
    months: Vec<i64>,
    weekdays: Option<Vec<i64>>,
}

impl CronPattern {
    /// Parses a pattern. `None` if it contains anything but numbers, lists, ranges and steps.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else { return None };
        // Other programs disagree whether a step counts as a restriction of the days.
        let parse_restriction = |field: &str, least, most| match field {
            "*" => Some(None),
            _ if field.contains('*') => None,
            _ => Some(Some(parse_field(field, least, most)?)),
        };
        let weekdays: Option<Vec<i64>> = parse_restriction(weekday, 0, 7)?;
        Some(Self {
            minutes: parse_field(minute, 0, 59)?,
            hours: parse_field(hour, 0, 23)?,
            days: parse_restriction(day, 1, 31)?,
            months: parse_field(month, 1, 12)?,
            weekdays: weekdays.map(|days| days.into_iter().map(|day| day % 7).collect()),
        })
    }

    fn matches(&self, time: DateTime) -> bool {
        let has = |values: &[i64], value: i8| values.contains(&i64::from(value));
        let on_day = self.days.as_ref().map(|days| has(days, time.day()));
        let on_weekday = self.weekdays.as_ref().map(|days| has(days, time.weekday().to_sunday_zero_offset()));
        let is_on = match (on_day, on_weekday) {
            // If both are restricted, one match is enough.
            (Some(day), Some(weekday)) => day || weekday,
            (day, weekday) => day.or(weekday).unwrap_or(true),
        };
        is_on && has(&self.minutes, time.minute()) && has(&self.hours, time.hour()) && has(&self.months, time.month())
    }
}

/// The values of a field: `*`, `5`, `1-5`, `*/2`, `1-5/2`, or several of them.
fn parse_field(field: &str, least: i64, most: i64) -> Option<Vec<i64>> {
    let number = |text: &str| {
        let fits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| text.parse::<i64>().ok()).flatten().filter(|number| (least..=most).contains(number))
    };
    let mut values = Vec::new();
    for item in field.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, step.parse().ok().filter(|step| (1..=most).contains(step))?),
            None => (item, 1),
        };
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None if range == "*" => (least, most),
            None if step == 1 => (number(range)?, number(range)?),
            None => return None,
        };
        if first > last {
            return None;
        }
        values.extend((first..=last).step_by(step as usize));
    }
    Some(values)
}

fn check_every(text: &str) {
    let Ok(timing) = Timing::parse_every(text) else { return };
    let times = list_occurrences(timing);
    let (days, clock) = text.trim().rsplit_once(char::is_whitespace).expect("days and a time");
    let (hour, minute) = clock.split_once(':').expect("a time");
    let clock: [i8; 2] = [hour, minute].map(|number| number.parse().expect("a number"));
    assert!(!times.is_empty() && times.iter().all(|time| [time.hour(), time.minute()] == clock), "{text:?}: {times:?}");
    let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let days = days.trim().to_lowercase();
    let expected: Vec<bool> = match days.as_str() {
        "day" | "daily" => vec![true; 7],
        "weekdays" => names.map(|name| !name.starts_with('s')).to_vec(),
        "weekend" => names.map(|name| name.starts_with('s')).to_vec(),
        _ if names.contains(&days.as_str()) => names.map(|name| name == days).to_vec(),
        _ => return,
    };
    let week = times.iter().take_while(|time| time.date() < date(2026, 1, 8)).map(|time| time.weekday());
    let mut found = vec![false; 7];
    week.for_each(|day| found[day.to_monday_zero_offset() as usize] = true);
    // The occurrences begin after midnight of 1 January, so the first occurrence at midnight is missing.
    if clock != [0, 0] {
        assert_eq!(found, expected, "{text:?}");
    }
}

/// Checks that a parsed time has the numbers of its text, and that its canonical form is parsed as the same time.
fn check_at(text: &str) {
    if let Some(help) = suggest_date_order(text) {
        assert!(help.contains('-'), "{text:?}: {help}");
    }
    let Ok(timing) = Timing::parse_at(text) else { return };
    let time = timing.single_time().expect("a single time");
    let numbers: Vec<i64> =
        text.split(|character: char| !character.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    let Ok(expected) = <[i64; 5]>::try_from(numbers) else { return };
    let (year, minute) = (i64::from(time.year()).abs(), time.minute().into());
    assert_eq!([year, time.month().into(), time.day().into(), time.hour().into(), minute], expected, "{text:?}");
    let written = time.strftime("%Y-%m-%d %H:%M").to_string();
    if (1000..=9999).contains(&time.year()) {
        assert_eq!(Timing::parse_at(&written), Ok(timing), "{text:?} is written as {written}");
    }
}

/// The number of minutes between the moments from which the next change of a window is searched.
const START_INTERVAL: usize = 487;

/// Checks the hours and days of a window while clocks change in Kyiv.
fn check_window(text: &str) {
    let (hours, days) = text.split_once(';').unwrap_or((text, "mon-sun"));
    let (Some(daily), Some(weekdays)) = (DailyHours::parse(hours), Days::parse(days)) else { return };
    let zone = TimeZone::get("Europe/Kyiv").expect("a zone");
    let window = Window { hours: daily, days: weekdays, except: Default::default() };
    let windows = Windows::new(vec![(window, zone.clone())]);
    let first: Timestamp = "2026-03-24T00:00:00Z".parse().expect("a moment");
    let moments = (0..WINDOW_MINUTES).map(|minute| first.checked_add(minute.minutes()).expect("a moment"));
    let open: Vec<(Timestamp, bool)> = moments.map(|moment| (moment, windows.are_open(moment))).collect();
    if let Some(reference) = ReferenceWindow::parse(hours, days) {
        for (moment, is_open) in &open {
            let local = zone.to_datetime(*moment);
            assert_eq!(*is_open, reference.is_open(local), "{text:?} at {local}");
        }
    }
    for from in (0..open.len()).step_by(START_INTERVAL) {
        let next = |wanted| open[from..].iter().find(|(_, is_open)| *is_open == wanted).map(|(moment, _)| *moment);
        for (found, expected) in
            [(windows.next_open_from(open[from].0), next(true)), (windows.next_closed_from(open[from].0), next(false))]
        {
            let within = found.filter(|found| *found <= open[open.len() - 1].0);
            assert_eq!(within, expected, "{text:?} from {}", open[from].0);
        }
    }
}

/// Hours and days of a window, from a second parser.
struct ReferenceWindow {
    from: i64,
    to: i64,
    days: [bool; 7],
}

impl ReferenceWindow {
    fn parse(hours: &str, days: &str) -> Option<Self> {
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            Some(hour.parse::<i64>().ok()? * 60 + minute.parse::<i64>().ok()?)
        };
        let (from, to) = hours.split_once('-')?;
        let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let position = |name: &str| names.iter().position(|known| *known == name.trim().to_lowercase());
        let mut open = [false; 7];
        for part in days.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (position(first)?, position(last)?);
            (0..=(last + 7 - first) % 7).for_each(|step| open[(first + step) % 7] = true);
        }
        Some(Self { from: minute(from.trim())?, to: minute(to.trim())?, days: open })
    }

    fn is_open(&self, local: DateTime) -> bool {
        let minute = i64::from(local.hour()) * 60 + i64::from(local.minute());
        let today = local.weekday().to_monday_zero_offset() as usize;
        let begins_today = self.days[today] && minute >= self.from && (self.from >= self.to || minute < self.to);
        let began_yesterday = self.days[(today + 6) % 7] && self.from >= self.to && minute < self.to;
        begins_today || began_yesterday
    }
}
