//! Messages that fall back from one channel to the next: their delivery status, by webhook and by inquiry, and retries
//! of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Hooked, operations, post, webhook_path};
use crate::support::{Answer, Clock, Draft, Finished, Folder, Gateway, Process, Server, accepted, campaign, in_files};

const VIBER_SMS: &str = "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";
const SMS_VIBER: &str = "  - sms: { signature: OlenaCo, message: Hi }\n  - viber: { signature: OlenaCo, message: Hi }";
const RCS_VIBER_SMS: &str = "  - rcs: { signature: OlenaCo, message: Hi, image: https://shop.example/1.png, \
    button: Buy, link: https://shop.example }
  - viber: { signature: OlenaCo, message: Hi }
  - sms: { signature: OlenaCo, message: Hi }";

/// A gateway report: the channel, its status, and the minute of its timestamp.
type Report = (&'static str, &'static str, u32);

/// Reports in order of arrival and the resulting state of the row, for a chain of `viber` and `sms`.
const TABLE: &[(&[Report], &str)] = &[
    (&[("viber", "UNDELIVERABLE", 5), ("sms", "DELIVERED", 5)], "delivered"),
    (&[("viber", "EXPIRED", 10), ("sms", "DELIVERED", 9)], "delivered"),
    (&[("viber", "EXPIRED", 50), ("viber", "DELIVERED", 5)], "delivered"),
    (&[("viber", "EXPIRED", 50), ("viber", "READ", 5)], "read"),
    (&[("viber", "EXPIRED", 50), ("viber", "REPLIED", 5)], "read"),
    (&[("viber", "EXPIRED", 2), ("sms", "READ", 4), ("sms", "DELIVERED", 3)], "read"),
    (&[("viber", "EXPIRED", 2)], "accepted"),
    (&[("viber", "EXPIRED", 2), ("sms", "ACCEPTED", 3)], "accepted"),
    (&[("viber", "EXPIRED", 2), ("sms", "QUEUED", 3)], "accepted"),
    (&[("viber", "UNDELIVERABLE", 2), ("sms", "UNDELIVERABLE", 3)], "failed"),
    (&[("sms", "UNDELIVERABLE", 3)], "failed"),
    (&[("", "EXPIRED", 3)], "failed"),
    (&[("", "EXPIRED", 3), ("viber", "DELIVERED", 1)], "delivered"),
    (&[("rcs", "EXPIRED", 3)], "accepted"),
    (&[("MAX", "EXPIRED", 3)], "accepted"),
    (&[("MAX", "EXPIRED", 3), ("MAX", "DELIVERED", 2)], "delivered"),
];

/// Reports in order of arrival and the resulting state of the row, for a chain of `rcs`, `viber` and `sms`.
const THREE_CHANNELS: &[(&[Report], &str)] = &[
    (&[("rcs", "UNDELIVERABLE", 1)], "accepted"),
    (&[("rcs", "UNDELIVERABLE", 1), ("viber", "EXPIRED", 2)], "accepted"),
    (&[("viber", "EXPIRED", 2), ("rcs", "UNDELIVERABLE", 1), ("sms", "SIM FULL", 0)], "failed"),
    (&[("sms", "SIM FULL", 3), ("viber", "EXPIRED", 2), ("rcs", "UNDELIVERABLE", 1)], "failed"),
    (&[("rcs", "UNDELIVERABLE", 9), ("viber", "DELIVERED", 2), ("sms", "EXPIRED", 5)], "delivered"),
    (&[("sms", "SIM FULL", 9), ("rcs", "READ", 1)], "read"),
];

/// The body of a webhook.
fn webhook_body((channel, status, minute): &Report) -> String {
    let mut report = json!({"status": status, "updated": format!("2026-11-22T10:{minute:02}:00+02:00")});
    if !channel.is_empty() {
        report["type"] = (*channel).into();
    }
    report.to_string()
}

/// A gateway that accepts everything and reports a given status for the messages that it accepted. It denies all other
/// messages.
struct ReportingGateway {
    gateway: Gateway,
    report: Arc<Mutex<Option<Report>>>,
}

impl ReportingGateway {
    fn new() -> Self {
        let (sent, report) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(Mutex::new(None::<Report>)));
        let (known, reported) = (Arc::clone(&sent), Arc::clone(&report));
        let gateway = Gateway::always(Answer::items(move |operation| {
            sent.lock().expect("a set").insert(operation["id"].to_string());
            accepted(operation)
        }))
        .with_statuses(move |inquiry| {
            let id = inquiry["id"].to_string();
            match *reported.lock().expect("a report") {
                Some(report) if known.lock().expect("a set").contains(&id) => {
                    let mut data: Value = serde_json::from_str(&webhook_body(&report)).expect("JSON");
                    data["id"] = id.into();
                    json!({"success": true, "data": data})
                }
                _ => json!({"success": false, "error": "no such message"}),
            }
        });
        Self { gateway, report }
    }

    /// Sets the status that the gateway reports for every message; `None` denies all messages.
    fn set_report(&self, report: impl Into<Option<Report>>) {
        *self.report.lock().expect("a report") = report.into();
    }
}

/// Sends the reports of each table row by webhook, and compares the resulting states with the table. `expected_state`
/// maps a state of the table to the expected state.
fn check_states_by_webhook(
    table: &[(&[Report], &str)],
    draft: Draft,
    expected_state: impl Fn(&'static str) -> &'static str,
) {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(draft.to(table.len()).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&["--offline"]);
    let operations = operations(&gateway);
    for (operation, (reports, _)) in operations.iter().zip(table) {
        for report in *reports {
            assert_eq!(hooked.post(operation, &webhook_body(report)), 200);
        }
    }
    let states: Vec<&str> = table.iter().map(|(_, state)| expected_state(static_state(state))).collect();
    assert_eq!(hooked.results().states(), states);
    drop(server);
}

/// Returns a state word with a static lifetime.
fn static_state(state: &str) -> &'static str {
    ["accepted", "delivered", "read", "failed"].into_iter().find(|word| *word == state).expect("a state")
}

#[test]
fn webhooks_set_the_expected_state_of_a_fallback_chain() {
    check_states_by_webhook(TABLE, campaign().channels(VIBER_SMS), |state| state);
}

#[test]
fn webhooks_set_the_expected_state_of_three_channels() {
    check_states_by_webhook(THREE_CHANNELS, campaign().channels(RCS_VIBER_SMS), |state| state);
}

#[test]
fn webhooks_set_the_expected_state_of_an_async_chain() {
    let expect_queued = |state| if state == "accepted" { "queued" } else { state };
    check_states_by_webhook(TABLE, campaign().channels(VIBER_SMS).asynchronous(), expect_queued);
}

#[test]
fn rejection_as_the_first_receipt_counts_as_rejected_at_intake() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).channels(VIBER_SMS).asynchronous().through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&["--offline"]);
    let operations = operations(&gateway);
    assert_eq!(hooked.post(&operations[0], &webhook_body(&("viber", "REJECTED", 1))), 200);
    assert_eq!(hooked.post(&operations[1], &webhook_body(&("viber", "ROUTING", 1))), 200);
    assert_eq!(hooked.post(&operations[1], &webhook_body(&("viber", "REJECTED", 1))), 200);
    assert_eq!(hooked.results().states(), ["failed", "queued"]);
    // A message that was rejected at intake reached no recipient, so no inquiry is needed.
    let retried = hooked.sale.campaign(&["retry", "sale", "--no-wait"]).exits(0);
    assert!(!retried.stderr.contains("before the retry"), "{}", retried.stderr);
    assert_eq!(gateway.phones().len(), 3);
    drop(server);
}

#[test]
fn pipeline_falls_back_in_the_order_of_its_variant() {
    let gateway = Gateway::accepting();
    let variants = format!(
        "variants:\n  first: {{ share: 50% }}\n  other:\n    share: 50%\n    channels:\n{}\n",
        SMS_VIBER.replace("  - ", "      - ")
    );
    let hooked = Hooked::write(campaign().to(40).channels(SMS_VIBER_VOICE).top(variants.trim_end()).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operations = operations(&gateway);
    for operation in &operations {
        assert_eq!(hooked.post(operation, &webhook_body(&("viber", "EXPIRED", 1))), 200);
    }
    let results = hooked.results();
    let state_of: std::collections::BTreeMap<_, _> =
        results.rows.iter().map(|row| (row["to"].clone(), row["state"].clone())).collect();
    let mut states = BTreeSet::new();
    for operation in &operations {
        let last = operation["pipeline"].as_array().and_then(|channels| channels.last()).expect("a pipeline");
        let expected = if last == "viber" { "failed" } else { "accepted" };
        assert_eq!(state_of[&operation["phone"].to_string()], expected, "{operation}");
        states.insert(expected);
    }
    assert_eq!(states.len(), 2, "both variants are sent");
    drop(server);
}

const SMS_VIBER_VOICE: &str = "  - sms: { signature: OlenaCo, message: Hi }
  - viber: { signature: OlenaCo, message: Hi }
  - voice: { message: \"Code {{ phone }}\", gender: female, language: uk-UA, name: uk-UA-Standard-A }";

#[test]
fn first_final_status_response_decides_the_state() {
    for (channels, table) in [(VIBER_SMS, TABLE), (RCS_VIBER_SMS, THREE_CHANNELS)] {
        for (reports, state) in table {
            let reporting = ReportingGateway::new();
            let sale = campaign().to(1).channels(channels).through(&reporting.gateway).write();
            sale.run(&[]).exits(0);
            for report in *reports {
                reporting.set_report(*report);
                sale.campaign(&["reconcile", "sale", "--all"]);
            }
            // No inquiry is made about a message with a final status.
            let first_final = reports.iter().find(|report| is_final(report, channels));
            let expected = first_final.map_or("accepted", final_state);
            assert_eq!(sale.results().states(), [expected], "{reports:?} {state}");
        }
    }
}

/// Whether a report is final for a message on these channels.
fn is_final((channel, status, _): &Report, channels: &str) -> bool {
    let last = if channels.ends_with("sms: { signature: OlenaCo, message: Hi }") { "sms" } else { "viber" };
    match *status {
        "DELIVERED" | "READ" | "REPLIED" => true,
        "ACCEPTED" | "QUEUED" => false,
        _ => channel.is_empty() || *channel == last,
    }
}

fn final_state((_, status, _): &Report) -> &'static str {
    match *status {
        "DELIVERED" => "delivered",
        "READ" | "REPLIED" => "read",
        _ => "failed",
    }
}

#[test]
fn channel_failure_sets_gateway_status_but_no_error() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).channels(VIBER_SMS).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operations = operations(&gateway);
    let expired = json!({"type": "viber", "status": "EXPIRED", "error": "Lifetime ended"}).to_string();
    assert_eq!(hooked.post(&operations[0], &expired), 200);
    let foreign = json!({"type": "MAX", "status": "EXPIRED"}).to_string();
    assert_eq!(hooked.post(&operations[1], &foreign), 200);
    let results = hooked.results();
    assert_eq!(results.column("gateway_status"), ["EXPIRED", "EXPIRED"]);
    assert_eq!(results.column("error"), ["", ""]);
    let row = hooked.sale.campaign(&["show", "sale", "--row", "3", "--json"]).json();
    let receipt = row["history"].as_array().expect("a list").iter().find(|entry| entry["event"] == "receipt");
    assert_eq!(receipt.expect("a receipt")["channel"], "MAX", "the gateway's word is kept");
    drop(server);
}

/// Retries failed messages.
fn retry_failed(sale: &Folder, more: &[&str]) -> Finished {
    sale.campaign(&[&["retry", "sale", "--state", "failed", "--yes", "--no-wait"], more].concat())
}

/// A run of a fallback chain in which all messages are reported as failed.
fn failed_run(reporting: &ReportingGateway, recipients: usize) -> (Hooked, Server) {
    let hooked = Hooked::write(campaign().to(recipients).channels(VIBER_SMS).through(&reporting.gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    for operation in operations(&reporting.gateway) {
        assert_eq!(hooked.post(&operation, &webhook_body(&("", "EXPIRED", 1))), 200);
    }
    assert_eq!(hooked.results().states(), vec!["failed"; recipients]);
    (hooked, server)
}

#[test]
fn retry_sends_messages_confirmed_as_failed() {
    let reporting = ReportingGateway::new();
    let (hooked, server) = failed_run(&reporting, 2);
    reporting.set_report(("sms", "UNDELIVERABLE", 3));
    retry_failed(&hooked.sale, &[]).exits(0).says("asking the gateway about 2 messages before the retry");
    assert_eq!(reporting.gateway.phones().len(), 4);
    drop(server);
}

#[test]
fn retry_skips_messages_reported_as_delivered() {
    let reporting = ReportingGateway::new();
    let (hooked, server) = failed_run(&reporting, 2);
    reporting.set_report(("sms", "DELIVERED", 3));
    retry_failed(&hooked.sale, &[]).says("the gateway reports 2 messages as delivered");
    assert_eq!(reporting.gateway.phones().len(), 2, "no recipient got a second message");
    assert_eq!(hooked.results().states(), ["delivered"; 2]);
    drop(server);
}

#[test]
fn retry_skips_messages_still_being_delivered() {
    let reporting = ReportingGateway::new();
    let (hooked, server) = failed_run(&reporting, 2);
    for report in [("sms", "ACCEPTED", 3), ("viber", "EXPIRED", 3)] {
        reporting.set_report(report);
        retry_failed(&hooked.sale, &[]).says("the gateway reports 2 messages as still being delivered");
    }
    assert_eq!(reporting.gateway.phones().len(), 2);
    drop(server);
}

#[test]
fn retry_skips_messages_the_gateway_does_not_confirm_as_failed() {
    let reporting = ReportingGateway::new();
    let (hooked, server) = failed_run(&reporting, 2);
    reporting.set_report(None);
    retry_failed(&hooked.sale, &[]).exits(5).says("--i-accept-duplicates 2");
    retry_failed(&hooked.sale, &["--i-accept-duplicates", "1"]).exits(2).says("you accepted duplicates for 1");
    assert_eq!(reporting.gateway.phones().len(), 2);
    retry_failed(&hooked.sale, &["--i-accept-duplicates", "2"]).exits(0);
    assert_eq!(reporting.gateway.phones().len(), 4);
    drop(server);
}

#[test]
fn retry_of_a_chain_sends_nothing_without_a_gateway_answer() {
    let gateway = Gateway::accepting().with_status_answer(Answer::status(500));
    let hooked = Hooked::write(campaign().to(1).channels(VIBER_SMS).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    assert_eq!(hooked.post(&operations(&gateway)[0], &webhook_body(&("sms", "UNDELIVERABLE", 1))), 200);
    assert_eq!(hooked.results().states(), ["failed"]);
    retry_failed(&hooked.sale, &[]).exits(5).says("try again later");
    assert_eq!(gateway.phones().len(), 1);
    drop(server);
}

#[test]
fn retry_sends_the_rest_and_reports_unconfirmed_messages() {
    let failed_id = Arc::new(Mutex::new(None::<String>));
    let confirmed_id = Arc::clone(&failed_id);
    let gateway = Gateway::accepting().with_statuses(move |inquiry| {
        let id = inquiry["id"].to_string();
        match *confirmed_id.lock().expect("an id") == Some(id.clone()) {
            true => json!({"success": true, "data": {"id": id, "type": "sms", "status": "UNDELIVERABLE"}}),
            false => json!({"success": false, "error": "no such message"}),
        }
    });
    let hooked = Hooked::write(campaign().to(3).channels(VIBER_SMS).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let sent = operations(&gateway);
    sent.iter().for_each(|operation| assert_eq!(hooked.post(operation, &webhook_body(&("sms", "EXPIRED", 1))), 200));
    *failed_id.lock().expect("an id") = Some(sent[1]["id"].to_string());
    retry_failed(&hooked.sale, &["--i-accept-duplicates", "9"]).exits(2).says("that 2 messages");
    assert_eq!(operations(&gateway).len(), 3);
    let retried = retry_failed(&hooked.sale, &[]).exits(5);
    retried
        .says("retry of sale@1: 1 message to send; skipped: 2 whose failure the gateway did not confirm")
        .says("not retried: 2 messages");
    assert_eq!(
        operations(&gateway)[3..].iter().map(|operation| &operation["phone"]).collect::<Vec<_>>(),
        [&sent[1]["phone"]]
    );
    drop(server);
}

#[test]
fn retry_of_a_single_channel_does_not_query_the_gateway() {
    let gateway = Gateway::accepting().with_status_answer(Answer::status(500));
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    assert_eq!(hooked.post(&operations(&gateway)[0], &webhook_body(&("sms", "EXPIRED", 1))), 200);
    retry_failed(&hooked.sale, &[]).exits(0);
    assert!(!gateway.requests().iter().any(|request| request.is_status_inquiry()));
    drop(server);
}

#[test]
fn late_delivery_of_a_retried_message_stops_the_next_retry() {
    let reporting = ReportingGateway::new();
    let (hooked, server) = failed_run(&reporting, 1);
    let first = hooked.sale.results().column("msg_id")[0].to_owned();
    reporting.set_report(("sms", "UNDELIVERABLE", 3));
    retry_failed(&hooked.sale, &[]).exits(0);
    let sent = operations(&reporting.gateway);
    let second = hooked.results().column("msg_id")[0].to_owned();
    let webhook_of = |msg_id: &str, report: &Report| {
        let mut report: Value = serde_json::from_str(&webhook_body(report)).expect("JSON");
        report["msg_id"] = msg_id.into();
        report.to_string()
    };
    assert_eq!(hooked.post(&sent[1], &webhook_of(&second, &("sms", "UNDELIVERABLE", 4))), 200);
    assert_eq!(hooked.post(&sent[0], &webhook_of(&first, &("viber", "READ", 2))), 200);
    let results = hooked.results();
    assert_eq!((results.states(), results.column("delivered_by")), (vec!["read"], vec!["viber"]));
    // All columns of the row describe the message that was read.
    assert_eq!(results.column("id"), [sent[0]["id"].to_string()]);
    assert_eq!(results.column("msg_id"), [first]);
    assert!(!results.column("reason")[0].contains("duplicate"), "{:?}", results.column("reason"));
    assert_eq!(results.column("error"), [""]);
    retry_failed(&hooked.sale, &[]).says("has no rows to retry");
    assert_eq!(reporting.gateway.phones().len(), 2);
    drop(server);
}

#[test]
fn row_reported_delivered_during_a_retry_is_skipped() {
    let webhook = Arc::new(Mutex::new(None::<(String, String)>));
    let late_webhook = Arc::clone(&webhook);
    let gateway = Gateway::always(Answer::items(move |operation| {
        if let Some((address, path)) = late_webhook.lock().expect("a webhook").take() {
            assert_eq!(post(&address, &path, &webhook_body(&("sms", "DELIVERED", 9))), 200);
        }
        accepted(operation)
    }));
    let hooked = Hooked::write(campaign().to(2).one_at_a_time().batches_of(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let sent = operations(&gateway);
    sent.iter().for_each(|operation| assert_eq!(hooked.post(operation, &webhook_body(&("sms", "EXPIRED", 1))), 200));
    // The webhook arrives while the message of the previous row is on its way.
    *webhook.lock().expect("a webhook") = Some((hooked.address.clone(), webhook_path(&sent[1]).to_owned()));
    retry_failed(&hooked.sale, &[]).exits(0);
    assert_eq!(
        operations(&gateway)[2..].iter().map(|operation| &operation["phone"]).collect::<Vec<_>>(),
        [&sent[0]["phone"]]
    );
    assert_eq!(hooked.results().states(), ["accepted", "delivered"]);
    drop(server);
}

#[test]
fn retry_verifies_a_rejection_contradicted_by_a_later_receipt() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).channels(VIBER_SMS).asynchronous().through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&["--offline"]);
    for report in [("viber", "REJECTED", 1), ("sms", "ACCEPTED", 2)] {
        assert_eq!(hooked.post(&operations(&gateway)[0], &webhook_body(&report)), 200);
    }
    hooked.sale.campaign(&["retry", "sale", "--no-wait"]).exits(3).says("--state failed");
    // This gateway answers every status inquiry alike, so its answer does not prove that the message failed.
    retry_failed(&hooked.sale, &[]).exits(5);
    assert_eq!(gateway.phones().len(), 1);
    drop(server);
}

#[test]
fn row_skipped_by_a_retry_keeps_its_state() {
    let reporting = ReportingGateway::new();
    let (hooked, server) = failed_run(&reporting, 2);
    let stop = json!({"type": "viber", "status": "EXPIRED", "replies": [{"message": "STOP"}]}).to_string();
    assert_eq!(hooked.post(&operations(&reporting.gateway)[0], &stop), 200);
    reporting.set_report(("sms", "UNDELIVERABLE", 3));
    retry_failed(&hooked.sale, &[]).says("skipped: 1 opted out");
    let results = hooked.results();
    assert_eq!(results.states(), ["failed", "accepted"]);
    assert_eq!(results.column("reason"), ["", ""]);
    let row = hooked.sale.campaign(&["show", "sale", "--row", "2"]).exits(0);
    assert!(!row.stdout.contains("never sent"), "{}", row.stdout);
    drop(server);
}

#[test]
fn stop_reply_is_recorded_after_any_number_of_receipts() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let operation = &operations(&gateway)[0];
    let reply = |minute: u32, words: &str| {
        let at = format!("2026-11-22T{:02}:{:02}:00+02:00", 10 + minute / 60, minute % 60);
        json!({"type": "sms", "status": "REPLIED", "replies": [{"datetime": at, "message": words}]}).to_string()
    };
    for minute in 0..70 {
        assert_eq!(hooked.post(operation, &reply(minute, "hello")), 200);
    }
    assert_eq!(hooked.post(operation, &reply(71, "STOP")), 200);
    let count_opt_outs =
        || hooked.sale.campaign(&["suppress", "list", "--json"]).stdout.matches("answered STOP").count();
    assert_eq!(count_opt_outs(), 1);
    hooked.sale.campaign(&["suppress", "remove", "--yes", &format!("+{}", operation["phone"])]).exits(0);
    assert_eq!(count_opt_outs(), 0);
    assert_eq!(hooked.post(operation, &reply(71, "STOP")), 200);
    assert_eq!(count_opt_outs(), 1, "a repeated STOP opts the recipient out again");
    drop(server);
}

#[test]
fn unreported_fallback_fails_after_the_last_status_query() {
    let _files = in_files();
    let (reporting, clock) = (ReportingGateway::new(), Clock::new());
    let sale = campaign().to(2).channels(VIBER_SMS).through(&reporting.gateway).write();
    sale.run(&[]).exits(0);
    reporting.set_report(("viber", "EXPIRED", 10));
    let reconcile_after = |days: i64| {
        let clock = clock.set_to(Timestamp::now() + SignedDuration::from_hours(24 * days));
        Process::start(sale.command_after(&clock, &["reconcile", "sale", "--all"])).finish()
    };
    reconcile_after(3).exits(0);
    assert_eq!(sale.results().states(), ["accepted"; 2]);
    reconcile_after(5);
    let results = sale.results();
    assert_eq!(results.states(), ["failed"; 2]);
    assert_eq!(results.column("reason"), ["fallback not reported"; 2]);
    assert_eq!(results.column("gateway_status"), ["EXPIRED"; 2]);
    sale.campaign(&["report", "sale", "--out", "report.html"]);
    let page = std::fs::read_to_string(sale.path("report.html")).expect("a page");
    assert!(page.contains("fallback not reported"));
}

#[test]
fn failure_on_an_unknown_channel_is_final_after_the_last_query() {
    let _files = in_files();
    let (reporting, clock) = (ReportingGateway::new(), Clock::new());
    let sale = campaign().to(1).through(&reporting.gateway).write();
    sale.run(&[]).exits(0);
    reporting.set_report(("MAX", "EXPIRED", 10));
    sale.campaign(&["reconcile", "sale", "--all"]).exits(0);
    assert_eq!(sale.results().states(), ["accepted"]);
    let later = clock.set_to(Timestamp::now() + SignedDuration::from_hours(24 * 5));
    Process::start(sale.command_after(&later, &["reconcile", "sale", "--all"])).finish();
    assert_eq!(sale.results().states(), ["failed"]);
}
