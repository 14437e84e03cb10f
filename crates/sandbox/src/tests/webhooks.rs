//! Webhooks: which statuses are sent, their payload, order and retries.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::Bench;
use crate::platform::messages::FIRST_MSG_ID;
use crate::scenario::{self, Behaviour, ReplyBehaviour, Scenario, WebhookBehaviour};
use crate::webhooks::{WaitingWebhook, WebhookOutcome};
use campaign_core::domain::{Channel, Endpoint, Status};
use campaign_manifest::Percentage;

const HOOK: &str = "https://hooks.example.com/Receipts?token=a%2Fb&run=1";
const NOTIFY: &str = "https://shop.example.com/notify";

fn valid_operation(kind: &str) -> Value {
    json!({"type": kind, "id": 7, "phone": 380_501_234_567_u64, "hook": HOOK, "message": "012345",
        "sms_signature": "OlenaCo", "sms_message": "Hi", "viber_type": "text", "viber_signature": "OlenaCo",
        "viber_message": "Hi", "rcs_signature": "OlenaCo", "rcs_message": "Hi", "rcs_image": "https://a/b.png",
        "rcs_button": "Go", "rcs_link": "https://a", "pipeline": ["sms"],
        "sms": {"signature": "OlenaCo", "message": "Hi"}})
}

fn with_field(mut operation: Value, key: &str, value: Value) -> Value {
    operation[key] = value;
    operation
}

fn with_notify_address(scenario: Scenario) -> Scenario {
    let accounts =
        vec![scenario::AccountSettings { notify: Some(NOTIFY.into()), ..scenario::AccountSettings::default() }];
    Scenario { accounts, ..scenario }
}

/// The statuses that a bench sends until its messages are final, with their addresses.
fn received_statuses(bench: &mut Bench) -> Vec<(String, String)> {
    bench.advance_millis(600_000);
    let received = bench.take_received().into_iter();
    received.map(|(url, body)| (url, body["status"].as_str().expect("a status").to_owned())).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(url, status)| ((*url).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn hook_gets_final_statuses_on_both_endpoints() {
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
            bench.send(endpoint, &json!([valid_operation(kind)]));
            assert_eq!(bench.take_webhooks(), [], "nothing is final yet");
            let expected: Vec<_> = statuses.iter().map(|status| (HOOK, *status)).collect();
            assert_eq!(received_statuses(&mut bench), pairs(&expected), "{kind} {endpoint}");
        }
    }
}

#[test]
fn operation_without_a_hook_sends_no_webhook() {
    for operation in [
        valid_operation("hlr"),
        valid_operation("call/otp"),
        with_field(valid_operation("sms"), "hook", Value::Null),
        with_field(valid_operation("sms"), "hook", json!("not an address")),
        json!({"type": "balance", "hook": HOOK}),
    ] {
        for endpoint in [Endpoint::Sync, Endpoint::Async] {
            let mut bench = Bench::new();
            bench.send(endpoint, &json!([operation]));
            assert_eq!(received_statuses(&mut bench), [], "{operation}");
        }
    }
}

#[test]
fn pipeline_webhooks_go_to_the_account_or_the_operation_hook() {
    let by_hook = WebhookBehaviour { async_pipeline: true, ..WebhookBehaviour::default() };
    let invalid = with_field(valid_operation("pipeline"), "sms", json!({}));
    for (endpoint, webhooks, operation, expected) in [
        (Endpoint::Sync, WebhookBehaviour::default(), valid_operation("pipeline"), &[(NOTIFY, "DELIVERED")][..]),
        (Endpoint::Sync, by_hook.clone(), valid_operation("pipeline"), &[(NOTIFY, "DELIVERED")]),
        (Endpoint::Async, WebhookBehaviour::default(), valid_operation("pipeline"), &[(NOTIFY, "DELIVERED")]),
        (Endpoint::Async, by_hook, valid_operation("pipeline"), &[(HOOK, "DELIVERED")]),
        (Endpoint::Sync, WebhookBehaviour::default(), invalid.clone(), &[]),
        (Endpoint::Async, WebhookBehaviour::default(), invalid, &[(HOOK, "REJECTED")]),
    ] {
        let mut bench = Bench::with_scenario(with_notify_address(Scenario { webhooks, ..Scenario::default() }));
        bench.send(endpoint, &json!([operation]));
        assert_eq!(received_statuses(&mut bench), pairs(expected), "{endpoint} {operation}");
    }
    let mut bench = Bench::new();
    bench.send(Endpoint::Async, &json!([valid_operation("pipeline")]));
    assert_eq!(received_statuses(&mut bench), []);
}

#[test]
fn failure_webhooks_of_earlier_channels_are_sent_if_enabled() {
    let channels = |received: &[(String, Value)]| -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        received.iter().map(|(_, body)| (word(&body["type"]), word(&body["status"]))).collect()
    };
    let chain = ["telegram", "rcs", "viber", "sms"];
    let pipeline = with_field(valid_operation("pipeline"), "pipeline", json!(chain));
    let pipeline = with_field(pipeline, "telegram", json!({"message": "012345"}));
    let pipeline = with_field(pipeline, "rcs", json!({"signature": "OlenaCo", "message": "Hi"}));
    let pipeline = with_field(pipeline, "viber", json!({"signature": "OlenaCo", "message": "Hi", "type": "text"}));
    for intermediate in [true, false] {
        let webhooks = WebhookBehaviour { intermediate, async_pipeline: true, ..WebhookBehaviour::default() };
        let mut scenario = Scenario { webhooks, ..Scenario::default() };
        for channel in [Channel::Telegram, Channel::Rcs, Channel::Viber] {
            let fails = Behaviour {
                delivered: "0%".parse().expect("a share"),
                ..scenario.behaviours.for_channel(channel).clone()
            };
            scenario.behaviours.set(channel, fails);
        }
        for operation in [valid_operation("rcs+viber+sms"), pipeline.clone()] {
            let mut bench = Bench::with_scenario(scenario.clone());
            bench.send(Endpoint::Async, &json!([operation]));
            bench.advance_millis(60_000_000);
            let pairs = [("rcs", "UNDELIVERABLE"), ("viber", "UNDELIVERABLE"), ("sms", "DELIVERED")];
            // A webhook cannot name Telegram, and one without a channel would be about the whole message. Telegram's
            // failure is therefore not reported.
            let expected = if intermediate { &pairs[..] } else { &pairs[2..] };
            let expected: Vec<_> =
                expected.iter().map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect();
            assert_eq!(channels(&bench.take_received()), expected, "{operation}");
        }
    }
}

#[test]
fn async_rejection_is_sent_at_once() {
    let poor = scenario::AccountSettings {
        balance: "0.79".parse().expect("an amount"),
        whatsapp: false,
        ..scenario::AccountSettings::default()
    };
    for (operation, error) in [
        (valid_operation("sms"), "Not enough money"),
        (valid_operation("pipeline"), "Not enough money"),
        (with_field(valid_operation("pipeline"), "pipeline", json!(["whatsapp"])), "No route"),
        (with_field(valid_operation("viber"), "viber_signature", json!("")), "Error in Alpha-name"),
        (with_field(valid_operation("sms"), "phone", json!("nobody")), "Please enter valid receiver phone number"),
        (with_field(valid_operation("sms"), "sms_message", json!("")), "Please enter SMS text"),
    ] {
        let mut bench = Bench::with_scenario(Scenario { accounts: vec![poor.clone()], ..Scenario::default() });
        bench.send(Endpoint::Async, &json!([operation]));
        let [(_, url, body)] = &bench.take_webhooks()[..] else { panic!("one webhook for {operation}") };
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
fn payload_has_only_the_applicable_fields() {
    let mut scenario = Scenario::default();
    let reply =
        Some(ReplyBehaviour { share: Percentage::WHOLE, after: Duration::from_secs(7), message: "Так".into() });
    scenario.behaviours.set(Channel::Viber, Behaviour { reply, ..Behaviour::default_for(Channel::Viber) });
    scenario.behaviours.set(Channel::Voice, Behaviour { digit: Some('5'), ..Behaviour::default_for(Channel::Voice) });
    let zero = "0%".parse().expect("a share");
    let failing = Behaviour { delivered: zero, fails_as: Status::SimFull, ..Behaviour::default_for(Channel::Sms) };
    scenario.behaviours.set(Channel::Sms, failing);
    let mut bench = Bench::with_scenario(scenario);
    bench.send(
        Endpoint::Sync,
        &json!([
            with_field(valid_operation("viber"), "id", json!("007")),
            with_field(with_field(valid_operation("voice"), "id", Value::Null), "dtmf", json!(true))
        ]),
    );
    bench.send(Endpoint::Async, &json!([valid_operation("sms")]));
    bench.advance_millis(60_000);
    let replied = bench.send_one(&json!({"type": "status", "msg_id": FIRST_MSG_ID}))["data"]["replies"].clone();
    assert_eq!(replied, json!([{"datetime": "1970-01-01T00:00:12+00:00", "message": "Так"}]));
    let bodies: Vec<_> = bench.take_received().into_iter().map(|(_, body)| body).collect();
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
fn webhook_type_is_one_of_four_or_absent() {
    let invalid = |kind: &str| with_field(valid_operation(kind), "phone", json!("nobody"));
    let whatsapp = with_field(valid_operation("pipeline"), "pipeline", json!(["whatsapp"]));
    for (operation, expected) in [
        (valid_operation("sms"), json!("sms")),
        (valid_operation("rcs+viber+sms"), json!("rcs")),
        (valid_operation("voice"), json!("voice")),
        (valid_operation("telegram"), Value::Null),
        (whatsapp, Value::Null),
        (invalid("viber"), json!("viber")),
        (invalid("viber+sms"), Value::Null),
        (invalid("rcs+sms"), Value::Null),
        (invalid("pipeline"), Value::Null),
        (invalid("telegram"), Value::Null),
    ] {
        let webhooks = WebhookBehaviour { async_pipeline: true, ..WebhookBehaviour::default() };
        let mut bench = Bench::with_scenario(Scenario { webhooks, ..Scenario::default() });
        bench.send(Endpoint::Async, &json!([operation]));
        bench.advance_millis(60_000);
        let received = bench.take_received();
        assert!(
            !received.is_empty() && received.iter().all(|(_, body)| body["type"] == expected),
            "{operation}\n{received:?}"
        );
        assert!(received.iter().all(|(_, body)| expected != Value::Null || body.get("type").is_none()), "{received:?}");
    }
}

#[test]
fn webhook_retry_never_follows_a_newer_status() {
    let webhooks = WebhookBehaviour { retry: vec![Duration::from_secs(60)], ..WebhookBehaviour::default() };
    let mut bench = Bench::with_scenario(Scenario { webhooks, ..Scenario::default() });
    bench.send_one(&valid_operation("viber"));
    bench.advance_millis(2_000);
    let [(delivered, _, body)] = bench.take_webhooks().try_into().expect("one");
    assert_eq!(body["status"], "DELIVERED");
    bench.finish_webhook(delivered, WebhookOutcome::Answered(500));
    bench.advance_millis(3_000);
    let [(read, _, body)] = bench.take_webhooks().try_into().expect("one");
    assert_eq!(body["status"], "READ");
    bench.finish_webhook(read, WebhookOutcome::Answered(200));
    bench.advance_millis(10_000_000);
    assert_eq!((bench.take_webhooks(), bench.platform.next_due()), (vec![], None));
}

#[test]
fn webhook_is_retried_until_acknowledged_or_dropped() {
    let retry = vec![Duration::from_secs(60), Duration::from_secs(180)];
    let webhooks = WebhookBehaviour { retry, ..WebhookBehaviour::default() };
    let answered = |status| WebhookOutcome::Answered(status);
    let failed = || WebhookOutcome::Failed("the connection was refused".into());
    for (outcomes, results) in [
        (vec![answered(200)], json!([200])),
        (vec![answered(204), answered(200)], json!([204, 200])),
        (vec![failed(), answered(500), answered(302)], json!(["the connection was refused", 500, 302])),
        (vec![WebhookOutcome::Refused("not allowed".into())], json!(["not allowed"])),
    ] {
        let mut bench = Bench::with_scenario(Scenario { webhooks: webhooks.clone(), ..Scenario::default() });
        bench.send_one(&valid_operation("sms"));
        bench.advance_millis(2_000);
        let waits = [0, 60_000, 180_000];
        let mut first = None;
        for (outcome, wait) in outcomes.into_iter().zip(waits) {
            bench.advance_millis(wait.max(1) - 1);
            assert!(wait == 0 || bench.take_webhooks().is_empty(), "not before its time");
            bench.advance_millis(1);
            let [(number, _, body)] = bench.take_webhooks().try_into().expect("one");
            // Every attempt has the same number and the same body.
            assert_eq!(first.get_or_insert((number, body.clone())), &(number, body));
            assert!(bench.take_webhooks().is_empty(), "the attempt is in flight");
            bench.finish_webhook(number, outcome);
        }
        bench.advance_millis(10_000_000);
        assert_eq!((bench.take_webhooks(), bench.platform.next_due()), (vec![], None));
        let lines = bench.journal_events("webhook");
        assert_eq!(lines.iter().map(|line| line["result"].clone()).collect::<Value>(), results);
        let attempts: Vec<_> = lines.iter().map(|line| line["attempt"].as_u64().expect("a number")).collect();
        assert_eq!(attempts, (1..=attempts.len() as u64).collect::<Vec<_>>());
        assert_eq!((&lines[0]["url"], &lines[0]["status"]), (&json!(HOOK), &json!("DELIVERED")));
    }
}

#[test]
fn webhooks_are_sent_chronologically_in_bounded_batches() {
    let mut bench = Bench::new();
    let data: Vec<_> = (0..1_200).map(|id| with_field(valid_operation("viber"), "id", json!(id))).collect();
    bench.send(Endpoint::Async, &json!(data));
    bench.advance_millis(60_000);
    let (mut words, mut rounds) = (Vec::new(), 0);
    loop {
        let round = bench.take_webhooks_up_to(1_000);
        if round.is_empty() {
            break;
        }
        for (number, _, body) in round {
            bench.finish_webhook(number, WebhookOutcome::Answered(200));
            words.push(body["status"].clone());
        }
        rounds += 1;
    }
    assert_eq!((words.len(), rounds), (2_400, 3));
    assert!(words[..1_200].iter().all(|word| word == "DELIVERED") && words[1_200..].iter().all(|word| word == "READ"));
}

#[test]
fn webhooks_of_one_message_are_sequential() {
    let mut bench = Bench::new();
    bench
        .send(Endpoint::Sync, &json!([valid_operation("viber"), with_field(valid_operation("viber"), "id", json!(8))]));
    bench.advance_millis(60_000);
    let [(first, _, payload), (second, _, _)] = bench.take_webhooks().try_into().expect("one of each message");
    assert_eq!((&payload["status"], bench.take_webhooks()), (&json!("DELIVERED"), vec![]));
    bench.finish_webhook(second, WebhookOutcome::Answered(200));
    let [(_, _, payload)] = bench.take_webhooks().try_into().expect("one");
    assert_eq!((&payload["id"], &payload["status"]), (&json!("8"), &json!("READ")));
    // A failed webhook does not prevent the others.
    bench.finish_webhook(first, WebhookOutcome::Answered(500));
    let [(_, _, payload)] = bench.take_webhooks().try_into().expect("one");
    assert_eq!((&payload["id"], &payload["status"]), (&json!("7"), &json!("READ")));
}

#[test]
fn outcome_of_an_unknown_webhook_is_ignored() {
    let mut bench = Bench::new();
    bench.finish_webhook(1, WebhookOutcome::Answered(500));
    assert_eq!((bench.take_webhooks(), bench.journal_lines()), (vec![], vec![]));
}

#[test]
fn waiting_webhook_is_small() {
    assert!(size_of::<WaitingWebhook>() <= 56, "{} bytes", size_of::<WaitingWebhook>());
}

#[test]
fn digit_is_sent_only_for_dtmf_calls() {
    let mut scenario = Scenario {
        webhooks: WebhookBehaviour { async_pipeline: true, ..WebhookBehaviour::default() },
        ..Scenario::default()
    };
    scenario.behaviours.set(Channel::Voice, Behaviour { digit: Some('5'), ..Behaviour::default_for(Channel::Voice) });
    for (dtmf, digit) in [(json!(true), json!("5")), (json!(false), Value::Null), (Value::Null, Value::Null)] {
        let stage = json!({"message": "Hi", "dtmf": dtmf});
        let pipeline =
            with_field(with_field(valid_operation("pipeline"), "pipeline", json!(["voice"])), "voice", stage);
        for operation in [with_field(valid_operation("voice"), "dtmf", dtmf.clone()), pipeline] {
            let mut bench = Bench::with_scenario(scenario.clone());
            bench.send(Endpoint::Async, &json!([operation]));
            bench.advance_millis(60_000);
            let (_, payload) = bench.take_received().pop().expect("a webhook");
            assert_eq!((&payload["reply"], &payload["duration"]), (&digit, &json!(12)), "{operation}");
        }
    }
}
