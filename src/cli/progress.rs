//! Progress of a run: a bar on a terminal, a line every ten seconds without one, objects for programs.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use textwrap::core::display_width;

use super::args::ProgressForm;
use super::live_line::{self, LiveLine, with_suspended_line};
use super::output::{Output, error_terminal_width};
use super::text::{Span, SpanMeaning, StyledLine, dim, join_spans, plain, span, strong};
use crate::delivery::{AfterWait, DeliveryEvent};
use crate::finding::{escape_json_controls, escape_to_one_line};
use crate::ledger::RowState;
use crate::report::{Estimate, SendingProgress, format_count, format_counts, format_duration, format_thousands};

/// How often a line is written without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// How often a program gets the counts.
const OBJECT_INTERVAL: Duration = Duration::from_secs(1);

/// Shows events on standard error.
pub(super) struct ProgressReporter {
    sending: Mutex<SendingProgress>,
    shown: ProgressDisplay,
    output: Output,
}

enum ProgressDisplay {
    Bar(LiveLine),
    /// Lines, the last of which was written then.
    Lines(Mutex<Instant>),
    /// Objects, the last of which with counts was written then.
    Json(Mutex<Instant>),
    Nothing,
}

impl ProgressReporter {
    /// The progress of a run with this many rows; this command leaves `later` of them planned.
    pub(super) fn new(rows: u64, later: u64, output: &Output) -> Self {
        let shown = match output.progress_form() {
            ProgressForm::Bar => ProgressDisplay::Bar(live_line::show_bar(styled_bar(rows.saturating_sub(later)))),
            ProgressForm::Auto | ProgressForm::Lines => ProgressDisplay::Lines(Mutex::new(Instant::now())),
            ProgressForm::Json => ProgressDisplay::Json(Mutex::new(Instant::now())),
            ProgressForm::None => ProgressDisplay::Nothing,
        };
        Self { sending: Mutex::new(SendingProgress::new(rows, later)), shown, output: output.clone() }
    }

    /// Takes an event in.
    pub(super) fn handle_event(&self, event: &DeliveryEvent) {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            DeliveryEvent::Settled { counts } => {
                sending.update_counts(Instant::now(), counts);
                return self.draw_bar(&sending);
            }
            DeliveryEvent::Waiting { .. } | DeliveryEvent::Asking { .. } => {
                sending.pause();
                if let ProgressDisplay::Bar(line) = &self.shown {
                    line.bar().set_message(self.bar_message(&sending));
                }
            }
            DeliveryEvent::Warning(_) | DeliveryEvent::Slow { .. } | DeliveryEvent::Stopping { .. } => {}
        }
        match &self.shown {
            ProgressDisplay::Json(_) => print_json_line(event_json(event)),
            _ => self.print_line(&describe_event(event)),
        }
    }

    /// Removes the bar, so that the summary takes its place; a program gets the last counts.
    pub(super) fn finish_display(&self) {
        match &self.shown {
            ProgressDisplay::Bar(line) => line.bar().finish_and_clear(),
            ProgressDisplay::Json(_) => {
                let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
                print_json_line(sending.to_json());
            }
            ProgressDisplay::Lines(_) | ProgressDisplay::Nothing => {}
        }
    }

    fn draw_bar(&self, sending: &SendingProgress) {
        match &self.shown {
            ProgressDisplay::Bar(line) => {
                let bar = line.bar();
                bar.set_length(sending.total());
                bar.set_position(sending.count_done());
                bar.set_message(self.bar_message(sending));
            }
            ProgressDisplay::Lines(last) if is_due(last, LINE_INTERVAL) => {
                let (through, total) = (format_thousands(sending.count_done()), format_thousands(sending.total()));
                self.print_line(&format!("{through} of {total} messages: {}", format_counts(sending.counts())));
            }
            ProgressDisplay::Json(last) if is_due(last, OBJECT_INTERVAL) => print_json_line(sending.to_json()),
            ProgressDisplay::Lines(_) | ProgressDisplay::Json(_) | ProgressDisplay::Nothing => {}
        }
    }

    /// The words beside the bar.
    fn bar_message(&self, sending: &SendingProgress) -> String {
        StyledLine::new(message_spans(sending, error_terminal_width().unwrap_or(80)))
            .render(None, self.output.error_color())
    }

    fn print_line(&self, line: &str) {
        match &self.shown {
            ProgressDisplay::Bar(_) => self.output.print_lines(line),
            // A reader of a log wants to know the time.
            ProgressDisplay::Lines(_) => {
                print_error_line(&format!("{}  {line}", Zoned::now().strftime("%Y-%m-%d %H:%M:%S")))
            }
            ProgressDisplay::Json(_) | ProgressDisplay::Nothing => {}
        }
    }
}

/// Whether the last output is this long ago. If so, the next one is now.
fn is_due(last: &Mutex<Instant>, every: Duration) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let due = last.elapsed() >= every;
    if due {
        *last = Instant::now();
    }
    due
}

/// An event in words, without counts.
fn describe_event(event: &DeliveryEvent) -> String {
    match event {
        DeliveryEvent::Settled { .. } => String::new(),
        DeliveryEvent::Warning(what) => format!("warning: {what}"),
        DeliveryEvent::Waiting { reason, time, next } => describe_wait(reason, *time, *next),
        DeliveryEvent::Slow { waited, at_most } => {
            format!(
                "waiting for a response: {} so far, at most {}",
                format_duration(*waited),
                format_duration(*at_most)
            )
        }
        DeliveryEvent::Asking { at_most } => {
            format!("waiting up to {} for delivery reports on the warm-up messages", format_duration(*at_most))
        }
        DeliveryEvent::Stopping { reason, in_flight, at_most } => format!(
            "stopping ({reason}): waiting for {} in flight, at most {}",
            format_count(*in_flight as u64, "message"),
            format_duration(*at_most)
        ),
    }
}

/// A wait in words: whether it ends with a retry or with the next messages.
pub(super) fn describe_wait(reason: &str, time: Duration, next: AfterWait) -> String {
    let time = format_duration(time);
    match next {
        AfterWait::Retry => format!("waiting {time} before the next attempt: {reason}"),
        AfterWait::Next { in_doubt: 0 } => format!("waiting {time}: {reason}"),
        AfterWait::Next { in_doubt } => {
            let (messages, are) = (format_count(in_doubt as u64, "message"), if in_doubt == 1 { "is" } else { "are" });
            format!("waiting {time} before the next request: {reason}; {messages} {are} in doubt and not retried")
        }
    }
}

/// The cells of a bar on a terminal of at least 80 columns. A narrow one has fewer.
const BAR_CELLS: usize = 20;

/// The words beside a bar on a terminal of this many columns; none before the first row.
///
/// Zeros are omitted. If room is short, the words go in this order: the speed, the accepted messages, the time that is
/// left, the rejected messages, the messages in doubt.
fn message_spans(sending: &SendingProgress, columns: usize) -> Vec<Span> {
    let counts = sending.counts();
    if counts.total() == 0 {
        return Vec::new();
    }
    let sent = counts.get(RowState::Accepted) + counts.get(RowState::Queued);
    let count = |meaning, number: u64, word: &str| {
        (number > 0).then(|| span(meaning, format!("{} {word}", format_thousands(number))))
    };
    let (rate, left) = sending.estimate().map(format_estimate).unzip();
    let place = format!("{} of {}", format_thousands(sending.count_done()), format_thousands(sending.total()));
    // In the order in which they are shown.
    let mut parts = [
        Some(strong(place)),
        count(SpanMeaning::Good, sent, "accepted"),
        count(SpanMeaning::Bad, counts.get(RowState::Rejected), "rejected"),
        count(SpanMeaning::Caution, counts.get(RowState::InDoubt), "in doubt"),
        rate.map(plain),
        left.map(dim),
    ];
    let room = columns.saturating_sub(1 + if columns >= 80 { BAR_CELLS } else { columns / 5 });
    for dropped in [4, 1, 5, 2, 3] {
        let width: usize = arrange_spans(&parts).iter().map(|span| display_width(&span.plain_text())).sum();
        if width <= room {
            break;
        }
        parts[dropped] = None;
    }
    arrange_spans(&parts)
}

fn arrange_spans([place, counts @ .., rate, left]: &[Option<Span>; 6]) -> Vec<Span> {
    let counts = join_spans(counts.iter().flatten().map(|count| vec![count.clone()]), " · ");
    let alone = |part: &Option<Span>| part.iter().cloned().collect::<Vec<_>>();
    let parts = [alone(place), counts, alone(rate), alone(left)];
    join_spans(parts.into_iter().filter(|part| !part.is_empty()), "  ")
}

/// The speed of an estimate, and the time that is left.
fn format_estimate(Estimate { rate, left }: Estimate) -> (String, String) {
    let rate = if rate < 10.0 { format!("{rate:.1}") } else { format_thousands(rate.round() as u64) };
    (format!("{rate}/s"), format!("{} left", format_duration(left)))
}

fn styled_bar(total: u64) -> ProgressBar {
    let template = "{wide_bar:.cyan/dim} {msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5)).with_style(style)
}

/// Writes an object with its time on a line.
pub(super) fn print_json_line(mut object: Value) {
    object["at"] = Timestamp::now().to_string().into();
    with_suspended_line(|| {
        let _ = writeln!(std::io::stderr().lock(), "{}", escape_json_controls(&object.to_string()));
    });
}

/// An event for a program, without counts.
fn event_json(event: &DeliveryEvent) -> Value {
    match event {
        DeliveryEvent::Settled { .. } => json!({ "event": "progress" }),
        DeliveryEvent::Warning(what) => json!({ "event": "warning", "text": what }),
        DeliveryEvent::Waiting { reason, time, next } => {
            let in_doubt = match next {
                AfterWait::Retry => 0,
                AfterWait::Next { in_doubt } => *in_doubt,
            };
            let (seconds, retry) = (time.as_secs_f64(), *next == AfterWait::Retry);
            json!({ "event": "waiting", "reason": reason, "seconds": seconds, "retry": retry, "in_doubt": in_doubt })
        }
        DeliveryEvent::Slow { waited, at_most } => {
            json!({ "event": "slow", "seconds": waited.as_secs(), "at_most": at_most.as_secs() })
        }
        DeliveryEvent::Asking { at_most } => json!({ "event": "asking", "at_most": at_most.as_secs_f64() }),
        DeliveryEvent::Stopping { reason, in_flight, at_most } => {
            json!({ "event": "stopping", "reason": reason, "in_flight": in_flight, "at_most": at_most.as_secs() })
        }
    }
}

/// A closed standard error ends no run.
fn print_error_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape_to_one_line(line));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::StateCounts;

    /// Progress over 200,000 rows, some of them in doubt, after so many seconds.
    fn sample_progress(rejected: u64, in_doubt: u64) -> SendingProgress {
        let (mut sending, start) = (SendingProgress::new(200_000, 0), Instant::now());
        let mut counts = StateCounts::default();
        counts.add(RowState::Planned, 200_000);
        sending.update_counts(start, &counts);
        for (state, rows) in
            [(RowState::Accepted, 120_000), (RowState::Rejected, rejected), (RowState::InDoubt, in_doubt)]
        {
            counts.shift(RowState::Planned, state, rows);
        }
        sending.update_counts(start + Duration::from_secs(60), &counts);
        sending
    }

    /// The words beside the bar without colours.
    fn plain_message(sending: &SendingProgress, columns: usize) -> String {
        StyledLine::new(super::message_spans(sending, columns)).render(None, false)
    }

    #[test]
    fn bar_counts_are_coloured_by_meaning() {
        let message = super::message_spans(&sample_progress(1_500, 50), 120);
        let coloured = StyledLine::new(message).render(None, true);
        for part in ["\u{1b}[32m120 000 accepted", "\u{1b}[31m1 500 rejected", "\u{1b}[33m50 in doubt"] {
            assert!(coloured.contains(part), "{coloured:?}");
        }
    }

    #[test]
    fn narrow_bar_keeps_counts_that_need_attention() {
        let all = "121 550 of 200 000  120 000 accepted · 1 500 rejected · 50 in doubt  2 026/s  38 s left";
        assert_eq!(plain_message(&sample_progress(1_500, 50), 120), all);
        let narrow = plain_message(&sample_progress(1_500, 50), 80);
        assert_eq!(narrow, "121 550 of 200 000  1 500 rejected · 50 in doubt  38 s left");
        assert!(narrow.chars().count() + 1 + BAR_CELLS <= 80);
        let narrowest = plain_message(&sample_progress(1_500, 50), 40);
        assert_eq!(narrowest, "121 550 of 200 000  50 in doubt");
        assert!(narrowest.chars().count() + 1 + 8 <= 40);
    }

    #[test]
    fn bar_message_omits_zeros() {
        assert_eq!(
            plain_message(&sample_progress(0, 0), 120),
            "120 000 of 200 000  120 000 accepted  2 000/s  40 s left"
        );
        assert_eq!(plain_message(&SendingProgress::new(3, 0), 120), "");
    }

    #[test]
    fn slow_answer_shows_its_timeout() {
        let slow = DeliveryEvent::Slow { waited: Duration::from_secs(12), at_most: Duration::from_secs(30) };
        assert_eq!(describe_event(&slow), "waiting for a response: 12 s so far, at most 30 s");
    }
}
