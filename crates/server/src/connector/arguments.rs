//! Arguments of tool calls: normalization, checks against the tool's schema, and phone numbers.

#[cfg(test)]
mod schema_tests;

use serde_json::{Map, Value};

use super::error::ToolError;
use campaign_content::audience::{ValidNumber, parse_number};
use campaign_core::domain::{MessageId, Phone, format_count};
use campaign_core::finding::{did_you_mean, escape_to_one_line, join_alternatives};

/// The minimum and maximum number of digits of an international number.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

/// Arguments that match the schema of their tool.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolArguments(Map<String, Value>);

impl ToolArguments {
    /// Wraps arguments that were checked against the schema.
    pub(super) fn from_checked(arguments: Map<String, Value>) -> Self {
        Self(arguments)
    }

    /// The value of a whole-number argument.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name)?.as_u64()
    }

    /// Returns all arguments.
    pub(super) fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The value of a string argument; empty if the argument is missing.
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Whether a flag is `true`.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// Parses the recipient's phone number.
    pub(super) fn parse_phone(&self) -> Result<Phone, ToolError> {
        let value = self.0.get("phone").unwrap_or(&Value::Null);
        read_phone(value).map(|number| number.phone).map_err(ToolError::invalid_argument)
    }

    /// Parses the identifier of a message, if the caller gives an identifier.
    pub(super) fn parse_optional_id(&self) -> Result<Option<MessageId>, ToolError> {
        if self.0.contains_key("id") { self.parse_id().map(Some) } else { Ok(None) }
    }

    /// Parses the identifier of a message.
    pub(super) fn parse_id(&self) -> Result<MessageId, ToolError> {
        let wrong = || ToolError::invalid_argument("`id` is not an identifier returned by a sending tool");
        self.number("id").and_then(MessageId::new).ok_or_else(wrong)
    }
}

/// Parses a phone number: a string of digits, with or without a plus sign, or a whole number.
///
/// # Errors
/// The problem and what to do, without the phone number.
pub(super) fn read_phone(value: &Value) -> Result<ValidNumber, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        _ => {
            return Err(
                "`phone` must be a single phone number: digits with the country code, such as 380671112233".to_owned()
            );
        }
    };
    let digits = text.strip_prefix('+').unwrap_or(&text);
    let count = digits.chars().count();
    let (min, max) = (PHONE_DIGITS.start(), PHONE_DIGITS.end());
    let problem = if digits.chars().any(char::is_whitespace) {
        Some("has spaces; write the digits without spaces".to_owned())
    } else if digits.chars().any(char::is_alphabetic) {
        Some("has letters; write digits only, with the country code first, for example 380671112233".to_owned())
    } else if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        Some(
            "has characters other than digits; write digits only, with the country code first, for example 380671112233"
                .to_owned(),
        )
    } else if digits.starts_with('0') {
        Some("starts with 0; write the country code first, for example 380671112233 instead of 0671112233".to_owned())
    } else if count < *min {
        Some(format!("has {count} digits; a number with its country code has {min} to {max}"))
    } else if count > *max {
        Some(format!("has {count} digits; a number has at most {max}"))
    } else {
        None
    };
    if let Some(problem) = problem {
        return Err(format!("`phone` {problem}"));
    }
    // With the plus sign, the digits are not read as a national number.
    let invalid = |problem| format!("`phone` is not a valid phone number: {problem}; ask the user");
    parse_number(&format!("+{digits}"), None).map_err(invalid)
}

/// The problem with a phone number; `None` if the number is valid.
pub(super) fn phone_problem(value: &Value) -> Option<String> {
    read_phone(value).err()
}

/// Masks all but the last four digits of a phone number, whether or not the value is a valid number.
pub(super) fn mask_phone(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let digits: Vec<char> = text.chars().filter(char::is_ascii_digit).collect();
    let last: String = digits[digits.len().saturating_sub(4)..].iter().collect();
    format!("…{last}")
}

/// The largest integer that every JSON reader represents exactly.
pub(super) const LARGEST_WHOLE: u64 = (1 << 53) - 1;
/// The pattern of a plan's digest.
pub(super) const DIGEST: &str = "^[0-9a-f]{16,64}$";
/// The pattern of rows, such as `2-6,60`.
pub(super) const ROWS: &str = "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$";
/// The maximum length of an unknown argument's name that a message repeats.
const MAX_NAME_LENGTH: usize = 40;

/// Normalizes arguments at any depth: null members are removed, and whole numbers become integers.
///
/// Unknown members stay, so that [`find_problems`] names them.
pub(super) fn normalize_value(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => normalize_members(schema, members),
        Value::Array(items) => items.iter_mut().for_each(|item| normalize_value(&schema["items"], item)),
        Value::Number(number) => {
            let integer =
                number.as_f64().filter(|_| number.is_f64() && takes_integers(schema)).and_then(to_exact_integer);
            if let Some(integer) = integer {
                *value = integer.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Normalizes the members of an object.
pub(super) fn normalize_members(schema: &Value, members: &mut Map<String, Value>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    members.retain(|name, value| !(value.is_null() && properties.contains_key(name)));
    for (name, value) in members {
        if let Some(schema) = properties.get(name) {
            normalize_value(schema, value);
        }
    }
}

/// Converts a float to an integer if the float is whole and every JSON reader represents the integer exactly.
fn to_exact_integer(float: f64) -> Option<i64> {
    let integer = if float.fract() == 0.0 { format!("{float:.0}").parse::<i64>().ok() } else { None };
    integer.filter(|integer| integer.unsigned_abs() <= LARGEST_WHOLE)
}

fn takes_integers(schema: &Value) -> bool {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    schema["type"] == "integer" || alternatives.into_iter().any(takes_integers)
}

/// Lists the problems of normalized arguments, each with the name of the argument and what to do.
pub(super) fn find_problems(schema: &Value, arguments: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    check_members("", schema, arguments, &mut problems);
    problems
}

fn check_members(place: &str, schema: &Value, members: &Map<String, Value>, problems: &mut Vec<String>) {
    let path = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    let properties = schema["properties"].as_object();
    let schema_of = |name: &String| properties.and_then(|properties| properties.get(name));
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    problems.extend(required.filter(|name| !members.contains_key(*name)).map(|name| describe_missing(&path(name))));
    for (name, value) in members {
        match schema_of(name) {
            Some(schema) => check_value(&path(name), schema, value, problems),
            None if schema["additionalProperties"] == false => problems.push(describe_unknown(place, name, properties)),
            None => {}
        }
    }
    let dependencies = schema["dependentRequired"].as_object().into_iter().flatten();
    for (name, needed) in dependencies.filter(|(name, _)| members.contains_key(*name)) {
        let needed = needed.as_array().into_iter().flatten().filter_map(Value::as_str);
        let missing = needed.filter(|needed| !members.contains_key(*needed));
        problems.extend(missing.map(|missing| format!("`{0}` needs `{1}`; add `{1}`", path(name), path(missing))));
    }
}

fn describe_missing(path: &str) -> String {
    match path {
        "phone" => "`phone` is missing; add a phone number with its country code, such as 380671112233".to_owned(),
        path => format!("`{path}` is missing; add it"),
    }
}

fn describe_unknown(place: &str, name: &str, properties: Option<&Map<String, Value>>) -> String {
    let owner = if place.is_empty() { "this tool".to_owned() } else { format!("`{place}`") };
    if name.chars().count() > MAX_NAME_LENGTH {
        return format!("{owner} has no argument with such a long name; remove it");
    }
    // The suggestion for a typo must not be an argument that allows sending.
    let names = properties.into_iter().flat_map(Map::keys).map(String::as_str);
    let names = names.filter(|name| !["confirm", "repeat"].contains(name));
    match did_you_mean(name, names) {
        Some(suggestion) => {
            format!("{owner} has no argument `{}`; did you mean `{suggestion}`?", escape_to_one_line(name))
        }
        None => format!("{owner} has no argument `{}`; remove it", escape_to_one_line(name)),
    }
}

fn check_value(path: &str, schema: &Value, value: &Value, problems: &mut Vec<String>) {
    if schema["anyOf"].is_array() {
        // Only the schema of the phone number has `anyOf`.
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
    let (min, max) = (schema["minItems"].as_u64().unwrap_or(0), schema["maxItems"].as_u64());
    if count < min || max.is_some_and(|max| count > max) {
        problems.push(match max {
            Some(max) => format!("`{path}` has {}; {min} to {max} are allowed", format_count(count, "item")),
            None => format!("`{path}` has {}; the minimum is {min}", format_count(count, "item")),
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
    if let Some(max) = schema["maxLength"].as_u64().filter(|max| length > *max) {
        return Some(format!("`{path}` has {length} characters; at most {max} are allowed"));
    }
    match schema["pattern"].as_str() {
        Some(DIGEST) if !is_digest(text) => Some(format!("`{path}` must be a digest returned by plan_campaign")),
        Some(ROWS) if !is_rows(text) => Some(format!("`{path}` must be row numbers such as `2-6,60`")),
        _ => None,
    }
}

/// Whether a text matches [`DIGEST`].
fn is_digest(text: &str) -> bool {
    (16..=64).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text matches [`ROWS`].
fn is_rows(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split(',').all(|rows| match rows.split_once('-') {
        Some((first, last)) => is_number(first) && is_number(last),
        None => is_number(rows),
    })
}

fn number_problem(path: &str, schema: &Value, value: &Value) -> Option<String> {
    let (min, max) = (schema["minimum"].as_u64().unwrap_or(0), schema["maximum"].as_u64().unwrap_or(LARGEST_WHOLE));
    let fits = value.as_u64().is_some_and(|number| (min..=max).contains(&number));
    (!fits).then(|| format!("`{path}` must be a whole number from {min} to {max}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn phone_is_read_with_its_country_code() {
        for value in [json!("380501234567"), json!("+380501234567"), json!(380_501_234_567_u64)] {
            assert_eq!(read_phone(&value).map(|number| number.phone.to_u64()), Ok(380_501_234_567));
        }
    }

    #[test]
    fn phone_problem_names_a_remedy_but_not_the_number() {
        for (value, words) in [
            (json!("38050abc4567"), "has letters; write digits"),
            (json!("38О501234567"), "has letters"),
            (json!("380 50 123 45 67"), "has spaces; write the digits without spaces"),
            (json!("380-50-123-45-67"), "has characters other than digits"),
            (json!("3.8e11"), "has letters"),
            (json!("0501234567"), "starts with 0; write the country code first"),
            (json!("00380501234567"), "starts with 0"),
            (json!(501_239), "has 6 digits"),
            (json!(""), "has 0 digits"),
            (json!("+"), "has 0 digits"),
            (json!("3805012345673805"), "has 16 digits; a number has at most 15"),
            (json!("380001234567"), "is not a valid phone number"),
            (json!("12345678"), "is not a valid phone number"),
            (json!(["380501234567"]), "must be a single phone number"),
            (json!(null), "must be a single phone number"),
            (json!(1.5), "must be a single phone number"),
            (json!(-380_501_234_567_i64), "must be a single phone number"),
        ] {
            let problem = read_phone(&value).unwrap_err();
            assert!(problem.starts_with("`phone` ") && problem.contains(words), "{value}: {problem}");
            assert!(!problem.contains("50123"), "{problem}");
        }
    }

    #[test]
    fn masked_number_shows_only_its_last_four_digits() {
        assert_eq!(mask_phone(&json!("+380 50 123 45 67")), "…4567");
        assert_eq!(mask_phone(&json!(380_501_234_567_u64)), "…4567");
        assert_eq!((mask_phone(&json!("12")), mask_phone(&json!({}))), ("…12".to_owned(), "…".to_owned()));
    }
}
