//! Marketing at night without a window, and windows in the recipient's local time for countries with several time
//! zones.

use jiff::Timestamp;
use serde_json::Value;

use super::international_campaign;
use crate::support::{Clock, Folder, Gateway, Process, Terminal, campaign, live};

/// 22:30 in Kyiv and 21:30 in Warsaw and Berlin.
const NIGHT: &str = "2030-01-10T20:30:00Z";
/// 14:00 in Kyiv.
const DAY: &str = "2030-01-10T12:00:00Z";

/// The severity and message of the finding `night` that `check` reports at a moment.
fn night_finding(sale: &Folder, clock: &Clock, moment: &str) -> Option<(String, String)> {
    let moment: Timestamp = moment.parse().expect("a moment");
    let check = sale.command_after(&clock.set_to(moment), &["check", "sale.yaml", "--json", "--strict"]);
    let checked = Process::start(check).finish().json();
    let text = |finding: &Value, key: &str| finding[key].as_str().expect("a text").to_owned();
    let found = checked["findings"].as_array().expect("findings");
    let found = found.iter().find(|finding| finding["rule"] == "night")?;
    Some((text(found, "severity"), text(found, "message")))
}

#[test]
fn schedule_at_night_causes_a_warning_with_local_times() {
    let gateway = Gateway::accepting();
    let draft = international_campaign(&gateway).delivery("rate: 100/s");
    let sale = draft.top("timezone: Europe/Kyiv").top("schedule: { every: day 22:30 }").write();
    let added = sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    added.says("4 recipients between 21:00 and 8:00 in their local time").says("2 in Europe/Kyiv at 22:30");
    sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2).says("in their local time");
    for change in [("every: day 22:30", "every: day 12:00"), ("delivery:\n", "delivery:\n  window: 09:00-20:00\n")] {
        sale.replace("sale.yaml", change.0, change.1);
        let added = sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
        assert!(!added.details().contains("in their local time"), "{change:?}: {}", added.details());
        sale.replace("sale.yaml", change.1, change.0);
    }
    sale.replace("sale.yaml", "recipients:\n", "purpose: service\nrecipients:\n");
    let added = sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    assert!(!added.details().contains("in their local time"), "{}", added.details());
}

#[test]
fn check_at_night_gives_a_note_that_strict_ignores() {
    let (sale, clock) = (live(), Clock::new());
    let (severity, message) = night_finding(&sale, &clock, NIGHT).expect("a finding");
    assert_eq!(severity, "note");
    assert!(message.contains("3 recipients") && message.contains("3 in Europe/Kyiv at 22:30"), "{message}");
    assert_eq!(night_finding(&sale, &clock, DAY), None);
    // A gateway on this machine has no real recipients.
    let local = campaign().through(&Gateway::accepting()).write();
    assert_eq!(night_finding(&local, &clock, NIGHT), None);
}

#[test]
fn check_reports_messages_delayed_to_midnight_by_a_daily_limit() {
    let (sale, clock) = (live(), Clock::new());
    sale.replace("sale.yaml", "delivery:\n", "timezone: Europe/Kyiv\ndelivery:\n  per_day: 2\n");
    let (_, message) = night_finding(&sale, &clock, DAY).expect("a finding");
    assert!(message.contains("3 recipients") && message.contains("at 00:00"), "{message}");
    sale.replace("sale.yaml", "per_day: 2", "per_day: 3");
    assert_eq!(night_finding(&sale, &clock, DAY), None);
}

#[test]
fn prompt_at_night_shows_a_warning() {
    let (sale, clock) = (live(), Clock::new());
    let at = |moment: &str| clock.set_to(moment.parse().expect("a moment"));
    let run = |moment: &str| Terminal::start(sale.command_after(&at(moment), &["run", "sale.yaml", "--offline"]));
    let terminal = run(NIGHT);
    terminal.shows("warning").shows("3 recipients between");
    terminal.shows("press Enter to cancel").types("");
    terminal.finish().exits(2);
    let terminal = run(DAY);
    terminal.shows("press Enter to cancel").types("");
    assert!(!terminal.shown().contains("3 recipients between"), "{}", terminal.shown());
    terminal.finish().exits(2);
}

#[test]
fn window_by_recipient_reports_countries_with_several_zones() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n+380501230001,Olena\n+34612345678,Ana\n+12125550123,Ann\n+61412345678,Kim\n";
    let draft = campaign().with_list(list).through(&gateway).top("timezone: Europe/Kyiv");
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: recipient }").write();
    let checked = sale.campaign(&["check", "sale.yaml"]).exits(0);
    checked.says("(Europe/Kyiv) for 2 recipients whose number does not indicate a time zone: 1 in AU and 1 in ES");
}

#[test]
fn plus_one_number_waits_for_the_window_of_its_area_code() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let list = "phone,name\n+12125550123,Ann\n+13105550123,Bob\n";
    let draft = campaign().with_list(list).through(&gateway).top("timezone: Europe/Kyiv");
    let sale = draft.delivery("window: { hours: 09:00-20:00, zone: recipient }").write();
    // 9:30 in New York, 6:30 in Los Angeles.
    let morning = clock.set_to("2030-01-10T14:30:00Z".parse().expect("a moment"));
    Process::start(sale.command_after(&morning, &["run", "sale.yaml", "--no-wait"])).finish().exits(5);
    assert_eq!(gateway.phones(), [12_125_550_123]);
}
