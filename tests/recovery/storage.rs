//! Unusable and outdated ledgers. Also: each intent is in the ledger files before its request arrives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::witness::{Tally, Witness};
use crate::support::{Folder, Gateway, Process, Results, campaign, in_files, note_on_failure, phone};

/// The number of recipients of each campaign, in envelopes of 1, 4 and 4.
const RECIPIENTS: usize = 9;
/// The files of a ledger.
const LEDGER: [&str; 4] = ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.mark"];

fn write_sale(witness: &Witness) -> Folder {
    campaign().to(RECIPIENTS).batches_of(4).one_at_a_time().through(witness).write()
}

/// Copies the existing files of a ledger into another folder: the high-water mark first, because a commit during the
/// copy would otherwise put it ahead of the other files.
fn copy_ledger(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for name in LEDGER.into_iter().rev().filter(|name| from.join(name).exists()) {
        fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

/// Deletes a ledger, but not its high-water mark.
fn remove_ledger(state: &Path) {
    for name in &LEDGER[..3] {
        // Some of these files might not exist.
        let _ = fs::remove_file(state.join(name));
    }
}

/// Damage to the ledger: its name, how to cause it in the state folder, and words of the error.
type Damage = (&'static str, fn(&Path), &'static str);

const DAMAGES: [Damage; 6] = [
    ("deleted", remove_ledger, "ledger.mark"),
    ("put back from an older copy", restore_older, "older copy"),
    ("emptied", |state| overwrite_ledger(state, b""), "ledger.mark"),
    ("overwritten", |state| overwrite_ledger(state, &b"no ledger at all ".repeat(600)), "ledger.sqlite"),
    ("replaced by a folder", replace_with_folder, "ledger.sqlite"),
    ("cut in half", truncate_ledger, "ledger"),
];

fn restore_older(state: &Path) {
    remove_ledger(state);
    let (older, mark) = (state.with_file_name("older"), fs::read(state.join("ledger.mark")).expect("a mark"));
    copy_ledger(&older, state);
    fs::write(state.join("ledger.mark"), mark).expect("the mark");
}

fn overwrite_ledger(state: &Path, bytes: &[u8]) {
    remove_ledger(state);
    fs::write(state.join("ledger.sqlite"), bytes).expect("a file");
}

fn replace_with_folder(state: &Path) {
    remove_ledger(state);
    fs::create_dir(state.join("ledger.sqlite")).expect("a folder");
}

fn truncate_ledger(state: &Path) {
    let bytes = fs::read(state.join("ledger.sqlite")).expect("the ledger");
    overwrite_ledger(state, &bytes[..bytes.len() / 2]);
}

#[test]
fn deleted_ledger_is_detected_and_not_treated_as_empty() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&[]).exits(0);
    remove_ledger(&sale.path("state"));
    for command in [&["status"][..], &["check", "sale.yaml"], &["run", "sale.yaml", "--dry-run"], &["results", "sale"]]
    {
        sale.campaign(command).exits(74).says("the ledger was deleted").says("ledger.mark");
    }
}

#[test]
fn lost_or_old_ledger_blocks_sending_until_it_is_replaced() {
    let _files = in_files();
    for (name, damage, words) in DAMAGES {
        let _case = note_on_failure(format!("case: the ledger is {name}"));
        let witness = Witness::start();
        let sale = write_sale(&witness);
        let state = sale.path("state");
        sale.run(&["--limit", "1"]).exits(0);
        copy_ledger(&state, &sale.path("older"));
        sale.run(&["--limit", "4"]).exits(0);
        copy_ledger(&state, &sale.path("newest"));
        let before = witness.arrivals();
        damage(&state);
        // Repeated attempts must not make the ledger look newer.
        for _ in 0..5 {
            sale.run(&[]).exits(74).says(words);
        }
        assert_eq!(witness.arrivals(), before, "messages were sent");
        // Removes a folder that replaced the ledger.
        let _ = fs::remove_dir(state.join("ledger.sqlite"));
        remove_ledger(&state);
        copy_ledger(&sale.path("newest"), &state);
        sale.run(&[]).exits(0);
        assert_eq!(witness.tally(&sale, (2..RECIPIENTS + 2).map(phone)), Tally::default());
    }
}

#[test]
fn lost_ledger_is_replaced_on_request_and_its_records_are_kept() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = write_sale(&witness);
    sale.run(&["--limit", "1"]).exits(0);
    remove_ledger(&sale.path("state"));
    sale.run(&[]).exits(74).says("--new-ledger");
    sale.run(&["--limit", "2", "--new-ledger"]).exits(0).says("the ledger was deleted");
    sale.run(&[]).exits(0);
    assert_eq!(witness.arrivals(), 1 + RECIPIENTS, "all recipients get the message again");
    // The records of the old ledger are kept.
    assert!(sale.path("results/sale.old-1.csv").exists() && sale.path("state/runs/sale@1.old-1").exists());
}

#[cfg(unix)]
#[test]
fn run_without_access_to_the_state_folder_sends_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    for mode in [0o500, 0o000] {
        let witness = Witness::start();
        let sale = write_sale(&witness);
        sale.run(&["--limit", "1"]).exits(0);
        let state = sale.path("state");
        let set_mode = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).expect("a mode");
        set_mode(mode);
        // Root can write anywhere, so the story proves nothing in that case.
        let is_writable = fs::write(state.join("free"), "").is_ok();
        let run = sale.run(&[]);
        set_mode(0o700);
        if !is_writable {
            run.exits(74).says("state");
            assert_eq!(witness.arrivals(), 1);
            sale.run(&[]).exits(0);
        }
    }
}

#[test]
fn unreadable_state_folder_is_not_treated_as_empty() {
    let sale = campaign().write();
    let run_command = |arguments: &[&str], state: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_campaign-with-failpoints"));
        command.current_dir(sale.path(".")).env_clear().env("HOME", sale.path("home"));
        command.arg("--state-dir").arg(state).args(arguments);
        Process::start(command).finish()
    };
    sale.write("file", "no folder");
    for (name, state) in [("a file", sale.path("file")), ("within a file", sale.path("file/state"))] {
        for arguments in [
            &["status"][..],
            &["status", "sale"],
            &["results", "sale"],
            &["show", "sale", "--row", "2"],
            &["retry", "sale"],
            &["check", "sale.yaml"],
            &["preview", "sale.yaml"],
            &["run", "sale.yaml", "--dry-run"],
            &["run", "sale.yaml"],
        ] {
            let _case = note_on_failure(format!("case: the state folder is {name}, {arguments:?}"));
            run_command(arguments, &state).exits(74).says(&format!(" the state folder `{}`: ", state.display()));
        }
    }
    let nowhere = sale.path("nowhere");
    run_command(&["status"], &nowhere).exits(0).says(&format!("no runs yet in `{}`", nowhere.display()));
}

/// A copy of the state folder from when a request arrived, and the numbers in the request.
type LedgerCopy = (PathBuf, Vec<u64>);

/// Copies the state folder for each request that arrives from now on, and returns the growing list of copies.
fn copy_state_on_requests(witness: &Witness, sale: &Folder) -> Arc<Mutex<Vec<LedgerCopy>>> {
    let moments: Arc<Mutex<Vec<LedgerCopy>>> = Arc::default();
    let (shared, state, copies) = (Arc::clone(&moments), sale.path("state"), sale.path("moments"));
    witness.observe(move |phones| {
        let mut moments = shared.lock().expect("the moments");
        let copy = copies.join(moments.len().to_string());
        copy_ledger(&state, &copy);
        for run in fs::read_dir(state.join("runs")).expect("the runs").map(|run| run.expect("a run").path()) {
            let to = copy.join("runs").join(run.file_name().expect("a name"));
            fs::create_dir_all(&to).expect("a folder");
            for file in ["recipients.csv", "frozen.json"] {
                fs::copy(run.join(file), to.join(file)).expect("a copy");
            }
        }
        moments.push((copy, phones));
    });
    moments
}

#[test]
fn intents_are_in_the_ledger_files_when_a_request_arrives() {
    let _files = in_files();
    for asynchronous in [false, true] {
        let witness = Witness::start();
        let draft = campaign().to(41).batches_of(4).through(&witness);
        let sale = if asynchronous { draft.asynchronous() } else { draft }.write();
        let moments = copy_state_on_requests(&witness, &sale);
        sale.run(&[]).exits(0);
        let moments = moments.lock().expect("the moments");
        assert_eq!(moments.len(), 11);
        // The results were written later and contain more than the copy.
        fs::remove_dir_all(sale.path("results")).expect("the results");
        for (state, phones) in moments.iter() {
            // This is the state that a process would find after a power loss at that moment.
            let mut command = Command::new(env!("CARGO_BIN_EXE_campaign-with-failpoints"));
            command.env_clear().env("HOME", sale.path("home")).arg("--state-dir").arg(state);
            command.args(["results", "sale@1", "--out", "-"]);
            let results = Results::parse(&Process::start(command).finish().exits(0).stdout);
            for phone in phones {
                let row = results.rows.iter().find(|row| row["to"] == phone.to_string()).expect("a row");
                assert_eq!(row["state"], "in_doubt", "{} was not recorded before it left", row["row"]);
            }
        }
    }
}
