//! Campaigns with `duplicates: allow`: one message for each row of a number.

use serde_json::json;

use crate::support::{Answer, Draft, Folder, Gateway, Results, accepted, campaign, phone, rejected};

/// A list of children, each with the number of a parent, a name and a note.
fn children_list(rows: &[(usize, &str, &str)]) -> String {
    let lines = rows.iter().map(|(parent, name, note)| format!("{},{name},{note}\n", phone(*parent)));
    format!("phone,name,note\n{}", lines.collect::<String>())
}

fn draft_with_duplicates(gateway: &Gateway, rows: &[(usize, &str, &str)]) -> Draft {
    campaign().with_list(&children_list(rows)).recipients("duplicates: allow").through(gateway)
}

/// The texts that the gateway received, in order.
fn sent_texts(gateway: &Gateway) -> Vec<String> {
    let operations = gateway.sends().into_iter().flat_map(|request| request.operations());
    operations.map(|operation| operation["sms_message"].as_str().expect("a text").to_owned()).collect()
}

/// The column `reason` of the results. It is empty for a sent row.
fn result_reasons(sale: &Folder) -> Vec<String> {
    sale.results().column("reason").into_iter().map(str::to_owned).collect()
}

/// Two children of one parent.
const TWO_CHILDREN: [(usize, &str, &str); 2] = [(2, "Ann", "x"), (2, "Bob", "x")];

#[test]
fn added_row_with_a_known_number_is_sent_in_any_list_order() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    // A different order, different notes, and a third child of the same parent.
    draft_with_duplicates(&gateway, &[(2, "Cid", "y"), (2, "Bob", "y"), (2, "Ann", "z"), (3, "Dan", "y")])
        .rewrite(&sale);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("−2  skipped: already sent");
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 2, "skipped": 2 }));
    assert_eq!(result_reasons(&sale), ["", "already sent", "already sent", ""]);
    assert_eq!(sent_texts(&gateway), ["Hello, Ann", "Hello, Bob", "Hello, Cid", "Hello, Dan"]);
    sale.run(&["--json"]).exits(0);
    assert_eq!(gateway.phones().len(), 4, "no message is sent twice");
}

#[test]
fn show_lists_all_messages_to_a_number() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (3, "Dan", "x"), (2, "Bob", "x")]).write();
    sale.run(&[]).exits(0);
    let number = phone(2).to_string();
    let shown = sale.campaign(&["show", "sale", "--to", &number]).exits(0).says("row 2 to").says("row 4 to");
    shown.says("sale@1: 2 messages");
    let shown = sale.campaign(&["show", "sale", "--to", &number, "--json"]).exits(0).json();
    let rows: Vec<_> = shown["messages"].as_array().expect("messages").iter().map(|message| &message["row"]).collect();
    assert_eq!((rows, &shown["more"]), (vec![&json!(2), &json!(4)], &json!(0)));
    let message = sale.campaign(&["show", "sale", "--to", &phone(3).to_string(), "--json"]).exits(0).json();
    assert_eq!(message["row"], 3, "a single message has its history at the top level");
}

#[test]
fn same_text_is_not_sent_twice_to_identical_rows() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Bob", "x"), (2, "Ann", "other")]).rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 2);
}

#[test]
fn ambiguous_changed_row_is_skipped_and_reported() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    // Bobby or Cid might be Bob under another name.
    draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Bobby", "x"), (2, "Cid", "x"), (3, "Dan", "x")])
        .rewrite(&sale);
    sale.campaign(&["check", "sale.yaml"]).says("2 rows (3 and 4) are skipped").says("in a new `edition`");
    sale.run(&[]).exits(0);
    assert_eq!(result_reasons(&sale), ["already sent", "might be sent already", "might be sent already", ""]);
    assert_eq!(sent_texts(&gateway), ["Hello, Ann", "Hello, Bob", "Hello, Dan"]);
}

#[test]
fn changed_wording_does_not_make_a_row_new() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Bob", "x"), (2, "Cid", "x")]).rewrite(&sale);
    sale.replace("sale.yaml", "Hello, ", "Good day, ");
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Hello, Ann", "Hello, Bob", "Good day, Cid"]);
}

#[test]
fn unfinished_run_with_a_changed_list_sends_the_remaining_rows() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Bob", "x"), (2, "Cid", "x")]).write();
    sale.run(&["--limit", "2"]).exits(0);
    draft_with_duplicates(&gateway, &[(2, "Cid", "x"), (2, "Dan", "x"), (2, "Ann", "x"), (2, "Bob", "x")])
        .rewrite(&sale);
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(result_reasons(&sale), ["", "", "already sent", "already sent"]);
    assert_eq!(gateway.phones().len(), 4);
}

#[test]
fn rows_are_matched_by_number_if_a_template_column_is_missing() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    let list = format!("phone,child\n{},Ann\n{},Cid\n{},Dan\n", phone(2), phone(2), phone(3));
    draft_with_duplicates(&gateway, &TWO_CHILDREN).with_list(&list).rewrite(&sale);
    sale.replace("sale.yaml", "{{ name }}", "{{ child }}");
    sale.run(&["--accept-changes"]).exits(0);
    assert_eq!(sent_texts(&gateway)[2..], ["Hello, Dan"]);
    assert_eq!(result_reasons(&sale), ["might be sent already", "might be sent already", ""]);
}

#[test]
fn rejected_row_with_a_shared_number_is_resent_by_run_and_retry() {
    let draft =
        |gateway: &Gateway| draft_with_duplicates(gateway, &[(4, "Eve", "x"), (2, "Ann", "x"), (2, "Bob", "x")]);
    let gateway = Gateway::always(Answer::items(|operation| match operation["sms_message"].as_str() {
        Some(text) if text.ends_with("Bob") => rejected(operation, "No route"),
        _ => accepted(operation),
    }));
    let sale = draft(&gateway).write();
    sale.run(&[]).exits(3);
    let added = [(4, "Eve", "x"), (2, "Ann", "x"), (2, "Bob", "x"), (2, "Cid", "x")];
    draft_with_duplicates(&gateway, &added).rewrite(&sale);
    sale.run(&["--keep-going"]).exits(3);
    assert_eq!(result_reasons(&sale)[..2], ["already sent", "already sent"]);
    assert_eq!(sent_texts(&gateway)[2..], ["Hello, Bob", "Hello, Bob", "Hello, Cid"]);
    // The later run sent a message to the number, but not for this row.
    draft(&gateway).rewrite(&sale);
    sale.campaign(&["retry", "sale@1", "--yes"]).exits(3);
    assert_eq!(sent_texts(&gateway)[5..], ["Hello, Bob"]);
}

#[test]
fn retry_skips_a_row_that_a_later_run_reached() {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&["--keep-going"]).exits(3);
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Hello, Ann", "Hello, Bob", "Hello, Bob"]);
    sale.campaign(&["retry", "sale@1", "--yes"]).exits(3).says("has no rows to retry");
    assert_eq!(gateway.phones().len(), 3);
}

#[test]
fn cancelled_row_with_a_shared_number_stays_cancelled() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Bob", "x")]).write();
    sale.run(&["--limit", "1"]).exits(0);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0);
    draft_with_duplicates(&gateway, &[(2, "Cid", "x"), (2, "Bob", "x"), (2, "Ann", "x")]).rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(result_reasons(&sale), ["", "cancelled earlier", "already sent"]);
    assert_eq!(sent_texts(&gateway), ["Hello, Ann", "Hello, Cid"]);
}

#[test]
fn plan_and_test_choose_the_added_row() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Cid", "x"), (2, "Bob", "x")]).rewrite(&sale);
    let plan = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!(plan["messages"], 1);
    sale.campaign(&["test", "sale.yaml", "--to", &phone(9).to_string(), "--yes"]).exits(0);
    assert_eq!(sent_texts(&gateway)[2..], ["Hello, Cid"]);
    sale.run(&["--plan", plan["digest"].as_str().expect("a digest")]).exits(0);
    assert_eq!(sent_texts(&gateway)[3..], ["Hello, Cid"]);
}

#[test]
fn people_export_keeps_every_row_of_a_shared_number() {
    let gateway = Gateway::accepting();
    // Two rows have the same text, and both are sent.
    let rows = [(2, "Ann", "x"), (2, "Bob", "x"), (2, "Ann", "y")];
    let sale = draft_with_duplicates(&gateway, &rows).write();
    sale.run(&[]).exits(0);
    draft_with_duplicates(&gateway, &[&[(2, "Cid", "x")][..], &rows[..]].concat()).rewrite(&sale);
    sale.run(&[]).exits(0);
    let output = sale.campaign(&["results", "sale", "--people", "--out", "-"]).exits(0).stdout;
    let people = Results::parse(&output);
    assert_eq!(people.states(), ["accepted"; 4], "{output}");
    let mut names = people.column("name");
    names.sort_unstable();
    assert_eq!(names, ["Ann", "Ann", "Bob", "Cid"]);
}

#[test]
fn all_rows_of_an_opted_out_number_are_skipped() {
    let gateway = Gateway::accepting();
    let sale = draft_with_duplicates(&gateway, &TWO_CHILDREN).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["suppress", "add", &phone(2).to_string()]).exits(0);
    draft_with_duplicates(&gateway, &[(2, "Ann", "x"), (2, "Bob", "x"), (2, "Cid", "x"), (3, "Dan", "x")])
        .rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(result_reasons(&sale), ["already sent", "already sent", "opted out", ""]);
}
