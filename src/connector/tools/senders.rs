//! `senders` (contract 4.3 `sender`).

use serde_json::{Value, json};

use super::{empty_schema, object_schema, text_schema};
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::gateway::{AskSenders, SenderName};

pub(super) const TOOL: McpTool = McpTool {
    name: "senders",
    title: "Sender names",
    description: "Lists the sender names of the messaging account and the state of each. Messages can be sent only \
                  under a sender name that the gateway has verified. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: empty_schema,
    output: || {
        let item = object_schema(
            json!({ "name": text_schema("The sender name."), "status": text_schema("The state of the sender name, as the gateway names it.") }),
            &["name", "status"],
        );
        object_schema(
            json!({ "items": { "type": "array", "items": item }, "count": { "type": "integer", "description": "The number of sender names." } }),
            &["items", "count"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let item = |SenderName { name, status }: &SenderName| json!({ "name": name, "status": status });
            let items: Vec<Value> = caller.ask_gateway(&AskSenders).await?.iter().map(item).collect();
            Ok(json!({ "count": items.len(), "items": items }))
        })
    },
};
