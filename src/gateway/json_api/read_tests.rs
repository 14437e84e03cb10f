//! One test per line of what an answer proves.

use std::time::Duration;

use super::exchange::Exchange;
use super::read::{Rules, read};
use crate::domain::{Endpoint, MessageId, MsgId, OperationKind, Outcome, Phone, Row};
use crate::gateway::{EncodedOperation, Envelope, Reply, Signal, StopCause};

/// The identifiers are 101, 102, …
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
        leave_by: None,
        repeats: false,
    };
    Envelope::new((0..count).map(operation).collect()).unwrap()
}

pub(super) fn rules() -> Rules {
    Rules { trust_status: vec![503, 520], fatal_errors: vec!["Not enough money".to_owned()] }
}

fn seen(exchange: &Exchange) -> Reply {
    read(&rules(), Endpoint::Sync, &envelope(OperationKind::Sms, 2), exchange)
}

fn status(status: u16, body: &str) -> Exchange {
    Exchange::Answer { status, retry_after: None, body: body.as_bytes().to_vec() }
}

fn sync(count: u32, body: &str) -> Reply {
    read(&rules(), Endpoint::Sync, &envelope(OperationKind::Sms, count), &status(200, body))
}

fn queued(body: &str) -> Reply {
    read(&rules(), Endpoint::Async, &envelope(OperationKind::Viber, 2), &status(200, body))
}

/// One letter per outcome: accepted, queued, rejected, not sent, doubt.
pub(super) fn letters(reply: &Reply) -> String {
    reply
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Accepted { .. } => 'a',
            Outcome::Queued { .. } => 'q',
            Outcome::Rejected { .. } => 'r',
            Outcome::NotSent { .. } => 'n',
            Outcome::InDoubt { .. } => '?',
        })
        .collect()
}

pub(super) fn word(reply: &Reply) -> &'static str {
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

fn check(reply: &Reply, outcomes: &str, signal: &str) {
    assert_eq!((letters(reply).as_str(), word(reply)), (outcomes, signal), "{reply:?}");
}

#[test]
fn no_connection_proves_that_nothing_was_sent() {
    check(&seen(&Exchange::NotConnected("refused".into())), "nn", "unreachable");
}

#[test]
fn a_failed_handshake_proves_that_nothing_was_sent_and_stops() {
    check(&seen(&Exchange::Handshake("expired".into())), "nn", "stop: connection");
}

#[test]
fn silence_and_a_broken_connection_prove_nothing() {
    check(&seen(&Exchange::TimedOut(Duration::from_secs(30))), "??", "broken");
    check(&seen(&Exchange::Broken("reset".into())), "??", "broken");
}

#[test]
fn a_redirect_is_doubt_and_stops() {
    for code in [301, 302, 303, 307, 308] {
        check(&seen(&status(code, "")), "??", "stop: connection");
    }
}

#[test]
fn a_request_to_slow_down_is_doubt_unless_the_profile_trusts_the_status() {
    check(&seen(&status(429, "")), "??", "slow");
    check(&seen(&status(503, "")), "nn", "slow");
    let asked =
        |seconds| Exchange::Answer { status: 429, retry_after: Some(Duration::from_secs(seconds)), body: Vec::new() };
    check(&seen(&asked(600)), "??", "slow");
    check(&seen(&asked(601)), "??", "stop: off contract");
}

#[test]
fn other_statuses_and_bodies_that_are_no_json_are_strange() {
    for code in [201, 400, 401, 403, 404, 413, 500, 502, 504] {
        check(&seen(&status(code, r#"{"success":true,"data":[]}"#)), "??", "strange");
    }
    for body in ["", "<html>", "{", "[]", "null", "\u{feff}{}", r#"{"success":true}x"#] {
        check(&seen(&status(200, body)), "??", "strange");
    }
    check(&seen(&Exchange::TooLong { status: 200 }), "??", "strange");
    check(&seen(&status(520, "")), "nn", "unreachable");
}

#[test]
fn a_refused_key_proves_that_nothing_was_sent_and_stops() {
    check(&sync(2, r#"{"success":false,"error":"Access denied"}"#), "nn", "stop: key");
}

#[test]
fn an_unsupported_operator_is_found_by_halving_the_envelope() {
    let body = r#"{"success":false,"error":"Operator not supported"}"#;
    let calls = |count| read(&rules(), Endpoint::Sync, &envelope(OperationKind::CallOtp, count), &status(200, body));
    check(&calls(2), "nn", "split");
    check(&calls(1), "r", "go");
    check(&sync(2, body), "nn", "stop: envelope");
}

#[test]
fn any_other_refusal_of_the_envelope_proves_that_nothing_was_sent_and_stops() {
    for error in ["Invalid message type", "Something new", "429"] {
        check(&sync(2, &format!(r#"{{"success":false,"error":"{error}"}}"#)), "nn", "stop: envelope");
    }
}

#[test]
fn a_refusal_that_names_no_error_or_holds_a_msg_id_is_doubt() {
    for body in [
        r#"{"success":false}"#,
        r#"{"success":false,"error":""}"#,
        r#"{"success":false,"error":null}"#,
        r#"{"success":false,"error":"x","msg_id":1}"#,
        r#"{"success":false,"error":"x","data":[{"success":true,"data":{"id":101,"msg_id":7}}]}"#,
    ] {
        check(&sync(2, body), "??", "stop: off contract");
    }
}

#[test]
fn items_in_order_are_taken_by_position() {
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"id":101,"msg_id":7,"parts":2,"data":1}},
        {"success":true,"data":{"msg_id":"8"}}]}"#;
    let reply = sync(2, body);
    check(&reply, "aa", "go");
    let accepted = |msg_id, parts| Outcome::Accepted { msg_id: Some(msg_id), parts, answer: None };
    assert_eq!(reply.outcomes[0], accepted(MsgId::Number(7), Some(2)));
    assert_eq!(reply.outcomes[1], accepted(MsgId::Text("8".into()), None));
}

#[test]
fn ids_agree_in_any_spelling_of_a_whole_number() {
    for id in ["101", r#""101""#, "101.0", "1.01e2"] {
        let body = format!(r#"{{"success":true,"data":[{{"success":true,"data":{{"id":{id},"msg_id":7}}}}]}}"#);
        check(&sync(1, &body), "a", "go");
    }
}

#[test]
fn a_failed_item_is_rejected_with_the_gateways_words() {
    let body = r#"{"success":true,"data":[
        {"success":false,"error":"Error in Alpha-name","data":{"id":101}},
        {"success":true,"data":{"id":102,"msg_id":8}}]}"#;
    let reply = sync(2, body);
    check(&reply, "ra", "go");
    assert_eq!(reply.outcomes[0], Outcome::Rejected { error: "Error in Alpha-name".into() });
}

#[test]
fn items_in_another_order_are_taken_by_their_ids() {
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"id":102,"msg_id":8}},
        {"success":true,"data":{"id":101,"msg_id":7}}]}"#;
    let reply = sync(2, body);
    check(&reply, "aa", "warn");
    assert!(matches!(&reply.outcomes[0], Outcome::Accepted { msg_id: Some(MsgId::Number(7)), .. }));
    let unnamed = r#"{"success":true,"data":[
        {"success":true,"data":{"id":102,"msg_id":8}},
        {"success":false,"error":"No route"}]}"#;
    check(&sync(2, unnamed), "?a", "warn");
}

#[test]
fn a_wrong_number_of_items_proves_only_what_names_itself() {
    let item = r#"{"success":true,"data":{"id":102,"msg_id":8}}"#;
    check(&sync(3, &format!(r#"{{"success":true,"data":[{item}]}}"#)), "?a?", "stop: off contract");
    let anonymous = r#"{"success":true,"data":{"msg_id":8}}"#;
    check(&sync(2, &format!(r#"{{"success":true,"data":[{anonymous}]}}"#)), "??", "stop: off contract");
    let failed = r#"{"success":false,"error":"No route","data":{"id":101}}"#;
    check(&sync(2, &format!(r#"{{"success":true,"data":[{failed},{item},{anonymous}]}}"#)), "?a", "stop: off contract");
    check(&sync(2, r#"{"success":true,"data":[]}"#), "??", "stop: off contract");
}

#[test]
fn foreign_and_repeated_ids_leave_unmatched_rows_in_doubt_and_keep_the_body() {
    let foreign = r#"{"success":true,"data":[
        {"success":true,"data":{"id":999,"msg_id":8}},
        {"success":true,"data":{"id":102,"msg_id":7}}]}"#;
    let reply = sync(2, foreign);
    check(&reply, "?a", "stop: off contract");
    assert!(reply.evidence.is_some_and(|body| body.contains("999")));
    let repeated = foreign.replace("999", "102");
    check(&sync(2, &repeated), "??", "stop: off contract");
    let unreadable = foreign.replace("999", r#""x1""#);
    check(&sync(2, &unreadable), "?a", "stop: off contract");
}

#[test]
fn success_without_a_msg_id_is_doubt() {
    for msg_id in ["null", r#""""#, "true", "{}"] {
        let body = format!(
            r#"{{"success":true,"data":[{{"success":true,"data":{{"id":101,"msg_id":{msg_id}}}}},
               {{"success":true,"data":{{"id":102,"msg_id":8}}}}]}}"#
        );
        check(&sync(2, &body), "?a", "warn");
    }
    check(&sync(1, r#"{"success":true,"data":[{"success":true}]}"#), "?", "warn");
}

#[test]
fn an_item_that_contradicts_itself_is_doubt() {
    let item = |success: &str| {
        format!(r#"{{"success":true,"data":[{{"success":{success},"data":{{"id":101,"msg_id":7}}}}]}}"#)
    };
    for success in ["false", "1", r#""true""#, "null"] {
        check(&sync(1, &item(success)), "?", "warn");
    }
    check(&sync(1, r#"{"success":true,"data":[null]}"#), "?", "warn");
}

#[test]
fn an_item_that_names_a_member_twice_may_be_about_anybody() {
    let other = r#"{"success":true,"data":{"id":102,"msg_id":7}}"#;
    let twice = [
        r#"{"success":true,"data":{"id":101,"id":102,"msg_id":7}}"#,
        r#"{"success":true,"data":{"id":101,"msg_id":7,"msg_id":null}}"#,
        r#"{"success":false,"data":{"id":101,"msg_id":7,"msg_id":null}}"#,
        r#"{"success":true,"success":false,"data":{"id":101}}"#,
        r#"{"success":false,"data":{"msg_id":7},"data":{}}"#,
    ];
    for twice in twice {
        check(&sync(2, &format!(r#"{{"success":true,"data":[{twice},{other}]}}"#)), "??", "stop: off contract");
    }
}

#[test]
fn a_success_that_is_no_boolean_is_doubt() {
    for success in ["1", r#""true""#, "null", "0", "{}"] {
        let body = format!(r#"{{"success":{success},"data":[{{"success":true,"data":{{"id":101,"msg_id":7}}}}]}}"#);
        check(&sync(1, &body), "?", "warn");
    }
    check(&sync(1, "{}"), "?", "warn");
}

#[test]
fn success_without_data_is_doubt_and_stops() {
    for data in ["null", "{}", "7"] {
        check(&sync(2, &format!(r#"{{"success":true,"data":{data}}}"#)), "??", "stop: off contract");
    }
    check(&sync(2, r#"{"success":true}"#), "??", "stop: off contract");
}

#[test]
fn a_fatal_error_settles_the_envelope_and_stops() {
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"id":101,"msg_id":7}},
        {"success":false,"error":"Not enough money","data":{"id":102}}]}"#;
    check(&sync(2, body), "ar", "stop: fatal");
}

#[test]
fn a_lookup_is_accepted_with_its_answer() {
    let lookup = |body: &str| read(&rules(), Endpoint::Sync, &envelope(OperationKind::Hlr, 2), &status(200, body));
    let body = r#"{"success":true,"data":[
        {"success":true,"data":{"phone":380501234500,"status":"DELIVERED"}},
        {"success":true,"data":{"mccmnc":25501}}]}"#;
    let reply = lookup(body);
    check(&reply, "aa", "go");
    assert!(
        matches!(&reply.outcomes[1], Outcome::Accepted { msg_id: None, answer: Some(answer), .. } if answer == r#"{"mccmnc":25501}"#)
    );
    let foreign = body.replace("380501234500", "380509999999");
    check(&lookup(&foreign), "??", "stop: off contract");
    let empty = r#"{"success":true,"data":[{"success":true,"data":[]},{"success":true}]}"#;
    check(&lookup(empty), "??", "warn");
}

#[test]
fn the_asynchronous_answer_queues_all_or_is_doubt() {
    let reply = queued(r#"{"success":true,"request_id":"cf-ray-1"}"#);
    check(&reply, "qq", "go");
    assert_eq!(reply.outcomes[0], Outcome::Queued { request_id: "cf-ray-1".into() });
    for body in [
        r#"{"success":true}"#,
        r#"{"success":true,"request_id":""}"#,
        r#"{"success":true,"request_id":false}"#,
        r#"{"success":true,"request_id":{}}"#,
        r#"{"success":true,"request_id":null}"#,
    ] {
        check(&queued(body), "??", "warn");
    }
    check(&queued(r#"{"success":false,"error":"Access denied"}"#), "nn", "stop: key");
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_body_gives_one_outcome_per_operation(body: Vec<u8>, count in 1_u32..5) {
            let exchange = Exchange::Answer { status: 200, retry_after: None, body };
            for endpoint in [Endpoint::Sync, Endpoint::Async] {
                let reply = read(&rules(), endpoint, &envelope(OperationKind::Sms, count), &exchange);
                prop_assert_eq!(reply.outcomes.len(), count as usize);
            }
        }

        #[test]
        fn an_answer_cut_short_proves_nothing(cut in 0_usize..130) {
            let body = r#"{"success":true,"data":[{"success":true,"data":{"id":101,"msg_id":7,"parts":1,"data":1}},{"success":false,"error":"No route"}]}"#;
            let reply = sync(2, &body[..cut.min(body.len() - 1)]);
            prop_assert_eq!(letters(&reply), "??");
        }
    }
}
