//! Runs with a sending window: they send inside it, and wait for it to open before they continue.

use std::process::Command;

use jiff::Timestamp;
use serde_json::json;

use crate::support::{
    Clock, Draft, Folder, Gateway, Process, Results, campaign, in_files, note_on_failure, phone, until,
};

/// Builds a list with one recipient per zone.
fn list_with_zones(zones: &[&str]) -> String {
    let line = |(index, zone): (usize, &&str)| format!("{},Person,{zone}\n", phone(index + 2));
    "phone,name,zone\n".to_owned() + &zones.iter().enumerate().map(line).collect::<String>()
}

/// Drafts a campaign in the time zone of Kyiv.
fn kyiv_campaign(gateway: &Gateway) -> Draft {
    campaign().through(gateway).top("timezone: Europe/Kyiv")
}

/// Builds a `run` command whose clock starts at this moment.
fn run_at(sale: &Folder, clock: &Clock, moment: &str, arguments: &[&str]) -> Command {
    let moment: Timestamp = moment.parse().expect("a moment");
    sale.command_after(&clock.set_to(moment), &[&["run", "sale.yaml"], arguments].concat())
}

/// Returns the sent rows, each with its local time of sending.
fn sent_rows(results: &Results, zone_of: impl Fn(&str) -> String) -> Vec<(usize, String)> {
    let rows = results.rows.iter().filter(|row| row["state"] != "planned");
    let time = |row: &std::collections::BTreeMap<String, String>| {
        let moment: Timestamp = row["submitted_at"].parse().expect("a moment");
        let zone = zone_of(row.get("zone").map_or("", String::as_str));
        let zoned = moment.in_tz(&zone).expect("a zone");
        (row["row"].parse().expect("a row"), zoned.strftime("%H:%M:%S").to_string())
    };
    rows.map(time).collect()
}

/// Fails unless every message was sent within these hours of its row's zone, by default Kyiv. Returns the rows.
#[track_caller]
fn assert_sent_within(results: &Results, hours: std::ops::Range<&str>) -> Vec<usize> {
    let zone = |named: &str| if named.contains('/') { named.to_owned() } else { "Europe/Kyiv".to_owned() };
    let rows_sent = sent_rows(results, zone);
    for (row, time) in &rows_sent {
        assert!((hours.start..hours.end).contains(&time.as_str()), "row {row} was sent at {time}");
    }
    rows_sent.into_iter().map(|(row, _)| row).collect()
}

#[test]
fn row_is_sent_within_the_window_of_its_zone() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let list = list_with_zones(&["Asia/Tokyo", "Europe/Kyiv", "America/New_York", "Nowhere", "", "Europe/Berlin"]);
    let draft = kyiv_campaign(&gateway).with_list(&list);
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: zone }").write();
    let run = |moment: &str| Process::start(run_at(&sale, &clock, moment, &["--no-wait", "--json"])).finish();
    // At 12:00 UTC in winter, it is 14:00 in Kyiv, 21:00 in Tokyo and 07:00 in New York.
    let output = run("2027-03-10T12:00:00Z").exits(5).json();
    assert_eq!((&output["stopped"], &output["sent"]), (&json!("window"), &json!(4)));
    let why = output["why"].as_str().expect("a reason");
    assert!(why.contains("at 2027-03-10 16:00 (Europe/Kyiv)"), "{why}");
    assert_eq!(output["counts"], json!({ "accepted": 4, "planned": 2 }));
    assert_eq!(assert_sent_within(&sale.results(), "09:00:00".."20:00:00"), [3, 5, 6, 7]);
    sale.campaign(&["status", "sale"]).exits(5).says("at 2027-03-10 16:00 (Europe/Kyiv)");
    assert_eq!(run("2027-03-10T14:00:00Z").exits(5).json()["sent"], 1);
    assert_eq!(run("2027-03-10T23:59:00Z").exits(5).json()["sent"], 0);
    assert_eq!(run("2027-03-11T00:00:01Z").exits(0).json()["sent"], 1);
    assert_eq!(assert_sent_within(&sale.results(), "09:00:00".."20:00:00"), (2..8).collect::<Vec<_>>());
    assert_eq!(gateway.phones(), [3, 5, 6, 7, 4, 2].map(phone));
}

#[test]
fn phone_number_determines_the_zone_of_a_single_zone_country() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    // One Ukrainian number, one Japanese, and one Spanish, whose country has several zones.
    let list = "phone,name\n380501000002,A\n819012345678,B\n34612345678,C\n";
    let draft = kyiv_campaign(&gateway).with_list(list);
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: recipient }").write();
    let output = Process::start(run_at(&sale, &clock, "2027-03-10T12:00:00Z", &["--no-wait", "--json"])).finish();
    assert_eq!(output.exits(5).json()["sent"], 2);
    assert_eq!(gateway.phones(), [380_501_000_002, 34_612_345_678]);
}

#[test]
fn run_waits_for_the_window_and_says_until_when() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = kyiv_campaign(&gateway).to(7).batches_of(3).delivery("window: 09:00-20:00").write();
    // Clocks go from 03:00 to 04:00 that night.
    let run = Process::start(run_at(&sale, &clock, "2027-03-28T05:59:58Z", &[])).finish();
    run.exits(0).says("waiting").says("sending resumes at 2027-03-28 09:00 (Europe/Kyiv)");
    assert_eq!(assert_sent_within(&sale.results(), "09:00:00".."09:00:20"), (2..9).collect::<Vec<_>>());
    assert_eq!(gateway.phones().len(), 7);
}

#[test]
fn opt_outs_added_while_a_run_waits_for_its_window_apply() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let draft = kyiv_campaign(&gateway).to(3).recipients("suppress: [stop.csv]");
    let sale = draft.delivery("window: 09:00-20:00").write();
    sale.write("stop.csv", "phone\n");
    let start_waiting_run = || {
        clock.move_to("2027-03-10T01:00:00Z".parse().expect("a moment"));
        let run = Process::start(sale.command_after(&clock.adjustable(), &["run", "sale.yaml"]));
        until("the run waits", || run.stderr().contains("at 2027-03-10 09:00"));
        run
    };
    let open_window = || clock.move_to("2027-03-10T08:00:00Z".parse().expect("a moment"));
    // A file that has disappeared stops the run.
    let run = start_waiting_run();
    std::fs::remove_file(sale.path("stop.csv")).expect("a file");
    open_window();
    run.finish().exits(5).says("cannot use the suppression list").says("stop.csv");
    assert!(gateway.sends().is_empty());
    sale.write("stop.csv", "phone\n");
    let run = start_waiting_run();
    sale.write("stop.csv", &format!("phone\n{}\n", phone(3)));
    open_window();
    run.finish().exits(0);
    assert_eq!(gateway.phones(), [2, 4].map(phone));
    assert_eq!(sale.results().column("reason"), ["", "opted out", ""]);
}

#[test]
fn run_interrupted_while_waiting_for_a_window_resumes() {
    let _files = in_files();
    for (how, code) in [("INT", 130), ("TERM", 143), ("stop", 5), ("KILL", 137)] {
        let _case = note_on_failure(format!("case: {how}"));
        let (gateway, clock) = (Gateway::accepting(), Clock::new());
        let list = list_with_zones(&["Europe/Kyiv", "America/New_York", "Europe/Kyiv"]);
        let draft = kyiv_campaign(&gateway).with_list(&list);
        let sale = draft.delivery("window: { hours: 09:00-20:00, zone: zone }").write();
        let mut run = Process::start(run_at(&sale, &clock, "2027-01-10T08:00:00Z", &[]));
        until("the run waits", || run.stderr().contains("at 2027-01-10 16:00"));
        sale.campaign(&["status", "sale"]).exits(6);
        match how {
            "stop" => drop(sale.campaign(&["stop", "sale"]).exits(0)),
            "KILL" => {}
            signal => run.signal(signal),
        }
        let ended = if how == "KILL" { run.kill() } else { run.finish() };
        assert_eq!(ended.code().unwrap_or(137), code, "{}", ended.details());
        assert_eq!(gateway.phones(), [2, 4].map(phone));
        sale.campaign(&["status", "sale"]).exits(5);
        Process::start(run_at(&sale, &clock, "2027-01-10T14:00:00Z", &[])).finish().exits(0);
        assert_eq!(gateway.phones(), [2, 4, 3].map(phone), "each once");
        assert_eq!(assert_sent_within(&sale.results(), "09:00:00".."20:00:00").len(), 3);
    }
}

#[test]
fn runs_sharing_an_account_send_nothing_after_the_window() {
    let _files = in_files();
    for names in [&["sale"][..], &["sale", "news", "more"]] {
        let _case = note_on_failure(format!("case: {names:?}"));
        let (gateway, clock) = (Gateway::accepting(), Clock::new());
        let draft = kyiv_campaign(&gateway).to(40).batches_of(3).delivery("rate: 4/s").profile("rate: 4/s");
        let sale = draft.delivery("window: { hours: 09:00-20:00, days: wed }").write();
        let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
        let start = |name: &&str| {
            let file = format!("{name}.yaml");
            sale.write(&file, &text.replace("name: sale", &format!("name: {name}")));
            let clock_setup = clock.set_to("2027-03-10T17:59:58Z".parse().expect("a moment"));
            Process::start(sale.command_after(&clock_setup, &["run", &file, "--no-wait", "--json"]))
        };
        let (mut messages, runs) = (0, names.iter().map(start).collect::<Vec<_>>());
        for (name, run) in names.iter().zip(runs) {
            let output = run.finish().exits(5).json();
            assert_eq!(output["stopped"], "window");
            assert!(output["why"].as_str().is_some_and(|why| why.contains("at 2027-03-17 09:00")), "{output}");
            let results = Results::read(&sale.path(&format!("results/{name}.csv")));
            let rows_sent = assert_sent_within(&results, "19:59:58".."20:00:00");
            // Runs that share an account take turns in any order, so the window can close before an earlier batch.
            if names.len() == 1 {
                assert_eq!(rows_sent, (2..rows_sent.len() + 2).collect::<Vec<_>>());
            }
            assert_eq!(results.counts()["planned"], 40 - rows_sent.len() as u64, "every row is accounted for");
            messages += rows_sent.len();
        }
        // No messages are sent at all if a busy computer started the runs after the window closed.
        assert!(messages <= 15, "{messages}");
        assert_eq!(gateway.phones().len(), messages);
    }
}

#[test]
fn campaign_cannot_widen_a_window_of_its_profile() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let draft = |window: &str| {
        let draft = kyiv_campaign(&gateway).profile("policy: { window: 09:00-20:00 }");
        if window.is_empty() { draft } else { draft.delivery(window) }
    };
    for (window, opens) in [
        ("", "2027-03-11 09:00"),
        ("window: 00:00-24:00", "2027-03-11 09:00"),
        ("window: 18:00-23:00", "2027-03-11 18:00"),
        ("window: { hours: 18:00-23:00, except: [2027-03-11] }", "2027-03-12 18:00"),
    ] {
        let sale = draft(window).write();
        let output = Process::start(run_at(&sale, &clock, "2027-03-10T19:00:00Z", &["--no-wait", "--json"])).finish();
        let output = output.exits(5).json();
        assert!(output["why"].as_str().is_some_and(|why| why.contains(opens)), "{window}: {output}");
    }
    assert!(gateway.sends().is_empty());
}

#[test]
fn rehearsal_ignores_windows_unless_in_real_time() {
    let clock = Clock::new();
    let sale = campaign().top("timezone: Europe/Kyiv").delivery("window: 09:00-20:00").write();
    Process::start(run_at(&sale, &clock, "2027-03-10T22:00:00Z", &[])).finish().exits(0);
    assert_eq!(sale.results().counts().get("planned"), None);
    let real = run_at(&sale, &clock, "2027-03-10T22:00:00Z", &["--real-time", "--no-wait"]);
    Process::start(real).finish().exits(5).says("at 2027-03-11 09:00");
}

#[test]
fn window_delays_only_selected_rows_and_can_change_on_resume() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let list = list_with_zones(&["Europe/Kyiv", "America/New_York", "Europe/Kyiv", "Europe/Kyiv"]);
    let draft = kyiv_campaign(&gateway).with_list(&list);
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: zone }").write();
    let run = |arguments: &[&str]| Process::start(run_at(&sale, &clock, "2027-01-10T08:00:00Z", arguments)).finish();
    run(&["--limit", "1"]).exits(0);
    run(&["--rows", "4"]).exits(0);
    assert_eq!(gateway.phones(), [2, 4].map(phone));
    run(&["--no-wait", "--rows", "3"]).exits(5);
    sale.replace("sale.yaml", "09:00-20:00", "01:00-20:00");
    run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 3, 5].map(phone));
}
