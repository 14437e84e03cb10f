//! The connector for AI assistants (MCP server): protocol, tools, safeguards against unwanted sending, and limits.

mod approvals;
mod arguments;
mod calls;
mod campaigns;
mod clients;
mod entries;
mod follow_up;
mod hostile;
mod http_access;
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

/// Command and options that every connector over HTTP starts with.
const LISTEN: [&str; 4] = ["connector", "--listen", "127.0.0.1:0", "--json"];

/// The maximum wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A listening `campaign connector` for one gateway. Dropping this value kills the process.
struct Connector {
    process: Process,
    folder: Folder,
    address: String,
}

/// Creates a folder with a profile of this gateway. `key` is the source of its API key.
fn folder_with_profile(gateway: &impl Reachable, key: &str) -> Folder {
    let folder = Folder::new(false);
    let (base, asynchronous) = (gateway.base_url(), gateway.async_url());
    let profile =
        format!("local:\n  base_url: {base}\n  async_url: {asynchronous}\n  api_key: {{ {key} }}\n  rate: unlimited\n");
    folder.write("gateways.yaml", &profile);
    folder
}

#[derive(Debug)]
struct HttpAnswer {
    status: u16,
    head: String,
    body: String,
}

impl HttpAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Connector {
    /// Starts a connector to this gateway. Its environment has no key: the key comes with each call.
    fn for_gateway(gateway: &impl Reachable) -> Self {
        Self::start(gateway, &[])
    }

    fn start(gateway: &impl Reachable, arguments: &[&str]) -> Self {
        Self::start_in(folder_with_profile(gateway, "env: NOBODY_HAS_IT"), arguments)
    }

    /// Starts a connector in a folder with a profile.
    fn start_in(folder: Folder, arguments: &[&str]) -> Self {
        let command = folder.command(&[&LISTEN, arguments].concat());
        Self::spawn(command, folder)
    }

    /// Starts a connector with this command in a folder.
    fn spawn(mut command: Command, folder: Folder) -> Self {
        command.env_remove(KEY_VARIABLE);
        let mut process = Process::start(command);
        until("the connector listens", || {
            assert!(process.is_running(), "{}{}", process.stdout(), process.stderr());
            process.stdout().ends_with('\n')
        });
        let listening: Value = serde_json::from_str(&process.stdout()).expect("one JSON object");
        let address =
            listening["url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address").to_owned();
        Self { process, folder, address }
    }

    /// Stops the connector and starts another one in the same folder.
    fn restart(self, arguments: &[&str]) -> Self {
        let (ended, folder) = self.finish_with_folder();
        ended.exits(0);
        Self::start_in(folder, arguments)
    }

    /// Stops the connector with SIGTERM.
    fn finish(self) -> Finished {
        self.finish_with_folder().0
    }

    /// Stops the connector with SIGTERM. Returns its output and its folder.
    fn finish_with_folder(mut self) -> (Finished, Folder) {
        self.process.signal("TERM");
        (self.process.finish(), self.folder)
    }

    /// Sends a request and returns the answer.
    fn ask(&self, line: &str, headers: &[(&str, &str)], body: &str) -> HttpAnswer {
        let mut stream = self.write(line, headers, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        HttpAnswer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Writes a request without reading its answer.
    fn write(&self, line: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
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

    /// Posts a message with the required headers and `headers`, which take precedence. Returns the answer.
    fn post(&self, headers: &[(&str, &str)], message: &str) -> HttpAnswer {
        let bearer = bearer();
        let required = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
        let required = required.into_iter().filter(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        self.ask("POST /mcp", &required.chain(headers.iter().copied()).collect::<Vec<_>>(), message)
    }

    /// Posts a message and closes the connection as soon as `is_done` holds.
    fn post_and_hang_up(&self, message: &str, is_done: impl Fn() -> bool) {
        let headers = [("Content-Type", "application/json"), ("Authorization", &bearer())];
        let stream = self.write("POST /mcp", &headers, message);
        until("the request has an effect", is_done);
        stream.shutdown(Shutdown::Both).expect("closed");
        // The connector handles the closed connection before it answers the next client.
        self.ask("GET /health", &[], "");
    }

    /// Calls a tool without a handshake and returns the result.
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.post(&[], &tool_call(tool, arguments));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["result"].clone()
    }

    /// Calls a tool in one of the protocol revisions. The last index is the revision without a handshake.
    fn call_in_revision(&self, revision: usize, tool: &str, arguments: &Value) -> Value {
        let mut call: Value = serde_json::from_str(&tool_call(tool, arguments)).expect("a message");
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

/// Protocol revisions with a handshake.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

fn bearer() -> String {
    format!("Bearer {KEY}")
}

/// Builds a tool call without a handshake, as the contract shows it.
fn tool_call(tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// Parses the JSON document in the only text of a result.
fn parse_result(result: &Value) -> Value {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("a JSON document")
}
