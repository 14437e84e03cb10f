//! Suppression files: read at each start, and parsed as leniently as lists. A missing file stops the run.

use serde_json::json;

use crate::support::{Answer, Gateway, accepted, campaign, phone, rejected, until};

fn number(row: usize) -> String {
    format!("+{}", phone(row))
}

#[test]
fn campaign_suppression_file_applies_on_every_surface() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).recipients("suppress: [stop.csv, { file: others.csv, phone: \"Тел.\", region: UA }]");
    let sale = sale.through(&gateway).write();
    sale.write("stop.csv", &format!("Дата;Телефон\n2026-11-01;{}\n", number(3)));
    sale.write("others.csv", &format!("who,\u{0422}ел.\nx,0{}\n", phone(5) % 1_000_000_000));
    let counts = json!({ "planned": 3, "skipped": 2 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    assert_eq!(sale.campaign(&["plan", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0).says("opted out");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 6].map(phone));
    assert_eq!(sale.results().column("reason"), ["", "opted out", "", "opted out", ""]);
    assert_eq!(
        sale.campaign(&["suppress", "export"]).exits(0).stdout.lines().count(),
        1,
        "the suppression list of the ledger is empty"
    );
}

#[test]
fn every_phone_column_of_a_suppression_file_applies() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).recipients("suppress: [stop.csv, numbers.txt]").through(&gateway).write();
    sale.write("stop.csv", &format!("name,phone,phone_2\nOlha,{},{}\nIvan,,{}\n", number(9), number(3), number(5)));
    sale.write("numbers.txt", &format!("{},{}\n", number(8), number(6)));
    sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).says(r#""skipped":3"#);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4].map(phone));
    let national = phone(2) % 1_000_000_000;
    sale.write("stop.csv", &format!("phone,mobile\n{},0{national}\n", number(9)));
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("suppress-row").says("row 2").says("region: UA");
    sale.replace("sale.yaml", "[stop.csv,", "[{ file: stop.csv, phone: phone },");
    let report = sale.campaign(&["check", "sale.yaml"]).exits(0);
    assert!(!report.details().contains("suppress-row"), "{}", report.details());
}

#[test]
fn suppression_file_can_be_empty_or_contain_bare_numbers() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(4).recipients("suppress: [numbers.txt, nobody.csv]").through(&gateway).write();
    sale.write("numbers.txt", &format!("{}\n{}\n", number(2), number(4)));
    sale.write("nobody.csv", "phone,since\n");
    sale.run(&["--limit", "1"]).exits(0);
    assert_eq!(gateway.phones(), [3].map(phone));
    sale.write("nobody.csv", &format!("{}\n", number(5)));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [3].map(phone), "the only number of a file is suppressed");
}

#[test]
fn run_with_an_unusable_suppression_file_is_refused() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).recipients("suppress: [stop.csv]").through(&gateway).write();
    let assert_refused = |reason: &str| {
        sale.run(&[]).exits(2).says("suppress-file").says("sale.yaml:5:14").says(reason).says("nothing was sent");
        sale.campaign(&["check", "sale.yaml"]).exits(2).says(reason);
    };
    assert_refused("stop.csv");
    sale.write("stop.csv", "name,city\nOlha,Kyiv\nIvan,Lviv\n");
    assert_refused("it has no column with phone numbers");
    sale.write("stop.csv", &format!("phone\n0{0}\n0{0}\n", phone(2) % 1_000_000_000));
    assert_refused("region: UA");
    sale.write("stop.csv", "phone,x\n\"+380501234567\n");
    assert_refused("stop.csv");
    sale.replace("sale.yaml", "[stop.csv]", "[{ file: stop.csv, phone: Tel }]");
    sale.write("stop.csv", &format!("phone\n{}\n", number(2)));
    sale.run(&[]).exits(2).says("no column `Tel`");
    assert!(gateway.sends().is_empty());
}

#[test]
fn row_without_a_valid_number_is_reported() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).recipients("suppress: [stop.csv]").through(&gateway).write();
    sale.write("stop.csv", &format!("phone,name\n{},a\n38050x,b\n,c\n3.80501E+11,d\n", number(2)));
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0);
    output.says("2 rows in").says("row 3").says("row 5").says("suppress-row");
    sale.campaign(&["check", "sale.yaml", "--strict"]).exits(2);
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [3, 4].map(phone));
}

#[test]
fn number_suppressed_before_a_run_resumes_is_skipped() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(6).recipients("suppress: [stop.csv]").through(&gateway).write();
    sale.write("stop.csv", &format!("phone\n{}\n", number(2)));
    sale.run(&["--limit", "2"]).exits(0);
    assert_eq!(gateway.phones(), [3, 4].map(phone));
    sale.write("stop.csv", &format!("phone\n{}\n{}\n", number(3), number(6)));
    let counts = sale.run(&["--json"]).exits(0).json()["counts"].clone();
    assert_eq!(counts, json!({ "accepted": 4, "skipped": 2 }), "sent rows keep their states");
    assert_eq!(gateway.phones(), [3, 4, 5, 7].map(phone));
    assert_eq!(sale.results().column("reason"), ["opted out", "", "", "", "opted out", ""]);
}

#[test]
fn run_without_its_suppression_file_does_not_resume() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(4).recipients("suppress: [stop.csv]").through(&gateway).write();
    sale.write("stop.csv", &format!("phone\n{}\n", number(2)));
    sale.run(&["--limit", "1"]).exits(0);
    std::fs::remove_file(sale.path("stop.csv")).expect("a file");
    sale.run(&[]).exits(2).says("stop.csv").says("nothing was sent");
    assert_eq!(gateway.phones(), [phone(3)]);
}

#[test]
fn run_stops_if_its_suppression_file_becomes_unusable() {
    for content in [None, Some("name,city\nOlha,Kyiv\n")] {
        let gateway = Gateway::answering([Answer::Held]);
        let draft = campaign().to(40).batches_of(1).one_at_a_time().delivery("rate: 10/s");
        let sale = draft.recipients("suppress: [stop.csv]").through(&gateway).write();
        sale.write("stop.csv", "phone\n");
        let run = sale.start(&["--json"]);
        until("the first message is on its way", || gateway.sends().len() == 1);
        match content {
            None => std::fs::remove_file(sale.path("stop.csv")).expect("a file"),
            Some(content) => sale.write("stop.csv", content),
        }
        gateway.release();
        let summary = run.finish().exits(5).json();
        assert_eq!(summary["stopped"], "ledger", "{summary}");
        let reason = summary["why"].as_str().expect("a reason");
        assert!(reason.starts_with("cannot use the suppression list `stop.csv`: "), "{reason}");
        assert!(reason.ends_with("; restore the file, then resume the run"), "{reason}");
        assert!(gateway.phones().len() < 40);
        let status = sale.campaign(&["status", "sale", "--json"]).exits(5).json();
        assert_eq!((&status["stopped"], &status["why"]), (&summary["stopped"], &summary["why"]));
        sale.write("stop.csv", "phone\n");
        sale.run(&[]).exits(0);
        assert_eq!(gateway.phones(), (2..42).map(phone).collect::<Vec<_>>());
    }
}

#[test]
fn rejected_message_is_not_resent_to_a_suppressed_recipient() {
    let rejecting = Answer::items(|operation| rejected(operation, "No route"));
    let gateway = Gateway::answering([rejecting, Answer::items(accepted)]);
    let draft = campaign().to(3).delivery("stop_after: { same_error_in_a_row: 9 }").recipients("suppress: [stop.csv]");
    let sale = draft.through(&gateway).write();
    sale.write("stop.csv", "phone\n");
    sale.run(&["--rows", "2"]).exits(3);
    sale.run(&[]).exits(3);
    sale.write("stop.csv", &format!("phone\n{}\n", number(2)));
    sale.campaign(&["retry", "sale", "--yes"]).exits(3).says("opted out");
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
    sale.write("stop.csv", "phone\n");
    sale.campaign(&["retry", "sale", "--yes"]).exits(0);
    assert_eq!(gateway.phones(), [2, 3, 4, 2].map(phone));
}

#[test]
fn service_messages_are_not_blocked_by_a_suppression_file() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).top("purpose: service").recipients("suppress: [stop.csv]").through(&gateway).write();
    sale.write("stop.csv", &format!("phone\n{}\n", number(2)));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 3].map(phone));
}

#[test]
fn suppression_files_of_a_profile_apply_to_every_campaign() {
    let gateway = Gateway::accepting();
    let draft = || campaign().to(4).through(&gateway).profile("policy: { suppress: [house.csv] }");
    let sale = draft().recipients("suppress: [stop.csv]").write();
    sale.write("house.csv", &format!("phone\n{}\n", number(2)));
    sale.write("stop.csv", &format!("phone\n{}\n", number(4)));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [3, 5].map(phone));
    let other = draft().top("edition: second").write();
    other.run(&[]).exits(2).says("house.csv").says("nothing was sent");
    assert_eq!(gateway.phones(), [3, 5].map(phone));
}
