//! The answer of a lookup or a code call, member by member. Pure.
//!
//! The contract shows no field of it (contract 4.3), so what is known gets a name and an order,
//! and everything else is shown as it came.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Members that platforms are known to send, and what they are called here.
const KNOWN_MEMBERS: [(&str, &str); 11] = [
    ("code", "code"),
    ("price", "price"),
    ("phone", "number"),
    ("status", "status"),
    ("network.origin.name", "operator"),
    ("network.origin.country.name", "country"),
    ("ported", "ported"),
    ("network.ported.name", "ported to"),
    ("network.ported.country.name", "ported to country"),
    ("mccmnc", "mccmnc"),
    ("imsi", "imsi"),
];

/// The members of an answer with their values, those that are known first and under the names they have here.
#[must_use]
pub fn parse_answer_members(answer: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    collect_members("", answer, &mut members);
    let known = |path: &str| KNOWN_MEMBERS.iter().position(|(known, _)| *known == path);
    members.sort_by_key(|(path, _)| known(path).unwrap_or(KNOWN_MEMBERS.len()));
    let called = |path: String| known(&path).map_or(path, |index| KNOWN_MEMBERS[index].1.to_owned());
    members.into_iter().map(|(path, value)| (called(path), value)).collect()
}

/// Adds the values below `path`, each under its whole path; a list is one value. What is empty or null is left out.
fn collect_members(path: &str, json: &str, members: &mut Vec<(String, String)>) {
    if let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json) {
        for (name, value) in object {
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            collect_members(&path, value.get(), members);
        }
        return;
    }
    // A number keeps every digit that was sent.
    let value = serde_json::from_str::<String>(json).unwrap_or_else(|_| match json {
        "true" => "yes".to_owned(),
        "false" => "no".to_owned(),
        "null" => String::new(),
        other => other.to_owned(),
    });
    if !value.is_empty() {
        members.push((path.to_owned(), value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn owned((name, value): (&str, &str)) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn known_members_come_first_and_others_keep_their_names() {
        let answer = r#"{"zone":[1,2],"imsi":255010000000000001,"ported":false,"phone":380501000002,
            "network":{"origin":{"name":"Sandbox Mobile","prefix":"50","country":{"name":"Ukraine"}},"ported":null}}"#;
        let expected = [
            ("number", "380501000002"),
            ("operator", "Sandbox Mobile"),
            ("country", "Ukraine"),
            ("ported", "no"),
            ("imsi", "255010000000000001"),
            ("network.origin.prefix", "50"),
            ("zone", "[1,2]"),
        ];
        assert_eq!(parse_answer_members(answer), expected.map(owned));
    }

    #[test]
    fn codes_keep_zeros_and_prices_keep_digits() {
        let expected = [("code", "0042"), ("price", "0.50")];
        assert_eq!(parse_answer_members(r#"{"price":0.50,"code":"0042"}"#), expected.map(owned));
    }

    proptest! {
        #[test]
        fn arbitrary_answers_do_not_panic(text: String) {
            let _ = parse_answer_members(&text);
        }
    }
}
