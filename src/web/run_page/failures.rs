//! Why messages were refused or did not arrive, in the gateway's own words.

use serde::Serialize;

use super::RunPage;
use crate::ledger::RowState;
use crate::web::charts::{Bar, scale_bars};
use crate::web::words::PageWords;

/// How many reasons are named.
const MAX_REASONS: usize = 10;
/// The states that this is about.
const FAILED_STATES: [RowState; 3] = [RowState::Failed, RowState::Rejected, RowState::NotSent];

/// What did not arrive.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FailuresView {
    all: u64,
    bars: Vec<Bar>,
    /// Where their rows are shown, by state, on a server's page.
    rows: Vec<RowsOfState>,
    /// The command that lists their rows.
    command: String,
}

/// Rows in a state, and where they are shown.
#[derive(Clone, Debug, Serialize)]
struct RowsOfState {
    state: &'static str,
    path: String,
}

impl RunPage<'_> {
    pub(super) fn failures_view(&self, words: &PageWords) -> FailuresView {
        let all = self.sum_states(&FAILED_STATES);
        let reasons = self.figures().map(|figures| figures.failures.most_frequent()).unwrap_or_default();
        let mut drawn: Vec<Bar> = Vec::new();
        for reason in reasons.iter().take(MAX_REASONS) {
            let state = words.kind("state", reason.state.name()).map(str::to_owned);
            drawn.push(match reason.text {
                "" => Bar::new(words.say("run.no-reason"), reason.rows, "bad").with_note(state),
                said => Bar::new(said, reason.rows, "bad").with_foreign_label().with_note(state),
            });
        }
        let others = all.saturating_sub(drawn.iter().map(|bar| bar.value).sum());
        if others > 0 {
            let word = if drawn.is_empty() { words.say("run.no-reason") } else { words.say("left-out.others") };
            drawn.push(Bar::new(word, others, "bad"));
        }
        let states: Vec<&'static str> =
            FAILED_STATES.into_iter().filter(|state| self.counts().get(*state) > 0).map(RowState::name).collect();
        let command =
            self.format_command(format!("results {} --state {} --out -", self.run().name(), states.join(",")));
        let rows = states
            .iter()
            .filter_map(|state| Some(RowsOfState { state, path: format!("{}?state={state}", self.rows?) }))
            .collect();
        FailuresView { all, bars: scale_bars(drawn, None), rows, command }
    }
}
