//! Reading the fields of an operation: the one place that knows what a well-formed value is.

use std::ops::RangeInclusive;

use serde_json::{Map, Number, Value};

use super::ClientId;
use crate::domain::Phone;
use crate::sandbox::platform::OperationError;

/// The most numbers in one `phone`.
const MAX_PHONES: usize = 1_000;

/// The fields of an operation or of an object in it, under names that begin with `prefix`.
///
/// A field that is `null` counts as absent.
#[derive(Clone)]
pub(crate) struct OperationFields<'a> {
    map: &'a Map<String, Value>,
    prefix: &'static str,
    /// The path to `map`, up to and with its last dot; only for errors.
    place: String,
}

impl<'a> OperationFields<'a> {
    /// The fields of an operation.
    pub(crate) fn from_map(map: &'a Map<String, Value>) -> Self {
        Self { map, prefix: "", place: String::new() }
    }

    /// The fields beside these whose names begin with `prefix`.
    pub(crate) fn with_prefix(&self, prefix: &'static str) -> Self {
        Self { map: self.map, prefix, place: self.place.clone() }
    }

    /// The fields of the object in a field.
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

    /// A required text that is not blank.
    pub(crate) fn required_text(&self, key: &str) -> Result<&'a str, OperationError> {
        self.optional_text(key)?.ok_or_else(|| self.missing_field(key))
    }

    /// A text that may be absent, but is not blank.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<&'a str>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Err(self.missing_field(key)),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// A text that may be absent or blank.
    pub(crate) fn check_free_text(&self, key: &str) -> Result<(), OperationError> {
        match self.field(key) {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// A required text of digits alone, which may be sent as a number.
    pub(crate) fn required_digits(&self, key: &str) -> Result<String, OperationError> {
        let digits = match self.field(key) {
            Some(Value::Number(number)) => whole_number(number).ok_or_else(|| self.invalid_field(key))?.to_string(),
            _ => self.required_text(key)?.to_owned(),
        };
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { Ok(digits) } else { Err(self.invalid_field(key)) }
    }

    /// A required sender name, which is any text.
    pub(crate) fn required_signature(&self) -> Result<&'a str, OperationError> {
        self.required_text("signature").map_err(|_| OperationError::ALPHA_NAME)
    }

    /// A required sender name of the form that operators accept for SMS.
    pub(crate) fn required_alpha_name(&self) -> Result<&'a str, OperationError> {
        let name = self.required_signature()?;
        if is_alpha_name(name) { Ok(name) } else { Err(OperationError::ALPHA_NAME) }
    }

    /// A required address.
    pub(crate) fn check_url(&self, key: &str) -> Result<(), OperationError> {
        if is_url(self.required_text(key)?) { Ok(()) } else { Err(self.invalid_field(key)) }
    }

    /// An address that may be absent; an empty text counts as absent.
    pub(crate) fn check_optional_url(&self, key: &str) -> Result<(), OperationError> {
        if self.field(key).is_some_and(|value| value != "") { self.check_url(key) } else { Ok(()) }
    }

    /// The address in a field, to the letter, if there is a usable one.
    pub(crate) fn usable_url(&self, key: &str) -> Option<&'a str> {
        self.field(key).and_then(Value::as_str).filter(|text| is_url(text))
    }

    /// A truth value that may be absent.
    pub(crate) fn optional_flag(&self, key: &str) -> Result<Option<bool>, OperationError> {
        match self.field(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.invalid_field(key)),
        }
    }

    /// A lifetime in whole seconds that may be absent.
    pub(crate) fn optional_lifetime(&self, range: RangeInclusive<u64>) -> Result<Option<u64>, OperationError> {
        let Some(value) = self.field("lifetime") else { return Ok(None) };
        let seconds = value.as_number().and_then(whole_number).filter(|seconds| range.contains(seconds));
        seconds.map(Some).ok_or_else(|| self.invalid_field("lifetime"))
    }

    /// The identifier in a field, if there is one.
    pub(crate) fn optional_id(&self, key: &str) -> Result<Option<ClientId>, OperationError> {
        self.field(key).map(|value| ClientId::from_json(value).ok_or_else(|| self.invalid_field(key))).transpose()
    }

    /// The recipients: a number, digits in a string, or several of those joined by commas.
    pub(crate) fn read_phones(&self) -> Result<Vec<Phone>, OperationError> {
        let phones = match self.field("phone") {
            Some(Value::Number(number)) => whole_number(number).and_then(Phone::new).map(|phone| vec![phone]),
            Some(Value::String(text)) => phones_from_text(text),
            _ => None,
        };
        phones.ok_or(OperationError::PHONE)
    }

    /// The error for a field with a value that it cannot have.
    pub(crate) fn invalid_field(&self, key: &str) -> OperationError {
        OperationError::invalid_field(&self.full_path(key))
    }

    /// The error for a field that has to be there.
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

/// A number that is whole, in whatever form: clients that calculate send `86400.0`.
fn whole_number(number: &Number) -> Option<u64> {
    // Above that a float stands for several whole numbers.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..EXACT).contains(float));
    number.as_u64().or_else(|| float().map(|float| float as u64))
}

/// Numbers joined by commas, of which the last may have one behind it.
fn phones_from_text(text: &str) -> Option<Vec<Phone>> {
    let text = text.trim();
    let parts = text.strip_suffix(',').unwrap_or(text).split(',');
    // One more than there may be shows that there are too many.
    let phones: Option<Vec<Phone>> = parts.take(MAX_PHONES + 1).map(|part| phone_from_text(part.trim())).collect();
    phones.filter(|phones| phones.len() <= MAX_PHONES)
}

/// A number in a text: digits alone, the first not 0.
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
