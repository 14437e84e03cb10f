//! Records in the answers of the sandbox (contract 2.2 and 2.5).

use campaign_sandbox::{AccountSettings, Scenario, SenderStatus};
use serde_json::{Value, json};

use super::TestSandbox;
use super::examples::{MESSAGE_TYPES, PHONE, example, with_changes};
use super::in_process::millionths;

/// Whether a value is an ISO 8601 time with an offset.
fn is_time(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let has_offset = text.len() > 6 && matches!(text.as_bytes()[text.len() - 6], b'+' | b'-');
    has_offset && text.parse::<jiff::Timestamp>().is_ok()
}

/// The member names of an object.
fn member_names(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Gateway contract 2.2 and 4.3: a result has `id`, `msg_id`, `parts`, and a number as `data`.
#[test]
fn send_result_has_identifiers_and_parts() {
    let sandbox = TestSandbox::start();
    let mut msg_ids = Vec::new();
    for (id, kind) in (1..).zip(MESSAGE_TYPES) {
        let result = sandbox.payload(&example(kind, id));
        assert_eq!(member_names(&result), ["data", "id", "msg_id", "parts"], "{kind}");
        assert_eq!((&result["id"], &result["parts"]), (&json!(id), &json!(1)), "{kind}");
        assert!(result["data"].is_u64() && result["msg_id"].is_u64(), "{kind}: {result}");
        assert!(!msg_ids.contains(&result["msg_id"]), "{kind}");
        msg_ids.push(result["msg_id"].clone());
    }
}

/// Gateway contract 2.2: each SMS part is billed. A part has 160 or 153 septets, or 70 or 67 UTF-16 units.
#[test]
fn long_sms_has_several_parts() {
    let sandbox = TestSandbox::start();
    for (text, parts) in [("a".repeat(160), 1), ("a".repeat(161), 2), ("я".repeat(70), 1), ("я".repeat(135), 3)] {
        let result = sandbox.payload(&with_changes(&example("sms", 1), json!({"sms_message": text})));
        assert_eq!(result["parts"], parts);
    }
}

/// Gateway contract 2.2: an identifier can be a string, and is returned unchanged.
#[test]
fn identifier_is_returned_as_sent() {
    let sandbox = TestSandbox::start();
    for id in [json!(1), json!("0017"), json!("order-5"), json!(9_007_199_254_740_993_u64)] {
        assert_eq!(sandbox.payload(&with_changes(&example("sms", 1), json!({"id": id})))["id"], id);
        let record = sandbox.payload(&json!({"type": "status", "id": id}));
        assert_eq!(record["id"], id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    }
}

/// Gateway contract 2.5: the fields of a message status.
#[test]
fn status_response_identifies_the_message_and_its_channel() {
    let sandbox = TestSandbox::start();
    for (id, (kind, channel)) in (1..).zip([("sms", "sms"), ("viber", "viber"), ("rcs", "rcs"), ("voice", "voice")]) {
        let sent = sandbox.payload(&example(kind, id));
        let record = sandbox.payload(&json!({"type": "status", "id": id}));
        assert_eq!(member_names(&record), ["id", "msg_id", "status", "type", "updated"], "{kind}");
        let ids = (json!(id.to_string()), json!(sent["msg_id"].to_string()));
        assert_eq!((record["id"].clone(), record["msg_id"].clone()), ids, "{kind}");
        assert_eq!(record["type"], channel);
        assert!(record["status"].is_string() && is_time(&record["updated"]), "{record}");
        let by_msg_id = sandbox.payload(&json!({"type": "status", "msg_id": sent["msg_id"]}));
        assert_eq!(by_msg_id["id"], record["id"]);
    }
}

/// Gateway contract 2.5: the fields of an account balance.
#[test]
fn balance_is_an_amount_in_a_currency() {
    let record = TestSandbox::start().payload(&json!({"type": "balance"}));
    assert_eq!(member_names(&record), ["amount", "currency"]);
    assert!(record["amount"].is_f64(), "{record}");
    assert_eq!(record["currency"].as_str().map(str::len), Some(3), "{record}");
}

/// Gateway contract 2.5: an SMS template can be created, listed and deleted.
#[test]
fn sms_template_is_created_listed_and_deleted() {
    let sandbox = TestSandbox::start();
    assert_eq!(sandbox.payload(&json!({"type": "template/list"})), json!([]));
    let create = json!({"type": "template/create", "name": "hello", "template": "Hello, Olena"});
    let created = sandbox.payload(&create);
    assert_eq!(member_names(&created), ["count", "id", "name", "template"]);
    assert!(created["id"].is_u64() && created["name"] == "hello" && created["template"] == "Hello, Olena");
    let (characters, messages) =
        created["count"].as_str().and_then(|count| count.split_once('/')).expect("two numbers");
    assert_eq!((characters.trim().parse(), messages.trim().parse()), (Ok(12), Ok(1)), "{created}");
    let listed = sandbox.payload(&json!({"type": "template/list"}));
    assert_eq!(member_names(&listed[0]), ["count", "datetime", "id", "name", "template"]);
    assert!(is_time(&listed[0]["datetime"]), "{listed}");
    assert_eq!(listed[0]["id"], created["id"]);
    let delete = json!({"type": "template/delete", "id": created["id"]});
    assert_eq!(sandbox.payload(&delete), json!({"deleted": 1}));
    assert_eq!(sandbox.payload(&json!({"type": "template/list"})), json!([]));
    assert_eq!(sandbox.payload(&delete), json!({"deleted": 0}));
}

/// Gateway contract 2.5: a Viber template can be created, listed and deleted.
#[test]
fn viber_template_is_created_listed_and_deleted() {
    let sandbox = TestSandbox::start();
    let create = json!({"type": "template/viber/create", "signature": "OlenaCo", "template": "Hello"});
    let created = sandbox.payload(&create);
    assert_eq!(member_names(&created), ["id", "signature", "status", "template"]);
    assert!(created["id"].is_u64(), "{created}");
    crate::support::until("the template is approved", || {
        let listed = sandbox.payload(&json!({"type": "template/viber/list"}));
        assert_eq!(member_names(&listed[0]), ["id", "signature", "status", "template"]);
        assert_eq!((&listed[0]["id"], &listed[0]["template"]), (&created["id"], &json!("Hello")));
        listed[0]["status"] == "approved"
    });
    let delete = json!({"type": "template/viber/delete", "id": created["id"], "template": "Hello"});
    assert_eq!(sandbox.payload(&delete), json!({"deleted": 1}));
    assert_eq!(sandbox.payload(&delete), json!({"deleted": 0}));
}

/// Gateway contract 2.5: the fields of a sender name.
#[test]
fn sender_has_a_name_and_a_status() {
    let senders = Some(vec![("OlenaCo".to_owned(), SenderStatus::Checked), ("Fresh".to_owned(), SenderStatus::New)]);
    let accounts = vec![AccountSettings { senders, ..AccountSettings::default() }];
    let sandbox = TestSandbox::start_with(Scenario { accounts, ..Scenario::default() });
    let senders = sandbox.payload(&json!({"type": "sender"}));
    let senders = senders.as_array().expect("an array");
    assert_eq!(senders.len(), 2);
    for sender in senders {
        assert_eq!(member_names(sender), ["name", "status"]);
        assert!(sender["name"].is_string() && sender["status"].is_string(), "{sender}");
    }
}

/// Gateway contract 4.3: `hlr` returns the operator and porting details, and `call/otp` the code and the fee.
#[test]
fn lookup_returns_the_operator_and_call_otp_the_code_and_fee() {
    let sandbox = TestSandbox::start();
    let found = sandbox.payload(&example("hlr", 1));
    assert_eq!(found["phone"], PHONE);
    assert!(found["ported"].is_boolean() && found["mccmnc"].is_u64() && found["network"]["origin"].is_object());
    let before = sandbox.balance();
    let call = sandbox.payload(&example("call/otp", 2));
    let code = call["code"].as_str().expect("a string");
    assert!(code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
    assert_eq!(before - sandbox.balance(), millionths(&call["price"]));
}
