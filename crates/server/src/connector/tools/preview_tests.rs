//! Tests that the preview of a message shows exactly what its operation contains.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::ReadyTool;
use super::*;
use campaign_core::domain::{MessageId, Operation, OperationKind, Phone, WirePlace};
use campaign_gateway::encode_operation;

const PHONE: u64 = 380_501_234_567;

/// Generates values that a client might send as a number of seconds.
fn any_seconds() -> impl Strategy<Value = Value> {
    let integer = 1_u32..300_000;
    prop_oneof![
        integer.clone().prop_map(Value::from),
        integer.prop_map(|seconds| json!(f64::from(seconds))),
        prop::sample::select(vec!["3600.0", "3.6e3", "3600.5", "-0.0", "1e300", "null", "\"3600\"", "86400"])
            .prop_map(|text| serde_json::from_str(text).expect("JSON")),
    ]
}

fn optional_argument(
    name: &'static str,
    value: impl Strategy<Value = Value> + 'static,
) -> BoxedStrategy<Option<(&'static str, Value)>> {
    prop::option::of(value.prop_map(move |value| (name, value))).boxed()
}

/// Generates the index of a sending tool, and arguments for that tool. A call can lack an argument that the tool
/// requires; the test ignores such a call.
fn tool_calls() -> impl Strategy<Value = (usize, Value)> {
    let text = prop_oneof!["[ -~я\n]{1,40}", any::<String>()].prop_map(Value::from);
    let address = prop::sample::select(vec!["https://shop.example", "https://cdn.example/a.png", "ftp://a"]);
    let card =
        json!({ "caption": "Coat", "image": "https://cdn.example/a.png", "url": "https://a.example", "button": "Buy" });
    let options = vec![
        optional_argument("lifetime", any_seconds()),
        optional_argument("short_link", prop_oneof![any::<bool>().prop_map(Value::from), Just(Value::Null)]),
        optional_argument("id", prop_oneof![(1_u64..1 << 53).prop_map(Value::from), Just(json!(4711.0))]),
        optional_argument("image", address.clone().prop_map(Value::from)),
        optional_argument("link", address.prop_map(Value::from)),
        optional_argument("button", Just(json!("Buy"))),
        optional_argument("carousel", Just(json!([card, card]))),
        optional_argument("sms_text", Just(json!("Ho"))),
        optional_argument("repeat", any::<bool>().prop_map(Value::from)),
    ];
    (0..4_usize, text, options).prop_map(|(tool, text, options)| {
        let mut arguments = json!({ "phone": PHONE, "sender": "OlenaCo", "text": text });
        let members = arguments.as_object_mut().expect("an object");
        members.extend(options.into_iter().flatten().map(|(name, value)| (name.to_owned(), value)));
        // The tools in the order of `SEND_TOOLS`: `send_sms`, `send_viber`, `send_rcs` and `send_chain`.
        match tool {
            0 => members.retain(|name, _| ["phone", "sender", "text", "id", "repeat"].contains(&name.as_str())),
            1 => drop(members.remove("sms_text")),
            2 => {
                members.remove("carousel");
                if members.contains_key("sms_text") {
                    members.insert("sms_sender".to_owned(), json!("OlenaSms"));
                }
            }
            _ => {
                let stage = json!({ "message": text, "signature": "OlenaCo" });
                let id = members.get("id").cloned().unwrap_or_default();
                arguments =
                    json!({ "phone": PHONE, "id": id, "channels": ["viber", "sms"], "viber": stage, "sms": stage });
            }
        }
        (tool, arguments)
    })
}

/// Returns the content of an operation for the channel at `index`, by argument name, and the names of the properties
/// that carry the content.
fn carried_arguments(
    operation: &Value,
    index: usize,
    channel: Channel,
    kind: OperationKind,
) -> (Map<String, Value>, BTreeSet<String>) {
    let within = if kind == OperationKind::Pipeline { &operation[channel.name()] } else { operation };
    let (mut carried, mut properties) = (Map::new(), BTreeSet::new());
    for field in channel.facts().fields {
        let (property, value) = match field.place_in(kind) {
            WirePlace::Under(name) => (name, &within[name]),
            WirePlace::Within(object, name) => (object, &within[object][name]),
            WirePlace::Shared(name) if index == 0 => (name, &within[name]),
            _ => continue,
        };
        properties.insert(property.to_owned());
        if !value.is_null() {
            carried.insert(argument_name(field.key).to_owned(), value.clone());
        }
    }
    (carried, properties)
}

proptest! {
    #[test]
    fn preview_shows_every_value_in_the_operation((tool, arguments) in tool_calls()) {
        let ready = ReadyTool::new(&SEND_TOOLS[tool]);
        let Value::Object(arguments) = arguments else { panic!("no object") };
        let arguments = ready.normalize_arguments(arguments);
        let CallPreview { effect, content, .. } = (ready.tool.preview.expect("a preview"))(&arguments);
        let problems = ready.find_problems(&arguments);
        let Some(content) = content.filter(|_| problems.is_empty()) else { return Ok(()) };
        let kind = content.kind;
        let channels: Vec<Channel> = content.stages.iter().map(|stage| stage.channel()).collect();
        let id = arguments.get("id").and_then(Value::as_u64);
        let message_id = MessageId::new(id.unwrap_or(1)).expect("an identifier");
        let json = encode_operation(&Operation { id: message_id, phone: Phone::new(PHONE).expect("a phone"), content });
        let operation: Value = serde_json::from_slice(&json).expect("JSON");
        prop_assert_eq!(&effect["phone"], "…4567");
        prop_assert_eq!(effect.get("id").and_then(Value::as_u64), id);
        let names: Vec<&str> = channels.iter().map(|channel| channel.name()).collect();
        prop_assert_eq!(&effect["channels"], &json!(names));
        let mut known_properties: BTreeSet<String> = ["type", "id", "phone", "pipeline"].map(str::to_owned).into();
        for (index, channel) in channels.iter().enumerate() {
            let (carried, properties) = carried_arguments(&operation, index, *channel, kind);
            let message = if channels.len() > 1 { &effect["messages"][index] } else { &effect };
            let mut message = message.as_object().expect("an object").clone();
            message.retain(|name, _| !["phone", "channels", "channel", "id", "parts"].contains(&name.as_str()));
            prop_assert_eq!(message, carried, "{}", operation);
            match kind {
                OperationKind::Pipeline => {
                    known_properties.insert(channel.name().to_owned());
                    let stage = operation[channel.name()].as_object().expect("a stage");
                    prop_assert!(stage.keys().all(|name| properties.contains(name)), "{}", operation);
                }
                _ => known_properties.extend(properties),
            }
        }
        let members = operation.as_object().expect("an object");
        prop_assert!(members.keys().all(|name| known_properties.contains(name)), "{}", operation);
        // Every argument is shown, except for those about the call itself. The loop above compares the `sms_`
        // arguments.
        for (name, value) in &arguments {
            let is_shown = channels.iter().any(|channel| channel.name() == name) || effect.get(name) == Some(value);
            let is_sms = name.starts_with("sms_");
            prop_assert!(is_shown || is_sms || ["phone", "repeat"].contains(&name.as_str()), "{name}: {value}");
        }
    }
}
