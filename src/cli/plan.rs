//! `campaign plan`: what a run would send, kept under a digest that `run --plan` and `approve` take.

use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::args::PlanArgs;
use super::consent::AGAIN;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::forecast::{self, WIDTH};
use super::page;
use super::resources;
use super::run::variants;
use super::suggested::{file, through};
use super::text::{Line, Text, strong};
use crate::check::online::Cost;
use crate::ledger::{Plan, State};
use crate::manifest::Profile;
use crate::runs::{self, Inputs, MadePlan, PlannedCampaign, Request, Round, short};
use crate::web::files::{PlanPage, Shown, plan_page};

/// How many messages its page shows.
const ON_PAGE: usize = 5;

pub(super) async fn plan(context: &Context, args: &PlanArgs) -> Result<u8, Failure> {
    if let Some(path) = &args.out {
        page::check_place(path)?;
    }
    let inputs = context.load(&args.file, args.gateway.as_deref())?;
    let request = Request {
        rows: args.rows.clone(),
        limit: args.limit,
        round: args.again.map_or(Round::Same, Round::Again),
        up_to: args.up_to,
        ..Request::default()
    };
    let adapters = context.adapters(context.ledger().await?)?;
    let inputs = context.listed(inputs, args.list.fetch, Some(adapters.ledger.as_ref())).await?;
    let waiting = context.output.waiting("Reading the list…");
    let made = runs::plan(&adapters, &inputs, &request).await?;
    drop(waiting);
    if let Some(path) = &args.out {
        write_page(context, args, (&inputs, &made), path)?;
    }
    let ended = tell(context, args, &inputs, &made);
    if let Some(path) = args.out.as_ref().filter(|_| args.page.open) {
        page::open(&context.output, path).await;
    }
    Ok(ended)
}

/// Writes the plan as a page for whoever approves it.
fn write_page(
    context: &Context,
    args: &PlanArgs,
    (inputs, made): (&Inputs, &MadePlan),
    path: &Path,
) -> Result<(), Failure> {
    let (digest, profile) = (short(&made.digest), inputs.destination.profile());
    let approve = profile.map(|profile| {
        let key = if profile.approval.is_some() { " --key FILE" } else { "" };
        context.output.command(format!("approve {digest}{key}"))
    });
    let run = run(&args.file, args.gateway.as_deref(), &made.planned, profile);
    let shown = Shown { rows: args.rows.as_ref(), most: ON_PAGE, unmasked: args.page.unmasked };
    let run = context.output.command(format!("{run} --plan {digest}"));
    let page = PlanPage { inputs, made, shown, approve, run, now: Timestamp::now() };
    let (html, _) = plan_page(&page, args.page.language())?;
    page::write(path, &html)
}

fn tell(context: &Context, args: &PlanArgs, inputs: &Inputs, made: &MadePlan) -> u8 {
    if context.output.json {
        let mut told = json!(made.figures());
        told["forecast"] = made.forecast.json();
        if let Some(path) = &args.out {
            told["html"] = json!(path);
        }
        told["exit"] = exit::FINE.into();
        context.output.object(&told);
        return exit::FINE;
    }
    context.output.findings(&made.findings);
    let (planned, brief) = (&made.planned, &inputs.campaign.brief);
    let place = match inputs.destination.profile() {
        Some(profile) => format!("through {} ({})", profile.name, profile.hosts()),
        None => "a rehearsal on the built-in sandbox".to_owned(),
    };
    let digest = short(&made.digest);
    let mut text =
        Text::from(Line::new([strong(format!("plan {digest}")), format!(" · {} · {place}", brief.name).into()]));
    forecast::recipients(&mut text, &made.forecast, inputs);
    if made.forecast.messages > 0 {
        forecast::heading(&mut text, "Messages");
        forecast::messages(&mut text, &made.forecast);
    }
    if let Some(Cost::Unknown(channels)) = &made.cost {
        forecast::labelled(&mut text, "cost", [forecast::unknown_cost(channels).into()]);
    }
    if let Some(variants) = variants(brief, &made.list.survey, &made.list.survey.planned_rows()) {
        forecast::labelled(&mut text, "variants", [variants.into()]);
    }
    if let Some(hours) = &planned.options.hours {
        forecast::labelled(&mut text, "hours", [hours.as_str().into()]);
    }
    if planned.options.again {
        text.line(4, [AGAIN.into()]);
    }
    let samples = made.list.samples(inputs, &made.list.survey.planned_rows()).unwrap_or_default();
    forecast::samples(&mut text, &samples, context.output.columns().unwrap_or(WIDTH));
    text.blank();
    text.extend(resources::lines(&made.resources, inputs.campaign.delivery.on_in_doubt));
    text.blank();
    text.line(0, [format!("Nothing was sent. The plan is kept for {} days.", Plan::KEPT_DAYS).into()]);
    if let Some(path) = &args.out {
        text.push(Line::new([format!("page: {}", path.display()).into()]).whole());
    }
    let next = match made.forecast.messages {
        0 => through(format!("check {}", file(&args.file)), args.gateway.as_deref()),
        _ => {
            let run = run(&args.file, args.gateway.as_deref(), planned, inputs.destination.profile());
            format!("{run} --plan {digest}")
        }
    };
    text.push(Line::next(context.output.command(next)));
    context.output.summary(text);
    exit::FINE
}

/// The call of `run` that sends what was planned, but for the plan itself.
pub(super) fn run(
    campaign: &Path,
    gateway: Option<&str>,
    planned: &PlannedCampaign,
    profile: Option<&Profile>,
) -> String {
    let mut run = through(format!("run {}", file(campaign)), gateway);
    let mut add = |name: &str, value: Option<String>| run.extend(value.map(|value| format!(" --{name} {value}")));
    let (options, everybody) = (&planned.options, planned.counts.get(State::Planned));
    add("rows", options.rows.clone());
    add("limit", options.limit.map(|limit| limit.to_string()));
    add("again", options.again.then(|| everybody.to_string()));
    let limit = profile.and_then(|profile| profile.recipients_limit).map(u64::from);
    add("up-to", limit.filter(|limit| everybody > *limit).map(|_| everybody.to_string()));
    run
}
