//! Fields of an operation. Only this module decides which values are well-formed.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::platform::OperationError;
use campaign_core::domain::Phone;

/// The maximum number of recipients in one `phone`.
const MAX_PHONES: usize = 1_000;

/// The fields of an operation or a nested object, whose names begin with `prefix`.
///
/// A `null` field counts as missing.
#[derive(Clone)]
pub(crate) struct OperationFields<'a> {
    map: &'a Map<String, Value>,
    prefix: &'static str,
    /// The path to `map` including the last dot; only for errors.
    place: String,
}

impl<'a> OperationFields<'a> {
    /// The fields of an operation.
    pub(crate) fn from_map(map: &'a Map<String, Value>) -> Self {
        Self { map, prefix: "", place: String::new() }
    }

    /// The fields of the same object whose names begin with `prefix`.
    pub(crate) fn with_prefix(&self, prefix: &'static str) -> Self {
        Self { map: self.map, prefix, place: self.place.clone() }
    }

    /// The fields of a nested object.
    pub(crate) fn optional_object(&self, key: &str) -> Result<Option<Self>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self { map, prefix: "", place: format!("{}.", self.full_path(key)) })),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// The fields of each object in an array.
    pub(crate) fn object_list(&self, key: &str) -> Result<Vec<Self>, OperationError> {
        let items = self.required_array(key)?.iter().enumerate();
        items
            .map(|(index, item)| {
                let place = format!("{}[{index}]", self.full_path(key));
                let Value::Object(map) = item else { return Err(OperationError::invalid_field(&place)) };
                Ok(Self { map, prefix: "", place: format!("{place}.") })
            })
            .collect()
    }

    /// A required array.
    pub(crate) fn required_array(&self, key: &str) -> Result<&'a [Value], OperationError> {
        match self.field(key) {
            None => Err(self.missing_field(key)),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// A required text.
    pub(crate) fn required_text(&self, key: &str) -> Result<&'a str, OperationError> {
        self.optional_text(key)?.ok_or_else(|| self.missing_field(key))
    }

    /// An optional text that must not be blank.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<&'a str>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Err(self.missing_field(key)),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// An optional text that may be blank.
    pub(crate) fn check_free_text(&self, key: &str) -> Result<(), OperationError> {
        match self.field(key) {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// Required digits, which may be sent as a number.
    pub(crate) fn required_digits(&self, key: &str) -> Result<String, OperationError> {
        let digits = match self.field(key) {
            Some(Value::Number(number)) => whole_number(number).ok_or_else(|| self.invalid_field(key))?.to_string(),
            _ => self.required_text(key)?.to_owned(),
        };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { Ok(digits) } else { Err(self.invalid_field(key)) }
    }

    /// A required sender name: any text.
    pub(crate) fn required_signature(&self) -> Result<&'a str, OperationError> {
        self.required_text("signature").map_err(|_| OperationError::ALPHA_NAME)
    }

    /// A required sender name in the format of SMS operators.
    pub(crate) fn required_alpha_name(&self) -> Result<&'a str, OperationError> {
        let name = self.required_signature()?;
        if is_alpha_name(name) { Ok(name) } else { Err(OperationError::ALPHA_NAME) }
    }

    /// A required address.
    pub(crate) fn check_url(&self, key: &str) -> Result<(), OperationError> {
        if is_url(self.required_text(key)?) { Ok(()) } else { Err(self.invalid_field(key)) }
    }

    /// An optional URL; an empty text counts as missing.
    pub(crate) fn check_optional_url(&self, key: &str) -> Result<(), OperationError> {
        if self.field(key).is_some_and(|value| value != "") { self.check_url(key) } else { Ok(()) }
    }

    /// The exact URL in a field, if it is valid.
    pub(crate) fn usable_url(&self, key: &str) -> Option<&'a str> {
        self.field(key).and_then(Value::as_str).filter(|text| is_url(text))
    }

    /// An optional boolean.
    pub(crate) fn optional_flag(&self, key: &str) -> Result<Option<bool>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// An optional lifetime in whole seconds.
    pub(crate) fn optional_lifetime(&self, range: RangeInclusive<u64>) -> Result<Option<u64>, OperationError> {
        let Some(value) = self.field("lifetime") else { return Ok(None) };
        let seconds = value.as_number().and_then(whole_number).filter(|seconds| range.contains(seconds));
        seconds.map(Some).ok_or_else(|| self.invalid_field("lifetime"))
    }

    /// The identifier in a field, if present.
    pub(crate) fn optional_id(&self, key: &str) -> Result<Option<ClientId>, OperationError> {
        self.field(key).map(|value| ClientId::from_json(value).ok_or_else(|| self.invalid_field(key))).transpose()
    }

    /// The recipients: a number, digits in a string, or several of these separated by commas.
    pub(crate) fn read_phones(&self) -> Result<Vec<Phone>, OperationError> {
        let phones = match self.field("phone") {
            Some(Value::Number(number)) => whole_number(number).and_then(Phone::new).map(|phone| vec![phone]),
            Some(Value::String(text)) => phones_from_text(text),
            _ => None,
        };
        phones.ok_or(OperationError::PHONE)
    }

    /// The error for an invalid value.
    pub(crate) fn invalid_field(&self, key: &str) -> OperationError {
        OperationError::invalid_field(&self.full_path(key))
    }

    /// The error for a missing required field.
    pub(crate) fn missing_field(&self, key: &str) -> OperationError {
        OperationError::missing_field(&self.full_path(key))
    }

    fn field(&self, key: &str) -> Option<&'a Value> {
        let value = if self.prefix.is_empty() { self.map.get(key) } else { self.map.get(&self.prefixed_name(key)) };
        value.filter(|value| !value.is_null())
    }

    fn prefixed_name(&self, key: &str) -> String {
        [self.prefix, key].concat()
    }

    fn full_path(&self, key: &str) -> String {
        [&self.place, self.prefix, key].concat()
    }
}

/// A whole number in any notation: clients that calculate send `86400.0`.
fn whole_number(number: &Number) -> Option<u64> {
    // Above this value, a float represents several integers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..EXACT).contains(float));
    number.as_u64().or_else(|| float().map(|float| float as u64))
}

/// Parses numbers separated by commas; a trailing comma is allowed.
fn phones_from_text(text: &str) -> Option<Vec<Phone>> {
    let text = text.trim();
    let parts = text.strip_suffix(',').unwrap_or(text).split(',');
    // One more than the limit is enough to detect an excess.
    let phones: Option<Vec<Phone>> = parts.take(MAX_PHONES + 1).map(|part| phone_from_text(part.trim())).collect();
    phones.filter(|phones| phones.len() <= MAX_PHONES)
}

/// Parses a number of digits that does not start with 0.
fn phone_from_text(text: &str) -> Option<Phone> {
    let international = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if international { text.parse().ok().and_then(Phone::new) } else { None }
}

fn is_alpha_name(name: &str) -> bool {
    (3..=11).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_ ".contains(&byte))
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn is_url(text: &str) -> bool {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let web = ["https", "http"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    web && !rest.is_empty()
        && !rest.starts_with(['/', '?', '#'])
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// A client's identifier, a number or a string; it is returned in the same form (contract 2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ClientId {
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Odd(Number),
    /// A string.
    Text(Box<str>),
}

/// The common key of all spellings of an identifier: `7`, `"7"`, `"007"` and `7.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientIdKey {
    Number(u64),
    Text(Box<str>),
}

impl ClientId {
    /// The identifier in this JSON value, if it is a number or a string.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => {
                Some(number.as_u64().map_or_else(|| ClientId::Odd(number.clone()), ClientId::Whole))
            }
            Value::String(text) => Some(ClientId::Text(text.as_str().into())),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The lookup key, equal for all spellings of the identifier.
    pub(crate) fn to_key(&self) -> ClientIdKey {
        match self {
            ClientId::Whole(number) => ClientIdKey::Number(*number),
            ClientId::Odd(number) => {
                // A float is printed as `7.0`; PHP clients send such values after arithmetic.
                let text = number.to_string();
                ClientIdKey::from_text(text.strip_suffix(".0").unwrap_or(&text))
            }
            ClientId::Text(text) => ClientIdKey::from_text(text),
        }
    }
}

impl ClientIdKey {
    fn from_text(text: &str) -> Self {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => ClientIdKey::Number(number),
            _ => ClientIdKey::Text(text.into()),
        }
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientId::Whole(number) => number.fmt(f),
            ClientId::Odd(number) => number.fmt(f),
            ClientId::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_phone_field(value: Value) -> Option<Vec<u64>> {
        let map = Map::from_iter([("phone".to_owned(), value)]);
        OperationFields::from_map(&map).read_phones().ok().map(|phones| phones.into_iter().map(Phone::to_u64).collect())
    }

    #[test]
    fn phone_is_read_only_in_the_forms_clients_send() {
        assert_eq!(read_phone_field(json!(380_501_234_567_u64)), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!(380_501_234_567.0)), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!("380501234567")), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!("380501234567, 380671234567")), Some(vec![380_501_234_567, 380_671_234_567]));
        assert_eq!(read_phone_field(json!("380501234567, ")), Some(vec![380_501_234_567]));
        assert_eq!(read_phone_field(json!("380501234567,".repeat(MAX_PHONES))).map(|all| all.len()), Some(MAX_PHONES));
        for wrong in [
            json!(null),
            json!(true),
            json!([380_501_234_567_u64]),
            json!(1),
            json!(-380_501_234_567_i64),
            json!(380_501_234_567.5),
            json!(1_234_567_890_123_456_u64),
            json!(""),
            json!("+380501234567"),
            json!("0501234567"),
            json!(","),
            json!("380501234567,,"),
            json!("380501234567,nobody"),
            json!("380501234567,".repeat(MAX_PHONES + 1)),
            json!("99999999999999999999999999"),
        ] {
            assert_eq!(read_phone_field(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn sender_name_follows_operator_rules() {
        for good in ["Abc", "Olena.Co-1_", "Shop 24", "1234567890a"] {
            assert!(is_alpha_name(good), "{good}");
        }
        for bad in ["", "ab", "abcdefghijkl", "12345", "Крамниця", "shop!"] {
            assert!(!is_alpha_name(bad), "{bad}");
        }
    }

    #[test]
    fn url_must_be_absolute_web_address() {
        for good in
            ["https://a", "HTTPS://a", "Http://a", "http://127.0.0.1:80/x?token=1&b=2#c", "https://приклад.укр/"]
        {
            assert!(is_url(good), "{good}");
        }
        for bad in ["", "a.example", "https://", "https:///x", "ftp://a", "https://a b", "javascript:alert(1)"] {
            assert!(!is_url(bad), "{bad}");
        }
    }

    #[test]
    fn error_names_the_full_field_path() {
        let operation = json!({"voice": {"gender": 1}, "cards": [{}, {"image": 5}]});
        let fields = OperationFields::from_map(operation.as_object().expect("an object"));
        let voice = fields.optional_object("voice").expect("well-formed").expect("present");
        assert_eq!(voice.optional_text("gender"), Err(OperationError::invalid_field("voice.gender")));
        let cards = fields.object_list("cards").expect("well-formed");
        assert_eq!(cards[0].check_url("image"), Err(OperationError::missing_field("cards[0].image")));
        assert_eq!(
            fields.with_prefix("viber_").required_text("message"),
            Err(OperationError::missing_field("viber_message"))
        );
    }
}

#[cfg(test)]
mod client_id_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn client_id_serializes_as_it_was_sent() {
        for value in
            [json!(7), json!("7"), json!("007"), json!(-3), json!(1.5), json!(u64::MAX), json!(""), json!("a b")]
        {
            let id = ClientId::from_json(&value).expect("an id");
            assert_eq!(serde_json::to_value(&id).expect("JSON"), value);
        }
    }

    #[test]
    fn spellings_of_one_number_share_a_key() {
        for value in [json!(7), json!("7"), json!("007"), json!(7.0)] {
            assert_eq!(ClientId::from_json(&value).expect("an id").to_key(), ClientIdKey::Number(7), "{value}");
        }
        for value in [json!("7a"), json!("+7"), json!(-7), json!(7.5), json!(""), json!("99999999999999999999999")] {
            assert!(matches!(ClientId::from_json(&value).expect("an id").to_key(), ClientIdKey::Text(_)), "{value}");
        }
    }
}
