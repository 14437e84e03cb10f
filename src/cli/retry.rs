//! `campaign retry`: sends rows again that were rejected, not sent or, if that is wanted, failed, as new messages.

use std::path::PathBuf;

use serde_json::json;

use super::args::RetryArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::run;
use crate::delivery::{FrozenInputs, SingleKind};
use crate::ledger::{Ledger, Run, State};
use crate::report::{RunView, counts_json, counts_line};
use crate::runs::{Error, Request, RetryScope};

pub(super) async fn retry(context: &Context, args: RetryArgs) -> Result<u8, Failure> {
    let (ledger, found) = context.named_run(&args.run).await?;
    if SingleKind::of(&found).is_some() {
        return Err(Error::SingleRun { run: found.name() }.into());
    }
    let frozen = FrozenInputs::of_run(ledger.as_ref(), &found).await?.campaign_file;
    let file = found.file.as_ref().map_or(frozen, PathBuf::from);
    if !file.exists() {
        let (name, there) = (found.name(), file.display());
        let moved = context.output.command("run FILE --moved");
        return Err(Failure::wrong(format!(
            "the campaign file of {name} is not at `{there}` any more; where it is now: {moved}, which sends to whoever has no \
             message, and by which a later `retry` finds it"
        )));
    }
    let RetryArgs { states, yes, keep_going, no_wait, error, i_accept_duplicates: accept_duplicates, .. } = args;
    let request = Request { keep_going, no_wait, accept_duplicates, ..Request::default() };
    let states = states.into_iter().map(State::from).collect();
    let scope = RetryScope { run: found.key, states, error };
    match run::retry(context, (&file, found.gateway.clone()), (scope, request), yes).await {
        Err(Failure::Run(error)) if matches!(*error, Error::NothingToRetry { .. }) => {
            nothing_to_do(context, ledger.as_ref(), found, *error).await
        }
        ended => ended,
    }
}

/// Says that nothing of a run is to be done, with the code that `run` would give for it.
pub(super) async fn nothing_to_do(
    context: &Context,
    ledger: &dyn Ledger,
    run: Run,
    error: Error,
) -> Result<u8, Failure> {
    let output = &context.output;
    let (why, view) = (output.explain(error).message, RunView::read(ledger, run, false).await?);
    let (name, code) = (view.run.name(), exit::of_run(&view.run, &view.counts, false));
    if output.json {
        let counts = counts_json(&view.counts);
        output.object(&json!({ "run": name, "counts": counts, "sent": 0, "why": why, "exit": code }));
    } else {
        let next = output.command(format!("status {name}"));
        output.result(&format!("{why}\n  {}\nnext: {next}\n", counts_line(&view.counts)));
    }
    Ok(code)
}
