//! `campaign plan` and `campaign approve`: record, under a digest, what a run would send, and approve it.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::args::{ApproveArgs, PlanArgs};
use super::consent::AGAIN_WARNING;
use super::context::Context;
use super::exit::CommandFailure;
use super::forecast::SAMPLE_WIDTH;
use super::run::describe_variants;
use super::state_folder::LedgerPurpose;
use super::suggested::{shell_path, with_gateway};
use super::text::{StyledLine, StyledText, copyable, plain, strong};
use super::{consent, exit, forecast, page_file};
use campaign_core::finding::quote_for_shell;
use campaign_engine::check::online::Cost;
use campaign_engine::report::{format_count, format_local_minute};
use campaign_ledger::{Approval, Plan, RowState};
use campaign_runs::draft::KeyFile;
use campaign_runs::{
    Adapters, CreatedPlan, Error, Inputs, PendingRequest, PlanRefusal, PlanReview, PlannedCampaign, PrivateKey, Round,
    RunRequest, StandingApproval, approve_pending_request, find_pending_request, review_plan, short_digest,
};
use campaign_server::connector::fetch_pending_call;
use campaign_server::web::files::{MessageSelection, PlanPage, render_plan_page};

/// The number of messages on the page.
const PAGE_SAMPLES: usize = 5;

pub(super) async fn make_plan(context: &Context, args: &PlanArgs) -> Result<u8, CommandFailure> {
    if let Some(path) = &args.out {
        page_file::check_page_path(path)?;
    }
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let request = RunRequest {
        rows: args.rows.clone(),
        limit: args.limit,
        round: args.again.map_or(Round::Same, Round::Again),
        up_to: args.up_to,
        up_to_abroad: args.up_to_abroad,
        ..RunRequest::default()
    };
    let purpose = LedgerPurpose::from_destination(&inputs.destination);
    let adapters = context.adapters(context.open_ledger(purpose).await?)?;
    let inputs = context.fetch_list(inputs, args.list.fetch, Some(adapters.ledger.as_ref())).await?;
    let spinner = context.output.show_spinner("Reading the list…");
    let plan = campaign_runs::create_plan(&adapters, &inputs, &request).await?;
    drop(spinner);
    if let Some(path) = &args.out {
        write_plan_page(context, args, &inputs, &plan, path)?;
    }
    let code = report_plan(context, args, &inputs, &plan);
    if let Some(path) = args.out.as_ref().filter(|_| args.page.open) {
        page_file::open_page(&context.output, path).await;
    }
    Ok(code)
}

/// Writes the plan as a page for the approver.
fn write_plan_page(
    context: &Context,
    args: &PlanArgs,
    inputs: &Inputs,
    plan: &CreatedPlan,
    path: &Path,
) -> Result<(), CommandFailure> {
    let digest = short_digest(&plan.digest);
    let approve = inputs.destination.profile().map(|profile| {
        let key = if profile.approval.is_some() { " --key FILE" } else { "" };
        context.output.command(format!("approve {digest}{key}"))
    });
    let run = suggest_run(args, plan, inputs);
    let selection = MessageSelection { rows: args.rows.as_ref(), max: PAGE_SAMPLES, unmasked: args.page.unmasked };
    let run = context.output.command(format!("{run} --plan {digest}"));
    let page = PlanPage { inputs, plan, selection, approve, run, now: Timestamp::now() };
    let (html, _) = render_plan_page(&page, args.page.page_language())?;
    page_file::write_page(path, &html)
}

fn report_plan(context: &Context, args: &PlanArgs, inputs: &Inputs, plan: &CreatedPlan) -> u8 {
    if context.output.json {
        let mut object = json!(plan.figures());
        object["forecast"] = plan.forecast.to_json();
        if let Some(path) = &args.out {
            object["html"] = json!(path);
        }
        object["exit"] = exit::SUCCESS.into();
        context.output.print_object(&object);
        return exit::SUCCESS;
    }
    context.output.print_findings(&plan.findings);
    let (planned, brief) = (&plan.planned, &inputs.campaign.brief);
    let destination = match inputs.destination.profile() {
        Some(profile) => format!("through {} ({})", profile.name, profile.format_hosts()),
        None => "a rehearsal in the built-in sandbox".to_owned(),
    };
    let digest = short_digest(&plan.digest);
    let mut text = StyledText::from(StyledLine::new([
        strong(format!("plan {digest}")),
        format!(" · {} · {destination}", brief.name).into(),
    ]));
    forecast::add_recipients(&mut text, &plan.forecast, inputs);
    if plan.forecast.messages > 0 {
        forecast::add_heading(&mut text, "Messages");
        forecast::add_messages(&mut text, &plan.forecast);
    }
    if let Some(Cost::Unknown(channels)) = &plan.cost {
        forecast::add_labelled(&mut text, "cost", [forecast::describe_unknown_cost(channels).into()]);
    }
    if let Some(variants) = describe_variants(brief, &plan.list.survey, &plan.rows) {
        forecast::add_labelled(&mut text, "variants", [variants.into()]);
    }
    if let Some(hours) = &planned.options.hours {
        forecast::add_labelled(&mut text, "hours", [hours.as_str().into()]);
    }
    if planned.options.again {
        text.add_line(4, [AGAIN_WARNING.into()]);
    }
    let samples = plan.list.pick_samples(inputs, &plan.rows).unwrap_or_default();
    forecast::add_samples(&mut text, &samples, context.output.terminal_width().unwrap_or(SAMPLE_WIDTH));
    text.add_blank();
    text.extend(consent::describe_resources(&plan.resources, inputs.campaign.delivery.on_in_doubt));
    text.add_blank();
    text.add_line(0, [format!("Nothing was sent. The plan is kept for {} days.", Plan::KEPT_DAYS).into()]);
    if let Some(path) = &args.out {
        text.push(StyledLine::new([format!("page: {}", path.display()).into()]).unbroken());
    }
    let next = match plan.forecast.messages {
        0 => with_gateway(format!("check {}", shell_path(&args.file)), args.gateway.as_deref()),
        _ => {
            let run = suggest_run(args, plan, inputs);
            format!("{run} --plan {digest}")
        }
    };
    text.push(StyledLine::next_step(context.output.command(next)));
    context.output.print_result(text);
    exit::SUCCESS
}

/// Suggests the `run` command that sends a new plan. The caller adds the `--plan` option.
fn suggest_run(args: &PlanArgs, plan: &CreatedPlan, inputs: &Inputs) -> String {
    let abroad = inputs.destination.profile().map_or(0, |profile| plan.list.count_abroad(profile));
    run_command_line(&args.file, args.gateway.as_deref(), &plan.planned, inputs, abroad)
}

/// Builds the `run` command that sends the planned campaign. The caller adds the `--plan` option. For a campaign with a
/// schedule, the command includes `--now` unless the plan is for a scheduled run.
///
/// `abroad` counts the recipients of the edition who are outside the profile's `home` countries.
fn run_command_line(
    campaign: &Path,
    gateway: Option<&str>,
    planned: &PlannedCampaign,
    inputs: &Inputs,
    abroad: u64,
) -> String {
    let mut run = with_gateway(format!("run {}", shell_path(campaign)), gateway);
    if inputs.campaign.schedule.is_some() && planned.options.occurrence.is_none() {
        run += " --now";
    }
    let mut add = |name: &str, value: Option<String>| run.extend(value.map(|value| format!(" --{name} {value}")));
    let (options, recipients) = (&planned.options, planned.counts.get(RowState::Planned));
    add("rows", options.rows.clone());
    add("limit", options.limit.map(|limit| limit.to_string()));
    add("again", options.again.then(|| recipients.to_string()));
    let profile = inputs.destination.profile();
    let recipients_limit = profile.and_then(|profile| profile.recipients_limit).map(u64::from);
    add("up-to", recipients_limit.filter(|limit| recipients > *limit).map(|_| recipients.to_string()));
    let abroad_limit = profile.and_then(|profile| profile.abroad_limit).map(u64::from);
    add("up-to-abroad", abroad_limit.filter(|limit| abroad > *limit).map(|_| abroad.to_string()));
    run
}

pub(super) async fn approve_plan(context: &Context, args: &ApproveArgs) -> Result<u8, CommandFailure> {
    if let Some(name) = &args.new_key {
        return create_key_pair(context, name);
    }
    let digest = args.digest.as_deref().unwrap_or_default();
    let adapters = context.adapters(context.open_ledger(LedgerPurpose::SharedRecords).await?)?;
    if let Some((digest, pending)) = find_pending_request(adapters.ledger.as_ref(), digest).await? {
        return approve_single_request(context, &adapters, &digest, &pending).await;
    }
    let key = args.key.as_deref().map(PrivateKey::read).transpose()?;
    let review = review_plan(&adapters, digest).await?;
    let until = |time| Timestamp::now().checked_add(time).map_err(|error| CommandFailure::invalid(error.to_string()));
    let standing = match args.standing.zip(args.up_to) {
        Some((time, up_to)) => Some(StandingApproval { until: until(time)?, up_to }),
        None => None,
    };
    // Without a terminal, the key alone approves the plan. At a terminal, the key's owner sees the plan and confirms
    // it.
    let is_confirmed = key.is_some() && !context.output.can_ask();
    let consent = consent::choose_consent(&context.output, is_confirmed);
    let approval = campaign_runs::approve_plan(&adapters, &review, key.as_ref(), standing, consent.as_ref()).await?;
    report_approval(context, &review, &approval, key.is_some());
    Ok(exit::SUCCESS)
}

fn report_approval(context: &Context, review: &PlanReview, approval: &Approval, is_signed: bool) {
    if context.output.json {
        context.output.print_object(&approval_json(&review.digest, approval, is_signed));
        return;
    }
    let Approval { digest, by, until, token, standing, .. } = approval;
    if *standing {
        let name = &review.inputs.campaign.brief.name;
        let message = format!("{by} approved all scheduled runs of {name} until {}", format_local_minute(*until));
        context.output.print_done(StyledLine::success([plain(message)]), exit::SUCCESS);
        return;
    }
    let (planned, digest) = (&review.planned, short_digest(digest));
    if planned.options.tests_to.is_some() {
        let messages = format_count(planned.messages, "test message");
        let message = format!("{by} approved {digest} for {messages}, to be sent once");
        let mut text = StyledText::from(StyledLine::success([plain(message)]));
        text.add_line(0, [plain("Repeat the `campaign test` command to send them.")]);
        context.output.print_done(text, exit::SUCCESS);
        return;
    }
    let (file, gateway) = (&planned.inputs.campaign_file, &planned.inputs.brief.gateway);
    let profile = review.inputs.destination.profile();
    let abroad = profile.map_or(0, |profile| review.survey.count_abroad(profile));
    let run = run_command_line(file, Some(gateway), planned, &review.inputs, abroad);
    let mut text = StyledText::from(StyledLine::success([plain(format!("{by} approved {digest} for one run"))]));
    if is_signed {
        let elsewhere = context.output.command(format!("{run} --approval {token}"));
        text.add_line(0, [plain("To send it from another machine: "), copyable(elsewhere)]);
    }
    match planned.options.occurrence {
        Some(_) => text.add_line(0, [plain("`campaign serve` will now send it.")]),
        None => text.push(StyledLine::next_step(context.output.command(format!("{run} --plan {digest}")))),
    }
    context.output.print_done(text, exit::SUCCESS);
}

/// Creates a key pair: the private key in a new file, and the public key for the profile.
fn create_key_pair(context: &Context, name: &str) -> Result<u8, CommandFailure> {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_allowed) {
        return Err(CommandFailure::invalid(format!(
            "{} is not a valid key name: use letters, digits, `-` and `_`",
            quote_for_shell(name)
        )));
    }
    let path = PathBuf::from(format!("{name}.key"));
    let (line, public) = PrivateKey::generate_key_pair()?;
    let file = KeyFile::write(&path, &line).map_err(|error| CommandFailure::invalid(error.to_string()))?;
    file.keep();
    if context.output.json {
        context.output.print_object(&json!({ "file": path, "public": public.to_string(), "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let mut text = StyledText::new();
    text.push(StyledLine::success([plain("private key: "), copyable(path.display().to_string())]));
    text.add_line(
        0,
        [plain(
            "Store it where the person who sends the campaign cannot read it. Add the public key to the profile in \
             gateways.yaml:",
        )],
    );
    text.push(
        StyledLine::new([plain(format!("approval: {{ above: 1000, by: {{ {name}: {public} }} }}"))])
            .with_indent(2)
            .unbroken(),
    );
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

/// Approves a single request of an assistant. The process that waits for the approval supplies the details.
async fn approve_single_request(
    context: &Context,
    adapters: &Adapters,
    digest: &str,
    pending: &PendingRequest,
) -> Result<u8, CommandFailure> {
    let not_found = || Error::Plan(PlanRefusal::Gone { digest: digest.to_owned() });
    let pending_call = fetch_pending_call(pending, digest).await.ok_or_else(not_found)?;
    let consent = consent::choose_consent(&context.output, false);
    let approval = approve_pending_request(adapters, digest, pending, &pending_call, consent.as_ref()).await?;
    if context.output.json {
        context.output.print_object(&approval_json(&approval.digest, &approval, false));
        return Ok(exit::SUCCESS);
    }
    let (digest, by) = (short_digest(digest), &approval.by);
    context.output.print_result(format!(
        "{by} approved request {digest}; the assistant can now repeat it once, within an hour\n"
    ));
    Ok(exit::SUCCESS)
}

/// An approval as JSON. A typed approval has no token, because the token would prove nothing.
fn approval_json(digest: &str, approval: &Approval, is_signed: bool) -> Value {
    let Approval { by, up_to, until, token, standing, .. } = approval;
    let token = is_signed.then_some(token);
    json!({
        "digest": digest, "by": by, "up_to": up_to, "until": until.to_string(), "standing": standing, "token": token,
        "exit": exit::SUCCESS,
    })
}
