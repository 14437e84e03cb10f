//! Test gateway that records every message, answers status requests truthfully, and audits the results of a run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Gateway, Reachable, Request, judge_results, rejected};

/// A gateway that names the message in each answer and remembers every accepted message.
pub(crate) struct Witness {
    gateway: Gateway,
    memory: Arc<Mutex<Memory>>,
}

/// The operations that arrived.
#[derive(Default)]
struct Memory {
    accepted: Vec<Accepted>,
    ids: HashSet<u64>,
    /// Numbers whose first message is rejected.
    to_reject: BTreeSet<u64>,
    rejected: Vec<u64>,
    /// The requests and their operations, in the format of the sandbox's journal.
    journal: Vec<Value>,
    requests: u64,
    /// Called with the numbers of each request before it is answered.
    observer: Option<Observer>,
}

/// A callback that gets the numbers of a request.
type Observer = Box<dyn FnMut(Vec<u64>) + Send>;

/// An accepted message.
#[derive(Clone)]
struct Accepted {
    id: u64,
    phone: u64,
    /// The identifier of its request.
    request: String,
}

/// The numbers of wrong results by kind. All must be zero.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Recipients without a row, or whose row is unfinished.
    lost: usize,
    /// Numbers with more than one accepted message.
    duplicated: usize,
    /// Rows shown as accepted or queued whose message never arrived.
    falsely_accepted: usize,
    /// Rows shown as unsent or rejected whose message was accepted.
    falsely_not_sent: usize,
    /// Messages without a row, rows outside the list, repeated rows, and rows with an unexpected state.
    unexpected: usize,
    /// Operations and answers assigned to the wrong row.
    misattributed: usize,
}

impl Witness {
    /// Accepts every message.
    pub(crate) fn start() -> Self {
        Self::rejecting([])
    }

    /// Rejects the first message to each of these numbers, and accepts all others.
    pub(crate) fn rejecting(phones: impl IntoIterator<Item = u64>) -> Self {
        let memory = Memory { to_reject: phones.into_iter().collect(), ..Memory::default() };
        let memory = Arc::new(Mutex::new(memory));
        let (sending, asking) = (Arc::clone(&memory), Arc::clone(&memory));
        let gateway =
            Gateway::always(Answer::from_request(move |request| sending.lock().expect("the memory").accept(request)))
                .with_statuses(move |query| asking.lock().expect("the memory").status(query));
        Self { gateway, memory }
    }

    /// Calls `observer` with the numbers of each request before it is answered.
    pub(crate) fn observe(&self, observer: impl FnMut(Vec<u64>) + Send + 'static) {
        self.memory.lock().expect("the memory").observer = Some(Box::new(observer));
    }

    /// The numbers of the accepted messages, in order of arrival.
    pub(crate) fn phones(&self) -> Vec<u64> {
        self.accepted().iter().map(|accepted| accepted.phone).collect()
    }

    /// The number of accepted messages.
    pub(crate) fn arrivals(&self) -> usize {
        self.memory.lock().expect("the memory").accepted.len()
    }

    /// The number of rejected messages.
    pub(crate) fn rejections(&self) -> usize {
        self.memory.lock().expect("the memory").rejected.len()
    }

    fn accepted(&self) -> Vec<Accepted> {
        self.memory.lock().expect("the memory").accepted.clone()
    }

    /// The number of messages to each phone.
    pub(crate) fn messages(&self) -> BTreeMap<u64, usize> {
        self.phones().into_iter().fold(BTreeMap::new(), |mut messages, phone| {
            *messages.entry(phone).or_default() += 1;
            messages
        })
    }

    /// Compares the messages that arrived with the results of the recipients on the list. An independent judge also
    /// compares them.
    #[track_caller]
    pub(crate) fn tally(&self, sale: &Folder, list: impl IntoIterator<Item = u64>) -> Tally {
        self.judge(sale);
        let results = sale.results();
        let list: BTreeSet<u64> = list.into_iter().collect();
        let messages = self.messages();
        let mut tally = Tally { duplicated: messages.values().filter(|&&times| times > 1).count(), ..Tally::default() };
        let mut rows = BTreeMap::new();
        for row in &results.rows {
            let phone: u64 = row["to"].parse().expect("a number");
            let has_arrived = messages.contains_key(&phone);
            match row["state"].as_str() {
                "accepted" | "queued" => tally.falsely_accepted += usize::from(!has_arrived),
                "rejected" | "not_sent" | "skipped" | "invalid" => tally.falsely_not_sent += usize::from(has_arrived),
                "in_doubt" => {}
                "planned" | "sending" => tally.lost += 1,
                _ => tally.unexpected += 1,
            }
            tally.misattributed += usize::from(row["state"] == "accepted" && row["msg_id"] != msg_id(&row["id"]));
            tally.unexpected += usize::from(!list.contains(&phone) || rows.insert(phone, row).is_some());
        }
        tally.lost += list.iter().filter(|phone| !rows.contains_key(phone)).count();
        for Accepted { id, phone, request } in self.accepted() {
            let Some(row) = rows.get(&phone) else {
                tally.unexpected += 1;
                continue;
            };
            let request_id = &row["request_id"];
            let is_match = row["id"] == id.to_string() && (request_id.is_empty() || *request_id == request);
            tally.misattributed += usize::from(!is_match);
        }
        tally
    }

    /// Compares the results with the messages that arrived, using the judge in `tests/judge`.
    #[track_caller]
    fn judge(&self, sale: &Folder) {
        let journal = sale.path("witness.jsonl");
        let lines = self.memory.lock().expect("the memory").journal.iter().fold(String::new(), |mut lines, line| {
            lines += &line.to_string();
            lines.push('\n');
            lines
        });
        std::fs::write(&journal, lines).expect("a journal");
        judge_results(sale, &journal);
    }

    /// The phone numbers of the rows in doubt. Panics if a message to one of them arrived, since the gateway would
    /// confirm that message.
    pub(crate) fn doubts(&self, sale: &Folder) -> Vec<u64> {
        let (results, messages) = (sale.results(), self.messages());
        let doubts = results.rows.iter().filter(|row| row["state"] == "in_doubt");
        let doubts: Vec<u64> = doubts.map(|row| row["to"].parse().expect("a number")).collect();
        let arrived: Vec<_> = doubts.iter().filter(|phone| messages.contains_key(phone)).collect();
        assert!(arrived.is_empty(), "in doubt although the gateway confirms them: {arrived:?}");
        doubts
    }
}

impl Reachable for Witness {
    fn base_url(&self) -> String {
        self.gateway.base_url()
    }

    fn async_url(&self) -> String {
        self.gateway.async_url()
    }
}

impl Memory {
    /// Accepts or rejects the messages of a request. The synchronous answer repeats their identifiers. The asynchronous
    /// answer contains only the identifier of the request (contract 4.1 and 4.2).
    fn accept(&mut self, request: &Request) -> Value {
        if let Some(observer) = &mut self.observer {
            observer(request.phones());
        }
        let operations = request.operations();
        let name = format!("r-{}", operations.first().map_or(&Value::Null, |operation| &operation["id"]));
        self.requests += 1;
        let mut received = json!({ "event": "envelope", "at": "", "envelope": self.requests });
        if request.path() == "/v1/json" {
            received["request_id"] = name.clone().into();
        }
        self.journal.push(received);
        let items: Vec<Value> = operations.iter().map(|operation| self.accept_operation(operation, &name)).collect();
        match request.path() {
            "/v1/json" => json!({ "success": true, "request_id": name }),
            _ => json!({ "success": true, "data": items }),
        }
    }

    fn accept_operation(&mut self, operation: &Value, request: &str) -> Value {
        let number = |name: &str| operation[name].as_u64().expect("a number");
        let (id, phone) = (number("id"), number("phone"));
        let mut received = json!({ "event": "operation", "at": "", "envelope": self.requests, "id": id,
            "phone": phone.to_string(), "success": true, "msg_id": msg_id(&id.to_string()), "parts": 1 });
        if self.to_reject.remove(&phone) {
            self.rejected.push(phone);
            received["success"] = false.into();
            received["error"] = "No route".into();
            self.journal.push(received);
            return rejected(operation, "No route");
        }
        self.journal.push(received);
        self.accepted.push(Accepted { id, phone, request: request.to_owned() });
        self.ids.insert(id);
        json!({ "success": true, "data": { "id": id, "msg_id": msg_id(&id.to_string()), "parts": 1 } })
    }

    /// The status of a message (contract 2.5).
    fn status(&self, query: &Value) -> Value {
        match query["id"].as_u64().filter(|id| self.ids.contains(id)) {
            Some(id) => json!({ "success": true, "data": { "id": id.to_string(), "msg_id": msg_id(&id.to_string()),
                "type": "sms", "status": "ACCEPTED", "updated": "2026-11-21T10:00:00+02:00" } }),
            None => rejected(query, "Unknown message"),
        }
    }
}

/// The gateway's identifier for the message with this identifier.
fn msg_id(id: &str) -> String {
    format!("m-{id}")
}
