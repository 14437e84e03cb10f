//! Minimal example operations of every type, with only the required fields.

use serde_json::{Map, Value, json};

/// The values allowed for `type` (contract 2.1).
pub(super) const TYPES: [&str; 20] = [
    "balance",
    "call/otp",
    "hlr",
    "pipeline",
    "rcs",
    "rcs+sms",
    "rcs+viber+sms",
    "sender",
    "sms",
    "status",
    "telegram",
    "template/create",
    "template/delete",
    "template/list",
    "template/viber/create",
    "template/viber/delete",
    "template/viber/list",
    "viber",
    "viber+sms",
    "voice",
];

/// The types that send a message.
pub(super) const MESSAGE_TYPES: [&str; 9] =
    ["pipeline", "rcs", "rcs+sms", "rcs+viber+sms", "sms", "telegram", "viber", "viber+sms", "voice"];

/// The recipient of every example.
pub(super) const PHONE: u64 = 380_501_234_567;

/// The example operation of this type.
pub(super) fn example(kind: &str, id: u64) -> Value {
    let sms = json!({"sms_signature": "OlenaCo", "sms_message": "Hi"});
    let viber = json!({"viber_type": "text", "viber_signature": "OlenaCo", "viber_message": "Hi"});
    let rcs = json!({"rcs_message": "Hi", "rcs_signature": "OlenaCo", "rcs_image": "https://cdn.example/a.png",
        "rcs_button": "Shop", "rcs_link": "https://shop.example/"});
    let to = json!({"id": id, "phone": PHONE});
    let clone_all = |parts: &[&Value]| parts.iter().copied().cloned().collect::<Vec<_>>();
    let parts = match kind {
        "balance" | "sender" | "template/list" | "template/viber/list" => vec![],
        "status" | "template/delete" => vec![json!({"id": id})],
        "template/create" => vec![json!({"name": "hello", "template": "Hello, {name}"})],
        "template/viber/create" => vec![json!({"signature": "OlenaCo", "template": "Hello"})],
        "template/viber/delete" => vec![json!({"id": id, "template": "Hello"})],
        "hlr" | "call/otp" => vec![to],
        "sms" => clone_all(&[&to, &sms]),
        "viber" => clone_all(&[&to, &viber]),
        "rcs" => clone_all(&[&to, &rcs]),
        "viber+sms" => clone_all(&[&to, &viber, &sms]),
        "rcs+sms" => clone_all(&[&to, &rcs, &sms]),
        "rcs+viber+sms" => clone_all(&[&to, &rcs, &viber, &sms]),
        "telegram" => clone_all(&[&to, &json!({"message": "012345"})]),
        "voice" => {
            let voice = json!({"gender": "female", "language": "uk-UA", "name": "uk-UA-Standard-A"});
            clone_all(&[&to, &json!({"message": "Hello", "voice": voice})])
        }
        "pipeline" => clone_all(&[
            &to,
            &json!({"pipeline": ["viber", "sms"],
            "viber": {"message": "Hi", "signature": "OlenaCo", "type": "text"},
            "sms": {"message": "Hi", "signature": "OlenaCo"}}),
        ]),
        other => panic!("no example of {other}"),
    };
    let fields = parts.iter().filter_map(Value::as_object).flatten();
    let mut operation: Map<_, _> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    operation.insert("type".into(), kind.into());
    Value::Object(operation)
}

/// The operation with these changes to its fields. `null` removes a field.
pub(super) fn with_changes(operation: &Value, changes: Value) -> Value {
    let mut changed = operation.as_object().expect("an operation").clone();
    for (name, value) in changes.as_object().expect("fields") {
        if value.is_null() {
            changed.remove(name);
        } else {
            changed.insert(name.clone(), value.clone());
        }
    }
    Value::Object(changed)
}
