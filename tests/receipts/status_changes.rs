//! Status changes by webhook: each receipt moves only its own message, and only forward.

use serde_json::{Value, json};

use super::{Hooked, operations};
use crate::support::{Answer, Browser, Gateway, campaign, rejected};

/// The body of a webhook about a message.
fn webhook_body(operation: &Value, status: &str, second: u32) -> String {
    json!({"success": true, "id": operation["id"].to_string(), "msg_id": "71", "type": "sms", "status": status,
        "updated": format!("2026-11-22T12:00:{second:02}+02:00")})
    .to_string()
}

#[test]
fn receipts_at_unique_webhook_urls_update_their_own_rows() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(4).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operations = operations(&gateway);
    let addresses: std::collections::BTreeSet<&str> = operations.iter().map(super::webhook_path).collect();
    assert_eq!(addresses.len(), 4);
    assert_eq!(hooked.post(&operations[0], &webhook_body(&operations[0], "DELIVERED", 1)), 200);
    assert_eq!(hooked.post(&operations[1], &webhook_body(&operations[1], "READ", 2)), 200);
    let failed = json!({"success": false, "status": "EXPIRED", "error": "Lifetime ended", "type": "sms"}).to_string();
    assert_eq!(hooked.post(&operations[2], &failed), 200);
    assert_eq!(hooked.post(&operations[3], &webhook_body(&operations[3], "PAUSED", 3)), 200);
    let results = hooked.results();
    assert_eq!(results.states(), ["delivered", "read", "failed", "accepted"]);
    assert_eq!(results.column("gateway_status"), ["DELIVERED", "READ", "EXPIRED", "PAUSED"]);
    assert_eq!(results.column("delivered_by"), ["sms", "sms", "", ""]);
    assert_eq!(results.column("delivered_at")[..2], ["2026-11-22T10:00:01.000Z", "2026-11-22T10:00:02.000Z"]);
    assert_eq!(results.column("error")[2], "Lifetime ended");
    let summary = hooked.sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(summary["counts"], json!({"accepted": 1, "delivered": 1, "read": 1, "failed": 1}));
    server.end("TERM").exits(0);
}

#[test]
fn repeated_and_reordered_receipts_never_downgrade_the_state() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    for reported in ["READ", "DELIVERED", "READ", "EXPIRED", "ROUTING"] {
        assert_eq!(hooked.post(operation, &webhook_body(operation, reported, 5)), 200);
        assert_eq!(hooked.results().states(), ["read"], "{reported}");
    }
    drop(server);
    assert_eq!(hooked.results().states(), ["read"], "the state is stored");
}

#[test]
fn row_in_doubt_is_settled_by_receipts_and_not_resent() {
    let gateway = Gateway::answering([Answer::status(500)]);
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]);
    assert_eq!(hooked.results().states(), ["in_doubt"]);
    let operation = &operations(&gateway)[0];
    assert_eq!(hooked.post(operation, &webhook_body(operation, "DELIVERED", 5)), 200);
    assert_eq!(hooked.results().states(), ["delivered"]);
    assert_eq!(hooked.results().column("msg_id"), ["71"]);
    hooked.sale.run(&[]).exits(0);
    assert_eq!(gateway.sends().len(), 1);
    drop(server);
}

#[test]
fn receipt_clears_the_reason_of_an_earlier_doubt_or_decision() {
    for decision in [None, Some("sent"), Some("not-sent")] {
        let gateway = Gateway::answering([Answer::CloseRead]);
        let hooked = Hooked::write(campaign().to(1).through(&gateway));
        let server = hooked.serve();
        hooked.sale.run(&[]).exits(4);
        if let Some(decision) = decision {
            let arguments = ["resolve", "sale", "--all", "--as", decision, "--i-accept-duplicates", "1"];
            hooked.sale.campaign(&arguments);
        }
        let before = hooked.results().column("reason")[0].to_owned();
        assert!(!before.is_empty(), "{decision:?}");
        let operation = &operations(&gateway)[0];
        assert_eq!(hooked.post(operation, &webhook_body(operation, "DELIVERED", 5)), 200);
        let results = hooked.results();
        assert_eq!((results.states(), results.column("reason")), (vec!["delivered"], vec![""]), "{decision:?}");
        let number = format!("+{}", crate::support::phone(2));
        let found = hooked.sale.campaign(&["find", &number]).exits(0).stdout;
        assert!(found.contains("delivered") && !found.contains(&before), "{decision:?}: {found}");
        let page = Browser::signed_in(&server).page("/runs/sale@1/rows").one("main").words();
        assert!(page.contains("Delivered") && !page.contains("connection"), "{decision:?}: {page}");
        drop(server);
    }
}

#[test]
fn queued_row_gets_its_msg_id_and_rejected_row_its_reason() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).asynchronous().through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&["--offline"]);
    assert_eq!(hooked.results().states(), ["queued", "queued"]);
    let operations = operations(&gateway);
    assert_eq!(hooked.post(&operations[0], &webhook_body(&operations[0], "ROUTING", 5)), 200);
    let rejection = json!({"success": false, "status": "REJECTED", "error": "No route"}).to_string();
    assert_eq!(hooked.post(&operations[1], &rejection), 200);
    let results = hooked.results();
    assert_eq!(results.states(), ["queued", "failed"]);
    assert_eq!(results.column("msg_id")[0], "71");
    assert_eq!(results.column("error")[1], "No route");
    drop(server);
}

#[test]
fn retry_resends_a_failed_message_with_a_new_id() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).asynchronous().through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&["--offline"]);
    let rejection = json!({"success": false, "status": "REJECTED", "error": "No route"}).to_string();
    assert_eq!(hooked.post(&operations(&gateway)[1], &rejection), 200);
    assert_eq!(hooked.results().states(), ["queued", "failed"]);
    hooked.sale.campaign(&["retry", "sale", "--no-wait"]);
    let operations = operations(&gateway);
    assert_eq!(operations.len(), 3);
    assert_eq!(operations[2]["phone"], operations[1]["phone"]);
    assert_ne!(operations[2]["id"], operations[1]["id"]);
    drop(server);
}

#[test]
fn read_message_stays_read_after_the_delivery_of_its_retry() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let failed = json!({"success": false, "status": "UNDELIVERABLE", "type": "sms"}).to_string();
    assert_eq!(hooked.post(&operations(&gateway)[0], &failed), 200);
    hooked.sale.campaign(&["retry", "sale", "--state", "failed", "--no-wait"]).exits(0);
    let sent = operations(&gateway);
    assert_eq!(hooked.post(&sent[1], &failed), 200);
    for (operation, status) in [(&sent[0], "READ"), (&sent[1], "DELIVERED")] {
        assert_eq!(hooked.post(operation, &webhook_body(operation, status, 5)), 200);
        let results = hooked.results();
        assert_eq!((results.states(), results.column("read_by")), (vec!["read"], vec!["sms"]), "{status}");
    }
    assert!(hooked.results().column("reason")[0].starts_with("duplicate suspected"), "both were delivered");
    drop(server);
}

#[test]
fn delivery_of_a_message_and_its_retry_is_a_suspected_duplicate() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(4);
    hooked.sale.campaign(&["resolve", "sale", "--all", "--as", "not-sent", "--i-accept-duplicates", "1"]);
    hooked.sale.campaign(&["retry", "sale", "--no-wait"]).exits(0);
    let sent = operations(&gateway);
    // The receipts have no `msg_id`, because two different values would prove two messages by themselves.
    let delivered_receipt = |operation: &Value| {
        json!({ "success": true, "id": operation["id"].to_string(), "type": "sms", "status": "DELIVERED" }).to_string()
    };
    assert_eq!(hooked.post(&sent[1], &delivered_receipt(&sent[1])), 200);
    assert!(!hooked.results().column("reason")[0].starts_with("duplicate suspected"));
    assert_eq!(hooked.post(&sent[0], &delivered_receipt(&sent[0])), 200);
    let results = hooked.results();
    assert_eq!(results.states(), ["delivered"]);
    assert!(results.column("reason")[0].starts_with("duplicate suspected"), "{:?}", results.column("reason"));
    drop(server);
}

#[test]
fn undelivered_messages_are_resent_only_on_request() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(3).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let first = operations(&gateway);
    for (operation, status, error) in [(0, "SIM FULL", "No room"), (1, "REJECTED", "No route"), (2, "READ", "")] {
        let receipt = json!({"success": status == "READ", "status": status, "error": error, "type": "sms"}).to_string();
        assert_eq!(hooked.post(&first[operation], &receipt), 200);
    }
    hooked.sale.campaign(&["status", "sale"]).exits(3).says("campaign retry sale@1 --state failed");
    let list_retried_phones =
        || operations(&gateway)[3..].iter().map(|operation| operation["phone"].clone()).collect::<Vec<_>>();
    hooked.sale.campaign(&["retry", "sale", "--error", "no room"]).exits(3).says("1 message could not be delivered");
    // Both messages were accepted, so they do not count as rejected.
    hooked.sale.campaign(&["retry", "sale"]).exits(3).says("2 messages could not be delivered");
    hooked.sale.campaign(&["retry", "sale", "--state", "rejected,not_sent"]).exits(3).says("--state failed");
    assert!(list_retried_phones().is_empty());
    hooked.sale.campaign(&["retry", "sale", "--state", "failed", "--error", "no room"]).exits(3);
    assert_eq!(list_retried_phones(), [first[0]["phone"].clone()]);
    hooked.sale.campaign(&["retry", "sale", "--state", "rejected,failed"]).exits(0);
    assert_eq!(list_retried_phones(), [0, 1].map(|row: usize| first[row]["phone"].clone()));
    hooked.sale.campaign(&["retry", "sale", "--state", "delivered"]).exits(2);
    drop(server);
}

#[test]
fn check_says_which_messages_get_webhooks() {
    let gateway = Gateway::accepting();
    let viber = "  - viber: { signature: OlenaCo, message: Hi }";
    let hooked = Hooked::write(campaign().channels(viber).through(&gateway));
    let check = |arguments: &[&str]| hooked.sale.campaign(&[&["check", "sale.yaml"], arguments].concat()).exits(0);
    check(&[]).says("note[promised-receipts]").says("a webhook for each `viber` message");
    let finding = &check(&["--json"]).json()["findings"][0];
    assert_eq!((&finding["rule"], &finding["severity"]), (&"promised-receipts".into(), &"note".into()), "{finding}");
    hooked.sale.replace("sale.yaml", viber, "  - sms: { signature: OlenaCo, message: Hi }");
    check(&[]).says("does not guarantee webhooks for `sms` messages").says("`serve` and `reconcile --all` request");
    hooked.sale.replace("sale.yaml", "channels:", "receipts: poll\nchannels:");
    for finished in [check(&[]), hooked.sale.run(&[]).exits(0)] {
        assert!(!finished.stderr.contains("webhook") && !finished.stdout.contains("webhook"), "{}", finished.details());
    }
}

#[test]
fn later_report_of_a_rejection_does_not_change_its_reason() {
    let reject = |operation: &Value| rejected(operation, "No route");
    let gateway = Gateway::always(Answer::items(reject));
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&["--keep-going"]).exits(3);
    let report =
        json!({"success": false, "status": "REJECTED", "error": "Operator blocked", "type": "sms"}).to_string();
    assert_eq!(hooked.post(&operations(&gateway)[0], &report), 200);
    let results = hooked.results();
    let cells = ["state", "gateway_status", "error"].map(|column| results.column(column)[0]);
    assert_eq!(cells, ["rejected", "REJECTED", "No route"]);
    let report = hooked.sale.campaign(&["report", "sale", "--json"]).json();
    assert_eq!(report["figures"]["failures"]["by"][0]["why"], "No route", "{report}");
    let browser = Browser::signed_in(&server);
    for (reason, is_expected) in [("No+route", true), ("Operator+blocked", false)] {
        let page = browser.page(&format!("/runs/sale@1/rows?reason={reason}"));
        let is_listed = page.all("a").iter().any(|link| link.attribute("href").ends_with("/rows/2"));
        assert_eq!(is_listed, is_expected, "{reason}");
    }
    server.end("TERM").exits(0);
}
