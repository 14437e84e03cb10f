//! A run sends within its window, waits until it opens, and goes on.

use std::process::Command;

use jiff::Timestamp;
use serde_json::json;

use crate::support::{Clock, Draft, Folder, Gateway, Process, Results, campaign, in_files, phone, telling, until};

/// People of these rows, with the zone that each is in.
fn people(zones: &[&str]) -> String {
    let line = |(index, zone): (usize, &&str)| format!("{},Person,{zone}\n", phone(index + 2));
    "phone,name,zone\n".to_owned() + &zones.iter().enumerate().map(line).collect::<String>()
}

/// A campaign from Kyiv.
fn from_kyiv(gateway: &Gateway) -> Draft {
    campaign().through(gateway).top("timezone: Europe/Kyiv")
}

/// `run` as it is at a moment.
fn run_at(sale: &Folder, clock: &Clock, moment: &str, arguments: &[&str]) -> Command {
    let moment: Timestamp = moment.parse().expect("a moment");
    sale.command_after(&clock.set_to(moment), &[&["run", "sale.yaml"], arguments].concat())
}

/// The rows that went out, and the time on the clocks of a zone at which each did.
fn left(results: &Results, zone_of: impl Fn(&str) -> String) -> Vec<(usize, String)> {
    let rows = results.rows.iter().filter(|row| row["state"] != "planned");
    let time = |row: &std::collections::BTreeMap<String, String>| {
        let moment: Timestamp = row["submitted_at"].parse().expect("a moment");
        let zone = zone_of(row.get("zone").map_or("", String::as_str));
        let zoned = moment.in_tz(&zone).expect("a zone");
        (row["row"].parse().expect("a row"), zoned.strftime("%H:%M:%S").to_string())
    };
    rows.map(time).collect()
}

/// The rows that went out; each did within these hours of its zone, which is Kyiv's where it names none.
#[track_caller]
fn left_within(results: &Results, hours: std::ops::Range<&str>) -> Vec<usize> {
    let zone = |named: &str| if named.contains('/') { named.to_owned() } else { "Europe/Kyiv".to_owned() };
    let left = left(results, zone);
    for (row, time) in &left {
        assert!((hours.start..hours.end).contains(&time.as_str()), "row {row} left at {time}");
    }
    left.into_iter().map(|(row, _)| row).collect()
}

#[test]
fn row_is_sent_within_the_window_of_its_zone() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let list = people(&["Asia/Tokyo", "Europe/Kyiv", "America/New_York", "Nowhere", "", "Europe/Berlin"]);
    let draft = from_kyiv(&gateway).with_list(&list);
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: zone }").write();
    let run = |moment: &str| Process::start(run_at(&sale, &clock, moment, &["--no-wait", "--json"])).finish();
    // In winter it is 14:00 in Kyiv, 21:00 in Tokyo and 07:00 in New York.
    let told = run("2027-03-10T12:00:00Z").exits(5).json();
    assert_eq!((&told["stopped"], &told["sent"]), (&json!("window"), &json!(4)));
    let why = told["why"].as_str().expect("a reason");
    assert!(why.contains("at 2027-03-10 16:00 (Europe/Kyiv)"), "{why}");
    assert_eq!(told["counts"], json!({ "accepted": 4, "planned": 2 }));
    assert_eq!(left_within(&sale.results(), "09:00:00".."20:00:00"), [3, 5, 6, 7]);
    sale.campaign(&["status", "sale"]).exits(5).says("at 2027-03-10 16:00 (Europe/Kyiv)");
    assert_eq!(run("2027-03-10T14:00:00Z").exits(5).json()["sent"], 1);
    assert_eq!(run("2027-03-10T23:59:00Z").exits(5).json()["sent"], 0);
    assert_eq!(run("2027-03-11T00:00:01Z").exits(0).json()["sent"], 1);
    assert_eq!(left_within(&sale.results(), "09:00:00".."20:00:00"), (2..8).collect::<Vec<_>>());
    assert_eq!(gateway.phones(), [3, 5, 6, 7, 4, 2].map(phone));
}

#[test]
fn country_of_a_number_determines_a_single_zone() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    // A Ukrainian, a Japanese, and an American, whose country has several zones.
    let list = "phone,name\n380501000002,A\n819012345678,B\n12015550123,C\n";
    let draft = from_kyiv(&gateway).with_list(list);
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: recipient }").write();
    let told = Process::start(run_at(&sale, &clock, "2027-03-10T12:00:00Z", &["--no-wait", "--json"])).finish();
    assert_eq!(told.exits(5).json()["sent"], 2);
    assert_eq!(gateway.phones(), [380_501_000_002, 12_015_550_123]);
}

#[test]
fn run_waits_for_the_window_and_says_until_when() {
    let _files = in_files();
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let sale = from_kyiv(&gateway).to(7).batches_of(3).delivery("window: 09:00-20:00").write();
    // Clocks go from 03:00 to 04:00 that night.
    let run = Process::start(run_at(&sale, &clock, "2027-03-28T05:59:58Z", &[])).finish();
    run.exits(0).says("waiting").says("sending continues at 2027-03-28 09:00 (Europe/Kyiv)");
    assert_eq!(left_within(&sale.results(), "09:00:00".."09:00:20"), (2..9).collect::<Vec<_>>());
    assert_eq!(gateway.phones().len(), 7);
}

#[test]
fn wait_ends_by_signal_stop_or_kill_and_the_run_resumes() {
    let _files = in_files();
    for (how, code) in [("INT", 130), ("TERM", 143), ("stop", 5), ("KILL", 137)] {
        let _case = telling(format!("case: {how}"));
        let (gateway, clock) = (Gateway::accepting(), Clock::new());
        let list = people(&["Europe/Kyiv", "America/New_York", "Europe/Kyiv"]);
        let draft = from_kyiv(&gateway).with_list(&list);
        let sale = draft.delivery("window: { hours: 09:00-20:00, zone: zone }").write();
        let mut run = Process::start(run_at(&sale, &clock, "2027-01-10T08:00:00Z", &[]));
        until("it waits", || run.stderr().contains("at 2027-01-10 16:00"));
        sale.campaign(&["status", "sale"]).exits(6);
        match how {
            "stop" => drop(sale.campaign(&["stop", "sale"]).exits(0)),
            "KILL" => {}
            signal => run.signal(signal),
        }
        let ended = if how == "KILL" { run.kill() } else { run.finish() };
        assert_eq!(ended.code().unwrap_or(137), code, "{}", ended.told());
        assert_eq!(gateway.phones(), [2, 4].map(phone));
        sale.campaign(&["status", "sale"]).exits(5);
        Process::start(run_at(&sale, &clock, "2027-01-10T14:00:00Z", &[])).finish().exits(0);
        assert_eq!(gateway.phones(), [2, 4, 3].map(phone), "each once");
        assert_eq!(left_within(&sale.results(), "09:00:00".."20:00:00").len(), 3);
    }
}

#[test]
fn nothing_is_sent_after_the_window_with_several_on_one_account() {
    let _files = in_files();
    for names in [&["sale"][..], &["sale", "news", "more"]] {
        let _case = telling(format!("case: {names:?}"));
        let (gateway, clock) = (Gateway::accepting(), Clock::new());
        let draft = from_kyiv(&gateway).to(40).batches_of(3).delivery("rate: 4/s").profile("rate: 4/s");
        let sale = draft.delivery("window: { hours: 09:00-20:00, days: wed }").write();
        let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
        let start = |name: &&str| {
            let file = format!("{name}.yaml");
            sale.write(&file, &text.replace("name: sale", &format!("name: {name}")));
            let set = clock.set_to("2027-03-10T17:59:58Z".parse().expect("a moment"));
            Process::start(sale.command_after(&set, &["run", &file, "--no-wait", "--json"]))
        };
        let (mut messages, runs) = (0, names.iter().map(start).collect::<Vec<_>>());
        for (name, run) in names.iter().zip(runs) {
            let told = run.finish().exits(5).json();
            assert_eq!(told["stopped"], "window");
            assert!(told["why"].as_str().is_some_and(|why| why.contains("at 2027-03-17 09:00")), "{told}");
            let results = Results::read(&sale.path(&format!("results/{name}.csv")));
            let left = left_within(&results, "19:59:58".."20:00:00");
            assert_eq!(left, (2..left.len() + 2).collect::<Vec<_>>());
            assert_eq!(results.counts()["planned"], 40 - left.len() as u64, "nobody is lost");
            messages += left.len();
        }
        // None at all where the computer was so busy that they began after the end.
        assert!(messages <= 15, "{messages}");
        assert_eq!(gateway.phones().len(), messages);
    }
}

#[test]
fn campaign_cannot_loosen_a_window_of_its_profile() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let draft = |window: &str| {
        let draft = from_kyiv(&gateway).profile("policy: { window: 09:00-20:00 }");
        if window.is_empty() { draft } else { draft.delivery(window) }
    };
    for (window, opens) in [
        ("", "2027-03-11 09:00"),
        ("window: 00:00-24:00", "2027-03-11 09:00"),
        ("window: 18:00-23:00", "2027-03-11 18:00"),
        ("window: { hours: 18:00-23:00, except: [2027-03-11] }", "2027-03-12 18:00"),
    ] {
        let sale = draft(window).write();
        let told = Process::start(run_at(&sale, &clock, "2027-03-10T19:00:00Z", &["--no-wait", "--json"])).finish();
        let told = told.exits(5).json();
        assert!(told["why"].as_str().is_some_and(|why| why.contains(opens)), "{window}: {told}");
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
fn window_can_change_between_starts_and_only_chosen_rows_wait() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let list = people(&["Europe/Kyiv", "America/New_York", "Europe/Kyiv", "Europe/Kyiv"]);
    let draft = from_kyiv(&gateway).with_list(&list);
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
