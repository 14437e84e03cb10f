//! The platform: what it really did, and the answers that came of it or did not.
//!
//! It takes the same identifier twice without a word, as the contract allows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc::UnboundedSender;

use super::chance::Chance;
use super::fallback::{Fallback, Report};
use super::life::elapsed;
use super::mistake::Mistake;
use super::plan::{Fault, Oracle, Plan};
use super::wire::{self, Ids, Item};
use crate::domain::{Endpoint, OperationKind};
use crate::gateway::{Envelope, Exchange};

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
    fallback: Fallback,
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
pub(super) struct Executed {
    pub(super) id: u64,
    /// How long it takes until it is executed.
    pub(super) late: Duration,
    pub(super) refused: bool,
    pub(super) fallback: Fallback,
}

pub(super) struct Platform {
    plan: Arc<Plan>,
    mistake: Option<Mistake>,
    books: Mutex<Books>,
}

struct Books {
    chance: Chance,
    healthy: bool,
    taken: Vec<TakenMessage>,
    fired: BTreeMap<Fault, u64>,
    last_msg_id: u64,
    executed: UnboundedSender<Executed>,
}

/// An answer and when it comes; one that never comes has no time.
pub(super) struct Answer {
    pub(super) exchange: Exchange,
    pub(super) after: Option<Duration>,
}

impl Platform {
    pub(super) fn new(plan: Arc<Plan>, mistake: Option<Mistake>, executed: UnboundedSender<Executed>) -> Self {
        let books = Books {
            chance: plan.chance(2),
            healthy: false,
            taken: Vec::new(),
            fired: BTreeMap::new(),
            last_msg_id: 900_000,
            executed,
        };
        Self { plan, mistake, books: Mutex::new(books) }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// From now on nothing goes wrong any more.
    pub(super) fn heal(&self) {
        self.books().healthy = true;
    }

    pub(super) fn taken(&self) -> Vec<TakenMessage> {
        self.books().taken.clone()
    }

    pub(super) fn fired(&self) -> BTreeMap<Fault, u64> {
        self.books().fired.clone()
    }

    /// The operations of an envelope, read from its bytes.
    pub(super) fn read(envelope: &Envelope) -> Vec<ArrivedOperation> {
        envelope.operations().iter().filter_map(|operation| serde_json::from_slice(&operation.json).ok()).collect()
    }

    /// Takes an envelope in.
    pub(super) fn receive(&self, arrived: &[ArrivedOperation]) -> Answer {
        let mut books = self.books();
        let fault = if books.healthy { None } else { books.fault(&self.plan, arrived.len()) };
        let answers_after = Duration::from_millis(books.chance.below(self.plan.timeout.as_millis() as u64 / 2));
        let answer = |exchange| Answer { exchange, after: Some(answers_after) };
        if let Some(fault) = fault {
            *books.fired.entry(fault).or_default() += 1;
            if let Some(answer) = books.break_answer(&self.plan, fault, arrived, answers_after) {
                return answer;
            }
        }
        if arrived.iter().any(|operation| self.is_unsupported(operation.phone)) {
            return answer(wire::body(r#"{"success":false,"error":"Operator not supported"}"#));
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
    pub(super) fn statuses(&self, ids: &[u64]) -> Answer {
        let mut books = self.books();
        let after = Some(Duration::from_millis(books.chance.below(500)));
        if self.plan.oracle == Oracle::Mute || (!books.healthy && books.chance.once_in(5)) {
            let exchange = Exchange::Answer { status: 502, retry_after: None, body: Vec::new() };
            return Answer { exchange, after };
        }
        let now = elapsed();
        let known = |id: u64| {
            let taken = books.taken.iter().rev().find(|taken| taken.id == id && taken.known_at <= now)?;
            let refused = Report { channel: None, status: "REJECTED" };
            let report = if taken.refused { refused } else { taken.fallback.at(now.saturating_sub(taken.executed_at)) };
            Some((taken.msg_id, report))
        };
        let answers: Vec<_> = ids
            .iter()
            .map(|&id| match self.plan.oracle {
                Oracle::Sees | Oracle::Mute => (id, known(id)),
                Oracle::KnowsAll => (id, Some((1, Report { channel: None, status: "ACCEPTED" }))),
                Oracle::DeniesAll => (id, None),
            })
            .collect();
        Answer { exchange: wire::statuses(&answers), after }
    }
}

impl Books {
    /// The fault of this request, if it has one that shows.
    fn fault(&mut self, plan: &Plan, operations: usize) -> Option<Fault> {
        if plan.faults.is_empty() || !self.chance.once_in(plan.fault_every) {
            return None;
        }
        let fault = self.chance.of(&plan.faults);
        let of_items = wire::broken(fault, Duration::ZERO, 0, 0).is_none();
        let code_call = plan.kind == OperationKind::CallOtp;
        let shows = match fault {
            Fault::SomeRejected => true,
            Fault::NoMsgId => !code_call,
            Fault::FalseWithMsgIds => !code_call && plan.endpoint == Endpoint::Sync,
            _ if of_items && plan.endpoint == Endpoint::Async => false,
            Fault::Reordered | Fault::Twice => operations > 1 && !code_call,
            Fault::Foreign | Fault::NoIds | Fault::TextIds => !code_call,
            _ => true,
        };
        shows.then_some(fault)
    }

    /// Executes what an envelope with this fault still gets executed, if the fault is one of the whole answer.
    fn break_answer(
        &mut self,
        plan: &Plan,
        fault: Fault,
        arrived: &[ArrivedOperation],
        after: Duration,
    ) -> Option<Answer> {
        let pick = self.chance.bits();
        let trusted = match fault {
            Fault::Throttled | Fault::ThrottledLong => plan.trust_status.contains(&429),
            Fault::Unavailable => plan.trust_status.contains(&503),
            _ => false,
        };
        let exchange = wire::broken(fault, plan.timeout, pick, self.last_msg_id + 1)?;
        let late = if matches!(fault, Fault::Late | Fault::Silence | Fault::TimedOut) { 15_000 } else { 1 };
        let proven =
            matches!(fault, Fault::NotConnected | Fault::Handshake | Fault::KeyRefused | Fault::EnvelopeRefused);
        // None of it, all of it, or some of it.
        let share = if proven || trusted { 0 } else { self.chance.below(3) };
        for operation in arrived {
            if share == 1 || fault == Fault::FalseWithMsgIds || (share == 2 && self.chance.once_in(2)) {
                let late = Duration::from_millis(self.chance.below(late));
                self.take(plan, *operation, (late, false));
            }
        }
        Some(match fault {
            Fault::Silence => Answer { exchange, after: None },
            Fault::TimedOut => Answer { exchange, after: Some(plan.timeout) },
            _ => Answer { exchange, after: Some(after) },
        })
    }

    fn take(&mut self, plan: &Plan, operation: ArrivedOperation, (late, refused): (Duration, bool)) -> u64 {
        self.last_msg_id += 1;
        let lag = Duration::from_millis(self.chance.below(plan.lag.as_millis() as u64));
        let fallback = Fallback::draw(plan, &mut self.chance);
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
        let _ = self.executed.send(Executed { id: operation.id, late, refused, fallback });
        self.last_msg_id
    }

    /// Executes an envelope and writes an answer with an item for each operation, as well as the fault lets it.
    fn answer_items(
        &mut self,
        plan: &Plan,
        fault: Option<Fault>,
        arrived: &[ArrivedOperation],
        mistake: Option<Mistake>,
    ) -> Exchange {
        let poor =
            if fault == Some(Fault::NoMoney) { self.chance.below(arrived.len() as u64) as usize } else { usize::MAX };
        let mut items = Vec::new();
        for (index, operation) in arrived.iter().enumerate() {
            let done = if index == poor {
                Err("Not enough money")
            } else if fault == Some(Fault::SomeRejected) && self.chance.once_in(2) {
                Err(self.chance.of(&["No route", "Error in Alpha-name"]))
            } else {
                Ok(self.take(plan, *operation, (Duration::ZERO, false)))
            };
            items.push(Item { id: operation.id, done });
        }
        match fault {
            Some(Fault::TooFew) => drop(items.pop()),
            Some(Fault::TooMany) => items.push(Item { id: 77, done: Ok(77) }),
            Some(Fault::Foreign) => items[0].id += 1_000_000,
            Some(Fault::Twice) => items[0].id = items[1].id,
            Some(Fault::Reordered) => items.rotate_left(1),
            _ => {}
        }
        let ids = match fault {
            _ if plan.kind == OperationKind::CallOtp || mistake == Some(Mistake::ByPositionOnly) => Ids::None,
            Some(Fault::NoIds) => Ids::None,
            Some(Fault::TextIds) => Ids::Texts,
            _ => Ids::Numbers,
        };
        wire::items(&items, ids, plan.kind == OperationKind::CallOtp, fault == Some(Fault::NoMsgId))
    }

    /// Queues an envelope; some of it may be refused after that.
    fn answer_queued(&mut self, plan: &Plan, fault: Option<Fault>, arrived: &[ArrivedOperation]) -> Exchange {
        for operation in arrived {
            let refused = fault == Some(Fault::SomeRejected) && self.chance.once_in(2);
            self.take(plan, *operation, (Duration::ZERO, refused));
        }
        match fault {
            Some(Fault::NoMsgId) => wire::body(r#"{"success":true}"#),
            _ => wire::body(&format!(r#"{{"success":true,"request_id":"r-{}"}}"#, self.last_msg_id)),
        }
    }
}
