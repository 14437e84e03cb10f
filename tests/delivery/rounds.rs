//! Repeated runs of a campaign: new recipients, duplicates, and `--again`.

use serde_json::json;

use crate::support::{Answer, Gateway, Reachable, accepted, campaign, phone, rejected};

#[test]
fn second_run_sends_nothing() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).write();
    sale.run(&[]).exits(0);
    let sent = gateway.requests().len();
    let before = std::fs::read(sale.results_file()).expect("results");
    for _ in 0..2 {
        sale.run(&["--yes"]).exits(0);
    }
    assert_eq!(gateway.requests().len(), sent);
    assert_eq!(std::fs::read(sale.results_file()).expect("results"), before, "the results are unchanged");
}

#[test]
fn already_sent_note_names_the_run_that_sent_the_messages() {
    let reject = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([reject(), reject(), Answer::Accept]);
    let sale = campaign().to(2).through(&gateway).write();
    sale.run(&[]).exits(3).says("2 rejected");
    sale.run(&[]).exits(0).says("sale@2");
    let output = sale.run(&[]).exits(0).says("already sent in sale@2").says("next: campaign status sale@2");
    assert!(!output.stdout.contains("later run"), "{}", output.stdout);
}

#[test]
fn duplicate_guard_works_across_profile_names_and_hosts() {
    let (gateway, other_host) = (Gateway::accepting(), Gateway::accepting());
    let sale = campaign().to(5).through(&gateway).write();
    sale.run(&["--limit", "2"]).exits(0);
    let local = std::fs::read_to_string(sale.path("gateways.yaml")).expect("the profiles");
    // After the profile is renamed, the same run continues.
    sale.write("gateways.yaml", &local.replace("local:", "renamed:"));
    sale.run(&["--gateway", "renamed", "--limit", "2"]).exits(0).says("sale@1");
    // A second profile on the same host.
    sale.write("gateways.yaml", &format!("{local}{}", local.replace("local:", "second:")));
    sale.run(&["--gateway", "second"]).exits(0);
    sale.run(&["--gateway", "second"]).exits(0);
    assert_eq!(gateway.phones(), (2..7).map(phone).collect::<Vec<_>>());
    // The host has a new address.
    sale.write("gateways.yaml", &local.replace(&gateway.base_url(), &other_host.base_url()));
    sale.run(&[]).exits(0);
    // Another account is independent, but it must be named explicitly.
    sale.write("gateways.yaml", &format!("{}  account: other\n", local.replace("local:", "other:")));
    sale.run(&["--gateway", "other"]).exits(0);
    assert_eq!((gateway.phones().len(), other_host.phones().len()), (10, 0));
}

#[test]
fn only_the_ten_added_recipients_get_a_message() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(30).through(&gateway).write();
    sale.run(&[]).exits(0);
    campaign().to(40).through(&gateway).rewrite(&sale);
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 10, "skipped": 30 }));
    assert_eq!(gateway.phones(), (2..42).map(phone).collect::<Vec<_>>());
    let results = sale.results();
    assert!(results.rows[..30].iter().all(|row| row["state"] == "skipped" && row["reason"] == "already sent"));
}

#[test]
fn number_is_recognized_in_every_notation() {
    let gateway = Gateway::accepting();
    let list = "phone,name\n380501234567,A\n+380 50 123-45-67,B\n0501234567,C\n";
    let sale = campaign().with_list(list).recipients("region: UA").through(&gateway).write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 1, "skipped": 2 }));
    assert_eq!(gateway.phones(), [380_501_234_567]);
}

#[test]
fn duplicates_get_messages_only_if_the_campaign_allows_them() {
    let list = format!("phone,name\n{},A\n{},B\n", phone(2), phone(2));
    for (policy, code, sent) in [("skip", 0, 1), ("allow", 0, 2), ("refuse", 2, 0)] {
        let gateway = Gateway::accepting();
        let sale = campaign().with_list(&list).recipients(&format!("duplicates: {policy}")).through(&gateway).write();
        sale.run(&[]).exits(code);
        assert_eq!(gateway.phones().len(), sent, "{policy}");
    }
}

#[test]
fn again_resends_only_with_the_exact_number_of_recipients() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.run(&["--again", "4"]).exits(2).says("--again 5");
    sale.run(&["--yes", "--again", "6"]).exits(2);
    assert_eq!(gateway.phones().len(), 5);
    sale.run(&["--again", "5"]).exits(0);
    assert_eq!(gateway.phones(), (2..7).chain(2..7).map(phone).collect::<Vec<_>>());
    sale.run(&[]).exits(0);
}

#[test]
fn renamed_campaign_file_is_the_same_campaign() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let sent = gateway.phones().len();
    std::fs::rename(sale.path("sale.yaml"), sale.path("autumn.yaml")).expect("another name");
    sale.campaign(&["run", "autumn.yaml", "--no-wait"]).exits(0);
    assert_eq!(gateway.phones().len(), sent, "no recipient gets the message again");
}

#[test]
fn new_edition_is_sent_to_all_recipients_again() {
    let gateway = Gateway::accepting();
    let draft = |month: &str| campaign().top(&format!("edition: {month}")).through(&gateway);
    let sale = draft("november").write();
    sale.run(&[]).exits(0);
    sale.run(&[]).exits(0);
    draft("december").rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 6);
}

#[test]
fn resumed_run_does_not_resend_a_rejected_row() {
    let gateway = Gateway::always(Answer::items(|operation| match operation["phone"].as_u64() {
        Some(phone) if phone % 10 == 5 => rejected(operation, "No route"),
        _ => accepted(operation),
    }));
    let sale = campaign().to(30).through(&gateway).write();
    sale.run(&["--limit", "20"]).exits(3);
    sale.run(&[]).exits(3);
    assert_eq!(gateway.phones(), (2..32).map(phone).collect::<Vec<_>>());
}

#[test]
fn new_run_resends_only_to_rejected_recipients() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = campaign().through(&gateway).write();
    sale.run(&["--keep-going"]).exits(3);
    let first = sale.results();
    assert_eq!(first.states(), ["accepted", "rejected", "rejected"]);
    sale.run(&[]).exits(0);
    let second = sale.results();
    assert_eq!(second.states(), ["skipped", "accepted", "accepted"]);
    assert_eq!(gateway.phones(), [2, 3, 4, 3, 4].map(phone));
    assert!(first.column("id")[1..].iter().all(|id| !second.column("id").contains(id)), "new messages have new ids");
}

#[test]
fn rehearsal_can_be_repeated() {
    let sale = campaign().write();
    for _ in 0..2 {
        sale.run(&[]).exits(0);
    }
}
