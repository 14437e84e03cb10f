//! `campaign stop`: asks a running campaign to stop after what is in flight, or ends a run for good.

use serde_json::json;

use super::args::StopArgs;
use super::confirm::{Answer, Question, confirm};
use super::context::Context;
use super::events::unwritten;
use super::exit;
use super::failure::Failure;
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
            context.output.note(&format!("{name} is being sent: waiting until what is in flight is through"));
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
    let mut preview = format!("{name} · {through} · {}: ", plural(run.recipients, "row"));
    preview +=
        &format!("{}\n  {rows} will be cancelled; the run cannot be resumed\n", counts_line(&cancellation.counts));
    if run.live {
        preview += "  a later `run` of the same edition skips their recipients, unless you pass `--again`\n";
    }
    if cancellation.is_sending {
        preview += "  it is being sent: requests in flight are completed first, so fewer rows may be left to cancel\n";
    }
    if cancellation.is_scheduled {
        preview += &still_active(context, &run.campaign);
    }
    preview += &format!("  to pause it instead: {}\n", context.output.command(format!("stop {name}")));
    let (change, action) = (format!("cancelling {rows} of {name}"), format!("cancel {rows}"));
    let question = Question { preview: &preview, change: &change, action: &action, answer: Answer::Yes };
    confirm(&context.output, question).await
}

/// Tells that a run was asked to stop, or that no process sends it.
fn asked(context: &Context, run: &Run, stopping: bool) -> u8 {
    let name = run.name();
    if context.output.json {
        context.output.object(&json!({ "run": name, "stopping": stopping, "exit": exit::FINE }));
        return exit::FINE;
    }
    let what = match stopping {
        true => "stops after what is in flight; nothing more is begun",
        false => "is not being sent by any process",
    };
    let next = context.output.command(format!("status {name}"));
    context.output.result(&format!("{name} {what}\nnext: {next}\n"));
    exit::FINE
}

/// Tells that the stop leaves the schedule of the campaign active.
fn still_active(context: &Context, schedule: &str) -> String {
    let remove = context.output.command(format!("schedule remove {schedule}"));
    format!("  the schedule `{schedule}` stays active and sends on its next date; to remove it: {remove}\n")
}

/// Tells that a run has come to its end; `schedule` names the schedule that stays active.
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
        let schedule = schedule.map(|schedule| still_active(context, schedule)).unwrap_or_default();
        let text = format!("{name} is stopped for good: {rows} cancelled\n  {counts}\n{schedule}next: {next}\n");
        context.output.summary(&text);
    }
    if let Some(why) = released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    exit
}
