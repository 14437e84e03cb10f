//! `campaign resolve`: decisions about rows in doubt, and later proof from the gateway.

use serde_json::json;

use super::{SECOND_ENVELOPE, message_ids, result_cell, sale_in_doubt, states, with_ledger};
use crate::support::{Folder, Results, note_on_failure, phone};

use campaign_core::domain::{GatewayMessageId, Row};
use campaign_ledger::{NewRowEvent, Ownership, RowChange, RowUpdate, RunFilter};

/// Records that the gateway knows the message of row 4 in envelope 2.
fn record_late_proof(sale: &Folder) {
    with_ledger(sale, async |ledger| {
        let run = ledger.list_runs(RunFilter::all()).await.expect("the runs").pop().expect("a run");
        let lock = ledger
            .acquire_campaign_lock(&run.campaign, &run.account)
            .await
            .expect("a ledger")
            .expect("the lock is free");
        let lease = ledger.claim_run(&lock, run.key).await.expect("the run").lease;
        let change = RowChange::Found {
            status: "DELIVERED".into(),
            msg_id: Some(GatewayMessageId::Number(4711)),
            channel: None,
        };
        let event = NewRowEvent { row: Row::new(4), envelope: 2, change };
        assert_eq!(ledger.update_rows(lease, RowUpdate::Events(vec![event])).await.expect("recorded"), Ownership::Held);
    });
    sale.campaign(&["results", "sale"]).exits(0);
}

#[test]
fn rows_counted_as_sent_are_final_with_author_and_reason() {
    let (gateway, sale) = sale_in_doubt();
    let report = sale.campaign(&["resolve", "sale", "--rows", "3,5", "--as", "sent", "--json"]).exits(4).json();
    assert_eq!((&report["rows"], &report["as"], &report["exit"]), (&json!(2), &json!("sent"), &json!(4)));
    assert_eq!(report["counts"], json!({ "accepted": 6, "in_doubt": 2, "assumed_sent": 2 }));
    let reason = "the operator's list has them";
    let report = sale.campaign(&["resolve", "sale@1", "--all", "--as", "sent", "--why", reason]).exits(0);
    report.says("resolved 2 rows as sent");
    assert_eq!(states(&sale), "assssaaaaa");
    assert!(result_cell(&sale, 4, "reason").contains(reason) && !result_cell(&sale, 3, "reason").contains(reason));
    assert_eq!(sale.campaign(&["status", "sale"]).code(), Some(0));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 10);
}

#[test]
fn rows_can_be_selected_by_part_of_the_results_file() {
    let (_gateway, sale) = sale_in_doubt();
    sale.campaign(&["results", "sale", "--state", "in_doubt", "--out", "doubt.csv"]).exits(0);
    let text = std::fs::read_to_string(sale.path("doubt.csv")).expect("a file");
    // Save the file as a spreadsheet program does, without the last row.
    let lines: Vec<&str> = text.lines().collect();
    sale.write("doubt.csv", &format!("\u{feff}{}\r\n", lines[..lines.len() - 1].join("\r\n")));
    sale.campaign(&["resolve", "sale", "--file", "doubt.csv", "--as", "sent"]).exits(4).says("resolved 3 rows as sent");
    assert_eq!(states(&sale), "asssdaaaaa");
}

#[test]
fn resolve_without_usable_ids_needs_matching_rows_and_numbers() {
    let (_gateway, sale) = sale_in_doubt();
    let resolve = || sale.campaign(&["resolve", "sale", "--file", "doubt.csv", "--as", "sent"]);
    let rounded_id = "7,83783E+14";
    for (list, words) in [
        (format!("row;to\n3;{}\n", phone(4)), "row 2: row 3 (…04) does not match any message in sale@1"),
        (format!("row;to;run\n3;{};sale@2\n", phone(3)), "row 2: row 3 does not match any message in sale@1"),
        (format!("id;row;to\n17;3;{}\n", phone(3)), "row 2: `17` is not the `id` of any message in sale@1"),
        (format!("id;row;to\n{rounded_id};3;3,80501E+11\n"), "a spreadsheet shortened the number `3,80501E+11`"),
        (format!("id;row\n{rounded_id};3\n"), "results sale@1 --state in_doubt --excel --out FILE"),
        ("row;number\n3;7\n".to_owned(), "neither an `id` column nor `row` and `to` columns"),
    ] {
        let _case = note_on_failure(list.clone());
        sale.write("doubt.csv", &list);
        resolve().exits(2).says(words);
        assert_eq!(states(&sale), "addddaaaaa");
    }
    let list = format!("id;row;to;run\n{rounded_id};3;{};sale@1\n;4;\"=\"\"{}\"\"\";\n", phone(3), phone(4));
    sale.write("doubt.csv", &list);
    resolve().exits(4).says("resolved 2 rows as sent");
    assert_eq!(states(&sale), "assddaaaaa");
}

#[test]
fn decision_that_risks_duplicates_requires_the_exact_number() {
    for decision in ["not-sent", "send-again"] {
        let _case = note_on_failure(format!("case: {decision}"));
        let (gateway, sale) = sale_in_doubt();
        let resolve =
            |options: &[&str]| sale.campaign(&[&["resolve", "sale", "--all", "--as", decision], options].concat());
        resolve(&[]).exits(2).says("--i-accept-duplicates 4");
        resolve(&["--i-accept-duplicates", "3"])
            .exits(2)
            .says("you accepted duplicates for 3; no decision was recorded");
        sale.campaign(&["status", "sale"]).exits(4).says("4 in doubt");
        resolve(&["--i-accept-duplicates", "4"]).exits(if decision == "not-sent" { 3 } else { 5 });
        assert_eq!(states(&sale), if decision == "not-sent" { "annnnaaaaa" } else { "appppaaaaa" });
        assert_eq!(gateway.phones().len(), 10, "a decision sends nothing");
    }
}

#[test]
fn rows_to_resend_are_sent_by_the_next_run_with_the_same_ids() {
    let (gateway, sale) = sale_in_doubt();
    let again = ["resolve", "sale", "--rows", "3-4", "--as", "send-again", "--i-accept-duplicates", "2"];
    sale.campaign(&again).exits(5).says("campaign run");
    sale.run(&[]).exits(4);
    assert_eq!(states(&sale), "aaaddaaaaa");
    assert_eq!(gateway.phones()[10..], [3, 4].map(phone));
    for row in [3, 4] {
        let ids = message_ids(&gateway, row);
        assert!(ids.len() == 2 && ids[0] == ids[1], "{ids:?}");
        assert_eq!(result_cell(&sale, row, "id"), ids[0].to_string());
    }
    sale.run(&[]).exits(4);
}

#[test]
fn retry_sends_rows_resolved_as_not_sent_as_new_messages() {
    let (gateway, sale) = sale_in_doubt();
    let not_sent = ["resolve", "sale", "--all", "--as", "not-sent", "--i-accept-duplicates", "4"];
    sale.campaign(&not_sent).exits(3).says("campaign retry sale@1");
    sale.campaign(&["retry", "sale"]).exits(0);
    assert_eq!(states(&sale), "a".repeat(10));
    for row in SECOND_ENVELOPE {
        let ids = message_ids(&gateway, row);
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        assert_eq!(result_cell(&sale, row, "id"), ids[1].to_string());
    }
}

#[test]
fn decision_with_an_invalid_row_selection_is_refused() {
    let (_gateway, sale) = sale_in_doubt();
    let accepted = result_cell(&sale, 2, "id");
    sale.write("accepted.csv", &format!("id\n{accepted}\n"));
    sale.write("foreign.csv", "to,id\n380501000003,12345\n");
    sale.write("other.csv", "row\n3\n");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--rows", "2-3"], 2, "row 2 is accepted, not in doubt"),
        (&["--rows", "3,99"], 2, "there is no row 99"),
        (&["--rows", "1-3"], 2, "header"),
        (&["--file", "accepted.csv"], 2, "is accepted, not in doubt"),
        (&["--file", "foreign.csv"], 2, "`12345` is not the `id`"),
        (&["--file", "other.csv"], 2, "neither an `id` column nor"),
        (&["--file", "nowhere.csv"], 2, "cannot be read"),
        (&[], 2, "--all"),
        (&["--all", "--rows", "3"], 2, "cannot be used with"),
    ];
    for (selection, code, words) in cases {
        let _case = note_on_failure(format!("case: {selection:?}"));
        sale.campaign(&[&["resolve", "sale", "--as", "sent"], selection].concat()).exits(code).says(words);
        sale.campaign(&["status", "sale"]).exits(4).says("4 in doubt");
    }
    let refused = sale.campaign(&["resolve", "sale", "--rows", "2", "--as", "sent", "--json"]).exits(2).json();
    assert!(refused["exit"] == 2 && refused["error"].is_string(), "{refused}");
    sale.campaign(&["resolve", "sale", "--all", "--as", "maybe"]).exits(2);
    sale.campaign(&["resolve", "nothing", "--all", "--as", "sent"]).exits(2).says("there is no run");
}

#[test]
fn decision_is_changed_only_by_row_and_never_from_sent() {
    let (_gateway, sale) = sale_in_doubt();
    sale.campaign(&["resolve", "sale", "--rows", "3", "--as", "sent"]).exits(4);
    let not_sent = |selection: &[&str], number| {
        let options = ["--as", "not-sent", "--i-accept-duplicates", number];
        sale.campaign(&[&["resolve", "sale"], selection, &options].concat())
    };
    not_sent(&["--rows", "3"], "1").exits(2).says("row 3 is assumed sent");
    not_sent(&["--all"], "3").exits(3);
    assert_eq!(states(&sale), "asnnnaaaaa");
    sale.campaign(&["resolve", "sale", "--all", "--as", "sent"]).exits(3).says("sale@1 has no messages in doubt");
    sale.campaign(&["resolve", "sale", "--rows", "4", "--as", "sent"]).exits(3);
    assert_eq!(states(&sale), "assnnaaaaa");
}

#[test]
fn proof_that_arrives_after_a_decision_overrides_it() {
    for decision in ["sent", "not-sent"] {
        let _case = note_on_failure(format!("case: {decision}"));
        let (_gateway, sale) = sale_in_doubt();
        sale.campaign(&["resolve", "sale", "--rows", "4", "--as", decision, "--i-accept-duplicates", "1"]).exits(4);
        record_late_proof(&sale);
        assert_eq!(states(&sale), "adaddaaaaa");
        assert_eq!(
            (result_cell(&sale, 4, "msg_id"), result_cell(&sale, 4, "gateway_status")),
            ("4711".into(), "DELIVERED".into())
        );
    }
}

#[test]
fn proof_after_a_resend_is_reported_as_a_suspected_duplicate() {
    let (gateway, sale) = sale_in_doubt();
    let again = ["resolve", "sale", "--rows", "4", "--as", "send-again", "--i-accept-duplicates", "1"];
    sale.campaign(&again).exits(5);
    sale.run(&[]).exits(4);
    assert_eq!(message_ids(&gateway, 4).len(), 2);
    assert_eq!(result_cell(&sale, 4, "reason"), "");
    record_late_proof(&sale);
    assert_eq!(states(&sale), "adaddaaaaa");
    assert!(result_cell(&sale, 4, "reason").starts_with("duplicate suspected"), "{}", result_cell(&sale, 4, "reason"));
    assert!(!result_cell(&sale, 3, "reason").contains("duplicate"));
}

#[test]
fn proof_that_arrives_before_a_resend_prevents_the_resend() {
    let (gateway, sale) = sale_in_doubt();
    let again = ["resolve", "sale", "--rows", "3-4", "--as", "send-again", "--i-accept-duplicates", "2"];
    sale.campaign(&again).exits(5);
    record_late_proof(&sale);
    sale.run(&[]).exits(4);
    assert_eq!((message_ids(&gateway, 3).len(), message_ids(&gateway, 4).len()), (2, 1));
    assert_eq!(states(&sale), "aaaddaaaaa");
}

/// The rows in doubt as a spreadsheet saves them, with this delimiter.
fn export_doubtful_rows(sale: &Folder, delimiter: &str) -> String {
    let output = sale.campaign(&["results", "sale", "--state", "in_doubt", "--out", "-"]).exits(0);
    let rows = Results::parse(&output.stdout).rows;
    let rows = rows.iter().map(|row| format!("{}{delimiter}{}", row["id"], row["state"]));
    [format!("id{delimiter}state")].into_iter().chain(rows).collect::<Vec<_>>().join("\r\n")
}

#[test]
fn results_saved_by_a_spreadsheet_are_parsed() {
    for (delimiter, mark) in [(";", ""), ("\t", ""), (";", "\u{feff}")] {
        let _case = note_on_failure(format!("case: {delimiter:?} {mark:?}"));
        let (_gateway, sale) = sale_in_doubt();
        sale.write("doubt.csv", &format!("{mark}{}", export_doubtful_rows(&sale, delimiter)));
        sale.campaign(&["resolve", "sale", "--file", "doubt.csv", "--as", "sent"]).exits(0).says("resolved 4 rows");
    }
    let (_gateway, sale) = sale_in_doubt();
    let units: Vec<u8> = export_doubtful_rows(&sale, "\t").encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(sale.path("doubt.csv"), [&[0xff, 0xfe][..], &units].concat()).expect("a file");
    let resolved = sale.campaign(&["resolve", "sale", "--file", "doubt.csv", "--as", "sent"]).exits(0);
    resolved.says("resolved 4 rows");
}
