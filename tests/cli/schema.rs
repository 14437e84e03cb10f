//! JSON schemas for editors: they accept every file in the repository that `check` accepts.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::support::Folder;

fn schema(of: &str) -> Value {
    let schema = Folder::new(false).campaign(&["schema", of]).exits(0).json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    schema
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")).collect()
}

/// Validates a value against a schema. Fails on a keyword that it does not implement.
fn problems(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let schema = schema.as_object().expect("a schema");
    let one = |(word, rule): (&String, &Value)| match (word.as_str(), value) {
        ("description" | "title" | "default" | "$schema", _) => Vec::new(),
        ("type", _) => report_unless(types(rule).iter().any(|kind| has_type(kind, value)), at, rule),
        ("enum", _) => report_unless(rule.as_array().expect("words").contains(value), at, rule),
        ("not", _) => report_unless(!problems(rule, value, at).is_empty(), at, rule),
        ("anyOf", _) => {
            let ways = rule.as_array().expect("schemas").iter();
            report_unless(
                ways.clone().any(|way| problems(way, value, at).is_empty()),
                at,
                &json!(ways.map(|way| problems(way, value, at)).collect::<Vec<_>>()),
            )
        }
        ("oneOf", _) => {
            let ways = rule.as_array().expect("schemas").iter();
            report_unless(ways.filter(|way| problems(way, value, at).is_empty()).count() == 1, at, rule)
        }
        ("pattern", Value::String(text)) => {
            report_unless(Regex::new(rule.as_str().expect("a pattern")).expect("a pattern").is_match(text), at, rule)
        }
        ("minimum", Value::Number(number)) => report_unless(number.as_f64() >= rule.as_f64(), at, rule),
        ("maximum", Value::Number(number)) => report_unless(number.as_f64() <= rule.as_f64(), at, rule),
        ("minItems", Value::Array(items)) => {
            report_unless(items.len() as u64 >= rule.as_u64().expect("a count"), at, rule)
        }
        ("maxItems", Value::Array(items)) => {
            report_unless(items.len() as u64 <= rule.as_u64().expect("a count"), at, rule)
        }
        ("minProperties", Value::Object(map)) => {
            report_unless(map.len() as u64 >= rule.as_u64().expect("a count"), at, rule)
        }
        ("maxProperties", Value::Object(map)) => {
            report_unless(map.len() as u64 <= rule.as_u64().expect("a count"), at, rule)
        }
        ("items", Value::Array(items)) => {
            items.iter().flat_map(|item| problems(rule, item, &format!("{at}[]"))).collect()
        }
        ("required", Value::Object(map)) => {
            let names = rule.as_array().expect("names").iter().filter_map(Value::as_str);
            report_unless(names.clone().all(|name| map.contains_key(name)), at, rule)
        }
        ("properties", Value::Object(map)) => {
            let known =
                |(key, value): (&String, &Value)| Some((format!("{at}.{key}"), rule.get(key)?.clone(), value.clone()));
            map.iter().filter_map(known).flat_map(|(at, rule, value)| problems(&rule, &value, &at)).collect()
        }
        ("propertyNames", Value::Object(map)) => {
            map.keys().flat_map(|key| problems(rule, &json!(key), &format!("{at}.{key}"))).collect()
        }
        ("additionalProperties", Value::Object(map)) => additional_problems(schema, rule, map, at),
        ("pattern" | "minimum" | "maximum" | "minItems" | "maxItems" | "items" | "required", _) => Vec::new(),
        ("properties" | "propertyNames" | "additionalProperties" | "minProperties" | "maxProperties", _) => Vec::new(),
        (unknown, _) => panic!("`{unknown}` at {at} is not implemented"),
    };
    schema.iter().flat_map(one).collect()
}

fn additional_problems(schema: &Map<String, Value>, rule: &Value, map: &Map<String, Value>, at: &str) -> Vec<String> {
    let named = |key: &String| schema.get("properties").is_some_and(|named| named.get(key).is_some());
    let others = map.iter().filter(|(key, _)| !named(key));
    others
        .flat_map(|(key, value)| match rule {
            Value::Bool(allowed) => report_unless(*allowed, &format!("{at}.{key}"), rule),
            rule => problems(rule, value, &format!("{at}.{key}")),
        })
        .collect()
}

fn report_unless(good: bool, at: &str, rule: &Value) -> Vec<String> {
    if good { Vec::new() } else { vec![format!("{at}: {rule}")] }
}

fn types(rule: &Value) -> Vec<String> {
    let one = |kind: &Value| kind.as_str().expect("a type").to_owned();
    rule.as_array().map_or_else(|| vec![one(rule)], |kinds| kinds.iter().map(one).collect())
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

fn schema_problems(schema: &Value, yaml: &str) -> Vec<String> {
    let value: Value = serde_yaml::from_str(yaml).expect("YAML");
    problems(schema, &value, "")
}

#[test]
fn schemas_accept_every_example_file_in_the_repository() {
    let folder = Folder::new(false);
    folder.campaign(&["init", "demo"]).exits(0);
    let drawn_up = vec![folder.path("demo.yaml")];
    let profiles = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("gateways.yaml")];
    for (of, files) in [
        ("campaign", [yaml_files("campaigns"), drawn_up].concat()),
        ("gateways", profiles),
        ("scenario", yaml_files("campaigns/scenarios")),
    ] {
        let schema = schema(of);
        assert!(!files.is_empty(), "{of}");
        for file in files {
            let found = schema_problems(&schema, &fs::read_to_string(&file).expect("a file"));
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
}

#[test]
fn schemas_refuse_what_check_refuses() {
    for (of, yaml) in [
        ("campaign", "recipients: { file: a.csv }\nchannels: [ smss: {} ]"),
        ("campaign", "recipients: { fiel: a.csv }\nchannels: [ sms: { signature: a, message: b } ]"),
        ("gateways", "main: { base_url: https://a.example }"),
        ("gateways", "main: { base_url: https://a.example, api_key: the-key-itself }"),
        ("gateways", "Main: { base_url: https://a.example, api_key: { env: KEY } }"),
        ("gateways", "main: { bas_url: https://a.example, api_key: { env: KEY } }"),
        ("scenario", "speed: fast"),
        ("scenario", "accounts: [{ balanse: 1 }]"),
    ] {
        assert!(!schema_problems(&schema(of), yaml).is_empty(), "{of}: {yaml}");
    }
}

#[test]
fn editor_finds_the_schema_named_in_a_new_campaign() {
    let folder = Folder::new(false);
    folder.campaign(&["init", "demo"]).exits(0).says("campaign.schema.json");
    let text = fs::read_to_string(folder.path("demo.yaml")).expect("a campaign");
    let first = text.lines().next().and_then(|line| line.strip_prefix("# yaml-language-server: $schema="));
    let named = fs::read_to_string(folder.path(first.expect("a schema"))).expect("the schema");
    assert_eq!(serde_json::from_str::<Value>(&named).expect("JSON"), schema("campaign"));
    folder.write("campaign.schema.json", "mine");
    folder.campaign(&["init", "other"]).exits(0);
    assert_eq!(
        fs::read_to_string(folder.path("campaign.schema.json")).expect("a file"),
        "mine",
        "the schema file is shared"
    );
}
