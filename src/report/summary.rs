//! The summary of a run: counts that add up to the rows, and what to do next.

use std::fmt::Write as _;
use std::time::Duration;

use crate::finding::one_line;
use crate::ledger::{State, StateCounts};

/// What a call to `run` has to tell at its end.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The run's name; nothing for a dry run.
    pub run: Option<String>,
    /// The campaign.
    pub campaign: String,
    /// The gateway's profile.
    pub gateway: String,
    /// The endpoint.
    pub endpoint: &'static str,
    /// Recipients.
    pub rows: u64,
    /// Counts by state.
    pub counts: StateCounts,
    /// Parts: the gateway's figure after sending, our own before.
    pub parts: u64,
    /// How long the call took.
    pub time: Duration,
    /// Why it stopped before the end.
    pub stopped: Option<String>,
    /// Where the results are.
    pub results: Option<String>,
    /// Whether this was a rehearsal on the built-in sandbox.
    pub rehearsal: bool,
    /// What the sandbox tells of a rehearsal with a scenario, for programs; null without one.
    pub sandbox: serde_json::Value,
    /// Lines in plain words below the counts.
    pub notes: Vec<String>,
    /// What to do next: a command, or a sentence.
    pub next: String,
}

impl Summary {
    /// The summary as one JSON object.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "run": self.run,
            "campaign": self.campaign,
            "gateway": self.gateway,
            "endpoint": self.endpoint,
            "rows": self.rows,
            "counts": counts_json(&self.counts),
            "parts": self.parts,
            "seconds": (self.time.as_secs_f64() * 1000.0).round() / 1000.0,
            "stopped": self.stopped,
            "results": self.results,
            "rehearsal": self.rehearsal,
            "sandbox": self.sandbox,
            "notes": self.notes,
            "next": self.next,
        })
    }

    /// The summary as a person reads it; its last line says what to do next.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let name = self.run.as_deref().unwrap_or(&self.campaign);
        let how = one_line(&match (&self.run, &self.stopped) {
            (None, None) => "dry run: nothing was sent".to_owned(),
            (None, Some(reason)) => reason.clone(),
            (Some(_), None) => "finished".to_owned(),
            (Some(_), Some(reason)) => format!("stopped: {reason}"),
        });
        let place = if self.rehearsal { "rehearsal on the built-in sandbox" } else { &self.gateway };
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{name} · {place} · {} · {how}", self.endpoint);
        let _ = writeln!(text, "  {}: {}", plural(self.rows, "row"), counts_line(&self.counts));
        // The asynchronous endpoint tells no parts.
        let parts = if self.parts > 0 { format!("{} · ", plural(self.parts, "part")) } else { String::new() };
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

/// The counts as a JSON object, state by state.
#[must_use]
pub fn counts_json(counts: &StateCounts) -> serde_json::Value {
    counts
        .iter()
        .map(|(state, count)| (state.name().to_owned(), count.into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The counts on one line, in the order of the states.
#[must_use]
pub fn counts_line(counts: &StateCounts) -> String {
    let parts: Vec<String> = State::ALL
        .into_iter()
        .map(|state| (state, counts.get(state)))
        .filter(|(_, count)| *count > 0)
        .map(|(state, count)| format!("{} {}", thousands(count), state.name().replace('_', " ")))
        .collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

/// A number with its thousands apart: `1 000 000`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A time in words that fit its size: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
#[must_use]
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A number with its word: `1 row`, `2 rows`.
#[must_use]
pub fn plural(count: u64, word: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {word}{s}", thousands(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_are_written_for_people() {
        assert_eq!(
            (thousands(0), thousands(999), thousands(1_000_000)),
            ("0".into(), "999".into(), "1 000 000".into())
        );
        let times = [(400, "0.4 s"), (12_000, "12 s"), (200_000, "3 min 20 s"), (7_500_000, "2 h 5 min")];
        for (milliseconds, text) in times {
            assert_eq!(duration(Duration::from_millis(milliseconds)), text);
        }
    }
}
