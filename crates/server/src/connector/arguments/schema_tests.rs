//! Tests of the argument checks against a library that implements all of JSON Schema.

use std::collections::BTreeSet;

use campaign_testing::JsonSchema;
use proptest::prelude::*;
use serde_json::json;

use crate::connector::arguments::*;
use crate::connector::tools::McpTool;
use crate::connector::{campaigns, tools};

/// The keywords that the check supports, including descriptive ones.
const KEYWORDS: [&str; 18] = [
    "additionalProperties",
    "anyOf",
    "default",
    "dependentRequired",
    "description",
    "enum",
    "examples",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "required",
    "type",
    "uniqueItems",
];

fn all_tools() -> impl Iterator<Item = &'static McpTool> {
    tools::READ_TOOLS.iter().chain(&tools::SEND_TOOLS).chain(&campaigns::READ_TOOLS).chain(&campaigns::SEND_TOOLS)
}

/// Collects the keywords of a schema and its subschemas.
fn collect_keywords(schema: &Value, keywords: &mut BTreeSet<String>) {
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values().for_each(|property| collect_keywords(property, keywords))
            }
            ("items", items) => collect_keywords(items, keywords),
            ("pattern", pattern) => assert!([DIGEST, ROWS].map(Value::from).contains(pattern), "{pattern}"),
            _ => drop(keywords.insert(keyword.clone())),
        }
    }
}

#[test]
fn argument_check_supports_every_input_schema_keyword() {
    let mut keywords = BTreeSet::new();
    for tool in all_tools() {
        let schema = (tool.input)();
        collect_keywords(&schema, &mut keywords);
        let mut properties = schema["properties"].as_object().expect("properties").iter();
        assert!(properties.all(|(name, schema)| schema["anyOf"].is_null() || name == "phone"), "{}", tool.name);
    }
    let unknown: Vec<&String> = keywords.iter().filter(|keyword| !KEYWORDS.contains(&keyword.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Generates values near the limits of a schema, and unrelated values.
fn value_for(schema: &Value) -> BoxedStrategy<Value> {
    let other = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({ "text": 1 })),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    let fitting = match schema["type"].as_str() {
        Some("object") => arguments_for(schema).prop_map(Value::Object).boxed(),
        Some("array") => prop::collection::vec(value_for(&schema["items"]), 0..5).prop_map(Value::from).boxed(),
        Some("integer") => {
            let min = schema["minimum"].as_u64().unwrap_or(0);
            let max = schema["maximum"].as_u64().unwrap_or(1 << 53);
            let candidates = prop::sample::select(vec![min, min + 1, max, max + 1, min.saturating_sub(1)]);
            candidates
                .prop_flat_map(|number| {
                    let float = number.to_string().parse::<f64>().expect("a number");
                    prop_oneof![Just(json!(number)), Just(json!(float)), Just(json!(float + 0.5)), Just(json!(-float))]
                })
                .boxed()
        }
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("string") => match schema["enum"].as_array() {
            Some(words) => prop::sample::select(words.clone()).boxed(),
            None => prop_oneof![
                "|a|Hi|[0-9a-f]{15,17}|[0-9a-f]{64,65}|2-6,60|2-|,|7".prop_map(Value::from),
                (4_095_usize..4_098).prop_map(|length| json!("я".repeat(length))),
            ]
            .boxed(),
        },
        _ => prop_oneof![Just(json!("380501234567")), Just(json!(380_501_234_567_u64))].boxed(),
    };
    prop_oneof![4 => fitting, 1 => other].boxed()
}

/// Generates objects with some of the members of a schema, and sometimes with an unknown member.
fn arguments_for(schema: &Value) -> BoxedStrategy<Map<String, Value>> {
    let properties = schema["properties"].as_object().expect("properties").clone();
    let members: Vec<_> = properties
        .iter()
        .map(|(name, schema)| (Just(name.clone()), prop::option::weighted(0.7, value_for(schema))))
        .collect();
    let unknown_member = prop::option::weighted(0.1, Just(("stranger".to_owned(), json!(1))));
    (members, unknown_member)
        .prop_map(|(members, unknown_member)| {
            members.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(unknown_member).collect()
        })
        .boxed()
}

/// Generates calls: the name of a tool, its schema, and arguments.
fn tool_calls() -> impl Strategy<Value = (&'static str, Value, Map<String, Value>)> {
    let tools: Vec<(&str, Value)> = all_tools().map(|tool| (tool.name, (tool.input)())).collect();
    prop::sample::select(tools).prop_flat_map(|(name, schema)| {
        let arguments = arguments_for(&schema);
        (Just(name), Just(schema), arguments)
    })
}

proptest! {
    #[test]
    fn argument_check_agrees_with_a_json_schema_library((tool, schema, mut arguments) in tool_calls()) {
        normalize_members(&schema, &mut arguments);
        // The schema does not cover every check of a phone number, so inputs with an invalid number are discarded.
        let phone = arguments.get("phone").and_then(phone_problem);
        prop_assume!(phone.is_none());
        let library = JsonSchema::new(&schema);
        let problems = find_problems(&schema, &arguments);
        let is_valid = library.is_valid(&Value::Object(arguments.clone()));
        prop_assert_eq!(problems.is_empty(), is_valid, "{}: {:?} {:?}", tool, arguments, problems);
    }

    #[test]
    fn normalized_arguments_have_no_nulls_or_whole_floats((_, schema, mut arguments) in tool_calls()) {
        normalize_members(&schema, &mut arguments);
        for (name, value) in &arguments {
            let property = &schema["properties"][name];
            prop_assert!(property.is_null() || !value.is_null(), "{name}");
            if property["type"] == "integer" && find_problems(&schema, &arguments).is_empty() {
                prop_assert!(value.is_u64(), "{name}: {value}");
            }
        }
    }
}

#[test]
fn whole_floats_become_integers() {
    let schema = json!({ "type": "integer", "maximum": LARGEST_WHOLE });
    let normalize_and_check = |text: &str| {
        let mut value: Value = serde_json::from_str(text).expect("JSON");
        normalize_value(&schema, &mut value);
        (value.as_u64(), number_problem("n", &schema, &value).is_none())
    };
    for (text, number) in [
        ("3600.0", 3600),
        ("3.6e3", 3600),
        ("36000e-1", 3600),
        ("-0.0", 0),
        ("-0", 0),
        ("9007199254740991", LARGEST_WHOLE),
        ("9007199254740991.0", LARGEST_WHOLE),
    ] {
        assert_eq!(normalize_and_check(text), (Some(number), true), "{text}");
    }
    for text in [
        "3600.5",
        "-1.0",
        "1e300",
        "9007199254740992",
        "9007199254740992.0",
        "9007199254740993",
        "18446744073709551616",
        "1e-300",
        "\"3600\"",
        "true",
    ] {
        let (_, is_valid) = normalize_and_check(text);
        assert!(!is_valid, "{text}");
    }
}

#[test]
fn problems_name_the_argument_and_the_remedy() {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["text"],
        "properties": {
            "text": { "type": "string", "minLength": 1, "maxLength": 3 },
            "lifetime": { "type": "integer", "minimum": 60, "maximum": 90 },
            "repeat": { "type": "boolean" },
            "kind": { "type": "string", "enum": ["a", "b"] },
            "cards": {
                "type": "array", "minItems": 2, "maxItems": 3,
                "items": { "type": "object", "required": ["url"], "properties": { "url": { "type": "string" } } },
            },
        },
    });
    for (arguments, expected) in [
        (json!({}), "`text` is missing; add it"),
        (json!({ "text": "" }), "`text` is empty; fill it in or leave it out"),
        (json!({ "text": 5 }), "`text` must be a string"),
        (json!({ "text": "Привіт" }), "`text` has 6 characters; at most 3 are allowed"),
        (json!({ "text": "a", "lifetime": 3600.5 }), "`lifetime` must be a whole number from 60 to 90"),
        (json!({ "text": "a", "repeat": "yes" }), "`repeat` must be `true` or `false`, without quotation marks"),
        (json!({ "text": "a", "kind": "c" }), "`kind` must be `a` or `b`"),
        (json!({ "text": "a", "cards": [{ "url": "" }] }), "`cards` has 1 item; 2 to 3 are allowed"),
        (json!({ "text": "a", "cards": [{ "url": "" }, {}] }), "`cards[1].url` is missing; add it"),
        (json!({ "text": "a", "lifetme": 60 }), "this tool has no argument `lifetme`; did you mean `lifetime`?"),
        (json!({ "text": "a", "repaet": true }), "this tool has no argument `repaet`; remove it"),
        (json!({ "text": "a", "hook": "http://stranger.example" }), "this tool has no argument `hook`; remove it"),
        (json!({ "text": "a", "cards": "x" }), "`cards` must be a list"),
    ] {
        let Value::Object(arguments) = arguments else { panic!("no object") };
        assert_eq!(find_problems(&schema, &arguments), [expected]);
    }
}
