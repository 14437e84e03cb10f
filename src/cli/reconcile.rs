//! `campaign reconcile`: asks the gateway about the rows in doubt of a run, by our own identifiers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::args::ReconcileArgs;
use super::context::Context;
use super::events::{learnt_line, unwritten};
use super::exit;
use super::failure::Failure;
use crate::delivery::{Polled, Reconciliation, patience};
use crate::domain::{one_or, thousands};
use crate::ledger::{Progress, State};
use crate::report::{counts_json, counts_line, duration, plural};
use crate::runs::{self, Polling, ReconciledRun};

/// How long all questions may take that `--all` asks.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

pub(super) async fn reconcile(context: &Context, args: ReconcileArgs) -> Result<u8, Failure> {
    let (ledger, run) = match args.all {
        true => context.named_run(&args.run).await?,
        false => context.doubtful_run(&args.run).await?,
    };
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let mut polled_messages = 0;
    if args.all {
        let polled = runs::poll(&adapters, &run, Polling::Open, LONGEST).await?;
        polled_messages = polled.asked;
        context.output.note(&polled_line(&polled));
    }
    let reconciled = runs::reconcile(&adapters, run).await?;
    let go_on = context.output.go_on(ledger.as_ref(), &reconciled.released.run).await;
    let exit = exit::of_reconciled(&reconciled, polled_messages);
    report(context, &reconciled, go_on, exit);
    if let Some(why) = reconciled.released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    Ok(exit)
}

fn report(context: &Context, ReconciledRun { learnt, released }: &ReconciledRun, go_on: String, exit: u8) {
    let (run, counts) = (&released.run, &released.snapshot.counts);
    let name = run.name();
    let left = counts.get(State::InDoubt) + counts.get(State::Unresolved);
    let resolve = context.output.command(format!("resolve {name} --all --as DECISION"));
    let next = if counts.get(State::InDoubt) > 0 {
        format!("{}, or decide: {resolve}", context.output.command(format!("reconcile {name}")))
    } else if left > 0 {
        resolve
    } else if counts.get(State::Planned) > 0 && run.progress == Progress::Open {
        go_on
    } else {
        context.output.command(format!("results {name}"))
    };
    if context.output.json {
        let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *learnt;
        return context.output.object(&json!({
            "run": name, "asked": asked, "found": found, "failed": failed, "not_found": not_found,
            "unresolved": unresolved, "unclear": unclear, "blind": blind > 0, "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let mut text = if learnt.asked == 0 && left == 0 {
        format!("{name}: no row is in doubt\n")
    } else {
        format!("{name}: {}\n", learnt_line(learnt))
    };
    text += &format!("  {}\n", counts_line(counts));
    if counts.get(State::InDoubt) > 0 {
        let wait = duration(patience(run.endpoint, run.lag));
        text += &format!(
            "  nothing was sent again. A denial counts when it comes {wait} after the sending and after the one before; \
             three make a row `not found`\n"
        );
    }
    context.output.summary(&format!("{text}next: {next}\n"));
}

/// What asking about messages without an end came to.
fn polled_line(polled: &Polled) -> String {
    let Polled { asked, told, blind, unclear, left, .. } = *polled;
    if asked == 0 && left == 0 {
        return "every message that was taken has its end".to_owned();
    }
    let mut text = format!("asked about {} without an end, something new was told of {told}", plural(asked, "message"));
    for (count, what) in [
        (blind, format!("{} nothing", one_or(blind, "answer proves", "answers prove"))),
        (unclear, "had no usable answer".to_owned()),
        (left, format!("{} not asked about", one_or(left, "was", "were"))),
    ] {
        if count > 0 {
            text += &format!(", {} {what}", thousands(count));
        }
    }
    text
}
