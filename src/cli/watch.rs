//! `campaign status --watch`: a run as it goes on, until nothing more can come of it.

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
use super::listing::fitted;
use super::output::{Output, is_unwritten};
use super::spark::spark;
use super::status::list;
use crate::delivery::Interrupt;
use crate::finding::{harmless, one_line};
use crate::ledger::{Ledger, Run, RunFilter};
use crate::report::{RunStanding, RunStatus, SendingProgress, counts_line_in_part, duration, is_owned, thousands};
use crate::runs;

/// How often it is looked at most.
const EACH: Duration = Duration::from_secs(1);
/// How many points the small chart of the rate has.
const POINTS: usize = 30;
/// Looking takes at most one part of so many of the time: somebody else may be sending meanwhile.
const PARTS: u32 = 20;

/// Follows a run: the one that is named, else the latest that is being sent, else the latest live one, else the latest.
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
            screen.end(&standing, &text);
            return Ok(standing.exit());
        }
        screen.show(&standing, &text);
        tokio::select! {
            biased;
            signal = signal(&mut interrupt) => return Ok(screen.leave(signal)),
            () = sleep(rest(began.elapsed())) => {}
        }
    }
}

/// How long it is not looked after a look that took so long.
fn rest(took: Duration) -> Duration {
    EACH.max(took.saturating_mul(PARTS))
}

/// The run that somebody means who names none; nothing where there is none.
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

/// Where it is shown, and what was shown last.
struct Screen<'a> {
    output: &'a Output,
    form: Form,
    /// How far it was each time.
    progress: Option<SendingProgress>,
}

enum Form {
    /// In place; so many lines stand there.
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

    /// Shows how it stands, if that changed.
    fn show(&mut self, standing: &RunStanding, text: &str) {
        let pace = self.pace(standing).unwrap_or_default();
        match &mut self.form {
            Form::Terminal(term, lines) => {
                let now = Zoned::now().strftime("%H:%M:%S").to_string();
                let text = format!("{text}{pace}followed until nothing more can come, as of {now}; Ctrl-C leaves it\n");
                *lines = draw(term, *lines, &text);
            }
            Form::Lines(last) => {
                let counts = counts_line_in_part(&standing.view.counts, standing.in_part());
                let line = format!("{}: {counts}", one_line(&standing.view.status.to_string()));
                if *last != line {
                    self.output.result(&format!("{}  {line}\n", Zoned::now().strftime("%Y-%m-%d %H:%M:%S")));
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

    /// How fast it goes, as a small chart, and how long the rest takes; nothing while it is not sent.
    fn pace(&mut self, standing: &RunStanding) -> Option<String> {
        let view = &standing.view;
        if view.status != RunStatus::Sending {
            self.progress = None;
            return None;
        }
        let progress = self.progress.get_or_insert_with(|| SendingProgress::new(view.run.recipients, 0));
        progress.settled(Instant::now().into_std(), &view.counts);
        let sent = &standing.figures.as_ref()?.requests.sent;
        let chart = spark(&sent.latest(POINTS));
        let step = match u64::try_from(sent.seconds()).unwrap_or_default() {
            seconds @ 0..60 => format!("{seconds} s"),
            seconds => duration(Duration::from_secs(seconds)),
        };
        let left = progress.estimate().map_or_else(String::new, |estimate| {
            let rate = thousands(estimate.rate.round() as u64);
            format!(" · {rate} a second, the rest in about {}", duration(estimate.left))
        });
        Some(format!("sent in each {step}: {chart}{left}\n"))
    }

    /// Shows how it stands at last.
    fn end(mut self, standing: &RunStanding, text: &str) {
        match &mut self.form {
            Form::Terminal(term, lines) => {
                draw(term, *lines, text);
            }
            Form::Lines(_) => self.output.summary(text),
            Form::Objects(_) => {
                let mut object = dated(standing.json());
                object["exit"] = standing.exit().into();
                self.output.object(&object);
            }
        }
    }

    /// Leaves it as it stands, because of a signal; the code.
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

/// Draws a text in the place of the lines that stand there; how many lines it has.
fn draw(term: &Term, before: usize, text: &str) -> usize {
    let columns = term.size_checked().map_or(80, |(_, columns)| usize::from(columns).max(1));
    let text = fitted(&harmless(text), columns);
    // What is written to a buffer cannot fail.
    let _ = term.clear_last_lines(before);
    let _ = term.write_str(&text);
    is_unwritten(term.flush());
    rows(&text, columns)
}

/// How many rows of a terminal a text takes: a line that somebody may copy is not broken, and may take several.
fn rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| measure_text_width(line).div_ceil(columns).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_takes_at_most_a_twentieth_of_the_time() {
        for (took, rested) in [(0, 1_000), (40, 1_000), (60, 1_200), (30_000, 600_000)] {
            assert_eq!(rest(Duration::from_millis(took)), Duration::from_millis(rested));
        }
    }

    #[test]
    fn a_line_that_is_longer_than_the_terminal_takes_several_rows() {
        assert_eq!(rows("sale@1\n\nnext: campaign results sale@1\nКиїв\n", 10), 1 + 1 + 3 + 1);
    }
}
