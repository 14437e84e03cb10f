//! Summary and results of a finished run.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Answer, Gateway, Results, SandboxProcess, accepted, campaign, phone, rejected};

/// The columns of a results file before those of the list.
const COLUMNS: &str = "row,id,to,state,operation,msg_id,request_id,parts,gateway_status,reason,error,submitted_at,\
                       updated_at,delivered_by,delivered_at,answer,run,delivered_at_is,read_by,message_run,\
                       message_state";

#[test]
fn synchronous_row_ends_accepted_with_its_msg_id() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(30).through(&sandbox).write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&summary["rows"], &summary["counts"]), (&json!(30), &json!({ "accepted": 30 })));
    let results = sale.results();
    assert_eq!(results.states(), vec!["accepted"; 30]);
    let msg_ids: BTreeMap<String, String> = sandbox
        .journal()
        .iter()
        .filter(|line| line["phone"].is_string())
        .map(|line| (line["phone"].as_str().expect("digits").to_owned(), line["msg_id"].to_string()))
        .collect();
    for row in &results.rows {
        assert_eq!((&row["msg_id"], row["request_id"].as_str()), (&msg_ids[&row["to"]], ""), "{row:?}");
        assert_eq!((row["operation"].as_str(), row["parts"].as_str()), ("sms", "1"));
    }
}

#[test]
fn asynchronous_row_ends_queued_with_its_request_id() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(8).through(&sandbox).asynchronous().write();
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&summary["endpoint"], &summary["counts"]), (&json!("async"), &json!({ "queued": 8 })));
    let request_ids: Vec<String> =
        sandbox.journal().iter().filter_map(|line| line["request_id"].as_str().map(str::to_owned)).collect();
    for row in &sale.results().rows {
        assert_eq!((row["state"].as_str(), row["msg_id"].as_str()), ("queued", ""));
        assert!(request_ids.contains(&row["request_id"]), "{row:?} {request_ids:?}");
    }
}

#[test]
fn built_in_sandbox_needs_no_profile_and_says_it_is_a_rehearsal() {
    let sale = campaign().to(12).write();
    let run = sale.run(&[]).exits(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[0].contains("rehearsal") && run.stdout.contains("recipients got no messages"), "{}", run.details());
    assert_eq!(sale.results().states(), vec!["accepted"; 12]);
}

#[test]
fn same_campaign_file_works_with_a_sandbox_or_a_gateway() {
    let (sandbox, gateway) = (SandboxProcess::start(), Gateway::accepting());
    let rehearsal = campaign().to(9).through(&sandbox).write();
    rehearsal.run(&[]).exits(0);
    let sale = campaign().to(9).through(&gateway).write();
    assert_eq!(std::fs::read(sale.path("sale.yaml")).unwrap(), std::fs::read(rehearsal.path("sale.yaml")).unwrap());
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..11).map(phone).collect::<Vec<_>>());
    assert_eq!(sale.results().states(), rehearsal.results().states());
}

#[test]
fn results_list_recipients_in_order_with_their_own_columns() {
    let gateway = Gateway::accepting();
    let list = "phone,name,row,note\n380501000007,Seven,x,=1+1\n\n380501000003,Three,y,plain\n380501000005,Five,z,-5\n";
    let sale = campaign().with_list(list).through(&gateway).write();
    sale.run(&[]).exits(0);
    let results = sale.results();
    assert_eq!(results.header.join(","), format!("{COLUMNS},phone,name,row_in,note"));
    assert_eq!(results.column("row"), ["2", "4", "5"], "blank lines count as rows");
    assert_eq!(results.column("to"), ["380501000007", "380501000003", "380501000005"]);
    assert_eq!(results.column("name"), ["Seven", "Three", "Five"]);
    assert_eq!(results.column("row_in"), ["x", "y", "z"]);
    assert_eq!(results.column("note"), ["'=1+1", "plain", "-5"], "formulas are escaped");
    assert_eq!(results.column("run"), ["sale@1"; 3]);
    let mode = std::fs::metadata(sale.results_file()).expect("results").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn rejected_row_keeps_its_reason_and_others_are_sent() {
    let gateway = Gateway::always(Answer::items(|operation| match operation["phone"].as_u64() {
        Some(phone) if phone % 10 == 4 => rejected(operation, "Error in Alpha-name"),
        _ => accepted(operation),
    }));
    let sale = campaign().to(30).through(&gateway).write();
    let summary = sale.run(&["--json"]).exits(3).json();
    assert_eq!(summary["counts"], json!({ "accepted": 27, "rejected": 3 }));
    let notes = summary["notes"].as_array().and_then(|notes| notes.last()?.as_str()).expect("a note");
    assert!(notes.ends_with("campaign retry sale@1"), "the note suggests a retry: {notes}");
    for row in &sale.results().rows {
        let expected = if row["to"].ends_with('4') { ("rejected", "Error in Alpha-name") } else { ("accepted", "") };
        assert_eq!((row["state"].as_str(), row["error"].as_str()), expected);
    }
}

#[test]
fn skipped_recipients_have_reasons_and_counts_add_up() {
    let gateway = Gateway::accepting();
    let rows: String = (2..32).map(|row| format!("{},Person {row}\n", phone(row))).collect();
    let list = format!("phone,name\n{rows}12,Short\n{},Twice\n", phone(2));
    let sale = campaign().with_list(&list).through(&gateway).write();
    let summary = sale.run(&["--json"]).exits(3).json();
    assert_eq!(summary["counts"], json!({ "accepted": 30, "invalid": 1, "skipped": 1 }));
    let results = sale.results();
    assert_eq!(results.counts().values().sum::<u64>(), 32);
    assert_eq!(results.rows[30]["state"], "invalid");
    assert_eq!(results.rows[31]["state"], "skipped");
    assert!(results.rows[30..].iter().all(|row| !row["reason"].is_empty() && row["id"].is_empty()));
    assert_eq!(gateway.phones().len(), 30);
}

#[test]
fn dry_run_writes_results_and_sends_nothing() {
    let gateway = Gateway::accepting();
    let list = format!("phone,name\n{},One\n{},Again\n{},Two\n", phone(2), phone(2), phone(3));
    let sale = campaign().with_list(&list).through(&gateway).write();
    let summary = sale.run(&["--dry-run", "--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "planned": 2, "skipped": 1 }));
    let results = Results::read(&sale.path("results/sale.dry-run.csv"));
    assert_eq!(results.states(), ["planned", "skipped", "planned"]);
    assert!(gateway.requests().is_empty() && !sale.results_file().exists());
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
}
