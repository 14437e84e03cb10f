//! A slow, literal implementation of the rules for what an answer proves.

use serde_json::{Map, Value};

use super::SentRequest;
use campaign_core::domain::{Endpoint, OperationKind};

/// The identifier of the first message. Those of the other messages follow it.
const FIRST_ID: u64 = 101;
/// The phone number of the first message. Those of the other messages follow it.
const FIRST_PHONE: u64 = 380_501_234_500;
/// The HTTP statuses that the profile trusts to mean “not executed”.
const TRUSTED: [u16; 2] = [503, 520];

/// Judges an answer. Returns a letter per outcome, as `outcome_letters` does, and the name of the signal.
pub(super) fn judge(sent: SentRequest, status: u16, body: &[u8]) -> (String, &'static str) {
    let all = |letter: &str, signal| (letter.repeat(sent.count as usize), signal);
    let status_letter = if TRUSTED.contains(&status) { "n" } else { "?" };
    match status {
        200 => {}
        300..=399 => return all(status_letter, "stop: connection"),
        429 | 503 => return all(status_letter, "slow"),
        _ if status_letter == "n" => return all("n", "unreachable"),
        _ => return all("?", "strange"),
    }
    let Ok(Value::Object(top)) = serde_json::from_slice(body) else { return all("?", "strange") };
    match (top.get("success"), sent.endpoint) {
        (Some(Value::Bool(false)), _) => judge_rejection(sent, &top),
        (Some(Value::Bool(true)), Endpoint::Sync) => match top.get("data") {
            Some(Value::Array(items)) => judge_list(sent, items),
            _ => all("?", "stop: off contract"),
        },
        (Some(Value::Bool(true)), Endpoint::Async) => match top.get("request_id") {
            Some(Value::String(id)) if !id.trim().is_empty() => all("q", "go"),
            Some(Value::Number(number)) if !number.to_string().starts_with('-') => all("q", "go"),
            _ => all("?", "warn"),
        },
        _ => all("?", "warn"),
    }
}

/// Whether a body cannot be judged, because it has a number that does not fit into a float. Such a number is valid JSON
/// (RFC 8259, section 6), but a [`Value`] cannot represent it.
pub(super) fn has_number_out_of_range(body: &[u8]) -> bool {
    let read: Result<Value, _> = serde_json::from_slice(body);
    read.is_err_and(|error| error.to_string().starts_with("number out of range"))
}

fn judge_rejection(sent: SentRequest, top: &Map<String, Value>) -> (String, &'static str) {
    let all = |letter: &str, signal| (letter.repeat(sent.count as usize), signal);
    let error = top.get("error").and_then(Value::as_str).unwrap_or_default().trim();
    if error.is_empty() || top.values().any(contains_msg_id) || top.contains_key("msg_id") {
        return all("?", "stop: off contract");
    }
    match error {
        "Access denied" => all("n", "stop: key"),
        "Operator not supported" if sent.kind == OperationKind::CallOtp && sent.count == 1 => all("r", "go"),
        "Operator not supported" if sent.kind == OperationKind::CallOtp => all("n", "split"),
        _ => all("n", "stop: envelope"),
    }
}

fn contains_msg_id(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("msg_id") || members.values().any(contains_msg_id),
        Value::Array(items) => items.iter().any(contains_msg_id),
        _ => false,
    }
}

/// The identifier or phone number in an item.
#[derive(PartialEq)]
enum ItemReference {
    Absent,
    /// Not a whole number.
    NotWhole,
    Number(u64),
}

fn item_reference(item: &Value, member: &str) -> ItemReference {
    match &item["data"][member] {
        Value::Null => ItemReference::Absent,
        Value::String(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit()) => {
            text.parse().map_or(ItemReference::NotWhole, ItemReference::Number)
        }
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => ItemReference::Number(whole),
            (None, Some(float)) if float >= 0.0 && float < 2_f64.powi(53) && float.trunc() == float => {
                ItemReference::Number(float as u64)
            }
            _ => ItemReference::NotWhole,
        },
        _ => ItemReference::NotWhole,
    }
}

fn judge_list(sent: SentRequest, items: &[Value]) -> (String, &'static str) {
    let count = sent.count as usize;
    let has_no_id = matches!(sent.kind, OperationKind::Hlr | OperationKind::CallOtp);
    let refers_to = |item: &Value, member, number| item_reference(item, member) == ItemReference::Number(number);
    let phone_fits = |item: &Value, row: usize| {
        !has_no_id
            || item_reference(item, "phone") == ItemReference::Absent
            || refers_to(item, "phone", FIRST_PHONE + row as u64)
    };
    let has_id_of = |item: &&Value, row: usize| refers_to(item, "id", FIRST_ID + row as u64);
    let items_of = |row: usize| -> Vec<&Value> { items.iter().filter(|item| has_id_of(item, row)).collect() };
    let letter_for = |row: usize| match items_of(row)[..] {
        [item] if phone_fits(item, row) => item_letter(sent, item),
        _ => '?',
    };
    if items.len() != count {
        let proven = |row| if letter_for(row) == 'a' && has_msg_id(items_of(row)[0]) { 'a' } else { '?' };
        return ((0..count).map(proven).collect(), "stop: off contract");
    }
    let in_order = items.iter().enumerate().all(|(row, item)| {
        (item_reference(item, "id") == ItemReference::Absent || has_id_of(&item, row)) && phone_fits(item, row)
    });
    if in_order {
        let letters: String = items.iter().map(|item| item_letter(sent, item)).collect();
        return (letters.clone(), if is_fatal(items) { "stop: fatal" } else { warn_if_unclear(&letters, "go") });
    }
    let letters: String = (0..count).map(letter_for).collect();
    let is_foreign = |item: &Value| match item_reference(item, "id") {
        ItemReference::Absent => has_no_id && item_reference(item, "phone") != ItemReference::Absent,
        _ => !(0..count).any(|row| has_id_of(&item, row) && phone_fits(item, row)),
    };
    if items.iter().any(is_foreign) || (0..count).any(|row| items_of(row).len() > 1) {
        return (letters, "stop: off contract");
    }
    let matched_items: Vec<Value> = (0..count).flat_map(items_of).cloned().collect();
    (letters, if is_fatal(&matched_items) { "stop: fatal" } else { "warn" })
}

fn warn_if_unclear(letters: &str, signal: &'static str) -> &'static str {
    if letters.contains('?') { "warn" } else { signal }
}

/// Whether a message was rejected with a fatal error.
fn is_fatal(items: &[Value]) -> bool {
    let lacks_money = |item: &Value| item["error"].as_str().is_some_and(|error| error.trim() == "Not enough money");
    items.iter().any(|item| item["success"] == false && lacks_money(item) && !has_msg_id(item))
}

fn has_msg_id(item: &Value) -> bool {
    match &item["data"]["msg_id"] {
        Value::String(text) => !text.trim().is_empty(),
        Value::Number(_) => true,
        _ => false,
    }
}

fn item_letter(sent: SentRequest, item: &Value) -> char {
    let has_no_id = matches!(sent.kind, OperationKind::Hlr | OperationKind::CallOtp);
    match item.get("success") {
        Some(Value::Bool(true)) if has_no_id && item["data"].is_object() => 'a',
        Some(Value::Bool(true)) if !has_no_id && has_msg_id(item) => 'a',
        Some(Value::Bool(false)) if !has_msg_id(item) => 'r',
        _ => '?',
    }
}
