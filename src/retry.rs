//! `campaign retry`: sends rejected, unsent or, on request, failed rows again as new messages.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::args::RetryArgs;
use super::context::Context;
use super::exit::{CommandFailure, Explanation};
use super::suggested::RepeatedOptions;
use super::{exit, run};
use campaign_core::domain::{PermanentError, format_thousands};
use campaign_core::finding::{escape_to_one_line, quote_for_shell};
use campaign_engine::delivery::{FrozenInputs, SingleKind};
use campaign_engine::report::{RunView, counts_json, format_counts};
use campaign_ledger::{Ledger, RowState, Run};
use campaign_runs::{DEFAULT_RETRY_STATES, Error, RetriedError, RetryRefusal, RetryScope, RunRequest, SkippedRetries};

pub(super) async fn retry_run(context: &Context, args: RetryArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    if SingleKind::from_run(&run).is_some() {
        return Err(Error::SingleRun { run: run.name() }.into());
    }
    let frozen = FrozenInputs::load_for_run(ledger.as_ref(), &run).await?.campaign_file;
    let file = run.file.as_ref().map_or(frozen, PathBuf::from);
    if !file.exists() {
        let (name, file) = (run.name(), file.display());
        let moved = context.output.command("run FILE --moved");
        let message = format!("the campaign file of {name} is no longer at `{file}`");
        let help = format!(
            "run the campaign from its new location with `{moved}`, which sends to recipients who have not received a \
             message yet; then retry"
        );
        return Err(CommandFailure::invalid(message).with_help(help));
    }
    let RetryArgs { states, yes, keep_going, no_wait, errors, i_accept_duplicates: accept_duplicates, .. } = args;
    let request = RunRequest { keep_going, no_wait, accept_duplicates, ..RunRequest::default() };
    let states = states.into_iter().map(RowState::from).collect();
    let scope = RetryScope { run: run.key, states, errors };
    let result = run::retry_rows(context, &file, &run.gateway, scope, request, yes).await;
    match result {
        Err(CommandFailure::Run(error)) if matches!(*error, Error::Retry(RetryRefusal::Nothing { .. })) => {
            report_nothing_to_do(context, ledger.as_ref(), run, *error).await
        }
        result => result,
    }
}

/// Reports that there is nothing to do for a run, with the exit code of `run`.
pub(super) async fn report_nothing_to_do(
    context: &Context,
    ledger: &dyn Ledger,
    run: Run,
    error: Error,
) -> Result<u8, CommandFailure> {
    let output = &context.output;
    let (Explanation { message: reason, help, .. }, view) =
        (output.explain_error(&error), RunView::load(ledger, run, false).await?);
    let (name, code) = (view.run.name(), exit::exit_code_of_run(&view.run, &view.counts, false));
    if output.json {
        let counts = counts_json(&view.counts);
        let mut object = json!({ "run": name, "counts": counts, "sent": 0, "why": reason, "exit": code });
        if let Error::Retry(RetryRefusal::Nothing { skipped, .. }) = &error
            && let counts @ Value::Object(_) = not_retried_json(skipped)
        {
            object["not_retried"] = counts;
        }
        if let Some(help) = help {
            object["help"] = help.into();
        }
        output.print_object(&object);
    } else {
        let next = output.command(format!("status {name}"));
        let help = help.map(|help| format!("help: {help}\n")).unwrap_or_default();
        output.print_result(format!("{reason}\n  {}\n{help}next: {next}\n", format_counts(&view.counts)));
    }
    Ok(code)
}

/// The rows that a retry did not send, by reason. Null if there are none.
pub(super) fn not_retried_json(skipped: &SkippedRetries) -> Value {
    let SkippedRetries { delivered, under_way, unconfirmed, excluded } = skipped;
    let gateway_reasons = [("delivered", delivered), ("under_way", under_way), ("unconfirmed", unconfirmed)];
    let counts = gateway_reasons.into_iter().chain(excluded.iter().map(|(reason, rows)| (*reason, rows)));
    let counts: Map<String, Value> =
        counts.filter(|(_, rows)| **rows > 0).map(|(reason, rows)| (reason.to_owned(), (*rows).into())).collect();
    if counts.is_empty() { Value::Null } else { counts.into() }
}

/// The maximum number of errors in the list.
const MAX_LISTED_ERRORS: usize = 8;
/// The maximum number of errors in a suggested command.
const MAX_NAMED_ERRORS: usize = 4;
/// The maximum length of an error in a suggested command.
const MAX_ERROR_LENGTH: usize = 80;

/// Describes the errors with their counts, and suggests the command that retries only the messages without permanent
/// errors. The result is empty if there are no permanent errors.
pub(super) fn describe_errors(
    options: &RepeatedOptions,
    run: &str,
    errors: &[RetriedError],
    scope: &RetryScope,
) -> Vec<String> {
    let (permanent, others): (Vec<&RetriedError>, Vec<&RetriedError>) =
        errors.iter().partition(|error| PermanentError::classify(&error.text).is_some());
    if permanent.is_empty() {
        return Vec::new();
    }
    let mut sorted: Vec<&RetriedError> = errors.iter().collect();
    sorted.sort_by_key(|error| std::cmp::Reverse(error.rows));
    let mut lines: Vec<String> = sorted.iter().take(MAX_LISTED_ERRORS).map(|error| describe_error(error)).collect();
    if sorted.len() > MAX_LISTED_ERRORS {
        let rows: u64 = sorted[MAX_LISTED_ERRORS..].iter().map(|error| error.rows).sum();
        lines.push(format!("  {} with other errors", format_thousands(rows)));
    }
    let rows: u64 = permanent.iter().map(|error| error.rows).sum();
    let advice = format!("retrying {} of these messages will not help", format_thousands(rows));
    lines.push(match retry_command(options, run, &permanent, &others, &scope.states) {
        Some(command) => format!("{advice}; to retry only the others: {command}"),
        None if others.is_empty() => advice,
        None => format!("{advice}; to retry only some errors, add `--error TEXT`"),
    });
    lines
}

fn describe_error(RetriedError { state, text, rows }: &RetriedError) -> String {
    let (rows, state) = (format_thousands(*rows), state.format_words());
    let advice = match PermanentError::classify(text) {
        Some(PermanentError::InvalidNumber) => " (correct the number in the list and run the campaign again)",
        Some(PermanentError::OptedOut) => " (add the number with `campaign suppress add`)",
        Some(PermanentError::EmptyText) => " (correct the message text and run the campaign with `--accept-changes`)",
        None => "",
    };
    let text = if text.is_empty() { String::new() } else { format!(": {}", escape_to_one_line(text)) };
    format!("  {rows} {state}{text}{advice}")
}

/// Suggests the command that retries only the messages without permanent errors. `None` if `--error` cannot exclude the
/// permanent errors.
fn retry_command(
    options: &RepeatedOptions,
    run: &str,
    permanent: &[&RetriedError],
    others: &[&RetriedError],
    states: &[RowState],
) -> Option<String> {
    let shortened =
        |text: &str| -> String { text.lines().next().unwrap_or_default().chars().take(MAX_ERROR_LENGTH).collect() };
    let mut texts: Vec<String> = others.iter().map(|error| shortened(&error.text)).collect();
    texts.sort_unstable();
    texts.dedup();
    let matches_permanent_error = |text: &String| {
        let text = text.to_lowercase();
        text.trim().is_empty() || permanent.iter().any(|error| error.text.to_lowercase().contains(&text))
    };
    if texts.is_empty() || texts.len() > MAX_NAMED_ERRORS || texts.iter().any(matches_permanent_error) {
        return None;
    }
    let errors: String = texts.iter().map(|text| format!(" --error {}", quote_for_shell(text))).collect();
    let names: Vec<&str> = states.iter().map(|state| state.name()).collect();
    let state = if states == DEFAULT_RETRY_STATES { String::new() } else { format!(" --state {}", names.join(",")) };
    Some(options.command(format!("retry {run}{state}{errors}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_ledger::RunId;

    const NUMBER: &str = "Please enter valid receiver phone number";

    fn describe_sample(errors: &[(RowState, &str, u64)], states: &[RowState]) -> Vec<String> {
        let errors: Vec<RetriedError> =
            errors.iter().map(|&(state, text, rows)| RetriedError { state, text: text.to_owned(), rows }).collect();
        let scope = RetryScope { run: RunId(1), states: states.to_vec(), errors: Vec::new() };
        describe_errors(&RepeatedOptions::default(), "sale@1", &errors, &scope)
    }

    #[test]
    fn retry_lists_errors_only_if_some_are_permanent() {
        assert!(describe_sample(&[(RowState::Rejected, "No route", 7)], &DEFAULT_RETRY_STATES).is_empty());
        let lines = describe_sample(
            &[(RowState::Rejected, NUMBER, 2), (RowState::Rejected, "No route", 7)],
            &DEFAULT_RETRY_STATES,
        );
        assert_eq!(lines[0], "  7 rejected: No route");
        assert!(lines[1].starts_with(&format!("  2 rejected: {NUMBER} (correct the number")), "{lines:?}");
        let last = "retrying 2 of these messages will not help; to retry only the others: campaign retry sale@1 --error \
                    'No route'";
        assert_eq!(lines[2], last);
        assert_eq!(
            describe_sample(&[(RowState::Rejected, NUMBER, 1)], &DEFAULT_RETRY_STATES)[1],
            "retrying 1 of these messages will not help"
        );
    }

    #[test]
    fn retry_suggestion_repeats_states_and_names_each_error() {
        let errors = [
            (RowState::Failed, "INVALID DESTINATION ADDRESS", 1),
            (RowState::Failed, "NO ROUTE", 2),
            (RowState::Failed, "EXPIRED", 3),
        ];
        let last = describe_sample(&errors, &[RowState::Failed]).pop().unwrap();
        assert!(last.ends_with("campaign retry sale@1 --state failed --error EXPIRED --error 'NO ROUTE'"), "{last}");
    }

    #[test]
    fn retry_suggests_no_command_that_includes_permanent_errors() {
        for other in ["", "phone number"] {
            let last = describe_sample(
                &[(RowState::Rejected, NUMBER, 1), (RowState::NotSent, other, 2)],
                &DEFAULT_RETRY_STATES,
            )
            .pop()
            .unwrap();
            assert!(last.ends_with("add `--error TEXT`"), "{last}");
        }
    }
}
