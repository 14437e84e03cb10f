//! Progress while a run is sent: a bar on a terminal, a line every ten seconds without one.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::delivery::DeliveryEvent;
use crate::finding::one_line;
use crate::ledger::State;
use crate::report::{Estimate, SendingProgress, counts_line, duration, thousands};

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// Shows events on standard error.
pub(super) struct Progress {
    sending: Mutex<SendingProgress>,
    shown: Shown,
}

enum Shown {
    Bar(ProgressBar),
    /// Lines, the last of which was written then.
    Lines(Mutex<Instant>),
    Nothing,
}

impl Progress {
    /// Progress over `total` rows: a bar if standard error is a terminal, nothing if `quiet`.
    pub(super) fn new(total: u64, terminal: bool, quiet: bool) -> Self {
        let shown = match (quiet, terminal) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Bar(bar(total)),
            (false, false) => Shown::Lines(Mutex::new(Instant::now())),
        };
        Self { sending: Mutex::new(SendingProgress::new(total)), shown }
    }

    /// Takes an event in.
    pub(super) fn show(&self, event: &DeliveryEvent) {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            DeliveryEvent::Settled { counts } => {
                sending.settled(Instant::now(), counts);
                self.draw(&sending);
            }
            DeliveryEvent::Warning(what) => self.say(&format!("warning: {what}")),
            DeliveryEvent::Waiting { reason, time } => {
                sending.waits();
                if let Shown::Bar(bar) = &self.shown {
                    bar.set_message(message(&sending));
                }
                self.say(&format!("waiting {}: {reason}", duration(*time)));
            }
            DeliveryEvent::Stopping { reason, in_flight, at_most } => self.say(&format!(
                "stopping ({reason}): waiting for {} operations in flight, at most {}",
                thousands(*in_flight as u64),
                duration(*at_most)
            )),
        }
    }

    /// Takes the bar away, so that the summary stands alone.
    pub(super) fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn draw(&self, sending: &SendingProgress) {
        match &self.shown {
            Shown::Bar(bar) => {
                bar.set_position(sending.through());
                bar.set_message(message(sending));
            }
            Shown::Lines(last) => {
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                if last.elapsed() >= EVERY {
                    *last = Instant::now();
                    let (through, total) = (thousands(sending.through()), thousands(sending.total()));
                    self.say(&format!("{through} of {total} rows: {}", counts_line(sending.counts())));
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

/// The words beside the bar; none before the first row.
fn message(sending: &SendingProgress) -> String {
    let counts = sending.counts();
    if counts.total() == 0 {
        return String::new();
    }
    let sent = counts.get(State::Accepted) + counts.get(State::Queued);
    format!(
        "{} of {}  {} accepted · {} rejected · {} in doubt{}",
        thousands(sending.through()),
        thousands(sending.total()),
        thousands(sent),
        thousands(counts.get(State::Rejected)),
        thousands(counts.get(State::InDoubt)),
        sending.estimate().map(estimated).unwrap_or_default()
    )
}

/// An estimate as it stands behind the counts.
fn estimated(Estimate { rate, left }: Estimate) -> String {
    let rate = if rate < 10.0 { format!("{rate:.1}") } else { thousands(rate.round() as u64) };
    format!("  {rate}/s  {} left", duration(left))
}

fn bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5)).with_style(style)
}

/// A closed standard error ends no run.
fn error_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", one_line(line));
}
