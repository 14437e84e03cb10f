//! A rehearsal tells beforehand what a campaign will do: over which channels, and what it costs to the cent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Draft, Folder, SandboxProcess, campaign, until};

/// The last digit of a number decides which channel reaches it: four by RCS, three by Viber, two by SMS, one by none.
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

/// 4000 by RCS, 3000 by Viber, 2000 by SMS, and 1000 whom the last channel did not reach, which is paid all the same.
const SPENT: f64 = 4_000.0 * 0.62 + 3_000.0 * 0.48 + 3_000.0 * 0.86;

fn ten_thousand() -> Draft {
    campaign().to(10_000).channels(CHANNELS).batches_of(100)
}

/// What became of the messages, by the scenario.
fn split() -> Value {
    json!({
        "rcs": { "delivered": 4_000, "read": 3_000, "replied": 0, "failed": 0, "spent": 2_480.0 },
        "viber": { "delivered": 3_000, "read": 2_000, "replied": 0, "failed": 0, "spent": 1_440.0 },
        "sms": { "delivered": 2_000, "read": 0, "replied": 0, "failed": 1_000, "spent": 2_580.0 },
    })
}

#[test]
fn a_rehearsal_in_process_tells_the_split_over_channels_and_the_costs() {
    let folder = ten_thousand().write();
    folder.write("scenario.yaml", SCENARIO);
    let summary = folder.run(&["--scenario", "scenario.yaml", "--json"]).exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 10_000 }));
    let played = &summary["sandbox"];
    assert_eq!(played["channels"], split());
    let money = json!([played["spent"], played["balance"], played["currency"]]);
    assert_eq!(money, json!([SPENT, 3_500.01, "UAH"]));
    let told = folder.run(&["--scenario", "scenario.yaml"]).exits(0);
    for part in ["rcs", "4 000 delivered", "2 480.00", "1 000 not delivered", "6 500.00 UAH", "3 500.01"] {
        assert!(told.stdout.contains(part), "no `{part}` in:\n{}", told.told());
    }
}

#[test]
fn a_sandbox_of_its_own_has_the_same_split_and_costs_in_its_balance_and_journal() {
    let scenario = Folder::new(false);
    scenario.write("scenario.yaml", SCENARIO);
    let sandbox = SandboxProcess::start_with(&["--scenario", &scenario.path("scenario.yaml").display().to_string()]);
    let folder = ten_thousand().through(&sandbox).write();
    folder.run(&[]).exits(0);
    let balance = || folder.campaign(&["gateway", "balance", "--gateway", "local", "--json"]).exits(0).json();
    until("all are delivered", || balance()["amount"] == json!("3500.01") || balance()["amount"] == json!(3500.01));
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
