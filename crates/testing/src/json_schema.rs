//! JSON Schema validation with a library that the program itself does not use.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

/// A compiled JSON Schema of draft 2020-12.
pub struct JsonSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl JsonSchema {
    /// Compiles a schema.
    ///
    /// # Panics
    /// If `schema` is not a valid JSON Schema.
    pub fn new(schema: &Value) -> Self {
        const NAME: &str = "schema.json";
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource(NAME, schema.clone()).unwrap();
        let index = compiler.compile(NAME, &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// Whether a value conforms to the schema.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.find_violation(value).is_none()
    }

    /// Describes how a value violates the schema; `None` if the value conforms.
    pub fn find_violation(&self, value: &Value) -> Option<String> {
        self.schemas.validate(value, self.index).err().map(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violation_names_the_field_and_its_limit() {
        let schema = JsonSchema::new(&json!({
            "type": "object",
            "properties": { "count": { "type": "integer", "maximum": 3 } },
            "additionalProperties": false,
        }));
        assert!(schema.is_valid(&json!({ "count": 3 })));
        let violation = schema.find_violation(&json!({ "count": 4 })).expect("too many");
        assert!(violation.contains("/count") && violation.contains('3'), "{violation}");
        assert!(!schema.is_valid(&json!({ "stranger": 1 })));
    }
}
