//! For tests: a platform with its journal in memory, at a clock that stands until it is moved.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::domain::Endpoint;
use crate::sandbox::journal::{Journal, Sink};
use crate::sandbox::platform::{Arrival, Platform};
use crate::sandbox::request::{Keys, Request, envelope};
use crate::sandbox::scenario::Scenario;
use crate::sandbox::webhooks::PostOutcome;

/// A platform without HTTP around it; its key is `sandbox`.
pub(crate) struct Bench {
    pub platform: Platform,
    pub now: Timestamp,
    keys: Keys,
    sink: Sink,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::playing(Scenario::default())
    }

    /// A platform that plays a scenario.
    pub(crate) fn playing(scenario: Scenario) -> Self {
        let sink = Sink::open(&Journal::Memory).expect("memory");
        let keys = Keys::of(&scenario, &"sandbox".into());
        Self { platform: Platform::new(Arc::new(scenario)), now: Timestamp::UNIX_EPOCH, keys, sink }
    }

    /// The answer to a body.
    pub(crate) fn post(&mut self, endpoint: Endpoint, body: &[u8]) -> Value {
        let request = Request { content_type: Some("application/json"), body: Some(body) };
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let arrival = Arrival { endpoint, remote, at: self.now };
        let mut lines = self.sink.lines().expect("whole");
        let reaction = self.platform.handle(arrival, envelope::read(request, &self.keys), &mut lines);
        assert!(self.sink.write(&lines));
        serde_json::from_slice(&reaction.answer.to_json()).expect("JSON")
    }

    /// The answer to an envelope of these operations.
    pub(crate) fn ask(&mut self, endpoint: Endpoint, data: &Value) -> Value {
        self.ask_as("sandbox", endpoint, data)
    }

    /// The answer to an envelope with that key.
    pub(crate) fn ask_as(&mut self, key: &str, endpoint: Endpoint, data: &Value) -> Value {
        self.post(endpoint, json!({"auth": key, "data": data}).to_string().as_bytes())
    }

    /// The result of one operation, on the synchronous endpoint.
    pub(crate) fn one(&mut self, operation: &Value) -> Value {
        self.ask(Endpoint::Sync, &json!([operation]))["data"][0].clone()
    }

    /// The status of the message with that identifier.
    pub(crate) fn status(&mut self, id: u64) -> Value {
        self.one(&json!({"type": "status", "id": id}))["data"].clone()
    }

    /// Lets so many milliseconds pass.
    pub(crate) fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        let mut lines = self.sink.lines().expect("whole");
        assert!(!self.platform.advance(self.now, usize::MAX, &mut lines));
        assert!(self.sink.write(&lines));
    }

    /// The webhooks that are due, each with its number, address and payload.
    pub(crate) fn webhooks(&mut self) -> Vec<(u64, String, Value)> {
        self.webhooks_for(usize::MAX)
    }

    /// Those of them for which there is room.
    pub(crate) fn webhooks_for(&mut self, room: usize) -> Vec<(u64, String, Value)> {
        let posts = self.platform.due_posts(room).into_iter();
        posts
            .map(|post| (post.webhook, post.url.to_string(), serde_json::from_slice(&post.body).expect("JSON")))
            .collect()
    }

    /// The addresses and payloads of all webhooks that are due, each acknowledged before the next are taken.
    pub(crate) fn received(&mut self) -> Vec<(String, Value)> {
        let mut received = Vec::new();
        loop {
            let round = self.webhooks();
            if round.is_empty() {
                return received;
            }
            for (number, url, body) in round {
                self.posted(number, PostOutcome::Answered(200));
                received.push((url, body));
            }
        }
    }

    /// Tells the platform how a webhook was received.
    pub(crate) fn posted(&mut self, webhook: u64, outcome: PostOutcome) {
        let mut lines = self.sink.lines().expect("whole");
        self.platform.posted(webhook, outcome, self.now, &mut lines);
        assert!(self.sink.write(&lines));
    }

    /// The lines of the journal so far.
    pub(crate) fn journal(&self) -> Vec<Value> {
        self.sink.remembered().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The lines of the journal about one sort of event.
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        self.journal().into_iter().filter(|line| line["event"] == event).collect()
    }
}
