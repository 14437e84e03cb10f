//! `campaign check`: everything that can be known before sending.

mod report;
mod settings;

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::args::{CheckArgs, Format};
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::run::describe_variants;
use super::suggested;
use super::text::{StyledLine, StyledText};
use crate::check::Survey;
use crate::check::online::Cost;
use crate::check::rules::ONLINE_UNKNOWN;
use crate::domain::Amount;
use crate::finding::{Finding, findings_json, render_github_commands, render_sarif, rules};
use crate::gateway::Balance;
use crate::ledger::StateCounts;
use crate::manifest::Destination;
use crate::report::{Forecast, counts_json};
use crate::runs::{
    CheckedCampaign, Inputs, ListSurvey, OnlineAnswer, ProtectedFiles, Sample, ask_online, check_campaign,
};

pub(super) async fn check_campaigns(context: &Context, args: CheckArgs) -> Result<u8, CommandFailure> {
    if args.show_settings {
        return settings::show_settings(context, &args.files, args.gateway.as_deref());
    }
    let strictly = |findings: Vec<Finding>| match args.strict {
        true => findings.into_iter().map(Finding::into_strict).collect(),
        false => findings,
    };
    let mut findings: Vec<(&Path, Finding)> = Vec::new();
    let (mut rows, mut parts, mut counts) = (0, 0, StateCounts::default());
    let (mut text, mut figures, mut costing) = (StyledText::new(), Vec::new(), Vec::new());
    let mut campaigns = Vec::new();
    let waiting = context.output.show_spinner("Reading the list…");
    // A person at a terminal reads the warnings in the report; elsewhere all findings go to standard error.
    let columns = context.output.terminal_width().filter(|_| !context.output.quiet);
    for file in &args.files {
        if !text.is_empty() {
            text.add_blank();
        }
        match check_file(context, &args, file).await {
            Ok(mut checked) => {
                let fails = checked.findings.iter().any(Finding::is_error);
                checked.findings = strictly(checked.findings);
                let survey = &checked.list.survey;
                rows += survey.recipients;
                parts += survey.parts;
                survey.count_by_state().iter().for_each(|(state, count)| counts.add(state, count));
                text.extend(report::render_report(file, &checked, !fails, columns));
                let mut told = checked.forecast.to_json();
                told["file"] = file.display().to_string().into();
                campaigns.push(told);
                costing.push((checked.cost, checked.currency));
                figures.extend(checked.online.map(|online| online.figures));
                findings.extend(checked.findings.into_iter().map(|finding| (file.as_path(), finding)));
            }
            Err(failure) => {
                let failure = failure.into_explanation(&context.output.options);
                if failure.exit != exit::INVALID {
                    return Err(CommandFailure::Explained(failure));
                }
                let mut found = strictly(failure.findings);
                if found.is_empty() {
                    let mut finding = Finding::new(&rules::CHECK, failure.message);
                    finding.help = failure.help;
                    found.push(finding);
                }
                text.push(report::ready_line(file, &found, false));
                findings.extend(found.into_iter().map(|finding| (file.as_path(), finding)));
            }
        }
    }
    drop(waiting);
    let code = if findings.iter().any(|(_, finding)| finding.is_error()) { exit::INVALID } else { exit::SUCCESS };
    match args.format {
        Some(Format::Github) => {
            context.output.print_unwrapped(&render_github_commands(&findings));
            return Ok(code);
        }
        Some(Format::Sarif) => {
            context.output.print_object(&render_sarif(&findings));
            return Ok(code);
        }
        Some(Format::Text | Format::Json) | None => {}
    }
    let findings: Vec<Finding> = findings.into_iter().map(|(_, finding)| finding).collect();
    if context.output.json {
        let (findings, counts) = (findings_json(&findings), counts_json(&counts));
        let (cost, currency) = sum_costs(&costing);
        context.output.print_object(&CheckReport {
            findings,
            rows,
            counts,
            parts,
            cost,
            currency,
            campaigns,
            online: figures,
            exit: code,
        });
        return Ok(code);
    }
    let is_apart = |finding: &Finding| columns.is_none() || finding.is_error();
    context.output.print_findings(&findings.into_iter().filter(is_apart).collect::<Vec<_>>());
    if code == exit::SUCCESS
        && let [file] = args.files.as_slice()
    {
        let preview = format!("preview {}", suggested::shell_path(file));
        text.add_blank();
        text.push(StyledLine::next_step(
            context.output.command(suggested::with_gateway(preview, args.gateway.as_deref())),
        ));
    }
    context.output.print_done(text, code);
    Ok(code)
}

/// What the gateway says of the money for a campaign: for people, for programs.
struct OnlineCost {
    balance: Option<Balance>,
    /// What the messages cost.
    cost: Cost,
    figures: CostFigures,
}

/// The money of an account and of a campaign; nothing where it is not known. Amounts keep their digits.
#[derive(Debug, Default, Serialize)]
struct CostFigures {
    balance: Option<Amount>,
    currency: Option<String>,
    cost: Option<Amount>,
}

impl OnlineCost {
    fn from_answer(answer: &OnlineAnswer) -> Self {
        let OnlineAnswer { balance, cost, .. } = answer;
        let figures = CostFigures {
            balance: balance.as_ref().map(|balance| balance.amount),
            currency: balance.as_ref().map(|balance| balance.currency.clone()),
            cost: match cost {
                Cost::AtMost(cost) => Some(*cost),
                Cost::Unknown(_) => None,
            },
        };
        Self { balance: balance.clone(), cost: cost.clone(), figures }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct CheckReport {
    findings: Value,
    rows: u64,
    counts: Value,
    parts: u64,
    cost: Option<Amount>,
    currency: Option<String>,
    /// What each campaign would do, in the order of the files.
    campaigns: Vec<Value>,
    /// One object for one file; of several each that was asked about has its own, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "one_or_each")]
    online: Vec<CostFigures>,
    exit: u8,
}

fn one_or_each<S: Serializer>(figures: &Vec<CostFigures>, serializer: S) -> Result<S::Ok, S::Error> {
    match figures.as_slice() {
        [one] => one.serialize(serializer),
        each => each.serialize(serializer),
    }
}

/// What one file shows.
struct FileCheck {
    findings: Vec<Finding>,
    list: ListSurvey,
    /// What its messages cost, where the profile has prices.
    cost: Option<Cost>,
    /// The currency of those.
    currency: Option<String>,
    /// How many recipients get each variant, if there are variants.
    variants: Option<String>,
    /// What it would do.
    forecast: Forecast,
    /// Some of its messages.
    samples: Vec<Sample>,
    /// The campaign.
    inputs: Arc<Inputs>,
    /// What the gateway says of the money, where it was asked.
    online: Option<OnlineCost>,
}

async fn check_file(context: &Context, args: &CheckArgs, file: &Path) -> Result<FileCheck, CommandFailure> {
    let inputs = context.load_campaign(file, args.gateway.as_deref())?;
    let ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    let (state, profiles, now) = (context.state_folder()?, context.profiles(), Timestamp::now());
    let files = ProtectedFiles { state: &state, profiles: &profiles };
    let mut checked = check_campaign(&inputs, ledger.as_deref(), files, (&context.observer, now)).await?;
    context.output.add_hint(&mut checked);
    let CheckedCampaign { mut findings, list, cost, currency, .. } = checked;
    let online =
        if args.online { Some(fetch_online_costs(context, &inputs, &list.survey, &mut findings).await?) } else { None };
    let rows = list.survey.planned_rows();
    let variants = describe_variants(&inputs.campaign.brief, &list.survey, &rows);
    let samples = if context.output.json { Vec::new() } else { list.pick_samples(&inputs, &rows).unwrap_or_default() };
    let due = inputs.campaign.next_due_after(now);
    let forecast = Forecast::for_rows(&inputs.campaign, inputs.destination.profile(), (&list.survey, &rows), due);
    Ok(FileCheck { findings, list, cost, currency, variants, forecast, samples, inputs, online })
}

/// What several campaigns cost together; nothing where the cost of one is not known, or is in another currency.
fn sum_costs(costing: &[(Option<Cost>, Option<String>)]) -> (Option<Amount>, Option<String>) {
    let Some((_, currency)) = costing.first() else { return (None, None) };
    let each = costing.iter().map(|(cost, of)| match cost {
        Some(Cost::AtMost(cost)) if of == currency => Some(*cost),
        _ => None,
    });
    let cost = each.sum::<Option<Amount>>();
    (cost, currency.clone().filter(|_| cost.is_some()))
}

/// What the gateway says of a campaign.
async fn fetch_online_costs(
    context: &Context,
    inputs: &Inputs,
    survey: &Survey,
    findings: &mut Vec<Finding>,
) -> Result<OnlineCost, CommandFailure> {
    let Destination::Live(profile) = &inputs.destination else {
        let finding = Finding::new(&ONLINE_UNKNOWN, "the built-in sandbox has no account to check");
        findings.push(finding.help("specify the campaign's gateway: `--online --gateway NAME`"));
        return Ok(OnlineCost { balance: None, cost: Cost::Unknown(Vec::new()), figures: CostFigures::default() });
    };
    let cost = Cost::estimate(profile, &inputs.campaign.brief, &survey.by_size, &survey.planned_rows());
    let adapters = context.adapters(context.open_ledger_to_ask().await?)?;
    let answer = ask_online(&adapters, (inputs, profile), cost).await?;
    let online = OnlineCost::from_answer(&answer);
    findings.extend(answer.findings);
    Ok(online)
}
