//! The platform: what it really did, and the answers that came of it or did not.
//!
//! It takes the same identifier twice without a word, as the contract allows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc::UnboundedSender;

use super::chance::SimulationRandom;
use super::fallback::{ChannelReport, FallbackWay};
use super::life::elapsed;
use super::mistake::Mistake;
use super::plan::{StatusOracle, WorldFault, WorldPlan};
use super::wire::{self, IdSpelling, SimulatedItem};
use crate::domain::{Endpoint, OperationKind};
use crate::gateway::{Envelope, HttpExchange};

/// A message that the platform took.
#[derive(Clone, Debug)]
pub(super) struct TakenMessage {
    pub(super) id: u64,
    pub(super) phone: u64,
    pub(super) msg_id: u64,
    /// When the platform can tell of it.
    known_at: Duration,
    /// Whether it was queued and refused after that, so that nobody got it.
    pub(super) refused: bool,
    /// When it is executed.
    executed_at: Duration,
    /// Its way through its channels.
    fallback: FallbackWay,
}

impl TakenMessage {
    /// Whether its recipient has it, or is to have it.
    pub(super) fn reaches(&self) -> bool {
        !self.refused && self.fallback.reaches
    }
}

/// One operation as it stood in the bytes that arrived.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct ArrivedOperation {
    pub(super) id: u64,
    pub(super) phone: u64,
}

/// A message that the platform executes, and may tell of by itself.
#[derive(Clone, Debug)]
pub(super) struct ExecutedMessage {
    pub(super) id: u64,
    /// How long it takes until it is executed.
    pub(super) late: Duration,
    pub(super) refused: bool,
    pub(super) fallback: FallbackWay,
}

pub(super) struct SimulatedPlatform {
    plan: Arc<WorldPlan>,
    mistake: Option<Mistake>,
    books: Mutex<PlatformBooks>,
}

struct PlatformBooks {
    chance: SimulationRandom,
    healthy: bool,
    taken: Vec<TakenMessage>,
    fired: BTreeMap<WorldFault, u64>,
    last_msg_id: u64,
    executed: UnboundedSender<ExecutedMessage>,
}

/// An answer and when it comes; one that never comes has no time.
pub(super) struct TimedAnswer {
    pub(super) exchange: HttpExchange,
    pub(super) after: Option<Duration>,
}

impl SimulatedPlatform {
    pub(super) fn new(
        plan: Arc<WorldPlan>,
        mistake: Option<Mistake>,
        executed: UnboundedSender<ExecutedMessage>,
    ) -> Self {
        let books = PlatformBooks {
            chance: plan.random_for(2),
            healthy: false,
            taken: Vec::new(),
            fired: BTreeMap::new(),
            last_msg_id: 900_000,
            executed,
        };
        Self { plan, mistake, books: Mutex::new(books) }
    }

    fn books(&self) -> MutexGuard<'_, PlatformBooks> {
        self.books.lock().unwrap()
    }

    /// From now on nothing goes wrong any more.
    pub(super) fn stop_faults(&self) {
        self.books().healthy = true;
    }

    pub(super) fn taken_messages(&self) -> Vec<TakenMessage> {
        self.books().taken.clone()
    }

    pub(super) fn fired_faults(&self) -> BTreeMap<WorldFault, u64> {
        self.books().fired.clone()
    }

    /// The operations of an envelope, read from its bytes.
    pub(super) fn read_operations(envelope: &Envelope) -> Vec<ArrivedOperation> {
        envelope.operations().iter().filter_map(|operation| serde_json::from_slice(&operation.json).ok()).collect()
    }

    /// Takes an envelope in.
    pub(super) fn receive_envelope(&self, arrived: &[ArrivedOperation]) -> TimedAnswer {
        let mut books = self.books();
        let fault = if books.healthy { None } else { books.choose_fault(&self.plan, arrived.len()) };
        let answers_after = Duration::from_millis(books.chance.below(self.plan.timeout.as_millis() as u64 / 2));
        let answer = |exchange| TimedAnswer { exchange, after: Some(answers_after) };
        if let Some(fault) = fault {
            *books.fired.entry(fault).or_default() += 1;
            if let Some(answer) = books.break_answer(&self.plan, fault, arrived, answers_after) {
                return answer;
            }
        }
        if arrived.iter().any(|operation| self.is_unsupported(operation.phone)) {
            return answer(wire::answer_body(r#"{"success":false,"error":"Operator not supported"}"#));
        }
        answer(match self.plan.endpoint {
            Endpoint::Sync => books.answer_items(&self.plan, fault, arrived, self.mistake),
            Endpoint::Async => books.answer_queued(&self.plan, fault, arrived),
        })
    }

    fn is_unsupported(&self, phone: u64) -> bool {
        self.plan.unsupported.is_some_and(|every| phone.is_multiple_of(every))
    }

    /// Answers questions about messages.
    pub(super) fn answer_statuses(&self, ids: &[u64]) -> TimedAnswer {
        let mut books = self.books();
        let after = Some(Duration::from_millis(books.chance.below(500)));
        if self.plan.oracle == StatusOracle::Mute || (!books.healthy && books.chance.once_in(5)) {
            let exchange = HttpExchange::Answer { status: 502, retry_after: None, body: Vec::new() };
            return TimedAnswer { exchange, after };
        }
        let now = elapsed();
        let known = |id: u64| {
            let taken = books.taken.iter().rev().find(|taken| taken.id == id && taken.known_at <= now)?;
            let refused = ChannelReport { channel: None, status: "REJECTED" };
            let report =
                if taken.refused { refused } else { taken.fallback.report_at(now.saturating_sub(taken.executed_at)) };
            Some((taken.msg_id, report))
        };
        let answers: Vec<_> = ids
            .iter()
            .map(|&id| match self.plan.oracle {
                StatusOracle::Sees | StatusOracle::Mute => (id, known(id)),
                StatusOracle::KnowsAll => (id, Some((1, ChannelReport { channel: None, status: "ACCEPTED" }))),
                StatusOracle::DeniesAll => (id, None),
            })
            .collect();
        TimedAnswer { exchange: wire::write_statuses(&answers), after }
    }
}

impl PlatformBooks {
    /// The fault of this request, if it has one that shows.
    fn choose_fault(&mut self, plan: &WorldPlan, operations: usize) -> Option<WorldFault> {
        if plan.faults.is_empty() || !self.chance.once_in(plan.fault_every) {
            return None;
        }
        let fault = self.chance.pick(&plan.faults);
        let of_items = wire::broken_answer(fault, Duration::ZERO, 0, 0).is_none();
        let code_call = plan.kind == OperationKind::CallOtp;
        let shows = match fault {
            WorldFault::SomeRejected => true,
            WorldFault::NoMsgId => !code_call,
            WorldFault::FalseWithMsgIds => !code_call && plan.endpoint == Endpoint::Sync,
            _ if of_items && plan.endpoint == Endpoint::Async => false,
            WorldFault::Reordered | WorldFault::Twice => operations > 1 && !code_call,
            WorldFault::Foreign | WorldFault::NoIds | WorldFault::TextIds => !code_call,
            _ => true,
        };
        shows.then_some(fault)
    }

    /// Executes what an envelope with this fault still gets executed, if the fault is one of the whole answer.
    fn break_answer(
        &mut self,
        plan: &WorldPlan,
        fault: WorldFault,
        arrived: &[ArrivedOperation],
        after: Duration,
    ) -> Option<TimedAnswer> {
        let pick = self.chance.next_bits();
        let trusted = match fault {
            WorldFault::Throttled | WorldFault::ThrottledLong => plan.trust_status.contains(&429),
            WorldFault::Unavailable => plan.trust_status.contains(&503),
            _ => false,
        };
        let exchange = wire::broken_answer(fault, plan.timeout, pick, self.last_msg_id + 1)?;
        let late =
            if matches!(fault, WorldFault::Late | WorldFault::Silence | WorldFault::TimedOut) { 15_000 } else { 1 };
        let proven = matches!(
            fault,
            WorldFault::NotConnected | WorldFault::Handshake | WorldFault::KeyRefused | WorldFault::EnvelopeRefused
        );
        // None of it, all of it, or some of it.
        let share = if proven || trusted { 0 } else { self.chance.below(3) };
        for operation in arrived {
            if share == 1 || fault == WorldFault::FalseWithMsgIds || (share == 2 && self.chance.once_in(2)) {
                let late = Duration::from_millis(self.chance.below(late));
                self.take_message(plan, *operation, (late, false));
            }
        }
        Some(match fault {
            WorldFault::Silence => TimedAnswer { exchange, after: None },
            WorldFault::TimedOut => TimedAnswer { exchange, after: Some(plan.timeout) },
            _ => TimedAnswer { exchange, after: Some(after) },
        })
    }

    fn take_message(
        &mut self,
        plan: &WorldPlan,
        operation: ArrivedOperation,
        (late, refused): (Duration, bool),
    ) -> u64 {
        self.last_msg_id += 1;
        let lag = Duration::from_millis(self.chance.below(plan.lag.as_millis() as u64));
        let fallback = FallbackWay::draw_way(plan, &mut self.chance);
        self.taken.push(TakenMessage {
            id: operation.id,
            phone: operation.phone,
            msg_id: self.last_msg_id,
            known_at: elapsed() + late + lag,
            refused,
            executed_at: elapsed() + late,
            fallback: fallback.clone(),
        });
        // Where nothing is told by itself nobody listens.
        let _ = self.executed.send(ExecutedMessage { id: operation.id, late, refused, fallback });
        self.last_msg_id
    }

    /// Executes an envelope and writes an answer with an item for each operation, as well as the fault lets it.
    fn answer_items(
        &mut self,
        plan: &WorldPlan,
        fault: Option<WorldFault>,
        arrived: &[ArrivedOperation],
        mistake: Option<Mistake>,
    ) -> HttpExchange {
        let poor = if fault == Some(WorldFault::NoMoney) {
            self.chance.below(arrived.len() as u64) as usize
        } else {
            usize::MAX
        };
        let mut items = Vec::new();
        for (index, operation) in arrived.iter().enumerate() {
            let done = if index == poor {
                Err("Not enough money")
            } else if fault == Some(WorldFault::SomeRejected) && self.chance.once_in(2) {
                Err(self.chance.pick(&["No route", "Error in Alpha-name"]))
            } else {
                Ok(self.take_message(plan, *operation, (Duration::ZERO, false)))
            };
            items.push(SimulatedItem { id: operation.id, done });
        }
        match fault {
            Some(WorldFault::TooFew) => drop(items.pop()),
            Some(WorldFault::TooMany) => items.push(SimulatedItem { id: 77, done: Ok(77) }),
            Some(WorldFault::Foreign) => items[0].id += 1_000_000,
            Some(WorldFault::Twice) => items[0].id = items[1].id,
            Some(WorldFault::Reordered) => items.rotate_left(1),
            _ => {}
        }
        let ids = match fault {
            _ if plan.kind == OperationKind::CallOtp || mistake == Some(Mistake::ByPositionOnly) => IdSpelling::None,
            Some(WorldFault::NoIds) => IdSpelling::None,
            Some(WorldFault::TextIds) => IdSpelling::Texts,
            _ => IdSpelling::Numbers,
        };
        wire::write_items(&items, ids, plan.kind == OperationKind::CallOtp, fault == Some(WorldFault::NoMsgId))
    }

    /// Queues an envelope; some of it may be refused after that.
    fn answer_queued(
        &mut self,
        plan: &WorldPlan,
        fault: Option<WorldFault>,
        arrived: &[ArrivedOperation],
    ) -> HttpExchange {
        for operation in arrived {
            let refused = fault == Some(WorldFault::SomeRejected) && self.chance.once_in(2);
            self.take_message(plan, *operation, (Duration::ZERO, refused));
        }
        match fault {
            Some(WorldFault::NoMsgId) => wire::answer_body(r#"{"success":true}"#),
            _ => wire::answer_body(&format!(r#"{{"success":true,"request_id":"r-{}"}}"#, self.last_msg_id)),
        }
    }
}
