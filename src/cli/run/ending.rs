//! The end of a call: results into place, the run marked, the summary.

use std::path::Path;
use std::time::Instant;

use jiff::Timestamp;

use super::{Start, played};
use crate::cli::exit::{self, Failure, code};
use crate::cli::runs;
use crate::cli::suggested::file;
use crate::cli::survey::{self, Looked};
use crate::cli::target;
use crate::delivery::{Ending, RunFolder};
use crate::failpoint;
use crate::gateway::Oddity;
use crate::ledger::{Owner, Progress, Run, RunEnd, State, StateCounts, StopKind};
use crate::report::{NextStep, ResultsError, RunResults, Summary, Target, duration, plural, thousands};
use crate::sandbox::Counts;

impl Start<'_> {
    /// Writes the results, marks the run, prints the summary.
    pub(super) async fn end(
        &self,
        run: &Run,
        owner: Owner,
        ending: Ending,
        (parts_before, began): (u64, Instant),
        played: Option<&Counts>,
    ) -> Result<u8, Failure> {
        let kind = ending.stopped.as_ref().map(|stop| stop.kind);
        if let Some(StopKind::Interrupted(signal)) = kind
            && ending.counts.get(State::Sending) > 0
        {
            // A second signal: leave at once. What is in flight shows as doubt from the next look on.
            let rows = plural(ending.counts.get(State::Sending), "message");
            let message = format!(
                "interrupted twice with {rows} on the way: in doubt from now on, and not sent again by itself; the results \
                 were not written; run it again to go on"
            );
            return Err(Failure::new(exit::SIGNAL.saturating_add(signal), message));
        }
        let mut stop = kind;
        let results = self.inputs.campaign.results_file();
        let mut notes = played.map(played::lines).unwrap_or_default();
        notes.extend(self.notes(run, &ending));
        let runs = survey::runs_of(self.ledger.as_ref(), &self.inputs).await?;
        notes.extend(runs::doubts_elsewhere(self.context, &runs, Some(run.key)).into_iter().map(|(note, _)| note));
        let mut written = None;
        if kind != Some(StopKind::NotOwner) {
            let target = target::of_campaign(self.context, &self.inputs.campaign, results.clone())?;
            match self.write_results(run, &target).await {
                Ok(()) => {
                    tracing::info!(run = run.name(), "results written");
                    written = Some(results.display().to_string());
                }
                Err(error) => {
                    stop = Some(StopKind::ResultsUnwritten);
                    notes.push(Failure::from(error).message);
                }
            }
        }
        let done = kind.is_none() && ending.counts.get(State::Planned) + ending.counts.get(State::Sending) == 0;
        let stopped = ending.stopped.as_ref().map(ToString::to_string);
        let code = code(stop, &ending.counts);
        let parts = parts_before + ending.parts;
        if kind != Some(StopKind::Ledger) && kind != Some(StopKind::NotOwner) {
            let end = RunEnd {
                // Results come first: a run without them is not finished.
                progress: if done && written.is_some() { Progress::Finished } else { Progress::Open },
                stop,
                stopped: stopped.clone(),
                counts: ending.counts.clone(),
                parts,
                results: Some(absolute(&results)),
                lag: ending.lag,
                at: Timestamp::now(),
            };
            self.ledger.end(run.key, owner, end).await?;
            failpoint::pass("run.marked");
        }
        let summary = Summary {
            run: Some(run.name()),
            campaign: run.campaign.clone(),
            gateway: run.gateway.clone(),
            endpoint: run.endpoint.name(),
            rows: run.recipients,
            counts: ending.counts.clone(),
            parts,
            time: began.elapsed(),
            stopped,
            results: written,
            exit: code,
            rehearsal: !run.live,
            sandbox: played.map_or(serde_json::Value::Null, played::json),
            next: self.next(run, code, &ending.counts),
            notes,
        };
        self.print(&summary);
        Ok(code)
    }

    async fn write_results(&self, run: &Run, target: &Target) -> Result<(), ResultsError> {
        let folder = RunFolder::of(&self.state, &run.name());
        RunResults::open(self.ledger.as_ref(), &folder, run, false).await?.to_file(target).await
    }

    /// Says that nobody is left to be sent to.
    pub(super) async fn nothing_left(&self, looked: &Looked) -> Result<u8, Failure> {
        let campaign = &self.inputs.campaign;
        let preview = self.context.output.command(format!("preview {}", file(&campaign.file)));
        // Who is in doubt is skipped too, and everybody once more is no answer to that.
        let runs = survey::runs_of(self.ledger.as_ref(), &self.inputs).await?;
        let (mut notes, mut next) = (left_out(looked), None);
        for (note, command) in runs::doubts_elsewhere(self.context, &runs, None) {
            notes.push(note);
            next = Some(command);
        }
        let summary = Summary {
            run: None,
            campaign: campaign.brief.name.clone(),
            gateway: campaign.brief.gateway.clone(),
            endpoint: campaign.brief.endpoint.name(),
            rows: looked.survey.recipients,
            counts: looked.survey.counts(),
            parts: 0,
            time: std::time::Duration::ZERO,
            stopped: Some("nothing is left to send".to_owned()),
            results: None,
            exit: exit::NOTHING,
            rehearsal: !self.inputs.destination.is_live(),
            sandbox: serde_json::Value::Null,
            notes,
            next: next.unwrap_or_else(|| format!("{preview}, or `--again N` to send to everybody once more")),
        };
        self.print(&summary);
        Ok(exit::NOTHING)
    }

    fn print(&self, summary: &Summary) {
        let output = &self.context.output;
        if output.json {
            let mut object = summary.json();
            if !matches!(summary.exit, exit::FINE | exit::REJECTIONS | exit::DOUBT) {
                let reason = summary.stopped.clone().or_else(|| summary.notes.last().cloned());
                object["error"] = reason.unwrap_or_else(|| "it ended before the last row".to_owned()).into();
            }
            output.object(&object);
        } else {
            output.result(&summary.text());
        }
    }

    /// What a person should know of this call besides the counts.
    fn notes(&self, run: &Run, ending: &Ending) -> Vec<String> {
        let (output, mut notes) = (&self.context.output, Vec::new());
        for (error, count) in ending.errors.commonest(5) {
            notes.push(format!("rejected {} ×: {error}", thousands(count)));
        }
        notes.extend(ending.oddities.counts().map(|(oddity, count)| odd(oddity, count)));
        let doubt = ending.counts.get(State::InDoubt);
        if doubt > 0 {
            let rows = if doubt == 1 { "1 row is".to_owned() } else { format!("{} rows are", thousands(doubt)) };
            let name = run.name();
            notes.push(format!(
                "{rows} in doubt: nothing proves whether the message went out. Nothing was sent again; the results say \
                 why, row by row"
            ));
            notes.push(format!("ask again: {}", output.command(format!("reconcile {name}"))));
            let resolve = output.command(format!("resolve {name} --all --as DECISION"));
            notes.push(format!("or decide: {resolve}, which is sent, not-sent or send-again"));
        }
        let unresolved = ending.counts.get(State::Unresolved);
        if unresolved > 0 {
            let rows = plural(unresolved, "row");
            let resolve = output.command(format!("resolve {} --all --as DECISION", run.name()));
            notes.push(format!("{rows} unresolved: everything that could be asked was asked. Decide: {resolve}"));
        }
        let before = ending.counts.get(State::Skipped);
        if before > 0 && run.number > 1 {
            let (status, results) = (output.command("status"), output.command("results RUN --out FILE"));
            notes.push(format!("the results of those who were sent to before: {status}, then {results}"));
        }
        if !run.live && !self.args.real_time {
            let delivery = &self.inputs.campaign.delivery;
            if let Some(rate) = delivery.rate.per_second() {
                let sent = run.recipients - ending.counts.get(State::Skipped) - ending.counts.get(State::Invalid);
                let time = std::time::Duration::from_secs_f64(sent as f64 / rate);
                notes.push(format!(
                    "the real run would take about {} at `delivery.rate: {}`",
                    duration(time),
                    delivery.rate
                ));
            }
        }
        notes
    }

    /// The command that comes next.
    fn next(&self, run: &Run, code: u8, counts: &StateCounts) -> String {
        let (path, name, output) = (&self.inputs.campaign.file, run.name(), &self.context.output);
        let again = output.command(run_again(path, self.args.gateway.as_deref()));
        match code {
            exit::FINE if !run.live => {
                let live = output.command(format!("run {} --gateway NAME", file(path)));
                format!("{live}, with a profile in gateways.yaml, to send it for real")
            }
            exit::FINE => output.command(format!("status {name}")),
            exit::DOUBT if run.live => output.about_run(&name, &NextStep::of_doubt(counts).unwrap_or(NextStep::Wait)),
            exit::REJECTIONS | exit::DOUBT => output.about_run(&name, &NextStep::of_ended(counts)),
            exit::KEY => format!("mend the key in gateways.yaml, then: {again}"),
            exit::STORAGE => format!("make room or mend the disk, then: {again}"),
            exit::NOTHING => output.command(format!("status {name}")),
            _ => again,
        }
    }
}

/// What was odd about answers that count all the same, in words.
fn odd(oddity: Oddity, count: u64) -> String {
    let what = match oddity {
        Oddity::NumericRequestId => "a `request_id` that is a number and no text",
        Oddity::NegativeMsgId => "a negative `msg_id`",
        Oddity::RepeatedMsgId => "a `msg_id` that another message has already",
    };
    format!("warning: {} × the gateway gave {what}; it counts, but the provider should know", thousands(count))
}

/// Who is left out and why, a line per reason.
pub(in crate::cli) fn left_out(looked: &Looked) -> Vec<String> {
    let mut sets: Vec<_> = looked.survey.left_out.sets().collect();
    sets.sort_by_key(|(_, _, rows)| std::cmp::Reverse(rows.len()));
    let shown = sets.iter().take(8).map(|(state, reason, rows)| {
        format!("{} {state}: {reason} (first in row {})", thousands(rows.len()), rows.min().unwrap_or_default())
    });
    shown.collect()
}

/// The arguments that send a campaign, through the gateway that was named instead of its own.
pub(super) fn run_again(path: &Path, gateway: Option<&str>) -> String {
    let gateway = gateway.map(|gateway| format!(" --gateway {gateway}")).unwrap_or_default();
    format!("run {}{gateway}", file(path))
}

/// The path from the root, so that the results are found from any folder later.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
