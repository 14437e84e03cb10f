//! The promises about webhooks.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::Bench;
use crate::domain::Channel;
use crate::domain::{Endpoint, Status};
use crate::manifest::Share;
use crate::sandbox::platform::messages::FIRST_MSG_ID;
use crate::sandbox::scenario::{self, Behaviour, Reply, Scenario, Webhooks};
use crate::sandbox::webhooks::PostOutcome;
use crate::sandbox::webhooks::outbox::Waiting;

const HOOK: &str = "https://hooks.example.com/Receipts?token=a%2Fb&run=1";
const NOTIFY: &str = "https://shop.example.com/notify";

fn good(kind: &str) -> Value {
    json!({"type": kind, "id": 7, "phone": 380_501_234_567_u64, "hook": HOOK, "message": "012345",
        "sms_signature": "OlenaCo", "sms_message": "Hi", "viber_type": "text", "viber_signature": "OlenaCo",
        "viber_message": "Hi", "rcs_signature": "OlenaCo", "rcs_message": "Hi", "rcs_image": "https://a/b.png",
        "rcs_button": "Go", "rcs_link": "https://a", "pipeline": ["sms"],
        "sms": {"signature": "OlenaCo", "message": "Hi"}})
}

fn with(mut operation: Value, key: &str, value: Value) -> Value {
    operation[key] = value;
    operation
}

fn notifying(scenario: Scenario) -> Scenario {
    let accounts =
        vec![scenario::AccountSettings { notify: Some(NOTIFY.into()), ..scenario::AccountSettings::default() }];
    Scenario { accounts, ..scenario }
}

/// The statuses that a bench tells until its messages are at rest, with the address of each.
fn told(bench: &mut Bench) -> Vec<(String, String)> {
    bench.wait(600_000);
    let told = bench.received().into_iter();
    told.map(|(url, body)| (url, body["status"].as_str().expect("a status").to_owned())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(url, status)| ((*url).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn every_message_with_a_hook_tells_of_its_final_states_on_both_endpoints() {
    for (kind, statuses) in [
        ("sms", &["DELIVERED"][..]),
        ("voice", &["DELIVERED"]),
        ("telegram", &["DELIVERED", "READ"]),
        ("viber", &["DELIVERED", "READ"]),
        ("rcs", &["DELIVERED", "READ"]),
        ("viber+sms", &["DELIVERED", "READ"]),
        ("rcs+sms", &["DELIVERED", "READ"]),
        ("rcs+viber+sms", &["DELIVERED", "READ"]),
    ] {
        for endpoint in [Endpoint::Sync, Endpoint::Async] {
            let mut bench = Bench::new();
            bench.ask(endpoint, &json!([good(kind)]));
            assert_eq!(bench.webhooks(), [], "nothing is final yet");
            let expected: Vec<_> = statuses.iter().map(|status| (HOOK, *status)).collect();
            assert_eq!(told(&mut bench), pairs(&expected), "{kind} {endpoint}");
        }
    }
}

#[test]
fn what_reaches_nobody_and_what_names_no_hook_is_not_told() {
    for operation in [
        good("hlr"),
        good("call/otp"),
        with(good("sms"), "hook", Value::Null),
        with(good("sms"), "hook", json!("not an address")),
        json!({"type": "balance", "hook": HOOK}),
    ] {
        for endpoint in [Endpoint::Sync, Endpoint::Async] {
            let mut bench = Bench::new();
            bench.ask(endpoint, &json!([operation]));
            assert_eq!(told(&mut bench), [], "{operation}");
        }
    }
}

#[test]
fn a_pipeline_reports_to_the_account_and_its_refusal_to_the_hook() {
    let by_hook = Webhooks { async_pipeline: true, ..Webhooks::default() };
    let refused = with(good("pipeline"), "sms", json!({}));
    for (endpoint, webhooks, operation, expected) in [
        (Endpoint::Sync, Webhooks::default(), good("pipeline"), &[(NOTIFY, "DELIVERED")][..]),
        (Endpoint::Sync, by_hook.clone(), good("pipeline"), &[(NOTIFY, "DELIVERED")]),
        (Endpoint::Async, Webhooks::default(), good("pipeline"), &[(NOTIFY, "DELIVERED")]),
        (Endpoint::Async, by_hook, good("pipeline"), &[(HOOK, "DELIVERED")]),
        (Endpoint::Sync, Webhooks::default(), refused.clone(), &[]),
        (Endpoint::Async, Webhooks::default(), refused, &[(HOOK, "REJECTED")]),
    ] {
        let mut bench = Bench::playing(notifying(Scenario { webhooks, ..Scenario::default() }));
        bench.ask(endpoint, &json!([operation]));
        assert_eq!(told(&mut bench), pairs(expected), "{endpoint} {operation}");
    }
    let mut nobody = Bench::new();
    nobody.ask(Endpoint::Async, &json!([good("pipeline")]));
    assert_eq!(told(&mut nobody), []);
}

#[test]
fn failures_before_the_last_channel_are_told_if_the_scenario_says_so() {
    let channels = |told: &[(String, Value)]| -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        told.iter().map(|(_, body)| (word(&body["type"]), word(&body["status"]))).collect()
    };
    let chain = ["telegram", "rcs", "viber", "sms"];
    let pipeline = with(good("pipeline"), "pipeline", json!(chain));
    let pipeline = with(pipeline, "telegram", json!({"message": "012345"}));
    let pipeline = with(pipeline, "rcs", json!({"signature": "OlenaCo", "message": "Hi"}));
    let pipeline = with(pipeline, "viber", json!({"signature": "OlenaCo", "message": "Hi", "type": "text"}));
    for intermediate in [true, false] {
        let webhooks = Webhooks { intermediate, async_pipeline: true, ..Webhooks::default() };
        let mut scenario = Scenario { webhooks, ..Scenario::default() };
        for channel in [Channel::Telegram, Channel::Rcs, Channel::Viber] {
            let fails =
                Behaviour { delivered: "0%".parse().expect("a share"), ..scenario.behaviours.of(channel).clone() };
            scenario.behaviours.set(channel, fails);
        }
        for operation in [good("rcs+viber+sms"), pipeline.clone()] {
            let mut bench = Bench::playing(scenario.clone());
            bench.ask(Endpoint::Async, &json!([operation]));
            bench.wait(60_000_000);
            let pairs = [("rcs", "UNDELIVERABLE"), ("viber", "UNDELIVERABLE"), ("sms", "DELIVERED")];
            // A webhook cannot name Telegram, and without a name it would speak for the whole message.
            let expected = if intermediate { &pairs[..] } else { &pairs[2..] };
            let expected: Vec<_> =
                expected.iter().map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
            assert_eq!(channels(&bench.received()), expected, "{operation}");
        }
    }
}

#[test]
fn a_refusal_on_the_asynchronous_endpoint_is_told_at_once() {
    let poor = scenario::AccountSettings {
        balance: scenario::AccountSettings::default().balance,
        whatsapp: false,
        ..scenario::AccountSettings::default()
    };
    let poor = scenario::AccountSettings { balance: "0.79".parse().expect("an amount"), ..poor };
    for (operation, error) in [
        (good("sms"), "Not enough money"),
        (good("pipeline"), "Not enough money"),
        (with(good("pipeline"), "pipeline", json!(["whatsapp"])), "No route"),
        (with(good("viber"), "viber_signature", json!("")), "Error in Alpha-name"),
        (with(good("sms"), "phone", json!("nobody")), "Please enter valid receiver phone number"),
        (with(good("sms"), "sms_message", json!("")), "Please enter SMS text"),
    ] {
        let mut bench = Bench::playing(Scenario { accounts: vec![poor.clone()], ..Scenario::default() });
        bench.ask(Endpoint::Async, &json!([operation]));
        let [(_, url, body)] = &bench.webhooks()[..] else { panic!("one webhook for {operation}") };
        assert_eq!(url, HOOK);
        let mut expected = json!({"success": false, "id": "7", "msg_id": FIRST_MSG_ID.to_string(),
            "status": "REJECTED", "error": error, "updated": "1970-01-01T00:00:00+00:00",
            "request_id": "sandbox-0000000001"});
        if operation["type"] != "pipeline" {
            expected["type"] = operation["type"].clone();
        }
        assert_eq!(body, &expected);
    }
}

#[test]
fn a_payload_has_what_the_contract_shows_and_nothing_that_does_not_apply() {
    let mut scenario = Scenario::default();
    let reply = Some(Reply { share: Share::WHOLE, after: Duration::from_secs(7), message: "Так".into() });
    scenario.behaviours.set(Channel::Viber, Behaviour { reply, ..Behaviour::usual(Channel::Viber) });
    scenario.behaviours.set(Channel::Voice, Behaviour { digit: Some('5'), ..Behaviour::usual(Channel::Voice) });
    let none = "0%".parse().expect("a share");
    let failing = Behaviour { delivered: none, fails_as: Status::SimFull, ..Behaviour::usual(Channel::Sms) };
    scenario.behaviours.set(Channel::Sms, failing);
    let mut bench = Bench::playing(scenario);
    bench.ask(
        Endpoint::Sync,
        &json!([
            with(good("viber"), "id", json!("007")),
            with(with(good("voice"), "id", Value::Null), "dtmf", json!(true))
        ]),
    );
    bench.ask(Endpoint::Async, &json!([good("sms")]));
    bench.wait(60_000);
    let replied = bench.one(&json!({"type": "status", "msg_id": FIRST_MSG_ID}))["data"]["replies"].clone();
    assert_eq!(replied, json!([{"datetime": "1970-01-01T00:00:12+00:00", "message": "Так"}]));
    let bodies: Vec<_> = bench.received().into_iter().map(|(_, body)| body).collect();
    let viber = |status: &str, updated: &str| {
        json!({"success": true, "id": "007", "msg_id": FIRST_MSG_ID.to_string(), "type": "viber", "status": status,
            "updated": updated})
    };
    let mut replied = viber("REPLIED", "1970-01-01T00:00:12+00:00");
    replied["replies"] = json!([{"datetime": "1970-01-01T00:00:12+00:00", "message": "Так"}]);
    let voice = (FIRST_MSG_ID + 1).to_string();
    let delivered = "1970-01-01T00:00:02+00:00";
    let expected = [
        viber("DELIVERED", delivered),
        json!({"success": true, "id": voice, "msg_id": voice, "type": "voice", "status": "DELIVERED",
            "updated": delivered, "reply": "5", "duration": 12}),
        json!({"success": false, "id": "7", "msg_id": (FIRST_MSG_ID + 2).to_string(), "type": "sms", "status": "SIM FULL",
            "error": "Not delivered", "updated": delivered, "request_id": "sandbox-0000000001"}),
        viber("READ", "1970-01-01T00:00:05+00:00"),
        replied,
    ];
    assert_eq!(bodies, expected);
}

#[test]
fn the_type_of_a_webhook_is_one_of_four_or_left_out() {
    let refused = |kind: &str| with(good(kind), "phone", json!("nobody"));
    let whatsapp = with(good("pipeline"), "pipeline", json!(["whatsapp"]));
    for (operation, expected) in [
        (good("sms"), json!("sms")),
        (good("rcs+viber+sms"), json!("rcs")),
        (good("voice"), json!("voice")),
        (good("telegram"), Value::Null),
        (whatsapp, Value::Null),
        (refused("viber"), json!("viber")),
        (refused("viber+sms"), Value::Null),
        (refused("rcs+sms"), Value::Null),
        (refused("pipeline"), Value::Null),
        (refused("telegram"), Value::Null),
    ] {
        let webhooks = Webhooks { async_pipeline: true, ..Webhooks::default() };
        let mut bench = Bench::playing(Scenario { webhooks, ..Scenario::default() });
        bench.ask(Endpoint::Async, &json!([operation]));
        bench.wait(60_000);
        let told = bench.received();
        assert!(!told.is_empty() && told.iter().all(|(_, body)| body["type"] == expected), "{operation}\n{told:?}");
        assert!(told.iter().all(|(_, body)| expected != Value::Null || body.get("type").is_none()), "{told:?}");
    }
}

#[test]
fn a_webhook_that_is_tried_again_never_comes_after_a_newer_status() {
    let webhooks = Webhooks { retry: vec![Duration::from_secs(60)], ..Webhooks::default() };
    let mut bench = Bench::playing(Scenario { webhooks, ..Scenario::default() });
    bench.one(&good("viber"));
    bench.wait(2_000);
    let [(delivered, _, body)] = bench.webhooks().try_into().expect("one");
    assert_eq!(body["status"], "DELIVERED");
    bench.posted(delivered, PostOutcome::Answered(500));
    bench.wait(3_000);
    let [(read, _, body)] = bench.webhooks().try_into().expect("one");
    assert_eq!(body["status"], "READ");
    bench.posted(read, PostOutcome::Answered(200));
    bench.wait(10_000_000);
    assert_eq!((bench.webhooks(), bench.platform.next_due()), (vec![], None));
}

#[test]
fn a_webhook_is_tried_until_it_is_acknowledged_and_no_longer_than_the_scenario_says() {
    let retry = vec![Duration::from_secs(60), Duration::from_secs(180)];
    let webhooks = Webhooks { retry, ..Webhooks::default() };
    let answered = |status| PostOutcome::Answered(status);
    let failed = || PostOutcome::Failed("the connection was refused".into());
    for (outcomes, results) in [
        (vec![answered(200)], json!([200])),
        (vec![answered(204), answered(200)], json!([204, 200])),
        (vec![failed(), answered(500), answered(302)], json!(["the connection was refused", 500, 302])),
        (vec![PostOutcome::Refused("not allowed".into())], json!(["not allowed"])),
    ] {
        let mut bench = Bench::playing(Scenario { webhooks: webhooks.clone(), ..Scenario::default() });
        bench.one(&good("sms"));
        bench.wait(2_000);
        let waits = [0, 60_000, 180_000];
        let mut first = None;
        for (outcome, wait) in outcomes.into_iter().zip(waits) {
            bench.wait(wait.max(1) - 1);
            assert!(wait == 0 || bench.webhooks().is_empty(), "not before its time");
            bench.wait(1);
            let [(number, _, body)] = bench.webhooks().try_into().expect("one");
            // Every try has the same number and says the same.
            assert_eq!(first.get_or_insert((number, body.clone())), &(number, body));
            assert!(bench.webhooks().is_empty(), "it is under way");
            bench.posted(number, outcome);
        }
        bench.wait(10_000_000);
        assert_eq!((bench.webhooks(), bench.platform.next_due()), (vec![], None));
        let lines = bench.events("webhook");
        assert_eq!(lines.iter().map(|line| line["result"].clone()).collect::<Value>(), results);
        let attempts: Vec<_> = lines.iter().map(|line| line["attempt"].as_u64().expect("a number")).collect();
        assert_eq!(attempts, (1..=attempts.len() as u64).collect::<Vec<_>>());
        assert_eq!((&lines[0]["url"], &lines[0]["status"]), (&json!(HOOK), &json!("DELIVERED")));
    }
}

#[test]
fn webhooks_come_in_the_order_of_time_and_no_more_than_there_is_room_for() {
    let mut bench = Bench::new();
    let data: Vec<_> = (0..1_200).map(|id| with(good("viber"), "id", json!(id))).collect();
    bench.ask(Endpoint::Async, &json!(data));
    bench.wait(60_000);
    let (mut words, mut rounds) = (Vec::new(), 0);
    loop {
        let round = bench.webhooks_for(1_000);
        if round.is_empty() {
            break;
        }
        for (number, _, body) in round {
            bench.posted(number, PostOutcome::Answered(200));
            words.push(body["status"].clone());
        }
        rounds += 1;
    }
    assert_eq!((words.len(), rounds), (2_400, 3));
    assert!(words[..1_200].iter().all(|word| word == "DELIVERED") && words[1_200..].iter().all(|word| word == "READ"));
}

#[test]
fn the_next_news_of_a_message_waits_until_the_last_was_received_and_no_other_message_waits_for_it() {
    let mut bench = Bench::new();
    bench.ask(Endpoint::Sync, &json!([good("viber"), with(good("viber"), "id", json!(8))]));
    bench.wait(60_000);
    let [(first, _, told), (second, _, _)] = bench.webhooks().try_into().expect("one of each message");
    assert_eq!((&told["status"], bench.webhooks()), (&json!("DELIVERED"), vec![]));
    bench.posted(second, PostOutcome::Answered(200));
    let [(_, _, told)] = bench.webhooks().try_into().expect("one");
    assert_eq!((&told["id"], &told["status"]), (&json!("8"), &json!("READ")));
    // Whatever became of it: a receiver that fails does not lose the rest.
    bench.posted(first, PostOutcome::Answered(500));
    let [(_, _, told)] = bench.webhooks().try_into().expect("one");
    assert_eq!((&told["id"], &told["status"]), (&json!("7"), &json!("READ")));
}

#[test]
fn an_outcome_that_nobody_waits_for_changes_nothing() {
    let mut bench = Bench::new();
    bench.posted(1, PostOutcome::Answered(500));
    assert_eq!((bench.webhooks(), bench.journal()), (vec![], vec![]));
}

#[test]
fn a_webhook_that_waits_is_small() {
    assert!(size_of::<Waiting>() <= 56, "{} bytes", size_of::<Waiting>());
}

#[test]
fn a_digit_is_told_only_of_a_call_that_waited_for_one() {
    let mut scenario =
        Scenario { webhooks: Webhooks { async_pipeline: true, ..Webhooks::default() }, ..Scenario::default() };
    scenario.behaviours.set(Channel::Voice, Behaviour { digit: Some('5'), ..Behaviour::usual(Channel::Voice) });
    for (dtmf, digit) in [(json!(true), json!("5")), (json!(false), Value::Null), (Value::Null, Value::Null)] {
        let stage = json!({"message": "Hi", "dtmf": dtmf});
        let pipeline = with(with(good("pipeline"), "pipeline", json!(["voice"])), "voice", stage);
        for operation in [with(good("voice"), "dtmf", dtmf.clone()), pipeline] {
            let mut bench = Bench::playing(scenario.clone());
            bench.ask(Endpoint::Async, &json!([operation]));
            bench.wait(60_000);
            let (_, told) = bench.received().pop().expect("a webhook");
            assert_eq!((&told["reply"], &told["duration"]), (&digit, &json!(12)), "{operation}");
        }
    }
}
