//! The summary of a call to `run`: counts that add up to the rows, and what to do next.

use std::fmt::Write as _;
use std::time::Duration;

use crate::finding::one_line;
use crate::ledger::StateCounts;
use crate::report::{counts_json, counts_line_in_part, duration, plural};

/// What a call to `run` has to tell at its end.
#[derive(Clone, Debug)]
pub(super) struct Summary {
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
    /// How the call came out, in words.
    pub(super) how: String,
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

impl Summary {
    /// The summary as one JSON object.
    pub(super) fn json(&self) -> serde_json::Value {
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
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let name = self.run.as_deref().unwrap_or(&self.campaign);
        let how = one_line(&self.how);
        let place = if self.rehearsal { "rehearsal on the built-in sandbox" } else { &self.gateway };
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{name} · {place} · {} · {how}", self.endpoint);
        let _ = writeln!(text, "  {}: {}", plural(self.rows, "row"), counts_line_in_part(&self.counts, self.in_part));
        // The asynchronous endpoint tells no parts.
        let at_least = if self.at_least { "at least " } else { "" };
        let parts =
            if self.parts > 0 { format!("{at_least}{} · ", plural(self.parts, "part")) } else { String::new() };
        let _ = writeln!(text, "  {parts}{}", duration(self.time));
        if let Some(results) = &self.results {
            let _ = writeln!(text, "  results: {}", one_line(results));
        }
        for note in &self.notes {
            let _ = writeln!(text, "  {}", one_line(note));
        }
        let rehearsal = if self.rehearsal { " (this was a rehearsal: nobody got a message)" } else { "" };
        let _ = writeln!(text, "next{rehearsal}: {}", self.next);
        text
    }
}
