//! `campaign serve` as a child process, and raw HTTP requests to its listeners.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::folder::Folder;
use super::process::{Finished, Process};
use super::wait::{PATIENCE, until};

/// `campaign serve` in a folder, on free ports; killed on drop.
pub(crate) struct Server {
    process: Process,
    listening: Value,
}

impl Server {
    /// Starts the server with additional arguments and waits until it listens.
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_after(folder, "true", arguments)
    }

    /// Starts the server in a shell after `prepare` and waits until it listens.
    pub(crate) fn start_after(folder: &Folder, prepare: &str, arguments: &[&str]) -> Self {
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--json"], arguments].concat();
        let mut process = Process::start(folder.command_after(prepare, &arguments));
        until("the server listens", || {
            assert!(process.is_running(), "{}{}", process.stdout(), process.stderr());
            process.stdout().ends_with('\n')
        });
        let line = process.stdout();
        let listening = serde_json::from_str(line.lines().next().expect("a line")).expect("one JSON object");
        Self { process, listening }
    }

    /// The JSON object on the server's first output line.
    pub(crate) fn listening(&self) -> &Value {
        &self.listening
    }

    /// Host and port of the dashboard.
    pub(crate) fn address(&self) -> String {
        self.listening["listen"].as_str().expect("an address").to_owned()
    }

    /// The server's log so far.
    pub(crate) fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Fails unless the server is still running.
    pub(crate) fn assert_running(&mut self) {
        assert!(self.process.is_running(), "it ended: {}", self.process.stderr());
    }

    /// Sends `GET` to the dashboard.
    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        http_get(&self.address(), path, &[])
    }

    /// Sends this signal, such as `TERM`, and waits until the server ends.
    pub(crate) fn end(mut self, signal: &str) -> Finished {
        self.process.signal(signal);
        self.process.finish()
    }

    /// Waits until the server ends.
    pub(crate) fn finish(self) -> Finished {
        self.process.finish()
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends `GET` with these headers; a `Host` in `headers` replaces the default one.
pub(crate) fn http_get(address: &str, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
    HttpResponse { status: status.expect("a status"), body: body.to_owned() }
}
