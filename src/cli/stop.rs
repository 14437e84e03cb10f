//! `campaign stop`: stops a run after the requests in flight, or for good.

use serde_json::json;

use super::args::StopArgs;
use super::context::Context;
use super::events::unwritten;
use super::exit;
use super::failure::Failure;
use super::question::{Answer, Question, confirm};
use crate::ledger::Run;
use crate::report::{counts_json, counts_line, plural};
use crate::runs::{self, Cancellation, CancelledRun};

pub(super) async fn stop(context: &Context, args: StopArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    if args.for_good {
        let cancellation = Cancellation::of(ledger.as_ref(), &run).await?;
        if !args.yes {
            agree(context, &run, &cancellation).await?;
        }
        if runs::stop(ledger.as_ref(), &run).await? {
            let name = run.name();
            context.output.note(&format!("{name} is being sent: waiting for requests in flight"));
        }
        let schedule = cancellation.is_scheduled.then(|| run.campaign.clone());
        let cancelled = runs::stop_for_good(&context.adapters(ledger)?, run).await?;
        return Ok(ended(context, cancelled, schedule.as_deref()));
    }
    let stopping = runs::stop(ledger.as_ref(), &run).await?;
    Ok(asked(context, &run, stopping))
}

/// Shows what is cancelled, and asks for a confirmation.
async fn agree(context: &Context, run: &Run, cancellation: &Cancellation) -> Result<(), Failure> {
    let (name, rows) = (run.name(), plural(cancellation.rows(), "row"));
    let through = if run.live { format!("through {}", run.gateway) } else { "a rehearsal".to_owned() };
    let title = format!("Stop {name} for good and cancel {rows}?");
    let counts = format!("{}: {}", plural(run.recipients, "row"), counts_line(&cancellation.counts));
    let mut question = Question::new(title, Answer::Yes, format!("cancel {rows}"))
        .or_else("keep the run")
        .fact("run", format!("{through} · {counts}"))
        .note("The run cannot be resumed.");
    if run.live {
        question.add_note("A later `run` of the same edition skips these recipients, unless you pass `--again`.");
    }
    if cancellation.is_sending {
        question.add_note(
            "The run is being sent: requests in flight are completed first, so fewer rows might be left to cancel.",
        );
    }
    if cancellation.is_scheduled {
        question = question.note(still_active(&run.campaign)).command("To remove it", removal(context, &run.campaign));
    }
    let question = question.command("To pause the run instead", context.output.command(format!("stop {name}")));
    confirm(&context.output, question, &format!("cancelling {rows} in {name}"), "The run is unchanged.").await
}

/// Tells that a run was asked to stop, or that no process sends it.
fn asked(context: &Context, run: &Run, stopping: bool) -> u8 {
    let name = run.name();
    if context.output.json {
        context.output.object(&json!({ "run": name, "stopping": stopping, "exit": exit::FINE }));
        return exit::FINE;
    }
    let what = match stopping {
        true => "stops once the requests in flight are complete",
        false => "is not being sent, so there is nothing to stop",
    };
    let next = context.output.command(format!("status {name}"));
    context.output.done(format!("{name} {what}\nnext: {next}\n"), exit::FINE);
    exit::FINE
}

/// Tells that the stop leaves the schedule of the campaign active.
fn still_active(schedule: &str) -> String {
    format!("The schedule `{schedule}` remains active and sends at its next time.")
}

/// The command that removes a schedule.
fn removal(context: &Context, schedule: &str) -> String {
    context.output.command(format!("schedule remove {schedule}"))
}

/// Tells that a run is stopped for good; `schedule` names the schedule that stays active.
fn ended(context: &Context, CancelledRun { rows, released }: CancelledRun, schedule: Option<&str>) -> u8 {
    let (name, counts, exit) = (released.run.name(), &released.snapshot.counts, exit::of_released(&released));
    let elsewhere = if released.unwritten.is_some() { " --out FILE" } else { "" };
    let next = context.output.command(format!("results {name}{elsewhere}"));
    if context.output.json {
        let counts = counts_json(counts);
        context.output.object(&json!({
            "run": name, "rows": rows, "counts": counts, "schedule": schedule, "exit": exit, "next": next,
        }));
    } else {
        let (rows, counts) = (plural(rows, "row"), counts_line(counts));
        let schedule =
            schedule.map(|name| format!("  {}\n  To remove it: {}\n", still_active(name), removal(context, name)));
        let schedule = schedule.unwrap_or_default();
        let text = format!("{name} is stopped for good: {rows} cancelled\n  {counts}\n{schedule}next: {next}\n");
        context.output.done(&text, exit);
    }
    if let Some(why) = released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    exit
}
