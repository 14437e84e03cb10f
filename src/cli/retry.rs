//! `campaign retry`: sends rejected, unsent or, if asked, failed rows again as new messages.

use std::path::PathBuf;

use serde_json::json;

use super::args::RetryArgs;
use super::context::Context;
use super::exit;
use super::failure::{CommandFailure, Explanation};
use super::run;
use crate::delivery::{FrozenInputs, SingleKind};
use crate::ledger::{Ledger, RowState, Run};
use crate::report::{RunView, counts_json, format_counts};
use crate::runs::{Error, RetryRefusal, RetryScope, RunRequest};

pub(super) async fn retry_run(context: &Context, args: RetryArgs) -> Result<u8, CommandFailure> {
    let (ledger, found) = context.find_run(&args.run).await?;
    if SingleKind::from_run(&found).is_some() {
        return Err(Error::SingleRun { run: found.name() }.into());
    }
    let frozen = FrozenInputs::load_for_run(ledger.as_ref(), &found).await?.campaign_file;
    let file = found.file.as_ref().map_or(frozen, PathBuf::from);
    if !file.exists() {
        let (name, there) = (found.name(), file.display());
        let moved = context.output.command("run FILE --moved");
        let message = format!("the campaign file of {name} is no longer at `{there}`");
        let help = format!(
            "run the campaign from its new place with `{moved}`, which sends to recipients who have not got a message yet; \
             then retry"
        );
        return Err(CommandFailure::invalid(message).with_help(help));
    }
    let RetryArgs { states, yes, keep_going, no_wait, errors, i_accept_duplicates: accept_duplicates, .. } = args;
    let request = RunRequest { keep_going, no_wait, accept_duplicates, ..RunRequest::default() };
    let states = states.into_iter().map(RowState::from).collect();
    let scope = RetryScope { run: found.key, states, errors };
    match run::retry_rows(context, (&file, found.gateway.clone()), (scope, request), yes).await {
        Err(CommandFailure::Run(error)) if matches!(*error, Error::Retry(RetryRefusal::Nothing { .. })) => {
            report_nothing_to_do(context, ledger.as_ref(), found, *error).await
        }
        ended => ended,
    }
}

/// Reports that there is nothing to do for a run, with the exit code that `run` would give for it.
pub(super) async fn report_nothing_to_do(
    context: &Context,
    ledger: &dyn Ledger,
    run: Run,
    error: Error,
) -> Result<u8, CommandFailure> {
    let output = &context.output;
    let (Explanation { message: why, help, .. }, view) =
        (output.explain_error(&error), RunView::load(ledger, run, false).await?);
    let (name, code) = (view.run.name(), exit::code_of_run(&view.run, &view.counts, false));
    if output.json {
        let counts = counts_json(&view.counts);
        let mut told = json!({ "run": name, "counts": counts, "sent": 0, "why": why, "exit": code });
        if let Some(help) = help {
            told["help"] = help.into();
        }
        output.print_object(&told);
    } else {
        let next = output.command(format!("status {name}"));
        let help = help.map(|help| format!("help: {help}\n")).unwrap_or_default();
        output.print_result(format!("{why}\n  {}\n{help}next: {next}\n", format_counts(&view.counts)));
    }
    Ok(code)
}
