//! The emulated platform: a state machine that executes operations. It has no I/O and no clock.
//!
//! - `operations`: what each operation does; `answer`: the format of results and errors;
//! - `account`: balance, sender names, rate limit and templates;
//! - `messages`: accepted messages and their channels;
//! - `lifecycle`: the states of a message, virtual time, and when each state is due.

pub(crate) mod account;
pub(crate) mod answer;
mod lifecycle;
pub(crate) mod messages;
mod operations;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::faults;
use super::faults::{ErrorPage, ResponsePlan, WireFaults};
use super::webhooks::Outbox;
use crate::journal::{ChargeReason, EnvelopeLine, JournalLine, JournalLines};
use crate::request::{EnvelopeRejection, OperationType, ParsedEnvelope, RequestItem, RequestedOperation};
use crate::scenario::Scenario;
use account::OperationLimiter;
use campaign_core::domain::{Amount, Channel, Endpoint};

pub(crate) use account::SandboxAccount;
pub(crate) use answer::{
    ApiResponse, BalanceRecord, CodeCall, OperationError, ReplyRecord, ResultData, ResultItem, SendResult, StatusRecord,
};
pub(crate) use lifecycle::{Agenda, DeliveryFailure, LifecycleState, MessageLifecycle, Phase, VirtualTime, WireTime};
pub(crate) use messages::{ChannelStage, MessageStore, SandboxMessage, StagePlans, msg_id_of};

/// The time and origin of an envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeArrival {
    pub(crate) endpoint: Endpoint,
    pub(crate) remote: SocketAddr,
    /// In virtual time. A time before the platform's current time counts as the current time.
    pub(crate) at: Timestamp,
}

/// The state of the emulated gateway.
pub(crate) struct GatewayEmulator {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) accounts: Vec<SandboxAccount>,
    /// The rate limiters of the accounts; empty without a limit.
    limits: Vec<OperationLimiter>,
    pub(crate) plans: StagePlans,
    pub(crate) messages: MessageStore,
    pub(crate) agenda: Agenda,
    pub(crate) outbox: Outbox,
    pub(crate) counts: Counts,
    /// The current virtual time.
    pub(crate) now: VirtualTime,
    /// The number of received envelopes.
    envelopes: u64,
    /// The number of envelopes with messages.
    sends: u32,
    /// The number of asynchronous requests.
    requests: u32,
}

/// The account and the envelope of an operation.
#[derive(Clone, Copy)]
pub(crate) struct OperationOrigin {
    /// The index of the account.
    pub(crate) account: u32,
    pub(crate) at: VirtualTime,
    /// The number of the asynchronous request; `None` on the synchronous endpoint.
    pub(crate) request: Option<u32>,
    /// The envelope's number among the envelopes with messages.
    pub(crate) envelope: u32,
}

impl OperationOrigin {
    /// The endpoint of the envelope.
    pub(crate) fn endpoint(self) -> Endpoint {
        if self.request.is_some() { Endpoint::Async } else { Endpoint::Sync }
    }
}

/// The outcome of an operation.
pub(crate) struct ItemOutcome {
    pub(crate) result: Result<ResultData, OperationError>,
    /// The index of the first message of the operation; there is one for each recipient.
    pub(crate) first: Option<u32>,
    /// The number of parts of each message.
    pub(crate) parts: Option<u32>,
    pub(crate) charge: Option<Charge>,
}

/// The immediate charge of an operation.
#[derive(Clone, Copy)]
pub(crate) struct Charge {
    pub(crate) reason: ChargeReason,
    /// The amount for each recipient.
    pub(crate) amount: Amount,
    /// The account's balance before the charge.
    pub(crate) balance_before: Amount,
}

impl From<Result<ResultData, OperationError>> for ItemOutcome {
    fn from(result: Result<ResultData, OperationError>) -> Self {
        Self { result, first: None, parts: None, charge: None }
    }
}

impl GatewayEmulator {
    /// A new gateway for a scenario.
    pub(crate) fn new(scenario: Arc<Scenario>) -> Self {
        let accounts: Vec<_> = scenario.accounts.iter().cloned().map(SandboxAccount::new).collect();
        let mut funds = Funds::default();
        for account in &accounts {
            funds.balance = funds.balance.saturating_add(account.balance());
        }
        funds.currency = scenario.accounts.first().map(|account| account.currency.clone()).unwrap_or_default();
        let limits = scenario
            .limit
            .map_or_else(Vec::new, |limit| accounts.iter().map(|_| OperationLimiter::new(limit)).collect());
        Self {
            scenario,
            accounts,
            limits,
            plans: StagePlans::default(),
            messages: MessageStore::default(),
            agenda: Agenda::default(),
            outbox: Outbox::default(),
            counts: Counts { funds, ..Counts::default() },
            now: VirtualTime::MIN,
            envelopes: 0,
            sends: 0,
            requests: 0,
        }
    }

    /// Advances to the arrival of an envelope, executes it, and writes the events to `lines`.
    pub(crate) fn handle_envelope(
        &mut self,
        arrival: EnvelopeArrival,
        envelope: Result<ParsedEnvelope, EnvelopeRejection>,
        lines: &mut JournalLines,
    ) -> ResponsePlan {
        self.advance(arrival.at, usize::MAX, lines);
        self.envelopes += 1;
        let EnvelopeArrival { endpoint, remote, .. } = arrival;
        let line = EnvelopeLine {
            at: self.now,
            envelope: self.envelopes,
            endpoint: endpoint.name(),
            remote,
            operations: 0,
            accepted: false,
            error: None,
            request_id: None,
        };
        match envelope {
            Err(EnvelopeRejection { error, operations }) => {
                self.counts.refused_envelopes += 1;
                lines.push_line(&JournalLine::Envelope(EnvelopeLine { operations, error: Some(error), ..line }));
                ResponsePlan { answer: ApiResponse::rejected(error), wire: WireFaults::default() }
            }
            Ok(envelope) if let Err(wait) = self.check_rate_limit(&envelope) => {
                self.reject_over_limit(&envelope, wait, line, lines)
            }
            Ok(envelope) => {
                let origin = self.assign_envelope_number(&envelope, endpoint);
                self.execute_with_faults(envelope, origin, line, lines)
            }
        }
    }

    /// Writes to the journal the name of a fault that applies before the first envelope.
    pub(crate) fn record_initial_fault(&mut self, fault: &'static str, at: Timestamp, lines: &mut JournalLines) {
        lines.push_line(&JournalLine::Fault { at: VirtualTime::from_timestamp(at), envelope: self.envelopes, fault });
    }

    /// The counts of operations, results and money so far.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Checks an envelope against the rate limit of its account.
    fn check_rate_limit(&mut self, envelope: &ParsedEnvelope) -> Result<(), Duration> {
        let limit = self.limits.get_mut(envelope.account as usize);
        limit.map_or(Ok(()), |limit| limit.take_operations(envelope.items.len(), self.now.to_timestamp()))
    }

    /// Rejects an envelope that exceeds the rate limit of its account. The envelope is not executed.
    fn reject_over_limit(
        &mut self,
        envelope: &ParsedEnvelope,
        wait: Duration,
        line: EnvelopeLine,
        lines: &mut JournalLines,
    ) -> ResponsePlan {
        const ERROR: &str = "Too many operations";
        self.counts.refused_envelopes += 1;
        lines.push_line(&JournalLine::Envelope(EnvelopeLine {
            operations: envelope.items.len(),
            error: Some(ERROR),
            ..line
        }));
        // The `Retry-After` header is in whole seconds of real time.
        let seconds = (wait / self.scenario.speed.max(1)).as_secs_f64().ceil().max(1.0);
        let page = ErrorPage { status: 429, retry_after: Some(Duration::from_secs_f64(seconds)) };
        ResponsePlan {
            answer: ApiResponse::rejected(ERROR),
            wire: WireFaults { page: Some(page), ..WireFaults::default() },
        }
    }

    /// Assigns the next numbers to an envelope, and returns the origin of its operations.
    fn assign_envelope_number(&mut self, envelope: &ParsedEnvelope, endpoint: Endpoint) -> OperationOrigin {
        self.sends = self.sends.saturating_add(envelope.contains_sends().into());
        let request = match endpoint {
            Endpoint::Sync => None,
            Endpoint::Async => {
                self.requests = self.requests.saturating_add(1);
                Some(self.requests)
            }
        };
        OperationOrigin { account: envelope.account, at: self.now, request, envelope: self.sends }
    }

    /// Executes an envelope and applies the faults of the scenario to its answer.
    fn execute_with_faults(
        &mut self,
        envelope: ParsedEnvelope,
        origin: OperationOrigin,
        line: EnvelopeLine,
        lines: &mut JournalLines,
    ) -> ResponsePlan {
        let scenario = Arc::clone(&self.scenario);
        let faults = faults::faults_for_envelope(&scenario, &envelope, origin);
        let answer = if faults.executed {
            let results = self.execute_items(envelope.items, origin, line, lines);
            // The asynchronous endpoint does not report on operations (contract 4.2).
            let respond = || ApiResponse::from_results(faults::apply_item_faults(results, &faults.items));
            origin.request.map(format_request_id).map_or_else(respond, ApiResponse::queued)
        } else {
            self.counts.refused_envelopes += 1;
            // The client gets an error page instead; this error is for the journal.
            let error = faults.refusal.unwrap_or("Not executed");
            let line = EnvelopeLine { operations: envelope.items.len(), error: Some(error), ..line };
            lines.push_line(&JournalLine::Envelope(line));
            ApiResponse::rejected(error.to_owned())
        };
        for fault in faults.fired {
            lines.push_line(&JournalLine::Fault { at: origin.at, envelope: self.envelopes, fault });
        }
        ResponsePlan { answer, wire: faults.wire }
    }

    /// Executes each item independently, in order.
    fn execute_items(
        &mut self,
        items: Vec<RequestItem>,
        origin: OperationOrigin,
        line: EnvelopeLine,
        lines: &mut JournalLines,
    ) -> Vec<ResultItem> {
        self.counts.envelopes += 1;
        let request_id = origin.request.map(format_request_id);
        let line = EnvelopeLine { operations: items.len(), accepted: true, request_id: request_id.as_deref(), ..line };
        lines.push_line(&JournalLine::Envelope(line));
        let mut results = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let outcome = self.execute_item(&item, origin);
            self.counts.count_operation(item.kind, outcome.result.is_ok());
            write_operation_lines(lines, origin.at, self.envelopes, index, &item, &outcome);
            results.push(ResultItem::new(item.id, outcome.result));
        }
        results
    }

    fn execute_item(&mut self, item: &RequestItem, origin: OperationOrigin) -> ItemOutcome {
        let account = &self.accounts[origin.account as usize];
        let operation = item.operation.as_ref().map_err(OperationError::clone);
        let outcome = match operation.and_then(|operation| self.check_item_faults(item, origin).map(|()| operation)) {
            Err(refusal) => Err(refusal),
            Ok(RequestedOperation::Balance) => Ok(Ok(ResultData::Balance(account.balance_record())).into()),
            Ok(RequestedOperation::Senders) => Ok(Ok(ResultData::Record(account.sender_records())).into()),
            Ok(RequestedOperation::Status(inquiry)) => Ok(self.status_record(inquiry, origin).into()),
            Ok(RequestedOperation::Template(call)) => Ok(self.run_template_call(call, origin).into()),
            Ok(RequestedOperation::Send(send)) => self.accept_send(item, send, origin),
            Ok(RequestedOperation::Lookup(phone)) => self.look_up_number(item, *phone, origin),
            Ok(RequestedOperation::CodeCall) => self.make_code_call(item, origin),
        };
        outcome.unwrap_or_else(|refusal| self.reject_operation(item, refusal, origin))
    }
}

/// The identifier of an asynchronous request (contract 2.3).
pub(crate) fn format_request_id(number: u32) -> String {
    format!("sandbox-{number:010}")
}

/// Writes a line for each recipient, or a single line without a recipient, each followed by a line for the charge.
fn write_operation_lines(
    lines: &mut JournalLines,
    at: VirtualTime,
    envelope: u64,
    index: usize,
    item: &RequestItem,
    outcome: &ItemOutcome,
) {
    let error = outcome.result.as_ref().err().map(OperationError::text);
    for recipient in 0..item.phones.len().max(1) {
        let msg_id = outcome.first.map(|first| msg_id_of(first) + recipient as u64);
        lines.push_line(&JournalLine::Operation {
            at,
            envelope,
            index,
            kind: item.kind.name(),
            id: item.id.as_ref(),
            phone: item.phones.get(recipient).copied(),
            msg_id,
            parts: outcome.parts,
            success: error.is_none(),
            error,
        });
        if let (Some(msg_id), Some(Charge { reason, amount, balance_before })) = (msg_id, outcome.charge) {
            let balance = balance_before.saturating_sub(amount.saturating_mul(recipient as u64 + 1));
            lines.push_line(&JournalLine::charge(at, msg_id, reason, amount, balance));
        }
    }
}

/// Counts since the start of the sandbox: accepted and rejected operations, delivery results and money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Envelopes that were accepted.
    pub envelopes: u64,
    /// Envelopes that were rejected as a whole.
    pub(crate) refused_envelopes: u64,
    /// Accepted messages: one for each recipient of each accepted operation.
    pub messages: u64,
    /// Parts of all accepted messages.
    pub parts: u64,
    /// Operations of accepted envelopes by `type`; only types that occurred.
    pub operations: BTreeMap<&'static str, OperationTally>,
    /// Messages, lookups and verification calls, by the channel that delivered them or was tried last; only channels
    /// that occurred.
    pub channels: BTreeMap<Channel, ChannelTally>,
    /// Messages by latest final status in the gateway's words, without unfinished messages.
    pub statuses: BTreeMap<String, u64>,
    /// The funds of all accounts together.
    pub funds: Funds,
}

/// The number of executed and rejected operations of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTally {
    /// Operations with `success` true, or that would have it on the synchronous endpoint.
    pub accepted: u64,
    /// All other operations of the type.
    pub rejected: u64,
}

/// Delivery results of one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelTally {
    /// Delivered messages.
    pub delivered: u64,
    /// Delivered messages that were read.
    pub read: u64,
    /// Delivered messages that got a reply.
    pub replied: u64,
    /// Messages that failed on this channel as the last one that was tried.
    pub failed: u64,
    /// The cost of the messages.
    pub spent: Amount,
}

/// The money of all accounts. The three amounts add up to the initial balances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Funds {
    /// Money that was charged.
    pub spent: Amount,
    /// Money that is reserved for unfinished messages.
    pub(crate) reserved: Amount,
    /// Money that remains.
    pub balance: Amount,
    /// The currency of the first account; amounts in other currencies are added unchanged.
    pub currency: String,
}

impl Counts {
    /// Counts one operation.
    pub(crate) fn count_operation(&mut self, kind: OperationType, is_accepted: bool) {
        let tally = self.operations.entry(kind.name()).or_default();
        if is_accepted {
            tally.accepted += 1;
        } else {
            tally.rejected += 1;
        }
    }

    /// Counts a message's final status.
    pub(crate) fn count_final_status(&mut self, status: &str) {
        match self.statuses.get_mut(status) {
            Some(count) => *count += 1,
            None => drop(self.statuses.insert(status.to_owned(), 1)),
        }
    }

    /// Counts the result of a message on the channel that delivered it or was tried last. `before` is the previous
    /// phase.
    pub(crate) fn count_channel_result(&mut self, channel: Channel, before: Phase, phase: Phase) {
        let tally = self.channels.entry(channel).or_default();
        match phase {
            Phase::Delivered => tally.delivered += 1,
            Phase::Read => tally.read += 1,
            // A message with a reply counts as read, even if its reading was not reported.
            Phase::Replied => {
                tally.replied += 1;
                tally.read += u64::from(before != Phase::Read);
            }
            Phase::Failed(_) => tally.failed += 1,
            Phase::Queued | Phase::Accepted | Phase::Rejected => {}
        }
    }

    /// Removes a message's earlier status from the counts.
    pub(crate) fn uncount_status(&mut self, status: &str) {
        if let Some(count) = self.statuses.get_mut(status) {
            *count -= 1;
            if *count == 0 {
                self.statuses.remove(status);
            }
        }
    }

    /// Moves money from the balance to the reservations.
    pub(crate) fn reserve_funds(&mut self, amount: Amount) {
        self.funds.balance = self.funds.balance.saturating_sub(amount);
        self.funds.reserved = self.funds.reserved.saturating_add(amount);
    }

    /// Charges part of a reservation to a channel and releases the unspent part.
    pub(crate) fn settle_funds(&mut self, channel: Channel, reserved: Amount, spent: Amount) {
        let Funds { spent: total_spent, reserved: total_reserved, balance, .. } = &mut self.funds;
        *total_reserved = total_reserved.saturating_sub(reserved);
        *total_spent = total_spent.saturating_add(spent);
        *balance = balance.saturating_add(reserved).saturating_sub(spent);
        let tally = self.channels.entry(channel).or_default();
        tally.spent = tally.spent.saturating_add(spent);
    }
}
