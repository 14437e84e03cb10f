//! Answers about the whole envelope.

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, Process, Request, accepted, campaign, phone, until};

use super::{assert_outcomes_are_final, check_cases, in_envelopes_of_four, states};

/// Answers any request with an item for each operation, and this `success` value at the top level.
fn items_with_success(success: Value) -> Answer {
    Answer::from_request(move |request| json!({ "success": success, "data": items(request) }))
}

fn items(request: &Request) -> Vec<Value> {
    request.operations().iter().map(accepted).collect()
}

#[test]
fn refused_key_stops_the_run_and_proves_that_nothing_was_sent() {
    let gateway = Gateway::answering([Answer::rejection("Access denied")]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    let run = sale.run(&["--json"]).exits(7);
    assert!(run.json()["why"].as_str().is_some_and(|reason| reason.contains("Access denied")), "{}", run.details());
    assert_eq!(states(&sale), "pppppppppp");
    sale.campaign(&["status", "sale"]).exits(5);
    sale.run(&[]).exits(0);
    assert_eq!(states(&sale), "aaaaaaaaaa");
}

#[test]
fn key_refused_after_a_send_stops_the_run() {
    let gateway = Gateway::answering([Answer::Accept, Answer::rejection("Access denied")]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    sale.run(&[]).exits(7);
    assert_eq!(states(&sale), "appppppppp");
    assert_outcomes_are_final(&gateway, &sale);
}

#[test]
fn rejected_envelope_stops_the_run_with_the_reason() {
    for error in ["Invalid message type", "Something else"] {
        let gateway = Gateway::answering([Answer::Accept, Answer::rejection(error)]);
        let sale = in_envelopes_of_four().through(&gateway).write();
        sale.run(&[]).exits(5).says(error);
        assert_eq!(states(&sale), "appppppppp", "{error}");
        assert_outcomes_are_final(&gateway, &sale);
    }
}

#[test]
fn answer_whose_success_is_not_a_boolean_proves_nothing() {
    let missing = Answer::from_request(|request| json!({ "data": items(request) }));
    check_cases([
        ("1", items_with_success(json!(1)), 4, "addddaaaaa"),
        ("\"true\"", items_with_success(json!("true")), 4, "addddaaaaa"),
        ("null", items_with_success(json!(null)), 4, "addddaaaaa"),
        ("missing", missing, 4, "addddaaaaa"),
    ]);
}

#[test]
fn contradictory_answer_stops_the_run() {
    let failed_with_ids =
        Answer::from_request(|request| json!({ "success": false, "error": "No", "data": items(request) }));
    check_cases([
        ("failed, with msg_ids", failed_with_ids, 5, "addddppppp"),
        ("failed, without an error", Answer::json(json!({ "success": false })), 5, "addddppppp"),
        ("succeeded, without data", Answer::json(json!({ "success": true })), 5, "addddppppp"),
        ("succeeded, with data that is no list", Answer::json(json!({ "success": true, "data": {} })), 5, "addddppppp"),
    ]);
}

#[test]
fn asynchronous_answer_without_a_request_id_proves_nothing() {
    for body in [json!({ "success": true }), json!({ "success": true, "request_id": "" })] {
        let gateway = Gateway::answering([Answer::Accept, Answer::json(body)]);
        let sale = in_envelopes_of_four().asynchronous().through(&gateway).write();
        sale.run(&[]).exits(4);
        assert_eq!(states(&sale), "qddddqqqqq");
        assert_outcomes_are_final(&gateway, &sale);
    }
}

#[test]
fn run_stops_if_queued_warm_up_messages_are_rejected() {
    let refused = |operation: &Value| json!({ "success": true, "data": { "id": operation["id"], "msg_id": 1, "type": "sms", "status": "REJECTED" } });
    let gateway = Gateway::accepting().with_statuses(refused);
    let sale = campaign().to(500).asynchronous().through(&gateway).write();
    sale.run(&[])
        .exits(5)
        .says("REJECTED")
        .says("waiting up to 10 s for the delivery statuses of the warm-up messages");
    assert_eq!(gateway.phones(), [2, 3, 4, 5].map(phone));
    let results = sale.results();
    assert_eq!((results.states()[0], results.rows[0]["gateway_status"].as_str()), ("failed", "REJECTED"));
}

#[test]
fn signal_stops_a_run_that_waits_for_warm_up_statuses() {
    let pending = |operation: &Value| json!({ "success": true, "data": { "id": operation["id"], "msg_id": 1, "type": "sms", "status": "ENROUTE" } });
    let gateway = Gateway::accepting().with_statuses(pending);
    let sale = campaign().to(500).asynchronous().through(&gateway).write();
    let mut run = Process::start(sale.command(&["run", "sale.yaml"]));
    until("the run waits for statuses", || run.stderr().contains("delivery statuses of the warm-up messages"));
    run.signal("INT");
    run.finish().exits(130);
    assert!(gateway.phones().len() < 100, "{}", gateway.phones().len());
    let planned = sale.results().counts()["planned"];
    assert_eq!(planned, 500 - gateway.phones().len() as u64);
}

#[test]
fn trusted_status_is_retried_until_the_campaign_limit() {
    let gateway = Gateway::always(Answer::status(429));
    let sale = in_envelopes_of_four()
        .delivery("stop_after: { unreachable: 2s }")
        .through(&gateway)
        .profile("trust_status: [429]")
        .write();
    sale.run(&[]).exits(5).says("the gateway accepted no requests for ");
    assert_eq!(states(&sale), "pppppppppp");
    assert!(
        gateway.requests().iter().all(|request| request.phones() == [phone(2)]),
        "without proof, envelopes do not grow"
    );
}

#[test]
fn unsupported_operator_does_not_affect_other_messages() {
    for row in 3..8 {
        let unsupported = phone(row);
        let gateway = Gateway::always(Answer::from_request(move |request| {
            if request.phones().contains(&unsupported) {
                json!({ "success": false, "error": "Operator not supported" })
            } else {
                json!({ "success": true, "data": items(request) })
            }
        }));
        let sale = in_envelopes_of_four().channels("  - call/otp: {}").through(&gateway).write();
        sale.run(&[]).exits(3);
        let expected: String = (2..12).map(|sent| if sent == row { 'r' } else { 'a' }).collect();
        assert_eq!(states(&sale), expected);
        assert_eq!(sale.results().rows[row - 2]["error"], "Operator not supported");
    }
}
