//! Progress while a run is sent: a bar on a terminal, a line every ten seconds without one.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::summary::{counts_line, duration, thousands};
use crate::delivery::Event;
use crate::ledger::{State, StateCounts};

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// Shows events on standard error.
pub struct Progress {
    shown: Shown,
    total: u64,
}

enum Shown {
    Bar(ProgressBar),
    Lines(Mutex<Instant>),
    Nothing,
}

impl Progress {
    /// Progress over `total` rows: a bar if standard error is a terminal, nothing if `quiet`.
    #[must_use]
    pub fn new(total: u64, terminal: bool, quiet: bool) -> Self {
        let shown = match (quiet, terminal) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Bar(bar(total)),
            (false, false) => Shown::Lines(Mutex::new(Instant::now())),
        };
        Self { shown, total }
    }

    /// Takes an event in.
    pub fn show(&self, event: &Event) {
        match event {
            Event::Settled { counts } => self.counts(counts),
            Event::Warning(what) => self.say(&format!("warning: {what}")),
            Event::Waiting { reason, time } => self.say(&format!("waiting {}: {reason}", duration(*time))),
            Event::Stopping { reason, in_flight, at_most } => self.say(&format!(
                "stopping ({reason}): waiting for {} operations in flight, at most {}",
                thousands(*in_flight as u64),
                duration(*at_most)
            )),
        }
    }

    /// Takes the bar away, so that the summary stands alone.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn counts(&self, counts: &StateCounts) {
        let through = self.total.saturating_sub(counts.get(State::Planned) + counts.get(State::Sending));
        match &self.shown {
            Shown::Bar(bar) => {
                bar.set_position(through);
                bar.set_message(message(counts));
            }
            Shown::Lines(last) => {
                let Ok(mut last) = last.lock() else { return };
                if last.elapsed() >= EVERY {
                    *last = Instant::now();
                    self.say(&format!(
                        "{} of {} rows: {}",
                        thousands(through),
                        thousands(self.total),
                        counts_line(counts)
                    ));
                }
            }
            Shown::Nothing => {}
        }
    }

    fn say(&self, line: &str) {
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| error_line(line)),
            Shown::Lines(_) => error_line(line),
            Shown::Nothing => {}
        }
    }
}

fn message(counts: &StateCounts) -> String {
    let sent = counts.get(State::Accepted) + counts.get(State::Queued);
    format!(
        "{} accepted · {} rejected · {} in doubt",
        thousands(sent),
        thousands(counts.get(State::Rejected)),
        thousands(counts.get(State::InDoubt))
    )
}

fn bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {human_pos}/{human_len}  {msg}  {rate}  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            // A bar that cannot be drawn ends nothing.
            let _ = write!(out, "{:.0}/s", state.per_sec());
        });
    ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5)).with_style(style)
}

/// A closed standard error ends no run.
fn error_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
