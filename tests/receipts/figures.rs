//! What became of the messages by channel, and how long they took: what `status` tells is what the results say.

use serde_json::{Value, json};

use super::{Hooked, operations};
use crate::support::{Gateway, Results, campaign, change_ledger};

const VIBER_THEN_SMS: &str =
    "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";

/// What a gateway tells of a message by a channel, so many seconds after a moment.
fn told(channel: &str, status: &str, sent: jiff::Timestamp, after: i64) -> String {
    let updated = sent + jiff::SignedDuration::from_secs(after);
    json!({"success": true, "type": channel, "status": status, "updated": updated.to_string()}).to_string()
}

/// When the rows were sent, in their order.
fn sent_at(results: &Results) -> Vec<jiff::Timestamp> {
    results.column("submitted_at").into_iter().map(|at| at.parse().expect("a time")).collect()
}

/// The channels of `status --json`.
fn channels(hooked: &Hooked) -> Value {
    hooked.sale.campaign(&["status", "sale", "--json"]).json()["channels"].clone()
}

#[test]
fn status_tells_by_channel_how_many_arrived_and_within_what_time_from_their_sending() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(26).channels(VIBER_THEN_SMS).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    assert_eq!(channels(&hooked), json!({}), "nothing was told");
    let (operations, sent) = (operations(&gateway), sent_at(&hooked.results()));
    // 20 by Viber after 1 to 20 minutes, of which 5 are read; by SMS two after Viber failed, one that failed, one on its way.
    for (index, (operation, sent)) in operations.iter().zip(&sent).enumerate() {
        let minute = 60 * (index as i64 + 1);
        let stations = match index {
            0..5 => vec![("viber", "DELIVERED", minute), ("viber", "READ", minute + 7_000)],
            5..20 => vec![("viber", "DELIVERED", minute)],
            20..22 => vec![("viber", "EXPIRED", 3), ("sms", "DELIVERED", 5)],
            22 => vec![("sms", "UNDELIVERABLE", 4)],
            23 => vec![("sms", "ROUTING", 4)],
            _ => vec![],
        };
        for (channel, status, after) in stations {
            assert_eq!(hooked.tell(operation, &told(channel, status, *sent, after)), 200);
        }
    }
    let told = channels(&hooked);
    assert_eq!(told["viber"]["counts"], json!({"delivered": 15, "read": 5}));
    assert_eq!(told["sms"]["counts"], json!({"accepted": 1, "delivered": 2, "failed": 1}));
    assert_eq!(told["unknown"], json!({"counts": {"accepted": 2}, "delivery": null}), "nobody told their channel");
    for (channel, messages, median, p95) in [("viber", 20, 600.0, 1_140.0), ("sms", 2, 5.0, 5.0)] {
        let delivery = &told[channel]["delivery"];
        assert_eq!(delivery["messages"], messages, "{told}");
        for (name, exactly) in [("median_seconds", median), ("p95_seconds", p95)] {
            let seconds = delivery[name].as_f64().expect("seconds");
            assert!((exactly - 0.001..=exactly * 1.001 + 0.001).contains(&seconds), "{channel} {name}: {seconds}");
        }
    }
    hooked
        .sale
        .campaign(&["status", "sale"])
        .exits(3)
        .says("viber: 15 delivered · 5 read · half arrived within 10 min")
        .says("95 % within 19 min")
        .says("sms: 1 accepted by the gateway · 2 delivered · 1 failed");
    drop(server);
}

#[test]
fn a_message_arrived_when_it_was_delivered_also_where_its_reading_is_told_before_or_alone() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let (operations, sent) = (operations(&gateway), sent_at(&hooked.results()));
    assert_eq!(hooked.tell(&operations[0], &told("sms", "READ", sent[0], 3_000)), 200);
    assert_eq!(hooked.tell(&operations[0], &told("sms", "DELIVERED", sent[0], 30)), 200);
    assert_eq!(hooked.tell(&operations[1], &told("sms", "READ", sent[1], 4_000)), 200);
    let results = hooked.results();
    assert_eq!(results.states(), ["read", "read"]);
    let delivered: jiff::Timestamp = results.column("delivered_at")[0].parse().expect("a time");
    assert_eq!(delivered.duration_since(sent[0]).as_secs(), 30);
    let told = channels(&hooked);
    assert_eq!(told["sms"]["counts"], json!({"read": 2}));
    assert_eq!(told["sms"]["delivery"]["messages"], 1, "nobody told when the other arrived");
    assert!(told["sms"]["delivery"]["p95_seconds"].as_f64().is_some_and(|seconds| seconds < 31.0), "{told}");
    drop(server);
}

#[test]
fn what_was_counted_is_kept_told_without_reading_a_message_and_made_anew_once_more_is_known() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(8).channels(VIBER_THEN_SMS).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let (operations, sent) = (operations(&gateway), sent_at(&hooked.results()));
    for (index, operation) in operations.iter().enumerate().take(5) {
        let channel = if index % 2 == 0 { "viber" } else { "sms" };
        let after = 10 + index as i64;
        assert_eq!(hooked.tell(operation, &told(channel, "DELIVERED", sent[index], after)), 200);
    }
    drop(server);
    let status = || hooked.sale.campaign(&["status", "sale", "--json"]).json();
    let read = status();
    hooked.sale.campaign(&["resolve", "sale", "--rows", "9", "--as", "sent"]);
    hooked.sale.campaign(&["reconcile", "sale", "--all"]);
    let kept = status();
    assert_eq!((&kept["counts"], &kept["channels"]), (&read["counts"], &read["channels"]));
    // Nobody looks at messages for it.
    change_ledger(&hooked.sale, "CREATE TABLE aside AS SELECT * FROM envelopes; DELETE FROM envelopes");
    assert_eq!(status(), kept);
    change_ledger(&hooked.sale, "INSERT INTO envelopes SELECT * FROM aside; DROP TABLE aside");
    // What nobody can read, and what is not true any more, is made anew.
    change_ledger(&hooked.sale, "UPDATE figures SET figures = substr(figures, 1, 3)");
    assert_eq!(status(), kept);
    let server = hooked.serve();
    assert_eq!(hooked.tell(&operations[6], &told("sms", "DELIVERED", sent[6], 90)), 200);
    assert_eq!(channels(&hooked)["sms"]["counts"], json!({"delivered": 3}));
    drop(server);
}
