//! The connector for AI assistants: what a client of the protocol gets, and what never happens.

mod calls;
mod clients;
mod door;
mod entries;
mod protocol;
mod stdio;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Finished, Folder, KEY, Process, Reachable, until};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// `campaign connector` to a gateway, listening; dropped, it is killed.
struct Connector {
    process: Process,
    folder: Folder,
    address: String,
}

/// An answer over HTTP.
#[derive(Debug)]
struct Heard {
    status: u16,
    head: String,
    body: String,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Connector {
    /// Starts one to this gateway. The key is not in its environment: it comes with each call.
    fn to(gateway: &impl Reachable) -> Self {
        Self::start(gateway, &[])
    }

    fn start(gateway: &impl Reachable, arguments: &[&str]) -> Self {
        let folder = Folder::new(false);
        let profile = format!(
            "local:\n  base_url: {}\n  async_url: {}\n  api_key: {{ env: NOBODY_HAS_IT }}\n  rate: unlimited\n",
            gateway.base_url(),
            gateway.async_url()
        );
        folder.write("gateways.yaml", &profile);
        let arguments = [&["connector", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        let mut process = Process::start(folder.command(&arguments));
        until("the connector listens", || {
            assert!(process.is_running(), "{}{}", process.stdout(), process.stderr());
            process.stdout().ends_with('\n')
        });
        let told: Value = serde_json::from_str(&process.stdout()).expect("one JSON object");
        let address = told["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address").to_owned();
        Self { process, folder, address }
    }

    /// Ends it by SIGTERM.
    fn end(mut self) -> Finished {
        self.process.signal("TERM");
        self.process.finish()
    }

    /// What is answered to a request.
    fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Heard {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut request = format!("{line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Heard { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// What is answered to a message, with these headers besides those that it needs.
    fn post(&self, headers: &[(&str, &str)], message: &str) -> Heard {
        let bearer = format!("Bearer {KEY}");
        let usual = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
        let usual = usual.into_iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given == name));
        self.ask("POST /mcp", &usual.chain(headers.iter().copied()).collect::<Vec<_>>(), message)
    }

    /// The result of a bare call of a tool, as the contract shows it.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
        let heard = self.post(&[], &call.to_string());
        assert_eq!(heard.status, 200, "{heard:?}");
        heard.json()["result"].clone()
    }
}

/// The document in the one text of a result.
fn told(result: &Value) -> Value {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("a JSON document")
}
