//! `run_status`: what `campaign status` tells of a campaign's latest run.

use serde_json::json;

use super::folder::refuse_campaign;
use super::{LOCAL, campaign_arguments_schema, number_schema, remove_nulls, run_property_schemas};
use crate::connector::error::ToolError;
use crate::connector::tool::McpTool;
use crate::connector::tools::{object_schema, text_schema};
use crate::report::RunReport;
use crate::runs::{Error, find_latest_of_file};

pub(super) const TOOL: McpTool = McpTool {
    name: "run_status",
    title: "Status of a run",
    description: "Returns the status of a campaign's latest run: its state, the number of messages in each state, and \
                  delivery by channel. Returns the latest live run, or the latest rehearsal if there is no live run. \
                  Costs nothing and sends nothing.",
    annotations: LOCAL,
    input: || campaign_arguments_schema(json!({})),
    output: || {
        let mut properties = run_property_schemas();
        let more = json!({
            "edition": text_schema("The edition, which distinguishes repeated runs of a campaign."),
            "endpoint": text_schema("The endpoint that receives the requests: sync or async."),
            "parts": number_schema("The number of message parts that the gateway billed, as far as known."),
            "began_at": text_schema("When the run started."),
            "ended_at": text_schema("When the run last ended."),
            "results": text_schema("The path of the results file, which has the result of each row."),
            "purged_at": text_schema("When the recipients' data was removed from the ledger. The counts remain."),
            "channels": {
                "type": "object",
                "description": "Figures for each channel: `counts` (rows in each state), `read` (messages that were \
                                read), `in_part` (messages that were partly delivered), `delivery` (delivery times) \
                                and `uncertain_times` (delivered messages with an implausible time).",
            },
            "approved": {
                "type": "array",
                "items": { "type": "object", "properties": { "by": text_schema("The name of the person."), "at": text_schema("When they approved it.") } },
                "description": "The approvals of the run.",
            },
        });
        if let (Some(properties), Some(more)) = (properties.as_object_mut(), more.as_object()) {
            properties.extend(more.clone());
        }
        object_schema(properties, &["run", "campaign", "state", "counts"])
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let file = folder.find_file(&arguments)?;
            let ledger = folder.adapters.ledger.as_ref();
            // A file with errors may be that of a run that began before.
            let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let name = folder.read_name(&file).unwrap_or_else(stem);
            let found = match find_latest_of_file(ledger, &name, &file).await {
                Err(Error::RunsElsewhere { .. }) => None,
                found => found.map_err(refuse_campaign)?,
            };
            let Some(run) = found else {
                return Err(ToolError::new("no_run", "this campaign has no runs yet"));
            };
            let standing = RunReport::load(ledger, run).await.map_err(|error| refuse_campaign(error.into()))?;
            Ok(remove_nulls(standing.to_json()))
        })
    },
};
