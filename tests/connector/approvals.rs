//! Operator approval of assistant calls (`--approve`): a call waits until the operator approves exactly that call,
//! once.

use serde_json::{Value, json};

use super::secrets::{contains_marker, list_files};
use super::{Connector, parse_result, tool_call};
use crate::support::{Answer, Gateway, Terminal};

const TEXT: &str = "m4rker-text";

fn connector_with_approvals(gateway: &Gateway) -> Connector {
    Connector::start(gateway, &["--allow-send", "--approve"])
}

fn sms() -> Value {
    json!({ "phone": "380501234567", "text": TEXT, "sender": "OlenaCo", "confirm": true })
}

/// Makes a call that waits for approval. Returns its digest.
fn request_approval(connector: &Connector, tool: &str, arguments: &Value) -> String {
    let result = connector.call(tool, arguments);
    let pending = parse_result(&result);
    assert_eq!((&pending["pending"], &result["isError"]), (&json!(true), &json!(false)), "{result}");
    let digest = pending["digest"].as_str().expect("a digest").to_owned();
    assert!(pending["how_to"].as_str().is_some_and(|how| how.contains(&format!("campaign approve {digest}"))));
    digest
}

/// Approves the call with this digest after the terminal showed all of `expected`.
fn approve(connector: &Connector, digest: &str, expected: &[&str]) {
    let terminal = Terminal::start(connector.folder.command(&["approve", digest]));
    for words in expected {
        terminal.shows(words);
    }
    terminal.shows("Type yes").types("yes");
    terminal.finish().exits(0);
}

#[test]
fn confirmed_message_waits_for_the_operator_and_is_sent_once() {
    let gateway = Gateway::accepting();
    let connector = connector_with_approvals(&gateway);
    assert_eq!(
        parse_result(&connector.call("send_sms", &json!({})))["refused"],
        true,
        "the second lock is checked first"
    );
    let digest = request_approval(&connector, "send_sms", &sms());
    assert_eq!(request_approval(&connector, "send_sms", &sms()), digest, "the same call waits for the same approval");
    // Approving needs a terminal, and `no` does not approve.
    connector.folder.campaign(&["approve", &digest]).exits(2);
    let terminal = Terminal::start(connector.folder.command(&["approve", &digest]));
    terminal.shows("Type yes").types("no");
    terminal.finish().exits(2);
    request_approval(&connector, "send_sms", &sms());
    assert!(gateway.sends().is_empty());
    approve(&connector, &digest, &["An assistant wants to use local", "380501234567", "OlenaCo", TEXT]);
    connector.folder.campaign(&["approve", &digest]).exits(2).says("has already been approved");
    // A call with different arguments still waits for approval.
    let mut other = sms();
    other["text"] = json!("something else");
    assert_ne!(request_approval(&connector, "send_sms", &other), digest);
    let accepted = parse_result(&connector.call("send_sms", &sms()));
    assert_eq!(accepted["accepted"], true, "{accepted}");
    let mut repeated = sms();
    repeated["repeat"] = json!(true);
    let again = request_approval(&connector, "send_sms", &repeated);
    assert_ne!(again, digest, "the approval says that the message is repeated");
    approve(&connector, &again, &["repeat: sent even if the same message was sent"]);
    assert_eq!(gateway.phones().len(), 1);
    assert_eq!(parse_result(&connector.call("send_sms", &repeated))["accepted"], true);
    request_approval(&connector, "send_sms", &repeated);
    assert_eq!(gateway.phones(), [380_501_234_567; 2], "one approval covers one message");
}

#[test]
fn approval_is_valid_for_one_caller_until_the_message_is_sent() {
    let gateway = Gateway::answering([Answer::rejection("No route")]).with_key_checks();
    let connector = Connector::start(&gateway, &["--allow-send", "--approve", "--max-sends-per-hour", "2"]);
    let digest = request_approval(&connector, "send_sms", &sms());
    approve(&connector, &digest, &[TEXT]);
    let stranger = connector.post(&[("Authorization", "Bearer another-key")], &tool_call("send_sms", &sms())).json();
    let waiting = parse_result(&stranger["result"]);
    assert!(waiting["pending"] == true && waiting["digest"] != *digest, "{waiting}");
    // The gateway accepted nothing, so the same approval stays valid.
    assert_eq!(parse_result(&connector.call("send_sms", &sms()))["code"], "platform_error");
    assert_eq!(parse_result(&connector.call("send_sms", &sms()))["accepted"], true);
    // A call that the rate limit refused needs no second approval either.
    let mut other = sms();
    other["text"] = json!("something else");
    approve(&connector, &request_approval(&connector, "send_sms", &other), &["something else"]);
    for _ in 0..2 {
        assert_eq!(parse_result(&connector.call("send_sms", &other))["code"], "rate_limited");
    }
    assert_eq!(gateway.phones().len(), 2);
}

#[test]
fn template_approval_is_valid_until_the_template_is_created() {
    let created = Answer::items(|operation| json!({ "success": true, "data": { "id": 1, "name": operation["name"] } }));
    let gateway = Gateway::answering([Answer::rejection("No route"), created]).with_key_checks();
    let connector = connector_with_approvals(&gateway);
    let template = json!({ "name": "Sale", "text": TEXT, "confirm": true });
    approve(
        &connector,
        &request_approval(&connector, "create_sms_template", &template),
        &["the SMS template Sale", TEXT],
    );
    assert_eq!(parse_result(&connector.call("create_sms_template", &template))["code"], "platform_error");
    assert_eq!(parse_result(&connector.call("create_sms_template", &template))["name"], "Sale");
    request_approval(&connector, "create_sms_template", &template);
}

#[test]
fn template_approval_covers_one_name_and_one_text() {
    let gateway = Gateway::accepting();
    let connector = connector_with_approvals(&gateway);
    let template = |name: &str, text: &str| json!({ "name": name, "text": text, "confirm": true });
    let approved = request_approval(&connector, "create_sms_template", &template("a\nb", "c"));
    // The name is shown on one line, so it cannot look like the text.
    approve(&connector, &approved, &["the SMS template a⏎b", "│ c"]);
    // A call with the same characters, divided differently between the arguments, needs its own approval.
    let other = request_approval(&connector, "create_sms_template", &template("a", "b\nc"));
    assert_ne!(other, approved);
}

#[test]
fn pending_call_is_never_stored_and_ends_with_its_connector() {
    let gateway = Gateway::accepting();
    let connector = connector_with_approvals(&gateway);
    let digest =
        request_approval(&connector, "create_sms_template", &json!({ "name": TEXT, "text": TEXT, "confirm": true }));
    approve(&connector, &digest, &["the SMS template", TEXT]);
    let digest = request_approval(&connector, "send_sms", &sms());
    let (ended, folder) = connector.finish_with_folder();
    let output = ended.exits(0).details();
    assert!(!output.contains(TEXT), "{output}");
    let state_files = list_files(&folder.path("state"));
    assert!(!state_files.is_empty());
    for file in state_files {
        assert!(!contains_marker(&std::fs::read(&file).expect("a file"), TEXT), "{}", file.display());
    }
    folder.campaign(&["approve", &digest]).exits(2).says("no longer waiting");
    assert!(gateway.sends().is_empty());
}
