//! An in-process sandbox with a minimal HTTP and JSON client.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use campaign_sandbox::{Counts, Journal, Sandbox, SandboxSettings, Scenario};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{KEY, until};

/// The path of the synchronous endpoint (contract 4.1).
pub(super) const SYNC: &str = "/api/json.php";
/// The path of the asynchronous endpoint (contract 4.2).
pub(super) const ASYNC: &str = "/v1/json";
/// The required header of every request (contract 4.1).
pub(super) const JSON: &str = "Content-Type: application/json";

/// A running sandbox, which is stopped on drop.
pub(super) struct TestSandbox {
    runtime: Runtime,
    sandbox: Sandbox,
}

/// An HTTP answer.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl HttpAnswer {
    pub(super) fn json(&self) -> Value {
        let text = || String::from_utf8_lossy(&self.body).into_owned();
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("invalid JSON ({error}): {}", text()))
    }
}

impl TestSandbox {
    /// Starts a sandbox with the default scenario, 200 times faster.
    pub(super) fn start() -> Self {
        Self::start_with(Scenario::default())
    }

    /// Starts a sandbox with this scenario, 200 times faster.
    pub(super) fn start_with(scenario: Scenario) -> Self {
        Self::start_at_own_speed(Scenario { speed: 200, ..scenario })
    }

    /// Starts a sandbox with this scenario at the speed that the scenario sets.
    pub(super) fn start_at_own_speed(scenario: Scenario) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let scenario = Arc::new(scenario);
        let settings = SandboxSettings {
            key: SecretString::from(KEY),
            journal: Journal::Memory,
            scenario,
            ..SandboxSettings::default()
        };
        let sandbox = runtime.block_on(Sandbox::start(settings)).expect("a sandbox");
        assert_eq!(sandbox.key().expose_secret(), KEY);
        Self { runtime, sandbox }
    }

    /// Posts a body and returns the answer.
    pub(super) fn post(&self, path: &str, headers: &[&str], body: &[u8]) -> HttpAnswer {
        post(&self.sandbox.base_url(), path, headers, body)
    }

    /// The answer to an envelope. Its HTTP status must be 200 (contract 7).
    pub(super) fn envelope(&self, path: &str, envelope: &Value) -> Value {
        let answer = self.post(path, &[JSON], envelope.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The result items of these operations on the synchronous endpoint.
    pub(super) fn items(&self, operations: &[Value]) -> Vec<Value> {
        let answer = self.envelope(SYNC, &envelope(operations));
        assert_eq!(answer["success"], true, "{answer}");
        let items = answer["data"].as_array().expect("items").clone();
        assert_eq!(items.len(), operations.len(), "{answer}");
        items
    }

    /// The result item of an operation on the synchronous endpoint.
    pub(super) fn item(&self, operation: &Value) -> Value {
        self.items(std::slice::from_ref(operation)).remove(0)
    }

    /// The member `data` of the item of a successful operation.
    pub(super) fn payload(&self, operation: &Value) -> Value {
        let item = self.item(operation);
        assert_eq!(item["success"], true, "{operation}\n{item}");
        item["data"].clone()
    }

    /// Sends operations to the asynchronous endpoint, and returns the identifier of the request.
    pub(super) fn queue(&self, operations: &[Value]) -> String {
        let answer = self.envelope(ASYNC, &envelope(operations));
        assert_eq!(answer["success"], true, "{answer}");
        answer["request_id"].as_str().expect("a string").to_owned()
    }

    /// The balance of the account in millionths of its currency.
    pub(super) fn balance(&self) -> i64 {
        millionths(&self.payload(&json!({"type": "balance"}))["amount"])
    }

    /// Waits until a message has this status, and returns the record of the message.
    pub(super) fn wait_for(&self, id: u64, status: &str) -> Value {
        let mut record = Value::Null;
        until(&format!("message {id} is {status}"), || {
            record = self.payload(&json!({"type": "status", "id": id}));
            record["status"] == status
        });
        record
    }

    /// Runs the scenario until no events are left.
    pub(super) fn drain(&self) -> Counts {
        self.runtime.block_on(self.sandbox.drain())
    }

    /// The counters of the sandbox so far: envelopes, operations, messages and statuses.
    pub(super) fn counts(&self) -> Counts {
        self.sandbox.counts()
    }

    /// The journal lines of this event.
    pub(super) fn journal(&self, event: &str) -> Vec<Value> {
        let lines = self.sandbox.journal();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.filter(|line| line["event"] == event).collect()
    }
}

/// Posts a body to an address and returns the answer.
pub(super) fn post(address: &str, path: &str, headers: &[&str], body: &[u8]) -> HttpAnswer {
    let address = address.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a response head");
    let status = String::from_utf8_lossy(&answer[..end]).split(' ').nth(1).and_then(|status| status.parse().ok());
    HttpAnswer { status: status.expect("an HTTP status"), body: answer.split_off(end + 4) }
}

/// An amount in millionths.
pub(super) fn millionths(amount: &Value) -> i64 {
    let amount = amount.as_f64().unwrap_or_else(|| panic!("{amount} is not an amount"));
    (amount * 1e6).round() as i64
}

/// An envelope of these operations (contract 2.1).
pub(super) fn envelope(operations: &[Value]) -> Value {
    json!({ "auth": KEY, "data": operations })
}
