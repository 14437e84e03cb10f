//! `campaign check`: everything that can be known before sending.

mod settings;

use std::path::Path;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::args::{CheckArgs, Format};
use super::context::Context;
use super::events::money;
use super::exit;
use super::failure::Failure;
use super::run::variants;
use super::suggested;
use crate::check::Survey;
use crate::check::online::Cost;
use crate::check::rules::{NEVER_SENDS, ONLINE_UNKNOWN};
use crate::domain::Amount;
use crate::finding::{Finding, Rule, findings_json, github, one_line, rules, sarif};
use crate::ledger::StateCounts;
use crate::manifest::Destination;
use crate::report::{Forecast, cost_words, counts_json, counts_line, plural};
use crate::runs::{CheckedCampaign, Inputs, ListSurvey, OnlineAnswer, OwnFiles, ask_online, check_campaign};

pub(super) async fn check(context: &Context, args: CheckArgs) -> Result<u8, Failure> {
    if args.show_settings {
        return settings::show(context, &args.files, args.gateway.as_deref());
    }
    let strictly = |findings: Vec<Finding>| match args.strict {
        true => findings.into_iter().map(Finding::strictly).collect(),
        false => findings,
    };
    let mut findings: Vec<(&Path, Finding)> = Vec::new();
    let (mut rows, mut parts, mut counts) = (0, 0, StateCounts::default());
    let (mut text, mut figures, mut costing) = (String::new(), Vec::new(), Vec::new());
    let mut campaigns = Vec::new();
    for file in &args.files {
        let name = file.display();
        match one(context, &args, file).await {
            Ok(FileCheck { findings: found, list, cost, currency, divided, forecast, online }) => {
                let survey = &list.survey;
                let fine = !found.iter().any(Finding::is_error);
                let found = strictly(found);
                rows += survey.recipients;
                parts += survey.parts;
                survey.counts().iter().for_each(|(state, count)| counts.add(state, count));
                let is = |rule: &Rule| found.iter().any(|finding| finding.rule == rule);
                let in_the_way = is(&rules::RESULTS_OVERWRITE);
                let verdict = match found.iter().any(Finding::is_error) {
                    true if in_the_way => "its results have no place",
                    true if is(&rules::RUN_REFUSED) => "`run` would refuse it",
                    true if is(&NEVER_SENDS) || is(&rules::UNTIL) => "it can never send",
                    true if fine => "warnings, which `--strict` refuses",
                    true => "the gateway says no",
                    false => "fine",
                };
                let (rows, how) = (plural(survey.recipients, "row"), counts_line(&survey.counts()));
                let parts = plural(survey.parts, "part");
                let costs = cost.as_ref().map(|cost| format!(" · {}", cost_words(cost, currency.as_deref())));
                let costs = costs.unwrap_or_default();
                costing.push((cost, currency));
                text += &format!("{name}: {verdict} · {rows}: {how} · {parts}{costs}\n");
                text += &forecast.lines().iter().map(|line| format!("  {line}\n")).collect::<String>();
                let mut told = forecast.json();
                told["file"] = name.to_string().into();
                campaigns.push(told);
                text += &divided.map(|line| format!("  {}\n", one_line(&line))).unwrap_or_default();
                if let Some(online) = online {
                    text += &online.money.map(|money| format!("  {}\n", one_line(&money))).unwrap_or_default();
                    figures.push(online.figures);
                }
                findings.extend(found.into_iter().map(|finding| (file.as_path(), finding)));
            }
            Err(failure) => {
                let failure = failure.explain(&context.output.options);
                if failure.exit != exit::WRONG {
                    return Err(Failure::Explained(failure));
                }
                text += &format!("{name}: {}\n", one_line(&failure.message.replace("; nothing was sent", "")));
                let alone = failure.findings.is_empty();
                findings.extend(strictly(failure.findings).into_iter().map(|finding| (file.as_path(), finding)));
                if alone {
                    findings.push((file, Finding::new(&rules::CHECK, failure.message)));
                }
            }
        }
    }
    let code = if findings.iter().any(|(_, finding)| finding.is_error()) { exit::WRONG } else { exit::FINE };
    match args.format {
        Some(Format::Github) => {
            context.output.result(&github(&findings));
            return Ok(code);
        }
        Some(Format::Sarif) => {
            context.output.object(&sarif(&findings));
            return Ok(code);
        }
        Some(Format::Text | Format::Json) | None => {}
    }
    let findings: Vec<Finding> = findings.into_iter().map(|(_, finding)| finding).collect();
    if context.output.json {
        let (findings, counts) = (findings_json(&findings), counts_json(&counts));
        let (cost, currency) = sum(&costing);
        context.output.object(&CheckReport {
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
    context.output.findings(&findings);
    if code == exit::FINE
        && let [file] = args.files.as_slice()
    {
        let preview = format!("preview {}", suggested::file(file));
        text += &format!("next: {}\n", context.output.command(suggested::through(preview, args.gateway.as_deref())));
    }
    context.output.done(&text, code);
    Ok(code)
}

/// What the gateway says of the money for a campaign: for people, for programs.
struct Online {
    money: Option<String>,
    figures: Figures,
}

/// The money of an account and of a campaign; nothing where it is not known. Amounts keep their digits.
#[derive(Debug, Default, Serialize)]
struct Figures {
    balance: Option<Amount>,
    currency: Option<String>,
    cost: Option<Amount>,
}

impl Online {
    fn of(answer: &OnlineAnswer) -> Self {
        let OnlineAnswer { balance, cost, .. } = answer;
        let figures = Figures {
            balance: balance.as_ref().map(|balance| balance.amount),
            currency: balance.as_ref().map(|balance| balance.currency.clone()),
            cost: match cost {
                Cost::AtMost(cost) => Some(*cost),
                Cost::Unknown(_) => None,
            },
        };
        Self { money: balance.as_ref().map(|balance| money(balance, cost)), figures }
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
    online: Vec<Figures>,
    exit: u8,
}

fn one_or_each<S: Serializer>(figures: &Vec<Figures>, serializer: S) -> Result<S::Ok, S::Error> {
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
    /// How many people get each variant, where there are some.
    divided: Option<String>,
    /// What it would do.
    forecast: Forecast,
    /// What the gateway says of the money, where it was asked.
    online: Option<Online>,
}

async fn one(context: &Context, args: &CheckArgs, file: &Path) -> Result<FileCheck, Failure> {
    let inputs = context.load(file, args.gateway.as_deref())?;
    let ledger = context.existing_ledger().await?;
    let inputs = context.listed(inputs, args.fetch, ledger.as_deref()).await?;
    let (state, profiles, now) = (context.state()?, context.profiles(), Timestamp::now());
    let files = OwnFiles { state: &state, profiles: &profiles };
    let explain = |refused| context.output.explain(refused).message;
    let checked = check_campaign(&inputs, ledger.as_deref(), files, (&context.observer, now), explain).await?;
    let CheckedCampaign { mut findings, list, cost, currency } = checked;
    let online = if args.online { Some(online(context, &inputs, &list.survey, &mut findings).await?) } else { None };
    let rows = list.survey.planned_rows();
    let divided = variants(&inputs.campaign.brief, &list.survey, &rows);
    let due = inputs.campaign.due_after(now);
    let forecast = Forecast::of(&inputs.campaign, inputs.destination.profile(), (&list.survey, &rows), due);
    Ok(FileCheck { findings, list, cost, currency, divided, forecast, online })
}

/// What several campaigns cost together; nothing where the cost of one is not known, or is in another currency.
fn sum(costing: &[(Option<Cost>, Option<String>)]) -> (Option<Amount>, Option<String>) {
    let Some((_, currency)) = costing.first() else { return (None, None) };
    let each = costing.iter().map(|(cost, of)| match cost {
        Some(Cost::AtMost(cost)) if of == currency => Some(*cost),
        _ => None,
    });
    let cost = each.sum::<Option<Amount>>();
    (cost, currency.clone().filter(|_| cost.is_some()))
}

/// What the gateway says of a campaign.
async fn online(
    context: &Context,
    inputs: &Inputs,
    survey: &Survey,
    findings: &mut Vec<Finding>,
) -> Result<Online, Failure> {
    let Destination::Live(profile) = &inputs.destination else {
        let finding = Finding::new(&ONLINE_UNKNOWN, "the built-in sandbox has no account to ask");
        findings.push(finding.help("name the gateway that the campaign is for: `--online --gateway NAME`"));
        return Ok(Online { money: None, figures: Figures::default() });
    };
    let cost = Cost::of(profile, &inputs.campaign.brief, &survey.by_size, &survey.planned_rows());
    let adapters = context.adapters(context.asking_ledger().await?)?;
    let answer = ask_online(&adapters, (inputs, profile), cost).await?;
    let online = Online::of(&answer);
    findings.extend(answer.findings);
    Ok(online)
}
