//! Latency benchmark of `campaign connector` under a constant rate of calls.
//!
//! `cargo bench --bench connector` starts `campaign sandbox` and a connector to it as processes. It calls the tool
//! `balance` 1,000 times per second for 20 s. Each call has a fixed due time, which does not depend on earlier answers.
//! `-- RATE SECONDS` changes these numbers. Linux only: CPU times come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "common/arguments.rs"]
mod arguments;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arguments::Arguments;

/// Open connections of assistants. A connector handles at most 64 concurrent calls.
const CONNECTIONS: u64 = 32;
/// If an answer takes longer, the benchmark fails.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A call of the tool `balance`.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"balance","arguments":{}}}"#;

fn main() {
    let arguments = Arguments::from_env();
    let (rate, seconds) = (arguments.number(0, 1_000), arguments.number(1, 20));
    let folder = tempfile::tempdir().expect("a folder");
    let sandbox = Server::start(folder.path(), "base_url", &["sandbox"]);
    let profile = format!(
        "bench:\n  base_url: http://{0}\n  async_url: http://{0}\n  api_key: {{ env: NO_SUCH_KEY }}\n  rate: unlimited\n",
        sandbox.address
    );
    fs::write(folder.path().join("gateways.yaml"), profile).expect("a profile");
    let connector = Server::start(folder.path(), "url", &["connector", "--state-dir", "state"]);
    // The first call does one-time work, which is not measured.
    Connection::open(&connector.address).call();
    let (connector_before, sandbox_before) = (connector.cpu_time(), sandbox.cpu_time());
    let began = Instant::now() + Duration::from_millis(100);
    let due = |index: u64| began + Duration::from_micros(index * 1_000_000 / rate);
    let mut latencies: Vec<Duration> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CONNECTIONS)
            .map(|first| {
                let mut connection = Connection::open(&connector.address);
                let calls = (first..rate * seconds).step_by(usize::try_from(CONNECTIONS).expect("a few"));
                scope.spawn(move || calls.map(|index| connection.call_at(due(index))).collect::<Vec<_>>())
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("every call is answered")).collect()
    });
    let calls = latencies.len() as f64;
    let elapsed = began.elapsed().as_secs_f64();
    latencies.sort();
    let quantile = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let micros_per_call = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e6 / calls;
    println!("calls of `balance` at {rate}/s for {seconds} s over {CONNECTIONS} connections:");
    println!("  answered: {:.0}/s", calls / elapsed);
    println!(
        "  latency from the due time: median {:.2} ms, p99 {:.2} ms, maximum {:.2} ms",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0)
    );
    println!(
        "  CPU per call: {:.0} µs in the connector, {:.0} µs in the sandbox",
        micros_per_call(connector.cpu_time(), connector_before),
        micros_per_call(sandbox.cpu_time(), sandbox_before)
    );
}

/// A connection of an assistant that makes one call after another.
struct Connection {
    reader: BufReader<TcpStream>,
    request: String,
}

impl Connection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(TIMEOUT))).expect("a socket");
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer sandbox\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{CALL}",
            CALL.len()
        );
        Self { reader: BufReader::new(stream), request }
    }

    /// Calls the tool at the due time, and returns the time from then until the answer.
    fn call_at(&mut self, due: Instant) -> Duration {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        self.call();
        due.elapsed()
    }

    /// Calls the tool, and checks that the answer is a balance.
    fn call(&mut self) {
        self.reader.get_mut().write_all(self.request.as_bytes()).expect("sent");
        let (mut length, mut line) = (0, String::new());
        while line != "\r\n" {
            line.clear();
            assert_ne!(self.reader.read_line(&mut line).expect("a response head"), 0, "the connection ended");
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).expect("a body");
        let answer = String::from_utf8_lossy(&body);
        assert!(answer.contains(r#""structuredContent""#) && answer.contains(r#""currency""#), "{answer}");
    }
}

/// A running server, which is killed on drop.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts a command that prints one line of JSON with its URL in `member`.
    fn start(folder: &Path, member: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_campaign"))
            .current_dir(folder)
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("the output")).read_line(&mut line).expect("a line");
        let output: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let address =
            output[member].as_str().and_then(|url| url.strip_prefix("http://")).expect("an address").to_owned();
        Self { child, address }
    }

    /// User and system CPU time so far. The kernel counts in hundredths of a second.
    fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("/proc/PID/stat");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = |index: usize| fields[index].parse::<u64>().expect("a number of ticks");
        // The fields `utime` and `stime`, counted after the process name.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
