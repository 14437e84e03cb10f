//! `campaign retry`: sends rejected, unsent or, if asked, failed rows again as new messages.

use std::path::PathBuf;

use serde_json::json;

use super::args::RetryArgs;
use super::context::Context;
use super::exit;
use super::failure::{Explanation, Failure};
use super::run;
use crate::delivery::{FrozenInputs, SingleKind};
use crate::ledger::{Ledger, Run, State};
use crate::report::{RunView, counts_json, counts_line};
use crate::runs::{Error, Request, RetryRefusal, RetryScope};

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
        let message = format!("the campaign file of {name} is no longer at `{there}`");
        let help = format!(
            "run the campaign from its new place with `{moved}`, which sends to recipients who have not got a message yet; \
             then retry"
        );
        return Err(Failure::wrong(message).with_help(help));
    }
    let RetryArgs { states, yes, keep_going, no_wait, errors, i_accept_duplicates: accept_duplicates, .. } = args;
    let request = Request { keep_going, no_wait, accept_duplicates, ..Request::default() };
    let states = states.into_iter().map(State::from).collect();
    let scope = RetryScope { run: found.key, states, errors };
    match run::retry(context, (&file, found.gateway.clone()), (scope, request), yes).await {
        Err(Failure::Run(error)) if matches!(*error, Error::Retry(RetryRefusal::Nothing { .. })) => {
            nothing_to_do(context, ledger.as_ref(), found, *error).await
        }
        ended => ended,
    }
}

/// Reports that there is nothing to do for a run, with the exit code that `run` would give for it.
pub(super) async fn nothing_to_do(
    context: &Context,
    ledger: &dyn Ledger,
    run: Run,
    error: Error,
) -> Result<u8, Failure> {
    let output = &context.output;
    let (Explanation { message: why, help, .. }, view) =
        (output.explain(&error), RunView::read(ledger, run, false).await?);
    let (name, code) = (view.run.name(), exit::of_run(&view.run, &view.counts, false));
    if output.json {
        let counts = counts_json(&view.counts);
        let mut told = json!({ "run": name, "counts": counts, "sent": 0, "why": why, "exit": code });
        if let Some(help) = help {
            told["help"] = help.into();
        }
        output.object(&told);
    } else {
        let next = output.command(format!("status {name}"));
        let help = help.map(|help| format!("help: {help}\n")).unwrap_or_default();
        output.result(format!("{why}\n  {}\n{help}next: {next}\n", counts_line(&view.counts)));
    }
    Ok(code)
}
