//! Help texts and errors about invalid command lines.

use std::process::Command;

use crate::support::{Folder, Process, campaign};

fn help_text(arguments: &[&str], columns: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
    command.args(arguments).env_clear().env("COLUMNS", columns);
    let output = Process::start(command).finish().exits(0);
    assert!(output.stderr.is_empty(), "{}", output.details());
    output.stdout.clone()
}

#[test]
fn program_without_arguments_prints_help_to_standard_output() {
    let help = help_text(&["--help"], "80");
    for arguments in [&[][..], &["help"], &["-h"]] {
        assert_eq!(help_text(arguments, "80"), help, "{arguments:?}");
    }
    let groups =
        ["Write:", "Send:", "Follow up:", "Fix:", "Automate:", "People:", "Administer:", "Options:", "Examples:"];
    let positions: Vec<usize> = groups.iter().map(|group| help.find(&format!("\n{group}\n")).expect(group)).collect();
    assert!(positions.is_sorted(), "{help}");
    assert!(help.contains("  serve        Start the dashboard, webhook endpoint and scheduler\n"), "{help}");
    assert!(!help.contains("--state-dir") && help.contains("--json"), "only the common options: {help}");
}

#[test]
fn help_fits_the_width_of_the_terminal() {
    for columns in [80, 100, 200] {
        for command in
            [&["--help"][..], &["run", "--help"], &["run", "-h"], &["results", "--help"], &["suppress", "-h"]]
        {
            let help = help_text(command, &columns.to_string());
            let longest = help.lines().max_by_key(|line| line.chars().count()).expect("lines");
            // Examples and usage lines are never wrapped.
            let is_whole = longest.trim_start().starts_with("campaign ") || longest.starts_with("Usage:");
            assert!(is_whole || longest.chars().count() <= columns.min(100), "{columns} {command:?}: {longest}");
        }
    }
}

#[test]
fn short_help_of_a_command_is_shorter_than_long_help() {
    let (short, long) = (help_text(&["run", "-h"], "100"), help_text(&["run", "--help"], "100"));
    assert!(!short.contains("--state-dir") && long.contains("--state-dir"), "{short}");
    for heading in ["Recipients:", "Confirmation and approval:", "Rehearsal:", "Global options:", "Examples:"] {
        assert!(short.contains(heading) && long.contains(heading), "{heading}: {short}");
    }
    assert!(short.lines().count() < long.lines().count());
}

#[test]
fn existing_command_is_suggested_for_an_unknown_command() {
    let folder = Folder::new(false);
    for (typed, suggestion) in [
        ("send", "`campaign run`"),
        ("start", "`campaign run`"),
        ("list", "`campaign status`"),
        ("delete", "`campaign stop --for-good`"),
        ("validate", "`campaign check`"),
        ("serve-dashboard", "`campaign serve`"),
    ] {
        let refused = folder.campaign(&[typed]).exits(2).says(&format!("unrecognized subcommand '{typed}'"));
        refused.says(&format!("did you mean {suggestion}?"));
    }
    let output = folder.campaign(&["send", "sale.yaml", "--json"]).exits(2).json();
    assert!(output["help"].as_str().is_some_and(|help| help.contains("did you mean `campaign run`?")), "{output}");
}

#[test]
fn guessed_command_names_are_refused_and_send_nothing() {
    let sale = campaign().write();
    for guess in ["send", "start", "resume", "go", "launch"] {
        sale.campaign(&[guess, "sale.yaml", "--yes"]).exits(2);
    }
    assert!(!sale.path("state").exists(), "no run was recorded");
}
