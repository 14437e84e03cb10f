//! Uses of receipts: message history, replies, status inquiries, rewritten results, opt-out words.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Hooked, operations};
use crate::support::{Answer, Gateway, Process, Results, campaign, phone, rejected, until};

#[test]
fn message_history_lists_every_receipt_in_order() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    for status in ["ROUTING", "DELIVERED", "EXPIRED"] {
        assert_eq!(hooked.post(operation, &json!({"status": status, "type": "sms"}).to_string()), 200);
    }
    let row = hooked.sale.campaign(&["show", "sale", "--row", "2", "--json"]).json();
    let receipts: Vec<_> =
        row["history"].as_array().expect("a list").iter().filter(|entry| entry["event"] == "receipt").collect();
    let statuses: Vec<_> = receipts.iter().map(|entry| entry["status"].clone()).collect();
    assert_eq!(statuses, ["ROUTING", "DELIVERED", "EXPIRED"]);
    assert_eq!((&receipts[0]["source"], &receipts[0]["channel"]), (&json!("webhook"), &json!("sms")));
    assert_eq!(row["state"], "delivered");
    hooked.sale.campaign(&["show", "sale", "--row", "2"]).exits(0).says("receipt: DELIVERED on sms");
    drop(server);
}

#[test]
fn outcome_counts_a_message_whose_retry_is_rejected() {
    let reject = |operation: &Value| rejected(operation, "No route");
    let gateway = Gateway::answering_then([Answer::Accept], Answer::items(reject));
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    assert_eq!(
        hooked.post(&operations(&gateway)[0], &json!({"status": "UNDELIVERABLE", "type": "sms"}).to_string()),
        200
    );
    hooked.sale.campaign(&["retry", "sale", "--state", "failed", "--yes", "--keep-going"]);
    assert_eq!(hooked.results().states(), ["rejected"]);
    hooked.sale.write("bought.csv", &format!("at,phone\n{:.3},+{}\n", Timestamp::now(), phone(2)));
    let outcome = hooked.sale.campaign(&["outcome", "sale", "--file", "bought.csv", "--at", "at", "--json"]).exits(0);
    let sent = outcome.json()["sent"][0].clone();
    assert_eq!((&sent["people"], &sent["bought"]), (&json!(1), &json!(1)), "{sent}");
    drop(server);
}

#[test]
fn replies_are_exported_without_spreadsheet_formulas() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(3).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operations = operations(&gateway);
    let media = json!({"url": "https://cdn.example/1.jpg", "filename": "1.jpg", "filesize": 7});
    let reply = json!({"status": "REPLIED", "type": "viber", "replies": [
        {"datetime": "2026-11-22T12:00:00+02:00", "message": "=1+1"},
        {"datetime": "2026-11-22T12:01:00+02:00", "message": "Дякую", "media": media}]});
    assert_eq!(hooked.post(&operations[0], &reply.to_string()), 200);
    let digit = json!({"status": "DELIVERED", "type": "voice", "reply": "5", "duration": 12});
    assert_eq!(hooked.post(&operations[2], &digit.to_string()), 200);
    let replies = Results::parse(&hooked.sale.campaign(&["replies", "sale"]).exits(0).stdout);
    assert_eq!(replies.header, ["run", "row", "to", "channel", "at", "text", "digit", "media"]);
    assert_eq!(replies.column("row"), ["2", "2", "4"]);
    assert_eq!(replies.column("text"), ["'=1+1", "Дякую", ""]);
    assert_eq!(replies.column("digit"), ["", "", "5"]);
    assert_eq!(replies.column("media"), ["", "https://cdn.example/1.jpg", ""]);
    assert_eq!(replies.column("at")[0], "2026-11-22T10:00:00.000Z");
    assert_eq!(hooked.results().states(), ["read", "accepted", "delivered"]);
    hooked.sale.campaign(&["replies", "sale", "--out", "replies.csv"]).exits(0);
    assert_eq!(Results::read(&hooked.sale.path("replies.csv")).rows.len(), 3);
    hooked.sale.campaign(&["replies", "sale", "--out", "replies.csv"]).exits(2).says("choose a new file");
    drop(server);
}

/// A gateway that accepts everything and reports `status` for its messages.
/// It denies unknown messages, or reports `status` for them, too, while `affirms_all` is set.
fn status_gateway(status: &'static str, affirms_all: &Arc<AtomicBool>) -> Gateway {
    let affirms_all = Arc::clone(affirms_all);
    let sent = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let known = Arc::clone(&sent);
    let gateway = Gateway::always(Answer::items(move |operation| {
        sent.lock().expect("a set").insert(operation["id"].to_string());
        crate::support::accepted(operation)
    }));
    gateway.with_statuses(move |inquiry| {
        let id = inquiry["id"].to_string();
        match affirms_all.load(Ordering::Relaxed) || known.lock().expect("a set").contains(&id) {
            true => json!({"success": true, "data": {"id": id, "msg_id": "9", "type": "sms", "status": status,
                "updated": "2026-11-22T12:00:00+02:00"}}),
            false => json!({"success": false, "error": "no such message"}),
        }
    })
}

#[test]
fn message_without_a_webhook_is_polled() {
    let affirms_all = Arc::new(AtomicBool::new(true));
    let gateway = status_gateway("DELIVERED", &affirms_all);
    let sale = campaign().to(120).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["reconcile", "sale", "--all"]).exits(0).says("120 with inconclusive responses");
    assert_eq!(sale.results().counts().get("accepted"), Some(&120), "a gateway that affirms everything proves nothing");
    affirms_all.store(false, Ordering::Relaxed);
    sale.campaign(&["reconcile", "sale", "--all"]).exits(0).says("120 updated");
    let results = sale.results();
    assert_eq!(results.counts().get("delivered"), Some(&120));
    assert_eq!(results.column("delivered_by")[0], "sms");
    assert_eq!(results.column("delivered_at")[0], "2026-11-22T10:00:00.000Z");
    assert_no_duplicates(&gateway);
    sale.campaign(&["reconcile", "sale", "--all"]).exits(0).says("every accepted message has a final status");
}

#[test]
fn polling_uses_a_tenth_of_the_rate_limit_while_sending() {
    let gateway = Gateway::accepting().with_status_answer(Answer::Held);
    let sale = campaign().to(400).through(&gateway).profile("rate: 200/s").delivery("rate: 200/s").write();
    sale.run(&[]).exits(0);
    sale.write("other.yaml", &std::fs::read_to_string(sale.path("sale.yaml")).expect("a file"));
    sale.replace("other.yaml", "name: sale", "name: other");
    sale.replace("other.yaml", "rate: 200/s", "rate: 10/s");
    let before = gateway.sends().len();
    let list_inquiry_times = || {
        let requests = gateway.requests();
        let inquiries = requests.iter().filter(|request| request.is_status_inquiry());
        inquiries.map(|request| request.at).collect::<Vec<_>>()
    };
    // The first inquiries are on their way when another campaign starts to send.
    let _reconcile = Process::start(sale.command(&["reconcile", "sale", "--all"]));
    until("an inquiry arrives", || !list_inquiry_times().is_empty());
    let _run = Process::start(sale.command(&["run", "other.yaml", "--no-wait"]));
    until("another campaign sends", || gateway.sends().len() > before);
    gateway.release();
    until("more inquiries arrive", || list_inquiry_times().len() >= 4);
    let inquiry_times = list_inquiry_times();
    let interval = inquiry_times[3] - inquiry_times[1];
    let minimum = Duration::from_millis(4_500);
    assert!(interval > minimum, "two requests with 50 inquiries each use a tenth of 200/s for 5 s: {interval:?}");
}

/// Checks that no number got a message twice.
fn assert_no_duplicates(gateway: &Gateway) {
    let phones: std::collections::BTreeSet<u64> = gateway.phones().into_iter().collect();
    assert_eq!(phones.len(), gateway.phones().len(), "no message was sent again");
}

#[test]
fn server_rewrites_results_after_receipts() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).through(&gateway));
    hooked.sale.run(&[]).exits(0);
    let before = hooked.serve();
    for operation in &operations(&gateway) {
        assert_eq!(hooked.post(operation, r#"{"status":"DELIVERED"}"#), 200);
    }
    before.end("TERM").exits(0);
    // A server checks for outdated results as soon as it starts.
    let server = hooked.serve();
    until("the results are rewritten", || hooked.sale.results().states() == ["delivered", "delivered"]);
    let runs = hooked.sale.campaign(&["status", "--json"]).json();
    assert_eq!(runs["runs"][0]["counts"], json!({"delivered": 2}), "{runs}");
    drop(server);
}

#[test]
fn opt_out_reply_excludes_the_recipient_from_later_editions() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(3).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operations = operations(&gateway);
    let reply = |text: &str| json!({"status": "REPLIED", "replies": [{"message": text}]}).to_string();
    assert_eq!(hooked.post(&operations[0], &reply("Cтоп.")), 200, "with a Latin C");
    assert_eq!(hooked.post(&operations[1], &reply("Cancel my order 12")), 200);
    let list = hooked.sale.campaign(&["suppress", "list", "--json"]).json_list();
    let list = list.as_array().expect("a list");
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!(list[0]["phone"].to_string().trim_matches('"'), crate::support::phone(2).to_string());
    let second_edition = campaign().to(3).through(&gateway).top("edition: second");
    let hook = format!("hook: {{ public_url: http://{}, secret: {{ file: hook.secret }} }}", hooked.address);
    second_edition.profile(&hook).rewrite(&hooked.sale);
    hooked.sale.run(&[]).exits(0);
    let results = hooked.sale.results();
    assert_eq!(results.states(), ["skipped", "accepted", "accepted"]);
    assert_eq!(results.column("reason")[0], "opted out");
    // A repeated STOP looks like a redelivered webhook, but its opt-out must still be recorded.
    hooked.sale.campaign(&["suppress", "remove", "--yes", &crate::support::phone(2).to_string()]).exits(0);
    assert_eq!(hooked.post(&operations[0], &reply("Cтоп.")), 200);
    let list = hooked.sale.campaign(&["suppress", "list", "--json"]).json_list();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    drop(server);
}

#[test]
fn opt_out_from_a_reply_survives_the_undo_of_an_import() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(3).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let lines: String = (2..5).map(|row| format!("+{},loopback\n", crate::support::phone(row))).collect();
    hooked.sale.write("clients.csv", &format!("phone,gateways\n{lines}"));
    hooked.sale.campaign(&["suppress", "import", "clients.csv", "--yes"]).exits(0).says("3 new");
    let stop = json!({"status": "REPLIED", "replies": [{"message": "STOP"}]}).to_string();
    assert_eq!(hooked.post(&operations(&gateway)[0], &stop), 200);
    hooked
        .sale
        .campaign(&["suppress", "remove", "--source", "clients.csv", "--yes"])
        .exits(0)
        .says("2 opt-outs removed");
    let list = hooked.sale.campaign(&["suppress", "list", "--json"]).json_list();
    assert_eq!((&list[0]["source"], list.as_array().map(Vec::len)), (&json!("reply to sale@1"), Some(1)), "{list}");
    drop(server);
}
