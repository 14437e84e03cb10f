//! Fuzz target for webhook bodies, compared with a plain JSON reader and with the same receipts as form data.

use serde_json::{Map, Value};

use campaign_core::domain::Status;
use campaign_gateway::{IdentifiedReceipt, read_receipts};

/// Checks the receipts that are read from these bytes as a webhook body.
pub(super) fn check(data: &[u8]) {
    let Ok(receipts) = read_receipts(data) else { return };
    assert!((1..=1_000).contains(&receipts.len()), "{} receipts", receipts.len());
    let body = std::str::from_utf8(data).expect("accepted bodies are UTF-8");
    let body = body.trim_start_matches('\u{feff}').trim();
    // A number outside the range of floats and half of a surrogate pair are valid JSON, but `Value` rejects them.
    let Ok(value) = serde_json::from_str::<Value>(body) else { return };
    let items = list_items(&value);
    assert_eq!(items.len(), receipts.len(), "receipts were lost or made up: {body}");
    for (item, receipt) in items.iter().zip(&receipts) {
        check_receipt(item, receipt, body);
    }
    if let [Value::Object(only)] = items[..] {
        check_form(only, &receipts);
    }
}

/// The receipts of a body: the body itself, its items, or the value or items of `data`.
fn list_items(value: &Value) -> Vec<&Value> {
    match (value, value.get("data")) {
        (Value::Array(items), _) | (_, Some(Value::Array(items))) => items.iter().collect(),
        (_, Some(inner @ Value::Object(_))) => vec![inner],
        _ => vec![value],
    }
}

fn check_receipt(item: &Value, read: &IdentifiedReceipt, body: &str) {
    let Value::Object(members) = item else { panic!("not an object: {body}") };
    assert!(members.contains_key("status") || members.contains_key("success"), "a status was made up: {body}");
    if let Some(Value::String(status)) = members.get("status")
        && !status.trim().is_empty()
        && status.len() < 100
    {
        assert_eq!(read.receipt.status, Status::from_name(status), "another status: {body}");
    }
    match members.get("id") {
        None | Some(Value::Null) => assert_eq!(read.id, None, "an identifier was made up: {body}"),
        Some(Value::Number(number)) if number.is_u64() => {
            assert_eq!(read.id, Some(number.as_u64()), "another identifier: {body}");
        }
        Some(Value::Number(number)) if number.is_i64() => assert_eq!(read.id, Some(None), "a negative one: {body}"),
        Some(Value::String(text)) => {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let number = if digits { text.parse().ok() } else { None };
            assert_eq!(read.id, Some(number), "another identifier: {body}");
        }
        Some(_) => {}
    }
}

/// Checks that an object with only strings as values gives the same receipts as form data. Skips objects whose members
/// are read differently from a form.
fn check_form(members: &Map<String, Value>, receipts: &[IdentifiedReceipt]) {
    let is_plain = |(name, value): (&String, &Value)| {
        !name.starts_with("data") && !name.starts_with("replies") && value.as_str().is_some_and(|text| !text.is_empty())
    };
    if !members.iter().all(is_plain) || members.keys().next().is_some_and(|name| name.starts_with(['{', '['])) {
        return;
    }
    let mut form = form_urlencoded::Serializer::new(String::new());
    for (name, value) in members {
        form.append_pair(name, value.as_str().unwrap_or_default());
    }
    let form = form.finish();
    let form_receipts = read_receipts(form.as_bytes());
    assert_eq!(form_receipts.as_deref(), Ok(receipts), "the form means something else: {form}");
}
