//! HTTP statuses outside the contract.

use std::time::{Duration, Instant};

use crate::support::{Answer, Gateway};

use super::{assert_outcomes_are_final, check_cases, in_envelopes_of_four, states};

#[test]
fn run_continues_with_rows_in_doubt_after_unexpected_answers() {
    let page = || Answer::Http { status: 200, headers: vec![], body: b"<html>Welcome</html>".to_vec() };
    let empty = || Answer::Http { status: 200, headers: vec![], body: vec![] };
    let huge = || Answer::Http { status: 200, headers: vec![], body: vec![b' '; (8 << 20) + 1] };
    check_cases([
        ("500", Answer::status(500), 4, "addddaaaaa"),
        ("502", Answer::status(502), 4, "addddaaaaa"),
        ("404", Answer::status(404), 4, "addddaaaaa"),
        ("a page", page(), 4, "addddaaaaa"),
        ("nothing", empty(), 4, "addddaaaaa"),
        ("more than 8 MiB", huge(), 4, "addddaaaaa"),
    ]);
}

#[test]
fn unexpected_first_answer_stops_the_run() {
    let page = Answer::Http { status: 200, headers: vec![], body: b"<html>Welcome</html>".to_vec() };
    for answer in [Answer::status(500), Answer::status(404), page] {
        let gateway = Gateway::answering([answer]);
        let sale = in_envelopes_of_four().through(&gateway).write();
        sale.run(&[]).exits(5);
        assert_eq!(states(&sale), "dppppppppp");
        assert_outcomes_are_final(&gateway, &sale);
    }
}

#[test]
fn throttling_response_slows_the_run_and_leaves_rows_in_doubt() {
    for status in [429, 503] {
        let gateway = Gateway::answering([Answer::Accept, Answer::status_with(status, &["Retry-After: 2"])]);
        let sale = in_envelopes_of_four().through(&gateway).write();
        let began = Instant::now();
        let run = sale.run(&[]).exits(4);
        assert!(began.elapsed() >= Duration::from_secs(2), "the gateway asked for two seconds");
        run.says("are in doubt and will not be retried")
            .says(&format!("before the next request: HTTP {status}; 4 messages are in doubt and will not be retried"))
            .says(&format!("after HTTP {status}, 4 messages are in doubt and will not be retried"))
            .says(&format!("add `trust_status: [{status}]`"));
        assert_eq!(states(&sale), "addddaaaaa");
        assert_outcomes_are_final(&gateway, &sale);
    }
}

#[test]
fn trusted_gateway_status_proves_that_nothing_was_sent() {
    let gateway = Gateway::answering([Answer::Accept, Answer::status_with(429, &["Retry-After: 1"])]);
    let sale = in_envelopes_of_four().through(&gateway).profile("trust_status: [429]").write();
    let run = sale.run(&[]).exits(0).says("before the next attempt: HTTP 429");
    assert!(!run.stderr.contains("in doubt") && !run.stdout.contains("in doubt"), "{}", run.stderr);
    assert_eq!(states(&sale), "aaaaaaaaaa");
    assert_eq!(gateway.phones().len(), 14, "four were rejected and resent");
}

#[test]
fn wait_event_says_whether_its_messages_are_retried() {
    for (trusted, retry, in_doubt) in [("[]", false, 4), ("[429]", true, 0)] {
        let gateway = Gateway::answering([Answer::Accept, Answer::status_with(429, &["Retry-After: 1"])]);
        let sale = in_envelopes_of_four().through(&gateway).profile(&format!("trust_status: {trusted}")).write();
        let run = sale.run(&["--progress", "json"]);
        let events = run.stderr.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let waits: Vec<_> = events.filter(|event| event["event"] == "waiting").collect();
        assert_eq!(waits.len(), 1, "{}", run.stderr);
        assert_eq!((&waits[0]["retry"], &waits[0]["in_doubt"]), (&retry.into(), &in_doubt.into()));
    }
}

#[test]
fn throttled_last_request_is_reported_as_not_retried() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Accept, Answer::Accept, Answer::status(429)]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    let notes = sale.run(&["--json"]).exits(4).json()["notes"].to_string();
    assert!(notes.contains("in doubt and will not be retried") && notes.contains("`trust_status: [429]`"), "{notes}");
}

#[test]
fn retry_after_of_more_than_ten_minutes_stops_the_run() {
    let gateway = Gateway::answering([Answer::status_with(429, &["Retry-After: 601"])]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    sale.run(&[]).exits(5).says("601 s");
    assert_eq!(states(&sale), "dppppppppp");
}
