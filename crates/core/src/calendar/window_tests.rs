use jiff::civil::date;
use proptest::prelude::*;

use super::*;

const ZONES: [&str; 5] = ["Europe/Kyiv", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"];

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

/// A search minute by minute, without knowledge of clock changes.
fn find_by_minutes(window: &Window, zone: &TimeZone, from: Timestamp, open: bool) -> Option<Timestamp> {
    let whole = Timestamp::from_second(from.as_second().div_euclid(60) * 60).unwrap();
    (0..4 * 24 * 60).map(|minute| whole.checked_add(minute.minutes()).unwrap()).map(|at| at.max(from)).find(|at| {
        let local = zone.to_datetime(*at);
        let clock = local.time().strftime("%H:%M").to_string();
        let (first, last) = (&window.hours.to_string()[..5], &window.hours.to_string()[6..]);
        let on = |date: Date| window.days.contains(date.weekday()) && !window.except.contains(&date);
        let within = if first < last {
            (first..last).contains(&clock.as_str()) && on(local.date())
        } else {
            (clock.as_str() >= first && on(local.date()))
                || (clock.as_str() < last && on(local.date().yesterday().unwrap()))
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
    fn no_text_panics(text: String) {
        let _ = (DailyHours::parse(&text), Days::parse(&text));
    }
}

#[test]
fn hours_and_days_are_parsed_and_formatted() {
    for (text, shown, minutes) in [
        ("09:00-20:00", "09:00-20:00", 660),
        ("9:00 - 20:30", "09:00-20:30", 690),
        ("22:00-06:00", "22:00-06:00", 480),
        ("00:00-24:00", "00:00-24:00", 1_440),
        ("22:00-00:00", "22:00-24:00", 120),
    ] {
        let hours = DailyHours::parse(text).unwrap();
        assert_eq!((hours.to_string().as_str(), hours.count_minutes()), (shown, minutes), "{text}");
    }
    for text in
        ["", "9-20", "09:00", "09:00-09:00", "00:00-00:00", "24:00-09:00", "09:00-24:01", "09:60-20:00", "09:0-20:00"]
    {
        assert_eq!(DailyHours::parse(text), None, "{text}");
    }
    for (text, shown) in
        [("mon-fri", "mon, tue, wed, thu, fri"), ("Sat-Mon", "mon, sat, sun"), ("wed, fri", "wed, fri")]
    {
        assert_eq!(Days::parse(text).unwrap().to_string(), shown);
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
fn long_run_needs_several_window_openings() {
    let kyiv = TimeZone::get("Europe/Kyiv").unwrap();
    let windows = Windows::new(vec![(window("09:00-20:00", "mon-fri", &[]), kyiv)]);
    let hours = |hours: u64| windows.count_openings(at("2026-11-27T12:00:00Z"), Duration::from_secs(hours * 3_600));
    // It is Friday 14:00, and the window closes in six hours. Each further day has eleven hours.
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
    assert_eq!(both.next_open_from(at("2026-11-30T18:00:00Z")), Some(at("2026-12-02T17:00:00Z")), "but for 1 December");
    let never = Windows::new(vec![
        (window("09:00-12:00", "mon-sun", &[]), kyiv.clone()),
        (window("12:00-20:00", "mon-sun", &[]), kyiv),
    ]);
    assert_eq!(never.next_open_from(at("2026-11-28T12:00:00Z")), None);
    assert_eq!(Windows::default().next_closed_from(at("2026-11-28T12:00:00Z")), None);
    assert!(Windows::default().are_open(at("2026-11-28T12:00:00Z")));
}
