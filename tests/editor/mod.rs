//! The language server for editors, tested by a client that speaks the protocol over standard input and output.

mod answers;
mod findings;
mod protocol;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Finished, Folder, Process};

/// The maximum wait for a message.
const PATIENCE: Duration = Duration::from_secs(30);

const CAMPAIGN: &str = "\
recipients:
  file: list.csv
vars: { shop: Olena }
channels:
  - sms:
      signature: Shop
      message: \"Hi {{ plan }} from {{ shop }}\"
purpose: service
";

const LIST: &str = "phone,plan\n+380500000001,gold\n+380500000002,basic\n";

/// An editor with a running `campaign lsp`. Dropping this value kills the server.
struct Editor {
    process: Process,
    input: Option<File>,
    messages: Receiver<Value>,
    folder: Folder,
    request_count: u64,
    /// The latest diagnostics of each document.
    published: BTreeMap<String, Value>,
}

impl Editor {
    /// Starts the server in a folder with a campaign, without `initialize`.
    fn spawn() -> Self {
        let folder = Folder::new(false);
        folder.write("sale.yaml", CAMPAIGN);
        folder.write("list.csv", LIST);
        folder.write("gateways.yaml", "main:\n  base_url: http://127.0.0.1:9\n  api_key: { env: NOBODY_HAS_IT }\n");
        Self::spawn_in(folder)
    }

    fn spawn_in(folder: Folder) -> Self {
        let (stdin, input) = std::io::pipe().expect("a pipe");
        let (output, stdout) = std::io::pipe().expect("a pipe");
        let stderr = File::create(folder.path("stderr")).expect("a file");
        let file = |end: OwnedFd| File::from(end);
        let command = folder.command(&["lsp"]);
        let process = Process::start_on(command, [file(stdin.into()), file(stdout.into()), stderr]);
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_message(&mut output) {
                let _ = sender.send(message);
            }
        });
        let input = Some(file(input.into()));
        Self { process, input, messages, folder, request_count: 0, published: BTreeMap::new() }
    }

    /// Starts the server and initializes it.
    fn start() -> Self {
        let mut editor = Self::spawn();
        editor.initialize();
        editor
    }

    fn initialize(&mut self) -> Value {
        let answer = self.ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": {} }));
        self.notify("initialized", json!({}));
        answer
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.folder.path(name).display())
    }

    fn send_raw(&mut self, content: &str) {
        let input = self.input.as_mut().expect("an open input");
        write!(input, "Content-Length: {}\r\n\r\n{content}", content.len()).expect("an open pipe");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send_raw(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request and returns the whole response.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.request_count += 1;
        let id = self.request_count;
        self.send_raw(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        self.wait_for_message(|message| message["id"] == id)
    }

    /// Sends a request and returns its result.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        assert!(response["error"].is_null(), "{method}: {response}");
        response["result"].clone()
    }

    /// Waits for a message that matches. Stores all diagnostics that arrive before it.
    fn wait_for_message(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.read_message(deadline).expect("a message");
            if matches(&message) {
                return message;
            }
        }
    }

    fn read_message(&mut self, deadline: Instant) -> Option<Value> {
        let message = match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        if message["method"] == "textDocument/publishDiagnostics" {
            let uri = message["params"]["uri"].as_str().expect("a URI").to_owned();
            self.published.insert(uri, message["params"]["diagnostics"].clone());
        }
        Some(message)
    }

    fn open(&mut self, name: &str, text: &str) {
        let document = json!({ "uri": self.uri(name), "languageId": "yaml", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Replaces the whole text of a document.
    fn change(&mut self, name: &str, text: &str) {
        let document = json!({ "uri": self.uri(name), "version": 2 });
        let params = json!({ "textDocument": document, "contentChanges": [{ "text": text }] });
        self.notify("textDocument/didChange", params);
    }

    /// Waits until the errors and warnings of a document are `expected`. Each has a line, counted from 1, and a rule.
    fn wait_for_rules(&mut self, name: &str, expected: &[(u64, &str)]) {
        let (uri, deadline) = (self.uri(name), Instant::now() + PATIENCE);
        loop {
            let shown = self.published.get(&uri).map(rules_in);
            if shown.as_deref().is_some_and(|shown| {
                shown.len() == expected.len() && shown.iter().zip(expected).all(|(a, b)| (a.0, a.1.as_str()) == *b)
            }) {
                return;
            }
            assert!(self.read_message(deadline).is_some(), "{name}: {shown:?} instead of {expected:?}");
        }
    }

    /// The latest diagnostics of a document.
    fn diagnostics(&self, name: &str) -> Vec<Value> {
        let published = self.published.get(&self.uri(name));
        published.and_then(|diagnostics| diagnostics.as_array().cloned()).unwrap_or_default()
    }

    /// Sends a request about the position after `needle` in a text, and returns its result.
    fn ask_at(&mut self, method: &str, (name, text): (&str, &str), needle: &str) -> Value {
        let byte = text.find(needle).unwrap_or_else(|| panic!("no {needle}")) + needle.len();
        let line = text[..byte].matches('\n').count();
        let column = text[..byte].rsplit('\n').next().unwrap_or_default().encode_utf16().count();
        let params =
            json!({ "textDocument": { "uri": self.uri(name) }, "position": { "line": line, "character": column } });
        self.ask(method, params)
    }

    /// Shuts the server down as the protocol requires, and waits until it ends.
    fn finish(mut self) -> (Finished, String) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.wait()
    }

    /// Waits until the server ends. Returns what it wrote to standard error.
    fn wait(self) -> (Finished, String) {
        let ended = self.process.finish();
        drop(self.input);
        let stderr = std::fs::read_to_string(self.folder.path("stderr")).expect("a file");
        (ended, stderr)
    }
}

/// The errors and warnings among diagnostics, in the order of their lines.
fn rules_in(diagnostics: &Value) -> Vec<(u64, String)> {
    let shown = diagnostics.as_array().expect("a list").iter().filter(|shown| shown["severity"] != 3);
    let rule = |shown: &Value| {
        let line = shown["range"]["start"]["line"].as_u64().expect("a line") + 1;
        (line, shown["code"].as_str().expect("a rule").to_owned())
    };
    let mut rules: Vec<(u64, String)> = shown.map(rule).collect();
    rules.sort_unstable();
    rules
}

/// Reads one message, or returns `None` at the end of the stream. Anything else on the stream fails the test.
fn read_message(output: &mut impl std::io::BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).expect("the output") == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", number)) => length = Some(number.parse().expect("a length")),
            Some(_) => panic!("an unknown header: {line}"),
            None => {
                assert_eq!(line, "\r\n");
                break;
            }
        }
    }
    let mut content = vec![0; length.expect("a length")];
    output.read_exact(&mut content).expect("the content");
    Some(serde_json::from_slice(&content).expect("JSON"))
}
