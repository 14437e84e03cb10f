//! JSON Schemas that let editors check the files that people write. They are generated from the same tables that
//! `check` uses.

use serde_json::{Map, Value, json};

use super::structure::MAX_PHONE_COLUMNS;
use super::tables::TEXT_FILE;
use super::{CAMPAIGN, CHANNELS, KeyPresence, KeySpec, OTHER_COUNTRIES, PROFILE, ValueShape};

/// The JSON Schema (draft 2020-12) of a campaign file.
pub fn campaign_schema() -> Value {
    build_schema("A campaign file", CAMPAIGN)
}

/// The JSON Schema (draft 2020-12) of gateways.yaml: profiles by their names.
pub fn gateways_schema() -> Value {
    add_title(
        "Gateway profiles",
        into_object(json!({
            "type": "object",
            "propertyNames": { "pattern": "^[a-z0-9-]{1,64}$" },
            "additionalProperties": map_schema(PROFILE),
        })),
    )
}

/// The JSON Schema (draft 2020-12) of a file with these keys.
pub fn build_schema(title: &str, keys: &[KeySpec]) -> Value {
    add_title(title, map_schema(keys))
}

fn add_title(title: &str, mut schema: Map<String, Value>) -> Value {
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!(title));
    Value::Object(schema)
}

fn map_schema(keys: &[KeySpec]) -> Map<String, Value> {
    let properties: Map<String, Value> = keys.iter().map(|key| (key.name.to_owned(), property_schema(key))).collect();
    let required: Vec<&str> =
        keys.iter().filter(|key| key.presence == KeyPresence::Required).map(|key| key.name).collect();
    let mut map = into_object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }));
    let choices = keys.iter().filter(|key| key.presence == KeyPresence::Choice);
    let choices: Vec<Value> = choices.map(|key| json!({ "required": [key.name] })).collect();
    if !choices.is_empty() {
        map.insert("oneOf".into(), json!(choices));
    }
    map
}

fn property_schema(key: &KeySpec) -> Value {
    let mut schema = shape_schema(key.shape);
    schema.insert("description".into(), json!(key.doc));
    if let Some(default) = key.default {
        let is_number = matches!(key.shape, ValueShape::Integer { .. });
        let value = if is_number {
            default.parse().map_or(json!(default), |number: u32| json!(number))
        } else {
            json!(default)
        };
        schema.insert("default".into(), value);
    }
    Value::Object(schema)
}

fn shape_schema(shape: ValueShape) -> Map<String, Value> {
    match shape {
        // A key without a value is a map without keys.
        ValueShape::Map(keys) if has_only_optional_keys(keys) => {
            let mut map = map_schema(keys);
            map.insert("type".into(), json!(["object", "null"]));
            map
        }
        ValueShape::Map(keys) => map_schema(keys),
        ValueShape::Line | ValueShape::Template => into_object(json!({ "type": ["string", "number", "boolean"] })),
        ValueShape::Message => {
            into_object(json!({ "anyOf": [shape_schema(ValueShape::Template), map_schema(TEXT_FILE)] }))
        }
        ValueShape::Integer { least, most } => {
            into_object(json!({ "type": "integer", "minimum": least, "maximum": most }))
        }
        ValueShape::Bool => into_object(json!({ "type": "boolean" })),
        ValueShape::Seconds { least, most } => into_object(json!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]+[smhd]?$",
            "minimum": least,
            "maximum": most,
        })),
        ValueShape::Rate => into_object(json!({
            "type": "string",
            "pattern": "^(unlimited|[0-9]+ ?/ ?(s|sec|second|m|min|minute|h|hour))$",
        })),
        ValueShape::Cap => into_object(json!({ "type": "string", "pattern": "^[0-9]+ ?/ ?([0-9]+[smhd]|d|day)$" })),
        ValueShape::Share => into_object(json!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]{1,2})? ?%$" })),
        ValueShape::Amount => {
            into_object(json!({ "type": ["string", "number"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]+)?$" }))
        }
        ValueShape::Price => {
            let amount = shape_schema(ValueShape::Amount);
            into_object(json!({ "anyOf": [amount, {
                "type": "object",
                "propertyNames": { "pattern": "^([A-Za-z]{2}|else)$" },
                "additionalProperties": amount,
                "required": [OTHER_COUNTRIES],
            }] }))
        }
        ValueShape::OneOf(words) => into_object(json!({ "enum": words })),
        ValueShape::Texts => into_object(json!({
            "type": ["object", "null"],
            "additionalProperties": shape_schema(ValueShape::Template),
        })),
        ValueShape::Columns => into_object(json!({
            "type": ["object", "null"],
            "properties": { "phone": { "anyOf": [
                shape_schema(ValueShape::Template),
                {
                    "type": "array",
                    "items": shape_schema(ValueShape::Template),
                    "minItems": 1,
                    "maxItems": MAX_PHONE_COLUMNS,
                },
            ] } },
            "additionalProperties": shape_schema(ValueShape::Template),
        })),
        ValueShape::Headers => into_object(json!({
            "type": ["object", "null"],
            "additionalProperties": { "anyOf": [shape_schema(ValueShape::Template), shape_schema(ValueShape::Secret)] },
        })),
        ValueShape::Words(words) => {
            let item = shape_schema(ValueShape::OneOf(words));
            into_object(json!({ "anyOf": [item, { "type": "array", "items": item, "minItems": 1 }] }))
        }
        ValueShape::Each(item) => {
            into_object(json!({ "type": ["object", "null"], "additionalProperties": shape_schema(item.shape) }))
        }
        ValueShape::Or { alone, keys } => {
            into_object(json!({ "anyOf": [shape_schema(alone.shape), map_schema(keys)] }))
        }
        ValueShape::Counts => {
            let item = shape_schema(ValueShape::Integer { least: 1, most: u32::MAX });
            into_object(json!({ "anyOf": [item, { "type": "array", "items": item, "minItems": 1 }] }))
        }
        ValueShape::Properties => into_object(json!({ "type": ["object", "null"] })),
        ValueShape::List { item, least, most } => {
            into_object(json!({ "type": "array", "items": property_schema(item), "minItems": least, "maxItems": most }))
        }
        ValueShape::Channels => channels_schema(),
        ValueShape::Secrets => {
            let item = shape_schema(ValueShape::Secret);
            into_object(json!({ "anyOf": [item, { "type": "array", "items": item, "minItems": 1 }] }))
        }
        ValueShape::Secret => into_object(json!({
            "type": "object",
            "properties": { "env": { "type": "string" }, "file": { "type": "string" } },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false,
        })),
    }
}

fn has_only_optional_keys(keys: &[KeySpec]) -> bool {
    keys.iter().all(|key| !matches!(key.presence, KeyPresence::Required | KeyPresence::Choice))
}

/// The schema of the list of channels. Each item is a map with one channel, or only the name of a channel without
/// required keys.
fn channels_schema() -> Map<String, Value> {
    let mut item = map_schema(CHANNELS);
    item.insert("minProperties".into(), json!(1));
    item.insert("maxProperties".into(), json!(1));
    let can_be_bare = |key: &&KeySpec| match key.shape {
        ValueShape::Map(keys) => has_only_optional_keys(keys),
        _ => true,
    };
    let bare: Vec<&str> = CHANNELS.iter().filter(can_be_bare).map(|key| key.name).collect();
    into_object(json!({ "type": "array", "minItems": 1, "items": { "anyOf": [item, { "enum": bare }] } }))
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_documents_every_key() {
        let schema = campaign_schema();
        for key in CAMPAIGN {
            let property = &schema["properties"][key.name];
            assert!(property["description"].as_str().is_some_and(|doc| doc.len() > 10), "{}", key.name);
        }
        let channel = &schema["properties"]["channels"]["items"]["anyOf"][0]["properties"]["sms"];
        assert_eq!(channel["required"], json!(["signature", "message"]));
        assert_eq!(channel["properties"]["lifetime"]["type"], json!(["string", "integer"]));
        assert_eq!(schema["properties"]["delivery"]["properties"]["batch"]["default"], json!(50));
        assert_eq!(schema["required"], json!(["recipients", "channels"]));
    }
}
