//! `campaign sandbox` as a child process, and its journal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::KEY;
use super::draft::Reachable;
use super::process::Process;
use super::wait::until;

/// A running sandbox; killed on drop.
pub(crate) struct SandboxProcess {
    process: Process,
    folder: TempDir,
    listening: Value,
}

impl SandboxProcess {
    /// Starts a sandbox on a free port and waits until it listens.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a sandbox with additional arguments and waits until it listens.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_campaign-with-failpoints"));
        command.env_clear().current_dir(folder.path());
        command.args(["sandbox", "--listen", "127.0.0.1:0", "--json", "--key", KEY, "--journal", "journal.jsonl"]);
        command.args(arguments);
        let mut process = Process::start(command);
        until("the sandbox listens", || {
            assert!(process.is_running(), "{}", process.stderr());
            process.stdout().ends_with('\n')
        });
        let listening = serde_json::from_str(&process.stdout()).expect("one JSON object");
        Self { process, folder, listening }
    }

    /// The lines of the journal so far.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.journal_file()).expect("a journal");
        // The last line might be incomplete.
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// Opens the journal for incremental reading.
    pub(crate) fn tail(&self) -> JournalTail {
        JournalTail { file: File::open(self.journal_file()).expect("a journal"), rest: Vec::new() }
    }

    /// The peak resident memory of the sandbox, in KiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> u64 {
        self.process.peak_memory()
    }

    /// The number of messages by phone number.
    pub(crate) fn messages(&self) -> BTreeMap<u64, usize> {
        let mut messages = BTreeMap::new();
        for line in self.journal() {
            if let Some(phone) = line["phone"].as_str() {
                *messages.entry(phone.parse().expect("digits")).or_default() += 1;
            }
        }
        messages
    }

    /// The number of operations in each envelope with messages, in order of arrival.
    pub(crate) fn envelopes(&self) -> Vec<u64> {
        let journal = self.journal();
        let has_messages = |envelope: &Value| {
            journal.iter().any(|line| line["phone"].is_string() && line["envelope"] == envelope["envelope"])
        };
        let envelopes = journal.iter().filter(|line| line["event"] == "envelope" && has_messages(line));
        envelopes.map(|line| line["operations"].as_u64().expect("a count")).collect()
    }

    fn journal_file(&self) -> PathBuf {
        self.folder.path().join("journal.jsonl")
    }

    fn address(&self, name: &str) -> String {
        self.listening[name].as_str().expect("an address").to_owned()
    }
}

/// Incremental reader of the journal.
pub(crate) struct JournalTail {
    file: File,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
}

impl JournalTail {
    /// The lines since the last call.
    pub(crate) fn read_new_lines(&mut self) -> Vec<Value> {
        self.file.read_to_end(&mut self.rest).expect("a journal");
        let complete = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = self.rest.split_off(complete);
        let lines = std::mem::replace(&mut self.rest, rest);
        lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(parse_line).collect()
    }
}

fn parse_line(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("a line of JSON")
}

impl Reachable for SandboxProcess {
    fn base_url(&self) -> String {
        self.address("base_url")
    }

    fn async_url(&self) -> String {
        self.address("async_url")
    }
}
