//! Envelopes are taken apart and executed in order; what one operation does stands in `intake` and `inquiries`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::limit::OperationLimiter;
use super::{
    Agenda, ApiResponse, Counts, Funds, MessageStore, OperationError, ResultData, ResultItem, SandboxAccount,
    StagePlans, VirtualTime, msg_id_of,
};
use crate::domain::{Amount, Endpoint};
use crate::sandbox::faults::{ErrorPage, ResponsePlan, WireFaults, spoil};
use crate::sandbox::journal::{ChargeReason, EnvelopeLine, JournalLine, JournalLines};
use crate::sandbox::request::{EnvelopeRejection, ParsedEnvelope, RequestItem, RequestedOperation};
use crate::sandbox::scenario::Scenario;
use crate::sandbox::webhooks::Outbox;

/// When and whence an envelope came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnvelopeArrival {
    pub endpoint: Endpoint,
    pub remote: SocketAddr,
    /// In virtual time; what is before the last arrival counts as at it.
    pub at: Timestamp,
}

/// Everything that the gateway knows.
pub(crate) struct GatewayEmulator {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) accounts: Vec<SandboxAccount>,
    /// What each account may still send; of none if that is any amount.
    limits: Vec<OperationLimiter>,
    pub(crate) plans: StagePlans,
    pub(crate) messages: MessageStore,
    pub(crate) agenda: Agenda,
    pub(crate) outbox: Outbox,
    pub(crate) counts: Counts,
    /// How far virtual time has come.
    pub(crate) now: VirtualTime,
    envelopes: u64,
    /// The envelopes that held sends.
    sends: u32,
    requests: u32,
}

/// In whose name and in which envelope an operation came.
#[derive(Clone, Copy)]
pub(crate) struct OperationOrigin {
    /// The index of the account.
    pub account: u32,
    pub at: VirtualTime,
    /// The number of the asynchronous request; nothing on the synchronous endpoint.
    pub request: Option<u32>,
    /// The envelope's number among those that hold sends.
    pub envelope: u32,
}

impl OperationOrigin {
    /// The endpoint that the envelope came to.
    pub(crate) fn endpoint(self) -> Endpoint {
        if self.request.is_some() { Endpoint::Async } else { Endpoint::Sync }
    }
}

/// What an operation did.
pub(crate) struct ItemOutcome {
    pub result: Result<ResultData, OperationError>,
    /// The index of the first of the messages that it left behind, one for each recipient.
    pub first: Option<u32>,
    /// The parts of each of them.
    pub parts: Option<u32>,
    pub charge: Option<Charge>,
}

/// What an operation cost at once.
#[derive(Clone, Copy)]
pub(crate) struct Charge {
    pub reason: ChargeReason,
    /// For each recipient.
    pub each: Amount,
    /// The account's balance before.
    pub before: Amount,
}

impl From<Result<ResultData, OperationError>> for ItemOutcome {
    fn from(result: Result<ResultData, OperationError>) -> Self {
        Self { result, first: None, parts: None, charge: None }
    }
}

impl GatewayEmulator {
    /// The gateway of a scenario at its beginning.
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

    /// Lets time pass until an envelope arrives, executes it, and writes what happened to `lines`.
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
                let origin = self.number_envelope(&envelope, endpoint);
                self.execute_with_faults(envelope, origin, line, lines)
            }
        }
    }

    /// Writes the name of a fault that is there before the first envelope.
    pub(crate) fn record_initial_fault(&mut self, fault: &'static str, at: Timestamp, lines: &mut JournalLines) {
        lines.push_line(&JournalLine::Fault { at: VirtualTime::from_timestamp(at), envelope: self.envelopes, fault });
    }

    /// What was taken and refused so far, and what became of it.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes an envelope from what its account may send.
    fn check_rate_limit(&mut self, envelope: &ParsedEnvelope) -> Result<(), Duration> {
        let limit = self.limits.get_mut(envelope.account as usize);
        limit.map_or(Ok(()), |limit| limit.take_operations(envelope.items.len(), self.now.to_timestamp()))
    }

    /// Answers an envelope that is above the limit of its account; nothing of it is executed.
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
        // The header has whole seconds, of real time.
        let seconds = (wait / self.scenario.speed.max(1)).as_secs_f64().ceil().max(1.0);
        let page = ErrorPage { status: 429, retry_after: Some(Duration::from_secs_f64(seconds)) };
        ResponsePlan {
            answer: ApiResponse::rejected(ERROR),
            wire: WireFaults { page: Some(page), ..WireFaults::default() },
        }
    }

    /// Numbers an envelope.
    fn number_envelope(&mut self, envelope: &ParsedEnvelope, endpoint: Endpoint) -> OperationOrigin {
        self.sends = self.sends.saturating_add(envelope.holds_sends().into());
        let request = match endpoint {
            Endpoint::Sync => None,
            Endpoint::Async => {
                self.requests = self.requests.saturating_add(1);
                Some(self.requests)
            }
        };
        OperationOrigin { account: envelope.account, at: self.now, request, envelope: self.sends }
    }

    /// Executes an envelope and spoils its answer, as far as the scenario says so.
    fn execute_with_faults(
        &mut self,
        envelope: ParsedEnvelope,
        origin: OperationOrigin,
        line: EnvelopeLine,
        lines: &mut JournalLines,
    ) -> ResponsePlan {
        let scenario = Arc::clone(&self.scenario);
        let faults = spoil::faults_for_envelope(&scenario, &envelope, origin);
        let answer = if faults.executed {
            let results = self.execute_items(envelope.items, origin, line, lines);
            // The asynchronous endpoint tells nothing of the operations (contract 4.2).
            let told = || ApiResponse::from_results(spoil::apply_item_faults(results, &faults.items));
            origin.request.map(format_request_id).map_or_else(told, ApiResponse::queued)
        } else {
            self.counts.refused_envelopes += 1;
            // A page stands in the answer's place; this is for the journal.
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

    /// Executes each item for itself and in order.
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
            write_operation_lines(lines, (origin.at, self.envelopes, index), &item, &outcome);
            results.push(ResultItem::new(item.id, outcome.result));
        }
        results
    }

    fn execute_item(&mut self, item: &RequestItem, origin: OperationOrigin) -> ItemOutcome {
        let account = &self.accounts[origin.account as usize];
        let operation = item.operation.as_ref().map_err(OperationError::clone);
        let done = match operation.and_then(|operation| self.check_item_faults(item, origin).map(|()| operation)) {
            Err(refusal) => Err(refusal),
            Ok(RequestedOperation::Balance) => Ok(Ok(ResultData::Balance(account.balance_record())).into()),
            Ok(RequestedOperation::Senders) => Ok(Ok(ResultData::Record(account.sender_records())).into()),
            Ok(RequestedOperation::Status(question)) => Ok(self.status_record(question, origin).into()),
            Ok(RequestedOperation::Template(call)) => Ok(self.run_template_call(call, origin).into()),
            Ok(RequestedOperation::Send(load)) => self.accept_send(item, load, origin),
            Ok(RequestedOperation::Lookup(phone)) => self.look_up_number(item, *phone, origin),
            Ok(RequestedOperation::CodeCall) => self.make_code_call(item, origin),
        };
        done.unwrap_or_else(|refusal| self.reject_operation(item, refusal, origin))
    }
}

/// The identifier of an asynchronous request (contract 2.3).
pub(crate) fn format_request_id(number: u32) -> String {
    format!("sandbox-{number:010}")
}

/// Writes a line for each recipient, or one if there is none, and below it what it cost.
fn write_operation_lines(
    lines: &mut JournalLines,
    (at, envelope, index): (VirtualTime, u64, usize),
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
        if let (Some(msg_id), Some(Charge { reason, each, before })) = (msg_id, outcome.charge) {
            let balance = before.saturating_sub(each.saturating_mul(recipient as u64 + 1));
            lines.push_line(&JournalLine::charge(at, msg_id, reason, each, balance));
        }
    }
}
