//! The connector over standard input and output (stdio), for programs that start it themselves.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::{Value, json};

use super::{PATIENCE, folder_with_profile, parse_result};
use crate::support::{Answer, Finished, Folder, Gateway, KEY, KEY_VARIABLE, Process, Reachable, SandboxProcess, until};

/// A connector that its client started. Dropping this value kills the process.
pub(super) struct Conversation {
    process: Process,
    input: Option<File>,
    answers: Receiver<String>,
    folder: Folder,
}

impl Conversation {
    pub(super) fn start(gateway: &impl Reachable) -> Self {
        Self::start_in(folder_with_profile(gateway, &format!("env: {KEY_VARIABLE}")), &["-vvv"])
    }

    pub(super) fn start_in(folder: Folder, arguments: &[&str]) -> Self {
        let (stdin, input) = std::io::pipe().expect("a pipe");
        let (output, stdout) = std::io::pipe().expect("a pipe");
        let stderr = File::create(folder.path("stderr")).expect("a file");
        let file = |end: OwnedFd| File::from(end);
        let command = folder.command(&[&["connector", "--stdio"], arguments].concat());
        let process = Process::start_on(command, [file(stdin.into()), file(stdout.into()), stderr]);
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let _ = sender.send(line.expect("a line"));
            }
        });
        Self { process, input: Some(file(input.into())), answers, folder }
    }

    fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(format!("{line}\n").as_bytes()).expect("an open pipe");
    }

    fn read_answer(&self) -> Value {
        let line = self.answers.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    pub(super) fn ask(&mut self, message: &Value) -> Value {
        self.ask_raw(&message.to_string())
    }

    /// Sends a line as it is and returns the answer.
    pub(super) fn ask_raw(&mut self, line: &str) -> Value {
        self.send_line(line);
        self.read_answer()
    }

    /// Closes the input and waits until the connector ends.
    pub(super) fn finish(self) -> Finished {
        self.finish_with_folder().0
    }

    /// Closes the input and waits for the end. Returns the output and the folder.
    pub(super) fn finish_with_folder(mut self) -> (Finished, Folder) {
        drop(self.input.take());
        let ended = self.process.finish();
        assert_eq!(self.answers.recv(), Err(std::sync::mpsc::RecvError), "no further output");
        (ended, self.folder)
    }

    /// Closes the input and returns the folder.
    pub(super) fn into_folder(mut self) -> Folder {
        drop(self.input.take());
        self.process.finish().exits(0);
        self.folder
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(self.folder.path("stderr")).expect("a file")
    }
}

fn call(id: u64, tool: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": {} } })
}

#[test]
fn connector_over_stdio_uses_the_key_of_the_profile() {
    let gateway =
        Gateway::always(Answer::items(|_| json!({ "success": true, "data": { "amount": 7, "currency": "UAH" } })));
    let mut client = Conversation::start(&gateway);
    let hello = json!({ "jsonrpc": "2.0", "id": "h", "method": "initialize", "params": { "protocolVersion": "2025-06-18", "capabilities": {} } });
    assert_eq!(client.ask(&hello)["result"]["protocolVersion"], "2025-06-18");
    // Notifications get no answer: the next line answers the next request.
    client.send_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.send_line("");
    let answer = client.ask(&call(2, "balance"));
    assert_eq!((&answer["id"], &parse_result(&answer["result"])["amount"]), (&json!(2), &json!(7)));
    assert_eq!(gateway.requests()[0].json()["auth"], KEY);
    // A message that carries its own protocol version needs no headers over stdio.
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let modern =
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "balance", "_meta": meta } });
    assert_eq!(client.ask(&modern)["result"]["resultType"], "complete");
    let log = client.stderr();
    assert!(log.contains("called") && !log.contains(KEY), "{log}");
    client.finish().exits(0);
}

#[test]
fn invalid_line_gets_an_error_and_the_next_line_is_read() {
    let mut client = Conversation::start(&Gateway::accepting());
    let code = |answer: Value| answer["error"]["code"].as_i64();
    for (line, expected) in [
        ("{".to_owned(), -32700),
        ("\u{0}\u{ff}".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        ("x".repeat(300 * 1024), -32600),
        ("y".repeat(3 << 20), -32600),
        (format!("\"{}\"", "z".repeat(256 * 1024 - 2)), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"prompts/list"}"#.to_owned(), -32601),
    ] {
        client.send_line(&line);
        assert_eq!(code(client.read_answer()), Some(expected), "{}", &line[..line.len().min(60)]);
        let ping = client.ask(&json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" }));
        assert_eq!(ping, json!({ "jsonrpc": "2.0", "id": 9, "result": {} }));
    }
    client.finish().exits(0);
}

#[test]
fn slow_call_does_not_delay_others_and_is_answered() {
    let gateway = Gateway::always(Answer::Held);
    let mut client = Conversation::start(&gateway);
    client.send_line(&call(1, "balance").to_string());
    until("the gateway gets a request", || gateway.requests().len() == 1);
    let ping = client.ask(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    assert_eq!(ping["id"], 2);
    // A last line without a line feed is still read.
    write!(client.input.as_mut().expect("an input"), r#"{{"jsonrpc":"2.0","id":3,"method":"ping"}}"#).expect("read");
    drop(client.input.take());
    assert_eq!(client.read_answer()["id"], 3);
    assert!(client.process.is_running(), "{}", client.stderr());
    gateway.release();
    assert_eq!(client.read_answer()["id"], 1);
    client.finish().exits(0);
}

#[test]
fn signal_ends_the_connector_after_open_calls() {
    let gateway = Gateway::always(Answer::Held);
    let mut client = Conversation::start(&gateway);
    client.send_line(&call(1, "balance").to_string());
    until("the gateway gets a request", || gateway.requests().len() == 1);
    client.process.signal("TERM");
    gateway.release();
    assert_eq!(client.read_answer()["id"], 1);
    client.process.finish().exits(0);
}

#[test]
fn stdio_connector_needs_a_key_and_refuses_server_options() {
    let folder = folder_with_profile(&Gateway::accepting(), &format!("env: {KEY_VARIABLE}"));
    folder.replace("gateways.yaml", KEY_VARIABLE, "NOBODY_HAS_IT");
    let ended = folder.campaign(&["connector", "--stdio"]).exits(2).says("NOBODY_HAS_IT");
    assert_eq!(ended.stdout, "", "standard output contains only answers");
    for option in [&["--listen", "127.0.0.1:1"][..], &["--require-key"], &["--origin", "https://a.example"]] {
        folder.campaign(&[&["connector", "--stdio"], option].concat()).exits(2).says("cannot be used with");
    }
    folder.campaign(&["connector", "--stdio", "--json"]).exits(2).says("cannot be used with");
}

#[test]
fn rmcp_stdio_client_calls_tools_in_both_lifecycle_modes() {
    let sandbox = SandboxProcess::start();
    let folder = folder_with_profile(&sandbox, &format!("env: {KEY_VARIABLE}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for lifecycle in [
        ClientLifecycleMode::Initialize,
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    ] {
        runtime.block_on(async {
            let mut command = tokio::process::Command::from(folder.command(&["connector", "--stdio"]));
            let piped = Stdio::piped;
            let mut child = command
                .stdin(piped())
                .stdout(piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .expect("a connector");
            let transport = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
            let client = ().serve_with_lifecycle(transport, lifecycle).await.expect("a session");
            assert_eq!(client.list_all_tools().await.expect("tools").len(), 6);
            let result = client.call_tool(CallToolRequestParams::new("balance")).await.expect("a result");
            assert!(result.structured_content.expect("a structured result")["amount"].is_number());
            client.cancel().await.expect("a clean end");
            let ended = tokio::time::timeout(PATIENCE, child.wait()).await.expect("the connector ends with its client");
            assert!(ended.expect("a status").success());
        });
    }
}

#[test]
fn http_safeguards_apply_over_stdio_too() {
    let gateway = Gateway::accepting();
    let sms = |confirm: Value| {
        let arguments = json!({ "phone": "380501234567", "text": "Hi", "sender": "OlenaCo", "confirm": confirm });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "send_sms", "arguments": arguments } })
    };
    let start = |folder, locks: &[&str]| Conversation::start_in(folder, locks);
    let mut client = start(folder_with_profile(&gateway, &format!("env: {KEY_VARIABLE}")), &[]);
    assert_eq!(client.ask(&sms(json!(true)))["error"]["code"], -32602);
    let mut client = start(client.folder, &["--allow-send", "--approve"]);
    assert_eq!(parse_result(&client.ask(&sms(json!("true")))["result"])["refused"], true);
    assert_eq!(parse_result(&client.ask(&sms(json!(true)))["result"])["pending"], true);
    assert!(gateway.sends().is_empty());
    let mut client = start(client.folder, &["--allow-send"]);
    // A client that closes its input at once still gets the answer, and the message is sent once.
    client.send_line(&sms(json!(true)).to_string());
    drop(client.input.take());
    assert_eq!(parse_result(&client.read_answer()["result"])["accepted"], true);
    client.finish().exits(0);
    assert_eq!(gateway.phones(), [380_501_234_567]);
}
