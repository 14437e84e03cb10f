//! Comparison with serde_yaml, a YAML reader based on libyaml. Apart from known differences, both give the same values.

use std::thread;

use serde_yaml::Value;

use super::random::YamlDraft;
use super::*;

/// Known differences: the text, our result, the result of the other reader, and the reason.
const DIFFERENCES: [(&str, &str, &str, &str); 17] = [
    (
        "a: +380501234567",
        r#"{"a":"+380501234567"}"#,
        r#"{"a":380501234567}"#,
        "the plus sign can belong to a phone number",
    ),
    (
        "a: 9007199254740993",
        r#"{"a":"9007199254740993"}"#,
        r#"{"a":9007199254740993}"#,
        "not every JSON reader keeps all its digits",
    ),
    ("a: 00.5", r#"{"a":"00.5"}"#, r#"{"a":0.5}"#, "a leading zero can belong to a code"),
    ("a: 0b101", r#"{"a":"0b101"}"#, r#"{"a":5}"#, "not a number in YAML 1.2"),
    ("a: -0x1F", r#"{"a":"-0x1F"}"#, r#"{"a":-31}"#, "not a number in YAML 1.2"),
    ("a: .inf", r#"{"a":".inf"}"#, r#"{"a":null}"#, "JSON cannot represent it"),
    ("a: .nan", r#"{"a":".nan"}"#, r#"{"a":null}"#, "JSON cannot represent it"),
    ("12: a", r#"{"12":"a"}"#, r#"{"12":"a"}"#, "keys are texts; JSON converts the number to a text"),
    ("~: a", "yaml-key", "refused", "a key must be a text"),
    ("? [a]\n: b", "yaml-key", "refused", "a key must be a text"),
    ("a: 1\na: 2", "yaml-duplicate-key", "refused", "YAML forbids it as well"),
    ("<<: { a: 1 }", "yaml-merge", r#"{"<<":{"a":1}}"#, "YAML 1.2 has no merge keys"),
    ("a: !!str 12", "yaml-tag", r#"{"a":"12"}"#, "a tag is usually the beginning of a text"),
    ("a: !sale now", "yaml-tag", r#"{"a":{"!sale":"now"}}"#, "a tag is usually the beginning of a text"),
    ("a: &b c", "yaml-anchor", r#"{"a":"c"}"#, "an unused anchor is usually the beginning of a text"),
    ("a: b\u{2028}  c", "{\"a\":\"b\u{2028}  c\"}", "{\"a\":\"b\u{2028}c\"}", "it is a line break only in YAML 1.1"),
    ("", "file-empty", "null", "an empty file is not a campaign"),
];

/// Our reader's result for a text: the text as JSON, or the rules that it breaks.
fn parse_with_our_reader(text: &str) -> String {
    let (node, findings) = parse_text(text);
    node.map_or_else(
        || findings.iter().map(|finding| finding.rule.id).collect::<Vec<_>>().join(" "),
        |node| node_to_json(&node).to_string(),
    )
}

#[test]
fn every_documented_parser_difference_still_exists() {
    let mut wrong = Vec::new();
    for (text, ours, theirs, reason) in DIFFERENCES {
        let value = serde_yaml::from_str::<Value>(text).ok().and_then(|value| serde_json::to_value(value).ok());
        let actual = (parse_with_our_reader(text), value.map_or("refused".to_owned(), |value| value.to_string()));
        if actual != (ours.to_owned(), theirs.to_owned()) {
            wrong.push(format!("{text:?} ({reason}): {actual:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether our reader keeps a value as text although the other reader might read it as a number; see [`DIFFERENCES`].
fn is_kept_as_text(scalar: &Scalar) -> bool {
    let text = scalar.text.as_str();
    scalar.is_plain()
        && (["+", "0", "-0", ".inf", ".nan"].iter().any(|begin| text.starts_with(begin)) || text.len() > 15)
}

/// Whether both readers read the same value.
fn is_same_value(ours: &Node, theirs: &Value) -> bool {
    match (&ours.content, theirs) {
        (NodeContent::List(ours), Value::Sequence(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_same_value(ours, theirs))
        }
        (NodeContent::Map(ours), Value::Mapping(theirs)) => {
            let is_same_key = |text: &str, key: &Value| match key {
                Value::String(key) => key == text,
                Value::Number(number) => number.to_string() == text,
                _ => false,
            };
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, (name, value))| is_same_key(&ours.key, name) && is_same_value(&ours.value, value))
        }
        (NodeContent::Scalar(scalar), theirs) => match (scalar_to_json(scalar), theirs) {
            (serde_json::Value::Null, Value::Null) => true,
            (serde_json::Value::Bool(ours), Value::Bool(theirs)) => ours == *theirs,
            (serde_json::Value::Number(ours), Value::Number(theirs)) => {
                (ours.as_i64(), ours.as_f64()) == (theirs.as_i64(), theirs.as_f64())
            }
            (serde_json::Value::String(ours), Value::String(theirs)) => ours == *theirs,
            (serde_json::Value::String(_), Value::Number(_)) => is_kept_as_text(scalar),
            _ => false,
        },
        _ => false,
    }
}

/// Asserts that both readers agree on a text, and returns whether they accept it.
fn assert_agreement(text: &str, context: &str) -> bool {
    let ((ours, findings), theirs) = (parse_text(text), serde_yaml::from_str::<Value>(text));
    match (ours, theirs) {
        (Some(ours), Ok(theirs)) => {
            assert!(
                is_same_value(&ours, &theirs),
                "{context}:\n{text}\nours: {}\ntheirs: {theirs:?}",
                node_to_json(&ours)
            );
            true
        }
        (None, Err(_)) => false,
        (Some(_), Err(error)) => panic!("{context}: only the other reader rejects it: {error}\n{text}"),
        (None, Ok(_)) => panic!("{context}: only our reader rejects it: {findings:?}\n{text}"),
    }
}

#[test]
fn both_parsers_agree_on_the_files_of_the_repository() {
    // The Compose file is not a campaign file and contains anchors.
    for (path, text) in list_yaml_files().into_iter().filter(|(path, _)| !path.ends_with("deploy/compose.yaml")) {
        // The draft has a placeholder word instead of `recipients`, so it is not YAML yet.
        let is_draft = path.ends_with("draft/campaign.yaml");
        assert_eq!(assert_agreement(&text, &path.display().to_string()), !is_draft, "{}", path.display());
    }
}

#[test]
fn both_parsers_agree_on_random_files() {
    const FILES: u64 = 100_000;
    let half = |parity: u64| {
        let seeds = (0..FILES).filter(move |seed| seed % 2 == parity);
        move || seeds.filter(|&seed| assert_agreement(&YamlDraft::random(seed), &format!("seed {seed}"))).count() as u64
    };
    let accepted = thread::scope(|scope| {
        let second_half = scope.spawn(half(1));
        half(0)() + second_half.join().expect("the other half")
    });
    assert!(accepted * 100 >= FILES * 99, "both readers accept only {accepted} of {FILES} files");
}
