//! `outcome` counts what people bought after their message, and says what it does not know.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::support::{Folder, Gateway, campaign, phone};

/// Six hundred people who got a message through a gateway.
fn sent() -> (Gateway, Folder) {
    let gateway = Gateway::accepting();
    let folder = campaign().to(600).top("timezone: Europe/Kyiv").through(&gateway).write();
    folder.run(&[]).exits(0);
    (gateway, folder)
}

/// A purchase of the person in that row, so many hours after now.
fn purchase(row: usize, hours: i64, total: &str) -> String {
    let at = Timestamp::now() + SignedDuration::from_hours(hours);
    format!("{at:.0};0{};\"{total}\"\n", phone(row) % 1_000_000_000)
}

#[test]
fn purchases_count_exactly_for_their_buyers_and_period() {
    let (_gateway, folder) = sent();
    let rows = [
        purchase(2, 1, "1 234,50"),
        purchase(2, 2, "0,10"),
        purchase(3, 24 * 6, "100"),
        purchase(4, 24 * 8, "7"),
        purchase(5, -2, "7"),
        purchase(9_000, 1, "7"),
        purchase(6, 1, "free"),
        "soon;0501000007;1\n".to_owned(),
        ";;\n2026-12-01;nobody;1\n".to_owned(),
    ];
    folder.write("bought.csv", &format!("Дата;Телефон;Сума\n{}", rows.concat()));
    let command = ["outcome", "sale", "--file", "bought.csv", "--at", "Дата", "--region", "UA", "--amount", "Сума"];
    let told = folder.campaign(&[&command[..], &["--json"]].concat()).exits(0).json();
    let arm = &told["sent"][0];
    assert_eq!((&arm["people"], &arm["bought"], &arm["purchases"]), (&json!(600), &json!(2), &json!(3)), "{told}");
    assert_eq!(arm["amount"], json!(1334.6));
    assert_eq!((&told["holdout"], &arm["variant"], &told["waiting"]), (&json!(null), &json!(null), &json!(0)));
    let unusable: Vec<u64> =
        told["unusable"].as_array().unwrap().iter().map(|why| why["rows"].as_u64().unwrap()).collect();
    assert_eq!(unusable.iter().sum::<u64>(), 3, "{told}");
    let eight_days = folder.campaign(&[&command[..], &["--within", "9d", "--json"]].concat()).exits(0).json();
    assert_eq!(eight_days["sent"][0]["bought"], json!(3));
    let words = folder.campaign(&command).exits(0).stdout;
    for part in ["within 7 d", "Europe/Kyiv", "no holdout group", "1334.60", "1 row with no valid amount"] {
        assert!(words.contains(part), "no `{part}` in:\n{words}");
    }
}

#[test]
fn empty_file_is_refused_with_advice() {
    let (_gateway, folder) = sent();
    folder.write("bought.csv", "Date,Phone\n2026-12-01,+380501000002\n");
    folder.write("cities.csv", "Date,City\n2026-12-01,Kyiv\n");
    folder.write("undated.csv", "Date,Phone\nsoon,+380501000002\n");
    for (file, at, said) in [
        ("bought.csv", "When", "no column `When`"),
        ("cities.csv", "Date", "no column contains phone numbers"),
        ("undated.csv", "Date", "1 × no valid time"),
        ("gone.csv", "Date", "cannot be read"),
    ] {
        let failed = folder.campaign(&["outcome", "sale", "--file", file, "--at", at]).exits(2);
        assert!(failed.stderr.contains(said), "{file}: {}", failed.stderr);
    }
}
