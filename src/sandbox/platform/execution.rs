//! Envelopes are taken apart and executed in order; what one operation does stands in `intake` and `inquiries`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::limit::Limit;
use super::{Account, Agenda, Answer, Counts, Funds, Messages, Moment, Payload, Plans, Refusal, ResultItem, msg_id};
use crate::domain::{Amount, Endpoint};
use crate::sandbox::faults::{Page, Reaction, Wire, spoil};
use crate::sandbox::journal::{EnvelopeLine, Line, Lines, Reason};
use crate::sandbox::request::{Envelope, Item, Operation, Rejection};
use crate::sandbox::scenario::Scenario;
use crate::sandbox::webhooks::Outbox;

/// When and whence an envelope came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub endpoint: Endpoint,
    pub remote: SocketAddr,
    /// In virtual time; what is before the last arrival counts as at it.
    pub at: Timestamp,
}

/// Everything that the gateway knows.
pub(crate) struct Platform {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) accounts: Vec<Account>,
    /// What each account may still send; of none if that is any amount.
    limits: Vec<Limit>,
    pub(crate) plans: Plans,
    pub(crate) messages: Messages,
    pub(crate) agenda: Agenda,
    pub(crate) outbox: Outbox,
    pub(crate) counts: Counts,
    /// How far virtual time has come.
    pub(crate) now: Moment,
    envelopes: u64,
    /// The envelopes that held sends.
    sends: u32,
    requests: u32,
}

/// In whose name and in which envelope an operation came.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// The index of the account.
    pub account: u32,
    pub at: Moment,
    /// The number of the asynchronous request; nothing on the synchronous endpoint.
    pub request: Option<u32>,
    /// The envelope's number among those that hold sends.
    pub envelope: u32,
}

impl Origin {
    /// The endpoint that the envelope came to.
    pub(crate) fn endpoint(self) -> Endpoint {
        if self.request.is_some() { Endpoint::Async } else { Endpoint::Sync }
    }
}

/// What an operation did.
pub(crate) struct Outcome {
    pub result: Result<Payload, Refusal>,
    /// The index of the first of the messages that it left behind, one for each recipient.
    pub first: Option<u32>,
    /// The parts of each of them.
    pub parts: Option<u32>,
    pub charge: Option<Charge>,
}

/// What an operation cost at once.
#[derive(Clone, Copy)]
pub(crate) struct Charge {
    pub reason: Reason,
    /// For each recipient.
    pub each: Amount,
    /// The account's balance before.
    pub before: Amount,
}

impl From<Result<Payload, Refusal>> for Outcome {
    fn from(result: Result<Payload, Refusal>) -> Self {
        Self { result, first: None, parts: None, charge: None }
    }
}

impl Platform {
    /// The gateway of a scenario at its beginning.
    pub(crate) fn new(scenario: Arc<Scenario>) -> Self {
        let accounts: Vec<_> = scenario.accounts.iter().cloned().map(Account::new).collect();
        let mut funds = Funds::default();
        for account in &accounts {
            funds.balance = funds.balance.plus(account.balance());
        }
        funds.currency = scenario.accounts.first().map(|account| account.currency.clone()).unwrap_or_default();
        let limits = scenario.limit.map_or_else(Vec::new, |limit| accounts.iter().map(|_| Limit::new(limit)).collect());
        Self {
            scenario,
            accounts,
            limits,
            plans: Plans::default(),
            messages: Messages::default(),
            agenda: Agenda::default(),
            outbox: Outbox::default(),
            counts: Counts { funds, ..Counts::default() },
            now: Moment::BEGINNING,
            envelopes: 0,
            sends: 0,
            requests: 0,
        }
    }

    /// Lets time pass until an envelope arrives, executes it, and writes what happened to `lines`.
    pub(crate) fn handle(
        &mut self,
        arrival: Arrival,
        envelope: Result<Envelope, Rejection>,
        lines: &mut Lines,
    ) -> Reaction {
        self.advance(arrival.at, usize::MAX, lines);
        self.envelopes += 1;
        let Arrival { endpoint, remote, .. } = arrival;
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
            Err(Rejection { error, operations }) => {
                self.counts.refused_envelopes += 1;
                lines.push(&Line::Envelope(EnvelopeLine { operations, error: Some(error), ..line }));
                Reaction { answer: Answer::refused(error), wire: Wire::default() }
            }
            Ok(envelope) if let Err(wait) = self.admit(&envelope) => self.turn_away(&envelope, wait, line, lines),
            Ok(envelope) => {
                let origin = self.origin(&envelope, endpoint);
                self.play(envelope, origin, line, lines)
            }
        }
    }

    /// Writes the name of a fault that is there before the first envelope.
    pub(crate) fn open_with(&mut self, fault: &'static str, at: Timestamp, lines: &mut Lines) {
        lines.push(&Line::Fault { at: Moment::of(at), envelope: self.envelopes, fault });
    }

    /// What was taken and refused so far, and what became of it.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes an envelope from what its account may send.
    fn admit(&mut self, envelope: &Envelope) -> Result<(), Duration> {
        let limit = self.limits.get_mut(envelope.account as usize);
        limit.map_or(Ok(()), |limit| limit.take(envelope.items.len(), self.now.timestamp()))
    }

    /// Answers an envelope that is above the limit of its account; nothing of it is executed.
    fn turn_away(&mut self, envelope: &Envelope, wait: Duration, line: EnvelopeLine, lines: &mut Lines) -> Reaction {
        const ERROR: &str = "Too many operations";
        self.counts.refused_envelopes += 1;
        lines.push(&Line::Envelope(EnvelopeLine { operations: envelope.items.len(), error: Some(ERROR), ..line }));
        // The header has whole seconds, of real time.
        let seconds = (wait / self.scenario.speed.max(1)).as_secs_f64().ceil().max(1.0);
        let page = Page { status: 429, retry_after: Some(Duration::from_secs_f64(seconds)) };
        Reaction { answer: Answer::refused(ERROR), wire: Wire { page: Some(page), ..Wire::default() } }
    }

    /// Numbers an envelope.
    fn origin(&mut self, envelope: &Envelope, endpoint: Endpoint) -> Origin {
        self.sends = self.sends.saturating_add(envelope.holds_sends().into());
        let request = match endpoint {
            Endpoint::Sync => None,
            Endpoint::Async => {
                self.requests = self.requests.saturating_add(1);
                Some(self.requests)
            }
        };
        Origin { account: envelope.account, at: self.now, request, envelope: self.sends }
    }

    /// Executes an envelope and spoils its answer, as far as the scenario says so.
    fn play(&mut self, envelope: Envelope, origin: Origin, line: EnvelopeLine, lines: &mut Lines) -> Reaction {
        let scenario = Arc::clone(&self.scenario);
        let faults = spoil::faults_of(&scenario, &envelope, origin);
        let answer = if faults.executed {
            let results = self.accept(envelope.items, origin, line, lines);
            // The asynchronous endpoint tells nothing of the operations (contract 4.2).
            let told = || Answer::results(spoil::spoilt(results, &faults.items));
            origin.request.map(request_id).map_or_else(told, Answer::queued)
        } else {
            self.counts.refused_envelopes += 1;
            // A page stands in the answer's place; this is for the journal.
            let error = faults.refusal.unwrap_or("Not executed");
            let line = EnvelopeLine { operations: envelope.items.len(), error: Some(error), ..line };
            lines.push(&Line::Envelope(line));
            Answer::refused(error.to_owned())
        };
        for fault in faults.fired {
            lines.push(&Line::Fault { at: origin.at, envelope: self.envelopes, fault });
        }
        Reaction { answer, wire: faults.wire }
    }

    /// Executes each item for itself and in order.
    fn accept(&mut self, items: Vec<Item>, origin: Origin, line: EnvelopeLine, lines: &mut Lines) -> Vec<ResultItem> {
        self.counts.envelopes += 1;
        let request_id = origin.request.map(request_id);
        let line = EnvelopeLine { operations: items.len(), accepted: true, request_id: request_id.as_deref(), ..line };
        lines.push(&Line::Envelope(line));
        let mut results = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let outcome = self.execute(&item, origin);
            self.counts.operation(item.kind, outcome.result.is_ok());
            write(lines, (origin.at, self.envelopes, index), &item, &outcome);
            results.push(ResultItem::new(item.id, outcome.result));
        }
        results
    }

    fn execute(&mut self, item: &Item, origin: Origin) -> Outcome {
        let account = &self.accounts[origin.account as usize];
        let operation = item.operation.as_ref().map_err(Refusal::clone);
        let done = match operation.and_then(|operation| self.let_through(item, origin).map(|()| operation)) {
            Err(refusal) => Err(refusal),
            Ok(Operation::Balance) => Ok(Ok(Payload::Balance(account.balance_record())).into()),
            Ok(Operation::Senders) => Ok(Ok(Payload::Record(account.senders())).into()),
            Ok(Operation::Status(question)) => Ok(self.status(question, origin).into()),
            Ok(Operation::Template(call)) => Ok(self.template(call, origin).into()),
            Ok(Operation::Send(load)) => self.send(item, load, origin),
            Ok(Operation::Lookup(phone)) => self.look_up(item, *phone, origin),
            Ok(Operation::CodeCall) => self.call(item, origin),
        };
        done.unwrap_or_else(|refusal| self.refuse(item, refusal, origin))
    }
}

/// The identifier of an asynchronous request (contract 2.3).
pub(crate) fn request_id(number: u32) -> String {
    format!("sandbox-{number:010}")
}

/// Writes a line for each recipient, or one if there is none, and below it what it cost.
fn write(lines: &mut Lines, (at, envelope, index): (Moment, u64, usize), item: &Item, outcome: &Outcome) {
    let error = outcome.result.as_ref().err().map(Refusal::text);
    for recipient in 0..item.phones.len().max(1) {
        let msg_id = outcome.first.map(|first| msg_id(first) + recipient as u64);
        lines.push(&Line::Operation {
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
            let balance = before.minus(each.times(recipient as u64 + 1));
            lines.push(&Line::charge(at, msg_id, reason, each, balance));
        }
    }
}
