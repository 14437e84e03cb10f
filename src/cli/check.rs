//! `campaign check`: everything that can be known before sending.

use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::args::CheckArgs;
use super::context::Context;
use super::exit::{self, Failure};
use super::online::{self, Figures, Online};
use super::suggested;
use super::survey::{self, Inputs, Looked};
use super::target;
use crate::check::online::Cost;
use crate::check::{Survey, invalid_rows};
use crate::finding::{Finding, findings_json, one_line, rules};
use crate::ledger::StateCounts;
use crate::manifest::{Destination, KeySource};
use crate::report::{counts_json, counts_line, plural};

pub(super) async fn check(context: &Context, args: CheckArgs) -> Result<u8, Failure> {
    let mut findings = Vec::new();
    let (mut rows, mut parts, mut counts) = (0, 0, StateCounts::default());
    let (mut text, mut told) = (String::new(), Vec::new());
    for file in &args.files {
        let name = file.display();
        match one(context, &args, file).await {
            Ok((found, looked, online)) => {
                let survey = &looked.survey;
                rows += survey.recipients;
                parts += survey.parts;
                survey.counts().iter().for_each(|(state, count)| counts.add(state, count));
                let in_the_way = found.iter().any(|finding| finding.rule == target::RULE);
                let verdict = match found.iter().any(Finding::is_error) {
                    true if in_the_way => "its results have no place",
                    true => "the gateway says no",
                    false => "fine",
                };
                let (list, how) = (plural(survey.recipients, "row"), counts_line(&survey.counts()));
                text += &format!("{name}: {verdict} · {list}: {how} · {}\n", plural(survey.parts, "part"));
                if let Some(Told { money, figures }) = online {
                    text += &money.map(|money| format!("  {}\n", one_line(&money))).unwrap_or_default();
                    told.push(figures);
                }
                findings.extend(found);
            }
            Err(failure) if failure.exit == exit::WRONG => {
                text += &format!("{name}: {}\n", one_line(&failure.message.replace("; nothing was sent", "")));
                let alone = failure.findings.is_empty();
                findings.extend(failure.findings);
                if alone {
                    findings.push(Finding::new(&rules::CHECK, failure.message));
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    let code = if findings.iter().any(Finding::is_error) { exit::WRONG } else { exit::FINE };
    if context.output.json {
        let (findings, counts) = (findings_json(&findings), counts_json(&counts));
        context.output.object(&Printed { findings, rows, counts, parts, online: told, exit: code });
        return Ok(code);
    }
    context.output.findings(&findings);
    if code == exit::FINE
        && let [file] = args.files.as_slice()
    {
        text += &format!("next: {}\n", context.output.command(format!("preview {}", suggested::file(file))));
    }
    context.output.result(&text);
    Ok(code)
}

/// What the gateway says of the money for a campaign: for people, for programs.
struct Told {
    money: Option<String>,
    figures: Figures,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    findings: Value,
    rows: u64,
    counts: Value,
    parts: u64,
    /// One object for one file; of several each that was asked about has its own, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_each")]
    online: Vec<Figures>,
    exit: u8,
}

fn one_or_each<S: Serializer>(figures: &Vec<Figures>, serializer: S) -> Result<S::Ok, S::Error> {
    match figures.as_slice() {
        [one] => one.serialize(serializer),
        each => each.serialize(serializer),
    }
}

/// What one file shows, what its list shows, and what the gateway says of its money where it was asked.
type Checked = (Vec<Finding>, Looked, Option<Told>);

async fn one(context: &Context, args: &CheckArgs, file: &Path) -> Result<Checked, Failure> {
    let inputs = Arc::new(survey::load(context, file, args.gateway.as_deref())?);
    let looked = survey::look(context, Arc::clone(&inputs)).await?;
    let mut findings = inputs.warnings.clone();
    if let Some(why) = inputs.destination.profile().and_then(|profile| missing_key(&profile.api_key)) {
        findings.push(Finding::new(&rules::API_KEY, why));
    }
    findings.extend(target::finding(context, &inputs)?);
    findings.extend(invalid_rows(&looked.survey.left_out));
    let mut told = None;
    if args.online {
        let online = online(context, &inputs, &looked.survey).await?;
        findings.extend(online.findings);
        told = Some(Told { money: online.money, figures: online.figures });
    }
    Ok((findings, looked, told))
}

/// Why there is no key to send with yet; it never shows any part of one.
fn missing_key(source: &KeySource) -> Option<String> {
    source.read(&|name| std::env::var(name).ok()).err()
}

/// What the gateway says of a campaign.
async fn online(context: &Context, inputs: &Inputs, survey: &Survey) -> Result<Online, Failure> {
    let Destination::Live(profile) = &inputs.destination else { return Ok(Online::of_nobody()) };
    let content = &inputs.campaign.brief.content;
    let cost = Cost::of(profile, content, &survey.by_sms_parts, &survey.planned_rows());
    online::ask(&context.output, (inputs, profile), context.ledger().await?, &cost).await
}
