//! `limits`: the maximum cost and number of messages for all runs of an edition.

use serde_json::{Value, json};

use super::{stop_reason, stop_summary};
use crate::receipts::{Hooked, operations};
use crate::support::{Answer, Draft, Folder, Gateway, Process, accepted, campaign, note_on_failure, phone, rejected};

const PRICES: &str = "prices: { sms: 0.80 }";

/// A campaign to ten recipients. Each message is one SMS part and costs 0.80.
fn ten_recipients(gateway: &Gateway, limits: &str) -> Draft {
    campaign().to(10).through(gateway).profile(PRICES).top(&format!("limits: {{ {limits} }}"))
}

/// Adds a second profile with another account, so that two accounts can send the same campaign.
fn add_second_account(sale: &Folder) {
    let profiles = std::fs::read_to_string(sale.path("gateways.yaml")).expect("profiles");
    let second = profiles.replace("local:", "second:") + "  account: second\n";
    sale.write("gateways.yaml", &format!("{profiles}{second}"));
}

#[test]
fn run_stops_at_its_budget_and_resumes_after_an_increase() {
    for (limits, more, word) in [
        ("recipients: 4", "recipients: 7", "reached its `limits.recipients` of 4"),
        ("cost: 3.99", "cost: 5.60", "has used 3.20 of its `limits.cost` of 3.99"),
    ] {
        let _case = note_on_failure(format!("case: {limits}"));
        let gateway = Gateway::accepting();
        let sale = ten_recipients(&gateway, limits).write();
        let first = sale.run(&["--json"]).exits(5);
        assert_eq!(stop_summary(&first), ("budget".to_owned(), 4, 6));
        assert!(stop_reason(&first).contains(word), "{}", stop_reason(&first));
        let key = limits.split(':').next().expect("a key");
        let next = format!("raise `limits.{key}`, then: campaign run sale.yaml");
        assert_eq!(first.json()["next"], next);
        sale.campaign(&["status", "sale"]).exits(5).says(&next);
        let again = sale.run(&["--json"]).exits(5);
        assert_eq!(stop_summary(&again), ("budget".to_owned(), 0, 6), "the budget stays used up");
        let status = sale.campaign(&["status", "sale", "--json"]).exits(5).json();
        assert_eq!(status["counts"], json!({ "accepted": 4, "planned": 6 }));
        sale.replace("sale.yaml", limits, more);
        assert_eq!(stop_summary(&sale.run(&["--json"]).exits(5)), ("budget".to_owned(), 3, 3));
        sale.replace("sale.yaml", &format!("limits: {{ {more} }}\n"), "");
        sale.run(&[]).exits(0);
        assert_eq!(
            gateway.phones(),
            (2..12).map(phone).collect::<Vec<_>>(),
            "each recipient gets one message, in list order"
        );
    }
}

#[test]
fn cost_counts_the_most_expensive_channel_and_every_sms_part() {
    let gateway = Gateway::accepting();
    let long = "a".repeat(161);
    let list = format!("phone,text\n{},short\n{},{long}\n{},short\n{},short\n", phone(2), phone(3), phone(4), phone(5));
    let channels = "  - viber: { signature: OlenaCo, message: \"{{ text }}\" }\n  - sms: { signature: OlenaCo, message: \"{{ text }}\" }";
    let draft = campaign().channels(channels).with_list(&list).through(&gateway);
    let sale = draft.profile("prices: { sms: 0.80, viber: 1 }").top("limits: { cost: 3.6 }").write();
    // The three messages cost 1.00 (Viber), 1.60 (an SMS of two parts) and 1.00 (Viber).
    assert_eq!(stop_summary(&sale.run(&["--json"]).exits(5)), ("budget".to_owned(), 3, 1));
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
}

#[test]
fn rejected_message_does_not_count_towards_the_budget() {
    let mixed = || {
        Answer::items(|operation| match operation["phone"].as_u64().expect("a number") % 2 {
            0 => rejected(operation, "No route"),
            _ => accepted(operation),
        })
    };
    let gateway = Gateway::answering([Answer::Accept, mixed(), mixed()]);
    let sale = ten_recipients(&gateway, "recipients: 5, cost: 4").write();
    assert_eq!(stop_summary(&sale.run(&["--json"]).exits(5)).0, "budget");
    let counts = sale.results().counts();
    assert_eq!(counts["accepted"], 5, "{counts:?}");
    let refused = counts["rejected"];
    assert_eq!(gateway.phones().len() as u64, 5 + refused);
    sale.replace("sale.yaml", "recipients: 5, cost: 4", "recipients: 6, cost: 400");
    sale.run(&[]).exits(5);
    assert_eq!(sale.results().counts()["accepted"], 6);
}

#[test]
fn messages_proven_by_receipts_count_towards_limits_and_caps() {
    let refuse = |operation: &Value| match operation["phone"].as_u64() {
        Some(number) if number == phone(3) => rejected(operation, "No route"),
        _ => accepted(operation),
    };
    let answer = || Answer::items(refuse);
    let gateway = Gateway::answering([answer(), answer(), Answer::CloseRead]);
    let draft = campaign().to(4).one_at_a_time().batches_of(1).through(&gateway).profile(PRICES);
    let hooked = Hooked::write(draft.top("limits: { recipients: 4, cost: 3.20 }").delivery("cap: 1/7d"));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(4);
    let sent = operations(&gateway);
    let resolve = ["resolve", "sale", "--all", "--as", "not-sent", "--i-accept-duplicates", "1"];
    hooked.sale.campaign(&resolve).exits(3);
    let read_money = || {
        let money = hooked.sale.campaign(&["report", "sale", "--json"]).json()["figures"]["money"].clone();
        [&money["used_at_most"], &money["given_back"]].map(Value::as_f64)
    };
    assert_eq!(read_money(), [Some(1.6), Some(1.6)]);
    for (operation, status) in [(&sent[1], "DELIVERED"), (&sent[2], "READ")] {
        assert_eq!(hooked.post(operation, &json!({"success": true, "status": status, "type": "sms"}).to_string()), 200);
    }
    assert_eq!(hooked.results().states(), ["accepted", "delivered", "read", "accepted"]);
    assert_eq!(read_money(), [Some(3.2), Some(0.0)]);
    // The messages of the first edition count towards the cap.
    let list = std::fs::read_to_string(hooked.sale.path("sale.csv")).expect("a list");
    hooked.sale.write("sale.csv", &format!("{list}{},New\n", phone(9)));
    hooked.sale.replace("sale.yaml", "limits:", "edition: second\nlimits:");
    let report = hooked.sale.run(&["--json"]).json();
    assert_eq!(report["counts"], json!({ "accepted": 1, "skipped": 4 }));
    // The budget of the first edition is used up.
    hooked.sale.write("sale.csv", &format!("{list}{},New\n", phone(8)));
    hooked.sale.replace("sale.yaml", "edition: second\n", "");
    assert_eq!(stop_summary(&hooked.sale.run(&["--json"]).exits(5)), ("budget".to_owned(), 0, 1));
    drop(server);
}

#[test]
fn message_in_doubt_after_a_crash_counts_towards_the_budget() {
    for point in ["intent.kept:2", "answer.came:2", "outcome.kept:2"] {
        let _case = note_on_failure(format!("case: {point}"));
        let gateway = Gateway::accepting();
        let sale = ten_recipients(&gateway, "recipients: 4").one_at_a_time().batches_of(2).write();
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
        command.env("CAMPAIGN_FAILPOINT", point);
        let crashed = Process::start(command).finish();
        assert!(crashed.stderr.contains("went off"), "{}", crashed.details());
        sale.run(&[]).exits(5);
        let counts = sale.results().counts();
        let possibly_sent: u64 = ["accepted", "in_doubt"].iter().filter_map(|state| counts.get(*state)).sum();
        assert_eq!((possibly_sent, counts["planned"]), (4, 6), "{counts:?}");
        assert!(gateway.phones().len() <= 4);
        if counts.contains_key("in_doubt") {
            let resolved = sale.campaign(&["resolve", "sale", "--all", "--as", "sent"]);
            resolved.says("raise `limits.recipients`, then: campaign run sale.yaml");
        }
    }
}

#[test]
fn two_processes_with_two_accounts_share_one_budget() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway, "recipients: 7").write();
    add_second_account(&sale);
    let runs = [sale.start(&["--json"]), sale.start(&["--json", "--gateway", "second"])];
    let sent: u64 = runs.into_iter().map(|run| stop_summary(&run.finish().exits(5)).1).sum();
    assert_eq!((sent, gateway.phones().len()), (7, 7));
}

#[test]
fn missing_price_is_a_finding_if_the_cost_is_limited() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).profile("prices: { viber: 1 }").top("limits: { cost: 10 }").write();
    for command in ["run", "check"] {
        let output = sale.campaign(&[command, "sale.yaml"]).exits(2);
        output
            .says("missing-price")
            .says("`limits.cost` needs a price for `sms`, but the profile `local` has none")
            .says("sale.yaml:3:");
    }
    assert!(gateway.sends().is_empty());
    // Prices are not needed without a cost limit or in a rehearsal, which costs nothing.
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.replace("sale.yaml", "cost: 10", "recipients: 10");
    sale.run(&[]).exits(0);
}

#[test]
fn list_over_a_limit_causes_a_warning_and_stops_a_rehearsal() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway, "recipients: 4, cost: 4.50").write();
    let checked = sale.campaign(&["check", "sale.yaml"]).exits(0);
    checked.says("10 recipients would get a message, but `limits.recipients` is 4").says("can cost up to 8.00");
    sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2);
    let rehearsal = sale.run(&["--gateway", "sandbox", "--json"]).exits(5);
    assert_eq!(stop_summary(&rehearsal), ("budget".to_owned(), 4, 6));
    // Each rehearsal has a separate budget.
    assert_eq!(stop_summary(&sale.run(&["--gateway", "sandbox", "--json"]).exits(5)).1, 4);
    assert_eq!(stop_summary(&sale.run(&["--json"]).exits(5)).1, 4);
}

#[test]
fn over_limits_warning_counts_earlier_messages_of_the_edition() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway, "recipients: 7, cost: 6.00").write();
    sale.run(&["--limit", "3"]).exits(0);
    let checked = sale.campaign(&["check", "sale.yaml"]).exits(0);
    checked
        .says("7 recipients would get a message, but this edition has already used 3 of its `limits.recipients` of 7")
        .says("can cost up to 5.60, but this edition has already used 2.40 of its `limits.cost` of 6.00");
    let planned = sale.campaign(&["plan", "sale.yaml", "--limit", "4"]).exits(0);
    assert!(!planned.stdout.contains("over-limits"), "{}", planned.details());
    sale.run(&["--limit", "4"]).exits(0);
}

#[test]
fn resending_rejected_messages_stays_within_the_budget() {
    let no_route = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([no_route(), no_route()]);
    let sale = ten_recipients(&gateway, "recipients: 9").one_at_a_time().batches_of(1).write();
    assert_eq!(stop_summary(&sale.run(&["--json"]).exits(3)).1, 10);
    sale.campaign(&["retry", "sale", "--json"]).exits(5);
    assert_eq!(sale.results().counts()["accepted"], 9);
    assert_eq!(gateway.phones().len(), 11);
}
