//! `campaign ledger check`: integrity check of every ledger record and stored copy.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Folder, Gateway, campaign, change_ledger, in_files, note_on_failure, phone};

/// A campaign with a rehearsal, a live run and a lookup.
fn used_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().to(5).through(gateway).write();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]).exits(0);
    sale.campaign(&["gateway", "lookup", &format!("+{}", phone(3)), "--gateway", "local"]).exits(0);
    sale
}

fn find_problems(sale: &Folder, code: i32) -> Vec<Value> {
    let report = sale.campaign(&["ledger", "check", "--json"]).exits(code).json();
    report["problems"].as_array().expect("a list").clone()
}

#[test]
fn ledger_check_finds_no_problems_in_an_undamaged_ledger() {
    let gateway = Gateway::accepting();
    let sale = used_campaign(&gateway);
    let report = sale.campaign(&["ledger", "check", "--json"]).exits(0).json();
    assert_eq!(report, json!({ "runs": 3, "rows": 11, "problems": [], "exit": 0, "version": 1 }));
    sale.campaign(&["ledger", "check"]).exits(0).says("is sound: 3 runs with 11 rows");
    sale.campaign(&["suppress", "add", &format!("+{}", phone(4))]).exits(0);
    sale.campaign(&["forget", &format!("+{}", phone(3)), "--yes"]).exits(0);
    assert_eq!(find_problems(&sale, 0), Vec::<Value>::new());
    let unused = campaign().to(1).through(&gateway).write();
    unused.campaign(&["ledger", "check"]).exits(0).says("no ledger yet");
}

/// Damage to a record: how to cause it, words in the report, and the affected run.
type Damage = (fn(&Folder), &'static str, Option<&'static str>);

#[test]
fn damaged_record_is_named_with_its_run() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let damages: [(&str, Damage); 5] = [
        (
            "an envelope",
            (
                |sale| {
                    change_ledger(
                        sale,
                        "UPDATE envelopes SET rows = zeroblob(length(rows)) WHERE run = (SELECT key FROM runs WHERE campaign = 'sale' AND number = 2)",
                    )
                },
                "request",
                Some("sale@2"),
            ),
        ),
        (
            "an outcome",
            (
                |sale| {
                    change_ledger(
                        sale,
                        "UPDATE envelopes SET outcomes = zeroblob(length(outcomes)) WHERE run = (SELECT key FROM runs WHERE campaign = 'gateway.lookup')",
                    )
                },
                "request",
                Some("gateway.lookup@1"),
            ),
        ),
        (
            "a list",
            (
                |sale| {
                    let list = sale.path("state/runs/sale@2/recipients.csv");
                    let text = fs::read_to_string(&list).expect("the copy").replace("Person 3", "Person 4");
                    fs::write(&list, text).expect("another copy");
                },
                "differs from the list that the run started with",
                Some("sale@2"),
            ),
        ),
        (
            "frozen inputs",
            (
                |sale| fs::remove_file(sale.path("state/runs/sale@1/frozen.json")).expect("the copy"),
                "sale@1",
                Some("sale@1"),
            ),
        ),
        (
            "an opt-out",
            (
                |sale| {
                    sale.campaign(&["suppress", "add", &format!("+{}", phone(4))]).exits(0);
                    change_ledger(sale, "UPDATE opt_outs SET phone = phone + 1");
                },
                "an entry in the suppression list is corrupt",
                None,
            ),
        ),
    ];
    for (case, (damage, words, run)) in damages {
        let _case = note_on_failure(format!("case: {case}"));
        let sale = used_campaign(&gateway);
        damage(&sale);
        let found = find_problems(&sale, 74);
        let is_named = |problem: &Value| {
            problem["run"].as_str() == run && problem["what"].as_str().expect("words").contains(words)
        };
        assert!(found.iter().any(is_named), "{found:?}");
        assert!(found.iter().all(|problem| problem["run"].as_str() == run), "an undamaged run is named: {found:?}");
        sale.campaign(&["ledger", "check"]).exits(74).says("Nothing was changed");
    }
}

/// Statements that damage records other than messages, and the words that name each record in the report.
const RECORDS: [(&str, &str); 6] = [
    (
        "INSERT INTO schedules (name, file, digest, gateway, addresses, account, armed_by, armed_at, since, paused, sum)
         VALUES ('daily', '/daily.yaml', 'd', 'local', 'a', 'b', 'c', 0, 0, 1 = 0, 1)",
        "the schedule daily is corrupt",
    ),
    (
        "INSERT INTO occurrences (schedule, nominal, zone, at, run, reason, sum)
         VALUES ('daily', '2026-01-01 10:00', 'UTC', 0, NULL, 'missed', 1)",
        "the record of schedule daily for 2026-01-01 10:00 is corrupt",
    ),
    ("INSERT INTO plans (digest, record, at, sum) VALUES ('ab01', '{}', 0, 1)", "the plan ab01 is corrupt"),
    (
        "INSERT INTO approvals (token, digest, approved_by, up_to, at, until, standing, sum)
         VALUES ('t', 'cd02', 'Olha', 1, 0, 1, 1 = 0, 1)",
        "an approval of plan cd02 is corrupt",
    ),
    (
        "INSERT INTO notifications (at, occasion, way, notice, next_at) VALUES (0, '\"stopped\"', 'torn', '{}', 0)",
        "notification 1 cannot be read",
    ),
    ("UPDATE runs SET edition = 'another' WHERE campaign = 'sale' AND number = 1", "the record of run sale@1 is corrupt"),
];

#[test]
fn ledger_check_names_damaged_records_and_remedies() {
    let gateway = Gateway::accepting();
    let sale = used_campaign(&gateway);
    for (damage, _) in RECORDS {
        change_ledger(&sale, damage);
    }
    let found = find_problems(&sale, 74);
    for (_, named) in RECORDS {
        let problem = found.iter().find(|problem| problem["what"].as_str().is_some_and(|what| what.contains(named)));
        let problem = problem.unwrap_or_else(|| panic!("{named}: {found:?}"));
        assert!(problem["run"].is_string() || problem["help"].is_string(), "{problem}");
    }
    assert_eq!(found.len(), RECORDS.len(), "{found:?}");
    sale.campaign(&["ledger", "check"]).exits(74).says("schedule add /daily.yaml").says("schedule remove daily");
}

#[test]
fn ledger_check_finds_damage_in_skipped_rows_and_receipts() {
    for (damage, named) in [
        (
            "INSERT INTO left_out (run, state, reason, rows, sum)
             SELECT run, 'skipped', 'x', rows, 1 FROM envelopes WHERE envelope = 1",
            "the record of skipped rows",
        ),
        (
            "INSERT INTO receipts (key, receipts, sum) SELECT run * 4294967296, rows, 1 FROM envelopes WHERE envelope = 1",
            "the receipts for rows starting at 0",
        ),
    ] {
        let _case = note_on_failure(damage);
        let gateway = Gateway::accepting();
        let sale = campaign().to(5).through(&gateway).write();
        sale.run(&[]).exits(0);
        change_ledger(&sale, damage);
        let found = find_problems(&sale, 74);
        assert!(found.iter().any(|problem| problem["what"].to_string().contains(named)), "{found:?}");
    }
}
