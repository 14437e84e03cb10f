//! For tests: a platform with its journal in memory, at a clock that stands until it is moved.

use std::net::SocketAddr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::envelope::{self, Request};
use super::journal::{Journal, Sink};
use super::platform::{Arrival, Platform};
use crate::domain::Endpoint;

/// A platform without HTTP around it; its key is `sandbox`.
pub(super) struct Desk {
    pub platform: Platform,
    pub now: Timestamp,
    sink: Sink,
}

impl Desk {
    pub(super) fn new() -> Self {
        let sink = Sink::open(&Journal::Memory).expect("memory");
        Self { platform: Platform::default(), now: Timestamp::UNIX_EPOCH, sink }
    }

    /// The answer to a body.
    pub(super) fn post(&mut self, endpoint: Endpoint, body: &[u8]) -> Value {
        let request = Request { content_type: Some("application/json"), body: Some(body) };
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let arrival = Arrival { endpoint, remote, at: self.now };
        let mut lines = self.sink.lines().expect("whole");
        let answer = self.platform.handle(arrival, envelope::read(request, "sandbox"), &mut lines);
        assert!(self.sink.write(&lines));
        serde_json::from_slice(&answer.to_json()).expect("JSON")
    }

    /// The answer to an envelope of these operations.
    pub(super) fn ask(&mut self, endpoint: Endpoint, data: &Value) -> Value {
        self.post(endpoint, json!({"auth": "sandbox", "data": data}).to_string().as_bytes())
    }

    /// The lines of the journal so far.
    pub(super) fn journal(&self) -> Vec<Value> {
        self.sink.remembered().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}
