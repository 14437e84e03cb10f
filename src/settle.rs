//! `campaign reconcile`, `resolve` and `stop`: settle the open messages of a run without sending. `reconcile` asks the
//! gateway about messages in doubt, `resolve` records a decision about them, and `stop` pauses or cancels a run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::args::{DecisionArg, ReconcileArgs, ResolveArgs, StopArgs};
use super::context::Context;
use super::events::{describe_reconciliation, describe_stale_results};
use super::exit::CommandFailure;
use super::prompt::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use super::retry::report_nothing_to_do;
use super::text::{StyledLine, StyledText, plain, strong};
use super::{exit, status};
use campaign_core::domain::{choose_plural, format_thousands};
use campaign_engine::delivery::{PollCounts, Reconciliation, SingleKind, denial_wait};
use campaign_engine::report::{NextStep, counts_json, format_count, format_counts, format_duration};
use campaign_ledger::{RowState, Run, RunProgress};
use campaign_runs::{
    Cancellation, CancelledRun, DecisionRefusal, Error, Polling, ReconciledRun, Resolution, ResolvedRun, RowChoice,
    current_person,
};

/// The timeout for all requests of `--all` together.
const ALL_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

pub(super) async fn reconcile_run(context: &Context, args: ReconcileArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = match args.all {
        true => context.find_run(&args.run).await?,
        false => context.find_run_in_doubt(&args.run).await?,
    };
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let mut polled_messages = 0;
    let spinner = context.output.show_spinner("Asking the gateway…");
    if args.all {
        let polled = campaign_runs::poll_run(&adapters, &run, Polling::Open, ALL_TIMEOUT).await?;
        polled_messages = polled.asked;
        context.output.print_note(&describe_poll_result(&polled));
    }
    let reconciled = campaign_runs::reconcile_run(&adapters, run).await?;
    drop(spinner);
    let resume = context.output.suggest_resuming(ledger.as_ref(), &reconciled.released.run).await;
    let exit = exit::exit_code_of_reconciliation(&reconciled, polled_messages);
    report_reconciliation(context, &reconciled, resume, exit);
    if let Some(stale_results) = reconciled.released.stale_results {
        context.output.print_note(&describe_stale_results(&context.output, stale_results));
    }
    Ok(exit)
}

fn report_reconciliation(
    context: &Context,
    ReconciledRun { reconciliation, released }: &ReconciledRun,
    resume: String,
    exit: u8,
) {
    let (run, counts) = (&released.run, &released.snapshot.counts);
    let name = run.name();
    let undecided = counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved);
    let resolve = context.output.command(format!("resolve {name} --all --as DECISION"));
    let next = if counts.get(RowState::InDoubt) > 0 {
        format!("{}, or decide: {resolve}", context.output.command(format!("reconcile {name}")))
    } else if undecided > 0 {
        resolve
    } else if run.progress == RunProgress::Open && (counts.get(RowState::Planned) > 0 || exit == exit::STOPPED) {
        resume
    } else {
        context.output.command(format!("results {name}"))
    };
    if context.output.json {
        let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *reconciliation;
        return context.output.print_object(&json!({
            "run": name, "asked": asked, "found": found, "failed": failed, "not_found": not_found,
            "unresolved": unresolved, "unclear": unclear, "blind": blind > 0, "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let result = match reconciliation.asked == 0 && undecided == 0 {
        true => "no rows are in doubt".to_owned(),
        false => describe_reconciliation(reconciliation),
    };
    let mut text = StyledText::new();
    let line = [strong(name), plain(format!(": {result}"))];
    text.push(if exit == exit::SUCCESS { StyledLine::success(line) } else { StyledLine::attention(line) });
    text.add_line(2, status::count_spans(counts, 0));
    if counts.get(RowState::InDoubt) > 0 {
        let wait = format_duration(denial_wait(run.endpoint, run.lag));
        text.push(
            StyledLine::from_prose(&format!(
                "nothing was sent again. A row becomes `not found` after three negative responses. A negative response \
                 counts if at least {wait} has passed both since the message was sent and since the previous negative \
                 response"
            ))
            .with_indent(2),
        );
    }
    text.push(StyledLine::next_step(next));
    context.output.print_result(text);
}

/// Describes the result of asking about messages without a final status.
fn describe_poll_result(polled: &PollCounts) -> String {
    let PollCounts { asked, updated, blind, unclear, left, .. } = *polled;
    match (asked, left) {
        (0, 0) => return "every accepted message has a final status".to_owned(),
        (0, left) => {
            let messages = format_count(left, "message");
            return format!("the gateway was not asked about {messages} without a final status; try again later");
        }
        _ => {}
    }
    let mut text = format!(
        "asked the gateway about {} without a final status: {} updated",
        format_count(asked, "message"),
        format_thousands(updated)
    );
    for (count, description) in [
        (blind, choose_plural(blind, "with an inconclusive response", "with inconclusive responses")),
        (unclear, "without a usable response"),
    ] {
        if count > 0 {
            text += &format!(", {} {description}", format_thousands(count));
        }
    }
    if left > 0 {
        let were = choose_plural(left, "was", "were");
        text += &format!("; {} more {were} not checked, so try again later", format_thousands(left));
    }
    text
}

pub(super) async fn resolve_doubt(context: &Context, args: ResolveArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run_in_doubt(&args.run).await?;
    let ResolveArgs { rows, file, decision, why, i_accept_duplicates: duplicates, .. } = args;
    let rows = match (rows, file) {
        (Some(rows), _) => RowChoice::Rows(rows),
        (None, Some(file)) => RowChoice::File(file),
        (None, None) => RowChoice::Waiting,
    };
    let resolution = Resolution { rows, decision: decision.into(), by: current_person(), why, duplicates };
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let resolved = match campaign_runs::resolve_doubts(&adapters, run.clone(), &resolution).await {
        Err(error @ Error::Decision(DecisionRefusal::Nothing { .. })) => {
            return report_nothing_to_do(context, ledger.as_ref(), run, error).await;
        }
        resolved => resolved?,
    };
    let resume = context.output.suggest_resuming(ledger.as_ref(), &run).await;
    report_resolution(context, decision, &resolved, resume);
    let exit = exit::exit_code_of_released_run(&resolved.released);
    if let Some(stale_results) = resolved.released.stale_results {
        context.output.print_note(&describe_stale_results(&context.output, stale_results));
    }
    Ok(exit)
}

fn report_resolution(
    context: &Context,
    decision: DecisionArg,
    ResolvedRun { rows, released }: &ResolvedRun,
    resume: String,
) {
    let (run, counts, exit) = (&released.run, &released.snapshot.counts, exit::exit_code_of_released_run(released));
    let name = run.name();
    let command = |arguments: String| context.output.command(arguments);
    let next = match (decision, NextStep::for_doubt(counts)) {
        (DecisionArg::Sent | DecisionArg::NotSent, Some(step)) => context.output.suggest_for_run(&name, &step),
        (DecisionArg::NotSent, None) if run.progress == RunProgress::Finished => match SingleKind::from_run(run) {
            Some(single) => context.output.repeat_command(single, run),
            None => command(format!("retry {name}")),
        },
        _ if counts.get(RowState::Planned) > 0 || exit == exit::STOPPED => resume,
        _ => command(format!("status {name}")),
    };
    if context.output.json {
        return context.output.print_object(&json!({
            "run": name, "rows": rows, "as": decision.name(), "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let rows = format_count(*rows, "row");
    let effect = match decision {
        DecisionArg::SendAgain => format!("{rows} will be sent again"),
        DecisionArg::Sent | DecisionArg::NotSent => format!("resolved {rows} as {}", decision.name().replace('-', " ")),
    };
    let mut text = format!("{name}: {effect}\n  {}\n", format_counts(counts));
    if decision == DecisionArg::Sent {
        text += "  Later runs skip these recipients, unless the gateway confirms that it did not send the message.\n";
    }
    context.output.print_done(format!("{text}next: {next}\n"), exit);
}

pub(super) async fn stop_run(context: &Context, args: StopArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    if args.for_good {
        let cancellation = Cancellation::read(ledger.as_ref(), &run).await?;
        if !args.yes {
            confirm_cancellation(context, &run, &cancellation).await?;
        }
        if campaign_runs::stop_run(ledger.as_ref(), &run).await? {
            let name = run.name();
            context.output.print_note(&format!("{name} is being sent: waiting for requests in flight"));
        }
        let schedule = cancellation.is_scheduled.then(|| run.campaign.clone());
        let cancelled = campaign_runs::cancel_run(&context.adapters(ledger)?, run).await?;
        return Ok(report_cancelled_run(context, cancelled, schedule.as_deref()));
    }
    let is_stopping = campaign_runs::stop_run(ledger.as_ref(), &run).await?;
    Ok(report_stop_request(context, &run, is_stopping))
}

/// Shows the rows that will be cancelled, and asks for confirmation.
async fn confirm_cancellation(context: &Context, run: &Run, cancellation: &Cancellation) -> Result<(), CommandFailure> {
    let (name, rows) = (run.name(), format_count(cancellation.count_planned_rows(), "row"));
    let destination = if run.live { format!("through {}", run.gateway) } else { "a rehearsal".to_owned() };
    let title = format!("Stop {name} for good and cancel {rows}?");
    let counts = format!("{}: {}", format_count(run.recipients, "row"), format_counts(&cancellation.counts));
    let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, format!("cancel {rows}"))
        .with_enter_action("keep the run")
        .with_fact("run", format!("{destination} · {counts}"))
        .with_note("The run cannot be resumed.");
    if run.live {
        let skipped = if cancellation.kept > 0 { "the other recipients" } else { "these recipients" };
        prompt.add_note(format!("A later `run` of the same edition skips {skipped}, unless you pass `--again`."));
    }
    if cancellation.kept > 0 {
        prompt.add_note(describe_kept_rows(cancellation.kept, run.live));
    }
    if cancellation.is_sending {
        prompt.add_note(
            "The run is still sending: requests in flight are completed first, so fewer rows might be left to cancel.",
        );
    }
    if cancellation.is_scheduled {
        prompt = prompt
            .with_note(describe_active_schedule(&run.campaign))
            .with_command("To remove it", removal_command(context, &run.campaign));
    }
    let prompt = prompt.with_command("To pause the run instead", context.output.command(format!("stop {name}")));
    require_confirmation(&context.output, prompt, &format!("cancelling {rows} in {name}"), "The run is unchanged.")
        .await
}

/// Reports that the run will stop, or that no process is sending it.
fn report_stop_request(context: &Context, run: &Run, is_stopping: bool) -> u8 {
    let name = run.name();
    if context.output.json {
        context.output.print_object(&json!({ "run": name, "stopping": is_stopping, "exit": exit::SUCCESS }));
        return exit::SUCCESS;
    }
    let status = match is_stopping {
        true => "stops once the requests in flight are complete",
        false => "is not being sent, so there is nothing to stop",
    };
    let next = context.output.command(format!("status {name}"));
    context.output.print_done(format!("{name} {status}\nnext: {next}\n"), exit::SUCCESS);
    exit::SUCCESS
}

/// Explains that the schedule of the campaign stays active.
fn describe_active_schedule(schedule: &str) -> String {
    format!("The schedule `{schedule}` remains active and sends messages at its next scheduled time.")
}

/// Explains the state of messages that were to be sent again.
fn describe_kept_rows(kept: u64, is_live: bool) -> String {
    let are = choose_plural(kept, "is", "are");
    let keep = choose_plural(kept, "keeps its", "keep their");
    let again = if is_live { " A later `run` sends the rejected and unsent ones again." } else { "" };
    format!(
        "{} of these messages {are} not sent again in this run and {keep} earlier state.{again}",
        format_thousands(kept)
    )
}

/// The command that removes a schedule.
fn removal_command(context: &Context, schedule: &str) -> String {
    context.output.command(format!("schedule remove {schedule}"))
}

/// Reports a cancelled run. `schedule` is the name of the schedule that stays active.
fn report_cancelled_run(
    context: &Context,
    CancelledRun { rows, kept, released }: CancelledRun,
    schedule: Option<&str>,
) -> u8 {
    let (name, counts, exit) =
        (released.run.name(), &released.snapshot.counts, exit::exit_code_of_released_run(&released));
    let out_option = if released.stale_results.is_some() { " --out FILE" } else { "" };
    let next = match NextStep::for_doubt(counts) {
        Some(step) if released.run.live => context.output.suggest_for_run(&name, &step),
        _ => context.output.command(format!("results {name}{out_option}")),
    };
    if context.output.json {
        let counts = counts_json(counts);
        context.output.print_object(&json!({
            "run": name, "rows": rows, "counts": counts, "schedule": schedule, "exit": exit, "next": next,
        }));
    } else {
        let (rows, counts) = (format_count(rows, "row"), format_counts(counts));
        let schedule = schedule.map(|name| {
            format!("  {}\n  To remove it: {}\n", describe_active_schedule(name), removal_command(context, name))
        });
        let schedule = schedule.unwrap_or_default();
        let kept =
            if kept > 0 { format!("  {}\n", describe_kept_rows(kept, released.run.live)) } else { String::new() };
        let text = format!("{name} is stopped for good: {rows} cancelled\n  {counts}\n{kept}{schedule}next: {next}\n");
        context.output.print_done(&text, exit);
    }
    if let Some(stale_results) = released.stale_results {
        context.output.print_note(&describe_stale_results(&context.output, stale_results));
    }
    exit
}

#[cfg(test)]
mod tests {
    use campaign_engine::delivery::PollCounts;

    #[test]
    fn poll_summary_has_a_separate_count_of_unpolled_messages() {
        let none = PollCounts::default();
        let describe = |polled| super::describe_poll_result(&polled);
        assert_eq!(describe(none), "every accepted message has a final status");
        assert_eq!(
            describe(PollCounts { asked: 120, updated: 110, blind: 1, unclear: 2, left: 5, ..none }),
            "asked the gateway about 120 messages without a final status: 110 updated, 1 with an inconclusive \
             response, 2 without a usable response; 5 more were not checked, so try again later"
        );
        assert_eq!(
            describe(PollCounts { left: 1, ..none }),
            "the gateway was not asked about 1 message without a final status; try again later"
        );
    }
}
