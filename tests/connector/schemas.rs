//! Tool schemas in `tools/list`: input and output schemas match what the tools accept and return.

use campaign_testing::JsonSchema;
use serde_json::{Value, json};

use super::campaigns::campaigns_folder;
use super::runs::{OPTIONS, approve, plan};
use super::{Connector, parse_result};
use crate::support::SandboxProcess;

fn list_tools(connector: &Connector) -> Vec<Value> {
    let list = connector.post(&[], r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).json();
    list["result"]["tools"].as_array().expect("tools").clone()
}

/// Checks every property of a schema and of its nested schemas.
fn check_schema(schema: &Value, path: &str) {
    assert!(!schema["type"].is_array(), "{path}: clients want one type");
    if let Some(properties) = schema["properties"].as_object() {
        assert_eq!(schema["additionalProperties"], false, "{path}");
        for (name, property) in properties {
            let path = format!("{path}.{name}");
            assert!(property["description"].as_str().is_some_and(|words| words.len() > 5), "{path} is not described");
            check_schema(property, &path);
            check_schema(&property["items"], &path);
        }
    }
}

#[test]
fn every_tool_argument_is_described_and_others_are_refused() {
    let sandbox = SandboxProcess::start();
    let tools = list_tools(&Connector::start(&sandbox, &["--allow-send"]));
    assert_eq!(tools.len(), 11);
    for tool in tools {
        let name = tool["name"].as_str().expect("a name");
        assert!(
            tool["title"].is_string() && tool["description"].as_str().is_some_and(|words| words.len() > 40),
            "{name}"
        );
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            JsonSchema::new(&tool[schema]);
        }
        check_schema(&tool["inputSchema"], name);
        let hint = |hint: &str| tool["annotations"][hint].as_bool().expect("a hint");
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(hint);
        let expected = match name {
            "create_sms_template" => [false, false, false, true],
            // Each lookup costs money, so the tool is neither read-only nor idempotent.
            "lookup_number" => [false, false, false, true],
            name if name.starts_with("send_") => [false, true, false, true],
            _ => [true, false, true, true],
        };
        assert_eq!(hints, expected, "{name}");
    }
}

#[test]
fn account_tools_conform_to_their_schemas() {
    let sandbox = SandboxProcess::start();
    let connector = Connector::start(&sandbox, &["--allow-send"]);
    let tools = list_tools(&connector);
    let (phone, image, link) = ("380501234567", "https://cdn.example/a.png", "https://shop.example");
    let rcs =
        json!({ "phone": phone, "sender": "OlenaCo", "text": "Hi", "image": image, "button": "Buy", "link": link });
    let sms = json!({ "phone": phone, "sender": "OlenaCo", "text": "Hi", "id": 7 });
    let samples = [
        ("balance", json!({})),
        ("senders", json!({})),
        ("sms_templates", json!({ "limit": 1, "offset": 0 })),
        ("viber_templates", json!({})),
        ("lookup_number", json!({ "phone": 380_501_234_567_u64 })),
        ("send_sms", sms.clone()),
        ("send_viber", json!({ "phone": phone, "sender": "OlenaCo", "text": "Hi" })),
        ("send_rcs", rcs),
        (
            "send_chain",
            json!({ "phone": phone, "channels": ["sms"], "sms": { "message": "Hello", "signature": "OlenaCo" } }),
        ),
        ("create_sms_template", json!({ "name": "Sale", "text": "Hi" })),
        ("message_status", json!({ "id": 7 })),
    ];
    assert_eq!(samples.len(), tools.len(), "a sample of each");
    for (name, sample) in samples {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("a tool");
        let schema = |kind: &str| JsonSchema::new(&tool[kind]);
        let confirmable = tool["inputSchema"]["properties"]["confirm"].is_object();
        for confirmed in if confirmable { [false, true].as_slice() } else { &[true] } {
            let mut arguments = sample.clone();
            if confirmable && *confirmed {
                arguments["confirm"] = json!(true);
            }
            assert!(schema("inputSchema").is_valid(&arguments), "{name}: {arguments}");
            let result = connector.call(name, &arguments);
            assert_eq!(
                (&result["isError"], &parse_result(&result)),
                (&json!(false), &result["structuredContent"]),
                "{name}: {result}"
            );
            assert!(schema("outputSchema").is_valid(&result["structuredContent"]), "{name}: {result}");
        }
        let mut with_extra_member = sample;
        with_extra_member["hook"] = json!("http://stranger.example");
        assert!(!schema("inputSchema").is_valid(&with_extra_member), "{name}");
    }
}

#[test]
fn campaign_tools_conform_to_their_schemas() {
    let sandbox = SandboxProcess::start();
    let folder = campaigns_folder(&sandbox);
    folder.write("campaigns/broken.yaml", "name: broken\nchannels:\n");
    let connector = Connector::start_in(folder, &OPTIONS);
    let tools = list_tools(&connector).split_off(11);
    let digest = plan(&connector, "sale");
    let sale = json!({ "campaign": "sale" });
    let run = json!({ "campaign": "sale", "digest": digest });
    let samples = [
        ("list_campaigns", json!({})),
        ("check_campaign", sale.clone()),
        ("check_campaign", json!({ "campaign": "broken.yaml" })),
        ("preview_campaign", json!({ "campaign": "sale", "rows": "2-4,5,6", "limit": 20 })),
        ("plan_campaign", sale.clone()),
        ("run_campaign", run.clone()),
        ("run_campaign", run),
        ("run_status", sale),
        ("list_campaigns", json!({})),
    ];
    for (index, (name, arguments)) in samples.iter().enumerate() {
        if index == 6 {
            approve(&connector.folder, &digest);
        }
        let tool = tools.iter().find(|tool| tool["name"] == *name).expect("a tool");
        let schema = |kind: &str| JsonSchema::new(&tool[kind]);
        check_schema(&tool["inputSchema"], name);
        assert!(schema("inputSchema").is_valid(arguments), "{name}: {arguments}");
        let result = connector.call(name, arguments);
        assert_eq!(
            (&result["isError"], &parse_result(&result)),
            (&json!(false), &result["structuredContent"]),
            "{name}: {result}"
        );
        assert!(schema("outputSchema").is_valid(&result["structuredContent"]), "{name}: {result}");
        let mut with_extra_member = arguments.clone();
        with_extra_member["url"] = json!("http://stranger.example");
        assert!(!schema("inputSchema").is_valid(&with_extra_member), "{name}");
        let hint = |hint: &str| tool["annotations"][hint].as_bool().expect("a hint");
        let hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].map(hint);
        let expected = match *name {
            "run_campaign" => [false, true, false, true],
            "plan_campaign" => [false, false, true, false],
            _ => [true, false, true, false],
        };
        assert_eq!(hints, expected, "{name}");
    }
    assert!(tools.iter().all(|tool| samples.iter().any(|(name, _)| tool["name"] == *name)), "a sample of each");
}
