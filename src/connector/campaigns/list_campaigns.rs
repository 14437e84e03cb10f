//! `list_campaigns`.

use std::path::Path;

use serde_json::{Value, json};

use super::folder::{OpenFolder, file_name, refuse_campaign};
use super::{LOCAL, number_schema, remove_nulls, run_property_schemas};
use crate::connector::error::ToolError;
use crate::connector::tool::McpTool;
use crate::connector::tools::{empty_schema, object_of_known, object_schema, text_schema};
use crate::finding::Finding;
use crate::manifest::CampaignDay;
use crate::report::{RunView, is_owned, run_entry_json};
use crate::runs::{Error, find_latest_of_file};

pub(super) const TOOL: McpTool = McpTool {
    name: "list_campaigns",
    title: "Campaigns",
    description: "Lists the campaigns that this connector can check, preview and run. A campaign is a file with \
                  messages for a list of recipients. Returns the channels and the latest run of each campaign. Costs \
                  nothing and sends nothing.",
    annotations: LOCAL,
    input: empty_schema,
    output: || {
        object_schema(
            json!({
                "gateway": text_schema("The gateway that the campaigns use."),
                "items": { "type": "array", "items": item_schema() },
                "count": number_schema("The number of campaigns."),
            }),
            &["gateway", "items", "count"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let mut items = Vec::new();
            for file in folder.campaign_files()? {
                items.push(campaign_item(&folder, &file).await?);
            }
            Ok(json!({ "gateway": folder.gateway, "count": items.len(), "items": items }))
        })
    },
};

fn item_schema() -> Value {
    object_schema(
        json!({
            "file": text_schema("The name of the campaign file."),
            "name": text_schema("The name of the campaign. Missing if its file has errors: call check_campaign for details."),
            "gateway": text_schema("The gateway named in the file, if any."),
            "channels": { "type": "array", "items": { "type": "string" }, "description": "The channels, in the order in which they are tried." },
            "errors": number_schema("The number of errors in the file, if any."),
            "problem": text_schema("Why the latest run cannot be read, if its record in the ledger is damaged."),
            "latest_run": object_schema(run_property_schemas(), &["run", "state", "counts"]),
        }),
        &["file"],
    )
}

async fn campaign_item(folder: &OpenFolder<'_>, file: &Path) -> Result<Value, ToolError> {
    let loaded = folder.load_campaign(file, CampaignDay::Of((folder.adapters.clock)()));
    let errors = loaded.findings.iter().filter(|finding| Finding::is_error(finding)).count();
    let Some(campaign) = loaded.value else { return Ok(json!({ "file": file_name(file), "errors": errors })) };
    let gateway = campaign.has_gateway_key().then(|| json!(campaign.brief.gateway));
    let channels: Vec<&str> = campaign.brief.content.stages.iter().map(|stage| stage.channel().name()).collect();
    let (latest, damage) = match find_latest_run(folder, &campaign.brief.name, file).await {
        Ok(latest) => (latest, None),
        // A damaged record of one campaign does not hide the others.
        Err(Error::Ledger(error)) if error.concerns_records() => (None, Some(error.describe_damage())),
        Err(error) => return Err(refuse_campaign(error)),
    };
    Ok(object_of_known([
        ("file", Some(json!(file_name(file)))),
        ("name", Some(json!(campaign.brief.name))),
        ("gateway", gateway),
        ("channels", Some(json!(channels))),
        ("problem", damage.map(|damage| json!(format!("the ledger is damaged: {damage}")))),
        ("latest_run", latest.map(|view| remove_nulls(run_entry_json(&view)))),
    ]))
}

/// The latest run that began from a file, of those to people if there are any.
async fn find_latest_run(folder: &OpenFolder<'_>, name: &str, file: &Path) -> Result<Option<RunView>, Error> {
    let ledger = folder.adapters.ledger.as_ref();
    match find_latest_of_file(ledger, name, file).await {
        Ok(Some(run)) => {
            let owned = is_owned(ledger, &run).await?;
            Ok(Some(RunView::load(ledger, run, owned).await?))
        }
        Ok(None) | Err(Error::RunsElsewhere { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
