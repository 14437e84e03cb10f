//! Progress while a run is sent: a bar on a terminal, a line every ten seconds without one.

use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::speed::{Estimate, Speed};
use super::summary::{counts_line, duration, thousands};
use crate::delivery::DeliveryEvent;
use crate::finding::one_line;
use crate::ledger::{State, StateCounts};

/// How often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(10);

/// Shows events on standard error.
pub struct Progress {
    shown: Shown,
    total: u64,
}

enum Shown {
    Bar(ProgressBar, Mutex<Moving>),
    Lines(Mutex<Instant>),
    Nothing,
}

/// What the words beside the bar are made of.
#[derive(Default)]
struct Moving {
    speed: Speed,
    counts: StateCounts,
}

impl Progress {
    /// Progress over `total` rows: a bar if standard error is a terminal, nothing if `quiet`.
    #[must_use]
    pub fn new(total: u64, terminal: bool, quiet: bool) -> Self {
        let shown = match (quiet, terminal) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Bar(bar(total), Mutex::default()),
            (false, false) => Shown::Lines(Mutex::new(Instant::now())),
        };
        Self { shown, total }
    }

    /// Takes an event in.
    pub fn show(&self, event: &DeliveryEvent) {
        match event {
            DeliveryEvent::Settled { counts } => self.counts(counts),
            DeliveryEvent::Warning(what) => self.say(&format!("warning: {what}")),
            DeliveryEvent::Waiting { reason, time } => {
                self.wait();
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
    pub fn finish(&self) {
        if let Shown::Bar(bar, _) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn counts(&self, counts: &StateCounts) {
        let through = self.through(counts);
        match &self.shown {
            Shown::Bar(bar, moving) => {
                let Ok(mut moving) = moving.lock() else { return };
                moving.speed.through(Instant::now(), through);
                moving.counts.clone_from(counts);
                bar.set_position(through);
                bar.set_message(self.message(&moving));
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

    /// Takes the estimate away, which held only while something could be sent.
    fn wait(&self) {
        if let Shown::Bar(bar, moving) = &self.shown
            && let Ok(mut moving) = moving.lock()
        {
            moving.speed.waits();
            bar.set_message(self.message(&moving));
        }
    }

    fn through(&self, counts: &StateCounts) -> u64 {
        self.total.saturating_sub(counts.get(State::Planned) + counts.get(State::Sending))
    }

    /// The words beside the bar; none before the first row.
    fn message(&self, moving: &Moving) -> String {
        let Moving { speed, counts } = moving;
        if counts.iter().next().is_none() {
            return String::new();
        }
        let through = self.through(counts);
        let sent = counts.get(State::Accepted) + counts.get(State::Queued);
        let estimate = speed.estimate(self.total.saturating_sub(through));
        format!(
            "{} of {}  {} accepted · {} rejected · {} in doubt{}",
            thousands(through),
            thousands(self.total),
            thousands(sent),
            thousands(counts.get(State::Rejected)),
            thousands(counts.get(State::InDoubt)),
            estimate.map(estimated).unwrap_or_default()
        )
    }

    fn say(&self, line: &str) {
        match &self.shown {
            Shown::Bar(bar, _) => bar.suspend(|| error_line(line)),
            Shown::Lines(_) => error_line(line),
            Shown::Nothing => {}
        }
    }
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
