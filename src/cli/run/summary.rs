//! The summary of a call to `run`: counts that add up to the rows, and what to do next.

use std::time::Duration;

use crate::cli::states;
use crate::cli::text::{Span, StyledLine, StyledText, bad, caution, dim, good, plain, strong};
use crate::ledger::{RowState, StateCounts, StopKind};
use crate::report::{FAILED_STATES, IN_DOUBT_STATES, counts_json, format_count, format_duration};

/// Whether a call ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// Everything was sent.
    Good,
    /// Some rows need a look.
    Caution,
    /// The run stopped early.
    Bad,
}

/// What a call to `run` has to tell at its end.
#[derive(Clone, Debug)]
pub(super) struct RunSummary {
    /// The run's name; nothing for a dry run.
    pub(super) run: Option<String>,
    /// The campaign.
    pub(super) campaign: String,
    /// The gateway's profile.
    pub(super) gateway: String,
    /// The endpoint.
    pub(super) endpoint: &'static str,
    /// Recipients.
    pub(super) rows: u64,
    /// Counts by state.
    pub(super) counts: StateCounts,
    /// Messages that were delivered only in part.
    pub(super) in_part: u64,
    /// Messages of this call that went out, or may have.
    pub(super) sent: u64,
    /// People who opted out while it was sent.
    pub(super) opted_out: u64,
    /// Parts: the gateway's figure after sending, our own before.
    pub(super) parts: u64,
    /// Whether there may be more parts than that.
    pub(super) at_least: bool,
    /// How long the call took.
    pub(super) time: Duration,
    /// How the call ended, in a word or two.
    pub(super) how: &'static str,
    /// Whether that is good or bad.
    pub(super) tone: Tone,
    /// The word for why it stopped before the end.
    pub(super) stopped: Option<&'static str>,
    /// Why it stopped, or why nothing was sent, in words.
    pub(super) why: Option<String>,
    /// Where the results are.
    pub(super) results: Option<String>,
    /// Whether this was a rehearsal on the built-in sandbox.
    pub(super) rehearsal: bool,
    /// What the sandbox tells of a rehearsal with a scenario, for programs; null without one.
    pub(super) sandbox: serde_json::Value,
    /// Why the next edition broke off, for a program; nothing where it did not.
    pub(super) later: serde_json::Value,
    /// Lines in plain words below the counts.
    pub(super) notes: Vec<String>,
    /// What to do next: a command, or a sentence.
    pub(super) next: String,
}

impl RunSummary {
    /// The summary as one JSON object.
    pub(super) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
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
        })
    }

    /// The summary as a person reads it; its last line says what to do next.
    pub(super) fn render_text(&self) -> StyledText {
        let name = self.run.as_deref().unwrap_or(&self.campaign);
        let place = if self.rehearsal { "rehearsal on the built-in sandbox" } else { &self.gateway };
        let how = self.tone.tone_span(self.how);
        let mut text = StyledText::from(StyledLine::new([
            self.tone.marked_sign(),
            strong(name),
            plain(" "),
            how,
            dim(format!(" · {place}, {}", self.endpoint)),
        ]));
        if let Some(why) = &self.why {
            text.add_line(2, [self.tone.tone_span(why)]);
        }
        text.add_line(2, row_counts(self.rows, &self.counts, self.in_part));
        // The asynchronous endpoint tells no parts.
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
    /// The tone of a run that stopped like this, or finished, with these counts.
    pub(super) fn for_run(stopped: Option<StopKind>, counts: &StateCounts) -> Self {
        let any = |states: &[RowState]| states.iter().any(|state| counts.get(*state) > 0);
        match stopped {
            Some(StopKind::StopRequested | StopKind::Interrupted(_) | StopKind::Window) => Self::Caution,
            None | Some(StopKind::Limit) if any(&IN_DOUBT_STATES) || any(&FAILED_STATES) => Self::Caution,
            None | Some(StopKind::Limit) => Self::Good,
            Some(_) => Self::Bad,
        }
    }

    fn marked_sign(self) -> Span {
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

/// The rows of the run by state.
fn row_counts(rows: u64, counts: &StateCounts, in_part: u64) -> Vec<Span> {
    let mut spans = vec![plain(format!("{}: ", format_count(rows, "row")))];
    spans.extend(states::count_spans(counts, in_part));
    spans
}
