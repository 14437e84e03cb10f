//! `plan_campaign`: what `campaign plan` tells and keeps.

use serde_json::{Value, json};

use super::folder::OpenFolder;
use super::{about_campaign, counts, number};
use crate::connector::error::ToolError;
use crate::connector::tool::{Annotations, Tool};
use crate::connector::tools::{object, text};
use crate::runs::{self, Inputs, MadePlan, Request};

pub(super) const TOOL: Tool = Tool {
    name: "plan_campaign",
    title: "Plan a campaign",
    description: "What a run of a campaign would send now: to how many people, in how many parts, at what cost. It is kept for \
                  thirty days under a digest, by which a person approves it in a terminal and run_campaign sends it. Costs \
                  nothing and sends nothing.",
    annotations: Annotations { read_only: false, destructive: false, idempotent: true, open_world: false },
    input: || about_campaign(json!({})),
    output: || {
        object(
            json!({
                "digest": text("What the plan is known by."),
                "gateway": text("What it goes through."),
                "rows": number("How many recipients the list has."),
                "counts": counts(),
                "messages": number("How many people would get a message."),
                "parts": number("How many parts the messages have."),
                "cost": { "type": "number", "description": "What they cost at most, where the profile has prices." },
                "currency": text("The currency of that."),
                "on_in_doubt": text("What happens to messages whose outcome is unknown: hold, assume_sent or resend_if_not_found."),
                "resources": {
                    "type": "array", "items": resource_schema(),
                    "description": "The programs, addresses and sources that the campaign uses. A change of them changes the digest.",
                },
                "notes": {
                    "type": "array", "items": { "type": "string" },
                    "description": "What a run through this connector does otherwise than the campaign says: show it to the person.",
                },
                "how_to": text("What has to happen before it is sent."),
            }),
            &["digest", "gateway", "rows", "counts", "messages", "on_in_doubt", "resources", "how_to"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.campaigns()?;
            let file = folder.file(&arguments)?;
            let inputs = folder.inputs_to_send(file).await.map_err(|error| folder.refused(error))?;
            let _turn = folder.turn().await;
            let made = runs::plan(folder.adapters, &inputs, &Request::default()).await;
            let made = made.map_err(|error| folder.refused(error))?;
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
        0 => "no row of the list gets a message, so run_campaign begins no run: change the list or the campaign, and plan it \
              again"
            .to_owned(),
        _ => folder.how_to_approve(inputs, &made.digest),
    }
}

fn resource_schema() -> Value {
    object(
        json!({
            "key": text("The key that names it, such as notify.url; keys of the profile begin with profile."),
            "kind": text("program, address or source."),
            "value": text("The program, address or source. Values of parameters and headers are hidden."),
        }),
        &["key", "kind", "value"],
    )
}

fn told(made: &MadePlan, gateway: &str, how_to: &str) -> Result<Value, ToolError> {
    let figures = serde_json::to_value(made.figures());
    let mut told = figures.map_err(|_| ToolError::new("internal", "the plan cannot be told"))?;
    told["gateway"] = json!(gateway);
    told["how_to"] = json!(how_to);
    Ok(super::without_nulls(told))
}
