//! `run_status`: what `campaign status` tells of a campaign's latest run.

use serde_json::json;

use super::folder::refused;
use super::{LOCAL, about_campaign, number, run_properties, without_nulls};
use crate::connector::error::ToolError;
use crate::connector::tool::Tool;
use crate::connector::tools::{object, text};
use crate::report::RunStanding;
use crate::runs::{Error, latest_of_file};

pub(super) const TOOL: Tool = Tool {
    name: "run_status",
    title: "Status of a run",
    description: "Returns the status of a campaign's latest run: its state, the number of messages in each state, and \
                  delivery by channel. Returns the latest live run, or the latest rehearsal if there is no live run. \
                  Costs nothing and sends nothing.",
    annotations: LOCAL,
    input: || about_campaign(json!({})),
    output: || {
        let mut properties = run_properties();
        let more = json!({
            "edition": text("The edition, which distinguishes repeated runs of a campaign."),
            "endpoint": text("The endpoint that receives the requests: sync or async."),
            "parts": number("The number of message parts that the gateway billed, as far as known."),
            "began_at": text("When the run started."),
            "ended_at": text("When the run last ended."),
            "results": text("The path of the results file, which has the result of each row."),
            "purged_at": text("When the recipients' data was removed from the ledger. The counts remain."),
            "channels": {
                "type": "object",
                "description": "Figures for each channel: `counts` (rows in each state), `read` (messages that were \
                                read), `in_part` (messages that were partly delivered), `delivery` (delivery times) \
                                and `uncertain_times` (delivered messages with an implausible time).",
            },
            "approved": {
                "type": "array",
                "items": { "type": "object", "properties": { "by": text("The name of the person."), "at": text("When they approved it.") } },
                "description": "The approvals of the run.",
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
                found => found.map_err(refused)?,
            };
            let Some(run) = found else {
                return Err(ToolError::new("no_run", "this campaign has no runs yet"));
            };
            let standing = RunStanding::read(ledger, run).await.map_err(|error| refused(error.into()))?;
            Ok(without_nulls(standing.json()))
        })
    },
};
