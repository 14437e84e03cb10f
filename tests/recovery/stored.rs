//! State folders of earlier versions: `stored/` holds one, with the output of that version.
//!
//! It contains a rehearsal, a lookup and five other runs. One is partly sent, one was stopped by a signal, one was
//! killed during a request, one has a rejected key, and one has an invalid row.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::state::copy_folder;
use crate::support::{Folder, KEY_VARIABLE, Reachable, SandboxProcess, in_files, phone};

/// A copy of the stored folder, whose profile has the address of this gateway.
fn copy_stored(gateway: &SandboxProcess) -> Folder {
    let folder = Folder::new(true);
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recovery/stored"), &folder.path("."));
    let (base, asynchronous) = (gateway.base_url(), gateway.async_url());
    let key = format!("api_key: {{ env: {KEY_VARIABLE} }}");
    folder.write("gateways.yaml", &format!("local:\n  base_url: {base}\n  async_url: {asynchronous}\n  {key}\n"));
    folder
}

fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// A run as shown, without the fields whose values have changed since that version.
fn without_changed_fields(mut run: Value) -> Value {
    let object = run.as_object_mut().expect("an object");
    // That version had no figures by channel, no sum of delivered and read, and no format version.
    ["state", "stopped", "why", "exit", "channels", "delivered_or_read", "version"]
        .into_iter()
        .for_each(|member| _ = object.remove(member));
    run
}

/// The current words for the state of each unfinished run and for the reason why it stopped.
const WORDS: [(&str, &str, Option<&str>); 4] = [
    ("sale@2", "stopped", Some("limit")),
    ("refused@1", "stopped", Some("key")),
    ("signal@1", "stopped", Some("signal")),
    ("killed@1", "interrupted", None),
];

#[test]
fn records_of_earlier_versions_are_shown_as_before() {
    let _files = in_files();
    let folder = copy_stored(&SandboxProcess::start());
    let read_stored = |name: &str| fs::read_to_string(folder.path(name)).expect("stored output");
    for _ in 0..2 {
        let now = folder.campaign(&["status", "--json"]).exits(0).json();
        let list_runs = |report: &Value| -> Vec<Value> {
            report["runs"].as_array().expect("runs").iter().cloned().map(without_changed_fields).collect()
        };
        assert_eq!(list_runs(&now), list_runs(&parse_json(&read_stored("status.json"))));
    }
    for report in read_stored("runs.jsonl").lines().map(parse_json) {
        let name = report["run"].as_str().expect("a name");
        let now = folder.campaign(&["status", name, "--json"]).json();
        let (state, stopped, code) = match WORDS.iter().find(|(run, ..)| *run == name) {
            Some((_, state, stopped)) => (*state, *stopped, 5),
            None => ("finished", None, report["exit"].as_u64().expect("a code")),
        };
        let words = (now["state"].as_str(), now["stopped"].as_str(), now["exit"].as_u64());
        assert_eq!(words, (Some(state), stopped, Some(code)), "{now}");
        assert_eq!(without_changed_fields(now), without_changed_fields(report.clone()));
    }
}

#[test]
fn results_of_runs_from_earlier_versions_can_be_written() {
    let _files = in_files();
    let folder = copy_stored(&SandboxProcess::start());
    for (run, state, rows) in
        [("sale@1", "accepted", 8), ("sale@2", "accepted", 3), ("killed@1", "in_doubt", 1), ("done@1", "invalid", 1)]
    {
        let report = folder.campaign(&["results", run, "--state", state, "--json"]).exits(0).json();
        assert_eq!(report["rows"].as_array().expect("rows").len(), rows, "{run}: {report}");
    }
}

#[test]
fn unfinished_runs_of_earlier_versions_resume_without_repeats() {
    let _files = in_files();
    let gateway = SandboxProcess::start();
    let folder = copy_stored(&gateway);
    let one_message_each = |rows: std::ops::RangeInclusive<usize>| rows.map(|row| (phone(row), 1)).collect();
    for (campaign, exit, expected) in [("sale.yaml", 0, 5..=9), ("signal.yaml", 0, 4..=9), ("killed.yaml", 4, 3..=9)] {
        let before = gateway.messages();
        folder.campaign(&["run", campaign, "--no-wait"]).exits(exit);
        let mut received = gateway.messages();
        for (phone, times) in before {
            *received.get_mut(&phone).expect("a number") -= times;
        }
        received.retain(|_, times| *times > 0);
        assert_eq!(received, one_message_each(expected), "{campaign}");
    }
    folder.campaign(&["run", "sale.yaml", "--no-wait"]).exits(0);
    folder.campaign(&["run", "done.yaml", "--no-wait"]).exits(3);
}
