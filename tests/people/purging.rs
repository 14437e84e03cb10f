//! `campaign purge`: deletes the personal data of old runs, without causing duplicate messages.

use std::fs;
use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{files, files_containing, find, number, spellings};
use crate::support::{Answer, Clock, Finished, Folder, Gateway, Process, campaign, in_files, phone, rejected, until};

/// A text in every row.
const CELL: &str = "Of-an-old-list";

fn people_list(people: usize) -> String {
    let rows: String = (2..people + 2).map(|row| format!("{},{CELL}\n", number(row))).collect();
    format!("phone,name\n{rows}")
}

/// Runs `purge` with the clock five hundred days ahead.
struct FutureClock(Clock);

impl FutureClock {
    fn new() -> Self {
        Self(Clock::new())
    }

    fn command(&self, sale: &Folder, arguments: &[&str]) -> Command {
        let then = Timestamp::now() + SignedDuration::from_hours(500 * 24);
        sale.command_after(&self.0.set_to(then), arguments)
    }

    fn purge(&self, sale: &Folder) -> Finished {
        let command = self.command(sale, &["purge", "--older-than", "400d", "--yes", "--json"]);
        Process::start(command).finish()
    }
}

/// The purged runs, and the runs that were not purged, each with the reason.
fn purge_result(finished: &Finished) -> (Vec<String>, Vec<(String, String)>) {
    let (report, text) = (finished.json(), |value: &Value| value.as_str().expect("a text").to_owned());
    let list = |name: &str| report[name].as_array().expect("a list").clone();
    let not_purged = list("kept").iter().map(|run| (text(&run["run"]), text(&run["why"]))).collect();
    (list("purged").iter().map(|run| text(&run["run"])).collect(), not_purged)
}

/// The files in the state folder that contain data of the people in these rows.
fn files_with_traces(sale: &Folder, rows: std::ops::Range<usize>) -> Vec<String> {
    let mut needles: Vec<Vec<u8>> = rows.flat_map(spellings).collect();
    needles.push(CELL.as_bytes().to_vec());
    files_containing(files(&sale.path("state")), &needles)
}

#[test]
fn purged_run_leaves_no_recipients_and_keeps_its_figures() {
    let _files = in_files();
    let later = FutureClock::new();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(4)).through(&gateway).write();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]).exits(0);
    sale.campaign(&["gateway", "lookup", &number(3), "--gateway", "local"]).exits(0);
    let before = sale.campaign(&["status", "sale@2", "--json"]).exits(0).json();
    assert!(!files_with_traces(&sale, 2..6).is_empty());
    let purged = later.purge(&sale).exits(0);
    assert_eq!(
        purge_result(&purged),
        (["sale@1", "sale@2", "gateway.lookup@1"].map(str::to_owned).to_vec(), Vec::new())
    );
    assert_eq!(files_with_traces(&sale, 2..6), Vec::<String>::new());
    let after = sale.campaign(&["status", "sale@2", "--json"]).exits(0).json();
    for key in ["counts", "rows", "parts", "state", "results", "exit"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert!(after["purged_at"].is_string());
    sale.campaign(&["status", "sale@2"]).exits(0).says("purged on 20");
    sale.campaign(&["status"]).exits(0).says("4 accepted");
    assert_eq!(sale.results().states(), ["accepted"; 4], "purge leaves the results to the user");
    // Commands that need the rows explain why they fail.
    for command in [
        &["results", "sale@2", "--out", "-"][..],
        &["show", "sale@2", "--row", "3"],
        &["retry", "sale@2", "--yes"],
        &["resolve", "sale@2", "--rows", "3", "--as", "sent"],
        &["reconcile", "sale@2"],
        &["replies", "sale@2"],
    ] {
        sale.campaign(command).exits(2).says("sale@2 was purged on 20");
    }
    let found = find(&sale, 3).exits(0).json();
    assert_eq!((&found["runs"], &found["purged"]), (&json!([]), &json!(3)));
    sale.campaign(&["find", &number(3)]).exits(0).says("3 purged runs");
    // A second purge finds no runs, and later runs work as usual.
    assert_eq!(purge_result(&later.purge(&sale).exits(0)), (Vec::new(), Vec::new()));
    sale.campaign(&["gateway", "lookup", &number(3), "--gateway", "local"]).exits(0);
    sale.campaign(&["status", "gateway.lookup@2"]).exits(0);
}

#[test]
fn purge_names_the_results_of_dry_runs() {
    let later = FutureClock::new();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
    sale.run(&["--dry-run"]).exits(0);
    sale.run(&[]).exits(0);
    sale.write("results/other.dry-run.csv", "of another campaign\n");
    let command = later.command(&sale, &["purge", "--older-than", "400d", "--yes"]);
    let purged = Process::start(command).finish().exits(0).says("results of a dry run: ").says("sale.dry-run.csv");
    assert!(!purged.stdout.contains("other.dry-run.csv"), "{}", purged.details());
}

#[test]
fn recipients_of_a_purged_run_get_no_second_message() {
    let later = FutureClock::new();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
    sale.run(&[]).exits(0);
    later.purge(&sale).exits(0);
    sale.write("sale.csv", &people_list(4));
    let text = fs::read_to_string(sale.path("sale.yaml")).unwrap();
    sale.write("sale.yaml", &text.replace("Hello", "Good day"));
    let report = sale.run(&["--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 1, "skipped": 3 }));
    assert_eq!(gateway.phones(), [2, 3, 4, 5].map(phone));
    // A new edition counts as a new message.
    sale.write("sale.yaml", &format!("edition: next\n{}", fs::read_to_string(sale.path("sale.yaml")).unwrap()));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 8);
}

#[test]
fn runs_that_are_recent_or_unfinished_or_in_doubt_are_kept() {
    let later = FutureClock::new();
    let gateway = Gateway::answering([Answer::CutBody]);
    let sale = campaign().with_list(&people_list(4)).through(&gateway).write();
    sale.run(&["--rows", "3"]).exits(4);
    let other = fs::read_to_string(sale.path("sale.yaml")).unwrap().replace("name: sale", "name: other");
    sale.write("other.yaml", &format!("name: other\n{other}").replacen("name: other\nname: other", "name: other", 1));
    sale.campaign(&["run", "other.yaml", "--yes", "--limit", "1"]).exits(0);
    let recent = sale.campaign(&["purge", "--older-than", "400d", "--yes", "--json"]).exits(0);
    assert_eq!(purge_result(&recent), (Vec::new(), Vec::new()));
    let reasons = vec![("sale@1".to_owned(), "unfinished".to_owned()), ("other@1".to_owned(), "unfinished".to_owned())];
    assert_eq!(purge_result(&later.purge(&sale).exits(0)), (Vec::new(), reasons));
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]);
    let (purged, not_purged) = purge_result(&later.purge(&sale).exits(4));
    assert_eq!((purged.len(), &not_purged[0]), (0, &("sale@1".to_owned(), "in_doubt".to_owned())));
    let output = Process::start(later.command(&sale, &["purge", "--older-than", "400d", "--yes"])).finish();
    output.exits(4).says("resolve sale@1 --all --as DECISION");
    sale.campaign(&["resolve", "sale@1", "--all", "--as", "sent"]);
    assert_eq!(purge_result(&later.purge(&sale).exits(0)).0, ["sale@1"]);
    assert_eq!(find(&sale, 2).exits(0).json()["runs"][0]["rows"][0]["run"], "other@1");
}

#[test]
fn run_in_progress_is_not_purged() {
    let later = FutureClock::new();
    let gateway = Gateway::answering([Answer::items(|operation| rejected(operation, "No route")), Answer::Held]);
    let sale = campaign().with_list(&people_list(3)).through(&gateway).one_at_a_time().batches_of(1).write();
    sale.run(&["--rows", "2", "--keep-going"]).exits(3);
    let run = sale.start(&["--accept-changes"]);
    until("the gateway has a message", || gateway.sends().len() == 2);
    let (purged, not_purged) = purge_result(&later.purge(&sale).exits(6));
    assert!(purged.is_empty() && not_purged.iter().all(|(_, why)| why == "in_use"), "{not_purged:?}");
    gateway.release();
    run.finish();
}

#[test]
fn purge_needs_confirmation_and_a_minimum_age() {
    let later = FutureClock::new();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(2)).through(&gateway).write();
    sale.campaign(&["purge", "--older-than", "400d"]).exits(0).says("no runs from before");
    sale.run(&[]).exits(0);
    Process::start(later.command(&sale, &["purge", "--older-than", "400d"])).finish().exits(2).says("--yes");
    for age in ["3d", "0", "x", "10000000000d"] {
        Process::start(later.command(&sale, &["purge", "--older-than", age, "--yes"])).finish().exits(2);
    }
    assert_eq!(find(&sale, 3).exits(0).json()["runs"][0]["rows"][0]["name"], CELL);
}

#[test]
fn interrupted_purge_is_completed_by_the_next_purge() {
    let later = FutureClock::new();
    for failpoint in ["commit.before:1", "purge.recorded:1", "purge.discarded:1"] {
        let gateway = Gateway::accepting();
        let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
        sale.run(&["--gateway", "sandbox"]).exits(0);
        sale.run(&[]).exits(0);
        let mut command = later.command(&sale, &["purge", "--older-than", "400d", "--yes"]);
        command.env("CAMPAIGN_FAILPOINT", failpoint);
        assert!(!command.output().expect("a process").status.success(), "{failpoint} was not passed");
        sale.campaign(&["status", "sale@2"]).exits(0);
        later.purge(&sale).exits(0);
        assert_eq!(files_with_traces(&sale, 2..5), Vec::<String>::new(), "{failpoint}");
        sale.run(&["--accept-changes"]);
        assert_eq!(gateway.phones(), [2, 3, 4].map(phone), "{failpoint}");
    }
}

#[test]
fn recipients_of_a_purged_run_stay_cancelled_in_its_edition() {
    let later = FutureClock::new();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(4)).through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0).says("3 rows cancelled");
    assert_eq!(purge_result(&later.purge(&sale).exits(0)).0, ["sale@1"]);
    assert_eq!(sale.run(&["--json"]).exits(0).json()["counts"], json!({ "skipped": 4 }));
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("! sale.yaml has no messages to send: 0 of 4 recipients");
    sale.run(&["--again", "4"]).exits(0).says("4 accepted");
    assert_eq!(gateway.phones().len(), 5);
}

#[test]
fn repeated_number_of_a_purged_run_is_skipped_in_every_row() {
    let later = FutureClock::new();
    let gateway = Gateway::accepting();
    let draft = |names: &str| {
        let rows: String = names.chars().map(|name| format!("{},{name}\n", number(2))).collect();
        let list = format!("phone,name\n{rows}{},Z\n", number(3));
        campaign().with_list(&list).recipients("duplicates: allow").top("edition: one").through(&gateway)
    };
    let sale = draft("AB").write();
    sale.run(&["--rows", "2-3"]).exits(0);
    sale.run(&["--rows", "4"]).exits(0);
    assert_eq!(purge_result(&later.purge(&sale).exits(0)).0, ["sale@1"]);
    draft("ABC").rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones().len(), 3, "the sent rows are unknown");
}
