//! `campaign schedule next`, and `run` for a campaign with a schedule.

use serde_json::json;

use crate::support::{Draft, campaign};

/// Drafts a campaign for every Monday at ten in Kyiv.
fn weekly_campaign() -> Draft {
    campaign().top("timezone: Europe/Kyiv").top("schedule: { every: Mon 10:00 }")
}

#[test]
fn next_occurrences_are_shown_in_the_campaign_zone() {
    let sale = weekly_campaign().write();
    let output = sale.campaign(&["schedule", "next", "sale.yaml", "--from", "2026-10-20", "--count", "2"]).exits(0);
    assert_eq!(
        output.stdout,
        "Mon 26 Oct 2026, 10:00 (Europe/Kyiv)\nMon 2 Nov 2026, 10:00 (Europe/Kyiv)\nnext: campaign schedule add sale.yaml\n"
    );
    let list_next = |from: &str| {
        let arguments = ["schedule", "next", "sale.yaml", "--json", "--count", "1", "--from", from];
        sale.campaign(&arguments).exits(0).json_list()
    };
    let summer = json!([{ "at": "2026-10-19T10:00:00+03:00", "local": "2026-10-19 10:00", "zone": "Europe/Kyiv" }]);
    assert_eq!(list_next("2026-10-19 9:59"), summer);
    let winter = json!([{ "at": "2026-10-26T10:00:00+02:00", "local": "2026-10-26 10:00", "zone": "Europe/Kyiv" }]);
    assert_eq!(list_next("2026-10-19 10:00"), winter, "an occurrence at this very time is not the next one");
    assert_eq!(list_next("2026-10-26T07:59:59Z"), winter);
    sale.campaign(&["schedule", "next", "sale.yaml", "--from", "soon"]).exits(2).says("is not a valid time");
    sale.replace("sale.yaml", "every: Mon 10:00", "cron: 30 3 29 3 *");
    let output = sale.campaign(&["schedule", "next", "sale.yaml", "--from", "2026-01-01", "--count", "1"]).exits(0);
    assert!(
        output.stdout.contains("Sun 29 Mar 2026, 04:00 (Europe/Kyiv), instead of 2026-03-29 03:30"),
        "{}",
        output.details()
    );
}

#[test]
fn schedule_next_reports_missing_keys_and_past_times() {
    let sale = campaign().write();
    sale.campaign(&["schedule", "next", "sale.yaml"]).exits(2).says("has no `schedule`");
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nschedule: { at: 2020-01-01 10:00 }\n");
    sale.campaign(&["schedule", "next", "sale.yaml"]).exits(2).says("`timezone` must be set");
    sale.replace("sale.yaml", "name: sale\n", "name: sale\ntimezone: UTC\n");
    let output = sale.campaign(&["schedule", "next", "sale.yaml"]).exits(0);
    assert!(output.stdout.contains("have passed, or are after `ends`"), "{}", output.details());
    assert_eq!(sale.campaign(&["schedule", "next", "sale.yaml", "--json"]).exits(0).json_list(), json!([]));
    sale.replace("sale.yaml", "{ at: 2020-01-01 10:00 }", "{ ends: 2030-01-01 }");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("`schedule` has no time").says("under `schedule`");
    sale.replace("sale.yaml", "{ ends: 2030-01-01 }", "{ at: 2020-01-01 10:00, every: Mon 10:00 }");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("`schedule` has two times: `at` and `every`");
}

#[test]
fn scheduled_campaign_is_sent_now_only_on_request() {
    let sale = weekly_campaign().write();
    sale.run(&[]).exits(2).says("to send it now: `campaign run sale.yaml --now`");
    sale.run(&["--dry-run"]).exits(0);
    sale.run(&["--now"]).exits(0);
}

#[test]
fn list_path_with_today_resolves_to_todays_list() {
    let sale = campaign().top("timezone: UTC").write();
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let dated = format!("daily-{today}.csv");
    std::fs::rename(sale.path("sale.csv"), sale.path(&dated)).unwrap();
    sale.run(&[]).exits(2).says("sale.csv");
    sale.replace("sale.yaml", "file: sale.csv", "file: daily-{{ today }}.csv");
    sale.run(&[]).exits(0);
}
