//! The rows in doubt: since when, what was seen instead of a proof, and the commands that settle them.

use jiff::Timestamp;
use serde::Serialize;

use super::RunPage;
use crate::ledger::RowState;
use crate::report::{IN_DOUBT_STATES, RowInDoubt};
use crate::web::words::PageWords;

/// The rows in doubt.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DoubtView {
    rows: u64,
    since: Option<String>,
    /// The first of them.
    named: Vec<DoubtfulRowView>,
    /// How many there are besides.
    others: u64,
    /// What settles them, where no server's page does.
    commands: Vec<CommandView>,
}

#[derive(Clone, Debug, Serialize)]
struct DoubtfulRowView {
    row: u32,
    /// Where its message is shown, on a server's page.
    path: Option<String>,
    state: &'static str,
    sent: String,
    why: String,
    asked: Option<u32>,
}

/// A command, and what it is for.
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
            commands: if self.rows.is_some() { Vec::new() } else { self.settle_commands(words) },
        })
    }

    fn row_view(&self, words: &PageWords, row: &RowInDoubt) -> DoubtfulRowView {
        let sent = Timestamp::from_second(row.sent_at).map(|at| self.format_moment(words, at)).unwrap_or_default();
        let path = self.rows.map(|rows| format!("{rows}/{}", row.row));
        DoubtfulRowView { row: row.row, path, state: row.state.name(), sent, why: row.why.clone(), asked: row.asked }
    }

    /// What settles them.
    fn settle_commands(&self, words: &PageWords) -> Vec<CommandView> {
        let name = self.run().name();
        let command = |what: &str, arguments: String| CommandView {
            what: what.to_owned(),
            command: self.format_command(arguments),
        };
        let states = IN_DOUBT_STATES.map(RowState::name).join(",");
        let mut commands =
            vec![command(words.say("run.settle-list"), format!("results {name} --state {states} --out -"))];
        if self.run().live && !self.run().is_lookup_run() {
            commands.push(command(words.say("run.settle-ask"), format!("reconcile {name}")));
        }
        commands.push(command(words.say("run.settle-sent"), format!("resolve {name} --rows N --as sent")));
        commands.push(command(words.say("run.settle-not-sent"), format!("resolve {name} --rows N --as not-sent")));
        commands.push(command(words.say("run.settle-again"), format!("resolve {name} --rows N --as send-again")));
        commands
    }
}
