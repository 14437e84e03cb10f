//! `campaign plan`: what a run would send, kept under a digest that `run --plan` and `approve` take.

use std::path::Path;

use jiff::Timestamp;
use serde_json::json;

use super::args::PlanArgs;
use super::consent::AGAIN;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::page;
use super::resources;
use super::run::variants;
use super::suggested::{Options, file, through};
use crate::ledger::{Plan, State};
use crate::manifest::Profile;
use crate::report::{cost_words, counts_line, plural, thousands};
use crate::runs::{self, Inputs, MadePlan, PlanRefusal, PlannedCampaign, Request, Round, short};
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
    let inputs = context.listed(inputs, args.fetch, Some(adapters.ledger.as_ref())).await?;
    let made = runs::plan(&adapters, &inputs, &request).await?;
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
        Some(profile) => format!("through {} at {}", profile.name, profile.hosts()),
        None => "a rehearsal on the built-in sandbox".to_owned(),
    };
    let mut text = format!("{} · {place}\n", brief.name);
    text += &format!("  {}: {}\n", plural(planned.rows, "row"), counts_line(&planned.counts));
    text += &made.forecast.lines().iter().map(|line| format!("    {line}\n")).collect::<String>();
    text += &variants(brief, &made.list.survey, &made.list.survey.planned_rows())
        .map(|line| format!("    {line}\n"))
        .unwrap_or_default();
    if planned.options.again {
        text += AGAIN;
    }
    text += &format!("  {} in {}", plural(planned.messages, "message"), plural(planned.parts, "part"));
    if let Some(cost) = &made.cost {
        text += &format!(", {}", cost_words(cost, planned.currency.as_deref()));
    }
    if let Some(hours) = &planned.options.hours {
        text += &format!("\n  messages leave {hours}");
    }
    text += "\n";
    text += &resources::lines(&made.resources, inputs.campaign.delivery.on_in_doubt);
    let digest = short(&made.digest);
    text += &format!("plan: {digest}, kept for {} days\n", Plan::KEPT_DAYS);
    text += &args.out.as_ref().map(|path| format!("as a page: {}\n", path.display())).unwrap_or_default();
    let run = run(&args.file, args.gateway.as_deref(), planned, inputs.destination.profile());
    text += &format!("next: {}\n", context.output.command(format!("{run} --plan {digest}")));
    context.output.summary(&text);
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

/// Why something is not sent as it was planned, or not approved.
pub(super) fn refusal(refusal: &PlanRefusal, options: &Options) -> String {
    let anew = |campaign| options.command(format!("plan {}", file(campaign)));
    match refusal {
        PlanRefusal::Unknown { digest } => {
            let make = options.command("plan FILE");
            format!("there is no plan `{digest}` in this ledger; one is kept for 30 days, and `{make}` makes it")
        }
        PlanRefusal::Ambiguous { digest } => {
            format!("several plans begin with `{digest}`; give more of the digest")
        }
        PlanRefusal::OtherVersion { digest } => {
            format!("the plan {} was made by another version of this program; plan it anew", short(digest))
        }
        PlanRefusal::Changed { digest, file, what } if what.is_empty() => format!(
            "this is not what was planned as {}, and that plan is not in this ledger, so nobody can tell what differs; nothing \
             was sent. What it is now: `{}`",
            short(digest),
            anew(file)
        ),
        PlanRefusal::Changed { digest, file, what } => format!(
            "this is not what was planned as {}: {} changed; nothing was sent. Put it back, or plan it anew: `{}`",
            short(digest),
            what.join(", "),
            anew(file)
        ),
        PlanRefusal::More { digest, file, planned, now } => format!(
            "{} were planned as {}, and this would go to {}; nothing was sent. If that is right, plan it anew: `{}`",
            plural(*planned, "recipient"),
            short(digest),
            thousands(*now),
            anew(file)
        ),
        PlanRefusal::NobodyLeft { digest, file: campaign, run } => format!(
            "no recipient of {run} is left, and no approval of the plan {} was used for it, so it does not go on by this plan; \
             end it with `{}`",
            short(digest),
            options.command(format!("run {}", file(campaign)))
        ),
        PlanRefusal::Used { digest } => {
            let digest = short(digest);
            let again = options.command(format!("approve {digest}"));
            format!("the approval of {digest} was used by another run meanwhile; for one more: `{again}`")
        }
        PlanRefusal::Approved { digest, by } => {
            format!("{} is approved already, by {by}, and no run has used that yet", short(digest))
        }
        PlanRefusal::NoCampaign { digest } => {
            format!("{} is of a single message that an assistant wants to send, and of no run", short(digest))
        }
        PlanRefusal::Gone { digest } => format!(
            "what {} is of waits no longer: its connector has ended, or an hour has passed; have the assistant call again",
            short(digest)
        ),
        PlanRefusal::Unapproved { digest, file: campaign, gateway, number, sent, above } => {
            let approve = |digest: &str| options.command(format!("approve {digest} --key FILE"));
            let next = match digest {
                // The plan has the options of the command that was refused.
                Some(digest) => {
                    let digest = short(digest);
                    format!("`{}`, then the same command with `--plan {digest}`", approve(digest))
                }
                None => {
                    let plan = options.command(through(format!("plan {}", file(campaign)), Some(gateway)));
                    let run = options.command(format!("{} --plan DIGEST", through(format!("run {}", file(campaign)), Some(gateway))));
                    format!("`{plan}`, then `{}`, then `{run}`", approve("DIGEST"))
                }
            };
            let edition = match sent {
                0 => String::new(),
                sent => format!(", in addition to {} of this edition without an approval", thousands(*sent)),
            };
            format!(
                "this would send to {}{edition}; above {} the gateway `{gateway}` needs an approval. Nothing was \
                 sent; next: {}",
                plural(*number, "recipient"),
                thousands((*above).into()),
                next
            )
        }
        PlanRefusal::NeedsKey { digest, gateway } => {
            let approve = options.command(format!("approve {} --key FILE", short(digest)));
            format!("the gateway `{gateway}` names who approves, and that is signed: `{approve}`")
        }
        PlanRefusal::UnknownKey { gateway } => {
            format!("this key belongs to nobody whom `approval` of the gateway `{gateway}` names; nothing is approved")
        }
        PlanRefusal::NobodyCanSign => {
            "the profile has no `approval`, so nothing tells whose signature this is; without it a yes is typed at a terminal"
                .to_owned()
        }
        PlanRefusal::NotProven => {
            "this token approves nothing: nobody whom `approval` of the profile names signed it for one run; nothing was sent"
                .to_owned()
        }
        PlanRefusal::OtherPlan { digest, approved } => {
            format!("this token approves {}, and not {digest}; nothing was sent", short(approved))
        }
        PlanRefusal::NoSchedule { file } => format!(
            "`{}` is not armed, so nothing of it is due by itself; `--standing` is for what `{}` armed",
            file.display(),
            options.command("schedule add")
        ),
        PlanRefusal::Rehearsal => {
            "a rehearsal on the built-in sandbox reaches nobody, so it needs no approval".to_owned()
        }
    }
}
