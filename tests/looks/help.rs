//! Snapshots of `--help` for the program and each command.

use super::compare;
use crate::support::Folder;

/// The commands whose help has a snapshot.
const COMMANDS: [&str; 67] = [
    "init",
    "check",
    "explain",
    "preview",
    "test",
    "run",
    "plan",
    "approve",
    "stop",
    "status",
    "results",
    "report",
    "replies",
    "outcome",
    "reconcile",
    "resolve",
    "retry",
    "show",
    "find",
    "forget",
    "purge",
    "sandbox",
    "serve",
    "worker",
    "connector",
    "lsp",
    "schema",
    "completions",
    "gateway",
    "gateway balance",
    "gateway senders",
    "gateway status",
    "gateway templates",
    "gateway templates list",
    "gateway templates create",
    "gateway templates delete",
    "gateway viber-templates",
    "gateway viber-templates list",
    "gateway viber-templates create",
    "gateway viber-templates delete",
    "gateway add",
    "gateway hook",
    "gateway trust",
    "gateway lookup",
    "gateway otp",
    "suppress",
    "suppress add",
    "suppress remove",
    "suppress import",
    "suppress export",
    "suppress list",
    "ledger",
    "ledger check",
    "ledger copy",
    "ledger backup",
    "ledger restore",
    "ledger upgrade",
    "schedule",
    "schedule add",
    "schedule list",
    "schedule next",
    "schedule pause",
    "schedule resume",
    "schedule remove",
    "serve link",
    "serve list",
    "serve revoke",
];

#[test]
fn top_level_help_lists_the_commands_with_a_snapshot() {
    compare("help", empty_folder, &["--help"]);
    let help = empty_folder().campaign(&["--help"]).exits(0).stdout;
    for command in COMMANDS.iter().filter(|command| !command.contains(' ')) {
        assert!(help.lines().any(|line| line.trim_start().split(' ').next() == Some(command)), "{command}:\n{help}");
    }
}

#[test]
fn help_of_a_command_matches_its_snapshot() {
    for command in COMMANDS {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        compare(&format!("help-{}", command.replace(' ', "-")), empty_folder, &arguments);
    }
}

fn empty_folder() -> Folder {
    Folder::new(false)
}
