//! The judge of the simulation: compares the platform's actions with the ledger's records, and the counts shown to the
//! operator with the stored ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::plan::{StatusOracle, WorldFault, WorldPlan};
use super::platform::{AcceptedMessage, ArrivedOperation};
use super::process::{ProcessLife, SimulatedDisk, elapsed};
use super::world::SimulatedWorld;
use crate::delivery::Snapshot;
use campaign_core::domain::{GatewayMessageId, MessageId, OperationOutcome, Phone, Row};
use campaign_gateway::{Envelope, GatewayReply};
use campaign_ledger::memory::StoredRun;
use campaign_ledger::{NumberSet, OPTED_OUT, RowSpan, RowState, StateCounts};

/// The number of identical first rejections after which a start must stop.
const MAX_FIRST_REJECTIONS: usize = 4;
/// The number of operations by which a rate may be exceeded because of rounding.
const ROUNDING_TOLERANCE: f64 = 0.01;

/// A promise that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Breach {
    /// At the end, a row has no final state, or is marked as not sent although no person decided so.
    Lost,
    /// A recipient got more messages than a person allowed.
    Duplicated,
    /// The ledger says that the gateway accepted a message, but it did not.
    FalselyAccepted,
    /// The ledger says that a message was not sent, but it was.
    FalselyNotSent,
    /// A message was sent that belongs to no row.
    Unexpected,
    /// An answer was stored for the wrong row.
    Misattributed,
    /// A message was sent without an intent on the disk.
    WithoutIntent,
    /// A message was sent after another process took the run and marked the message as in doubt.
    AfterRunWasLost,
    /// A worker sent rows of a shared run outside its shards.
    OutsideItsShards,
    /// An identifier was reused for another recipient.
    ForeignId,
    /// One process, or all processes together, sent faster than the rate limit allows.
    RateLimit,
    /// A result was shown before it was on the disk.
    ShownEarly,
    /// The next run would send to a recipient who has, or might have, a message.
    Unguarded,
    /// A message was sent although its intent came after the opt-out.
    SentAfterOptOut,
    /// A receipt that was acknowledged is not on the disk.
    ReceiptLost,
    /// The status of a message went backwards.
    StatusWentBack,
    /// A row was asked about although a receipt had proven that its message was sent.
    AskedAlthoughProven,
    /// A row was resent although a receipt had reported its arrival.
    SentAlthoughProven,
    /// A process took too long.
    Unbounded,
    /// Several workers sent before the gateway had accepted a message. Or an unproven start did not continue with
    /// single messages after its first rejections, or continued after four rejections with the same text.
    WarmUp,
}

/// Broken promises, with their number and the first case.
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
    /// The number of operations of each row that reached the platform.
    attempts: HashMap<Row, u32>,
    /// The number of intents of a row when its recipient opted out.
    opted_out: HashMap<Row, u32>,
    /// The phone number of each message identifier.
    phones: HashMap<u64, u64>,
    /// Additional messages per row that a person allowed.
    allowed: HashMap<Row, u64>,
    /// Rows whose state a person decided.
    decided: HashSet<Row>,
    /// The rejection texts of the first messages, by process. Only for starts that must stop after four rejections with
    /// the same text.
    first_rejections: HashMap<usize, Vec<String>>,
}

#[derive(Default)]
pub(super) struct PromiseJudge(Mutex<JudgeNotes>);

/// The phone number of a row's recipient.
pub(super) fn row_phone(row: Row) -> u64 {
    380_501_000_000 + u64::from(row.get())
}

/// Whether the gateway has accepted a message of a run.
pub(super) fn has_accepted(snapshot: &Snapshot) -> bool {
    snapshot.counts.get(RowState::Accepted) + snapshot.counts.get(RowState::Queued) > 0
}

impl JudgeNotes {
    fn record_breach(&mut self, breach: Breach, details: impl FnOnce() -> String) {
        self.findings.entry(breach).or_insert_with(|| (0, details())).0 += 1;
    }
}

impl PromiseJudge {
    pub(super) fn record_breach(&self, breach: Breach, details: &str) {
        self.0.lock().unwrap().record_breach(breach, || details.to_owned());
    }

    pub(super) fn breaches(&self) -> Breaches {
        self.0.lock().unwrap().findings.clone()
    }

    /// Allows `count` further messages for a row, because a person decided so.
    pub(super) fn allow_more(&self, row: Row, count: u64) {
        *self.0.lock().unwrap().allowed.entry(row).or_default() += count;
    }

    /// Records that a person decided the state of a row.
    pub(super) fn note_decision(&self, row: Row) {
        self.0.lock().unwrap().decided.insert(row);
    }

    /// Records that the recipient of a row opted out after `intents` intents for this row.
    pub(super) fn note_opt_out(&self, row: Row, intents: u32) {
        self.0.lock().unwrap().opted_out.insert(row, intents);
    }

    /// Records that a process starts sending. With `ignores_first_rejections`, first rejections need not stop the
    /// start.
    pub(super) fn note_start(&self, process: usize, ignores_first_rejections: bool) {
        if !ignores_first_rejections {
            self.0.lock().unwrap().first_rejections.insert(process, Vec::new());
        }
    }

    /// Records an answer that reaches a process, if the answer is to the first messages of a start.
    pub(super) fn note_answer(&self, process: usize, reply: &GatewayReply) {
        let mut notes = self.0.lock().unwrap();
        match (&reply.outcomes[..], notes.first_rejections.get_mut(&process)) {
            ([OperationOutcome::Rejected { error }], Some(texts)) if texts.iter().all(|text| text == error) => {
                texts.push(error.clone());
            }
            // The first answers were not just four rejections, so other rules apply from here on.
            (_, Some(texts)) if texts.len() < MAX_FIRST_REJECTIONS => _ = notes.first_rejections.remove(&process),
            _ => {}
        }
    }

    /// Checks an envelope whose first byte reaches the platform.
    pub(super) fn check_arrival(
        &self,
        (process, life): (usize, &Arc<ProcessLife>),
        disk: &SimulatedDisk,
        envelope: &Envelope,
        arrived: &[ArrivedOperation],
    ) {
        let mut notes = self.0.lock().unwrap();
        // After a rejection, operations are sent one at a time, and at most four in all.
        let count_allowed = |texts: &Vec<String>| {
            if texts.is_empty() { usize::MAX } else { usize::from(texts.len() < MAX_FIRST_REJECTIONS) }
        };
        if notes.first_rejections.get(&process).is_some_and(|texts| arrived.len() > count_allowed(texts)) {
            notes.record_breach(Breach::WarmUp, || format!("{} operations more", arrived.len()));
        }
        if envelope.operations().first().is_some_and(|first| is_settled(disk, first.row)) {
            notes.record_breach(Breach::AfterRunWasLost, || format!("{} operations", arrived.len()));
        }
        let rows = || envelope.operations().iter().map(|operation| operation.row);
        let rows = rows().min().zip(rows().max()).map(|(first, last)| RowSpan { first, last });
        if rows.is_some_and(|rows| !disk.may_send(life, rows)) {
            notes.record_breach(Breach::OutsideItsShards, || format!("{rows:?}"));
        }
        if !disk.is_proven_or_alone(life) {
            notes.record_breach(Breach::WarmUp, || "beside another process".to_owned());
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
            if notes.opted_out.get(&row).is_some_and(|intents_before| intents > *intents_before) {
                notes.record_breach(Breach::SentAfterOptOut, || format!("row {row}"));
            }
            let known_phone = *notes.phones.entry(operation.id).or_insert(operation.phone);
            if known_phone != operation.phone {
                notes.record_breach(Breach::ForeignId, || format!("row {row}"));
            }
            if find_row(disk, operation.id).is_none_or(|row| row_phone(row) != operation.phone) {
                notes.record_breach(Breach::Unexpected, || format!("row {row} under the identifier {}", operation.id));
            }
        }
    }

    /// Checks counts that are shown to the operator: the answers that they include must be on disk.
    pub(super) fn check_shown_counts(&self, counts: &StateCounts, stored: &StateCounts) {
        // Another process might know more about a message by now, but no message is forgotten.
        let answered = [
            RowState::Accepted,
            RowState::Queued,
            RowState::Rejected,
            RowState::Failed,
            RowState::Delivered,
            RowState::Read,
        ];
        let sum = |counts: &StateCounts| answered.map(|state| counts.get(state)).iter().sum::<u64>();
        let (shown, stored) = (sum(counts), sum(stored));
        if shown > stored {
            self.record_breach(Breach::ShownEarly, &format!("{shown} answers shown, {stored} stored"));
        }
    }

    /// Compares the ledger with the platform. If `has_ended` is true, every row must have a final state.
    pub(super) fn compare_outcomes(
        &self,
        plan: &WorldPlan,
        disk: &SimulatedDisk,
        snapshot: &Snapshot,
        accepted: &[AcceptedMessage],
        has_ended: bool,
    ) {
        let mut notes = self.0.lock().unwrap();
        self::check_attribution(&mut notes, disk, accepted);
        for row in (2..=plan.rows + 1).map(Row::new) {
            let state = snapshot.row_state(row);
            let reached =
                accepted.iter().filter(|message| message.phone == row_phone(row) && message.reaches_recipient());
            let messages = reached.count() as u64;
            let allowed = 1 + notes.allowed.get(&row).copied().unwrap_or(0);
            let is_decided = notes.decided.contains(&row);
            if messages > allowed {
                notes.record_breach(Breach::Duplicated, || format!("row {row} went out {messages} times, {state}"));
            }
            let is_known = accepted.iter().any(|accepted| accepted.phone == row_phone(row));
            let says_accepted =
                matches!(state, RowState::Accepted | RowState::Queued | RowState::Delivered | RowState::Read);
            if says_accepted && !is_known {
                notes.record_breach(Breach::FalselyAccepted, || format!("row {row} is {state}"));
            }
            let unsent =
                [RowState::Planned, RowState::Skipped, RowState::NotSent, RowState::Rejected, RowState::Failed];
            let says_unsent =
                unsent.contains(&state) && snapshot.left_out.find_reason(row).is_none_or(|(_, text)| text == OPTED_OUT);
            // A failure that names no channel is taken as a failure of the whole message, although the platform goes on
            // to the next channel. Only a status inquiry corrects this.
            let is_misreported = state == RowState::Failed && plan.omits_failed_channel();
            if says_unsent && messages > 0 && !is_decided && !is_misreported {
                notes.record_breach(Breach::FalselyNotSent, || format!("row {row} is {state} and went out"));
            }
            let is_open =
                matches!(state, RowState::Planned | RowState::Sending | RowState::InDoubt | RowState::Unresolved);
            if has_ended && (is_open || (state == RowState::NotSent && !is_decided)) {
                notes.record_breach(Breach::Lost, || format!("row {row} is {state} in the end"));
            }
        }
        if let Some(unexpected) = accepted.iter().find(|accepted| find_row(disk, accepted.id).is_none()) {
            notes.record_breach(Breach::Unexpected, || format!("identifier {}", unexpected.id));
        }
    }

    /// Compares the phone numbers that the guard skips with the platform; the next run would send to all other numbers.
    pub(super) fn check_guard(
        &self,
        plan: &WorldPlan,
        snapshot: &Snapshot,
        accepted: &[AcceptedMessage],
        skipped: &NumberSet,
    ) {
        let mut notes = self.0.lock().unwrap();
        for row in
            (2..=plan.rows + 1).map(Row::new).filter(|row| !skipped.contains(Phone::new(row_phone(*row)).unwrap()))
        {
            let was_reached =
                accepted.iter().any(|accepted| accepted.phone == row_phone(row) && accepted.reaches_recipient());
            let state = snapshot.row_state(row);
            let is_unknown = matches!(state, RowState::Sending | RowState::InDoubt | RowState::Unresolved);
            if is_unknown || (was_reached && !notes.decided.contains(&row)) {
                notes.record_breach(Breach::Unguarded, || format!("row {row} is {state}, and would be sent to again"));
            }
        }
    }

    /// Allows one more message for each row that a person decided was not sent.
    pub(super) fn allow_resend_of_decided(&self) {
        let mut notes = self.0.lock().unwrap();
        for row in notes.decided.clone() {
            *notes.allowed.entry(row).or_default() += 1;
        }
    }

    /// Checks the rate in all periods of at least a second, for one process or for all processes. `spare` is the number
    /// of operations that each process may send beyond the rate.
    pub(super) fn check_rate(&self, rate: f64, process: Option<usize>, spare: &[f64]) {
        let mut notes = self.0.lock().unwrap();
        let arrivals: Vec<ArrivedEnvelope> = notes
            .arrivals
            .iter()
            .copied()
            .filter(|arrival| process.is_none_or(|process| process == arrival.process))
            .collect();
        for (begin, first) in arrivals.iter().enumerate() {
            let (mut within, mut processes) = (0, HashSet::new());
            for last in &arrivals[begin..] {
                within += last.operations;
                processes.insert(last.process);
                let window = (last.at - first.at).as_secs_f64().max(1.0);
                let spare: f64 = processes.iter().map(|process| spare[*process]).sum();
                let max_allowed = rate * window + spare;
                if within as f64 > max_allowed + ROUNDING_TOLERANCE {
                    notes.record_breach(Breach::RateLimit, || {
                        format!("{within} in {window} s at {rate}/s and {spare} to spare")
                    });
                }
            }
        }
    }
}

/// Whether the last envelope of a row is settled in any way.
fn is_settled(disk: &SimulatedDisk, row: Row) -> bool {
    let is_row_settled = |stored: &StoredRun| {
        let last = stored.envelopes.values().rfind(|envelope| envelope.rows.iter().any(|sent| sent.row == row));
        last.map(|envelope| envelope.settled.is_some())
    };
    disk.contents.stored_runs().filter_map(is_row_settled).last().unwrap_or(false)
}

fn find_row(disk: &SimulatedDisk, id: u64) -> Option<Row> {
    let id = MessageId::new(id)?;
    disk.contents.stored_runs().find_map(|stored| stored.run.find_row(id))
}

/// Checks that every stored `msg_id` is the identifier that the platform gave to the row's message.
fn check_attribution(notes: &mut JudgeNotes, disk: &SimulatedDisk, accepted: &[AcceptedMessage]) {
    let owners: HashMap<u64, u64> = accepted.iter().map(|accepted| (accepted.msg_id, accepted.phone)).collect();
    for envelope in disk.contents.stored_runs().flat_map(|stored| stored.envelopes.values()) {
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

/// A situation that occurred in a world. Tests count the situations to prove that they cover them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sighting {
    Fault(WorldFault),
    Oracle(StatusOracle),
    Killed,
    Suspended,
    TakenOver,
    Found,
    ResentByRule,
    SentAgain,
    CountedAsSent,
    CountedAsNotSent,
    Retried,
    Unresolved,
    StartedOver,
    OptedOut,
    Skipped,
    /// A webhook came before the answer to its envelope.
    ReceiptEarly,
    ReceiptRepeated,
    DoubtProven,
    Sharded,
    /// A worker continued with the shard of a dead process.
    ShardTakenOver,
    WorkerKilled,
    /// A suspended process lost its place.
    SuspendedPastItsLease,
    /// A process stopped a run while other workers had shards of the run.
    HaltedForAll,
    /// The wall clock was set, forward or back.
    ClockSet,
    /// A message was or will be delivered on a later channel, after an earlier one failed.
    FellBack,
    /// No channel delivered the message.
    FailedOnEveryChannel,
    /// A message that seemed to have failed was not resent, because the platform denied the failure.
    RetrySkipped,
}

/// The result of a world.
#[derive(Debug, Default)]
pub(super) struct WorldReport {
    pub(super) broken: Breaches,
    pub(super) sightings: BTreeMap<Sighting, u64>,
    /// The time when the world ended, by its monotonic clock.
    pub(super) ended: Duration,
}

impl SimulatedWorld {
    /// Checks the account's rate across all processes, and the campaign's rate within each process, or across all
    /// processes if they share the run. The rate of a shared run is not checked if the run was also sent as a whole.
    pub(super) fn check_rates(&self) {
        let processes = self.processes.lock().unwrap();
        let plan = &self.plan;
        // A suspended process might have had an envelope between its gate and the socket.
        let suspension = |life: &Arc<ProcessLife>| if life.was_suspended() { 1.0 } else { 0.0 };
        let largest = plan.batch.min((plan.rate.unwrap_or(f64::INFINITY) as usize).max(1)) as f64;
        // In a shared run, each of a worker's envelopes in flight might be late and followed by one that is on time.
        let late = if plan.sharing.is_some() { 1.0 + plan.in_flight as f64 } else { 1.0 };
        // Setting a clock forward drops the slots that were booked ahead.
        let forgotten = if self.clock_set.load(Ordering::Relaxed) { late } else { 0.0 };
        let spare: Vec<f64> = processes.iter().map(|life| (late + suspension(life) + forgotten) * largest).collect();
        if let Some(rate) = plan.account_rate {
            self.judge.check_rate(rate, None, &spare);
        }
        match plan.rate {
            Some(rate) if plan.sharing.is_none() => {
                (0..processes.len()).for_each(|process| self.judge.check_rate(rate, Some(process), &spare));
            }
            Some(rate) if !self.sent_whole.load(Ordering::Relaxed) => self.judge.check_rate(rate, None, &spare),
            _ => {}
        }
    }
}
