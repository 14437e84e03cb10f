//! Damaged ledger records while `campaign serve` runs: they stop the schedule that needs them. Other schedules,
//! receipts and the dashboard continue to work.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::receipts::{Hooked, operations};
use crate::support::{Clock, Gateway, Reachable as _, Server, campaign, change_ledger, note_on_failure, until};

/// Two campaigns in one folder that are due at the same time every day, and a receiver of their notifications.
struct DueCampaigns {
    hooked: Hooked,
    gateway: Gateway,
    receiver: Gateway,
    clock: Clock,
    at: Timestamp,
}

impl DueCampaigns {
    /// Sends both campaigns once by hand and activates their schedules.
    fn write() -> Self {
        let (gateway, receiver) = (Gateway::accepting(), Gateway::accepting());
        let notify =
            "notify: { when: [changed, skipped, stopped], preset: json, url: { file: hook.url }, local: true }";
        let draft = campaign().to(2).top("timezone: UTC").top("schedule: { every: day 10:00 }").top(notify);
        let hooked = Hooked::write(draft.through(&gateway));
        let sale = &hooked.sale;
        sale.write_secret("hook.url", &receiver.base_url());
        let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
        sale.write("other.yaml", &text.replace("name: sale\n", "name: other\n"));
        let mut at = None;
        for file in ["other.yaml", "sale.yaml"] {
            sale.campaign(&["run", file, "--now", "--no-wait"]).exits(0);
            let added = sale.campaign(&["schedule", "add", file, "--json"]).exits(0).json();
            at = added["next"][0].as_str().and_then(|at| at.parse().ok());
        }
        Self { hooked, gateway, receiver, clock: Clock::new(), at: at.expect("a moment") }
    }

    /// Starts the server this long after both campaigns are due, or before that if negative.
    fn serve(&self, after: SignedDuration) -> Server {
        Server::start_after(&self.hooked.sale, &self.clock.set_to(self.at + after), &["--hooks", &self.hooked.address])
    }

    /// Returns the reasons in the notifications about the campaign `sale`.
    fn reasons(&self) -> Vec<String> {
        let requests = self.receiver.requests().into_iter().map(|request| request.json());
        let notices = requests.flat_map(|notification| notification["notices"].as_array().expect("notices").clone());
        let sale_notices = notices.filter(|notice| notice["campaign"] == "sale");
        sale_notices.map(|notice| notice["why"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Sends a receipt for a message of the campaign `other`, which the server must store.
    fn assert_stores_receipt(&self, status: &str) {
        let body = json!({ "success": true, "status": status }).to_string();
        assert_eq!(self.hooked.post(&operations(&self.gateway)[0], &body), 200);
    }
}

/// Damage to a record: the record, the statement that damages it, and the words that `ledger check` uses for it.
const DAMAGES: [(&str, &str, &str); 3] = [
    ("the schedule", "UPDATE schedules SET digest = 'damaged' WHERE name = 'sale'", "the schedule sale"),
    (
        "an occurrence",
        "INSERT INTO occurrences (schedule, nominal, zone, at, run, reason, sum)
         SELECT name, '2026-01-01 10:00', 'UTC', since + 1, NULL, 'missed', 1 FROM schedules WHERE name = 'sale'",
        "the record of schedule sale for 2026-01-01 10:00",
    ),
    ("a run", "UPDATE runs SET edition = 'damaged' WHERE campaign = 'sale'", "the record of run sale@1"),
];

#[test]
fn damaged_record_stops_one_schedule_and_not_the_server() {
    for (case, damage, name) in DAMAGES {
        let _case = note_on_failure(case);
        let due = DueCampaigns::write();
        let sale = &due.hooked.sale;
        change_ledger(sale, damage);
        let mut server = due.serve(SignedDuration::from_secs(-1));
        until("the other campaign is sent", || operations(&due.gateway).len() == 6);
        until("the notification reports the damage", || due.reasons().iter().any(|why| why.contains("damaged")));
        due.assert_stores_receipt("DELIVERED");
        server.assert_running();
        let listed = sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list();
        let find_schedule = |name: &str| {
            let all = listed.as_array().expect("a list");
            all.iter().find(|schedule| schedule["name"] == name).cloned().unwrap_or_else(|| panic!("{listed}"))
        };
        assert_eq!(
            (&find_schedule("other")["state"], &find_schedule("sale")["state"]),
            (&json!("armed"), &json!("damaged")),
            "{listed}"
        );
        assert!(find_schedule("sale")["problem"].as_str().is_some_and(|problem| problem.contains("is corrupt")));
        sale.campaign(&["schedule", "list"]).exits(0).says("nothing is sent: ").says("ledger check");
        let ended = server.end("TERM").exits(0);
        assert!(ended.stderr.contains("damaged, so it sends nothing"), "{}", ended.details());
        assert_eq!(operations(&due.gateway).len(), 6, "two messages of each by hand, and two of `other` on schedule");
        sale.campaign(&["results", "other@1"]).exits(0);
        let checked = sale.campaign(&["ledger", "check", "--json"]).exits(74).json();
        let problems: &Vec<Value> = checked["problems"].as_array().expect("problems");
        let is_named = |problem: &Value| problem["what"].as_str().is_some_and(|what| what.contains(name));
        assert!(problems.iter().any(is_named), "{checked}");
        // Runs are still listed, except the damaged one.
        let status = sale.campaign(&["status", "--json"]).json();
        assert!(status["runs"].to_string().contains("other@2"), "{status}");
    }
}

#[test]
fn damaged_schedule_fires_after_it_is_activated_again() {
    let due = DueCampaigns::write();
    let sale = &due.hooked.sale;
    change_ledger(sale, DAMAGES[0].1);
    change_ledger(sale, DAMAGES[1].1);
    sale.campaign(&["schedule", "pause", "sale"]).exits(74).says("the schedule sale");
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.campaign(&["schedule", "list"]).exits(0).says("active");
    let server = due.serve(SignedDuration::from_secs(-1));
    until("both campaigns are sent", || operations(&due.gateway).len() == 8);
    server.end("TERM").exits(0);
}

#[test]
fn occurrence_with_a_damaged_record_is_never_sent_again() {
    let due = DueCampaigns::write();
    let sale = &due.hooked.sale;
    let server = due.serve(SignedDuration::from_secs(-1));
    until("both campaigns are sent", || operations(&due.gateway).len() == 8);
    server.end("TERM").exits(0);
    for damage in
        ["at = at - 1", "run = NULL, reason = 'missed'", "zone = 'Europe/Kyiv'", "nominal = '2026-01-01 10:00'"]
    {
        let _case = note_on_failure(damage);
        change_ledger(sale, "CREATE TABLE kept AS SELECT * FROM occurrences");
        change_ledger(sale, &format!("UPDATE occurrences SET {damage} WHERE schedule = 'sale'"));
        let server = due.serve(SignedDuration::from_secs(5));
        until("the log has the entry", || server.stderr().contains("damaged, so it sends nothing"));
        due.assert_stores_receipt("DELIVERED");
        let ended = server.end("TERM").exits(0);
        assert_eq!(operations(&due.gateway).len(), 8, "{}", ended.details());
        change_ledger(sale, "DELETE FROM occurrences");
        change_ledger(sale, "INSERT INTO occurrences SELECT * FROM kept");
        change_ledger(sale, "DROP TABLE kept");
    }
}

#[test]
fn unreadable_campaign_file_stops_only_its_schedule() {
    let due = DueCampaigns::write();
    std::fs::write(due.hooked.sale.path("sale.yaml"), [0xff, 0xfe, 0x00]).expect("a file");
    let mut server = due.serve(SignedDuration::from_secs(-1));
    until("the other campaign is sent", || operations(&due.gateway).len() == 6);
    due.assert_stores_receipt("DELIVERED");
    server.assert_running();
    server.end("TERM").exits(0);
    assert_eq!(operations(&due.gateway).len(), 6);
}
