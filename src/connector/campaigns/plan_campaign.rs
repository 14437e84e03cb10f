//! `plan_campaign`: what `campaign plan` tells and keeps.

use serde_json::{Value, json};

use super::{about_campaign, counts, number};
use crate::connector::error::ToolError;
use crate::connector::tool::{Annotations, Tool};
use crate::connector::tools::{object, text};
use crate::runs::{self, MadePlan, Request};

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
                "how_to": text("What has to happen before it is sent."),
            }),
            &["digest", "gateway", "rows", "counts", "messages", "how_to"],
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
            told(&made, folder.gateway, &folder.how_to_approve(&inputs, &made.digest))
        })
    },
};

fn told(made: &MadePlan, gateway: &str, how_to: &str) -> Result<Value, ToolError> {
    let figures = serde_json::to_value(made.figures());
    let mut told = figures.map_err(|_| ToolError::new("internal", "the plan cannot be told"))?;
    told["gateway"] = json!(gateway);
    told["how_to"] = json!(how_to);
    Ok(super::without_nulls(told))
}
