//! Results of a repeated edition: the messages of skipped rows, and the files of earlier results.

use std::fs;

use serde_json::Value;

use crate::support::{Answer, Folder, Gateway, Results, accepted, campaign, in_files, phone, rejected};

/// The values of these columns in each row of the results.
fn select_columns<const N: usize>(results: &Results, names: [&str; N]) -> Vec<[String; N]> {
    results.rows.iter().map(|row| names.map(|name| row[name].clone())).collect()
}

fn read_file(sale: &Folder, name: &str) -> String {
    fs::read_to_string(sale.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The names of the files in the results folder.
fn list_results(sale: &Folder) -> Vec<String> {
    let entries = fs::read_dir(sale.path("results")).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn skipped_row_has_the_identifiers_of_the_earlier_message() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    sale.run(&[]).exits(0);
    let first = sale.results();
    let ids = ["id", "msg_id", "request_id"];
    assert_eq!(select_columns(&first, ["message_run", "message_state"]), [["sale@1", "accepted"]; 3]);
    // The list is in a different order and has two new recipients.
    let list: String = [6, 4, 2, 3, 5].map(|row| format!("{},Person {row}\n", phone(row))).concat();
    campaign().with_list(&format!("phone,name\n{list}")).through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(0);
    let second = sale.results();
    assert_eq!(
        select_columns(&second, ["state", "reason", "run", "message_run", "message_state"]),
        [
            ["accepted", "", "sale@2", "sale@2", "accepted"],
            ["skipped", "already sent", "sale@2", "sale@1", "accepted"],
            ["skipped", "already sent", "sale@2", "sale@1", "accepted"],
            ["skipped", "already sent", "sale@2", "sale@1", "accepted"],
            ["accepted", "", "sale@2", "sale@2", "accepted"],
        ]
    );
    let [before, after] = [select_columns(&first, ids), select_columns(&second, ids)];
    assert_eq!(after[1..4], [before[2].clone(), before[0].clone(), before[1].clone()]);
    assert!(after.iter().all(|[id, msg_id, _]| !id.is_empty() && !msg_id.is_empty()), "{after:?}");
    let header = "run,delivered_at_is,read_by,message_run,message_state,phone,name";
    assert!(second.header.join(",").ends_with(header), "the new columns come right before the columns of the list");
    // The results of each later run name the run that sent the message.
    campaign().to(6).through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(0);
    let runs = ["sale@1", "sale@1", "sale@1", "sale@2", "sale@2", "sale@3"];
    assert_eq!(sale.results().column("message_run"), runs);
    let output = sale.campaign(&["results", "sale", "--out", "-", "--json"]).exits(0).json();
    let rows = output["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().map(|row| row["message_run"].as_str().unwrap()).collect::<Vec<_>>(), runs);
    assert_eq!(rows[0]["msg_id"], Value::from(before[0][1].clone()));
}

#[test]
fn skipped_row_with_a_second_phone_column_has_its_message() {
    let gateway = Gateway::accepting();
    let list = format!("mobile,home\n,{}\n", phone(2));
    let draft =
        |list: &str| campaign().with_list(list).recipients("columns: { phone: [mobile, home] }").through(&gateway);
    let channel = "  - sms: { signature: OlenaCo, message: Hello }";
    let sale = draft(&list).channels(channel).write();
    sale.run(&[]).exits(0);
    draft(&format!("{list}{},\n", phone(3))).channels(channel).rewrite(&sale);
    sale.run(&[]).exits(0);
    let runs = select_columns(&sale.results(), ["reason", "message_run"]);
    assert_eq!(runs, [["already sent", "sale@1"], ["", "sale@2"]]);
}

#[test]
fn results_are_written_even_if_copies_of_earlier_runs_are_lost() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let list = |rows: &[usize]| -> String {
        let rows = rows.iter().map(|row| format!("{},Person {row}\n", phone(*row)));
        format!("phone,name\n{}", rows.collect::<String>())
    };
    let draft = |rows: &[usize]| campaign().with_list(&list(rows)).recipients("duplicates: allow").through(&gateway);
    let sale = draft(&[2, 3]).write();
    sale.run(&[]).exits(0);
    fs::remove_file(sale.path("state/runs/sale@1/frozen.json")).expect("the copy");
    draft(&[2, 3, 4]).rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(sale.results().states(), ["skipped", "skipped", "accepted"]);
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn row_skipped_for_a_queued_message_has_that_request_id() {
    let gateway = Gateway::accepting();
    let draft = |recipients| campaign().to(recipients).asynchronous().through(&gateway).top("receipts: off");
    let sale = draft(2).write();
    sale.run(&[]).exits(0);
    let request_id = sale.results().rows[0]["request_id"].clone();
    draft(3).rewrite(&sale);
    sale.run(&[]).exits(0);
    let row = &sale.results().rows[0];
    assert!(!request_id.is_empty(), "{row:?}");
    assert_eq!((&row["request_id"], &row["message_state"]), (&request_id, &"queued".to_owned()));
}

#[test]
fn skipped_row_shows_the_current_state_of_its_message() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let draft = |recipients| campaign().to(recipients).batches_of(1).one_at_a_time().through(&gateway);
    let sale = draft(2).write();
    sale.run(&[]);
    draft(3).rewrite(&sale);
    sale.run(&["--accept-changes"]);
    let row = &sale.results().rows[1];
    assert_eq!((&row["state"], &row["message_run"]), (&"skipped".to_owned(), &"sale@1".to_owned()));
    assert!(["in_doubt", "unresolved"].contains(&row["message_state"].as_str()), "{row:?}");
    sale.campaign(&["resolve", "sale@1", "--all", "--as", "sent"]).exits(0);
    sale.campaign(&["results", "sale@2"]).exits(0);
    assert_eq!(select_columns(&sale.results(), ["state", "message_state"])[1], ["skipped", "assumed_sent"]);
}

#[test]
fn rows_with_the_same_number_are_matched_to_messages_by_text() {
    let gateway = Gateway::accepting();
    let draft = |names: &str| {
        let list: String = names.chars().map(|name| format!("{},{name}\n", phone(2))).collect();
        let list = format!("phone,name\n{list}");
        campaign().with_list(&list).recipients("duplicates: allow").through(&gateway)
    };
    let sale = draft("ABA").write();
    sale.run(&[]).exits(0);
    let first = select_columns(&sale.results(), ["id", "msg_id"]);
    draft("CABAX").rewrite(&sale);
    sale.run(&[]).exits(0);
    let second = select_columns(&sale.results(), ["id", "msg_id"]);
    assert_eq!(second[1..4], first, "rows with the same text have separate messages");
}

#[test]
fn rejected_row_reports_only_the_message_of_its_run() {
    let gateway = Gateway::always(Answer::items(|operation| match operation["phone"] == phone(3) {
        true => rejected(operation, "No route"),
        false => accepted(operation),
    }));
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(3);
    sale.run(&[]).exits(3);
    let row = &sale.results().rows[1];
    assert_eq!([&row["message_run"], &row["message_state"]], ["sale@2", "rejected"]);
}

#[test]
fn results_of_the_previous_run_are_kept_under_another_name() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    sale.run(&[]).exits(0);
    let first = read_file(&sale, "results/sale.csv");
    campaign().to(4).through(&gateway).rewrite(&sale);
    // A user's own file is never overwritten.
    sale.write("results/sale@2.csv", "my work\n");
    sale.run(&[]).exits(0).says("the results of sale@1 were moved to `").says("sale@1.csv`");
    assert_eq!((read_file(&sale, "results/sale@1.csv"), list_results(&sale).len()), (first.clone(), 3));
    let second = read_file(&sale, "results/sale.csv");
    campaign().to(5).through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(list_results(&sale), ["sale.csv", "sale@1.csv", "sale@2.csv", "sale@3.csv"]);
    assert_eq!(read_file(&sale, "results/sale@2.csv"), "my work\n");
    assert_eq!(
        (read_file(&sale, "results/sale@1.csv"), read_file(&sale, "results/sale@3.csv")),
        (first.clone(), second)
    );
    // The ledger knows the path of each results file, so writing the results again creates no new file.
    sale.campaign(&["results", "sale@1"]).exits(0).says("sale@1.csv");
    sale.campaign(&["results", "sale@3"]).exits(0);
    assert_eq!((read_file(&sale, "results/sale@1.csv"), list_results(&sale).len()), (first, 4));
    let status = sale.campaign(&["status", "sale@1", "--json"]).exits(0).json();
    assert!(status["results"].as_str().expect("a path").ends_with("results/sale@1.csv"), "{status}");
}

#[test]
fn results_of_another_run_are_kept_at_any_results_path() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).top("results: sale.xlsx").write();
    sale.run(&[]).exits(0);
    let first = fs::read(sale.path("sale.xlsx")).expect("a workbook");
    campaign().to(3).through(&gateway).top("results: sale.xlsx").rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(fs::read(sale.path("sale@1.xlsx")).expect("a workbook"), first);
    sale.campaign(&["results", "sale@1", "--out", "sale.xlsx"]).exits(0).says("sale@2.xlsx");
    assert!(sale.path("sale@2.xlsx").is_file());
    // A file that is not a results file still prevents the run.
    sale.write("sale.xlsx", "my work\n");
    campaign().to(4).through(&gateway).top("results: sale.xlsx").rewrite(&sale);
    sale.run(&[]).exits(2).says("sale.xlsx");
}

#[test]
fn rehearsals_replace_the_results_of_rehearsals() {
    let sale = campaign().write();
    for _ in 0..3 {
        sale.run(&[]).exits(0);
    }
    assert_eq!(list_results(&sale), ["sale.sandbox.csv"]);
}
