//! `check_campaign`: what `campaign check` tells.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::folder::{OpenFolder, file_name};
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
    description: "Everything that can be known of a campaign before it is sent: problems of its file, its texts and its list \
                  of recipients, how many would get a message and why others would not, how many parts, what it costs. Costs \
                  nothing and sends nothing.",
    annotations: LOCAL,
    input: || about_campaign(json!({})),
    output: || {
        object(
            json!({
                "file": text("The name of its file."),
                "gateway": text("What it would go through."),
                "ok": { "type": "boolean", "description": "Whether it could be sent: no finding is an error." },
                "findings": { "type": "array", "items": finding_schema() },
                "rows": number("How many recipients its list has."),
                "counts": counts(),
                "parts": number("How many parts the messages have that would be sent."),
                "cost": { "type": "number", "description": "What they cost at most, where the profile has prices." },
                "currency": text("The currency of that."),
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
                Err(Error::Input(why)) => return Err(folder.refused(Error::Input(why))),
                Err(error) => (None, problems(&folder, error)),
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
    let explain = |refused| folder.explain(refused).0;
    let mut checked = runs::check_campaign(
        &inputs,
        Some(adapters.ledger.as_ref()),
        files,
        (&adapters.observer, (adapters.clock)()),
        explain,
    )
    .await?;
    let place = inputs.campaign.places.of_key(NOTIFY_COMMAND);
    let note = super::notify_command_note(&inputs).map(|note| Finding::new(&rules::NOTIFY_COMMAND, note).at(place));
    checked.findings.extend(note);
    Ok(checked)
}

/// What is wrong, so that nothing more can be known.
fn problems(folder: &OpenFolder<'_>, error: Error) -> Vec<Finding> {
    let (message, findings) = folder.explain(error);
    if findings.is_empty() { vec![Finding::new(&rules::CHECK, message)] } else { findings }
}

fn finding_schema() -> Value {
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    object(
        json!({
            "rule": text("What is broken, as a word."),
            "severity": text("error, warning or note."),
            "message": text("What is wrong."),
            "file": or_null(text("The file that it stands in.")),
            "line": or_null(number("The line.")),
            "column": or_null(number("The column.")),
            "help": or_null(text("What to do.")),
        }),
        &["rule", "severity", "message"],
    )
}
