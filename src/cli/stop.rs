//! `campaign stop`: asks a running campaign to stop after what is in flight, or ends a run for good.

use serde_json::json;

use super::args::StopArgs;
use super::context::Context;
use super::events::unwritten;
use super::exit;
use super::failure::Failure;
use crate::ledger::Run;
use crate::report::{counts_json, counts_line, plural};
use crate::runs::{self, CancelledRun};

pub(super) async fn stop(context: &Context, args: StopArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    if args.for_good {
        if runs::stop(ledger.as_ref(), &run).await? {
            let name = run.name();
            context.output.note(&format!("{name} is being sent: waiting until what is in flight is through"));
        }
        let cancelled = runs::stop_for_good(&context.adapters(ledger)?, run).await?;
        return Ok(ended(context, cancelled));
    }
    let stopping = runs::stop(ledger.as_ref(), &run).await?;
    Ok(asked(context, &run, stopping))
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

/// Tells that a run has come to its end.
fn ended(context: &Context, CancelledRun { rows, released }: CancelledRun) -> u8 {
    let (name, counts, exit) = (released.run.name(), &released.snapshot.counts, exit::of_released(&released));
    let elsewhere = if released.unwritten.is_some() { " --out FILE" } else { "" };
    let next = context.output.command(format!("results {name}{elsewhere}"));
    if context.output.json {
        let counts = counts_json(counts);
        context.output.object(&json!({ "run": name, "rows": rows, "counts": counts, "exit": exit, "next": next }));
    } else {
        let (rows, counts) = (plural(rows, "row"), counts_line(counts));
        context.output.summary(&format!("{name} is stopped for good: {rows} cancelled\n  {counts}\nnext: {next}\n"));
    }
    if let Some(why) = released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    exit
}
