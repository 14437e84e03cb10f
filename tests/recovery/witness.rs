//! A gateway that remembers what it took and tells the truth when it is asked, and the six questions that its
//! memory puts to the results of a run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Gateway, Reachable, Request, rejected};

/// A gateway whose answers name the message that they are about, and that knows every message it ever took.
pub(crate) struct Witness {
    gateway: Gateway,
    memory: Arc<Mutex<Memory>>,
}

/// What arrived whole.
#[derive(Default)]
struct Memory {
    taken: Vec<Taken>,
    ids: HashSet<u64>,
    /// Numbers whose first message is refused.
    refusing: BTreeSet<u64>,
    refused: Vec<u64>,
    /// Looks at the numbers of each request when it has arrived, before anything of it is answered.
    onlooker: Option<Onlooker>,
}

/// Somebody who is shown the numbers of a request.
type Onlooker = Box<dyn FnMut(Vec<u64>) + Send>;

/// A message that was taken.
#[derive(Clone)]
struct Taken {
    id: u64,
    phone: u64,
    /// The name of its request.
    request: String,
}

/// How often a run said or did what is not so. All of them have to be zero.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Recipients without a row, or whose row came to no end.
    lost: usize,
    /// Numbers that got more than one operation.
    duplicated: usize,
    /// Rows said to be taken that never arrived.
    falsely_accepted: usize,
    /// Rows said not to be sent that arrived.
    falsely_not_sent: usize,
    /// Operations for nobody on the list, and rows that nobody asked for.
    unexpected: usize,
    /// Operations and answers that belong to another row than the one that has them.
    misattributed: usize,
}

impl Witness {
    /// One that takes everything.
    pub(crate) fn start() -> Self {
        Self::refusing([])
    }

    /// One that refuses the first message to each of these numbers, and takes everything else.
    pub(crate) fn refusing(phones: impl IntoIterator<Item = u64>) -> Self {
        let memory = Memory { refusing: phones.into_iter().collect(), ..Memory::default() };
        let memory = Arc::new(Mutex::new(memory));
        let (takes, tells) = (Arc::clone(&memory), Arc::clone(&memory));
        let gateway = Gateway::always(Answer::with(move |request| takes.lock().expect("the memory").take(request)))
            .with_statuses(move |question| tells.lock().expect("the memory").status(question));
        Self { gateway, memory }
    }

    /// Shows the numbers of each request to `onlooker` before anything of it is answered.
    pub(crate) fn show(&self, onlooker: impl FnMut(Vec<u64>) + Send + 'static) {
        self.memory.lock().expect("the memory").onlooker = Some(Box::new(onlooker));
    }

    /// The numbers whose messages were taken, in the order in which they came.
    pub(crate) fn phones(&self) -> Vec<u64> {
        self.taken().iter().map(|taken| taken.phone).collect()
    }

    /// How many messages were taken.
    pub(crate) fn arrived(&self) -> usize {
        self.memory.lock().expect("the memory").taken.len()
    }

    /// How many messages were refused.
    pub(crate) fn refused(&self) -> usize {
        self.memory.lock().expect("the memory").refused.len()
    }

    fn taken(&self) -> Vec<Taken> {
        self.memory.lock().expect("the memory").taken.clone()
    }

    /// How often each number got a message.
    pub(crate) fn messages(&self) -> BTreeMap<u64, usize> {
        self.phones().into_iter().fold(BTreeMap::new(), |mut messages, phone| {
            *messages.entry(phone).or_default() += 1;
            messages
        })
    }

    /// Compares what arrived with what the results say of the people on the list.
    pub(crate) fn tally(&self, sale: &Folder, list: impl IntoIterator<Item = u64>) -> Tally {
        let results = sale.results();
        let list: BTreeSet<u64> = list.into_iter().collect();
        let messages = self.messages();
        let mut tally = Tally { duplicated: messages.values().filter(|&&times| times > 1).count(), ..Tally::default() };
        let mut rows = BTreeMap::new();
        for row in &results.rows {
            let phone: u64 = row["to"].parse().expect("a number");
            let arrived = messages.contains_key(&phone);
            match row["state"].as_str() {
                "accepted" | "queued" => tally.falsely_accepted += usize::from(!arrived),
                "rejected" | "not_sent" | "skipped" | "invalid" => tally.falsely_not_sent += usize::from(arrived),
                "in_doubt" => {}
                "planned" | "sending" => tally.lost += 1,
                _ => tally.unexpected += 1,
            }
            tally.misattributed += usize::from(row["state"] == "accepted" && row["msg_id"] != msg_id(&row["id"]));
            tally.unexpected += usize::from(!list.contains(&phone) || rows.insert(phone, row).is_some());
        }
        tally.lost += list.iter().filter(|phone| !rows.contains_key(phone)).count();
        for Taken { id, phone, request } in self.taken() {
            let Some(row) = rows.get(&phone) else {
                tally.unexpected += 1;
                continue;
            };
            let answer = &row["request_id"];
            let ours = row["id"] == id.to_string() && (answer.is_empty() || *answer == request);
            tally.misattributed += usize::from(!ours);
        }
        tally
    }

    /// The rows in doubt; fails if one of them arrived, since the gateway tells of those.
    pub(crate) fn doubts(&self, sale: &Folder) -> Vec<u64> {
        let (results, messages) = (sale.results(), self.messages());
        let doubts = results.rows.iter().filter(|row| row["state"] == "in_doubt");
        let doubts: Vec<u64> = doubts.map(|row| row["to"].parse().expect("a number")).collect();
        let arrived: Vec<_> = doubts.iter().filter(|phone| messages.contains_key(phone)).collect();
        assert!(arrived.is_empty(), "in doubt although the gateway would tell: {arrived:?}");
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
    /// Takes the messages of a request; the answer names them again (contract 4.1 and 4.2).
    fn take(&mut self, request: &Request) -> Value {
        if let Some(onlooker) = &mut self.onlooker {
            onlooker(request.phones());
        }
        let operations = request.operations();
        let name = format!("r-{}", operations.first().map_or(&Value::Null, |operation| &operation["id"]));
        let items: Vec<Value> = operations.iter().map(|operation| self.take_one(operation, &name)).collect();
        match request.path() {
            "/v1/json" => json!({ "success": true, "request_id": name }),
            _ => json!({ "success": true, "data": items }),
        }
    }

    fn take_one(&mut self, operation: &Value, request: &str) -> Value {
        let number = |name: &str| operation[name].as_u64().expect("a number");
        let (id, phone) = (number("id"), number("phone"));
        if self.refusing.remove(&phone) {
            self.refused.push(phone);
            return rejected(operation, "No route");
        }
        self.taken.push(Taken { id, phone, request: request.to_owned() });
        self.ids.insert(id);
        json!({ "success": true, "data": { "id": id, "msg_id": msg_id(&id.to_string()), "parts": 1 } })
    }

    /// What is known of a message (contract 2.5).
    fn status(&self, question: &Value) -> Value {
        match question["id"].as_u64().filter(|id| self.ids.contains(id)) {
            Some(id) => json!({ "success": true, "data": { "id": id.to_string(), "msg_id": msg_id(&id.to_string()),
                "type": "sms", "status": "ACCEPTED", "updated": "2026-11-21T10:00:00+02:00" } }),
            None => rejected(question, "Unknown message"),
        }
    }
}

/// The name that the gateway gives to the message with this identifier.
fn msg_id(id: &str) -> String {
    format!("m-{id}")
}
