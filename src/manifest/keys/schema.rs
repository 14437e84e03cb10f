//! JSON Schemas of the files that people write, for editors; made of the tables that the files are checked by.

use serde_json::{Map, Value, json};

use super::campaign::TEXT_FILE;
use super::list_columns::MOST_PHONE_COLUMNS;
use super::{CAMPAIGN, CHANNELS, Key, Mark, PROFILE, Shape};

/// The JSON Schema (draft 2020-12) of a campaign file.
#[must_use]
pub fn schema() -> Value {
    schema_of("A campaign file", CAMPAIGN)
}

/// The JSON Schema (draft 2020-12) of gateways.yaml: profiles by their names.
#[must_use]
pub fn gateways_schema() -> Value {
    titled(
        "Gateway profiles",
        object(json!({
            "type": "object",
            "propertyNames": { "pattern": "^[a-z0-9-]{1,64}$" },
            "additionalProperties": map(PROFILE),
        })),
    )
}

/// The JSON Schema (draft 2020-12) of a file with these keys.
pub(crate) fn schema_of(title: &str, keys: &[Key]) -> Value {
    titled(title, map(keys))
}

fn titled(title: &str, mut schema: Map<String, Value>) -> Value {
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".into(), json!(title));
    Value::Object(schema)
}

fn map(keys: &[Key]) -> Map<String, Value> {
    let properties: Map<String, Value> = keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = keys.iter().filter(|key| key.mark == Mark::Required).map(|key| key.name).collect();
    let mut map = object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }));
    let choices = keys.iter().filter(|key| key.mark == Mark::Choice);
    let choices: Vec<Value> = choices.map(|key| json!({ "required": [key.name] })).collect();
    if !choices.is_empty() {
        map.insert("oneOf".into(), json!(choices));
    }
    map
}

fn property(key: &Key) -> Value {
    let mut schema = shape(key.shape);
    schema.insert("description".into(), json!(key.doc));
    if let Some(default) = key.default {
        let number = matches!(key.shape, Shape::Integer { .. });
        let value =
            if number { default.parse().map_or(json!(default), |number: u32| json!(number)) } else { json!(default) };
        schema.insert("default".into(), value);
    }
    Value::Object(schema)
}

fn shape(shape: Shape) -> Map<String, Value> {
    match shape {
        // A key with nothing behind it is a map without keys.
        Shape::Map(keys) if needs_nothing(keys) => {
            let mut map = map(keys);
            map.insert("type".into(), json!(["object", "null"]));
            map
        }
        Shape::Map(keys) => map(keys),
        Shape::Line | Shape::Template => object(json!({ "type": ["string", "number", "boolean"] })),
        Shape::Message => object(json!({ "anyOf": [self::shape(Shape::Template), map(TEXT_FILE)] })),
        Shape::Integer { least, most } => object(json!({ "type": "integer", "minimum": least, "maximum": most })),
        Shape::Bool => object(json!({ "type": "boolean" })),
        Shape::Seconds { least, most } => object(json!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]+[smhd]?$",
            "minimum": least,
            "maximum": most,
        })),
        Shape::Rate => object(json!({
            "type": "string",
            "pattern": "^(unlimited|[0-9]+ ?/ ?(s|sec|second|m|min|minute|h|hour))$",
        })),
        Shape::Cap => object(json!({ "type": "string", "pattern": "^[0-9]+ ?/ ?([0-9]+[smhd]|d|day)$" })),
        Shape::Share => object(json!({ "type": "string", "pattern": "^[0-9]+(\\.[0-9]{1,2})? ?%$" })),
        Shape::Amount => {
            object(json!({ "type": ["string", "number"], "minimum": 0, "pattern": "^[0-9]+(\\.[0-9]+)?$" }))
        }
        Shape::OneOf(words) => object(json!({ "enum": words })),
        Shape::Texts => object(json!({
            "type": ["object", "null"],
            "additionalProperties": self::shape(Shape::Template),
        })),
        Shape::Columns => object(json!({
            "type": ["object", "null"],
            "properties": { "phone": { "anyOf": [
                self::shape(Shape::Template),
                { "type": "array", "items": self::shape(Shape::Template), "minItems": 1, "maxItems": MOST_PHONE_COLUMNS },
            ] } },
            "additionalProperties": self::shape(Shape::Template),
        })),
        Shape::Headers => object(json!({
            "type": ["object", "null"],
            "additionalProperties": { "anyOf": [self::shape(Shape::Template), self::shape(Shape::Secret)] },
        })),
        Shape::Words(words) => {
            let one = self::shape(Shape::OneOf(words));
            object(json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] }))
        }
        Shape::Each(of) => object(json!({ "type": ["object", "null"], "additionalProperties": self::shape(of.shape) })),
        Shape::Or { alone, keys } => object(json!({ "anyOf": [self::shape(alone.shape), map(keys)] })),
        Shape::Counts => {
            let one = self::shape(Shape::Integer { least: 1, most: u32::MAX });
            object(json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] }))
        }
        Shape::Properties => object(json!({ "type": ["object", "null"] })),
        Shape::List { of, least, most } => {
            object(json!({ "type": "array", "items": property(of), "minItems": least, "maxItems": most }))
        }
        Shape::Channels => channels(),
        Shape::Secrets => {
            let one = self::shape(Shape::Secret);
            object(json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] }))
        }
        Shape::Secret => object(json!({
            "type": "object",
            "properties": { "env": { "type": "string" }, "file": { "type": "string" } },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false,
        })),
    }
}

fn needs_nothing(keys: &[Key]) -> bool {
    keys.iter().all(|key| !matches!(key.mark, Mark::Required | Mark::Choice))
}

/// A list whose items are maps of one channel; a channel that needs no key may stand as its name.
fn channels() -> Map<String, Value> {
    let mut item = map(CHANNELS);
    item.insert("minProperties".into(), json!(1));
    item.insert("maxProperties".into(), json!(1));
    let may_be_bare = |key: &&Key| match key.shape {
        Shape::Map(keys) => needs_nothing(keys),
        _ => true,
    };
    let bare: Vec<&str> = CHANNELS.iter().filter(may_be_bare).map(|key| key.name).collect();
    object(json!({ "type": "array", "minItems": 1, "items": { "anyOf": [item, { "enum": bare }] } }))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_in_the_schema_with_its_meaning() {
        let schema = schema();
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
