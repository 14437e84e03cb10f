//! Items of gateway answers: they are matched to operations, and determine the outcomes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Answer, Gateway, accepted, phone, rejected};

use super::{assert_outcomes_are_final, check_cases, in_envelopes_of_four, states};

/// An answer that accepts every operation, with a change to its items.
fn changed_items(change: impl Fn(&mut Vec<Value>) + Send + Sync + 'static) -> Answer {
    Answer::from_request(move |request| {
        let mut items = request.operations().iter().map(accepted).collect();
        change(&mut items);
        json!({ "success": true, "data": items })
    })
}

/// An answer that accepts every operation, with a change to its second item, which is for row 4.
fn changed_second_item(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Answer {
    changed_items(move |items| change(&mut items[1]))
}

fn drop_member(item: &mut Value, member: &str) {
    item["data"].as_object_mut().expect("a payload").remove(member);
}

#[test]
fn run_stops_at_a_wrong_item_count_but_keeps_identified_items() {
    let nameless = changed_items(|items| {
        items.pop();
        items.iter_mut().for_each(|item| drop_member(item, "id"));
    });
    let failed = changed_items(|items| {
        items.pop();
        items[0] = json!({ "success": false, "error": "No route" });
    });
    check_cases([
        ("one too few", changed_items(|items| drop(items.remove(1))), 5, "aadaappppp"),
        (
            "one too many",
            changed_items(|items| items.push(accepted(&json!({ "type": "sms", "id": 5 })))),
            5,
            "aaaaappppp",
        ),
        ("none", changed_items(Vec::clear), 5, "addddppppp"),
        ("too few, without ids", nameless, 5, "addddppppp"),
        ("too few, one failed", failed, 5, "adaadppppp"),
    ]);
}

#[test]
fn unknown_or_repeated_id_in_an_answer_stops_the_run() {
    check_cases([
        ("a foreign id", changed_second_item(|item| item["data"]["id"] = json!(5)), 5, "aadaappppp"),
        ("one id twice", changed_items(|items| items[1] = items[0].clone()), 5, "addaappppp"),
    ]);
}

#[test]
fn items_in_another_order_are_matched_by_their_ids() {
    let gateway = Gateway::answering([Answer::Accept, changed_items(|items| items.reverse())]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    sale.run(&[]).exits(0).says("in a different order");
    assert_eq!(states(&sale), "aaaaaaaaaa");
    let msg_ids: Vec<u64> = sale.results().column("msg_id")[1..5].iter().map(|id| id.parse().unwrap()).collect();
    assert!(msg_ids.is_sorted(), "each row has the msg_id that belongs to its id: {msg_ids:?}");
}

#[test]
fn ids_in_an_answer_can_be_strings_or_floats_or_be_absent() {
    check_cases([
        (
            "texts",
            changed_items(|items| {
                items.iter_mut().for_each(|item| item["data"]["id"] = json!(item["data"]["id"].to_string()))
            }),
            0,
            "aaaaaaaaaa",
        ),
        (
            "floats",
            changed_items(|items| {
                items.iter_mut().for_each(|item| item["data"]["id"] = json!(item["data"]["id"].as_f64()))
            }),
            0,
            "aaaaaaaaaa",
        ),
        ("none", changed_items(|items| items.iter_mut().for_each(|item| drop_member(item, "id"))), 0, "aaaaaaaaaa"),
    ]);
}

#[test]
fn only_the_unclear_item_is_in_doubt() {
    check_cases([
        ("no msg_id", changed_second_item(|item| drop_member(item, "msg_id")), 4, "aadaaaaaaa"),
        ("success 1", changed_second_item(|item| item["success"] = json!(1)), 4, "aadaaaaaaa"),
        ("success missing", changed_second_item(|item| *item = json!({ "data": item["data"] })), 4, "aadaaaaaaa"),
        ("failed, with a msg_id", changed_second_item(|item| item["success"] = json!(false)), 4, "aadaaaaaaa"),
        ("no object", changed_second_item(|item| *item = json!("ok")), 4, "aadaaaaaaa"),
    ]);
}

#[test]
fn one_rejected_message_does_not_affect_the_others() {
    let without_data = changed_second_item(|item| *item = json!({ "success": false, "error": "No route" }));
    let with_data = changed_second_item(|item| *item = rejected(&item["data"].clone(), "No route"));
    for answer in [without_data, with_data] {
        let gateway = Gateway::answering([Answer::Accept, answer]);
        let sale = in_envelopes_of_four().through(&gateway).write();
        sale.run(&[]).exits(3).says("No route");
        assert_eq!(states(&sale), "aaraaaaaaa");
        assert_eq!(sale.results().rows[2]["error"], "No route");
    }
}

#[test]
fn insufficient_balance_stops_the_run_after_its_envelope() {
    let poor = changed_items(|items| {
        for item in &mut items[2..] {
            *item = json!({ "success": false, "error": "Not enough money" });
        }
    });
    let gateway = Gateway::answering([Answer::Accept, poor]);
    let sale = in_envelopes_of_four().through(&gateway).write();
    sale.run(&[]).exits(5).says("Not enough money");
    assert_eq!(states(&sale), "aaarrppppp");
    assert_outcomes_are_final(&gateway, &sale);
}

#[test]
fn status_exits_5_if_the_run_stopped_at_its_last_message() {
    let poor = changed_items(|items| items[2] = json!({ "success": false, "error": "Not enough money" }));
    let gateway = Gateway::answering([Answer::Accept, poor]);
    let sale = in_envelopes_of_four().to(4).through(&gateway).write();
    sale.run(&[]).exits(5).says("Not enough money");
    assert_eq!(sale.campaign(&["status", "sale", "--json"]).exits(5).json()["exit"], 5);
    sale.run(&[]).exits(3);
    sale.campaign(&["status", "sale"]).exits(3);
}

#[test]
fn too_many_rejections_stop_a_run_without_keep_going() {
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
