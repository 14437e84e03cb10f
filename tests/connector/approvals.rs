//! The third lock: what an assistant wants waits until the operator saw exactly that, and said yes to it once.

use serde_json::{Value, json};

use super::secrets::{files, has};
use super::{Connector, bare, told};
use crate::support::{Answer, Gateway, Terminal};

const TEXT: &str = "m4rker-text";

fn locked(gateway: &Gateway) -> Connector {
    Connector::start(gateway, &["--allow-send", "--approve"])
}

fn sms() -> Value {
    json!({ "phone": "380501234567", "text": TEXT, "sender": "OlenaCo", "confirm": true })
}

/// The digest by which a call waits.
fn waits(connector: &Connector, tool: &str, arguments: &Value) -> String {
    let result = connector.call(tool, arguments);
    let pending = told(&result);
    assert_eq!((&pending["pending"], &result["isError"]), (&json!(true), &json!(false)), "{result}");
    let digest = pending["digest"].as_str().expect("a digest").to_owned();
    assert!(pending["how_to"].as_str().is_some_and(|how| how.contains(&format!("campaign approve {digest}"))));
    digest
}

/// Approves what has this digest, once everything of it was seen.
fn approve(connector: &Connector, digest: &str, seen: &[&str]) {
    let asked = Terminal::start(connector.folder.command(&["approve", digest]));
    for words in seen {
        asked.shows(words);
    }
    asked.shows("Type yes").types("yes");
    asked.finish().exits(0);
}

#[test]
fn confirmed_message_waits_for_the_operator_and_is_sent_once() {
    let gateway = Gateway::accepting();
    let connector = locked(&gateway);
    assert_eq!(told(&connector.call("send_sms", &json!({})))["refused"], true, "the second lock comes first");
    let digest = waits(&connector, "send_sms", &sms());
    assert_eq!(waits(&connector, "send_sms", &sms()), digest, "the same call waits for the same yes");
    // Nobody says yes without a terminal, and `no` is none.
    connector.folder.campaign(&["approve", &digest]).exits(2);
    let asked = Terminal::start(connector.folder.command(&["approve", &digest]));
    asked.shows("Type yes").types("no");
    asked.finish().exits(2);
    waits(&connector, "send_sms", &sms());
    assert!(gateway.sends().is_empty());
    approve(&connector, &digest, &["An assistant wants to use local", "380501234567", "OlenaCo", TEXT]);
    connector.folder.campaign(&["approve", &digest]).exits(2).says("is already approved");
    // What the yes was not for waits still.
    let mut other = sms();
    other["text"] = json!("something else");
    assert_ne!(waits(&connector, "send_sms", &other), digest);
    let accepted = told(&connector.call("send_sms", &sms()));
    assert_eq!(accepted["accepted"], true, "{accepted}");
    let mut again = sms();
    again["repeat"] = json!(true);
    let again = waits(&connector, "send_sms", &again);
    assert_ne!(again, digest, "one yes is good for one message");
    approve(&connector, &again, &["repeat: sent even if the same message was sent"]);
    assert_eq!(gateway.phones(), [380_501_234_567]);
}

#[test]
fn confirmation_belongs_to_one_caller_until_its_message_is_sent() {
    let gateway = Gateway::answering([Answer::refused("No route")]).with_key_checks();
    let connector = Connector::start(&gateway, &["--allow-send", "--approve", "--max-sends-per-hour", "2"]);
    let digest = waits(&connector, "send_sms", &sms());
    approve(&connector, &digest, &[TEXT]);
    let stranger = connector.post(&[("Authorization", "Bearer another-key")], &bare("send_sms", &sms())).json();
    let waiting = told(&stranger["result"]);
    assert!(waiting["pending"] == true && waiting["digest"] != *digest, "{waiting}");
    // The platform took none of it: it may be sent by the same yes.
    assert_eq!(told(&connector.call("send_sms", &sms()))["code"], "platform_error");
    assert_eq!(told(&connector.call("send_sms", &sms()))["accepted"], true);
    // What the limit refused waits for no second yes either.
    let mut other = sms();
    other["text"] = json!("something else");
    approve(&connector, &waits(&connector, "send_sms", &other), &["something else"]);
    for _ in 0..2 {
        assert_eq!(told(&connector.call("send_sms", &other))["code"], "rate_limited");
    }
    assert_eq!(gateway.phones().len(), 2);
}

#[test]
fn confirmation_of_a_template_is_valid_until_it_is_created() {
    let taken = Answer::items(|operation| json!({ "success": true, "data": { "id": 1, "name": operation["name"] } }));
    let gateway = Gateway::answering([Answer::refused("No route"), taken]).with_key_checks();
    let connector = locked(&gateway);
    let template = json!({ "name": "Sale", "text": TEXT, "confirm": true });
    approve(&connector, &waits(&connector, "create_sms_template", &template), &["the SMS template Sale", TEXT]);
    assert_eq!(told(&connector.call("create_sms_template", &template))["code"], "platform_error");
    assert_eq!(told(&connector.call("create_sms_template", &template))["name"], "Sale");
    waits(&connector, "create_sms_template", &template);
}

#[test]
fn pending_call_is_in_no_file_and_ends_with_its_connector() {
    let gateway = Gateway::accepting();
    let connector = locked(&gateway);
    let digest = waits(&connector, "create_sms_template", &json!({ "name": TEXT, "text": TEXT, "confirm": true }));
    approve(&connector, &digest, &["the SMS template", TEXT]);
    let digest = waits(&connector, "send_sms", &sms());
    let (ended, folder) = connector.ended();
    let told = ended.exits(0).told();
    assert!(!told.contains(TEXT), "{told}");
    let kept = files(&folder.path("state"));
    assert!(!kept.is_empty());
    for file in kept {
        assert!(!has(&std::fs::read(&file).expect("a file"), TEXT), "{}", file.display());
    }
    folder.campaign(&["approve", &digest]).exits(2).says("no longer waiting");
    assert!(gateway.sends().is_empty());
}
