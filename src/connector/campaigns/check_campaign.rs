//! `check_campaign`: what `campaign check` tells.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::folder::{OpenFolder, file_name, refuse_campaign};
use super::{LOCAL, campaign_arguments_schema, counts_schema, number_schema};
use crate::check::online::Cost;
use crate::connector::tool::McpTool;
use crate::connector::tools::{object_of_known, object_schema, text_schema};
use crate::finding::{Finding, findings_json, rules};
use crate::manifest::NOTIFY_COMMAND;
use crate::report::counts_json;
use crate::runs::{self, CheckedCampaign, Error, ProtectedFiles};

pub(super) const TOOL: McpTool = McpTool {
    name: "check_campaign",
    title: "Check a campaign",
    description: "Checks a campaign before it is sent. Returns problems in the campaign file, the messages and the \
                  recipient list, the number of messages and message parts, the cost, and the number of skipped rows. \
                  Costs nothing and sends nothing.",
    annotations: LOCAL,
    input: || campaign_arguments_schema(json!({})),
    output: || {
        object_schema(
            json!({
                "file": text_schema("The name of the campaign file."),
                "gateway": text_schema("The gateway that the campaign would use."),
                "ok": { "type": "boolean", "description": "Whether the campaign can be sent. If false, at least one finding is an error." },
                "findings": { "type": "array", "items": finding_schema() },
                "rows": number_schema("The number of rows in the list."),
                "counts": counts_schema(),
                "parts": number_schema("The total number of message parts."),
                "cost": { "type": "number", "description": "The maximum cost, if the profile has prices." },
                "currency": text_schema("The currency of `cost`."),
            }),
            &["file", "gateway", "ok", "findings"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.open_campaigns()?;
            let file = folder.find_file(&arguments)?;
            let name = file_name(&file);
            let (checked, findings) = match run_check(&folder, file).await {
                Ok(checked) => {
                    let findings = checked.findings.clone();
                    (Some(checked), findings)
                }
                Err(Error::Input(why)) => return Err(refuse_campaign(Error::Input(why))),
                Err(error) => (None, error_findings(&error)),
            };
            let ok = !findings.iter().any(Finding::is_error);
            let survey = checked.as_ref().map(|checked| &checked.list.survey);
            let cost = checked.as_ref().and_then(|checked| match &checked.cost {
                Some(Cost::AtMost(cost)) => Some(json!(cost)),
                _ => None,
            });
            let currency = checked.as_ref().and_then(|checked| checked.currency.clone()).filter(|_| cost.is_some());
            Ok(object_of_known([
                ("file", Some(json!(name))),
                ("gateway", Some(json!(folder.gateway))),
                ("ok", Some(json!(ok))),
                ("findings", Some(findings_json(&findings))),
                ("rows", survey.map(|survey| json!(survey.recipients))),
                ("counts", survey.map(|survey| counts_json(&survey.count_by_state()))),
                ("parts", survey.map(|survey| json!(survey.parts))),
                ("cost", cost),
                ("currency", currency.map(Value::String)),
            ]))
        })
    },
};

async fn run_check(folder: &OpenFolder<'_>, file: PathBuf) -> Result<CheckedCampaign, Error> {
    let _turn = folder.acquire_turn().await;
    let inputs = folder.load_inputs(file).await?;
    let adapters = folder.adapters;
    let files = ProtectedFiles { state: &adapters.state, profiles: &adapters.profiles };
    let mut checked =
        runs::check_campaign(&inputs, Some(adapters.ledger.as_ref()), files, (&adapters.observer, (adapters.clock)()))
            .await?;
    let place = inputs.campaign.places.locate_key(NOTIFY_COMMAND);
    let note = super::notify_command_note(&inputs).map(|note| Finding::new(&rules::NOTIFY_COMMAND, note).at(place));
    checked.findings.extend(note);
    Ok(checked)
}

/// What is wrong, so that nothing more can be known.
fn error_findings(error: &Error) -> Vec<Finding> {
    match error.findings() {
        [] => vec![Finding::new(&rules::CHECK, error.to_string())],
        findings => findings.to_vec(),
    }
}

fn finding_schema() -> Value {
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    object_schema(
        json!({
            "rule": text_schema("The rule that was broken."),
            "severity": text_schema("`error`, `warning` or `note`."),
            "message": text_schema("What is wrong."),
            "file": or_null(text_schema("The file with the problem.")),
            "line": or_null(number_schema("The line.")),
            "column": or_null(number_schema("The column.")),
            "help": or_null(text_schema("What to do.")),
        }),
        &["rule", "severity", "message"],
    )
}
