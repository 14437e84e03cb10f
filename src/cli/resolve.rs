//! `campaign resolve`: a person decides about rows in doubt.

use std::sync::Arc;

use serde_json::json;

use super::args::{Decision, ResolveArgs};
use super::context::Context;
use super::events::unwritten;
use super::exit;
use super::failure::Failure;
use super::retry::nothing_to_do;
use crate::delivery::SingleKind;
use crate::ledger::{Progress, State};
use crate::report::{NextStep, counts_json, counts_line, plural};
use crate::runs::{self, DecisionRefusal, Error, Resolution, ResolvedRun, RowChoice, person};

pub(super) async fn resolve(context: &Context, args: ResolveArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.doubtful_run(&args.run).await?;
    let ResolveArgs { rows, file, decision, why, i_accept_duplicates: duplicates, .. } = args;
    let rows = match (rows, file) {
        (Some(rows), _) => RowChoice::Rows(rows),
        (None, Some(file)) => RowChoice::File(file),
        (None, None) => RowChoice::Waiting,
    };
    let resolution = Resolution { rows, decision: decision.into(), by: person(), why, duplicates };
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let resolved = match runs::resolve(&adapters, run.clone(), &resolution).await {
        Err(error @ Error::Decision(DecisionRefusal::Nothing { .. })) => {
            return nothing_to_do(context, ledger.as_ref(), run, error).await;
        }
        resolved => resolved?,
    };
    let go_on = context.output.go_on(ledger.as_ref(), &run).await;
    report(context, decision, &resolved, go_on);
    let exit = exit::of_released(&resolved.released);
    if let Some(why) = resolved.released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    Ok(exit)
}

fn report(context: &Context, decision: Decision, ResolvedRun { rows, released }: &ResolvedRun, go_on: String) {
    let (run, counts, exit) = (&released.run, &released.snapshot.counts, exit::of_released(released));
    let name = run.name();
    let command = |arguments: String| context.output.command(arguments);
    let next = match (decision, NextStep::of_doubt(counts)) {
        (Decision::Sent | Decision::NotSent, Some(step)) => context.output.about_run(&name, &step),
        (Decision::NotSent, None) if run.progress == Progress::Finished => match SingleKind::of(run) {
            Some(single) => context.output.ask_anew(single, run),
            None => command(format!("retry {name}")),
        },
        _ if counts.get(State::Planned) > 0 => go_on,
        _ => command(format!("status {name}")),
    };
    if context.output.json {
        return context.output.object(&json!({
            "run": name, "rows": rows, "as": decision.name(), "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let rows = plural(*rows, "row");
    let what = match decision {
        Decision::SendAgain => format!("{rows} will be sent again"),
        Decision::Sent | Decision::NotSent => format!("resolved {rows} as {}", decision.name().replace('-', " ")),
    };
    let mut text = format!("{name}: {what}\n  {}\n", counts_line(counts));
    if decision == Decision::Sent {
        text += "  Later runs skip these recipients, unless the gateway proves that it did not send the message.\n";
    }
    context.output.done(format!("{text}next: {next}\n"), exit);
}
