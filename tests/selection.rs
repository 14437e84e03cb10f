//! Selection of recipients with `where` and `exclude`, and of texts by a column.

use serde_json::json;

use crate::support::{Answer, Draft, Folder, Gateway, accepted, campaign, phone, rejected};

/// A draft with six recipients. Rows 2, 4 and 6 have the plan `gold`, and row 7 has an invalid number.
fn draft_with_plans() -> Draft {
    let plan = |row: usize| if row.is_multiple_of(2) { "gold" } else { "Silver" };
    let rows = (2..7).map(|row| format!("{},Person {row},{},{}\n", phone(row), plan(row), row * 10));
    let list: String = rows.chain(["nobody,Person 7,none,0\n".to_owned()]).collect();
    campaign().with_list(&format!("phone,name,plan,points\n{list}"))
}

#[test]
fn recipient_outside_the_condition_is_skipped_on_every_surface() {
    let gateway = Gateway::accepting();
    let sale =
        draft_with_plans().recipients("where: plan == \"gold\" and (points | int) < 60").through(&gateway).write();
    let counts = json!({ "planned": 2, "skipped": 4 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("−4  skipped: filtered");
    sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0).says("filtered");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4].map(phone));
    let results = sale.results();
    assert_eq!(results.states(), ["accepted", "skipped", "accepted", "skipped", "skipped", "skipped"]);
    assert_eq!(results.column("reason"), ["", "filtered", "", "filtered", "filtered", "filtered"]);
}

#[test]
fn run_keeps_its_recipients_and_reports_a_changed_condition() {
    let gateway = Gateway::accepting();
    let draft = || draft_with_plans().through(&gateway);
    let sale = draft().recipients("where: plan == \"gold\"").write();
    sale.run(&["--limit", "1"]).exits(0);
    draft().recipients("where: plan == \"Silver\"").rewrite(&sale);
    sale.run(&[]).exits(2).says("`recipients.where`");
    draft().recipients("where: plan == \"gold\"").rewrite(&sale);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 6].map(phone));
}

#[test]
fn plan_for_different_recipients_has_a_different_digest() {
    let gateway = Gateway::accepting();
    let read_digest = |condition: &str| {
        let sale = draft_with_plans().recipients(condition).through(&gateway).write();
        sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["digest"].clone()
    };
    assert_ne!(read_digest("where: plan == \"gold\""), read_digest("where: plan != \"none\""));
}

#[test]
fn invalid_condition_is_refused_with_its_location() {
    let gateway = Gateway::accepting();
    let cases = [
        ("where: plan", "condition", "sale.yaml:5:10", "compare it with a value from the list"),
        ("where: plan == true", "condition", "sale.yaml:5:10", "plan == 'true'"),
        ("where: name == \"x\" or points > 20", "condition", "sale.yaml:5:25", "points | int"),
        ("where: plam == \"gold\"", "unknown-variable", "sale.yaml:5:10", "did you mean `plan`?"),
        ("where: plan == \"Gold\"", "nobody-meant", "none of the 6 rows", "the comparison is case-sensitive"),
    ];
    for (line, rule, location, help) in cases {
        let sale = draft_with_plans().recipients(line).through(&gateway).write();
        sale.run(&[]).exits(2).says(rule).says(location).says(help);
    }
    let failing_rows = draft_with_plans().recipients("where: (name | int) > 5").through(&gateway).write();
    failing_rows.run(&[]).exits(2).says("6 of 6 rows are invalid").says("sale.yaml:5:11");
    assert!(gateway.sends().is_empty());
}

#[test]
fn empty_selection_is_fine_if_the_campaign_allows_it() {
    let gateway = Gateway::accepting();
    let sale =
        draft_with_plans().recipients("where: plan == \"platinum\"").recipients("empty: ok").through(&gateway).write();
    let output = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&output["sent"], &output["counts"]), (&json!(0), &json!({ "skipped": 6 })));
    assert!(gateway.sends().is_empty());
}

/// A draft with four recipients and three languages, one of them in capitals.
fn draft_in_languages(message: &str) -> Draft {
    let rows = ["uk", "EN ", "de", "en"].iter().enumerate();
    let rows: String = rows.map(|(index, lang)| format!("{},Person,{lang}\n", phone(index + 2))).collect();
    let sms = format!("  - sms: {{ signature: OlenaCo, message: {message} }}");
    campaign().with_list(&format!("phone,name,lang\n{rows}")).channels(&sms)
}

/// The texts that the gateway received, in order.
fn sent_texts(gateway: &Gateway) -> Vec<String> {
    let operations = gateway.sends().iter().flat_map(|request| request.operations()).collect::<Vec<_>>();
    operations.iter().map(|operation| operation["sms_message"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn recipient_gets_the_text_that_a_column_names() {
    let gateway = Gateway::accepting();
    let message = "{ by: lang, texts: { uk: { file: promo.uk.txt }, en: \"Hello, {{ name }}\" }, else: uk }";
    let sale = draft_in_languages(message).through(&gateway).write();
    sale.write("promo.uk.txt", "Vitaiu, {{ name }}");
    sale.run(&["--limit", "1"]).exits(0);
    sale.replace("sale.yaml", "Hello,", "Good day,");
    sale.run(&[]).exits(2).says("the channels or their messages");
    sale.replace("sale.yaml", "Good day,", "Hello,");
    sale.run(&[]).exits(0);
    assert_eq!(sent_texts(&gateway), ["Vitaiu, Person", "Hello, Person", "Vitaiu, Person", "Hello, Person"]);
}

#[test]
fn row_without_a_matching_text_is_invalid_unless_else_is_set() {
    let gateway = Gateway::accepting();
    let sale = draft_in_languages("{ by: lang, texts: { uk: Vitaiu, en: Hello } }").through(&gateway).write();
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("there is no text for the value of lang, only for uk, en");
    sale.run(&[]).exits(3);
    assert_eq!(sent_texts(&gateway), ["Vitaiu", "Hello", "Hello"]);
    assert_eq!(sale.results().states(), ["accepted", "accepted", "invalid", "accepted"]);
}

#[test]
fn mistake_in_a_selected_text_is_reported_with_its_location() {
    let gateway = Gateway::accepting();
    let cases = [
        ("{ by: lang, texts: { uk: \"{{ nme }}\", en: Hello } }", "unknown-variable", "sale.yaml:6:70"),
        ("{ by: lnag, texts: { uk: Hi } }", "did you mean `lang`?", "sale.yaml:6:"),
        ("{ by: lang, texts: { uk: Hi }, else: en }", "write one of `uk`", "sale.yaml:6:"),
        ("{ by: lang }", "needs `texts`", "sale.yaml:6:"),
        ("{ file: x.txt, texts: { uk: Hi } }", "`texts` belongs to `by: COLUMN`", "sale.yaml:6:"),
        ("{ by: lang, file: x.txt }", "keep one of them", "sale.yaml:6:"),
        ("{ by: lang, texts: { uk: Hi, UK: Ho } }", "duplicates another key", "sale.yaml:6:"),
        ("{ by: lang, texts: { uk: { file: gone.txt } } }", "there is no text file `gone.txt`", "sale.yaml:6:"),
    ];
    for (message, expected, location) in cases {
        let sale = draft_in_languages(message).through(&gateway).write();
        sale.run(&[]).exits(2).says(expected).says(location);
    }
    assert!(gateway.sends().is_empty());
}

/// A campaign and an earlier teaser with the same list, in one folder. `exclude` refers to the teaser.
fn campaign_after_teaser(gateway: &Gateway, exclude: &str) -> Folder {
    let sale = campaign().to(4).recipients(&format!("exclude: {exclude}")).through(gateway).write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
    let teaser: String =
        text.lines().filter(|line| !line.contains("exclude:")).map(|line| format!("{line}\n")).collect();
    sale.write("teaser.yaml", &teaser.replace("name: sale", "name: teaser"));
    sale
}

fn gateway_rejecting_the_second_request() -> Gateway {
    let reject = |item: &_| rejected(item, "Unknown error");
    Gateway::answering([Answer::items(accepted), Answer::items(reject), Answer::items(accepted)])
}

#[test]
fn recipient_of_an_earlier_message_is_skipped() {
    let gateway = gateway_rejecting_the_second_request();
    let sale = campaign_after_teaser(&gateway, "{ run: teaser }");
    sale.replace("teaser.yaml", "delivery:", "delivery:\n  batch: 1\n  in_flight: 1");
    sale.campaign(&["run", "teaser.yaml", "--no-wait"]).exits(3);
    let counts = json!({ "planned": 1, "skipped": 3 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 5, 3].map(phone));
    assert_eq!(sale.results().column("reason"), ["excluded", "", "excluded", "excluded"]);
}

#[test]
fn recipients_can_be_skipped_by_their_state_in_an_earlier_run() {
    let gateway = gateway_rejecting_the_second_request();
    let sale = campaign_after_teaser(&gateway, "{ run: teaser@1, state: rejected }");
    sale.replace("teaser.yaml", "delivery:", "delivery:\n  batch: 1\n  in_flight: 1");
    sale.campaign(&["run", "teaser.yaml", "--no-wait"]).exits(3);
    sale.run(&[]).exits(0).says("might still change");
    assert_eq!(gateway.phones()[4..], [2, 4, 5].map(phone));
}

#[test]
fn run_is_refused_if_the_earlier_run_is_missing_or_unfinished() {
    let gateway = Gateway::accepting();
    let sale = campaign_after_teaser(&gateway, "{ run: taeser }");
    for expected in ["sale.yaml:", "there is no run `taeser` in this ledger"] {
        sale.campaign(&["check", "sale.yaml"]).exits(2).says(expected);
        sale.run(&[]).exits(2).says(expected);
    }
    sale.campaign(&["run", "teaser.yaml", "--gateway", "sandbox"]).exits(0);
    sale.replace("sale.yaml", "taeser", "teaser");
    sale.run(&[]).exits(2).says("the run was a rehearsal");
    sale.run(&["--gateway", "sandbox"]).exits(0);
    sale.campaign(&["run", "teaser.yaml", "--limit", "1"]).exits(0);
    sale.run(&[]).exits(2).says("teaser@2 is unfinished");
    assert_eq!(gateway.phones(), [phone(2)]);
}

#[test]
fn exclusion_considers_only_runs_of_the_latest_edition() {
    let gateway = Gateway::accepting();
    let sale = campaign_after_teaser(&gateway, "{ run: teaser }");
    let run_edition = |name: &str, rows: &str| {
        let text = std::fs::read_to_string(sale.path("teaser.yaml")).expect("a campaign");
        let text: String =
            text.lines().filter(|line| !line.starts_with("edition:")).map(|line| format!("{line}\n")).collect();
        sale.write("teaser.yaml", &format!("edition: {name}\n{text}"));
        sale.campaign(&["run", "teaser.yaml", "--no-wait", "--rows", rows]).exits(0);
        sale.campaign(&["stop", "teaser", "--for-good", "--yes"]).exits(0);
    };
    run_edition("first", "2");
    run_edition("second", "3");
    sale.campaign(&["run", "teaser.yaml", "--no-wait", "--again", "4", "--rows", "4"]).exits(0);
    sale.campaign(&["stop", "teaser", "--for-good", "--yes"]).exits(0);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 2, 5].map(phone));
}

#[test]
fn exclusion_is_part_of_the_identity_of_a_run() {
    let gateway = Gateway::accepting();
    let sale = campaign_after_teaser(&gateway, "{ run: teaser }");
    sale.campaign(&["run", "teaser.yaml", "--no-wait", "--rows", "2"]).exits(0);
    sale.campaign(&["stop", "teaser", "--for-good", "--yes"]).exits(0);
    let read_digest = |sale: &Folder| sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["digest"].clone();
    let digest = read_digest(&sale);
    sale.replace("sale.yaml", "{ run: teaser }", "{ run: teaser, state: read }");
    assert_ne!(read_digest(&sale), digest);
    sale.run(&["--limit", "1"]).exits(0);
    sale.replace("sale.yaml", "{ run: teaser, state: read }", "{ run: teaser }");
    sale.run(&[]).exits(2).says("`recipients.exclude`");
}
