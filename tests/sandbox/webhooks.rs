//! Delivery-status webhooks: contract 2.4 and 6.

use std::time::Duration;

use campaign::domain::Channel;
use campaign::manifest::Percentage;
use campaign::sandbox::{AccountSettings, Behaviour, Behaviours, ReplyBehaviour, Scenario, WebhookBehaviour};
use serde_json::{Value, json};

use super::Stand;
use super::examples::{PHONE, example, with};
use super::stand::{JSON, SYNC, envelope, post};
use crate::support::{Answer, Gateway, Reachable as _, Request, SandboxProcess, until};

/// A receiver that acknowledges every webhook.
fn receiver() -> Gateway {
    Gateway::always(Answer::status(200))
}

/// The operation with the address of a receiver.
fn hooked(operation: &Value, receiver: &Gateway) -> Value {
    with(operation, json!({"hook": format!("{}/hook?token=a%2Fb&empty=", receiver.base_url())}))
}

/// What arrived, once `count` webhooks have.
fn arrived(receiver: &Gateway, count: usize) -> Vec<Request> {
    until(&format!("{count} webhooks"), || receiver.requests().len() >= count);
    receiver.requests()
}

fn statuses(requests: &[Request]) -> Vec<Value> {
    requests.iter().map(|request| request.json()["status"].clone()).collect()
}

/// Contract 2.4, 5.4 and 6.1: a POST of JSON to the address as it was given, without the key.
#[test]
fn webhook_is_posted_to_the_exact_address_without_a_key() {
    let (receiver, stand) = (receiver(), Stand::new());
    let sent = stand.payload(&hooked(&example("sms", 17), &receiver));
    let webhook = arrived(&receiver, 1).remove(0);
    assert_eq!(webhook.line, "POST /hook?token=a%2Fb&empty= HTTP/1.1");
    assert_eq!(webhook.header("content-type"), ["application/json"]);
    assert!(webhook.header("authorization").is_empty());
    assert!(!String::from_utf8_lossy(&webhook.body).contains(crate::support::KEY));
    let told = webhook.json();
    let updated: jiff::Timestamp = told["updated"].as_str().and_then(|time| time.parse().ok()).expect("a time");
    assert!(updated > jiff::Timestamp::UNIX_EPOCH);
    let expected = json!({"success": true, "id": "17", "msg_id": sent["msg_id"].to_string(), "type": "sms",
        "status": "DELIVERED", "updated": told["updated"]});
    assert_eq!(told, expected);
}

/// Contract 6.2 and 6.3: every send that keeps a `hook` is told of once it is in a final state.
#[test]
fn message_with_a_hook_is_reported_when_final() {
    let kinds = ["viber", "rcs", "rcs+sms", "rcs+viber+sms", "sms", "telegram", "viber+sms", "voice"];
    let (receiver, stand) = (receiver(), Stand::new());
    let operations: Vec<_> = (1..).zip(kinds).map(|(id, kind)| hooked(&example(kind, id), &receiver)).collect();
    stand.items(&operations);
    stand.run_out();
    let webhooks: Vec<_> = receiver.requests().iter().map(Request::json).collect();
    for (id, kind) in (1..).zip(kinds) {
        let told: Vec<_> = webhooks.iter().filter(|webhook| webhook["id"] == format!("{id}")).collect();
        assert!(!told.is_empty(), "{kind}");
        for webhook in told {
            assert!(webhook["status"] == "DELIVERED" || webhook["status"] == "READ", "{kind}: {webhook}");
            assert_eq!(webhook["success"], true, "{kind}: {webhook}");
            let channel = kind.split('+').next().filter(|channel| *channel != "telegram");
            assert_eq!(webhook["type"].as_str(), channel, "{kind}: {webhook}");
        }
    }
}

/// Contract 2.4: `reply` and `duration` of a call, `replies` to a message, `error` of a failure.
#[test]
fn webhook_has_the_fields_of_its_channel() {
    let mut behaviours = Behaviours::default();
    let voice = Behaviour { digit: Some('7'), ..Behaviour::default_for(Channel::Voice) };
    behaviours.set(Channel::Voice, voice);
    let reply = ReplyBehaviour { share: Percentage::WHOLE, after: Duration::from_secs(1), message: "Так!".into() };
    behaviours.set(Channel::Viber, Behaviour { reply: Some(reply), ..Behaviour::default_for(Channel::Viber) });
    let nobody: Percentage = "0%".parse().expect("a share");
    behaviours.set(Channel::Sms, Behaviour { delivered: nobody, ..Behaviour::default_for(Channel::Sms) });
    let stand = Stand::playing(Scenario { behaviours, ..Scenario::default() });
    let told = |kind: &str| {
        let receiver = receiver();
        let operation = with(&example(kind, 1), json!({"dtmf": true}));
        stand.payload(&hooked(&operation, &receiver));
        stand.run_out();
        receiver.requests().last().expect("a webhook").json()
    };
    let voice = told("voice");
    assert_eq!((&voice["reply"], &voice["duration"]), (&json!("7"), &json!(12)), "{voice}");
    let viber = told("viber");
    assert_eq!((&viber["status"], &viber["success"]), (&json!("REPLIED"), &json!(true)), "{viber}");
    assert_eq!(viber["replies"][0]["message"], "Так!", "{viber}");
    assert!(viber["replies"][0]["datetime"].as_str().is_some_and(|time| time.parse::<jiff::Timestamp>().is_ok()));
    let sms = told("sms");
    assert_eq!((&sms["success"], &sms["status"]), (&json!(false), &json!("UNDELIVERABLE")), "{sms}");
    assert!(sms["error"].as_str().is_some_and(|error| !error.is_empty()), "{sms}");
}

/// Contract 6.1: an acknowledgement is HTTP 200; whatever else is answered, the webhook comes again.
#[test]
fn unacknowledged_webhook_is_repeated() {
    let retry = vec![Duration::from_secs(1); 2];
    let webhooks = WebhookBehaviour { retry, ..WebhookBehaviour::default() };
    let answers = [Answer::status(500), Answer::status(201), Answer::status(200)];
    let receiver = Gateway::answering(answers);
    let stand = Stand::playing(Scenario { webhooks, ..Scenario::default() });
    stand.payload(&hooked(&example("sms", 1), &receiver));
    stand.run_out();
    let tried = receiver.requests();
    assert_eq!(statuses(&tried), ["DELIVERED"; 3]);
    assert!(tried.iter().all(|request| request.body == tried[0].body));
    let results: Vec<_> = stand.journal("webhook").iter().map(|line| line["result"].clone()).collect();
    assert_eq!(results, [json!(500), json!(201), json!(200)]);
}

/// Contract 6.4: the synchronous endpoint does not keep the hook of a pipeline; the account's address is told.
#[test]
fn hook_of_a_pipeline_is_not_stored() {
    let (hook, notified) = (receiver(), receiver());
    let notify = Some(format!("{}/account", notified.base_url()));
    let accounts = vec![AccountSettings { notify, ..AccountSettings::default() }];
    let stand = Stand::playing(Scenario { accounts, ..Scenario::default() });
    let operation = hooked(&example("pipeline", 3), &hook);
    stand.payload(&operation);
    stand.run_out();
    let webhooks = notified.requests();
    assert_eq!(statuses(&webhooks), ["DELIVERED", "READ"]);
    assert!(webhooks.iter().all(|webhook| webhook.path() == "/account"));
    // Contract 6.5: the asynchronous endpoint uses it for a refusal only.
    stand.queue(std::slice::from_ref(&operation));
    stand.run_out();
    assert_eq!((hook.requests().len(), notified.requests().len()), (0, 4));
    stand.queue(&[with(&operation, json!({"phone": "nobody"}))]);
    stand.run_out();
    assert_eq!((statuses(&hook.requests()), notified.requests().len()), (vec![json!("REJECTED")], 4));
}

/// Contract 6.4: `--notify` is the notification address of the API settings.
#[test]
fn account_of_a_sandbox_can_have_a_notification_address() {
    let (folder, notified) = (tempfile::tempdir().expect("a folder"), receiver());
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, "speed: 200\n").expect("a scenario");
    let address = format!("{}/account?token=1", notified.base_url());
    let sandbox = SandboxProcess::start_with(&["--notify", &address, "--scenario", &scenario.display().to_string()]);
    let body = envelope(&[example("pipeline", 3)]).to_string();
    assert_eq!(post(&sandbox.base_url(), SYNC, &[JSON], body.as_bytes()).json()["success"], true);
    let webhooks = arrived(&notified, 2);
    assert_eq!(statuses(&webhooks), ["DELIVERED", "READ"]);
    assert_eq!(webhooks[0].line, "POST /account?token=1 HTTP/1.1");
}

/// Contract 2.3, 2.4 and 6.6: the webhook repeats the identifier of the asynchronous request.
#[test]
fn webhook_repeats_the_request_of_its_message() {
    let (receiver, stand) = (receiver(), Stand::new());
    let first = stand.queue(&[hooked(&example("sms", 1), &receiver)]);
    let second = stand.queue(&[hooked(&example("sms", 2), &receiver), hooked(&example("sms", 3), &receiver)]);
    stand.run_out();
    let mut told: Vec<_> = receiver.requests().iter().map(Request::json).collect();
    told.sort_by_key(|webhook| webhook["id"].to_string());
    let requests: Vec<_> = told.iter().map(|webhook| webhook["request_id"].clone()).collect();
    assert_eq!(requests, [json!(first), json!(second), json!(second)]);
}

/// Contract 1.7: without a `hook` nobody is told, and a campaign's webhooks go to nobody else's machine.
#[test]
fn fallbacks_get_no_receipt_unless_requested_here() {
    let (receiver, stand) = (receiver(), Stand::new());
    stand.payload(&example("sms", 1));
    stand.payload(&with(&example("sms", 2), json!({"hook": "https://192.0.2.1/?token=1"})));
    stand.payload(&hooked(&example("sms", 3), &receiver));
    stand.run_out();
    assert_eq!(receiver.requests().len(), 1);
    let told = stand.journal("webhook");
    let elsewhere = told.iter().find(|line| line["url"] == "https://192.0.2.1/?token=1").expect("a line");
    assert!(elsewhere["result"].as_str().is_some_and(|reason| reason.contains("is not on this machine")));
    assert_eq!(told.len(), 2);
}

/// Contract 2.4: several recipients of one operation are several messages with webhooks of their own.
#[test]
fn every_recipient_has_its_own_webhooks() {
    let (receiver, stand) = (receiver(), Stand::new());
    let phones = json!({"phone": format!("{PHONE},{}", PHONE + 1)});
    stand.payload(&hooked(&with(&example("sms", 1), phones), &receiver));
    stand.run_out();
    let mut messages: Vec<_> = receiver.requests().iter().map(|webhook| webhook.json()["msg_id"].clone()).collect();
    messages.dedup();
    assert_eq!(messages.len(), 2);
}
