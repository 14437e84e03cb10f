//! Odd but valid answers: their texts are truncated, and one warning reports them.

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, accepted, campaign, in_files, rejected};

#[test]
fn long_error_texts_are_truncated_and_marked_as_cut() {
    let _files = in_files();
    let long = |operation: &Value| rejected(operation, &format!("No route {}", "ї".repeat(150_000)));
    let gateway = Gateway::always(Answer::items(long));
    let sale = campaign().to(60).batches_of(20).through(&gateway).write();
    let run = sale.run(&["--keep-going"]).exits(3);
    assert!(run.stdout.contains("… (cut, 150009 characters)") && run.stdout.len() < 4_000, "{}", run.details());
    for error in sale.results().column("error") {
        assert!(error.starts_with("No route їїї") && error.ends_with("… (cut, 150009 characters)"), "{error}");
        assert!(error.chars().count() < 550);
    }
    let ledger_bytes = std::fs::metadata(sale.path("state/ledger.sqlite")).expect("a ledger").len();
    assert!(ledger_bytes < 1 << 20, "{ledger_bytes} bytes in the ledger");
}

#[test]
fn long_envelope_errors_and_identifiers_are_truncated() {
    let refusing = Gateway::always(Answer::rejection(&"no ".repeat(1_000_000)));
    let sale = campaign().through(&refusing).write();
    let run = sale.run(&[]).exits(5).says("(cut, 3000000 characters)");
    assert!(run.stdout.len() < 4_000, "{}", run.stdout.len());
    let gateway = Gateway::always(Answer::json(json!({ "success": true, "request_id": "r".repeat(2_000_000) })));
    let sale = campaign().asynchronous().through(&gateway).write();
    sale.run(&[]).exits(0);
    assert!(sale.results().column("request_id").iter().all(|id| id.ends_with("… (cut, 2000000 characters)")));
}

#[test]
fn odd_identifiers_cause_one_warning_with_a_count() {
    let numeric = Gateway::always(Answer::json(json!({ "success": true, "request_id": 17 })));
    let with_msg_id = |msg_id: Value| {
        Gateway::always(Answer::items(move |operation| {
            let mut item = accepted(operation);
            item["data"]["msg_id"] = msg_id.clone();
            item
        }))
    };
    let same = with_msg_id(json!(7));
    let negative = with_msg_id(json!(-5));
    for (draft, warnings) in [
        (campaign().asynchronous().through(&numeric), &["a numeric `request_id` instead of a string 3 times"][..]),
        (campaign().through(&same), &["a `msg_id` that another message already has 2 times"]),
        (campaign().through(&negative), &["a negative `msg_id` 3 times", "already has 2 times"]),
    ] {
        let sale = draft.batches_of(1).write();
        let run = sale.run(&[]).exits(0);
        for warning in warnings {
            assert_eq!(run.stdout.matches(warning).count(), 1, "{warning}\n{}", run.details());
        }
    }
    let plain = Gateway::accepting();
    let run = campaign().through(&plain).write().run(&[]).exits(0);
    assert!(!run.stdout.contains("warning"), "{}", run.details());
}
