//! `check_campaign`: what `campaign check` tells.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::folder::{OpenFolder, file_name, refused};
use super::{LOCAL, about_campaign, counts, number};
use crate::check::online::Cost;
use crate::connector::tool::Tool;
use crate::connector::tools::{known, object, text};
use crate::finding::{Finding, findings_json, rules};
use crate::manifest::NOTIFY_COMMAND;
use crate::report::counts_json;
use crate::runs::{self, CheckedCampaign, Error, OwnFiles};

pub(super) const TOOL: Tool = Tool {
    name: "check_campaign",
    title: "Check a campaign",
    description: "Checks a campaign before it is sent. Returns problems in the campaign file, the messages and the \
                  recipient list, the number of messages and message parts, the cost, and the number of skipped rows. \
                  Costs nothing and sends nothing.",
    annotations: LOCAL,
    input: || about_campaign(json!({})),
    output: || {
        object(
            json!({
                "file": text("The name of the campaign file."),
                "gateway": text("The gateway that the campaign would use."),
                "ok": { "type": "boolean", "description": "Whether the campaign can be sent. If false, at least one finding is an error." },
                "findings": { "type": "array", "items": finding_schema() },
                "rows": number("The number of rows in the list."),
                "counts": counts(),
                "parts": number("The total number of message parts."),
                "cost": { "type": "number", "description": "The maximum cost, if the profile has prices." },
                "currency": text("The currency of `cost`."),
            }),
            &["file", "gateway", "ok", "findings"],
        )
    },
    preview: None,
    call: |caller, arguments| {
        Box::pin(async move {
            let folder = caller.campaigns()?;
            let file = folder.file(&arguments)?;
            let name = file_name(&file);
            let (checked, findings) = match check(&folder, file).await {
                Ok(checked) => {
                    let findings = checked.findings.clone();
                    (Some(checked), findings)
                }
                Err(Error::Input(why)) => return Err(refused(Error::Input(why))),
                Err(error) => (None, problems(&error)),
            };
            let ok = !findings.iter().any(Finding::is_error);
            let survey = checked.as_ref().map(|checked| &checked.list.survey);
            let cost = checked.as_ref().and_then(|checked| match &checked.cost {
                Some(Cost::AtMost(cost)) => Some(json!(cost)),
                _ => None,
            });
            let currency = checked.as_ref().and_then(|checked| checked.currency.clone()).filter(|_| cost.is_some());
            Ok(known([
                ("file", Some(json!(name))),
                ("gateway", Some(json!(folder.gateway))),
                ("ok", Some(json!(ok))),
                ("findings", Some(findings_json(&findings))),
                ("rows", survey.map(|survey| json!(survey.recipients))),
                ("counts", survey.map(|survey| counts_json(&survey.counts()))),
                ("parts", survey.map(|survey| json!(survey.parts))),
                ("cost", cost),
                ("currency", currency.map(Value::String)),
            ]))
        })
    },
};

async fn check(folder: &OpenFolder<'_>, file: PathBuf) -> Result<CheckedCampaign, Error> {
    let _turn = folder.turn().await;
    let inputs = folder.inputs(file).await?;
    let adapters = folder.adapters;
    let files = OwnFiles { state: &adapters.state, profiles: &adapters.profiles };
    let mut checked =
        runs::check_campaign(&inputs, Some(adapters.ledger.as_ref()), files, (&adapters.observer, (adapters.clock)()))
            .await?;
    let place = inputs.campaign.places.of_key(NOTIFY_COMMAND);
    let note = super::notify_command_note(&inputs).map(|note| Finding::new(&rules::NOTIFY_COMMAND, note).at(place));
    checked.findings.extend(note);
    Ok(checked)
}

/// What is wrong, so that nothing more can be known.
fn problems(error: &Error) -> Vec<Finding> {
    match error.findings() {
        [] => vec![Finding::new(&rules::CHECK, error.to_string())],
        findings => findings.to_vec(),
    }
}

fn finding_schema() -> Value {
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    object(
        json!({
            "rule": text("The rule that was broken."),
            "severity": text("`error`, `warning` or `note`."),
            "message": text("What is wrong."),
            "file": or_null(text("The file with the problem.")),
            "line": or_null(number("The line.")),
            "column": or_null(number("The column.")),
            "help": or_null(text("What to do.")),
        }),
        &["rule", "severity", "message"],
    )
}
