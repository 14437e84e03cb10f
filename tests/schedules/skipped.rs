//! Skipped occurrences: the reason is in the log, the notification, `schedule list` and the dashboard.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::support::{Browser, Clock, Draft, Folder, Gateway, Process, Reachable as _, Server, campaign, phone, until};

/// An active schedule, and a receiver of its notifications.
struct DailyCampaign {
    sale: Folder,
    gateway: Gateway,
    receiver: Gateway,
    clock: Clock,
    /// The next occurrence.
    due: Timestamp,
}

impl DailyCampaign {
    fn add(change: impl Fn(Draft) -> Draft) -> Self {
        let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
        let notify = "notify: { when: [changed, skipped], preset: json, url: { file: hook.url }, local: true }";
        let draft = campaign().top("timezone: UTC").top("schedule: { every: day 10:00 }").top(notify);
        let sale = change(draft.through(&gateway)).write();
        sale.write_secret("hook.url", &receiver.base_url());
        for hours in [0, 24] {
            let day = (Timestamp::now() + SignedDuration::from_hours(hours)).strftime("%Y-%m-%d");
            sale.write(&format!("news-{day}.txt"), "Hello");
        }
        let added = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
        let due = added["next"][0].as_str().and_then(|at| at.parse().ok()).expect("a moment");
        Self { sale, gateway, receiver, clock: Clock::new(), due }
    }

    /// Starts the server this long after the next occurrence, or before it if negative.
    fn serve(&self, after: SignedDuration) -> Server {
        Server::start_after(&self.sale, &self.clock.set_to(self.due + after), &[])
    }

    /// Returns what `schedule list` prints this long after the next occurrence, or before it if negative.
    fn list(&self, after: SignedDuration, arguments: &[&str]) -> String {
        let shown = self.clock.set_to(self.due + after);
        let arguments = [&["schedule", "list"], arguments].concat();
        Process::start(self.sale.command_after(&shown, &arguments)).finish().exits(0).stdout
    }

    /// Returns the only schedule as `schedule list --json` prints it.
    fn list_json(&self, after: SignedDuration) -> Value {
        let listed: Value = serde_json::from_str(&self.list(after, &["--json"])).expect("JSON");
        listed[0].clone()
    }

    /// Returns all notifications.
    fn notifications(&self) -> String {
        self.receiver.requests().iter().map(|request| request.json().to_string()).collect()
    }

    /// Runs the server from just before the occurrence until the occurrence is skipped. Returns the log.
    fn run_until_skipped(&self) -> String {
        let server = self.serve(SignedDuration::from_secs(-1));
        until("the notification reports the skip", || self.notifications().contains("was skipped"));
        until("the log has the entry", || server.stderr().contains("skipped: "));
        server.end("TERM").exits(0).stderr
    }
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

#[test]
fn skipped_occurrence_is_shown_until_a_later_one_is_sent() {
    let daily = DailyCampaign::add(|draft| draft);
    let sale = &daily.sale;
    std::fs::rename(sale.path("sale.csv"), sale.path("away.csv")).expect("a list");
    let log = daily.run_until_skipped();
    let file = sale.path("sale.yaml").canonicalize().expect("a file").display().to_string();
    let location = format!("{file}:");
    for shown in [&log, &daily.notifications()] {
        assert!(shown.contains(&location) && shown.contains("sale.csv` does not exist"), "{shown}");
        assert!(shown.contains("[recipients-missing]"), "{shown}");
    }
    for _restart in 0..2 {
        let listed = daily.list_json(HOUR);
        let (skipped, finding) = (&listed["skipped"], &listed["skipped"]["findings"][0]);
        assert_eq!(listed["state"], "armed", "{listed}");
        assert_eq!((&skipped["reason"], &finding["rule"]), (&"1 problem found".into(), &"recipients-missing".into()));
        let at: Timestamp = skipped["at"].as_str().and_then(|at| at.parse().ok()).expect("a moment");
        assert_eq!((at, finding["file"].as_str()), (daily.due, Some(file.as_str())));
        assert!(finding["line"].is_u64() && finding["column"].is_u64(), "{finding}");
        let shown = daily.list(HOUR, &[]);
        let line = format!("{}:{}:{}: ", file, finding["line"], finding["column"]);
        assert!(shown.contains("was skipped: 1 problem found") && shown.contains(&line), "{shown}");
        assert!(shown.contains("help: "), "{shown}");
        // The dashboard shows the finding too, even after a restart of the server.
        let server = daily.serve(HOUR);
        let page = Browser::signed_in(&server).page("/schedules");
        assert!(format!("{page:?}").contains("[recipients-missing]"), "{page:?}");
        server.end("TERM").exits(0);
    }
    assert!(daily.gateway.requests().is_empty());
    std::fs::rename(sale.path("away.csv"), sale.path("sale.csv")).expect("a list");
    let server = daily.serve(DAY - SignedDuration::from_secs(1));
    until("the next occurrence is sent", || daily.gateway.phones().len() == 3);
    server.end("TERM").exits(0);
    assert_eq!(daily.list_json(DAY + HOUR)["skipped"], Value::Null);
    assert!(!daily.list(DAY + HOUR, &[]).contains("was skipped"));
}

#[test]
fn due_occurrence_is_shown_with_what_it_waits_for() {
    let daily = DailyCampaign::add(|draft| draft);
    let sale = &daily.sale;
    sale.replace("sale.yaml", "every: day 10:00", "every: day 10:00, wait_for_file: 2h");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let minute = SignedDuration::from_mins(1);
    assert_eq!(daily.list_json(-minute)["due"], Value::Null);
    assert!(daily.list(minute, &[]).contains("is due, but has not begun"), "{}", daily.list(minute, &[]));
    std::fs::rename(sale.path("sale.csv"), sale.path("away.csv")).expect("a list");
    let due = &daily.list_json(minute)["due"];
    let at: Option<Timestamp> = due["at"].as_str().and_then(|at| at.parse().ok());
    assert_eq!(at, Some(daily.due), "{due}");
    assert!(due["list"].as_str().is_some_and(|list| list.ends_with("sale.csv")), "{due}");
    let server = daily.serve(minute);
    let page = format!("{:?}", Browser::signed_in(&server).page("/schedules"));
    assert!(page.contains("waiting for the list sale.csv"), "{page}");
    let shown = daily.list(minute * 2, &[]);
    assert!(shown.contains("is due: waiting for its list: ") && shown.contains("sale.csv"), "{shown}");
    std::fs::rename(sale.path("away.csv"), sale.path("sale.csv")).expect("a list");
    until("the run is sent", || daily.gateway.phones().len() == 3);
    server.end("TERM").exits(0);
    assert_eq!(daily.list_json(HOUR)["due"], Value::Null);
    assert_eq!(daily.list_json(DAY + HOUR * 3)["due"]["missed"], true, "the next date, without a server");
    assert!(daily.list(DAY + HOUR * 3, &[]).contains("was missed and will not be sent"));
}

#[test]
fn mistake_in_a_daily_text_is_shown_with_its_location() {
    let sms = "  - sms: { signature: OlenaCo, message: { file: \"news-{{ today }}.txt\" } }";
    let daily = DailyCampaign::add(|draft| draft.channels(sms));
    let name = format!("news-{}.txt", daily.due.strftime("%Y-%m-%d"));
    daily.sale.write(&name, "Hello,\ndear {{ nme }}");
    let (log, notification) = (daily.run_until_skipped(), daily.notifications());
    for shown in [&log, &notification, &daily.list(HOUR, &[])] {
        assert!(shown.contains(&format!("{name}:2:")) && shown.contains("nme"), "{shown}");
    }
    assert!(daily.gateway.requests().is_empty());
}

#[test]
fn skipped_occurrence_masks_phone_numbers() {
    let daily = DailyCampaign::add(|draft| draft.recipients("duplicates: refuse"));
    let list = std::fs::read_to_string(daily.sale.path("sale.csv")).expect("a list");
    daily.sale.write("sale.csv", &format!("{list}{},Again\n", phone(2)));
    let (log, notification) = (daily.run_until_skipped(), daily.notifications());
    let (list, json) = (daily.list(HOUR, &[]), daily.list(HOUR, &["--json"]));
    for shown in [log, notification, list, json] {
        assert!(shown.contains("duplicate-number"), "{shown}");
        assert!(!shown.contains(&phone(2).to_string()), "{shown}");
        assert!(shown.contains("…02"), "{shown}");
    }
}

#[test]
fn campaign_file_that_became_invalid_is_listed_with_findings() {
    let daily = DailyCampaign::add(|draft| draft);
    daily.sale.replace("sale.yaml", "recipients:", "recipient:");
    let listed = daily.list_json(-HOUR);
    let findings = listed["findings"].as_array().expect("findings");
    assert_eq!(listed["state"], "changed");
    assert!(findings.iter().any(|finding| finding["rule"] == "unknown-key" && finding["line"].is_u64()), "{listed}");
    let shown = daily.list(-HOUR, &[]);
    assert!(shown.contains("file now has errors") && shown.contains("sale.yaml:"), "{shown}");
    let server = daily.serve(-HOUR);
    until("the log has the entry", || server.stderr().contains("[unknown-key]"));
    server.end("TERM").exits(0);
}
