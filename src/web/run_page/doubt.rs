//! The rows in doubt: since when, what was seen instead of a proof, and the commands that settle them.

use jiff::Timestamp;
use serde::Serialize;

use super::RunPage;
use crate::ledger::State;
use crate::report::{DOUBTFUL, DoubtfulRow};
use crate::web::words::Words;

/// The rows in doubt.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DoubtView {
    rows: u64,
    since: Option<String>,
    /// The first of them.
    named: Vec<RowView>,
    /// How many there are besides.
    others: u64,
    /// What settles them, where no server's page does.
    commands: Vec<CommandView>,
}

#[derive(Clone, Debug, Serialize)]
struct RowView {
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
    pub(super) fn doubt(&self, words: &Words) -> Option<DoubtView> {
        let rows = self.sum(&DOUBTFUL);
        if rows == 0 {
            return None;
        }
        let doubts = self.figures().map(|figures| &figures.doubts);
        let named: Vec<RowView> =
            doubts.map(|doubts| doubts.rows.iter().map(|row| self.row(words, row)).collect()).unwrap_or_default();
        Some(DoubtView {
            rows,
            since: doubts.and_then(|doubts| doubts.since).map(|at| self.moment(words, at)),
            others: rows.saturating_sub(named.len() as u64),
            named,
            commands: if self.rows.is_some() { Vec::new() } else { self.settling(words) },
        })
    }

    fn row(&self, words: &Words, row: &DoubtfulRow) -> RowView {
        let sent = Timestamp::from_second(row.sent_at).map(|at| self.moment(words, at)).unwrap_or_default();
        let path = self.rows.map(|rows| format!("{rows}/{}", row.row));
        RowView { row: row.row, path, state: row.state.name(), sent, why: row.why.clone(), asked: row.asked }
    }

    /// What settles them.
    fn settling(&self, words: &Words) -> Vec<CommandView> {
        let name = self.run().name();
        let command =
            |what: &str, arguments: String| CommandView { what: what.to_owned(), command: self.command(arguments) };
        let states = DOUBTFUL.map(State::name).join(",");
        let mut commands =
            vec![command(words.say("run.settle-list"), format!("results {name} --state {states} --out -"))];
        if self.run().live && !self.run().is_of_questions() {
            commands.push(command(words.say("run.settle-ask"), format!("reconcile {name}")));
        }
        commands.push(command(words.say("run.settle-sent"), format!("resolve {name} --rows N --as sent")));
        commands.push(command(words.say("run.settle-not-sent"), format!("resolve {name} --rows N --as not-sent")));
        commands.push(command(words.say("run.settle-again"), format!("resolve {name} --rows N --as send-again")));
        commands
    }
}
