//! `campaign check`: findings, forecast and settings of a campaign before it is sent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use serde_yaml::Mapping;

use super::args::{CheckArgs, Format};
use super::campaign_tests::{
    TestedFile, describe_counts, findings_from_failure, print_for_other_programs, test_campaigns, test_file, tests_json,
};
use super::context::Context;
use super::exit::CommandFailure;
use super::fix::fix_campaigns;
use super::forecast::SAMPLE_WIDTH;
use super::run::describe_variants;
use super::text::{SpanMeaning, StyledLine, StyledText, bad, caution, dim, good, plain, span, strong};
use super::{exit, forecast, suggested};
use campaign_core::domain::Amount;
use campaign_core::finding::{Finding, PROSE_WIDTH, Severity, escape_to_one_line, findings_json};
use campaign_engine::check::online::Cost;
use campaign_engine::check::rules::ONLINE_UNKNOWN;
use campaign_engine::check::{Survey, TestResult};
use campaign_engine::report::{Forecast, counts_json, format_count, format_thousands};
use campaign_gateway::Balance;
use campaign_ledger::StateCounts;
use campaign_manifest::{Destination, Setting, SettingOrigin, list_settings};
use campaign_runs::{
    CheckedCampaign, Inputs, ListSurvey, OnlineAnswer, ProtectedFiles, Sample, ask_online, check_campaign,
};

pub(super) async fn check_campaigns(context: &Context, args: CheckArgs) -> Result<u8, CommandFailure> {
    if args.show_settings {
        return show_settings(context, &args.files, args.gateway.as_deref());
    }
    if args.tests_only {
        return test_campaigns(context, &args).await;
    }
    let fixed = if args.fix { fix_campaigns(context, &args).await? } else { Vec::new() };
    let apply_strictness = |findings: Vec<Finding>| match args.strict {
        true => findings.into_iter().map(Finding::into_strict).collect(),
        false => findings,
    };
    let mut findings: Vec<(&Path, Finding)> = Vec::new();
    let (mut rows, mut parts, mut counts) = (0, 0, StateCounts::default());
    let (mut text, mut figures, mut costs) = (StyledText::new(), Vec::new(), Vec::new());
    let (mut campaigns, mut tests, mut tested_files) = (Vec::new(), Vec::new(), Vec::new());
    let spinner = context.output.show_spinner("Reading the list…");
    // At a terminal, the report contains the warnings. Elsewhere, all findings go to standard error.
    let columns = context.output.terminal_width().filter(|_| !context.output.quiet);
    for file in &args.files {
        if !text.is_empty() {
            text.add_blank();
        }
        match check_file(context, &args, file).await {
            Ok(mut checked) => {
                let has_errors = checked.findings.iter().any(Finding::is_error);
                checked.findings = apply_strictness(checked.findings);
                let survey = &checked.list.survey;
                rows += survey.recipients;
                parts += survey.parts;
                survey.count_by_state().iter().for_each(|(state, count)| counts.add(state, count));
                let is_distrusted = context.output.distrust_reason().is_some();
                let title = report_title(file, &checked, ReportTrust { is_ready: !has_errors, is_distrusted });
                text.extend(render_report(title, &checked, columns));
                tests.extend(tests_json(file, &checked.tests));
                tested_files.push(TestedFile::new(file, std::mem::take(&mut checked.tests), &checked.findings));
                let mut campaign = checked.forecast.to_json();
                campaign["file"] = file.display().to_string().into();
                campaigns.push(campaign);
                costs.push((checked.cost, checked.currency));
                figures.extend(checked.online.map(|online| online.figures));
                findings.extend(checked.findings.into_iter().map(|finding| (file.as_path(), finding)));
            }
            Err(failure) => {
                let file_findings = apply_strictness(findings_from_failure(context, failure)?);
                if args.format == Some(Format::Junit) {
                    // Tests of made-up recipients run even if the list was not fetched.
                    let tests = test_file(context, &args, file).await.unwrap_or_default();
                    tested_files.push(TestedFile::new(file, tests, &file_findings));
                }
                text.push(not_ready_line(file, &file_findings, false));
                findings.extend(file_findings.into_iter().map(|finding| (file.as_path(), finding)));
            }
        }
    }
    drop(spinner);
    let code = if findings.iter().any(|(_, finding)| finding.is_error()) { exit::INVALID } else { exit::SUCCESS };
    if print_for_other_programs(&context.output, args.format, &findings, &tested_files) {
        return Ok(code);
    }
    let fixable = if args.fix { Vec::new() } else { list_fixable_files(&findings) };
    let findings: Vec<Finding> = findings.into_iter().map(|(_, finding)| finding).collect();
    if context.output.json {
        let (findings, counts) = (findings_json(&findings), counts_json(&counts));
        let (cost, currency) = sum_costs(&costs);
        context.output.print_object(&CheckReport {
            findings,
            rows,
            counts,
            parts,
            cost,
            currency,
            campaigns,
            tests,
            online: figures,
            fixed,
            exit: code,
        });
        return Ok(code);
    }
    let is_separate = |finding: &Finding| columns.is_none() || finding.is_error();
    context.output.print_findings(&findings.into_iter().filter(is_separate).collect::<Vec<_>>());
    if code == exit::SUCCESS
        && context.output.distrust_reason().is_none()
        && let [file] = args.files.as_slice()
    {
        let preview = format!("preview {}", suggested::shell_path(file));
        text.add_blank();
        text.push(StyledLine::next_step(
            context.output.command(suggested::with_gateway(preview, args.gateway.as_deref())),
        ));
    }
    if !fixable.is_empty() {
        let files = fixable.into_iter().map(suggested::shell_path).collect::<Vec<_>>().join(" ");
        let check = suggested::with_gateway(format!("check {files}"), args.gateway.as_deref());
        text.add_blank();
        text.push(StyledLine::next_step(context.output.command(format!("{check} --fix"))));
    }
    context.output.print_done(text, code);
    Ok(code)
}

/// Lists the campaign files with findings that `--fix` can fix.
fn list_fixable_files<'f>(findings: &[(&'f Path, Finding)]) -> Vec<&'f Path> {
    let mut files: Vec<&Path> = Vec::new();
    for (file, finding) in findings {
        if finding.placed_fix().is_some() && !files.contains(file) {
            files.push(file);
        }
    }
    files
}

/// The balance of an account, as the gateway reports it, and the estimated cost of a campaign.
struct OnlineCost {
    balance: Option<Balance>,
    /// The estimated cost of the messages.
    cost: Cost,
    /// The same figures for JSON.
    figures: CostFigures,
}

/// The balance of an account and the cost of a campaign, if known. Amounts keep their digits.
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

/// The JSON output of `check`.
#[derive(Serialize)]
struct CheckReport {
    findings: Value,
    rows: u64,
    counts: Value,
    parts: u64,
    cost: Option<Amount>,
    currency: Option<String>,
    /// The forecast of each campaign, in the order of the files.
    campaigns: Vec<Value>,
    /// The results of the tests in the campaign files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tests: Vec<Value>,
    /// Balances and estimated costs: one object for one file, otherwise an array in the order of the files.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_one_or_all")]
    online: Vec<CostFigures>,
    /// The fixes that `--fix` wrote, by file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixed: Vec<Value>,
    exit: u8,
}

fn serialize_one_or_all<S: Serializer>(figures: &Vec<CostFigures>, serializer: S) -> Result<S::Ok, S::Error> {
    match figures.as_slice() {
        [single] => single.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// The result of the check of one file.
struct FileCheck {
    findings: Vec<Finding>,
    list: ListSurvey,
    /// The cost of the messages, if the profile has prices.
    cost: Option<Cost>,
    /// The currency of the prices.
    currency: Option<String>,
    /// The number of recipients of each variant, if there are variants.
    variants: Option<String>,
    forecast: Forecast,
    /// The results of the tests in the campaign file.
    tests: Vec<TestResult>,
    /// Sample messages.
    samples: Vec<Sample>,
    inputs: Arc<Inputs>,
    /// The balance and the estimated cost, with `--online`.
    online: Option<OnlineCost>,
}

async fn check_file(context: &Context, args: &CheckArgs, file: &Path) -> Result<FileCheck, CommandFailure> {
    let inputs = context.load_campaign(file, args.gateway.as_deref())?;
    let ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    let (state, profiles, now) = (context.state_folder()?, context.profiles(), Timestamp::now());
    let files = ProtectedFiles { state: &state, profiles: &profiles };
    let mut checked = check_campaign(&inputs, ledger.as_deref(), files, &context.observer, now).await?;
    context.output.add_hint(&mut checked);
    let CheckedCampaign { mut findings, list, cost, currency, tests, .. } = checked;
    let online =
        if args.online { Some(ask_about_account(context, &inputs, &list.survey, &mut findings).await?) } else { None };
    let rows = list.survey.planned_rows();
    let variants = describe_variants(&inputs.campaign.brief, &list.survey, &rows);
    let samples = if context.output.json { Vec::new() } else { list.pick_samples(&inputs, &rows).unwrap_or_default() };
    let due = inputs.campaign.next_due_after(now);
    let forecast = Forecast::for_rows(&inputs.campaign, inputs.destination.profile(), &list.survey, &rows, due);
    Ok(FileCheck { findings, list, cost, currency, variants, forecast, tests, samples, inputs, online })
}

/// Sums the costs of several campaigns, and returns the sum with the currency. Returns no sum if any cost is unknown or
/// the currencies differ.
fn sum_costs(costs: &[(Option<Cost>, Option<String>)]) -> (Option<Amount>, Option<String>) {
    let Some((_, currency)) = costs.first() else { return (None, None) };
    let known_costs = costs.iter().map(|(cost, other_currency)| match cost {
        Some(Cost::AtMost(cost)) if other_currency == currency => Some(*cost),
        _ => None,
    });
    let cost = known_costs.sum::<Option<Amount>>();
    (cost, currency.clone().filter(|_| cost.is_some()))
}

/// Asks the gateway for the balance and the sender names, adds the findings about them, and estimates the cost.
async fn ask_about_account(
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
    let cost = Cost::estimate(profile, &inputs.campaign.brief, survey, &survey.planned_rows());
    let adapters = context.adapters(context.open_ledger_for_inquiry().await?)?;
    let answer = ask_online(&adapters, inputs, profile, cost).await?;
    let online = OnlineCost::from_answer(&answer);
    findings.extend(answer.findings);
    Ok(online)
}

/// Formats the first line of the report about a campaign that is not ready, with the reason. `is_strict` means that
/// only `--strict` makes the findings errors.
fn not_ready_line(file: &Path, findings: &[Finding], is_strict: bool) -> StyledLine {
    let errors = findings.iter().filter(|finding| finding.is_error()).count() as u64;
    let name = strong(file.display().to_string());
    // Without an error, the campaign is not ready only because its list was not fetched.
    if errors == 0 {
        return StyledLine::new([caution("! "), name, plain(" has no errors so far, but its list was not checked")]);
    }
    match is_strict {
        true => {
            StyledLine::new([bad("✗ "), name, plain(format!(" fails `--strict`: {}", format_count(errors, "warning")))])
        }
        false => {
            StyledLine::new([bad("✗ "), name, plain(format!(" cannot be sent: {}", format_count(errors, "error")))])
        }
    }
}

/// The facts that limit the trust in a report.
struct ReportTrust {
    /// Whether the campaign has no errors, except warnings that `--strict` turns into errors.
    is_ready: bool,
    /// Whether the ledger cannot be trusted, so that the figures might be wrong.
    is_distrusted: bool,
}

/// Formats the first line of the report about a campaign.
fn report_title(file: &Path, checked: &FileCheck, trust: ReportTrust) -> StyledLine {
    let FileCheck { findings, forecast, tests, .. } = checked;
    let name = strong(file.display().to_string());
    if findings.iter().any(Finding::is_error) {
        return not_ready_line(file, findings, trust.is_ready);
    }
    if trust.is_distrusted {
        return StyledLine::new([caution("! "), name, plain(" might not be ready: the ledger cannot be trusted")]);
    }
    let recipients = format_count(forecast.rows, "recipient");
    if forecast.messages == 0 {
        let message = format!(" has no messages to send: 0 of {recipients}");
        return StyledLine::new([caution("! "), name, plain(message)]);
    }
    let mut ready = format!(" is ready: {} of {recipients}", format_thousands(forecast.messages));
    if !tests.is_empty() {
        ready += &format!(", {}", describe_counts(tests));
    }
    let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning).count() as u64;
    if warnings > 0 {
        ready += &format!(", {}", format_count(warnings, "warning"));
    }
    StyledLine::new([good("✓ "), name, plain(ready)])
}

/// Renders the report about one campaign. At a terminal, `columns` is the width, and the report includes warnings and
/// notes.
fn render_report(title: StyledLine, checked: &FileCheck, columns: Option<usize>) -> StyledText {
    let FileCheck { findings, cost, forecast, samples, inputs, variants, online, .. } = checked;
    let mut text = StyledText::from(title);
    let mut forecast = forecast.clone();
    let balance = online.as_ref().and_then(|online| online.balance.as_ref());
    if forecast.currency.is_none() {
        forecast.currency = balance.map(|balance| balance.currency.clone());
    }
    forecast::add_recipients(&mut text, &forecast, inputs);
    if forecast.messages > 0 {
        forecast::add_heading(&mut text, "Messages");
        forecast::add_messages(&mut text, &forecast);
        let cost = online.as_ref().map(|online| &online.cost).or(cost.as_ref());
        if let Some(Cost::Unknown(channels)) = cost
            && !channels.is_empty()
        {
            forecast::add_labelled(&mut text, "cost", [forecast::describe_unknown_cost(channels).into()]);
        }
        if let Some(variants) = variants {
            forecast::add_labelled(&mut text, "variants", [variants.as_str().into()]);
        }
    }
    if let Some(balance) = balance {
        forecast::add_labelled(&mut text, "balance", [balance.to_string().into()]);
    }
    if let Some(columns) = columns {
        add_findings(&mut text, findings, Severity::Warning, columns);
        add_findings(&mut text, findings, Severity::Note, columns);
    }
    forecast::add_samples(&mut text, samples, columns.unwrap_or(SAMPLE_WIDTH));
    text
}

/// Adds the findings of a severity.
fn add_findings(text: &mut StyledText, findings: &[Finding], severity: Severity, columns: usize) {
    /// The width of the indent and the mark of a finding.
    const START_WIDTH: usize = 4;
    let mut listed = findings.iter().filter(|finding| finding.severity == severity).peekable();
    if listed.peek().is_none() {
        return;
    }
    let (title, mark) = match severity {
        Severity::Warning => ("Warnings", span(SpanMeaning::Caution, "! ")),
        Severity::Note | Severity::Error => ("Notes", span(SpanMeaning::Dim, "· ")),
    };
    forecast::add_heading(text, title);
    for finding in listed {
        let message = escape_to_one_line(&finding.message);
        let rule = finding.rule.id;
        // The rule is aligned with the right edge if it fits.
        let width = START_WIDTH + console::measure_text_width(&message) + rule.len();
        let gap = " ".repeat(columns.min(PROSE_WIDTH).saturating_sub(width).max(2));
        text.push(StyledLine::new([mark.clone(), plain(message), plain(gap), dim(rule)]).with_indent(2));
        if let Some(place) = &finding.place {
            let location =
                format!("{}:{}:{}", place.source.path().display(), place.line_number(), place.column_number());
            text.push(StyledLine::new([dim(location)]).with_indent(4).unbroken());
        }
        if let Some(help) = &finding.help {
            for (index, line) in help.lines().enumerate() {
                let label = if index == 0 { "help: " } else { "" };
                text.add_line(4, [span(SpanMeaning::Next, label), plain(line)]);
            }
        }
    }
}

/// Prints every setting in effect and its origin, as YAML or as one JSON object. With several campaigns, the settings
/// are listed by file.
fn show_settings(context: &Context, files: &[PathBuf], gateway: Option<&str>) -> Result<u8, CommandFailure> {
    let mut all = Vec::new();
    for file in files {
        let inputs = context.load_campaign(file, gateway)?;
        context.output.print_findings(&inputs.warnings);
        let settings = list_settings(&inputs.campaign, inputs.destination.profile(), gateway.is_some());
        all.push((file.display().to_string(), settings));
    }
    if context.output.json {
        let file_json = |(file, settings): &(String, Vec<Setting>)| {
            let settings: Vec<Value> = settings.iter().map(setting_json).collect();
            json!({ "file": file, "settings": settings })
        };
        let files: Vec<Value> = all.iter().map(file_json).collect();
        context.output.print_object(&json!({ "files": files, "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let document: Mapping = match all.as_slice() {
        [(_, settings)] => settings_mapping(settings),
        several => {
            several.iter().map(|(file, settings)| (file.as_str().into(), settings_mapping(settings).into())).collect()
        }
    };
    // Values that were read from YAML can always be written as YAML.
    context.output.print_unwrapped(&serde_yaml::to_string(&document).unwrap_or_default());
    Ok(exit::SUCCESS)
}

fn settings_mapping(settings: &[Setting]) -> Mapping {
    let value = |setting: &Setting| {
        let value = serde_yaml::to_value(&setting.value).unwrap_or_default();
        Mapping::from_iter([("value".into(), value), ("from".into(), describe_origin(&setting.origin).into())])
    };
    settings.iter().map(|setting| (setting.key.as_str().into(), value(setting).into())).collect()
}

fn setting_json(setting: &Setting) -> Value {
    json!({ "key": setting.key, "value": setting.value, "from": describe_origin(&setting.origin) })
}

/// Describes the origin of a setting.
fn describe_origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Written(place) => {
            format!("{}:{}:{}", place.source.path().display(), place.line_number(), place.column_number())
        }
        SettingOrigin::Default => "default".to_owned(),
        SettingOrigin::Follows(what) => format!("default, derived from {what}"),
        SettingOrigin::Profile(name) => format!("profile {name}"),
        SettingOrigin::CommandLine => "command line".to_owned(),
    }
}
