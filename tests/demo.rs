//! `campaign demo`: a rehearsal in which a process is killed. An independent reader of the journal counts the messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Folder, Process, Terminal, in_files, judge_results_in};

/// The `demo` command of a user with a ledger and gateway profiles of their own.
fn demo_command(folder: &Folder, arguments: &[&str]) -> std::process::Command {
    let mut command = folder.command(&[&["demo"], arguments].concat());
    command.env("CAMPAIGN_LEDGER", "postgres://nobody@127.0.0.1:1/none");
    command.env("CAMPAIGN_GATEWAYS", folder.path("my-gateways.yaml"));
    command
}

/// The number of accepted messages per phone number, according to the journal.
fn count_messages(journal: &Path) -> BTreeMap<String, usize> {
    let mut messages = BTreeMap::new();
    for line in fs::read_to_string(journal).expect("a journal").lines() {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        if line["event"] == "operation" && line["success"] == true && line["phone"].is_string() {
            *messages.entry(line["phone"].to_string()).or_default() += 1;
        }
    }
    messages
}

#[test]
fn demo_with_a_killed_run_sends_each_message_once() {
    let _files = in_files();
    let folder = Folder::new(false);
    let finished = Process::start(demo_command(&folder, &["tour", "--fast", "--json"])).finish().exits(0);
    let figures = finished.json();
    assert_eq!((&figures["sent"], &figures["duplicates"]), (&1_000.into(), &0.into()), "{figures}");
    let before = figures["sent_before_kill"].as_u64().expect("a number");
    assert!((500..1_000).contains(&before), "the process was killed halfway: {before}");
    let journal = folder.path("tour/journal.jsonl");
    let messages = count_messages(&journal);
    assert_eq!((messages.len(), messages.values().max()), (1_000, Some(&1)));
    judge_results_in(&folder.path("tour/results"), &journal);
    let report = fs::read_to_string(folder.path("tour/report.html")).expect("a report");
    assert!(report.contains("autumn-sale") && report.contains("Viber"), "{report}");
}

#[test]
fn demo_does_not_touch_the_ledger_of_the_user() {
    let _files = in_files();
    let folder = Folder::new(false);
    Process::start(demo_command(&folder, &["--fast", "-q"])).finish().exits(0);
    assert!(folder.path("campaign-demo/state/ledger.sqlite").exists());
    assert!(!folder.path("state").exists() && !folder.path("home").exists(), "the demo uses only its own folder");
    for option in ["--state-dir", "--gateways"] {
        let refused = folder.campaign(&["demo", "other", "--fast", option, "mine"]).exits(2);
        refused.says("the demo uses its own ledger and gateway");
    }
    assert!(!folder.path("other").exists() && !folder.path("mine").exists());
}

#[test]
fn demo_shows_each_step_and_the_received_messages() {
    let _files = in_files();
    let folder = Folder::new(false);
    let finished = Process::start(demo_command(&folder, &["--fast"])).finish().exits(0);
    let steps = [
        "1. A campaign",
        "cannot be sent: 2 errors",
        "liftime",
        "frist_name",
        "+ lifetime: 1h",
        "is ready: 1 000 of 1 000 recipients",
        "4. See what a recipient gets",
        "killed (with SIGKILL",
        "6. Run the same command again",
        "1 000 accepted",
        "1 000 sent, 0 duplicates",
        "report.html",
    ];
    let shown = finished.stdout.replace(['\u{a0}', '\u{202f}'], " ") + &finished.stderr;
    for step in steps {
        assert!(shown.contains(step), "no `{step}` in {shown}");
    }
    assert!(!shown.contains("Press Enter"), "a demo without a terminal does not wait for input: {shown}");
}

#[test]
fn second_demo_overwrites_nothing() {
    let _files = in_files();
    let folder = Folder::new(false);
    folder.write("campaign-demo/autumn-sale.yaml", "mine");
    let second = Process::start(demo_command(&folder, &["--fast", "--json"])).finish().exits(0).json();
    assert_eq!(second["folder"], "campaign-demo-2");
    for existing in ["campaign-demo", "campaign-demo-2"] {
        let before = fs::read_to_string(folder.path(existing).join("autumn-sale.yaml")).expect("a file");
        let refused = Process::start(demo_command(&folder, &[existing, "--fast"])).finish().exits(2);
        refused.says(&format!("the folder `{existing}` is not empty; nothing was written"));
        assert_eq!(fs::read_to_string(folder.path(existing).join("autumn-sale.yaml")).expect("a file"), before);
    }
    assert_eq!(fs::read_dir(folder.path("campaign-demo")).expect("a folder").count(), 1);
}

#[test]
fn interrupted_demo_says_that_nothing_was_sent() {
    let _files = in_files();
    let folder = Folder::new(false);
    let mut terminal = Terminal::start_on(80, demo_command(&folder, &[]));
    terminal.shows("1. A campaign").shows("Press Enter to continue, or Ctrl-C to stop:").types("");
    terminal.shows("cannot be sent: 2 errors").shows("Press Enter");
    terminal.signal("INT");
    terminal.shows("Cancelled. The demo was stopped. Recipients got no messages");
    let shown = terminal.shown();
    terminal.finish().exits(130);
    assert!(!shown.contains("error: C"), "{shown}");
}
