//! `balance` (contract 4.3 `balance`, 4.4).

use serde_json::json;

use super::{nothing, object, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::AskBalance;

pub(super) const TOOL: Tool = Tool {
    name: "balance",
    title: "Account balance",
    description: "Returns the balance of the messaging account and its currency. Costs nothing and sends nothing.",
    annotations: Annotations::READING,
    input: nothing,
    output: || {
        object(
            json!({
                "amount": { "type": "number", "description": "The balance." },
                "currency": text("The currency code; empty if the gateway does not return one."),
            }),
            &["amount", "currency"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let balance = caller.ask(&AskBalance).await?;
            Ok(json!({ "amount": balance.amount, "currency": balance.currency }))
        })
    },
};
