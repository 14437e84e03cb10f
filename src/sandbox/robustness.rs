//! The promise that any request gets an answer, whatever its bytes are.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use super::kind::Kind;
use crate::domain::Endpoint;

/// The answer of a fresh platform, with its journal.
fn post(endpoint: Endpoint, body: &[u8]) -> (Value, Vec<Value>) {
    let mut desk = Desk::new();
    let answer = desk.post(endpoint, body);
    (answer, desk.journal())
}

fn ask(endpoint: Endpoint, data: &[Value]) -> (Value, Vec<Value>) {
    post(endpoint, json!({"auth": "sandbox", "data": data}).to_string().as_bytes())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            json!(380_501_234_567_u64),
            json!("380501234567,380671234567"),
            json!("OlenaCo"),
            json!("https://a.example/?b"),
            json!("text"),
            json!("carousel"),
            json!("1234"),
        ]),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((field(), inner), 0..5).prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn field() -> impl Strategy<Value = String> {
    let known = [
        "id",
        "msg_id",
        "phone",
        "message",
        "signature",
        "type",
        "hook",
        "pipeline",
        "sms",
        "viber",
        "voice",
        "telegram",
        "whatsapp",
        "rcs",
        "short_link",
        "sms_message",
        "sms_signature",
        "viber_type",
        "viber_message",
        "viber_carousel",
        "viber_signature",
        "rcs_message",
        "rcs_lifetime",
        "image",
        "auth",
        "data",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,6}"]
}

/// An operation of a known type with anything in its fields.
fn operation() -> impl Strategy<Value = Value> {
    let fields = prop::collection::vec((field(), any_json()), 0..10);
    (prop::sample::select(Kind::ALL.to_vec()), fields).prop_map(|(kind, fields)| {
        let mut operation = Map::from_iter(fields);
        operation.insert("type".into(), kind.name().into());
        Value::Object(operation)
    })
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    prop_oneof![Just(Endpoint::Sync), Just(Endpoint::Async)]
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(endpoint in endpoint(), body: Vec<u8>) {
        prop_assert!(post(endpoint, &body).0["success"].is_boolean());
    }

    #[test]
    fn any_json_gets_an_answer(endpoint in endpoint(), body in any_json()) {
        prop_assert!(post(endpoint, body.to_string().as_bytes()).0["success"].is_boolean());
    }

    #[test]
    fn as_many_items_come_back_as_were_sent(data in prop::collection::vec(operation(), 1..6)) {
        let (answer, journal) = ask(Endpoint::Sync, &data);
        prop_assert_eq!(&answer["success"], &json!(true));
        let items = answer["data"].as_array().expect("items");
        prop_assert_eq!(items.len(), data.len());
        for (index, item) in items.iter().enumerate() {
            prop_assert_eq!(item["success"] == true, item.get("error").is_none());
            // The journal says of each operation what its item says.
            let mut lines = journal.iter().filter(|line| line["index"] == index).peekable();
            prop_assert!(lines.peek().is_some());
            prop_assert!(lines.all(|line| line["success"] == item["success"] && line["error"] == item["error"]));
        }
    }

    #[test]
    fn the_asynchronous_endpoint_answers_every_envelope_with_a_request_id(
        data in prop::collection::vec(operation(), 1..6),
    ) {
        let (answer, journal) = ask(Endpoint::Async, &data);
        prop_assert_eq!(&answer, &json!({"success": true, "request_id": &journal[0]["request_id"]}));
    }
}

#[test]
fn any_depth_gets_an_answer() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let body = open.repeat(200_000) + "1" + &close.repeat(200_000);
        assert_eq!(post(Endpoint::Sync, body.as_bytes()).0["success"], false);
    }
}
