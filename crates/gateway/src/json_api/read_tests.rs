//! Tests of the outcomes that an answer proves, one per rule.

use std::time::Duration;

use super::HttpExchange;
use super::reply::{AnswerRules, read_reply};
use crate::{EncodedOperation, Envelope, GatewayReply, Signal, StopCause};
use campaign_core::domain::{Endpoint, GatewayMessageId, MessageId, OperationKind, OperationOutcome, Phone, Row};

/// An envelope of `count` operations with the identifiers 101, 102, …
pub(super) fn envelope(kind: OperationKind, count: u32) -> Envelope {
    let operation = |index: u32| EncodedOperation {
        row: Row::new(index + 2),
        id: MessageId::new(u64::from(index) + 101).unwrap(),
        phone: Phone::new(380_501_234_500 + u64::from(index)).unwrap(),
        kind,
        chain: kind.into(),
        digest: [0; 8],
        json: Vec::new(),
        cost: None,
        leave_before: None,
        repeats: false,
    };
    Envelope::new((0..count).map(operation).collect()).unwrap()
}

pub(super) fn rules() -> AnswerRules {
    AnswerRules { trust_status: vec![503, 520], fatal_errors: vec!["Not enough money".to_owned()] }
}

fn read_exchange(exchange: &HttpExchange) -> GatewayReply {
    read_reply(&rules(), Endpoint::Sync, &envelope(OperationKind::Sms, 2), exchange)
}

fn http_answer(status: u16, body: &str) -> HttpExchange {
    HttpExchange::Answer { status, retry_after: None, body: body.as_bytes().to_vec() }
}

fn read_sync(count: u32, body: &str) -> GatewayReply {
    read_reply(&rules(), Endpoint::Sync, &envelope(OperationKind::Sms, count), &http_answer(200, body))
}

fn read_async(body: &str) -> GatewayReply {
    read_reply(&rules(), Endpoint::Async, &envelope(OperationKind::Viber, 2), &http_answer(200, body))
}

/// One letter per outcome: `a` for accepted, `q` for queued, `r` for rejected, `n` for not sent, and `?` for in doubt.
pub(super) fn outcome_letters(reply: &GatewayReply) -> String {
    reply
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            OperationOutcome::Accepted { .. } => 'a',
            OperationOutcome::Queued { .. } => 'q',
            OperationOutcome::Rejected { .. } => 'r',
            OperationOutcome::NotSent { .. } => 'n',
            OperationOutcome::InDoubt { .. } => '?',
        })
        .collect()
}

pub(super) fn signal_word(reply: &GatewayReply) -> &'static str {
    match reply.signal {
        Signal::Go => "go",
        Signal::Warn(_) => "warn",
        Signal::Unreachable(_) => "unreachable",
        Signal::Broken(_) => "broken",
        Signal::Strange(_) => "strange",
        Signal::Slow { .. } => "slow",
        Signal::Split(_) => "split",
        Signal::Stop(StopCause::KeyRefused, _) => "stop: key",
        Signal::Stop(StopCause::Connection, _) => "stop: connection",
        Signal::Stop(StopCause::EnvelopeRefused, _) => "stop: envelope",
        Signal::Stop(StopCause::OffContract, _) => "stop: off contract",
        Signal::Stop(StopCause::FatalError, _) => "stop: fatal",
    }
}

fn assert_reply(reply: &GatewayReply, outcomes: &str, signal: &str) {
    assert_eq!((outcome_letters(reply).as_str(), signal_word(reply)), (outcomes, signal), "{reply:?}");
}

#[test]
fn failed_connection_proves_that_nothing_was_sent() {
    assert_reply(&read_exchange(&HttpExchange::NotConnected("refused".into())), "nn", "unreachable");
}

#[test]
fn failed_handshake_proves_that_nothing_was_sent_and_stops() {
    assert_reply(&read_exchange(&HttpExchange::Handshake("expired".into())), "nn", "stop: connection");
}

#[test]
fn timeout_and_broken_connection_prove_nothing() {
    assert_reply(&read_exchange(&HttpExchange::TimedOut(Duration::from_secs(30))), "??", "broken");
    assert_reply(&read_exchange(&HttpExchange::Broken("reset".into())), "??", "broken");
}

#[test]
fn redirect_leaves_rows_in_doubt_and_stops() {
    for code in [301, 302, 303, 307, 308] {
        assert_reply(&read_exchange(&http_answer(code, "")), "??", "stop: connection");
    }
}

#[test]
fn slow_down_leaves_rows_in_doubt_unless_status_is_trusted() {
    assert_reply(&read_exchange(&http_answer(429, "")), "??", "slow");
    assert_reply(&read_exchange(&http_answer(503, "")), "nn", "slow");
    let slow_down = |seconds| HttpExchange::Answer {
        status: 429,
        retry_after: Some(Duration::from_secs(seconds)),
        body: Vec::new(),
    };
    assert_reply(&read_exchange(&slow_down(600)), "??", "slow");
    assert_reply(&read_exchange(&slow_down(601)), "??", "stop: off contract");
}

#[test]
fn other_statuses_and_non_json_bodies_are_strange() {
    for code in [201, 400, 401, 403, 404, 413, 500, 502, 504] {
        assert_reply(&read_exchange(&http_answer(code, r#"{"success":true,"data":[]}"#)), "??", "strange");
    }
    for body in ["", "<html>", "{", "[]", "null", "\u{feff}{}", r#"{"success":true}x"#] {
        assert_reply(&read_exchange(&http_answer(200, body)), "??", "strange");
    }
    assert_reply(&read_exchange(&HttpExchange::TooLong { status: 200 }), "??", "strange");
    assert_reply(&read_exchange(&http_answer(520, "")), "nn", "unreachable");
}

#[test]
fn rejected_key_proves_that_nothing_was_sent_and_stops_the_run() {
    assert_reply(&read_sync(2, r#"{"success":false,"error":"Access denied"}"#), "nn", "stop: key");
}

#[test]
fn unsupported_operator_splits_the_envelope() {
    let body = r#"{"success":false,"error":"Operator not supported"}"#;
    let read_calls =
        |count| read_reply(&rules(), Endpoint::Sync, &envelope(OperationKind::CallOtp, count), &http_answer(200, body));
    assert_reply(&read_calls(2), "nn", "split");
    assert_reply(&read_calls(1), "r", "go");
    assert_reply(&read_sync(2, body), "nn", "stop: envelope");
}

#[test]
fn rejected_envelope_proves_nothing_was_sent_and_stops() {
    for error in ["Invalid message type", "Something new", "429"] {
        assert_reply(&read_sync(2, &format!(r#"{{"success":false,"error":"{error}"}}"#)), "nn", "stop: envelope");
    }
}

#[test]
fn rejection_without_error_or_with_msg_id_is_in_doubt() {
    for body in [
        r#"{"success":false}"#,
        r#"{"success":false,"error":""}"#,
        r#"{"success":false,"error":null}"#,
        r#"{"success":false,"error":"x","msg_id":1}"#,
        r#"{"success":false,"error":"x","data":[{"success":true,"data":{"id":101,"msg_id":7}}]}"#,
    ] {
        assert_reply(&read_sync(2, body), "??", "stop: off contract");
    }
}

#[test]
fn items_in_order_are_matched_by_position() {
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"id":101,"msg_id":7,"parts":2,"data":1}},
        {"success":true,"data":{"msg_id":"8"}}]}"#;
    let reply = read_sync(2, body);
    assert_reply(&reply, "aa", "go");
    let accepted = |msg_id, parts| OperationOutcome::Accepted { msg_id: Some(msg_id), parts, answer: None };
    assert_eq!(reply.outcomes[0], accepted(GatewayMessageId::Number(7), Some(2)));
    assert_eq!(reply.outcomes[1], accepted(GatewayMessageId::Text("8".into()), None));
}

#[test]
fn ids_match_in_any_notation_of_a_whole_number() {
    for id in ["101", r#""101""#, "101.0", "1.01e2"] {
        let body = format!(r#"{{"success":true,"data":[{{"success":true,"data":{{"id":{id},"msg_id":7}}}}]}}"#);
        assert_reply(&read_sync(1, &body), "a", "go");
    }
}

#[test]
fn failed_item_is_rejected_with_the_gateway_text() {
    let body = r#"{"success":true,"data":[
        {"success":false,"error":"Error in Alpha-name","data":{"id":101}},
        {"success":true,"data":{"id":102,"msg_id":8}}]}"#;
    let reply = read_sync(2, body);
    assert_reply(&reply, "ra", "go");
    assert_eq!(reply.outcomes[0], OperationOutcome::Rejected { error: "Error in Alpha-name".into() });
}

#[test]
fn reordered_items_are_matched_by_id() {
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"id":102,"msg_id":8}},
        {"success":true,"data":{"id":101,"msg_id":7}}]}"#;
    let reply = read_sync(2, body);
    assert_reply(&reply, "aa", "warn");
    assert!(matches!(&reply.outcomes[0], OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(7)), .. }));
    let without_id = r#"{"success":true,"data":[
        {"success":true,"data":{"id":102,"msg_id":8}},
        {"success":false,"error":"No route"}]}"#;
    assert_reply(&read_sync(2, without_id), "?a", "warn");
}

#[test]
fn identified_acceptances_survive_a_wrong_item_count() {
    let item = r#"{"success":true,"data":{"id":102,"msg_id":8}}"#;
    assert_reply(&read_sync(3, &format!(r#"{{"success":true,"data":[{item}]}}"#)), "?a?", "stop: off contract");
    let anonymous = r#"{"success":true,"data":{"msg_id":8}}"#;
    assert_reply(&read_sync(2, &format!(r#"{{"success":true,"data":[{anonymous}]}}"#)), "??", "stop: off contract");
    let failed = r#"{"success":false,"error":"No route","data":{"id":101}}"#;
    assert_reply(
        &read_sync(2, &format!(r#"{{"success":true,"data":[{failed},{item},{anonymous}]}}"#)),
        "?a",
        "stop: off contract",
    );
    assert_reply(&read_sync(2, r#"{"success":true,"data":[]}"#), "??", "stop: off contract");
}

#[test]
fn foreign_or_repeated_ids_leave_rows_in_doubt() {
    let foreign = r#"{"success":true,"data":[
        {"success":true,"data":{"id":999,"msg_id":8}},
        {"success":true,"data":{"id":102,"msg_id":7}}]}"#;
    let reply = read_sync(2, foreign);
    assert_reply(&reply, "?a", "stop: off contract");
    assert!(reply.evidence.is_some_and(|body| body.contains("999")));
    let repeated = foreign.replace("999", "102");
    assert_reply(&read_sync(2, &repeated), "??", "stop: off contract");
    let unreadable = foreign.replace("999", r#""x1""#);
    assert_reply(&read_sync(2, &unreadable), "?a", "stop: off contract");
}

#[test]
fn success_without_msg_id_is_in_doubt() {
    for msg_id in ["null", r#""""#, "true", "{}"] {
        let body = format!(
            r#"{{"success":true,"data":[{{"success":true,"data":{{"id":101,"msg_id":{msg_id}}}}},
               {{"success":true,"data":{{"id":102,"msg_id":8}}}}]}}"#
        );
        assert_reply(&read_sync(2, &body), "?a", "warn");
    }
    assert_reply(&read_sync(1, r#"{"success":true,"data":[{"success":true}]}"#), "?", "warn");
}

#[test]
fn contradictory_item_is_in_doubt() {
    let item = |success: &str| {
        format!(r#"{{"success":true,"data":[{{"success":{success},"data":{{"id":101,"msg_id":7}}}}]}}"#)
    };
    for success in ["false", "1", r#""true""#, "null"] {
        assert_reply(&read_sync(1, &item(success)), "?", "warn");
    }
    assert_reply(&read_sync(1, r#"{"success":true,"data":[null]}"#), "?", "warn");
}

#[test]
fn item_with_a_repeated_member_matches_no_message() {
    let other = r#"{"success":true,"data":{"id":102,"msg_id":7}}"#;
    let repeated = [
        r#"{"success":true,"data":{"id":101,"id":102,"msg_id":7}}"#,
        r#"{"success":true,"data":{"id":101,"msg_id":7,"msg_id":null}}"#,
        r#"{"success":false,"data":{"id":101,"msg_id":7,"msg_id":null}}"#,
        r#"{"success":true,"success":false,"data":{"id":101}}"#,
        r#"{"success":false,"data":{"msg_id":7},"data":{}}"#,
    ];
    for item in repeated {
        assert_reply(
            &read_sync(2, &format!(r#"{{"success":true,"data":[{item},{other}]}}"#)),
            "??",
            "stop: off contract",
        );
    }
}

#[test]
fn non_boolean_success_is_in_doubt() {
    for success in ["1", r#""true""#, "null", "0", "{}"] {
        let body = format!(r#"{{"success":{success},"data":[{{"success":true,"data":{{"id":101,"msg_id":7}}}}]}}"#);
        assert_reply(&read_sync(1, &body), "?", "warn");
    }
    assert_reply(&read_sync(1, "{}"), "?", "warn");
}

#[test]
fn success_without_data_is_in_doubt_and_stops() {
    for data in ["null", "{}", "7"] {
        assert_reply(&read_sync(2, &format!(r#"{{"success":true,"data":{data}}}"#)), "??", "stop: off contract");
    }
    assert_reply(&read_sync(2, r#"{"success":true}"#), "??", "stop: off contract");
}

#[test]
fn fatal_error_keeps_the_outcomes_and_stops() {
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"id":101,"msg_id":7}},
        {"success":false,"error":"Not enough money","data":{"id":102}}]}"#;
    assert_reply(&read_sync(2, body), "ar", "stop: fatal");
}

#[test]
fn lookup_is_accepted_with_its_answer() {
    let lookup =
        |body: &str| read_reply(&rules(), Endpoint::Sync, &envelope(OperationKind::Hlr, 2), &http_answer(200, body));
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"phone":380501234500,"status":"DELIVERED"}},
        {"success":true,"data":{"mccmnc":25501}}]}"#;
    let reply = lookup(body);
    assert_reply(&reply, "aa", "go");
    assert!(
        matches!(&reply.outcomes[1], OperationOutcome::Accepted { msg_id: None, answer: Some(answer), .. } if answer == r#"{"mccmnc":25501}"#)
    );
    let foreign = body.replace("380501234500", "380509999999");
    assert_reply(&lookup(&foreign), "??", "stop: off contract");
    let empty = r#"{"success":true,"data":[{"success":true,"data":[]},{"success":true}]}"#;
    assert_reply(&lookup(empty), "??", "warn");
}

#[test]
fn asynchronous_answer_queues_all_or_leaves_all_in_doubt() {
    let reply = read_async(r#"{"success":true,"request_id":"cf-ray-1"}"#);
    assert_reply(&reply, "qq", "go");
    assert_eq!(reply.outcomes[0], OperationOutcome::Queued { request_id: "cf-ray-1".into() });
    for body in [
        r#"{"success":true}"#,
        r#"{"success":true,"request_id":""}"#,
        r#"{"success":true,"request_id":false}"#,
        r#"{"success":true,"request_id":{}}"#,
        r#"{"success":true,"request_id":null}"#,
    ] {
        assert_reply(&read_async(body), "??", "warn");
    }
    assert_reply(&read_async(r#"{"success":false,"error":"Access denied"}"#), "nn", "stop: key");
}

mod property_tests {
    use proptest::prelude::*;

    use super::*;

    /// A result item: mostly plain, sometimes unusual.
    fn item_json() -> impl Strategy<Value = String> {
        let choose = |usual: &'static str, unusual: &'static [&'static str]| {
            let unusual = prop::sample::select(unusual);
            prop_oneof![8 => Just(usual), 1 => unusual]
        };
        let success = choose("true", &["false", "1", "null", r#""true""#]);
        let id = prop_oneof![8 => (101_u64..104).prop_map(|id| id.to_string()), 1 => Just(r#""101""#.to_owned())];
        let msg_id = choose("7", &["-7", r#""7""#, r#""a""#, "7.0", "7e0", "null", "99999999999999999999"]);
        let parts = choose("1", &["null", r#""2""#, "-1", "1.0", "4294967296"]);
        let member = choose("", &[r#","phone":380501234500"#, r#","phone":null"#, r#","id":101"#, r#","x":{"id":1}"#]);
        let error = choose("", &[r#","error":null"#, r#","error":"No route""#, r#","success":true"#]);
        (success, id, msg_id, parts, member, error).prop_map(|(success, id, msg_id, parts, member, error)| {
            let payload = format!(r#"{{"id":{id},"msg_id":{msg_id},"parts":{parts}{member}}}"#);
            format!(r#"{{"success":{success},"data":{payload}{error}}}"#)
        })
    }

    proptest! {
        #[test]
        fn any_body_gives_one_outcome_per_operation(body: Vec<u8>, count in 1_u32..5) {
            let exchange = HttpExchange::Answer { status: 200, retry_after: None, body };
            for endpoint in [Endpoint::Sync, Endpoint::Async] {
                let reply = read_reply(&rules(), endpoint, &envelope(OperationKind::Sms, count), &exchange);
                prop_assert_eq!(reply.outcomes.len(), count as usize);
            }
        }

        #[test]
        fn fast_path_reads_answers_like_the_general_path(
            items in prop::collection::vec(item_json(), 1..4),
            members in prop::sample::select(vec!["", r#","error":null"#, r#","success":true"#, r#","request_id":"r""#]),
        ) {
            let listed = items.join(",");
            let body = format!(r#"{{"success":true,"data":[{listed}]{members}}}"#);
            // A second list in the body excludes the fast path.
            let slow_path_body = format!(r#"{{"success":true,"data":[{listed}]{members},"extra":[]}}"#);
            let count = items.len() as u32;
            let (reply, expected) = (read_sync(count, &body), read_sync(count, &slow_path_body));
            prop_assert_eq!(reply.outcomes, expected.outcomes, "{}", body);
            prop_assert_eq!(reply.signal, expected.signal, "{}", body);
            prop_assert_eq!(reply.deviations, expected.deviations, "{}", body);
        }

        #[test]
        fn truncated_answer_leaves_all_rows_in_doubt(cut in 0_usize..130) {
            let body = r#"{"success":true,"data":[{"success":true,"data":{"id":101,"msg_id":7,"parts":1,"data":1}},{"success":false,"error":"No route"}]}"#;
            let reply = read_sync(2, &body[..cut.min(body.len() - 1)]);
            prop_assert_eq!(outcome_letters(&reply), "??");
        }
    }
}
