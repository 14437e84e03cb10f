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
use super::failure::Failure;
use super::output::{Output, is_unwritten};
use super::spark::{bar, spark};
use super::status::list;
use super::text::{Line, Meaning, Text, copied, dim, plain, span, strong};
use crate::delivery::Interrupt;
use crate::finding::one_line;
use crate::ledger::{Ledger, Run, RunFilter};
use crate::report::{RunStanding, RunStatus, SendingProgress, counts_line_in_part, duration, is_owned, thousands};
use crate::runs;

/// The shortest time between two reads.
const EACH: Duration = Duration::from_secs(1);
/// The number of points in the small chart of the rate.
const POINTS: usize = 30;
/// Reading takes at most one part in 20 of the time, because another process might be sending.
const PARTS: u32 = 20;
/// The cells of the bar.
const CELLS: usize = 30;

/// Follows the named run, else the latest run that is being sent, else the latest live run, else the latest run.
pub(super) async fn watch(context: &Context, name: Option<&str>) -> Result<u8, Failure> {
    let mut interrupt = context.interrupt()?;
    let found = match name {
        Some(name) => Some(context.named_run(name).await?),
        None => latest(context).await?,
    };
    let Some((ledger, run)) = found else { return list(context, false).await };
    runs::judge_results(ledger.as_ref(), &run, &context.observer).await?;
    let wanted = runs::wants_receipts(&run, Timestamp::now());
    let mut screen = Screen::new(&context.output);
    loop {
        let began = Instant::now();
        let standing = tokio::select! {
            biased;
            signal = signal(&mut interrupt) => return Ok(screen.leave(signal)),
            standing = RunStanding::read_anew(ledger.as_ref(), run.key) => standing?,
        };
        let text = standing.text(context, ledger.as_ref()).await;
        if !standing.view.awaits_more(wanted, Timestamp::now()) {
            screen.end(&standing, text);
            return Ok(standing.exit());
        }
        screen.show(&standing, text);
        tokio::select! {
            biased;
            signal = signal(&mut interrupt) => return Ok(screen.leave(signal)),
            () = sleep(rest(began.elapsed())) => {}
        }
    }
}

/// The pause after a read that took this long.
fn rest(took: Duration) -> Duration {
    EACH.max(took.saturating_mul(PARTS))
}

/// The run to follow if none is named; `None` without runs.
async fn latest(context: &Context) -> Result<Option<(Arc<dyn Ledger>, Run)>, Failure> {
    let Some(ledger) = context.existing_ledger().await? else { return Ok(None) };
    let mut runs: Vec<Run> = ledger.stored_runs(RunFilter::all()).await?.into_iter().flatten().collect();
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
async fn signal(interrupt: &mut Receiver<Interrupt>) -> u8 {
    let asked = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|interrupt| *interrupt);
    match asked {
        Ok(Interrupt::Gently(signal) | Interrupt::AtOnce(signal)) => signal,
        Ok(Interrupt::None) | Err(_) => std::future::pending().await,
    }
}

/// Where the run is shown, and what was shown last.
struct Screen<'a> {
    output: &'a Output,
    form: Form,
    progress: Option<SendingProgress>,
}

enum Form {
    /// In place, over this many rows of the terminal.
    Terminal(Term, usize),
    /// A line for each change; the last one without its time.
    Lines(String),
    /// An object for each change; the last one without its time.
    Objects(Value),
}

impl<'a> Screen<'a> {
    fn new(output: &'a Output) -> Self {
        let in_place = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        let form = match (output.json, in_place) {
            (true, _) => Form::Objects(Value::Null),
            (false, true) => Form::Terminal(Term::buffered_stdout(), 0),
            (false, false) => Form::Lines(String::new()),
        };
        Self { output, form, progress: None }
    }

    /// Shows the run, if it changed.
    fn show(&mut self, standing: &RunStanding, mut text: Text) {
        let pace = self.pace(standing).unwrap_or_default();
        match &mut self.form {
            Form::Terminal(term, rows) => {
                let now = Zoned::now().strftime("%H:%M:%S").to_string();
                text.extend(pace);
                text.push(Line::new([dim(format!(
                    "updated {now}; press Ctrl-C to stop watching (the run continues)"
                ))]));
                *rows = draw(term, *rows, &text, self.output.out_color());
            }
            Form::Lines(last) => {
                let counts = counts_line_in_part(&standing.view.counts, standing.in_part());
                let line = format!("{}: {counts}", one_line(&standing.view.status.to_string()));
                if *last != line {
                    self.output.result(format!("{}  {line}\n", Zoned::now().strftime("%Y-%m-%d %H:%M:%S")));
                    *last = line;
                }
            }
            Form::Objects(last) => {
                let object = standing.json();
                if *last != object {
                    self.output.object(&dated(object.clone()));
                    *last = object;
                }
            }
        }
    }

    /// The bar, the speed as a small chart and the time that is left; nothing unless the run is being sent.
    fn pace(&mut self, standing: &RunStanding) -> Option<Text> {
        let view = &standing.view;
        if view.status != RunStatus::Sending {
            self.progress = None;
            return None;
        }
        let progress = self.progress.get_or_insert_with(|| SendingProgress::new(view.run.recipients, 0));
        progress.settled(Instant::now().into_std(), &view.counts);
        let mut text = Text::new();
        let (through, total) = (progress.through(), progress.total());
        let (done, open) = bar((through, total), CELLS);
        let percent = format!(" {} %", (through * 100).checked_div(total).unwrap_or(100));
        let place = format!(" · {} of {}", thousands(through), thousands(total));
        text.push(Line::new([span(Meaning::Next, done), dim(open), strong(percent), plain(place)]));
        if let Some(figures) = &standing.figures {
            let sent = &figures.requests.sent;
            let chart = spark(&sent.latest(POINTS));
            let step = match u64::try_from(sent.seconds()).unwrap_or_default() {
                seconds @ 0..60 => format!("{seconds} s"),
                seconds => duration(Duration::from_secs(seconds)),
            };
            let left = progress.estimate().map_or_else(String::new, |estimate| {
                let rate = thousands(estimate.rate.round() as u64);
                format!(" · {rate} per second, {} left", duration(estimate.left))
            });
            text.push(Line::new([plain(format!("sent per {step}: ")), copied(chart), plain(left)]));
        }
        Some(text)
    }

    /// Shows the run at its end.
    fn end(mut self, standing: &RunStanding, text: Text) {
        match &mut self.form {
            Form::Terminal(term, rows) => {
                draw(term, *rows, &text, self.output.out_color());
            }
            Form::Lines(_) => self.output.summary(text),
            Form::Objects(_) => {
                let mut object = dated(standing.json());
                object["exit"] = standing.exit().into();
                self.output.object(&object);
            }
        }
    }

    /// Ends because of a signal; the exit code.
    fn leave(self, signal: u8) -> u8 {
        let code = exit::SIGNAL.saturating_add(signal);
        if let Form::Objects(last) = self.form {
            let mut object = dated(if last.is_null() { serde_json::json!({}) } else { last });
            object["exit"] = code.into();
            object["error"] = "interrupted".into();
            self.output.object(&object);
        }
        code
    }
}

/// An object with its time.
fn dated(mut object: Value) -> Value {
    object["at"] = Timestamp::now().to_string().into();
    object
}

/// Draws a text over the rows of the terminal that the last one took; how many rows it takes.
fn draw(term: &Term, before: usize, text: &Text, color: bool) -> usize {
    let columns = term.size_checked().map_or(80, |(_, columns)| usize::from(columns).max(1));
    let text = text.render(Some(columns), color);
    // Writing to a buffer cannot fail.
    let _ = term.clear_last_lines(before);
    let _ = term.write_str(&text);
    is_unwritten(term.flush());
    rows(&text, columns)
}

/// How many rows of a terminal a text takes: a line that people copy is not wrapped, and might take several.
fn rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| measure_text_width(line).div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_takes_at_most_a_twentieth_of_the_time() {
        for (took, rested) in [(0, 1_000), (40, 1_000), (60, 1_200), (30_000, 600_000)] {
            assert_eq!(rest(Duration::from_millis(took)), Duration::from_millis(rested));
        }
    }

    #[test]
    fn a_line_that_is_longer_than_the_terminal_takes_several_rows() {
        assert_eq!(rows("sale@1\n\nnext: campaign results sale@1\nКиїв\n", 10), 1 + 1 + 3 + 1);
    }
}
