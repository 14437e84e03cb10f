//! `where` says who of a list is meant, and a condition that would mean everybody or nobody is found before anything is sent.

use serde_json::json;

use crate::support::{Draft, Gateway, campaign, phone};

/// Six people, of whom those in rows 2, 4 and 6 have a gold card; the number in row 7 is none.
fn clients() -> Draft {
    let plan = |row: usize| if row.is_multiple_of(2) { "gold" } else { "Silver" };
    let rows = (2..7).map(|row| format!("{},Person {row},{},{}\n", phone(row), plan(row), row * 10));
    let list: String = rows.chain(["nobody,Person 7,none,0\n".to_owned()]).collect();
    campaign().with_list(&format!("phone,name,plan,points\n{list}"))
}

#[test]
fn who_is_not_meant_is_left_out_wherever_a_campaign_is_looked_at_and_gets_nothing() {
    let gateway = Gateway::accepting();
    let sale = clients().recipients("where: plan == \"gold\" and (points | int) < 60").through(&gateway).write();
    let counts = json!({ "planned": 2, "skipped": 4 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("4 skipped: filtered");
    sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0).says("filtered");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4].map(phone));
    let results = sale.results();
    assert_eq!(results.states(), ["accepted", "skipped", "accepted", "skipped", "skipped", "skipped"]);
    assert_eq!(results.column("reason"), ["", "filtered", "", "filtered", "filtered", "filtered"]);
}

#[test]
fn a_run_keeps_who_was_meant_and_tells_a_condition_that_changed() {
    let gateway = Gateway::accepting();
    let draft = || clients().through(&gateway);
    let sale = draft().recipients("where: plan == \"gold\"").write();
    sale.run(&["--limit", "1"]).exits(0);
    draft().recipients("where: plan == \"Silver\"").rewrite(&sale);
    sale.run(&[]).exits(2).says("`recipients.where`");
    draft().recipients("where: plan == \"gold\"").rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 6].map(phone));
}

#[test]
fn a_plan_of_other_people_has_another_digest() {
    let gateway = Gateway::accepting();
    let digest = |condition: &str| {
        let sale = clients().recipients(condition).through(&gateway).write();
        sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["digest"].clone()
    };
    assert_ne!(digest("where: plan == \"gold\""), digest("where: plan != \"none\""));
}

#[test]
fn a_condition_that_would_mean_everybody_or_nobody_is_refused_where_it_stands() {
    let gateway = Gateway::accepting();
    let cases = [
        ("where: plan", "condition", "sale.yaml:5:10", "compare it with what stands in the list"),
        ("where: plan == true", "condition", "sale.yaml:5:10", "plan == \"true\""),
        ("where: name == \"x\" or points > 20", "condition", "sale.yaml:5:25", "points | int"),
        ("where: plam == \"gold\"", "unknown-variable", "sale.yaml:5:10", "did you mean `plan`?"),
        ("where: plan == \"Gold\"", "nobody-meant", "none of 6 rows", "capitals count"),
    ];
    for (line, rule, place, help) in cases {
        let sale = clients().recipients(line).through(&gateway).write();
        sale.run(&[]).exits(2).says(rule).says(place).says(help);
    }
    let rows_that_fail = clients().recipients("where: (name | int) > 5").through(&gateway).write();
    rows_that_fail.run(&[]).exits(2).says("6 of 6 rows are invalid").says("`recipients.where`");
    assert!(gateway.sends().is_empty());
}

#[test]
fn nobody_may_be_meant_where_that_is_said() {
    let gateway = Gateway::accepting();
    let sale = clients().recipients("where: plan == \"platinum\"").recipients("empty: ok").through(&gateway).write();
    let told = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&told["sent"], &told["counts"]), (&json!(0), &json!({ "skipped": 6 })));
    assert!(gateway.sends().is_empty());
}
