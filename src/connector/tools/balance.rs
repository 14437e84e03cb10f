//! `balance` (contract 4.3 `balance`, 4.4).

use serde_json::json;

use super::{empty_schema, object_schema, text_schema};
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::gateway::AskBalance;

pub(super) const TOOL: McpTool = McpTool {
    name: "balance",
    title: "Account balance",
    description: "Returns the balance of the messaging account and its currency. Costs nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: empty_schema,
    output: || {
        object_schema(
            json!({
                "amount": { "type": "number", "description": "The balance." },
                "currency": text_schema("The currency code; empty if the gateway does not return one."),
            }),
            &["amount", "currency"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let balance = caller.ask_gateway(&AskBalance).await?;
            Ok(json!({ "amount": balance.amount, "currency": balance.currency }))
        })
    },
};
