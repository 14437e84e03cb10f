//! Snapshots of `--help` for the program and each command.

use super::compare;
use crate::support::Folder;

/// All commands.
const COMMANDS: [&str; 70] = [
    "demo",
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
    "doctor",
    "sandbox",
    "serve",
    "worker",
    "connector",
    "lsp",
    "schema",
    "completions",
    "man",
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
fn top_level_help_lists_every_command() {
    compare("help", empty_folder, &["--help"]);
    let help = empty_folder().campaign(&["--help"]).exits(0).stdout;
    let names = help.lines().filter_map(|line| Some(line.strip_prefix("  ")?.split_once("  ")?.0));
    let is_command = |name: &&str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut listed: Vec<&str> = names.filter(is_command).collect();
    let mut commands: Vec<&str> = COMMANDS.into_iter().filter(|command| !command.contains(' ')).collect();
    listed.sort_unstable();
    commands.sort_unstable();
    assert_eq!(listed, commands, "{help}");
}

#[test]
fn help_of_every_command_matches_its_snapshot() {
    for command in COMMANDS {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        compare(&format!("help-{}", command.replace(' ', "-")), empty_folder, &arguments);
    }
}

fn empty_folder() -> Folder {
    Folder::new(false)
}
