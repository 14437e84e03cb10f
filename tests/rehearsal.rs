//! Rehearsals: delivery statuses by channel and exact costs before a campaign is sent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Draft, Folder, Results, SandboxProcess, campaign, until};

/// The last digit of a number determines the channel that delivers: RCS for four digits, Viber for three, SMS for two,
/// and none for one.
const SCENARIO: &str = "speed: 1000
accounts: [{ balance: 10000.01, currency: UAH }]
prices: { rcs: 0.62, viber: 0.48, sms: 0.86 }
channels:
  rcs: { delivered: 0%, after: 4s }
  viber: { delivered: 0%, after: 6s }
  sms: { delivered: 0%, after: 10s, fails_as: UNDELIVERABLE }
exceptions:
  - { when: { suffix: \"0\" }, channel: rcs, then: { delivered: 100% } }
  - { when: { suffix: \"1\" }, channel: rcs, then: { delivered: 100% } }
  - { when: { suffix: \"2\" }, channel: rcs, then: { delivered: 100% } }
  - { when: { suffix: \"3\" }, channel: rcs, then: { delivered: 100%, read: 0% } }
  - { when: { suffix: \"4\" }, channel: viber, then: { delivered: 100% } }
  - { when: { suffix: \"5\" }, channel: viber, then: { delivered: 100% } }
  - { when: { suffix: \"6\" }, channel: viber, then: { delivered: 100%, read: 0% } }
  - { when: { suffix: \"7\" }, channel: sms, then: { delivered: 100% } }
  - { when: { suffix: \"8\" }, channel: sms, then: { delivered: 100% } }
";

const CHANNELS: &str = "  - rcs: { signature: OlenaCo, message: Sale, image: \"https://a.example/b.png\", button: Shop, link: \"https://a.example\" }
  - viber: { signature: OlenaCo, message: Sale }
  - sms: { signature: OlenaCo, message: \"Sale, {{ name }}\" }";

/// The costs of 4000 messages by RCS, 3000 by Viber and 3000 by SMS. The gateway also charges for the 1000 SMS that
/// fail.
const SPENT: f64 = 4_000.0 * 0.62 + 3_000.0 * 0.48 + 3_000.0 * 0.86;

fn draft_of_ten_thousand() -> Draft {
    campaign().to(10_000).channels(CHANNELS).batches_of(100)
}

/// The results of a rehearsal.
fn sandbox_results(folder: &Folder) -> Results {
    Results::read(&folder.path("results/sale.sandbox.csv"))
}

/// The expected delivery statuses and costs by channel.
fn expected_channels() -> Value {
    json!({
        "rcs": { "delivered": 4_000, "read": 3_000, "replied": 0, "failed": 0, "spent": 2_480.0 },
        "viber": { "delivered": 3_000, "read": 2_000, "replied": 0, "failed": 0, "spent": 1_440.0 },
        "sms": { "delivered": 2_000, "read": 0, "replied": 0, "failed": 1_000, "spent": 2_580.0 },
    })
}

#[test]
fn rehearsal_reports_channel_split_and_costs() {
    let folder = draft_of_ten_thousand().write();
    folder.write("scenario.yaml", SCENARIO);
    let summary = folder.run(&["--scenario", "scenario.yaml", "--json"]).exits(3).json();
    assert_eq!(summary["counts"], json!({ "delivered": 4_000, "read": 5_000, "failed": 1_000 }));
    let mut by_channel = BTreeMap::<(String, String), u64>::new();
    for row in &sandbox_results(&folder).rows {
        assert_eq!(row["delivered_by"].is_empty(), row["delivered_at"].is_empty());
        *by_channel.entry((row["delivered_by"].clone(), row["state"].clone())).or_default() += 1;
    }
    let expected = [
        ("", "failed", 1_000),
        ("rcs", "delivered", 1_000),
        ("rcs", "read", 3_000),
        ("sms", "delivered", 2_000),
        ("viber", "delivered", 1_000),
        ("viber", "read", 2_000),
    ];
    assert_eq!(by_channel, expected.map(|(by, state, rows)| ((by.to_owned(), state.to_owned()), rows)).into());
    let status = folder.campaign(&["status", "sale", "--json"]).exits(3).json();
    assert_eq!(status["counts"], summary["counts"]);
    assert_eq!(status["channels"]["viber"]["counts"], json!({ "delivered": 1_000, "read": 2_000 }));
    assert_eq!(status["channels"]["viber"]["delivery"]["messages"], 3_000);
    let sandbox = &summary["sandbox"];
    assert_eq!(sandbox["channels"], expected_channels());
    let money = json!([sandbox["spent"], sandbox["balance"], sandbox["currency"]]);
    assert_eq!(money, json!([SPENT, 3_500.01, "UAH"]));
    let output = folder.run(&["--scenario", "scenario.yaml"]).exits(3);
    for part in ["rcs", "4 000 delivered", "2 480.00", "1 000 not delivered", "6 500.00 UAH", "3 500.01"] {
        assert!(output.stdout.contains(part), "no `{part}` in:\n{}", output.details());
    }
}

#[test]
fn separate_and_built_in_sandbox_agree_on_split_and_costs() {
    let scenario = Folder::new(false);
    scenario.write("scenario.yaml", SCENARIO);
    let sandbox = SandboxProcess::start_with(&["--scenario", &scenario.path("scenario.yaml").display().to_string()]);
    let folder = draft_of_ten_thousand().through(&sandbox).write();
    folder.run(&[]).exits(0);
    let read_balance = || folder.campaign(&["gateway", "balance", "--gateway", "local", "--json"]).exits(0).json();
    until("all messages are delivered", || {
        read_balance()["amount"] == json!("3500.01") || read_balance()["amount"] == json!(3500.01)
    });
    let mut charged = 0.0;
    let mut statuses = BTreeMap::<(String, String), u64>::new();
    for line in sandbox.journal() {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        match line["event"].as_str() {
            Some("charge") => charged += line["amount"].as_f64().expect("an amount"),
            Some("status") => *statuses.entry((text("type"), text("status"))).or_default() += 1,
            _ => {}
        }
    }
    assert!((charged - SPENT).abs() < 0.005, "{charged}");
    let count = |channel: &str, status: &str| statuses.get(&(channel.into(), status.into())).copied().unwrap_or(0);
    for (channel, delivered, failed) in [("rcs", 4_000, 6_000), ("viber", 3_000, 3_000), ("sms", 2_000, 1_000)] {
        assert_eq!(count(channel, "DELIVERED"), delivered, "{channel}");
        assert_eq!(count(channel, "UNDELIVERABLE"), failed, "{channel}");
    }
}

const VIBER_THEN_SMS: &str =
    "  - viber: { signature: OlenaCo, message: Sale }\n  - sms: { signature: OlenaCo, message: Sale }";
const PIPELINE: &str =
    "  - sms: { signature: OlenaCo, message: Sale }\n  - viber: { signature: OlenaCo, message: Sale }";

const DELIVERY_SCENARIO: &str = "channels:
  viber: { delivered: 60%, after: 20m, read: 50%, read_after: 1h }
  sms: { delivered: 80%, after: 5m, fails_as: UNDELIVERABLE }
";

const BAD_WEBHOOKS: &str = "faults:
  - { when: { share: 20% }, webhook: late, by: 5h }
  - { when: { share: 20% }, webhook: twice }
  - { when: { share: 20% }, webhook: lost }
";

/// Runs a rehearsal. Returns the state of each row, its channel, and the minutes until its delivery.
fn rehearse(draft: Draft, scenario: &str) -> Vec<(String, String, Option<i64>)> {
    let folder = draft.write();
    folder.write("scenario.yaml", scenario);
    folder.run(&["--scenario", "scenario.yaml"]).exits(3);
    let count_minutes = |row: &BTreeMap<String, String>| {
        let at = |column: &str| row[column].parse::<jiff::Timestamp>().ok();
        Some((at("delivered_at")?.duration_since(at("submitted_at")?).as_secs() + 30) / 60)
    };
    let results = sandbox_results(&folder);
    results.rows.iter().map(|row| (row["state"].clone(), row["delivered_by"].clone(), count_minutes(row))).collect()
}

#[test]
fn rehearsal_gets_final_statuses_even_with_faulty_webhooks() {
    for channels in [VIBER_THEN_SMS, PIPELINE] {
        let create_drafts = || [campaign(), campaign().asynchronous()].map(|draft| draft.to(300).channels(channels));
        for (plain, bad) in create_drafts().into_iter().zip(create_drafts()) {
            let output = rehearse(plain, DELIVERY_SCENARIO);
            assert!(
                output.iter().all(|(state, ..)| ["delivered", "read", "failed"].contains(&state.as_str())),
                "{output:?}"
            );
            assert!(output.contains(&("delivered".into(), "viber".into(), Some(20))) || channels == PIPELINE);
            assert!(output.contains(&("delivered".into(), "sms".into(), Some(5))) || channels == VIBER_THEN_SMS);
            let with_bad_webhooks = rehearse(bad, &format!("{DELIVERY_SCENARIO}{BAD_WEBHOOKS}"));
            let final_states = |rows: &[(String, String, Option<i64>)]| -> Vec<(String, String)> {
                rows.iter().map(|(state, by, _)| (state.clone(), by.clone())).collect()
            };
            assert_eq!(final_states(&with_bad_webhooks), final_states(&output));
        }
    }
}

#[test]
fn retry_of_a_rehearsal_ignores_earlier_rehearsals() {
    let folder = campaign().to(3).write();
    folder.run(&[]).exits(0);
    folder.write("scenario.yaml", "faults: [{ when: { suffix: \"2\" }, item_error: No route }]\n");
    folder.run(&["--scenario", "scenario.yaml"]).exits(3).says("sale@2");
    assert_eq!(folder.campaign(&["retry", "sale", "--json"]).exits(0).json()["sent"], 1);
}

#[test]
fn status_says_that_a_later_run_replaced_the_results() {
    let folder = campaign().to(3).write();
    folder.run(&[]).exits(0);
    folder.run(&[]).exits(0).says("sale@2");
    folder.campaign(&["status", "sale@1"]).exits(0).says("sale.sandbox.csv · replaced by the results of sale@2");
    let latest = folder.campaign(&["status", "sale@2"]).exits(0).says("sale.sandbox.csv\n");
    assert!(!latest.stdout.contains("replaced"), "{}", latest.stdout);
    let replaced_by =
        |command: &str, run: &str| folder.campaign(&[command, run, "--json"]).exits(0).json()["replaced_by"].clone();
    assert_eq!((replaced_by("status", "sale@1"), replaced_by("report", "sale@1")), (json!("sale@2"), json!("sale@2")));
    assert_eq!(replaced_by("status", "sale@2"), Value::Null);
}

#[test]
fn opt_out_in_a_rehearsal_is_counted_and_not_stored() {
    let folder = campaign().to(50).channels(VIBER_THEN_SMS).write();
    let stop = "channels: { viber: { reply: { share: 100%, after: 1m, message: \"STOP.\" } } }\n";
    folder.write("scenario.yaml", stop);
    let output = folder.run(&["--scenario", "scenario.yaml", "--json"]).exits(0).json();
    assert_eq!((&output["counts"], &output["opted_out"]), (&json!({ "read": 50 }), &json!(50)));
    folder.run(&["--scenario", "scenario.yaml"]).exits(0).says("50 recipients opted out; in a live run");
    assert_eq!(folder.campaign(&["suppress", "list", "--json"]).json_list(), json!([]));
    assert_eq!(Results::parse(&folder.campaign(&["replies", "sale"]).exits(0).stdout).rows.len(), 50);
}

#[test]
fn messages_stay_accepted_without_receipts() {
    let folder = campaign().to(3).top("receipts: off").write();
    folder.write("scenario.yaml", DELIVERY_SCENARIO);
    assert_eq!(folder.run(&["--json"]).exits(0).json()["counts"], json!({ "accepted": 3 }));
    let output = folder.run(&["--scenario", "scenario.yaml", "--json"]).exits(0).json();
    assert_eq!(output["counts"], json!({ "accepted": 3 }));
}

#[test]
fn real_time_rehearsal_waits_for_delivery_statuses() {
    let folder = campaign().to(1).write();
    folder.write("scenario.yaml", "channels: { sms: { after: 1s } }\n");
    let output = folder.run(&["--scenario", "scenario.yaml", "--real-time", "--json"]).exits(0).json();
    assert_eq!(output["counts"], json!({ "delivered": 1 }));
    assert!(output["seconds"].as_f64().is_some_and(|seconds| seconds > 0.9), "{output}");
}

#[test]
fn refused_connection_error_names_the_built_in_sandbox() {
    let folder = campaign().to(3).write();
    folder.write("scenario.yaml", "faults:\n  - { when: { envelope: 2 }, connection: refused, lasts: 1s }\n");
    let output = folder.run(&["--scenario", "scenario.yaml", "--progress", "lines"]).exits(0).stderr;
    assert!(output.contains("the built-in sandbox refused the connection"), "{output}");
    assert!(!output.contains("campaign sandbox"), "{output}");
}
