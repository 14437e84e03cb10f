//! `lookup_number` (contract 4.3 `hlr`).

use serde_json::{Value, json};

use super::{object_schema, phone_schema, text_schema};
use crate::connector::error::ToolError;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::domain::OperationOutcome;

pub(super) const TOOL: McpTool = McpTool {
    name: "lookup_number",
    title: "Look up a number",
    description: "Returns whether a phone number exists and which network it belongs to. The subscriber does not \
                  notice. EACH LOOKUP COSTS MONEY, EVEN FOR THE SAME NUMBER: look up only numbers that the person you \
                  work for asked about. The operator limits lookups per hour.",
    annotations: ToolAnnotations::CHARGING,
    input: || object_schema(json!({ "phone": phone_schema() }), &["phone"]),
    output: || {
        object_schema(
            json!({
                "phone": text_schema("The phone number, digits only."),
                "result": { "type": "object", "description": "The gateway's data about the number, as the gateway \
                                                              returns it." },
            }),
            &["phone", "result"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let phone = arguments.parse_phone()?;
            match caller.look_up_number(phone).await?.outcome {
                Some(OperationOutcome::Accepted { answer, .. }) => {
                    let told = answer.as_deref().and_then(|answer| serde_json::from_str::<Value>(answer).ok());
                    let result = match told {
                        Some(Value::Object(members)) => Value::Object(members),
                        Some(other) if !other.is_null() => json!({ "value": other }),
                        _ => json!({}),
                    };
                    Ok(json!({ "phone": phone.to_string(), "result": result }))
                }
                Some(OperationOutcome::Rejected { error, .. }) => Err(ToolError::new("platform_error", error)),
                Some(
                    OperationOutcome::Queued { .. }
                    | OperationOutcome::NotSent { .. }
                    | OperationOutcome::InDoubt { .. },
                )
                | None => {
                    Err(ToolError::new("unknown_outcome", "the gateway did not return the outcome of the lookup")
                        .with_how_to(
                            "the lookup might have been charged; repeat it only if the person you work for asks \
                             you to",
                        ))
                }
            }
        })
    },
};
