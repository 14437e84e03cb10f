//! Changes since an earlier run: each command and page that detects a change names it.

use serde_json::json;

use crate::support::{Answer, Browser, Folder, Gateway, Server, accepted, campaign, change_ledger, phone, rejected};

const HELLO: &str = "  - sms: { signature: OlenaCo, message: Hello }";
const NEWS: &str = "  - sms: { signature: OlenaCo, message: News }";

fn write_people(sale: &Folder, rows: std::ops::Range<usize>) {
    let lines: String = rows.map(|row| format!("{},Person {row}\n", phone(row))).collect();
    sale.write("sale.csv", &format!("phone,name\n{lines}"));
}

#[test]
fn check_and_dry_run_say_what_a_run_would_refuse() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(0);
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    write_people(&sale, 3..15);
    for command in [&["run", "sale.yaml"][..], &["run", "sale.yaml", "--dry-run"], &["check", "sale.yaml"]] {
        let refused = sale.campaign(command).exits(2).says("changed since sale@1 began: 3 rows added, 1 removed");
        refused
            .says("to send to the current list")
            .says("campaign run sale.yaml --accept-changes")
            .says("campaign stop sale@1 --for-good");
    }
    sale.campaign(&["run", "sale.yaml", "--dry-run", "--accept-changes"]).exits(0);
    write_people(&sale, 2..12);
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    let reversed: String = (2..12).rev().map(|row| format!("{},Person {row}\n", phone(row))).collect();
    sale.write("sale.csv", &format!("phone,name\n{reversed}"));
    sale.run(&[]).exits(2).says("rows in a different order or format");
    sale.replace("sale.csv", "phone,name", "phone,person");
    sale.replace("sale.yaml", "{{ name }}", "you");
    sale.run(&[]).exits(2).says("the list `sale.csv` (different columns)");
}

#[test]
fn figures_of_an_unfinished_run_count_what_is_left_to_send() {
    let gateway = Gateway::always(Answer::items(|operation| match operation["phone"].as_u64() {
        Some(number) if [phone(4), phone(7)].contains(&number) => rejected(operation, "No route"),
        _ => accepted(operation),
    }));
    let sale = campaign().to(6).through(&gateway).write();
    sale.run(&["--limit", "5"]).exits(3);
    let counts = json!({ "planned": 1, "skipped": 5 });
    for command in [&["check", "sale.yaml"][..], &["plan", "sale.yaml"], &["run", "sale.yaml", "--dry-run"]] {
        let output = sale.campaign(&[command, &["--json"]].concat()).exits(0).json();
        assert_eq!(output["counts"], counts, "{command:?}");
    }
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("skipped: rejected or not sent in the unfinished run");
    let plan = sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json();
    assert_eq!((&plan["messages"], &plan["parts"]), (&json!(1), &json!(1)));
    // A run with changed inputs replaces the unfinished run, and sends to its rejected recipient again.
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
    sale.replace("sale.yaml", "{{ name }}", "you");
    let changed = sale.campaign(&["run", "sale.yaml", "--dry-run", "--accept-changes", "--json"]).exits(0).json();
    assert_eq!(changed["counts"], json!({ "planned": 2, "skipped": 4 }));
    sale.write("sale.yaml", &text);
    assert_eq!(sale.run(&["--json"]).exits(3).json()["sent"], 1);
    // After the run, a new run sends to the rejected recipients again.
    let counts = json!({ "planned": 2, "skipped": 4 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
}

#[test]
fn figures_of_an_unfinished_retry_count_its_messages() {
    let refuse = || Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([refuse(), refuse(), refuse(), refuse()]);
    let draft = campaign().to(4).one_at_a_time().batches_of(1).top("limits: { recipients: 1 }");
    let sale = draft.through(&gateway).write();
    sale.run(&[]).exits(3);
    sale.campaign(&["retry", "sale"]).exits(5);
    sale.replace("sale.yaml", "recipients: 1", "recipients: 9");
    for command in [&["check", "sale.yaml"][..], &["run", "sale.yaml", "--dry-run"]] {
        let output = sale.campaign(&[command, &["--json"]].concat()).exits(0).json();
        assert_eq!(output["counts"], json!({ "planned": 3, "skipped": 1 }), "{command:?}");
    }
    assert_eq!(sale.run(&["--json"]).exits(0).json()["sent"], 3);
}

#[test]
fn changed_text_of_a_finished_edition_is_refused() {
    let gateway = Gateway::accepting();
    let draft = |channels: &str| campaign().to(3).channels(channels).through(&gateway);
    let sale = draft(HELLO).write();
    sale.run(&[]).exits(0);
    draft(NEWS).rewrite(&sale);
    for command in [&["run", "sale.yaml"][..], &["run", "sale.yaml", "--dry-run"], &["check", "sale.yaml"]] {
        sale.campaign(command).exits(2).says("3 recipients already have the old one").says("`edition`").says("sale@1");
    }
    write_people(&sale, 2..7);
    sale.run(&[]).exits(2);
    assert_eq!(gateway.phones().len(), 3);
    sale.run(&["--accept-changes"]).exits(0).says("3 skipped");
    assert_eq!(gateway.phones(), (2..7).map(phone).collect::<Vec<_>>());
    sale.run(&[]).exits(0).says("no recipients are left");
    draft(NEWS).top("edition: news").rewrite(&sale);
    sale.run(&[]).exits(0).says("3 accepted");
}

#[test]
fn changed_settings_of_a_finished_edition_are_named() {
    let gateway = Gateway::accepting();
    let sale = campaign()
        .to(3)
        .channels("  - sms: { signature: OlenaCo, message: \"Hello, {{ variant }} {{ offer }}\" }")
        .top("vars: { offer: now }")
        .top("variants: { plain: { share: 50% }, urgent: { share: 50% } }")
        .through(&gateway)
        .write();
    sale.run(&[]).exits(0);
    sale.replace("sale.yaml", "plain: { share: 50% }", "plain: { share: 40% }");
    sale.replace("sale.yaml", "urgent: { share: 50% }", "urgent: { share: 60% }");
    let expected = "): `variants`; 3 recipients already have a message and would not get another one";
    for command in [&["run", "sale.yaml"][..], &["run", "sale.yaml", "--dry-run"], &["check", "sale.yaml"]] {
        sale.campaign(command).exits(2).says("the campaign has changed since sale@1 (").says(expected);
    }
    sale.replace("sale.yaml", "offer: now", "offer: today");
    sale.run(&[]).exits(2).says("): `vars`, `variants`; 3 recipients");
    sale.replace("sale.yaml", "Hello", "Dear");
    sale.run(&[]).exits(2).says("the message has changed since sale@1 (");
    sale.run(&["--accept-changes"]).exits(0);
}

#[test]
fn rejected_message_can_be_changed_if_no_recipient_got_it() {
    let gateway = Gateway::always(Answer::items(|operation| rejected(operation, "Error in Alpha-name")));
    let draft = |channels: &str| campaign().to(3).channels(channels).through(&gateway);
    let sale = draft(HELLO).write();
    sale.run(&[]).exits(3);
    draft(NEWS).rewrite(&sale);
    sale.run(&[]).exits(3);
    assert_eq!(gateway.phones().len(), 6);
}

#[test]
fn one_invalid_row_of_three_passes_but_five_of_twenty_do_not() {
    for (bad, people, code) in [(1, 2, 3), (4, 16, 3), (5, 15, 2)] {
        let gateway = Gateway::accepting();
        let mut list = "phone,name\n".to_owned();
        (0..bad).for_each(|_| list += "12,Short\n");
        (0..people).for_each(|row| list += &format!("{},Person\n", phone(row + 2)));
        let sale = campaign().with_list(&list).through(&gateway).write();
        sale.run(&[]).exits(code);
        assert_eq!(gateway.phones().len(), if code == 2 { 0 } else { people }, "{bad}");
    }
}

#[test]
fn empty_list_is_fine_if_the_campaign_allows_it() {
    let gateway = Gateway::accepting();
    let empty_draft = || campaign().with_list("phone,name\n").through(&gateway);
    empty_draft().write().run(&[]).exits(2).says("add a row");
    let sale = empty_draft().recipients("empty: ok").write();
    let output = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&output["sent"], &output["rows"], &output["run"]), (&0.into(), &0.into(), &serde_json::Value::Null));
    sale.campaign(&["check", "sale.yaml"]).exits(0);
    sale.run(&["--dry-run"]).exits(0);
    sale.campaign(&["status"]).exits(0).says("no runs yet");
    assert!(gateway.requests().is_empty());
}

#[test]
fn replaced_run_shows_unsent_rows_as_skipped() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.replace("sale.yaml", "{{ name }}", "you");
    sale.run(&["--accept-changes"]).exits(0);
    let output = sale.campaign(&["status", "sale@1", "--json"]).exits(0).json();
    assert_eq!((&output["state"], &output["counts"]), (&"replaced".into(), &json!({ "accepted": 4, "skipped": 6 })));
    let listed = sale.campaign(&["results", "sale@1", "--out", "-"]).exits(0).stdout;
    let results = crate::support::Results::parse(&listed);
    let states = [["accepted"; 4].as_slice(), &["skipped"; 6]].concat();
    assert_eq!(results.states(), states);
    assert_eq!(results.column("reason"), [[""; 4].as_slice(), &["replaced"; 6]].concat());
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for path in ["/runs/sale@1", "/runs/sale@1/rows"] {
        let page = browser.page(path).one("main").words();
        assert!(page.contains("Skipped") && !page.contains("To be sent"), "{path}: {page}");
    }
    let runs = browser.page("/runs").one("main").words();
    assert!(runs.contains("Replaced by a later run"), "{runs}");
}

#[test]
fn replaced_run_in_an_older_ledger_shows_skipped_rows() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(10).through(&gateway).write();
    sale.run(&["--limit", "4"]).exits(0);
    sale.replace("sale.yaml", "{{ name }}", "you");
    sale.run(&["--accept-changes"]).exits(0);
    let counts = r#"{"planned":6,"accepted":4}"#;
    change_ledger(&sale, &format!("UPDATE runs SET counts = '{counts}' WHERE number = 1"));
    let output = sale.campaign(&["status", "sale@1", "--json"]).exits(0).json();
    assert_eq!(output["counts"], json!({ "accepted": 4, "skipped": 6 }));
}

#[test]
fn dry_run_suggests_the_run_with_its_options() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    sale.replace("sale.yaml", "{{ name }}", "you");
    let output = sale.run(&["--dry-run", "--accept-changes", "--up-to", "9"]).exits(0).stdout;
    assert!(output.contains("next: campaign run sale.yaml --accept-changes --no-wait --up-to 9\n"), "{output}");
}
