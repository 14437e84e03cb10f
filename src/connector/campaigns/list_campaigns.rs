//! `list_campaigns`.

use std::path::Path;

use serde_json::{Value, json};

use super::folder::{OpenFolder, file_name};
use super::{LOCAL, number, run_properties, without_nulls};
use crate::connector::error::ToolError;
use crate::connector::tool::Tool;
use crate::connector::tools::{known, nothing, object, text};
use crate::finding::Finding;
use crate::manifest::Day;
use crate::report::{RunView, is_owned, run_entry_json};
use crate::runs::{Error, latest_of_file};

pub(super) const TOOL: Tool = Tool {
    name: "list_campaigns",
    title: "Campaigns",
    description: "The campaigns that this connector can check, preview and run: messages to lists of people, which somebody wrote \
                  into files. Tells of each its channels and how its latest run stands. Costs nothing and sends nothing.",
    annotations: LOCAL,
    input: nothing,
    output: || {
        object(
            json!({
                "gateway": text("What the campaigns of this connector go through."),
                "items": { "type": "array", "items": item_schema() },
                "count": number("How many there are."),
            }),
            &["gateway", "items", "count"],
        )
    },
    preview: None,
    call: |caller, _| {
        Box::pin(async move {
            let folder = caller.campaigns()?;
            let mut items = Vec::new();
            for file in folder.files()? {
                items.push(item(&folder, &file).await?);
            }
            Ok(json!({ "gateway": folder.gateway, "count": items.len(), "items": items }))
        })
    },
};

fn item_schema() -> Value {
    object(
        json!({
            "file": text("The name of its file."),
            "name": text("Its name; missing where its file has errors: check_campaign tells them."),
            "gateway": text("The gateway that its file names, if it names one."),
            "channels": { "type": "array", "items": { "type": "string" }, "description": "Its channels, in the order of trying." },
            "errors": number("How many errors its file has, if it has any."),
            "problem": text("Why its latest run cannot be read, if a record of it in the ledger is damaged."),
            "latest_run": object(run_properties(), &["run", "state", "counts"]),
        }),
        &["file"],
    )
}

async fn item(folder: &OpenFolder<'_>, file: &Path) -> Result<Value, ToolError> {
    let loaded = folder.load(file, Day::Of((folder.adapters.clock)()));
    let errors = loaded.findings.iter().filter(|finding| Finding::is_error(finding)).count();
    let Some(campaign) = loaded.value else { return Ok(json!({ "file": file_name(file), "errors": errors })) };
    let gateway = campaign.names_gateway().then(|| json!(campaign.brief.gateway));
    let channels: Vec<&str> = campaign.brief.content.stages.iter().map(|stage| stage.channel().name()).collect();
    let (latest, damage) = match latest(folder, &campaign.brief.name, file).await {
        Ok(latest) => (latest, None),
        // A damaged record of one campaign does not hide the others.
        Err(Error::Ledger(error)) if error.concerns_records() => (None, Some(error.damage())),
        Err(error) => return Err(folder.refused(error)),
    };
    Ok(known([
        ("file", Some(json!(file_name(file)))),
        ("name", Some(json!(campaign.brief.name))),
        ("gateway", gateway),
        ("channels", Some(json!(channels))),
        ("problem", damage.map(|damage| json!(format!("the ledger is damaged: {damage}")))),
        ("latest_run", latest.map(|view| without_nulls(run_entry_json(&view)))),
    ]))
}

/// The latest run that began from a file, of those to people if there are any.
async fn latest(folder: &OpenFolder<'_>, name: &str, file: &Path) -> Result<Option<RunView>, Error> {
    let ledger = folder.adapters.ledger.as_ref();
    match latest_of_file(ledger, name, file).await {
        Ok(Some(run)) => {
            let owned = is_owned(ledger, &run).await?;
            Ok(Some(RunView::read(ledger, run, owned).await?))
        }
        Ok(None) | Err(Error::RunsElsewhere { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
