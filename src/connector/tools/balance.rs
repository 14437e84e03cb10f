//! `balance` (contract 4.3 `balance`, 4.4).

use serde_json::json;

use super::{nothing, object, text};
use crate::connector::tool::{Annotations, Tool};
use crate::gateway::AskBalance;

pub(super) const TOOL: Tool = Tool {
    name: "balance",
    title: "Account balance",
    description: "How much money is left on the messaging account, and in which currency. Costs nothing and sends nothing.",
    annotations: Annotations::READING,
    input: nothing,
    output: || {
        object(
            json!({
                "amount": { "type": "number", "description": "What is left." },
                "currency": text("The code of the currency; empty where the platform tells none."),
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
