//! Agreement between the JSON Schema and the structure check on sample values of every key.

use serde_json::{Map, Value, json};

use super::tables::TEXT_FILE;
use super::{CAMPAIGN, CHANNELS, KeyPresence, KeySpec, ValueShape, campaign_schema, check_root};
use crate::document::FindingCollector;
use crate::yaml::{self, node_to_json};
use campaign_core::finding::{Finding, SourceText};

/// Whether a value is valid against a schema. Supports only the keywords that our schemas use, and ignores patterns.
fn fits_schema(schema: &Value, value: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return true };
    keywords.iter().all(|(keyword, expected)| match (keyword.as_str(), value) {
        ("type", _) => match expected {
            Value::Array(types) => types.iter().any(|name| has_json_type(name, value)),
            name => has_json_type(name, value),
        },
        ("enum", _) => expected.as_array().is_some_and(|words| words.contains(value)),
        ("not", _) => !fits_schema(expected, value),
        ("anyOf", _) => {
            expected.as_array().is_some_and(|schemas| schemas.iter().any(|schema| fits_schema(schema, value)))
        }
        ("oneOf", _) => expected
            .as_array()
            .is_some_and(|schemas| schemas.iter().filter(|schema| fits_schema(schema, value)).count() == 1),
        ("minimum", Value::Number(number)) => number.as_f64() >= expected.as_f64(),
        ("maximum", Value::Number(number)) => number.as_f64() <= expected.as_f64(),
        ("items", Value::Array(items)) => items.iter().all(|item| fits_schema(expected, item)),
        ("minItems", Value::Array(items)) => items.len() as u64 >= expected.as_u64().unwrap(),
        ("maxItems", Value::Array(items)) => items.len() as u64 <= expected.as_u64().unwrap(),
        ("required", Value::Object(map)) => {
            expected.as_array().unwrap().iter().all(|key| map.contains_key(as_text(key)))
        }
        ("minProperties", Value::Object(map)) => map.len() as u64 >= expected.as_u64().unwrap(),
        ("maxProperties", Value::Object(map)) => map.len() as u64 <= expected.as_u64().unwrap(),
        ("properties", Value::Object(map)) => {
            map.iter().all(|(key, value)| expected.get(key).is_none_or(|schema| fits_schema(schema, value)))
        }
        ("additionalProperties", Value::Object(map)) => {
            let is_known = |key: &str| keywords.get("properties").is_some_and(|known| known.get(key).is_some());
            let mut others = map.iter().filter(|(key, _)| !is_known(key));
            match expected {
                Value::Bool(allowed) => *allowed || others.next().is_none(),
                schema => others.all(|(_, value)| fits_schema(schema, value)),
            }
        }
        _ => true,
    })
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn has_json_type(name: &Value, value: &Value) -> bool {
    match as_text(name) {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("unknown JSON type {other}"),
    }
}

/// Whether the structure check finds no problems.
fn passes_check(document: &Value) -> bool {
    let source = SourceText::new("a.yaml", document.to_string());
    let mut report = FindingCollector::new(&source);
    let root = yaml::read_tree(&mut report).expect("JSON is YAML");
    check_root(&root, "the campaign", &mut report);
    !report.into_findings().iter().any(Finding::is_error)
}

fn parse_example(example: &str) -> Value {
    let source = SourceText::new("example", example.to_owned());
    node_to_json(&yaml::read_tree(&mut FindingCollector::new(&source)).expect("an example is YAML"))
}

/// Sample values of a key: its example, values of other kinds, and null.
fn sample_values(key: &KeySpec) -> Vec<Value> {
    let others =
        [json!(null), json!({}), json!([]), json!([null]), json!(true), json!(7), json!(-1), json!({ "x": null })];
    [parse_example(key.example)].into_iter().chain(others).collect()
}

/// Calls `judge` with a document for each sample value of each key, and with a document without the key. `base` has the
/// required keys, and `nest` puts the map into the document.
fn for_each_value(
    keys: &'static [KeySpec],
    base: &Map<String, Value>,
    nest: &dyn Fn(Map<String, Value>) -> Value,
    judge: &mut dyn FnMut(&str, Value),
) {
    for key in keys {
        for value in sample_values(key) {
            let mut map = base.clone();
            map.insert(key.name.to_owned(), value);
            judge(key.name, nest(map));
        }
        let mut without = base.clone();
        without.remove(key.name);
        judge(key.name, nest(without));
        let inner: &'static [KeySpec] = match key.shape {
            ValueShape::Map(keys) => keys,
            ValueShape::Message => TEXT_FILE,
            _ => continue,
        };
        let first = inner.iter().find(|key| key.presence == KeyPresence::Choice);
        let required = inner.iter().filter(|key| key.presence == KeyPresence::Required).chain(first);
        let valid: Map<String, Value> = required.map(|key| (key.name.to_owned(), parse_example(key.example))).collect();
        let put_inner = |map: Map<String, Value>| {
            let mut outer = base.clone();
            outer.insert(key.name.to_owned(), map.into());
            nest(outer)
        };
        for_each_value(inner, &valid, &put_inner, judge);
    }
}

#[test]
fn schema_and_check_agree_on_samples_of_every_key() {
    let schema = campaign_schema();
    let campaign = json!({ "recipients": { "file": "a.csv" }, "channels": [{ "hlr": {} }] });
    let campaign = campaign.as_object().unwrap();
    let (mut checked, mut disagreements) = (0, Vec::new());
    let mut judge = |key: &str, document: Value| {
        checked += 1;
        if fits_schema(&schema, &document) != passes_check(&document) {
            disagreements.push(format!("{key}: {document}"));
        }
    };
    for_each_value(CAMPAIGN, campaign, &Value::Object, &mut judge);
    let nest = |item: Value| {
        let mut document = campaign.clone();
        document.insert("channels".to_owned(), json!([item]));
        Value::Object(document)
    };
    for channel in CHANNELS {
        for_each_value(std::slice::from_ref(channel), &Map::new(), &|map| nest(map.into()), &mut judge);
        judge(channel.name, nest(channel.name.into()));
    }
    assert!(checked > 500, "only {checked} documents");
    assert!(disagreements.is_empty(), "{} of {checked}:\n{}", disagreements.len(), disagreements.join("\n"));
}
