//! `lookup_number` (contract 4.3 `hlr`).

use serde_json::{Value, json};

use super::{object, phone, text};
use crate::connector::error::ToolError;
use crate::connector::tool::{Annotations, Tool};
use crate::domain::Outcome;

pub(super) const TOOL: Tool = Tool {
    name: "lookup_number",
    title: "Look a number up",
    description: "Whether a phone number exists, and which network it is in. The subscriber notices nothing. EACH LOOKUP COSTS \
                  MONEY, ALSO OF THE SAME NUMBER: look up only numbers that the person you work for asked about. The \
                  operator limits lookups per hour.",
    annotations: Annotations::CHARGING,
    input: || object(json!({ "phone": phone() }), &["phone"]),
    output: || {
        object(
            json!({
                "phone": text("The number that was looked up, digits only."),
                "result": { "type": "object", "description": "What the platform knows of it; its members are the platform's own." },
            }),
            &["phone", "result"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let phone = arguments.phone()?;
            match caller.look_up(phone).await?.outcome {
                Some(Outcome::Accepted { answer, .. }) => {
                    let told = answer.as_deref().and_then(|answer| serde_json::from_str::<Value>(answer).ok());
                    let result = match told {
                        Some(Value::Object(members)) => Value::Object(members),
                        Some(other) if !other.is_null() => json!({ "value": other }),
                        _ => json!({}),
                    };
                    Ok(json!({ "phone": phone.to_string(), "result": result }))
                }
                Some(Outcome::Rejected { error, .. }) => Err(ToolError::new("platform_error", error)),
                Some(Outcome::Queued { .. } | Outcome::NotSent { .. } | Outcome::InDoubt { .. }) | None => {
                    Err(ToolError::new("unknown_outcome", "the platform did not say what came of the lookup")
                        .how_to("it may have been charged; do not repeat it unless somebody wants that"))
                }
            }
        })
    },
};
