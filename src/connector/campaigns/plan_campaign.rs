//! `plan_campaign`: what `campaign plan` tells and keeps.

use serde_json::{Value, json};

use super::folder::{OpenFolder, refuse_campaign};
use super::{campaign_arguments_schema, counts_schema, number_schema};
use crate::connector::error::ToolError;
use crate::connector::tool::{McpTool, ToolAnnotations};
use crate::connector::tools::{object_schema, text_schema};
use crate::runs::{self, CreatedPlan, Inputs, RunRequest};

pub(super) const TOOL: McpTool = McpTool {
    name: "plan_campaign",
    title: "Plan a campaign",
    description: "Plans a run of a campaign. Returns the number of recipients, the number of message parts, the cost \
                  and a digest, which is valid for 30 days. A person approves the digest in a terminal; then \
                  run_campaign sends the campaign. Costs nothing and sends nothing.",
    annotations: ToolAnnotations { read_only: false, destructive: false, idempotent: true, open_world: false },
    input: || campaign_arguments_schema(json!({})),
    output: || {
        object_schema(
            json!({
                "digest": text_schema("The digest that identifies the plan."),
                "gateway": text_schema("The gateway that the run would use."),
                "rows": number_schema("The number of rows in the list."),
                "counts": counts_schema(),
                "messages": number_schema("The number of messages that would be sent."),
                "parts": number_schema("The total number of message parts."),
                "cost": { "type": "number", "description": "The maximum cost, if the profile has prices." },
                "currency": text_schema("The currency of `cost`."),
                "on_in_doubt": text_schema("How to handle messages whose outcome is unknown: hold, assume_sent or \
                                     resend_if_not_found."),
                "resources": {
                    "type": "array", "items": resource_schema(),
                    "description": "The programs, addresses and sources that the campaign uses. If one changes, the \
                                    digest changes.",
                },
                "notes": {
                    "type": "array", "items": { "type": "string" },
                    "description": "How a run through this connector differs from the campaign file. Show this to the \
                                    person you work for.",
                },
                "how_to": text_schema("What to do before the campaign can be sent."),
            }),
            &["digest", "gateway", "rows", "counts", "messages", "on_in_doubt", "resources", "how_to"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let file = folder.find_file(&arguments)?;
            let inputs = folder.load_inputs_to_send(file).await.map_err(refuse_campaign)?;
            let _turn = folder.acquire_turn().await;
            let made = runs::create_plan(folder.adapters, &inputs, &RunRequest::default()).await;
            let made = made.map_err(refuse_campaign)?;
            let mut told = plan_json(&made, folder.gateway, &next_step(&folder, &inputs, &made))?;
            if let Some(note) = super::notify_command_note(&inputs) {
                told["notes"] = json!([note]);
            }
            Ok(told)
        })
    },
};

/// What has to happen before the plan is sent; nothing does if it has no message.
fn next_step(folder: &OpenFolder<'_>, inputs: &Inputs, made: &CreatedPlan) -> String {
    match made.planned.messages {
        0 => "no row gets a message, so run_campaign would not start a run: change the list or the campaign, then \
              plan it again"
            .to_owned(),
        _ => folder.describe_approval(inputs, &made.digest),
    }
}

fn resource_schema() -> Value {
    object_schema(
        json!({
            "key": text_schema("The key that names the resource, such as notify.url. Keys of the profile start with \
                         `profile.`"),
            "kind": text_schema("`program`, `address` or `source`."),
            "value": text_schema("The program, address or source itself. Values of parameters and headers are hidden."),
        }),
        &["key", "kind", "value"],
    )
}

fn plan_json(made: &CreatedPlan, gateway: &str, how_to: &str) -> Result<Value, ToolError> {
    let figures = serde_json::to_value(made.figures());
    let mut told = figures.map_err(|_| ToolError::new("internal", "cannot return the plan"))?;
    told["gateway"] = json!(gateway);
    told["how_to"] = json!(how_to);
    Ok(super::remove_nulls(told))
}
