//! Hourly limit on number lookups by assistants, because lookups cost money.

use serde_json::{Value, json};

use super::stdio::Conversation;
use super::{Connector, folder_with_profile, parse_result};
use crate::support::{Gateway, KEY_VARIABLE};

const PHONE: &str = "380501234567";

fn look_up_number(connector: &Connector) -> Value {
    parse_result(&connector.call("lookup_number", &json!({ "phone": PHONE })))
}

#[test]
fn hourly_lookup_limit_holds_across_restarts() {
    let gateway = Gateway::accepting();
    let connector = Connector::for_gateway(&gateway);
    for _ in 0..60 {
        assert_eq!(look_up_number(&connector)["phone"], PHONE);
    }
    let refused = look_up_number(&connector);
    assert_eq!((&refused["code"], &refused["retryable"]), (&json!("rate_limited"), &json!(true)), "{refused}");
    assert!(refused["error"].as_str().is_some_and(|words| words.contains("hourly lookup limit")), "{refused}");
    let connector = connector.restart(&[]);
    assert_eq!(look_up_number(&connector)["code"], "rate_limited");
    assert_eq!(gateway.phones().len(), 60);
    // Lookups from the command line are not limited, but they count towards the limit.
    connector.folder.replace("gateways.yaml", "NOBODY_HAS_IT", KEY_VARIABLE);
    connector.folder.campaign(&["gateway", "lookup", &format!("+{PHONE}")]).exits(0);
    let connector = connector.restart(&["--max-lookups-per-hour", "61"]);
    assert_eq!(look_up_number(&connector)["code"], "rate_limited");
    let connector = connector.restart(&["--max-lookups-per-hour", "62"]);
    assert_eq!(look_up_number(&connector)["phone"], PHONE);
}

#[test]
fn lookups_are_limited_over_stdio() {
    let gateway = Gateway::accepting();
    let folder = folder_with_profile(&gateway, &format!("env: {KEY_VARIABLE}"));
    let mut client = Conversation::start_in(folder, &["--max-lookups-per-hour", "2"]);
    let params = json!({ "name": "lookup_number", "arguments": { "phone": PHONE } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let codes: Vec<Value> = (0..3).map(|_| parse_result(&client.ask(&call)["result"])["code"].clone()).collect();
    assert_eq!(codes, [json!(null), json!(null), json!("rate_limited")]);
    assert_eq!(gateway.phones().len(), 2);
}
