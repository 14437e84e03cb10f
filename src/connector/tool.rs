//! A tool: what a model is told of it, what it takes and gives, what it does.

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::caller::Caller;
use super::error::ToolError;
use super::tools::TOOLS;

/// A tool of the connector.
pub(super) struct Tool {
    /// Its name in calls.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// What it does, written for a model that has to choose.
    pub(super) description: &'static str,
    /// The JSON Schema of its arguments.
    pub(super) input: fn() -> Value,
    /// The JSON Schema of its result.
    pub(super) output: fn() -> Value,
    /// What it does.
    pub(super) call: Call,
}

/// The work of a tool that reads: it runs at once, and asking twice changes nothing.
pub(super) type Call = for<'a> fn(&'a Caller<'a>, Arguments) -> BoxFuture<'a, Result<Value, ToolError>>;

/// A tool with its schemas ready to judge by.
pub(super) struct ReadyTool {
    pub(super) tool: &'static Tool,
    input: Validator,
    output: Validator,
    /// How `tools/list` shows it.
    pub(super) listed: Value,
}

/// Every tool, in the order in which they are listed.
pub(super) static READY: LazyLock<Vec<ReadyTool>> = LazyLock::new(|| TOOLS.iter().map(ReadyTool::of).collect());

impl ReadyTool {
    fn of(tool: &'static Tool) -> Self {
        let compiled = |schema: &Value| jsonschema::validator_for(schema).expect("a schema of ours");
        let (input, output) = ((tool.input)(), (tool.output)());
        let listed = json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": input,
            "outputSchema": output,
            "annotations": {
                "title": tool.title,
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": true,
            },
        });
        Self { tool, input: compiled(&input), output: compiled(&output), listed }
    }

    /// The tool of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        READY.iter().find(|ready| ready.tool.name == name)
    }

    /// What is wrong with arguments, each with its place; nothing if the schema takes them.
    pub(super) fn problems(&self, arguments: &Map<String, Value>) -> Vec<String> {
        let arguments = Value::Object(arguments.clone());
        let told = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string().trim_start_matches('/').replace('/', ".");
            // A value may be a text for somebody, so none is repeated.
            let why = error.masked_with("the value").to_string();
            if place.is_empty() { why } else { format!("`{place}`: {why}") }
        };
        self.input.iter_errors(&arguments).map(told).collect()
    }

    /// Whether a result is one that the schema promises.
    pub(super) fn promises(&self, result: &Value) -> bool {
        self.output.is_valid(result)
    }
}
