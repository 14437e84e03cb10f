//! Outcome of a command that sent a campaign, as text or JSON: summary, notes, the next command and the exit code.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::summary::{RunSummary, Tone, summary_json};
use super::{describe_excluded_rows, describe_not_resent_rows};
use crate::events::describe_results_backup;
use crate::forecast::describe_list_format;
use crate::hint::is_refused_locally;
use crate::output::Output;
use crate::retry::not_retried_json;
use crate::suggested::{LIVE_GATEWAY, resume_step, send_arguments, shell_path, with_gateway};
use crate::text::StyledText;
use crate::{exit, schedule};
use campaign_core::calendar::SentByDay;
use campaign_core::domain::choose_plural;
use campaign_core::finding::join_alternatives;
use campaign_engine::check::count_sending_days;
use campaign_engine::delivery::Stop;
use campaign_engine::report::{
    NextStep, ResultsBackup, RunInDoubt, format_count, format_duration, format_local_minute, format_thousands,
    rehearsal_json,
};
use campaign_gateway::ContractDeviation;
use campaign_ledger::{RowState, Run, StateCounts, StopKind};
use campaign_manifest::ReceiptMode;
use campaign_runs::{EarlierSending, EndedRun, Inputs, NothingLeft, RunOutcome};
use campaign_sandbox::{ChannelTally, Counts};

/// Prints the outcome of a command that sent a campaign.
pub(super) struct OutcomePrinter<'a> {
    pub(super) output: &'a Output,
    pub(super) inputs: &'a Inputs,
    /// The gateway of `--gateway`, which replaces the campaign's.
    pub(super) gateway: Option<&'a str>,
    /// The names of the live gateways that the summary can suggest.
    pub(super) live_gateways: Vec<String>,
}

impl OutcomePrinter<'_> {
    /// Prints the summary and returns the exit code. `is_real_time` means that this command kept to the rate limit of
    /// a live run.
    pub(super) fn print_outcome(&self, outcome: RunOutcome, is_real_time: bool) -> u8 {
        let mut summaries = Vec::new();
        let backup = match &outcome {
            RunOutcome::Ended(ended) => ended.kept.clone(),
            RunOutcome::NothingLeft(_) => None,
        };
        let (last_code, last_summary) = match outcome {
            RunOutcome::Ended(mut ended) => {
                summaries.extend(ended.earlier.take().map(|earlier| self.summarize_ended_run(*earlier, is_real_time)));
                self.summarize_ended_run(*ended, is_real_time)
            }
            RunOutcome::NothingLeft(mut nothing) => {
                summaries
                    .extend(nothing.earlier.take().map(|earlier| self.summarize_ended_run(*earlier, is_real_time)));
                (exit::exit_code_without_run(&nothing), self.summarize_nothing_left(&nothing))
            }
        };
        for (_, earlier) in summaries.iter_mut().filter(|(_, earlier)| earlier.results == last_summary.results) {
            self.note_replaced_results(earlier, backup.as_ref());
        }
        let code = summaries.iter().map(|(code, _)| *code).fold(last_code, exit::more_severe_code);
        if self.output.json {
            let mut object = summary_json(&last_summary, code);
            if let Some((code, earlier)) = summaries.pop() {
                object["earlier"] = summary_json(&earlier, code);
            }
            self.output.print_object(&object);
        } else {
            summaries.push((last_code, last_summary));
            let mut text = StyledText::new();
            summaries.iter().for_each(|(_, summary)| text.extend(summary.render_text()));
            self.output.print_done(text, code);
        }
        code
    }

    /// Updates the summary of an earlier run whose results were replaced: names the backup, or adds a note.
    fn note_replaced_results(&self, earlier: &mut RunSummary, backup: Option<&ResultsBackup>) {
        if let Some(backup) = backup.filter(|backup| earlier.run.as_ref() == Some(&backup.run)) {
            earlier.results = Some(backup.path.display().to_string());
            return;
        }
        if let (Some(path), Some(run)) = (earlier.results.take(), &earlier.run) {
            let command = self.output.command(format!("results {run} --out FILE"));
            earlier.notes.push(format!(
                "`{path}` now contains the next edition's results; to write this edition's \
                                        results to another file: {command}"
            ));
        }
    }

    fn summarize_ended_run(&self, ended: EndedRun, is_real_time: bool) -> (u8, RunSummary) {
        let mut code = exit::exit_code_of_end(ended.kind, &ended.counts);
        let mut notes = ended.played.as_ref().map(describe_sandbox).unwrap_or_default();
        if ended.notes.skipped.unconfirmed > 0 {
            code = exit::more_severe_code(code, exit::STOPPED);
            notes.push(self.describe_unconfirmed_messages(&ended));
        }
        notes.extend(describe_excluded_rows(&ended.excluded));
        notes.extend(describe_not_resent_rows(&ended.not_resent));
        notes.extend(self.collect_notes(&ended, is_real_time));
        notes.extend(ended.kept.as_ref().map(describe_results_backup));
        notes.extend(ended.open_doubts.iter().map(|doubt| self.describe_open_doubt(doubt).0));
        notes.extend(status_note(self.output, self.inputs, &ended.run, &ended.counts));
        if ended.stop.as_ref().is_some_and(|stop| is_refused_locally(&stop.reason)) {
            notes.push("if this gateway is the sandbox, start it with `campaign sandbox`".to_owned());
        }
        notes.extend(self.describe_follow_up(&ended, code));
        let (in_part, not_retried) = (ended.in_part, not_retried_json(&ended.notes.skipped));
        let EndedRun {
            run,
            stop,
            kind,
            counts,
            sent,
            opted_out,
            parts,
            has_unreported_parts,
            time,
            results,
            played,
            not_begun_error,
            ..
        } = ended;
        let mut later = Value::Null;
        if let Some(error) = not_begun_error {
            let explanation = self.output.explain_error(&error);
            let how = if explanation.exit == exit::INVALID { "did not start" } else { "did not finish" };
            notes.push(format!("the current edition {how}: {}", explanation.to_single_line()));
            later = json!({ "exit": explanation.exit, "error": explanation.message });
            // The code `INVALID` would mean that this command sent nothing.
            code = exit::more_severe_code(
                code,
                if explanation.exit == exit::INVALID { exit::STOPPED } else { explanation.exit },
            );
        }
        let results = match results {
            Some(Ok(path)) => Some(path.display().to_string()),
            Some(Err(error)) => {
                notes.push(self.output.explain_error(&error).to_single_line());
                None
            }
            None => None,
        };
        let summary = RunSummary {
            next: self.next_command(&run, code, &counts, stop.as_ref()),
            run: Some(run.name()),
            campaign: run.campaign,
            gateway: run.gateway,
            endpoint: run.endpoint.name(),
            rows: run.recipients,
            sent,
            opted_out,
            at_least: has_unreported_parts,
            tone: Tone::for_run(kind, &counts),
            counts,
            in_part,
            parts,
            time,
            how: match kind {
                _ if stop.is_none() => "finished",
                // The requested rows were processed by earlier commands, or skipped.
                Some(StopKind::Limit) if sent == 0 => "sent no messages",
                Some(StopKind::Limit) => "sent the requested messages",
                _ => "stopped",
            },
            stopped: kind.map(StopKind::json_name),
            why: stop.as_ref().map(ToString::to_string),
            results,
            rehearsal: !run.live,
            sandbox: played.as_ref().map_or(Value::Null, rehearsal_json),
            later,
            not_retried,
            notes,
        };
        (code, summary)
    }

    /// Describes the messages that a retry skipped because the gateway did not confirm that they failed.
    fn describe_unconfirmed_messages(&self, EndedRun { run, notes, .. }: &EndedRun) -> String {
        let retry = self.output.command(format!("retry {} --state failed", run.name()));
        format!(
            "not retried: {} (the gateway did not confirm that delivery failed on every channel); to try again: \
             {retry}",
            format_count(notes.skipped.unconfirmed, "message")
        )
    }

    /// Summarizes a command that had no recipients left to send to.
    fn summarize_nothing_left(&self, nothing: &NothingLeft) -> RunSummary {
        let (campaign, survey) = (&self.inputs.campaign, &nothing.survey.survey);
        let (mut notes, mut next) = (describe_excluded_rows(&nothing.survey.survey.left_out), None);
        if let Some(before) = &nothing.before {
            notes.push(describe_earlier_sending(before));
            if survey.count_planned() == 0 && survey.all_recipients > 0 {
                notes.push(self.describe_another_round(survey.all_recipients));
            }
            next = Some(self.output.command(format!("status {}", before.run)));
        } else if survey.count_planned() == 0 && !nothing.cancelled_in.is_empty() && survey.all_recipients > 0 {
            notes.push(self.describe_another_round(survey.all_recipients));
        }
        notes.extend(describe_cancelled_runs(&nothing.cancelled_in));
        // Rows in doubt are skipped too, and another round does not resolve them.
        for (note, command) in nothing.open_doubts.iter().map(|doubt| self.describe_open_doubt(doubt)) {
            notes.push(note);
            next = Some(command);
        }
        let reason = match (survey.recipients, survey.count_planned()) {
            (0, _) => "the list has no recipients",
            (_, 0) => "no recipients are left to send to",
            _ => "the selected rows were already sent or skipped",
        };
        RunSummary {
            why: Some(reason.to_owned()),
            rehearsal: !self.inputs.destination.is_live(),
            notes,
            next: next.unwrap_or_else(|| self.output.command(format!("check {}", shell_path(&campaign.file)))),
            ..RunSummary::without_sending(&campaign.brief, survey)
        }
    }

    /// Describes how to send another message to the recipients.
    fn describe_another_round(&self, recipients: u64) -> String {
        let again = send_arguments(&self.inputs.campaign, self.gateway);
        let edition_advice = match self.inputs.campaign.brief.edition {
            None => "give the campaign an `edition`, for example `edition: \"{{ today }}\"`",
            Some(_) => "change the campaign's `edition`, or, if it contains the date, wait until the next day",
        };
        let again = self.output.command(format!("{again} --again {recipients}"));
        format!("to send a new mailing, {edition_advice}; to send this message to all recipients again: {again}")
    }

    /// Describes a run with rows in doubt, and also returns the command that resolves these rows.
    fn describe_open_doubt(&self, RunInDoubt { run, rows, step }: &RunInDoubt) -> (String, String) {
        let command = self.output.suggest_for_run(run, step);
        let are = choose_plural(*rows, "is", "are");
        (format!("{} in {run} {are} still in doubt: {command}", format_count(*rows, "row")), command)
    }

    /// Collects the notes about an ended run.
    fn collect_notes(&self, ended: &EndedRun, is_real_time: bool) -> Vec<String> {
        /// The number of errors that the notes show.
        const SHOWN_ERRORS: usize = 5;
        let (output, mut notes, EndedRun { run, counts, .. }) = (self.output, Vec::new(), ended);
        let rejected: u64 = ended.errors.most_frequent(usize::MAX).map(|(_, count)| count).sum();
        // The counts cover the whole run, to which earlier commands might have contributed.
        let scope = if rejected < counts.get(RowState::Rejected) { " this time" } else { "" };
        for (error, count) in ended.errors.most_frequent(SHOWN_ERRORS) {
            notes.push(format!("{} rejected{scope}: {error}", format_thousands(count)));
        }
        let opted_out = if run.live { ended.skipped_opt_outs } else { ended.opted_out };
        if opted_out > 0 {
            let (recipients, were) = (format_count(opted_out, "recipient"), choose_plural(opted_out, "was", "were"));
            notes.push(match run.live {
                true => format!("{recipients} opted out during the run and {were} skipped"),
                false => format!("{recipients} opted out; in a live run, they would get no more marketing messages"),
            });
        }
        notes.extend(ended.deviations.counts().map(|(deviation, count)| describe_deviation(deviation, count)));
        let (name, in_doubt) = (run.name(), counts.get(RowState::InDoubt));
        let resolve = output.suggest_for_run(&name, &NextStep::Decide);
        if in_doubt > 0 {
            let (rows, are) = (format_count(in_doubt, "row"), choose_plural(in_doubt, "is", "are"));
            let messages = choose_plural(in_doubt, "the message, so it is", "the messages, so they are");
            notes.push(format!(
                "{rows} {are} in doubt: the gateway might or might not have accepted {messages} not sent again. The \
                 results show the reason for each row"
            ));
            // The built-in sandbox ended with the run.
            if self.inputs.destination.profile().is_some() {
                notes
                    .push(format!("to ask the gateway again: {}", output.suggest_for_run(&name, &NextStep::Reconcile)));
            }
            notes.push(format!("to decide yourself: {resolve}, where DECISION is sent, not-sent or send-again"));
        }
        let unresolved = counts.get(RowState::Unresolved);
        if unresolved > 0 {
            let rows = format_count(unresolved, "row");
            notes.push(format!(
                "{rows} unresolved: the gateway cannot tell whether the messages were sent; to decide: {resolve}"
            ));
        }
        let skipped = counts.get(RowState::Skipped);
        if let Some(before) = &ended.notes.before {
            let results = output.command(format!("results {} --out FILE", before.run));
            let results = if before.purged { String::new() } else { format!("; results: {results}") };
            notes.push(describe_earlier_sending(before) + &results);
        }
        notes.extend(describe_cancelled_runs(&ended.notes.cancelled_in));
        notes.extend(
            self.inputs
                .list_format()
                .and_then(|format| describe_list_format(&format))
                .map(|format| format!("list: {format}")),
        );
        let rate = self.inputs.campaign.delivery.rate;
        let sent = run.recipients - skipped - counts.get(RowState::Invalid);
        let is_comparable = !run.live && !is_real_time && sent > 0;
        let due = self.inputs.campaign.next_due_after(Timestamp::now());
        if let (true, Some(rate)) = (is_comparable, rate)
            && let Some(per_second) = rate.per_second()
        {
            let time = Duration::from_secs_f64(sent as f64 / per_second);
            let openings = self.inputs.campaign.count_openings(None, time, due);
            let openings = openings.map(|openings| format!(", spread over {openings} sending windows"));
            let (time, openings) = (format_duration(time), openings.unwrap_or_default());
            notes.push(format!("a live run takes about {time} at `delivery.rate: {rate}`{openings}"));
        }
        // A retry does not read the time zones of recipients.
        if let (true, Some(zones)) = (is_comparable, &ended.notes.zones)
            && let Some(days) = count_sending_days(&self.inputs.campaign, None, zones, &SentByDay::default(), sent, due)
        {
            notes.push(format!("a live run takes {} because of `delivery.per_day`", format_count(days, "day")));
        }
        notes
    }

    /// Describes the step that follows the next command, for a finished run whose rows need attention first.
    fn describe_follow_up(&self, EndedRun { run, counts, kind, .. }: &EndedRun, code: u8) -> Option<String> {
        match code {
            exit::REJECTIONS | exit::IN_DOUBT if kind.is_some() => None,
            exit::REJECTIONS | exit::IN_DOUBT if !run.live && skips_all_rows(counts) => None,
            exit::REJECTIONS | exit::IN_DOUBT if !run.live => {
                Some(format!("to send it live: {}", self.describe_going_live()))
            }
            exit::REJECTIONS | exit::IN_DOUBT => self.output.suggest_retry(run, counts),
            _ => None,
        }
    }

    /// Describes how to send a rehearsed campaign: through a configured live gateway, or through a new gateway.
    fn describe_going_live(&self) -> String {
        let path = shell_path(&self.inputs.campaign.file);
        if self.inputs.campaign.schedule.is_some() && self.live_gateways.contains(&self.inputs.own_gateway) {
            return schedule::activation_command(&self.inputs.campaign.file, &self.output.options);
        }
        match self.live_gateways.as_slice() {
            [] => self.output.command(format!("gateway add {LIVE_GATEWAY} --for {path}")),
            [gateway] => self.output.command(send_arguments(&self.inputs.campaign, Some(gateway))),
            several => {
                let live = self.output.command(send_arguments(&self.inputs.campaign, Some("NAME")));
                format!("{live}, where NAME is {}", join_alternatives(several.iter().map(String::as_str)))
            }
        }
    }

    /// Describes where to correct the API key that the gateway rejected.
    fn suggest_key_correction(&self) -> String {
        match self.inputs.destination.profile() {
            Some(profile) => {
                format!("correct the key in {}, which the profile `{}` uses", profile.api_key, profile.name)
            }
            None => "change the scenario, which rejects every key".to_owned(),
        }
    }

    /// Suggests the next command.
    fn next_command(&self, run: &Run, code: u8, counts: &StateCounts, stop: Option<&Stop>) -> String {
        let (path, name, output) = (shell_path(&self.inputs.campaign.file), run.name(), self.output);
        let resume = output.command(with_gateway(format_args!("run {path}"), self.gateway));
        let resume = resume_step(stop.map(|stop| stop.kind), stop.map(|stop| stop.reason.as_str()), resume);
        match code {
            exit::SUCCESS if skips_all_rows(counts) => output.command(format!("check {path}")),
            exit::SUCCESS if !run.live => self.describe_going_live(),
            _ if counts.get(RowState::Planned) > 0 && !matches!(code, exit::REFUSED_KEY | exit::STORAGE) => resume,
            exit::SUCCESS => status_command(output, self.inputs, run, counts),
            exit::IN_DOUBT if run.live => {
                output.suggest_for_run(&name, &NextStep::for_doubt(counts).unwrap_or(NextStep::Wait))
            }
            exit::REJECTIONS | exit::IN_DOUBT => output.suggest_for_run(&name, &NextStep::for_ended_run(counts)),
            exit::REFUSED_KEY => format!("{}, then: {resume}", self.suggest_key_correction()),
            exit::STORAGE => format!("{}, then: {resume}", self.output.describe_ledger_repair()),
            _ => resume,
        }
    }
}

/// Whether all rows of a run are skipped or invalid.
fn skips_all_rows(counts: &StateCounts) -> bool {
    counts.get(RowState::Skipped) + counts.get(RowState::Invalid) == counts.total()
}

/// Describes the run that already sent the message, and its campaign file.
fn describe_earlier_sending(before: &EarlierSending) -> String {
    let EarlierSending { run, began_at, file, later, purged: _ } = before;
    let from = file.as_ref().map(|file| format!(", from `{}`", file.display())).unwrap_or_default();
    let later = match later {
        0 => String::new(),
        runs => format!(" and in {}", format_count(*runs as u64, "later run")),
    };
    format!("already sent in {run} ({}){from}{later}", format_local_minute(*began_at))
}

/// Describes the cancelled runs of the edition, whose recipients are skipped. `None` if no run was cancelled.
fn describe_cancelled_runs(runs: &[String]) -> Option<String> {
    let (last, others) = runs.split_last()?;
    let runs = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some(format!(
        "recipients cancelled in {runs} are skipped; to send to them, use a new `edition`; to send to all recipients again, \
         add `--again`"
    ))
}

/// Describes how accepted answers deviate from the contract.
fn describe_deviation(deviation: ContractDeviation, count: u64) -> String {
    let problem = match deviation {
        ContractDeviation::UntrustedStatus(status) => return describe_untrusted_status(status, count),
        ContractDeviation::NumericRequestId => "a numeric `request_id` instead of a string",
        ContractDeviation::NegativeMsgId => "a negative `msg_id`",
        ContractDeviation::RepeatedMsgId => "a `msg_id` that another message already has",
    };
    let times = format_count(count, "time");
    format!(
        "warning: the gateway returned {problem} {times}; the responses were accepted, but please tell your provider"
    )
}

/// Describes why messages are in doubt after a rate-limit answer, and how to get such messages retried.
fn describe_untrusted_status(status: u16, count: u64) -> String {
    let messages =
        if count == 1 { "1 message is".to_owned() } else { format!("{} messages are", format_thousands(count)) };
    format!(
        "after HTTP {status}, {messages} in doubt and will not be retried. If your provider confirms that HTTP {status} \
         means \"not processed\", add `trust_status: [{status}]` to the gateway's profile; such \
         messages will be retried from then on"
    )
}

/// The source of the delivery status of a live run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusSource {
    /// The gateway sends receipts to the webhook endpoint of `campaign serve`.
    Webhook,
    /// `campaign serve` or `campaign reconcile` asks the gateway.
    Polling,
}

/// The source of the delivery status of a run. `None` in a rehearsal, without open messages, or if receipts are off.
fn status_source(inputs: &Inputs, run: &Run, counts: &StateCounts) -> Option<StatusSource> {
    let is_open = counts.get(RowState::Accepted) + counts.get(RowState::Queued) > 0;
    let receipts = inputs.campaign.receipts;
    if !run.live || !is_open || receipts == ReceiptMode::Off {
        return None;
    }
    let has_hook = inputs.destination.profile().is_some_and(|profile| profile.hook.is_some());
    Some(if has_hook && receipts.uses_webhooks() { StatusSource::Webhook } else { StatusSource::Polling })
}

/// The note below the counts on how the delivery statuses of open messages arrive. `None` in a rehearsal, without open
/// messages, or if receipts are off.
fn status_note(output: &Output, inputs: &Inputs, run: &Run, counts: &StateCounts) -> Option<String> {
    Some(match status_source(inputs, run, counts)? {
        StatusSource::Webhook => {
            let serve = output.command("serve");
            format!("delivery receipts arrive by webhook while `{serve}` is running")
        }
        StatusSource::Polling => {
            let ask = output.command(format!("reconcile {} --all", run.name()));
            format!("to ask the gateway for the delivery status of every message: {ask}")
        }
    })
}

/// Suggests the `status` command for a finished live run. At a terminal, the command follows receipts that arrive by
/// webhook; otherwise, it exits at once.
fn status_command(output: &Output, inputs: &Inputs, run: &Run, counts: &StateCounts) -> String {
    let name = run.name();
    let is_watched = !output.json && output.terminal_width().is_some();
    match status_source(inputs, run, counts) {
        Some(StatusSource::Webhook) if is_watched => output.command(format!("status {name} --watch")),
        _ => output.command(format!("status {name}")),
    }
}

/// Describes the figures of the sandbox after a rehearsal with a scenario: deliveries by channel, and cost.
fn describe_sandbox(counts: &Counts) -> Vec<String> {
    let currency = &counts.funds.currency;
    let mut lines = Vec::new();
    for (channel, tally) in &counts.channels {
        let ChannelTally { delivered, read, replied, failed, spent } = *tally;
        // The sandbox also counts read messages as delivered, and messages with a reply as read.
        let details = join_counts(&[(read, "read"), (replied, "answered")]);
        let details = if details.is_empty() { details } else { format!(" ({details})") };
        let delivered = (delivered > 0).then(|| format!("{} delivered{details}", format_thousands(delivered)));
        let failed = Some(join_counts(&[(failed, "not delivered")])).filter(|failed| !failed.is_empty());
        let parts: Vec<String> = delivered.into_iter().chain(failed).collect();
        lines.push(format!("{channel}: {} · {} {currency}", parts.join(", "), spent.trim_decimals()));
    }
    let funds = &counts.funds;
    lines.push(format!(
        "cost in this scenario: {} {currency}; remaining balance: {} {currency}",
        funds.spent.trim_decimals(),
        funds.balance.trim_decimals()
    ));
    lines
}

/// Joins counts with their labels, without zeros.
fn join_counts(counts: &[(u64, &str)]) -> String {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, label)| format!("{} {label}", format_thousands(*count))).collect::<Vec<_>>().join(", ")
}
