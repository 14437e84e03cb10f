//! `delivery.cap` and `policy.cap` of a profile: the maximum number of messages that a phone number gets from all
//! campaigns together.

use serde_json::json;

use super::write_other_campaign;
use crate::support::{Answer, Draft, Gateway, Process, accepted, campaign, note_on_failure, phone, rejected, until};

/// A campaign to ten recipients, with a profile.
fn ten_recipients(gateway: &Gateway) -> Draft {
    campaign().to(10).through(gateway)
}

#[test]
fn capped_recipient_is_skipped_and_reported_by_every_command() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    let news = write_other_campaign(&sale, "news", "cap: 1/7d");
    let counts = json!({ "planned": 6, "skipped": 4 });
    assert_eq!(sale.campaign(&["check", &news, "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["check", &news]).exits(0).says("−4  skipped: cap");
    sale.campaign(&["preview", &news, "--rows", "3"]).exits(0).says("cap");
    assert_eq!(sale.campaign(&["run", &news, "--dry-run", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["plan", &news, "--json"]).exits(0).json()["counts"], counts);
    let report = sale.campaign(&["run", &news, "--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 6, "skipped": 4 }));
    assert_eq!(gateway.phones()[4..], (6..12).map(phone).collect::<Vec<_>>());
    let results = std::fs::read_to_string(sale.path("results/news.csv")).expect("results");
    assert_eq!(results.matches(",cap,").count(), 4, "{results}");
    // Each recipient now has one message. A higher cap allows one more.
    let again = write_other_campaign(&sale, "again", "cap: 2/7d");
    sale.campaign(&["run", &again]).exits(0);
    assert_eq!(gateway.phones().len(), 20);
    let more = write_other_campaign(&sale, "more", "cap: 2/1h");
    assert_eq!(sale.campaign(&["run", &more, "--json"]).exits(0).json()["sent"], 0);
}

#[test]
fn campaign_cannot_raise_the_cap_of_its_profile() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway).profile("policy: { cap: 1/7d }").write();
    sale.run(&[]).exits(0);
    for delivery in ["in_flight: 1", "cap: 9/1h"] {
        let news = write_other_campaign(&sale, "news", delivery);
        assert_eq!(sale.campaign(&["run", &news, "--json"]).exits(0).json()["counts"], json!({ "skipped": 10 }));
    }
    assert_eq!(gateway.phones().len(), 10);
    sale.campaign(&["check", "sale.yaml", "--show-settings"]).exits(0).says("profile.policy.cap").says("1/7d");
    // Service messages and tests are exempt.
    let orders = write_other_campaign(&sale, "orders", "in_flight: 2");
    sale.replace(&orders, "recipients:\n", "purpose: service\nrecipients:\n");
    sale.campaign(&["run", &orders]).exits(0);
    let number = format!("+{}", phone(2));
    sale.campaign(&["test", "sale.yaml", "--to", &number, "--row", "2"]).exits(0);
    assert_eq!(gateway.phones().len(), 21);
}

#[test]
fn service_and_test_messages_do_not_count_towards_caps() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway).top("purpose: service").write();
    sale.run(&[]).exits(0);
    let number = format!("+{}", phone(2));
    sale.campaign(&["test", "sale.yaml", "--to", &number, "--row", "2"]).exits(0);
    sale.run(&["--gateway", "sandbox"]).exits(0);
    let news = write_other_campaign(&sale, "news", "cap: 1/7d");
    sale.replace(&news, "purpose: service\n", "");
    sale.campaign(&["run", &news]).exits(0);
    assert_eq!(gateway.phones().len(), 10 + 1 + 10);
}

#[test]
fn cap_is_checked_before_each_message() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = ten_recipients(&gateway).delivery("cap: 1/7d").one_at_a_time().batches_of(3).write();
    let run = sale.start(&["--json"]);
    until("the gateway has the first message", || gateway.sends().len() == 1);
    let news = write_other_campaign(&sale, "news", "timeout: 20s");
    let news = Process::start(sale.command(&["run", &news, "--no-wait", "--json"]));
    // The message to row 2 is still on its way, so its outcome is unknown.
    gateway.release();
    let (first, second) = (run.finish().exits(0).json(), news.finish().json());
    let sent = first["sent"].as_u64().unwrap() + second["sent"].as_u64().unwrap();
    let mut phones = gateway.phones();
    assert_eq!((sent, phones.len()), (10, 10));
    phones.sort_unstable();
    phones.dedup();
    assert_eq!(phones.len(), 10, "each number gets one message");
}

#[test]
fn limit_of_a_resumed_run_counts_only_sent_messages() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway).delivery("cap: 1/7d").write();
    sale.run(&["--limit", "2"]).exits(0);
    let news = write_other_campaign(&sale, "news", "timeout: 20s");
    sale.campaign(&["run", &news, "--rows", "4-5"]).exits(0);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(6))]).exits(0);
    sale.run(&["--limit", "3"]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 5, 7, 8, 9].map(phone));
    // A run without a limit records the capped and opted-out rows as skipped.
    let report = sale.run(&["--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 7, "skipped": 3 }));
    assert_eq!(gateway.phones()[7..], [10, 11].map(phone));
}

#[test]
fn caps_count_messages_in_doubt_but_not_rejected_ones() {
    let refuse = || {
        Answer::items(|operation| match operation["phone"].as_u64().expect("a number") % 2 {
            0 => rejected(operation, "No route"),
            _ => accepted(operation),
        })
    };
    let gateway = Gateway::answering([Answer::Accept, refuse(), refuse()]);
    let sale = ten_recipients(&gateway).one_at_a_time().batches_of(5).write();
    sale.run(&[]).exits(3);
    let refused = sale.results().counts()["rejected"];
    let news = write_other_campaign(&sale, "news", "cap: 1/7d");
    let report = sale.campaign(&["run", &news, "--json"]).exits(0).json();
    assert_eq!(report["sent"], json!(refused));
    // A retry sends nothing, because every recipient already has a message.
    sale.replace("sale.yaml", "delivery:\n", "delivery:\n  cap: 1/7d\n");
    sale.campaign(&["retry", "sale"]).exits(3);
    // A rejected row that the cap skips keeps its state.
    assert_eq!(
        sale.results().counts(),
        [("accepted".to_owned(), 10 - refused), ("rejected".to_owned(), refused)].into()
    );
    sale.campaign(&["retry", "sale"]).exits(3).says(&format!("skipped: {refused} cap"));
    for point in ["intent.kept:2", "answer.came:2"] {
        let _case = note_on_failure(format!("case: {point}"));
        let gateway = Gateway::accepting();
        let sale = ten_recipients(&gateway).one_at_a_time().batches_of(4).write();
        let mut command = sale.command(&["run", "sale.yaml", "--no-wait"]);
        command.env("CAMPAIGN_FAILPOINT", point);
        assert!(Process::start(command).finish().stderr.contains("went off"));
        let news = write_other_campaign(&sale, "news", "cap: 1/7d");
        let report = sale.campaign(&["run", &news, "--json"]).exits(0).json();
        assert_eq!(report["counts"], json!({ "accepted": 5, "skipped": 5 }));
    }
}

#[test]
fn invalid_cap_is_refused_and_rehearsals_use_up_no_cap() {
    let gateway = Gateway::accepting();
    for wrong in ["2", "0/7d", "2/7", "often/7d", "2/900d"] {
        let sale = ten_recipients(&gateway).delivery(&format!("cap: {wrong}")).write();
        sale.run(&[]).exits(2).says("`cap` is").says("2/7d");
    }
    let sale = ten_recipients(&gateway).delivery("cap: 1/7d").write();
    for _ in 0..2 {
        sale.run(&["--gateway", "sandbox"]).exits(0);
    }
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn again_option_is_not_suggested_for_capped_recipients() {
    let gateway = Gateway::accepting();
    let sale = ten_recipients(&gateway).delivery("cap: 1/7d").write();
    sale.run(&[]).exits(0);
    let refused = sale.run(&["--again", "10"]).exits(2).says("would reach 0 recipients").says("the `cap`");
    let rerun = sale.run(&[]).exits(0).says("no recipients are left to send to");
    for output in [refused, rerun] {
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(!text.contains("--again "), "{text}");
    }
    // With a higher cap, a number that has two rows gets one more message.
    let rows = format!("phone,name\n{0},A\n{0},B\n{1},C\n", phone(2), phone(3));
    let draft = campaign().with_list(&rows).through(&gateway).recipients("duplicates: allow");
    let twice = draft.delivery("cap: 3/7d").write();
    twice.run(&[]).exits(0);
    twice.run(&[]).exits(0).says("--again 2");
    twice.run(&["--again", "2"]).exits(0);
}

#[test]
fn cap_applies_to_repeated_numbers_in_checks_and_plans() {
    let gateway = Gateway::accepting();
    let rows: String = [2, 2, 2, 3, 2, 2].map(phone).iter().zip(2..).map(|(to, row)| format!("{to},{row}\n")).collect();
    let draft = campaign().with_list(&format!("phone,name\n{rows}")).through(&gateway);
    let sale = draft.recipients("duplicates: allow").delivery("cap: 2/7d").write();
    let counts = json!({ "planned": 3, "skipped": 3 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("−3  skipped: cap");
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.run(&["--dry-run", "--json"]).exits(0).json()["counts"], counts);
    let report = sale.run(&["--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 3, "skipped": 3 }));
    assert!(report["notes"].to_string().contains("3 skipped: cap (first in row 4)"), "{report}");
    assert_eq!(gateway.phones(), [2, 2, 3].map(phone));
}
