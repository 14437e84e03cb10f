//! The summary of a call that sent a campaign: counts, notes, what to do next.

use std::path::Path;
use std::time::Duration;

use super::played;
use super::summary::Summary;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::cli::suggested::{LIVE, file};
use crate::finding::list;
use crate::gateway::Oddity;
use crate::ledger::{Run, State, StateCounts};
use crate::report::{NextStep, OpenDoubt, duration, played_json, plural, thousands};
use crate::runs::{EndedRun, Inputs, ListSurvey, NothingLeft, Outcome};

/// Words about a call that sent a campaign.
pub(super) struct Words<'a> {
    pub(super) output: &'a Output,
    pub(super) inputs: &'a Inputs,
    /// The gateway that was named instead of the campaign's.
    pub(super) gateway: Option<&'a str>,
    /// The gateways that lead to people.
    pub(super) live: Vec<String>,
}

impl Words<'_> {
    /// Prints the summary and gives the code of the call, which kept the pace of a real run or not.
    pub(super) fn tell(&self, outcome: Outcome, real_time: bool) -> u8 {
        let (code, summary) = match outcome {
            Outcome::Ended(ended) => {
                let code = exit::code(ended.kind, &ended.counts);
                (code, self.ended(*ended, code, real_time))
            }
            Outcome::NothingLeft(nothing) => (exit::NOTHING, self.nothing_left(&nothing)),
        };
        print(self.output, &summary, code);
        code
    }

    fn ended(&self, ended: EndedRun, code: u8, real_time: bool) -> Summary {
        let mut notes = ended.played.as_ref().map(played::lines).unwrap_or_default();
        notes.extend(self.notes(&ended, real_time));
        notes.extend(ended.open_doubts.iter().map(|doubt| self.open_doubt(doubt).0));
        let EndedRun { run, stop, counts, parts, time, results, played, .. } = ended;
        let results = match results {
            Some(Ok(path)) => Some(path.display().to_string()),
            Some(Err(error)) => {
                notes.push(self.output.explain(error).message);
                None
            }
            None => None,
        };
        Summary {
            next: self.next(&run, code, &counts),
            run: Some(run.name()),
            campaign: run.campaign,
            gateway: run.gateway,
            endpoint: run.endpoint.name(),
            rows: run.recipients,
            counts,
            parts,
            time,
            stopped: stop.as_ref().map(ToString::to_string),
            results,
            rehearsal: !run.live,
            sandbox: played.as_ref().map_or(serde_json::Value::Null, played_json),
            notes,
        }
    }

    /// Says that nobody is left to be sent to.
    fn nothing_left(&self, nothing: &NothingLeft) -> Summary {
        let (campaign, survey) = (&self.inputs.campaign, &nothing.survey.survey);
        let preview = self.output.command(format!("preview {}", file(&campaign.file)));
        // Who is in doubt is skipped too, and everybody once more is no answer to that.
        let (mut notes, mut next) = (left_out(&nothing.survey), None);
        for (note, command) in nothing.open_doubts.iter().map(|doubt| self.open_doubt(doubt)) {
            notes.push(note);
            next = Some(command);
        }
        Summary {
            run: None,
            campaign: campaign.brief.name.clone(),
            gateway: campaign.brief.gateway.clone(),
            endpoint: campaign.brief.endpoint.name(),
            rows: survey.recipients,
            counts: survey.counts(),
            parts: 0,
            time: Duration::ZERO,
            stopped: Some("nothing is left to send".to_owned()),
            results: None,
            rehearsal: !self.inputs.destination.is_live(),
            sandbox: serde_json::Value::Null,
            notes,
            next: next.unwrap_or_else(|| format!("{preview}, or `--again N` to send to everybody once more")),
        }
    }

    /// A run with rows whose outcome nobody knows, and the command about it.
    fn open_doubt(&self, OpenDoubt { run, rows, step }: &OpenDoubt) -> (String, String) {
        let command = self.output.about_run(run, step);
        (format!("nobody knows what became of {} of {run}: {command}", plural(*rows, "row")), command)
    }

    /// What a person should know of this call besides the counts.
    fn notes(&self, ended: &EndedRun, real_time: bool) -> Vec<String> {
        let (output, mut notes, EndedRun { run, counts, .. }) = (self.output, Vec::new(), ended);
        for (error, count) in ended.errors.commonest(5) {
            notes.push(format!("rejected {} ×: {error}", thousands(count)));
        }
        notes.extend(ended.oddities.counts().map(|(oddity, count)| odd(oddity, count)));
        let (name, doubt) = (run.name(), counts.get(State::InDoubt));
        let resolve = output.about_run(&name, &NextStep::Decide);
        if doubt > 0 {
            let rows = if doubt == 1 { "1 row is".to_owned() } else { format!("{} rows are", thousands(doubt)) };
            notes.push(format!(
                "{rows} in doubt: nothing proves whether the message went out. Nothing was sent again; the results say \
                 why, row by row"
            ));
            notes.push(format!("ask again: {}", output.about_run(&name, &NextStep::Ask)));
            notes.push(format!("or decide: {resolve}, which is sent, not-sent or send-again"));
        }
        let unresolved = counts.get(State::Unresolved);
        if unresolved > 0 {
            let rows = plural(unresolved, "row");
            notes.push(format!("{rows} unresolved: everything that could be asked was asked. Decide: {resolve}"));
        }
        let before = counts.get(State::Skipped);
        if before > 0 && run.number > 1 {
            let (status, results) = (output.command("status"), output.command("results RUN --out FILE"));
            notes.push(format!("the results of those who were sent to before: {status}, then {results}"));
        }
        let rate = self.inputs.campaign.delivery.rate;
        if let (false, false, Some(per_second)) = (run.live, real_time, rate.per_second()) {
            let sent = run.recipients - before - counts.get(State::Invalid);
            let time = duration(Duration::from_secs_f64(sent as f64 / per_second));
            notes.push(format!("the real run would take about {time} at `delivery.rate: {rate}`"));
        }
        notes
    }

    /// What leads from a rehearsal to people: the only gateway there is, or a new one.
    fn go_live(&self) -> String {
        let path = file(&self.inputs.campaign.file);
        match self.live.as_slice() {
            [] => self.output.command(format!("gateway add {LIVE} --for {path}")),
            [one] => self.output.command(format!("run {path} --gateway {one}")),
            several => {
                let live = self.output.command(format!("run {path} --gateway NAME"));
                format!("{live}, where NAME is {}", list(several.iter().map(String::as_str)))
            }
        }
    }

    /// The command that comes next.
    fn next(&self, run: &Run, code: u8, counts: &StateCounts) -> String {
        let (path, name, output) = (&self.inputs.campaign.file, run.name(), self.output);
        let again = output.command(run_again(path, self.gateway));
        match code {
            exit::FINE if !run.live => self.go_live(),
            exit::FINE | exit::NOTHING => output.command(format!("status {name}")),
            exit::DOUBT if run.live => output.about_run(&name, &NextStep::of_doubt(counts).unwrap_or(NextStep::Wait)),
            exit::REJECTIONS | exit::DOUBT => output.about_run(&name, &NextStep::of_ended(counts)),
            exit::KEY => format!("mend the key in gateways.yaml, then: {again}"),
            exit::STORAGE => format!("make room or mend the disk, then: {again}"),
            _ => again,
        }
    }
}

/// Prints a summary, and for a program the code of the call, with the reason where it is one of a failure.
pub(super) fn print(output: &Output, summary: &Summary, code: u8) {
    if !output.json {
        return output.result(&summary.text());
    }
    let mut object = summary.json();
    object["exit"] = code.into();
    if !matches!(code, exit::FINE | exit::REJECTIONS | exit::DOUBT) {
        let reason = summary.stopped.clone().or_else(|| summary.notes.last().cloned());
        object["error"] = reason.unwrap_or_else(|| "it ended before the last row".to_owned()).into();
    }
    output.object(&object);
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
pub(in crate::cli) fn left_out(surveyed: &ListSurvey) -> Vec<String> {
    let mut sets: Vec<_> = surveyed.survey.left_out.sets().collect();
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
