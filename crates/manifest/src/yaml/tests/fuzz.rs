//! Tests of mangled files: reading always ends and never panics.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::random::SeededRandom;
use super::*;
use campaign_core::finding::render_findings;

/// The time limit for reading one file.
const MAX_TIME: Duration = Duration::from_secs(20);

/// Characters with a meaning in YAML, and characters that break it.
const PIECES: [&str; 40] = [
    ":",
    ": ",
    "- ",
    "? ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "'",
    "|",
    ">",
    "|-",
    ">2",
    "&a ",
    "*a",
    "!t ",
    "!!str ",
    "#",
    " #",
    "%YAML 1.2\n",
    "---\n",
    "...\n",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "  ",
    "\\",
    "\\u12",
    "\\x",
    "~",
    "<<: ",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "\0",
    "ї",
    "😀",
];

/// A text, mangled in up to a dozen places.
fn mangle_text(text: &str, others: &[String], random: &mut SeededRandom) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..=random.number_below(12) {
        let at = random.number_below(text.len() + 1);
        let end = (at + random.number_below(12)).min(text.len());
        match random.number_below(5) {
            0 => drop(text.drain(at..end)),
            1 => drop(text.splice(at..at, random.pick(&PIECES).chars())),
            2 => drop(text.splice(at..end, random.pick(&PIECES).repeat(1 + random.number_below(40)).chars())),
            3 => {
                let other: Vec<char> = others[random.number_below(others.len())].chars().collect();
                let from = random.number_below(other.len() + 1);
                let to = (from + random.number_below(200)).min(other.len());
                drop(text.splice(at..at, other[from..to].iter().copied()));
            }
            _ => text.truncate(at.max(1)),
        }
    }
    text.into_iter().collect()
}

/// Reads mangled files while `may_continue` returns true for the next seed. Returns the number of files that were read.
fn run_fuzz(mut may_continue: impl FnMut(u64) -> bool + Send + 'static) -> u64 {
    let (sender, receiver) = mpsc::channel();
    let current = Arc::new(Mutex::new(String::new()));
    let text_read = Arc::clone(&current);
    let worker = thread::spawn(move || {
        let files: Vec<String> = list_yaml_files().into_iter().map(|(_, text)| text).collect();
        let mut seed = 0;
        while may_continue(seed) {
            let mut random = SeededRandom::new(seed);
            let text = mangle_text(&files[random.number_below(files.len())], &files, &mut random);
            text_read.lock().unwrap().clone_from(&text);
            let (node, findings) = parse_text(&text);
            assert!(node.is_some() || !findings.is_empty(), "rejected without a finding: {text:?}");
            assert!(findings.is_empty() || !render_findings(&findings, false).is_empty());
            node.as_ref().map(node_to_json);
            seed += 1;
            sender.send(seed).unwrap();
        }
    });
    let mut files_read = 0;
    loop {
        match receiver.recv_timeout(MAX_TIME) {
            Ok(seed) => files_read = seed,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("reading does not end: {:?}", current.lock().unwrap()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(worker.join().is_ok(), "reading panicked at {:?}", current.lock());
    files_read
}

#[test]
fn mangled_file_is_read_or_rejected() {
    assert_eq!(run_fuzz(|seed| seed < 2_000), 2_000);
}

#[test]
#[ignore = "FUZZ_SECONDS=600 cargo test --lib yaml_fuzz -- --ignored"]
fn yaml_fuzzing_runs_for_the_configured_time() {
    let seconds = env::var("FUZZ_SECONDS").map_or(60, |seconds| seconds.parse().expect("FUZZ_SECONDS is a number"));
    let until = Instant::now() + Duration::from_secs(seconds);
    assert!(run_fuzz(move |_| Instant::now() < until) > 0, "nothing was read");
}
