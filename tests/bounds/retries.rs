//! Retries under a cap, an end time and allowed countries: rows that a run would skip now are reported and not retried.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::write_other_campaign;
use crate::support::{Answer, Clock, Draft, Finished, Folder, Gateway, Process, campaign, in_files, phone, rejected};

const HOUR: u64 = 3_600;

/// Sends a campaign to three recipients. The gateway rejects the last two messages, and accepts all later ones.
fn send_with_rejections(draft: impl FnOnce(Draft) -> Draft) -> (Gateway, Folder) {
    let gateway = Gateway::answering([Answer::Accept, Answer::items(|operation| rejected(operation, "No route"))]);
    let sale = draft(campaign().to(3).through(&gateway)).write();
    sale.run(&["--keep-going"]).exits(3);
    (gateway, sale)
}

/// Retries the sale this many hours later.
fn retry_later(sale: &Folder, clock: &Clock, hours: u64) -> Finished {
    let moment = Timestamp::now() + Duration::from_secs(hours * HOUR);
    Process::start(sale.command_after(&clock.set_to(moment), &["retry", "sale", "--json"])).finish()
}

/// Checks that a retry sends nothing and reports this reason for the two rejected rows, even if it is repeated.
#[track_caller]
fn assert_skipped(reason: &str, retry: impl Fn() -> Finished) {
    for _ in 0..2 {
        let report: Value = retry().exits(3).json();
        assert_eq!((&report["sent"], &report["not_retried"]), (&json!(0), &json!({ reason: 2 })), "{report}");
        assert_eq!(report["counts"], json!({ "accepted": 1, "rejected": 2 }));
    }
}

#[test]
fn retry_skips_rows_until_the_cap_allows_another_message() {
    let _files = in_files();
    let clock = Clock::new();
    let (gateway, sale) = send_with_rejections(|draft| draft.delivery("cap: 1/7d"));
    let news = write_other_campaign(&sale, "news", "timeout: 20s");
    sale.replace(&news, "  cap: 1/7d\n", "");
    sale.campaign(&["run", &news]).exits(0);
    assert_skipped("cap", || retry_later(&sale, &clock, 0));
    sale.campaign(&["retry", "sale"]).exits(3).says("sale@1 has no rows to retry; skipped: 2 cap");
    retry_later(&sale, &clock, 8 * 24).exits(0);
    assert_eq!(gateway.phones()[6..], [3, 4].map(phone));
}

#[test]
fn retry_after_the_end_time_needs_a_later_end_time() {
    let _files = in_files();
    let clock = Clock::new();
    let (gateway, sale) = send_with_rejections(|draft| draft.delivery("until: 1h"));
    assert_skipped("expired", || retry_later(&sale, &clock, 2));
    let help = retry_later(&sale, &clock, 2).exits(3).json()["help"].clone();
    assert!(help.as_str().is_some_and(|help| help.contains("set a later `until`")), "{help}");
    let status = sale.campaign(&["status", "sale", "--json"]).exits(3).json();
    assert_eq!((&status["stopped"], &status["why"]), (&Value::Null, &Value::Null), "the run is not cancelled");
    sale.replace("sale.yaml", "until: 1h", "until: 9h");
    retry_later(&sale, &clock, 2).exits(0);
    assert_eq!(gateway.phones()[3..], [3, 4].map(phone));
}

#[test]
fn retry_respects_the_countries_of_the_profile() {
    let (gateway, sale) = send_with_rejections(|draft| draft);
    sale.replace("gateways.yaml", "  api_key", "  policy: { countries: [PL] }\n  api_key");
    assert_skipped("country", || sale.campaign(&["retry", "sale", "--json"]));
    sale.replace("gateways.yaml", "countries: [PL]", "countries: [PL, UA]");
    sale.campaign(&["retry", "sale"]).exits(0);
    assert_eq!(gateway.phones()[3..], [3, 4].map(phone));
}

#[test]
fn retry_sends_to_some_recipients_and_counts_others_by_reason() {
    let (gateway, sale) = send_with_rejections(|draft| draft);
    sale.campaign(&["suppress", "add", &format!("+{}", phone(3))]).exits(0);
    let report = sale.campaign(&["retry", "sale", "--json"]).exits(3).json();
    assert_eq!((&report["sent"], &report["not_retried"]), (&json!(1), &json!({ "opted out": 1 })));
    assert_eq!(gateway.phones()[3..], [phone(4)]);
    sale.campaign(&["suppress", "remove", "--yes", &format!("+{}", phone(3))]).exits(0);
    sale.campaign(&["retry", "sale"]).exits(0);
    assert_eq!(gateway.phones()[4..], [phone(3)]);
}
