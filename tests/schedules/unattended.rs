//! Unattended daily schedule, from the arrival of the list to delivery receipts: the only manual step is to activate
//! it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::receipts::Hooked;
use crate::support::{
    Clock, Gateway, Reachable as _, Results, SandboxProcess, Server, campaign, in_files, phone, until,
};

/// Row 3 fails and every other row is delivered. The recipient of row 4 reads the message, and that of row 5 opts out.
const SCENARIO: &str = "
speed: 60
channels:
  viber: { delivered: 100%, after: 0, read: 0% }
exceptions:
  - { when: { suffix: \"003\" }, then: { delivered: 0%, after: 0, fails_as: EXPIRED } }
  - { when: { suffix: \"004\" }, then: { delivered: 100%, after: 0, read: 100%, read_after: 0 } }
  - { when: { suffix: \"005\" }, then: { delivered: 100%, after: 0, reply: { after: 0, message: \"Stop, please\" } } }
";
/// The list of each day.
const LIST: &str = "phone\n+380501000002\n+380501000003\n+380501000004\n+380501000005\n";
const VIBER: &str = "  - viber: { signature: OlenaCo, message: \"News of {{ today }}\" }";

/// A campaign that is due every day, and a receiver of its notifications.
struct DailyCampaign {
    hooked: Hooked,
    receiver: Gateway,
    clock: Clock,
    /// The next two occurrences: the time and the date of each.
    due: Vec<(Timestamp, String)>,
}

impl DailyCampaign {
    /// Creates the campaign and activates its schedule.
    fn activate(sandbox: &SandboxProcess) -> Self {
        let schedule = "schedule: { every: day 10:00, wait_for_file: 2h }";
        let notify = "notify: { when: [finished, waiting], preset: json, url: { file: hook.url }, local: true }";
        let draft = campaign().channels(VIBER).top("timezone: Europe/Kyiv").top(schedule).top(notify);
        let hooked = Hooked::write(draft.through(sandbox));
        let (sale, receiver) = (&hooked.sale, Gateway::accepting());
        sale.replace("sale.yaml", "sale.csv", "\"daily-{{ today }}.csv\"");
        sale.write_secret("hook.url", &receiver.base_url());
        let added = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
        let parse_occurrence = |at: &Value| {
            let at = at.as_str().expect("a moment");
            (at.parse().expect("a moment"), at[..10].to_owned())
        };
        let due = added["next"].as_array().expect("dates").iter().map(parse_occurrence).collect();
        Self { hooked, receiver, clock: Clock::new(), due }
    }

    /// Starts the server shortly before an occurrence is due.
    fn serve_before(&self, (due, _): &(Timestamp, String)) -> Server {
        let set = self.clock.set_to(*due - SignedDuration::from_secs(2));
        Server::start_after(&self.hooked.sale, &set, &["--hooks", &self.hooked.address])
    }

    /// Writes the list of a day.
    fn write_list(&self, (_, day): &(Timestamp, String)) {
        self.hooked.sale.write(&format!("daily-{day}.csv"), LIST);
    }

    /// Returns the notifications about an event.
    fn notifications(&self, occasion: &str) -> Vec<Value> {
        let notifications = self.receiver.requests().into_iter().map(|request| request.json());
        notifications.filter(|notification| notification["occasion"] == occasion).collect()
    }

    /// Returns the state and reason per phone number in a day's results file. The map is empty until the file exists.
    fn results(&self, (_, day): &(Timestamp, String)) -> BTreeMap<String, (String, String)> {
        let Ok(text) = std::fs::read_to_string(self.hooked.sale.path(&format!("results/sale-{day}-10-00.csv"))) else {
            return BTreeMap::new();
        };
        let row = |row: &BTreeMap<String, String>| (row["to"].clone(), (row["state"].clone(), row["reason"].clone()));
        Results::parse(&text).rows.iter().map(row).collect()
    }
}

/// Builds the expected results of rows 2 to 5 with these states and no reasons.
fn expected_results(states: [&str; 4]) -> BTreeMap<String, (String, String)> {
    (2..).zip(states).map(|(row, state)| (phone(row).to_string(), (state.into(), String::new()))).collect()
}

#[test]
fn scheduled_campaign_runs_unattended_for_two_days() {
    let _files = in_files();
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, SCENARIO).expect("a file");
    let sandbox = SandboxProcess::start_with(&["--scenario", scenario.to_str().expect("a path")]);
    let daily = DailyCampaign::activate(&sandbox);
    let [first, second] = [&daily.due[0], &daily.due[1]];
    // First day: the occurrence is due, the list arrives later, and recipients react.
    let server = daily.serve_before(first);
    until("the notification reports the missing list", || !daily.notifications("waiting").is_empty());
    assert!(sandbox.messages().is_empty());
    daily.write_list(first);
    until("the notification reports the end", || !daily.notifications("finished").is_empty());
    let notice = &daily.notifications("finished")[0]["notices"][0];
    assert_eq!((&notice["run"], &notice["rows"]), (&"sale@1".into(), &4.into()), "{notice}");
    until("all receipts arrive: final states, a read and a reply", || count_acknowledged_webhooks(&sandbox) == 6);
    server.end("TERM").exits(0);
    // Second day: the list arrives early, and the machine was off overnight.
    daily.write_list(second);
    let server = daily.serve_before(second);
    until("the results of the first day have their final states", || {
        daily.results(first) == expected_results(["delivered", "failed", "read", "read"])
    });
    until("the notification reports the second end", || daily.notifications("finished").len() == 2);
    let second_results = daily.results(second);
    assert_eq!(second_results[&phone(5).to_string()], ("skipped".into(), "opted out".into()), "{second_results:?}");
    assert_eq!(sandbox.messages(), [(phone(2), 2), (phone(3), 2), (phone(4), 2), (phone(5), 1)].into());
    assert_eq!(second_results.len(), 4);
    server.end("TERM").exits(0);
}

/// Counts the webhooks that were answered with 200.
fn count_acknowledged_webhooks(sandbox: &SandboxProcess) -> usize {
    let is_acknowledged = |line: &&Value| line["event"] == "webhook" && line["result"].to_string().contains("200");
    sandbox.journal().iter().filter(is_acknowledged).count()
}

#[test]
fn occurrence_skips_recipients_that_a_stopped_run_cancelled() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let draft = campaign().to(10).top("edition: first").top("timezone: Europe/Kyiv");
    let sale = draft.top("schedule: { every: day 10:00 }").through(&gateway).write();
    sale.run(&["--now", "--limit", "3"]).exits(0);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0).says("7 rows cancelled");
    let list = std::fs::read_to_string(sale.path("sale.csv")).expect("a list");
    sale.write("sale.csv", &format!("{list}{},New\n", phone(12)));
    let added = sale.campaign(&["schedule", "add", "sale.yaml", "--json"]).exits(0).json();
    let due: Timestamp = added["next"][0].as_str().and_then(|at| at.parse().ok()).expect("a moment");
    let clock = Clock::new();
    let server = Server::start_after(&sale, &clock.set_to(due - SignedDuration::from_secs(2)), &[]);
    until("the occurrence is sent", || gateway.phones().len() >= 4);
    server.end("TERM").exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 12].map(phone));
}
