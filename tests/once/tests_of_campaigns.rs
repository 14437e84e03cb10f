//! `campaign test`: sends the message of a row to a test number and leaves the campaign unchanged.

use serde_json::{Value, json};

use crate::support::{Answer, Folder, Gateway, KEY, Request, Terminal, campaign, phone, rejected};

/// A number outside every list.
const TESTER: u64 = 380_671_234_567;

/// Runs `campaign test` with these arguments.
fn test(sale: &Folder, arguments: &[&str]) -> crate::support::Finished {
    sale.campaign(&[&["test", "sale.yaml"], arguments].concat())
}

/// The numbers and SMS texts that the gateway received.
fn sent_texts(gateway: &Gateway) -> Vec<(u64, String)> {
    let operations = gateway.sends().iter().flat_map(Request::operations).collect::<Vec<_>>();
    let text = |operation: &Value| operation["sms_message"].as_str().expect("a text").to_owned();
    gateway.phones().into_iter().zip(operations.iter().map(text)).collect()
}

#[test]
fn row_sent_as_a_test_does_not_count_for_the_campaign() {
    let gateway = Gateway::accepting();
    let sale = campaign().recipients("region: UA").through(&gateway).write();
    let report = test(&sale, &["--to", "067 123 45 67"]).exits(0);
    report
        .says("test of sale, row 2")
        .says("Hello, Person 2")
        .says("campaign.test@1 row 2 · test message · local · accepted")
        .says("msg_id");
    assert_eq!(sent_texts(&gateway), [(TESTER, "Hello, Person 2".to_owned())]);
    // A tester who is also on the list still gets the campaign's message, and only that message counts.
    let recipient = format!("+{}", phone(3));
    test(&sale, &["--to", &recipient, "--row", "4"]).exits(0).says("Hello, Person 4").says("campaign.test@1 row 3");
    let run = sale.run(&["--json"]).exits(0).json();
    assert_eq!(
        (run["rows"].clone(), run["counts"].clone(), run["sent"].clone()),
        (json!(3), json!({ "accepted": 3 }), json!(3))
    );
    assert_eq!(gateway.phones()[2..], [phone(2), phone(3), phone(4)]);
    sale.campaign(&["status", "sale", "--json"]).exits(0);
    sale.campaign(&["show", "sale@1", "--to", &TESTER.to_string()]).exits(2);
    sale.campaign(&["show", "campaign.test@1", "--to", &TESTER.to_string()]).exits(0).says("accepted by the gateway");
    sale.campaign(&["status", "campaign.test"]).exits(0).says("2 accepted");
    // No recipients are left, but a test with `--row` still works.
    test(&sale, &["--to", &recipient]).exits(2).says("no row gets a message now").says("--row");
    test(&sale, &["--to", &recipient, "--row", "2"]).exits(0);
}

#[test]
fn test_uses_the_named_row_or_the_first_valid_one() {
    let gateway = Gateway::accepting();
    let list = format!("phone,name\n12,Odd\n{},Ann\n\n{},Bob\n", phone(3), phone(5));
    let sale = campaign().with_list(&list).recipients("max_invalid: 90%").through(&gateway).write();
    let to = TESTER.to_string();
    test(&sale, &["--to", &to]).exits(0).says("row 3").says("Hello, Ann");
    sale.run(&["--rows", "3"]).exits(3);
    test(&sale, &["--to", &to]).exits(0).says("row 5").says("Hello, Bob");
    for (row, words) in [("2", "too short"), ("4", "blank"), ("1", "header"), ("9", "row 5")] {
        test(&sale, &["--to", &to, "--row", row]).exits(2).says(words);
    }
    test(&sale, &["--to", "067 123 45 67"]).exits(2).says("country code");
    test(&sale, &[]).exits(2).says("--to");
    assert_eq!(gateway.phones(), [TESTER, phone(3), TESTER]);
}

#[test]
fn test_sends_once_per_number_and_reports_each_outcome() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let (one, other) = (TESTER.to_string(), (TESTER + 1).to_string());
    let same = format!("+{one}");
    let report = test(&sale, &["--to", &one, "--to", &other, "--to", &same, "--row", "3", "--json"]).exits(0).json();
    assert_eq!(gateway.phones(), [TESTER, TESTER + 1]);
    assert_eq!((&report["campaign"], &report["row"], &report["exit"]), (&json!("sale"), &json!(3), &json!(0)));
    assert_eq!(report["operation"]["sms_message"], "Hello, Person 3");
    let tests = report["tests"].as_array().expect("tests");
    let states: Vec<_> =
        tests.iter().map(|test| (test["to"].clone(), test["row"].clone(), test["state"].clone())).collect();
    assert_eq!(states, [(json!(one), json!(2), json!("accepted")), (json!(other), json!(3), json!("accepted"))]);
    assert!(tests.iter().all(|test| test["run"] == "campaign.test@1" && test["msg_id"].is_string()), "{report}");
}

#[test]
fn remote_list_is_fetched_for_a_test_only_on_request() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let source = "command: [/usr/bin/printf, 'phone,name\\n380501000002,Ann\\n']";
    sale.replace("sale.yaml", "file: sale.csv", source);
    let to = TESTER.to_string();
    test(&sale, &["--to", &to]).exits(2).says("--fetch");
    test(&sale, &["--to", &to, "--fetch"]).exits(0).says("Hello, Ann");
    assert_eq!(sent_texts(&gateway), [(TESTER, "Hello, Ann".to_owned())]);
}

#[test]
fn asynchronous_campaign_is_tested_at_its_endpoint() {
    let gateway = Gateway::accepting();
    let sale = campaign().asynchronous().through(&gateway).write();
    let report = test(&sale, &["--to", &TESTER.to_string(), "--json"]).exits(0).json();
    assert_eq!(report["tests"][0]["state"], "queued");
    assert!(report["tests"][0]["request_id"].is_string(), "{report}");
    assert!(gateway.sends()[0].path().contains("v1"), "{}", gateway.sends()[0].path());
}

#[test]
fn opted_out_recipient_gets_only_tests_of_service_messages() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    let to = TESTER.to_string();
    sale.campaign(&["suppress", "add", &format!("+{to}")]).exits(0);
    test(&sale, &["--to", &to]).exits(2).says("opted out");
    assert!(gateway.sends().is_empty());
    campaign().top("purpose: service").through(&gateway).rewrite(&sale);
    test(&sale, &["--to", &to]).exits(0);
    assert_eq!(gateway.phones(), [TESTER]);
}

#[test]
fn live_test_message_is_previewed_and_needs_confirmation() {
    let sale = crate::support::live();
    let to = TESTER.to_string();
    test(&sale, &["--to", &to]).exits(2).says("Hello, Person 2").says("--yes");
    let terminal = Terminal::start_on(200, sale.command(&["test", "sale.yaml", "--to", &to]));
    terminal
        .shows("Hello, Person 2")
        .shows(&format!("a test message to +{to}"))
        .shows("does not count as a campaign message");
    terminal.types("no");
    terminal.finish().exits(2);
    // After confirmation, the test starts, but the gateway is unreachable.
    test(&sale, &["--to", &to, "--to", &(TESTER + 1).to_string(), "--yes"]).exits(5).says("nothing was sent");
    let output = test(&sale, &["--to", &to, "--json", "--yes"]).exits(5).details();
    assert!(!output.replace(&format!("\"{KEY}\""), "").contains("api_key"), "{output}");
}

#[test]
fn test_message_in_doubt_is_reported_and_never_resent() {
    let gateway = Gateway::answering([Answer::status(502), Answer::items(|item| rejected(item, "No route"))]);
    let sale = campaign().through(&gateway).write();
    let to = TESTER.to_string();
    let doubt = test(&sale, &["--to", &to]).exits(4);
    doubt.says("might have been processed and charged").says("campaign show campaign.test@1 --row 2");
    test(&sale, &["--to", &to]).exits(3).says("No route");
    sale.campaign(&["status", "campaign.test"]).exits(4).says("1 in doubt");
    sale.campaign(&["retry", "campaign.test"]).exits(2).says("campaign test");
    let resolve = ["resolve", "campaign.test@1", "--rows", "2", "--as", "send-again", "--i-accept-duplicates", "1"];
    sale.campaign(&resolve).exits(2).says("campaign test");
    sale.campaign(&["resolve", "campaign.test@1", "--rows", "2", "--as", "sent"]).exits(3);
    assert_eq!(gateway.sends().len(), 2);
}

#[test]
fn test_message_of_a_rehearsal_campaign_is_a_rehearsal() {
    let sale = campaign().write();
    test(&sale, &["--to", &TESTER.to_string()]).exits(0).says("rehearsal in the built-in sandbox").says("accepted");
}
