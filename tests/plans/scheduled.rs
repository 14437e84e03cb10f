//! What is due by itself and needs an approval: it waits for one, and goes out without anybody at its side.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::signed::new_key;
use crate::support::{Clock, Folder, Gateway, Reachable as _, Server, change_ledger, in_files, live, telling, until};

/// A campaign of each day whose approver is Olha, and who hears of what waits.
struct Guarded {
    sale: Folder,
    hears: Gateway,
    clock: Clock,
    /// The next dates.
    due: Vec<Timestamp>,
}

impl Guarded {
    fn arm() -> Self {
        let (sale, hears) = (live(), Gateway::accepting());
        let public = new_key(&sale, "olha");
        let rule = format!("local:\n  approval: {{ above: 2, by: {{ Olha: \"{public}\" }} }}\n");
        sale.replace("gateways.yaml", "local:\n", &rule);
        sale.write_secret("hook.url", &hears.base_url());
        let top = "name: sale\ntimezone: Europe/Kyiv\nschedule: { every: day 10:00 }\nnotify: { when: [waiting, stopped, changed, skipped], \
                   preset: json, url: { file: hook.url }, local: true }\n";
        sale.replace("sale.yaml", "name: sale\n", top);
        let armed = sale.campaign(&["schedule", "add", "sale.yaml", "--yes", "--json"]).exits(0).json();
        let moment = |at: &Value| at.as_str().and_then(|at| at.parse().ok()).expect("a moment");
        let due = armed["next"].as_array().expect("dates").iter().map(moment).collect();
        Self { sale, hears, clock: Clock::new(), due }
    }

    /// Starts a server so long after a date was due.
    fn serve(&self, due: Timestamp, after: SignedDuration) -> Server {
        Server::start_after(&self.sale, &self.clock.set_to(due + after), &[])
    }

    /// The reasons of what was told on an occasion.
    fn told(&self, occasion: &str) -> Vec<String> {
        let told = self.hears.requests().into_iter().map(|request| request.json());
        let of: Vec<Value> = told.filter(|told| told["occasion"] == occasion).collect();
        let notices = of.iter().flat_map(|told| told["notices"].as_array().expect("notices"));
        notices.map(|notice| notice["why"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until it is told that something waits, and gives the digest that it names.
    fn waits(&self) -> String {
        until("it is told what waits", || !self.told("waiting").is_empty());
        let told = self.told("waiting").remove(0);
        assert!(told.contains("for approval of plan "), "{told}");
        told.rsplit(' ').next().expect("a digest").to_owned()
    }

    /// How many runs there are.
    fn runs(&self) -> usize {
        let listed = self.sale.campaign(&["status", "--json"]).json();
        listed["runs"].as_array().map_or(0, Vec::len)
    }
}

#[test]
fn occurrence_is_sent_after_its_approval_even_after_downtime() {
    let daily = Guarded::arm();
    let due = daily.due[0];
    let server = daily.serve(due, SignedDuration::from_secs(-1));
    let digest = daily.waits();
    server.end("TERM").exits(0);
    assert_eq!(daily.runs(), 0);
    daily.sale.campaign(&["approve", &digest]).exits(2).says("names its approvers");
    daily.sale.campaign(&["approve", &digest, "--key", "olha.key"]).exits(0).says("`campaign serve` sends it now");
    // Longer after it was due than it would begin by itself.
    let server = daily.serve(due, SignedDuration::from_hours(5));
    // The gateway cannot be reached, so that the run begins and stops.
    until("it is told that it stopped", || !daily.told("stopped").is_empty());
    server.end("TERM").exits(0);
    assert_eq!(daily.runs(), 1);
}

#[test]
fn standing_approval_is_for_a_schedule_and_a_recipient_limit() {
    let _files = in_files();
    let daily = Guarded::arm();
    let (first, second) = (daily.due[0], daily.due[1]);
    let server = daily.serve(first, SignedDuration::from_secs(-1));
    let digest = daily.waits();
    let stand = |up_to: &str| {
        let options = ["approve", &digest, "--key", "olha.key", "--standing", "90d", "--up-to", up_to];
        daily.sale.campaign(&options).exits(0).says("Olha approved all scheduled runs of sale until");
    };
    stand("2");
    stand("3");
    until("it is told that it stopped", || !daily.told("stopped").is_empty());
    server.end("TERM").exits(0);
    assert_eq!(daily.runs(), 1);
    daily.sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(0);
    // The next day nobody has to be asked, for a list of so many.
    let server = daily.serve(second, SignedDuration::from_secs(-1));
    until("it is told that it stopped too", || daily.told("stopped").len() >= 2);
    server.end("TERM").exits(0);
    assert_eq!((daily.runs(), daily.told("waiting").len()), (2, 1));
}

#[test]
fn damaged_plan_or_approval_sends_nothing() {
    for (case, damage, named) in [
        ("a plan", "UPDATE plans SET record = record || ' '", "the plan "),
        ("an approval", "UPDATE approvals SET up_to = up_to + 1000", "an approval of plan "),
    ] {
        let _case = telling(case);
        let daily = Guarded::arm();
        let due = daily.due[0];
        let server = daily.serve(due, SignedDuration::from_secs(-1));
        let digest = daily.waits();
        server.end("TERM").exits(0);
        daily.sale.campaign(&["approve", &digest, "--key", "olha.key"]).exits(0);
        change_ledger(&daily.sale, damage);
        let server = daily.serve(due, SignedDuration::from_hours(5));
        until("it is told that it is damaged", || daily.told("changed").iter().any(|why| why.contains(named)));
        if case == "a plan" {
            // Nothing waits for an approval without its plan.
            until("it is told that it was skipped", || daily.told("skipped").iter().any(|why| why.contains("damaged")));
        }
        assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 200));
        let listed = daily.sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list();
        assert_eq!(listed[0]["state"], "damaged", "{listed}");
        server.end("TERM").exits(0);
        assert_eq!(daily.runs(), 0);
        daily.sale.campaign(&["ledger", "check"]).exits(74).says(named).says("help: ");
    }
}
