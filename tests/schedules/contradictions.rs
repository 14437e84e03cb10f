//! Schedules that contradict the window, `until`, the rate or `per_day`: `check` and `schedule add` detect the
//! contradiction from the dates on which the schedule would fire.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::support::{Draft, Folder, Gateway, Process, campaign, note_on_failure};

const RULES: [&str; 5] = ["never-sends", "skipped-occurrences", "late-start", "until-near", "schedule-over"];

/// Returns the date this many days from today.
fn date_in(days: i64) -> String {
    let today = Timestamp::now().to_zoned(TimeZone::get("Europe/Kyiv").expect("a zone")).date();
    (today + Span::new().days(days)).to_string()
}

fn draft(gateway: &Gateway, schedule: &str, delivery: &[&str]) -> Draft {
    let draft = campaign().through(gateway).top("timezone: Europe/Kyiv").top(&format!("schedule: {{ {schedule} }}"));
    delivery.iter().fold(draft, |draft, line| draft.delivery(line))
}

/// Returns the timing rules that findings name.
fn named_rules(text: &str) -> Vec<&'static str> {
    RULES.into_iter().filter(|rule| text.contains(&format!("[{rule}]"))).collect()
}

#[track_caller]
fn assert_refused(sale: &Folder, words: &str) {
    for command in [&["check", "sale.yaml"][..], &["schedule", "add", "sale.yaml"]] {
        let output = sale.campaign(command).exits(2).says(words).says("sale.yaml:");
        assert_eq!(named_rules(&output.stderr), ["never-sends"], "{}", output.details());
    }
    assert_eq!(sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list(), serde_json::json!([]));
}

#[test]
fn schedule_that_can_never_send_is_refused() {
    let gateway = Gateway::accepting();
    let (before, on, weekdays) = (date_in(2), date_in(3), "window: { hours: 09:00-20:00, days: mon-fri }");
    let at = format!("at: {on} 10:00");
    for (schedule, delivery, words) in [
        (at.as_str(), vec![format!("until: {before} 20:00")], "`until` is".into()),
        (&at, vec![format!("until: {on} 10:00")], format!("{on} 10:00")),
        (&at, vec!["window: 12:00-20:00".into(), format!("until: {on} 11:00")], format!("{on} 12:00")),
        ("every: sun 10:00", vec![weekdays.into(), "until: 12h".into()], "Sun ".into()),
        ("cron: 0 10 * * SUN", vec![weekdays.into(), "until: 12h".into()], "Sun ".into()),
        ("every: day 21:00", vec!["window: 09:00-20:00".into(), "until: 3h".into()], "21:00".into()),
        ("at: 2020-01-02 10:00", vec!["until: 2020-01-01 10:00".into()], "2020-01-01".into()),
    ] {
        let _case = note_on_failure(format!("case: {schedule} {delivery:?}"));
        let lines: Vec<&str> = delivery.iter().map(String::as_str).collect();
        let sale = draft(&gateway, schedule, &lines).write();
        if schedule.contains("2020") {
            let output = sale.campaign(&["check", "sale.yaml"]).exits(2).says(&words);
            assert_eq!(named_rules(&output.stderr), ["never-sends", "schedule-over"]);
            continue;
        }
        assert_refused(&sale, &words);
    }
    let policy = "policy: { window: { hours: 09:00-20:00, days: mon-fri } }";
    assert_refused(&draft(&gateway, "every: sun 10:00", &["until: 12h"]).profile(policy).write(), "Sun ");
    assert!(gateway.requests().is_empty());
}

#[test]
fn run_that_can_never_send_is_refused() {
    let gateway = Gateway::accepting();
    let window = format!("window: {{ hours: 12:00-20:00, except: [{}] }}", date_in(0));
    let until = format!("until: {} 11:00", date_in(1));
    let draft = campaign().through(&gateway).top("timezone: Europe/Kyiv").delivery(&window).delivery(&until);
    let sale = draft.write();
    for command in ["check", "plan", "run"] {
        sale.campaign(&[command, "sale.yaml"]).exits(2).says("no messages can be sent").says("sale.yaml:");
    }
    sale.campaign(&["status"]).exits(0).says("no runs");
    assert!(gateway.sends().is_empty());
}

#[test]
fn schedule_is_checked_in_the_time_zone_of_each_recipient() {
    let gateway = Gateway::accepting();
    let list = "phone,name,city\n380501000002,A,Europe/Kyiv\n380501000003,B,America/New_York\n";
    let window = "window: { hours: 09:00-20:00, zone: city }";
    // 9:30 in Kyiv is the middle of the night in New York.
    let sale = draft(&gateway, "every: day 9:30", &[window, "until: 2h"]).with_list(list).write();
    sale.campaign(&["check", "sale.yaml"])
        .exits(0)
        .says("about 1 of 2 messages scheduled for")
        .says("can be sent before");
    sale.write("sale.csv", "phone,name,city\n380501000003,B,America/New_York\n");
    assert_refused(&sale, "the window opens only at");
    // `zone: recipient` uses the countries of the phone numbers: in Kyiv, it is 22:30.
    let window = "window: { hours: 09:00-20:00, zone: recipient }";
    let sale = draft(&gateway, "every: day 15:30", &[window, "until: 2h"]).write();
    sale.replace("sale.yaml", "Europe/Kyiv", "America/New_York");
    assert_refused(&sale, "the window opens only at");
}

#[test]
fn skipped_or_late_occurrences_are_reported_as_warnings() {
    let gateway = Gateway::accepting();
    let (soon, weekdays) = (date_in(2), "window: { hours: 09:00-20:00, days: mon-fri }");
    let (until, at) = (format!("until: {soon} 12:00"), format!("at: {soon} 10:00, wait_for_file: 4h"));
    for (schedule, delivery, rule, words) in [
        ("every: day 10:00", vec![until.as_str()], "skipped-occurrences", "no messages are sent from"),
        ("every: day 10:00", vec![weekdays, "until: 12h"], "skipped-occurrences", "no messages are sent on S"),
        ("cron: 0 10 * * *", vec![weekdays, "until: 12h"], "skipped-occurrences", "more dates; on the first date"),
        ("every: day 10:00", vec!["per_day: 1"], "skipped-occurrences", "keeps sending until about"),
        ("cron: 0 * * * *", vec!["rate: 1/h"], "skipped-occurrences", "keeps sending until about"),
        (&at, vec![&until], "skipped-occurrences", "arrives as late as"),
        (
            "every: day 21:00",
            vec!["window: 09:00-20:00"],
            "late-start",
            "wait for the window to open; on the first date, they wait 1",
        ),
        ("every: day 10:00", vec!["rate: 2/h", "until: 40m"], "until-near", "can be sent before"),
    ] {
        let _case = note_on_failure(format!("case: {schedule} {delivery:?}"));
        let sale = draft(&gateway, schedule, &delivery).write();
        for command in [&["check", "sale.yaml"][..], &["schedule", "add", "sale.yaml"]] {
            let output = sale.campaign(command).exits(0).says(words).says("sale.yaml:");
            assert_eq!(named_rules(&output.stderr), [rule], "{}", output.details());
        }
        sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2);
        sale.campaign(&["explain", rule]).exits(0);
        let added = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
        let findings = added["findings"].as_array().expect("findings");
        assert!(findings.iter().any(|finding| finding["rule"] == rule), "{added}");
        assert!(added["warnings"].to_string().contains(words), "{added}");
    }
}

#[test]
fn past_schedule_is_a_warning_in_check_and_refused_by_add() {
    let gateway = Gateway::accepting();
    for (schedule, words) in [
        ("at: 2020-01-01 10:00", "`at` has passed"),
        ("every: day 10:00, ends: 2020-01-01", "the schedule has no future dates: `ends` is 2020-01-01"),
    ] {
        let sale = draft(&gateway, schedule, &["until: 2020-01-01 20:00"]).write();
        let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says(words);
        assert_eq!(named_rules(&output.stderr), ["schedule-over"], "{}", output.details());
        sale.campaign(&["schedule", "add", "sale.yaml"]).exits(2).says("has no further times");
    }
    let sale = draft(&gateway, "at: 2099-01-02 10:00, ends: 2099-01-01", &[]).write();
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("`ends` is before `at`: 2099-01-01");
}

#[test]
fn schedule_add_shows_the_same_warnings_as_check() {
    let gateway = Gateway::accepting();
    let sale = draft(&gateway, "every: Mon 10:00", &[]).with_list("phone,name\n380501000002,None\n").write();
    let list_warnings =
        |output: &str| output.lines().filter(|line| line.starts_with("warning[")).map(str::to_owned).collect();
    let checked: Vec<String> = list_warnings(&sale.campaign(&["check", "sale.yaml"]).exits(0).stderr);
    let added: Vec<String> = list_warnings(&sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0).stderr);
    assert!(!checked.is_empty() && checked == added, "{checked:?} {added:?}");
}

#[test]
fn channel_fallback_is_checked_from_the_next_occurrence() {
    let gateway = Gateway::accepting();
    let channels =
        "  - viber: { signature: OlenaCo, message: Hi, lifetime: 10h }\n  - sms: { signature: OlenaCo, message: Hi }";
    for (schedule, warns) in [("every: day 9:00", false), ("every: day 18:00", true)] {
        let sale = draft(&gateway, schedule, &["window: 09:00-20:00"]).channels(channels).write();
        let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
        assert_eq!(output.stderr.contains("open for 2 h from the next scheduled date"), warns, "{}", output.details());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn check_starts_from_the_next_occurrence_at_any_hour() {
    let (gateway, clock) = (Gateway::accepting(), crate::support::Clock::new());
    let delivery = ["window: { hours: 09:00-20:00, days: mon-fri }", "until: 2h"];
    let sale = draft(&gateway, "every: weekdays 10:00", &delivery).write();
    // At night, on a Saturday, and when the clocks change.
    for now in ["2030-01-10T01:00:00Z", "2030-01-12T12:00:00Z", "2030-03-31T00:30:00Z"] {
        let shown = clock.set_to(now.parse().expect("a moment"));
        let checked = Process::start(sale.command_after(&shown, &["check", "sale.yaml"])).finish().exits(0);
        assert_eq!(named_rules(&checked.stderr), [""; 0], "{now}: {}", checked.details());
    }
}
