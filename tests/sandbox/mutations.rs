//! Whatever arrives is answered: contract 4.1 and 7, with a hundred thousand requests that nobody meant.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use super::examples::{PHONE, TYPES, example};
use super::stand::{ASYNC, JSON, SYNC, envelope};
use crate::support::{Chance, KEY, Reachable as _, SandboxProcess};

/// How many requests are sent.
const REQUESTS: usize = 100_000;
/// How many are written before their answers are read.
const AT_ONCE: usize = 50;
/// The most memory that the sandbox may have used by then, in KiB.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 256 << 10;

/// What stands in for a value.
const ODD: [&str; 24] = [
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

/// Bodies that are good, to be spoilt.
fn seeds() -> Vec<Vec<u8>> {
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

/// Spoils a body in one to four ways.
fn spoilt(chance: &mut Chance, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut any = |end: usize| chance.below(end.max(1) as u64) as usize;
    let mut body = seeds[any(seeds.len())].clone();
    for _ in 0..=any(4) {
        let (from, length) = (any(body.len()), any(40));
        let to = (from + length).min(body.len());
        match any(7) {
            0 => body.truncate(from),
            1 => drop(body.drain(from..to)),
            2 => body.extend_from_within(from..to),
            3 => body.get_mut(from).into_iter().for_each(|byte| *byte = any(256) as u8),
            4 => body.insert(from, b"{}[]\",:\\0-e.\x00\xff"[any(14)]),
            5 => {
                let other = &seeds[any(seeds.len())];
                let cut = any(other.len());
                body.splice(from..to, other[cut..(cut + length).min(other.len())].iter().copied());
            }
            _ => replace_a_value(&mut body, from, ODD[any(ODD.len())]),
        }
    }
    body
}

/// Puts something odd in the place of the value behind the next colon.
fn replace_a_value(body: &mut Vec<u8>, from: usize, odd: &str) {
    let colon = body[from..].iter().position(|byte| *byte == b':').map(|at| from + at + 1);
    let Some(begin) = colon else { return };
    let length = body[begin..].iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(0);
    body.splice(begin..begin + length, odd.bytes());
}

/// A connection that is kept for request after request.
struct Line(BufReader<TcpStream>);

impl Line {
    fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address.strip_prefix("http://").expect("plain HTTP")).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        Self(BufReader::new(stream))
    }

    /// The answers to these bodies, in their order.
    fn ask(&mut self, path: &str, bodies: &[Vec<u8>]) -> Vec<Value> {
        let mut requests = Vec::new();
        for body in bodies {
            let length = body.len();
            write!(requests, "POST {path} HTTP/1.1\r\nHost: a\r\n{JSON}\r\nContent-Length: {length}\r\n\r\n")
                .expect("memory");
            requests.extend_from_slice(body);
        }
        self.0.get_mut().write_all(&requests).expect("sent");
        bodies.iter().map(|body| self.answer(body)).collect()
    }

    fn answer(&mut self, body: &[u8]) -> Value {
        let asked = || String::from_utf8_lossy(body);
        let mut length = 0;
        for number in 0.. {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap_or_else(|error| panic!("no answer ({error}) to {}", asked()));
            assert!(number > 0 || line.starts_with("HTTP/1.1 200 "), "`{line}` to {}", asked());
            match line.to_ascii_lowercase().trim_end() {
                "" => break,
                line => {
                    length = line.strip_prefix("content-length: ").map_or(length, |it| it.parse().expect("a length"))
                }
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).expect("a whole answer");
        serde_json::from_slice(&answer).unwrap_or_else(|error| panic!("no JSON ({error}) to {}", asked()))
    }
}

#[test]
fn server_answers_after_a_hundred_thousand_mutated_bodies() {
    let mut chance = Chance::seeded();
    let (seeds, sandbox) = (seeds(), SandboxProcess::start());
    let mut line = Line::to(&sandbox.base_url());
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..REQUESTS / AT_ONCE {
        let bodies: Vec<_> = (0..AT_ONCE).map(|_| spoilt(&mut chance, &seeds)).collect();
        let path = if round % 2 == 0 { SYNC } else { ASYNC };
        for (body, answer) in bodies.iter().zip(line.ask(path, &bodies)) {
            match answer["success"].as_bool() {
                Some(true) => accepted += 1,
                Some(false) => refused += 1,
                None => panic!("{answer} to {}", String::from_utf8_lossy(body)),
            }
        }
    }
    assert!(accepted > REQUESTS / 20 && refused > REQUESTS / 20, "spoilt enough, and not too much: {accepted}");
    let good = envelope(&[example("sms", 999_999_999), json!({"type": "status", "id": 999_999_999})]);
    let answer = line.ask(SYNC, &[good.to_string().into_bytes()]).remove(0);
    assert_eq!((&answer["success"], &answer["data"][0]["data"]["id"]), (&json!(true), &json!(999_999_999)), "{answer}");
    assert!(sandbox.messages().contains_key(&PHONE));
    #[cfg(target_os = "linux")]
    assert!(sandbox.most_memory() < MEMORY, "{} KiB", sandbox.most_memory());
}
