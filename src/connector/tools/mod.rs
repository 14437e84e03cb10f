//! The tools, a file for each; the order is that of `tools/list`.

mod balance;
mod create_sms_template;
mod lookup_number;
mod message_status;
#[cfg(test)]
mod preview_tests;
mod saying;
mod send_chain;
mod send_rcs;
mod send_sms;
mod send_viber;
mod senders;
mod sms_templates;
mod viber_templates;

use serde_json::{Map, Value, json};

use super::arguments::{ToolArguments, read_phone};
use super::confirmation::CallPreview;
use super::draft::{ChannelArguments, MessageDraft, argument_name};
use super::message_check;
use super::schema::LARGEST_WHOLE;
use super::tool::McpTool;
use crate::domain::{Channel, GatewayMessageId};

/// The tools that read, in the order in which they are listed.
pub(super) static READ_TOOLS: [McpTool; 6] = [
    balance::TOOL,
    senders::TOOL,
    message_status::TOOL,
    sms_templates::TOOL,
    viber_templates::TOOL,
    lookup_number::TOOL,
];

/// The tools that act, listed behind those where the operator switched sending on.
pub(super) static SEND_TOOLS: [McpTool; 5] =
    [send_sms::TOOL, send_viber::TOOL, send_rcs::TOOL, send_chain::TOOL, create_sms_template::TOOL];

/// What the arguments of a sending tool say on its channel, by the keys of the channel.
fn channel_arguments(channel: Channel, arguments: &Map<String, Value>) -> ChannelArguments {
    let keys = channel.facts().fields.iter().map(|field| field.key);
    keys.filter_map(|key| Some((key.to_owned(), arguments.get(argument_name(key))?.clone()))).collect()
}

/// What is shown of a message before it is confirmed.
fn preview_draft(draft: &MessageDraft, arguments: &Map<String, Value>) -> CallPreview {
    let shown = draft.preview(arguments.get("phone"), arguments.get("id"));
    let number = arguments.get("phone").and_then(|phone| read_phone(phone).ok());
    let recipient = number.map(|number| number.phone);
    match draft.to_content() {
        Ok(content) => {
            let (problems, warnings) =
                (message_check::find_errors(&content), message_check::find_warnings(&content, number));
            CallPreview { shown, problems, warnings, recipient, content: Some(content) }
        }
        Err(problems) => CallPreview { shown, problems, recipient, ..CallPreview::default() },
    }
}

/// The schema of an object with these properties alone, of which these may not be missing.
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

/// The schema of a text.
pub(super) fn text_schema(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// The schema of a phone number.
fn phone_schema() -> Value {
    json!({
        "description": "One phone number with its country code: digits, with or without a plus sign.",
        "anyOf": [
            { "type": "string", "pattern": "^\\+?[0-9]{8,15}$" },
            { "type": "integer", "minimum": 10_000_000, "maximum": 999_999_999_999_999_u64 },
        ],
    })
}

/// The schema of our identifier of a message.
fn message_id_schema(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "minimum": 1, "maximum": LARGEST_WHOLE })
}

/// The schema of an identifier as the platform writes it: a text or a number (contract 2.2).
fn gateway_id_schema(description: &str) -> Value {
    json!({ "description": description, "anyOf": [{ "type": "string" }, { "type": "integer" }] })
}

/// An identifier as the platform writes it.
fn gateway_id_json(id: GatewayMessageId) -> Value {
    match id {
        GatewayMessageId::Number(number) => json!(number),
        GatewayMessageId::Text(text) => Value::String(text),
    }
}

/// An object of those members that are known.
pub(super) fn object_of_known<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    let known = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(known.collect::<Map<String, Value>>())
}

/// The most templates that one answer has.
const MAX_ITEMS: u64 = 200;

/// The arguments of a tool that lists.
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

/// The result of a tool that lists items of this schema.
fn page_schema(item: &Value) -> Value {
    object_schema(
        json!({
            "items": { "type": "array", "items": item },
            "total": { "type": "integer", "description": "The total number of items." },
            "truncated": { "type": "boolean", "description": "Whether there are more items; call again with a larger \
                                                              `offset`." },
        }),
        &["items", "total", "truncated"],
    )
}

/// The part of a list that was asked for.
fn page_of_items(items: Vec<Value>, arguments: &ToolArguments) -> Value {
    let limit = arguments.number("limit").unwrap_or(MAX_ITEMS);
    let offset = arguments.number("offset").unwrap_or(0);
    let total = items.len() as u64;
    let end = total.min(offset.saturating_add(limit));
    let part = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let items: Vec<Value> = items.into_iter().take(part(end)).skip(part(offset)).collect();
    json!({ "items": items, "total": total, "truncated": end < total })
}
