//! Tests that compare the reader of answers with a second reader, which shares no code with the first.
//!
//! `reference` implements the contract literally over plain JSON values, without regard for speed. Both read hundreds
//! of constructed answers, answers cut at every byte, and random answers.

mod combinations;
mod reference;

use proptest::prelude::*;

use super::HttpExchange;
use super::read_tests::{envelope, outcome_letters, rules, signal_word};
use super::reply::read_reply;
use campaign_core::domain::{Endpoint, OperationKind};

/// A request: its endpoint, and the kind and number of its operations.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    endpoint: Endpoint,
    kind: OperationKind,
    count: u32,
}

impl SentRequest {
    /// A request with `count` messages to the synchronous endpoint.
    fn messages(count: u32) -> Self {
        Self { endpoint: Endpoint::Sync, kind: OperationKind::Sms, count }
    }

    /// Reads an answer with the real reader. Returns a letter per outcome, and the name of the signal.
    fn read_answer(self, status: u16, body: &[u8]) -> (String, &'static str) {
        let exchange = HttpExchange::Answer { status, retry_after: None, body: body.to_vec() };
        let reply = read_reply(&rules(), self.endpoint, &envelope(self.kind, self.count), &exchange);
        (outcome_letters(&reply), signal_word(&reply))
    }
}

/// Any JSON value, built from words and member names that occur in answers.
fn any_value() -> impl Strategy<Value = String> {
    let words = [
        "true",
        "false",
        "null",
        "1",
        "0",
        "-1",
        "7.0",
        "101",
        "102",
        "103",
        "104",
        r#""101""#,
        r#""102""#,
        "101.0",
        r#""""#,
        r#""Access denied""#,
        r#""No route""#,
        r#""Operator not supported""#,
        r#""Not enough money""#,
        "380501234500",
        "380501234501",
        "1e300",
        "18446744073709551617",
    ];
    let leaf = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
    let names = ["success", "error", "data", "id", "msg_id", "request_id", "phone", "parts", r"msg\u005fid", "x"];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let member = (prop::sample::select(names.to_vec()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..5).prop_map(|members| {
                let members: Vec<String> =
                    members.into_iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// A valid or almost valid item.
fn any_item() -> impl Strategy<Value = String> {
    let success = prop::sample::select(vec!["true", "true", "true", "false", "1"]);
    let id = prop::sample::select(vec!["101", "102", r#""101""#, "102.0", "null", "999"]);
    (success, id, any_value()).prop_map(|(success, id, msg_id)| {
        format!(r#"{{"success":{success},"error":"No route","data":{{"id":{id},"msg_id":{msg_id}}}}}"#)
    })
}

fn any_answer() -> impl Strategy<Value = String> {
    let items = prop::collection::vec(prop_oneof![3 => any_item(), 1 => any_value()], 0..4);
    let top = prop::sample::select(vec!["true", "true", "false", "1"]);
    prop_oneof![
        4 => (top.clone(), items).prop_map(|(success, items)| {
            format!(r#"{{"success":{success},"data":[{}]}}"#, items.join(","))
        }),
        2 => (top, any_value(), any_value()).prop_map(|(success, error, data)| {
            format!(r#"{{"success":{success},"error":{error},"request_id":{error},"data":{data}}}"#)
        }),
        1 => any_value(),
    ]
}

/// A change at one position: a byte is replaced, inserted or removed, or the rest is cut off.
///
/// The values are the position, the kind and the new byte. Kind 0 replaces a byte, 1 inserts a byte, and 2 cuts off the
/// rest. Without a new byte, kinds 0 and 1 remove a byte.
fn any_change() -> impl Strategy<Value = (usize, u8, Option<u8>)> {
    let bytes = prop_oneof![2 => prop::sample::select(b"{}[],:\"0179tf n\\".to_vec()), 1 => any::<u8>()];
    (any::<usize>(), 0_u8..3, prop::option::of(bytes))
}

fn apply_changes(body: String, changes: Vec<(usize, u8, Option<u8>)>) -> Vec<u8> {
    let mut body = body.into_bytes();
    for (position, kind, byte) in changes {
        let position = position % (body.len() + 1);
        match (kind, byte) {
            (0, Some(byte)) if position < body.len() => body[position] = byte,
            (1, Some(byte)) => body.insert(position, byte),
            (2, _) => body.truncate(position),
            _ if position < body.len() => drop(body.remove(position)),
            _ => {}
        }
    }
    body
}

fn any_request() -> impl Strategy<Value = SentRequest> {
    let kinds = [
        (Endpoint::Sync, OperationKind::Sms),
        (Endpoint::Sync, OperationKind::Hlr),
        (Endpoint::Sync, OperationKind::CallOtp),
        (Endpoint::Async, OperationKind::Viber),
    ];
    (prop::sample::select(kinds.to_vec()), 1_u32..4).prop_map(|((endpoint, kind), count)| SentRequest {
        endpoint,
        kind,
        count,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn reader_claims_no_outcome_without_proof(
        sent in any_request(),
        body in any_answer(),
        changes in prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(any_change(), 1..4)],
    ) {
        let body = apply_changes(body, changes);
        prop_assume!(!reference::has_number_out_of_range(&body));
        let (letters, _) = sent.read_answer(200, &body);
        let (proven, _) = reference::judge(sent, 200, &body);
        prop_assert_eq!(letters.len(), sent.count as usize);
        for (claimed, proven) in letters.chars().zip(proven.chars()) {
            let body = String::from_utf8_lossy(&body);
            prop_assert!(claimed == '?' || claimed == proven, "{:?}: {} is claimed, {} proven, by {}", sent, claimed, proven, body);
        }
    }
}

#[test]
fn truncated_answer_proves_nothing() {
    let message = r#"{"success":true,"data":{"id":101,"msg_id":7,"data":1,"parts":1}}"#;
    let body = r#"{"data":{"msg_id":"8","id":"102"},"error":null,"success":true}"#;
    let lookup = r#"{"success":true,"data":{"phone":380501234500,"status":"DELIVERED"}}"#;
    let call = r#"{"success":true,"data":{"code":"0042","price":0.5}}"#;
    let listed = |items: &str| format!(r#"{{"success":true,"data":[{items}]}}"#);
    let request = |endpoint, kind, count| SentRequest { endpoint, kind, count };
    let table = [
        (request(Endpoint::Sync, OperationKind::Sms, 2), listed(&format!("{message},{body}")), "aa"),
        (request(Endpoint::Sync, OperationKind::Hlr, 1), listed(lookup), "a"),
        (request(Endpoint::Sync, OperationKind::CallOtp, 1), listed(call), "a"),
        (
            request(Endpoint::Sync, OperationKind::Sms, 1),
            r#"{"success":false,"error":"Access denied"}"#.to_owned(),
            "n",
        ),
        (
            request(Endpoint::Async, OperationKind::Viber, 2),
            r#"{"success":true,"request_id":"cf-ray-1"}"#.to_owned(),
            "qq",
        ),
    ];
    for (sent, body, whole) in table {
        assert_eq!(sent.read_answer(200, body.as_bytes()).0, whole, "{body}");
        for cut in 0..body.len() {
            let (letters, _) = sent.read_answer(200, &body.as_bytes()[..cut]);
            assert_eq!(letters, "?".repeat(whole.len()), "{}", &body[..cut]);
        }
        for start in 1..body.len() {
            let (letters, _) = sent.read_answer(200, &body.as_bytes()[start..]);
            assert_eq!(letters, "?".repeat(whole.len()), "{}", &body[start..]);
        }
    }
}
