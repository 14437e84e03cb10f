//! Delivery figures by channel and delivery times: `status` agrees with the results.

use serde_json::{Value, json};

use super::{Hooked, operations};
use crate::support::{Clock, Gateway, Process, Results, campaign, change_ledger, in_files};

const VIBER_THEN_SMS: &str =
    "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";

/// Sends the campaign with a clock that is some hours behind, so that later receipts are still in the past.
fn run_hours_ago(hooked: &Hooked, hours: i64) {
    let (clock, then) = (Clock::new(), jiff::Timestamp::now() - jiff::SignedDuration::from_hours(hours));
    let run = hooked.sale.command_after(&clock.set_to(then), &["run", "sale.yaml", "--no-wait"]);
    Process::start(run).finish().exits(0);
}

/// The body of a webhook about a channel, dated `after` seconds after the message was sent.
fn receipt(channel: &str, status: &str, sent: jiff::Timestamp, after: i64) -> String {
    let updated = sent + jiff::SignedDuration::from_secs(after);
    json!({"success": true, "type": channel, "status": status, "updated": updated.to_string()}).to_string()
}

/// The submission time of each row.
fn submission_times(results: &Results) -> Vec<jiff::Timestamp> {
    results.column("submitted_at").into_iter().map(|at| at.parse().expect("a time")).collect()
}

/// The figures by channel in `status --json`.
fn channel_figures(hooked: &Hooked) -> Value {
    hooked.sale.campaign(&["status", "sale", "--json"]).json()["channels"].clone()
}

#[test]
fn status_shows_deliveries_and_delivery_times_by_channel() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(26).channels(VIBER_THEN_SMS).through(&gateway));
    let server = hooked.serve();
    run_hours_ago(&hooked, 4);
    assert_eq!(channel_figures(&hooked), json!({}), "no receipts yet");
    let (operations, sent) = (operations(&gateway), submission_times(&hooked.results()));
    // Viber: 20 delivered after 1 to 20 minutes, 5 of them read.
    // SMS: 2 delivered after Viber failed, 1 failed, 1 pending. The other 2 messages get no receipts.
    for (index, (operation, sent)) in operations.iter().zip(&sent).enumerate() {
        let minute = 60 * (index as i64 + 1);
        let receipts = match index {
            0..5 => vec![("viber", "DELIVERED", minute), ("viber", "READ", minute + 7_000)],
            5..20 => vec![("viber", "DELIVERED", minute)],
            20..22 => vec![("viber", "EXPIRED", 3), ("sms", "DELIVERED", 5)],
            22 => vec![("sms", "UNDELIVERABLE", 4)],
            23 => vec![("sms", "ROUTING", 4)],
            _ => vec![],
        };
        for (channel, status, after) in receipts {
            assert_eq!(hooked.post(operation, &receipt(channel, status, *sent, after)), 200);
        }
    }
    let figures = channel_figures(&hooked);
    assert_eq!(figures["viber"]["counts"], json!({"delivered": 15, "read": 5}));
    assert_eq!(figures["sms"]["counts"], json!({"accepted": 1, "delivered": 2, "failed": 1}));
    assert_eq!(figures["unknown"]["counts"], json!({"accepted": 2}), "no receipt names their channel");
    assert!(figures["unknown"]["delivery"].is_null(), "{figures}");
    for (channel, messages, median, p95) in [("viber", 20, 600.0, 1_140.0), ("sms", 2, 5.0, 5.0)] {
        let delivery = &figures[channel]["delivery"];
        assert_eq!(delivery["messages"], messages, "{figures}");
        for (name, expected) in [("median_seconds", median), ("p95_seconds", p95)] {
            let seconds = delivery[name].as_f64().expect("seconds");
            assert!((expected - 0.001..=expected * 1.001 + 0.001).contains(&seconds), "{channel} {name}: {seconds}");
        }
    }
    hooked
        .sale
        .campaign(&["status", "sale"])
        .exits(3)
        .says("viber: 20 delivered (5 read) · half delivered within 10 min")
        .says("95% within 19 min")
        .says("sms: 1 accepted by the gateway · 2 delivered · 1 failed");
    drop(server);
}

#[test]
fn read_time_is_used_only_without_a_delivery_receipt() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).through(&gateway));
    let server = hooked.serve();
    run_hours_ago(&hooked, 2);
    let (operations, sent) = (operations(&gateway), submission_times(&hooked.results()));
    assert_eq!(hooked.post(&operations[0], &receipt("sms", "READ", sent[0], 3_000)), 200);
    assert_eq!(hooked.post(&operations[0], &receipt("sms", "DELIVERED", sent[0], 30)), 200);
    assert_eq!(hooked.post(&operations[1], &receipt("sms", "READ", sent[1], 4_000)), 200);
    let results = hooked.results();
    assert_eq!(results.states(), ["read", "read"]);
    let delivered: jiff::Timestamp = results.column("delivered_at")[0].parse().expect("a time");
    assert_eq!(delivered.duration_since(sent[0]).as_secs(), 30);
    let figures = channel_figures(&hooked);
    assert_eq!(figures["sms"]["counts"], json!({"read": 2}));
    let delivery = &figures["sms"]["delivery"];
    assert_eq!((&delivery["messages"], &delivery["at_latest"]), (&json!(2), &json!(1)), "{figures}");
    assert!(delivery["median_seconds"].as_f64().is_some_and(|seconds| seconds < 31.0), "{figures}");
    assert!(delivery["p95_seconds"].as_f64().is_some_and(|seconds| seconds > 3_995.0), "{figures}");
    assert_eq!(results.column("delivered_at_is"), ["exact", "at_latest"]);
    let status = hooked.sale.campaign(&["status", "sale"]).exits(0);
    status.says("sms: 2 delivered (2 read) · half delivered within ").says("(an upper bound for 1 message)");
    drop(server);
}

#[test]
fn implausible_delivery_time_is_shown_as_uncertain() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(4).through(&gateway));
    let server = hooked.serve();
    run_hours_ago(&hooked, 2);
    let (operations, sent) = (operations(&gateway), submission_times(&hooked.results()));
    for (index, after) in [30, 365 * 24 * 3_600, -7_200, 3 * 3_600].into_iter().enumerate() {
        assert_eq!(hooked.post(&operations[index], &receipt("sms", "DELIVERED", sent[index], after)), 200);
    }
    let figures = channel_figures(&hooked);
    assert_eq!((&figures["sms"]["delivery"]["messages"], &figures["sms"]["uncertain_times"]), (&json!(1), &json!(3)));
    assert!(figures["sms"]["delivery"]["p95_seconds"].as_f64().is_some_and(|seconds| seconds < 31.0), "{figures}");
    assert_eq!(hooked.results().column("delivered_at_is"), ["exact", "uncertain", "uncertain", "uncertain"]);
    hooked.sale.campaign(&["status", "sale"]).exits(0).says("3 with an uncertain delivery time");
    drop(server);
}

#[test]
fn read_receipt_counts_for_the_channel_that_reported_it() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).channels(VIBER_THEN_SMS).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let (operations, sent) = (operations(&gateway), submission_times(&hooked.results()));
    for (channel, status) in [("sms", "DELIVERED"), ("viber", "READ")] {
        assert_eq!(hooked.post(&operations[0], &receipt(channel, status, sent[0], 1)), 200);
    }
    assert_eq!(hooked.post(&operations[1], &receipt("sms", "PARTIALLY DELIVERED", sent[1], 1)), 200);
    let figures = channel_figures(&hooked);
    assert_eq!(
        (&figures["sms"]["counts"], &figures["sms"]["read"]),
        (&json!({"delivered": 2}), &json!(0)),
        "{figures}"
    );
    assert_eq!((&figures["viber"]["counts"], &figures["viber"]["read"]), (&json!({}), &json!(1)), "{figures}");
    let results = hooked.results();
    assert_eq!((results.column("delivered_by"), results.column("read_by")), (vec!["sms", "sms"], vec!["viber", ""]));
    let status = hooked.sale.campaign(&["status", "sale"]).exits(0);
    let status = status.says("2 rows: 2 delivered (1 read, 1 only in part)").says("sms: 2 delivered (1 only in part)");
    status.says("viber: 1 read after being delivered on another channel");
    drop(server);
}

#[test]
fn figures_are_stored_and_refreshed_after_new_receipts() {
    let _files = in_files();
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(8).channels(VIBER_THEN_SMS).through(&gateway));
    let server = hooked.serve();
    run_hours_ago(&hooked, 1);
    let (operations, sent) = (operations(&gateway), submission_times(&hooked.results()));
    for (index, operation) in operations.iter().enumerate().take(5) {
        let channel = if index % 2 == 0 { "viber" } else { "sms" };
        let after = 10 + index as i64;
        assert_eq!(hooked.post(operation, &receipt(channel, "DELIVERED", sent[index], after)), 200);
    }
    drop(server);
    let read_status = || hooked.sale.campaign(&["status", "sale", "--json"]).json();
    let computed = read_status();
    hooked.sale.campaign(&["resolve", "sale", "--rows", "9", "--as", "sent"]);
    hooked.sale.campaign(&["reconcile", "sale", "--all"]);
    let stored = read_status();
    assert_eq!((&stored["counts"], &stored["channels"]), (&computed["counts"], &computed["channels"]));
    // Without the messages, only the stored figures can be shown.
    change_ledger(&hooked.sale, "CREATE TABLE aside AS SELECT * FROM envelopes; DELETE FROM envelopes");
    assert_eq!(read_status(), stored);
    change_ledger(&hooked.sale, "INSERT INTO envelopes SELECT * FROM aside; DROP TABLE aside");
    // Unreadable or outdated figures are computed again.
    change_ledger(&hooked.sale, "UPDATE figures SET figures = substr(figures, 1, 3)");
    assert_eq!(read_status(), stored);
    let server = hooked.serve();
    assert_eq!(hooked.post(&operations[6], &receipt("sms", "DELIVERED", sent[6], 90)), 200);
    assert_eq!(channel_figures(&hooked)["sms"]["counts"], json!({"delivered": 3}));
    drop(server);
}
