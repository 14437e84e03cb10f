//! `delivery.per_day`: the daily message limit of an edition, and runs that wait for the next day.

use jiff::Timestamp;
use serde_json::json;

use super::{stop_reason, stop_summary};
use crate::support::{Clock, Draft, Finished, Folder, Gateway, Process, campaign, in_files, phone, until};

/// A campaign to ten recipients with this daily limit in Kyiv, where midnight is at 22:00 UTC.
fn ten_recipients(gateway: &Gateway, per_day: &str) -> Draft {
    campaign().to(10).through(gateway).top("timezone: Europe/Kyiv").delivery(&format!("per_day: {per_day}"))
}

/// Starts the binary with the clock at this time.
fn start(sale: &Folder, clock: &Clock, moment: &str, arguments: &[&str]) -> Process {
    let moment: Timestamp = moment.parse().expect("a moment");
    Process::start(sale.command_after(&clock.set_to(moment), arguments))
}

/// Runs the campaign without waiting for the next day.
fn run(sale: &Folder, clock: &Clock, moment: &str) -> Finished {
    start(sale, clock, moment, &["run", "sale.yaml", "--no-wait", "--json"]).finish()
}

#[test]
fn run_stops_at_the_daily_limit_and_names_the_next_day() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = ten_recipients(&gateway, "4").write();
    let first = run(&sale, &clock, "2027-03-01T08:00:00Z").exits(5);
    assert_eq!(stop_summary(&first), ("window".to_owned(), 4, 6));
    assert!(stop_reason(&first).contains("at 2027-03-02 00:00 (Europe/Kyiv)"), "{}", stop_reason(&first));
    // One minute before midnight in Kyiv, on the same day.
    let same_day = run(&sale, &clock, "2027-03-01T21:59:00Z").exits(5);
    assert_eq!(stop_summary(&same_day), ("window".to_owned(), 0, 6));
    let status = sale.campaign(&["status", "sale", "--json"]).exits(5).json();
    assert_eq!(status["counts"], json!({ "accepted": 4, "planned": 6 }));
    assert_eq!(stop_summary(&run(&sale, &clock, "2027-03-01T22:00:01Z").exits(5)).1, 4);
    run(&sale, &clock, "2027-03-02T22:00:01Z").exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn per_day_limits_advance_only_on_days_with_messages() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = ten_recipients(&gateway, "[1, 2, 3]").write();
    // The campaign does not run on 4 March, so the list of limits does not advance on that day.
    for (day, expected) in [("01", 1), ("02", 2), ("03", 3), ("05", 3), ("06", 1)] {
        let output = run(&sale, &clock, &format!("2027-03-{day}T08:00:00Z"));
        assert_eq!(stop_summary(&output).1, expected, "{day}: {}", output.details());
    }
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn run_waits_for_the_next_day_until_a_stop_is_requested() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = ten_recipients(&gateway, "4").write();
    let waiting = start(&sale, &clock, "2027-03-01T08:00:00Z", &["run", "sale.yaml", "--json"]);
    until("four messages are sent", || gateway.phones().len() == 4);
    until("the run accepts the stop request", || sale.campaign(&["stop", "sale"]).code() == Some(0));
    assert_eq!(waiting.finish().exits(5).json()["stopped"], "stop");
    assert_eq!(gateway.phones().len(), 4);
    // A few seconds before midnight in Kyiv.
    sale.replace("sale.yaml", "per_day: 4", "per_day: 6");
    let over_midnight = start(&sale, &clock, "2027-03-01T21:59:54Z", &["run", "sale.yaml"]);
    over_midnight.finish().exits(0).says("`delivery.per_day` allows only 6 messages today");
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}

#[test]
fn opt_outs_added_while_a_run_waits_for_the_next_day_apply() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = ten_recipients(&gateway, "4").recipients("suppress: [stop.csv]").write();
    sale.write("stop.csv", &format!("phone\n{}\n", phone(2)));
    let waits = start(&sale, &clock, "2027-03-01T21:59:50Z", &["run", "sale.yaml"]);
    until("four messages are sent", || gateway.phones().len() == 4);
    let opted_out: String = (7..12).map(|row| format!("{}\n", phone(row))).collect();
    sale.write("stop.csv", &format!("phone\n{opted_out}"));
    waits.finish().exits(0);
    assert_eq!(gateway.phones(), (3..7).map(phone).collect::<Vec<_>>());
    assert_eq!(sale.results().column("reason").iter().filter(|reason| **reason == "opted out").count(), 6);
}

#[test]
fn daily_limit_respects_the_window_and_the_end_time() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = ten_recipients(&gateway, "4").delivery("window: 09:00-20:00").write();
    let first = run(&sale, &clock, "2027-03-01T08:00:00Z").exits(5);
    assert!(stop_reason(&first).contains("at 2027-03-02 09:00 (Europe/Kyiv)"), "{}", stop_reason(&first));
    // The window opens at 9:00, after `until`, so the run ends at once instead of waiting for the next day.
    sale.replace("sale.yaml", "per_day: 4", "per_day: 4\n  until: 2027-03-02 08:30");
    let ended = start(&sale, &clock, "2027-03-01T09:00:00Z", &["run", "sale.yaml", "--json"]).finish().exits(3).json();
    assert_eq!(ended["counts"], json!({ "accepted": 4, "skipped": 6 }));
    // Without a window, the campaign's next day starts after `until` has passed.
    let short = ten_recipients(&gateway, "4").delivery("until: 2h").write();
    let ended = start(&short, &clock, "2027-03-01T09:00:00Z", &["run", "sale.yaml", "--json"]).finish().exits(3).json();
    assert_eq!(ended["counts"], json!({ "accepted": 4, "skipped": 6 }));
}

#[test]
fn estimated_days_respect_windows_and_sent_messages() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = ten_recipients(&gateway, "[2, 8]").write();
    let check = |sale: &Folder, moment: &str| start(sale, &clock, moment, &["check", "sale.yaml"]).finish().exits(0);
    check(&sale, "2027-03-01T08:00:00Z").says("over 2 days because of `per_day`");
    run(&sale, &clock, "2027-03-01T08:00:00Z").exits(5);
    let rest = check(&sale, "2027-03-02T08:00:00Z");
    assert!(!rest.details().contains("because of `per_day`"), "{}", rest.details());
    // Only three messages can be sent while the window is open.
    let slow = ten_recipients(&gateway, "4").delivery("window: 09:00-09:01").write();
    slow.replace("sale.yaml", "rate: 100000/s", "rate: 3/min");
    check(&slow, "2027-03-01T06:00:00Z").says("over 4 days because of `per_day`");
    let rehearsed = start(&slow, &clock, "2027-03-01T06:00:00Z", &["run", "sale.yaml", "--gateway", "sandbox"]);
    rehearsed.finish().exits(0).says("a live run takes 4 days because of `delivery.per_day`");
}

#[test]
fn estimated_days_use_the_time_zones_of_recipients() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let zone = |row: usize| if row.is_multiple_of(2) { "Europe/Kyiv" } else { "Europe/London" };
    let rows: String = (2..12).map(|row| format!("{},Olena,{}\n", phone(row), zone(row))).collect();
    let draft =
        campaign().with_list(&format!("phone,name,zone\n{rows}")).through(&gateway).top("timezone: Europe/Kyiv");
    let window = "window: { hours: 09:00-09:01, zone: zone }\n  per_day: 9";
    let sale = draft.delivery(window).write();
    sale.replace("sale.yaml", "rate: 100000/s", "rate: 3/min");
    // Each time zone allows three messages a day. If all ten recipients were in Kyiv, sending would take four days.
    let moment = "2027-03-01T06:00:00Z";
    start(&sale, &clock, moment, &["check", "sale.yaml"]).finish().exits(0).says("over 2 days because of `per_day`");
    let rehearsed = start(&sale, &clock, moment, &["run", "sale.yaml", "--gateway", "sandbox"]).finish().exits(0);
    rehearsed.says("a live run takes 2 days because of `delivery.per_day`");
}

#[test]
fn per_day_needs_a_time_zone_and_rehearsals_do_not_wait() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).delivery("per_day: [2, 4]").write();
    sale.run(&[]).exits(2).says("missing-timezone").says("`per_day` needs `timezone`");
    for wrong in ["0", "[]", "[4, many]", "-2", "{ a: 1 }"] {
        let sale = ten_recipients(&gateway, wrong).write();
        sale.run(&[]).exits(2).says("per_day");
    }
    let sale = ten_recipients(&gateway, "[2, 4]").write();
    sale.run(&["--gateway", "sandbox"]).exits(0).says("a live run takes 3 days because of `delivery.per_day`");
    assert!(gateway.sends().is_empty());
}
