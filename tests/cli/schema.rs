//! JSON schemas for editors: they accept every file in the repository that `check` accepts.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::support::Folder;

fn schema(kind: &str) -> Value {
    let schema = Folder::new(false).campaign(&["schema", kind]).exits(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    schema
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect()
}

/// Validates a value against a schema. Fails on a keyword that it does not implement.
fn find_problems(schema: &Value, value: &Value, location: &str) -> Vec<String> {
    let schema = schema.as_object().expect("a schema");
    let check_keyword = |(word, rule): (&String, &Value)| match (word.as_str(), value) {
        ("description" | "title" | "default" | "$schema", _) => Vec::new(),
        ("type", _) => report_unless(types(rule).iter().any(|kind| has_type(kind, value)), location, rule),
        ("enum", _) => report_unless(rule.as_array().expect("words").contains(value), location, rule),
        ("not", _) => report_unless(!find_problems(rule, value, location).is_empty(), location, rule),
        ("anyOf", _) => {
            let alternatives = rule.as_array().expect("schemas").iter();
            report_unless(
                alternatives.clone().any(|alternative| find_problems(alternative, value, location).is_empty()),
                location,
                &json!(alternatives.map(|alternative| find_problems(alternative, value, location)).collect::<Vec<_>>()),
            )
        }
        ("oneOf", _) => {
            let alternatives = rule.as_array().expect("schemas").iter();
            let matching = alternatives.filter(|alternative| find_problems(alternative, value, location).is_empty());
            report_unless(matching.count() == 1, location, rule)
        }
        ("pattern", Value::String(text)) => {
            let pattern = Regex::new(rule.as_str().expect("a pattern")).expect("a pattern");
            report_unless(pattern.is_match(text), location, rule)
        }
        ("minimum", Value::Number(number)) => report_unless(number.as_f64() >= rule.as_f64(), location, rule),
        ("maximum", Value::Number(number)) => report_unless(number.as_f64() <= rule.as_f64(), location, rule),
        ("minItems", Value::Array(items)) => {
            report_unless(items.len() as u64 >= rule.as_u64().expect("a count"), location, rule)
        }
        ("maxItems", Value::Array(items)) => {
            report_unless(items.len() as u64 <= rule.as_u64().expect("a count"), location, rule)
        }
        ("minProperties", Value::Object(map)) => {
            report_unless(map.len() as u64 >= rule.as_u64().expect("a count"), location, rule)
        }
        ("maxProperties", Value::Object(map)) => {
            report_unless(map.len() as u64 <= rule.as_u64().expect("a count"), location, rule)
        }
        ("items", Value::Array(items)) => {
            items.iter().flat_map(|item| find_problems(rule, item, &format!("{location}[]"))).collect()
        }
        ("required", Value::Object(map)) => {
            let names = rule.as_array().expect("names").iter().filter_map(Value::as_str);
            report_unless(names.clone().all(|name| map.contains_key(name)), location, rule)
        }
        ("properties", Value::Object(map)) => {
            let known = map.iter().filter_map(|(key, value)| Some((key, rule.get(key)?, value)));
            known.flat_map(|(key, rule, value)| find_problems(rule, value, &format!("{location}.{key}"))).collect()
        }
        ("propertyNames", Value::Object(map)) => {
            map.keys().flat_map(|key| find_problems(rule, &json!(key), &format!("{location}.{key}"))).collect()
        }
        ("additionalProperties", Value::Object(map)) => find_additional_problems(schema, rule, map, location),
        ("pattern" | "minimum" | "maximum" | "minItems" | "maxItems" | "items" | "required", _) => Vec::new(),
        ("properties" | "propertyNames" | "additionalProperties" | "minProperties" | "maxProperties", _) => Vec::new(),
        (unknown, _) => panic!("`{unknown}` at {location} is not implemented"),
    };
    schema.iter().flat_map(check_keyword).collect()
}

fn find_additional_problems(
    schema: &Map<String, Value>,
    rule: &Value,
    map: &Map<String, Value>,
    location: &str,
) -> Vec<String> {
    let is_property = |key: &String| schema.get("properties").is_some_and(|properties| properties.get(key).is_some());
    let others = map.iter().filter(|(key, _)| !is_property(key));
    others
        .flat_map(|(key, value)| match rule {
            Value::Bool(allowed) => report_unless(*allowed, &format!("{location}.{key}"), rule),
            rule => find_problems(rule, value, &format!("{location}.{key}")),
        })
        .collect()
}

fn report_unless(is_valid: bool, location: &str, rule: &Value) -> Vec<String> {
    if is_valid { Vec::new() } else { vec![format!("{location}: {rule}")] }
}

fn types(rule: &Value) -> Vec<String> {
    let type_name = |kind: &Value| kind.as_str().expect("a type").to_owned();
    rule.as_array().map_or_else(|| vec![type_name(rule)], |kinds| kinds.iter().map(type_name).collect())
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("unknown type `{other}`"),
    }
}

fn find_yaml_problems(schema: &Value, yaml: &str) -> Vec<String> {
    let value: Value = serde_yaml::from_str(yaml).expect("YAML");
    find_problems(schema, &value, "")
}

#[test]
fn schemas_accept_every_example_file_in_the_repository() {
    let folder = Folder::new(false);
    folder.campaign(&["init", "demo"]).exits(0);
    let new_campaign = vec![folder.path("demo.yaml")];
    let profiles = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("gateways.yaml")];
    for (kind, files) in [
        ("campaign", [yaml_files("campaigns"), new_campaign].concat()),
        ("gateways", profiles),
        ("scenario", yaml_files("campaigns/scenarios")),
    ] {
        let schema = schema(kind);
        assert!(!files.is_empty(), "{kind}");
        for file in files {
            let found = find_yaml_problems(&schema, &fs::read_to_string(&file).expect("a file"));
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
}

#[test]
fn schemas_reject_what_check_rejects() {
    for (kind, yaml) in [
        ("campaign", "recipients: { file: a.csv }\nchannels: [ smss: {} ]"),
        ("campaign", "recipients: { fiel: a.csv }\nchannels: [ sms: { signature: a, message: b } ]"),
        ("gateways", "main: { base_url: https://a.example }"),
        ("gateways", "main: { base_url: https://a.example, api_key: the-key-itself }"),
        ("gateways", "Main: { base_url: https://a.example, api_key: { env: KEY } }"),
        ("gateways", "main: { bas_url: https://a.example, api_key: { env: KEY } }"),
        ("scenario", "speed: fast"),
        ("scenario", "accounts: [{ balanse: 1 }]"),
    ] {
        assert!(!find_yaml_problems(&schema(kind), yaml).is_empty(), "{kind}: {yaml}");
    }
}

#[test]
fn editor_finds_the_schema_named_in_a_new_campaign() {
    let folder = Folder::new(false);
    folder.campaign(&["init", "demo"]).exits(0).says("campaign.schema.json");
    let text = fs::read_to_string(folder.path("demo.yaml")).expect("a campaign");
    let first = text.lines().next().and_then(|line| line.strip_prefix("# yaml-language-server: $schema="));
    let schema_text = fs::read_to_string(folder.path(first.expect("a schema"))).expect("the schema");
    assert_eq!(serde_json::from_str::<Value>(&schema_text).expect("JSON"), schema("campaign"));
    folder.write("campaign.schema.json", "mine");
    folder.campaign(&["init", "other"]).exits(0);
    assert_eq!(
        fs::read_to_string(folder.path("campaign.schema.json")).expect("a file"),
        "mine",
        "the schema file is shared"
    );
}
