//! Fuzz test: the sandbox answers all mutated requests (contract 4.1 and 7).

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use super::examples::{PHONE, TYPES, example};
use super::in_process::{ASYNC, JSON, SYNC, envelope};
use crate::support::{Chance, KEY, Reachable as _, SandboxProcess};

/// The number of requests that are written before their answers are read.
const PIPELINED: usize = 50;
/// The limit for the peak memory of the sandbox, in KiB.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 256 << 10;

/// Unusual JSON values that replace valid ones.
const ODD_VALUES: [&str; 24] = [
    "null",
    "true",
    "-1",
    "0",
    "1e308",
    "1e999",
    "-0.0",
    "9007199254740993",
    "18446744073709551616",
    "\"\"",
    "\" \"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\u{feff}\"",
    "\"я\"",
    "[]",
    "[[[[[]]]]]",
    "{}",
    "{\"a\":{\"a\":{}}}",
    "\"sms\"",
    "\"pipeline\"",
    "[\"sms\",\"sms\"]",
    "\"380501234567,380671234567\"",
    "\"http://127.0.0.1:1/\"",
];

/// Returns the valid bodies that are mutated: the requests in `tests/contract` and an envelope of all operations.
fn read_seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contract");
    let files = fs::read_dir(folder).expect("the contract's examples").map(|entry| entry.expect("an entry").path());
    let pairs = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let requests = pairs.map(|path| {
        let pair: Value = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
        let mut request = pair["request"].clone();
        request["auth"] = KEY.into();
        request
    });
    let operations: Vec<_> = (1..).zip(TYPES).map(|(id, kind)| example(kind, id)).collect();
    requests.chain([envelope(&operations)]).map(|request| request.to_string().into_bytes()).collect()
}

/// Mutates a random body in one to four places.
fn mutate_body(chance: &mut Chance, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut random = |end: usize| chance.below(end.max(1) as u64) as usize;
    let mut body = seeds[random(seeds.len())].clone();
    for _ in 0..=random(4) {
        let (from, length) = (random(body.len()), random(40));
        let to = (from + length).min(body.len());
        match random(7) {
            0 => body.truncate(from),
            1 => drop(body.drain(from..to)),
            2 => body.extend_from_within(from..to),
            3 => body.get_mut(from).into_iter().for_each(|byte| *byte = random(256) as u8),
            4 => body.insert(from, b"{}[]\",:\\0-e.\x00\xff"[random(14)]),
            5 => {
                let other = &seeds[random(seeds.len())];
                let cut = random(other.len());
                body.splice(from..to, other[cut..(cut + length).min(other.len())].iter().copied());
            }
            _ => replace_value(&mut body, from, ODD_VALUES[random(ODD_VALUES.len())]),
        }
    }
    body
}

/// Replaces the value after the first colon at or after `from`.
fn replace_value(body: &mut Vec<u8>, from: usize, odd: &str) {
    let colon = body[from..].iter().position(|byte| *byte == b':').map(|at| from + at + 1);
    let Some(begin) = colon else { return };
    let length = body[begin..].iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(0);
    body.splice(begin..begin + length, odd.bytes());
}

/// An HTTP connection that is reused for many requests.
struct HttpConnection(BufReader<TcpStream>);

impl HttpConnection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address.strip_prefix("http://").expect("plain HTTP")).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        Self(BufReader::new(stream))
    }

    /// Posts these bodies and returns the answers in the same order.
    fn post_all(&mut self, path: &str, bodies: &[Vec<u8>]) -> Vec<Value> {
        let mut requests = Vec::new();
        for body in bodies {
            let length = body.len();
            write!(requests, "POST {path} HTTP/1.1\r\nHost: a\r\n{JSON}\r\nContent-Length: {length}\r\n\r\n")
                .expect("memory");
            requests.extend_from_slice(body);
        }
        self.0.get_mut().write_all(&requests).expect("sent");
        bodies.iter().map(|body| self.read_answer(body)).collect()
    }

    fn read_answer(&mut self, body: &[u8]) -> Value {
        let request = || String::from_utf8_lossy(body);
        let mut length = 0;
        for number in 0.. {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap_or_else(|error| panic!("no answer ({error}) to {}", request()));
            assert!(number > 0 || line.starts_with("HTTP/1.1 200 "), "`{line}` to {}", request());
            match line.to_ascii_lowercase().trim_end() {
                "" => break,
                line => {
                    length =
                        line.strip_prefix("content-length: ").map_or(length, |text| text.parse().expect("a length"))
                }
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).expect("a complete answer");
        serde_json::from_slice(&answer).unwrap_or_else(|error| panic!("invalid JSON ({error}) for {}", request()))
    }
}

#[test]
fn sandbox_answers_thousands_of_mutated_bodies() {
    post_mutated_bodies(20_000);
}

#[test]
#[ignore = "takes some minutes"]
fn sandbox_answers_a_million_mutated_bodies() {
    post_mutated_bodies(1_000_000);
}

/// Posts this number of mutated bodies. Each must get an answer. Afterwards, the sandbox must accept a valid message.
fn post_mutated_bodies(requests: usize) {
    let mut chance = Chance::seeded();
    let (seeds, sandbox) = (read_seeds(), SandboxProcess::start());
    let mut connection = HttpConnection::open(&sandbox.base_url());
    let (mut accepted, mut rejected) = (0, 0);
    for round in 0..requests / PIPELINED {
        let bodies: Vec<_> = (0..PIPELINED).map(|_| mutate_body(&mut chance, &seeds)).collect();
        let path = if round % 2 == 0 { SYNC } else { ASYNC };
        for (body, answer) in bodies.iter().zip(connection.post_all(path, &bodies)) {
            match answer["success"].as_bool() {
                Some(true) => accepted += 1,
                Some(false) => rejected += 1,
                None => panic!("{answer} to {}", String::from_utf8_lossy(body)),
            }
        }
    }
    assert!(accepted > requests / 40 && rejected > requests / 40, "too many or too few mutations: {accepted} accepted");
    let good = envelope(&[example("sms", 999_999_999), json!({"type": "status", "id": 999_999_999})]);
    let answer = connection.post_all(SYNC, &[good.to_string().into_bytes()]).remove(0);
    assert_eq!((&answer["success"], &answer["data"][0]["data"]["id"]), (&json!(true), &json!(999_999_999)), "{answer}");
    assert!(sandbox.messages().contains_key(&PHONE));
    #[cfg(target_os = "linux")]
    assert!(sandbox.peak_memory() < MEMORY, "{} KiB", sandbox.peak_memory());
}
