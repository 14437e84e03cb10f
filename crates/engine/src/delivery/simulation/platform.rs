//! The simulated platform: its real actions, its answers, and its faults.
//!
//! The platform accepts the same identifier twice without an error, as the contract allows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

use super::judge::PromiseJudge;
use super::mistakes::Mistake;
use super::plan::{PLATFORM, SimulationRandom, StatusOracle, WorldFault, WorldPlan};
use super::process::{ProcessLife, SimulatedDisk, elapsed};
use campaign_core::domain::{Channel, Endpoint, MessageId, OperationKind, Status};
use campaign_gateway::{
    AnswerRules, BoxFuture, Envelope, Gateway, GatewayReply, HttpExchange, MayLeave, RedactingReader, StatusAnswer,
    read_reply, read_status_answers,
};

/// A message that the platform accepted.
#[derive(Clone, Debug)]
pub(super) struct AcceptedMessage {
    pub(super) id: u64,
    pub(super) phone: u64,
    pub(super) msg_id: u64,
    /// The time from which the platform can report the message.
    known_at: Duration,
    /// Whether the message was rejected after being queued, so that it did not reach the recipient.
    pub(super) rejected: bool,
    /// The time when the platform executes the operation.
    executed_at: Duration,
    /// The path of the message through its channels.
    fallback: FallbackPath,
}

impl AcceptedMessage {
    /// Whether the message has reached, or will reach, its recipient.
    pub(super) fn reaches_recipient(&self) -> bool {
        !self.rejected && self.fallback.reaches
    }
}

/// An operation from the received bytes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct ArrivedOperation {
    pub(super) id: u64,
    pub(super) phone: u64,
}

/// A message whose operation the platform executes, and which the platform might report by webhook.
#[derive(Clone, Debug)]
pub(super) struct ExecutedMessage {
    pub(super) id: u64,
    /// The delay before the operation is executed.
    pub(super) delay: Duration,
    pub(super) rejected: bool,
    pub(super) fallback: FallbackPath,
}

pub(super) struct SimulatedPlatform {
    plan: Arc<WorldPlan>,
    mistake: Option<Mistake>,
    state: Mutex<PlatformState>,
}

struct PlatformState {
    chance: SimulationRandom,
    is_healthy: bool,
    accepted: Vec<AcceptedMessage>,
    fired: BTreeMap<WorldFault, u64>,
    last_msg_id: u64,
    executed: UnboundedSender<ExecutedMessage>,
}

/// An answer with its delay. An answer without a delay never comes.
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
        let state = PlatformState {
            chance: plan.random_for(PLATFORM),
            is_healthy: false,
            accepted: Vec::new(),
            fired: BTreeMap::new(),
            last_msg_id: 900_000,
            executed,
        };
        Self { plan, mistake, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, PlatformState> {
        self.state.lock().unwrap()
    }

    /// Stops all faults.
    pub(super) fn stop_faults(&self) {
        self.state().is_healthy = true;
    }

    pub(super) fn accepted_messages(&self) -> Vec<AcceptedMessage> {
        self.state().accepted.clone()
    }

    pub(super) fn fired_faults(&self) -> BTreeMap<WorldFault, u64> {
        self.state().fired.clone()
    }

    /// Parses the operations of an envelope from the bytes that would be sent.
    pub(super) fn read_operations(envelope: &Envelope) -> Vec<ArrivedOperation> {
        envelope.operations().iter().filter_map(|operation| serde_json::from_slice(&operation.json).ok()).collect()
    }

    /// Executes a received envelope, possibly with a fault, and returns the answer.
    pub(super) fn receive_envelope(&self, arrived: &[ArrivedOperation]) -> TimedAnswer {
        let mut state = self.state();
        let fault = if state.is_healthy { None } else { state.choose_fault(&self.plan, arrived.len()) };
        let answers_after = Duration::from_millis(state.chance.below(self.plan.timeout.as_millis() as u64 / 2));
        let answer = |exchange| TimedAnswer { exchange, after: Some(answers_after) };
        if let Some(fault) = fault {
            *state.fired.entry(fault).or_default() += 1;
            if let Some(answer) = state.break_answer(&self.plan, fault, arrived, answers_after) {
                return answer;
            }
        }
        if arrived.iter().any(|operation| self.is_unsupported(operation.phone)) {
            return answer(answer_with_body(r#"{"success":false,"error":"Operator not supported"}"#));
        }
        answer(match self.plan.endpoint {
            Endpoint::Sync => state.execute_envelope(&self.plan, fault, arrived, self.mistake),
            Endpoint::Async => state.queue_envelope(&self.plan, fault, arrived),
        })
    }

    fn is_unsupported(&self, phone: u64) -> bool {
        self.plan.unsupported.is_some_and(|every| phone.is_multiple_of(every))
    }

    /// Answers inquiries about messages.
    pub(super) fn answer_statuses(&self, ids: &[u64]) -> TimedAnswer {
        let mut state = self.state();
        let after = Some(Duration::from_millis(state.chance.below(500)));
        if self.plan.oracle == StatusOracle::Mute || (!state.is_healthy && state.chance.once_in(5)) {
            let exchange = HttpExchange::Answer { status: 502, retry_after: None, body: Vec::new() };
            return TimedAnswer { exchange, after };
        }
        let now = elapsed();
        let find_report = |id: u64| {
            let accepted =
                state.accepted.iter().rev().find(|accepted| accepted.id == id && accepted.known_at <= now)?;
            let rejected = ChannelReport { channel: None, status: "REJECTED" };
            let since = now.saturating_sub(accepted.executed_at);
            let report = if accepted.rejected { rejected } else { accepted.fallback.report_at(since) };
            Some((accepted.msg_id, report))
        };
        let answers: Vec<_> = ids
            .iter()
            .map(|&id| match self.plan.oracle {
                StatusOracle::Sees | StatusOracle::Mute => (id, find_report(id)),
                StatusOracle::KnowsAll => (id, Some((1, ChannelReport { channel: None, status: "ACCEPTED" }))),
                StatusOracle::DeniesAll => (id, None),
            })
            .collect();
        TimedAnswer { exchange: build_statuses_answer(&answers), after }
    }
}

impl PlatformState {
    /// Chooses a fault for this request. `None` if there is no fault, or if the fault would not affect the answer.
    fn choose_fault(&mut self, plan: &WorldPlan, operations: usize) -> Option<WorldFault> {
        if plan.faults.is_empty() || !self.chance.once_in(plan.fault_every) {
            return None;
        }
        let fault = self.chance.pick(&plan.faults);
        let affects_items = build_broken_answer(fault, Duration::ZERO, 0, 0).is_none();
        let is_code_call = plan.kind == OperationKind::CallOtp;
        let has_effect = match fault {
            WorldFault::SomeRejected => true,
            WorldFault::NoMsgId => !is_code_call,
            WorldFault::FalseWithMsgIds => !is_code_call && plan.endpoint == Endpoint::Sync,
            _ if affects_items && plan.endpoint == Endpoint::Async => false,
            WorldFault::Reordered | WorldFault::Twice => operations > 1 && !is_code_call,
            WorldFault::Foreign | WorldFault::NoIds | WorldFault::TextIds => !is_code_call,
            _ => true,
        };
        has_effect.then_some(fault)
    }

    /// Executes none, all or some of the operations and returns the broken answer, if the fault affects the whole
    /// answer.
    fn break_answer(
        &mut self,
        plan: &WorldPlan,
        fault: WorldFault,
        arrived: &[ArrivedOperation],
        after: Duration,
    ) -> Option<TimedAnswer> {
        let random_bits = self.chance.next_bits();
        let is_trusted = match fault {
            WorldFault::Throttled | WorldFault::ThrottledLong => plan.trust_status.contains(&429),
            WorldFault::Unavailable => plan.trust_status.contains(&503),
            _ => false,
        };
        let exchange = build_broken_answer(fault, plan.timeout, random_bits, self.last_msg_id + 1)?;
        let max_delay_millis =
            if matches!(fault, WorldFault::Late | WorldFault::Silence | WorldFault::TimedOut) { 15_000 } else { 1 };
        let is_proven_unsent = matches!(
            fault,
            WorldFault::NotConnected | WorldFault::Handshake | WorldFault::KeyRefused | WorldFault::EnvelopeRefused
        );
        // The platform executes none, all or some of the operations.
        let share = if is_proven_unsent || is_trusted { 0 } else { self.chance.below(3) };
        for operation in arrived {
            if share == 1 || fault == WorldFault::FalseWithMsgIds || (share == 2 && self.chance.once_in(2)) {
                let delay = Duration::from_millis(self.chance.below(max_delay_millis));
                self.accept_message(plan, *operation, delay, false);
            }
        }
        Some(match fault {
            WorldFault::Silence => TimedAnswer { exchange, after: None },
            WorldFault::TimedOut => TimedAnswer { exchange, after: Some(plan.timeout) },
            _ => TimedAnswer { exchange, after: Some(after) },
        })
    }

    fn accept_message(
        &mut self,
        plan: &WorldPlan,
        operation: ArrivedOperation,
        delay: Duration,
        is_rejected: bool,
    ) -> u64 {
        self.last_msg_id += 1;
        let lag = Duration::from_millis(self.chance.below(plan.lag.as_millis() as u64));
        let fallback = FallbackPath::from_random(plan, &mut self.chance);
        self.accepted.push(AcceptedMessage {
            id: operation.id,
            phone: operation.phone,
            msg_id: self.last_msg_id,
            known_at: elapsed() + delay + lag,
            rejected: is_rejected,
            executed_at: elapsed() + delay,
            fallback: fallback.clone(),
        });
        // Without webhooks, there is no receiver, so the error does not matter.
        let _ = self.executed.send(ExecutedMessage { id: operation.id, delay, rejected: is_rejected, fallback });
        self.last_msg_id
    }

    /// Executes an envelope, and builds an answer with an item for each operation, as far as the fault allows.
    fn execute_envelope(
        &mut self,
        plan: &WorldPlan,
        fault: Option<WorldFault>,
        arrived: &[ArrivedOperation],
        mistake: Option<Mistake>,
    ) -> HttpExchange {
        let unpaid = if fault == Some(WorldFault::NoMoney) {
            self.chance.below(arrived.len() as u64) as usize
        } else {
            usize::MAX
        };
        let mut items = Vec::new();
        for (index, operation) in arrived.iter().enumerate() {
            let result = if index == unpaid {
                Err("Not enough money")
            } else if fault == Some(WorldFault::SomeRejected) && self.chance.once_in(2) {
                Err(self.chance.pick(&["No route", "Error in Alpha-name"]))
            } else {
                Ok(self.accept_message(plan, *operation, Duration::ZERO, false))
            };
            items.push(SimulatedItem { id: operation.id, result });
        }
        match fault {
            Some(WorldFault::TooFew) => drop(items.pop()),
            Some(WorldFault::TooMany) => items.push(SimulatedItem { id: 77, result: Ok(77) }),
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
        build_items_answer(&items, ids, plan.kind == OperationKind::CallOtp, fault == Some(WorldFault::NoMsgId))
    }

    /// Queues an envelope. Some of the operations might be rejected later.
    fn queue_envelope(
        &mut self,
        plan: &WorldPlan,
        fault: Option<WorldFault>,
        arrived: &[ArrivedOperation],
    ) -> HttpExchange {
        for operation in arrived {
            let is_rejected = fault == Some(WorldFault::SomeRejected) && self.chance.once_in(2);
            self.accept_message(plan, *operation, Duration::ZERO, is_rejected);
        }
        match fault {
            Some(WorldFault::NoMsgId) => answer_with_body(r#"{"success":true}"#),
            _ => answer_with_body(&format!(r#"{{"success":true,"request_id":"r-{}"}}"#, self.last_msg_id)),
        }
    }
}

/// A status report of the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelReport {
    /// The channel that the report names.
    pub(super) channel: Option<Channel>,
    pub(super) status: &'static str,
}

/// The path of one message through its channels.
#[derive(Clone, Debug)]
pub(super) struct FallbackPath {
    /// The reports, with their time after execution.
    steps: Vec<(Duration, ChannelReport)>,
    /// Whether a channel delivers the message in the end.
    pub(super) reaches: bool,
}

/// The longest time between two reports about a message, in milliseconds.
const MAX_STEP: u64 = 30_000;

impl FallbackPath {
    /// A message that arrives at once.
    pub(super) const NONE: Self = Self { steps: Vec::new(), reaches: true };

    /// A random path of a message through its channels. One in six messages is not delivered on any channel. A message
    /// with a single channel arrives at once.
    pub(super) fn from_random(plan: &WorldPlan, chance: &mut SimulationRandom) -> Self {
        let channels = plan.kind.channels();
        // For a queued message, REJECTED means a rejection at intake (contract 6.5), which concerns no channel.
        let failures: &[&'static str] = match plan.endpoint {
            Endpoint::Sync => &["EXPIRED", "UNDELIVERABLE", "REJECTED"],
            Endpoint::Async => &["EXPIRED", "UNDELIVERABLE"],
        };
        if channels.len() < 2 {
            return Self::NONE;
        }
        let last = channels.len() as u64 - 1;
        let delivers = (!chance.once_in(6)).then(|| chance.below(last + 1));
        let (mut steps, mut now) = (Vec::new(), Duration::ZERO);
        for (position, channel) in (0..=delivers.unwrap_or(last)).zip(channels) {
            let report = |status| ChannelReport { channel: Some(*channel), status };
            steps.push((now, report("ACCEPTED")));
            now += Duration::from_millis(1 + chance.below(MAX_STEP));
            if delivers == Some(position) {
                steps.push((now, report("DELIVERED")));
                if chance.once_in(2) {
                    now += Duration::from_millis(1 + chance.below(MAX_STEP));
                    steps.push((now, report("READ")));
                }
            } else {
                steps.push((now, report(chance.pick(failures))));
            }
        }
        Self { steps, reaches: delivers.is_some() }
    }

    /// The report at the time `since` after execution, about the channel that the message reached last.
    pub(super) fn report_at(&self, since: Duration) -> ChannelReport {
        let past_steps = self.steps.iter().take_while(|(after, _)| *after <= since);
        let nothing_yet =
            ChannelReport { channel: None, status: if self.steps.is_empty() { "DELIVERED" } else { "QUEUED" } };
        past_steps.last().map_or(nothing_yet, |(_, report)| *report)
    }

    /// The reports in order, each with the time after execution.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Duration, ChannelReport)> {
        self.steps.iter().copied()
    }

    /// Whether a report is about a channel before the last one, so that a failure makes the message continue on the
    /// next channel.
    pub(super) fn continues_after(&self, report: ChannelReport) -> bool {
        let last = self.steps.last().and_then(|(_, last)| last.channel);
        report.channel != last
    }
}

/// The result of an operation.
#[derive(Clone, Debug)]
pub(super) struct SimulatedItem {
    pub(super) id: u64,
    /// The platform's identifier of the message, or the error of the rejection.
    pub(super) result: Result<u64, &'static str>,
}

/// The spelling of the identifiers of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdSpelling {
    Numbers,
    Texts,
    /// The identifiers are missing. By the contract, verification calls have none.
    None,
}

/// Builds a synchronous answer with `items`.
pub(super) fn build_items_answer(
    items: &[SimulatedItem],
    ids: IdSpelling,
    is_code_call: bool,
    omits_msg_id: bool,
) -> HttpExchange {
    let written: Vec<String> = items
        .iter()
        .map(|item| {
            let id = match ids {
                IdSpelling::Numbers => format!(r#""id":{},"#, item.id),
                IdSpelling::Texts => format!(r#""id":"{}","#, item.id),
                IdSpelling::None => String::new(),
            };
            match item.result {
                Err(error) => format!(r#"{{"success":false,"error":"{error}","data":{{{id}"x":0}}}}"#),
                Ok(_) if is_code_call => r#"{"success":true,"data":{"code":"0123","price":1.5}}"#.to_owned(),
                Ok(_) if omits_msg_id => format!(r#"{{"success":true,"data":{{{id}"data":1,"parts":1}}}}"#),
                Ok(msg_id) => {
                    format!(r#"{{"success":true,"data":{{{id}"msg_id":{msg_id},"data":1,"parts":1}}}}"#)
                }
            }
        })
        .collect();
    answer_with_body(&format!(r#"{{"success":true,"data":[{}]}}"#, written.join(",")))
}

/// Builds the answer for a fault that affects the whole answer, with details that depend on `random_bits`. `None` for a
/// fault that affects only single items.
pub(super) fn build_broken_answer(
    fault: WorldFault,
    timeout: Duration,
    random_bits: u64,
    msg_id: u64,
) -> Option<HttpExchange> {
    let status = |status, retry_after, body: &str| {
        Some(HttpExchange::Answer { status, retry_after, body: body.as_bytes().to_vec() })
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    match fault {
        WorldFault::NotConnected => Some(HttpExchange::NotConnected("connection refused".into())),
        WorldFault::Handshake => Some(HttpExchange::Handshake("the TLS handshake failed".into())),
        WorldFault::KeyRefused => Some(answer_with_body(r#"{"success":false,"error":"Access denied"}"#)),
        WorldFault::EnvelopeRefused => Some(answer_with_body(r#"{"success":false,"error":"Invalid message type"}"#)),
        WorldFault::Lost | WorldFault::Late => Some(HttpExchange::Broken("connection reset".into())),
        WorldFault::TimedOut | WorldFault::Silence => Some(HttpExchange::TimedOut(timeout)),
        WorldFault::Redirect => status(if random_bits.is_multiple_of(2) { 302 } else { 307 }, None, ""),
        WorldFault::Throttled => {
            status(429, if random_bits.is_multiple_of(2) { None } else { seconds(random_bits % 9) }, "slow down")
        }
        WorldFault::ThrottledLong => status(429, seconds(601 + random_bits % 5_000), ""),
        WorldFault::Unavailable => status(503, None, "<html>busy</html>"),
        WorldFault::ServerError => {
            status(if random_bits.is_multiple_of(2) { 500 } else { 404 }, None, "<html>oops</html>")
        }
        WorldFault::TooLong => Some(HttpExchange::TooLong { status: 200 }),
        WorldFault::Empty => Some(answer_with_body("")),
        WorldFault::Truncated => Some(answer_with_body(r#"{"success":true,"data":[{"succ"#)),
        WorldFault::UnclearSuccess => {
            let success = ["1", r#""true""#, "null"][random_bits as usize % 3];
            Some(answer_with_body(&format!(r#"{{"success":{success},"data":[]}}"#)))
        }
        WorldFault::FalseWithMsgIds => {
            let data = format!(r#"[{{"success":true,"data":{{"msg_id":{msg_id}}}}}]"#);
            Some(answer_with_body(&format!(r#"{{"success":false,"error":"No route","data":{data}}}"#)))
        }
        WorldFault::FalseWithoutError => Some(answer_with_body(r#"{"success":false}"#)),
        WorldFault::TrueWithoutData => Some(answer_with_body(r#"{"success":true}"#)),
        WorldFault::TooFew
        | WorldFault::TooMany
        | WorldFault::Foreign
        | WorldFault::Twice
        | WorldFault::NoMsgId
        | WorldFault::Reordered
        | WorldFault::NoIds
        | WorldFault::TextIds
        | WorldFault::SomeRejected
        | WorldFault::NoMoney => None,
    }
}

/// Builds the answer to a status inquiry about messages.
pub(super) fn build_statuses_answer(answers: &[(u64, Option<(u64, ChannelReport)>)]) -> HttpExchange {
    let written: Vec<String> = answers
        .iter()
        .map(|(id, known)| match known {
            Some((msg_id, ChannelReport { channel, status })) => {
                let channel = channel.map(|channel| format!(r#""type":"{channel}","#)).unwrap_or_default();
                format!(r#"{{"success":true,"data":{{"id":"{id}","msg_id":"{msg_id}",{channel}"status":"{status}"}}}}"#)
            }
            None => r#"{"success":false,"error":"no such message"}"#.to_owned(),
        })
        .collect();
    answer_with_body(&format!(r#"{{"success":true,"data":[{}]}}"#, written.join(",")))
}

pub(super) fn answer_with_body(text: &str) -> HttpExchange {
    HttpExchange::Answer { status: 200, retry_after: None, body: text.as_bytes().to_vec() }
}

pub(super) struct SimulatedGateway {
    pub(super) plan: Arc<WorldPlan>,
    pub(super) process: usize,
    pub(super) life: Arc<ProcessLife>,
    pub(super) platform: Arc<SimulatedPlatform>,
    pub(super) disk: Arc<Mutex<SimulatedDisk>>,
    pub(super) judge: Arc<PromiseJudge>,
    pub(super) mistake: Option<Mistake>,
}

impl SimulatedGateway {
    /// Waits for an answer that might never arrive.
    async fn wait_for_answer(&self, answer: TimedAnswer) -> HttpExchange {
        match answer.after {
            Some(time) => sleep(time).await,
            None => std::future::pending().await,
        }
        self.life.take_step().await;
        answer.exchange
    }

    /// The exchange as a client with the simulated mistake would read it.
    fn apply_mistake(&self, exchange: HttpExchange) -> HttpExchange {
        let unsent = HttpExchange::NotConnected("no connection".into());
        match (self.mistake, &exchange) {
            (Some(Mistake::SilenceIsNotSent), HttpExchange::TimedOut(_) | HttpExchange::Broken(_)) => unsent,
            (Some(Mistake::StatusIsNotSent), HttpExchange::Answer { status, .. }) if *status != 200 => unsent,
            _ => exchange,
        }
    }
}

impl Gateway for SimulatedGateway {
    fn submit<'a>(&'a self, envelope: &'a Envelope, may_leave: MayLeave) -> BoxFuture<'a, Option<GatewayReply>> {
        Box::pin(async move {
            self.life.take_step().await;
            if !may_leave() {
                return None;
            }
            // From here on, the bytes are on their way, even if the process dies.
            let arrived = SimulatedPlatform::read_operations(envelope);
            self.judge.check_arrival((self.process, &self.life), &self.disk.lock().unwrap(), envelope, &arrived);
            let exchange = self.wait_for_answer(self.platform.receive_envelope(&arrived)).await;
            let rules = AnswerRules {
                trust_status: self.plan.trust_status.clone(),
                fatal_errors: vec!["Not enough money".to_owned()],
            };
            let reply = read_reply(&rules, self.plan.endpoint, envelope, &self.apply_mistake(exchange));
            self.judge.note_answer(self.process, &reply);
            Some(reply)
        })
    }

    fn ask_statuses<'a>(&'a self, ids: &'a [MessageId]) -> BoxFuture<'a, Vec<StatusAnswer>> {
        Box::pin(async move {
            self.life.take_step().await;
            let numbers: Vec<u64> = ids.iter().map(|id| id.get()).collect();
            let exchange = self.wait_for_answer(self.platform.answer_statuses(&numbers)).await;
            let mut answers = read_status_answers(ids, &exchange, &RedactingReader::new(""));
            let is_blind = matches!(self.plan.oracle, StatusOracle::KnowsAll | StatusOracle::DeniesAll);
            if self.mistake == Some(Mistake::BlindStatusTrusted) && is_blind {
                distinguish_answers(&mut answers);
            }
            answers
        })
    }
}

/// Changes two equal answers of a gateway that says the same about every message, so that the gateway seems to know its
/// messages: one message is denied, and another is delivered.
fn distinguish_answers(answers: &mut [StatusAnswer]) {
    if let [first, second, ..] = answers {
        *first = StatusAnswer::Denied(String::new());
        *second = StatusAnswer::Known { status: Status::Delivered, msg_id: None, channel: None, updated: None };
    }
}
