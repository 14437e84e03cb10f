//! Results files: they replace earlier results, but no other file.

use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{Draft, Folder, Gateway, Results, campaign, note_on_failure};

/// A campaign whose results go to `path`.
fn campaign_with_results(path: &str) -> Draft {
    campaign().top(&format!("results: \"{path}\""))
}

/// The files directly in the folder, each with its bytes. Files in subfolders, such as the ledger, are left out.
fn list_files(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let listed = std::fs::read_dir(folder.path(".")).expect("a folder").map(|entry| entry.expect("an entry"));
    let files = listed.filter(|entry| entry.metadata().is_ok_and(|entry| entry.is_file()));
    let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().expect("a name");
    let mut files: Vec<_> =
        files.map(|entry| (name(&entry), std::fs::read(entry.path()).expect("its bytes"))).collect();
    files.sort();
    files
}

/// Checks that `check`, `run` and `run --dry-run` reject the results path, and send and change nothing.
#[track_caller]
fn assert_refused(sale: &Folder, gateway: &Gateway, why: &str) {
    let before = list_files(sale);
    for arguments in [&["check", "sale.yaml"][..], &["run", "sale.yaml"], &["run", "sale.yaml", "--dry-run"]] {
        let refused = sale.campaign(arguments).exits(2).says(why);
        assert!(refused.stderr.contains("results-overwrite") && refused.stderr.contains("sale.yaml:2:"), "{refused:?}");
    }
    assert!(gateway.requests().is_empty(), "messages were sent");
    assert_eq!(list_files(sale), before, "files were changed");
}

#[test]
fn run_is_refused_if_results_would_replace_another_file() {
    for (path, why) in [
        ("sale.csv", "the recipient list"),
        ("./sale.csv", "the recipient list"),
        ("sub/../sale.csv", "the recipient list"),
        ("link.csv", "the recipient list"),
        ("twin.csv", "the recipient list"),
        ("sale.yaml", "the campaign file"),
        ("hello.txt", "one of the campaign's templates"),
        ("gateways.yaml", "the gateway profiles file"),
        ("state/ledger.sqlite", "in the state folder"),
        ("./state/new.csv", "in the state folder"),
        ("notes.txt", "not a results file"),
        ("other.csv", "not a results file"),
        ("sub", "is a folder"),
        ("sub/", "is a folder"),
        ("pipe", "a pipe or a device"),
        ("/dev/null", "a pipe or a device"),
        ("broken.csv", "a broken link"),
    ] {
        let _case = note_on_failure(format!("case: {path}"));
        let gateway = Gateway::accepting();
        let sale = campaign_with_results(path)
            .channels("  - sms: { signature: OlenaCo, message: { file: hello.txt } }")
            .through(&gateway)
            .write();
        for (name, text) in [("hello.txt", "Hello"), ("notes.txt", "dear diary"), ("other.csv", "phone,row\n1,2\n")] {
            sale.write(name, text);
        }
        sale.write("sub/mine.txt", "x");
        symlink("sale.csv", sale.path("link.csv")).expect("a link");
        symlink("nowhere.csv", sale.path("broken.csv")).expect("a link");
        std::fs::hard_link(sale.path("sale.csv"), sale.path("twin.csv")).expect("a second name");
        assert!(Command::new("mkfifo").arg(sale.path("pipe")).status().is_ok_and(|status| status.success()));
        assert_refused(&sale, &gateway, why);
    }
}

#[test]
fn results_file_used_as_a_list_is_not_replaced() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&[]).exits(0);
    let gateway = Gateway::accepting();
    let again = campaign_with_results("sub/../again.csv").through(&gateway).write();
    again.write("again.csv", &std::fs::read_to_string(sale.results_file()).expect("results"));
    again.replace("sale.yaml", "file: sale.csv", "file: again.csv");
    assert_refused(&again, &gateway, "the recipient list");
}

#[test]
fn results_and_empty_files_are_replaced() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let results = std::fs::read_to_string(sale.results_file()).expect("results");
    let spreadsheet = format!("\u{feff}{}", results.replace(',', ";").replace('\n', "\r\n"));
    for before in [results.as_str(), &spreadsheet, ""] {
        std::fs::write(sale.results_file(), before).expect("a file");
        sale.run(&[]).exits(0);
        assert_eq!(sale.results().states(), ["accepted"; 3]);
    }
}

#[test]
fn results_replace_a_symlink_target_and_keep_the_symlink() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_results("latest.csv").through(&gateway).write();
    sale.write("kept/sale.csv", "");
    symlink("kept/sale.csv", sale.path("latest.csv")).expect("a link");
    sale.run(&["--limit", "1"]).exits(0);
    assert!(sale.path("latest.csv").symlink_metadata().expect("a link").is_symlink());
    assert_eq!(Results::read(&sale.path("kept/sale.csv")).rows.len(), 3);
}

#[test]
fn foreign_file_created_while_sending_is_kept() {
    let gateway = Gateway::answering([crate::support::Answer::Held]);
    let sale = campaign_with_results("r.csv").through(&gateway).write();
    let run = sale.start(&[]);
    crate::support::until("the gateway has the first envelope", || !gateway.requests().is_empty());
    sale.write("r.csv", "my own work");
    gateway.release();
    run.finish().exits(74).says("not a results file");
    assert_eq!(std::fs::read_to_string(sale.path("r.csv")).expect("a file"), "my own work");
    sale.campaign(&["results", "sale"]).exits(2);
    sale.campaign(&["results", "sale", "--out", "elsewhere.csv"]).exits(0);
    assert_eq!(Results::read(&sale.path("elsewhere.csv")).states(), ["accepted"; 3]);
}

#[test]
fn results_never_overwrite_a_file_named_by_mistake() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    sale.write("notes.txt", "dear diary");
    let before = list_files(&sale);
    for path in ["sale.csv", "./sale.csv", "sale.yaml", "notes.txt", "state/ledger.sqlite", "state/x.csv", "results"] {
        sale.campaign(&["results", "sale", "--out", path]).exits(2).says("nothing was written");
        sale.campaign(&["results", "sale", "--state", "accepted", "--out", path]).exits(2);
    }
    assert_eq!(list_files(&sale), before);
    assert!(!sale.path("state/x.csv").exists());
    for _ in 0..2 {
        sale.campaign(&["results", "sale", "--out", "out.csv"]).exits(0);
    }
}

#[test]
fn rehearsal_never_replaces_live_results() {
    let gateway = Gateway::accepting();
    let sale = campaign_with_results("out/x.csv").through(&gateway).write();
    sale.run(&[]).exits(0);
    let live = std::fs::read(sale.path("out/x.csv")).expect("results");
    sale.run(&["--gateway", "sandbox"]).exits(0).says("out/x.sandbox.csv");
    sale.run(&["--gateway", "sandbox", "--dry-run"]).exits(0).says("out/x.sandbox.dry-run.csv");
    sale.run(&["--dry-run"]).exits(0).says("out/x.dry-run.csv");
    assert_eq!(std::fs::read(sale.path("out/x.csv")).expect("results"), live);
    for derived in ["out/x.sandbox.csv", "out/x.sandbox.dry-run.csv", "out/x.dry-run.csv"] {
        assert_eq!(Results::read(&sale.path(derived)).rows.len(), 3, "{derived}");
        sale.write(derived, "my own work");
    }
    sale.run(&["--gateway", "sandbox"]).exits(2);
    sale.run(&["--dry-run"]).exits(2);
    assert_eq!(std::fs::read_to_string(sale.path("out/x.dry-run.csv")).expect("a file"), "my own work");
}
