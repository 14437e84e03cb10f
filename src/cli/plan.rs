//! `campaign plan`: what a run would send, kept under a digest that `run --plan` and `approve` take.

use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::args::PlanArgs;
use super::consent::AGAIN_WARNING;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::forecast::{self, SAMPLE_WIDTH};
use super::page;
use super::resources;
use super::run::describe_variants;
use super::suggested::{shell_path, with_gateway};
use super::text::{StyledLine, StyledText, strong};
use crate::check::online::Cost;
use crate::ledger::{Plan, RowState};
use crate::manifest::Profile;
use crate::runs::{self, CreatedPlan, Inputs, PlannedCampaign, Round, RunRequest, short_digest};
use crate::web::files::{MessageSelection, PlanPage, render_plan_page};

/// How many messages its page shows.
const PAGE_SAMPLES: usize = 5;

pub(super) async fn make_plan(context: &Context, args: &PlanArgs) -> Result<u8, CommandFailure> {
    if let Some(path) = &args.out {
        page::check_place(path)?;
    }
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let request = RunRequest {
        rows: args.rows.clone(),
        limit: args.limit,
        round: args.again.map_or(Round::Same, Round::Again),
        up_to: args.up_to,
        ..RunRequest::default()
    };
    let adapters = context.adapters(context.open_ledger().await?)?;
    let inputs = context.fetch_list(inputs, args.list.fetch, Some(adapters.ledger.as_ref())).await?;
    let waiting = context.output.show_spinner("Reading the list…");
    let made = runs::create_plan(&adapters, &inputs, &request).await?;
    drop(waiting);
    if let Some(path) = &args.out {
        write_page(context, args, (&inputs, &made), path)?;
    }
    let ended = report_plan(context, args, &inputs, &made);
    if let Some(path) = args.out.as_ref().filter(|_| args.page.open) {
        page::open_page(&context.output, path).await;
    }
    Ok(ended)
}

/// Writes the plan as a page for whoever approves it.
fn write_page(
    context: &Context,
    args: &PlanArgs,
    (inputs, made): (&Inputs, &CreatedPlan),
    path: &Path,
) -> Result<(), CommandFailure> {
    let (digest, profile) = (short_digest(&made.digest), inputs.destination.profile());
    let approve = profile.map(|profile| {
        let key = if profile.approval.is_some() { " --key FILE" } else { "" };
        context.output.command(format!("approve {digest}{key}"))
    });
    let run = run_command_line(&args.file, args.gateway.as_deref(), &made.planned, profile);
    let shown = MessageSelection { rows: args.rows.as_ref(), most: PAGE_SAMPLES, unmasked: args.page.unmasked };
    let run = context.output.command(format!("{run} --plan {digest}"));
    let page = PlanPage { inputs, made, shown, approve, run, now: Timestamp::now() };
    let (html, _) = render_plan_page(&page, args.page.page_language())?;
    page::write_page(path, &html)
}

fn report_plan(context: &Context, args: &PlanArgs, inputs: &Inputs, made: &CreatedPlan) -> u8 {
    if context.output.json {
        let mut told = json!(made.figures());
        told["forecast"] = made.forecast.to_json();
        if let Some(path) = &args.out {
            told["html"] = json!(path);
        }
        told["exit"] = exit::SUCCESS.into();
        context.output.print_object(&told);
        return exit::SUCCESS;
    }
    context.output.print_findings(&made.findings);
    let (planned, brief) = (&made.planned, &inputs.campaign.brief);
    let place = match inputs.destination.profile() {
        Some(profile) => format!("through {} ({})", profile.name, profile.format_hosts()),
        None => "a rehearsal on the built-in sandbox".to_owned(),
    };
    let digest = short_digest(&made.digest);
    let mut text = StyledText::from(StyledLine::new([
        strong(format!("plan {digest}")),
        format!(" · {} · {place}", brief.name).into(),
    ]));
    forecast::add_recipients(&mut text, &made.forecast, inputs);
    if made.forecast.messages > 0 {
        forecast::add_heading(&mut text, "Messages");
        forecast::add_messages(&mut text, &made.forecast);
    }
    if let Some(Cost::Unknown(channels)) = &made.cost {
        forecast::add_labelled(&mut text, "cost", [forecast::describe_unknown_cost(channels).into()]);
    }
    if let Some(variants) = describe_variants(brief, &made.list.survey, &made.list.survey.planned_rows()) {
        forecast::add_labelled(&mut text, "variants", [variants.into()]);
    }
    if let Some(hours) = &planned.options.hours {
        forecast::add_labelled(&mut text, "hours", [hours.as_str().into()]);
    }
    if planned.options.again {
        text.add_line(4, [AGAIN_WARNING.into()]);
    }
    let samples = made.list.pick_samples(inputs, &made.list.survey.planned_rows()).unwrap_or_default();
    forecast::add_samples(&mut text, &samples, context.output.terminal_width().unwrap_or(SAMPLE_WIDTH));
    text.add_blank();
    text.extend(resources::describe_resources(&made.resources, inputs.campaign.delivery.on_in_doubt));
    text.add_blank();
    text.add_line(0, [format!("Nothing was sent. The plan is kept for {} days.", Plan::KEPT_DAYS).into()]);
    if let Some(path) = &args.out {
        text.push(StyledLine::new([format!("page: {}", path.display()).into()]).unbroken());
    }
    let next = match made.forecast.messages {
        0 => with_gateway(format!("check {}", shell_path(&args.file)), args.gateway.as_deref()),
        _ => {
            let run = run_command_line(&args.file, args.gateway.as_deref(), planned, inputs.destination.profile());
            format!("{run} --plan {digest}")
        }
    };
    text.push(StyledLine::next_step(context.output.command(next)));
    context.output.print_summary(text);
    exit::SUCCESS
}

/// The call of `run` that sends what was planned, but for the plan itself.
pub(super) fn run_command_line(
    campaign: &Path,
    gateway: Option<&str>,
    planned: &PlannedCampaign,
    profile: Option<&Profile>,
) -> String {
    let mut run = with_gateway(format!("run {}", shell_path(campaign)), gateway);
    let mut add = |name: &str, value: Option<String>| run.extend(value.map(|value| format!(" --{name} {value}")));
    let (options, everybody) = (&planned.options, planned.counts.get(RowState::Planned));
    add("rows", options.rows.clone());
    add("limit", options.limit.map(|limit| limit.to_string()));
    add("again", options.again.then(|| everybody.to_string()));
    let limit = profile.and_then(|profile| profile.recipients_limit).map(u64::from);
    add("up-to", limit.filter(|limit| everybody > *limit).map(|_| everybody.to_string()));
    run
}
