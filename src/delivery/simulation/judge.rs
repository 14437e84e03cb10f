//! The judge: compares what the platform really did with what the ledger says, and what was shown with what was kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::disk::Disk;
use super::life::{Life, elapsed};
use super::plan::Plan;
use super::platform::{ArrivedOperation, TakenMessage};
use crate::delivery::Snapshot;
use crate::domain::{MessageId, MsgId, Outcome, Phone, Row};
use crate::gateway::{Envelope, Reply};
use crate::ledger::memory::Book;
use crate::ledger::{NumberSet, OPTED_OUT, Rows, State, StateCounts};

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Breach {
    /// A row has no end, or is not sent although nobody decided so.
    Lost,
    /// A recipient got a message more often than a person accepted.
    Duplicated,
    /// The ledger says that the gateway took a message, and it did not.
    FalselyAccepted,
    /// The ledger says that a message was not sent, and it was.
    FalselyNotSent,
    /// Something went out that belongs to no row.
    Unexpected,
    /// An answer was kept for another row than the one it was about.
    Misattributed,
    /// Something went out without an intent on the disk.
    WithoutIntent,
    /// Something went out after another process had the run, and had it fall into doubt.
    AfterItsRunWasLost,
    /// Something went out of a run that several send, and was not of one share of the process that sent it.
    NotOfItsShare,
    /// An identifier went out for another recipient than before.
    ForeignId,
    /// More went out than the pace allows.
    Pace,
    /// Something was shown before it was on the disk.
    ShownEarly,
    /// Somebody who has a message, or may have one, would get one of the next run.
    Unguarded,
    /// Somebody got a message whose intent came after the opt-out.
    SentToWhoOptedOut,
    /// A receipt that was acknowledged is not on the disk.
    ReceiptLost,
    /// A message went back to where it was before.
    WentBack,
    /// Something was asked about a row that a receipt had proven.
    AskedThoughProven,
    /// A row was sent again although a receipt had told that it arrived.
    SentThoughProven,
    /// Something took longer than it may.
    Unbounded,
    /// Several processes sent before the gateway had taken a message; or a start of which nothing was taken went on otherwise than by single messages after its first were rejected, or after
    /// four of them were with one text.
    Canary,
}

/// The promises that were broken, how often, and how the first time.
pub(super) type Findings = BTreeMap<Breach, (u64, String)>;

/// The bytes of an envelope that reached the platform.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: Duration,
    pub(super) process: usize,
    pub(super) operations: usize,
}

#[derive(Default)]
struct Notes {
    findings: Findings,
    arrivals: Vec<Arrival>,
    attempts: HashMap<Row, u32>,
    /// How many intents there were of a row when its recipient opted out.
    opted_out: HashMap<Row, u32>,
    phones: HashMap<u64, u64>,
    /// How many messages a person accepted for a row besides the first.
    accepted: HashMap<Row, u64>,
    /// Rows that count as what a person decided, whatever happened.
    decided: HashSet<Row>,
    /// The texts with which the first messages of starts were rejected that have to stop after four of one text.
    canaries: HashMap<usize, Vec<String>>,
}

#[derive(Default)]
pub(super) struct Judge(Mutex<Notes>);

/// The number of a row's recipient.
pub(super) fn phone(row: Row) -> u64 {
    380_501_000_000 + u64::from(row.get())
}

/// Whether the gateway has taken a message of a run.
pub(super) fn took(snapshot: &Snapshot) -> bool {
    snapshot.counts.get(State::Accepted) + snapshot.counts.get(State::Queued) > 0
}

impl Notes {
    fn broken(&mut self, what: Breach, how: impl FnOnce() -> String) {
        self.findings.entry(what).or_insert_with(|| (0, how())).0 += 1;
    }
}

impl Judge {
    pub(super) fn broken(&self, what: Breach, how: &str) {
        self.0.lock().unwrap().broken(what, || how.to_owned());
    }

    pub(super) fn findings(&self) -> Findings {
        self.0.lock().unwrap().findings.clone()
    }

    /// A person accepts that a row may go out so many times more.
    pub(super) fn accepted(&self, row: Row, more: u64) {
        *self.0.lock().unwrap().accepted.entry(row).or_default() += more;
    }

    /// A person answers for what a row counts as.
    pub(super) fn decided(&self, row: Row) {
        self.0.lock().unwrap().decided.insert(row);
    }

    /// The recipient of a row opts out, of which there are so many intents.
    pub(super) fn opted_out(&self, row: Row, intents: u32) {
        self.0.lock().unwrap().opted_out.insert(row, intents);
    }

    /// A process begins to send; `careless` if a first rejection says nothing of the messages after it.
    pub(super) fn begins(&self, process: usize, careless: bool) {
        if !careless {
            self.0.lock().unwrap().canaries.insert(process, Vec::new());
        }
    }

    /// An answer reaches a process.
    pub(super) fn answered(&self, process: usize, reply: &Reply) {
        let mut notes = self.0.lock().unwrap();
        match (&reply.outcomes[..], notes.canaries.get_mut(&process)) {
            ([Outcome::Rejected { error }], Some(texts)) if texts.iter().all(|text| text == error) => {
                texts.push(error.clone());
            }
            // Something else than four rejections alone came first: other rules hold from here on.
            (_, Some(texts)) if texts.len() < 4 => _ = notes.canaries.remove(&process),
            _ => {}
        }
    }

    /// The first byte of an envelope reaches the platform.
    pub(super) fn arrived(
        &self,
        (process, life): (usize, &Arc<Life>),
        disk: &Disk,
        envelope: &Envelope,
        arrived: &[ArrivedOperation],
    ) {
        let mut notes = self.0.lock().unwrap();
        // One more at a time, and no more than four.
        let most = |texts: &Vec<String>| if texts.is_empty() { usize::MAX } else { usize::from(texts.len() < 4) };
        if notes.canaries.get(&process).is_some_and(|texts| arrived.len() > most(texts)) {
            notes.broken(Breach::Canary, || format!("{} operations more", arrived.len()));
        }
        if envelope.operations().first().is_some_and(|first| is_settled(disk, first.row)) {
            notes.broken(Breach::AfterItsRunWasLost, || format!("{} operations", arrived.len()));
        }
        let rows = || envelope.operations().iter().map(|operation| operation.row);
        let rows = rows().min().zip(rows().max()).map(|(first, last)| Rows { first, last });
        if rows.is_some_and(|rows| !disk.may_send(life, rows)) {
            notes.broken(Breach::NotOfItsShare, || format!("{rows:?}"));
        }
        if !disk.tries_alone(life) {
            notes.broken(Breach::Canary, || "beside another process".to_owned());
        }
        notes.arrivals.push(Arrival { at: elapsed(), process, operations: arrived.len() });
        for (operation, encoded) in arrived.iter().zip(envelope.operations()) {
            let row = encoded.row;
            let attempts = notes.attempts.entry(row).or_default();
            *attempts += 1;
            let (attempts, intents) = (*attempts, disk.intents.get(&row).copied().unwrap_or(0));
            if attempts > intents {
                notes.broken(Breach::WithoutIntent, || format!("row {row}: attempt {attempts}, {intents} intents"));
            }
            if notes.opted_out.get(&row).is_some_and(|before| intents > *before) {
                notes.broken(Breach::SentToWhoOptedOut, || format!("row {row}"));
            }
            let before = *notes.phones.entry(operation.id).or_insert(operation.phone);
            if before != operation.phone {
                notes.broken(Breach::ForeignId, || format!("row {row}"));
            }
            if row_of(disk, operation.id).is_none_or(|known| phone(known) != operation.phone) {
                notes.broken(Breach::Unexpected, || format!("row {row} under the identifier {}", operation.id));
            }
        }
    }

    /// Counts are shown: what they say of answers has to be on the disk.
    pub(super) fn shown(&self, counts: &StateCounts, kept: &StateCounts) {
        // Another process may know more of a message by now, but none is forgotten.
        let answered = [State::Accepted, State::Queued, State::Rejected, State::Failed, State::Delivered, State::Read];
        let sum = |counts: &StateCounts| answered.map(|state| counts.get(state)).iter().sum::<u64>();
        let (shown, kept) = (sum(counts), sum(kept));
        if shown > kept {
            self.broken(Breach::ShownEarly, &format!("{shown} answers shown, {kept} kept"));
        }
    }

    /// Holds what the ledger says against what the platform did. At the end every row has to have an end.
    pub(super) fn compare(&self, plan: &Plan, disk: &Disk, snapshot: &Snapshot, taken: &[TakenMessage], ended: bool) {
        let mut notes = self.0.lock().unwrap();
        self::misattributed(&mut notes, disk, taken);
        for row in (2..=plan.rows + 1).map(Row::new) {
            let state = snapshot.state(row);
            let got = taken.iter().filter(|taken| taken.phone == phone(row) && taken.reaches()).count() as u64;
            let allowed = 1 + notes.accepted.get(&row).copied().unwrap_or(0);
            let decided = notes.decided.contains(&row);
            if got > allowed {
                notes.broken(Breach::Duplicated, || format!("row {row} went out {got} times, {state}"));
            }
            let known = taken.iter().any(|taken| taken.phone == phone(row));
            let says_taken = matches!(state, State::Accepted | State::Queued | State::Delivered | State::Read);
            if says_taken && !known {
                notes.broken(Breach::FalselyAccepted, || format!("row {row} is {state}"));
            }
            let unsent = [State::Planned, State::Skipped, State::NotSent, State::Rejected, State::Failed];
            let says_unsent =
                unsent.contains(&state) && snapshot.left_out.of(row).is_none_or(|(_, why)| why == OPTED_OUT);
            // A failure that names no channel speaks for the whole message, although the platform goes on: only asking helps.
            let misled = state == State::Failed && plan.names_no_channel();
            if says_unsent && got > 0 && !decided && !misled {
                notes.broken(Breach::FalselyNotSent, || format!("row {row} is {state} and went out"));
            }
            let open = matches!(state, State::Planned | State::Sending | State::InDoubt | State::Unresolved);
            if ended && (open || (state == State::NotSent && !decided)) {
                notes.broken(Breach::Lost, || format!("row {row} is {state} in the end"));
            }
        }
        if let Some(stranger) = taken.iter().find(|taken| row_of(disk, taken.id).is_none()) {
            notes.broken(Breach::Unexpected, || format!("identifier {}", stranger.id));
        }
    }

    /// Holds whom the guard skips against what the platform took: a run that began now would send to everybody else.
    pub(super) fn guard(&self, plan: &Plan, snapshot: &Snapshot, taken: &[TakenMessage], skipped: &NumberSet) {
        let mut notes = self.0.lock().unwrap();
        for row in (2..=plan.rows + 1).map(Row::new).filter(|row| !skipped.contains(Phone::new(phone(*row)).unwrap())) {
            let got = taken.iter().any(|taken| taken.phone == phone(row) && taken.reaches());
            let state = snapshot.state(row);
            let unknown = matches!(state, State::Sending | State::InDoubt | State::Unresolved);
            if unknown || (got && !notes.decided.contains(&row)) {
                notes.broken(Breach::Unguarded, || format!("row {row} is {state}, and would be sent to again"));
            }
        }
    }

    /// Rows that count as not sent, because a person said so, may get another message.
    pub(super) fn begun_anew(&self) {
        let mut notes = self.0.lock().unwrap();
        for row in notes.decided.clone() {
            *notes.accepted.entry(row).or_default() += 1;
        }
    }

    /// Measures the pace over all windows of at least a second, of all processes or of one; `spare` are the operations
    /// by which each process may exceed it.
    pub(super) fn measure(&self, rate: f64, process: Option<usize>, spare: &[f64]) {
        let mut notes = self.0.lock().unwrap();
        let arrivals: Vec<Arrival> =
            notes.arrivals.iter().copied().filter(|arrival| process.is_none_or(|one| one == arrival.process)).collect();
        for (begin, first) in arrivals.iter().enumerate() {
            let (mut within, mut processes) = (0, HashSet::new());
            for last in &arrivals[begin..] {
                within += last.operations;
                processes.insert(last.process);
                let window = (last.at - first.at).as_secs_f64().max(1.0);
                let spare: f64 = processes.iter().map(|process| spare[*process]).sum();
                let most = rate * window + spare;
                if within as f64 > most + 0.01 {
                    notes.broken(Breach::Pace, || format!("{within} in {window} s at {rate}/s and {spare} to spare"));
                }
            }
        }
    }
}

/// The row that an identifier belongs to.
/// Whether the last envelope of a row came to its end, in whatever way.
fn is_settled(disk: &Disk, row: Row) -> bool {
    let of_row = |book: &Book| {
        let last = book.envelopes.values().rfind(|envelope| envelope.rows.iter().any(|sent| sent.row == row));
        last.map(|envelope| envelope.settled.is_some())
    };
    disk.contents.books().filter_map(of_row).last().unwrap_or(false)
}

fn row_of(disk: &Disk, id: u64) -> Option<Row> {
    let id = MessageId::new(id)?;
    disk.contents.books().find_map(|book| book.run.row_of(id))
}

/// Every `msg_id` that was kept has to be the one that the platform gave this row.
fn misattributed(notes: &mut Notes, disk: &Disk, taken: &[TakenMessage]) {
    let owners: HashMap<u64, u64> = taken.iter().map(|taken| (taken.msg_id, taken.phone)).collect();
    for envelope in disk.contents.books().flat_map(|book| book.envelopes.values()) {
        let Some((_, outcomes)) = &envelope.settled else { continue };
        for (sent, outcome) in envelope.rows.iter().zip(outcomes) {
            let Outcome::Accepted { msg_id: Some(MsgId::Number(msg_id)), .. } = outcome else { continue };
            if owners.get(msg_id) != Some(&phone(sent.row)) {
                notes.broken(Breach::Misattributed, || format!("row {}", sent.row));
            }
        }
    }
}
