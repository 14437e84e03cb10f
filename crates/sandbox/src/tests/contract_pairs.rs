//! Tests of the sandbox against the contract's examples: pairs of requests and answers in `tests/contract`.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::bench::Bench;
use campaign_core::domain::Endpoint;

/// A file of `tests/contract`; its README describes the members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContractPair {
    section: String,
    endpoint: Endpoint,
    #[serde(default)]
    before: Vec<Value>,
    request: Value,
    response: Value,
}

impl ContractPair {
    /// Sends the preparatory requests and the request, and returns the sandbox's answer to the request.
    fn send_request(&self) -> Value {
        let mut bench = Bench::new();
        for body in &self.before {
            bench.post(self.endpoint, body.to_string().as_bytes());
        }
        bench.post(self.endpoint, self.request.to_string().as_bytes())
    }
}

/// Whether an answer matches a pattern: the same members, and a value of the right type for each placeholder.
fn matches_pattern(pattern: &Value, answer: &Value) -> bool {
    match (pattern, answer) {
        (Value::String(word), answer) if word.starts_with('<') => match word.as_str() {
            "<number>" => answer.is_number(),
            "<string>" => answer.is_string(),
            "<date-time>" => answer.as_str().is_some_and(|text| text.parse::<Timestamp>().is_ok()),
            "<four digits>" => {
                answer.as_str().is_some_and(|text| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
            }
            _ => false,
        },
        (Value::Object(pattern), Value::Object(answer)) => {
            pattern.len() == answer.len()
                && pattern.iter().all(|(key, value)| answer.get(key).is_some_and(|found| matches_pattern(value, found)))
        }
        (Value::Array(pattern), Value::Array(answer)) => {
            pattern.len() == answer.len()
                && pattern.iter().zip(answer).all(|(pattern, answer)| matches_pattern(pattern, answer))
        }
        (pattern, answer) => pattern == answer,
    }
}

/// Every pair with the name of its file.
fn load_pairs() -> Vec<(String, ContractPair)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/contract");
    let paths = std::fs::read_dir(&folder).expect("the folder of pairs").map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a file");
            let pair = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.display().to_string(), pair)
        })
        .collect()
}

/// The requests of all pairs, including preparatory ones, with their endpoints.
pub(crate) fn contract_requests() -> Vec<(Endpoint, Value)> {
    let pairs = load_pairs().into_iter();
    pairs
        .flat_map(|(_, pair)| pair.before.into_iter().chain([pair.request]).map(move |body| (pair.endpoint, body)))
        .collect()
}

#[test]
fn contract_examples_get_the_documented_answers() {
    let pairs = load_pairs();
    assert!(pairs.len() > 50, "only {} pairs", pairs.len());
    for (name, pair) in pairs {
        let answer = pair.send_request();
        let (section, response) = (&pair.section, &pair.response);
        assert!(
            matches_pattern(response, &answer),
            "{name} (contract {section})\nexpected {response}\nanswered {answer}"
        );
    }
}
