//! Envelopes, endpoints and keys: sections 2.1, 2.2, 2.3, 4.1, 4.2, 5 and 8 of the gateway contract.

use serde_json::{Value, json};

use super::TestSandbox;
use super::examples::{TYPES, example, with_changes};
use super::in_process::{ASYNC, JSON, SYNC, envelope};
use crate::support::KEY;

/// Gateway contract 2.1: every type in the table is accepted, and so are extra properties.
#[test]
fn every_type_is_known_and_extra_properties_are_allowed() {
    let sandbox = TestSandbox::start();
    for (id, kind) in (1..).zip(TYPES) {
        let operation = example(kind, id);
        let plain = sandbox.item(&operation);
        let extra = json!({"campaign": "autumn", "nested": {"a": [1, null]}, "short_link": true});
        let extra = sandbox.item(&with_changes(&with_changes(&operation, extra), json!({"id": operation.get("id")})));
        assert_eq!(plain["success"], extra["success"], "{kind}: {plain} {extra}");
        // Only a status request fails, because its message does not exist.
        assert!(plain["success"] == true || kind == "status", "{kind}: {plain}");
    }
}

/// Gateway contract 2.1 and 8: an envelope needs `auth` and at least one operation, each with a `type`.
#[test]
fn incomplete_envelope_is_rejected_as_a_whole() {
    let sandbox = TestSandbox::start();
    let balance = json!([{"type": "balance"}]);
    for (body, error) in [
        (json!({"data": balance}), Some("Access denied")),
        (json!({"auth": null, "data": balance}), Some("Access denied")),
        (json!({"auth": 5, "data": balance}), Some("Access denied")),
        (json!({"auth": "another", "data": balance}), Some("Access denied")),
        (json!({"auth": KEY}), None),
        (json!({"auth": KEY, "data": []}), None),
        (json!({"auth": KEY, "data": {"type": "balance"}}), None),
        (json!({"auth": KEY, "data": "balance"}), None),
        (json!({"auth": KEY, "data": [{}]}), Some("Invalid message type")),
        (json!({"auth": KEY, "data": [{"type": 5}]}), Some("Invalid message type")),
        (json!({"auth": KEY, "data": ["balance"]}), Some("Invalid message type")),
        (json!({"auth": KEY, "data": [{"type": "balance"}, {"type": "fax"}]}), Some("Invalid message type")),
    ] {
        for path in [SYNC, ASYNC] {
            let answer = sandbox.envelope(path, &body);
            assert_eq!(answer["success"], false, "{body}");
            assert!(answer["error"].is_string() && answer.get("data").is_none(), "{body}\n{answer}");
            assert!(error.is_none_or(|error| answer["error"] == error), "{body}\n{answer}");
        }
    }
    assert_eq!(sandbox.counts().messages, 0);
}

/// Gateway contract 1.5 and 2.2: an answer has one item per operation, in the same order, with a boolean `success`.
#[test]
fn envelope_of_all_operations_is_answered_item_by_item() {
    let sandbox = TestSandbox::start();
    let good: Vec<_> = (1..).zip(TYPES).map(|(id, kind)| example(kind, id)).collect();
    let bad = good.iter().map(|operation| with_changes(operation, json!({"id": {}, "phone": "nobody", "template": 5})));
    let all: Vec<_> = good.iter().cloned().chain(bad).collect();
    for (operation, item) in all.iter().zip(sandbox.items(&all)) {
        assert!(item["success"].is_boolean(), "{operation}\n{item}");
        assert_eq!(item["success"] == true, item.get("error").is_none(), "{operation}\n{item}");
        assert!(item.get("error").is_none_or(Value::is_string), "{operation}\n{item}");
        let echoed = item["data"].get("id").filter(|id| id.is_u64() && operation.get("phone").is_some());
        assert!(echoed.is_none_or(|id| *id == operation["id"]), "{operation}\n{item}");
    }
}

/// Gateway contract 2.3 and 4.2: the asynchronous endpoint returns only the identifier of the request.
#[test]
fn asynchronous_response_contains_only_a_request_id() {
    let sandbox = TestSandbox::start();
    let operations: Vec<_> = (1..).zip(TYPES).map(|(id, kind)| example(kind, id)).collect();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = sandbox.envelope(ASYNC, &envelope(&operations));
        let members: Vec<_> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!((answer["success"].clone(), members), (json!(true), vec!["request_id", "success"]));
        let id = answer["request_id"].as_str().expect("a string").to_owned();
        assert!(!id.is_empty() && !ids.contains(&id), "{id} after {ids:?}");
        ids.push(id);
    }
}

/// Gateway contract 4.2: `status` finds a queued message.
#[test]
fn queued_message_is_found_by_a_status_request() {
    let sandbox = TestSandbox::start();
    sandbox.queue(&[example("sms", 7)]);
    let record = sandbox.wait_for(7, "DELIVERED");
    assert_eq!((record["id"].clone(), record["type"].clone()), (json!("7"), json!("sms")));
}

/// Gateway contract 4.1: the header `Content-Type: application/json` is required.
#[test]
fn json_body_without_a_json_content_type_is_refused() {
    let sandbox = TestSandbox::start();
    let body = envelope(&[example("sms", 1)]).to_string();
    for path in [SYNC, ASYNC] {
        for headers in [&[][..], &["Content-Type: text/plain"], &["Content-Type:"], &["Accept: application/json"]] {
            let answer = sandbox.post(path, headers, body.as_bytes()).json();
            assert_eq!(answer["success"], false, "{headers:?}");
        }
        for header in [JSON, "content-type: Application/JSON; charset=utf-8"] {
            assert_eq!(sandbox.post(path, &[header], body.as_bytes()).json()["success"], true, "{header}");
        }
    }
    assert_eq!(sandbox.counts().messages, 4);
}

/// Gateway contract 4.1 and 7: every answer has HTTP status 200 and a JSON body.
#[test]
fn every_answer_has_status_200() {
    let sandbox = TestSandbox::start();
    let denied = json!({"auth": "no", "data": [{"type": "balance"}]}).to_string();
    let failed = envelope(&[json!({"type": "sms"})]).to_string();
    let good = envelope(&[example("sms", 1)]).to_string();
    for path in [SYNC, ASYNC] {
        for body in ["", "{", "null", "\u{0}", &denied, &failed, &good] {
            for headers in [&[JSON][..], &[]] {
                let answer = sandbox.post(path, headers, body.as_bytes());
                assert_eq!(answer.status, 200, "{body}");
                assert!(answer.json()["success"].is_boolean(), "{body}");
            }
        }
    }
}

/// Gateway contract 5.1 and 5.5: the key is a member of the body, never a header.
#[test]
fn api_key_in_a_header_grants_no_access() {
    let sandbox = TestSandbox::start();
    let body = json!({"data": [{"type": "balance"}]}).to_string();
    let header = format!("Authorization: Bearer {KEY}");
    let answer = sandbox.post(SYNC, &[JSON, &header, &format!("auth: {KEY}")], body.as_bytes());
    assert_eq!(answer.json(), json!({"success": false, "error": "Access denied"}));
}

/// Gateway contract 8: the minimum and the default lifetime of RCS.
#[test]
fn rcs_lifetime_is_at_least_a_minute() {
    let sandbox = TestSandbox::start();
    for kind in ["rcs", "rcs+sms", "rcs+viber+sms"] {
        for (lifetime, is_valid) in [
            (Value::Null, true),
            (json!(60), true),
            (json!(172_800), true),
            (json!(59), false),
            (json!(0), false),
            (json!(-1), false),
            (json!("60"), false),
        ] {
            let operation = with_changes(&example(kind, 1), json!({"rcs_lifetime": lifetime}));
            assert_eq!(sandbox.item(&operation)["success"], is_valid, "{operation}");
        }
    }
}

/// Gateway contract 8: the channels of a pipeline must not repeat.
#[test]
fn pipeline_with_a_repeated_channel_is_refused() {
    let sandbox = TestSandbox::start();
    for (channels, is_valid) in [
        (json!(["sms"]), true),
        (json!(["sms", "viber"]), true),
        (json!(["sms", "viber", "sms"]), false),
        (json!(["sms", "sms"]), false),
        (json!([]), false),
        (json!(["fax"]), false),
        (json!("sms"), false),
    ] {
        let operation = with_changes(&example("pipeline", 1), json!({"pipeline": channels}));
        assert_eq!(sandbox.item(&operation)["success"], is_valid, "{operation}");
    }
}
