//! Answers item by item: to whom each belongs, and what it proves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, accepted, phone, rejected};

use super::{in_envelopes_of_four, judge, states, what_is_done_is_never_sent_again};

/// All items as the contract has them, but for a change.
fn but(change: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> Answer {
    Answer::with(move |request| {
        let mut items = request.operations().iter().map(accepted).collect();
        change(&mut items);
        json!({ "success": true, "data": items })
    })
}

/// All items, but for the payload of the second, that of row 4.
fn but_the_second(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Answer {
    but(move |items| change(&mut items[1]))
}

fn drop_member(item: &mut Value, member: &str) {
    item["data"].as_object_mut().expect("a payload").remove(member);
}

#[test]
fn wrong_number_of_items_proves_named_ones_and_stops_the_run() {
    let nameless = but(|items| {
        items.pop();
        items.iter_mut().for_each(|item| drop_member(item, "id"));
    });
    let failed = but(|items| {
        items.pop();
        items[0] = json!({ "success": false, "error": "No route" });
    });
    judge([
        ("one too few", but(|items| drop(items.remove(1))), 5, "aadaappppp"),
        ("one too many", but(|items| items.push(accepted(&json!({ "type": "sms", "id": 5 })))), 5, "aaaaappppp"),
        ("none", but(Vec::clear), 5, "addddppppp"),
        ("too few, without ids", nameless, 5, "addddppppp"),
        ("too few, one failed", failed, 5, "adaadppppp"),
    ]);
}

#[test]
fn unknown_or_repeated_id_in_an_answer_stops_the_run() {
    judge([
        ("a foreign id", but_the_second(|item| item["data"]["id"] = json!(5)), 5, "aadaappppp"),
        ("one id twice", but(|items| items[1] = items[0].clone()), 5, "addaappppp"),
    ]);
}

#[test]
fn items_in_another_order_are_matched_by_their_ids() {
    let gateway = Gateway::answering([Answer::Accept, but(|items| items.reverse())]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    sale.run(&[]).exits(0).says("in a different order");
    assert_eq!(states(&sale), "aaaaaaaaaa");
    let msg_ids: Vec<u64> = sale.results().column("msg_id")[1..5].iter().map(|id| id.parse().unwrap()).collect();
    assert!(msg_ids.is_sorted(), "each row has the msg_id that belongs to its id: {msg_ids:?}");
}

#[test]
fn ids_may_come_as_texts_whole_floats_or_not_at_all() {
    judge([
        (
            "texts",
            but(|items| items.iter_mut().for_each(|item| item["data"]["id"] = json!(item["data"]["id"].to_string()))),
            0,
            "aaaaaaaaaa",
        ),
        (
            "floats",
            but(|items| items.iter_mut().for_each(|item| item["data"]["id"] = json!(item["data"]["id"].as_f64()))),
            0,
            "aaaaaaaaaa",
        ),
        ("none", but(|items| items.iter_mut().for_each(|item| drop_member(item, "id"))), 0, "aaaaaaaaaa"),
    ]);
}

#[test]
fn unclear_item_is_in_doubt_alone() {
    judge([
        ("no msg_id", but_the_second(|item| drop_member(item, "msg_id")), 4, "aadaaaaaaa"),
        ("success 1", but_the_second(|item| item["success"] = json!(1)), 4, "aadaaaaaaa"),
        ("success missing", but_the_second(|item| *item = json!({ "data": item["data"] })), 4, "aadaaaaaaa"),
        ("failed, with a msg_id", but_the_second(|item| item["success"] = json!(false)), 4, "aadaaaaaaa"),
        ("no object", but_the_second(|item| *item = json!("ok")), 4, "aadaaaaaaa"),
    ]);
}

#[test]
fn rejected_message_is_rejected_alone() {
    let without_data = but_the_second(|item| *item = json!({ "success": false, "error": "No route" }));
    let with_data = but_the_second(|item| *item = rejected(&item["data"].clone(), "No route"));
    for answer in [without_data, with_data] {
        let gateway = Gateway::answering([Answer::Accept, answer]);
        let sale = in_envelopes_of_four().through(&gateway).write();
        sale.run(&[]).exits(3).says("No route");
        assert_eq!(states(&sale), "aaraaaaaaa");
        assert_eq!(sale.results().rows[2]["error"], "No route");
    }
}

#[test]
fn empty_account_stops_the_run_after_the_envelope_is_settled() {
    let poor = but(|items| {
        for item in &mut items[2..] {
            *item = json!({ "success": false, "error": "Not enough money" });
        }
    });
    let gateway = Gateway::answering([Answer::Accept, poor]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    sale.run(&[]).exits(5).says("Not enough money");
    assert_eq!(states(&sale), "aaarrppppp");
    what_is_done_is_never_sent_again(&gateway, &sale);
}

#[test]
fn rejections_stop_a_run_by_their_number_and_by_their_share() {
    let every_third = Answer::items(|operation| match operation["phone"].as_u64() {
        Some(phone) if phone % 3 == 0 => rejected(operation, "No route"),
        _ => accepted(operation),
    });
    let gateway = Gateway::always(every_third);
    let sale = in_envelopes_of_four().to(600).batches_of(50).through(&gateway).write();
    sale.run(&[]).exits(5).says("were rejected");
    let counts: BTreeMap<String, u64> = sale.results().counts();
    assert!((200..300).contains(&(counts["accepted"] + counts["rejected"])), "{counts:?}");
    sale.run(&["--keep-going"]).exits(3);
    assert_eq!(gateway.phones(), (2..602).map(phone).collect::<Vec<_>>());
}
