//! Lists that a program prints (`command`).

use super::{campaign_with_source, count_copies};
use crate::support::{Folder, Gateway, KEY, KEY_VARIABLE, Process, campaign, phone, unreachable_url, until};

/// Creates a campaign whose list this script prints.
fn campaign_with_script(draft: crate::support::Draft, script: &str) -> Folder {
    let folder = campaign_with_source(draft, "command: [./list.sh, \"{{ today }}\", \"a b; touch shell\"]");
    write_script(&folder, script);
    folder
}

fn write_script(folder: &Folder, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    folder.write("list.sh", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(folder.path("list.sh"), std::fs::Permissions::from_mode(0o700)).expect("a mode");
}

/// A script that prints two recipients and records its start.
const LIST_SCRIPT: &str = "echo started >> started\nprintf 'phone,name\\n%s,Ann\\n%s,Bob\\n' 380501000002 380501000003";

/// Counts the starts of the script.
fn count_starts(folder: &Folder) -> usize {
    std::fs::read_to_string(folder.path("started")).map_or(0, |text| text.lines().count())
}

#[test]
fn list_command_starts_only_for_a_run_or_on_request() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_script(campaign().through(&gateway), LIST_SCRIPT);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("--fetch").says("the output of list.sh");
    sale.campaign(&["preview", "sale.yaml"]).exits(2).says("--fetch");
    sale.campaign(&["plan", "sale.yaml"]).exits(2).says("--fetch");
    assert_eq!(count_starts(&sale), 0, "the program was not requested");
    let checked = sale.campaign(&["check", "sale.yaml", "--fetch", "--json"]).exits(0).json();
    assert_eq!(checked["rows"], 2);
    sale.campaign(&["preview", "sale.yaml", "--fetch"]).exits(0).says("Hello, Ann");
    sale.campaign(&["plan", "sale.yaml", "--fetch"]).exits(0).says("2  get a message");
    sale.run(&["--dry-run"]).exits(0);
    assert_eq!(count_starts(&sale), 4);
    sale.run(&[]).exits(0);
    assert_eq!((gateway.phones(), count_starts(&sale)), (vec![phone(2), phone(3)], 5));
    assert_eq!(sale.results().column("name"), ["Ann", "Bob"]);
    assert!(!sale.path("shell").exists(), "no shell interprets its arguments");
    assert_eq!(count_copies(&sale), 0);
}

#[test]
fn invalid_text_is_reported_without_reading_the_list() {
    let sms = "  - sms: { signature: OlenaCo, message: \"{% if name %}Hello\" }";
    let sale = campaign_with_script(campaign().channels(sms), LIST_SCRIPT);
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("--fetch").says("is not closed; `{% endif %}` is missing");
    assert_eq!(count_starts(&sale), 0);
}

#[test]
fn resumed_run_uses_its_copy_and_starts_no_program() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_script(campaign().through(&gateway), LIST_SCRIPT);
    sale.run(&["--limit", "1"]).exits(0);
    write_script(&sale, "echo started >> started; echo phone,name; echo 380501000009,Eve");
    sale.run(&[]).exits(0);
    assert_eq!((gateway.phones(), count_starts(&sale)), (vec![phone(2), phone(3)], 1));
    // The next run uses a new list.
    sale.run(&[]).exits(0);
    assert_eq!((gateway.phones().last(), count_starts(&sale)), (Some(&phone(9)), 2));
}

#[test]
fn error_of_a_list_program_is_quoted_and_nothing_is_sent() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_script(
        campaign().through(&gateway),
        "echo phone; echo 380501000002; echo 'no such table' >&2; exit 3",
    );
    sale.run(&[]).exits(2).says("no such table").says("exit status: 3").says("sale.yaml:4:");
    write_script(&sale, "true");
    sale.run(&[]).exits(2).says("not even a header");
    write_script(&sale, "echo phone,name");
    sale.run(&[]).exits(2).says("no recipients").says("the output of list.sh");
    sale.replace("sale.yaml", "command: [./list.sh", "empty: ok\n  command: [./list.sh");
    sale.run(&[]).exits(0);
    sale.replace("sale.yaml", "./list.sh", "./no-such-program");
    sale.run(&[]).exits(2).says("cannot be started");
    assert_eq!((gateway.phones(), count_copies(&sale)), (Vec::new(), 0));
}

#[test]
fn list_program_gets_no_key_and_an_empty_standard_input() {
    let sale = campaign_with_script(campaign().through(&Gateway::accepting()), "env > env; cat > input; exit 1");
    let mut run = sale.command(&["run", "sale.yaml"]);
    run.env("CRM_TOKEN", "of-the-crm");
    Process::start(run).finish().exits(2);
    let environment = std::fs::read_to_string(sale.path("env")).expect("its environment");
    assert!(environment.contains("of-the-crm") && !environment.contains(KEY) && !environment.contains(KEY_VARIABLE));
    assert_eq!(std::fs::read_to_string(sale.path("input")).expect("its input"), "");
}

#[test]
fn list_program_does_not_start_if_the_profiles_are_unreadable() {
    // Without the profiles, it is unknown which variables contain keys.
    let sale = campaign_with_script(campaign().through(&Gateway::accepting()), LIST_SCRIPT);
    sale.write("gateways.yaml", "gateways: [");
    sale.run(&["--gateway", "sandbox"]).exits(2).says("gateways.yaml:1:");
    assert_eq!(count_starts(&sale), 0);
}

#[test]
fn timeout_or_interrupt_kills_a_list_program_and_its_children() {
    // The child keeps the output pipe open, and the pipe has a reader while `campaign` runs.
    let script = "(sleep 300; echo late > late) & echo $! > child; echo $$ > parent; wait";
    let sale = campaign_with_script(campaign().recipients("timeout: 1s"), script);
    sale.run(&[]).exits(2).says("within 1 s");
    assert_gone(&sale);
    sale.replace("sale.yaml", "timeout: 1s", "timeout: 10m");
    for name in ["child", "parent"] {
        std::fs::remove_file(sale.path(name)).expect("a number");
    }
    for arguments in [&["run", "sale.yaml"][..], &["check", "sale.yaml", "--fetch"]] {
        let mut process = Process::start(sale.command(arguments));
        until("the program runs", || read_pid(&sale, "parent").is_some());
        process.signal("INT");
        process.finish().exits(130);
        assert_gone(&sale);
        std::fs::remove_file(sale.path("parent")).expect("a number");
    }
    assert_eq!(count_copies(&sale), 0);
}

/// Fails unless the program and its child are gone.
fn assert_gone(sale: &Folder) {
    for name in ["child", "parent"] {
        let number = read_pid(sale, name).expect("a number");
        let is_running = || {
            let state = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        until("the process is gone", || !is_running());
    }
}

/// Reads a process ID from a file; `None` until its line is complete.
fn read_pid(sale: &Folder, name: &str) -> Option<u32> {
    std::fs::read_to_string(sale.path(name)).ok()?.strip_suffix('\n')?.parse().ok()
}

#[test]
fn invalid_source_is_refused_without_showing_its_secret() {
    let address = unreachable_url();
    for (source, words) in [
        (format!("url: {address}/a.csv\nheaders: {{ Authorization: s3cret }}"), "where to find the secret"),
        ("url: https://me:s3cret@crm.example/a.csv".to_owned(), "a user name or a password"),
        ("url: http://crm.example/a.csv".to_owned(), "`https://`"),
        ("url: ftp://crm.example/a.csv".to_owned(), "`https://`"),
        ("sql: select 1\nfrom: s3cret".to_owned(), "where to find the secret"),
        ("sql: select 1".to_owned(), "needs `from`"),
        ("run: sale@1".to_owned(), "needs `state`"),
        ("run: sale@1\nstate: [gone]".to_owned(), "`gone`"),
        ("run: sale@1\nstate: failed\nurl: https://crm.example/a.csv".to_owned(), "has both"),
        ("columns: { phone: a }".to_owned(), "needs `file`"),
        ("command: [a]\nheaders: { Accept: text/csv }".to_owned(), "`headers` applies only to `url`"),
    ] {
        let output = campaign_with_source(campaign(), &source).run(&[]).exits(2).says(words);
        assert!(!output.stdout.contains("s3cret"), "{}", output.details());
    }
}
