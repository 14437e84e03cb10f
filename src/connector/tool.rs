//! A tool: what a model is told of it, what it takes and gives, what it does.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::caller::Caller;
use super::confirmation::CallPreview;
use super::error::ToolError;
use super::schema;

/// A tool of the connector.
pub(super) struct McpTool {
    /// Its name in calls.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// What it does, written for a model that has to choose.
    pub(super) description: &'static str,
    /// What it does to the world.
    pub(super) annotations: ToolAnnotations,
    /// The JSON Schema of its arguments.
    pub(super) input: fn() -> Value,
    /// The JSON Schema of its result.
    pub(super) output: fn() -> Value,
    /// What is shown of a call before it is confirmed; nothing for a tool that needs no confirmation.
    pub(super) preview: Option<ShowPreview>,
    /// What it does.
    pub(super) call: CallTool,
}

/// What a tool does to the world: by it a client decides whether to ask its user before a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolAnnotations {
    /// It changes nothing.
    pub(super) read_only: bool,
    /// What it changes cannot be taken back.
    pub(super) destructive: bool,
    /// A second call changes nothing more.
    pub(super) idempotent: bool,
    /// It deals with others than this machine.
    pub(super) open_world: bool,
}

impl ToolAnnotations {
    /// Those of a tool that asks the platform.
    pub(super) const READING: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: true };

    /// Those of a tool that sends a message to somebody.
    pub(super) const SENDING: Self = Self { read_only: false, destructive: true, idempotent: false, open_world: true };
    /// Those of a tool that adds something to the account.
    pub(super) const ADDING: Self = Self { destructive: false, ..Self::SENDING };

    /// Those of a tool that spends money on an answer, each time that it is called.
    pub(super) const CHARGING: Self = Self::ADDING;

    fn to_json(self, title: &str) -> Value {
        json!({
            "title": title,
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        })
    }
}

/// What is shown of a call with these arguments before it is confirmed.
pub(super) type ShowPreview = fn(&Map<String, Value>) -> CallPreview;

/// The work of a tool.
pub(super) type CallTool = for<'a> fn(&'a Caller<'a>, ToolArguments) -> BoxFuture<'a, Result<Value, ToolError>>;

/// A tool with its input schema and its entry in `tools/list`.
pub(super) struct ReadyTool {
    pub(super) tool: &'static McpTool,
    input: Value,
    /// How `tools/list` shows it.
    pub(super) listed: Value,
}

impl ReadyTool {
    /// A tool whose schemas were read.
    pub(super) fn new(tool: &'static McpTool) -> Self {
        let (input, output) = ((tool.input)(), (tool.output)());
        let listed = json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": input,
            "outputSchema": output,
            "annotations": tool.annotations.to_json(tool.title),
        });
        Self { tool, input, listed }
    }

    /// The arguments as the tool reads them: null is absent, and whole numbers are integers.
    pub(super) fn normalize_arguments(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        schema::normalize_members(&self.input, &mut arguments);
        arguments
    }

    /// What is wrong with normalized arguments, each with its name; nothing if the schema takes them.
    pub(super) fn find_problems(&self, arguments: &Map<String, Value>) -> Vec<String> {
        schema::find_problems(&self.input, arguments)
    }
}
