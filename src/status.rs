//! `campaign status`: the list of runs, the state of one run, and `--watch`, which follows a run.

use std::collections::HashSet;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use console::{Term, measure_text_width};
use jiff::{SignedDuration, Timestamp, Zoned};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::args::StatusArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::{Output, report_write_error};
use super::text::{
    Span, SpanMeaning, StyledLine, StyledText, TableCell, TerminalTable, copyable, dim, draw_bar, draw_sparkline,
    join_spans, plain, span, strong,
};
use campaign_core::finding::escape_to_one_line;
use campaign_engine::delivery::Interrupt;
use campaign_engine::report::{
    ChannelFigures, NextStep, RunList, RunReport, RunStatus, RunView, SendingProgress, can_retry, damaged_runs_json,
    describe_counts, format_count, format_counts_with_partial, format_duration, format_local_minute, format_thousands,
    is_owned, run_entry_json,
};
use campaign_ledger::{Approval, DamagedRun, Ledger, RowState, Run, RunFilter, RunId, ShardHolder, StateCounts};

pub(super) async fn show_status(context: &Context, args: &StatusArgs) -> Result<u8, CommandFailure> {
    if args.watch {
        return watch_run(context, args.run.as_deref()).await;
    }
    let Some(name) = args.run.as_deref() else { return list_runs(context, args.all).await };
    let (ledger, run) = context.find_run(name).await?;
    campaign_runs::report_results_conflict(ledger.as_ref(), &run, &context.observer).await?;
    let report = RunReport::load(ledger.as_ref(), run).await?;
    let code = report_exit_code(&report);
    if context.output.json {
        let mut object = report.to_json();
        add_replacing_run(&mut object, ledger.as_ref(), &report.view.run).await;
        object["exit"] = code.into();
        context.output.print_object(&object);
    } else {
        context.output.print_result(format_report(&report, context, ledger.as_ref()).await);
    }
    Ok(code)
}

/// The name of the later run whose results replaced those of this run, if there is one.
async fn find_replacing_run(ledger: &dyn Ledger, run: &Run) -> Option<String> {
    campaign_runs::find_later_run(ledger, run, run.results.as_ref()?).await.ok().flatten()
}

/// Adds the later run whose results replaced those of this run to the run's JSON object, if there is one.
pub(super) async fn add_replacing_run(object: &mut Value, ledger: &dyn Ledger, run: &Run) {
    if let Some(later) = find_replacing_run(ledger, run).await {
        object["replaced_by"] = later.into();
    }
}

/// Reads a run again, because it might have changed, and loads the report about the run.
async fn reload_report(ledger: &dyn Ledger, run: RunId) -> Result<RunReport, CommandFailure> {
    let run = ledger.list_runs(RunFilter::with_key(run)).await?.pop();
    let run = run.ok_or_else(|| CommandFailure::new(exit::BUG, "the run is no longer in the ledger"))?;
    Ok(RunReport::load(ledger, run).await?)
}

/// The exit code of `run` for the state in this report.
pub(super) fn report_exit_code(report: &RunReport) -> u8 {
    let RunView { run, status, counts, .. } = &report.view;
    exit::exit_code_of_run(run, counts, *status == RunStatus::Sending)
}

/// Formats the report about a run as text.
pub(super) async fn format_report(report: &RunReport, context: &Context, ledger: &dyn Ledger) -> StyledText {
    let RunView { run, status, counts, .. } = &report.view;
    let (name, output) = (run.name(), &context.output);
    let mut text = StyledText::new();
    let mut heading = run_heading(&name, [run.gateway.as_str(), run.endpoint.name()]);
    heading.extend([dim(" · "), run_status_span(status, counts)]);
    text.add_line(0, heading);
    let mut rows = vec![strong(format_count(run.recipients, "row")), plain(": ")];
    rows.extend(count_spans(counts, report.count_partial()));
    text.add_line(2, rows);
    let channels = report.channels().map(ChannelFigures::format_lines).unwrap_or_default();
    channels.into_iter().for_each(|line| text.add_line(2, [plain(line)]));
    let ended = run.ended_at.map(|at| format!(" · last ended {}", format_local_minute(at))).unwrap_or_default();
    text.add_line(2, [dim(format!("began {}{ended}", format_local_minute(run.began_at)))]);
    for ShardHolder { name: by, rows, since } in &report.senders {
        text.add_line(
            2,
            [plain(format!("{by}: {}, since {}", format_count(*rows, "row"), format_local_minute(*since)))],
        );
    }
    for Approval { by, at, .. } in &report.approvals {
        text.add_line(2, [plain(format!("approved by {by} on {}", format_local_minute(*at)))]);
    }
    if let Some(results) = &run.results {
        let replaced =
            find_replacing_run(ledger, run).await.map(|later| dim(format!(" · replaced by the results of {later}")));
        text.add_line(2, [plain("results: "), copyable(results.as_str())].into_iter().chain(replaced));
    }
    if let Some(at) = run.purged_at {
        text.add_line(
            2,
            [plain(format!("purged on {}: the ledger keeps only the run's counts", format_local_minute(at)))],
        );
    }
    if *status == RunStatus::Sending && !run.shared {
        text.add_line(2, [plain("to stop the run: "), copyable(output.command(format!("stop {name}")))]);
    }
    if matches!(report.view.next_step(), NextStep::Review(_))
        && can_retry(run)
        && let Some(again) = output.suggest_retry(run, counts)
        && !has_unfinished_run(ledger, run).await
    {
        text.push(StyledLine::from_prose(&again).with_indent(2));
    }
    text.push(StyledLine::next_step(next_command(context, ledger, &report.view).await));
    text
}

/// Whether another run for the same recipients is unfinished. Until it ends, `retry` refuses this run.
async fn has_unfinished_run(ledger: &dyn Ledger, run: &Run) -> bool {
    let filter = RunFilter { open: true, live: true, ..RunFilter::for_campaign(&run.campaign) };
    ledger.list_runs(filter).await.is_ok_and(|runs| runs.iter().any(|other| run.can_share_recipients(other)))
}

/// Lists the runs; older rehearsals are listed only if `all` is set.
async fn list_runs(context: &Context, all: bool) -> Result<u8, CommandFailure> {
    let place = context.ledger_location()?;
    context.note_system_ledger()?;
    let RunList { views, damaged } = match context.open_existing_ledger().await? {
        Some(ledger) => {
            let list = RunList::load(ledger.as_ref()).await?;
            check_latest_results(context, ledger.as_ref(), &list.views).await?;
            list
        }
        None => RunList::default(),
    };
    let check = context.output.command("ledger check");
    for DamagedRun { name, error } in &damaged {
        let (name, damage) = (escape_to_one_line(name), error.describe_damage());
        context.output.print_note(&format!(
            "cannot read the run {name}: {}; check the ledger with `{check}`",
            escape_to_one_line(&damage)
        ));
    }
    let code = if damaged.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    if context.output.json {
        let runs: Vec<Value> = views.iter().map(run_json).collect();
        let mut object = json!({ "runs": runs, "exit": code });
        if !damaged.is_empty() {
            object["damaged"] = damaged_runs_json(&damaged);
            object["error"] = "a ledger record is damaged".into();
        }
        context.output.print_object(&object);
    } else if views.is_empty() && !damaged.is_empty() {
        context.output.print_done(format!("no run in `{place}` can be read\nnext: {check}\n"), code);
    } else if views.is_empty() {
        let next = context.output.command("init NAME");
        context.output.print_result(format!("no runs yet in `{place}`\nnext: {next}\n"));
    } else {
        let show_all = context.output.command("status --all");
        let mut text = runs_text(&views, all, &show_all);
        // `views` begins with the newest run. The suggestion is the newest live run or, without one, the newest
        // rehearsal.
        let newest = views.iter().find(|view| view.run.live).or(views.first());
        let next = newest.map(|view| context.output.command(format!("status {}", view.run.name())));
        text.push(StyledLine::next_step(next.unwrap_or(show_all)));
        context.output.print_done(text, code);
    }
    Ok(code)
}

/// Warns about each campaign whose latest live run has results with messages that are not in the ledger. The next run
/// replaces these results.
async fn check_latest_results(context: &Context, ledger: &dyn Ledger, views: &[RunView]) -> Result<(), CommandFailure> {
    let mut checked = HashSet::new();
    for RunView { run, .. } in views.iter().filter(|view| view.run.live) {
        if checked.insert(&run.campaign) {
            campaign_runs::report_results_conflict(ledger, run, &context.observer).await?;
        }
    }
    Ok(())
}

/// The table of runs: live runs first, then rehearsals, each with the newest run last. `show_all_command` is suggested
/// if older rehearsals are hidden.
fn runs_text(views: &[RunView], shows_all: bool, show_all_command: &str) -> StyledText {
    let now = Timestamp::now();
    let (mut live, mut rehearsals, mut older) = (Vec::new(), Vec::new(), 0);
    for view in views {
        let RunView { run, status, .. } = view;
        if !shows_all && *status != RunStatus::Sending && is_hidden_by_default(run.live, run.began_at, now) {
            older += 1;
        } else if run.live {
            live.push(view);
        } else {
            rehearsals.push(view);
        }
    }
    live.reverse();
    rehearsals.reverse();
    live.extend(rehearsals);
    let mut text: StyledText = run_table(live).into();
    if older > 0 {
        let older = format_count(older, "older rehearsal");
        text.add_line(0, [dim(format!("{older} not shown; to show all runs: ")), copyable(show_all_command)]);
    }
    text
}

/// Whether a run is hidden by default: a rehearsal that began more than a day ago.
fn is_hidden_by_default(is_live: bool, began_at: Timestamp, now: Timestamp) -> bool {
    !is_live && began_at < now - SignedDuration::from_hours(24)
}

fn run_json(view: &RunView) -> Value {
    let mut entry = run_entry_json(view);
    entry["exit"] = exit::exit_code_of_run(&view.run, &view.counts, view.status == RunStatus::Sending).into();
    entry
}

/// Suggests the next command.
async fn next_command(context: &Context, ledger: &dyn Ledger, view: &RunView) -> String {
    let (run, output) = (&view.run, &context.output);
    match view.next_step() {
        _ if run.purged_at.is_some() => output.command("status"),
        NextStep::Resume => output.suggest_resuming(ledger, run).await,
        step => output.suggest_for_run(&run.name(), &step),
    }
}

/// The minimum interval between two reads.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The number of points in the sparkline of the throughput.
const CHART_POINTS: usize = 30;
/// The pause after a read is at least this many times as long as the read, because another process might be sending.
const PAUSE_FACTOR: u32 = 20;
/// The width of the bar, in cells.
const BAR_CELLS: usize = 30;

/// Follows the named run, or else the latest run that is being sent, the latest live run or the latest run, in this
/// order.
async fn watch_run(context: &Context, name: Option<&str>) -> Result<u8, CommandFailure> {
    let mut interrupt = context.watch_signals()?;
    let ledger_and_run = match name {
        Some(name) => Some(context.find_run(name).await?),
        None => find_run_to_watch(context).await?,
    };
    let Some((ledger, run)) = ledger_and_run else { return list_runs(context, false).await };
    campaign_runs::report_results_conflict(ledger.as_ref(), &run, &context.observer).await?;
    let wants_receipts = campaign_runs::wants_receipts(&run, Timestamp::now());
    let mut screen = WatchScreen::new(&context.output);
    loop {
        let began = Instant::now();
        let report = tokio::select! {
            biased;
            signal = Interrupt::wait_for_signal(&mut interrupt) => return Ok(screen.exit_on_signal(signal)),
            report = reload_report(ledger.as_ref(), run.key) => report?,
        };
        let text = format_report(&report, context, ledger.as_ref()).await;
        if !report.view.expects_updates(wants_receipts, Timestamp::now()) {
            screen.show_end(&report, text);
            return Ok(report_exit_code(&report));
        }
        screen.show_run(&report, text);
        tokio::select! {
            biased;
            signal = Interrupt::wait_for_signal(&mut interrupt) => return Ok(screen.exit_on_signal(signal)),
            () = sleep(pause_after(began.elapsed())) => {}
        }
    }
}

/// Returns the pause after a read that took `read_time`.
fn pause_after(read_time: Duration) -> Duration {
    MIN_INTERVAL.max(read_time.saturating_mul(PAUSE_FACTOR))
}

/// Finds the run to follow if the user names none. Returns `None` if there are no runs.
async fn find_run_to_watch(context: &Context) -> Result<Option<(Arc<dyn Ledger>, Run)>, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(None) };
    let mut runs: Vec<Run> = ledger.list_stored_runs(RunFilter::all()).await?.into_iter().flatten().collect();
    let mut sending = None;
    for (index, run) in runs.iter().enumerate().rev() {
        if is_owned(ledger.as_ref(), run).await? {
            sending = Some(index);
            break;
        }
    }
    let live = || runs.iter().rposition(|run| run.live);
    let index = sending.or_else(live).or(runs.len().checked_sub(1));
    Ok(index.map(|index| (ledger, runs.swap_remove(index))))
}

/// The display of a watched run, with its last state.
struct WatchScreen<'a> {
    output: &'a Output,
    display: WatchDisplay,
    progress: Option<SendingProgress>,
}

enum WatchDisplay {
    /// The progress is drawn in place, over this many rows of the terminal.
    Terminal(Term, usize),
    /// A line for each change. The value is the last line, without its time.
    Lines(String),
    /// A JSON object for each change. The value is the last object, without its time.
    Objects(Value),
}

impl<'a> WatchScreen<'a> {
    fn new(output: &'a Output) -> Self {
        let is_drawn_in_place =
            io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb");
        let display = match (output.json, is_drawn_in_place) {
            (true, _) => WatchDisplay::Objects(Value::Null),
            (false, true) => WatchDisplay::Terminal(Term::buffered_stdout(), 0),
            (false, false) => WatchDisplay::Lines(String::new()),
        };
        Self { output, display, progress: None }
    }

    /// Shows the current state of the run. A terminal is redrawn each time; otherwise, only changes are printed.
    fn show_run(&mut self, report: &RunReport, mut text: StyledText) {
        let progress = self.progress_text(report).unwrap_or_default();
        match &mut self.display {
            WatchDisplay::Terminal(term, rows) => {
                let now = Zoned::now().strftime("%H:%M:%S").to_string();
                text.extend(progress);
                text.push(StyledLine::new([dim(format!(
                    "updated {now}; press Ctrl-C to stop watching (the run continues)"
                ))]));
                *rows = draw_text(term, *rows, &text, self.output.out_color());
            }
            WatchDisplay::Lines(last) => {
                let counts = format_counts_with_partial(&report.view.counts, report.count_partial());
                let line = format!("{}: {counts}", escape_to_one_line(&report.view.status.to_string()));
                if *last != line {
                    self.output.print_result(format!("{}  {line}\n", Zoned::now().strftime("%Y-%m-%d %H:%M:%S")));
                    *last = line;
                }
            }
            WatchDisplay::Objects(last) => {
                let object = report.to_json();
                if *last != object {
                    self.output.print_object(&with_time(object.clone()));
                    *last = object;
                }
            }
        }
    }

    /// The progress bar, a sparkline of the throughput and the time left; `None` unless the run is being sent.
    fn progress_text(&mut self, report: &RunReport) -> Option<StyledText> {
        let view = &report.view;
        if view.status != RunStatus::Sending {
            self.progress = None;
            return None;
        }
        let progress = self.progress.get_or_insert_with(|| SendingProgress::new(view.run.recipients, 0));
        progress.update_counts(Instant::now().into_std(), &view.counts);
        let mut text = StyledText::new();
        let (processed, total) = (progress.count_done(), progress.total());
        let (done, open) = draw_bar(processed, total, BAR_CELLS);
        let percent = format!(" {}%", (processed * 100).checked_div(total).unwrap_or(100));
        let position = format!(" · {} of {}", format_thousands(processed), format_thousands(total));
        text.push(StyledLine::new([span(SpanMeaning::Next, done), dim(open), strong(percent), plain(position)]));
        if let Some(figures) = &report.figures {
            let sent = &figures.requests.sent;
            let chart = draw_sparkline(&sent.latest_counts(CHART_POINTS));
            let step = match u64::try_from(sent.point_seconds()).unwrap_or_default() {
                seconds @ 0..60 => format!("{seconds} s"),
                seconds => format_duration(Duration::from_secs(seconds)),
            };
            let estimate = progress.estimate().map_or_else(String::new, |estimate| {
                let rate = format_thousands(estimate.rate.round() as u64);
                format!(" · {rate} per second, {} left", format_duration(estimate.left))
            });
            text.push(StyledLine::new([plain(format!("sent per {step}: ")), copyable(chart), plain(estimate)]));
        }
        Some(text)
    }

    /// Shows the final state of the run.
    fn show_end(mut self, report: &RunReport, text: StyledText) {
        match &mut self.display {
            WatchDisplay::Terminal(term, rows) => {
                draw_text(term, *rows, &text, self.output.out_color());
            }
            WatchDisplay::Lines(_) => self.output.print_result(text),
            WatchDisplay::Objects(_) => {
                let mut object = with_time(report.to_json());
                object["exit"] = report_exit_code(report).into();
                self.output.print_object(&object);
            }
        }
    }

    /// Ends the display because of a signal, and returns the exit code.
    fn exit_on_signal(self, signal: u8) -> u8 {
        let code = exit::SIGNAL.saturating_add(signal);
        if let WatchDisplay::Objects(last) = self.display {
            let mut object = with_time(if last.is_null() { serde_json::json!({}) } else { last });
            object["exit"] = code.into();
            object["error"] = "interrupted".into();
            self.output.print_object(&object);
        }
        code
    }
}

/// Adds the current time to an object.
fn with_time(mut object: Value) -> Value {
    object["at"] = Timestamp::now().to_string().into();
    object
}

/// Draws a text in place of the previous text, which occupies `previous_rows` rows of the terminal. Returns the number
/// of rows that the new text occupies.
fn draw_text(term: &Term, previous_rows: usize, text: &StyledText, color: bool) -> usize {
    let columns = term.size_checked().map_or(80, |(_, columns)| usize::from(columns).max(1));
    let text = text.render(Some(columns), color);
    // Writing to a buffer cannot fail.
    let _ = term.clear_last_lines(previous_rows);
    let _ = term.write_str(&text);
    report_write_error(term.flush());
    count_rows(&text, columns)
}

/// Counts the terminal rows of a text. A line that people copy is not wrapped and might occupy several rows.
fn count_rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| measure_text_width(line).div_ceil(columns).max(1)).sum()
}

/// The columns of the list of runs.
const HEADER: [&str; 6] = ["run", "gateway", "began", "rows", "state", "counts"];

fn run_table<'v>(views: impl IntoIterator<Item = &'v RunView>) -> TerminalTable {
    TerminalTable::new(HEADER, views.into_iter().map(run_cells)).with_paragraph(run_paragraph)
}

fn run_cells(RunView { run, status, counts, .. }: &RunView) -> [TableCell; 6] {
    [
        strong(run.name()).into(),
        run.gateway.as_str().into(),
        dim(format_local_minute(run.began_at)).into(),
        format_thousands(run.recipients).into(),
        run_status_span(status, counts).into(),
        count_spans(counts, 0).into(),
    ]
}

fn run_paragraph(cells: &[TableCell]) -> Vec<StyledLine> {
    let [run, gateway, began, rows, state, counts] = cells else { return Vec::new() };
    let noun = if rows.plain_text() == "1" { " row: " } else { " rows: " };
    let heading = join_spans([run, gateway, began, state].map(|cell| cell.0.clone()), " · ");
    vec![StyledLine::new(heading), StyledLine::new([&rows.0[..], &[plain(noun)], &counts.0].concat()).with_indent(2)]
}

/// How a state is displayed: as a success, as a failure, as a caution or as plain text.
pub(super) fn state_meaning(state: RowState) -> SpanMeaning {
    match state {
        RowState::Accepted | RowState::Queued | RowState::Delivered | RowState::Read => SpanMeaning::Good,
        RowState::Rejected | RowState::Failed | RowState::NotSent => SpanMeaning::Bad,
        RowState::Invalid | RowState::InDoubt | RowState::Unresolved | RowState::AssumedSent => SpanMeaning::Caution,
        RowState::Planned | RowState::Sending | RowState::Skipped => SpanMeaning::Plain,
    }
}

/// A state, coloured by its meaning.
pub(super) fn state_span(state: RowState) -> Span {
    span(state_meaning(state), state.format_words())
}

/// The counts of a run by state.
pub(super) fn count_spans(counts: &StateCounts, in_part: u64) -> Vec<Span> {
    let parts = describe_counts(counts, in_part);
    if parts.is_empty() {
        return vec![plain("none")];
    }
    join_spans(parts.into_iter().map(|(state, words)| vec![span(state_meaning(state), words)]), " · ")
}

/// The status of a run with a mark. A finished run with rows in doubt needs attention.
fn run_status_span(status: &RunStatus, counts: &StateCounts) -> Span {
    let (meaning, mark) = match status {
        RunStatus::Sending => (SpanMeaning::Next, "▸"),
        RunStatus::Finished if counts.get(RowState::InDoubt) + counts.get(RowState::Unresolved) > 0 => {
            (SpanMeaning::Caution, "!")
        }
        RunStatus::Finished => (SpanMeaning::Good, "✓"),
        RunStatus::Stopped(_) | RunStatus::Interrupted | RunStatus::Resumable => (SpanMeaning::Caution, "!"),
        RunStatus::Abandoned(_) | RunStatus::Cancelled => (SpanMeaning::Bad, "✗"),
        RunStatus::Replaced => (SpanMeaning::Dim, "-"),
    };
    span(meaning, format!("{mark} {status}"))
}

/// The heading of a run: its name, gateway and further facts.
pub(super) fn run_heading<'p>(name: &str, parts: impl IntoIterator<Item = &'p str>) -> Vec<Span> {
    join_spans([vec![strong(name)]].into_iter().chain(parts.into_iter().map(|part| vec![plain(part)])), " · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{StyledLine, StyledText};

    #[test]
    fn old_rehearsals_are_hidden_and_old_live_runs_listed() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        for (began, is_live, is_hidden) in [
            ("2026-11-22T09:00:00Z", false, false),
            ("2026-11-21T10:00:00Z", false, false),
            ("2026-11-21T09:59:59Z", false, true),
            ("2020-01-01T00:00:00Z", true, false),
        ] {
            assert_eq!(is_hidden_by_default(is_live, began.parse().unwrap(), now), is_hidden, "{began}");
        }
    }

    #[test]
    fn watch_spends_at_most_a_twentieth_of_its_time_reading() {
        for (read_time, pause) in [(0, 1_000), (40, 1_000), (60, 1_200), (30_000, 600_000)] {
            assert_eq!(pause_after(Duration::from_millis(read_time)), Duration::from_millis(pause));
        }
    }

    #[test]
    fn long_line_takes_several_terminal_rows() {
        assert_eq!(count_rows("sale@1\n\nnext: campaign results sale@1\nКиїв\n", 10), 1 + 1 + 3 + 1);
    }

    fn sample_table() -> TerminalTable {
        let stopped = "! stopped: the gateway took nothing for 30m: connection refused";
        let rows = [
            ["autumn-sale@12", "production", "2026-11-21 10:00", "200 000", "✓ finished", "199 000 accepted"],
            ["welcome@1", "sandbox", "2026-11-20 10:00", "25", stopped, "5 accepted · 20 planned"],
        ];
        TerminalTable::new(HEADER, rows).with_paragraph(run_paragraph)
    }

    #[test]
    fn run_list_becomes_paragraphs_if_it_does_not_fit() {
        let wide = sample_table().render(None, false);
        assert_eq!((wide.lines().count(), sample_table().render(Some(200), false)), (3, wide));
        let narrow = sample_table().render(Some(80), false);
        assert_eq!(
            narrow.lines().collect::<Vec<_>>(),
            [
                "autumn-sale@12 · production · 2026-11-21 10:00 · ✓ finished",
                "  200 000 rows: 199 000 accepted",
                "welcome@1 · sandbox · 2026-11-20 10:00 · ! stopped: the gateway took nothing for",
                "  30m: connection refused",
                "  25 rows: 5 accepted · 20 planned",
            ]
        );
    }

    fn render_spans(spans: Vec<Span>, color: bool) -> String {
        StyledText::from(StyledLine::new(spans)).render(None, color)
    }

    #[test]
    fn finished_run_has_a_warning_mark_if_rows_are_in_doubt() {
        let mut sent = StateCounts::default();
        sent.add(RowState::Accepted, 2);
        let mark = |counts: &StateCounts| render_spans(vec![run_status_span(&RunStatus::Finished, counts)], false);
        assert!(mark(&sent).starts_with('✓'));
        sent.add(RowState::InDoubt, 1);
        assert!(mark(&sent).starts_with('!'));
    }

    #[test]
    fn state_counts_are_coloured_by_meaning() {
        let mut all = StateCounts::default();
        RowState::ALL.into_iter().for_each(|state| all.add(state, 1));
        let (bare, coloured) = (render_spans(count_spans(&all, 0), false), render_spans(count_spans(&all, 0), true));
        assert_eq!(console::strip_ansi_codes(&coloured), bare);
        for words in ["1 accepted by the gateway", "1 rejected", "1 in doubt", "1 failed"] {
            assert!(bare.contains(words), "{bare}");
        }
        for words in ["\u{1b}[32m1 accepted", "\u{1b}[1m\u{1b}[31m1 rejected", "\u{1b}[33m1 in doubt"] {
            assert!(coloured.contains(words), "{coloured:?}");
        }
    }
}
