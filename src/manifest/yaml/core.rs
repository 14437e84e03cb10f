//! The types that YAML 1.2's core schema gives to values, as JSON.

use serde_json::{Map, Number, Value};

use super::{Node, NodeContent, Scalar};

/// The largest whole number that every JSON reader keeps exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A node as JSON.
///
/// A number stays text where reading it as one would lose something: a leading zero or plus
/// sign (phone numbers, codes), more digits than a reader of JSON keeps, no finite value.
pub(crate) fn node_to_json(node: &Node) -> Value {
    match &node.content {
        NodeContent::Scalar(scalar) => scalar_to_json(scalar),
        NodeContent::List(items) => items.iter().map(node_to_json).collect(),
        NodeContent::Map(entries) => Value::Object(
            entries.iter().map(|entry| (entry.key.clone(), node_to_json(&entry.value))).collect::<Map<_, _>>(),
        ),
    }
}

/// One value as JSON.
pub(crate) fn scalar_to_json(scalar: &Scalar) -> Value {
    if !scalar.is_plain() {
        return Value::String(scalar.text.clone());
    }
    match scalar.text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => parse_number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let whole = |digits: &str, radix| {
        let number = u64::from_str_radix(digits, radix).ok().filter(|&number| number <= MAX_SAFE_INTEGER);
        number.filter(|_| !digits.starts_with('+'))
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return whole(digits, 16).map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return whole(digits, 8).map(Number::from);
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading_zero = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
    if leading_zero || !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        whole(digits, 10)?;
        return text.parse::<i64>().ok().map(Number::from);
    }
    let looks_decimal =
        digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>().ok().filter(|_| looks_decimal).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use super::super::node::Style;
    use super::*;

    #[test]
    fn values_have_yaml_types_and_lossy_numbers_stay_text() {
        let cases = [
            ("null", "null"),
            ("~", "null"),
            ("true", "true"),
            ("yes", "\"yes\""),
            ("12", "12"),
            ("-3", "-3"),
            ("0", "0"),
            ("0.5", "0.5"),
            ("1e3", "1000.0"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("0501234567", "\"0501234567\""),
            ("+380501234567", "\"+380501234567\""),
            ("9007199254740991", "9007199254740991"),
            ("9007199254740992", "\"9007199254740992\""),
            ("1e999", "\"1e999\""),
            (".inf", "\".inf\""),
            ("1.2.3", "\"1.2.3\""),
            ("-", "\"-\""),
            ("0x+1", "\"0x+1\""),
        ];
        for (typed, json) in cases {
            let scalar = Scalar { text: typed.into(), style: Style::Plain };
            assert_eq!(scalar_to_json(&scalar).to_string(), json, "{typed}");
        }
        let quoted = Scalar { text: "12".into(), style: Style::DoubleQuoted };
        assert_eq!(scalar_to_json(&quoted).to_string(), "\"12\"");
    }
}
