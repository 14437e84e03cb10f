//! The records of results: contract 2.2 and 2.5.

use campaign::sandbox::{AccountSettings, Scenario, SenderStatus};
use serde_json::{Value, json};

use super::Stand;
use super::examples::{PHONE, SENDS, example, with};
use super::stand::millionths;

/// Whether it is a time in ISO 8601 with an offset.
fn is_time(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    let offset = text.len() > 6 && matches!(text.as_bytes()[text.len() - 6], b'+' | b'-');
    offset && text.parse::<jiff::Timestamp>().is_ok()
}

/// The names of an object's members.
fn members(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

/// Contract 2.2 and 4.3: `id`, `msg_id`, `parts` and the number `data`.
#[test]
fn send_result_has_identifiers_and_parts() {
    let stand = Stand::new();
    let mut seen = Vec::new();
    for (id, kind) in (1..).zip(SENDS) {
        let result = stand.payload(&example(kind, id));
        assert_eq!(members(&result), ["data", "id", "msg_id", "parts"], "{kind}");
        assert_eq!((&result["id"], &result["parts"]), (&json!(id), &json!(1)), "{kind}");
        assert!(result["data"].is_u64() && result["msg_id"].is_u64(), "{kind}: {result}");
        assert!(!seen.contains(&result["msg_id"]), "{kind}");
        seen.push(result["msg_id"].clone());
    }
}

/// Contract 2.2: parts are what is billed; 160 and 153 septets, 70 and 67 UTF-16 units.
#[test]
fn long_sms_has_several_parts() {
    let stand = Stand::new();
    for (text, parts) in [("a".repeat(160), 1), ("a".repeat(161), 2), ("я".repeat(70), 1), ("я".repeat(135), 3)] {
        let result = stand.payload(&with(&example("sms", 1), json!({"sms_message": text})));
        assert_eq!(result["parts"], parts);
    }
}

/// Contract 2.2: an identifier may be a string; it comes back as it was sent.
#[test]
fn identifier_is_returned_as_sent() {
    let stand = Stand::new();
    for id in [json!(1), json!("0017"), json!("order-5"), json!(9_007_199_254_740_993_u64)] {
        assert_eq!(stand.payload(&with(&example("sms", 1), json!({"id": id})))["id"], id);
        let record = stand.payload(&json!({"type": "status", "id": id}));
        assert_eq!(record["id"], id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    }
}

/// Contract 2.5: a message status.
#[test]
fn status_shows_the_message_its_channel_and_time() {
    let stand = Stand::new();
    for (id, (kind, channel)) in (1..).zip([("sms", "sms"), ("viber", "viber"), ("rcs", "rcs"), ("voice", "voice")]) {
        let sent = stand.payload(&example(kind, id));
        let record = stand.payload(&json!({"type": "status", "id": id}));
        assert_eq!(members(&record), ["id", "msg_id", "status", "type", "updated"], "{kind}");
        let ids = (json!(id.to_string()), json!(sent["msg_id"].to_string()));
        assert_eq!((record["id"].clone(), record["msg_id"].clone()), ids, "{kind}");
        assert_eq!(record["type"], channel);
        assert!(record["status"].is_string() && is_time(&record["updated"]), "{record}");
        let by_msg_id = stand.payload(&json!({"type": "status", "msg_id": sent["msg_id"]}));
        assert_eq!(by_msg_id["id"], record["id"]);
    }
}

/// Contract 2.5: an account balance.
#[test]
fn balance_is_an_amount_in_a_currency() {
    let record = Stand::new().payload(&json!({"type": "balance"}));
    assert_eq!(members(&record), ["amount", "currency"]);
    assert!(record["amount"].is_f64(), "{record}");
    assert_eq!(record["currency"].as_str().map(str::len), Some(3), "{record}");
}

/// Contract 2.5: an SMS template when it is created, listed and deleted.
#[test]
fn sms_template_is_created_listed_and_deleted() {
    let stand = Stand::new();
    assert_eq!(stand.payload(&json!({"type": "template/list"})), json!([]));
    let create = json!({"type": "template/create", "name": "hello", "template": "Hello, Olena"});
    let created = stand.payload(&create);
    assert_eq!(members(&created), ["count", "id", "name", "template"]);
    assert!(created["id"].is_u64() && created["name"] == "hello" && created["template"] == "Hello, Olena");
    let (signs, messages) = created["count"].as_str().and_then(|count| count.split_once('/')).expect("two numbers");
    assert_eq!((signs.trim().parse(), messages.trim().parse()), (Ok(12), Ok(1)), "{created}");
    let listed = stand.payload(&json!({"type": "template/list"}));
    assert_eq!(members(&listed[0]), ["count", "datetime", "id", "name", "template"]);
    assert!(is_time(&listed[0]["datetime"]), "{listed}");
    assert_eq!(listed[0]["id"], created["id"]);
    let delete = json!({"type": "template/delete", "id": created["id"]});
    assert_eq!(stand.payload(&delete), json!({"deleted": 1}));
    assert_eq!(stand.payload(&json!({"type": "template/list"})), json!([]));
    assert_eq!(stand.payload(&delete), json!({"deleted": 0}));
}

/// Contract 2.5: a Viber template and the result of its deletion.
#[test]
fn viber_template_is_created_listed_and_deleted() {
    let stand = Stand::new();
    let create = json!({"type": "template/viber/create", "signature": "OlenaCo", "template": "Hello"});
    let created = stand.payload(&create);
    assert_eq!(members(&created), ["id", "signature", "status", "template"]);
    assert!(created["id"].is_u64(), "{created}");
    crate::support::until("the template is approved", || {
        let listed = stand.payload(&json!({"type": "template/viber/list"}));
        assert_eq!(members(&listed[0]), ["id", "signature", "status", "template"]);
        assert_eq!((&listed[0]["id"], &listed[0]["template"]), (&created["id"], &json!("Hello")));
        listed[0]["status"] == "approved"
    });
    let delete = json!({"type": "template/viber/delete", "id": created["id"], "template": "Hello"});
    assert_eq!(stand.payload(&delete), json!({"deleted": 1}));
    assert_eq!(stand.payload(&delete), json!({"deleted": 0}));
}

/// Contract 2.5: a sender name.
#[test]
fn sender_has_a_name_and_a_status() {
    let senders = Some(vec![("OlenaCo".to_owned(), SenderStatus::Checked), ("Fresh".to_owned(), SenderStatus::New)]);
    let accounts = vec![AccountSettings { senders, ..AccountSettings::default() }];
    let stand = Stand::playing(Scenario { accounts, ..Scenario::default() });
    let senders = stand.payload(&json!({"type": "sender"}));
    let senders = senders.as_array().expect("an array");
    assert_eq!(senders.len(), 2);
    for sender in senders {
        assert_eq!(members(sender), ["name", "status"]);
        assert!(sender["name"].is_string() && sender["status"].is_string(), "{sender}");
    }
}

/// Contract 4.3 `hlr`: operator and porting details; `call/otp`: the code and the fee.
#[test]
fn lookup_reports_the_operator_and_code_call_its_code_and_fee() {
    let stand = Stand::new();
    let found = stand.payload(&example("hlr", 1));
    assert_eq!(found["phone"], PHONE);
    assert!(found["ported"].is_boolean() && found["mccmnc"].is_u64() && found["network"]["origin"].is_object());
    let before = stand.balance();
    let call = stand.payload(&example("call/otp", 2));
    let code = call["code"].as_str().expect("a string");
    assert!(code.len() == 4 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
    assert_eq!(before - stand.balance(), millionths(&call["price"]));
}
