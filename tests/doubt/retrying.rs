//! `campaign retry`: rejected messages are sent again as new messages, and no others are sent.

use serde_json::{Value, json};

use super::{message_ids, result_cell, states};
use crate::support::{
    Answer, Folder, Gateway, Terminal, accepted, campaign, change_ledger, in_files, phone, rejected, until,
};

/// Rejects rows 3 and 4 with different errors, and accepts the others.
fn reject_two(operation: &Value) -> Value {
    match operation["phone"].as_u64() {
        Some(number) if number == phone(3) => rejected(operation, "No route"),
        Some(number) if number == phone(4) => rejected(operation, "Please enter valid receiver phone number"),
        _ => accepted(operation),
    }
}

/// A finished sale to five recipients, two of them rejected. Later requests get these answers.
fn sale_with_rejections(answers: Vec<Answer>) -> (Gateway, Folder) {
    let first = [Answer::Accept, Answer::items(reject_two)];
    let gateway = Gateway::answering(first.into_iter().chain(answers));
    let sale = campaign().to(5).through(&gateway).write();
    sale.run(&[]).exits(3);
    assert_eq!(states(&sale), "arraa");
    (gateway, sale)
}

#[test]
fn retry_does_not_mention_a_forgotten_recipient_of_another_row() {
    let _files = in_files();
    let (_gateway, sale) = sale_with_rejections(Vec::new());
    sale.campaign(&["forget", &format!("+{}", phone(2)), "--yes"]).exits(0);
    let retried = sale.campaign(&["retry", "sale"]).exits(0);
    assert!(!retried.stdout.contains("not sent again"), "{}", retried.stdout);
}

#[test]
fn rejected_rows_are_resent_as_new_linked_messages() {
    let (gateway, sale) = sale_with_rejections(Vec::new());
    sale.campaign(&["status", "sale"]).exits(3).says("to retry rejected messages").says("campaign retry sale@1\n");
    let summary = sale.campaign(&["retry", "sale", "--error", "NO ROUTE", "--json"]).exits(3).json();
    assert_eq!(summary["counts"], json!({ "accepted": 4, "rejected": 1 }));
    assert_eq!(gateway.phones(), [2, 3, 4, 5, 6, 3].map(phone));
    let ids = message_ids(&gateway, 3);
    assert_ne!(ids[0], ids[1], "a new message has a new identifier");
    assert_eq!(result_cell(&sale, 3, "id"), ids[1].to_string());
    let shown = sale.campaign(&["show", "sale", "--row", "3"]).exits(0);
    shown.says(&ids[0].to_string()).says(&ids[1].to_string()).says("No route").says("retry requested\n");
    sale.campaign(&["retry", "sale"]).exits(0);
    assert_eq!(gateway.phones()[6..], [phone(4)]);
    let all: Vec<u64> = [3, 4].into_iter().flat_map(|row| message_ids(&gateway, row)).collect();
    assert!(all.iter().all(|id| all.iter().filter(|other| *other == id).count() == 1), "{all:?}");
    assert_eq!(states(&sale), "aaaaa");
}

#[test]
fn retry_of_an_earlier_run_is_not_suggested_while_a_later_run_is_unfinished() {
    let (_gateway, sale) = sale_with_rejections(Vec::new());
    sale.run(&["--again", "5", "--limit", "1"]);
    sale.campaign(&["retry", "sale@1"]).exits(2).says("sale@2");
    let shown = sale.campaign(&["status", "sale@1"]).exits(3).stdout;
    assert!(!shown.contains("to retry"), "{shown}");
}

#[test]
fn retry_is_suggested_only_for_a_finished_run() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(reject_two)]);
    let draft = || campaign().through(&gateway);
    let sale = draft().to(6).write();
    let assert_not_suggested = |sale: &Folder| {
        sale.campaign(&["report", "sale@1", "--out", "report.html"]);
        let report = std::fs::read_to_string(sale.path("report.html")).expect("a report");
        assert!(!report.contains("campaign retry"), "{report}");
        for arguments in [&["status", "sale@1"][..], &["show", "sale@1", "--row", "3"]] {
            let output = sale.campaign(arguments).stdout;
            assert!(!output.contains("campaign retry"), "{output}");
        }
        sale.campaign(&["retry", "sale@1"]).exits(2);
    };
    let run = sale.run(&["--limit", "5"]).exits(3);
    assert!(!run.details().contains("campaign retry"), "{}", run.details());
    assert_not_suggested(&sale);
    draft().to(7).rewrite(&sale);
    sale.run(&["--accept-changes"]);
    assert_not_suggested(&sale);
    let (_gateway, finished) = sale_with_rejections(Vec::new());
    finished.campaign(&["show", "sale", "--row", "3"]).exits(0).says("campaign retry sale@1");
    finished.campaign(&["report", "sale", "--out", "report.html"]);
    let report = std::fs::read_to_string(finished.path("report.html")).expect("a report");
    assert!(report.contains("campaign retry sale@1"), "{report}");
    let gateway = Gateway::answering([Answer::Accept, Answer::items(reject_two)]);
    let cancelled = campaign().to(6).through(&gateway).write();
    cancelled.run(&["--limit", "5"]).exits(3);
    cancelled.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(3);
    assert_not_suggested(&cancelled);
}

#[test]
fn retry_suggests_skipping_errors_that_resending_cannot_fix() {
    let (gateway, sale) = sale_with_rejections(Vec::new());
    let retry = sale.campaign(&["retry", "sale"]).exits(0);
    let suggested = "to retry only the others: campaign retry sale@1 --error 'No route'\n";
    retry.says("1 rejected: No route").says("correct the number in the list").says(suggested);
    let (_gateway, sale) = sale_with_rejections(Vec::new());
    let retry = sale.campaign(&["retry", "sale@1", "--error", "No route"]).exits(3);
    assert!(!retry.stderr.contains("will not help"), "{}", retry.details());
    assert_eq!(states(&sale), "aaraa");
    assert_eq!(gateway.phones().len(), 7);
}

#[test]
fn retry_sends_messages_with_any_of_the_named_errors() {
    let (gateway, sale) = sale_with_rejections(Vec::new());
    sale.campaign(&["retry", "sale", "--error", "no route", "--error", "RECEIVER"]).exits(0);
    assert_eq!(gateway.phones()[5..], [3, 4].map(phone));
}

#[test]
fn retry_without_rejections_does_nothing() {
    let (gateway, sale) = sale_with_rejections(Vec::new());
    sale.campaign(&["retry", "sale", "--error", "Not enough money"]).exits(3).says("`Not enough money`");
    sale.campaign(&["retry", "sale"]).exits(0);
    sale.campaign(&["retry", "sale"]).exits(0).says("no rows to retry");
    let summary = sale.campaign(&["retry", "sale", "--json"]).exits(0).json();
    assert!(summary["sent"] == 0 && summary["why"].is_string(), "{summary}");
    assert_eq!(gateway.phones().len(), 7);
}

#[test]
fn retry_sends_each_rejected_row_once() {
    let refuse_all = || Answer::items(|operation| rejected(operation, "No route"));
    let (gateway, sale) = sale_with_rejections(vec![refuse_all(), refuse_all()]);
    sale.campaign(&["retry", "sale"]).exits(3).says("2 rejected");
    assert_eq!(gateway.phones()[5..], [3, 4].map(phone));
    assert_eq!(states(&sale), "arraa");
}

#[test]
fn no_wait_retry_reconciles_once_after_a_lost_response() {
    let (gateway, sale) = sale_with_rejections(vec![Answer::CloseRead]);
    sale.campaign(&["retry", "sale", "--no-wait"]).exits(4).says("1 in doubt");
    let queries = gateway.requests().iter().filter(|request| request.operations()[0]["type"] == "status").count();
    assert_eq!(queries, 1);
}

#[test]
fn recipient_rejected_again_can_be_retried_again() {
    let refuse_all = || Answer::items(|operation| rejected(operation, "No route"));
    let (gateway, sale) = sale_with_rejections(vec![refuse_all()]);
    sale.campaign(&["retry", "sale", "--error", "no route"]).exits(3).says("No route");
    assert_eq!(states(&sale), "arraa");
    sale.campaign(&["retry", "sale", "--error", "no route"]).exits(3);
    assert_eq!(states(&sale), "aaraa");
    let mut ids = message_ids(&gateway, 3);
    ids.dedup();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert_eq!(result_cell(&sale, 3, "id"), ids[2].to_string());
}

#[test]
fn retry_skips_recipients_that_the_campaign_excludes_now() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Accept, Answer::items(reject_two)]);
    let sale = campaign().to(5).through(&gateway).write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
    sale.write("other.yaml", &text.replace("name: sale", "name: other").replace("sale.csv", "other.csv"));
    sale.write("other.csv", &format!("phone,name\n{},Olena\n", phone(99)));
    sale.campaign(&["run", "other.yaml", "--yes"]).exits(0);
    sale.replace("sale.yaml", "recipients:\n", "recipients:\n  exclude: { run: other, state: accepted }\n");
    sale.run(&[]).exits(3);
    assert_eq!(states(&sale), "arraa");
    // Meanwhile the rejected recipients got a message of the other campaign.
    sale.write("other.csv", &format!("phone,name\n{},Olena\n{},Olena\n", phone(3), phone(4)));
    sale.campaign(&["run", "other.yaml", "--yes"]).exits(0);
    let sent = gateway.phones().len();
    let retried = sale.campaign(&["retry", "sale"]);
    assert_eq!(gateway.phones().len(), sent, "{}", retried.details());
    retried.says("2 excluded");
}

#[test]
fn retry_skips_recipients_accepted_in_another_run() {
    let (gateway, sale) = sale_with_rejections(vec![Answer::items(reject_two), Answer::items(reject_two)]);
    // A new run sends to the rejected recipients, and both are rejected again.
    sale.run(&["--keep-going", "--rows", "3"]).exits(3);
    sale.run(&["--keep-going"]).exits(3);
    let before = gateway.phones().len();
    // From now on the gateway accepts both.
    sale.campaign(&["retry", "sale@2", "--error", "no route"]).exits(3);
    sale.campaign(&["retry", "sale@1"]).exits(3);
    assert_eq!(gateway.phones()[before..], [3, 4].map(phone), "the second run has sent row 3");
    sale.campaign(&["retry", "sale@2"]).exits(3).says("another run");
}

#[test]
fn live_gateway_needs_confirmation_before_anything_is_recorded() {
    let _files = in_files();
    let (gateway, sale) = sale_with_rejections(Vec::new());
    // Pretends that the first messages went through a live gateway, because a retry never moves between loopback and
    // live.
    change_ledger(&sale, "UPDATE runs SET loopback = FALSE, sum = NULL");
    let profile = std::fs::read_to_string(sale.path("gateways.yaml")).expect("the profiles");
    let address = profile.lines().find_map(|line| line.trim().strip_prefix("base_url: ")).expect("an address");
    sale.replace("gateways.yaml", address, "https://gateway.invalid");
    sale.replace("sale.yaml", "rate: 100000/s", "rate: 10/s");
    sale.replace("gateways.yaml", "local:\n", "local:\n  rate: 10/s\n");
    sale.campaign(&["gateway", "trust", "local"]).exits(0);
    let before = super::count_commits(&sale);
    sale.campaign(&["retry", "sale"]).exits(2).says("--yes");
    assert_eq!(sale.campaign(&["status", "sale@1"]).code(), Some(3));
    let shown = sale.campaign(&["show", "sale", "--row", "3", "--json"]).exits(0).json();
    assert_eq!(shown["history"].as_array().map(Vec::len), Some(2), "{shown}");
    assert!(super::count_commits(&sale) <= before + 1, "only the host of the profile is recorded");
    sale.replace("gateways.yaml", "local:\n", "local:\n  prices: { sms: 0.80 }\n");
    let terminal = Terminal::start(sale.command(&["retry", "sale"]));
    terminal.shows("Retry 2 messages from sale@1").shows("at most 1.60").shows("Type 2 to send").types("no");
    terminal.finish().exits(2);
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn interrupted_retry_is_resumed_by_the_next_run() {
    let (gateway, sale) = sale_with_rejections(vec![Answer::Silence]);
    let retry = crate::support::Process::start(sale.command(&["retry", "sale"]));
    until("the gateway has the first new message", || gateway.phones().len() == 6);
    assert_eq!(retry.kill().code(), None);
    sale.campaign(&["status", "sale"]).exits(5).says("1 in doubt");
    sale.campaign(&["retry", "sale"]).exits(2).says("unfinished");
    sale.run(&[]).exits(4);
    assert_eq!(states(&sale), "adaaa");
    assert_eq!(gateway.phones()[5..], [3, 4].map(phone), "messages in flight are not resent");
    for row in [3, 4] {
        let ids = message_ids(&gateway, row);
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        assert_eq!(result_cell(&sale, row, "id"), ids[1].to_string());
    }
}

#[test]
fn retry_is_refused_if_the_inputs_changed() {
    let (gateway, sale) = sale_with_rejections(Vec::new());
    campaign().to(5).channels("  - sms: { signature: OlenaCo, message: Bye }").through(&gateway).rewrite(&sale);
    sale.campaign(&["retry", "sale"]).exits(2).says("the channels or their messages");
    assert_eq!(gateway.phones().len(), 5);
    assert_eq!(sale.campaign(&["status", "sale"]).code(), Some(3), "no retry was recorded");
}
