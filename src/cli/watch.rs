//! `campaign status --watch`: follows a run until its state can no longer change.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use console::{Term, measure_text_width};
use jiff::{Timestamp, Zoned};
use serde_json::Value;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep};

use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::output::{Output, report_unwritten};
use super::spark::{draw_bar, draw_sparkline};
use super::status::list_runs;
use super::text::{SpanMeaning, StyledLine, StyledText, copyable, dim, plain, span, strong};
use crate::delivery::Interrupt;
use crate::finding::escape_to_one_line;
use crate::ledger::{Ledger, Run, RunFilter};
use crate::report::{
    RunReport, RunStatus, SendingProgress, format_counts_in_part, format_duration, format_thousands, is_owned,
};
use crate::runs;

/// The shortest time between two reads.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The number of points in the small chart of the rate.
const CHART_POINTS: usize = 30;
/// Reading takes at most one part in 20 of the time, because another process might be sending.
const READING_SHARE: u32 = 20;
/// The cells of the bar.
const BAR_CELLS: usize = 30;

/// Follows the named run, else the latest run that is being sent, else the latest live run, else the latest run.
pub(super) async fn watch_run(context: &Context, name: Option<&str>) -> Result<u8, CommandFailure> {
    let mut interrupt = context.watch_signals()?;
    let found = match name {
        Some(name) => Some(context.find_run(name).await?),
        None => find_latest_run(context).await?,
    };
    let Some((ledger, run)) = found else { return list_runs(context, false).await };
    runs::report_results_conflict(ledger.as_ref(), &run, &context.observer).await?;
    let wanted = runs::wants_receipts(&run, Timestamp::now());
    let mut screen = WatchScreen::new(&context.output);
    loop {
        let began = Instant::now();
        let standing = tokio::select! {
            biased;
            signal = wait_for_signal(&mut interrupt) => return Ok(screen.exit_on_signal(signal)),
            standing = RunReport::reload(ledger.as_ref(), run.key) => standing?,
        };
        let text = standing.render_text(context, ledger.as_ref()).await;
        if !standing.view.expects_updates(wanted, Timestamp::now()) {
            screen.show_end(&standing, text);
            return Ok(standing.exit_code());
        }
        screen.show_run(&standing, text);
        tokio::select! {
            biased;
            signal = wait_for_signal(&mut interrupt) => return Ok(screen.exit_on_signal(signal)),
            () = sleep(pause_after(began.elapsed())) => {}
        }
    }
}

/// The pause after a read that took this long.
fn pause_after(took: Duration) -> Duration {
    MIN_INTERVAL.max(took.saturating_mul(READING_SHARE))
}

/// The run to follow if none is named; `None` without runs.
async fn find_latest_run(context: &Context) -> Result<Option<(Arc<dyn Ledger>, Run)>, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(None) };
    let mut runs: Vec<Run> = ledger.list_stored_runs(RunFilter::all()).await?.into_iter().flatten().collect();
    let mut sending = None;
    for (place, run) in runs.iter().enumerate().rev() {
        if is_owned(ledger.as_ref(), run).await? {
            sending = Some(place);
            break;
        }
    }
    let live = || runs.iter().rposition(|run| run.live);
    let place = sending.or_else(live).or(runs.len().checked_sub(1));
    Ok(place.map(|place| (ledger, runs.swap_remove(place))))
}

/// Waits for a signal; its number.
async fn wait_for_signal(interrupt: &mut Receiver<Interrupt>) -> u8 {
    let asked = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|interrupt| *interrupt);
    match asked {
        Ok(Interrupt::Graceful(signal) | Interrupt::Immediate(signal)) => signal,
        Ok(Interrupt::None) | Err(_) => std::future::pending().await,
    }
}

/// Where the run is shown, and what was shown last.
struct WatchScreen<'a> {
    output: &'a Output,
    form: WatchDisplay,
    progress: Option<SendingProgress>,
}

enum WatchDisplay {
    /// In place, over this many rows of the terminal.
    Terminal(Term, usize),
    /// A line for each change; the last one without its time.
    Lines(String),
    /// An object for each change; the last one without its time.
    Objects(Value),
}

impl<'a> WatchScreen<'a> {
    fn new(output: &'a Output) -> Self {
        let in_place = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        let form = match (output.json, in_place) {
            (true, _) => WatchDisplay::Objects(Value::Null),
            (false, true) => WatchDisplay::Terminal(Term::buffered_stdout(), 0),
            (false, false) => WatchDisplay::Lines(String::new()),
        };
        Self { output, form, progress: None }
    }

    /// Shows the run, if it changed.
    fn show_run(&mut self, standing: &RunReport, mut text: StyledText) {
        let pace = self.progress_text(standing).unwrap_or_default();
        match &mut self.form {
            WatchDisplay::Terminal(term, rows) => {
                let now = Zoned::now().strftime("%H:%M:%S").to_string();
                text.extend(pace);
                text.push(StyledLine::new([dim(format!(
                    "updated {now}; press Ctrl-C to stop watching (the run continues)"
                ))]));
                *rows = draw_text(term, *rows, &text, self.output.out_color());
            }
            WatchDisplay::Lines(last) => {
                let counts = format_counts_in_part(&standing.view.counts, standing.count_partial());
                let line = format!("{}: {counts}", escape_to_one_line(&standing.view.status.to_string()));
                if *last != line {
                    self.output.print_result(format!("{}  {line}\n", Zoned::now().strftime("%Y-%m-%d %H:%M:%S")));
                    *last = line;
                }
            }
            WatchDisplay::Objects(last) => {
                let object = standing.to_json();
                if *last != object {
                    self.output.print_object(&with_time(object.clone()));
                    *last = object;
                }
            }
        }
    }

    /// The bar, the speed as a small chart and the time that is left; nothing unless the run is being sent.
    fn progress_text(&mut self, standing: &RunReport) -> Option<StyledText> {
        let view = &standing.view;
        if view.status != RunStatus::Sending {
            self.progress = None;
            return None;
        }
        let progress = self.progress.get_or_insert_with(|| SendingProgress::new(view.run.recipients, 0));
        progress.update_counts(Instant::now().into_std(), &view.counts);
        let mut text = StyledText::new();
        let (through, total) = (progress.count_done(), progress.total());
        let (done, open) = draw_bar((through, total), BAR_CELLS);
        let percent = format!(" {} %", (through * 100).checked_div(total).unwrap_or(100));
        let place = format!(" · {} of {}", format_thousands(through), format_thousands(total));
        text.push(StyledLine::new([span(SpanMeaning::Next, done), dim(open), strong(percent), plain(place)]));
        if let Some(figures) = &standing.figures {
            let sent = &figures.requests.sent;
            let chart = draw_sparkline(&sent.latest_counts(CHART_POINTS));
            let step = match u64::try_from(sent.point_seconds()).unwrap_or_default() {
                seconds @ 0..60 => format!("{seconds} s"),
                seconds => format_duration(Duration::from_secs(seconds)),
            };
            let left = progress.estimate().map_or_else(String::new, |estimate| {
                let rate = format_thousands(estimate.rate.round() as u64);
                format!(" · {rate} per second, {} left", format_duration(estimate.left))
            });
            text.push(StyledLine::new([plain(format!("sent per {step}: ")), copyable(chart), plain(left)]));
        }
        Some(text)
    }

    /// Shows the run at its end.
    fn show_end(mut self, standing: &RunReport, text: StyledText) {
        match &mut self.form {
            WatchDisplay::Terminal(term, rows) => {
                draw_text(term, *rows, &text, self.output.out_color());
            }
            WatchDisplay::Lines(_) => self.output.print_summary(text),
            WatchDisplay::Objects(_) => {
                let mut object = with_time(standing.to_json());
                object["exit"] = standing.exit_code().into();
                self.output.print_object(&object);
            }
        }
    }

    /// Ends because of a signal; the exit code.
    fn exit_on_signal(self, signal: u8) -> u8 {
        let code = exit::SIGNAL.saturating_add(signal);
        if let WatchDisplay::Objects(last) = self.form {
            let mut object = with_time(if last.is_null() { serde_json::json!({}) } else { last });
            object["exit"] = code.into();
            object["error"] = "interrupted".into();
            self.output.print_object(&object);
        }
        code
    }
}

/// An object with its time.
fn with_time(mut object: Value) -> Value {
    object["at"] = Timestamp::now().to_string().into();
    object
}

/// Draws a text over the rows of the terminal that the last one took; how many rows it takes.
fn draw_text(term: &Term, before: usize, text: &StyledText, color: bool) -> usize {
    let columns = term.size_checked().map_or(80, |(_, columns)| usize::from(columns).max(1));
    let text = text.render(Some(columns), color);
    // Writing to a buffer cannot fail.
    let _ = term.clear_last_lines(before);
    let _ = term.write_str(&text);
    report_unwritten(term.flush());
    count_rows(&text, columns)
}

/// How many rows of a terminal a text takes: a line that people copy is not wrapped, and might take several.
fn count_rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| measure_text_width(line).div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_takes_at_most_a_twentieth_of_the_time() {
        for (took, rested) in [(0, 1_000), (40, 1_000), (60, 1_200), (30_000, 600_000)] {
            assert_eq!(pause_after(Duration::from_millis(took)), Duration::from_millis(rested));
        }
    }

    #[test]
    fn long_line_takes_several_terminal_rows() {
        assert_eq!(count_rows("sale@1\n\nnext: campaign results sale@1\nКиїв\n", 10), 1 + 1 + 3 + 1);
    }
}
