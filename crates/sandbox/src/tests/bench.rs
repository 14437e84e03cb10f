//! A test bench: a platform with its journal in memory and a clock that only the test advances.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::journal::{Journal, JournalSink};
use crate::platform::{EnvelopeArrival, GatewayEmulator};
use crate::request;
use crate::request::{AccountKeys, RawRequest};
use crate::scenario::Scenario;
use crate::webhooks::WebhookOutcome;
use campaign_core::domain::Endpoint;

/// A platform without HTTP; its key is `sandbox`.
pub(crate) struct Bench {
    pub(crate) platform: GatewayEmulator,
    pub(crate) now: Timestamp,
    keys: AccountKeys,
    sink: JournalSink,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_scenario(Scenario::default())
    }

    /// A platform for a scenario.
    pub(crate) fn with_scenario(scenario: Scenario) -> Self {
        let sink = JournalSink::open(&Journal::Memory).expect("memory");
        let keys = AccountKeys::for_scenario(&scenario, &"sandbox".into());
        Self { platform: GatewayEmulator::new(Arc::new(scenario)), now: Timestamp::UNIX_EPOCH, keys, sink }
    }

    /// Posts a body to an endpoint and returns the answer.
    pub(crate) fn post(&mut self, endpoint: Endpoint, body: &[u8]) -> Value {
        let request = RawRequest { content_type: Some("application/json"), body: Some(body) };
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let arrival = EnvelopeArrival { endpoint, remote, at: self.now };
        let mut lines = self.sink.start_lines().expect("whole");
        let plan = self.platform.handle_envelope(arrival, request::parse_envelope(request, &self.keys), &mut lines);
        assert!(self.sink.write_lines(&lines));
        serde_json::from_slice(&plan.answer.to_json()).expect("JSON")
    }

    /// Sends an envelope with these operations and returns the answer.
    pub(crate) fn send(&mut self, endpoint: Endpoint, data: &Value) -> Value {
        self.send_as("sandbox", endpoint, data)
    }

    /// Sends an envelope with this key and returns the answer.
    pub(crate) fn send_as(&mut self, key: &str, endpoint: Endpoint, data: &Value) -> Value {
        self.post(endpoint, json!({"auth": key, "data": data}).to_string().as_bytes())
    }

    /// Sends one operation to the synchronous endpoint and returns its result.
    pub(crate) fn send_one(&mut self, operation: &Value) -> Value {
        self.send(Endpoint::Sync, &json!([operation]))["data"][0].clone()
    }

    /// Queries the status of the message with this identifier.
    pub(crate) fn status(&mut self, id: u64) -> Value {
        self.send_one(&json!({"type": "status", "id": id}))["data"].clone()
    }

    /// Advances the clock and the platform.
    pub(crate) fn advance_millis(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        let mut lines = self.sink.start_lines().expect("whole");
        assert!(!self.platform.advance(self.now, usize::MAX, &mut lines));
        assert!(self.sink.write_lines(&lines));
    }

    /// Takes the due webhooks, each with its number, address and payload.
    pub(crate) fn take_webhooks(&mut self) -> Vec<(u64, String, Value)> {
        self.take_webhooks_up_to(usize::MAX)
    }

    /// Takes at most `max` due webhooks.
    pub(crate) fn take_webhooks_up_to(&mut self, max: usize) -> Vec<(u64, String, Value)> {
        let posts = self.platform.take_due_posts(max).into_iter();
        posts
            .map(|post| (post.webhook, post.url.to_string(), serde_json::from_slice(&post.body).expect("JSON")))
            .collect()
    }

    /// Takes and acknowledges all due webhooks until none is left. Returns their addresses and payloads.
    pub(crate) fn take_received(&mut self) -> Vec<(String, Value)> {
        let mut received = Vec::new();
        loop {
            let round = self.take_webhooks();
            if round.is_empty() {
                return received;
            }
            for (number, url, body) in round {
                self.finish_webhook(number, WebhookOutcome::Answered(200));
                received.push((url, body));
            }
        }
    }

    /// Reports the result of a webhook to the platform.
    pub(crate) fn finish_webhook(&mut self, webhook: u64, outcome: WebhookOutcome) {
        let mut lines = self.sink.start_lines().expect("whole");
        self.platform.record_outcome(webhook, outcome, self.now, &mut lines);
        assert!(self.sink.write_lines(&lines));
    }

    /// The lines of the journal so far.
    pub(crate) fn journal_lines(&self) -> Vec<Value> {
        self.sink.memory_text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The lines of the journal for one kind of event.
    pub(crate) fn journal_events(&self, event: &str) -> Vec<Value> {
        self.journal_lines().into_iter().filter(|line| line["event"] == event).collect()
    }
}
