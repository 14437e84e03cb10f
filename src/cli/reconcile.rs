//! `campaign reconcile`: asks the gateway about the messages in doubt of a run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::args::ReconcileArgs;
use super::context::Context;
use super::events::{learnt_line, unwritten};
use super::exit;
use super::failure::Failure;
use super::states;
use super::text::{Line, Text, plain, strong};
use crate::delivery::{Polled, Reconciliation, patience};
use crate::domain::{one_or, thousands};
use crate::ledger::{Progress, State};
use crate::report::{counts_json, duration, plural};
use crate::runs::{self, Polling, ReconciledRun};

/// The time limit for all questions of `--all`.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

pub(super) async fn reconcile(context: &Context, args: ReconcileArgs) -> Result<u8, Failure> {
    let (ledger, run) = match args.all {
        true => context.named_run(&args.run).await?,
        false => context.doubtful_run(&args.run).await?,
    };
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let mut polled_messages = 0;
    let waiting = context.output.waiting("Asking the gateway…");
    if args.all {
        let polled = runs::poll(&adapters, &run, Polling::Open, LONGEST).await?;
        polled_messages = polled.asked;
        context.output.note(&polled_line(&polled));
    }
    let reconciled = runs::reconcile(&adapters, run).await?;
    drop(waiting);
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
    let what = match learnt.asked == 0 && left == 0 {
        true => "no rows are in doubt".to_owned(),
        false => learnt_line(learnt),
    };
    let mut text = Text::new();
    text.push(match left {
        0 => Line::success([strong(name), plain(format!(": {what}"))]),
        _ => Line::attention([strong(name), plain(format!(": {what}"))]),
    });
    text.line(2, states::counts(counts, 0));
    if counts.get(State::InDoubt) > 0 {
        let wait = duration(patience(run.endpoint, run.lag));
        text.push(
            Line::prose(&format!(
                "nothing was sent again. A row becomes `not found` after three conclusive denials. A denial is \
                 conclusive if the gateway does not know the message at least {wait} after it was sent, and at least \
                 {wait} after the previous denial"
            ))
            .indented(2),
        );
    }
    text.push(Line::next(next));
    context.output.summary(text);
}

/// The result of asking about messages without a final status.
fn polled_line(polled: &Polled) -> String {
    let Polled { asked, told, blind, unclear, left, .. } = *polled;
    if asked == 0 && left == 0 {
        return "every accepted message has a final status".to_owned();
    }
    let mut text = format!(
        "asked the gateway about {} without a final status: {} updated",
        plural(asked, "message"),
        thousands(told)
    );
    for (count, what) in [
        (blind, format!("{} nothing", one_or(blind, "response proves", "responses prove"))),
        (unclear, "had no usable response".to_owned()),
        (left, format!("{} not asked about", one_or(left, "was", "were"))),
    ] {
        if count > 0 {
            text += &format!(", {} {what}", thousands(count));
        }
    }
    text
}
