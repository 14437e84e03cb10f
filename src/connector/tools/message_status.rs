//! `message_status` (contract 4.3 `status`, 2.5).

use serde_json::{Value, json};

use super::{gateway_id_json, gateway_id_schema, message_id_schema, object_of_known, object_schema, text_schema};
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::gateway::AskStatus;

pub(super) const TOOL: McpTool = McpTool {
    name: "message_status",
    title: "Status of a message",
    description: "Returns the delivery status of one message as the gateway names it (such as QUEUED, DELIVERED, \
                  READ, EXPIRED), and when it last changed. `id` is the identifier returned by a sending tool. Costs \
                  nothing and sends nothing.",
    annotations: ToolAnnotations::READING,
    input: || object_schema(json!({ "id": message_id_schema("The `id` returned by a sending tool.") }), &["id"]),
    output: || {
        object_schema(
            json!({
                "id": gateway_id_schema("The identifier of the message, as the gateway returns it."),
                "msg_id": gateway_id_schema("The gateway's identifier of the message."),
                "type": text_schema("The channel."),
                "status": text_schema("The delivery status, as the gateway names it."),
                "updated": text_schema("When the status last changed, as the gateway returns it."),
            }),
            &["id", "status"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let id = arguments.parse_id()?;
            let told = caller.ask_gateway(&AskStatus::Id(id)).await?;
            Ok(object_of_known([
                ("id", Some(told.id.map_or_else(|| json!(id.get()), gateway_id_json))),
                ("msg_id", told.msg_id.map(gateway_id_json)),
                ("type", told.channel.map(Value::String)),
                ("status", Some(Value::String(told.status.to_string()))),
                ("updated", told.updated.map(Value::String)),
            ]))
        })
    },
};
