//! `campaign stop`: stops a run after the requests in flight, or cancels it with `--for-good`.

use serde_json::json;

use super::args::StopArgs;
use super::context::Context;
use super::events::describe_stale_results;
use super::exit;
use super::exit::CommandFailure;
use super::prompt::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use campaign_engine::report::{counts_json, format_count, format_counts};
use campaign_ledger::Run;
use campaign_runs::{Cancellation, CancelledRun};

pub(super) async fn stop_run(context: &Context, args: StopArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    if args.for_good {
        let cancellation = Cancellation::read(ledger.as_ref(), &run).await?;
        if !args.yes {
            confirm_cancellation(context, &run, &cancellation).await?;
        }
        if campaign_runs::stop_run(ledger.as_ref(), &run).await? {
            let name = run.name();
            context.output.print_note(&format!("{name} is being sent: waiting for requests in flight"));
        }
        let schedule = cancellation.is_scheduled.then(|| run.campaign.clone());
        let cancelled = campaign_runs::cancel_run(&context.adapters(ledger)?, run).await?;
        return Ok(report_cancelled(context, cancelled, schedule.as_deref()));
    }
    let stopping = campaign_runs::stop_run(ledger.as_ref(), &run).await?;
    Ok(report_stop_request(context, &run, stopping))
}

/// Shows the rows that will be cancelled, and asks for confirmation.
async fn confirm_cancellation(context: &Context, run: &Run, cancellation: &Cancellation) -> Result<(), CommandFailure> {
    let (name, rows) = (run.name(), format_count(cancellation.count_rows(), "row"));
    let through = if run.live { format!("through {}", run.gateway) } else { "a rehearsal".to_owned() };
    let title = format!("Stop {name} for good and cancel {rows}?");
    let counts = format!("{}: {}", format_count(run.recipients, "row"), format_counts(&cancellation.counts));
    let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, format!("cancel {rows}"))
        .with_otherwise("keep the run")
        .with_fact("run", format!("{through} · {counts}"))
        .with_note("The run cannot be resumed.");
    if run.live {
        prompt.add_note("A later `run` of the same edition skips these recipients, unless you pass `--again`.");
    }
    if cancellation.is_sending {
        prompt.add_note(
            "The run is still sending: requests in flight are completed first, so fewer rows might be left to cancel.",
        );
    }
    if cancellation.is_scheduled {
        prompt = prompt
            .with_note(describe_active_schedule(&run.campaign))
            .with_command("To remove it", removal_command(context, &run.campaign));
    }
    let prompt = prompt.with_command("To pause the run instead", context.output.command(format!("stop {name}")));
    require_confirmation(&context.output, prompt, &format!("cancelling {rows} in {name}"), "The run is unchanged.")
        .await
}

/// Reports that the run will stop, or that no process is sending it.
fn report_stop_request(context: &Context, run: &Run, stopping: bool) -> u8 {
    let name = run.name();
    if context.output.json {
        context.output.print_object(&json!({ "run": name, "stopping": stopping, "exit": exit::SUCCESS }));
        return exit::SUCCESS;
    }
    let what = match stopping {
        true => "stops once the requests in flight are complete",
        false => "is not being sent, so there is nothing to stop",
    };
    let next = context.output.command(format!("status {name}"));
    context.output.print_done(format!("{name} {what}\nnext: {next}\n"), exit::SUCCESS);
    exit::SUCCESS
}

/// Explains that the schedule of the campaign stays active.
fn describe_active_schedule(schedule: &str) -> String {
    format!("The schedule `{schedule}` remains active and sends messages at its next scheduled time.")
}

/// The command that removes a schedule.
fn removal_command(context: &Context, schedule: &str) -> String {
    context.output.command(format!("schedule remove {schedule}"))
}

/// Reports a cancelled run. `schedule` is the name of the schedule that stays active.
fn report_cancelled(context: &Context, CancelledRun { rows, released }: CancelledRun, schedule: Option<&str>) -> u8 {
    let (name, counts, exit) =
        (released.run.name(), &released.snapshot.counts, exit::exit_code_of_released_run(&released));
    let elsewhere = if released.stale_results.is_some() { " --out FILE" } else { "" };
    let next = context.output.command(format!("results {name}{elsewhere}"));
    if context.output.json {
        let counts = counts_json(counts);
        context.output.print_object(&json!({
            "run": name, "rows": rows, "counts": counts, "schedule": schedule, "exit": exit, "next": next,
        }));
    } else {
        let (rows, counts) = (format_count(rows, "row"), format_counts(counts));
        let schedule = schedule.map(|name| {
            format!("  {}\n  To remove it: {}\n", describe_active_schedule(name), removal_command(context, name))
        });
        let schedule = schedule.unwrap_or_default();
        let text = format!("{name} is stopped for good: {rows} cancelled\n  {counts}\n{schedule}next: {next}\n");
        context.output.print_done(&text, exit);
    }
    if let Some(why) = released.stale_results {
        context.output.print_note(&describe_stale_results(&context.output, why));
    }
    exit
}
