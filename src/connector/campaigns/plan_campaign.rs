//! `plan_campaign`: what `campaign plan` tells and keeps.

use serde_json::{Value, json};

use super::folder::{OpenFolder, refused};
use super::{about_campaign, counts, number};
use crate::connector::error::ToolError;
use crate::connector::tool::{Annotations, Tool};
use crate::connector::tools::{object, text};
use crate::runs::{self, Inputs, MadePlan, Request};

pub(super) const TOOL: Tool = Tool {
    name: "plan_campaign",
    title: "Plan a campaign",
    description: "Plans a run of a campaign. Returns the number of recipients, the number of message parts, the cost \
                  and a digest, which is valid for 30 days. A person approves the digest in a terminal; then \
                  run_campaign sends the campaign. Costs nothing and sends nothing.",
    annotations: Annotations { read_only: false, destructive: false, idempotent: true, open_world: false },
    input: || about_campaign(json!({})),
    output: || {
        object(
            json!({
                "digest": text("The digest that identifies the plan."),
                "gateway": text("The gateway that the run would use."),
                "rows": number("The number of rows in the list."),
                "counts": counts(),
                "messages": number("The number of messages that would be sent."),
                "parts": number("The total number of message parts."),
                "cost": { "type": "number", "description": "The maximum cost, if the profile has prices." },
                "currency": text("The currency of `cost`."),
                "on_in_doubt": text("How to handle messages whose outcome is unknown: hold, assume_sent or \
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
                "how_to": text("What to do before the campaign can be sent."),
            }),
            &["digest", "gateway", "rows", "counts", "messages", "on_in_doubt", "resources", "how_to"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.campaigns()?;
            let file = folder.file(&arguments)?;
            let inputs = folder.inputs_to_send(file).await.map_err(refused)?;
            let _turn = folder.turn().await;
            let made = runs::plan(folder.adapters, &inputs, &Request::default()).await;
            let made = made.map_err(refused)?;
            let mut told = told(&made, folder.gateway, &how_to(&folder, &inputs, &made))?;
            if let Some(note) = super::notify_command_note(&inputs) {
                told["notes"] = json!([note]);
            }
            Ok(told)
        })
    },
};

/// What has to happen before the plan is sent; nothing does if it has no message.
fn how_to(folder: &OpenFolder<'_>, inputs: &Inputs, made: &MadePlan) -> String {
    match made.planned.messages {
        0 => "no row gets a message, so run_campaign would not start a run: change the list or the campaign, then \
              plan it again"
            .to_owned(),
        _ => folder.how_to_approve(inputs, &made.digest),
    }
}

fn resource_schema() -> Value {
    object(
        json!({
            "key": text("The key that names the resource, such as notify.url. Keys of the profile start with \
                         `profile.`"),
            "kind": text("`program`, `address` or `source`."),
            "value": text("The program, address or source itself. Values of parameters and headers are hidden."),
        }),
        &["key", "kind", "value"],
    )
}

fn told(made: &MadePlan, gateway: &str, how_to: &str) -> Result<Value, ToolError> {
    let figures = serde_json::to_value(made.figures());
    let mut told = figures.map_err(|_| ToolError::new("internal", "cannot return the plan"))?;
    told["gateway"] = json!(gateway);
    told["how_to"] = json!(how_to);
    Ok(super::without_nulls(told))
}
