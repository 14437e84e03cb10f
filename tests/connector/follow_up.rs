//! Follow-up on an assistant's messages: receipts and reconciliation work as for any other message.

use serde_json::json;

use super::{Connector, parse_result, tool_call};
use crate::receipts::{Hooked, operations, post};
use crate::support::{Answer, Gateway, Server, accepted, campaign, rejected};

const PHONE: &str = "380501234567";

fn sms(id: u64) -> serde_json::Value {
    json!({ "phone": PHONE, "text": "Hi", "sender": "OlenaCo", "confirm": true, "id": id })
}

#[test]
fn receipt_for_an_assistant_message_is_stored() {
    let gateway = Gateway::accepting();
    let Hooked { sale, address: listener } = Hooked::write(campaign().to(1).through(&gateway));
    let mut server = Server::start(&sale, &["--hooks", &listener]);
    let connector = Connector::start_in(sale, &["--allow-send"]);
    assert_eq!(parse_result(&connector.call("send_sms", &sms(7)))["accepted"], true);
    let operation = operations(&gateway).remove(0);
    let address =
        operation["hook"].as_str().expect("an address").trim_start_matches("http://").trim_start_matches(&listener);
    let read = json!({ "success": true, "status": "READ", "type": "sms", "reply": "STOP" }).to_string();
    server.assert_running();
    assert_eq!(post(&listener, address, &read), 200);
    let shown = connector.folder.campaign(&["show", "assistant.message", "--to", PHONE]);
    shown.exits(0).says("read");
    assert_eq!(server.end("TERM").code(), Some(0));
}

#[test]
fn message_of_a_killed_connector_is_in_doubt_and_keeps_its_id() {
    // The gateway knows only these two messages.
    let gateway = Gateway::answering([Answer::Held]).with_statuses(|query| match query["id"].as_u64() {
        Some(7 | 8) => accepted(query),
        _ => rejected(query, "Not found"),
    });
    let gateway = gateway.with_key_checks();
    let connector = Connector::start_in(campaign().to(1).through(&gateway).write(), &["--allow-send"]);
    connector.post_and_hang_up(&tool_call("send_sms", &sms(7)), || !gateway.sends().is_empty());
    let Connector { process, folder, .. } = connector;
    process.kill();
    gateway.release();
    folder.campaign(&["status", "assistant.message"]).exits(4).says("reconcile assistant.message@1");
    let connector = Connector::start_in(folder, &["--allow-send"]);
    let error = parse_result(&connector.call("send_sms", &sms(7)));
    assert_eq!(error["code"], "id_taken", "{error}");
    let other = json!({ "phone": PHONE, "text": "Another", "sender": "OlenaCo", "confirm": true, "id": 8 });
    assert_eq!(parse_result(&connector.call("send_sms", &other))["accepted"], true);
    assert_eq!(gateway.phones().len(), 2);
    connector.folder.campaign(&["reconcile", "assistant.message@1"]).exits(0);
    let status = connector.folder.campaign(&["status", "assistant.message@1", "--json"]).exits(0).json();
    assert_eq!(status["counts"], json!({ "accepted": 1, "queued": 1 }));
    connector.folder.campaign(&["show", "assistant.message@1", "--row", "2"]).exits(0).says("accepted");
}
