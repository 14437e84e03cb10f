//! Occurrences across clock changes, and invalid times.

use std::time::Duration;

use jiff::civil::{DateTime, date};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

fn schedule(zone: &str, timing: Timing) -> Schedule {
    Schedule {
        timing,
        zone: TimeZone::get(zone).unwrap(),
        ends: None,
        grace: Duration::from_secs(3600),
        wait_for_file: None,
    }
}

fn cron(zone: &str, line: &str) -> Schedule {
    schedule(zone, Timing::parse_cron(line).unwrap())
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The next occurrences with scheduled and actual local time.
fn list_occurrences(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let reported = |occurrence: Occurrence| {
        format!("{} = {}", occurrence.format_nominal(), occurrence.local_time().strftime("%m-%d %H:%M %:z"))
    };
    schedule.occurrences_after(moment(after)).take(count).map(reported).collect()
}

#[test]
fn skipped_local_time_fires_once_when_clocks_change() {
    // In Kyiv 03:00 becomes 04:00 on 29 March 2026.
    let daily = cron("Europe/Kyiv", "30 3 * * *");
    let days = [
        "2026-03-28 03:30 = 03-28 03:30 +02:00",
        "2026-03-29 03:30 = 03-29 04:00 +03:00",
        "2026-03-30 03:30 = 03-30 03:30 +03:00",
    ];
    assert_eq!(list_occurrences(&daily, "2026-03-27T12:00:00Z", 3), days);
    // Occurrences at the same moment are one; it has the local time that exists.
    let quarters = cron("Europe/Kyiv", "*/15 3,4 29 3 *");
    assert_eq!(
        list_occurrences(&quarters, "2026-01-01T00:00:00Z", 2),
        ["2026-03-29 04:00 = 03-29 04:00 +03:00", "2026-03-29 04:15 = 03-29 04:15 +03:00"]
    );
    let inside = cron("Europe/Kyiv", "10,20 3 29 3 *");
    assert_eq!(list_occurrences(&inside, "2026-01-01T00:00:00Z", 1), ["2026-03-29 03:10 = 03-29 04:00 +03:00"]);
    // Samoa skipped a whole day.
    let apia = cron("Pacific/Apia", "0 10 * * *");
    let days = [
        "2011-12-29 10:00 = 12-29 10:00 -10:00",
        "2011-12-30 10:00 = 12-31 00:00 +14:00",
        "2011-12-31 10:00 = 12-31 10:00 +14:00",
    ];
    assert_eq!(list_occurrences(&apia, "2011-12-29T00:00:00Z", 3), days);
}

#[test]
fn repeated_local_time_fires_only_the_first_time() {
    // In Kyiv 04:00 becomes 03:00 on 25 October 2026.
    let daily = cron("Europe/Kyiv", "30 3 * * *");
    let days = ["2026-10-25 03:30 = 10-25 03:30 +03:00", "2026-10-26 03:30 = 10-26 03:30 +02:00"];
    assert_eq!(list_occurrences(&daily, "2026-10-24T12:00:00Z", 2), days);
    assert_eq!(list_occurrences(&daily, "2026-10-25T01:15:00Z", 1), days[1..], "asked during the repeated hour");
    let hourly = cron("Europe/Kyiv", "30 * * * *");
    let hours = ["2026-10-25 03:30 = 10-25 03:30 +03:00", "2026-10-25 04:30 = 10-25 04:30 +02:00"];
    assert_eq!(list_occurrences(&hourly, "2026-10-25T00:00:00Z", 2), hours);
    // On Lord Howe clocks go back by half an hour.
    let lord_howe = cron("Australia/Lord_Howe", "45 1 * * *");
    let days = ["2026-04-05 01:45 = 04-05 01:45 +11:00", "2026-04-06 01:45 = 04-06 01:45 +10:30"];
    assert_eq!(list_occurrences(&lord_howe, "2026-04-04T12:00:00Z", 2), days);
}

#[test]
fn every_expression_matches_its_cron_pattern() {
    for (words, line) in [
        ("Mon 10:00", "0 10 * * MON"),
        ("monday 10:00", "0 10 * * 1"),
        ("Mondays at 10:00", "0 10 * * 1"),
        ("Mon, Thu 10:00", "0 10 * * MON,THU"),
        ("Mon-Fri 7:05", "5 7 * * 1-5"),
        ("Fri-Mon 7:05", "5 7 * * FRI,SAT,SUN,MON"),
        ("day 9:30", "30 9 * * *"),
        ("daily 09:30", "30 9 * * *"),
        ("weekdays 18:00", "0 18 * * MON-FRI"),
        ("weekend 12:00", "0 12 * * 6,0"),
        ("1st 10:00", "0 10 1 * *"),
        ("1st, 15th 10:00", "0 10 1,15 * *"),
        ("31st 10:00", "0 10 31 1,3,5,7,8,10,12 *"),
        ("last day 18:00", "0 18 L * *"),
    ] {
        let (words_, line_) = (schedule("Europe/Kyiv", Timing::parse_every(words).unwrap()), cron("Europe/Kyiv", line));
        let year = |schedule: &Schedule| {
            schedule.occurrences_after(moment("2026-01-01T00:00:00Z")).take(60).collect::<Vec<_>>()
        };
        assert_eq!(year(&words_), year(&line_), "{words}");
    }
}

#[test]
fn invalid_time_is_rejected_with_help() {
    for words in [
        "",
        "10:00",
        "Mon",
        "Mon 25:00",
        "Mon 10",
        "Mo 10:00",
        "Moonday 10:00",
        "1nd 10:00",
        "32nd 10:00",
        "0th 10:00",
        "Mon,1st 10:00",
        "Mon 10:00 Europe/Kyiv",
        "every Mon 10:00",
    ] {
        assert!(Timing::parse_every(words).unwrap_err().help.contains("`weekdays 18:00`"), "{words}");
    }
    for line in [
        "",
        "@daily",
        "10:00",
        "0 10 * *",
        "0 0 10 * * *",
        "60 * * * *",
        "0 24 * * *",
        "0 0 30 2 *",
        "0 0 31 4 *",
        "a b c d e",
    ] {
        assert!(Timing::parse_cron(line).unwrap_err().help.contains("five fields"), "{line}");
    }
    for (text, why) in [
        ("2026-12-01", "no time"),
        ("2026-02-30 10:00", "is not a valid date"),
        ("2026-12-01 24:30", "is not a valid date"),
        ("2026-12-01T10:00:00+02:00", "has a UTC offset"),
        ("tomorrow", "is not a valid date"),
    ] {
        assert!(Timing::parse_at(text).unwrap_err().why.contains(why), "{text}");
    }
    assert_eq!(Timing::parse_at("2026-12-01 9:05"), Timing::parse_at("2026-12-01T09:05"));
}

#[test]
fn single_time_fires_once_and_not_after_the_last_day() {
    let once = schedule("Europe/Kyiv", Timing::parse_at("2026-12-01 10:00").unwrap());
    assert_eq!(list_occurrences(&once, "2026-11-01T00:00:00Z", 5), ["2026-12-01 10:00 = 12-01 10:00 +02:00"]);
    assert!(list_occurrences(&once, "2026-12-01T08:00:00Z", 5).is_empty(), "the moment itself is excluded");
    assert!(!once.repeats_after(moment("2026-11-01T00:00:00Z")));
    let ending = Schedule { ends: Some(date(2026, 12, 2)), ..cron("Europe/Kyiv", "0 10 * * *") };
    assert_eq!(list_occurrences(&ending, "2026-12-01T00:00:00Z", 5).len(), 2, "the last day is included");
}

fn zones() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "Europe/Kyiv",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Asia/Kathmandu",
        "America/St_Johns",
        "UTC",
    ])
}

fn lines() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["*", "30", "*/15", "0", "7,59"]).prop_flat_map(|minute| {
        prop::sample::select(vec!["*", "2", "3", "0", "1-4"]).prop_map(move |hour| format!("{minute} {hour} * * *"))
    })
}

proptest! {
    #[test]
    fn occurrences_are_ordered_and_unique_from_any_start(
        zone in zones(), line in lines(), start in 1_262_304_000_i64..2_000_000_000, steps in 1_usize..40,
    ) {
        let (schedule, start) = (cron(zone, &line), Timestamp::from_second(start).unwrap());
        let found: Vec<Occurrence> = schedule.occurrences_after(start).take(steps).collect();
        prop_assert!(found.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].nominal < pair[1].nominal));
        prop_assert!(found.iter().all(|one| one.at > start));
        // Asking again after each occurrence returns the same occurrences.
        let mut after = start;
        for one in &found {
            let next = schedule.occurrences_after(after).next();
            prop_assert_eq!(next.as_ref(), Some(one));
            prop_assert_eq!(&Occurrence::at_local_time(one.nominal, &schedule.zone).unwrap(), one);
            after = one.at;
        }
    }

    #[test]
    fn occurrence_is_when_clocks_first_reach_its_time(zone in zones(), second in 1_262_304_000_i64..2_000_000_000) {
        let zone = TimeZone::get(zone).unwrap();
        let nominal = Timestamp::from_second(second - second % 60).unwrap().to_zoned(TimeZone::UTC).datetime();
        let occurrence = Occurrence::at_local_time(nominal, &zone).unwrap();
        let shown = |at: Timestamp| -> DateTime { at.to_zoned(zone.clone()).datetime() };
        prop_assert!(shown(occurrence.at) >= nominal);
        for hours in 0..26 {
            let before = occurrence.at - SignedDuration::from_hours(hours) - SignedDuration::from_secs(1);
            prop_assert!(shown(before) < nominal, "{} before", hours);
        }
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9:, *#L/@-]{0,24}", any: String) {
        for text in [text, any] {
            let _ = (Timing::parse_at(&text), Timing::parse_every(&text), Timing::parse_cron(&text));
        }
    }
}
