//! Robustness of the sandbox: any request gets an answer, even random bytes.

use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

use super::bench::Bench;
use super::contract_pairs;
use crate::request::KINDS;
use crate::scenario;
use campaign_core::domain::{Amount, Endpoint};

/// Posts a body to a fresh platform. Returns the answer and the journal.
fn post(endpoint: Endpoint, body: &[u8]) -> (Value, Vec<Value>) {
    let mut bench = Bench::new();
    let answer = bench.post(endpoint, body);
    (answer, bench.journal_lines())
}

fn post_operations(endpoint: Endpoint, data: &[Value]) -> (Value, Vec<Value>) {
    post(endpoint, json!({"auth": "sandbox", "data": data}).to_string().as_bytes())
}

fn any_scalar() -> impl Strategy<Value = Value> {
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
    any_scalar().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_field(), inner), 0..5).prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn any_field() -> impl Strategy<Value = String> {
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
        "name",
        "template",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,6}"]
}

/// An operation of a known type with arbitrary fields.
fn any_operation() -> impl Strategy<Value = Value> {
    let fields = prop::collection::vec((any_field(), any_json()), 0..10);
    (prop::sample::select(KINDS.to_vec()), fields).prop_map(|((_, kind), fields)| {
        let mut operation = Map::from_iter(fields);
        operation.insert("type".into(), kind.into());
        Value::Object(operation)
    })
}

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    prop_oneof![Just(Endpoint::Sync), Just(Endpoint::Async)]
}

/// The contract's requests.
static REQUESTS: LazyLock<Vec<(Endpoint, Value)>> = LazyLock::new(contract_pairs::contract_requests);

/// A mutation at an index of the body.
#[derive(Clone, Debug)]
enum Mutation {
    /// Replaces a byte.
    Byte(Index, u8),
    /// Ends the body at this index.
    Cut(Index),
    /// Appends a copy of the bytes from this index to the end.
    RepeatedTail(Index),
    /// Replaces a value, before the body is serialized.
    Replaced(Index, Value),
}

fn any_mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        1 => (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Mutation::Byte(place, byte)),
        1 => any::<Index>().prop_map(Mutation::Cut),
        1 => any::<Index>().prop_map(Mutation::RepeatedTail),
        6 => (any::<Index>(), any_json()).prop_map(|(place, value)| Mutation::Replaced(place, value)),
    ]
}

/// The values in a body's operations that contain no other values.
fn leaf_values(body: &mut Value) -> Vec<&mut Value> {
    let mut leaves = Vec::new();
    let mut open: Vec<_> = body["data"].as_array_mut().into_iter().flatten().collect();
    while let Some(value) = open.pop() {
        let holds_others = value.as_array().is_some_and(|items| !items.is_empty())
            || value.as_object().is_some_and(|fields| !fields.is_empty());
        if !holds_others {
            leaves.push(value);
            continue;
        }
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values_mut()),
            _ => {}
        }
    }
    leaves
}

/// Applies the mutations to a request and returns the resulting bytes, which might not be valid JSON.
fn apply_mutations(mut body: Value, mutations: &[Mutation]) -> Vec<u8> {
    for mutation in mutations {
        if let Mutation::Replaced(place, value) = mutation {
            let mut values = leaf_values(&mut body);
            if !values.is_empty() {
                let place = place.index(values.len());
                *values[place] = value.clone();
            }
        }
    }
    let mut bytes = body.to_string().into_bytes();
    for mutation in mutations {
        let place = |place: &Index| if bytes.is_empty() { 0 } else { place.index(bytes.len()) };
        match mutation {
            Mutation::Byte(at, byte) => {
                let at = place(at);
                bytes.splice(at..(at + 1).min(bytes.len()), [*byte]);
            }
            Mutation::Cut(at) => bytes.truncate(place(at)),
            Mutation::RepeatedTail(at) => bytes.extend_from_within(place(at)..),
            Mutation::Replaced(..) => {}
        }
    }
    bytes
}

/// An upper bound on the messages that a body can create: each operation begins with `{`, and each further number
/// follows a comma.
fn max_messages(body: &[u8]) -> usize {
    body.iter().filter(|byte| b"{,".contains(byte)).count()
}

proptest! {
    #[test]
    fn mutated_request_gets_an_answer(
        mutations in prop::collection::vec(any_mutation(), 1..4),
        requests in prop::collection::vec(any::<Index>(), 1..4),
    ) {
        let mut bench = Bench::new();
        let mut max = 0;
        for request in requests {
            let (endpoint, body) = request.get(&REQUESTS).clone();
            let body = apply_mutations(body, &mutations);
            prop_assert!(bench.post(endpoint, &body)["success"].is_boolean());
            max += max_messages(&body);
        }
        let before = bench.platform.messages.len();
        prop_assert!(before as usize <= max && bench.platform.plans.all.len() <= max + 1);
        // Every accepted message reaches a final status, and each of its webhooks is JSON with a status.
        bench.advance_millis(1_000_000_000);
        prop_assert!(bench.take_webhooks().iter().all(|(_, _, body)| body["status"].is_string()));
        prop_assert_eq!(bench.platform.messages.len(), before);
        prop_assert_eq!(bench.platform.next_due(), None);
        let funds = &bench.platform.counts().funds;
        prop_assert_eq!(funds.reserved, Amount::default());
        prop_assert_eq!(funds.spent.saturating_add(funds.balance), scenario::AccountSettings::default().balance);
    }

    #[test]
    fn arbitrary_bytes_get_an_answer(endpoint in any_endpoint(), body: Vec<u8>) {
        prop_assert!(post(endpoint, &body).0["success"].is_boolean());
    }

    #[test]
    fn arbitrary_json_gets_an_answer(endpoint in any_endpoint(), body in any_json()) {
        prop_assert!(post(endpoint, body.to_string().as_bytes()).0["success"].is_boolean());
    }

    #[test]
    fn answer_has_one_item_per_operation(data in prop::collection::vec(any_operation(), 1..6)) {
        let (answer, journal) = post_operations(Endpoint::Sync, &data);
        prop_assert_eq!(&answer["success"], &json!(true));
        let items = answer["data"].as_array().expect("items");
        prop_assert_eq!(items.len(), data.len());
        for (index, item) in items.iter().enumerate() {
            prop_assert_eq!(item["success"] == true, item.get("error").is_none());
            // The journal and the items of the answer agree.
            let mut lines = journal.iter().filter(|line| line["index"] == index).peekable();
            prop_assert!(lines.peek().is_some());
            prop_assert!(lines.all(|line| line["success"] == item["success"] && line["error"] == item["error"]));
        }
    }

    #[test]
    fn async_endpoint_always_returns_a_request_id(
        data in prop::collection::vec(any_operation(), 1..6),
    ) {
        let (answer, journal) = post_operations(Endpoint::Async, &data);
        prop_assert_eq!(&answer, &json!({"success": true, "request_id": &journal[0]["request_id"]}));
    }
}

#[test]
fn deeply_nested_json_gets_an_answer() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let body = open.repeat(200_000) + "1" + &close.repeat(200_000);
        assert_eq!(post(Endpoint::Sync, body.as_bytes()).0["success"], false);
    }
}
