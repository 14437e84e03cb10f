//! Delivery-status webhooks of the sandbox (contract 2.4 and 6).

use std::time::Duration;

use campaign_core::domain::Channel;
use campaign_manifest::Percentage;
use campaign_sandbox::{AccountSettings, Behaviour, Behaviours, ReplyBehaviour, Scenario, WebhookBehaviour};
use serde_json::{Value, json};

use super::TestSandbox;
use super::examples::{PHONE, example, with_changes};
use super::in_process::{JSON, SYNC, envelope, post};
use crate::support::{Answer, Gateway, Reachable as _, Request, SandboxProcess, until};

/// Starts a receiver that acknowledges every webhook.
fn start_receiver() -> Gateway {
    Gateway::always(Answer::status(200))
}

/// The operation with the webhook URL of a receiver.
fn with_hook(operation: &Value, receiver: &Gateway) -> Value {
    with_changes(operation, json!({"hook": format!("{}/hook?token=a%2Fb&empty=", receiver.base_url())}))
}

/// Waits for `count` webhooks and returns all that arrived.
fn wait_for_webhooks(receiver: &Gateway, count: usize) -> Vec<Request> {
    until(&format!("{count} webhooks"), || receiver.requests().len() >= count);
    receiver.requests()
}

fn statuses(requests: &[Request]) -> Vec<Value> {
    requests.iter().map(|request| request.json()["status"].clone()).collect()
}

/// Gateway contract 2.4, 5.4 and 6.1: JSON is posted to the exact URL, without the key.
#[test]
fn webhook_is_posted_to_the_exact_address_without_a_key() {
    let (receiver, sandbox) = (start_receiver(), TestSandbox::start());
    let sent = sandbox.payload(&with_hook(&example("sms", 17), &receiver));
    let webhook = wait_for_webhooks(&receiver, 1).remove(0);
    assert_eq!(webhook.line, "POST /hook?token=a%2Fb&empty= HTTP/1.1");
    assert_eq!(webhook.header("content-type"), ["application/json"]);
    assert!(webhook.header("authorization").is_empty());
    assert!(!String::from_utf8_lossy(&webhook.body).contains(crate::support::KEY));
    let body = webhook.json();
    let updated: jiff::Timestamp = body["updated"].as_str().and_then(|time| time.parse().ok()).expect("a time");
    assert!(updated > jiff::Timestamp::UNIX_EPOCH);
    let expected = json!({"success": true, "id": "17", "msg_id": sent["msg_id"].to_string(), "type": "sms",
        "status": "DELIVERED", "updated": body["updated"]});
    assert_eq!(body, expected);
}

/// Gateway contract 6.2 and 6.3: every message with a `hook` is reported when it reaches a final status.
#[test]
fn message_with_a_hook_is_reported_when_final() {
    let kinds = ["viber", "rcs", "rcs+sms", "rcs+viber+sms", "sms", "telegram", "viber+sms", "voice"];
    let (receiver, sandbox) = (start_receiver(), TestSandbox::start());
    let operations: Vec<_> = (1..).zip(kinds).map(|(id, kind)| with_hook(&example(kind, id), &receiver)).collect();
    sandbox.items(&operations);
    sandbox.drain();
    let webhooks: Vec<_> = receiver.requests().iter().map(Request::json).collect();
    for (id, kind) in (1..).zip(kinds) {
        let reported: Vec<_> = webhooks.iter().filter(|webhook| webhook["id"] == format!("{id}")).collect();
        assert!(!reported.is_empty(), "{kind}");
        for webhook in reported {
            assert!(webhook["status"] == "DELIVERED" || webhook["status"] == "READ", "{kind}: {webhook}");
            assert_eq!(webhook["success"], true, "{kind}: {webhook}");
            let channel = kind.split('+').next().filter(|channel| *channel != "telegram");
            assert_eq!(webhook["type"].as_str(), channel, "{kind}: {webhook}");
        }
    }
}

/// Gateway contract 2.4: a webhook has `reply` and `duration` for a call, `replies` for a message, and `error` for a
/// failure.
#[test]
fn webhook_has_the_fields_of_its_channel() {
    let mut behaviours = Behaviours::default();
    let voice = Behaviour { digit: Some('7'), ..Behaviour::default_for(Channel::Voice) };
    behaviours.set(Channel::Voice, voice);
    let reply = ReplyBehaviour { share: Percentage::WHOLE, after: Duration::from_secs(1), message: "Так!".into() };
    behaviours.set(Channel::Viber, Behaviour { reply: Some(reply), ..Behaviour::default_for(Channel::Viber) });
    let never: Percentage = "0%".parse().expect("a share");
    behaviours.set(Channel::Sms, Behaviour { delivered: never, ..Behaviour::default_for(Channel::Sms) });
    let sandbox = TestSandbox::start_with(Scenario { behaviours, ..Scenario::default() });
    let send_and_get_last_webhook = |kind: &str| {
        let receiver = start_receiver();
        let operation = with_changes(&example(kind, 1), json!({"dtmf": true}));
        sandbox.payload(&with_hook(&operation, &receiver));
        sandbox.drain();
        receiver.requests().last().expect("a webhook").json()
    };
    let voice = send_and_get_last_webhook("voice");
    assert_eq!((&voice["reply"], &voice["duration"]), (&json!("7"), &json!(12)), "{voice}");
    let viber = send_and_get_last_webhook("viber");
    assert_eq!((&viber["status"], &viber["success"]), (&json!("REPLIED"), &json!(true)), "{viber}");
    assert_eq!(viber["replies"][0]["message"], "Так!", "{viber}");
    assert!(viber["replies"][0]["datetime"].as_str().is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok()));
    let sms = send_and_get_last_webhook("sms");
    assert_eq!((&sms["success"], &sms["status"]), (&json!(false), &json!("UNDELIVERABLE")), "{sms}");
    assert!(sms["error"].as_str().is_some_and(|error| !error.is_empty()), "{sms}");
}

/// Gateway contract 6.1: HTTP 200 acknowledges a webhook. After any other status, the webhook is repeated.
#[test]
fn unacknowledged_webhook_is_retried() {
    let retry = vec![Duration::from_secs(1); 2];
    let webhooks = WebhookBehaviour { retry, ..WebhookBehaviour::default() };
    let answers = [Answer::status(500), Answer::status(201), Answer::status(200)];
    let receiver = Gateway::answering(answers);
    let sandbox = TestSandbox::start_with(Scenario { webhooks, ..Scenario::default() });
    sandbox.payload(&with_hook(&example("sms", 1), &receiver));
    sandbox.drain();
    let attempts = receiver.requests();
    assert_eq!(statuses(&attempts), ["DELIVERED"; 3]);
    assert!(attempts.iter().all(|request| request.body == attempts[0].body));
    let results: Vec<_> = sandbox.journal("webhook").iter().map(|line| line["result"].clone()).collect();
    assert_eq!(results, [json!(500), json!(201), json!(200)]);
}

/// Gateway contract 6.4: the synchronous endpoint does not store the hook of a pipeline. It reports to the account's
/// URL instead.
#[test]
fn hook_of_a_pipeline_is_not_stored() {
    let (hook_receiver, account_receiver) = (start_receiver(), start_receiver());
    let notify = Some(format!("{}/account", account_receiver.base_url()));
    let accounts = vec![AccountSettings { notify, ..AccountSettings::default() }];
    let sandbox = TestSandbox::start_with(Scenario { accounts, ..Scenario::default() });
    let operation = with_hook(&example("pipeline", 3), &hook_receiver);
    sandbox.payload(&operation);
    sandbox.drain();
    let webhooks = account_receiver.requests();
    assert_eq!(statuses(&webhooks), ["DELIVERED", "READ"]);
    assert!(webhooks.iter().all(|webhook| webhook.path() == "/account"));
    // Gateway contract 6.5: the asynchronous endpoint uses the hook only for a rejection.
    sandbox.queue(std::slice::from_ref(&operation));
    sandbox.drain();
    assert_eq!((hook_receiver.requests().len(), account_receiver.requests().len()), (0, 4));
    sandbox.queue(&[with_changes(&operation, json!({"phone": "nobody"}))]);
    sandbox.drain();
    assert_eq!((statuses(&hook_receiver.requests()), account_receiver.requests().len()), (vec![json!("REJECTED")], 4));
}

/// Gateway contract 6.4: `--notify` sets the account's notification URL.
#[test]
fn notify_option_sets_the_notification_url_of_the_account() {
    let (folder, account_receiver) = (tempfile::tempdir().expect("a folder"), start_receiver());
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, "speed: 200\n").expect("a scenario");
    let address = format!("{}/account?token=1", account_receiver.base_url());
    let sandbox = SandboxProcess::start_with(&["--notify", &address, "--scenario", &scenario.display().to_string()]);
    let body = envelope(&[example("pipeline", 3)]).to_string();
    assert_eq!(post(&sandbox.base_url(), SYNC, &[JSON], body.as_bytes()).json()["success"], true);
    let webhooks = wait_for_webhooks(&account_receiver, 2);
    assert_eq!(statuses(&webhooks), ["DELIVERED", "READ"]);
    assert_eq!(webhooks[0].line, "POST /account?token=1 HTTP/1.1");
}

/// Gateway contract 2.3, 2.4 and 6.6: the webhook repeats the identifier of the asynchronous request.
#[test]
fn webhook_contains_the_request_id_of_its_message() {
    let (receiver, sandbox) = (start_receiver(), TestSandbox::start());
    let first = sandbox.queue(&[with_hook(&example("sms", 1), &receiver)]);
    let second = sandbox.queue(&[with_hook(&example("sms", 2), &receiver), with_hook(&example("sms", 3), &receiver)]);
    sandbox.drain();
    let mut webhooks: Vec<_> = receiver.requests().iter().map(Request::json).collect();
    webhooks.sort_by_key(|webhook| webhook["id"].to_string());
    let requests: Vec<_> = webhooks.iter().map(|webhook| webhook["request_id"].clone()).collect();
    assert_eq!(requests, [json!(first), json!(second), json!(second)]);
}

/// Gateway contract 1.7: no webhook is sent without a `hook`, or to another machine.
#[test]
fn webhook_is_sent_only_to_a_requested_local_hook() {
    let (receiver, sandbox) = (start_receiver(), TestSandbox::start());
    sandbox.payload(&example("sms", 1));
    sandbox.payload(&with_changes(&example("sms", 2), json!({"hook": "https://192.0.2.1/?token=1"})));
    sandbox.payload(&with_hook(&example("sms", 3), &receiver));
    sandbox.drain();
    assert_eq!(receiver.requests().len(), 1);
    let lines = sandbox.journal("webhook");
    let elsewhere = lines.iter().find(|line| line["url"] == "https://192.0.2.1/?token=1").expect("a line");
    assert!(elsewhere["result"].as_str().is_some_and(|reason| reason.contains("is not on this machine")));
    assert_eq!(lines.len(), 2);
}

/// Gateway contract 2.4: each recipient of an operation has a message with separate webhooks.
#[test]
fn each_recipient_of_an_operation_gets_separate_webhooks() {
    let (receiver, sandbox) = (start_receiver(), TestSandbox::start());
    let phones = json!({"phone": format!("{PHONE},{}", PHONE + 1)});
    sandbox.payload(&with_hook(&with_changes(&example("sms", 1), phones), &receiver));
    sandbox.drain();
    let mut messages: Vec<_> = receiver.requests().iter().map(|webhook| webhook.json()["msg_id"].clone()).collect();
    messages.dedup();
    assert_eq!(messages.len(), 2);
}
