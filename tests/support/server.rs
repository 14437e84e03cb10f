//! `campaign serve` as a process, and what its doors answer to the letter.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::folder::Folder;
use super::process::{Finished, Process};
use super::wait::{PATIENCE, until};

/// `campaign serve` in a folder, listening on free ports; dropped, it is killed.
pub(crate) struct Server {
    process: Process,
    listening: Value,
}

impl Server {
    /// Starts one in this folder, with further arguments, and waits until it listens.
    pub(crate) fn start(folder: &Folder, arguments: &[&str]) -> Self {
        Self::start_after(folder, "true", arguments)
    }

    /// The same, started by a shell after it did this.
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

    /// What its first line says.
    pub(crate) fn listening(&self) -> &Value {
        &self.listening
    }

    /// Host and port of its own door.
    pub(crate) fn address(&self) -> String {
        self.listening["listen"].as_str().expect("an address").to_owned()
    }

    /// What it has written to its log.
    pub(crate) fn stderr(&self) -> String {
        self.process.stderr()
    }

    /// Makes sure that it has not ended.
    pub(crate) fn is_up(&mut self) {
        assert!(self.process.is_running(), "it ended: {}", self.process.stderr());
    }

    /// What its own door answers to `GET` of a path.
    pub(crate) fn get(&self, path: &str) -> Heard {
        ask(&self.address(), path, &[])
    }

    /// Asks it to end, by this signal, and waits until it has.
    pub(crate) fn end(mut self, signal: &str) -> Finished {
        self.process.signal(signal);
        self.process.finish()
    }

    /// Waits until it ends by itself.
    pub(crate) fn finish(self) -> Finished {
        self.process.finish()
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// What a door answers to `GET` of a path with these headers; a `Host` among them takes the place of the address.
pub(crate) fn ask(address: &str, path: &str, headers: &[(&str, &str)]) -> Heard {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
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
    Heard { status: status.expect("a status"), body: body.to_owned() }
}
