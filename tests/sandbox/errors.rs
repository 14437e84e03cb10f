//! Errors of the sandbox (contract 7).

use campaign_core::domain::Channel;
use campaign_sandbox::{AccountSettings, FaultEffect, Scenario, ScenarioCondition, ScenarioFault, SenderStatus};
use serde_json::{Value, json};

use super::TestSandbox;
use super::examples::{example, with_changes};
use super::in_process::{ASYNC, JSON, SYNC, envelope};
use crate::support::{Answer, Gateway, Reachable as _, until};

/// A scenario with one account.
fn with_account(account: AccountSettings) -> Scenario {
    Scenario { accounts: vec![account], ..Scenario::default() }
}

/// Gateway contract 7, row 1: the error for a missing or wrong key.
#[test]
fn missing_or_wrong_key_is_refused_with_access_denied() {
    let sandbox = TestSandbox::start();
    for auth in [Value::Null, json!(""), json!("wrong"), json!({"key": 1})] {
        let body = with_changes(&envelope(&[example("sms", 1)]), json!({"auth": auth}));
        for path in [SYNC, ASYNC] {
            assert_eq!(sandbox.envelope(path, &body), json!({"success": false, "error": "Access denied"}), "{body}");
        }
    }
}

/// Gateway contract 7, row 2 (and 2.1): `whatsapp` is a pipeline channel, not a type.
#[test]
fn envelope_with_an_operation_of_type_whatsapp_is_refused() {
    let sandbox = TestSandbox::start();
    let body = envelope(&[example("sms", 1), json!({"type": "whatsapp", "id": 2})]);
    for path in [SYNC, ASYNC] {
        assert_eq!(sandbox.envelope(path, &body), json!({"success": false, "error": "Invalid message type"}));
    }
    assert_eq!(sandbox.counts().messages, 0, "no operation was executed");
}

/// Gateway contract 7, row 3 (and 4.3): the error for an account without a WhatsApp route.
#[test]
fn item_without_a_whatsapp_route_fails_and_the_others_succeed() {
    let sandbox =
        TestSandbox::start_with(with_account(AccountSettings { whatsapp: false, ..AccountSettings::default() }));
    for channels in [json!(["whatsapp"]), json!(["sms", "whatsapp"]), json!(["whatsapp", "viber", "sms"])] {
        let pipeline = with_changes(&example("pipeline", 2), json!({"pipeline": channels}));
        let items = sandbox.items(&[example("sms", 1), pipeline, example("pipeline", 3)]);
        assert_eq!((&items[1]["success"], &items[1]["error"]), (&json!(false), &json!("No route")), "{items:?}");
        assert_eq!((&items[0]["success"], &items[2]["success"]), (&json!(true), &json!(true)), "{items:?}");
    }
}

/// Gateway contract 7, row 4: the error for an unverified or unknown sender name contains the message's `id`.
#[test]
fn unverified_sender_name_error_contains_the_message_id() {
    let senders = vec![("OlenaCo".to_owned(), SenderStatus::Checked), ("Fresh".to_owned(), SenderStatus::New)];
    let sandbox =
        TestSandbox::start_with(with_account(AccountSettings { senders: Some(senders), ..AccountSettings::default() }));
    for (name, is_verified) in [("OlenaCo", true), ("Fresh", false), ("Another", false), ("", false)] {
        for kind in ["sms", "viber", "rcs", "viber+sms", "rcs+sms", "rcs+viber+sms"] {
            let signature = format!("{}_signature", kind.split('+').next_back().expect("a channel"));
            let item = sandbox.item(&with_changes(&example(kind, 9), json!({signature: name})));
            assert_eq!(item["success"], is_verified, "{kind} {name}: {item}");
            let error = json!({"success": false, "error": "Error in Alpha-name", "data": {"id": 9}});
            assert!(is_verified || item == error, "{kind} {name}: {item}");
        }
    }
    let listed = sandbox.payload(&json!({"type": "sender"}));
    assert_eq!(listed, json!([{"name": "OlenaCo", "status": "Checked"}, {"name": "Fresh", "status": "New"}]));
}

/// Gateway contract 7, row 5 (and 6.5): a webhook reports that a message was rejected after queueing.
#[test]
fn rejection_after_queueing_arrives_by_webhook() {
    let poor = AccountSettings {
        whatsapp: false,
        balance: "0.00001".parse().expect("an amount"),
        ..AccountSettings::default()
    };
    let rich = AccountSettings { whatsapp: false, ..AccountSettings::default() };
    let whatsapp = json!({"pipeline": ["whatsapp"]});
    for (account, kind, changes, error) in [
        (&rich, "pipeline", whatsapp, "No route"),
        (&poor, "pipeline", json!({}), "Not enough money"),
        (&rich, "pipeline", json!({"pipeline": ["fax"]}), "Error in pipeline"),
        (&poor, "sms", json!({}), "Not enough money"),
        (&rich, "viber", json!({"viber_signature": null}), "Error in Alpha-name"),
    ] {
        let receiver = Gateway::always(Answer::status(200));
        let sandbox = TestSandbox::start_with(with_account(account.clone()));
        let hook = format!("{}/hook?token=1", receiver.base_url());
        let rejected = with_changes(&with_changes(&example(kind, 5), changes), json!({"hook": hook}));
        let request_id = sandbox.queue(&[rejected]);
        until("the rejection arrives", || !receiver.requests().is_empty());
        let webhook = receiver.requests().remove(0).json();
        assert_eq!((&webhook["success"], &webhook["status"]), (&json!(false), &json!("REJECTED")), "{webhook}");
        assert_eq!((&webhook["error"], &webhook["id"]), (&json!(error), &json!("5")), "{webhook}");
        assert_eq!(webhook["request_id"], request_id, "{webhook}");
    }
}

/// Gateway contract 7, row 6 (and 4.1): a request without a JSON content type is incorrect.
#[test]
fn request_with_another_content_type_executes_nothing() {
    let sandbox = TestSandbox::start();
    let body = envelope(&[example("sms", 1)]).to_string();
    let answer = sandbox.post(SYNC, &["Content-Type: application/x-www-form-urlencoded"], body.as_bytes());
    assert_eq!((answer.status, answer.json()["success"].clone()), (200, json!(false)));
    assert_eq!(sandbox.counts().messages, 0);
    assert_eq!(sandbox.post(SYNC, &[JSON], body.as_bytes()).json()["success"], true);
}

/// Gateway contract 7: a failed item costs nothing and does not affect the other items.
#[test]
fn message_beyond_the_balance_fails_and_costs_nothing() {
    let price = Scenario::default().prices.for_channel(Channel::Sms);
    let balance = price.saturating_mul(2).saturating_add("0.000001".parse().expect("an amount"));
    let sandbox = TestSandbox::start_with(with_account(AccountSettings { balance, ..AccountSettings::default() }));
    let items = sandbox.items(&[example("sms", 1), example("sms", 2), example("sms", 3), json!({"type": "balance"})]);
    let errors: Vec<_> = items.iter().map(|item| item["error"].as_str()).collect();
    assert_eq!(errors, [None, None, Some("Not enough money"), None]);
    assert_eq!(items[2]["data"], json!({"id": 3}));
    assert_eq!(sandbox.balance(), 1);
}

/// Gateway contract 7: a scenario can return any error for an item or for the envelope.
#[test]
fn scenario_error_has_the_same_form_as_a_gateway_error() {
    let create_faults = |effect| vec![ScenarioFault { when: ScenarioCondition::default(), effect }];
    let sandbox = TestSandbox::start_with(Scenario {
        faults: create_faults(FaultEffect::ItemError("No route".into())),
        ..Scenario::default()
    });
    let items = sandbox.items(&[example("sms", 1), json!({"type": "balance"})]);
    assert_eq!(items[0], json!({"success": false, "error": "No route", "data": {"id": 1}}));
    assert_eq!(items[1]["success"], true);
    let rejecting = create_faults(FaultEffect::TopError("Operator not supported".into()));
    let sandbox = TestSandbox::start_with(Scenario { faults: rejecting, ..Scenario::default() });
    let answer = sandbox.envelope(SYNC, &envelope(&[example("call/otp", 1)]));
    assert_eq!(answer, json!({"success": false, "error": "Operator not supported"}));
    assert_eq!(sandbox.item(&json!({"type": "balance"}))["success"], true, "faults apply only to messages");
}
