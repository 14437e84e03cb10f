//! Approvals of scheduled occurrences: an occurrence that needs an approval waits for it, and is then sent without
//! anyone present.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::signed::create_key;
use crate::support::{
    Clock, Folder, Gateway, Reachable as _, Server, change_ledger, in_files, live, note_on_failure, until,
};

/// A daily campaign whose approver is Olha, and a receiver of its notifications.
struct GuardedSchedule {
    sale: Folder,
    receiver: Gateway,
    clock: Clock,
    /// The next occurrences.
    due: Vec<Timestamp>,
}

impl GuardedSchedule {
    fn activate() -> Self {
        let (sale, receiver) = (live(), Gateway::accepting());
        let public = create_key(&sale, "olha");
        let rule = format!("local:\n  approval: {{ above: 2, by: {{ Olha: \"{public}\" }} }}\n");
        sale.replace("gateways.yaml", "local:\n", &rule);
        sale.write_secret("hook.url", &receiver.base_url());
        let top = "name: sale\ntimezone: Europe/Kyiv\nschedule: { every: day 10:00 }\nnotify: { when: [waiting, stopped, changed, skipped], \
                   preset: json, url: { file: hook.url }, local: true }\n";
        sale.replace("sale.yaml", "name: sale\n", top);
        let added = sale.campaign(&["schedule", "add", "sale.yaml", "--yes", "--json"]).exits(0).json();
        let parse_moment = |at: &Value| at.as_str().and_then(|at| at.parse().ok()).expect("a moment");
        let due = added["next"].as_array().expect("dates").iter().map(parse_moment).collect();
        Self { sale, receiver, clock: Clock::new(), due }
    }

    /// Starts a server whose clock is this far after an occurrence, or before it if `after` is negative.
    fn serve(&self, due: Timestamp, after: SignedDuration) -> Server {
        Server::start_after(&self.sale, &self.clock.set_to(due + after), &[])
    }

    /// Returns the reasons in the notifications about an event.
    fn reasons(&self, occasion: &str) -> Vec<String> {
        let notifications = self.receiver.requests().into_iter().map(|request| request.json());
        let about: Vec<Value> = notifications.filter(|notification| notification["occasion"] == occasion).collect();
        let notices = about.iter().flat_map(|notification| notification["notices"].as_array().expect("notices"));
        notices.map(|notice| notice["why"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits for the notification about a pending approval and returns the digest in it.
    fn wait_for_approval_request(&self) -> String {
        until("the notification reports the pending approval", || !self.reasons("waiting").is_empty());
        let reason = self.reasons("waiting").remove(0);
        assert!(reason.contains("for approval of plan "), "{reason}");
        reason.rsplit(' ').next().expect("a digest").to_owned()
    }

    /// Counts the runs.
    fn count_runs(&self) -> usize {
        let listed = self.sale.campaign(&["status", "--json"]).json();
        listed["runs"].as_array().map_or(0, Vec::len)
    }
}

#[test]
fn approved_occurrence_is_sent_even_after_downtime() {
    let daily = GuardedSchedule::activate();
    let due = daily.due[0];
    let server = daily.serve(due, SignedDuration::from_secs(-1));
    let digest = daily.wait_for_approval_request();
    server.end("TERM").exits(0);
    assert_eq!(daily.count_runs(), 0);
    daily.sale.campaign(&["approve", &digest]).exits(2).says("lists approvers");
    daily.sale.campaign(&["approve", &digest, "--key", "olha.key"]).exits(0).says("`campaign serve` will now send it");
    // Without an approval, an occurrence this late would no longer start.
    let server = daily.serve(due, SignedDuration::from_hours(5));
    // The gateway is unreachable, so the run begins and stops.
    until("the notification reports the stop", || !daily.reasons("stopped").is_empty());
    server.end("TERM").exits(0);
    assert_eq!(daily.count_runs(), 1);
}

#[test]
fn standing_approval_covers_one_schedule_and_a_recipient_limit() {
    let _files = in_files();
    let daily = GuardedSchedule::activate();
    let (first, second) = (daily.due[0], daily.due[1]);
    let server = daily.serve(first, SignedDuration::from_secs(-1));
    let digest = daily.wait_for_approval_request();
    let approve_schedule = |up_to: &str| {
        let options = ["approve", &digest, "--key", "olha.key", "--standing", "90d", "--up-to", up_to];
        daily.sale.campaign(&options).exits(0).says("Olha approved all scheduled runs of sale until");
    };
    approve_schedule("2");
    approve_schedule("3");
    until("the notification reports the stop", || !daily.reasons("stopped").is_empty());
    server.end("TERM").exits(0);
    assert_eq!(daily.count_runs(), 1);
    daily.sale.campaign(&["stop", "sale@1", "--for-good", "--yes"]).exits(0);
    // On the next day, the standing approval also covers a list of this size.
    let server = daily.serve(second, SignedDuration::from_secs(-1));
    until("the notification reports the second stop", || daily.reasons("stopped").len() >= 2);
    server.end("TERM").exits(0);
    assert_eq!((daily.count_runs(), daily.reasons("waiting").len()), (2, 1));
}

#[test]
fn damaged_plan_or_approval_sends_nothing() {
    for (case, damage, named) in [
        ("a plan", "UPDATE plans SET record = record || ' '", "the plan "),
        ("an approval", "UPDATE approvals SET up_to = up_to + 1000", "an approval of plan "),
    ] {
        let _case = note_on_failure(case);
        let daily = GuardedSchedule::activate();
        let due = daily.due[0];
        let server = daily.serve(due, SignedDuration::from_secs(-1));
        let digest = daily.wait_for_approval_request();
        server.end("TERM").exits(0);
        daily.sale.campaign(&["approve", &digest, "--key", "olha.key"]).exits(0);
        change_ledger(&daily.sale, damage);
        let server = daily.serve(due, SignedDuration::from_hours(5));
        until("the notification reports damage", || daily.reasons("changed").iter().any(|why| why.contains(named)));
        if case == "a plan" {
            // Without its plan, an occurrence does not wait for approval.
            until("the notification reports the skip", || {
                daily.reasons("skipped").iter().any(|why| why.contains("damaged"))
            });
        }
        assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 200));
        let listed = daily.sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list();
        assert_eq!(listed[0]["state"], "damaged", "{listed}");
        server.end("TERM").exits(0);
        assert_eq!(daily.count_runs(), 0);
        daily.sale.campaign(&["ledger", "check"]).exits(74).says(named).says("help: ");
    }
}
