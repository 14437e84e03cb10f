//! `campaign resolve`: a person decides about rows in doubt.

use std::sync::Arc;

use serde_json::json;

use super::args::{DecisionArg, ResolveArgs};
use super::context::Context;
use super::events::describe_stale_results;
use super::exit;
use super::failure::CommandFailure;
use super::retry::report_nothing_to_do;
use crate::delivery::SingleKind;
use crate::ledger::{RowState, RunProgress};
use crate::report::{NextStep, counts_json, format_count, format_counts};
use crate::runs::{self, DecisionRefusal, Error, Resolution, ResolvedRun, RowChoice, current_person};

pub(super) async fn resolve_doubt(context: &Context, args: ResolveArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_doubtful_run(&args.run).await?;
    let ResolveArgs { rows, file, decision, why, i_accept_duplicates: duplicates, .. } = args;
    let rows = match (rows, file) {
        (Some(rows), _) => RowChoice::Rows(rows),
        (None, Some(file)) => RowChoice::File(file),
        (None, None) => RowChoice::Waiting,
    };
    let resolution = Resolution { rows, decision: decision.into(), by: current_person(), why, duplicates };
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let resolved = match runs::resolve_doubts(&adapters, run.clone(), &resolution).await {
        Err(error @ Error::Decision(DecisionRefusal::Nothing { .. })) => {
            return report_nothing_to_do(context, ledger.as_ref(), run, error).await;
        }
        resolved => resolved?,
    };
    let go_on = context.output.resume_command(ledger.as_ref(), &run).await;
    report_resolution(context, decision, &resolved, go_on);
    let exit = exit::code_of_released(&resolved.released);
    if let Some(why) = resolved.released.stale_results {
        context.output.print_note(&describe_stale_results(&context.output, why));
    }
    Ok(exit)
}

fn report_resolution(
    context: &Context,
    decision: DecisionArg,
    ResolvedRun { rows, released }: &ResolvedRun,
    go_on: String,
) {
    let (run, counts, exit) = (&released.run, &released.snapshot.counts, exit::code_of_released(released));
    let name = run.name();
    let command = |arguments: String| context.output.command(arguments);
    let next = match (decision, NextStep::for_doubt(counts)) {
        (DecisionArg::Sent | DecisionArg::NotSent, Some(step)) => context.output.suggest_for_run(&name, &step),
        (DecisionArg::NotSent, None) if run.progress == RunProgress::Finished => match SingleKind::from_run(run) {
            Some(single) => context.output.repeat_command(single, run),
            None => command(format!("retry {name}")),
        },
        _ if counts.get(RowState::Planned) > 0 => go_on,
        _ => command(format!("status {name}")),
    };
    if context.output.json {
        return context.output.print_object(&json!({
            "run": name, "rows": rows, "as": decision.name(), "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let rows = format_count(*rows, "row");
    let what = match decision {
        DecisionArg::SendAgain => format!("{rows} will be sent again"),
        DecisionArg::Sent | DecisionArg::NotSent => format!("resolved {rows} as {}", decision.name().replace('-', " ")),
    };
    let mut text = format!("{name}: {what}\n  {}\n", format_counts(counts));
    if decision == DecisionArg::Sent {
        text += "  Later runs skip these recipients, unless the gateway proves that it did not send the message.\n";
    }
    context.output.print_done(format!("{text}next: {next}\n"), exit);
}
