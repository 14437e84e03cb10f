//! `campaign check --online`: the key, the sender names and the balance are checked before a campaign is sent.

use serde_json::{Value, json};

use super::account_gateway;
use crate::support::{Answer, Folder, Gateway, campaign, live, note_on_failure};

/// The payloads of an account with 2.00 UAH and two sender names.
fn account_payload(operation: &Value) -> Value {
    match operation["type"].as_str() {
        Some("balance") => json!({ "amount": 2, "currency": "UAH" }),
        _ => json!([{ "name": "OlenaCo", "status": "Checked" }, { "name": "Fresh", "status": "New" }]),
    }
}

/// A campaign with three SMS of one part each.
fn sale(gateway: &Gateway, signature: &str, prices: &str) -> Folder {
    let sms = format!("  - sms: {{ signature: \"{signature}\", message: \"Hello, {{{{ name }}}}\" }}");
    let draft = campaign().channels(&sms).through(gateway);
    if prices.is_empty() { draft.write() } else { draft.profile(&format!("prices: {prices}")).write() }
}

#[test]
fn online_check_sends_one_request_and_reports_problems() {
    for (signature, prices, code, rule, words) in [
        ("OlenaCo", "{ sms: 0.60 }", 0, None, "1.80 UAH at most"),
        ("OlenaCo", "", 0, None, "has no `prices` for `sms`"),
        ("OlenaCo", "{ sms: 0.80 }", 2, Some("balance-too-low"), "0.40 UAH more"),
        ("olenaco", "", 2, Some("sender-unknown"), "did you mean `OlenaCo`? names are case-sensitive"),
        ("Fresh", "", 2, Some("sender-unknown"), "not verified yet"),
    ] {
        let _case = note_on_failure(format!("case: {signature} {prices}"));
        let gateway = account_gateway(account_payload);
        let sale = sale(&gateway, signature, prices);
        sale.campaign(&["check", "sale.yaml", "--online"]).exits(code).says(words);
        assert_eq!(gateway.requests().len(), 1);
        assert_eq!(gateway.requests()[0].operations(), [json!({ "type": "balance" }), json!({ "type": "sender" })]);
        let report = sale.campaign(&["check", "sale.yaml", "--online", "--json"]).exits(code).json();
        let rules: Vec<&str> =
            report["findings"].as_array().expect("findings").iter().filter_map(|f| f["rule"].as_str()).collect();
        assert_eq!(rules, rule.into_iter().collect::<Vec<_>>());
        let cost = (!prices.is_empty()).then(|| if prices.contains("0.60") { 1.8 } else { 2.4 });
        assert_eq!((&report["online"]["balance"], &report["online"]["currency"]), (&json!(2), &json!("UAH")));
        assert_eq!(report["online"]["cost"].as_f64(), cost);
    }
}

#[test]
fn check_without_online_sends_no_requests() {
    let gateway = account_gateway(account_payload);
    let sale = sale(&gateway, "olenaco", "");
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(gateway.requests().is_empty());
}

#[test]
fn online_check_accepts_unclear_answers_but_not_refused_keys() {
    for (answer, code, rule) in [
        (Answer::CloseRead, 0, "online-unknown"),
        (Answer::status(200), 0, "online-unknown"),
        (Answer::status(503), 0, "online-unknown"),
        (Answer::rejection("Invalid message type"), 0, "online-unknown"),
        (Answer::rejection("Access denied"), 2, "key-refused"),
    ] {
        let gateway = Gateway::always(answer);
        let sale = sale(&gateway, "OlenaCo", "");
        sale.campaign(&["check", "sale.yaml", "--online"]).exits(code).says(rule);
    }
}

#[test]
fn online_check_of_a_sandbox_campaign_needs_a_gateway() {
    let gateway = account_gateway(account_payload);
    let sale = sale(&gateway, "OlenaCo", "");
    sale.replace("sale.yaml", "gateway: local\n", "");
    sale.campaign(&["check", "sale.yaml", "--online"]).exits(0).says("--online --gateway NAME");
    sale.campaign(&["check", "sale.yaml", "--online", "--gateway", "local"]).exits(0).says("2.00 UAH");
}

#[test]
fn live_run_checks_the_gateway_first_and_needs_an_answer() {
    let sale = live();
    for _ in ["first run", "resumed run"] {
        sale.run(&["--yes"]).exits(5).says("online-unknown").says("campaign gateway balance");
    }
    let offline = live().run(&["--yes", "--offline"]).exits(5);
    assert!(!offline.details().contains("online-unknown"), "{}", offline.details());
    let unconfirmed = live().run(&[]).exits(2).says("--yes");
    assert!(!unconfirmed.details().contains("online-unknown"), "{}", unconfirmed.details());
}

#[test]
fn loopback_run_needs_no_confirmation_or_account_check() {
    let gateway = Gateway::accepting();
    let sale = sale(&gateway, "Stranger", "{ sms: 1000000 }");
    sale.run(&[]).exits(0);
    assert!(gateway.requests().iter().all(|request| request.phones().len() == request.operations().len()));
}
