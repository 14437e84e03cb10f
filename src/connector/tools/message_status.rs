//! `message_status` (contract 4.3 `status`, 2.5).

use serde_json::{Value, json};

use super::{answer, answered, known, message_id, object, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::AskStatus;

pub(super) const TOOL: Tool = Tool {
    name: "message_status",
    title: "Status of a message",
    description: "Returns the delivery status of one message as the gateway names it (such as QUEUED, DELIVERED, \
                  READ, EXPIRED), and when it last changed. `id` is the identifier returned by a sending tool. Costs \
                  nothing and sends nothing.",
    annotations: Annotations::READING,
    input: || object(json!({ "id": message_id("The `id` returned by a sending tool.") }), &["id"]),
    output: || {
        object(
            json!({
                "id": answered("The identifier of the message, as the gateway returns it."),
                "msg_id": answered("The gateway's identifier of the message."),
                "type": text("The channel."),
                "status": text("The delivery status, as the gateway names it."),
                "updated": text("When the status last changed, as the gateway returns it."),
            }),
            &["id", "status"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let id = arguments.id()?;
            let told = caller.ask(&AskStatus::Id(id)).await?;
            Ok(known([
                ("id", Some(told.id.map_or_else(|| json!(id.get()), answer))),
                ("msg_id", told.msg_id.map(answer)),
                ("type", told.channel.map(Value::String)),
                ("status", Some(Value::String(told.status.to_string()))),
                ("updated", told.updated.map(Value::String)),
            ]))
        })
    },
};
