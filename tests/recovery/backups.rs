//! `campaign ledger backup` and `campaign ledger restore`: messages that might be missing from a backup are never
//! resent automatically.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{
    Answer, Finished, Folder, Gateway, Process, SandboxProcess, campaign, in_files, note_on_failure, phone, until,
};

const BACKUP: [&str; 3] = ["ledger", "backup", "saved"];
const RESTORE: [&str; 3] = ["ledger", "restore", "saved"];

/// The binary with its ledger in another state folder, even if the suite runs on PostgreSQL.
fn other_state_command(sale: &Folder, arguments: &[&str]) -> Command {
    let mut command = sale.command(arguments);
    command.env_remove("CAMPAIGN_LEDGER").env("CAMPAIGN_STATE_DIR", sale.path("other"));
    command
}

fn run_to_end(command: Command) -> Finished {
    Process::start(command).finish()
}

fn check_ledger_in(sale: &Folder, folder: &str) -> Finished {
    let mut command = sale.command(&["ledger", "check", "--state-dir", folder]);
    command.env_remove("CAMPAIGN_LEDGER");
    run_to_end(command)
}

#[test]
fn backup_during_a_run_is_complete_and_the_run_continues() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(20).batches_of(4).one_at_a_time().through(&gateway).write();
    let run = sale.start(&[]);
    until("the gateway has the second envelope", || gateway.requests().len() == 2);
    let report = sale.campaign(&[&BACKUP[..], &["--json"]].concat()).exits(0).json();
    assert_eq!((&report["runs"], &report["rows"], &report["without_copies"]), (&json!(1), &json!(20), &json!(0)));
    check_ledger_in(&sale, "saved").exits(0).says("is sound: 1 run with 20 rows");
    sale.campaign(&BACKUP).exits(74).says("the folder is not empty");
    gateway.release();
    run.finish().exits(0);
    let entries = std::fs::read_dir(sale.path("")).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    assert!(!entries.into_iter().any(|name| name.to_string_lossy().contains("part")), "a partial backup is left");
}

#[test]
fn row_count_of_a_backup_includes_lookups() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).through(&gateway).write();
    sale.run(&[]).exits(0);
    for _ in 0..2 {
        sale.campaign(&["gateway", "lookup", "+380501234567", "--gateway", "local", "--yes"]).exits(0);
    }
    sale.campaign(&BACKUP).exits(0).says("2 runs with 7 rows");
    check_ledger_in(&sale, "saved").exits(0).says("2 runs with 7 rows");
    run_to_end(other_state_command(&sale, &RESTORE)).exits(0).says("2 runs with 7 rows");
}

#[test]
fn unrestored_backup_sends_nothing() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).through(&gateway).write();
    sale.campaign(&["suppress", "add", &format!("+{}", phone(3))]).exits(0);
    sale.campaign(&BACKUP).exits(0);
    for arguments in [
        &["run", "sale.yaml", "--state-dir", "saved", "--no-wait"][..],
        &["gateway", "lookup", "380501234567", "--gateway", "local", "--state-dir", "saved"],
    ] {
        let mut command = sale.command(arguments);
        command.env_remove("CAMPAIGN_LEDGER");
        run_to_end(command).exits(74).says("that has not been restored").says("ledger restore");
    }
    assert!(gateway.requests().is_empty());
    check_ledger_in(&sale, "saved").exits(0);
}

#[test]
fn messages_sent_after_a_backup_are_reconciled_and_not_resent() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(12).batches_of(4).one_at_a_time().through(&sandbox).write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.campaign(&BACKUP).exits(0);
    sale.run(&["--limit", "5"]).exits(0);
    let restored = run_to_end(other_state_command(&sale, &[&RESTORE[..], &["--json"]].concat())).exits(4).json();
    assert_eq!(restored["in_doubt"], json!([{ "run": "sale@1", "rows": 8 }]));
    // Five of the eight messages were sent, and the gateway confirms them. The other three stay in doubt.
    let resumed = run_to_end(other_state_command(&sale, &["run", "sale.yaml", "--no-wait", "--json"])).exits(4).json();
    assert_eq!((&resumed["counts"], &resumed["sent"]), (&json!({ "accepted": 9, "in_doubt": 3 }), &json!(0)));
    let resolve = ["resolve", "sale", "--all", "--as", "send-again", "--i-accept-duplicates", "3"];
    run_to_end(other_state_command(&sale, &resolve)).exits(5);
    run_to_end(other_state_command(&sale, &["run", "sale.yaml", "--no-wait"])).exits(0);
    assert_eq!(sandbox.messages(), (2..14).map(|row| (phone(row), 1)).collect(), "each recipient gets one message");
}

#[test]
fn run_after_a_restore_requires_accepting_duplicates() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.campaign(&["suppress", "add", &format!("+{}", phone(3))]).exits(0);
    sale.campaign(&BACKUP).exits(0);
    sale.run(&[]).exits(0);
    std::fs::remove_dir_all(sale.path("results")).expect("results");
    run_to_end(other_state_command(&sale, &RESTORE)).exits(0).says("need `--i-accept-duplicates`");
    let sent = gateway.phones().len();
    let run = |number: &[&str]| {
        run_to_end(other_state_command(&sale, &[&["run", "sale.yaml", "--no-wait"], number].concat()))
    };
    run(&[]).exits(2).says("does not contain messages sent since then").says("--i-accept-duplicates 9");
    run(&["--i-accept-duplicates", "10"]).exits(2).says("9 recipients might get the message twice");
    run(&["--gateway", "sandbox"]).exits(0);
    assert_eq!(gateway.phones().len(), sent);
    run(&["--i-accept-duplicates", "9", "--limit", "2"]).exits(0);
    run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), sent + 9, "the restored ledger records the new messages");
}

#[test]
fn recipient_forgotten_after_a_backup_is_forgotten_again() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(6).top("timezone: Europe/Kyiv").top("schedule: { every: Mon 10:00 }").through(&gateway);
    let sale = sale.write();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    sale.run(&["--now", "--limit", "4"]).exits(0);
    sale.campaign(&BACKUP).exits(0);
    let forgotten_numbers = [format!("+{}", phone(3)), format!("+{}", phone(7))];
    for number in &forgotten_numbers {
        sale.campaign(&["forget", number, "--yes"]).exits(0);
    }
    let restored = sale.campaign(&[&RESTORE[..], &["--json"]].concat()).exits(4).json();
    assert_eq!((&restored["forgotten"], &restored["paused"]), (&json!(2), &json!(["sale"])));
    assert_eq!(
        restored["in_doubt"],
        json!([{ "run": "sale@1", "rows": 1 }]),
        "a forgotten recipient who was planned is skipped"
    );
    for number in &forgotten_numbers {
        assert_eq!(sale.campaign(&["find", number, "--json"]).exits(0).json()["runs"], json!([]));
    }
    assert!(sale.path("state/ledger.sqlite.old-1").exists(), "the replaced ledger is kept");
    assert_eq!(sale.campaign(&["schedule", "list", "--json"]).exits(0).json_list()[0]["state"], "paused");
}

#[test]
fn folder_without_a_complete_backup_is_not_restored() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&BACKUP).exits(0);
    let restore = |folder: &str| run_to_end(other_state_command(&sale, &["ledger", "restore", folder]));
    restore("nowhere").exits(74).says("it contains no backup");
    let file = sale.path("saved/ledger.sqlite");
    let bytes = std::fs::read(&file).expect("a backup");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("a truncated backup");
    restore("saved").exits(74).says("nothing was restored");
    std::fs::write(&file, &bytes).expect("the complete backup");
    restore("saved").exits(0);
    restore("other").exits(74).says("in use, not a backup");
    std::fs::remove_dir_all(sale.path("saved/runs")).expect("the copies");
    let mut command = other_state_command(&sale, &["ledger", "restore", "saved"]);
    command.env("CAMPAIGN_STATE_DIR", sale.path("third"));
    run_to_end(command).exits(0).says("1 run cannot be retried or exported");
    run_to_end(other_state_command(&sale, &["status", "sale"])).exits(0);
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn interrupted_restore_blocks_sending_until_it_is_repeated() {
    let gateway = Gateway::accepting();
    for failpoint in ["backup.copied", "restore.aside", "restore.placed", "restore.doubted"] {
        let _case = note_on_failure(format!("case: {failpoint}"));
        let sale = campaign().to(8).batches_of(2).one_at_a_time().through(&gateway).write();
        sale.run(&["--limit", "2"]).exits(0);
        let assert_dies = |mut command: Command| {
            command.env("CAMPAIGN_FAILPOINT", format!("{failpoint}:1"));
            let died = run_to_end(command);
            assert_eq!(died.code(), None, "{}", died.details());
        };
        if failpoint == "backup.copied" {
            assert_dies(sale.command(&BACKUP));
            assert!(!Path::new(&sale.path("saved")).exists());
        }
        sale.campaign(&BACKUP).exits(0);
        sale.run(&[]).exits(0);
        let sent = gateway.phones().len();
        // This restore creates the ledger that the interrupted restore replaces.
        run_to_end(other_state_command(&sale, &RESTORE)).exits(4);
        if failpoint != "backup.copied" {
            assert_dies(other_state_command(&sale, &RESTORE));
            let between = run_to_end(other_state_command(&sale, &["run", "sale.yaml", "--no-wait"]));
            assert_eq!(between.code(), Some(74), "{}", between.details());
            run_to_end(other_state_command(&sale, &RESTORE)).exits(4);
        }
        run_to_end(other_state_command(&sale, &["run", "sale.yaml", "--no-wait"])).exits(4);
        assert_eq!(gateway.phones().len(), sent, "no message is sent twice");
    }
}
