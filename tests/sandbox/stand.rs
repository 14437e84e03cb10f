//! A sandbox inside this process and a client that knows HTTP and JSON, no more.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use campaign::sandbox::{Counts, Journal, Sandbox, SandboxSettings, Scenario};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::{KEY, until};

/// The path of the synchronous endpoint (contract 4.1).
pub(super) const SYNC: &str = "/api/json.php";
/// The path of the asynchronous endpoint (contract 4.2).
pub(super) const ASYNC: &str = "/v1/json";
/// What every request has to say of its body (contract 4.1).
pub(super) const JSON: &str = "Content-Type: application/json";

/// A running sandbox; dropped, it stops.
pub(super) struct Stand {
    runtime: Runtime,
    sandbox: Sandbox,
}

/// An answer as it came over the wire.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Heard {
    pub(super) fn json(&self) -> Value {
        let text = || String::from_utf8_lossy(&self.body).into_owned();
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {}", text()))
    }
}

impl Stand {
    /// One that plays nothing special, in which two seconds pass in the wink of an eye.
    pub(super) fn new() -> Self {
        Self::playing(Scenario::default())
    }

    /// One that plays this scenario, faster.
    pub(super) fn playing(scenario: Scenario) -> Self {
        Self::playing_slowly(Scenario { speed: 200, ..scenario })
    }

    /// One that plays this scenario as it is.
    pub(super) fn playing_slowly(scenario: Scenario) -> Self {
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

    /// The answer to whatever is posted.
    pub(super) fn post(&self, path: &str, headers: &[&str], body: &[u8]) -> Heard {
        post(&self.sandbox.base_url(), path, headers, body)
    }

    /// The answer to an envelope, which always has HTTP status 200 (contract 7).
    pub(super) fn envelope(&self, path: &str, envelope: &Value) -> Value {
        let heard = self.post(path, &[JSON], envelope.to_string().as_bytes());
        assert_eq!(heard.status, 200, "{heard:?}");
        heard.json()
    }

    /// The items that the synchronous endpoint answers to these operations.
    pub(super) fn items(&self, operations: &[Value]) -> Vec<Value> {
        let answer = self.envelope(SYNC, &envelope(operations));
        assert_eq!(answer["success"], true, "{answer}");
        let items = answer["data"].as_array().expect("items").clone();
        assert_eq!(items.len(), operations.len(), "{answer}");
        items
    }

    /// The item that the synchronous endpoint answers to an operation.
    pub(super) fn item(&self, operation: &Value) -> Value {
        self.items(std::slice::from_ref(operation)).remove(0)
    }

    /// What the synchronous endpoint answers to an operation that succeeds.
    pub(super) fn payload(&self, operation: &Value) -> Value {
        let item = self.item(operation);
        assert_eq!(item["success"], true, "{operation}\n{item}");
        item["data"].clone()
    }

    /// The identifier of the request that the asynchronous endpoint took.
    pub(super) fn queue(&self, operations: &[Value]) -> String {
        let answer = self.envelope(ASYNC, &envelope(operations));
        assert_eq!(answer["success"], true, "{answer}");
        answer["request_id"].as_str().expect("a string").to_owned()
    }

    /// What the account has, in millionths.
    pub(super) fn balance(&self) -> i64 {
        millionths(&self.payload(&json!({"type": "balance"}))["amount"])
    }

    /// Waits until `status` tells this of a message.
    pub(super) fn wait_for(&self, id: u64, status: &str) -> Value {
        let mut record = Value::Null;
        until(&format!("message {id} is {status}"), || {
            record = self.payload(&json!({"type": "status", "id": id}));
            record["status"] == status
        });
        record
    }

    /// Lets everything happen that will happen.
    pub(super) fn run_out(&self) -> Counts {
        self.runtime.block_on(self.sandbox.drain())
    }

    /// What it took and refused so far.
    pub(super) fn counts(&self) -> Counts {
        self.sandbox.counts()
    }

    /// The lines of its journal that tell of this event.
    pub(super) fn journal(&self, event: &str) -> Vec<Value> {
        let lines = self.sandbox.journal();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
        lines.filter(|line| line["event"] == event).collect()
    }
}

/// The answer to whatever is posted to an address.
pub(super) fn post(address: &str, path: &str, headers: &[&str], body: &[u8]) -> Heard {
    let address = address.strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: a\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let status = String::from_utf8_lossy(&answer[..end]).split(' ').nth(1).and_then(|status| status.parse().ok());
    Heard { status: status.expect("an HTTP status"), body: answer.split_off(end + 4) }
}

/// An amount in millionths.
pub(super) fn millionths(amount: &Value) -> i64 {
    let amount = amount.as_f64().unwrap_or_else(|| panic!("{amount} is no amount"));
    (amount * 1e6).round() as i64
}

/// An envelope of these operations (contract 2.1).
pub(super) fn envelope(operations: &[Value]) -> Value {
    json!({ "auth": KEY, "data": operations })
}
