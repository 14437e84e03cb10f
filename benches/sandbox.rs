//! Benchmark of the sandbox: operations per second, and memory for a million undelivered messages.
//!
//! `cargo bench --bench sandbox` starts `campaign sandbox` as a process. It sends 1,000,000 messages in envelopes of
//! 100 over two connections, and requests some of their statuses. Each message is Viber with an SMS fallback and has a
//! webhook. No message is delivered during the benchmark, so the sandbox still holds all of them when its memory is
//! measured.
//!
//! `cargo bench --bench sandbox -- MESSAGES` sends this many messages instead. Linux only: the figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "common/arguments.rs"]
mod arguments;

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use arguments::Arguments;

/// Operations per envelope.
const BATCH: u64 = 100;
/// Concurrent connections.
const CONNECTIONS: u64 = 2;
/// Messages are delivered only after two hours.
const SCENARIO: &str = "channels: { viber: { after: 2h }, sms: { after: 2h } }\n";

fn main() {
    let messages = Arguments::from_env().number(0, 1_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("scenario.yaml");
    fs::write(&scenario, SCENARIO).expect("a scenario");
    let server = Server::start(&scenario.display().to_string());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let address = server.address;
            scope.spawn(move || send_envelopes(address, connection, messages / BATCH / CONNECTIONS));
        }
    });
    let (seconds, sent) = (began.elapsed().as_secs_f64(), messages / BATCH / CONNECTIONS * CONNECTIONS * BATCH);
    println!("{sent} messages in envelopes of {BATCH}: {:.0} operations/s", sent as f64 / seconds);
    println!("{:.2} µs of CPU per message in the sandbox", server.cpu_seconds() * 1e6 / sent as f64);
    println!(
        "{} MiB resident with all messages undelivered, peak {}",
        server.read_memory("VmRSS"),
        server.read_memory("VmHWM")
    );
}

/// Sends envelopes over one connection. After the first of every hundred envelopes, requests a status.
fn send_envelopes(address: SocketAddr, connection: u64, envelopes: u64) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    for envelope in 0..envelopes {
        let first = (connection * envelopes + envelope) * BATCH;
        let answer = post(&mut stream, &build_operations(first));
        assert_eq!(answer.matches("\"msg_id\"").count() as u64, BATCH, "{answer}");
        if envelope % 100 == 0 {
            let answer = post(&mut stream, &format!(r#"{{"type":"status","id":{first}}}"#));
            assert!(answer.contains("QUEUED"), "{answer}");
        }
    }
}

/// The operations of an envelope, with consecutive ids and phone numbers from `first`.
fn build_operations(first: u64) -> String {
    let mut operations = String::with_capacity(32 * 1024);
    for id in first..first + BATCH {
        let comma = if id == first { "" } else { "," };
        write!(
            operations,
            r#"{comma}{{"type":"viber+sms","id":{id},"phone":{},"viber_type":"text","viber_signature":"Sandbox","viber_message":"Hello, number {id}","sms_signature":"Sandbox","sms_message":"Hello, number {id}","hook":"http://127.0.0.1:9/h/{id}"}}"#,
            380_500_000_000 + id
        )
        .expect("a string");
    }
    operations
}

/// Posts an envelope and returns the body of the answer.
fn post(stream: &mut TcpStream, operations: &str) -> String {
    let body = format!(r#"{{"auth":"sandbox","data":[{operations}]}}"#);
    let head = format!(
        "POST /api/json.php HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("sent");
    let mut reader = BufReader::with_capacity(64 * 1024, stream);
    let (mut length, mut line) = (0, String::new());
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("a response head");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("UTF-8")
}

/// A running sandbox, which is killed on drop.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(scenario: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_campaign"))
            .args(["sandbox", "--listen", "127.0.0.1:0", "--json", "--scenario", scenario])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the sandbox starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("the output")).read_line(&mut line).expect("a line");
        let output: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let address = output["base_url"].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address");
        Self { child, address: address.parse().expect("an address") }
    }

    /// A value of /proc/…/status, in MiB.
    fn read_memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("/proc");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).expect("the figure");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    /// User and system CPU time so far. The kernel counts in hundredths of a second.
    fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("/proc");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
        // The fields `utime` and `stime`, counted after the process name.
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
