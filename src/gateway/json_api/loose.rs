//! JSON members whose type the contract leaves open, or which an answer may get wrong.

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::cut::truncate;
use crate::domain::GatewayMessageId;

/// The `success` member, which has to be a boolean (contract 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuccessFlag {
    True,
    False,
    /// Missing, or anything but a boolean.
    Unclear,
}

impl SuccessFlag {
    pub(super) fn read(raw: Option<&RawValue>) -> Self {
        match raw.map(RawValue::get) {
            Some("true") => SuccessFlag::True,
            Some("false") => SuccessFlag::False,
            _ => SuccessFlag::Unclear,
        }
    }
}

/// A whole number given as a number, as digits in a string, or as a float without a fraction.
pub(super) fn read_whole_number(raw: &RawValue) -> Option<u64> {
    let text = raw.get();
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    if text.starts_with('"') {
        let digits: String = serde_json::from_str(text).ok()?;
        return if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    }
    let float: f64 = text.parse().ok()?;
    ((0.0..9_007_199_254_740_992.0).contains(&float) && float.fract() == 0.0).then_some(float as u64)
}

/// Whether a member is there and not `null`.
pub(super) fn non_null(raw: Option<&RawValue>) -> Option<&RawValue> {
    raw.filter(|raw| raw.get() != "null")
}

/// An identifier of the gateway; nothing when it is absent, empty, or neither string nor number.
pub(super) fn read_msg_id(raw: Option<&RawValue>) -> Option<GatewayMessageId> {
    let raw = non_null(raw)?;
    if raw.get().starts_with('"') {
        let text: String = serde_json::from_str(raw.get()).ok()?;
        return (!text.trim().is_empty()).then(|| GatewayMessageId::Text(truncate(text)));
    }
    if !raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    Some(
        read_whole_number(raw)
            .map_or_else(|| GatewayMessageId::Text(truncate(raw.get().to_owned())), GatewayMessageId::Number),
    )
}

/// A text, cut where it is too long to be kept; nothing when the member is absent or blank. A value that is no string is
/// kept as JSON.
pub(super) fn read_text(raw: Option<&RawValue>) -> Option<String> {
    read_whole_text(raw).map(truncate)
}

/// The same, however long it is.
pub(super) fn read_whole_text(raw: Option<&RawValue>) -> Option<String> {
    let raw = non_null(raw)?;
    let text = serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    (!text.trim().is_empty()).then_some(text)
}

/// An instant with an offset (contract 2.4 and 2.5), in whole milliseconds.
pub(super) fn read_timestamp(raw: Option<&RawValue>) -> Option<Timestamp> {
    let instant: Timestamp = read_text(raw)?.trim().parse().ok()?;
    Timestamp::from_millisecond(instant.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_whole_numbers_in_any_json_spelling() {
        let table = [
            ("17", Some(17)),
            (r#""17""#, Some(17)),
            (r#""017""#, Some(17)),
            ("17.0", Some(17)),
            ("1.7e1", Some(17)),
            ("17.5", None),
            ("-17", None),
            (r#""17a""#, None),
            (r#""""#, None),
            ("1e300", None),
            ("true", None),
            ("[17]", None),
        ];
        for (json, expected) in table {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            assert_eq!(read_whole_number(&raw), expected, "{json}");
        }
    }
}
