//! Tests of the platform: envelopes, accounts, statuses and money.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::bench::Bench;
use crate::platform::messages::FIRST_MSG_ID;
use crate::scenario::{self, Blindness, Scenario, SenderStatus};
use campaign_core::domain::{Amount, Endpoint};

fn status(bench: &mut Bench, id: Value) -> Value {
    bench.send(Endpoint::Sync, &json!([{"type": "status", "id": id}]))["data"][0].clone()
}

fn sms(id: Value, phone: Value) -> Value {
    json!({"type": "sms", "id": id, "phone": phone, "sms_signature": "OlenaCo", "sms_message": "Hi"})
}

#[test]
fn each_item_gets_its_own_result_in_order() {
    let mut bench = Bench::new();
    let data = json!([
        {"type": "balance"},
        sms(json!(1), json!(380_501_234_567_u64)),
        sms(json!("a"), json!("nobody")),
        {"type": "template/list"},
        {"type": "status", "id": "001"},
    ]);
    let answer = bench.send(Endpoint::Sync, &data);
    assert_eq!(answer["success"], true);
    let items = answer["data"].as_array().expect("items");
    let verdicts: Vec<_> = items.iter().map(|item| item["success"] == true).collect();
    assert_eq!(verdicts, [true, true, false, true, true]);
    assert_eq!(items[1]["data"], json!({"id": 1, "msg_id": FIRST_MSG_ID, "data": 1, "parts": 1}));
    let error = "Please enter valid receiver phone number";
    assert_eq!(items[2], json!({"success": false, "error": error, "data": {"id": "a"}}));
    assert_eq!(items[4]["data"]["status"], "QUEUED");
}

#[test]
fn status_changes_over_time() {
    let mut bench = Bench::new();
    bench.send(Endpoint::Sync, &json!([sms(json!("007"), json!("380501234567"))]));
    let updated = "1970-01-01T00:00:00+00:00";
    let record =
        json!({"id": "007", "msg_id": FIRST_MSG_ID.to_string(), "type": "sms", "status": "QUEUED", "updated": updated});
    assert_eq!(status(&mut bench, json!(7)), json!({"success": true, "data": record}));
    bench.now += SignedDuration::from_secs(10);
    let record = status(&mut bench, json!(7))["data"].clone();
    assert_eq!(record["status"], "DELIVERED");
    assert_eq!(record["updated"], "1970-01-01T00:00:02+00:00");
}

#[test]
fn unknown_message_is_a_failed_item() {
    let failed = json!({"success": false, "error": "Message not found", "data": {"id": 5}});
    assert_eq!(status(&mut Bench::new(), json!(5)), failed);
}

#[test]
fn rejected_async_operation_has_a_status() {
    let mut bench = Bench::new();
    let data = json!([sms(json!(1), json!("380501234567")), sms(json!(2), json!("nobody"))]);
    assert_eq!(bench.send(Endpoint::Async, &data), json!({"success": true, "request_id": "sandbox-0000000001"}));
    assert_eq!(status(&mut bench, json!(1))["data"]["status"], "QUEUED");
    assert_eq!(status(&mut bench, json!(2))["data"]["status"], "REJECTED");
}

#[test]
fn sync_rejection_leaves_no_message() {
    let mut bench = Bench::new();
    bench.send(Endpoint::Sync, &json!([sms(json!(2), json!("nobody"))]));
    assert_eq!(status(&mut bench, json!(2))["success"], false);
}

#[test]
fn message_without_id_is_found_by_msg_id() {
    let mut bench = Bench::new();
    let sent = bench.send(Endpoint::Sync, &json!([sms(Value::Null, json!("380501234567"))]))["data"][0].clone();
    assert_eq!(sent["data"]["id"], sent["data"]["msg_id"]);
    assert_eq!(status(&mut bench, sent["data"]["id"].clone())["data"]["id"], FIRST_MSG_ID.to_string());
}

#[test]
fn each_number_of_an_operation_gets_a_separate_message() {
    let mut bench = Bench::new();
    let phones = json!("380501234567,380671234567");
    let sent = bench.send(Endpoint::Sync, &json!([sms(json!(1), phones)]))["data"][0].clone();
    assert_eq!(sent["data"], json!({"id": 1, "msg_id": FIRST_MSG_ID, "data": 1, "parts": 2}));
    let reported: Vec<_> =
        bench.journal_events("operation").iter().map(|line| (line["phone"].clone(), line["msg_id"].clone())).collect();
    let messages = [("380501234567", FIRST_MSG_ID), ("380671234567", FIRST_MSG_ID + 1)];
    assert_eq!(reported, messages.map(|(phone, msg_id)| (json!(phone), json!(msg_id))));
    assert_eq!((bench.platform.counts().messages, bench.platform.counts().parts), (2, 2));
}

#[test]
fn duplicate_send_is_in_the_journal_twice() {
    let mut bench = Bench::new();
    for _ in 0..2 {
        bench.send(Endpoint::Sync, &json!([sms(json!(1), json!("380501234567"))]));
    }
    let sent = bench.journal_events("operation");
    let at = "1970-01-01T00:00:00.000+00:00";
    let line = |envelope: u64, msg_id: u64| {
        json!({"event": "operation", "at": at, "envelope": envelope, "index": 0, "type": "sms", "id": 1,
            "phone": "380501234567", "msg_id": msg_id, "parts": 1, "success": true})
    };
    assert_eq!(sent, [line(1, FIRST_MSG_ID), line(2, FIRST_MSG_ID + 1)]);
}

#[test]
fn journal_has_every_envelope_with_its_error() {
    let mut bench = Bench::new();
    bench.send(Endpoint::Sync, &json!([{"type": "balance"}, {"type": "whatsapp"}]));
    bench.send(Endpoint::Async, &json!([{"type": "balance"}]));
    let at = "1970-01-01T00:00:00.000+00:00";
    assert_eq!(
        bench.journal_lines(),
        [
            json!({"event": "envelope", "at": at, "envelope": 1, "endpoint": "sync", "remote": "127.0.0.1:9",
                "operations": 2, "accepted": false, "error": "Invalid message type"}),
            json!({"event": "envelope", "at": at, "envelope": 2, "endpoint": "async", "remote": "127.0.0.1:9",
                "operations": 1, "accepted": true, "request_id": "sandbox-0000000001"}),
            json!({"event": "operation", "at": at, "envelope": 2, "index": 0, "type": "balance", "success": true}),
        ]
    );
}

#[test]
fn accepted_and_rejected_operations_are_counted_separately() {
    let mut bench = Bench::new();
    bench.send(Endpoint::Sync, &json!([sms(json!(1), json!("380501234567")), sms(json!(2), json!("nobody"))]));
    bench.send(Endpoint::Sync, &json!([{"type": "whatsapp"}]));
    let counts = bench.platform.counts();
    assert_eq!((counts.envelopes, counts.refused_envelopes), (1, 1));
    let tally = counts.operations["sms"];
    assert_eq!((tally.accepted, tally.rejected, counts.messages, counts.parts), (1, 1, 1, 1));
}

fn money(text: &str) -> Amount {
    text.parse().expect("an amount")
}

/// An account with its own key and this balance.
fn account(key: &str, balance: &str) -> scenario::AccountSettings {
    scenario::AccountSettings {
        key: Some(key.to_owned()),
        balance: money(balance),
        ..scenario::AccountSettings::default()
    }
}

fn whatsapp(id: u64) -> Value {
    json!({"type": "pipeline", "id": id, "phone": 380_501_234_567_u64, "pipeline": ["whatsapp"], "whatsapp": {"message": ""}})
}

#[test]
fn accounts_have_separate_balances_sender_names_and_messages() {
    let senders = Some(vec![("Other".to_owned(), SenderStatus::Checked), ("OlenaCo".to_owned(), SenderStatus::New)]);
    let scenario = Scenario {
        accounts: vec![
            scenario::AccountSettings { currency: "UAH".into(), ..account("one", "5") },
            scenario::AccountSettings { currency: "EUR".into(), senders, ..account("two", "7.654321") },
        ],
        ..Scenario::default()
    };
    let mut bench = Bench::with_scenario(scenario);
    let data = json!([{"type": "balance"}, {"type": "sender"}, sms(json!(1), json!("380501234567")),
        {"type": "template/create", "name": "a", "template": "b"}]);
    let first = bench.send_as("one", Endpoint::Sync, &data)["data"].clone();
    let second = bench.send_as("two", Endpoint::Sync, &data)["data"].clone();
    assert_eq!(first[0]["data"], json!({"amount": 5.0, "currency": "UAH"}));
    assert_eq!(second[0]["data"], json!({"amount": 7.654_321, "currency": "EUR"}));
    assert_eq!(first[1]["data"], json!([]));
    let senders = bench.send_as("one", Endpoint::Sync, &json!([{"type": "sender"}]))["data"][0]["data"].clone();
    assert_eq!(senders, json!([]), "every name is known, and none is listed");
    assert_eq!(second[1]["data"][1], json!({"name": "OlenaCo", "status": "New"}));
    assert_eq!(first[2]["success"], true);
    let rejection = json!({"success": false, "error": "Error in Alpha-name", "data": {"id": 1}});
    assert_eq!(second[2], rejection, "a name that is not verified cannot be used");
    for (key, found) in [("one", true), ("two", false)] {
        let data = json!([{"type": "status", "id": 1}, {"type": "status", "msg_id": FIRST_MSG_ID}]);
        let reported = bench.send_as(key, Endpoint::Sync, &data)["data"].clone();
        assert_eq!((&reported[0]["success"], &reported[1]["success"]), (&json!(found), &json!(found)), "{key}");
    }
    assert_eq!(bench.send_as("sandbox", Endpoint::Sync, &data), json!({"success": false, "error": "Access denied"}));
    let remaining =
        bench.send_as("two", Endpoint::Sync, &json!([{"type": "template/delete", "id": 1}, {"type": "template/list"}]));
    assert_eq!(remaining["data"][1]["data"], json!([]));
    let templates = bench.send_as("one", Endpoint::Sync, &json!([{"type": "template/list"}]));
    assert_eq!(templates["data"][0]["data"][0]["template"], "b");
}

#[test]
fn whatsapp_without_a_route_fails_at_no_cost() {
    let accounts = vec![scenario::AccountSettings { whatsapp: false, ..scenario::AccountSettings::default() }];
    let mut bench = Bench::with_scenario(Scenario { accounts, ..Scenario::default() });
    let balance = bench.send_one(&json!({"type": "balance"}));
    let answer = bench.send(Endpoint::Sync, &json!([whatsapp(1), {"type": "balance"}]));
    let rejection = json!({"success": false, "error": "No route", "data": {"id": 1}});
    assert_eq!(answer, json!({"success": true, "data": [rejection, balance]}));
}

#[test]
fn status_answers_can_be_delayed_or_uninformative() {
    let mut bench = Bench::with_scenario(Scenario { status_lag: Duration::from_secs(1), ..Scenario::default() });
    bench.send_one(&sms(json!(1), json!("380501234567")));
    let status_request = json!({"type": "status", "id": 1});
    assert_eq!(bench.send_one(&status_request)["error"], "Message not found");
    bench.advance_millis(1_000);
    assert_eq!(bench.send_one(&status_request)["data"]["status"], "ACCEPTED");

    let blind = |blindness| Bench::with_scenario(Scenario { status_blind: Some(blindness), ..Scenario::default() });
    let mut denies = blind(Blindness::Denies);
    denies.send_one(&sms(json!(1), json!("380501234567")));
    assert_eq!(denies.send_one(&status_request)["error"], "Message not found");
    let mut affirms = blind(Blindness::Affirms);
    let reported = affirms.send_one(&json!({"type": "status", "id": "x7"}))["data"].clone();
    assert_eq!((&reported["id"], &reported["status"]), (&json!("x7"), &json!("QUEUED")));
    assert!(reported["msg_id"].as_str().is_some_and(|msg_id| msg_id.parse::<u64>().is_ok()), "{reported}");
    assert_eq!(affirms.send_one(&json!({"type": "status", "id": "x7"}))["data"]["msg_id"], reported["msg_id"]);
    assert_eq!(affirms.send_one(&json!({"type": "status", "msg_id": 5}))["data"]["msg_id"], "5");
}

#[test]
fn templates_can_be_created_listed_and_deleted() {
    let mut bench = Bench::new();
    let created = bench.send_one(&json!({"type": "template/create", "name": "hello", "template": "Hi there"}));
    let record = json!({"id": 1, "name": "hello", "template": "Hi there", "count": "8 / 1"});
    assert_eq!(created, json!({"success": true, "data": record}));
    let mut listed = record;
    listed["datetime"] = json!("1970-01-01T00:00:00+00:00");
    assert_eq!(bench.send_one(&json!({"type": "template/list"}))["data"], json!([listed]));
    let created = bench.send_one(&json!({"type": "template/viber/create", "signature": "OlenaCo", "template": "Hi"}));
    let mut record = json!({"id": 1, "template": "Hi", "signature": "OlenaCo", "status": "new"});
    assert_eq!(created["data"], record);
    bench.advance_millis(20_000);
    record["status"] = json!("approved");
    assert_eq!(bench.send_one(&json!({"type": "template/viber/list"}))["data"], json!([record]));
    for (kind, id, deleted) in [
        ("template/delete", json!(1), 1),
        ("template/delete", json!("1"), 0),
        ("template/viber/delete", json!(2), 0),
        ("template/viber/delete", json!("1"), 1),
    ] {
        let answer = bench.send_one(&json!({"type": kind, "id": id, "template": "Hi"}));
        assert_eq!(answer, json!({"success": true, "data": {"deleted": deleted}}), "{kind} {id}");
    }
}

#[test]
fn request_above_the_account_limit_is_not_executed() {
    let second = scenario::AccountSettings { key: Some("second".into()), ..scenario::AccountSettings::default() };
    let limit = scenario::OperationLimit { rate: 10.0, burst: std::num::NonZeroU32::new(2).expect("two") };
    let accounts = vec![scenario::AccountSettings::default(), second];
    let mut bench = Bench::with_scenario(Scenario { accounts, limit: Some(limit), ..Scenario::default() });
    let two_messages = json!([sms(json!(1), json!("380501234567")), sms(json!(2), json!("380501234568"))]);
    assert_eq!(bench.send(Endpoint::Sync, &two_messages)["success"], true);
    let rejection = json!({"success": false, "error": "Too many operations"});
    assert_eq!(bench.send(Endpoint::Async, &two_messages), rejection, "both endpoints count");
    assert_eq!(bench.send_as("second", Endpoint::Sync, &two_messages)["success"], true, "each account has its own");
    bench.advance_millis(199);
    assert_eq!(bench.send(Endpoint::Sync, &two_messages), rejection);
    bench.advance_millis(1);
    assert_eq!(bench.send(Endpoint::Sync, &two_messages)["success"], true);
    assert_eq!(bench.platform.counts().messages, 6);
    let errors: Vec<_> = bench.journal_events("envelope").iter().map(|line| line["error"].as_str().is_some()).collect();
    assert_eq!(errors, [false, true, false, true, false]);
}
