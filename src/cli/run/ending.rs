//! The summary of a call that sent a campaign: counts, notes, what to do next.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::divided::left_out;
use super::following;
use super::played;
use super::summary::{Summary, Tone};
use crate::cli::clock::minute;
use crate::cli::events::kept_results;
use crate::cli::forecast::list_form;
use crate::cli::hint::is_refused_locally;
use crate::cli::output::Output;
use crate::cli::suggested::{LIVE, file, through};
use crate::cli::text::Text;
use crate::cli::{exit, schedule};
use crate::domain::one_or;
use crate::finding::list;
use crate::gateway::Oddity;
use crate::ledger::{Run, State, StateCounts, StopKind};
use crate::report::{KeptResults, NextStep, OpenDoubt, duration, played_json, plural, thousands};
use crate::runs::{EndedRun, Inputs, NothingLeft, Outcome, SentBefore};

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
        let mut told = Vec::new();
        let kept = match &outcome {
            Outcome::Ended(ended) => ended.kept.clone(),
            Outcome::NothingLeft(_) => None,
        };
        let last = match outcome {
            Outcome::Ended(mut ended) => {
                told.extend(ended.earlier.take().map(|earlier| self.ended(*earlier, real_time)));
                self.ended(*ended, real_time)
            }
            Outcome::NothingLeft(mut nothing) => {
                told.extend(nothing.earlier.take().map(|earlier| self.ended(*earlier, real_time)));
                (exit::of_nothing(&nothing), self.nothing_left(&nothing))
            }
        };
        for (_, earlier) in told.iter_mut().filter(|(_, earlier)| earlier.results == last.1.results) {
            self.took_the_place(earlier, kept.as_ref());
        }
        let code = told.iter().map(|(code, _)| *code).fold(last.0, exit::graver);
        if self.output.json {
            let mut object = object(&last.1, code);
            if let Some((code, earlier)) = told.pop() {
                object["earlier"] = self::object(&earlier, code);
            }
            self.output.object(&object);
        } else {
            told.push(last);
            let mut text = Text::new();
            told.iter().for_each(|(_, summary)| text.extend(summary.text()));
            self.output.done(text, code);
        }
        code
    }

    /// Says that the results of an earlier run gave way to those of the last one.
    fn took_the_place(&self, earlier: &mut Summary, kept: Option<&KeptResults>) {
        if let Some(kept) = kept.filter(|kept| earlier.run.as_ref() == Some(&kept.run)) {
            earlier.results = Some(kept.path.display().to_string());
            return;
        }
        if let (Some(path), Some(run)) = (earlier.results.take(), &earlier.run) {
            let again = self.output.command(format!("results {run} --out FILE"));
            earlier.notes.push(format!(
                "`{path}` now contains the next edition's results; to write those of this \
                                        edition: {again}"
            ));
        }
    }

    fn ended(&self, ended: EndedRun, real_time: bool) -> (u8, Summary) {
        let mut code = exit::code(ended.kind, &ended.counts);
        let mut notes = ended.played.as_ref().map(played::lines).unwrap_or_default();
        if ended.unconfirmed > 0 {
            code = exit::graver(code, exit::STOPPED);
            notes.push(self.unconfirmed(&ended));
        }
        notes.extend(left_out(&ended.left_out));
        notes.extend(self.notes(&ended, real_time));
        notes.extend(ended.kept.as_ref().map(kept_results));
        notes.extend(ended.open_doubts.iter().map(|doubt| self.open_doubt(doubt).0));
        notes.extend(following::note(self.output, self.inputs, &ended.run, &ended.counts));
        if ended.stop.as_ref().is_some_and(|stop| is_refused_locally(&stop.reason)) {
            notes.push("if this gateway is the sandbox, start it with `campaign sandbox`".to_owned());
        }
        notes.extend(self.onward(&ended, code));
        let in_part = ended.in_part;
        let EndedRun { run, stop, kind, counts, sent, opted_out, parts, time, results, played, not_begun, .. } = ended;
        let mut later = Value::Null;
        if let Some(error) = not_begun {
            let why = self.output.explain(&error);
            let how = if why.exit == exit::WRONG { "did not start" } else { "did not finish" };
            notes.push(format!("the current edition {how}: {}", why.on_one_line()));
            later = json!({ "exit": why.exit, "error": why.message });
            // Messages were sent, so that it is no call that sent nothing.
            code = exit::graver(code, if why.exit == exit::WRONG { exit::STOPPED } else { why.exit });
        }
        let results = match results {
            Some(Ok(path)) => Some(path.display().to_string()),
            Some(Err(error)) => {
                notes.push(self.output.explain(&error).on_one_line());
                None
            }
            None => None,
        };
        let summary = Summary {
            next: self.next(&run, code, &counts),
            run: Some(run.name()),
            campaign: run.campaign,
            gateway: run.gateway,
            endpoint: run.endpoint.name(),
            rows: run.recipients,
            sent,
            opted_out,
            at_least: parts.is_least(&counts),
            tone: Tone::of(kind, &counts),
            counts,
            in_part,
            parts: parts.billed,
            time,
            how: match kind {
                _ if stop.is_none() => "finished",
                Some(StopKind::Limit) => "sent the selected rows",
                _ => "stopped",
            },
            stopped: kind.map(StopKind::word),
            why: stop.as_ref().map(ToString::to_string),
            results,
            rehearsal: !run.live,
            sandbox: played.as_ref().map_or(Value::Null, played_json),
            later,
            notes,
        };
        (code, summary)
    }

    /// Says which messages a retry did not send.
    fn unconfirmed(&self, EndedRun { run, unconfirmed, .. }: &EndedRun) -> String {
        let retry = self.output.command(format!("retry {} --state failed", run.name()));
        format!(
            "not retried: {} (the gateway did not confirm that delivery failed on every channel); to try again: {retry}",
            plural(*unconfirmed, "message")
        )
    }

    /// Says that no recipients are left to send to.
    fn nothing_left(&self, nothing: &NothingLeft) -> Summary {
        let (campaign, survey) = (&self.inputs.campaign, &nothing.survey.survey);
        let (mut notes, mut next) = (left_out(&nothing.survey.survey.left_out), None);
        if let Some(before) = &nothing.before {
            notes.push(since(before));
            if survey.planned() == 0 && survey.everybody > 0 {
                notes.push(self.another_round(survey.everybody));
            }
            next = Some(self.output.command(format!("status {}", before.run)));
        } else if survey.planned() == 0 && !nothing.cancelled_in.is_empty() && survey.everybody > 0 {
            notes.push(self.another_round(survey.everybody));
        }
        notes.extend(cancelled_in(&nothing.cancelled_in));
        // Who is in doubt is skipped too, and everybody once more is no answer to that.
        for (note, command) in nothing.open_doubts.iter().map(|doubt| self.open_doubt(doubt)) {
            notes.push(note);
            next = Some(command);
        }
        let why = match (survey.recipients, survey.planned()) {
            (0, _) => "the list has no recipients",
            (_, 0) => "no recipients are left to send to",
            _ => "the selected rows were already sent or skipped",
        };
        Summary {
            run: None,
            campaign: campaign.brief.name.clone(),
            gateway: campaign.brief.gateway.clone(),
            endpoint: campaign.brief.endpoint.name(),
            rows: survey.recipients,
            counts: survey.counts(),
            in_part: 0,
            sent: 0,
            opted_out: 0,
            parts: 0,
            at_least: false,
            time: Duration::ZERO,
            how: "sent no messages",
            tone: Tone::Caution,
            stopped: None,
            why: Some(why.to_owned()),
            results: None,
            rehearsal: !self.inputs.destination.is_live(),
            sandbox: Value::Null,
            later: Value::Null,
            notes,
            next: next.unwrap_or_else(|| self.output.command(format!("check {}", file(&campaign.file)))),
        }
    }

    /// How recipients get another message.
    fn another_round(&self, everybody: u64) -> String {
        let again = run_again(&self.inputs.campaign.file, self.gateway);
        let another = match self.inputs.campaign.brief.edition {
            None => "give the campaign an `edition`, for example `edition: \"{{ today }}\"`",
            Some(_) => "change the campaign's `edition`, or wait for the next day if it contains the date",
        };
        let again = self.output.command(format!("{again} --again {everybody}"));
        format!("to send a new mailing, {another}; to send this message to all recipients again: {again}")
    }

    /// A run with rows in doubt, and the command about it.
    fn open_doubt(&self, OpenDoubt { run, rows, step }: &OpenDoubt) -> (String, String) {
        let command = self.output.about_run(run, step);
        let are = one_or(*rows, "is", "are");
        (format!("{} in {run} {are} still in doubt: {command}", plural(*rows, "row")), command)
    }

    /// What a person should know of this call besides the counts.
    fn notes(&self, ended: &EndedRun, real_time: bool) -> Vec<String> {
        let (output, mut notes, EndedRun { run, counts, .. }) = (self.output, Vec::new(), ended);
        let told: u64 = ended.errors.commonest(usize::MAX).map(|(_, count)| count).sum();
        // The counts are those of the run, to which other calls may have added.
        let here = if told < counts.get(State::Rejected) { " this time" } else { "" };
        for (error, count) in ended.errors.commonest(5) {
            notes.push(format!("{} rejected{here}: {error}", thousands(count)));
        }
        if ended.opted_out > 0 {
            let (recipients, were) = (plural(ended.opted_out, "recipient"), one_or(ended.opted_out, "was", "were"));
            notes.push(match run.live {
                true => format!("{recipients} opted out during the run and {were} skipped"),
                false => format!("{recipients} opted out; after a live run, they get no more marketing messages"),
            });
        }
        notes.extend(ended.oddities.counts().map(|(oddity, count)| odd(oddity, count)));
        let (name, doubt) = (run.name(), counts.get(State::InDoubt));
        let resolve = output.about_run(&name, &NextStep::Decide);
        if doubt > 0 {
            let (rows, are) = (plural(doubt, "row"), one_or(doubt, "is", "are"));
            let messages = one_or(doubt, "the message, so it is", "the messages, so they are");
            notes.push(format!(
                "{rows} {are} in doubt: the gateway might or might not have accepted {messages} not sent again. The \
                 results show the reason for each row"
            ));
            // The built-in sandbox ended with the run.
            if self.inputs.destination.profile().is_some() {
                notes.push(format!("to ask the gateway again: {}", output.about_run(&name, &NextStep::Ask)));
            }
            notes.push(format!("to decide yourself: {resolve}, where DECISION is sent, not-sent or send-again"));
        }
        let unresolved = counts.get(State::Unresolved);
        if unresolved > 0 {
            let rows = plural(unresolved, "row");
            notes.push(format!(
                "{rows} unresolved: the gateway cannot tell whether the messages were sent; to decide: {resolve}"
            ));
        }
        let skipped = counts.get(State::Skipped);
        if let Some(before) = &ended.before {
            let results = output.command(format!("results {} --out FILE", before.run));
            let results = if before.purged { String::new() } else { format!("; results: {results}") };
            notes.push(since(before) + &results);
        }
        notes.extend(cancelled_in(&ended.cancelled_in));
        notes.extend(self.inputs.list_form().and_then(|form| list_form(&form)).map(|form| format!("list: {form}")));
        let rate = self.inputs.campaign.delivery.rate;
        let sent = run.recipients - skipped - counts.get(State::Invalid);
        let compares = !run.live && !real_time && sent > 0;
        if let (true, Some(rate)) = (compares, rate)
            && let Some(per_second) = rate.per_second()
        {
            let time = Duration::from_secs_f64(sent as f64 / per_second);
            let openings = self.inputs.campaign.openings(None, time, None);
            let openings = openings.map(|openings| format!(", spread over {openings} sending windows"));
            let (time, openings) = (duration(time), openings.unwrap_or_default());
            notes.push(format!("a live run takes about {time} at `delivery.rate: {rate}`{openings}"));
        }
        if let (true, Some(per_day)) = (compares, &self.inputs.campaign.per_day) {
            notes.push(format!("a live run takes {} because of `delivery.per_day`", plural(per_day.days(sent), "day")));
        }
        notes
    }

    /// What comes after the look at the rows, to which a finished run with such rows leads first.
    fn onward(&self, EndedRun { run, counts, kind, .. }: &EndedRun, code: u8) -> Option<String> {
        match code {
            exit::REJECTIONS | exit::DOUBT if kind.is_some() => None,
            exit::REJECTIONS | exit::DOUBT if !run.live && reaches_nobody(counts) => None,
            exit::REJECTIONS | exit::DOUBT if !run.live => Some(format!("to send it live: {}", self.go_live())),
            exit::REJECTIONS | exit::DOUBT => self.output.about_refused(run, counts),
            _ => None,
        }
    }

    /// What leads from a rehearsal to people: the only gateway there is, or a new one.
    fn go_live(&self) -> String {
        let path = file(&self.inputs.campaign.file);
        if self.inputs.campaign.schedule.is_some() && self.live.contains(&self.inputs.own_gateway) {
            return schedule::words::arm(&self.inputs.campaign.file, &self.output.options);
        }
        match self.live.as_slice() {
            [] => self.output.command(format!("gateway add {LIVE} --for {path}")),
            [one] => self.output.command(through(format!("run {path}"), Some(one))),
            several => {
                let live = self.output.command(format!("run {path} --gateway NAME"));
                format!("{live}, where NAME is {}", list(several.iter().map(String::as_str)))
            }
        }
    }

    /// Where the key is that the gateway refused.
    fn where_the_key_is(&self) -> String {
        match self.inputs.destination.profile() {
            Some(profile) => {
                format!("correct the key in {}, which the profile `{}` uses", profile.api_key, profile.name)
            }
            None => "change the scenario, which rejects every key".to_owned(),
        }
    }

    /// The command that comes next.
    fn next(&self, run: &Run, code: u8, counts: &StateCounts) -> String {
        let (path, name, output) = (&self.inputs.campaign.file, run.name(), self.output);
        let again = output.command(run_again(path, self.gateway));
        match code {
            exit::FINE if reaches_nobody(counts) => output.command(format!("check {}", file(path))),
            exit::FINE if !run.live => self.go_live(),
            _ if counts.get(State::Planned) > 0 && !matches!(code, exit::KEY | exit::STORAGE) => again,
            exit::FINE => following::next(output, self.inputs, run, counts),
            exit::DOUBT if run.live => output.about_run(&name, &NextStep::of_doubt(counts).unwrap_or(NextStep::Wait)),
            exit::REJECTIONS | exit::DOUBT => output.about_run(&name, &NextStep::of_ended(counts)),
            exit::KEY => format!("{}, then: {again}", self.where_the_key_is()),
            exit::STORAGE => format!("{}, then: {again}", self.output.ledger_repair()),
            _ => again,
        }
    }
}

/// Prints a summary, and for a program the code of the call.
pub(super) fn print(output: &Output, summary: &Summary, code: u8) {
    if output.json {
        output.object(&object(summary, code));
    } else {
        output.done(summary.text(), code);
    }
}

/// A summary for a program, with the code, and the reason where that is one of a failure.
fn object(summary: &Summary, code: u8) -> Value {
    let mut object = summary.json();
    object["exit"] = code.into();
    if !matches!(code, exit::FINE | exit::REJECTIONS | exit::DOUBT) {
        let reason = summary.why.clone().or_else(|| summary.notes.last().cloned());
        object["error"] = reason.unwrap_or_else(|| "the run stopped before the last row".to_owned()).into();
    }
    object
}

/// Whether a run sent nothing and has no planned rows left.
fn reaches_nobody(counts: &StateCounts) -> bool {
    counts.get(State::Skipped) + counts.get(State::Invalid) == counts.total()
}

/// The run that already sent the message, and the file that it was sent from.
fn since(before: &SentBefore) -> String {
    let SentBefore { run, began_at, file, later, purged: _ } = before;
    let from = file.as_ref().map(|file| format!(", from `{}`", file.display())).unwrap_or_default();
    let later = match later {
        0 => String::new(),
        runs => format!(" and in {}", plural(*runs as u64, "later run")),
    };
    format!("already sent in {run} ({}){from}{later}", minute(*began_at))
}

/// Which runs of the edition were stopped for good, so that their recipients are skipped; nothing if none was.
fn cancelled_in(runs: &[String]) -> Option<String> {
    let (last, others) = runs.split_last()?;
    let runs = if others.is_empty() { last.clone() } else { format!("{} and {last}", others.join(", ")) };
    Some(format!(
        "recipients cancelled in {runs} are skipped; to send to them, use a new `edition`; to send to all recipients again, \
         add `--again`"
    ))
}

/// What was odd about answers that count all the same, in words.
fn odd(oddity: Oddity, count: u64) -> String {
    let what = match oddity {
        Oddity::UntrustedStatus(status) => return untrusted(status, count),
        Oddity::NumericRequestId => "a numeric `request_id` instead of a string",
        Oddity::NegativeMsgId => "a negative `msg_id`",
        Oddity::RepeatedMsgId => "a `msg_id` that another message already has",
    };
    let times = plural(count, "time");
    format!("warning: the gateway returned {what} {times}; the responses were accepted, but please tell your provider")
}

/// Why messages are in doubt after a request to slow down, and how to get such messages retried.
fn untrusted(status: u16, count: u64) -> String {
    let messages = if count == 1 { "1 message is".to_owned() } else { format!("{} messages are", thousands(count)) };
    format!(
        "after HTTP {status}, {messages} in doubt and not retried. If your provider confirms that HTTP {status} means \"not \
         processed\", add `trust_status: [{status}]` to the gateway's profile; later messages are then retried"
    )
}

/// The arguments that send a campaign, through the gateway that was named instead of its own.
pub(super) fn run_again(path: &Path, gateway: Option<&str>) -> String {
    through(format_args!("run {}", file(path)), gateway)
}
