//! Forecasts of runs with fixed start times.

use super::*;
use crate::calendar::{DailyHours, Days, Timing, Window};

const HOUR: Duration = Duration::from_secs(3_600);

fn kyiv() -> TimeZone {
    TimeZone::get("Europe/Kyiv").unwrap()
}

fn window(hours: &str, days: &str) -> Windows {
    let days = if days.is_empty() { Days::ALL } else { Days::parse(days).unwrap() };
    Windows::new(vec![(Window { hours: DailyHours::parse(hours).unwrap(), days, except: [].into() }, kyiv())])
}

fn limits(windows: Windows, end: Option<RunDeadline>) -> RunLimits<'static> {
    RunLimits { groups: vec![MessageGroup { windows, messages: 100 }], rate: Some(1.0), per_day: None, end }
}

fn schedule(timing: Timing) -> Schedule {
    Schedule { timing, zone: kyiv(), ends: None, grace: HOUR, wait_for_file: None }
}

/// A local time in Kyiv.
fn kyiv_at(text: &str) -> Timestamp {
    text.parse::<jiff::civil::DateTime>().unwrap().to_zoned(kyiv()).unwrap().timestamp()
}

/// The forecasts of the next occurrences: `s` for sends, `n` for sends nothing, `b` for busy.
fn forecasts(limits: &RunLimits<'_>, schedule: &Schedule, after: &str) -> String {
    let letter = |run: &ScheduledRun| match run.outlook {
        OccurrenceOutlook::Sends(_) => 's',
        OccurrenceOutlook::SendsNothing(_) => 'n',
        OccurrenceOutlook::Busy(_) => 'b',
    };
    limits.forecast_schedule(schedule, kyiv_at(after)).iter().take(14).map(letter).collect()
}

#[test]
fn run_waits_for_the_window_from_its_beginning() {
    let office = limits(window("09:00-20:00", ""), None);
    let at_night = office.calculate_outlook(kyiv_at("2026-12-01T21:00"));
    assert_eq!((at_night.opens, at_night.first_message_wait()), (Some(kyiv_at("2026-12-02T09:00")), 12 * HOUR));
    assert_eq!(office.calculate_outlook(kyiv_at("2026-12-01T10:00")).first_message_wait(), Duration::ZERO);
    // 100 messages at one a second.
    assert_eq!(at_night.finishes, Some(kyiv_at("2026-12-02T09:01:40")));
}

#[test]
fn run_sends_nothing_if_no_window_opens_before_its_end() {
    let until = |text| Some(RunDeadline::At(kyiv_at(text)));
    for (hours, days, end, begins, sends) in [
        ("00:00-24:00", "", until("2026-11-30T20:00"), "2026-12-01T10:00", false),
        ("00:00-24:00", "", until("2026-12-01T10:00"), "2026-12-01T10:00", false),
        ("00:00-24:00", "", until("2026-12-01T10:01"), "2026-12-01T10:00", true),
        ("12:00-20:00", "", until("2026-12-01T11:00"), "2026-12-01T10:00", false),
        ("12:00-20:00", "", until("2026-12-01T12:00"), "2026-12-01T10:00", false),
        ("12:00-20:00", "", until("2026-12-01T12:01"), "2026-12-01T10:00", true),
        // 2026-12-06 is a Sunday.
        ("09:00-20:00", "mon-fri", Some(RunDeadline::After(12 * HOUR)), "2026-12-06T10:00", false),
        ("09:00-20:00", "mon-fri", Some(RunDeadline::After(24 * HOUR)), "2026-12-06T10:00", true),
        ("09:00-20:00", "mon-fri", None, "2026-12-06T10:00", true),
    ] {
        let outlook = limits(window(hours, days), end).calculate_outlook(kyiv_at(begins));
        assert_eq!(outlook.can_send(), sends, "{hours} {days} {end:?} {begins}");
        assert!(sends || outlook.unsent == 100, "{outlook:?}");
    }
}

#[test]
fn messages_beyond_the_end_are_counted_by_rate_and_day() {
    let end = |seconds| Some(RunDeadline::After(Duration::from_secs(seconds)));
    let begins = kyiv_at("2026-12-01T10:00");
    for (seconds, unsent) in [(30, 70), (99, 1), (100, 0), (86_400, 0)] {
        let outlook = limits(Windows::default(), end(seconds)).calculate_outlook(begins);
        assert_eq!(outlook.unsent, unsent, "{seconds}");
    }
    let per_day = DailyLimits::new(vec![20], kyiv()).unwrap();
    let slow = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), end(3 * 86_400)) };
    // Until the fourth day at 10:00: four days of twenty messages.
    assert_eq!(slow.calculate_outlook(begins).unsent, 20);
    let endless = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), None) };
    assert_eq!(endless.calculate_outlook(begins).finishes, Some(kyiv_at("2026-12-05T00:00:20")));
}

#[test]
fn groups_share_the_rate_and_keep_their_own_windows() {
    let zoned = |zone: &str, messages| {
        let hours = DailyHours::parse("09:00-20:00").unwrap();
        let window = Window { hours, days: Days::ALL, except: [].into() };
        MessageGroup { windows: Windows::new(vec![(window, TimeZone::get(zone).unwrap())]), messages }
    };
    let groups = vec![zoned("Europe/Kyiv", 60), zoned("America/New_York", 40)];
    let run = |end| RunLimits { groups: groups.clone(), ..limits(Windows::default(), end) };
    let begins = kyiv_at("2026-12-01T10:00");
    // In New York it is 3:00; the window opens there at 16:00 in Kyiv.
    let short = run(Some(RunDeadline::After(2 * HOUR))).calculate_outlook(begins);
    assert_eq!((short.opens, short.unsent, short.can_send()), (Some(begins), 40, true));
    let long = run(Some(RunDeadline::After(9 * HOUR))).calculate_outlook(begins);
    assert_eq!((long.unsent, long.finishes), (0, Some(kyiv_at("2026-12-01T16:00:40"))));
    // The rate is shared: 100 messages need 100 seconds wherever they go.
    let shared = run(Some(RunDeadline::After(Duration::from_secs(70)))).calculate_outlook(begins);
    assert_eq!(shared.unsent, 40);
}

#[test]
fn occurrences_are_judged_from_their_own_dates() {
    let daily = schedule(Timing::parse_every("day 10:00").unwrap());
    let mut office = limits(window("09:00-20:00", "mon-fri"), Some(RunDeadline::After(12 * HOUR)));
    // The forecast does not depend on the time of the calculation.
    for after in ["2026-12-01T02:00", "2026-12-01T09:59"] {
        assert_eq!(forecasts(&office, &daily, after), "ssssnnsssssnns", "{after}");
    }
    // Without a deadline, Saturday's run waits until Monday 9:00 and finishes before Monday's occurrence.
    office.end = None;
    assert_eq!(forecasts(&office, &daily, "2026-12-01T02:00"), "sssssbssssssbs");
    let sundays = schedule(Timing::parse_every("sun 10:00").unwrap());
    office.end = Some(RunDeadline::After(12 * HOUR));
    assert_eq!(forecasts(&office, &sundays, "2026-12-01T02:00"), "nnnnnnnnnnnnnn");
    office.end = Some(RunDeadline::At(kyiv_at("2026-12-03T20:00")));
    assert_eq!(forecasts(&office, &daily, "2026-12-01T02:00"), "sssnnnnnnnnnnn");
}

#[test]
fn occurrence_is_busy_while_the_run_before_is_sent() {
    let per_day = DailyLimits::new(vec![25], kyiv()).unwrap();
    let slow = RunLimits { per_day: Some(&per_day), ..limits(Windows::default(), None) };
    let daily = schedule(Timing::parse_every("day 10:00").unwrap());
    // 100 messages take four days, and the last ones leave shortly after midnight of the fourth.
    assert_eq!(forecasts(&slow, &daily, "2026-12-01T02:00"), "sbbsbbsbbsbbsb");
    let hourly = schedule(Timing::parse_cron("0 * * * *").unwrap());
    let at_night = limits(window("09:00-12:00", ""), None);
    assert_eq!(forecasts(&at_night, &hourly, "2026-12-01T09:30"), "sssbbbbbbbbbbb");
}

#[test]
fn window_in_a_skipped_hour_opens_when_clocks_change() {
    // In Kyiv the clocks go from 3:00 to 4:00 on 2027-03-28, and from 4:00 to 3:00 on 2026-10-25.
    let night = limits(window("03:15-03:45", ""), Some(RunDeadline::After(HOUR)));
    let nightly = schedule(Timing::parse_every("day 3:00").unwrap());
    assert_eq!(forecasts(&night, &nightly, "2027-03-26T12:00")[..3], *"sns");
    assert_eq!(forecasts(&night, &nightly, "2026-10-23T12:00")[..3], *"sss");
}

#[test]
fn window_that_never_opens_ends_the_look_ahead() {
    let except = (0..800).map(|day| jiff::civil::date(2026, 1, 1) + day.days()).collect();
    let closed = Window { hours: DailyHours::parse("09:00-20:00").unwrap(), days: Days::ALL, except };
    let never = limits(Windows::new(vec![(closed, kyiv())]), None);
    assert_eq!(forecasts(&never, &schedule(Timing::parse_every("day 10:00").unwrap()), "2026-02-01T00:00"), "n");
}
