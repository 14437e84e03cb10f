//! The judge: compares what the platform really did with what the ledger says, and what was shown with what was kept.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::disk::SimulatedDisk;
use super::life::{ProcessLife, elapsed};
use super::plan::WorldPlan;
use super::platform::{ArrivedOperation, TakenMessage};
use crate::delivery::Snapshot;
use crate::domain::{GatewayMessageId, MessageId, OperationOutcome, Phone, Row};
use crate::gateway::{Envelope, GatewayReply};
use crate::ledger::memory::StoredRun;
use crate::ledger::{NumberSet, OPTED_OUT, RowSpan, RowState, StateCounts};

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
    AfterRunWasLost,
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
    SentAfterOptOut,
    /// A receipt that was acknowledged is not on the disk.
    ReceiptLost,
    /// A message went back to where it was before.
    WentBack,
    /// Something was asked about a row that a receipt had proven.
    AskedAlthoughProven,
    /// A row was sent again although a receipt had told that it arrived.
    SentAlthoughProven,
    /// Something took longer than it may.
    Unbounded,
    /// Several processes sent before the gateway had taken a message; or a start of which nothing was taken went on otherwise than by single messages after its first were rejected, or after
    /// four of them were with one text.
    Canary,
}

/// The promises that were broken, how often, and how the first time.
pub(super) type Breaches = BTreeMap<Breach, (u64, String)>;

/// The bytes of an envelope that reached the platform.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedEnvelope {
    pub(super) at: Duration,
    pub(super) process: usize,
    pub(super) operations: usize,
}

#[derive(Default)]
struct JudgeNotes {
    findings: Breaches,
    arrivals: Vec<ArrivedEnvelope>,
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
pub(super) struct PromiseJudge(Mutex<JudgeNotes>);

/// The number of a row's recipient.
pub(super) fn row_phone(row: Row) -> u64 {
    380_501_000_000 + u64::from(row.get())
}

/// Whether the gateway has taken a message of a run.
pub(super) fn has_accepted(snapshot: &Snapshot) -> bool {
    snapshot.counts.get(RowState::Accepted) + snapshot.counts.get(RowState::Queued) > 0
}

impl JudgeNotes {
    fn record_breach(&mut self, what: Breach, how: impl FnOnce() -> String) {
        self.findings.entry(what).or_insert_with(|| (0, how())).0 += 1;
    }
}

impl PromiseJudge {
    pub(super) fn record_breach(&self, what: Breach, how: &str) {
        self.0.lock().unwrap().record_breach(what, || how.to_owned());
    }

    pub(super) fn findings(&self) -> Breaches {
        self.0.lock().unwrap().findings.clone()
    }

    /// A person accepts that a row may go out so many times more.
    pub(super) fn allow_more(&self, row: Row, more: u64) {
        *self.0.lock().unwrap().accepted.entry(row).or_default() += more;
    }

    /// A person answers for what a row counts as.
    pub(super) fn note_decision(&self, row: Row) {
        self.0.lock().unwrap().decided.insert(row);
    }

    /// The recipient of a row opts out, of which there are so many intents.
    pub(super) fn note_opt_out(&self, row: Row, intents: u32) {
        self.0.lock().unwrap().opted_out.insert(row, intents);
    }

    /// A process begins to send; `careless` if a first rejection says nothing of the messages after it.
    pub(super) fn note_start(&self, process: usize, careless: bool) {
        if !careless {
            self.0.lock().unwrap().canaries.insert(process, Vec::new());
        }
    }

    /// An answer reaches a process.
    pub(super) fn check_answer(&self, process: usize, reply: &GatewayReply) {
        let mut notes = self.0.lock().unwrap();
        match (&reply.outcomes[..], notes.canaries.get_mut(&process)) {
            ([OperationOutcome::Rejected { error }], Some(texts)) if texts.iter().all(|text| text == error) => {
                texts.push(error.clone());
            }
            // Something else than four rejections alone came first: other rules hold from here on.
            (_, Some(texts)) if texts.len() < 4 => _ = notes.canaries.remove(&process),
            _ => {}
        }
    }

    /// The first byte of an envelope reaches the platform.
    pub(super) fn check_arrival(
        &self,
        (process, life): (usize, &Arc<ProcessLife>),
        disk: &SimulatedDisk,
        envelope: &Envelope,
        arrived: &[ArrivedOperation],
    ) {
        let mut notes = self.0.lock().unwrap();
        // One more at a time, and no more than four.
        let most = |texts: &Vec<String>| if texts.is_empty() { usize::MAX } else { usize::from(texts.len() < 4) };
        if notes.canaries.get(&process).is_some_and(|texts| arrived.len() > most(texts)) {
            notes.record_breach(Breach::Canary, || format!("{} operations more", arrived.len()));
        }
        if envelope.operations().first().is_some_and(|first| is_settled(disk, first.row)) {
            notes.record_breach(Breach::AfterRunWasLost, || format!("{} operations", arrived.len()));
        }
        let rows = || envelope.operations().iter().map(|operation| operation.row);
        let rows = rows().min().zip(rows().max()).map(|(first, last)| RowSpan { first, last });
        if rows.is_some_and(|rows| !disk.may_send(life, rows)) {
            notes.record_breach(Breach::NotOfItsShare, || format!("{rows:?}"));
        }
        if !disk.is_trying_alone(life) {
            notes.record_breach(Breach::Canary, || "beside another process".to_owned());
        }
        notes.arrivals.push(ArrivedEnvelope { at: elapsed(), process, operations: arrived.len() });
        for (operation, encoded) in arrived.iter().zip(envelope.operations()) {
            let row = encoded.row;
            let attempts = notes.attempts.entry(row).or_default();
            *attempts += 1;
            let (attempts, intents) = (*attempts, disk.intents.get(&row).copied().unwrap_or(0));
            if attempts > intents {
                notes.record_breach(Breach::WithoutIntent, || {
                    format!("row {row}: attempt {attempts}, {intents} intents")
                });
            }
            if notes.opted_out.get(&row).is_some_and(|before| intents > *before) {
                notes.record_breach(Breach::SentAfterOptOut, || format!("row {row}"));
            }
            let before = *notes.phones.entry(operation.id).or_insert(operation.phone);
            if before != operation.phone {
                notes.record_breach(Breach::ForeignId, || format!("row {row}"));
            }
            if find_row(disk, operation.id).is_none_or(|known| row_phone(known) != operation.phone) {
                notes.record_breach(Breach::Unexpected, || format!("row {row} under the identifier {}", operation.id));
            }
        }
    }

    /// Counts are shown: what they say of answers has to be on the disk.
    pub(super) fn check_shown_counts(&self, counts: &StateCounts, kept: &StateCounts) {
        // Another process may know more of a message by now, but none is forgotten.
        let answered = [
            RowState::Accepted,
            RowState::Queued,
            RowState::Rejected,
            RowState::Failed,
            RowState::Delivered,
            RowState::Read,
        ];
        let sum = |counts: &StateCounts| answered.map(|state| counts.get(state)).iter().sum::<u64>();
        let (shown, kept) = (sum(counts), sum(kept));
        if shown > kept {
            self.record_breach(Breach::ShownEarly, &format!("{shown} answers shown, {kept} kept"));
        }
    }

    /// Holds what the ledger says against what the platform did. At the end every row has to have an end.
    pub(super) fn compare_outcomes(
        &self,
        plan: &WorldPlan,
        disk: &SimulatedDisk,
        snapshot: &Snapshot,
        taken: &[TakenMessage],
        ended: bool,
    ) {
        let mut notes = self.0.lock().unwrap();
        self::check_attribution(&mut notes, disk, taken);
        for row in (2..=plan.rows + 1).map(Row::new) {
            let state = snapshot.row_state(row);
            let got = taken.iter().filter(|taken| taken.phone == row_phone(row) && taken.reaches()).count() as u64;
            let allowed = 1 + notes.accepted.get(&row).copied().unwrap_or(0);
            let decided = notes.decided.contains(&row);
            if got > allowed {
                notes.record_breach(Breach::Duplicated, || format!("row {row} went out {got} times, {state}"));
            }
            let known = taken.iter().any(|taken| taken.phone == row_phone(row));
            let says_taken =
                matches!(state, RowState::Accepted | RowState::Queued | RowState::Delivered | RowState::Read);
            if says_taken && !known {
                notes.record_breach(Breach::FalselyAccepted, || format!("row {row} is {state}"));
            }
            let unsent =
                [RowState::Planned, RowState::Skipped, RowState::NotSent, RowState::Rejected, RowState::Failed];
            let says_unsent =
                unsent.contains(&state) && snapshot.left_out.find_reason(row).is_none_or(|(_, why)| why == OPTED_OUT);
            // A failure that names no channel speaks for the whole message, although the platform goes on: only asking helps.
            let misled = state == RowState::Failed && plan.omits_failed_channel();
            if says_unsent && got > 0 && !decided && !misled {
                notes.record_breach(Breach::FalselyNotSent, || format!("row {row} is {state} and went out"));
            }
            let open =
                matches!(state, RowState::Planned | RowState::Sending | RowState::InDoubt | RowState::Unresolved);
            if ended && (open || (state == RowState::NotSent && !decided)) {
                notes.record_breach(Breach::Lost, || format!("row {row} is {state} in the end"));
            }
        }
        if let Some(stranger) = taken.iter().find(|taken| find_row(disk, taken.id).is_none()) {
            notes.record_breach(Breach::Unexpected, || format!("identifier {}", stranger.id));
        }
    }

    /// Holds whom the guard skips against what the platform took: a run that began now would send to everybody else.
    pub(super) fn check_guard(
        &self,
        plan: &WorldPlan,
        snapshot: &Snapshot,
        taken: &[TakenMessage],
        skipped: &NumberSet,
    ) {
        let mut notes = self.0.lock().unwrap();
        for row in
            (2..=plan.rows + 1).map(Row::new).filter(|row| !skipped.contains(Phone::new(row_phone(*row)).unwrap()))
        {
            let got = taken.iter().any(|taken| taken.phone == row_phone(row) && taken.reaches());
            let state = snapshot.row_state(row);
            let unknown = matches!(state, RowState::Sending | RowState::InDoubt | RowState::Unresolved);
            if unknown || (got && !notes.decided.contains(&row)) {
                notes.record_breach(Breach::Unguarded, || format!("row {row} is {state}, and would be sent to again"));
            }
        }
    }

    /// Rows that count as not sent, because a person said so, may get another message.
    pub(super) fn allow_decided_again(&self) {
        let mut notes = self.0.lock().unwrap();
        for row in notes.decided.clone() {
            *notes.accepted.entry(row).or_default() += 1;
        }
    }

    /// Measures the pace over all windows of at least a second, of all processes or of one; `spare` are the operations
    /// by which each process may exceed it.
    pub(super) fn measure_rate(&self, rate: f64, process: Option<usize>, spare: &[f64]) {
        let mut notes = self.0.lock().unwrap();
        let arrivals: Vec<ArrivedEnvelope> =
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
                    notes.record_breach(Breach::Pace, || {
                        format!("{within} in {window} s at {rate}/s and {spare} to spare")
                    });
                }
            }
        }
    }
}

/// The row that an identifier belongs to.
/// Whether the last envelope of a row came to its end, in whatever way.
fn is_settled(disk: &SimulatedDisk, row: Row) -> bool {
    let of_row = |book: &StoredRun| {
        let last = book.envelopes.values().rfind(|envelope| envelope.rows.iter().any(|sent| sent.row == row));
        last.map(|envelope| envelope.settled.is_some())
    };
    disk.contents.stored_runs().filter_map(of_row).last().unwrap_or(false)
}

fn find_row(disk: &SimulatedDisk, id: u64) -> Option<Row> {
    let id = MessageId::new(id)?;
    disk.contents.stored_runs().find_map(|book| book.run.find_row(id))
}

/// Every `msg_id` that was kept has to be the one that the platform gave this row.
fn check_attribution(notes: &mut JudgeNotes, disk: &SimulatedDisk, taken: &[TakenMessage]) {
    let owners: HashMap<u64, u64> = taken.iter().map(|taken| (taken.msg_id, taken.phone)).collect();
    for envelope in disk.contents.stored_runs().flat_map(|book| book.envelopes.values()) {
        let Some((_, outcomes)) = &envelope.settled else { continue };
        for (sent, outcome) in envelope.rows.iter().zip(outcomes) {
            let OperationOutcome::Accepted { msg_id: Some(GatewayMessageId::Number(msg_id)), .. } = outcome else {
                continue;
            };
            if owners.get(msg_id) != Some(&row_phone(sent.row)) {
                notes.record_breach(Breach::Misattributed, || format!("row {}", sent.row));
            }
        }
    }
}
