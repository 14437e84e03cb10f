//! Progress of a run: a bar on a terminal, otherwise a line every ten seconds, or JSON objects. Also the spinner.
//!
//! A process has at most one live line on standard error. All other output to a terminal suspends it.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use textwrap::core::display_width;
use tokio::runtime::Handle;

use super::args::ProgressForm;
use super::output::{Output, error_terminal_width, with_json_version};
use super::text::{Span, SpanMeaning, StyledLine, dim, join_spans, plain, span, strong};
use campaign_core::finding::{escape_json_controls, escape_to_one_line};
use campaign_engine::delivery::{AfterWait, DeliveryEvent};
use campaign_engine::report::{
    Estimate, SendingProgress, format_count, format_counts, format_duration, format_thousands,
};
use campaign_ledger::RowState;

/// The interval between lines without a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// The interval between JSON objects with counts.
const OBJECT_INTERVAL: Duration = Duration::from_secs(1);

/// Shows the events of a run on standard error.
pub(super) struct ProgressReporter {
    sending: Mutex<SendingProgress>,
    display: ProgressDisplay,
    output: Output,
}

enum ProgressDisplay {
    Bar(LiveLine),
    /// Lines, with the time of the last line.
    Lines(Mutex<Instant>),
    /// JSON objects, with the time of the last object that had counts.
    Json(Mutex<Instant>),
    Nothing,
}

impl ProgressReporter {
    /// Creates a reporter, which shows the progress in the form that `output` requests.
    pub(super) fn new(sending: SendingProgress, output: &Output) -> Self {
        let display = match output.progress_form() {
            ProgressForm::Bar => ProgressDisplay::Bar(show_bar(styled_bar(sending.total()))),
            ProgressForm::Auto | ProgressForm::Lines => ProgressDisplay::Lines(Mutex::new(Instant::now())),
            ProgressForm::Json => ProgressDisplay::Json(Mutex::new(Instant::now())),
            ProgressForm::None => ProgressDisplay::Nothing,
        };
        Self { sending: Mutex::new(sending), display, output: output.clone() }
    }

    /// Counts and shows an event.
    pub(super) fn handle_event(&self, event: &DeliveryEvent) {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            DeliveryEvent::Settled { counts } => {
                sending.update_counts(Instant::now(), counts);
                return self.show_counts(&sending);
            }
            DeliveryEvent::Waiting { .. } | DeliveryEvent::Asking { .. } => {
                sending.pause();
                if let ProgressDisplay::Bar(line) = &self.display {
                    line.bar().set_message(self.bar_message(&sending));
                }
            }
            DeliveryEvent::Warning(_) | DeliveryEvent::Slow { .. } | DeliveryEvent::Stopping { .. } => {}
        }
        match &self.display {
            ProgressDisplay::Json(_) => print_json_line(event_json(event)),
            _ => self.print_line(&describe_event(event)),
        }
    }

    /// Removes the bar before the summary, or prints the last object.
    pub(super) fn finish_display(&self) {
        match &self.display {
            ProgressDisplay::Bar(line) => line.bar().finish_and_clear(),
            ProgressDisplay::Json(_) => {
                let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
                print_json_line(sending.to_json());
            }
            ProgressDisplay::Lines(_) | ProgressDisplay::Nothing => {}
        }
    }

    /// Shows the counts: updates the bar, or prints a line or an object if the interval since the last one has passed.
    fn show_counts(&self, sending: &SendingProgress) {
        match &self.display {
            ProgressDisplay::Bar(line) => {
                let bar = line.bar();
                bar.set_length(sending.total());
                bar.set_position(sending.count_done());
                bar.set_message(self.bar_message(sending));
            }
            ProgressDisplay::Lines(last) if reset_if_due(last, LINE_INTERVAL) => {
                let (done, total) = (format_thousands(sending.count_done()), format_thousands(sending.total()));
                self.print_line(&format!("{done} of {total} messages: {}", format_counts(sending.counts())));
            }
            ProgressDisplay::Json(last) if reset_if_due(last, OBJECT_INTERVAL) => print_json_line(sending.to_json()),
            ProgressDisplay::Lines(_) | ProgressDisplay::Json(_) | ProgressDisplay::Nothing => {}
        }
    }

    /// The text next to the bar.
    fn bar_message(&self, sending: &SendingProgress) -> String {
        StyledLine::new(message_spans(sending, error_terminal_width().unwrap_or(80)))
            .render(None, self.output.error_color())
    }

    fn print_line(&self, line: &str) {
        match &self.display {
            ProgressDisplay::Bar(_) => self.output.print_lines(line),
            // Log lines need a timestamp.
            ProgressDisplay::Lines(_) => {
                print_error_line(&format!("{}  {line}", Zoned::now().strftime("%Y-%m-%d %H:%M:%S")))
            }
            ProgressDisplay::Json(_) | ProgressDisplay::Nothing => {}
        }
    }
}

/// Whether the interval since the last output has passed. If so, resets the time of the last output.
fn reset_if_due(last: &Mutex<Instant>, interval: Duration) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = last.elapsed() >= interval;
    if is_due {
        *last = Instant::now();
    }
    is_due
}

/// Describes an event without counts; a `Settled` event has an empty description.
pub(super) fn describe_event(event: &DeliveryEvent) -> String {
    match event {
        DeliveryEvent::Settled { .. } => String::new(),
        DeliveryEvent::Warning(warning) => format!("warning: {warning}"),
        DeliveryEvent::Waiting { reason, time, next } => describe_wait(reason, *time, *next),
        DeliveryEvent::Slow { waited, at_most } => {
            format!(
                "waiting for a response: {} so far, at most {}",
                format_duration(*waited),
                format_duration(*at_most)
            )
        }
        DeliveryEvent::Asking { at_most } => {
            format!("waiting up to {} for the delivery statuses of the warm-up messages", format_duration(*at_most))
        }
        DeliveryEvent::Stopping { reason, in_flight, at_most } => format!(
            "stopping ({reason}): waiting for {} in flight, for at most {}",
            format_count(*in_flight as u64, "message"),
            format_duration(*at_most)
        ),
    }
}

/// Describes a wait, and whether a retry or the next messages follow.
pub(super) fn describe_wait(reason: &str, time: Duration, next: AfterWait) -> String {
    let time = format_duration(time);
    match next {
        AfterWait::Retry => format!("waiting {time} before the next attempt: {reason}"),
        AfterWait::Next { in_doubt: 0 } => format!("waiting {time}: {reason}"),
        AfterWait::Next { in_doubt } => {
            let (messages, are) = (format_count(in_doubt as u64, "message"), if in_doubt == 1 { "is" } else { "are" });
            format!(
                "waiting {time} before the next request: {reason}; {messages} {are} in doubt and will not be retried"
            )
        }
    }
}

/// The space for the bar on a terminal with at least 80 columns. The bar also fills the space that the text leaves.
const BAR_CELLS: usize = 20;

/// The text next to the bar on a terminal with `columns` columns. The text is empty before the first row is counted.
///
/// Zeros are omitted. If the terminal is too narrow, parts are dropped in this order: throughput, accepted messages,
/// time left, rejected messages, messages in doubt.
fn message_spans(sending: &SendingProgress, columns: usize) -> Vec<Span> {
    let counts = sending.counts();
    if counts.total() == 0 {
        return Vec::new();
    }
    let sent = counts.get(RowState::Accepted) + counts.get(RowState::Queued);
    let count = |meaning, number: u64, word: &str| {
        (number > 0).then(|| span(meaning, format!("{} {word}", format_thousands(number))))
    };
    let (rate, time_left) = sending.estimate().map(format_estimate).unzip();
    let position = format!("{} of {}", format_thousands(sending.count_done()), format_thousands(sending.total()));
    // In display order.
    let mut parts = [
        Some(strong(position)),
        count(SpanMeaning::Good, sent, "accepted"),
        count(SpanMeaning::Bad, counts.get(RowState::Rejected), "rejected"),
        count(SpanMeaning::Caution, counts.get(RowState::InDoubt), "in doubt"),
        rate.map(plain),
        time_left.map(dim),
    ];
    let available_width = columns.saturating_sub(1 + if columns >= 80 { BAR_CELLS } else { columns / 5 });
    // The indexes of the parts in the order in which they are dropped.
    for index in [4, 1, 5, 2, 3] {
        let width: usize = arrange_spans(&parts).iter().map(|span| display_width(&span.plain_text())).sum();
        if width <= available_width {
            break;
        }
        parts[index] = None;
    }
    arrange_spans(&parts)
}

fn arrange_spans([position, counts @ .., rate, time_left]: &[Option<Span>; 6]) -> Vec<Span> {
    let counts = join_spans(counts.iter().flatten().map(|count| vec![count.clone()]), " · ");
    let to_spans = |part: &Option<Span>| part.iter().cloned().collect::<Vec<_>>();
    let parts = [to_spans(position), counts, to_spans(rate), to_spans(time_left)];
    join_spans(parts.into_iter().filter(|part| !part.is_empty()), "  ")
}

/// Formats the throughput and the time left.
fn format_estimate(Estimate { rate, left }: Estimate) -> (String, String) {
    let rate = if rate < 10.0 { format!("{rate:.1}") } else { format_thousands(rate.round() as u64) };
    (format!("{rate}/s"), format!("{} left", format_duration(left)))
}

fn styled_bar(total: u64) -> ProgressBar {
    let template = "{wide_bar:.cyan/dim} {msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5)).with_style(style)
}

/// Adds the current time to an object and prints it to stderr as a line of JSON.
pub(super) fn print_json_line(mut object: Value) {
    object["at"] = Timestamp::now().to_string().into();
    with_suspended_line(|| {
        let line = with_json_version(&object.to_string());
        let _ = writeln!(std::io::stderr().lock(), "{}", escape_json_controls(&line));
    });
}

/// An event as JSON, without counts.
fn event_json(event: &DeliveryEvent) -> Value {
    match event {
        DeliveryEvent::Settled { .. } => json!({ "event": "progress" }),
        DeliveryEvent::Warning(warning) => json!({ "event": "warning", "text": warning }),
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

/// Prints a line on standard error. Write errors are ignored, so that they cannot end a run.
fn print_error_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escape_to_one_line(line));
}

/// The delay before a spinner appears, so that fast commands show none.
const SPINNER_DELAY: Duration = Duration::from_millis(200);
/// The interval between two frames of a spinner.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Whether the operator is typing after a prompt, so that the next output needs a line break first.
static IS_TYPING: AtomicBool = AtomicBool::new(false);

/// The live line that the terminal shows, if any.
static CURRENT: Mutex<Option<Arc<ProgressBar>>> = Mutex::new(None);

fn lock_current() -> MutexGuard<'static, Option<Arc<ProgressBar>>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line that is updated in place: a spinner or a bar. It disappears when this value is dropped.
pub(super) struct LiveLine(Arc<ProgressBar>);

/// Shows a bar until the line is dropped.
fn show_bar(bar: ProgressBar) -> LiveLine {
    clear_line();
    let bar = Arc::new(bar);
    *lock_current() = Some(Arc::clone(&bar));
    LiveLine(bar)
}

/// Shows a spinner with a text until the line is dropped or replaced.
pub(super) fn show_spinner(text: &'static str) -> LiveLine {
    let style =
        ProgressStyle::with_template("{spinner:.cyan} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let line = show_bar(
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style).with_message(text),
    );
    if let Ok(runtime) = Handle::try_current() {
        let bar = Arc::clone(&line.0);
        runtime.spawn(async move {
            tokio::time::sleep(SPINNER_DELAY).await;
            while tick_spinner(&bar) {
                tokio::time::sleep(SPINNER_INTERVAL).await;
            }
        });
    }
    line
}

/// Advances a spinner, and returns whether the terminal still shows this spinner.
fn tick_spinner(bar: &Arc<ProgressBar>) -> bool {
    let current = lock_current();
    let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, bar));
    if is_current {
        bar.tick();
    }
    is_current
}

/// Removes the live line, for example before a prompt.
pub(super) fn clear_line() {
    if let Some(bar) = lock_current().take() {
        bar.finish_and_clear();
    }
}

/// Records whether the operator is typing after a prompt.
pub(super) fn set_typing(is_typing: bool) {
    IS_TYPING.store(is_typing, Ordering::Relaxed);
}

/// Writes to a terminal while the live line is hidden, and on a new line below an unanswered prompt.
pub(super) fn with_suspended_line<T>(write: impl FnOnce() -> T) -> T {
    if IS_TYPING.swap(false, Ordering::Relaxed) {
        let _ = writeln!(io::stderr().lock());
    }
    match lock_current().as_ref() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

impl LiveLine {
    /// The progress bar of the line.
    pub(super) fn bar(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        let mut current = lock_current();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &self.0)) {
            *current = None;
        }
        self.0.finish_and_clear();
    }
}

/// A writer for the log, which writes to standard error.
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        with_suspended_line(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_ledger::StateCounts;

    /// The progress of a run with 200,000 rows, some of them rejected or in doubt.
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

    /// The text next to the bar without colours.
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
    fn notice_about_a_slow_response_shows_the_timeout() {
        let slow = DeliveryEvent::Slow { waited: Duration::from_secs(12), at_most: Duration::from_secs(30) };
        assert_eq!(describe_event(&slow), "waiting for a response: 12 s so far, at most 30 s");
    }
}
