//! `campaign ledger check`: everything in the ledger is looked at, and what is not as it was written is named.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Folder, Gateway, campaign, change_ledger, in_files, phone, telling};

/// A rehearsal, a run to people and a lookup.
fn used(gateway: &Gateway) -> Folder {
    let sale = campaign().to(5).through(gateway).write();
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.run(&[]).exits(0);
    sale.campaign(&["gateway", "lookup", &format!("+{}", phone(3)), "--gateway", "local"]).exits(0);
    sale
}

fn problems(sale: &Folder, code: i32) -> Vec<Value> {
    let told = sale.campaign(&["ledger", "check", "--json"]).exits(code).json();
    told["problems"].as_array().expect("a list").clone()
}

#[test]
fn a_ledger_that_is_as_it_was_written_is_sound_whatever_was_done_in_it() {
    let gateway = Gateway::accepting();
    let sale = used(&gateway);
    let told = sale.campaign(&["ledger", "check", "--json"]).exits(0).json();
    assert_eq!(told, json!({ "runs": 3, "rows": 11, "problems": [], "exit": 0 }));
    sale.campaign(&["ledger", "check"]).exits(0).says("is sound: 3 runs with 11 rows");
    sale.campaign(&["suppress", "add", &format!("+{}", phone(4))]).exits(0);
    sale.campaign(&["forget", &format!("+{}", phone(3)), "--yes"]).exits(0);
    assert_eq!(problems(&sale, 0), Vec::<Value>::new());
    let nobody = campaign().to(1).through(&gateway).write();
    nobody.campaign(&["ledger", "check"]).exits(0).says("no ledger yet");
}

/// A damage, a word of what is said of it, and the run that it is of.
type Damage = (fn(&Folder), &'static str, Option<&'static str>);

#[test]
fn whatever_is_not_as_it_was_written_is_named_with_its_run() {
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
                "envelope",
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
                "envelope",
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
                "not as it was frozen",
                Some("sale@2"),
            ),
        ),
        (
            "what is frozen",
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
                "who opted out is not as it was written",
                None,
            ),
        ),
    ];
    for (case, (damage, words, run)) in damages {
        let _case = telling(format!("case: {case}"));
        let sale = used(&gateway);
        damage(&sale);
        let found = problems(&sale, 74);
        let is_named = |problem: &Value| {
            problem["run"].as_str() == run && problem["what"].as_str().expect("words").contains(words)
        };
        assert!(found.iter().any(is_named), "{found:?}");
        assert!(found.iter().all(|problem| problem["run"].as_str() == run), "nothing else is: {found:?}");
        sale.campaign(&["ledger", "check"]).exits(74).says("nothing was changed");
    }
}
