//! The lines of the results CSV: what is known of a row, as cells. Pure.

use super::cell::harmless;
use super::sweep::Fate;
use crate::audience::{Chunk, Fields, Region, parse};
use crate::domain::{IdRange, MsgId, OperationKind, Phone, Row};
use crate::ledger::{ENDED_EARLY, Outcome, State};

/// The columns that stand before the recipient's own.
const COLUMNS: [&str; 17] = [
    "row",
    "id",
    "to",
    "state",
    "operation",
    "msg_id",
    "request_id",
    "parts",
    "gateway_status",
    "reason",
    "error",
    "submitted_at",
    "updated_at",
    "delivered_by",
    "delivered_at",
    "answer",
    "run",
];

/// What all lines of a listing share.
pub(super) struct Form {
    pub(super) kind: OperationKind,
    pub(super) run: String,
    pub(super) ids: Option<IdRange>,
    /// Only rows in these states; all when there are none.
    pub(super) states: Vec<State>,
    pub(super) region: Option<Region>,
    pub(super) phone_column: usize,
    /// Whether a process is sending: an intent alone is `sending` then, and in doubt otherwise.
    pub(super) owned: bool,
    /// Whether the run is finished: what it did not send, it gave up.
    pub(super) finished: bool,
}

/// All that is known of one row.
pub(super) struct Known {
    pub(super) fate: Option<Fate>,
    /// Why it is never sent.
    pub(super) reason: Option<(State, String)>,
}

/// The header: our columns, then the recipient's own; one of ours that they have too gets a suffix.
pub(super) fn header(own: &[String]) -> Vec<u8> {
    let mut line = Line::new(Vec::new());
    for column in COLUMNS {
        line.cell(column);
    }
    for header in own {
        let taken = COLUMNS.contains(&header.as_str());
        line.cell(&if taken { format!("{header}_in") } else { header.clone() });
    }
    line.end();
    line.finish()
}

impl Form {
    /// The lines of a group of records; `known` has an entry for each.
    pub(super) fn lines(&self, chunk: &Chunk, known: &[Known]) -> Vec<u8> {
        let mut line = Line::new(Vec::with_capacity(chunk.len() * 256));
        for (record, known) in chunk.iter().zip(known) {
            let state = self.state(known);
            if self.states.is_empty() || self.states.contains(&state) {
                self.fill(&mut line, (record.row, record.fields), known, state);
                line.end();
            }
        }
        line.finish()
    }

    fn state(&self, known: &Known) -> State {
        let state = match known {
            Known { fate: Some(Fate { settled: Some((_, outcome)), .. }), .. } => outcome.state(),
            Known { fate: Some(_), .. } if self.owned => State::Sending,
            Known { fate: Some(_), .. } => State::InDoubt,
            Known { fate: None, reason: Some((state, _)) } => *state,
            Known { fate: None, reason: None } => State::Planned,
        };
        if self.finished && state == State::Planned { State::NotSent } else { state }
    }

    fn fill(&self, line: &mut Line, (row, own): (Row, Fields<'_>), known: &Known, state: State) {
        let sent = known.fate.as_ref();
        let settled = sent.and_then(|fate| fate.settled.as_ref());
        let outcome = settled.map(|(_, outcome)| outcome);
        let Texts { reason, error, request_id, answer, gateway_status } = texts(outcome, known.reason.as_ref());
        let reason = if state == State::InDoubt && outcome.is_none() { ENDED_EARLY } else { reason };
        let phone = match sent {
            Some(fate) => Some(fate.phone),
            None => parse(own.get(self.phone_column), self.region).ok(),
        };
        line.number(Some(row.get().into()));
        line.number(sent.and_then(|_| Some(self.ids?.id(row)?.get())));
        line.number(phone.map(Phone::get));
        line.cell(state.name());
        line.cell(if matches!(state, State::Skipped | State::Invalid) { "" } else { self.kind.name() });
        line.accepted(outcome, request_id);
        line.cell(gateway_status);
        line.cell(reason);
        line.cell(error);
        line.cell(sent.map_or("", |fate| &fate.submitted_at));
        line.cell(settled.map_or("", |(at, _)| at));
        line.cell(""); // delivered_by
        line.cell(""); // delivered_at
        line.cell(answer);
        line.cell(&self.run);
        own.iter().for_each(|cell| line.cell(cell));
    }
}

/// The columns that hold words.
#[derive(Default)]
struct Texts<'a> {
    reason: &'a str,
    error: &'a str,
    request_id: &'a str,
    answer: &'a str,
    gateway_status: &'a str,
}

fn texts<'a>(outcome: Option<&'a Outcome>, left_out: Option<&'a (State, String)>) -> Texts<'a> {
    let none = Texts::default();
    match outcome {
        None => Texts { reason: left_out.map_or("", |(_, reason)| reason), ..none },
        Some(Outcome::Accepted { answer, .. }) => Texts { answer: answer.as_deref().unwrap_or(""), ..none },
        Some(Outcome::Queued { request_id }) => Texts { request_id, ..none },
        Some(Outcome::Rejected { error }) => Texts { error, ..none },
        Some(Outcome::NotSent { reason } | Outcome::InDoubt { reason }) => Texts { reason, ..none },
        Some(Outcome::Failed { request_id, status }) => Texts { request_id, gateway_status: status, ..none },
    }
}

/// The line that is being written, behind those that are.
struct Line {
    csv: csv::Writer<Vec<u8>>,
    record: csv::ByteRecord,
}

impl Line {
    fn new(lines: Vec<u8>) -> Self {
        Self { csv: csv::Writer::from_writer(lines), record: csv::ByteRecord::new() }
    }

    fn cell(&mut self, cell: &str) {
        self.record.push_field(harmless(cell).as_bytes());
    }

    fn number(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.record.push_field(itoa::Buffer::new().format(number).as_bytes()),
            None => self.record.push_field(b""),
        }
    }

    /// The columns `msg_id`, `request_id` and `parts`.
    fn accepted(&mut self, outcome: Option<&Outcome>, request_id: &str) {
        let (msg_id, parts) = match outcome {
            Some(Outcome::Accepted { msg_id, parts, .. }) => (msg_id.as_ref(), *parts),
            _ => (None, None),
        };
        match msg_id {
            Some(MsgId::Number(number)) => self.number(Some(*number)),
            Some(MsgId::Text(text)) => self.cell(text),
            None => self.cell(""),
        }
        self.cell(request_id);
        self.number(parts.map(u64::from));
    }

    fn end(&mut self) {
        self.csv.write_byte_record(&self.record).expect("memory takes every line, and all lines have as many cells");
        self.record.clear();
    }

    fn finish(self) -> Vec<u8> {
        self.csv.into_inner().expect("memory takes every line")
    }
}
