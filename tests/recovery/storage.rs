//! A ledger that cannot be used, or that is not the newest; and what is on the disk when a request arrives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use super::witness::{Tally, Witness};
use crate::support::{Folder, Gateway, Process, Results, campaign, in_files, phone, telling};

/// How many people the campaigns here go to, in envelopes of 1, 4 and 4.
const PEOPLE: usize = 9;
/// The files of a ledger.
const LEDGER: [&str; 4] = ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.mark"];

fn sale(witness: &Witness) -> Folder {
    campaign().to(PEOPLE).batches_of(4).one_at_a_time().through(witness).write()
}

/// Copies the files of a ledger that there are, into a folder of their own; the mark first, which a commit in between
/// would bring ahead of the others.
fn copy_ledger(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for name in LEDGER.into_iter().rev().filter(|name| from.join(name).exists()) {
        fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

/// Takes a ledger away, all but its mark.
fn remove_ledger(state: &Path) {
    for name in &LEDGER[..3] {
        // Not all of them are always there.
        let _ = fs::remove_file(state.join(name));
    }
}

/// What happens to a ledger: its name, what is done in the state folder, and what a person is told.
type Mishap = (&'static str, fn(&Path), &'static str);

const MISHAPS: [Mishap; 6] = [
    ("deleted", remove_ledger, "ledger.mark"),
    ("put back from an older copy", put_back_older, "older copy"),
    ("emptied", |state| write_instead(state, b""), "ledger.mark"),
    ("overwritten", |state| write_instead(state, &b"no ledger at all ".repeat(600)), "ledger.sqlite"),
    ("replaced by a folder", replace_by_folder, "ledger.sqlite"),
    ("cut in half", cut_in_half, "ledger"),
];

fn put_back_older(state: &Path) {
    remove_ledger(state);
    let (older, mark) = (state.with_file_name("older"), fs::read(state.join("ledger.mark")).expect("a mark"));
    copy_ledger(&older, state);
    fs::write(state.join("ledger.mark"), mark).expect("the mark");
}

fn write_instead(state: &Path, bytes: &[u8]) {
    remove_ledger(state);
    fs::write(state.join("ledger.sqlite"), bytes).expect("a file");
}

fn replace_by_folder(state: &Path) {
    remove_ledger(state);
    fs::create_dir(state.join("ledger.sqlite")).expect("a folder");
}

fn cut_in_half(state: &Path) {
    let bytes = fs::read(state.join("ledger.sqlite")).expect("the ledger");
    write_instead(state, &bytes[..bytes.len() / 2]);
}

#[test]
fn deleted_ledger_is_missed_and_does_not_mean_nothing_sent() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&[]).exits(0);
    remove_ledger(&sale.path("state"));
    for look in [&["status"][..], &["check", "sale.yaml"], &["run", "sale.yaml", "--dry-run"], &["results", "sale"]] {
        sale.campaign(look).exits(74).says("the ledger was deleted").says("ledger.mark");
    }
}

#[test]
fn lost_or_old_ledger_sends_nothing_and_the_right_one_resumes() {
    let _files = in_files();
    for (name, happens, told) in MISHAPS {
        let _case = telling(format!("case: the ledger is {name}"));
        let witness = Witness::start();
        let sale = sale(&witness);
        let state = sale.path("state");
        sale.run(&["--limit", "1"]).exits(0);
        copy_ledger(&state, &sale.path("older"));
        sale.run(&["--limit", "4"]).exits(0);
        copy_ledger(&state, &sale.path("newest"));
        let before = witness.arrived();
        happens(&state);
        // However often it is tried: trying must not make the ledger look newer.
        for _ in 0..5 {
            sale.run(&[]).exits(74).says(told);
        }
        assert_eq!(witness.arrived(), before, "something was sent");
        // Whatever stands in its place now goes away.
        let _ = fs::remove_dir(state.join("ledger.sqlite"));
        remove_ledger(&state);
        copy_ledger(&sale.path("newest"), &state);
        sale.run(&[]).exits(0);
        assert_eq!(witness.tally(&sale, (2..PEOPLE + 2).map(phone)), Tally::default());
    }
}

#[test]
fn lost_ledger_is_replaced_on_request_and_remembered() {
    let _files = in_files();
    let witness = Witness::start();
    let sale = sale(&witness);
    sale.run(&["--limit", "1"]).exits(0);
    remove_ledger(&sale.path("state"));
    sale.run(&[]).exits(74).says("--new-ledger");
    sale.run(&["--limit", "2", "--new-ledger"]).exits(0).says("the ledger was deleted");
    sale.run(&[]).exits(0);
    assert_eq!(witness.arrived(), 1 + PEOPLE, "the user was told who would get it again");
    // What the old ledger knew is still there.
    assert!(sale.path("results/sale.old-1.csv").exists() && sale.path("state/runs/sale@1.old-1").exists());
}

#[cfg(unix)]
#[test]
fn state_folder_without_permissions_sends_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    for mode in [0o500, 0o000] {
        let witness = Witness::start();
        let sale = sale(&witness);
        sale.run(&["--limit", "1"]).exits(0);
        let state = sale.path("state");
        let set = |mode| fs::set_permissions(&state, fs::Permissions::from_mode(mode)).expect("a mode");
        set(mode);
        // A superuser may write everywhere, and then there is nothing to see here.
        let free = fs::write(state.join("free"), "").is_ok();
        let run = sale.run(&[]);
        set(0o700);
        if !free {
            run.exits(74).says("state");
            assert_eq!(witness.arrived(), 1);
            sale.run(&[]).exits(0);
        }
    }
}

#[test]
fn unreadable_state_folder_does_not_mean_nothing_sent() {
    let sale = campaign().write();
    let command = |arguments: &[&str], state: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
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
            let _case = telling(format!("case: the state folder is {name}, {arguments:?}"));
            command(arguments, &state).exits(74).says(&format!(" the state folder `{}`: ", state.display()));
        }
    }
    let nowhere = sale.path("nowhere");
    command(&["status"], &nowhere).exits(0).says(&format!("no runs yet in `{}`", nowhere.display()));
}

/// The state folder as it was when a request arrived, and the numbers in the request.
type Moment = (PathBuf, Vec<u64>);

/// Keeps a copy of the state folder for each request that arrives from now on.
fn keep_moments(witness: &Witness, sale: &Folder) -> Arc<Mutex<Vec<Moment>>> {
    let moments: Arc<Mutex<Vec<Moment>>> = Arc::default();
    let (kept, state, copies) = (Arc::clone(&moments), sale.path("state"), sale.path("moments"));
    witness.show(move |phones| {
        let mut moments = kept.lock().expect("the moments");
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
        let moments = keep_moments(&witness, &sale);
        sale.run(&[]).exits(0);
        let moments = moments.lock().expect("the moments");
        assert_eq!(moments.len(), 11);
        // The results that came later know more than what is looked at here.
        fs::remove_dir_all(sale.path("results")).expect("the results");
        for (state, phones) in moments.iter() {
            // What a process would find that starts after a loss of power at that moment.
            let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
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
