//! Lists that change during a run or before it resumes: each recipient gets at most one message, or the run is refused.

use serde_json::json;

use super::states;
use crate::support::{Answer, Folder, Gateway, Results, campaign, note_on_failure, phone, until};

/// The lines of a list without its header.
fn list_lines(sale: &Folder) -> Vec<String> {
    let list = std::fs::read_to_string(sale.path("sale.csv")).expect("the list");
    list.lines().skip(1).map(str::to_owned).collect()
}

fn write_lines(sale: &Folder, lines: &[String]) {
    sale.write("sale.csv", &format!("phone,name\n{}\n", lines.join("\n")));
}

/// A change to a list: its name, and the function that makes it.
type ListChange = (&'static str, fn(&Folder));

const LIST_CHANGES: [ListChange; 6] = [
    ("shuffled", |sale| {
        let mut lines = list_lines(sale);
        lines.reverse();
        write_lines(sale, &lines);
    }),
    ("truncated", |sale| write_lines(sale, &list_lines(sale)[..7])),
    ("cut within a line", |sale| {
        let text = std::fs::read_to_string(sale.path("sale.csv")).expect("the list");
        sale.write("sale.csv", &text[..text.len() - 5]);
    }),
    ("emptied", |sale| sale.write("sale.csv", "")),
    ("a name edited", |sale| sale.replace("sale.csv", "Person 9", "Somebody")),
    ("appended to", |sale| {
        let mut lines = list_lines(sale);
        lines.push(format!("{},Person 12", phone(12)));
        write_lines(sale, &lines);
    }),
];

/// Checks that each line of the results pairs a recipient with their own number.
#[track_caller]
fn assert_own_numbers(results: &Results) {
    for result in &results.rows {
        let row: usize = result["name"].trim_start_matches("Person ").parse().expect("a person");
        assert_eq!(result["to"], phone(row).to_string(), "{result:?}");
    }
}

#[test]
fn list_changed_before_resuming_is_refused_and_results_remain() {
    for (name, change) in LIST_CHANGES {
        let _case = note_on_failure(format!("case: {name}"));
        let gateway = Gateway::accepting();
        let sale = campaign().to(10).through(&gateway).write();
        sale.run(&["--limit", "5"]).exits(0);
        let (before, list) = (std::fs::read(sale.results_file()).expect("results"), list_lines(&sale));
        change(&sale);
        let refused = sale.run(&["--yes", "--json"]).exits(2).json();
        assert_eq!(refused["exit"], 2);
        if name != "emptied" {
            assert!(refused["error"].as_str().is_some_and(|error| error.contains("the list `")), "{refused}");
        }
        let shown = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
        assert_eq!(shown.rows.len(), 10);
        assert_own_numbers(&shown);
        assert_eq!((std::fs::read(sale.results_file()).expect("results"), gateway.phones().len()), (before, 5));
        write_lines(&sale, &list);
        sale.run(&[]).exits(0);
        assert_own_numbers(&sale.results());
        assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
    }
}

#[test]
fn list_changed_while_sending_changes_nothing_in_the_run() {
    for (name, change) in LIST_CHANGES.into_iter().chain([("deleted", delete_inputs as fn(&Folder))]) {
        let _case = note_on_failure(format!("case: {name}"));
        let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
        let sale = campaign().to(10).batches_of(3).one_at_a_time().through(&gateway).write();
        let run = sale.start(&[]);
        until("the gateway has the second envelope", || gateway.requests().len() == 2);
        change(&sale);
        gateway.release();
        run.finish().exits(0);
        assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
        let results = sale.results();
        assert_own_numbers(&results);
        assert_eq!(results.column("row"), (2..12).map(|row| row.to_string()).collect::<Vec<_>>());
        assert_eq!(states(&sale), "a".repeat(10));
    }
}

fn delete_inputs(sale: &Folder) {
    for name in ["sale.csv", "sale.yaml"] {
        std::fs::remove_file(sale.path(name)).expect("removed");
    }
}

#[test]
fn accepted_list_changes_repeat_no_message() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = campaign().to(10).batches_of(4).one_at_a_time().through(&gateway).write();
    sale.run(&["--limit", "7"]).exits(4);
    assert_eq!(states(&sale), "addddaappp");
    let mut list = list_lines(&sale);
    list.reverse();
    list.push(format!("{},Person 12", phone(12)));
    write_lines(&sale, &list);
    sale.run(&[]).exits(2).says("--accept-changes");
    let summary = sale.run(&["--accept-changes", "--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 4, "skipped": 7 }));
    assert_eq!(states(&sale), "aaakkkkkkka", "rows in doubt count as sent");
    assert_own_numbers(&sale.results());
    let old = Results::parse(&sale.campaign(&["results", "sale@1", "--out", "-"]).exits(0).stdout);
    assert_own_numbers(&old);
    let mut sent = gateway.phones();
    sent.sort_unstable();
    assert_eq!(sent, (2..13).map(phone).collect::<Vec<_>>());
    sale.run(&[]).exits(4);
}

#[test]
fn missing_inputs_block_resuming_but_the_run_remains() {
    let gateway = Gateway::accepting();
    let sms = "  - sms: { signature: OlenaCo, message: { file: sale.sms.txt } }";
    let sale = campaign().to(10).channels(sms).through(&gateway).write();
    sale.write("sale.sms.txt", "Hello");
    sale.run(&["--limit", "5"]).exits(0);
    for name in ["sale.csv", "sale.sms.txt", "sale.yaml"] {
        let _case = note_on_failure(format!("case: {name}"));
        let text = std::fs::read_to_string(sale.path(name)).expect("a file");
        std::fs::remove_file(sale.path(name)).expect("removed");
        sale.run(&["--accept-changes"]).exits(2).says(name);
        sale.campaign(&["status", "sale"]).exits(5).says("5 planned");
        let shown = Results::parse(&sale.campaign(&["results", "sale", "--out", "-"]).exits(0).stdout);
        assert_eq!(shown.rows.len(), 10);
        sale.write(name, &text);
    }
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), (2..12).map(phone).collect::<Vec<_>>());
}
