//! Checks of arguments against the input schema of a tool, with a plain sentence for each problem. Pure.
//!
//! It knows the keywords that our schemas use; a test compares it with a library that knows all of JSON Schema. No sentence
//! repeats a value: it may be a text for somebody.

use serde_json::{Map, Value};

use super::arguments::phone_problem;
use crate::domain::format_count;
use crate::finding::{did_you_mean, escape_to_one_line, join_alternatives};

/// The largest whole number that every JSON reader keeps exact.
pub(super) const LARGEST_WHOLE: u64 = (1 << 53) - 1;
/// The pattern of a digest of a plan.
pub(super) const DIGEST: &str = "^[0-9a-f]{16,64}$";
/// The pattern of rows, such as `2-6,60`.
pub(super) const ROWS: &str = "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$";
/// The longest name of an unknown argument that a sentence repeats, in characters.
const LONGEST_NAME: usize = 40;

/// Arguments as a tool reads them: members that are null are absent, and whole numbers are integers, at any depth.
///
/// Unknown members stay as they are, so that [`problems`] names them.
pub(super) fn normalize_value(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => normalize_members(schema, members),
        Value::Array(items) => items.iter_mut().for_each(|item| normalize_value(&schema["items"], item)),
        Value::Number(number) => {
            let whole = number.as_f64().filter(|_| number.is_f64() && takes_integers(schema)).and_then(whole_number);
            if let Some(whole) = whole {
                *value = whole.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The same of the members of an object.
pub(super) fn normalize_members(schema: &Value, members: &mut Map<String, Value>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    members.retain(|name, value| !(value.is_null() && properties.contains_key(name)));
    for (name, value) in members {
        if let Some(schema) = properties.get(name) {
            normalize_value(schema, value);
        }
    }
}

/// The integer that a float is, if it is one that every reader keeps exact.
fn whole_number(float: f64) -> Option<i64> {
    let whole = if float.fract() == 0.0 { format!("{float:.0}").parse::<i64>().ok() } else { None };
    whole.filter(|whole| whole.unsigned_abs() <= LARGEST_WHOLE)
}

fn takes_integers(schema: &Value) -> bool {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    schema["type"] == "integer" || alternatives.into_iter().any(takes_integers)
}

/// What is wrong with normalized arguments, each with its name and what to do; nothing if the schema takes them.
pub(super) fn find_problems(schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    check_members("", schema, arguments, &mut problems);
    problems
}

fn check_members(place: &str, schema: &Value, members: &Map<String, Value>, problems: &mut Vec<String>) {
    let path = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let properties = schema["properties"].as_object();
    let known = |name: &String| properties.and_then(|properties| properties.get(name));
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    problems.extend(required.filter(|name| !members.contains_key(*name)).map(|name| describe_missing(&path(name))));
    for (name, value) in members {
        match known(name) {
            Some(schema) => check_value(&path(name), schema, value, problems),
            None if schema["additionalProperties"] == false => problems.push(describe_unknown(place, name, properties)),
            None => {}
        }
    }
    let together = schema["dependentRequired"].as_object().into_iter().flatten();
    for (name, needed) in together.filter(|(name, _)| members.contains_key(*name)) {
        let needed = needed.as_array().into_iter().flatten().filter_map(Value::as_str);
        let lacking = needed.filter(|needed| !members.contains_key(*needed));
        problems.extend(lacking.map(|lacking| format!("`{0}` needs `{1}`; add `{1}`", path(name), path(lacking))));
    }
}

fn describe_missing(path: &str) -> String {
    match path {
        "phone" => "`phone` is missing; add one phone number with its country code, such as 380671112233".to_owned(),
        path => format!("`{path}` is missing; add it"),
    }
}

fn describe_unknown(place: &str, name: &str, properties: Option<&Map<String, Value>>) -> String {
    let of = if place.is_empty() { "this tool".to_owned() } else { format!("`{place}`") };
    if name.chars().count() > LONGEST_NAME {
        return format!("{of} has no argument with this long name; remove it");
    }
    // A slip is no reason to suggest an argument that lets a message leave.
    let names = properties.into_iter().flat_map(Map::keys).map(String::as_str);
    let names = names.filter(|name| !["confirm", "repeat"].contains(name));
    match did_you_mean(name, names) {
        Some(meant) => format!("{of} has no argument `{}`; did you mean `{meant}`?", escape_to_one_line(name)),
        None => format!("{of} has no argument `{}`; remove it", escape_to_one_line(name)),
    }
}

fn check_value(path: &str, schema: &Value, value: &Value, problems: &mut Vec<String>) {
    if schema["anyOf"].is_array() {
        // The only argument with alternatives.
        problems.extend(phone_problem(value));
        return;
    }
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(members)) => check_members(path, schema, members, problems),
        (Some("object"), _) => problems.push(format!("`{path}` must be an object")),
        (Some("array"), Value::Array(items)) => check_items(path, schema, items, problems),
        (Some("array"), _) => problems.push(format!("`{path}` must be a list")),
        (Some("string"), value) => problems.extend(text_problem(path, schema, value)),
        (Some("integer"), value) => problems.extend(number_problem(path, schema, value)),
        (Some("boolean"), value) if !value.is_boolean() => {
            problems.push(format!("`{path}` must be `true` or `false`, without quotation marks"));
        }
        _ => {}
    }
}

fn check_items(path: &str, schema: &Value, items: &[Value], problems: &mut Vec<String>) {
    let count = items.len() as u64;
    let (least, most) = (schema["minItems"].as_u64().unwrap_or(0), schema["maxItems"].as_u64());
    if count < least || most.is_some_and(|most| count > most) {
        problems.push(match most {
            Some(most) => format!("`{path}` has {}; {least} to {most} are allowed", format_count(count, "item")),
            None => format!("`{path}` has {}; at least {least} required", format_count(count, "item")),
        });
    }
    let repeats = items.iter().enumerate().any(|(index, item)| items[..index].contains(item));
    if schema["uniqueItems"] == true && repeats {
        problems.push(format!("`{path}` lists the same item twice; list each item once"));
    }
    for (index, item) in items.iter().enumerate() {
        check_value(&format!("{path}[{index}]"), &schema["items"], item, problems);
    }
}

fn text_problem(path: &str, schema: &Value, value: &Value) -> Option<String> {
    let Value::String(text) = value else { return Some(format!("`{path}` must be a string")) };
    if let Some(words) = schema["enum"].as_array().filter(|words| !words.contains(value)) {
        return Some(format!("`{path}` must be {}", join_alternatives(words.iter().filter_map(Value::as_str))));
    }
    let length = text.chars().count() as u64;
    if length < schema["minLength"].as_u64().unwrap_or(0) {
        return Some(format!("`{path}` is empty; fill it in or leave it out"));
    }
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| length > *most) {
        return Some(format!("`{path}` has {length} characters; at most {most} are allowed"));
    }
    match schema["pattern"].as_str() {
        Some(DIGEST) if !is_digest(text) => Some(format!("`{path}` must be a digest returned by plan_campaign")),
        Some(ROWS) if !is_rows(text) => Some(format!("`{path}` must be row numbers such as `2-6,60`")),
        _ => None,
    }
}

/// Whether a text has the form of [`DIGEST`].
fn is_digest(text: &str) -> bool {
    (16..=64).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text has the form of [`ROWS`].
fn is_rows(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split(',').all(|rows| match rows.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(rows),
    })
}

fn number_problem(path: &str, schema: &Value, value: &Value) -> Option<String> {
    let (least, most) = (schema["minimum"].as_u64().unwrap_or(0), schema["maximum"].as_u64().unwrap_or(LARGEST_WHOLE));
    let fits = value.as_u64().is_some_and(|number| (least..=most).contains(&number));
    (!fits).then(|| format!("`{path}` must be a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests;
