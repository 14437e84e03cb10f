//! `run_status`: what `campaign status` tells of a campaign's latest run.

use serde_json::json;

use super::{LOCAL, about_campaign, number, run_properties, without_nulls};
use crate::connector::error::ToolError;
use crate::connector::tool::Tool;
use crate::connector::tools::{object, text};
use crate::report::RunStanding;
use crate::runs::{Error, latest_of_file};

pub(super) const TOOL: Tool = Tool {
    name: "run_status",
    title: "How a run stands",
    description: "How the latest run of a campaign stands: what it does, how many messages are in which state, what became of \
                  them by channel. A run to people comes before a rehearsal. Costs nothing and sends nothing.",
    annotations: LOCAL,
    input: || about_campaign(json!({})),
    output: || {
        let mut properties = run_properties();
        let more = json!({
            "edition": text("What makes it another run of the same campaign."),
            "endpoint": text("How messages are handed over: sync or async."),
            "parts": number("How many parts the gateway billed, as far as it told."),
            "began_at": text("When it began."),
            "ended_at": text("When it last ended."),
            "results": text("The operator's file with the result of each row."),
            "purged_at": text("When what was known of whom it sent to was taken out of the ledger; its counts stay."),
            "channels": {
                "type": "object",
                "description": "Its messages by channel: rows by state in `counts`, readings in `read`, messages that arrived \
                                only in part in `in_part`, delivery times in `delivery`, and delivered messages whose time \
                                cannot be right in `uncertain_times`.",
            },
            "approved": {
                "type": "array",
                "items": { "type": "object", "properties": { "by": text("Who."), "at": text("When.") } },
                "description": "Who approved it.",
            },
        });
        if let (Some(properties), Some(more)) = (properties.as_object_mut(), more.as_object()) {
            properties.extend(more.clone());
        }
        object(properties, &["run", "campaign", "state", "counts"])
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.campaigns()?;
            let file = folder.file(&arguments)?;
            let ledger = folder.adapters.ledger.as_ref();
            // A file with errors may be that of a run that began before.
            let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = folder.name_of(&file).unwrap_or_else(stem);
            let found = match latest_of_file(ledger, &name, &file).await {
                Err(Error::RunsElsewhere { .. }) => None,
                found => found.map_err(|error| folder.refused(error))?,
            };
            let Some(run) = found else {
                return Err(ToolError::new("no_run", "no run of this campaign began yet"));
            };
            let standing = RunStanding::read(ledger, run).await.map_err(|error| folder.refused(error.into()))?;
            Ok(without_nulls(standing.json()))
        })
    },
};
