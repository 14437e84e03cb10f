//! The funnel from rows in the list to messages that were read, the failure reasons, and the rows in doubt. Every row
//! is counted once.

use jiff::Timestamp;
use serde::Serialize;

use super::{RunPage, format_share};
use crate::web::charts::{Bar, scale_bars};
use crate::web::words::PageWords;
use campaign_engine::report::{ACCEPTED_STATES, IN_DOUBT_STATES, RowInDoubt, can_retry};
use campaign_ledger::RowState;

/// The states of accepted rows without a delivery status.
pub(super) const WAITING_STATES: [RowState; 2] = [RowState::Accepted, RowState::Queued];
/// The states of planned rows whose message the gateway is not known to have accepted.
const NOT_ACCEPTED_STATES: [RowState; 7] = [
    RowState::Planned,
    RowState::Sending,
    RowState::Rejected,
    RowState::NotSent,
    RowState::InDoubt,
    RowState::Unresolved,
    RowState::AssumedSent,
];
/// The maximum number of listed skip reasons.
const MAX_SKIP_REASONS: usize = 8;

impl RunPage<'_> {
    /// Draws the bars of the funnel, from the rows of the list to the read messages.
    pub(super) fn funnel_bars(&self, words: &PageWords) -> Vec<Bar> {
        let rows = self.run().recipients;
        let skipped = self.sum_states(&[RowState::Skipped, RowState::Invalid]);
        let (accepted, delivered) = (self.sum_states(&ACCEPTED_STATES), self.counts().count_delivered());
        let planned = rows.saturating_sub(skipped);
        let mut funnel = vec![Bar::new(words.say("run.list"), rows, "whole")];
        funnel.extend(self.skipped_bars(words, skipped));
        funnel.push(
            Bar::new(words.say("run.planned"), planned, "whole").with_note(self.describe_share_of_list(words, planned)),
        );
        funnel.extend(self.state_bars(words, &NOT_ACCEPTED_STATES));
        funnel.push(
            Bar::new(words.say("run.accepted"), accepted, "whole")
                .with_note(self.describe_share_of_list(words, accepted)),
        );
        funnel.extend(self.waiting_bar(words));
        funnel.extend(self.state_bars(words, &[RowState::Failed]));
        let in_part = self.report.count_partial();
        let in_part = (in_part > 0).then(|| words.count("run.in-part-of", in_part, &[]));
        let notes: Vec<String> = self.describe_share_of_accepted(words, delivered).into_iter().chain(in_part).collect();
        let note = (!notes.is_empty()).then(|| notes.join(" · "));
        funnel.push(Bar::new(words.say("run.delivered"), delivered, "good").with_note(note));
        let read = self.counts().get(RowState::Read);
        if read > 0 {
            funnel.push(
                Bar::new(words.say("run.read"), read, "read").with_note(self.describe_share_of_accepted(words, read)),
            );
        }
        scale_bars(funnel, Some(rows))
    }

    fn describe_share_of_list(&self, words: &PageWords, part: u64) -> Option<String> {
        let share = format_share(words, part, self.run().recipients)?;
        Some(words.say_with("run.of-list", &[("share", &share)]))
    }

    fn describe_share_of_accepted(&self, words: &PageWords, part: u64) -> Option<String> {
        let share = format_share(words, part, self.sum_states(&ACCEPTED_STATES))?;
        Some(words.say_with("run.of-accepted", &[("share", &share)]))
    }

    /// The bar of accepted messages without a delivery status.
    fn waiting_bar(&self, words: &PageWords) -> Option<Bar> {
        let rows = self.sum_states(&WAITING_STATES);
        (rows > 0).then(|| Bar::new(words.say("run.no-status"), rows, state_class(RowState::Accepted)).with_depth(1))
    }

    /// Draws a bar for each of these states that has rows.
    fn state_bars(&self, words: &PageWords, states: &[RowState]) -> Vec<Bar> {
        let present = states.iter().map(|state| (*state, self.counts().get(*state))).filter(|(_, rows)| *rows > 0);
        let word = |state: RowState| words.item_name("state", state.name()).unwrap_or_default().to_owned();
        present.map(|(state, rows)| Bar::new(word(state), rows, state_class(state)).with_depth(1)).collect()
    }

    /// Draws bars for the most frequent skip reasons, and one bar for all other skipped rows.
    fn skipped_bars(&self, words: &PageWords, all: u64) -> Vec<Bar> {
        if all == 0 {
            return Vec::new();
        }
        let reasons = self.figures().map(|figures| figures.left_out.most_frequent()).unwrap_or_default();
        let bar = |why: &str, rows| match words.item_name("reason", why) {
            Some(translated) => Bar::new(translated, rows, "out").with_depth(1),
            None if why.is_empty() => Bar::new(words.say("run.no-reason"), rows, "out").with_depth(1),
            None => Bar::new(why, rows, "out").with_depth(1).with_foreign_label(),
        };
        let named: Vec<Bar> =
            reasons.iter().take(MAX_SKIP_REASONS).map(|reason| bar(reason.text, reason.rows)).collect();
        let others = all.saturating_sub(named.iter().map(|bar| bar.value).sum());
        let word = if named.is_empty() { words.say("run.skipped") } else { words.say("skipped.others") };
        let others = (others > 0).then(|| Bar::new(word, others, "out").with_depth(1));
        named.into_iter().chain(others).collect()
    }
}

/// The CSS class of a state.
pub(super) fn state_class(state: RowState) -> &'static str {
    match state {
        RowState::Planned | RowState::Sending | RowState::Accepted | RowState::Queued => "waiting",
        RowState::Rejected | RowState::Failed | RowState::NotSent | RowState::Invalid => "bad",
        RowState::InDoubt | RowState::Unresolved | RowState::AssumedSent => "doubtful",
        RowState::Delivered => "good",
        RowState::Read => "read",
        RowState::Skipped => "out",
    }
}

/// The maximum number of listed failure reasons.
const MAX_REASONS: usize = 10;
/// The states of failed, rejected and unsent rows.
const UNDELIVERED_STATES: [RowState; 3] = [RowState::Failed, RowState::Rejected, RowState::NotSent];

/// The messages that were not delivered.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FailuresView {
    all: u64,
    bars: Vec<Bar>,
    /// The links to the rows by state, on a served page.
    rows: Vec<RowsOfState>,
    /// The command that lists the rows.
    command: String,
    /// The command that sends the messages again, for a run that can be retried.
    retry: Option<String>,
}

/// A state, and the link to the rows in this state.
#[derive(Clone, Debug, Serialize)]
struct RowsOfState {
    state: &'static str,
    path: String,
}

impl RunPage<'_> {
    /// Returns the link to the rows with this state and reason, if the page has links to rows.
    fn link_to_rows(&self, state: RowState, reason: &str) -> Option<String> {
        let pairs = [("state", state.name()), ("reason", reason)];
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.rows.map(|rows| format!("{rows}?{query}"))
    }

    pub(super) fn failures_view(&self, words: &PageWords) -> FailuresView {
        let all = self.sum_states(&UNDELIVERED_STATES);
        let reasons = self.figures().map(|figures| figures.failures.most_frequent()).unwrap_or_default();
        let mut bars: Vec<Bar> = Vec::new();
        for reason in reasons.iter().take(MAX_REASONS) {
            let state = words.item_name("state", reason.state.name()).map(str::to_owned);
            bars.push(match reason.text {
                "" => Bar::new(words.say("run.no-reason"), reason.rows, "bad").with_note(state),
                text => Bar::new(text, reason.rows, "bad")
                    .with_foreign_label()
                    .with_note(state)
                    .with_path(self.link_to_rows(reason.state, text)),
            });
        }
        let others = all.saturating_sub(bars.iter().map(|bar| bar.value).sum());
        if others > 0 {
            let word = if bars.is_empty() { words.say("run.no-reason") } else { words.say("skipped.others") };
            bars.push(Bar::new(word, others, "bad"));
        }
        let states: Vec<&'static str> =
            UNDELIVERED_STATES.into_iter().filter(|state| self.counts().get(*state) > 0).map(RowState::name).collect();
        let command =
            self.format_command(format!("results {} --state {} --out -", self.run().name(), states.join(",")));
        let rows = states
            .iter()
            .filter_map(|state| Some(RowsOfState { state, path: format!("{}?state={state}", self.rows?) }))
            .collect();
        let run = self.run();
        let retry = || self.format_command(format!("retry {} --state {}", run.name(), states.join(",")));
        let retry = can_retry(run).then(retry);
        FailuresView { all, bars: scale_bars(bars, None), rows, command, retry }
    }
}

/// The rows in doubt.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DoubtView {
    rows: u64,
    since: Option<String>,
    /// The first rows.
    named: Vec<DoubtfulRowView>,
    /// The number of further rows.
    others: u64,
    /// The commands that resolve the rows in doubt. Empty on a served page, which has buttons.
    commands: Vec<CommandView>,
}

#[derive(Clone, Debug, Serialize)]
struct DoubtfulRowView {
    row: u32,
    /// The link to the page of the row, on a served page.
    path: Option<String>,
    state: &'static str,
    sent: String,
    why: String,
    asked: Option<u32>,
}

/// A command and its purpose.
#[derive(Clone, Debug, Serialize)]
struct CommandView {
    what: String,
    command: String,
}

impl RunPage<'_> {
    pub(super) fn doubt_view(&self, words: &PageWords) -> Option<DoubtView> {
        let rows = self.sum_states(&IN_DOUBT_STATES);
        if rows == 0 {
            return None;
        }
        let doubts = self.figures().map(|figures| &figures.doubts);
        let named: Vec<DoubtfulRowView> =
            doubts.map(|doubts| doubts.rows.iter().map(|row| self.row_view(words, row)).collect()).unwrap_or_default();
        Some(DoubtView {
            rows,
            since: doubts.and_then(|doubts| doubts.since).map(|at| self.format_moment(words, at)),
            others: rows.saturating_sub(named.len() as u64),
            named,
            commands: if self.rows.is_some() { Vec::new() } else { self.resolve_commands(words) },
        })
    }

    fn row_view(&self, words: &PageWords, row: &RowInDoubt) -> DoubtfulRowView {
        let sent = Timestamp::from_second(row.sent_at).map(|at| self.format_moment(words, at)).unwrap_or_default();
        let path = self.rows.map(|rows| format!("{rows}/{}", row.row));
        DoubtfulRowView { row: row.row, path, state: row.state.name(), sent, why: row.why.clone(), asked: row.asked }
    }

    /// Lists the commands that resolve the rows in doubt.
    fn resolve_commands(&self, words: &PageWords) -> Vec<CommandView> {
        let name = self.run().name();
        let command = |description: &str, arguments: String| CommandView {
            what: description.to_owned(),
            command: self.format_command(arguments),
        };
        let states = IN_DOUBT_STATES.map(RowState::name).join(",");
        let mut commands =
            vec![command(words.say("run.resolve-list"), format!("results {name} --state {states} --out -"))];
        if self.run().live && !self.run().is_shared_single_run() {
            commands.push(command(words.say("run.resolve-reconcile"), format!("reconcile {name}")));
        }
        commands.push(command(words.say("run.resolve-sent"), format!("resolve {name} --rows N --as sent")));
        commands.push(command(words.say("run.resolve-not-sent"), format!("resolve {name} --rows N --as not-sent")));
        commands.push(command(words.say("run.resolve-send-again"), format!("resolve {name} --rows N --as send-again")));
        commands
    }
}
