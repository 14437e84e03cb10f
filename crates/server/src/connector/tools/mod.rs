//! Tools for the account and for sending, the schemas that they share, and their entries in `tools/list`.

mod account;
#[cfg(test)]
mod preview_tests;
mod send;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::arguments::{LARGEST_WHOLE, ToolArguments, read_phone};
use super::draft::{CallPreview, ChannelArguments, MessageDraft, argument_name};
use super::error::ToolError;
use super::methods::Caller;
use super::{arguments, draft};
use campaign_core::domain::{Channel, GatewayMessageId};

/// The tools that read, in the order in which they are listed.
pub(super) static READ_TOOLS: [McpTool; 6] = [
    account::BALANCE,
    account::SENDERS,
    account::MESSAGE_STATUS,
    account::SMS_TEMPLATES,
    account::VIBER_TEMPLATES,
    account::LOOKUP_NUMBER,
];

/// The tools that send messages or create templates. They are listed after the reading tools if the operator enabled
/// sending.
pub(super) static SEND_TOOLS: [McpTool; 5] =
    [send::SEND_SMS, send::SEND_VIBER, send::SEND_RCS, send::SEND_CHAIN, account::CREATE_SMS_TEMPLATE];

/// The arguments of a sending tool for a channel, renamed to the channel's keys.
fn channel_arguments(channel: Channel, arguments: &Map<String, Value>) -> ChannelArguments {
    let keys = channel.facts().fields.iter().map(|field| field.key);
    keys.filter_map(|key| Some((key.to_owned(), arguments.get(argument_name(key))?.clone()))).collect()
}

/// Previews a message before it is confirmed.
fn preview_draft(draft: &MessageDraft, arguments: &Map<String, Value>) -> CallPreview {
    let effect = draft.preview(arguments.get("phone"), arguments.get("id"));
    let number = arguments.get("phone").and_then(|phone| read_phone(phone).ok());
    let recipient = number.map(|number| number.phone);
    match draft.to_content() {
        Ok(content) => {
            let (problems, warnings) = (draft::find_errors(&content), draft::find_warnings(&content, number));
            CallPreview { effect, problems, warnings, recipient, content: Some(content) }
        }
        Err(problems) => CallPreview { effect, problems, recipient, ..CallPreview::default() },
    }
}

/// The schema of an object with only these properties, some of which are required.
pub(super) fn object_schema(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// The schema of a tool without arguments.
pub(super) fn empty_schema() -> Value {
    object_schema(json!({}), &[])
}

/// The schema of a string.
pub(super) fn text_schema(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// The schema of a phone number.
fn phone_schema() -> Value {
    json!({
        "description": "A single phone number with its country code: digits, with or without a plus sign.",
        "anyOf": [
            { "type": "string", "pattern": "^\\+?[0-9]{8,15}$" },
            { "type": "integer", "minimum": 10_000_000, "maximum": 999_999_999_999_999_u64 },
        ],
    })
}

/// The schema of campaign's own message identifier, as opposed to the gateway's identifier.
fn message_id_schema(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "minimum": 1, "maximum": LARGEST_WHOLE })
}

/// The schema of an identifier in the gateway's format: a text or a number (contract 2.2).
fn gateway_id_schema(description: &str) -> Value {
    json!({ "description": description, "anyOf": [{ "type": "string" }, { "type": "integer" }] })
}

/// An identifier in the gateway's format.
fn gateway_id_json(id: GatewayMessageId) -> Value {
    match id {
        GatewayMessageId::Number(number) => json!(number),
        GatewayMessageId::Text(text) => Value::String(text),
    }
}

/// An object with only the members that have a value.
pub(super) fn object_without_nulls<'n>(members: impl IntoIterator<Item = (&'n str, Option<Value>)>) -> Value {
    members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The maximum number of items in one answer.
const MAX_ITEMS: u64 = 200;

/// The schema of the arguments of a tool that lists items.
fn page_arguments_schema() -> Value {
    object_schema(
        json!({
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_ITEMS, "default": MAX_ITEMS, "description": "The maximum number of items to return." },
            "offset": {
                "type": "integer", "minimum": 0, "maximum": LARGEST_WHOLE, "default": 0,
                "description": "The number of items to skip from the start.",
            },
        }),
        &[],
    )
}

/// The result schema for a tool that lists items with this schema.
fn page_schema(item: &Value) -> Value {
    object_schema(
        json!({
            "items": { "type": "array", "items": item },
            "total": { "type": "integer", "description": "The total number of items." },
            "truncated": { "type": "boolean", "description": "Whether there are more items; if so, call again with \
                                                              a larger `offset`." },
        }),
        &["items", "total", "truncated"],
    )
}

/// Returns the page of a list that the arguments request.
fn page_of_items(items: Vec<Value>, arguments: &ToolArguments) -> Value {
    let limit = arguments.number("limit").unwrap_or(MAX_ITEMS);
    let offset = arguments.number("offset").unwrap_or(0);
    let total = items.len() as u64;
    let end = total.min(offset.saturating_add(limit));
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let items: Vec<Value> = items.into_iter().take(index(end)).skip(index(offset)).collect();
    json!({ "items": items, "total": total, "truncated": end < total })
}

/// A tool of the connector.
pub(super) struct McpTool {
    /// The tool's name in calls.
    pub(super) name: &'static str,
    /// The tool's name for people.
    pub(super) title: &'static str,
    /// The description for the model.
    pub(super) description: &'static str,
    /// The effects of the tool.
    pub(super) annotations: ToolAnnotations,
    /// The JSON Schema of the tool's arguments.
    pub(super) input: fn() -> Value,
    /// The JSON Schema of the tool's result.
    pub(super) output: fn() -> Value,
    /// Previews an unconfirmed call; `None` for a tool without confirmation.
    pub(super) preview: Option<ShowPreview>,
    /// Executes a call.
    pub(super) call: CallTool,
}

/// The effects of a tool. Clients use them to decide whether to ask the user before a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolAnnotations {
    /// Whether the tool changes nothing.
    pub(super) read_only: bool,
    /// Whether the tool makes changes that cannot be undone.
    pub(super) destructive: bool,
    /// Whether a second call changes nothing further.
    pub(super) idempotent: bool,
    /// Whether the tool communicates with other machines.
    pub(super) open_world: bool,
}

impl ToolAnnotations {
    /// A tool that reads from the gateway.
    pub(super) const READING: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: true };

    /// A tool that sends a message.
    pub(super) const SENDING: Self = Self { read_only: false, destructive: true, idempotent: false, open_world: true };
    /// A tool that adds something to the account.
    pub(super) const ADDING: Self = Self { destructive: false, ..Self::SENDING };

    /// A tool that costs money with every call.
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

/// Previews a call with these arguments before its confirmation.
pub(super) type ShowPreview = fn(&Map<String, Value>) -> CallPreview;

/// Executes a call of a tool.
pub(super) type CallTool = for<'a> fn(&'a Caller<'a>, ToolArguments) -> BoxFuture<'a, Result<Value, ToolError>>;

/// A tool with its input schema and its entry in `tools/list`.
pub(super) struct ReadyTool {
    pub(super) tool: &'static McpTool,
    input: Value,
    /// The entry in `tools/list`.
    pub(super) listed: Value,
}

impl ReadyTool {
    /// Prepares a tool: builds its schemas and its entry for `tools/list`.
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

    /// Normalizes arguments for the tool: null members are removed, and whole numbers become integers.
    pub(super) fn normalize_arguments(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        arguments::normalize_members(&self.input, &mut arguments);
        arguments
    }

    /// The problems of normalized arguments, each with the argument's name.
    pub(super) fn find_problems(&self, arguments: &Map<String, Value>) -> Vec<String> {
        arguments::find_problems(&self.input, arguments)
    }
}
