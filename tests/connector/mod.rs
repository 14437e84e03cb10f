//! The connector for AI assistants: what a client of the protocol gets, and what never happens.

mod afterwards;
mod approvals;
mod arguments;
mod calls;
mod campaigns;
mod clients;
mod door;
mod entries;
mod hostile;
mod keys;
mod lookups;
mod paths;
mod policy;
mod previews;
mod programs;
mod protocol;
mod repeats;
mod runs;
mod schemas;
mod secrets;
mod sends;
mod stdio;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Finished, Folder, KEY, KEY_VARIABLE, Process, Reachable, until};

/// The command and its options that every connector starts with.
const LISTEN: [&str; 4] = ["connector", "--listen", "127.0.0.1:0", "--json"];

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// `campaign connector` to a gateway, listening; dropped, it is killed.
struct Connector {
    process: Process,
    folder: Folder,
    address: String,
}

/// A folder with a profile of this gateway, which has its key from here.
fn folder_of(gateway: &impl Reachable, key: &str) -> Folder {
    let folder = Folder::new(false);
    let (base, asynchronous) = (gateway.base_url(), gateway.async_url());
    let profile =
        format!("local:\n  base_url: {base}\n  async_url: {asynchronous}\n  api_key: {{ {key} }}\n  rate: unlimited\n");
    folder.write("gateways.yaml", &profile);
    folder
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
        Self::within(folder_of(gateway, "env: NOBODY_HAS_IT"), arguments)
    }

    /// Starts one in a folder with a profile.
    fn within(folder: Folder, arguments: &[&str]) -> Self {
        let command = folder.command(&[&LISTEN, arguments].concat());
        Self::by(command, folder)
    }

    /// Starts one by this command of a folder.
    fn by(mut command: Command, folder: Folder) -> Self {
        command.env_remove(KEY_VARIABLE);
        let mut process = Process::start(command);
        until("the connector listens", || {
            assert!(process.is_running(), "{}{}", process.stdout(), process.stderr());
            process.stdout().ends_with('\n')
        });
        let told: Value = serde_json::from_str(&process.stdout()).expect("one JSON object");
        let address = told["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address").to_owned();
        Self { process, folder, address }
    }

    /// Another one in its folder, once it has ended.
    fn restarted(self, arguments: &[&str]) -> Self {
        let (ended, folder) = self.ended();
        ended.exits(0);
        Self::within(folder, arguments)
    }

    /// Ends it by SIGTERM.
    fn end(self) -> Finished {
        self.ended().0
    }

    /// What it said until it was ended by SIGTERM, and its folder.
    fn ended(mut self) -> (Finished, Folder) {
        self.process.signal("TERM");
        (self.process.finish(), self.folder)
    }

    /// What is answered to a request.
    fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Heard {
        let mut stream = self.write(line, headers, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Heard { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Writes a request, and leaves its answer to be read.
    fn write(&self, line: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
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
        stream
    }

    /// What is answered to a message, with these headers besides those that it needs.
    fn post(&self, headers: &[(&str, &str)], message: &str) -> Heard {
        let bearer = bearer();
        let usual = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
        let usual = usual.into_iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given == name));
        self.ask("POST /mcp", &usual.chain(headers.iter().copied()).collect::<Vec<_>>(), message)
    }

    /// Sends a message, and leaves once something has come of it.
    fn post_and_hang_up(&self, message: &str, came: impl Fn() -> bool) {
        let headers = [("Content-Type", "application/json"), ("Authorization", &bearer())];
        let stream = self.write("POST /mcp", &headers, message);
        until("something comes of it", came);
        stream.shutdown(Shutdown::Both).expect("hung up");
        // Whatever the connector does with a client that is gone, it did before it answers the next one.
        self.ask("GET /health", &[], "");
    }

    /// The result of a bare call of a tool, as the contract shows it.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let heard = self.post(&[], &bare(tool, arguments));
        assert_eq!(heard.status, 200, "{heard:?}");
        heard.json()["result"].clone()
    }

    /// What is answered to a call by one of the revisions, the last the one without a handshake.
    fn call_in(&self, revision: usize, tool: &str, arguments: &Value) -> Value {
        let mut call: Value = serde_json::from_str(&bare(tool, arguments)).expect("a message");
        let headers = match REVISIONS.get(revision) {
            Some(version) => vec![("MCP-Protocol-Version", *version)],
            None => {
                call["params"]["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
                vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)]
            }
        };
        self.post(&headers, &call.to_string()).json()
    }
}

/// The revisions with a handshake.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

fn bearer() -> String {
    format!("Bearer {KEY}")
}

/// A bare call of a tool, as the contract shows it.
fn bare(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The document in the one text of a result.
fn told(result: &Value) -> Value {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("a JSON document")
}
