//! `campaign show`: the history of one message, in time order.

use serde_json::{Value, json};

use super::{message_ids, result_cell, sale_in_doubt};
use crate::support::{Answer, Gateway, KEY, Process, campaign, note_on_failure, phone};

/// The names of the events in a history.
fn event_names(shown: &Value) -> Vec<&str> {
    events(shown).iter().filter_map(|event| event["event"].as_str()).collect()
}

fn events(shown: &Value) -> &[Value] {
    shown["history"].as_array().expect("a history")
}

#[test]
fn history_lists_the_events_of_a_message_chronologically() {
    let (gateway, sale) = sale_in_doubt();
    sale.campaign(&["reconcile", "sale"]).exits(4);
    let reason = "the subscriber has not got it";
    let again = ["resolve", "sale", "--rows", "3", "--as", "send-again", "--i-accept-duplicates", "1", "--why", reason];
    let mut command = sale.command(&again);
    command.env("USER", "olena");
    Process::start(command).finish().exits(5);
    sale.run(&[]).exits(4);
    let shown = sale.campaign(&["show", "sale", "--row", "3", "--json"]).exits(0).json();
    assert_eq!(event_names(&shown), ["attempt", "outcome", "change", "attempt", "outcome"]);
    let times: Vec<&str> = events(&shown).iter().filter_map(|event| event["at"].as_str()).collect();
    assert!(times.len() == 5 && times.is_sorted(), "{times:?}");
    let ids = [0, 3].map(|index| events(&shown)[index]["id"].as_u64().expect("an id"));
    assert_eq!(ids.to_vec(), message_ids(&gateway, 3));
    assert_eq!((&shown["state"], &shown["to"]), (&json!("accepted"), &json!(phone(3).to_string())));
    assert_eq!(shown["questions"]["asked"], 2, "by the run and by reconcile");
    assert_eq!(shown["questions"]["envelope"], 2);
    let text = sale.campaign(&["show", "sale", "--row", "3"]).exits(0);
    let inquiry = "asked the gateway 2 times about the attempt in request 2";
    let expected_order = [
        "sent in request 2 as id",
        "in doubt: ",
        inquiry,
        "resend requested, decided by olena",
        "accepted by the gateway",
    ];
    let positions: Vec<_> = expected_order.iter().map(|words| text.stdout.find(words).expect(words)).collect();
    assert!(positions.is_sorted(), "{}", text.details());
    text.says(reason).says("with 3 other messages");
    let once =
        sale.campaign(&["show", "sale", "--row", "4"]).exits(0).says("asked the gateway ").says("; last response: ");
    assert!(!once.stdout.contains("about the attempt"), "{}", once.details());
    let times = once.stdout.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let times: Vec<&str> = times.collect();
    assert!(times.len() == 3 && times.is_sorted(), "one attempt, with later inquiries: {}", once.details());
}

#[test]
fn decision_without_a_known_author_shows_no_author() {
    let (_gateway, sale) = sale_in_doubt();
    sale.campaign(&["resolve", "sale", "--rows", "3", "--as", "sent", "--why", "she has it"]).exits(4);
    let shown = sale.campaign(&["show", "sale", "--row", "3"]).exits(0).says("marked as sent: she has it");
    assert!(!shown.stdout.contains("somebody"), "{}", shown.details());
}

#[test]
fn unclear_answer_is_stored_without_the_key() {
    let foreign = json!({ "success": true, "data": [{ "success": true,
        "data": { "id": 4_815_162_342_u64, "msg_id": 1, "note": format!("key {KEY}") } }] });
    let gateway = Gateway::answering([Answer::json(foreign)]);
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(5);
    let shown = sale.campaign(&["show", "sale", "--row", "2", "--json"]).exits(0);
    let object = shown.json();
    let answer = events(&object).iter().find(|event| event["event"] == "answer").expect("the answer");
    assert!(answer["body"].as_str().is_some_and(|body| body.contains("4815162342")), "{answer}");
    assert!(!shown.stdout.contains(KEY));
    let text = sale.campaign(&["show", "sale", "--row", "2"]).exits(0).says("gateway response: ");
    assert!(!text.stdout.contains(KEY));
}

#[test]
fn message_is_selected_by_row_or_number() {
    let (_gateway, sale) = sale_in_doubt();
    for number in ["380501000004", "+380501000004", "+380 50 100 00 04"] {
        let shown = sale.campaign(&["show", "sale@1", "--to", number, "--json"]).exits(0).json();
        assert_eq!((&shown["row"], &shown["state"]), (&json!(4), &json!("in_doubt")), "{number}");
    }
    sale.campaign(&["show", "sale", "--row", "4"]).exits(0).says("campaign reconcile sale@1");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--row", "1"], 2, "row 1 is the header"),
        (&["--row", "0"], 2, "row 1 is the header"),
        (&["--row", "12"], 2, "has rows 2 to 11"),
        (&["--to", "+380671112233"], 2, "is not in the list"),
        (&["--to", "12"], 2, "country code"),
        (&[], 2, "--row"),
        (&["--row", "3", "--to", "380501000004"], 0, "no messages match this selection"),
    ];
    for (selection, code, words) in cases {
        let _case = note_on_failure(format!("case: {selection:?}"));
        sale.campaign(&[&["show", "sale"], selection].concat()).exits(code).says(words);
    }
}

#[test]
fn show_explains_why_a_row_was_never_sent() {
    let gateway = Gateway::accepting();
    let list = format!("phone,name\n{0},A\n{0},B\n12,C\n{1},D\n\n{2},E\n", phone(2), phone(5), phone(7));
    let sale = campaign().with_list(&list).recipients("max_invalid: 50%").through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(3);
    for (row, state, words) in [
        ("3", "skipped", "skipped in this run: duplicate number"),
        ("4", "invalid", "never sent: "),
        ("5", "planned", ""),
    ] {
        let shown = sale.campaign(&["show", "sale", "--row", row, "--json"]).exits(0).json();
        assert_eq!((&shown["state"], events(&shown).len()), (&json!(state), 0), "{row}");
        sale.campaign(&["show", "sale", "--row", row]).exits(0).says(words);
    }
    assert_eq!(result_cell(&sale, 3, "state"), "skipped");
    let planned = sale.campaign(&["show", "sale", "--to", &phone(7).to_string(), "--json"]).exits(0).json();
    assert_eq!((&planned["row"], &planned["to"]), (&json!(7), &json!(phone(7).to_string())));
    let first = sale.campaign(&["show", "sale", "--to", &phone(2).to_string(), "--json"]).exits(0).json();
    assert_eq!((&first["row"], &first["state"]), (&json!(2), &json!("accepted")), "the first row with the number");
    sale.campaign(&["show", "sale", "--row", "6"]).exits(2).says("row 6 in the list for sale@1 is blank");
}

#[test]
fn row_skipped_as_already_sent_names_the_earlier_run() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).write();
    sale.run(&[]).exits(0);
    campaign().to(3).through(&gateway).rewrite(&sale);
    sale.run(&[]).exits(0);
    for selection in [["--to", &phone(3).to_string()], ["--state", "skipped"]] {
        let shown = sale.campaign(&[&["show", "sale@2"][..], &selection].concat()).exits(0);
        assert!(!shown.stdout.contains("never sent"), "{}", shown.details());
        shown.says("skipped in this run: already sent in sale@1\n");
    }
    let object = sale.campaign(&["show", "sale@2", "--row", "3", "--json"]).exits(0).json();
    assert_eq!((&object["state"], &object["reason"]), (&json!("skipped"), &json!("already sent")));
}
