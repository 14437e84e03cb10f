//! `senders` (contract 4.3 `sender`).

use serde_json::{Value, json};

use super::{nothing, object, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::{AskSenders, Sender};

pub(super) const TOOL: Tool = Tool {
    name: "senders",
    title: "Sender names",
    description: "Lists the sender names of the messaging account and the state of each. Messages can be sent only \
                  under a sender name that the gateway has verified. Costs nothing and sends nothing.",
    annotations: Annotations::READING,
    input: nothing,
    output: || {
        let item = object(
            json!({ "name": text("The sender name."), "status": text("The state of the sender name, as the gateway names it.") }),
            &["name", "status"],
        );
        object(
            json!({ "items": { "type": "array", "items": item }, "count": { "type": "integer", "description": "The number of sender names." } }),
            &["items", "count"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let item = |Sender { name, status }: &Sender| json!({ "name": name, "status": status });
            let items: Vec<Value> = caller.ask(&AskSenders).await?.iter().map(item).collect();
            Ok(json!({ "count": items.len(), "items": items }))
        })
    },
};
