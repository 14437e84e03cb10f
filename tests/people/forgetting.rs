//! `campaign forget`: removes a person from the ledger, copies and results, and suppresses further messages.

use std::fs;
use std::io::Read as _;

use serde_json::{Value, json};

use super::{files, files_containing, find, number, spellings};
use crate::support::{
    Answer, Finished, Folder, Gateway, Results, accepted, campaign, in_files, phone, rejected, until,
};

/// A text that only the person in row 3 has.
const CELL: &str = "Petro-the-forgotten";

/// A list of this number of people, with Petro in row 3.
fn people_list(people: usize) -> String {
    let name = |row: usize| if row == 3 { CELL.to_owned() } else { format!("Person {row}") };
    let rows: String = (2..people + 2).map(|row| format!("{},{}\n", number(row), name(row))).collect();
    format!("phone,name\n{rows}")
}

fn forget(sale: &Folder, row: usize) -> Finished {
    sale.campaign(&["forget", &number(row), "--yes", "--json"])
}

/// The files in the state folder and the results that contain data of the person in row 3.
fn files_with_traces(sale: &Folder) -> Vec<String> {
    let mut needles = spellings(3);
    needles.push(CELL.as_bytes().to_vec());
    let mut all = files(&sale.path("state"));
    all.extend(files(&sale.path("results")));
    files_containing(all, &needles)
}

fn forgotten_rows(report: &Value) -> Value {
    let runs = report["forgotten"].as_array().expect("runs").iter();
    runs.map(|run| json!([run["run"], run["rows"], run["skipped"]])).collect()
}

#[test]
fn forgotten_recipient_leaves_no_trace_in_state_and_results() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(5)).through(&gateway).write();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]).exits(0);
    sale.campaign(&["gateway", "lookup", &number(3), "--gateway", "local"]).exits(0);
    sale.campaign(&["suppress", "add", &number(3), "--reason", &format!("{} called", phone(3))]).exits(0);
    assert!(files_with_traces(&sale).len() >= 5, "{:?}", files_with_traces(&sale));
    let before = sale.results();
    let report = forget(&sale, 3).exits(0).json();
    assert_eq!(
        forgotten_rows(&report),
        json!([["sale@1", [3], []], ["sale@2", [3], []], ["gateway.lookup@1", [2], []]])
    );
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
    // The states are kept, and other people's data is unchanged.
    let after = sale.results();
    assert_eq!(after.states(), before.states());
    assert_eq!((after.rows[1]["to"].as_str(), after.rows[1]["id"].as_str()), ("", before.rows[1]["id"].as_str()));
    for row in [0, 2, 3, 4] {
        assert_eq!(after.rows[row], before.rows[row]);
    }
    let status = sale.campaign(&["status", "sale@2", "--json"]).exits(0).json();
    assert_eq!(status["counts"], json!({ "accepted": 5 }));
    sale.campaign(&["show", "sale@2", "--row", "3"]).exits(0).says("accepted by the gateway");
    sale.campaign(&["results", "gateway.lookup", "--out", "-"]).exits(0);
    let found = find(&sale, 3).exits(0).json();
    assert_eq!((&found["runs"], &found["suppressed"][0]["phone"]), (&json!([]), &json!("forgotten")));
    // A second call changes nothing.
    assert_eq!(forgotten_rows(&forget(&sale, 3).exits(0).json()), json!([]));
    assert_eq!(find(&sale, 4).exits(0).json()["runs"][1]["rows"][0]["name"], "Person 4");
}

#[test]
fn forgotten_recipient_is_erased_from_results_of_earlier_runs() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.write("sale.csv", &people_list(4));
    sale.run(&[]).exits(0);
    assert!(files_with_traces(&sale).iter().any(|file| file.contains("sale@1.csv")), "{:?}", files_with_traces(&sale));
    forget(&sale, 3).exits(0);
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
    assert_eq!(sale.results().column("message_run"), ["sale@1", "", "sale@1", "sale@2"]);
}

#[test]
fn retries_of_earlier_runs_leave_no_stale_results() {
    let _files = in_files();
    let no_route = || {
        Answer::items(|operation| match operation["phone"] == phone(4) {
            true => rejected(operation, "No route"),
            false => accepted(operation),
        })
    };
    let gateway = Gateway::always(no_route());
    let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
    sale.run(&[]).exits(3);
    sale.run(&[]).exits(3);
    let newest = fs::read(sale.results_file()).expect("the results");
    for name in ["sale@1", "sale@2", "sale@1"] {
        sale.campaign(&["retry", name]).exits(3);
    }
    let list_results = || {
        let mut names: Vec<String> = files(&sale.path("results"))
            .iter()
            .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(list_results(), ["sale.csv", "sale@1.csv"]);
    assert_eq!(Results::read(&sale.results_file()).column("run"), ["sale@2"; 3]);
    let earlier = Results::read(&sale.path("results/sale@1.csv"));
    assert_eq!((earlier.column("run"), earlier.states()[2]), (vec!["sale@1"; 3], "rejected"));
    assert_ne!(fs::read(sale.results_file()).expect("the results"), newest, "the retry of sale@2 updated them");
    for (run, file) in [("sale@1", "sale@1.csv"), ("sale@2", "sale.csv")] {
        let status = sale.campaign(&["status", run, "--json"]).exits(3).json();
        assert!(status["results"].as_str().expect("a path").ends_with(&format!("results/{file}")), "{status}");
    }
    forget(&sale, 3).exits(0);
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
    assert_eq!(list_results(), ["sale.csv", "sale@1.csv"]);
}

#[test]
fn forgotten_recipient_is_erased_from_results_of_dry_runs() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(4)).through(&gateway).write();
    sale.run(&["--rows", "2"]).exits(0);
    sale.run(&["--dry-run"]).exits(0);
    sale.run(&["--gateway", "sandbox", "--dry-run"]).exits(0);
    let dry_run = sale.path("results/sale.dry-run.csv");
    let (before, mut old_file) = (Results::read(&dry_run), fs::File::open(&dry_run).expect("a file"));
    sale.campaign(&["forget", &number(3), "--yes"]).exits(0).says("sale.dry-run.csv` · 1 row of a dry run");
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
    let after = Results::read(&dry_run);
    assert_eq!((after.rows[1]["to"].as_str(), after.states()), ("", before.states()));
    for row in [0, 2, 3] {
        assert_eq!(after.rows[row], before.rows[row]);
    }
    let mut bytes = Vec::new();
    old_file.read_to_end(&mut bytes).expect("its bytes");
    assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0), "{}", String::from_utf8_lossy(&bytes));
}

#[test]
fn stored_bytes_of_a_forgotten_recipient_are_overwritten() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
    sale.run(&[]).exits(0);
    // Handles opened earlier still refer to the old files, whose content must be overwritten.
    let paths = [sale.path("state/runs/sale@1/recipients.csv"), sale.results_file()];
    let mut before = paths.map(|path| fs::File::open(path).expect("a file"));
    forget(&sale, 3).exits(0);
    for file in &mut before {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("its bytes");
        assert!(!bytes.is_empty() && bytes.iter().all(|byte| *byte == 0), "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn forgotten_recipient_gets_no_second_message_of_an_edition() {
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(4)).through(&gateway).write();
    sale.run(&["--rows", "2-4"]).exits(0);
    forget(&sale, 3).exits(0);
    // The user's list still has the number, and one more recipient.
    sale.write("sale.csv", &people_list(5));
    let report = sale.run(&["--accept-changes", "--json"]).exits(0).json();
    assert_eq!(report["counts"], json!({ "accepted": 2, "skipped": 3 }));
    assert_eq!(gateway.phones(), [2, 3, 4, 5, 6].map(phone));
    assert_eq!(sale.results().rows[1]["reason"], "already sent");
    // The next edition is marketing too, so the opt-out applies.
    sale.write("sale.yaml", &format!("edition: next\n{}", fs::read_to_string(sale.path("sale.yaml")).unwrap()));
    let next = sale.run(&["--json"]).exits(0).json();
    assert_eq!(next["counts"], json!({ "accepted": 4, "skipped": 1 }));
    assert_eq!(sale.results().rows[1]["reason"], "opted out");
    sale.campaign(&["suppress", "add", &number(3)]).exits(0).says("nothing changed");
    sale.campaign(&["suppress", "remove", "--yes", &number(3)])
        .exits(0)
        .says("can get marketing messages from any campaign again");
    sale.run(&[]).exits(0);
    sale.run(&["--accept-changes"]).exits(0);
    let again = gateway.phones().into_iter().filter(|number| *number == phone(3)).count();
    assert_eq!(again, 2, "one message for each edition");
    sale.run(&["--accept-changes", "--json"]).exits(0);
    assert_eq!(gateway.phones().into_iter().filter(|number| *number == phone(3)).count(), 2);
}

#[test]
fn planned_rows_of_a_forgotten_recipient_are_skipped() {
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(5)).through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    let report = forget(&sale, 3).exits(0).json();
    assert_eq!(forgotten_rows(&report), json!([["sale@1", [3], [3]]]));
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
    let status = sale.campaign(&["status", "sale", "--json"]).json();
    assert_eq!(status["counts"], json!({ "planned": 3, "skipped": 1, "accepted": 1 }));
    // The list still contains the person, but that alone does not count as a change.
    let ended = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&ended["run"], &ended["counts"]), (&json!("sale@1"), &json!({ "accepted": 4, "skipped": 1 })));
    assert_eq!(gateway.phones(), [2, 4, 5, 6].map(phone));
    assert_eq!(sale.results().rows[1]["reason"], "opted out");
    // Any other difference counts as a change.
    let other = campaign().with_list(&people_list(5)).through(&gateway).write();
    other.run(&["--limit", "1"]).exits(0);
    forget(&other, 3).exits(0);
    other.write("sale.csv", &people_list(6));
    other.run(&[]).exits(2).says("the list `");
}

#[test]
fn rows_in_doubt_stay_until_decided_and_the_rest_is_forgotten() {
    let gateway = Gateway::answering([Answer::CutBody]);
    let twice = format!("{}{},Again\n", people_list(3), number(3));
    let sale = campaign().with_list(&twice).through(&gateway).write();
    sale.run(&["--rows", "3"]).exits(4);
    let report = forget(&sale, 3).exits(4).json();
    assert_eq!(report["in_doubt"], json!([{ "run": "sale@1", "rows": [3] }]));
    assert_eq!(forgotten_rows(&report), json!([["sale@1", [5], []]]));
    sale.campaign(&["forget", &number(3), "--yes"]).exits(4).says("resolve sale@1 --rows 3 --as DECISION");
    assert_eq!(sale.campaign(&["find", &number(3), "--json"]).json()["runs"][0]["rows"][0]["state"], "in_doubt");
    sale.campaign(&["resolve", "sale", "--rows", "3", "--as", "sent", "--why", CELL]);
    forget(&sale, 3).exits(0);
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
}

#[test]
fn forget_is_refused_during_a_run_and_changes_nothing() {
    let gateway = Gateway::answering([Answer::Held]);
    let sale = campaign().with_list(&people_list(5)).through(&gateway).one_at_a_time().write();
    let run = sale.start(&[]);
    until("the gateway has the first message", || gateway.sends().len() == 1);
    forget(&sale, 3).exits(6);
    gateway.release();
    run.finish().exits(0);
    assert_eq!(gateway.phones().len(), 5);
    forget(&sale, 3).exits(0);
    assert_eq!(files_with_traces(&sale), Vec::<String>::new());
}

#[test]
fn forget_needs_confirmation() {
    let gateway = Gateway::accepting();
    let sale = campaign().with_list(&people_list(3)).through(&gateway).write();
    sale.run(&[]).exits(0);
    sale.campaign(&["forget", &number(3)]).exits(2).says("--yes");
    assert_eq!(find(&sale, 3).exits(0).json()["runs"][0]["rows"][0]["name"], CELL);
}

#[test]
fn rejected_message_is_not_resent_to_a_forgotten_recipient() {
    let no_route = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([no_route(), no_route()]);
    let sale = campaign().with_list(&people_list(2)).through(&gateway).one_at_a_time().batches_of(1).write();
    sale.run(&["--keep-going"]).exits(3);
    forget(&sale, 3).exits(0);
    sale.campaign(&["retry", "sale", "--yes"]).exits(3);
    assert_eq!(gateway.phones(), [2, 3, 2].map(phone));
}

#[test]
fn interrupted_forget_leaves_readable_runs_and_continues_later() {
    let _files = in_files();
    for (failpoint, is_completed_by_run) in [
        ("commit.before:1", false),
        ("forget.recorded:1", false),
        ("forget.recorded:1", true),
        ("copies.replaced:1", false),
        ("copies.overwritten:1", true),
        ("copies.overwritten:2", false),
        ("forget.copied:1", false),
        ("results.written:1", false),
        ("results.renamed:1", true),
        ("forget.written:1", false),
        ("forget.swept:1", true),
    ] {
        let gateway = Gateway::accepting();
        let sale = campaign().with_list(&people_list(4)).through(&gateway).write();
        sale.run(&["--limit", "3"]).exits(0);
        let mut command = sale.command(&["forget", &number(3), "--yes"]);
        command.env("CAMPAIGN_FAILPOINT", failpoint);
        assert!(!command.output().expect("a process").status.success(), "{failpoint} was not passed");
        // All runs stay readable between the attempts.
        sale.campaign(&["results", "sale", "--out", "-"]).exits(0);
        if is_completed_by_run {
            let ended = sale.run(&["--json"]).exits(0).json();
            assert_eq!((&ended["run"], &ended["counts"]), (&json!("sale@1"), &json!({ "accepted": 4 })), "{failpoint}");
        } else {
            forget(&sale, 3).exits(0);
        }
        assert_eq!(files_with_traces(&sale), Vec::<String>::new(), "{failpoint}");
        sale.run(&[]).exits(0);
        assert_eq!(gateway.phones(), [2, 3, 4, 5].map(phone), "{failpoint}");
        assert_eq!(sale.results().rows[1]["to"], "", "{failpoint}");
    }
}

#[test]
fn forgotten_recipient_stays_cancelled_and_excluded() {
    for (people, forgotten) in [(2, &[2][..]), (5, &[2, 4])] {
        let gateway = Gateway::accepting();
        let draft = || campaign().top("purpose: service").with_list(&people_list(people)).through(&gateway);
        let sale = draft().write();
        sale.run(&["--limit", "1"]).exits(0);
        sale.campaign(&["stop", "sale", "--for-good", "--yes"]).exits(0);
        for row in forgotten {
            forget(&sale, *row).exits(0);
        }
        sale.run(&[]).exits(0);
        assert_eq!(gateway.phones(), [phone(2)], "the others were cancelled");
        draft().recipients("exclude: { run: sale@1 }").rewrite(&sale);
        let text = fs::read_to_string(sale.path("sale.yaml")).unwrap();
        sale.write("other.yaml", &text.replace("name: sale", "name: other"));
        sale.campaign(&["run", "other.yaml", "--yes", "--no-wait"]).exits(0);
        let phones = gateway.phones();
        assert_eq!(phones.len(), people, "the recipient in row 2 is excluded: {phones:?}");
        assert_eq!(phones.iter().filter(|number| **number == phone(2)).count(), 1);
    }
}

#[test]
fn rows_with_the_number_in_another_column_are_listed() {
    let gateway = Gateway::accepting();
    let list = format!(
        "phone,name,second\n{},Olha,{}\n{},Ivan,\n{},Petro,call {} first\n",
        number(2),
        number(3),
        number(3),
        number(4),
        number(3)
    );
    let sale = campaign().with_list(&list).through(&gateway).write();
    sale.run(&[]).exits(0);
    let elsewhere = json!([{ "run": "sale@1", "rows": [2, 4] }]);
    assert_eq!(find(&sale, 3).exits(0).json()["elsewhere"], elsewhere);
    let others = find(&sale, 2).exits(0).json();
    assert_eq!(others.get("elsewhere"), None, "{others}");
    let report = forget(&sale, 3).exits(3).json();
    assert_eq!((forgotten_rows(&report), &report["elsewhere"]), (json!([["sale@1", [3], []]]), &elsewhere));
    let again = sale.campaign(&["forget", &number(3), "--yes"]).exits(3).says("was only partly forgotten");
    again.says("not forgotten: sale@1 still contains the number in another column of 2 rows").says("(2, 4)");
    for row in [2, 4] {
        forget(&sale, row).exits(0);
    }
    assert_eq!(forget(&sale, 3).exits(0).json().get("elsewhere"), None);
}
