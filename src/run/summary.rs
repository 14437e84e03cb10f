//! The summary of a command that sent a campaign: counts, notes and the next command, as text and as JSON.

use std::time::Duration;

use serde_json::Value;

use crate::output::Output;
use crate::text::{Span, StyledLine, StyledText, bad, caution, dim, good, plain, strong};
use crate::{exit, status};
use campaign_engine::check::Survey;
use campaign_engine::report::{FAILED_STATES, IN_DOUBT_STATES, counts_json, format_count, format_duration};
use campaign_ledger::{RowState, StateCounts, StopKind};
use campaign_manifest::CampaignBrief;

/// The tone of a summary, which shows how well a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// All messages were sent.
    Good,
    /// Some rows need attention, or the run was stopped by an operator, a signal or its sending window.
    Caution,
    /// A problem stopped the run.
    Bad,
}

/// The summary of a `run` command.
#[derive(Clone, Debug)]
pub(super) struct RunSummary {
    /// The name of the run. `None` for a dry run.
    pub(super) run: Option<String>,
    /// The name of the campaign.
    pub(super) campaign: String,
    /// The name of the gateway profile.
    pub(super) gateway: String,
    /// The name of the endpoint.
    pub(super) endpoint: &'static str,
    /// The number of recipients.
    pub(super) rows: u64,
    /// The number of rows in each state.
    pub(super) counts: StateCounts,
    /// Messages that were delivered only in part.
    pub(super) in_part: u64,
    /// Messages that this command sent, or might have sent.
    pub(super) sent: u64,
    /// Recipients who opted out while the run was being sent.
    pub(super) opted_out: u64,
    /// Message parts: counted by the gateway after sending, and calculated before.
    pub(super) parts: u64,
    /// Whether there might be more parts than `parts`.
    pub(super) at_least: bool,
    /// The time that the command took.
    pub(super) time: Duration,
    /// A few words that say how the command ended.
    pub(super) how: &'static str,
    pub(super) tone: Tone,
    /// The word for the stop reason.
    pub(super) stopped: Option<&'static str>,
    /// The reason the run stopped, or the reason nothing was sent.
    pub(super) why: Option<String>,
    /// The path of the results.
    pub(super) results: Option<String>,
    /// Whether this was a rehearsal in the built-in sandbox.
    pub(super) rehearsal: bool,
    /// The figures of the sandbox after a rehearsal with a scenario, for JSON. Null without a scenario.
    pub(super) sandbox: serde_json::Value,
    /// The failure of the next edition, for JSON. Null if it did not fail.
    pub(super) later: serde_json::Value,
    /// The rows that a retry did not send, by reason, for JSON. Null if there are none.
    pub(super) not_retried: serde_json::Value,
    /// Notes below the counts.
    pub(super) notes: Vec<String>,
    /// The next step: a command or a sentence.
    pub(super) next: String,
}

impl RunSummary {
    /// The summary of a command that sent nothing, without its notes, reasons and next step.
    pub(super) fn without_sending(brief: &CampaignBrief, survey: &Survey) -> Self {
        Self {
            run: None,
            campaign: brief.name.clone(),
            gateway: brief.gateway.clone(),
            endpoint: brief.endpoint.name(),
            rows: survey.recipients,
            counts: survey.count_by_state(),
            in_part: 0,
            sent: 0,
            opted_out: 0,
            parts: 0,
            at_least: false,
            time: Duration::ZERO,
            how: "sent no messages",
            tone: Tone::Caution,
            stopped: None,
            why: None,
            results: None,
            rehearsal: false,
            sandbox: serde_json::Value::Null,
            later: serde_json::Value::Null,
            not_retried: serde_json::Value::Null,
            notes: Vec::new(),
            next: String::new(),
        }
    }

    /// The summary as one JSON object.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let mut object = serde_json::json!({
            "run": self.run,
            "campaign": self.campaign,
            "gateway": self.gateway,
            "endpoint": self.endpoint,
            "rows": self.rows,
            "counts": counts_json(&self.counts),
            "sent": self.sent,
            "opted_out": self.opted_out,
            "parts": self.parts,
            "seconds": (self.time.as_secs_f64() * 1000.0).round() / 1000.0,
            "stopped": self.stopped,
            "why": self.why,
            "results": self.results,
            "rehearsal": self.rehearsal,
            "sandbox": self.sandbox,
            "later": self.later,
            "notes": self.notes,
            "next": self.next,
        });
        if !self.not_retried.is_null() {
            object["not_retried"] = self.not_retried.clone();
        }
        object
    }

    /// The summary as text. The last line is the next step.
    pub(super) fn render_text(&self) -> StyledText {
        let name = self.run.as_deref().unwrap_or(&self.campaign);
        let destination = if self.rehearsal { "rehearsal in the built-in sandbox" } else { &self.gateway };
        let how = self.tone.tone_span(self.how);
        let mut text = StyledText::from(StyledLine::new([
            self.tone.mark_span(),
            strong(name),
            plain(" "),
            how,
            dim(format!(" · {destination}, {}", self.endpoint)),
        ]));
        if let Some(why) = &self.why {
            text.add_line(2, [self.tone.tone_span(why)]);
        }
        text.add_line(2, row_counts(self.rows, &self.counts, self.in_part));
        // The asynchronous endpoint does not report parts.
        let at_least = if self.at_least { "at least " } else { "" };
        let parts =
            if self.parts > 0 { format!("{at_least}{} · ", format_count(self.parts, "part")) } else { String::new() };
        text.add_line(2, [dim(format!("{parts}{}", format_duration(self.time)))]);
        if let Some(results) = &self.results {
            text.push(StyledLine::new([dim("results: "), plain(results.as_str())]).with_indent(2).unbroken());
        }
        for note in &self.notes {
            text.push(StyledLine::from_prose(note).with_indent(2));
        }
        if self.rehearsal {
            text.add_line(2, [plain("This was a rehearsal: recipients got no messages.")]);
        }
        text.push(StyledLine::next_step(self.next.as_str()));
        text
    }
}

impl Tone {
    /// Derives the tone of a run from its stop reason and its counts.
    pub(super) fn for_run(stop: Option<StopKind>, counts: &StateCounts) -> Self {
        let any = |states: &[RowState]| states.iter().any(|state| counts.get(*state) > 0);
        match stop {
            Some(StopKind::StopRequested | StopKind::Interrupted(_) | StopKind::Window) => Self::Caution,
            None | Some(StopKind::Limit) if any(&IN_DOUBT_STATES) || any(&FAILED_STATES) => Self::Caution,
            None | Some(StopKind::Limit) => Self::Good,
            Some(_) => Self::Bad,
        }
    }

    fn mark_span(self) -> Span {
        match self {
            Self::Good => good("✓ "),
            Self::Caution => caution("! "),
            Self::Bad => bad("✗ "),
        }
    }

    fn tone_span(self, text: &str) -> Span {
        match self {
            Self::Good => good(text),
            Self::Caution => caution(text),
            Self::Bad => bad(text),
        }
    }
}

/// Formats the row counts of a run by state.
fn row_counts(rows: u64, counts: &StateCounts, in_part: u64) -> Vec<Span> {
    let mut spans = vec![plain(format!("{}: ", format_count(rows, "row")))];
    spans.extend(status::count_spans(counts, in_part));
    spans
}

/// Prints a summary. JSON contains the exit code.
pub(super) fn print_run_summary(output: &Output, summary: &RunSummary, code: u8) {
    if output.json {
        output.print_object(&summary_json(summary, code));
    } else {
        output.print_done(summary.render_text(), code);
    }
}

/// The summary as JSON with the exit code. If the code means a failure, the reason is included.
pub(super) fn summary_json(summary: &RunSummary, code: u8) -> Value {
    let mut object = summary.to_json();
    object["exit"] = code.into();
    if !matches!(code, exit::SUCCESS | exit::REJECTIONS | exit::IN_DOUBT) {
        let reason = summary.why.clone().or_else(|| summary.notes.last().cloned());
        object["error"] = reason.unwrap_or_else(|| "the run stopped before the last row".to_owned()).into();
    }
    object
}
