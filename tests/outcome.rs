//! `campaign outcome`: purchases after a message, and reports on unusable rows.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::{Answer, Clock, Folder, Gateway, Process, accepted, campaign, phone, rejected};

/// Sends a campaign to 600 recipients.
fn send_to_600() -> (Gateway, Folder) {
    let gateway = Gateway::accepting();
    let folder = campaign().to(600).top("timezone: Europe/Kyiv").through(&gateway).write();
    folder.run(&[]).exits(0);
    (gateway, folder)
}

/// A CSV line: a purchase by the recipient in this row, this number of hours from now.
fn purchase_line(row: usize, hours: i64, total: &str) -> String {
    let at = Timestamp::now() + SignedDuration::from_hours(hours);
    format!("{at:.0};0{};\"{total}\"\n", phone(row) % 1_000_000_000)
}

#[test]
fn purchases_count_only_for_recipients_within_the_period() {
    let (_gateway, folder) = send_to_600();
    let rows = [
        purchase_line(2, 1, "1 234,50"),
        purchase_line(2, 2, "0,10"),
        purchase_line(3, 24 * 6, "100"),
        purchase_line(4, 24 * 8, "7"),
        purchase_line(5, -2, "7"),
        purchase_line(9_000, 1, "7"),
        purchase_line(6, 1, "free"),
        "soon;0501000007;1\n".to_owned(),
        ";;\n2026-12-01;nobody;1\n".to_owned(),
    ];
    folder.write("bought.csv", &format!("Дата;Телефон;Сума\n{}", rows.concat()));
    let command = ["outcome", "sale", "--file", "bought.csv", "--at", "Дата", "--region", "UA", "--amount", "Сума"];
    let output = folder.campaign(&[&command[..], &["--json"]].concat()).exits(0).json();
    let arm = &output["sent"][0];
    assert_eq!((&arm["people"], &arm["bought"], &arm["purchases"]), (&json!(600), &json!(2), &json!(3)), "{output}");
    assert_eq!(arm["amount"], json!(1334.6));
    assert_eq!((&output["holdout"], &arm["variant"], &output["waiting"]), (&json!(null), &json!(null), &json!(0)));
    let unusable: Vec<u64> =
        output["unusable"].as_array().unwrap().iter().map(|reason| reason["rows"].as_u64().unwrap()).collect();
    assert_eq!(unusable.iter().sum::<u64>(), 3, "{output}");
    let nine_days = folder.campaign(&[&command[..], &["--within", "9d", "--json"]].concat()).exits(0).json();
    assert_eq!(nine_days["sent"][0]["bought"], json!(3));
    let text = folder.campaign(&command).exits(0).stdout;
    for part in
        ["within 7 d", "Europe/Kyiv", "no recipient was in a holdout group", "1334.60", "1 row with no valid amount"]
    {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
}

#[test]
fn variant_named_holdout_is_compared_with_the_holdout_group() {
    let gateway = Gateway::accepting();
    let variants = "variants: { holdout: { share: 50% }, other: { share: 40% } }";
    let folder =
        campaign().to(200).top("timezone: Europe/Kyiv").top(variants).top("holdout: 10%").through(&gateway).write();
    folder.run(&[]).exits(0);
    folder.write("bought.csv", &format!("at;phone;total\n{}", purchase_line(2, 1, "1")));
    let output =
        folder.campaign(&["outcome", "sale", "--file", "bought.csv", "--at", "at", "--region", "UA", "--json"]);
    let output = output.exits(0).json();
    let arm = |name: &str| {
        let arms = output["sent"].as_array().expect("variants").iter();
        arms.filter(|arm| arm["variant"] == name).map(|arm| arm["verdict"].is_string()).collect::<Vec<_>>()
    };
    assert_eq!((arm("holdout"), arm("other")), (vec![true], vec![true]), "{output}");
    assert_eq!((&output["holdout"]["variant"], &output["holdout"]["verdict"]), (&json!(null), &json!(null)));
}

#[test]
fn unusable_purchase_file_is_refused_with_a_reason() {
    let (_gateway, folder) = send_to_600();
    folder.write("bought.csv", "Date,Phone\n2026-12-01,+380501000002\n");
    folder.write("cities.csv", "Date,City\n2026-12-01,Kyiv\n");
    folder.write("undated.csv", "Date,Phone\nsoon,+380501000002\n");
    let sold = |row: usize| format!("2026-12-01,+380441234567,+{}\n", phone(row));
    folder.write("two.csv", &format!("Date,Seller,Client\n{}{}", sold(2), sold(3)));
    for (file, at, expected) in [
        ("bought.csv", "When", "no column `When`"),
        ("cities.csv", "Date", "no column contains phone numbers"),
        ("undated.csv", "Date", "1 row with no valid time"),
        ("gone.csv", "Date", "cannot be read"),
        ("two.csv", "Date", "phone numbers are in the columns `Seller` and `Client`"),
    ] {
        let output = folder.campaign(&["outcome", "sale", "--file", file, "--at", at]).exits(2);
        assert!(output.stderr.contains(expected), "{file}: {}", output.stderr);
        assert!(!output.stderr.contains("nothing was sent"), "{file}: {}", output.stderr);
    }
}

#[test]
fn purchases_count_from_the_message_of_the_latest_round() {
    let (gateway, clock) = (Gateway::accepting(), Clock::new());
    let folder = campaign().to(1).top("timezone: Europe/Kyiv").through(&gateway).write();
    for (moment, arguments) in [("2027-03-10T08:00:00Z", &[][..]), ("2027-03-10T10:00:00Z", &["--again", "1"])] {
        let clock_setup = clock.set_to(moment.parse().expect("a moment"));
        let run = folder.command_after(&clock_setup, &[&["run", "sale.yaml", "--yes"], arguments].concat());
        Process::start(run).finish().exits(0);
    }
    folder.write("bought.csv", &format!("at;phone;total\n2027-03-10T09:00:00Z;+{};1\n", phone(2)));
    let count_buyers = |run: &str| {
        let arguments = ["outcome", run, "--file", "bought.csv", "--at", "at", "--region", "UA", "--json"];
        folder.campaign(&arguments).exits(0).json()["sent"][0]["bought"].clone()
    };
    assert_eq!((count_buyers("sale@1"), count_buyers("sale@2")), (json!(1), json!(0)));
}

#[test]
fn outcome_of_a_test_message_is_refused() {
    let gateway = Gateway::accepting();
    let folder = campaign().to(1).through(&gateway).write();
    folder.campaign(&["test", "sale.yaml", "--to", "+380661112233", "--yes"]).exits(0);
    folder.write("bought.csv", "at,phone\n2026-12-01,+380661112233\n");
    let output = folder.campaign(&["outcome", "campaign.test@1", "--file", "bought.csv", "--at", "at"]).exits(2);
    output.says("has no recipient list");
}

#[test]
fn rejected_recipient_counts_only_after_a_message_was_sent() {
    let reject = |operation: &Value| rejected(operation, "No route");
    let gateway = Gateway::answering_then([Answer::Accept, Answer::items(reject)], Answer::items(accepted));
    let folder = campaign().to(6).batches_of(2).one_at_a_time().top("timezone: Europe/Kyiv").through(&gateway).write();
    folder.run(&["--keep-going"]).exits(3);
    let rejected_rows: Vec<usize> =
        (2..8).zip(folder.results().states()).filter(|(_, state)| *state == "rejected").map(|(row, _)| row).collect();
    assert_eq!(rejected_rows.len(), 2, "{:?}", folder.results().states());
    let purchases = rejected_rows.iter().map(|row| format!("{:.3},+{}\n", Timestamp::now(), phone(*row)));
    folder.write("bought.csv", &format!("at,phone\n{}", purchases.collect::<String>()));
    let read_figures = || {
        let output =
            folder.campaign(&["outcome", "sale", "--file", "bought.csv", "--at", "at", "--json"]).exits(0).json();
        (output["sent"][0]["people"].as_u64(), output["sent"][0]["bought"].as_u64(), output["waiting"].as_u64())
    };
    assert_eq!(read_figures(), (Some(4), Some(0), Some(0)), "rejected messages were not sent");
    std::thread::sleep(std::time::Duration::from_millis(20));
    folder.run(&[]).exits(0);
    assert_eq!(read_figures(), (Some(6), Some(0), Some(0)), "the purchases came before the messages");
}
