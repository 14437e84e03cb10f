//! The emulated platform: a state machine that executes operations. No I/O, no clock of its own.

use std::net::SocketAddr;

use jiff::Timestamp;
use jiff::tz::Offset;

use super::answer::{Answer, Balance, CodeCall, Payload, ResultItem, SendResult, Sender, StatusRecord};
use super::client_id::ClientId;
use super::counts::Counts;
use super::envelope::Rejection;
use super::journal::{EnvelopeLine, Line, Lines, OperationLine};
use super::life;
use super::lookup::NumberRecord;
use super::messages::{Message, Messages};
use super::operation::{Item, Operation, Question};
use super::refusal::Refusal;
use super::stages::Load;
use crate::domain::Endpoint;

/// The account's balance, which nothing changes.
const BALANCE: Balance = Balance { amount: 1_000_000.123_456, currency: "UAH" };
/// The account's sender names.
const SENDERS: [Sender; 1] = [Sender { name: "Sandbox", status: "Checked" }];
/// The fee of a code call in the account's currency.
const CODE_CALL_PRICE: f64 = 0.25;

/// When and whence an envelope came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub endpoint: Endpoint,
    pub remote: SocketAddr,
    pub at: Timestamp,
}

/// Everything that the gateway knows.
#[derive(Debug, Default)]
pub(super) struct Platform {
    messages: Messages,
    counts: Counts,
    envelopes: u64,
    requests: u64,
}

/// What an operation did.
struct Outcome {
    result: Result<Payload, Refusal>,
    /// The first of the messages that it left behind, one for each recipient.
    msg_id: Option<u64>,
    /// The parts of each of them.
    parts: Option<u32>,
}

impl From<Result<Payload, Refusal>> for Outcome {
    fn from(result: Result<Payload, Refusal>) -> Self {
        Self { result, msg_id: None, parts: None }
    }
}

/// What a message begins as: taken under the `type` that its status tells, or refused.
enum Fate {
    Taken(&'static str),
    Refused,
}

impl Platform {
    /// Executes an envelope and writes what it did to `lines`.
    pub(super) fn handle(
        &mut self,
        arrival: Arrival,
        envelope: Result<Vec<Item>, Rejection>,
        lines: &mut Lines,
    ) -> Answer {
        self.envelopes += 1;
        let at = iso(arrival.at);
        let line = EnvelopeLine::received(&at, self.envelopes, arrival.endpoint.name(), arrival.remote);
        match envelope {
            Err(Rejection { error, operations }) => {
                self.counts.refused_envelopes += 1;
                lines.push(&Line::Envelope(EnvelopeLine { operations, error: Some(error), ..line }));
                Answer::refused(error)
            }
            Ok(items) => {
                self.counts.envelopes += 1;
                let request_id = self.request_id(arrival.endpoint);
                let (operations, request) = (items.len(), request_id.as_deref());
                let line = EnvelopeLine { operations, accepted: true, request_id: request, ..line };
                lines.push(&Line::Envelope(line));
                let results = self.execute_all(items, arrival, lines);
                // The asynchronous endpoint tells nothing of the operations (contract 4.2).
                request_id.map_or_else(|| Answer::results(results), Answer::queued)
            }
        }
    }

    /// Executes each item for itself and in order.
    fn execute_all(&mut self, items: Vec<Item>, arrival: Arrival, lines: &mut Lines) -> Vec<ResultItem> {
        let at = iso(arrival.at);
        let mut results = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let outcome = self.execute(&item, arrival);
            self.counts.operation(item.kind, outcome.result.is_ok());
            write(lines, Position { at: &at, envelope: self.envelopes, index }, &item, &outcome);
            results.push(ResultItem::new(item.id, outcome.result));
        }
        results
    }

    /// What was taken and refused so far.
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    fn request_id(&mut self, endpoint: Endpoint) -> Option<String> {
        match endpoint {
            Endpoint::Sync => None,
            Endpoint::Async => {
                self.requests += 1;
                Some(format!("sandbox-{:010}", self.requests))
            }
        }
    }

    fn execute(&mut self, item: &Item, arrival: Arrival) -> Outcome {
        match &item.operation {
            Err(refusal) => self.refuse(item, refusal, arrival),
            Ok(Operation::Balance) => Ok(Payload::Balance(BALANCE)).into(),
            Ok(Operation::Senders) => Ok(Payload::Senders(SENDERS.to_vec())).into(),
            Ok(Operation::Status(question)) => self.status(question, arrival.at).into(),
            Ok(Operation::Send(load)) => self.send(item, *load, arrival),
            Ok(Operation::Lookup(phone)) => {
                let msg_id = self.keep(item, Fate::Taken(item.kind.name()), arrival);
                Outcome { result: Ok(Payload::Number(NumberRecord::of(*phone))), msg_id: Some(msg_id), parts: None }
            }
            Ok(Operation::CodeCall) => {
                let msg_id = self.keep(item, Fate::Taken(item.kind.name()), arrival);
                let call = CodeCall { code: code(msg_id), price: CODE_CALL_PRICE };
                Outcome { result: Ok(Payload::CodeCall(call)), msg_id: Some(msg_id), parts: None }
            }
        }
    }

    /// Refuses an operation; on the asynchronous endpoint nobody hears of it, so its status has to tell.
    fn refuse(&mut self, item: &Item, refusal: &Refusal, arrival: Arrival) -> Outcome {
        let unheard = arrival.endpoint == Endpoint::Async && item.kind.reaches_a_phone();
        let msg_id = unheard.then(|| self.keep(item, Fate::Refused, arrival));
        Outcome { result: Err(refusal.clone()), msg_id, parts: None }
    }

    fn send(&mut self, item: &Item, load: Load, arrival: Arrival) -> Outcome {
        let msg_id = self.keep(item, Fate::Taken(load.channel.name()), arrival);
        let messages = item.phones.len() as u64;
        let parts = messages * u64::from(load.parts);
        self.counts.messages += messages;
        self.counts.parts += parts;
        let id = item.id.clone().unwrap_or(ClientId::Whole(msg_id));
        let result = Ok(Payload::Sent(SendResult { id, msg_id, data: 1, parts }));
        Outcome { result, msg_id: Some(msg_id), parts: Some(load.parts) }
    }

    /// Keeps a message for each recipient, at least one, and gives the first one's identifier.
    fn keep(&mut self, item: &Item, fate: Fate, arrival: Arrival) -> u64 {
        let (label, taken) = match fate {
            Fate::Taken(label) => (label, true),
            Fate::Refused => (item.kind.name(), false),
        };
        let message = Message { id: item.id.clone(), label, taken, at: arrival.at };
        for _ in 1..item.phones.len() {
            self.messages.add(message.clone());
        }
        let last = self.messages.add(message);
        last + 1 - item.phones.len().max(1) as u64
    }

    fn status(&self, question: &Question, now: Timestamp) -> Result<Payload, Refusal> {
        let (msg_id, message) = self.messages.find(question).ok_or(Refusal::NOT_FOUND)?;
        let msg_id = msg_id.to_string();
        let id = message.id.as_ref().map_or_else(|| msg_id.clone(), ClientId::to_string);
        let (status, updated) = life::status(message, now);
        Ok(Payload::Status(StatusRecord { id, msg_id, channel: message.label, status, updated: iso(updated) }))
    }
}

/// Where an operation stands in the journal.
#[derive(Clone, Copy)]
struct Position<'a> {
    at: &'a str,
    envelope: u64,
    index: usize,
}

/// Writes a line for each recipient, or one if there is none.
fn write(lines: &mut Lines, position: Position, item: &Item, outcome: &Outcome) {
    let Position { at, envelope, index } = position;
    let error = outcome.result.as_ref().err().map(Refusal::text);
    for recipient in 0..item.phones.len().max(1) {
        lines.push(&Line::Operation(OperationLine {
            at,
            envelope,
            index,
            kind: item.kind.name(),
            id: item.id.as_ref(),
            phone: item.phones.get(recipient).copied(),
            msg_id: outcome.msg_id.map(|first| first + recipient as u64),
            parts: outcome.parts,
            success: error.is_none(),
            error,
        }));
    }
}

/// The four digits of a code call: they look random and are the same in every run.
fn code(msg_id: u64) -> String {
    format!("{:04}", msg_id * 7_919 % 10_000)
}

/// A time in ISO 8601 with an offset (contract 2.5).
fn iso(time: Timestamp) -> String {
    format!("{:.3}", time.display_with_offset(Offset::UTC))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::super::desk::Desk;
    use super::super::messages::FIRST_MSG_ID;
    use super::*;

    fn status(desk: &mut Desk, id: Value) -> Value {
        desk.ask(Endpoint::Sync, &json!([{"type": "status", "id": id}]))["data"][0].clone()
    }

    fn sms(id: Value, phone: Value) -> Value {
        json!({"type": "sms", "id": id, "phone": phone, "sms_signature": "OlenaCo", "sms_message": "Hi"})
    }

    #[test]
    fn each_item_answers_for_itself_in_order() {
        let mut desk = Desk::new();
        let data = json!([
            {"type": "balance"},
            sms(json!(1), json!(380_501_234_567_u64)),
            sms(json!("a"), json!("nobody")),
            {"type": "template/list"},
            {"type": "status", "id": "001"},
        ]);
        let answer = desk.ask(Endpoint::Sync, &data);
        assert_eq!(answer["success"], true);
        let items = answer["data"].as_array().expect("items");
        let verdicts: Vec<_> = items.iter().map(|item| item["success"] == true).collect();
        assert_eq!(verdicts, [true, true, false, false, true]);
        assert_eq!(items[1]["data"], json!({"id": 1, "msg_id": FIRST_MSG_ID, "data": 1, "parts": 1}));
        let error = "Please enter valid receiver phone number";
        assert_eq!(items[2], json!({"success": false, "error": error, "data": {"id": "a"}}));
        assert_eq!(items[4]["data"]["status"], "QUEUED");
    }

    #[test]
    fn a_status_moves_with_the_clock() {
        let mut desk = Desk::new();
        desk.ask(Endpoint::Sync, &json!([sms(json!("007"), json!("380501234567"))]));
        let updated = "1970-01-01T00:00:00.000+00:00";
        let record = json!({"id": "007", "msg_id": FIRST_MSG_ID.to_string(), "type": "sms", "status": "QUEUED", "updated": updated});
        assert_eq!(status(&mut desk, json!(7)), json!({"success": true, "data": record}));
        desk.now += SignedDuration::from_secs(10);
        let record = status(&mut desk, json!(7))["data"].clone();
        assert_eq!(record["status"], "DELIVERED");
        assert_eq!(record["updated"], "1970-01-01T00:00:02.000+00:00");
    }

    #[test]
    fn an_unknown_message_is_an_item_that_failed() {
        let failed = json!({"success": false, "error": "Message not found", "data": {"id": 5}});
        assert_eq!(status(&mut Desk::new(), json!(5)), failed);
    }

    #[test]
    fn the_asynchronous_endpoint_executes_in_silence_and_its_refusals_have_a_status() {
        let mut desk = Desk::new();
        let data = json!([sms(json!(1), json!("380501234567")), sms(json!(2), json!("nobody"))]);
        assert_eq!(desk.ask(Endpoint::Async, &data), json!({"success": true, "request_id": "sandbox-0000000001"}));
        assert_eq!(status(&mut desk, json!(1))["data"]["status"], "QUEUED");
        assert_eq!(status(&mut desk, json!(2))["data"]["status"], "REJECTED");
    }

    #[test]
    fn a_refusal_that_was_answered_leaves_no_message() {
        let mut desk = Desk::new();
        desk.ask(Endpoint::Sync, &json!([sms(json!(2), json!("nobody"))]));
        assert_eq!(status(&mut desk, json!(2))["success"], false);
    }

    #[test]
    fn a_message_without_an_id_is_known_by_the_gateways() {
        let mut desk = Desk::new();
        let sent = desk.ask(Endpoint::Sync, &json!([sms(Value::Null, json!("380501234567"))]))["data"][0].clone();
        assert_eq!(sent["data"]["id"], sent["data"]["msg_id"]);
        assert_eq!(status(&mut desk, sent["data"]["id"].clone())["data"]["id"], FIRST_MSG_ID.to_string());
    }

    #[test]
    fn several_recipients_are_several_messages() {
        let mut desk = Desk::new();
        let phones = json!("380501234567,380671234567");
        let sent = desk.ask(Endpoint::Sync, &json!([sms(json!(1), phones)]))["data"][0].clone();
        assert_eq!(sent["data"], json!({"id": 1, "msg_id": FIRST_MSG_ID, "data": 1, "parts": 2}));
        let told: Vec<_> =
            desk.journal()[1..].iter().map(|line| (line["phone"].clone(), line["msg_id"].clone())).collect();
        let both = [("380501234567", FIRST_MSG_ID), ("380671234567", FIRST_MSG_ID + 1)];
        assert_eq!(told, both.map(|(phone, msg_id)| (json!(phone), json!(msg_id))));
        assert_eq!((desk.platform.counts().messages, desk.platform.counts().parts), (2, 2));
    }

    #[test]
    fn what_is_sent_twice_stands_in_the_journal_twice() {
        let mut desk = Desk::new();
        for _ in 0..2 {
            desk.ask(Endpoint::Sync, &json!([sms(json!(1), json!("380501234567"))]));
        }
        let sent: Vec<_> = desk.journal().into_iter().filter(|line| line["event"] == "operation").collect();
        let at = "1970-01-01T00:00:00.000+00:00";
        let line = |envelope: u64, msg_id: u64| {
            json!({"event": "operation", "at": at, "envelope": envelope, "index": 0, "type": "sms", "id": 1,
                "phone": "380501234567", "msg_id": msg_id, "parts": 1, "success": true})
        };
        assert_eq!(sent, [line(1, FIRST_MSG_ID), line(2, FIRST_MSG_ID + 1)]);
    }

    #[test]
    fn the_journal_has_every_envelope_and_why_it_was_refused() {
        let mut desk = Desk::new();
        desk.ask(Endpoint::Sync, &json!([{"type": "balance"}, {"type": "whatsapp"}]));
        desk.ask(Endpoint::Async, &json!([{"type": "balance"}]));
        let at = "1970-01-01T00:00:00.000+00:00";
        assert_eq!(
            desk.journal(),
            [
                json!({"event": "envelope", "at": at, "envelope": 1, "endpoint": "sync", "remote": "127.0.0.1:9",
                    "operations": 2, "accepted": false, "error": "Invalid message type"}),
                json!({"event": "envelope", "at": at, "envelope": 2, "endpoint": "async", "remote": "127.0.0.1:9",
                    "operations": 1, "accepted": true, "request_id": "sandbox-0000000001"}),
                json!({"event": "operation", "at": at, "envelope": 2, "index": 0, "type": "balance", "success": true}),
            ]
        );
    }

    #[test]
    fn the_counts_add_up() {
        let mut desk = Desk::new();
        desk.ask(Endpoint::Sync, &json!([sms(json!(1), json!("380501234567")), sms(json!(2), json!("nobody"))]));
        desk.ask(Endpoint::Sync, &json!([{"type": "whatsapp"}]));
        let counts = desk.platform.counts();
        assert_eq!((counts.envelopes, counts.refused_envelopes), (1, 1));
        let tally = counts.operations["sms"];
        assert_eq!((tally.accepted, tally.rejected, counts.messages, counts.parts), (1, 1, 1, 1));
    }

    #[test]
    fn a_code_has_four_digits() {
        for msg_id in FIRST_MSG_ID..FIRST_MSG_ID + 20_000 {
            assert_eq!(code(msg_id).len(), 4);
        }
    }
}
